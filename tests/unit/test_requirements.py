"""Every rule that holds a lockfile against its input has an input that makes it red."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.findings import Kind
from ci_tools.requirements.check import Requirements, check_requirements, check_texts, digest_of
from ci_tools.requirements.compile import order_inputs
from ci_tools.requirements.parse import parse_input, parse_lock, render_header
from ci_tools.requirements.versions import is_satisfied
from ci_tools.tree import Tree

HASH = "sha256:" + "a1" * 32
INPUT = "# comment\njax>=0.4\nnumpy\n"
LOCK = f"""\
jax==0.9.2 \\
    --hash={HASH} \\
    --hash=sha256:{"b2" * 32}
    # via -r gate.in
numpy==2.1.0 \\
    --hash={HASH}
    # via
    #   -r gate.in
    #   jax
opt-einsum==3.4.0 \\
    --hash={HASH}
    # via jax
"""


def texts_of(source: str = INPUT, lock: str = LOCK, **others: str) -> dict[str, str]:
    texts = {"gate.in": source, **{name.replace("__", "."): text for name, text in others.items()}}
    return texts | {"gate.txt": render_header(digest_of(texts, "gate"), lock) + lock}


def rules_of(texts: dict[str, str]) -> list[str]:
    findings = check_texts(Requirements(folder="requirements", texts=texts))
    assert all(finding.line and finding.fix and finding.path for finding in findings)
    return [finding.rule.removeprefix("requirements/") for finding in findings]


def test_a_lock_of_its_input_is_green() -> None:
    assert rules_of(texts_of()) == []


@pytest.mark.parametrize(
    ("texts", "rule"),
    [
        pytest.param(
            texts_of() | {"gate.in": INPUT + "scipy\n"}, "input-changed", id="input changed"
        ),
        pytest.param(
            {name: t for name, t in texts_of().items() if name != "gate.in"},
            "missing-input",
            id="no input",
        ),
        pytest.param({"gate.in": INPUT}, "missing-lock", id="no lock"),
        pytest.param({}, "missing-input", id="nothing at all"),
        pytest.param(
            texts_of(
                lock=LOCK.replace(f" \\\n    --hash={HASH}\n    # via jax", "\n    # via jax")
            ),
            "missing-hash",
            id="no hash",
        ),
        pytest.param(
            texts_of(lock=LOCK.replace("a1a1", "A1A1")), "malformed-hash", id="upper-case hash"
        ),
        pytest.param(
            texts_of(lock=LOCK.replace(HASH, "md5:" + "0" * 32)), "malformed-hash", id="md5"
        ),
        pytest.param(
            texts_of(lock=LOCK + "six @ https://example.org/six-1.0.whl\n"), "url", id="url"
        ),
        pytest.param(texts_of(lock=LOCK + "git+https://example.org/x\n"), "url", id="vcs"),
        pytest.param(texts_of(lock=LOCK + "-e .\n"), "editable", id="editable"),
        pytest.param(texts_of(lock=LOCK + "--editable=.\n"), "editable", id="long editable"),
        pytest.param(texts_of(lock=LOCK + "./six-1.0-py3-none-any.whl\n"), "local-path", id="path"),
        pytest.param(texts_of(lock=LOCK + "six-1.0.tar.gz\n"), "local-path", id="archive"),
        pytest.param(
            texts_of(lock="--index-url https://index.example/simple\n" + LOCK), "option", id="index"
        ),
        pytest.param(texts_of(lock="--find-links wheels\n" + LOCK), "option", id="find-links"),
        pytest.param(texts_of(lock="--trusted-host h\n" + LOCK), "option", id="trusted-host"),
        pytest.param(texts_of(lock="-f wheels\n" + LOCK), "option", id="short find-links"),
        pytest.param(
            texts_of(source=INPUT + "scipy\n"), "unlocked-name", id="name only in the input"
        ),
        pytest.param(texts_of(source="jax>=0.4\n"), "unwished-name", id="name only in the lock"),
        pytest.param(
            texts_of(lock=LOCK + f"six==1.16.0 \\\n    --hash={HASH}\n"),
            "orphan-name",
            id="nothing needs it",
        ),
        pytest.param(texts_of(source="jax>=1.0\nnumpy\n"), "unsatisfied", id="unsatisfied"),
        pytest.param(texts_of(lock=LOCK + LOCK), "doubled-name", id="doubled"),
        pytest.param(texts_of(lock=LOCK + "six>=1.0\n"), "malformed", id="not pinned"),
        pytest.param(texts_of(source=INPUT + "!!\n"), "malformed", id="input is no requirement"),
        pytest.param(texts_of(source=INPUT + "-e .\n"), "editable", id="editable input"),
        pytest.param(
            texts_of(source=INPUT + "-c other.txt\n"), "missing-include", id="missing include"
        ),
    ],
)
def test_a_broken_rule_is_red(texts: dict[str, str], rule: str) -> None:
    assert rule in rules_of(texts)


def test_a_changed_constraint_makes_the_lock_stale() -> None:
    texts = {"gate.in": "-c base.txt\njax\n", "base.txt": "jax==0.9.2\n", "base.in": "jax\n"}
    before = digest_of(texts, "gate")
    assert digest_of(texts | {"base.txt": "jax==0.9.3\n"}, "gate") != before


def test_comments_and_spacing_do_not_make_a_lock_stale() -> None:
    texts = texts_of()
    assert rules_of(texts | {"gate.in": "jax>=0.4   # why\n\n\nnumpy\n"}) == []


def test_only_the_gates_lock_is_of_kind_image() -> None:
    findings = check_texts(
        Requirements(folder="requirements", texts=texts_of() | {"test.in": "pytest\n"})
    )
    assert [(f.kind, f.path) for f in findings] == [(Kind.INFRASTRUCTURE, "requirements/test.in")]


@pytest.mark.parametrize(
    ("version", "specifier", "expected"),
    [
        ("0.9.2", "", True),
        ("0.9.2", ">=0.9,<1", True),
        ("0.10.0", ">=0.9", True),
        ("0.9.2", ">=0.10", False),
        ("1.0", "==1.0.0", True),
        ("1.0", "!=1.0.0", False),
        ("1.4.5", "~=1.4", True),
        ("2.0", "~=1.4", False),
        ("1.5.0", "~=1.4.2", False),
        ("1.4.9", "==1.4.*", True),
        ("1.5", "!=1.4.*", True),
        ("1.0rc1", ">=1.0", None),
        ("1.0rc1", ">=1.0,<0.5", None),
        ("2.0", ">=1.0rc1,<1.5", False),
        ("1.0+cpu", "==1.0", None),
        ("1.0", "=>1", None),
    ],
)
def test_conditions_decide_only_what_numbers_decide(
    version: str, specifier: str, expected: bool | None
) -> None:
    assert is_satisfied(version, specifier) is expected


def test_a_lock_that_others_include_is_compiled_first() -> None:
    texts = {"a.in": "-c gate.txt\nx\n", "gate.in": "jax\n", "b.in": "-r a.in\n"}
    assert order_inputs(texts) == ["gate", "a", "b"]


def test_inputs_that_include_each_other_end() -> None:
    texts = {"a.in": "-r b.in\n", "b.in": "-r a.in\n"}
    assert sorted(order_inputs(texts)) == ["a", "b"]
    assert digest_of(texts, "a")


@given(st.text(max_size=200))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    parse_input(text)
    parse_lock(text)


@given(st.integers(min_value=0, max_value=LOCK.count("\n") + 1))
def test_a_lock_without_any_one_of_its_lines_is_red(dropped: int) -> None:
    texts = texts_of()
    lines = texts["gate.txt"].splitlines(keepends=True)
    rest = "".join(lines[:dropped] + lines[dropped + 1 :])
    assert rules_of(texts | {"gate.txt": rest})


def test_a_hash_that_was_exchanged_by_hand_is_red() -> None:
    texts = texts_of()
    assert rules_of(texts | {"gate.txt": texts["gate.txt"].replace("b2b2", "b3b2")}) == ["edited"]


def test_the_projects_own_locks_are_green() -> None:
    assert check_requirements(Tree(Path(__file__).resolve().parents[2])) == []
