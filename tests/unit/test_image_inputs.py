"""The inputs hash moves with each of its parts and with nothing else; the checks that use it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.errors import UsageError
from ci_tools.findings import Kind
from ci_tools.image.check import ImageMismatchError, check_image, raise_findings
from ci_tools.image.inputs import Inputs, compute_inputs, hash_inputs, parse_base_image
from ci_tools.image.lock import ImageLock, key_line, render_image_lock
from ci_tools.tree import Tree, find_tree

BASE = "docker.io/library/python@sha256:" + "0c" * 32
DOCKERFILE = f"# text\nARG BASE_IMAGE={BASE}\nFROM ${{BASE_IMAGE}}\n"
INPUTS = Inputs(hash="1b" * 32, base_image=BASE, is_default_base=True)
LOCK = ImageLock(
    name="ghcr.io/owner/gate-cpu",
    digest="sha256:" + "0a" * 32,
    media="index",
    platform="linux/amd64",
    inputs=INPUTS.hash,
    published="",
)
UNPUBLISHED = replace(LOCK, digest="", inputs="")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.dockerfile.parent.mkdir(parents=True)
    tree.requirements.mkdir()
    tree.dockerfile.write_text(DOCKERFILE, encoding="utf-8")
    tree.gate_requirements.write_text("jax==1\n", encoding="utf-8")
    return tree


def test_the_hash_is_the_same_for_the_same_inputs(tree: Tree) -> None:
    first = compute_inputs(tree, None)
    (tree.root / "elsewhere.py").write_text("x = 1\n", encoding="utf-8")
    assert compute_inputs(tree, None) == first
    assert first.base_image == BASE
    assert first.is_default_base


def test_each_input_moves_the_hash(tree: Tree) -> None:
    first = compute_inputs(tree, None)
    other_base = compute_inputs(tree, "localhost/base:x")
    tree.gate_requirements.write_text("jax==2\n", encoding="utf-8")
    other_lock = compute_inputs(tree, None)
    tree.gate_requirements.write_text("jax==1\n", encoding="utf-8")
    tree.dockerfile.write_text(DOCKERFILE + "# more\n", encoding="utf-8")
    other_dockerfile = compute_inputs(tree, None)
    hashes = {i.hash for i in (first, other_base, other_lock, other_dockerfile)}
    assert len(hashes) == 4
    assert not other_base.is_default_base


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_bytes_that_move_between_parts_move_the_hash(left: bytes, right: bytes) -> None:
    if left and left + right != right + left:
        assert hash_inputs(left, right, "b") != hash_inputs(right, left, "b")
    if left:
        assert hash_inputs(left + right, b"", "b") != hash_inputs(b"", left + right, "b")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("FROM python\n", id="none"),
        pytest.param("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n", id="no default"),
        pytest.param("# ARG BASE_IMAGE=x\n", id="in a comment"),
        pytest.param("ARG BASE_IMAGE=a\nARG BASE_IMAGE=b\n", id="two"),
    ],
)
def test_a_dockerfile_without_one_default_base_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"Dockerfile:1: expected one `ARG BASE_IMAGE="):
        parse_base_image(text, "Dockerfile")


@pytest.mark.parametrize("name", ["dockerfile", "gate_requirements"])
def test_a_missing_input_is_named(tree: Tree, name: str) -> None:
    path: Path = getattr(tree, name)
    path.unlink()
    with pytest.raises(UsageError) as caught:
        compute_inputs(tree, None)
    assert caught.value.path == tree.relative(path)


def test_the_base_of_this_repository_is_pinned_by_digest_alone() -> None:
    inputs = compute_inputs(find_tree(Path(__file__).parent), None)
    name, _, digest = inputs.base_image.partition("@")
    assert digest.startswith("sha256:")
    assert ":" not in name.rpartition("/")[2]


def test_a_published_image_of_the_tree_is_green() -> None:
    assert check_image(LOCK, INPUTS, None) == []
    assert check_image(LOCK, INPUTS, INPUTS.hash) == []


@pytest.mark.parametrize(
    ("lock", "inputs", "label", "rules"),
    [
        pytest.param(UNPUBLISHED, INPUTS, None, ["unpublished"], id="unpublished"),
        pytest.param(
            LOCK, replace(INPUTS, hash="2c" * 32), None, ["inputs-changed"], id="lockfile edited"
        ),
        pytest.param(LOCK, INPUTS, "2c" * 32, ["label-differs"], id="another image"),
        pytest.param(LOCK, INPUTS, "", ["label-differs"], id="no label"),
        pytest.param(
            LOCK,
            replace(INPUTS, base_image="python:3.13"),
            None,
            ["base-unpinned"],
            id="base by tag",
        ),
        pytest.param(
            LOCK,
            replace(INPUTS, hash="2c" * 32),
            "3d" * 32,
            ["inputs-changed", "label-differs"],
            id="both",
        ),
    ],
)
def test_what_does_not_belong_together_is_red(
    lock: ImageLock, inputs: Inputs, label: str | None, rules: list[str]
) -> None:
    findings = check_image(lock, inputs, label)
    assert [finding.rule for finding in findings] == [f"image/{rule}" for rule in rules]
    assert all(finding.kind is Kind.IMAGE and finding.fix for finding in findings)


def test_a_base_that_the_caller_names_need_not_be_pinned() -> None:
    inputs = replace(INPUTS, base_image="localhost/base:x", is_default_base=False)
    assert check_image(LOCK, inputs, None) == []


def test_the_ways_out_are_in_the_words() -> None:
    unpublished = check_image(UNPUBLISHED, INPUTS, None)[0]
    assert ".github/workflows/image.yml" in unpublished.fix
    assert "make ci-local" in unpublished.fix
    changed = check_image(LOCK, replace(INPUTS, hash="2c" * 32), None)[0]
    assert changed.message.startswith("inputs changed: publish first")


def test_findings_point_at_the_lines_of_the_rendered_lock() -> None:
    text = render_image_lock(UNPUBLISHED)
    assert check_image(UNPUBLISHED, INPUTS, None)[0].line == key_line(text, "digest")
    differs = check_image(LOCK, INPUTS, "2c" * 32)[0]
    assert differs.line == key_line(text, "inputs")


def test_a_caller_that_needs_an_image_gets_an_error_of_exit_code_1() -> None:
    with pytest.raises(ImageMismatchError) as caught:
        raise_findings(check_image(UNPUBLISHED, INPUTS, None))
    assert caught.value.exit_code == 1
    raise_findings([])
