"""The lanes as a person and a workflow call them, on small real repositories."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.integration.processes import is_alive, wait_until
from tests.integration.scratch import EXCLUDED, Scratch, make_scratch

LABEL = "[lockfile environment, not the image] "


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return make_scratch(tmp_path)


def local(scratch: Scratch, **variables: str) -> int:
    return scratch.run("ci-local", ENGINE="venv", **variables).returncode


def test_a_green_roster_is_green_and_every_line_says_what_it_is_not(scratch: Scratch) -> None:
    done = scratch.run("ci-local", ENGINE="venv")
    assert done.returncode == 0, done.stderr
    assert "GREEN: 2 of 2 planned tests passed in the lockfile environment" in done.stdout
    progress = [line for line in done.stderr.splitlines() if "tests/roster/" in line]
    assert len(progress) == 2
    assert all(line.startswith(LABEL) for line in progress)
    verdict = scratch.latest()
    assert (verdict["conclusion"], verdict["is_gate"]) == ("green", False)
    assert verdict["environment"]["kind"] == "lockfile"


@pytest.mark.parametrize(
    ("body", "code", "rule"),
    [
        ("def test_one():\n    assert 1 == 2\n", 1, "test/failed"),
        ("import pytest\ndef test_one():\n    pytest.skip('no')\n", 1, "roster/skipped"),
        ("import os\ndef test_one():\n    os._exit(0)\n", 3, "death/crash"),
        ("import sys\ndef test_one(): pass\nsys.exit(0)\n", 3, "roster/collection-error"),
        ("import nowhere\ndef test_one(): pass\n", 3, "roster/collection-error"),
        (
            "import pytest\n@pytest.mark.parametrize('x', [1])\ndef test_one(x): pass\n",
            3,
            "roster/unlocked-id",
        ),
        (
            "import time\ndef test_one():\n    time.sleep(60)\n",
            3,
            "death/timeout",
        ),
    ],
)
def test_a_red_says_which_kind(scratch: Scratch, body: str, code: int, rule: str) -> None:
    if rule == "death/timeout":
        text = (scratch.root / "pyproject.toml").read_text()
        scratch.write("pyproject.toml", text.replace("= 20\n", "= 3\n"))
    scratch.write("tests/roster/test_a.py", body)
    assert local(scratch) == code
    assert rule in scratch.rules()
    assert scratch.latest()["outcomes"]["tests/roster/test_b.py::test_two"]["outcome"] == "passed"


@pytest.mark.parametrize(
    ("path", "body", "rule"),
    [
        ("tests/roster/test_a.py", "def test_other(): pass\n", "roster/missing-id"),
        ("tests/roster/test_c.py", "def test_new(): pass\n", "roster/no-lane"),
        ("requirements/gate.in", "jax\n", "requirements/input-changed"),
        ("containers/cpu/image.lock", 'name = "x"\n', "image/unusable"),
    ],
)
def test_what_the_checks_find_stops_the_lane_before_it_runs(
    scratch: Scratch, path: str, body: str, rule: str
) -> None:
    scratch.write(path, body)
    assert local(scratch) == 1
    assert rule in scratch.rules()
    assert scratch.latest()["outcomes"] == {}


def test_a_part_is_green_for_itself_and_never_for_the_gate(scratch: Scratch) -> None:
    done = scratch.run("ci-local", ENGINE="venv", ONLY="tests/roster/test_a.py::test_one")
    assert done.returncode == 0, done.stderr
    assert "PARTIAL, not the gate's verdict" in done.stdout
    assert (scratch.latest()["conclusion"], scratch.latest()["is_gate"]) == ("partial-green", False)
    assert list(scratch.latest()["outcomes"]) == ["tests/roster/test_a.py::test_one"]


def test_a_part_that_matches_nothing_is_a_usage_error(scratch: Scratch) -> None:
    done = scratch.run("ci-local", ENGINE="venv", ONLY="tests/roster/test_zzz.py")
    assert done.returncode == 2
    assert "matches no id" in done.stderr


def test_a_lockfile_environment_is_refused_in_ci(scratch: Scratch) -> None:
    done = scratch.run("ci-local", ENGINE="venv", GITHUB_ACTIONS="true")
    assert done.returncode == 2
    assert "refused in CI" in done.stderr


def test_an_unpublished_image_makes_the_blocking_plan_red(scratch: Scratch) -> None:
    done = scratch.run("plan", "--blocking", "--results", "results/plan")
    assert done.returncode == 1
    assert "no image has been published yet" in done.stdout
    assert "image.yml" in done.stdout
    assert not (scratch.root / "results/plan/plan.json").exists()
    concluded = scratch.run("verdict", "--records", "results", "--results", "out", "--blocking")
    assert concluded.returncode == 1
    assert scratch.json("out/verdict.json")["findings"][0]["rule"] == "image/unpublished"


def test_plan_run_and_verdict_as_separate_steps(scratch: Scratch) -> None:
    scratch.write("tests/roster/test_a.py", "def test_one(): pass\ndef test_more(): pass\n")
    scratch.lock(
        "gate tests/roster/test_a.py::test_one",
        "gate tests/roster/test_a.py::test_more",
        "gate tests/roster/test_b.py::test_two",
    )
    assert scratch.run("plan", "--results", "results/plan").returncode == 0
    for chunk in ("1", "2"):
        arguments = ("--plan", "results/plan/plan.json", "--chunk", chunk, "--results", "results")
        done = scratch.run("run", *arguments, ENGINE="venv")
        assert done.returncode == 0, done.stderr
    again = scratch.run("run", *arguments, ENGINE="venv")
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    open_verdict = ("verdict", "--records", "results", "--results", "out")
    assert scratch.run(*open_verdict).returncode == 0
    assert scratch.run(*open_verdict, CHUNK_RESULT="failure").returncode == 4
    assert scratch.run(*open_verdict, "--blocking").returncode == 4
    rules = {finding["rule"] for finding in scratch.json("out/verdict.json")["findings"]}
    assert "environment/not-published" in rules
    (scratch.root / "results/chunk-002/files/0000.jsonl").unlink()
    assert scratch.run(*open_verdict).returncode == 4


def test_outputs_summary_and_annotations_of_a_workflow(scratch: Scratch, tmp_path: Path) -> None:
    output, summary = tmp_path / "output", tmp_path / "summary"
    files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    assert scratch.run("plan", "--results", "results", "--github", **files).returncode == 0
    assert '{"chunk":[1]}' in output.read_text()
    done = scratch.run("verdict", "--records", "results", "--results", "out", "--github", **files)
    assert done.returncode == 4
    assert "::error title=infrastructure%3A record/missing-chunk::chunk 1 left no" in done.stdout
    assert summary.read_text().startswith("## ❌ RED (infrastructure)")
    missing = scratch.run("plan", "--results", "results", "--github", GITHUB_OUTPUT="")
    assert (missing.returncode, "GITHUB_OUTPUT" in missing.stderr) == (4, True)


def test_a_removed_id_needs_a_reason_in_a_commit(scratch: Scratch) -> None:
    base = scratch.git("rev-parse", "HEAD")
    (scratch.root / "tests/roster/test_b.py").unlink()
    scratch.lock("gate tests/roster/test_a.py::test_one")
    scratch.commit("remove a test")
    done = scratch.run("plan", "--results", "results", "--base", base)
    assert done.returncode == 1
    assert "tests/roster/test_b.py::test_two was removed" in done.stdout
    assert scratch.run("roster", "diff", base).returncode == 1
    scratch.git("commit", "-q", "--amend", "-m", "x\n\nRoster-Removed: two is covered by one")
    assert scratch.run("plan", "--results", "results", "--base", base).returncode == 0
    listed = scratch.run("roster", "diff", base)
    assert (listed.returncode, listed.stdout) == (0, "- gate tests/roster/test_b.py::test_two\n")


def test_a_roster_that_the_configuration_no_longer_names_is_a_removal(scratch: Scratch) -> None:
    base = scratch.git("rev-parse", "HEAD")
    text = (scratch.root / "pyproject.toml").read_text(encoding="utf-8")
    scratch.write("pyproject.toml", text.replace('["tests/roster"]', '["tests/small"]'))
    scratch.write("tests/small/test_s.py", "def test_s(): pass\n")
    scratch.write("tests/small/roster.lock", "gate tests/small/test_s.py::test_s\n")
    scratch.commit("use a smaller roster")
    done = scratch.run("plan", "--results", "results", "--base", base)
    assert done.returncode == 1
    for test_id in ("tests/roster/test_a.py::test_one", "tests/roster/test_b.py::test_two"):
        assert f"{test_id} was removed from the gate lane and no commit says why" in done.stdout


def test_the_lock_is_made_by_collecting_and_then_agrees(scratch: Scratch) -> None:
    scratch.write(
        "tests/roster/test_c.py",
        "import pytest\n"
        "@pytest.mark.parametrize('text', ['a b', 'c\\n', '::[d]', \"'e'\"])\n"
        "def test_p(text): pass\n"
        f"@{EXCLUDED}\ndef test_slow(): pass\n",
    )
    scratch.write(
        "tests/roster/manual_study.py",
        f"import pytest\npytestmark = {EXCLUDED.replace('expensive', 'manual')}\n"
        "import time\ntime.sleep(600)\n",
    )
    assert scratch.run("roster", "check").returncode == 1
    done = scratch.run("roster", "lock", "--engine", "venv")
    assert done.returncode == 0, done.stdout + done.stderr
    assert scratch.run("roster", "check").returncode == 0
    lock = (scratch.root / "tests/roster/roster.lock").read_text()
    assert "excluded tests/roster/manual_study.py\n" in lock
    assert "excluded tests/roster/test_c.py::test_slow\n" in lock
    assert "gate tests/roster/test_c.py::test_p[a b]\n" in lock
    assert local(scratch) == 0
    assert len(scratch.latest()["outcomes"]) == 6


def test_a_file_that_cannot_be_listed_leaves_the_old_lock(scratch: Scratch) -> None:
    scratch.write("tests/roster/test_c.py", "import nowhere\ndef test_x(): pass\n")
    before = (scratch.root / "tests/roster/roster.lock").read_text()
    done = scratch.run("roster", "lock", "--engine", "venv")
    assert done.returncode == 1
    assert "tests/roster/test_c.py cannot be listed: ModuleNotFoundError" in done.stdout
    assert (scratch.root / "tests/roster/roster.lock").read_text() == before


def test_explain_never_says_yes_without_a_record(scratch: Scratch) -> None:
    answer = scratch.run("roster", "explain", "tests/roster/test_a.py").stdout
    assert "did CI run it?  unknown" in answer
    assert local(scratch) == 0
    answer = scratch.run("roster", "explain", "test_one").stdout
    assert "did CI run it?  unknown" in answer
    assert "last pass:      " in answer
    assert "lockfile environment" in answer
    gone = scratch.run("roster", "explain", "test_three")
    assert (gone.returncode, "no lane holds it" in gone.stdout) == (1, True)
    record = scratch.latest() | {"is_gate": True}
    scratch.write("downloaded/verdict.json", json.dumps(record))
    answer = scratch.run("roster", "explain", "test_one", "--records", "downloaded").stdout
    assert "did CI run it?  yes: downloaded" in answer


def test_a_lane_that_is_killed_leaves_no_process_and_what_had_ended(scratch: Scratch) -> None:
    pid = scratch.root / "pid"
    scratch.write(
        "tests/roster/test_a.py",
        "import os, pathlib, time\ndef test_one():\n"
        f"    pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n",
    )
    process = scratch.start("ci-local", ENGINE="venv")
    try:
        wait_until(lambda: pid.exists() and pid.read_text(), seconds=60)
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not is_alive(int(pid.read_text())))
    journal = scratch.root / ".ci-tools/results/latest/chunk-001/chunk.jsonl"
    wait_until(lambda: '"interrupted"' in journal.read_text())
    done = scratch.run("verdict", "--records", ".ci-tools/results/latest", "--results", "out")
    assert done.returncode == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_readable_records_and_no_process(
    scratch: Scratch, number: signal.Signals
) -> None:
    scratch.write(
        "tests/roster/test_a.py",
        "import os, pathlib, time\ndef test_one():\n"
        f"    pathlib.Path({str(scratch.root)!r}, 'pid').write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n",
    )
    process = scratch.start("ci-local", ENGINE="venv")
    try:
        deadline = time.monotonic() + 60
        while not (scratch.root / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        child = int((scratch.root / "pid").read_text())
        process.send_signal(number)
        assert process.wait(timeout=30) == 130
    finally:
        process.kill()
        process.communicate()
    assert not Path(f"/proc/{child}").exists()
    done = scratch.run("verdict", "--records", ".ci-tools/results/latest", "--results", "out")
    assert done.returncode == 4
    rules = {finding["rule"] for finding in scratch.json("out/verdict.json")["findings"]}
    assert "record/interrupted" in rules
