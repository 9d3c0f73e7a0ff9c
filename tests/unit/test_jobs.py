"""What is handed to the supervisor and to a test process, and which variables are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci_tools.compilation.overlay import SETTINGS
from ci_tools.running.job import JOB_VARIABLE, Job, load_job, parse_job, render_job
from ci_tools.running.starting import TOOL_FOLDER, make_variables
from ci_tools.running.worklist import WorkFile, Worklist, load_worklist, write_worklist

JOB = Job(
    journal="/r/0000.jsonl",
    plan="1b" * 32,
    chunk=3,
    path="tests/test é.py",
    ids=("tests/test é.py::a[\ud800\n]",),
    lane="gate",
    packages=("p",),
)


@pytest.mark.parametrize("ids", [None, (), JOB.ids])
def test_a_job_reads_back(tmp_path: Path, ids: tuple[str, ...] | None) -> None:
    job = Job(**{**vars(JOB), "ids": ids})
    (tmp_path / "job").write_text(render_job(job), encoding="utf-8")
    assert load_job(tmp_path / "job") == job


def test_a_job_of_another_form_is_refused() -> None:
    data = json.loads(render_job(JOB))
    with pytest.raises(TypeError):
        parse_job(data | {"more": 1})
    with pytest.raises(KeyError):
        parse_job({key: value for key, value in data.items() if key != "ids"})


def test_a_worklist_reads_back(tmp_path: Path) -> None:
    worklist = Worklist(
        plan="",
        chunk=0,
        lane="gate",
        files=(WorkFile(path="a.py", ids=None), WorkFile(path="b.py", ids=("b.py::\ud800",))),
        packages=("p",),
        lock="requirements/gate.txt",
        timeout_seconds=1.5,
        file_memory_bytes=7,
        list_only=True,
    )
    write_worklist(tmp_path, worklist)
    assert load_worklist(tmp_path) == worklist


@pytest.mark.parametrize(
    "name",
    ["PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTHONOPTIMIZE",
     "PYTHONSAFEPATH", "PYTHONWARNINGS", "PYTEST_XDIST_WORKER", "_PYTEST_RAISE"],
)  # fmt: skip
def test_what_changes_selection_or_asserts_is_not_handed_on(name: str) -> None:
    assert name not in make_variables({name: "1"})


def test_the_rest_is_handed_on() -> None:
    inherited = {"HOME": "/h", "JAX_PLATFORMS": "cpu", "PYTHONPATH": "/x", JOB_VARIABLE: "/other"}
    assert make_variables(inherited) == {
        "HOME": "/h",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(TOOL_FOLDER),
        "PYTHONDONTWRITEBYTECODE": "1",
        **SETTINGS,
    }
    assert (TOOL_FOLDER / "ci_tools" / "running").is_dir()
