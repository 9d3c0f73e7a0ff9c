"""Compiled programs from process to process and from run to run, with real test processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_tools.errors import ExitCode
from ci_tools.records.layout import COMPILED, chunk_folder
from tests.integration.projects import ONE_AT_A_TIME, Project, events_of

A, B, C = (f"tests/roster/test_{name}.py" for name in "abc")
HEAD = """\
import os, pathlib
FOLDER = pathlib.Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
def names(): return sorted(path.name for path in FOLDER.iterdir())
"""
MAKES = HEAD + "def test_x(): (FOLDER / '{}-cache').write_text('{}')\n"
DIES = HEAD + "def test_x():\n    (FOLDER / 'half-cache').write_text('ha')\n    os._exit(0)\n"
SEES = HEAD + "def test_x(): assert names() == {}\n"


@pytest.fixture(autouse=True, params=[(), ("pytest", "jax")], ids=["fresh", "forked"])
def one_at_a_time(project: Project, request: pytest.FixtureRequest) -> None:
    project.preload = request.param
    project.file_memory_bytes = ONE_AT_A_TIME


def run(project: Project, *bodies: str) -> int:
    for path, body in zip((A, B, C), bodies, strict=False):
        project.write(path, body)
    plan = project.plan({path: ["test_x"] for path, _ in zip((A, B, C), bodies, strict=False)})
    (code,) = project.run(plan)
    return code


def compiled(project: Project) -> list[str]:
    folder = chunk_folder(project.records, 1) / COMPILED
    return sorted(path.name for path in folder.iterdir())


def test_a_finished_file_hands_on_what_it_compiled(project: Project) -> None:
    sees = SEES.format("['a-cache']")
    assert run(project, MAKES.format("a", "a"), sees, sees) == ExitCode.GREEN
    assert compiled(project) == ["a-cache"]


def test_a_file_that_died_hands_on_nothing(project: Project) -> None:
    run(project, DIES, SEES.format("[]"))
    ends = events_of(project.chunk_journal(), "file-end")
    assert [event["exit_code"] for event in ends] == [0, 0]
    assert events_of(project.journal(1), "finish")
    assert compiled(project) == []


def test_what_earlier_runs_left_is_there_and_is_not_written(
    project: Project, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "old-cache").write_text("old")
    project.cache = str(store)
    sees = SEES.format("['a-cache', 'old-cache']")
    assert run(project, MAKES.format("a", "a"), sees) == ExitCode.GREEN
    assert [path.name for path in store.iterdir()] == ["old-cache"]
    assert compiled(project) == ["a-cache"]


def test_no_private_folder_is_left(project: Project) -> None:
    body = HEAD + "def test_x(): pathlib.Path('folder').write_text(str(FOLDER))\n"
    assert run(project, body) == ExitCode.GREEN
    folder = Path((project.root / "folder").read_text())
    assert not folder.exists()
    assert not folder.parent.exists()
