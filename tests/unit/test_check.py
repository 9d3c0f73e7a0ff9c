"""Every rule of the roster check: an input that breaks it, beside one that keeps it."""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from ci_tools.config import ForeignExclusion
from ci_tools.findings import Finding, Kind
from ci_tools.roster.check import RosterInput, check_roster, find_overdue
from ci_tools.roster.lock import parse_roster_lock
from ci_tools.roster.markers import read_facts
from ci_tools.roster.scan import RosterFile

LOCK = "tests/roster/roster.lock"
X, Y = "tests/roster/test_x.py", "tests/roster/test_y.py"
TODAY = datetime.date(2030, 1, 1)


def mark(kind: str, more: str = "") -> str:
    return (
        f'pytest.mark.excluded("{kind}", reason="takes ten minutes", owner="@team", '
        f'review_by="2031-01-01"{more})'
    )


SLOW = mark("expensive")
NEEDY = mark("optional", ', needs=["flowmc"]')
FOREIGN = ForeignExclusion(
    path=X,
    kind="legacy",
    reason="not Python any more",
    owner="@team",
    review_by="2031-01-01",
    line=9,
)


def given(
    files: Mapping[str, str],
    lock: Sequence[str],
    *,
    foreign: Sequence[ForeignExclusion] = (),
    packages: Sequence[str] = ("jax",),
) -> RosterInput:
    excluded = {exclusion.path: exclusion for exclusion in foreign}
    parsed, form = parse_roster_lock("".join(f"{line}\n" for line in sorted(lock)), LOCK)
    assert form == []
    return RosterInput(
        files=[
            RosterFile(
                facts=read_facts(path, textwrap.dedent(text).encode()), foreign=excluded.get(path)
            )
            for path, text in sorted(files.items())
        ],
        lock=parsed,
        lock_path=LOCK,
        locked_packages=packages,
        foreign_paths=[(exclusion.path, exclusion.line) for exclusion in foreign],
        today=TODAY,
    )


def check(files: Mapping[str, str], *lock: str, **options: object) -> list[tuple[str, str]]:
    found = check_roster(given(files, lock, **options))  # type: ignore[arg-type]
    assert all(finding.kind is Kind.ROSTER and finding.fix for finding in found)
    return [(finding.rule, f"{finding.path}:{finding.line}") for finding in found]


TWO = "def test_a(): pass\ndef test_b(): pass\n"
GREEN: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "each test is locked": ({X: TWO}, (f"gate {X}::test_a", f"gate {X}::test_b")),
    "parameters": ({X: "def test_a(p): pass"}, (f"gate {X}::test_a[1]", f"gate {X}::test_a[2]")),
    "an excluded file": (
        {X: f"pytestmark = {SLOW}\n{TWO}"},
        (f"excluded {X}::test_a", f"excluded {X}::test_b"),
    ),
    "an excluded test": (
        {X: f"@{SLOW}\ndef test_a(): pass\ndef test_b(): pass"},
        (f"excluded {X}::test_a", f"gate {X}::test_b"),
    ),
    "an excluded parameter": (
        {X: f"P = [pytest.param(1, marks={SLOW}), 2]\ndef test_a(p): pass"},
        (f"excluded {X}::test_a[1]", f"gate {X}::test_a[2]"),
    ),
    "a manual file": ({X: f"pytestmark = {mark('manual')}\nrun()"}, (f"excluded {X}",)),
    "a manual script of another name": (
        {"tests/roster/study.py": f"pytestmark = {mark('manual')}\ndef test_a(): pass"},
        ("excluded tests/roster/study.py",),
    ),
    "an optional file that collects nothing": (
        {X: f"import flowmc\npytestmark = {NEEDY}\n{TWO}"},
        (f"excluded {X}",),
    ),
    "a file that only collection can read": ({X: "from cases import *"}, (f"gate {X}::test_q",)),
    "an inherited test": (
        {X: "class TestA(Base):\n    def test_a(self): pass"},
        (f"gate {X}::TestA::test_a", f"gate {X}::TestA::test_inherited"),
    ),
    "a test under a condition, locked": (
        {X: "if cond:\n    def test_a(): pass\ndef test_b(): pass"},
        (f"gate {X}::test_a", f"gate {X}::test_b"),
    ),
    "a test under a condition, absent": (
        {X: "if cond:\n    def test_a(): pass\ndef test_b(): pass"},
        (f"gate {X}::test_b",),
    ),
    "a support file": ({"tests/roster/support.py": "def helper(): pass"}, ()),
    "a conftest": ({"tests/roster/conftest.py": "import pytest"}, ()),
    "nothing at all": ({}, ()),
}


