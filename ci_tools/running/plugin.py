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
from typing import Any

import pytest

from ci_tools.environment.origin import find_origin
from ci_tools.records.lines import SCHEMA, LineWriter
from ci_tools.roster.exclusion import MARKER
from ci_tools.running.job import JOB_VARIABLE, Job, load_job
from ci_tools.running.settings import find_changed_settings
from ci_tools.running.witness import Witness

DETAIL_CHARACTERS = 20_000
STACK_SIGNAL = signal.SIGUSR1
# Attributes of reports; a subtest's report is a copy of its test's and keeps them.
_EXPECTED = "ci_tools_expected"
_LINE = "ci_tools_line"
_OUTCOME = "ci_tools_outcome"
_HOLLOW = "ci_tools_hollow"


class Journal:
    """Hooks that write one job's journal."""

    def __init__(self, job: Job, writer: LineWriter, root: Path) -> None:
        self._job = job
        self._writer = writer
        self._root = root
        self._exit_status = -1
        self._witness = Witness()

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
                **_describe(report, self._root),
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
        vars(report)[_OUTCOME] = report.outcome
        if call.when == "call" and self._witness.was_entered(getattr(item, "obj", None)) is False:
            vars(report)[_HOLLOW] = True
        vars(report)[_EXPECTED] = find_expectation(item, call, report)
        vars(report)[_LINE] = find_test_line(item, call)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Journal a phase, or a subtest: those reports come through here as well."""
        fields = _describe(report, self._root)
        first = getattr(report, _OUTCOME, report.outcome)
        if first not in ("passed", report.outcome) and not is_subtest(report):
            fields["changed_from"] = first
        if report.outcome == "passed" and getattr(report, _HOLLOW, False):
            fields["hollow"] = True
        if hasattr(report, "wasxfail"):
            fields["expected"] = getattr(report, _EXPECTED, None) or "loose"
            fields.setdefault("message", str(report.wasxfail))
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
        self._writer.write("finish", exit_status=self._exit_status, lines=self._writer.count + 1)
        self._writer.close()


def is_subtest(report: pytest.TestReport) -> bool:
    """Return whether a report is of a sub-case: pytest's class, or a plugin's of that name."""
    return type(report).__name__.lower().startswith("subtest")


def find_expectation(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> str | None:
    """Return how a test was expected to fail: `strict`, `loose`, `not-run`, or None.

    `pytest.xfail()` in a body ends the test wherever it stands, so it is loose under any mark.
    """
    if not hasattr(report, "wasxfail"):
        return None
    if call.excinfo is not None and isinstance(call.excinfo.value, pytest.xfail.Exception):
        return "not-run" if "[NOTRUN]" in str(report.wasxfail) else "loose"
    default = any(_ini(item.config, name) for name in ("strict_xfail", "xfail_strict", "strict"))
    marks = list(item.iter_markers("xfail"))
    is_strict = marks and all(bool(mark.kwargs.get("strict", default)) for mark in marks)
    return "strict" if is_strict else "loose"


def find_test_line(item: pytest.Item, call: pytest.CallInfo[None]) -> int | None:
    """Return the line in the test function itself at which it failed, however deep it raised."""
    if call.excinfo is None:
        return None
    name = getattr(item, "originalname", None) or item.name
    lines = [
        entry.lineno + 1
        for entry in call.excinfo.traceback
        if entry.name == name and Path(entry.path) == item.path
    ]
    return lines[-1] if lines else None


def _ini(config: pytest.Config, name: str) -> bool:
    try:
        return bool(config.getini(name))
    except (KeyError, ValueError):
        return False


def _describe(report: pytest.CollectReport | pytest.TestReport, root: Path) -> dict[str, Any]:
    """Message, place and detail of a report that is not a plain pass."""
    if report.outcome == "passed" and not is_subtest(report):  # type: ignore[arg-type]
        return {}
    fields: dict[str, Any] = {}
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        path, line, message = longrepr
        fields = {"message": str(message), "path": _relative(str(path), root), "line": line}
    elif longrepr is not None:
        crash = getattr(longrepr, "reprcrash", None)
        detail = str(longrepr)
        message = str(crash.message) if crash else _last_line(detail)
        fields["message"] = message[:DETAIL_CHARACTERS]
        fields["detail"] = detail[-DETAIL_CHARACTERS:]
        fields |= _place(report, longrepr, root)
    context = getattr(report, "context", None)
    if context is not None:
        values = (f"{key}={value}" for key, value in context.kwargs.items())
        fields["subtest"] = " ".join([*([str(context.msg)] if context.msg else ()), *values])
    return fields


def _place(report: Any, longrepr: Any, root: Path) -> dict[str, Any]:
    """The line in the test itself, or in its file: where an annotation belongs."""
    file = report.nodeid.partition("::")[0]
    line = getattr(report, _LINE, None)
    if line is not None:
        return {"path": file, "line": line}
    entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", ())
    places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None)]
    for place in reversed(places):
        if _relative(str(place.path), root) == file:
            return {"path": file, "line": place.lineno}
    location = getattr(report, "location", None)
    if location is not None and location[1] is not None:
        return {"path": file, "line": location[1] + 1}
    return {"path": file}


def _relative(path: str, root: Path) -> str:
    return path.removeprefix(f"{root}/")


def _last_line(text: str) -> str:
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _enable_stacks() -> None:
    """Let the supervisor ask for the Python stacks of a hanging file, past pytest's capture."""
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        keep = os.fdopen(os.dup(2), "w")
        faulthandler.register(STACK_SIGNAL, file=keep, all_threads=True)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Start the journal as early as a plugin can: before any conftest is imported."""
    job_file = os.environ.get(JOB_VARIABLE)
    if job_file is None:
        return
    _enable_stacks()
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
