"""A second run knows what the first one took, and a damaged memory of it changes no result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.scratch import Scratch, make_scratch

SLOW = "import time\ndef test_two():\n    time.sleep(0.5)\n"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    made = make_scratch(tmp_path / "tree")
    made.write("tests/roster/test_b.py", SLOW)
    return made


def run(scratch: Scratch) -> str:
    done = scratch.run("ci-local", ENGINE="venv")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(scratch.latest()["outcomes"]) == 2
    return done.stderr


def starts(scratch: Scratch) -> list[str]:
    journal = scratch.root / ".ci-tools/results/latest/chunk-001/chunk.jsonl"
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    return [row["path"] for row in rows if row["event"] == "file-start"]


def histories(scratch: Scratch) -> list[Path]:
    return sorted((scratch.root / ".ci-tools/history").glob("*.json"))


def test_the_second_run_starts_the_longest_file_first(scratch: Scratch) -> None:
    assert "forecast" not in run(scratch)
    assert starts(scratch) == ["tests/roster/test_a.py", "tests/roster/test_b.py"]
    assert "forecast: " in run(scratch)
    assert starts(scratch) == ["tests/roster/test_b.py", "tests/roster/test_a.py"]
    (path,) = histories(scratch)
    files = json.loads(path.read_text())["files"]
    assert {name: len(rows) for name, rows in files.items()} == dict.fromkeys(
        ("tests/roster/test_a.py", "tests/roster/test_b.py"), 2
    )


@pytest.mark.parametrize("text", ["", "{", '{"schema": 1, "files": {"tests/x.py": [[1, 1]]}}'])
def test_a_history_that_is_of_no_use_changes_nothing(scratch: Scratch, text: str) -> None:
    run(scratch)
    (path,) = histories(scratch)
    path.write_text(text)
    assert "forecast" not in run(scratch)
    assert starts(scratch) == ["tests/roster/test_a.py", "tests/roster/test_b.py"]


def test_a_new_file_is_said_to_be_new(scratch: Scratch) -> None:
    run(scratch)
    scratch.write("tests/roster/test_c.py", "def test_three(): pass\n")
    lock = (scratch.root / "tests/roster/roster.lock").read_text().splitlines()
    scratch.lock(*lock, "gate tests/roster/test_c.py::test_three")
    done = scratch.run("ci-local", ENGINE="venv")
    assert "; 1 of 3 files are new" in done.stderr


def test_parts_and_red_files_leave_no_costs(scratch: Scratch) -> None:
    scratch.run("ci-local", "--only", "tests/roster/test_a.py", ENGINE="venv")
    assert histories(scratch) == []
    scratch.write("tests/roster/test_b.py", "def test_two(): assert 0\n")
    scratch.run("ci-local", ENGINE="venv")
    (path,) = histories(scratch)
    assert list(json.loads(path.read_text())["files"]) == ["tests/roster/test_a.py"]


def test_the_second_run_finds_what_the_first_one_compiled(scratch: Scratch) -> None:
    compiles = (
        "import os, pathlib\n"
        "def test_one():\n"
        "    entry = pathlib.Path(os.environ['JAX_COMPILATION_CACHE_DIR']) / 'one-cache'\n"
        "    pathlib.Path('seen').write_text(str(entry.exists()))\n"
        "    entry.exists() or entry.write_text('compiled')\n"
    )
    scratch.write("tests/roster/test_a.py", compiles)
    seen = []
    for _ in range(2):
        run(scratch)
        seen.append((scratch.root / "seen").read_text())
    assert seen == ["False", "True"]
    (entry,) = (scratch.root / ".ci-tools/cache/compiled").glob("*/entries/*")
    entry.write_text("half")
    assert "1 damaged entries were removed" in run(scratch)
    assert (scratch.root / "seen").read_text() == "False"


def test_compiled_programs_can_be_switched_off(scratch: Scratch) -> None:
    text = (scratch.root / "pyproject.toml").read_text(encoding="utf-8")
    off = "[tool.ci_tools.run]\ncompilation_cache = false\n"
    scratch.write("pyproject.toml", text.replace("[tool.ci_tools.run]\n", off))
    run(scratch)
    assert not (scratch.root / ".ci-tools/cache/compiled").exists()
    assert not (scratch.root / ".ci-tools/results/latest/chunk-001/compiled").exists()
