"""The pytest plugin: journals what is collected and every phase's outcome, as it happens.

It runs inside the test process (`-p ci_tools.running.plugin`), selects the lane by the real
markers, and judges nothing: the verdict reads the journal. pytest's own counts are never used,
because they count subtests and hide a sub-case that failed under a parent that passed.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from ci_tools.environment.origin import find_origin
from ci_tools.records.lines import SCHEMA, LineWriter
from ci_tools.roster.exclusion import MARKER
from ci_tools.running.compilations import Compilations
from ci_tools.running.job import JOB_VARIABLE, Job, load_job
from ci_tools.running.reports import DETAIL_CHARACTERS, describe, is_subtest, note, read_fields
from ci_tools.running.settings import find_changed_settings
from ci_tools.running.witness import Witness

STACK_SIGNAL = signal.SIGUSR1
OOM_SCORE = "500"  # of at most 1000


class Journal:
    """Hooks that write one job's journal."""

    def __init__(self, job: Job, writer: LineWriter, root: Path) -> None:
        self._job = job
        self._writer = writer
        self._root = root
        self._exit_status = -1
        self._witness = Witness()
        self._compilations = Compilations()

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Refuse packages of another checkout."""
        config.addinivalue_line(
            "markers", f"{MARKER}(kind, reason, owner, review_by, needs=()): not run by the gate"
        )
        for package in self._job.packages:
            origin = find_origin(package)
            if origin is None or not origin.is_relative_to(self._root):
                found = "nothing" if origin is None else str(origin)
                message = (
                    f"package {package!r} resolves to {found}, not to the tree under test "
                    f"{self._root}"
                )
                self._writer.write("refused", message=message)
                raise pytest.UsageError(message)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep the lane's tests; what was set aside is journalled with them."""
        excluded = [item for item in items if item.get_closest_marker(MARKER) is not None]
        gated = [item for item in items if item.get_closest_marker(MARKER) is None]
        wanted = excluded if self._job.lane == "excluded" else gated
        others = gated if self._job.lane == "excluded" else excluded
        if self._job.ids is not None:
            chosen = frozenset(self._job.ids)
            others = others + [item for item in wanted if item.nodeid not in chosen]
            wanted = [item for item in wanted if item.nodeid in chosen]
        self._writer.write(
            "selected",
            gated=[item.nodeid for item in gated],
            excluded=[item.nodeid for item in excluded],
        )
        items[:] = [] if self._job.list_only else wanted
        if others:
            config.hook.pytest_deselected(items=others)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Journal what will run; ask for a fresh process where a fork cannot be right."""
        self._compilations.listen()
        changed = find_changed_settings(os.environ)
        if changed:
            names = ", ".join(changed)
            self._writer.write("fresh-process", reason=f"its modules set {names} at import")
            sys.stdout.flush()
            os._exit(0)
        self._writer.write("collected", ids=[item.nodeid for item in session.items])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Journal a collector that failed or skipped itself."""
        if report.outcome != "passed":
            self._writer.write(
                "collect-report",
                id=report.nodeid,
                outcome=report.outcome,
                **describe(report, self._root),
            )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Journal that a test starts: after a death the last start names the test."""
        self._writer.write("test-start", id=nodeid, time=time.time())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Watch whether the test function itself is entered."""
        with self._witness.watch(getattr(item, "obj", None)):
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach how a failure was expected, and the line of the test that failed."""
        report = yield
        is_unentered = self._witness.was_entered(getattr(item, "obj", None)) is False
        note(report, item, call, is_hollow=call.when == "call" and is_unentered)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Journal a phase, or a subtest: those reports come through here as well."""
        fields = read_fields(report, self._root)
        if is_subtest(report):
            self._writer.write("subtest", id=report.nodeid, outcome=report.outcome, **fields)
            return
        self._writer.write(
            "phase",
            id=report.nodeid,
            when=report.when,
            outcome=report.outcome,
            seconds=round(report.duration, 6),
            **fields,
        )

    def pytest_internalerror(self, excrepr: object) -> None:
        """Journal an error of pytest or of a plugin."""
        self._writer.write("internal-error", detail=str(excrepr)[-DETAIL_CHARACTERS:])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Remember how the session ended, after every other hook had its say."""
        self._exit_status = int(session.exitstatus)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Journal the end; nothing of pytest runs after this."""
        if self._compilations.counts:
            self._writer.write("compilations", **self._compilations.counts)
        self._writer.write("finish", exit_status=self._exit_status, lines=self._writer.count + 1)
        self._writer.close()


def _enable_stacks() -> None:
    """Let the supervisor ask for the Python stacks of a hanging file, past pytest's capture."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        keep = os.fdopen(os.dup(2), "w")
        faulthandler.register(STACK_SIGNAL, file=keep, all_threads=True)


def _prefer_to_others() -> None:
    """Have the kernel, short of memory, kill this process before the user's other work."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Start the journal as early as a plugin can: before any conftest is imported."""
    job_file = os.environ.get(JOB_VARIABLE)
    if job_file is None:
        return
    _enable_stacks()
    _prefer_to_others()
    job = load_job(Path(job_file))
    writer = LineWriter(Path(job.journal))
    writer.write(
        "start",
        schema=SCHEMA,
        plan=job.plan,
        chunk=job.chunk,
        path=job.path,
        pid=os.getpid(),
        time=time.time(),
        python=sys.version.split()[0],
        pytest=pytest.__version__,
    )
    pluginmanager.register(Journal(job, writer, Path.cwd().resolve()), "ci_tools-journal")
