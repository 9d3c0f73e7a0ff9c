"""Files forked from one process are as apart as fresh processes, and where a fork would be wrong
there is a fresh one, with the reason on record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ci_tools.errors import ExitCode
from tests.integration.processes import is_alive
from tests.integration.projects import JAX, ONE_AT_A_TIME, Project, events_of

A, B, C = (f"tests/roster/{folder}/test_it.py" for folder in "abc")
PASS = "def test_x(): pass\n"


@pytest.fixture
def forking(project: Project) -> Project:
    project.preload = ("pytest", "jax")
    project.file_memory_bytes = ONE_AT_A_TIME
    return project


def run(project: Project, bodies: Mapping[str, str]) -> dict[str, bool]:
    """Run one file for each body, all of which pass; return which of them were forked."""
    for path, body in bodies.items():
        project.write(path, body)
    plan = project.plan({path: ["test_x"] for path in bodies})
    assert project.run(plan) == [ExitCode.GREEN]
    verdict = project.judge(plan)
    assert (verdict.findings, verdict.is_gate) == ((), True)
    journal = project.chunk_journal()
    forked = {e["path"]: e["forked"] for e in events_of(journal, "file-start")}
    return forked | {e["path"]: e["forked"] for e in events_of(journal, "file-restart")}


def starter(project: Project) -> Mapping[str, Any]:
    (event,) = events_of(project.chunk_journal(), "starter")
    return event


def test_each_file_has_a_process_of_its_own(forking: Project) -> None:
    body = (
        "import os, sys, jax, threading\n"
        "def test_x():\n"
        "    assert not hasattr(jax, 'mark') and 'MARK' not in os.environ\n"
        "    assert os.getpid() == os.getsid(0) == os.getpgid(0)\n"
        "    assert os.path.exists('pyproject.toml') and sys.argv[0].endswith('__main__.py')\n"
        "    assert sys.modules['__main__'].__name__ == '__main__'\n"
        "    jax.mark = os.environ['MARK'] = 'x'\n"
        "    os.chdir('/')\n"
        "    os.umask(0)\n"
    )
    assert run(forking, {A: body, B: body, C: body}) == {A: True, B: True, C: True}
    event = starter(forking)
    assert (event["mode"], event["failed"]) == ("fork", {})


def test_a_folder_that_sets_what_is_read_at_import_gets_a_fresh_process(forking: Project) -> None:
    forking.write("jax.py", JAX + "import os\nSEEN = os.environ.get('JAX_ENABLE_X64')\n")
    forking.write("tests/roster/b/conftest.py", "import os\nos.environ['JAX_ENABLE_X64'] = '1'\n")
    seen = "import jax\ndef test_x(): assert jax.SEEN == {}\n"
    bodies = {A: seen.format(None), B: seen.format("'1'"), C: seen.format(None)}
    assert run(forking, bodies) == {A: True, B: False, C: True}
    (event,) = events_of(forking.chunk_journal(), "file-restart")
    assert (event["path"], event["reason"]) == (B, "its modules set JAX_ENABLE_X64 at import")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "import sys, types\nsys.modules['jax._src.xla_bridge'] = bridge = "
            "types.ModuleType('b')\nbridge.backends_are_initialized = lambda: True\n",
            "importing initialised a JAX backend",
        ),
        (
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n",
            "importing left 2 threads running",
        ),
        ("import os\nos._exit(0)\n", "it has died"),
        ("raise SystemExit(0)\n", "it has died"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "it has died"),
    ],
    ids=["backend", "thread", "exit", "system-exit", "killed"],
)
def test_a_zygote_that_must_not_fork_is_not_used(
    forking: Project, source: str, reason: str
) -> None:
    forking.write("heavy.py", source)
    forking.preload = ("pytest", "heavy")
    assert run(forking, {A: PASS, B: PASS}) == {A: False, B: False}
    assert starter(forking)["mode"] == "fresh"
    assert reason in starter(forking)["reason"]


def test_what_cannot_be_imported_is_named_and_the_rest_is_forked(forking: Project) -> None:
    forking.write("broken.py", "1 / 0\n")
    forking.preload = ("pytest", "nowhere", "broken")
    assert run(forking, {A: PASS, B: PASS}) == {A: True, B: True}
    assert starter(forking)["failed"] == {
        "nowhere": "ModuleNotFoundError: No module named 'nowhere'",
        "broken": "ZeroDivisionError: division by zero",
    }


def test_a_single_file_is_not_worth_a_zygote(forking: Project) -> None:
    assert run(forking, {A: PASS}) == {A: False}


def test_a_zygote_that_dies_under_way_loses_nothing(forking: Project) -> None:
    kills = (
        "import os, pathlib, signal\n"
        "def is_zygote(p):\n"
        "    words = (p / 'cmdline').read_bytes()\n"
        "    parent = (p / 'stat').read_text().rpartition(')')[2].split()[1]\n"
        "    return b'ci_tools.running.zygote' in words and int(parent) == os.getppid()\n"
        "def test_x():\n"
        "    found = [p for p in pathlib.Path('/proc').iterdir()\n"
        "             if p.name.isdigit() and int(p.name) != os.getpid() and is_zygote(p)]\n"
        "    assert len(found) == 1\n"
        "    os.kill(int(found[0].name), signal.SIGKILL)\n"
    )
    assert run(forking, {A: kills, B: PASS, C: PASS}) == {A: True, B: False, C: False}


def test_random_numbers_differ_from_file_to_file(forking: Project) -> None:
    body = (
        "import pathlib, random\n"
        "def test_x():\n"
        "    with pathlib.Path('numbers').open('a') as file: print(random.random(), file=file)\n"
    )
    run(forking, {A: body, B: body, C: body})
    numbers = (forking.root / "numbers").read_text().split()
    assert len(set(numbers)) == 3


def test_orphans_of_another_session_are_reaped_and_harm_nothing(forking: Project) -> None:
    body = (
        "import os, pathlib, subprocess\n"
        "def test_x():\n"
        "    subprocess.run(['sh', '-c', 'setsid sleep 0.2 & echo $! > pid'], check=True)\n"
    )
    slow = "import time\ndef test_x(): time.sleep(0.6)\n"
    assert run(forking, {A: body, B: slow}) == {A: True, B: True}
    assert not is_alive(int((forking.root / "pid").read_text()))
