"""Locks of inputs that include each other, and the rules of names, markers and hidden files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_tools.requirements.check import Requirements, check_texts, digest_of, load_requirements
from ci_tools.requirements.parse import render_header
from ci_tools.requirements.versions import is_satisfied
from ci_tools.tree import Tree

HASH = "sha256:" + "c3" * 32


def pin(name: str, version: str, *parents: str) -> str:
    via = f"    # via {parents[0]}\n" if len(parents) == 1 else ""
    if len(parents) > 1:
        via = "    # via\n" + "".join(f"    #   {parent}\n" for parent in parents)
    return f"{name}=={version} \\\n    --hash={HASH}\n{via}"


def compiled(sources: dict[str, str], locks: dict[str, str]) -> dict[str, str]:
    """The inputs, with locks that carry the headers which belong to them."""
    texts = dict(sources)
    for stem, body in locks.items():
        texts[f"{stem}.txt"] = body
    for stem, body in locks.items():
        texts[f"{stem}.txt"] = render_header(digest_of(texts, stem), body) + body
    return texts


def rules_of(texts: dict[str, str]) -> list[str]:
    findings = check_texts(Requirements(folder="requirements", texts=texts))
    return [finding.rule.removeprefix("requirements/") for finding in findings]


GATE = pin("jax", "0.9", "-r gate.in") + pin("six", "1.0", "jax")
SOURCES = {"gate.in": "jax\n", "test.in": "-c gate.txt\npytest\n"}


def test_a_lock_that_keeps_to_its_constraint_is_green() -> None:
    test = pin("pytest", "9.0", "-r test.in") + pin("six", "1.0", "-c gate.txt", "pytest")
    assert rules_of(compiled(SOURCES, {"gate": GATE, "test": test})) == []


def test_a_version_that_differs_from_the_constraining_lock_is_red() -> None:
    test = pin("pytest", "9.0", "-r test.in") + pin("six", "1.1", "-c gate.txt", "pytest")
    texts = compiled(SOURCES, {"gate": GATE, "test": test})
    assert rules_of(texts) == ["constraint-differs"]


def test_a_constraint_alone_is_no_reason_to_be_locked() -> None:
    test = pin("pytest", "9.0", "-r test.in") + pin("six", "1.0", "-c gate.txt")
    assert rules_of(compiled(SOURCES, {"gate": GATE, "test": test})) == ["orphan-name"]


def test_names_of_an_included_input_belong_to_it() -> None:
    sources = {"gate.in": "jax\n", "all.in": "-r gate.in\npytest\n"}
    both = pin("jax", "0.9", "-r gate.in") + pin("pytest", "9.0", "-r all.in")
    assert rules_of(compiled(sources, {"gate": GATE, "all": both + pin("six", "1.0", "jax")})) == []
    stray = both + pin("six", "1.0", "-r gate.in")
    assert rules_of(compiled(sources, {"gate": GATE, "all": stray})) == ["unwished-name"]


def test_an_input_whose_name_ends_like_another_is_not_that_one() -> None:
    """`-r latest.in` is no word of `test.in`, though the text holds it."""
    sources = {"gate.in": "jax\n", "test.in": "pytest\n"}
    test = pin("pytest", "9.0", "-r latest.in")
    assert rules_of(compiled(sources, {"gate": GATE, "test": test})) == ["unwished-name"]


def test_a_parent_that_is_not_locked_keeps_nothing_in_the_lock() -> None:
    gate = pin("jax", "0.9", "-r gate.in") + pin("six", "1.0", "gone")
    assert rules_of(compiled({"gate.in": "jax\n"}, {"gate": gate})) == ["orphan-name"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        pytest.param("six\nSIX", "doubled-name", id="asked for twice under two spellings"),
        pytest.param('six; python_version < "3.14"', "marker", id="marker"),
        pytest.param("--index-url https://index.example/simple", "option", id="index option"),
        pytest.param("six[fast] @ https://example.org/six.whl", "url", id="url with an extra"),
        pytest.param("six @ file:///tmp/six.whl", "url", id="file url"),
        pytest.param("../six", "local-path", id="local path"),
        pytest.param("six --no-binary six", "malformed", id="option behind a name"),
    ],
)
def test_an_input_line_that_no_lock_can_hold_is_red(line: str, rule: str) -> None:
    texts = compiled({"gate.in": f"jax\n{line}\n"}, {"gate": GATE})
    assert rule in rules_of(texts)


def test_what_a_running_compile_leaves_beside_the_locks_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "requirements"
    folder.mkdir()
    for name in ("gate.in", ".gate.123.txt", "notes.md"):
        (folder / name).write_text("", encoding="utf-8")
    assert list(load_requirements(Tree(tmp_path)).texts) == ["gate.in"]


@pytest.mark.parametrize(
    ("version", "specifier", "expected"),
    [
        ("1.0.post1", "==1.0.1", None),
        ("1.0.post1", ">=1.0", None),
        ("1", "==1.0.*", True),
        ("2.1", "==2.*", True),
        ("2", "~=2.0.0", True),
        ("2.1", "~=2.0.0", False),
        ("2", "~=2", None),
        ("1!2.0", ">=1.0", None),
        ("2.0", "===2", False),
        ("2.0", ">2", False),
        ("2.0", "<=2", True),
    ],
)
def test_short_and_special_versions_compare_as_pip_would(
    version: str, specifier: str, expected: bool | None
) -> None:
    assert is_satisfied(version, specifier) is expected
