"""Runs a worklist inside the environment: files side by side, each in a process of its own.

It never imports jax or pytest, writes down how every process ended, and judges no test: what it
prints is progress, what counts is in the journals.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from ci_tools.compilation.overlay import Overlays
from ci_tools.edges.machine import count_cores, find_memory_bytes
from ci_tools.errors import CiToolsError, ExitCode
from ci_tools.findings import flatten
from ci_tools.records.layout import (
    CHUNK_JOURNAL,
    COMPILED,
    JOURNALS,
    job_path,
    journal_path,
    log_path,
)
from ci_tools.records.lines import SCHEMA, Lines, LineWriter, load_lines
from ci_tools.running.children import Child, Ended
from ci_tools.running.evidence import Watch, count_oom_kills, gather
from ci_tools.running.forking import reap_strays
from ci_tools.running.job import Job, render_job
from ci_tools.running.progress import count_compilations, render_compilations, render_end, say
from ci_tools.running.recording import Recording
from ci_tools.running.starting import Start, Starter
from ci_tools.running.worklist import Worklist, load_worklist, make_schedule

POLL_SECONDS = 0.02
BUDGET_SHARE = 0.9  # of the memory that is there; the rest is for what is not predicted


class Supervisor:
    """Works one worklist off and journals it in `folder`."""

    def __init__(self, folder: Path, worklist: Worklist) -> None:
        self._folder = folder
        self._worklist = worklist
        self._writer = LineWriter(folder / CHUNK_JOURNAL)
        self._workers = max(1, min(count_cores(), len(worklist.files)))
        self._budget_bytes = int(find_memory_bytes() * BUDGET_SHARE)
        self._schedule = make_schedule(worklist, self._workers, self._budget_bytes)
        self._base = Path(worklist.cache) if worklist.cache else None
        self._overlays = Overlays(folder / COMPILED, self._base)
        self._compilations: Counter[str] = Counter()
        self._running: list[Child] = []
        self._watches: dict[int, Watch] = {}
        self._done = 0
        self._is_red = False
        self._stop_signal: int | None = None
        self._starter: Starter | None = None
        self._recording: Recording | None = None

    def ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: end at the next turn of the loop, with every child accounted for."""
        self._stop_signal = number

    def run(self) -> ExitCode:
        """Run every file; on a signal end what runs, name what did not, and keep the journals."""
        try:
            return self._work()
        finally:
            self._kill_what_runs()

    def _work(self) -> ExitCode:
        (self._folder / JOURNALS).mkdir(exist_ok=True)
        self._writer.write(
            "chunk-start",
            schema=SCHEMA,
            plan=self._worklist.plan,
            chunk=self._worklist.chunk,
            files=len(self._worklist.files),
            workers=self._workers,
            budget_bytes=self._budget_bytes,
            time=time.time(),
        )
        self._starter = Starter(self._modules(), self._folder / "zygote.log", say)
        self._writer.write("starter", **self._starter.description)
        if not self._worklist.list_only:
            self._recording = Recording(self._folder, self._worklist.lock)
        while self._schedule.waiting or self._running or self._is_recording():
            if self._stop_signal is not None:
                return self._interrupt(self._stop_signal)
            self._fill()
            self._reap()
            time.sleep(POLL_SECONDS)
        return self._finish()

    def _finish(self) -> ExitCode:
        if self._recording is not None:
            self._writer.write("environment-end", exit_code=self._recording.exit_code)
        earlier = list(self._base.iterdir()) if self._base and self._base.is_dir() else []
        words = render_compilations(self._compilations, len(earlier))
        if words:
            self._writer.write("compilations", **self._compilations)
            say(words)
        self._writer.write("chunk-finish", lines=self._writer.count + 1, time=time.time())
        return ExitCode.RED if self._is_red else ExitCode.GREEN

    def _modules(self) -> tuple[str, ...]:
        """What the zygote imports: nothing for a single file, which would not win by it."""
        return self._worklist.preload if len(self._worklist.files) > 1 else ()

    def _is_recording(self) -> bool:
        return self._recording is not None and self._recording.is_running()

    def _kill_what_runs(self) -> None:
        """Leave no process behind when an error, for instance a full disk, ended the work."""
        for child in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        if self._recording is not None:
            self._recording.kill()
        self._overlays.close()
        if self._starter is not None:
            self._starter.close()

    def _fill(self) -> None:
        while True:
            place = self._schedule.take([child.index for child in self._running])
            if place is None:
                return
            self._start(place)

    def _start(self, index: int) -> None:
        file = self._worklist.files[index]
        job = Job(
            journal=str(journal_path(self._folder, index)),
            plan=self._worklist.plan,
            chunk=self._worklist.chunk,
            path=file.path,
            ids=file.ids,
            lane=self._worklist.lane,
            packages=self._worklist.packages,
            list_only=self._worklist.list_only,
        )
        job_path(self._folder, index).write_text(render_job(job), encoding="utf-8")
        self._launch("file-start", index)

    def _launch(self, event: str, index: int, *, fresh: bool = False, **fields: str) -> None:
        assert self._starter is not None
        path = self._worklist.files[index].path
        child = self._starter.start(
            Start(
                index=index,
                path=path,
                job=job_path(self._folder, index),
                log=log_path(self._folder, index),
                timeout_seconds=self._worklist.timeout_seconds,
                cache=self._overlays.make(index),
            ),
            fresh=fresh,
        )
        self._running.append(child)
        self._watches[child.pid] = Watch(pid=child.pid, oom_kills_before=count_oom_kills())
        self._writer.write(
            event,
            path=path,
            index=index,
            pid=child.pid,
            forked=child.is_fork,
            time=time.time(),
            **fields,
        )

    def _reap(self) -> None:
        now = time.monotonic()
        for child in list(self._running):
            self._watches[child.pid].sample(now)
            ended = child.poll(now)
            if ended is not None:
                self._running.remove(child)
                self._settle(child, ended)
        reap_strays({child.pid for child in self._running} | self._own_pids())

    def _own_pids(self) -> set[int]:
        """The processes of this one that are not test files."""
        own = set() if self._starter is None else self._starter.pids
        return own if self._recording is None else own | {self._recording.pid}

    def _settle(self, child: Child, ended: Ended) -> None:
        """Record how a file ended, or start it again where it asked for that before any test."""
        path = journal_path(self._folder, child.index)
        journal = load_lines(path)
        reason = find_request(journal) if child.is_fork and self._stop_signal is None else ""
        self._overlays.settle(child.index, is_finished=is_finished(journal, ended))
        if reason:
            del self._watches[child.pid]
            path.rename(path.with_suffix(".fork.jsonl"))
            self._launch("file-restart", child.index, fresh=True, reason=reason)
            say(f"{flatten(child.path)}: a fresh process, because {reason}")
        else:
            self._record(child, ended, journal)

    def _record(self, child: Child, ended: Ended, journal: Lines) -> None:
        self._done += 1
        watch = self._watches.pop(child.pid)
        log = log_path(self._folder, child.index)
        evidence = {} if is_finished(journal, ended) else {"evidence": gather(watch, log)}
        self._writer.write(
            "file-end",
            path=child.path,
            index=child.index,
            exit_code=ended.exit_code,
            signal=ended.signal,
            ended_by=ended.ended_by,
            seconds=ended.seconds,
            cpu_seconds=ended.cpu_seconds,
            peak_bytes=ended.peak_bytes,
            peak_pss_bytes=watch.peak_pss_bytes,
            peak_mappings=watch.peak_mappings,
            **evidence,
        )
        self._is_red |= ended.exit_code != 0 and not self._worklist.list_only
        self._compilations += count_compilations(journal)
        say(render_end(self._done, len(self._worklist.files), child.path, ended, journal))

    def _interrupt(self, number: int) -> ExitCode:
        for child in self._running:
            child.stop("interrupt", time.monotonic())
        if self._recording is not None:
            self._recording.stop()
        while self._running:
            self._reap()
            time.sleep(POLL_SECONDS)
        left = [self._worklist.files[place].path for place in self._schedule.waiting]
        self._writer.write("interrupted", signal=number, not_started=left, time=time.time())
        say("\n  ".join([f"interrupted; {len(left)} files were not started:", *map(flatten, left)]))
        return ExitCode.INTERRUPTED if number == signal.SIGINT else ExitCode.INFRASTRUCTURE


def find_request(journal: Lines) -> str:
    """Return why a file asked for a fresh process; empty where it did not."""
    last = journal.events[-1] if journal.events else {}
    if last.get("event") != "fresh-process" or journal.problems:
        return ""
    return str(last.get("reason"))


def is_finished(journal: Lines, ended: Ended) -> bool:
    """Return whether a process ended by itself after its last line: nothing of it is half done."""
    last = journal.events[-1]["event"] if journal.events else ""
    return ended.ended_by == "exit" and ended.signal is None and last == "finish"


def main(arguments: list[str]) -> int:
    """Run the worklist in the folder named on the command line."""
    folder = Path(arguments[0]).resolve()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # progress ends no run, in any locale
    try:
        supervisor = Supervisor(folder, load_worklist(folder))
    except FileExistsError:
        print(f"{folder} holds the records of another run, and two must not mix", file=sys.stderr)
        return ExitCode.INFRASTRUCTURE
    except CiToolsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    signal.signal(signal.SIGINT, supervisor.ask_to_stop)
    signal.signal(signal.SIGTERM, supervisor.ask_to_stop)
    return int(supervisor.run())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