@pytest.mark.parametrize("name", GREEN)
def test_what_keeps_the_rules_is_green(name: str) -> None:
    files, lock = GREEN[name]
    assert check(files, *lock) == []


RED: dict[str, tuple[dict[str, str], tuple[str, ...], list[tuple[str, str]]]] = {
    "a test file in no lane": ({X: TWO}, (), [("no-lane", f"{X}:1")]),
    "an id that is not locked": (
        {X: TWO},
        (f"gate {X}::test_a",),
        [("unlocked-id", f"{X}:2")],
    ),
    "an id that vanished": (
        {X: "def test_a(): pass"},
        (f"gate {X}::test_a", f"gate {X}::test_b"),
        [("missing-id", f"{LOCK}:2")],
    ),
    "a parametrised id that vanished": (
        {X: "def test_a(): pass"},
        (f"gate {X}::test_a", f"gate {X}::test_b[1]"),
        [("missing-id", f"{LOCK}:2")],
    ),
    "a file that is gone": (
        {},
        (f"gate {X}::test_a", f"excluded {Y}"),
        [("missing-id", f"{LOCK}:1"), ("missing-id", f"{LOCK}:2")],
    ),
    "a gated file that holds no test": ({X: "x = 1"}, (), [("empty-file", f"{X}:1")]),
    "an empty gated file": ({X: ""}, (), [("empty-file", f"{X}:1")]),
    "a gated class that pytest refuses": (
        {X: "class TestA:\n    def __init__(self): pass\n    def test_a(self): pass"},
        (),
        [("empty-file", f"{X}:1")],
    ),
    "a file locked as a whole in the gate": (
        {X: "def test_a(): pass"},
        (f"gate {X}", f"gate {X}::test_a"),
        [("missing-id", f"{LOCK}:1")],
    ),
    "a syntax error": (
        {X: "x = 1\ndef test_a(:"},
        (f"gate {X}::test_a",),
        [("syntax-error", f"{X}:2")],
    ),
    "a test in a file that is not collected": (
        {"tests/roster/cases.py": "def test_a(): pass"},
        (),
        [("no-lane", "tests/roster/cases.py:1")],
    ),
    "a test in a conftest": (
        {"tests/roster/conftest.py": "def test_a(): pass"},
        (),
        [("no-lane", "tests/roster/conftest.py:1")],
    ),
    "a locked id in a file that is not collected": (
        {"tests/roster/cases.py": ""},
        ("gate tests/roster/cases.py::test_a",),
        [("missing-id", f"{LOCK}:1")],
    ),
    "an excluded file that is not locked": (
        {X: f"pytestmark = {SLOW}\n{TWO}"},
        (),
        [("unlocked-file", f"{X}:1")],
    ),
    "an excluded file whose test is not locked": (
        {X: f"pytestmark = {SLOW}\n{TWO}"},
        (f"excluded {X}::test_a",),
        [("unlocked-id", f"{X}:3")],
    ),
    "an excluded id that vanished": (
        {X: f"pytestmark = {SLOW}\ndef test_a(): pass"},
        (f"excluded {X}::test_a", f"excluded {X}::test_b"),
        [("missing-id", f"{LOCK}:2")],
    ),
    "an excluded file locked in the gate": (
        {X: f"pytestmark = {SLOW}\ndef test_a(): pass"},
        (f"gate {X}::test_a",),
        [("lane-differs", f"{X}:1")],
    ),
    "an excluded test locked in the gate": (
        {X: f"@{SLOW}\ndef test_a(): pass"},
        (f"gate {X}::test_a",),
        [("lane-differs", f"{X}:2")],
    ),
    "a gated test locked as excluded": (
        {X: "def test_a(): pass"},
        (f"excluded {X}::test_a",),
        [("lane-differs", f"{X}:1")],
    ),
    "a mark that comes from another file": (
        {X: "from support import SLOW\npytestmark = SLOW\ndef test_a(): pass"},
        (f"excluded {X}::test_a",),
        [("lane-differs", f"{X}:3")],
    ),
    "an expensive file that collects nothing": (
        {X: f"pytestmark = {SLOW}"},
        (f"excluded {X}",),
        [("empty-file", f"{X}:1")],
    ),
    "a manual file locked by its tests": (
        {X: f"pytestmark = {mark('manual')}\ndef test_a(): pass"},
        (f"excluded {X}::test_a",),
        [("missing-id", f"{LOCK}:1")],
    ),
    "a file locked as a whole and by its tests": (
        {X: f"pytestmark = {NEEDY}\ndef test_a(): pass"},
        (f"excluded {X}", f"excluded {X}::test_a"),
        [("missing-id", f"{LOCK}:2")],
    ),
}


