"""A supervisor that is stopped leaves records that can be read, and no process behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ci_tools.errors import ExitCode
from ci_tools.planning.plan import Plan
from ci_tools.records.layout import CHUNK_JOURNAL
from ci_tools.running.worklist import write_worklist
from tests.integration.processes import end, is_alive, wait_until
from tests.integration.projects import ONE_AT_A_TIME, Project, events_of

FIRST, SECOND, THIRD = (f"tests/roster/test_{name}.py" for name in "abc")
STAYS = """\
import pathlib, subprocess, sys, time
def test_x():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("pids").write_text(str(child.pid))
    time.sleep({})
"""


@pytest.fixture(autouse=True, params=[(), ("pytest", "jax")], ids=["fresh", "forked"])
def preload(project: Project, request: pytest.FixtureRequest) -> None:
    project.preload = request.param


def make_plan_of_three(project: Project, seconds: float) -> Plan:
    project.file_memory_bytes = ONE_AT_A_TIME
    project.write(FIRST, "def test_x(): pass\n")
    project.write(SECOND, STAYS.format(seconds))
    project.write(THIRD, "def test_x(): pass\n")
    return project.plan({path: ["test_x"] for path in (FIRST, SECOND, THIRD)})


def grandchild(project: Project) -> int:
    path = project.root / "pids"
    wait_until(lambda: path.exists() and path.read_text())
    return int(path.read_text())


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.INFRASTRUCTURE)],
)
def test_a_signal_ends_everything_and_names_what_did_not_run(
    project: Project, number: signal.Signals, code: ExitCode
) -> None:
    plan = make_plan_of_three(project, 600)
    process = project.start(project.prepare(project.worklist(plan, 1)))
    try:
        pid = grandchild(project)
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    finally:
        end(process)
    assert process.returncode == code
    assert f"1 files were not started:\n  {THIRD}" in out
    wait_until(lambda: not is_alive(pid))
    (last,) = events_of(project.chunk_journal(), "interrupted")
    assert (last["signal"], last["not_started"]) == (number, [THIRD])
    verdict = project.judge(plan)
    outcomes = [str(verdict.results[f"{p}::test_x"].outcome) for p in (FIRST, SECOND, THIRD)]
    assert outcomes == ["passed", "unaccounted", "unaccounted"]
    assert "record/interrupted" in {finding.rule for finding in verdict.findings}


def test_a_supervisor_that_is_killed_leaves_what_was_finished(project: Project) -> None:
    plan = make_plan_of_three(project, 600)
    process = project.start(project.prepare(project.worklist(plan, 1)))
    try:
        pid = grandchild(project)
        (second,) = (
            e for e in events_of(project.chunk_journal(), "file-start") if e["path"] == SECOND
        )
        process.kill()
        process.communicate(timeout=30)
    finally:
        end(process)
        for left in (second["pid"], pid):
            os.kill(left, signal.SIGKILL)
    verdict = project.judge(plan)
    assert verdict.results[f"{FIRST}::test_x"].outcome == "passed"
    assert not verdict.is_green
    assert "record/unfinished-chunk" in {finding.rule for finding in verdict.findings}


def test_what_a_file_leaves_running_ends_with_it(project: Project) -> None:
    plan = make_plan_of_three(project, 0)
    assert project.run(plan) == [ExitCode.GREEN]
    pid = grandchild(project)
    wait_until(lambda: not is_alive(pid))
    assert project.judge(plan).is_gate


def test_two_supervisors_never_share_a_folder(project: Project) -> None:
    plan = make_plan_of_three(project, 0)
    worklist = project.worklist(plan, 1)
    folder = project.prepare(worklist)
    project_run = project.start(folder)
    wait_until((folder / CHUNK_JOURNAL).exists)
    second = project.start(folder)
    out, _ = second.communicate(timeout=30)
    project_run.communicate(timeout=60)
    assert (second.returncode, project_run.returncode) == (ExitCode.INFRASTRUCTURE, ExitCode.GREEN)
    assert "holds the records of another run" in out
    assert project.judge(plan).is_gate


@pytest.mark.parametrize("damage", ["missing", "not JSON", "a list", "foreign keys"])
def test_a_worklist_that_cannot_be_used_starts_nothing(
    project: Project, damage: str, tmp_path: Path
) -> None:
    folder = tmp_path / "chunk"
    folder.mkdir()
    write_worklist(folder, project.make_worklist([]))
    (file,) = folder.iterdir()
    if damage == "missing":
        file.unlink()
    else:
        file.write_text({"not JSON": "{", "a list": "[]", "foreign keys": '{"a": 1}'}[damage])
    process = project.start(folder)
    out, _ = process.communicate(timeout=30)
    assert process.returncode != 0
    assert not (folder / CHUNK_JOURNAL).exists()
    assert "Traceback" not in out
