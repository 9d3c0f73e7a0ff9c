"""The gate's workflow, run for real: act, a loopback registry, an image pinned by digest.

Where act differs from the hosted runner the hosted runner counts: act runs every step on this
machine with its Python, copies the tree instead of checking it out, and marks a matrix job failed
when any of its jobs is.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import CACHE
from tests.e2e.support.containers import (
    containers_in,
    make_store,
    serve_docker_api,
    serve_registry,
)
from tests.e2e.support.images import Published, publish_base, publish_gate, set_base, set_image
from tests.e2e.support.machine import processes_naming
from tests.e2e.support.scratch import Repository, copy_tree, start_history
from tests.e2e.support.workflows import Runner, WorkflowRun, build_stand_ins

TEST = "tests/roster/test_noise_floor.py"
LOCK = "tests/roster/roster.lock"


@dataclass(frozen=True, kw_only=True)
class Site:
    """A scratch repository whose image is published, and a runner that reaches it."""

    repository: Repository
    base: str
    image: Published
    runner: Runner
    folder: Path

    def branch(self, name: str) -> Repository:
        return self.repository.clone(self.folder / name)

    def pull_request(self, branch: Repository, message: str = "change") -> WorkflowRun:
        head = branch.commit(message)
        return self.runner.pull_request(branch.root, self.base, head)


@pytest.fixture(scope="module")
def site(base_archive: Path) -> Iterator[Site]:
    folder = Path(tempfile.mkdtemp(prefix="jax-gate-act-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        port = stack.enter_context(serve_registry(folder / "registry"))
        stores = {}
        for name in ("builder", "puller"):
            run_folder = folder / f"run-{name}"
            run_folder.mkdir()
            stores[name] = make_store(
                folder / name, name=name, run_folder=run_folder, registry_port=port
            )
            stack.callback(stores[name].remove)
        repository = copy_tree(folder / "repository")
        registry = f"127.0.0.1:{port}"
        set_base(repository.root, publish_base(stores["builder"], base_archive, registry))
        image = publish_gate(stores["builder"], repository.root, registry)
        set_image(repository.root, image)
        base = start_history(repository)
        host = stack.enter_context(serve_docker_api(stores["puller"], folder / "run-puller"))
        runner = Runner(
            act=Path(str(shutil.which("act"))),
            stand_ins=build_stand_ins(Path(__file__).parent / "actions", CACHE / "actions"),
            environment=stores["puller"].environment | {"DOCKER_HOST": host},
            work=folder,
        )
        yield Site(repository=repository, base=base, image=image, runner=runner, folder=folder)
        assert containers_in(stores["puller"]) == []


@pytest.fixture(autouse=True)
def nothing_left_running(site: Site) -> Iterator[None]:
    before = set(processes_naming(site.folder))
    yield
    left = [line for line in processes_naming(site.folder) if line not in before]
    assert left == []


def rules_of(run: WorkflowRun) -> list[str]:
    return [finding["rule"] for finding in run.verdict()["findings"]]


def test_an_untouched_roster_is_green_in_the_pinned_image(site: Site) -> None:
    branch = site.branch("green")
    branch.write("NOTES.md", "nothing that counts\n")
    run = site.pull_request(branch)
    assert run.jobs == {"plan": "success", "chunk": "success", "gate": "success"}, run.text[-4000:]
    assert run.code == 0
    verdict = run.verdict()
    assert (verdict["conclusion"], verdict["is_gate"]) == ("green", True)
    assert verdict["environment"]["digest"] == site.image.digest
    assert f"planned tests passed in {site.image.reference}" in verdict["headline"]
    locked = [line for line in branch.read(LOCK).splitlines() if line.startswith("gate ")]
    assert [f"gate {test_id}" for test_id in sorted(verdict["outcomes"])] == sorted(locked)
    assert "## ✅ GREEN" in run.artifact("verdict", "summary.md")
    assert "<testsuite" in run.artifact("verdict", "junit.xml")
    environment = run.artifact("gate-chunk-1", "chunk-001/environment.json")
    assert site.image.digest in environment


def add_to_first_test(branch: Repository, line: str) -> str:
    """Put a line at the top of the first test function and return the test's name."""
    before, separator, after = branch.read(TEST).partition("\ndef test_")
    head, colon, body = after.partition(" -> None:\n")
    assert separator
    assert colon
    branch.write(TEST, f"{before}{separator}{head}{colon}    {line}\n{body}")
    return "test_" + head.partition("(")[0]


