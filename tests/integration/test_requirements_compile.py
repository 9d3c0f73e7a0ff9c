"""The real pip-compile on an index of wheels built here, and the check of what it wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ci_tools.errors import InfrastructureError, UsageError
from ci_tools.provision.interpreters import HOST_VERSION
from ci_tools.provision.venvs import ensure_venv
from ci_tools.requirements.check import Requirements, check_texts, load_requirements
from ci_tools.requirements.compile import compile_all
from ci_tools.requirements.parse import parse_lock
from ci_tools.tree import Tree
from tests.integration.wheels import build_wheel, hash_of

ROOT = Path(__file__).resolve().parents[2]
INPUTS = {"gate.in": "alpha\n", "test.in": "-c gate.txt\ngamma\nbeta\n"}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Two inputs, the second bounded by the first's lock; `alpha` needs `beta`."""
    tree = Tree(tmp_path)
    tree.requirements.mkdir()
    shutil.copy(ROOT / "requirements" / "locking.txt", tree.requirements)
    environments = ROOT / ".ci-tools" / "venvs"
    environments.mkdir(parents=True, exist_ok=True)
    tree.state.mkdir()
    (tree.state / "venvs").symlink_to(environments)
    for name, text in INPUTS.items():
        (tree.requirements / name).write_text(text, encoding="utf-8")
    build_wheel(tmp_path / "wheels", "alpha", "1.0", ["beta"])
    build_wheel(tmp_path / "wheels", "beta", "1.0")
    build_wheel(tmp_path / "wheels", "gamma", "1.0")
    ensure_venv(
        name="locking",
        lock=tree.requirements / "locking.txt",
        python_version=HOST_VERSION,
        state=tree.state,
        report=lambda line: None,
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    compile_all(tree, HOST_VERSION, [], lambda line: None)
    return tree


def compile_again(tree: Tree, *packages: str, is_upgrade: bool = False) -> list[str]:
    return compile_all(tree, HOST_VERSION, packages, lambda line: None, is_upgrade=is_upgrade)


def versions(tree: Tree, stem: str) -> dict[str, str]:
    text = (tree.requirements / f"{stem}.txt").read_text(encoding="utf-8")
    return {pin.name: pin.version for pin in parse_lock(text).pins}


def rules_of(tree: Tree) -> list[str]:
    given = load_requirements(tree)
    texts = {name: text for name, text in given.texts.items() if name != "locking.txt"}
    found = check_texts(Requirements(folder=given.folder, texts=texts))
    return [finding.rule for finding in found]


def test_a_compiled_lock_is_green_hashed_and_says_nothing_of_this_machine(tree: Tree) -> None:
    assert rules_of(tree) == []
    text = tree.gate_requirements.read_text(encoding="utf-8")
    assert hash_of(tree.root / "wheels" / "alpha-1.0-py3-none-any.whl") in text
    assert "make lock" in text
    assert str(tree.root) not in text
    assert "--find-links" not in text
    assert compile_again(tree) == []


def test_a_plain_compile_keeps_versions_and_a_named_package_moves_alone(tree: Tree) -> None:
    for name in ("beta", "gamma"):
        build_wheel(tree.root / "wheels", name, "2.0")
    assert compile_again(tree) == []
    assert compile_again(tree, "Gamma") == ["test.txt"]
    assert versions(tree, "test") == {"beta": "1.0", "gamma": "2.0"}
    assert versions(tree, "gate") == {"alpha": "1.0", "beta": "1.0"}
    assert rules_of(tree) == []


def test_an_upgrade_moves_everything_and_bounded_locks_follow(tree: Tree) -> None:
    for name in ("beta", "gamma"):
        build_wheel(tree.root / "wheels", name, "2.0")
    assert compile_again(tree, is_upgrade=True) == ["gate.txt", "test.txt"]
    assert versions(tree, "gate") == {"alpha": "1.0", "beta": "2.0"}
    assert versions(tree, "test") == {"beta": "2.0", "gamma": "2.0"}
    assert rules_of(tree) == []


def test_a_name_that_is_taken_out_leaves_with_what_only_it_needed(tree: Tree) -> None:
    (tree.requirements / "gate.in").write_text("gamma\n", encoding="utf-8")
    assert "requirements/input-changed" in rules_of(tree)
    compile_again(tree)
    assert versions(tree, "gate") == {"gamma": "1.0"}
    assert rules_of(tree) == []


def test_an_input_without_a_solution_leaves_the_old_lock(tree: Tree) -> None:
    before = tree.gate_requirements.read_bytes()
    (tree.requirements / "gate.in").write_text("alpha>=9\n", encoding="utf-8")
    with pytest.raises(InfrastructureError, match=r"pip-compile failed on gate\.in"):
        compile_again(tree)
    assert tree.gate_requirements.read_bytes() == before
    assert not list(tree.requirements.glob(".*"))


def test_a_package_that_no_lock_holds_is_a_usage_error(tree: Tree) -> None:
    with pytest.raises(UsageError, match="'delta' is in no lock"):
        compile_again(tree, "delta")
