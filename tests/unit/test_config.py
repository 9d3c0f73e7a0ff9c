"""`[tool.ci_tools]`: its values, its defaults, and the key and line of every refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.config import Config, RunConfig, load_config, parse_config
from ci_tools.errors import UsageError
from ci_tools.tree import Tree, find_tree

EXCLUDE = """\
[[tool.ci_tools.exclude]]
path = "tests/roster/test_old.py"
kind = "legacy"
reason = "not Python any more"
owner = "@team"
review_by = "2030-01-01"
"""


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'", "[tool.ruff]", "[tool.ci_tools]"])
def test_everything_has_a_default(text: str) -> None:
    config = parse_config(text)
    assert config == Config()
    assert config.roster_lock == "tests/roster/roster.lock"


def test_every_key_is_read() -> None:
    config = parse_config(
        '[tool.ci_tools]\nroster = ["a/b/", "./c"]\npackages = ["p"]\npython = "3.14"\n'
        "[tool.ci_tools.run]\nfile_timeout_seconds = 1.5\ncollect_timeout_seconds = 2\n"
        "tests_per_chunk = 3\nfile_memory_bytes = 4\n" + EXCLUDE
    )
    assert (config.roster, config.packages, config.python) == (("a/b", "c"), ("p",), "3.14")
    assert config.roster_lock == "a/b/roster.lock"
    assert config.run == RunConfig(
        file_timeout_seconds=1.5, collect_timeout_seconds=2, tests_per_chunk=3, file_memory_bytes=4
    )
    (excluded,) = config.exclude
    assert (excluded.path, excluded.kind, excluded.line) == (
        "tests/roster/test_old.py",
        "legacy",
        11,
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x =", None, "not valid TOML"),
        ("[a]\nx = = 1\n", 2, "not valid TOML"),
        ("[tool]\nci_tools = 3", 2, "must be a table"),
        ("[tool.ci_tools]\nrooster = []", 2, "rooster: unknown key; known are roster"),
        ("[tool.ci_tools]\nroster = []", 2, "must name at least one folder"),
        ("[tool.ci_tools]\nroster = 'tests'", 2, "must be a list"),
        ("[tool.ci_tools]\nroster = ['']", 2, "must be a list of non-empty strings"),
        ("[tool.ci_tools]\nroster = ['/etc']", 2, "inside the repository"),
        ("[tool.ci_tools]\nroster = ['a/../../b']", 2, "inside the repository"),
        ("[tool.ci_tools]\nroster = ['a\\b']", 2, "inside the repository"),
        ("[tool.ci_tools]\npackages = [1]", 2, "must be a list"),
        ("[tool.ci_tools]\npython = '3'", 2, "minor version"),
        ("[tool.ci_tools]\npython = '3.13.1'", 2, "minor version"),
        ("[tool.ci_tools]\npython = 3.13", 2, "minor version"),
        ("[tool.ci_tools]\nrun = 1", 2, "must be a table"),
        ("[tool.ci_tools.run]\nspeed = 1", 2, "speed: unknown key"),
        ("[tool.ci_tools.run]\ntests_per_chunk = 0", 2, "positive number"),
        ("[tool.ci_tools.run]\ntests_per_chunk = 0.5", 2, "whole number"),
        ("[tool.ci_tools.run]\ntests_per_chunk = 2.5", 2, "whole number"),
        ("[tool.ci_tools.run]\ntests_per_chunk = true", 2, "positive number"),
        ("[tool.ci_tools.run]\nfile_timeout_seconds = -1", 2, "positive number"),
        ("[tool.ci_tools.run]\nfile_timeout_seconds = nan", 2, "positive number"),
        ("[tool.ci_tools.run]\nfile_timeout_seconds = inf", 2, "positive number"),
        ("[tool.ci_tools.run]\nfile_timeout_seconds = '60'", 2, "positive number"),
        ("[tool.ci_tools]\nexclude = 'x'", 2, "array of tables"),
        ("[tool.ci_tools]\nexclude = ['x']", None, "path: must be a non-empty string"),
        (EXCLUDE.replace('owner = "@team"\n', ""), None, "owner: must be a non-empty string"),
        (EXCLUDE.replace('"2030-01-01"', "2030-01-01"), 6, "review_by: must be a non-empty string"),
        (EXCLUDE + 'why = "x"', 7, "why: unknown key"),
        (EXCLUDE * 2, 1, "test_old.py is excluded twice"),
    ],
)
def test_each_error_names_its_key_and_line(text: str, line: int | None, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_config(text)
    assert words in caught.value.message
    assert (caught.value.path, caught.value.line) == ("pyproject.toml", line)


def test_the_root_itself_can_be_the_roster() -> None:
    config = parse_config('[tool.ci_tools]\nroster = ["./"]')
    assert (config.roster, config.roster_lock) == ((".",), "./roster.lock")


@given(st.text(max_size=60))
def test_any_text_is_a_configuration_or_a_usage_error(text: str) -> None:
    try:
        parse_config(f"[tool.ci_tools]\n{text}")
    except UsageError as error:
        place = error.path
    else:
        place = "pyproject.toml"
    assert place == "pyproject.toml"


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        load_config(Tree(tmp_path))
    (tmp_path / "pyproject.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot read"):
        load_config(Tree(tmp_path))


def test_the_tree_is_the_nearest_folder_with_a_pyproject(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    assert find_tree(inner) == Tree(tmp_path.resolve())
    (inner / "pyproject.toml").touch()
    tree = find_tree(inner)
    assert tree.root == inner.resolve()
    assert tree.relative(tree.gate_requirements) == "requirements/gate.txt"
    assert tree.relative(tmp_path / "x") == (tmp_path / "x").as_posix()


def test_without_a_pyproject_there_is_no_tree() -> None:
    with pytest.raises(UsageError, match=r"no pyproject\.toml") as caught:
        find_tree(Path("/proc"))
    assert "--root" in caught.value.fix
