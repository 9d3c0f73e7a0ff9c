"""`python3 -S -m ci_tools image ...` as a process: what it prints and its exit codes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ci_tools.errors import ExitCode
from ci_tools.image.inputs import compute_inputs
from ci_tools.image.lock import load_image_lock, render_image_lock
from ci_tools.tree import Tree, find_tree

REPOSITORY = find_tree(Path(__file__).parent)
DIGEST = "sha256:" + "0a" * 32


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    shutil.copytree(REPOSITORY.dockerfile.parent, tree.dockerfile.parent)
    tree.requirements.mkdir()
    tree.gate_requirements.write_text("# nothing\n", encoding="utf-8")
    tree.pyproject.write_text('[tool.ci_tools]\npython = "3.13"\n', encoding="utf-8")
    write_lock(tree, digest="", inputs="")
    return tree


def write_lock(tree: Tree, *, digest: str, inputs: str) -> None:
    lock = replace(load_image_lock(REPOSITORY), digest=digest, inputs=inputs)
    tree.image_lock.write_text(render_image_lock(lock), encoding="utf-8")


def run_image(
    tree: Tree, *words: str, path: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    kept = {key: os.environ[key] for key in ("HOME", "PATH") if key in os.environ}
    environment = {**kept, "PYTHONPATH": str(REPOSITORY.root), **variables}
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [sys.executable, "-S", "-m", "ci_tools", "image", *words],
        cwd=tree.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_inputs_prints_the_hash_alone(tree: Tree) -> None:
    done = run_image(tree, "inputs")
    assert (done.returncode, done.stderr) == (ExitCode.GREEN, "")
    assert done.stdout == compute_inputs(tree, None).hash + "\n"
    other = run_image(tree, "inputs", BASE_IMAGE="localhost/base:x")
    assert other.stdout == compute_inputs(tree, "localhost/base:x").hash + "\n"


def test_check_is_red_while_nothing_is_published(tree: Tree) -> None:
    done = run_image(tree, "check", path="/nowhere")
    assert done.returncode == ExitCode.RED
    assert "containers/cpu/image.lock:4: no image has been published yet" in done.stdout
    assert ".github/workflows/image.yml" in done.stdout


def test_check_without_an_engine_compares_tree_and_lock(tree: Tree) -> None:
    write_lock(tree, digest=DIGEST, inputs=compute_inputs(tree, None).hash)
    done = run_image(tree, "check", "--no-engine", path="/nowhere")
    assert done.returncode == ExitCode.GREEN
    assert "image not looked at" in done.stdout
    tree.gate_requirements.write_text("# another\n", encoding="utf-8")
    done = run_image(tree, "check", "--no-engine", path="/nowhere")
    assert done.returncode == ExitCode.RED
    assert "inputs changed: publish first" in done.stdout


def test_check_never_takes_an_image_it_cannot_see_for_the_right_one(tree: Tree) -> None:
    write_lock(tree, digest=DIGEST, inputs=compute_inputs(tree, None).hash)
    done = run_image(tree, "check", path="/nowhere")
    assert done.returncode == ExitCode.INFRASTRUCTURE
    assert "no container engine can serve" in done.stderr
    assert "--no-engine" in done.stderr


def test_a_malformed_digest_is_named_with_file_and_line(tree: Tree) -> None:
    write_lock(tree, digest=DIGEST.upper(), inputs="1b" * 32)
    done = run_image(tree, "check", "--no-engine")
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("error: containers/cpu/image.lock:4: digest: 'SHA256:0A")


def test_a_missing_lock_is_named(tree: Tree) -> None:
    tree.image_lock.unlink()
    done = run_image(tree, "check", "--no-engine")
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("error: containers/cpu/image.lock: the image lock cannot be read")


@pytest.mark.parametrize(
    ("words", "variables", "message"),
    [
        pytest.param(["exec", "--", "true"], {"ENGINE": "x"}, "unknown engine 'x'", id="unknown"),
        pytest.param(
            ["exec", "--engine", "venv", "--", "true"],
            {"GITHUB_ACTIONS": "true"},
            "refused in CI",
            id="venv in CI",
        ),
        pytest.param(["build", "--engine", "venv"], {}, "holds no image", id="venv builds"),
        pytest.param(["exec"], {}, "CMD", id="no command"),
        pytest.param(["exec", "--memory", "x", "--", "true"], {}, "--memory", id="no size"),
    ],
)
def test_usage_errors(
    tree: Tree, words: list[str], variables: dict[str, str], message: str
) -> None:
    done = run_image(tree, *words, **variables)
    assert done.returncode == ExitCode.USAGE
    assert message in done.stderr
    assert done.stdout == ""


def test_exec_passes_both_streams_and_the_exit_code(tree: Tree) -> None:
    script = "echo out; echo err >&2; exit 126"
    done = run_image(tree, "exec", "--", "sh", "-c", script, ENGINE="venv")
    assert (done.returncode, done.stdout) == (126, "out\n")
    assert done.stderr.endswith("err\n")
    assert "lockfile environment, not the image" in done.stderr


def test_exec_maps_a_command_that_is_not_there_to_infrastructure(tree: Tree) -> None:
    done = run_image(tree, "exec", "--", "no-such-program", ENGINE="venv")
    assert done.returncode == ExitCode.INFRASTRUCTURE
    assert "cannot start `no-such-program` in the environment" in done.stderr
