"""The gate's workflow, run for real: act, a loopback registry, an image pinned by digest.

Where act differs from the hosted runner the hosted runner counts: act runs every step on this
machine with its Python, copies the tree instead of checking it out, and marks a matrix job failed
when any of its jobs is.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.support.images import Published
from tests.e2e.support.machine import processes_naming
from tests.e2e.support.scratch import Repository, copy_tree, start_history
from tests.e2e.support.workflows import Runner, WorkflowRun, build_stand_ins
from tests.e2e.support.world import CACHE, World

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
def site(world: World) -> Site:
    folder = world.folder / "act"
    folder.mkdir()
    repository = copy_tree(folder / "repository")
    world.pin(repository.root)
    runner = Runner(
        act=Path(str(shutil.which("act"))),
        stand_ins=build_stand_ins(Path(__file__).parent / "actions", CACHE / "actions"),
        environment=world.puller.environment | {"DOCKER_HOST": world.docker_host},
        work=folder,
    )
    base = start_history(repository)
    return Site(repository=repository, base=base, image=world.image, runner=runner, folder=folder)


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


def test_a_failing_test_is_annotated_and_can_be_repeated(site: Site) -> None:
    branch = site.branch("failing")
    name = add_to_first_test(branch, "raise AssertionError('broken on purpose')")
    run = site.pull_request(branch)
    assert (run.code != 0, run.jobs["plan"], run.jobs["gate"]) == (True, "success", "failure")
    failed = [finding for finding in run.verdict()["findings"] if finding["rule"] == "test/failed"]
    line = branch.read(TEST).splitlines().index("    raise AssertionError('broken on purpose')") + 1
    assert {(finding["path"], finding["line"]) for finding in failed} == {(TEST, line)}
    assert f"::error file={TEST},line={line}," in run.text
    summary = run.artifact("verdict", "summary.md")
    assert "## ❌ RED (test)" in summary
    assert "broken on purpose" in summary
    command = re.findall(rf"ONLY=\S*{name}\S* make ci-local", summary)[0]
    repeated = subprocess.run(
        ["sh", "-c", command],
        cwd=branch.root,
        env=dict(site.runner.environment),
        capture_output=True,
        text=True,
        timeout=120,
    )
    verdict = json.loads(branch.read(".ci-tools/results/latest/verdict.json"))
    assert repeated.returncode != 0
    assert (verdict["conclusion"], verdict["is_gate"]) == ("partial-red", False)
    assert verdict["environment"]["digest"] == site.image.digest
    assert [finding["test_id"] for finding in verdict["findings"]] == [failed[0]["test_id"]]


@pytest.mark.parametrize(
    ("line", "rule", "words"),
    [
        ("__import__('pytest').skip('not today')", "roster/skipped", "a skip asserts nothing"),
        ("__import__('os')._exit(0)", "death/crash", "exited with 0 without finishing"),
    ],
    ids=["skipped", "os-exit"],
)
def test_a_test_that_does_not_pass_is_red(site: Site, line: str, rule: str, words: str) -> None:
    branch = site.branch(rule.replace("/", "-"))
    name = add_to_first_test(branch, line)
    run = site.pull_request(branch)
    assert (run.code != 0, run.jobs["plan"], run.jobs["gate"]) == (True, "success", "failure")
    assert rule in rules_of(run)
    summary = run.artifact("verdict", "summary.md").replace("\\_", "_")
    assert "## ❌ RED" in summary
    assert name in summary
    assert words in summary


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
