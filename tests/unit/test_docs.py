"""What the documents say exists does exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ci_tools.config import parse_config
from ci_tools.devtools.reference import PATH, render_reference
from ci_tools.errors import ExitCode
from ci_tools.findings import Kind
from ci_tools.roster.exclusion import ExclusionKind

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")))
]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):.*## ", read("Makefile"), re.MULTILINE))


def test_the_command_reference_is_the_parsers() -> None:
    assert read(PATH) == render_reference(), "run python3 -m ci_tools.devtools.reference"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", read(page))
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (ROOT / page).parent.joinpath(link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_that_are_named_exist(page: str) -> None:
    named = set(re.findall(r"(?:`|\n)(?:[A-Z]+=\S+ )?make ([a-z][a-z0-9-]*)", read(page)))
    assert named <= make_targets()


def test_make_alone_prints_every_target_under_a_heading() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    shown = set(re.findall(r"^  ([a-z0-9-]+) ", done.stdout, re.MULTILINE))
    assert shown == make_targets()
    assert re.findall(r"^[A-Z][\w, ]+$", done.stdout, re.MULTILINE)


def test_every_recipe_is_one_command() -> None:
    text = read("Makefile").replace("\\\n", "")
    recipes = re.findall(r"^[a-z0-9-]+:.*\n((?:\t.*\n)*)", text, re.MULTILINE)
    counts = [recipe.count("\n") for recipe in recipes if recipe]
    assert counts
    assert set(counts) == {1}


def test_the_readme_opens_with_five_lines_and_the_two_commands() -> None:
    paragraphs = read("README.md").split("\n\n")
    assert paragraphs[0].startswith("# ")
    assert len(paragraphs[1].splitlines()) == 5
    commands = re.findall(r"^make (\S+)", paragraphs[2], re.MULTILINE)
    assert commands == ["ci-local", "test"]


def test_exit_codes_kinds_and_exclusions_are_all_described() -> None:
    readme, kinds = read("README.md"), read("docs/reference/kinds-of-red.md")
    assert all(f"| {code.value} |" in readme for code in ExitCode)
    assert all(f"`{kind}`" in kinds for kind in Kind)
    assert all(f"| `{kind}` |" in read("docs/how-to/add-a-test.md") for kind in ExclusionKind)


def test_every_configuration_key_is_described() -> None:
    page = read("docs/reference/configuration.md")
    config = parse_config("")
    for key in vars(config):
        assert f"`{key}" in page
    for key in vars(config.run):
        assert f"`run.{key}`" in page


def test_the_shortest_configuration_is_the_default() -> None:
    assert parse_config("[tool.ci_tools]\n") == parse_config("")
