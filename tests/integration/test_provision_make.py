"""The Makefile hands everything to one command, and says when the Python it was given is no use."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from ci_tools.requirements.parse import normalise, parse_input

ROOT = Path(__file__).resolve().parents[2]


# What an outer make hands down, and what a runner sets: neither may change what make does here.
OUTER = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON", "ONLY", "ENGINE", "PACKAGE", "UPGRADE")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in OUTER}
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        env={**environment, "CI": "true", "CI_TOOLS": "outer"},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter's stand-in that is new enough and prints what it is asked to run."""
    script = tmp_path / "python"
    text = '#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "$@" "ENGINE=$ENGINE" "ONLY=$ONLY"\n'
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/python3"])
def test_a_missing_or_old_python_is_named_with_the_way_out(program: str) -> None:
    done = make(f"PYTHON={program}", "roster-check")
    assert done.returncode == 2
    assert f"{program} is missing or older than Python 3.11" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_make_alone_needs_no_python() -> None:
    assert make("PYTHON=/bin/false").returncode == 0


@pytest.mark.parametrize("only", ["tests/roster/test_a.py::test_b[x y]", "a'b", "a;b"])
def test_variables_reach_the_lane_unchanged(python: Path, only: str) -> None:
    done = make(f"PYTHON={python}", "ci-local", "ENGINE=venv", f"ONLY={only}")
    assert done.stdout == f"-m ci_tools ci-local ENGINE=venv ONLY={only}\n"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ((), ""),
        (("PACKAGE=jax numpyro",), "--package jax --package numpyro"),
        (("UPGRADE=1",), "--upgrade"),
    ],
)
def test_lock_hands_on_what_to_upgrade(python: Path, given: tuple[str, ...], options: str) -> None:
    done = make(f"PYTHON={python}", "lock", *given)
    asked = done.stdout.partition(" ENGINE=")[0]
    assert asked == f"-m ci_tools requirements compile {options}".strip()


@pytest.mark.parametrize("extra", ["test", "lint"])
def test_an_extra_names_what_its_lock_is_made_from(extra: str) -> None:
    """Whoever installs the extra gets the tools that `make` installs from the lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {normalise(name.partition(">")[0]) for name in project["optional-dependencies"][extra]}
    source = (ROOT / "requirements" / f"{extra}.in").read_text(encoding="utf-8")
    assert named == {wish.name for wish in parse_input(source).wishes}
