"""Command lines, engine answers and choices: everything about engines that is only values."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ci_tools.errors import InfrastructureError, UsageError
from ci_tools.image.engines.build import build_labels, local_tag, progress_words
from ci_tools.image.engines.dialect import Dialect, build_arguments, mount, run_arguments
from ci_tools.image.engines.docker import explain_silence, read_version
from ci_tools.image.engines.images import (
    ImageFacts,
    is_silent,
    parse_image_facts,
    registry_address,
    shorten_reason,
)
from ci_tools.image.engines.inside import inside_variables, read_report
from ci_tools.image.engines.obtain import choose_engines
from ci_tools.image.engines.podman import read_info
from ci_tools.image.engines.survey import complaint, find_flaws, is_about_memory, is_limited
from ci_tools.image.identity import Ending, Launch
from ci_tools.image.inputs import Inputs
from ci_tools.image.lock import ImageLock
from ci_tools.image.settings import find_ca_bundle, parse_size
from ci_tools.image.words import INPUTS_LABEL, Engine

PODMAN = Dialect(engine="podman", version="4", user="7:8", run_options=("--http-proxy=false",))
INPUTS = Inputs(hash="1b" * 32, base_image="base@sha256:" + "0c" * 32, is_default_base=True)


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch(
        tree=tmp_path, results=tmp_path, memory_bytes=4096, variables={"HOME": "/x"}, name="one"
    )


def options_of(command: list[str], name: str) -> list[str]:
    return [command[at + 1] for at, word in enumerate(command) if word == name]


def test_a_container_is_shut_in(launch: Launch) -> None:
    command = run_arguments(PODMAN, "image@digest", ["python", "-V"], launch)
    assert command[:2] == ["podman", "run"]
    assert options_of(command, "--network") == ["none"]
    assert options_of(command, "--pull") == ["never"]
    assert options_of(command, "--cap-drop") == ["ALL"]
    assert options_of(command, "--user") == ["7:8"]
    assert options_of(command, "--memory") == options_of(command, "--memory-swap") == ["4096"]
    assert "no-new-privileges" in options_of(command, "--security-opt")
    assert {"--rm", "--read-only", "--http-proxy=false"} <= set(command)
    tree, results = options_of(command, "--mount")
    assert tree.endswith("dst=/repo,readonly")
    assert results.endswith("dst=/results")
    assert command[-2:] == ["python", "-V"]
    assert command.index("image@digest") < command.index("/opt/gate/bin/python")


def test_the_launch_decides_over_the_fixed_variables(launch: Launch) -> None:
    command = run_arguments(PODMAN, "image", ["true"], launch)
    assert "HOME=/x" in options_of(command, "--env")
    assert "PYTHONNOUSERSITE=1" in options_of(command, "--env")


@pytest.mark.parametrize("is_asked", [True, False], ids=["engine cannot", "nobody asks"])
def test_no_memory_limit_is_given_where_there_is_none(launch: Launch, is_asked: bool) -> None:
    dialect = replace(PODMAN, limits_memory=not is_asked)
    launch = replace(launch, memory_bytes=4096 if is_asked else None)
    command = run_arguments(dialect, "image", ["true"], launch)
    assert not {"--memory", "--memory-swap"} & set(command)


def test_no_variable_of_the_host_goes_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/host")
    monkeypatch.setenv("SECRET", "1")
    variables = inside_variables("/scratch", "/bin", {"JAX_PLATFORMS": "x"})
    assert not {"PYTHONPATH", "SECRET"} & set(variables)
    assert variables["JAX_PLATFORMS"] == "x"
    scratch = [variables[key] for key in ("HOME", "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR")]
    assert all(path.startswith("/scratch/home") for path in scratch)


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb"])
def test_a_path_that_a_mount_cannot_carry_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="plain name"):
        mount(tmp_path / name, "/repo")


def test_a_build_gives_base_labels_and_certificates(tmp_path: Path) -> None:
    base = ImageFacts(image_id="sha256:" + "0d" * 32, digests=(), platform="", labels={})
    command = build_arguments(
        PODMAN,
        context=tmp_path,
        dockerfile=tmp_path / "Dockerfile",
        tag="t",
        build_args={"BASE_IMAGE": INPUTS.base_image},
        labels=build_labels(INPUTS, base),
        ca_bundle=tmp_path / "ca.pem",
    )
    assert options_of(command, "--build-arg") == [f"BASE_IMAGE={INPUTS.base_image}"]
    assert f"{INPUTS_LABEL}={INPUTS.hash}" in options_of(command, "--label")
    assert options_of(command, "--secret") == [f"id=ca_bundle,src={tmp_path}/ca.pem"]
    assert command[-1] == str(tmp_path)


def test_a_local_build_is_named_by_its_inputs() -> None:
    lock = ImageLock(
        name="ghcr.io/o/gate-cpu", digest="", media="", platform="", inputs="", published=""
    )
    assert local_tag(lock, INPUTS) == "localhost/gate-cpu:" + "1b" * 8


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("STEP 3/9: RUN --mount=type=secret", "STEP 3/9: RUN"),
        ("#7 [stage-0 3/4] RUN --mount=type=secret", "#7 [stage-0 3/4] RUN"),
        ("#1 [internal] load build definition", ""),
        ("Installing collected packages: a, b, c", "installing 3 packages"),
        ("#7 9.123 Installing collected packages: a, b", "installing 2 packages"),
        ("Successfully installed a-1 b-2", "successfully installed"),
        ("  Downloading jax-0.9-py3-none-any.whl (2 MB)", ""),
    ],
)
def test_a_build_shows_its_steps_and_no_more(line: str, words: str) -> None:
    assert progress_words(line) == words


def lines_of(*events: dict[str, Any]) -> list[str]:
    return [json.dumps(event) for event in events]


STARTED = {"event": "started", "pid": 5}


@pytest.mark.parametrize("code", [0, 1, 125, 126, 127, 137])
def test_a_commands_own_exit_code_counts_whatever_the_engine_says(code: int) -> None:
    lines = lines_of(STARTED, {"event": "ended", "code": code, "oom_kills": 1})
    assert read_report(lines, 125, "podman") == Ending(code=code, oom_kills=1)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        pytest.param([], "failed with exit code 126 before it started", id="engine failed"),
        pytest.param(lines_of(STARTED), "while the command was still running", id="killed"),
        pytest.param(
            lines_of({"event": "failed", "reason": "No such file", "program": "nosuch"}),
            "cannot start `nosuch`",
            id="no such command",
        ),
    ],
)
def test_what_is_not_the_commands_own_ending_is_infrastructure(
    lines: list[str], words: str
) -> None:
    with pytest.raises(InfrastructureError, match=words) as caught:
        read_report(lines, 126, "podman")
    assert caught.value.exit_code == 4


def docker_version(client: str = "28.1.0", **more: Any) -> str:
    return json.dumps({"Client": {"Version": client}, "Server": None, **more})


def test_a_daemon_that_answers_is_described() -> None:
    server = {"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]}
    words = read_version(docker_version(Server=server), "", {})
    assert words == "docker 28.1.0, server 4.3.1 (podman)"


@pytest.mark.parametrize(
    ("text", "complaint", "words"),
    [
        pytest.param(docker_version(), "Cannot connect", "no daemon answers", id="no daemon"),
        pytest.param(docker_version(), "permission denied", "may not speak", id="no permission"),
        pytest.param("garbage", "boom", "no daemon answers", id="no json"),
        pytest.param(docker_version("19.3.1"), "", "older than 20.10", id="too old"),
    ],
)
def test_a_docker_that_cannot_serve_says_why(text: str, complaint: str, words: str) -> None:
    with pytest.raises(InfrastructureError, match=words):
        read_version(text, complaint, {})


def test_the_address_of_a_silent_daemon_is_named() -> None:
    assert "tcp://far:1" in explain_silence("", {"DOCKER_HOST": "tcp://far:1"})


def podman_info(version: str = "4.3.1", rootless: bool = False) -> dict[str, Any]:
    return {"version": {"Version": version}, "host": {"security": {"rootless": rootless}}}


def test_rootless_podman_keeps_the_callers_id() -> None:
    assert read_info(podman_info(rootless=True)).run_options[-2:] == ("--userns", "keep-id")
    assert "--userns" not in read_info(podman_info()).run_options
    assert read_info(podman_info()).user == f"{os.getuid()}:{os.getgid()}"


def test_an_old_podman_is_refused() -> None:
    with pytest.raises(InfrastructureError, match=r"older than 4\.0"):
        read_info(podman_info("3.4.4"))


@pytest.mark.parametrize(
    ("name", "in_ci", "engines"),
    [
        (None, False, [Engine.DOCKER, Engine.PODMAN, Engine.VENV]),
        ("", False, [Engine.DOCKER, Engine.PODMAN, Engine.VENV]),
        (None, True, [Engine.DOCKER, Engine.PODMAN]),
        ("venv", False, [Engine.VENV]),
        ("podman", True, [Engine.PODMAN]),
    ],
)
def test_the_order_of_engines(name: str | None, in_ci: bool, engines: list[Engine]) -> None:
    assert choose_engines(name, in_ci=in_ci) == engines


@pytest.mark.parametrize(
    ("name", "in_ci", "words"),
    [("venv", True, "refused in CI"), ("apptainer", False, "unknown engine")],
)
def test_an_engine_that_may_not_be_named(name: str, in_ci: bool, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        choose_engines(name, in_ci=in_ci)


GOOD = {
    "tree": True,
    "tree_writable": False,
    "results": "",
    "shared": True,
    "owned": True,
    "interfaces": ["lo"],
    "python": "3.13",
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tree": False}, "does not see the tree"),
        ({"tree_writable": True}, "can write the tree"),
        ({"results": "Permission denied"}, "cannot write the results folder: Permission denied"),
        ({"shared": False}, "does not arrive here"),
        ({"owned": False}, "belongs to another user"),
        ({"interfaces": ["eth0", "lo"]}, "network interfaces: eth0, lo"),
        ({"python": "3.12"}, "Python is 3.12 and not 3.13"),
    ],
)
def test_what_a_survey_finds_wrong_is_named(change: dict[str, Any], words: str) -> None:
    assert find_flaws(GOOD, "3.13") == []
    flaws = find_flaws({**GOOD, **change}, "3.13")
    assert len(flaws) == 1
    assert words in flaws[0]


def test_a_limit_counts_only_when_it_is_seen() -> None:
    assert is_limited(512 * 1024**2)
    assert not is_limited(None)
    assert not is_limited(2**63)


def test_an_engines_complaint_is_its_last_own_line() -> None:
    stderr = "docker: Error: no memory controller\n\nRun 'docker run --help' for more\n"
    assert complaint(stderr) == "docker: Error: no memory controller"
    assert is_about_memory(stderr)
    assert not is_about_memory("connection reset by peer")
    assert complaint("") == ""


def test_image_facts_of_docker_and_podman_are_the_same() -> None:
    common = {"RepoDigests": ["h/n@sha256:1"], "Os": "linux", "Architecture": "amd64"}
    labels = {INPUTS_LABEL: "x"}
    docker = {**common, "Id": "sha256:ab", "Config": {"Labels": labels}}
    podman = {**common, "Id": "ab", "Labels": labels, "Config": {}}
    assert parse_image_facts([docker]) == parse_image_facts([podman])
    assert parse_image_facts([docker]).inputs == "x"
    bare = {"Id": "ab", "RepoDigests": None, "Os": "linux", "Architecture": "amd64"}
    assert parse_image_facts([bare]).inputs is None


@pytest.mark.parametrize(
    ("reference", "address"),
    [
        ("docker.io/library/python@sha256:1", ("registry-1.docker.io", 443)),
        ("python:3.13", ("registry-1.docker.io", 443)),
        ("library/python", ("registry-1.docker.io", 443)),
        ("127.0.0.1:5000/gate@sha256:1", ("127.0.0.1", 5000)),
        ("ghcr.io/o/n", ("ghcr.io", 443)),
        ("localhost/base:x", ("localhost", 443)),
    ],
)
def test_the_registry_of_a_reference(reference: str, address: tuple[str, int]) -> None:
    assert registry_address(reference) == address


def test_a_refused_connection_is_no_silence() -> None:
    assert not is_silent("127.0.0.1:1/x", {})
    assert not is_silent("127.0.0.1:1/x", {"https_proxy": "http://proxy"})


def test_a_long_chain_of_causes_is_cut_to_its_end() -> None:
    line = "Error: " + "initialising " * 20 + ": dial tcp: lookup host: no such host"
    assert shorten_reason(line) == "dial tcp: lookup host: no such host"
    assert shorten_reason("Error: no such host") == "Error: no such host"


def test_certificates_come_from_the_callers_variables(tmp_path: Path) -> None:
    named, other = tmp_path / "named.pem", tmp_path / "other.pem"
    named.touch()
    other.touch()
    gone = str(tmp_path / "gone.pem")
    assert find_ca_bundle({}) is None
    assert find_ca_bundle({"SSL_CERT_FILE": gone, "PIP_CERT": str(other)}) == other
    assert find_ca_bundle({"CA_BUNDLE": str(named), "PIP_CERT": str(other)}) == named
    with pytest.raises(UsageError, match="is not a file"):
        find_ca_bundle({"CA_BUNDLE": gone, "PIP_CERT": str(other)})


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GiB", 4 * 1024**3), ("512m", 512 * 1024**2), ("2kib", 2048), ("100", 100)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "4 TB", "g", "1.5g", "1mk"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)
