"""Test files that end in every way a test file can, and what the verdict has to say of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ROSTER = "tests/roster"
STRICT = "strict=True, reason='known'"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One test file.

    Attributes:
        body: The file.
        outcomes: The expected outcome of each locked name.
        rules: The expected findings' rules.
        words: What one finding has to say.
        excluded: The names that are locked as excluded.
        conftest: A conftest.py beside the file.
        name: The file's name.
    """

    body: str
    outcomes: Mapping[str, str]
    rules: tuple[str, ...] = ()
    words: str = ""
    excluded: tuple[str, ...] = ()
    conftest: str = ""
    name: str = "test_it.py"

    def path(self, folder: str) -> str:
        return f"{ROSTER}/{folder}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Single(Scenario):
    """A file with the one locked test `test_x`, passing unless told otherwise."""

    outcomes: Mapping[str, str] = field(default_factory=lambda: {"test_x": "passed"})


def one(outcome: str) -> Mapping[str, str]:
    return {"test_x": outcome}


THREE = """\
import os, sys, signal, ctypes
def test_a(): pass
def test_b():
    {}
def test_c(): pass"""


def dies(statement: str, words: str, **outcomes: str) -> Scenario:
    """Three tests of which the second ends the process."""
    return Scenario(
        body=THREE.format(statement),
        outcomes={"test_a": "passed", "test_b": "unaccounted", "test_c": "unaccounted"} | outcomes,
        rules=("death/crash",),
        words=words,
    )


def hook(source: str, outcome: str, *rules: str, words: str = "") -> Scenario:
    """A passing test under a conftest that interferes."""
    return Single(
        body="def test_x(): pass",
        conftest=f"import os, pytest\n{source}",
        outcomes=one(outcome),
        rules=rules,
        words=words,
    )


