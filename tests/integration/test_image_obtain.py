"""Choosing an engine, with programs named docker and podman that behave as they are told."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ci_tools.errors import InfrastructureError, UsageError
from ci_tools.image.check import ImageMismatchError
from ci_tools.image.engines import images
from ci_tools.image.engines.obtain import obtain_environment
from ci_tools.image.identity import ENFORCED, LOCKFILE_LABEL, EnvironmentRequest
from ci_tools.image.inputs import compute_inputs
from ci_tools.image.lock import load_image_lock, render_image_lock
from ci_tools.tree import Tree, find_tree

DIGEST = "sha256:" + "0a" * 32
PODMAN = """\
#!{python} -S
import json, os, pathlib, sys, time
rules = json.loads(pathlib.Path({rules!r}).read_text())
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if words[0] == "info":
    print(json.dumps({{"version": {{"Version": "4.9.0"}},
                       "host": {{"security": {{"rootless": False}}}}}}))
elif words[:2] == ["image", "inspect"]:
    image = rules["images"].get(words[2])
    if image is None:
        sys.exit("Error: no such image")
    print(json.dumps([image]))
elif words[0] == "run":
    for word in rules["refused"]:
        if word in words:
            print("warming up", "Error: " + rules["refused"][word], sep="\\n", file=sys.stderr)
            sys.exit(126)
    results = [w for w in words if w.endswith("dst=/results")][0].split(",")[1][4:]
    pathlib.Path(results, "answer").write_text(words[-1])
    print(json.dumps({{"python": "3.13", "results": "", "tree": True, "tree_writable": False,
                       "interfaces": ["lo"], "memory_limit": rules["limit"]}}))
elif "127.0.0.1" in words[-1]:
    print(rules["first_words"], flush=True)
    time.sleep(rules["pull_seconds"])
    sys.exit("Error: it took " + str(rules["pull_seconds"]))
else:
    print("Trying", "Error: looking up the host: no such host", sep="\\n", file=sys.stderr)
    sys.exit(125)
"""
DOCKER = "#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n"


class Machine:
    """A tree, and what docker and podman do on it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.rules = folder / "rules.json"
        self.log = folder / "log"
        self.tree = Tree(folder / "tree")
        source = find_tree(Path(__file__).parent)
        shutil.copytree(source.dockerfile.parent, self.tree.dockerfile.parent)
        self.tree.requirements.mkdir()
        self.tree.gate_requirements.write_text("# nothing\n", encoding="utf-8")
        self.tree.pyproject.write_text('[tool.ci_tools]\npython = "3.13"\n', encoding="utf-8")
        self.reports: list[str] = []
        text = PODMAN.format(python=sys.executable, rules=str(self.rules), log=str(self.log))
        self.install("podman", text)
        self.install("docker", DOCKER)
        self.behave()
        self.write_lock(digest="", inputs="")
        monkeypatch.setenv("PATH", f"{self.programs}:{os.environ['PATH']}")
        monkeypatch.delenv("DOCKER_HOST", raising=False)

    def install(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def behave(
        self,
        images: dict[str, object] | None = None,
        refused: dict[str, str] | None = None,
        limit: int | None = 512 * 1024**2,
        pull: tuple[str, float] = ("", 0.0),
    ) -> None:
        rules = {
            "images": images or {},
            "refused": refused or {},
            "limit": limit,
            "first_words": pull[0],
            "pull_seconds": pull[1],
        }
        self.rules.write_text(json.dumps(rules), encoding="utf-8")

    def write_lock(self, digest: str, inputs: str) -> None:
        lock = load_image_lock(find_tree(Path(__file__).parent))
        lock = replace(lock, digest=digest, inputs=inputs)
        self.tree.image_lock.write_text(render_image_lock(lock), encoding="utf-8")

    def publish(self, *, label: str | None = None, platform: str = "amd64") -> str:
        """Publish the tree's inputs; the image is in podman's store."""
        inputs = compute_inputs(self.tree, None).hash
        self.write_lock(DIGEST, inputs)
        reference = load_image_lock(self.tree).reference
        image = {
            "Id": "ab" * 32,
            "RepoDigests": [reference],
            "Os": "linux",
            "Architecture": platform,
            "Labels": {"io.jax-gate.inputs": inputs if label is None else label},
        }
        self.behave(images={reference: image})
        return reference

    def request(self, engine: str | None = None, **changes: bool) -> EnvironmentRequest:
        values = {"allow_local_build": True, "in_ci": False, **changes}
        return EnvironmentRequest(
            tree=self.tree,
            engine=engine,
            base_image=None,
            ca_bundle=None,
            report=self.reports.append,
            **values,
        )

    def commands(self, first: str) -> list[list[str]]:
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [words for words in map(json.loads, lines) if words[0] == first]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_first_engine_that_can_get_the_image_serves(machine: Machine) -> None:
    reference = machine.publish()
    ready = obtain_environment(machine.request())
    assert ready.identity.engine == "podman"
    assert ready.identity.kind == "published"
    assert f"{ready.identity.name}@{ready.identity.digest}" == reference
    assert ready.identity.label == ""
    assert dict(ready.identity.limits) == dict.fromkeys(("memory", "network", "tree"), ENFORCED)
    assert [over.engine for over in ready.passed_over] == ["docker"]
    assert "no daemon answers" in ready.passed_over[0].reason
    assert machine.commands("pull") == []
    assert all(reference in words for words in machine.commands("run"))


def test_a_base_out_of_reach_leads_to_the_lockfile_environment_at_once(machine: Machine) -> None:
    began = time.monotonic()
    ready = obtain_environment(machine.request())
    assert time.monotonic() - began < 60
    assert ready.identity.kind == "lockfile"
    assert ready.identity.label == LOCKFILE_LABEL
    assert ready.identity.inputs == compute_inputs(machine.tree, None).hash
    assert ready.identity.limits["memory"] != ENFORCED
    reasons = {over.engine: over.reason for over in ready.passed_over}
    assert list(reasons) == ["docker", "podman"]
    assert "cannot pull docker.io/library/python@sha256:" in reasons["podman"]
    assert reasons["podman"].endswith("no such host")
    assert any(LOCKFILE_LABEL in line for line in machine.reports)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Return a port that takes no further connection and refuses none."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("first_words", "pull_seconds", "reason"),
    [
        pytest.param("Trying to pull", 300.0, "the registry does not answer", id="nothing begins"),
        pytest.param("Copying blob x", 2.0, "it took 2.0", id="a mirror serves it"),
    ],
)
def test_a_silent_registry_gets_a_moment_to_begin(
    machine: Machine,
    silent_port: int,
    monkeypatch: pytest.MonkeyPatch,
    first_words: str,
    pull_seconds: float,
    reason: str,
) -> None:
    for name in ("CONNECT_SECONDS", "BEGIN_SECONDS"):
        monkeypatch.setattr(images, name, 1.0)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    machine.behave(pull=(first_words, pull_seconds))
    request = replace(machine.request("podman"), base_image=f"127.0.0.1:{silent_port}/base")
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match=reason):
        obtain_environment(request)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("engine", "words"),
    [("docker", "no daemon answers"), ("podman", "no such host")],
)
def test_a_named_engine_never_moves_on(machine: Machine, engine: str, words: str) -> None:
    with pytest.raises(InfrastructureError, match=words) as caught:
        obtain_environment(machine.request(engine))
    assert caught.value.fix
    assert not any("passed over" in line for line in machine.reports)