@pytest.mark.parametrize("name", RED)
def test_each_broken_rule_is_named_at_its_line(name: str) -> None:
    files, lock, expected = RED[name]
    assert check(files, *lock) == [(f"roster/{rule}", place) for rule, place in expected]


@pytest.mark.parametrize(
    ("marker", "words"),
    [
        (SLOW.replace("takes ten minutes", "slow"), "under 12 characters"),
        (SLOW.replace('"@team"', '""'), "no owner"),
        (SLOW.replace("expensive", "slow"), "unknown kind 'slow'"),
        (SLOW.replace("2031-01-01", "later"), "is not a date"),
        (SLOW.replace('"takes ten minutes"', "WHY"), "is no literal"),
        (mark("optional"), "without needs="),
        (mark("optional", ', needs=["JAX"]'), "which the image's lock installs"),
        ("pytest.mark.excluded", "unknown kind ''"),
    ],
)
def test_a_bad_exclusion_is_named_at_its_line(marker: str, words: str) -> None:
    files = {X: f"import pytest\n@{marker}\ndef test_a(): pass"}
    found = check_roster(given(files, [f"excluded {X}::test_a"]))
    assert {(f.rule, f.path, f.line) for f in found} == {("roster/bad-exclusion", X, 2)}
    assert any(words in finding.message for finding in found)


def test_a_bad_exclusion_of_a_parameter_is_found_as_well() -> None:
    source = f"P = pytest.param(1, marks={SLOW.replace('@team', '')})\ndef test_a(p): pass"
    assert check({X: source}, f"excluded {X}::test_a[1]") == [("roster/bad-exclusion", f"{X}:1")]


BROKEN = {X: "def test_a(:"}


def test_a_foreign_file_is_excluded_in_pyproject() -> None:
    assert check(BROKEN, f"excluded {X}", foreign=[FOREIGN]) == []


@pytest.mark.parametrize(
    ("lock", "foreign", "expected"),
    [
        ((), FOREIGN, [("unlocked-file", f"{X}:None")]),
        ((f"gate {X}",), FOREIGN, [("lane-differs", f"{X}:None")]),
        (
            (f"excluded {X}", f"excluded {X}::test_a"),
            FOREIGN,
            [("missing-id", f"{LOCK}:2")],
        ),
        (
            (f"excluded {X}",),
            replace(FOREIGN, reason="short"),
            [("bad-exclusion", "pyproject.toml:9")],
        ),
        (
            (f"excluded {X}",),
            replace(FOREIGN, kind="old"),
            [("bad-exclusion", "pyproject.toml:9")],
        ),
    ],
)
def test_a_foreign_file_keeps_the_same_rules(
    lock: tuple[str, ...], foreign: ForeignExclusion, expected: list[tuple[str, str]]
) -> None:
    found = check(BROKEN, *lock, foreign=[foreign])
    assert found == [(f"roster/{rule}", place) for rule, place in expected]


def test_an_entry_for_a_file_that_is_not_there_is_red() -> None:
    assert check({}, foreign=[FOREIGN]) == [("roster/foreign-path", "pyproject.toml:9")]


def test_the_findings_name_the_test_and_what_to_do() -> None:
    found = check_roster(given({X: "def test_a(): pass"}, [f"gate {X}::test_b"]))
    assert [(f.test_id, f.fix.split(",")[0]) for f in found] == [
        (f"{X}::test_a", "make roster-lock"),
        (f"{X}::test_b", "restore the test"),
    ]
    assert isinstance(found[0], Finding)


def test_an_overdue_review_is_a_warning_and_no_finding() -> None:
    overdue = SLOW.replace("2031-01-01", "2029-12-31")
    source = {X: f"@{overdue}\ndef test_a(): pass\n@{SLOW}\ndef test_b(): pass"}
    data = given(source, [f"excluded {X}::test_a", f"excluded {X}::test_b"])
    assert check_roster(data) == []
    assert find_overdue(data) == [
        f"{X}:1: review_by 2029-12-31 has passed (expensive; owner @team): decide again"
    ]
    late = replace(FOREIGN, review_by="2029-12-31")
    assert len(find_overdue(given(BROKEN, [f"excluded {X}"], foreign=[late]))) == 1