GREEN: dict[str, Scenario] = {
    "plain": Scenario(
        body="class TestA:\n    def test_m(self): pass\ndef test_x(): pass",
        outcomes={"TestA::test_m": "passed", "test_x": "passed"},
    ),
    "strict_xfail": Single(
        body=f"import pytest\n@pytest.mark.xfail({STRICT})\ndef test_x(): assert 0",
        outcomes=one("xfailed"),
    ),
    "passing_subtests": Single(
        body="def test_x(subtests):\n    for i in range(3):\n        with subtests.test(i=i): pass"
    ),
    "excluded": Single(
        body="import pytest\ndef test_x(): pass\n@pytest.mark.excluded('gpu')\ndef test_y(): 1/0",
        excluded=("test_y",),
    ),
    "awaited_by_a_hook": Single(
        body="async def test_x(): pass",
        conftest="import asyncio, pytest\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_pyfunc_call(pyfuncitem):\n    asyncio.run(pyfuncitem.obj())\n    return True",
    ),
    "unusual_callables": Scenario(
        body="import functools, unittest\n"
        "def wrap(f):\n    @functools.wraps(f)\n    def g(*a, **k): return f(*a, **k)\n"
        "    return g\n"
        "@wrap\ndef test_wrapped(): pass\n"
        "class TestA(unittest.TestCase):\n    def test_m(self): pass\n"
        "class TestB:\n    @staticmethod\n    def test_s(): pass\n"
        "    @classmethod\n    def test_c(cls): pass\n"
        "class Call:\n    __name__ = 'test_o'\n    def __call__(self): pass\n"
        "def helper(x): pass\ntest_p = functools.partial(helper, 1)",
        outcomes={
            "test_wrapped": "passed",
            "TestA::test_m": "passed",
            "TestB::test_s": "passed",
            "TestB::test_c": "passed",
            "test_p": "passed",
        },
    ),
    "same_name_one": Single(body="def test_x(): pass", name="test_same.py"),
    "same_name_two": Single(body="def test_x(): pass", name="test_same.py"),
    "daemon_thread": Single(
        body="import threading, time\ndef test_x():\n"
        "    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    ),
    "open_port": Single(
        body="import socket\nkept = []\ndef test_x():\n    s = socket.socket()\n"
        "    s.bind(('127.0.0.1', 0))\n    s.listen()\n    kept.append(s)"
    ),
    "loud": Single(
        body="import os\ndef test_x(capfd):\n    with capfd.disabled():\n"
        "        os.write(1, bytes(range(256)) * 1000 + b'\\n::error::hostile\\n')"
    ),
    "changes_folder": Single(
        body="import os\ndef test_x(tmp_path): os.chdir(tmp_path)\n",
    ),
    "fork_that_ends": Single(
        body="import os\ndef test_x():\n    child = os.fork()\n"
        "    child or os._exit(3)\n    os.waitpid(child, 0)"
    ),
    "fork_that_goes_on": Scenario(
        body="import os\ndef test_x():\n    os.fork()\ndef test_y(): pass",
        outcomes={"test_x": "passed", "test_y": "passed"},
    ),
    "system_exit_code_at_exit": Single(
        body="import atexit, os\natexit.register(os._exit, 0)\ndef test_x(): pass"
    ),
}
RED: dict[str, Scenario] = {
    "os_exit": dies("os._exit(0)", "test_b: os._exit, sys.exit or a native exit"),
    "os_exit_of_a_failure": dies("os._exit(1)", "exited with 1 without finishing, during"),
    "killed": dies("os.kill(os.getpid(), signal.SIGKILL)", "culprit unproven: nothing says"),
    "segfault": dies("ctypes.string_at(0)", 'a segmentation fault ("Fatal Python error: Segm'),
    "abort": dies("os.abort()", "died by SIGABRT during"),
    "illegal_instruction": dies("os.kill(os.getpid(), signal.SIGILL)", "an illegal instruction"),
    "uses_up_its_mappings": Single(
        body="import mmap, os, time\ndef test_x():\n    kept = []\n    try:\n"
        "        while True:\n            prot = mmap.PROT_READ if len(kept) % 2 else 3\n"
        "            kept.append(mmap.mmap(-1, 4096, prot=prot))\n"
        "    except OSError:\n        time.sleep(6)\n        os.abort()",
        outcomes=one("unaccounted"),
        rules=("death/memory",),
        words="it had used up its memory mappings, ",
    ),
    "is_refused_memory": Single(
        body="import os, sys\ndef test_x(capfd):\n    with capfd.disabled():\n"
        "        os.write(2, b'LLVM ERROR: Cannot allocate memory\\n')\n    os.abort()",
        outcomes=one("unaccounted"),
        rules=("death/memory",),
        words='memory was refused to it ("LLVM ERROR: Cannot allocate memory")',
    ),
    "group_killed": dies("os.killpg(0, signal.SIGTERM)", "died by SIGTERM during"),
    "native_exit": dies("ctypes.CDLL(None)._exit(0)", "exited with 0 without finishing"),
    "exit_in_teardown": Single(
        body="import os, pytest\n@pytest.fixture\ndef f():\n    yield\n    os._exit(0)\n"
        "def test_x(f): pass",
        outcomes=one("unaccounted"),
        rules=("death/crash",),
        words="during",
    ),
    "exit_after_the_last_test": Single(
        body="import os, pytest\n@pytest.fixture(scope='session', autouse=True)\ndef f():\n"
        "    yield\n    os._exit(0)\ndef test_x(): pass",
        outcomes=one("unaccounted"),
        rules=("death/crash",),
    ),
    "exit_in_session_finish": hook(
        "def pytest_sessionfinish(): os._exit(0)",
        "passed",
        "death/crash",
        words="between tests, in teardown or at exit",
    ),
    "exit_at_exit": Single(
        body="import atexit, os\natexit.register(os._exit, 7)\ndef test_x(): pass",
        rules=("death/crash",),
        words="finished with 0 and exited with 7: it died after the last test",
    ),
    "os_exit_at_import": Single(
        body="import os\nos._exit(0)\ndef test_x(): pass",
        outcomes=one("unaccounted"),
        rules=("death/crash",),
        words="at import or collection",
    ),
    "sys_exit_at_import": Single(
        body="import sys\ndef test_x(): pass\nsys.exit(0)",
        outcomes=one("unaccounted"),
        rules=("roster/collection-error",),
        words="calls sys.exit at import",
    ),
    "pytest_exit": Scenario(
        body="import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('x', returncode=0)\n"
        "def test_c(): pass",
        outcomes={"test_a": "passed", "test_b": "unaccounted", "test_c": "unaccounted"},
        rules=("roster/not-run",),
        words="pytest.exit()",
    ),
    "pytest_exit_at_import": Single(
        body="import pytest\ndef test_x(): pass\npytest.exit('x', returncode=0)",
        outcomes=one("unaccounted"),
        rules=("roster/collection-error",),
    ),
    "keyboard_interrupt": Scenario(
        body="def test_a(): raise KeyboardInterrupt\ndef test_b(): pass",
        outcomes={"test_a": "unaccounted", "test_b": "unaccounted"},
        rules=("roster/not-run",),
    ),
    "system_exit_in_a_test": Single(
        body="def test_x(): raise SystemExit(0)", outcomes=one("failed"), rules=("test/failed",)
    ),
    "empty": Single(
        body="", outcomes=one("unaccounted"), rules=("roster/missing-id",), words="vanished"
    ),
    "vanished": Scenario(
        body="def test_a(): pass",
        outcomes={"test_a": "passed", "test_b[1]": "unaccounted"},
        rules=("roster/missing-id",),
    ),
    "unlocked": Scenario(
        body="def test_a(): pass\ndef test_b(): pass",
        outcomes={"test_a": "passed"},
        rules=("roster/unlocked-id",),
    ),
    "excluded_not_locked": Single(
        body="import pytest\ndef test_x(): pass\n@pytest.mark.excluded('gpu')\ndef test_y(): 1/0",
        rules=("roster/excluded-differs",),
    ),
    "excluded_gone": Single(
        body="def test_x(): pass", excluded=("test_y",), rules=("roster/excluded-differs",)
    ),
    "import_error": Single(
        body="import nowhere\ndef test_x(): pass",
        outcomes=one("unaccounted"),
        rules=("roster/collection-error",),
        words="No module named 'nowhere'",
    ),
    "syntax_error": Single(
        body="def test_x(:",
        outcomes=one("unaccounted"),
        rules=("roster/collection-error",),
    ),
    "skips_itself": Single(
        body="import pytest\nnumpy = pytest.importorskip('nowhere')\ndef test_x(): pass",
        outcomes=one("unaccounted"),
        rules=("roster/skipped-file",),
    ),
    "failing": Single(
        body="def helper(): raise ValueError('deep\\n::error::x')\ndef test_x():\n    helper()",
        outcomes=one("failed"),
        rules=("test/failed",),
        words="ValueError: deep",
    ),
    "setup_error": Single(
        body="import pytest\n@pytest.fixture\ndef f(): 1 / 0\ndef test_x(f): pass",
        outcomes=one("error"),
        rules=("test/error",),
    ),
    "teardown_error": Single(
        body="import pytest\n@pytest.fixture\ndef f():\n    yield\n    1 / 0\ndef test_x(f): pass",
        outcomes=one("error"),
        rules=("test/error",),
    ),
    "missing_fixture": Single(
        body="def test_x(nowhere): pass", outcomes=one("error"), rules=("test/error",)
    ),
    "skip": Single(
        body="import pytest\ndef test_x(): pytest.skip('no')",
        outcomes=one("skipped"),
        rules=("roster/skipped",),
        words="was skipped: Skipped: no",
    ),
    "skip_mark": Single(
        body="import pytest\n@pytest.mark.skipif(True, reason='no')\ndef test_x(): pass",
        outcomes=one("skipped"),
        rules=("roster/skipped",),
    ),
    "loose_xfail": Single(
        body="import pytest\n@pytest.mark.xfail\ndef test_x(): assert 0",
        outcomes=one("xfailed-loose"),
        rules=("roster/loose-xfail",),
    ),
    "xfail_in_the_body": Single(
        body=f"import pytest\n@pytest.mark.xfail({STRICT})\ndef test_x(): pytest.xfail('no')",
        outcomes=one("xfailed-loose"),
        rules=("roster/loose-xfail",),
    ),
    "xfail_not_run": Single(
        body=f"import pytest\n@pytest.mark.xfail({STRICT}, run=False)\ndef test_x(): pass",
        outcomes=one("skipped"),
        rules=("roster/skipped",),
    ),
    "xfail_of_another_error": Single(
        body=f"import pytest\n@pytest.mark.xfail({STRICT}, raises=KeyError)\ndef test_x(): 1 / 0",
        outcomes=one("failed"),
        rules=("test/failed",),
    ),
    "xpass": Single(
        body="import pytest\n@pytest.mark.xfail\ndef test_x(): pass",
        outcomes=one("xpassed"),
        rules=("roster/xpassed",),
    ),
    "strict_xpass": Single(
        body=f"import pytest\n@pytest.mark.xfail({STRICT})\ndef test_x(): pass",
        outcomes=one("failed"),
        rules=("test/failed",),
        words="XPASS(strict)",
    ),
    "failing_subtest_of_unittest": Scenario(
        body="import unittest\nclass TestA(unittest.TestCase):\n    def test_x(self):\n"
        "        for i in range(3):\n            with self.subTest(i=i): assert i != 1",
        outcomes={"TestA::test_x": "failed"},
        rules=("test/failed",),
        words="subtest i=1",
    ),
    "failing_subtest": Single(
        body="def test_x(subtests):\n    for i in range(3):\n"
        "        with subtests.test('deep', i=i): assert i != 1",
        outcomes=one("failed"),
        rules=("test/failed",),
        words="subtest deep i=1",
    ),
    "skipped_subtest": Scenario(
        body="import unittest\nclass TestA(unittest.TestCase):\n    def test_x(self):\n"
        "        with self.subTest(): self.skipTest('no')",
        outcomes={"TestA::test_x": "skipped"},
        rules=("roster/skipped",),
    ),
    "descriptors_closed": Single(
        body="import os\ndef test_x(): os.closerange(3, 1000)",
        outcomes=one("unaccounted"),
        rules=("death/crash",),
    ),
    "deselects": hook(
        "def pytest_collection_modifyitems(items): items.clear()",
        "unaccounted",
        "roster/missing-id",
    ),
    "deselects_late": hook(
        "def pytest_collection_finish(session): session.items.clear()",
        "unaccounted",
        "roster/not-run",
    ),
    "deselects_around": hook(
        "@pytest.hookimpl(wrapper=True)\ndef pytest_collection_modifyitems(items):\n"
        "    yield\n    items.clear()",
        "unaccounted",
        "roster/not-run",
    ),
    "stops_at_the_first_failure": Scenario(
        body="def test_a(): assert 0\ndef test_b(): pass",
        conftest="def pytest_configure(config): config.option.maxfail = 1",
        outcomes={"test_a": "failed", "test_b": "unaccounted"},
        rules=("roster/not-run", "test/failed"),
    ),
    "collects_only": hook(
        "def pytest_configure(config): config.option.collectonly = True",
        "unaccounted",
        "roster/not-run",
    ),
    "runs_twice": hook(
        "from _pytest.runner import runtestprotocol\ndef pytest_runtest_protocol(item, nextitem):\n"
        "    for _ in range(2):\n        item.ihook.pytest_runtest_logstart(\n"
        "            nodeid=item.nodeid, location=item.location)\n"
        "        runtestprotocol(item, nextitem=nextitem)\n    return True",
        "doubled",
        "record/doubled-outcome",
    ),
    "swallows_a_phase": hook(
        "@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_call(item): item.runtest = lambda: 0\n"
        "def pytest_runtest_protocol(item, nextitem):\n    item.ihook.pytest_runtest_logstart(\n"
        "        nodeid=item.nodeid, location=item.location)\n    return True",
        "unaccounted",
        "roster/not-run",
    ),
    "turns_failed_into_passed": Single(
        body="def test_x(): assert 0",
        conftest="import pytest\n@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_makereport():\n    report = yield\n    report.outcome = 'passed'\n"
        "    return report",
        outcomes=one("changed"),
        rules=("record/changed-outcome",),
        words="from 'failed' to 'passed'",
    ),
    "turns_failed_into_passed_late": Single(
        body="def test_x(): assert 0",
        conftest="import pytest\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_runtest_logreport(report): report.outcome = 'passed'",
        outcomes=one("changed"),
        rules=("record/changed-outcome",),
    ),
    "turns_failed_into_skipped": Single(
        body="def test_x(): assert 0",
        conftest="import pytest\n@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_makereport(call):\n    report = yield\n"
        "    if call.excinfo: report.outcome, report.wasxfail = 'skipped', 'known'\n"
        "    return report",
        outcomes=one("changed"),
        rules=("record/changed-outcome",),
    ),
    "coroutine": Single(
        body="async def test_x(): assert 0", outcomes=one("failed"), rules=("test/failed",)
    ),
    "generator": Single(
        body="def test_x(): yield 1",
        outcomes=one("unaccounted"),
        rules=("roster/collection-error",),
    ),
    "unittest_expected_failure": Scenario(
        body="import unittest\nclass TestA(unittest.TestCase):\n    @unittest.expectedFailure\n"
        "    def test_x(self): assert 0",
        outcomes={"TestA::test_x": "xfailed-loose"},
        rules=("roster/loose-xfail",),
    ),
    "unittest_unexpected_success": Scenario(
        body="import unittest\nclass TestA(unittest.TestCase):\n    @unittest.expectedFailure\n"
        "    def test_x(self): pass",
        outcomes={"TestA::test_x": "failed"},
        rules=("test/failed",),
    ),
    "unittest_skip": Scenario(
        body="import unittest\n@unittest.skip('no')\nclass TestA(unittest.TestCase):\n"
        "    def test_x(self): assert 0",
        outcomes={"TestA::test_x": "skipped"},
        rules=("roster/skipped",),
    ),
    "setup_class_fails": Scenario(
        body="class TestA:\n    @classmethod\n    def setup_class(cls): 1 / 0\n"
        "    def test_x(self): pass\n    def test_y(self): pass",
        outcomes={"TestA::test_x": "error", "TestA::test_y": "error"},
        rules=("test/error",),
    ),
    "exec_of_another_program": dies("os.execv('/bin/true', ['true'])", "without finishing, during"),
    "duplicates_items": hook(
        "def pytest_collection_modifyitems(items): items += list(items)",
        "doubled",
        "record/doubled-outcome",
    ),
    "swallows_the_call": hook(
        "@pytest.hookimpl(tryfirst=True)\ndef pytest_pyfunc_call(): return True",
        "hollow",
        "roster/hollow",
        words="its function was never entered",
    ),
    "replaces_the_call": hook(
        "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None",
        "hollow",
        "roster/hollow",
    ),
    "awaits_nothing": Single(
        body="async def test_x(): assert 0",
        conftest="import pytest\n@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_pyfunc_call(pyfuncitem):\n    pyfuncitem.obj().close()\n    return True",
        outcomes=one("hollow"),
        rules=("roster/hollow",),
    ),
    "fails_the_session": hook(
        "def pytest_sessionfinish(session): session.exitstatus = 1",
        "passed",
        "record/unexplained-exit",
    ),
    "breaks_pytest": hook(
        "def pytest_runtest_logreport(report): raise KeyError('hook')",
        "unaccounted",
        "death/crash",
        words="KeyError: 'hook'",
    ),
    "removes_the_journal_plugin": hook(
        "def pytest_configure(config):\n"
        "    config.pluginmanager.unregister(name='ci_tools-journal')",
        "unaccounted",
        "death/crash",
    ),
    "removes_the_journal": hook(
        "import json\njob = json.load(open(os.environ['CI_TOOLS_JOB']))\nos.unlink(job['journal'])",
        "unaccounted",
        "record/missing-journal",
    ),
    "writes_into_the_journal": hook(
        "import json\njob = json.load(open(os.environ['CI_TOOLS_JOB']))\n"
        "open(job['journal'], 'a').write('hello\\n')",
        "unaccounted",
        "record/broken-journal",
    ),
}
SCENARIOS = GREEN | RED