def test_ci_takes_no_lockfile_environment(machine: Machine) -> None:
    machine.publish()
    machine.behave()
    with pytest.raises(UsageError, match="refused in CI"):
        obtain_environment(machine.request("venv", in_ci=True))
    with pytest.raises(InfrastructureError, match=r"no engine can serve \(docker: .*podman: "):
        obtain_environment(machine.request(in_ci=True))


def test_ci_builds_nothing(machine: Machine) -> None:
    with pytest.raises(ImageMismatchError, match="no image has been published"):
        obtain_environment(machine.request(in_ci=True, allow_local_build=False))
    machine.publish()
    machine.tree.gate_requirements.write_text("# another\n", encoding="utf-8")
    with pytest.raises(ImageMismatchError, match="inputs changed: publish first"):
        obtain_environment(machine.request(in_ci=True, allow_local_build=False))
    assert machine.commands("build") == []


@pytest.mark.parametrize("engine", [None, "podman"])
def test_an_image_that_is_not_what_the_lock_says_stops_everything(
    machine: Machine, engine: str | None
) -> None:
    machine.publish(label="2c" * 32)
    with pytest.raises(ImageMismatchError, match="says it was built from inputs 2c2c"):
        obtain_environment(machine.request(engine))
    assert machine.commands("run") == []


def test_an_image_for_another_machine_is_passed_over(machine: Machine) -> None:
    machine.publish(platform="arm64")
    with pytest.raises(InfrastructureError, match="is for linux/arm64, not linux/amd64"):
        obtain_environment(machine.request("podman"))


def test_a_memory_limit_that_the_engine_refuses_is_given_up_aloud(machine: Machine) -> None:
    reference = machine.publish()
    images = json.loads(machine.rules.read_text(encoding="utf-8"))["images"]
    machine.behave(images, refused={"--memory": "no cgroup memory controller"})
    ready = obtain_environment(machine.request("podman"))
    assert ready.identity.limits["memory"] == "Error: no cgroup memory controller"
    assert any("memory limit is not enforced" in line for line in machine.reports)
    assert "--memory" not in machine.commands("run")[-1]
    assert reference in images


def test_a_memory_limit_that_nobody_sees_is_said(machine: Machine) -> None:
    machine.publish()
    images = json.loads(machine.rules.read_text(encoding="utf-8"))["images"]
    machine.behave(images, limit=None)
    ready = obtain_environment(machine.request("podman"))
    assert "no control group" in ready.identity.limits["memory"]


def test_a_failure_that_is_not_about_memory_never_lifts_the_limit(machine: Machine) -> None:
    machine.publish()
    images = json.loads(machine.rules.read_text(encoding="utf-8"))["images"]
    machine.behave(images, refused={"--memory": "connection reset by peer"})
    with pytest.raises(InfrastructureError, match="no container starts: Error: connection reset"):
        obtain_environment(machine.request("podman"))
    assert len(machine.commands("run")) == 2
    assert all("--memory" in words for words in machine.commands("run"))


def test_a_docker_that_is_podman_is_passed_over(machine: Machine) -> None:
    machine.publish()
    machine.install("docker", "#!/bin/sh\necho podman version 4.9.0\n")
    ready = obtain_environment(machine.request())
    assert ready.identity.engine == "podman"
    assert "podman under another name" in ready.passed_over[0].reason
