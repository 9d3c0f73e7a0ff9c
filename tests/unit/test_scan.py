"""Which files are the roster's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_tools.config import Config, ForeignExclusion
from ci_tools.errors import UsageError
from ci_tools.roster.scan import RosterFile, scan_roster
from ci_tools.tree import Tree

FOREIGN = ForeignExclusion(
    path="tests/roster/test_old.py",
    kind="legacy",
    reason="not Python any more",
    owner="@team",
    review_by="2030-01-01",
    line=3,
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "tests" / "roster").mkdir(parents=True)
    return Tree(tmp_path)


def write(tree: Tree, *paths: str) -> None:
    for path in paths:
        target = tree.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("def test_a(): pass\n", encoding="utf-8")


def scan(tree: Tree, *folders: str) -> dict[str, RosterFile]:
    config = Config(roster=folders or ("tests/roster",), exclude=(FOREIGN,))
    files = scan_roster(tree, config)
    assert [file.path for file in files] == sorted(file.path for file in files)
    return {file.path: file for file in files}


def test_python_files_of_every_depth_are_found_and_others_are_not(tree: Tree) -> None:
    write(tree, "tests/roster/test_b.py", "tests/roster/deep/er/test_a.py", "tests/unit/test_c.py")
    write(tree, "tests/roster/data.txt", "tests/roster/.hidden/test_d.py")
    write(tree, "tests/roster/__pycache__/test_e.py", "tests/roster/node_modules/test_f.py")
    assert list(scan(tree)) == ["tests/roster/deep/er/test_a.py", "tests/roster/test_b.py"]


def test_folders_that_overlap_give_each_file_once(tree: Tree) -> None:
    write(tree, "tests/roster/deep/test_a.py", "other/test_b.py")
    found = scan(tree, "tests/roster", "tests/roster/deep", "other")
    assert list(found) == ["other/test_b.py", "tests/roster/deep/test_a.py"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_a.py", True),
        ("a_test.py", True),
        ("a.py", False),
        ("conftest.py", False),
        ("testing.py", False),
        ("test_a b.py", True),
    ],
)
def test_the_names_that_pytest_collects(tree: Tree, name: str, expected: bool) -> None:
    write(tree, f"tests/roster/{name}")
    assert scan(tree)[f"tests/roster/{name}"].is_test_file is expected


def test_an_exclusion_of_pyproject_stands_above_the_files_own(tree: Tree) -> None:
    write(tree, "tests/roster/test_old.py", "tests/roster/test_new.py")
    found = scan(tree)
    exclusion = found["tests/roster/test_old.py"].exclusion
    assert exclusion is not None
    assert (exclusion.kind, exclusion.owner) == ("legacy", "@team")
    assert found["tests/roster/test_new.py"].exclusion is None


def test_a_folder_that_is_not_there_is_a_usage_error(tree: Tree) -> None:
    with pytest.raises(UsageError, match="gone/ does not exist") as caught:
        scan(tree, "tests/roster", "gone")
    assert "tests/roster/, gone/" in caught.value.fix


def test_a_file_that_cannot_be_read_is_a_usage_error(tree: Tree) -> None:
    (tree.root / "tests/roster/test_a.py").symlink_to("nowhere.py")
    with pytest.raises(UsageError, match="cannot read the file"):
        scan(tree)
