"""Runs a worklist inside the environment: files side by side, each in a process of its own.

It never imports jax or pytest, writes down how every process ended, and judges no test: what it
prints is progress, what counts is in the journals.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from ci_tools.edges.machine import count_workers
from ci_tools.edges.process import stop_group
from ci_tools.errors import CiToolsError, ExitCode
from ci_tools.findings import flatten
from ci_tools.records.layout import CHUNK_JOURNAL, JOURNALS, job_path, journal_path, log_path
from ci_tools.records.lines import SCHEMA, Lines, LineWriter, load_lines
from ci_tools.running.children import Child, Ended
from ci_tools.running.forking import reap_strays
from ci_tools.running.job import Job, render_job
from ci_tools.running.starting import TOOL_FOLDER, Start, Starter
from ci_tools.running.worklist import Worklist, load_worklist

POLL_SECONDS = 0.02
CAPTURE_SECONDS = 120.0


class Supervisor:
    """Works one worklist off and journals it in `folder`."""

    def __init__(self, folder: Path, worklist: Worklist) -> None:
        self._folder = folder
        self._worklist = worklist
        self._writer = LineWriter(folder / CHUNK_JOURNAL)
        self._workers = count_workers(worklist.file_memory_bytes, len(worklist.files))
        self._running: list[Child] = []
        self._next = 0
        self._done = 0
        self._is_red = False
        self._stop_signal: int | None = None
        self._starter: Starter | None = None
        self._capture: subprocess.Popen[bytes] | None = None
        self._capture_deadline = 0.0

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
            time=time.time(),
        )
        self._starter = Starter(self._modules(), self._folder / "zygote.log", say)
        self._writer.write("starter", **self._starter.description)
        if not self._worklist.list_only:
            self._capture = self._start_capture()
        while self._next < len(self._worklist.files) or self._running or self._is_capturing():
            if self._stop_signal is not None:
                return self._interrupt(self._stop_signal)
            self._fill()
            self._reap()
            time.sleep(POLL_SECONDS)
        self._starter.close()
        if self._capture is not None:
            self._writer.write("environment-end", exit_code=self._capture.returncode)
        self._writer.write("chunk-finish", lines=self._writer.count + 1, time=time.time())
        return ExitCode.RED if self._is_red else ExitCode.GREEN

    def _modules(self) -> tuple[str, ...]:
        """What the zygote imports: nothing for a single file, which would not win by it."""
        return self._worklist.preload if len(self._worklist.files) > 1 else ()

    def _start_capture(self) -> subprocess.Popen[bytes]:
        """Write the environment record beside the tests, in a process of its own."""
        self._capture_deadline = time.monotonic() + CAPTURE_SECONDS
        with (self._folder / "environment.log").open("wb") as output:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "ci_tools.environment.capture",
                    str(self._folder),
                    self._worklist.lock,
                ],
                env={**os.environ, "PYTHONPATH": str(TOOL_FOLDER)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _is_capturing(self) -> bool:
        """Whether the environment is still being recorded; past its time that is ended."""
        if self._capture is None or self._capture.poll() is not None:
            return False
        if time.monotonic() >= self._capture_deadline:
            stop_group(self._capture)
        return self._capture.poll() is None

    def _kill_what_runs(self) -> None:
        """Leave no process behind when an error, for instance a full disk, ended the work."""
        pids = [child.pid for child in self._running]
        if self._capture is not None and self._capture.returncode is None:
            pids.append(self._capture.pid)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        if self._starter is not None:
            self._starter.close()

    def _fill(self) -> None:
        while len(self._running) < self._workers and self._next < len(self._worklist.files):
            self._start(self._next)
            self._next += 1

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
        job_file = job_path(self._folder, index)
        job_file.write_text(render_job(job), encoding="utf-8")
        start = Start(
            index=index,
            path=file.path,
            job=job_file,
            log=log_path(self._folder, index),
            timeout_seconds=self._worklist.timeout_seconds,
        )
        self._running.append(self._launch("file-start", start))

    def _launch(self, event: str, start: Start, *, fresh: bool = False, **fields: str) -> Child:
        assert self._starter is not None
        child = self._starter.start(start, fresh=fresh)
        self._writer.write(
            event,
            path=start.path,
            index=start.index,
            pid=child.pid,
            forked=child.is_fork,
            time=time.time(),
            **fields,
        )
        return child

    def _reap(self) -> None:
        now = time.monotonic()
        for child in list(self._running):
            ended = child.poll(now)
            if ended is not None:
                self._running.remove(child)
                if not self._start_afresh(child):
                    self._record(child, ended)
        known = {child.pid for child in self._running} | self._starter_pids()
        reap_strays(known)

    def _starter_pids(self) -> set[int]:
        """The processes of this one that are not test files."""
        own = set() if self._starter is None else self._starter.pids
        return own if self._capture is None else own | {self._capture.pid}

    def _start_afresh(self, child: Child) -> bool:
        """Start a forked file again in a fresh process where it asked for that before any test."""
        journal = journal_path(self._folder, child.index)
        reason = find_request(load_lines(journal)) if child.is_fork else ""
        if not reason or self._stop_signal is not None:
            return False
        journal.rename(journal.with_suffix(".fork.jsonl"))
        start = Start(
            index=child.index,
            path=child.path,
            job=job_path(self._folder, child.index),
            log=log_path(self._folder, child.index),
            timeout_seconds=self._worklist.timeout_seconds,
        )
        self._running.append(self._launch("file-restart", start, fresh=True, reason=reason))
        say(f"{flatten(child.path)}: a fresh process, because {reason}")
        return True

    def _record(self, child: Child, ended: Ended) -> None:
        self._done += 1
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
        )
        self._is_red |= ended.exit_code != 0 and not self._worklist.list_only
        counts = summarise_journal(journal_path(self._folder, child.index))
        total = len(self._worklist.files)
        width = len(str(total))
        print(
            f"[{self._done:{width}}/{total}] {flatten(child.path)}  {counts or _how(ended)}"
            f"  {ended.seconds:.1f} s  {ended.peak_bytes / 1e6:.0f} MB",
            flush=True,
        )

    def _interrupt(self, number: int) -> ExitCode:
        for child in self._running:
            child.stop("interrupt", time.monotonic())
        if self._capture is not None:
            stop_group(self._capture)
        while self._running:
            self._reap()
            time.sleep(POLL_SECONDS)
        left = [file.path for file in self._worklist.files[self._next :]]
        self._writer.write("interrupted", signal=number, not_started=left, time=time.time())
        names = map(flatten, left)
        print(f"interrupted; {len(left)} files were not started:", *names, sep="\n  ", flush=True)
        return ExitCode.INTERRUPTED if number == signal.SIGINT else ExitCode.INFRASTRUCTURE


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, flush=True)


def find_request(lines: Lines) -> str:
    """Return why a file asked for a fresh process; empty where it did not."""
    last = lines.events[-1] if lines.events else {}
    if last.get("event") != "fresh-process" or lines.problems:
        return ""
    return str(last.get("reason"))


def summarise_journal(path: Path) -> str:
    """Return a file's outcomes as words for the progress line; empty when it has none."""
    counts: Counter[str] = Counter()
    for event in load_lines(path).events:
        if event["event"] == "selected":
            counts["listed"] = len(event.get("gated", ())) + len(event.get("excluded", ()))
        elif event["event"] == "phase" and event.get("when") == "call":
            counts[str(event.get("outcome"))] += 1
        elif event["event"] == "phase" and event.get("outcome") != "passed":
            counts["skipped" if event.get("outcome") == "skipped" else "error"] += 1
        elif event["event"] == "collect-report":
            counts["collection " + str(event.get("outcome"))] += 1
    if len(counts) > 1:
        del counts["listed"]
    return ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))


def _how(ended: Ended) -> str:
    if ended.ended_by != "exit":
        return f"ended by {ended.ended_by}"
    return f"signal {ended.signal}" if ended.signal else f"exit {ended.exit_code}"


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