@pytest.mark.parametrize(
    ("line", "rule", "words"),
    [
        ("raise AssertionError('broken on purpose')", "test/failed", "broken on purpose"),
        ("__import__('pytest').skip('not today')", "roster/skipped", "a skip asserts nothing"),
        ("__import__('os')._exit(0)", "death/crash", "exited with 0 without finishing"),
    ],
    ids=["failing", "skipped", "os-exit"],
)
def test_a_test_that_does_not_pass_is_red(site: Site, line: str, rule: str, words: str) -> None:
    branch = site.branch(rule.replace("/", "-"))
    name = add_to_first_test(branch, line)
    run = site.pull_request(branch)
    assert run.code != 0
    assert (run.jobs["plan"], run.jobs["gate"]) == ("success", "failure"), run.text[-4000:]
    assert rule in rules_of(run)
    summary = run.artifact("verdict", "summary.md")
    assert "## ❌ RED" in summary
    assert name.replace("_", "\\_") in summary or name in summary
    assert words in summary.replace("\\_", "_")
    if rule == "test/failed":
        assert f"::error file={TEST},line=" in run.text or f"file={TEST}" in run.text
        assert f"ONLY={TEST}::{name}" in summary


def test_a_vanished_test_is_named(site: Site) -> None:
    branch = site.branch("vanished")
    branch.write(TEST, branch.read(TEST).replace("\ndef test_", "\ndef vanished_", 1))
    run = site.pull_request(branch)
    assert (run.jobs["plan"], run.jobs["gate"]) == ("failure", "failure")
    assert "roster/missing-id" in rules_of(run)
    assert "is locked and vanished" in run.artifact("verdict", "summary.md")


def test_a_removal_without_a_reason_is_red_and_with_one_is_green(site: Site) -> None:
    branch = site.branch("removal")
    (branch.root / TEST).unlink()
    kept = [line for line in branch.read(LOCK).splitlines() if TEST not in line]
    branch.write(LOCK, "".join(f"{line}\n" for line in kept))
    run = site.pull_request(branch)
    assert "roster/unexplained-removal" in rules_of(run)
    explained = branch.clone(site.folder / "removal-explained")
    explained.write("NOTES.md", "why\n")
    run = site.pull_request(explained, "say why\n\nRoster-Removed: the floor is tested elsewhere")
    assert (run.jobs["gate"], run.verdict()["conclusion"]) == ("success", "green")


def test_an_edited_lockfile_without_a_new_image_is_red(site: Site) -> None:
    branch = site.branch("edited")
    path = "requirements/gate.txt"
    branch.write(path, branch.read(path) + "# edited\n")
    run = site.pull_request(branch)
    assert run.jobs["gate"] == "failure"
    assert {"image/inputs-changed", "requirements/edited"} <= set(rules_of(run))
    assert "inputs changed: publish first" in run.artifact("verdict", "summary.md")


def test_a_malformed_digest_is_red_with_its_line(site: Site) -> None:
    branch = site.branch("malformed")
    path = "containers/cpu/image.lock"
    digest = site.image.digest.removeprefix("sha256:")
    branch.write(path, branch.read(path).replace(digest, digest.upper()))
    run = site.pull_request(branch)
    assert run.jobs["gate"] == "failure"
    finding = run.verdict()["findings"][0]
    assert (finding["rule"], finding["path"], finding["line"]) == ("image/unusable", path, 2)
    assert "lowercase" in finding["message"] + finding["fix"]


def test_an_unpublished_digest_is_red_with_the_way_out(site: Site) -> None:
    branch = site.branch("unpublished")
    path = "containers/cpu/image.lock"
    branch.write(path, branch.read(path).replace(site.image.digest, ""))
    run = site.pull_request(branch)
    assert rules_of(run)[0].startswith("image/")
    assert run.jobs["gate"] == "failure"
