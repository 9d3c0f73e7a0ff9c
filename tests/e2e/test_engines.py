"""The image in real engines: podman itself, and docker's client on podman's Docker API.

One image is built from the tree, published to a loopback registry, pinned by digest in a scratch
tree, and pulled into an empty store from there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ci_tools.errors import ExitCode
from ci_tools.image.lock import load_image_lock, render_image_lock
from ci_tools.tree import Tree
from tests.e2e.support.containers import Store, containers_in
from tests.e2e.support.world import World, copy_inputs

ENGINES = ("podman", "docker")
# Any user that is not the caller: containers must not depend on an entry in a password file.
OTHER_USER = 54321
LOOK = """
import json, os, socket, sys
def attempt(act):
    try:
        act()
    except OSError as error:
        return error.strerror
    return ""
def write(path):
    return attempt(lambda: open(path, "w").write("x"))
def serve():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "folder": os.getcwd(),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "outside": attempt(lambda: socket.create_connection(("192.0.2.1", 80), timeout=5)),
    "loopback": attempt(serve),
    "writes": {p: write(p) for p in ("/repo/x", "/opt/gate/x", "/x", "/results/x", "/tmp/x",
                                     os.path.expanduser("~/x"))},
    "path": sys.path,
    "variables": sorted(os.environ),
    "capabilities": int(status["CapEff"], 16),
    "no_new_privileges": int(status["NoNewPrivs"]),
}))
"""
OWN_VARIABLES = re.compile(
    r"PATH|HOME|HOSTNAME|TERM|container|TMPDIR|USER|LOGNAME|LANG|TZ|XDG_\w+_HOME|JAX_PLATFORMS|"
    r"JAX_COMPILATION_CACHE_DIR|PYTHON(NOUSERSITE|DONTWRITEBYTECODE|UNBUFFERED)"
)


@dataclass(frozen=True, kw_only=True)
class Site:
    """A scratch tree whose image is published, and what reaches it.

    Attributes:
        tree: The scratch tree.
        builder: The store that the image was built in.
        puller: A store that has only what was pulled.
        docker_host: The Docker API of the puller.
    """

    tree: Tree
    builder: Store
    puller: Store
    docker_host: str

    def start(
        self,
        *words: str,
        tree: Tree | None = None,
        store: Store | None = None,
        user: int | None = None,
        **variables: str,
    ) -> subprocess.Popen[str]:
        environment = {**(store or self.puller).environment, "DOCKER_HOST": self.docker_host}
        folder = (tree or self.tree).root
        return subprocess.Popen(
            ["/usr/bin/python3", "-S", "-m", "ci_tools", "image", *words],
            cwd=folder,
            env={**environment, "HOME": str(folder), "SECRET": "1", **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            start_new_session=True,
        )

    def image(self, *words: str, **changes: object) -> subprocess.CompletedProcess[str]:
        """Run `ci_tools image` in a tree, without site-packages, to its end."""
        child = self.start(*words, **changes)  # type: ignore[arg-type]
        out, err = child.communicate(timeout=300)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def copy(self, folder: Path) -> Tree:
        """Return a copy of the scratch tree."""
        shutil.copytree(self.tree.root, folder, ignore=shutil.ignore_patterns(".ci-tools"))
        return Tree(folder)


@pytest.fixture(scope="module")
def site(world: World) -> Site:
    tree = Tree(world.folder / "tree")
    copy_inputs(tree.root)
    world.pin(tree.root)
    # Another user has to reach the daemon, as the docker group does.
    Path(world.docker_host.removeprefix("unix://")).chmod(0o666)
    return Site(
        tree=tree, docker_host=world.docker_host, builder=world.builder, puller=world.puller
    )


def look(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def assert_shut_in(found: dict[str, object], user: int, group: int) -> None:
    assert found["user"] == [user, group]
    assert found["folder"] == "/repo"
    assert found["interfaces"] == ["lo"]
    assert found["outside"] == "Network is unreachable"
    assert found["loopback"] == ""
    assert found["writes"] == {
        "/repo/x": "Read-only file system",
        "/opt/gate/x": "Read-only file system",
        "/x": "Read-only file system",
        "/results/x": "",
        "/tmp/x": "",
        "/tmp/home/x": "",
    }
    assert isinstance(found["path"], list)
    assert not [p for p in found["path"] if p and not p.startswith(("/usr/lib", "/opt/gate/lib"))]
    assert isinstance(found["variables"], list)
    assert not [name for name in found["variables"] if not OWN_VARIABLES.fullmatch(name)]
    assert found["capabilities"] == 0
    assert found["no_new_privileges"] == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_command_runs_in_the_pulled_image_shut_in(
    site: Site, engine: str, tmp_path: Path
) -> None:
    words = ("exec", "--engine", engine, "--results", str(tmp_path), "--", "python", "-c", LOOK)
    done = site.image(*words)
    assert_shut_in(look(done), os.getuid(), os.getgid())
    lock = load_image_lock(site.tree)
    assert f"using {engine}: {lock.reference};" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").stat().st_uid == os.getuid()


def test_a_user_without_rights_gets_the_same(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="jax-gate-user-"))
    tree = site.copy(folder / "tree")
    user = None
    if os.getuid() == 0:
        user = OTHER_USER
        for path in (folder, tree.root, *tree.root.rglob("*")):
            os.chown(path, user, user)
    try:
        words = ("exec", "--engine", "docker", "--results", str(folder / "results"))
        done = site.image(*words, "--", "python", "-c", LOOK, tree=tree, user=user)
        assert_shut_in(look(done), user or os.getuid(), user or os.getgid())
        assert (folder / "results" / "x").stat().st_uid == (user or os.getuid())
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("code", [0, 3, 125, 126, 127])
def test_an_exit_code_is_the_commands_own(site: Site, engine: str, code: int) -> None:
    done = site.image("exec", "--engine", engine, "--", "sh", "-c", f"echo out; exit {code}")
    assert (done.returncode, done.stdout) == (code, "out\n")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_signal_is_128_and_its_number(site: Site, engine: str) -> None:
    done = site.image("exec", "--engine", engine, "--", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV


@pytest.mark.parametrize("engine", ENGINES)
def test_a_command_that_is_not_there_is_infrastructure(site: Site, engine: str) -> None:
    done = site.image("exec", "--engine", engine, "--", "no-such-program")
    assert done.returncode == ExitCode.INFRASTRUCTURE
    assert "cannot start `no-such-program` in the environment" in done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_fails_is_infrastructure(site: Site, engine: str) -> None:
    done = site.image("exec", "--engine", engine, "--memory", "1KiB", "--", "true")
    if "memory limit is not enforced" in done.stderr:
        assert done.returncode == 0
    else:
        assert done.returncode == ExitCode.INFRASTRUCTURE
        assert "before it started the command" in done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_memory_is_limited_or_the_report_says_that_it_is_not(site: Site, engine: str) -> None:
    script = "python -c 'bytearray(600 * 2**20)'; echo $?"
    done = site.image("exec", "--engine", engine, "--memory", "300MiB", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    if "memory limit is not enforced" in done.stderr:
        assert done.stdout == "0\n"
    else:
        assert done.stdout == "137\n"
        assert "the kernel killed 1 process(es) at the memory limit" in done.stderr


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_container(site: Site, engine: str, number: signal.Signals) -> None:
    child = site.start("exec", "--engine", engine, "--", "sh", "-c", "echo up; sleep 300")
    assert child.stdout is not None
    assert child.stdout.readline() == "up\n"
    assert len(containers_in(site.puller)) == 1
    began = time.monotonic()
    child.send_signal(number)
    child.communicate(timeout=60)
    assert child.returncode == ExitCode.INTERRUPTED
    assert time.monotonic() - began < 30
    assert containers_in(site.puller) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_the_image_of_the_tree_is_green(site: Site, engine: str) -> None:
    done = site.image("check", "--engine", engine)
    assert done.returncode == ExitCode.GREEN, done.stderr
    assert done.stdout.startswith("tree, lock and image agree on inputs ")


@pytest.mark.parametrize("engine", ENGINES)
def test_an_image_of_other_inputs_is_red_and_is_not_run(
    site: Site, engine: str, tmp_path: Path
) -> None:
    tree = site.copy(tmp_path / "tree")
    with tree.gate_requirements.open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    done = site.image("check", "--engine", engine, tree=tree)
    assert done.returncode == ExitCode.RED
    assert "inputs changed: publish first" in done.stdout
    inputs = site.image("inputs", tree=tree).stdout.strip()
    lock = replace(load_image_lock(tree), inputs=inputs)
    tree.image_lock.write_text(render_image_lock(lock), encoding="utf-8")
    done = site.image("check", "--engine", engine, tree=tree)
    assert done.returncode == ExitCode.RED
    assert "one of the two was changed without the other" in done.stdout
    done = site.image("exec", "--engine", engine, "--", "echo", "ran", tree=tree)
    assert (done.returncode, done.stdout) == (ExitCode.RED, "")


def test_a_docker_without_a_daemon_is_passed_over(site: Site) -> None:
    done = site.image("exec", "--", "python", "-V", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert done.returncode == 0
    assert (
        "passed over docker: the `docker` command is here, but no daemon answers at "
        "unix:///nowhere/docker.sock" in done.stderr
    ) or "passed over docker: there is no `docker` command" in done.stderr
    assert "using podman: " in done.stderr


def test_what_is_not_published_is_built_once_and_called_local(site: Site, tmp_path: Path) -> None:
    tree = site.copy(tmp_path / "tree")
    lock = replace(load_image_lock(tree), digest="", inputs="", published="")
    tree.image_lock.write_text(render_image_lock(lock), encoding="utf-8")
    with tree.dockerfile.open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    words = ("exec", "--engine", "podman", "--", "python", "-c", "import jax, numpyro")
    first = site.image(*words, tree=tree, store=site.builder)
    inputs = site.image("inputs", tree=tree).stdout.strip()
    assert first.returncode == 0, first.stderr
    assert f"(local build {inputs[:16]}, not the published image)" in first.stderr
    second = site.image(*words, tree=tree, store=site.builder)
    assert second.returncode == 0
    assert "is here from an earlier build" in second.stderr
    refused = site.image(*words, tree=tree, store=site.builder, GITHUB_ACTIONS="true")
    assert refused.returncode == ExitCode.RED
    assert "no image has been published yet" in refused.stderr


def test_a_base_out_of_reach_leads_to_the_lockfile_environment(site: Site, tmp_path: Path) -> None:
    tree = site.copy(tmp_path / "tree")
    tree.gate_requirements.write_text("# nothing to install\n", encoding="utf-8")
    base = "127.0.0.1:1/base@sha256:" + "0a" * 32
    done = site.image("exec", "--", "python", "-V", tree=tree, BASE_IMAGE=base)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Python 3.13")
    for engine in ENGINES:
        assert f"passed over {engine}: cannot pull {base}: " in done.stderr
    assert "connection refused" in done.stderr
    assert "(lockfile environment, not the image)" in done.stderr
    named = site.image("exec", "--engine", "podman", "--", "true", tree=tree, BASE_IMAGE=base)
    assert named.returncode == ExitCode.INFRASTRUCTURE
