"""What a test file says about itself, read without importing it."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.roster.exclusion import find_problems
from ci_tools.roster.markers import FileFacts, read_facts

MARK = (
    'pytest.mark.excluded("expensive", reason="takes ten minutes", owner="@team", '
    'review_by="2099-01-01")'
)


def read(source: str) -> FileFacts:
    return read_facts("tests/test_x.py", textwrap.dedent(source).encode("utf-8"))


def names(source: str, *, certain_only: bool = False) -> list[str]:
    tests = read(source).tests
    return [test.name for test in tests if test.is_certain or not certain_only]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def test_a(): pass", ["test_a"]),
        ("async def test_a(): pass", ["test_a"]),
        ("def helper(): pass", []),
        ("def check():\n    def test_inner(): pass", []),
        ("class TestA:\n    def test_x(self): pass\n    def helper(self): pass", ["TestA::test_x"]),
        (
            "class TestA:\n    class TestB:\n        def test_x(self): pass",
            ["TestA::TestB::test_x"],
        ),
        ("class Helper:\n    def test_x(self): pass", []),
        ("class Cases(unittest.TestCase):\n    def test_x(self): pass", ["Cases::test_x"]),
        ("class TestA:\n    def __init__(self): pass\n    def test_x(self): pass", []),
        ("class TestA:\n    __test__ = False\n    def test_x(self): pass", []),
        ("@pytest.fixture\ndef test_data(): pass", []),
        ("@pytest.fixture(scope='module')\ndef test_data(): pass", []),
        ("def test_é(): pass", ["test_é"]),
    ],
)
def test_the_tests_a_file_defines(source: str, expected: list[str]) -> None:
    assert names(source) == expected
    assert names(source, certain_only=True) == expected


@pytest.mark.parametrize(
    "block",
    ["if x:", "try:", "for i in y:", "while x:", "with x:", "match x:\n    case 1:"],
)
def test_what_is_defined_in_a_block_may_not_be_there(block: str) -> None:
    indent = "        " if "case" in block else "    "
    ending = "\nexcept E: pass" if block == "try:" else ""
    source = f"{block}\n{indent}def test_a(): pass{ending}"
    assert (names(source), names(source, certain_only=True)) == (["test_a"], [])


def test_the_branches_of_a_block_are_all_seen() -> None:
    source = """
    try:
        def test_a(): pass
    except ImportError:
        def test_b(): pass
    else:
        def test_c(): pass
    finally:
        def test_d(): pass
    """
    assert names(source) == ["test_a", "test_c", "test_d", "test_b"]


@pytest.mark.parametrize(
    "source",
    [
        "from helpers import *",
        "from helpers import test_a",
        "from helpers import TestBase",
        "import helpers as test_a",
        "test_a = make()",
        "globals()[name] = make()",
        "def pytest_generate_tests(metafunc): pass",
        "class Cases(Base):\n    def test_x(self): pass",
    ],
)
def test_a_file_that_can_hold_unseen_tests_is_open(source: str) -> None:
    assert read(source).is_open


@pytest.mark.parametrize(
    "source",
    ["import numpy", "from a import b", "x = 1", "def test_a(): pass", "class A: pass"],
)
def test_a_plain_file_is_not_open(source: str) -> None:
    assert not read(source).is_open


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class TestA(Base): pass", {"TestA"}),
        ("@decorate\nclass TestA: pass", {"TestA"}),
        ("class TestA(metaclass=M): pass", {"TestA"}),
        ("class TestA(object): pass", set()),
        ("class TestA: pass", set()),
    ],
)
def test_a_class_that_inherits_is_open(source: str, expected: set[str]) -> None:
    assert read(source).open_classes == expected


@pytest.mark.parametrize(
    "line",
    [
        f"pytestmark = {MARK}",
        f"pytestmark = [{MARK}]",
        f"pytestmark = (pytest.mark.slow, {MARK})",
        f"pytestmark: object = {MARK}",
        f"slow = {MARK}\npytestmark = slow",
        f"slow = {MARK}\npytestmark = [slow]",
        f"from pytest import mark\npytestmark = {MARK.removeprefix('pytest.')}",
        f"import pytest as pt\npytestmark = {MARK.replace('pytest.', 'pt.')}",
    ],
)
def test_the_exclusion_of_a_file(line: str) -> None:
    facts = read(f"import pytest\n{line}\ndef test_a(): pass")
    assert facts.module_exclusion is not None
    assert facts.module_exclusion.kind == "expensive"
    assert find_problems(facts.module_exclusion) == []
    assert not facts.has_open_lanes
    assert len(facts.exclusions) == 1


@pytest.mark.parametrize(
    ("source", "excluded"),
    [
        (f"@{MARK}\ndef test_a(): pass\ndef test_b(): pass", ["test_a"]),
        (f"slow = {MARK}\n@slow\ndef test_a(): pass\ndef test_b(): pass", ["test_a"]),
        (
            f"@{MARK}\nclass TestA:\n    def test_x(self): pass\ndef test_b(): pass",
            ["TestA::test_x"],
        ),
        (
            f"class TestA:\n    pytestmark = {MARK}\n    def test_x(self): pass",
            ["TestA::test_x"],
        ),
        (
            f"class TestA:\n    @{MARK}\n    def test_x(self): pass\n    def test_y(self): pass",
            ["TestA::test_x"],
        ),
    ],
)
def test_the_exclusion_of_a_test(source: str, excluded: list[str]) -> None:
    facts = read(source)
    assert [test.name for test in facts.tests if test.exclusion is not None] == excluded
    assert facts.module_exclusion is None
    assert not facts.has_open_lanes


@pytest.mark.parametrize(
    "source",
    [
        f"@pytest.mark.parametrize('x', [pytest.param(1, marks={MARK})])\ndef test_a(x): pass",
        f"slow = {MARK}\ncases = [pytest.param(1, marks=slow)]\ndef test_a(x): pass",
        f"if x:\n    pytestmark = {MARK}",
        f"pytestmark = []\npytestmark.append({MARK})",
    ],
)
def test_a_mark_that_ast_cannot_place_leaves_the_lanes_open(source: str) -> None:
    facts = read(source)
    assert facts.has_open_lanes
    assert facts.module_exclusion is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("KIND, reason='takes ten minutes', owner='@t', review_by='2099-01-01'", "is no literal"),
        ("'gpu', reason=f'{x} minutes', owner='@t', review_by='2099-01-01'", "is no literal"),
        ("'gpu', reason={[1]: 2}, owner='@t', review_by='2099-01-01'", "is no literal"),
        ("'gpu', reason=100000000000, owner='@t', review_by='2099-01-01'", "must be a string"),
        ("'gpu', reason=None, owner='@t', review_by='2099-01-01'", "must be a string"),
        ("'gpu', 'needs a device', owner='@t', review_by='2099-01-01'", "only the kind is"),
        ("'gpu', why='needs a device', owner='@t', review_by='2099-01-01'", "unknown argument"),
        ("**fields", "unknown argument"),
        ("*fields", "is no literal"),
        ("'optional', needs='flowmc', reason='takes ten minutes'", "needs must be a list"),
        ("'optional', needs=[1], reason='takes ten minutes'", "needs must be a list"),
    ],
)
def test_what_cannot_be_read_from_a_mark_is_a_problem(arguments: str, problem: str) -> None:
    facts = read(f"pytestmark = pytest.mark.excluded({arguments})")
    assert facts.module_exclusion is not None
    assert any(problem in text for text in find_problems(facts.module_exclusion))


def test_a_mark_that_is_not_called_is_an_exclusion_without_anything() -> None:
    facts = read("@pytest.mark.excluded\ndef test_a(): pass")
    assert facts.tests[0].exclusion is not None
    assert len(find_problems(facts.tests[0].exclusion)) == 4


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (b"def test_a(:\n", 1),
        (b"x = 1\ndef f(:\n", 2),
        (b"x = '\0'\n", 1),
        (b"# coding: nonsense\n", 1),
        (b"x = '\xff'\n", 1),
        (b"(" * 500 + b")" * 500, 1),
        (b"-" * 100_000 + b"1", 1),
    ],
    ids=["syntax", "second line", "NUL", "coding", "not UTF-8", "parentheses", "nesting"],
)
def test_what_is_not_python_is_said_and_nothing_is_raised(source: bytes, line: int) -> None:
    facts = read_facts("tests/test_x.py", source)
    assert facts.syntax_error is not None
    assert facts.syntax_error[0] == line
    assert facts.syntax_error[1]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(source: bytes) -> None:
    read_facts("tests/test_x.py", source)


def test_nothing_is_imported_or_run() -> None:
    facts = read("import sys, time\ntime.sleep(600)\nsys.exit(1)\ndef test_a(): pass")
    assert [test.name for test in facts.tests] == ["test_a"]
