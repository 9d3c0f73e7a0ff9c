"""Real environments, made by the real venv and pip from wheels built here; no network."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ci_tools.errors import InfrastructureError
from ci_tools.provision.interpreters import HOST_VERSION, find_interpreter
from ci_tools.provision.making import MARK
from ci_tools.provision.venvs import ensure_venv
from tests.integration.wheels import build_wheel, hash_of

ROOT = Path(__file__).resolve().parents[2]
OTHER_VERSION = "3.99"


@dataclass
class Project:
    """A repository with one lock, and what was reported while it was used."""

    root: Path
    file: str = "tiny.txt"
    lines: list[str] = field(default_factory=list)

    @property
    def lock(self) -> Path:
        return self.root / "requirements" / self.file

    @property
    def state(self) -> Path:
        return self.root / ".ci-tools"

    def write_lock(self, text: str) -> None:
        self.lock.parent.mkdir(parents=True, exist_ok=True)
        self.lock.write_text(text, encoding="utf-8")

    def ensure(self) -> Path:
        self.lines.clear()
        return ensure_venv(
            name="tiny",
            lock=self.lock,
            python_version=HOST_VERSION,
            state=self.state,
            report=self.lines.append,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-S", "-m", "ci_tools", "--root", str(self.root), *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def make_project(root: Path) -> Project:
    project = Project(root)
    value = build_wheel(root / "wheels", "tiny", "1.0")
    project.write_lock(f"tiny==1.0 \\\n    --hash={value}\n")
    (root / "pyproject.toml").write_text(
        f'[tool.ci_tools]\npython = "{HOST_VERSION}"\n', encoding="utf-8"
    )
    return project


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose environment is there; shared by the tests that do not change it."""
    project = make_project(tmp_path_factory.mktemp("made"))
    with pytest.MonkeyPatch.context() as patch:
        use_wheels(patch, project.root)
        project.ensure()
        yield project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    use_wheels(monkeypatch, tmp_path)
    return make_project(tmp_path)


def use_wheels(patch: pytest.MonkeyPatch, root: Path) -> None:
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(root / "wheels"))


def output_of(argv: list[str | Path]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def version_in(python: Path) -> str:
    return output_of([python, "-c", "import tiny; print(tiny.VERSION)"])


def test_an_environment_is_made_once_and_then_taken(project: Project) -> None:
    python = project.ensure()
    assert version_in(python) == "1.0"
    assert project.lines[0].startswith(f"making {python.parents[1].name}: 1 packages from tiny.txt")
    assert project.lines[-1].startswith(f"made {python.parents[1].name} in ")
    assert project.ensure() == python
    assert project.lines == []


def test_another_lock_gets_an_environment_of_its_own(made: Project) -> None:
    value = build_wheel(made.root / "wheels", "tiny", "2.0")
    other = Project(made.root, file="other.txt")
    other.write_lock(f"tiny==2.0 \\\n    --hash={value}\n")
    assert [version_in(given.ensure()) for given in (made, other)] == ["1.0", "2.0"]


def test_an_environment_without_its_mark_or_its_interpreter_is_made_again(project: Project) -> None:
    python = project.ensure()
    folder = python.parents[1]
    (folder / MARK).unlink()
    left = folder / "left-behind"
    left.write_text("", encoding="utf-8")
    assert project.ensure() == python
    assert not left.exists()
    assert (folder / MARK).is_file()
    python.unlink()
    python.symlink_to("/nowhere/python")
    assert version_in(project.ensure()) == "1.0"


def test_a_killed_creation_is_never_taken_for_whole(project: Project) -> None:
    process = project.start("with", "tiny", "--", "true")
    pattern = "venvs/tiny-*/bin"
    deadline = time.monotonic() + 60
    while not list(project.state.glob(pattern)) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert list(project.state.glob(pattern)), "killed before it had begun"
    assert not list(project.state.glob(f"venvs/tiny-*/{MARK}"))
    assert version_in(project.ensure()) == "1.0"


def test_two_callers_at_once_make_it_once(project: Project) -> None:
    argv = ("with", "tiny", "--", "python", "-c", "import tiny; print(tiny.VERSION)")
    ends = [process.communicate(timeout=120) for process in [project.start(*argv) for _ in "ab"]]
    assert [out.strip() for out, _ in ends] == ["1.0", "1.0"]
    assert "".join(err for _, err in ends).count("making tiny-") == 1


def test_a_moved_repository_makes_its_environments_again(made: Project, tmp_path: Path) -> None:
    moved = Project(tmp_path)
    shutil.copytree(made.lock.parent, moved.lock.parent)
    shutil.copytree(made.state, moved.state, symlinks=True)
    python = moved.ensure()
    assert "made elsewhere" in moved.lines[0]
    assert output_of([python.with_name("tiny")]) == "tiny 1.0"


def test_a_link_to_the_environments_leads_to_the_same_ones(made: Project, tmp_path: Path) -> None:
    linked = Project(tmp_path)
    shutil.copytree(made.lock.parent, linked.lock.parent)
    linked.state.mkdir()
    (linked.state / "venvs").symlink_to(made.state / "venvs")
    assert linked.ensure() == made.ensure()
    assert linked.lines == []


def test_a_source_distribution_is_not_built(project: Project) -> None:
    """Building would run its code and fetch build tools that no lock holds."""
    source = project.root / "wheels" / "raw-1.0.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        archive.add(project.root / "pyproject.toml", "raw-1.0/pyproject.toml")
    project.write_lock(f"raw==1.0 \\\n    --hash={hash_of(source)}\n")
    with pytest.raises(InfrastructureError, match="No matching distribution"):
        project.ensure()


@pytest.mark.parametrize(
    ("lock", "words"),
    [
        pytest.param(f"tiny==1.0 \\\n    --hash=sha256:{'0' * 64}\n", "HASH", id="wrong hash"),
        pytest.param("tiny==1.0\n", "hash", id="no hash"),
        pytest.param(
            f"gone==1.0 \\\n    --hash=sha256:{'0' * 64}\n", "gone", id="not in the index"
        ),
    ],
)
def test_a_lock_that_does_not_fit_is_a_fault_of_the_machinery(
    project: Project, lock: str, words: str
) -> None:
    project.write_lock(lock)
    with pytest.raises(InfrastructureError, match=r"tiny\.txt cannot be installed") as caught:
        project.ensure()
    log = next(project.state.glob("venvs/tiny-*.log"))
    assert str(log) in caught.value.fix
    assert words in log.read_text(encoding="utf-8")
    assert not list(project.state.glob(f"venvs/*/{MARK}"))


def test_settings_that_move_an_installation_have_no_effect(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = project.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tiny.py").write_text("VERSION = 'elsewhere'\n", encoding="utf-8")
    monkeypatch.setenv("PIP_TARGET", str(elsewhere))
    monkeypatch.setenv("PIP_REQUIREMENT", str(elsewhere / "none.txt"))
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    python = project.ensure()
    monkeypatch.delenv("PYTHONPATH")
    assert version_in(python) == "1.0"


def test_with_hands_on_the_exit_code_and_puts_its_tools_first(made: Project) -> None:
    code = "import shutil, sys; print(shutil.which('tiny')); sys.exit(7)"
    process = made.start("with", "tiny", "--", "python", "-c", code)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 7
    assert Path(out.strip()) == made.ensure().with_name("tiny")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        pytest.param(("tiny", "--", "no-such-program"), "no-such-program", id="no program"),
        pytest.param(("../tiny", "--", "true"), "no lock's name", id="a path"),
        pytest.param(("absent", "--", "true"), "absent.txt", id="no lock"),
    ],
)
def test_with_names_what_is_missing(made: Project, argv: tuple[str, ...], words: str) -> None:
    process = made.start("with", *argv)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert words in err


def test_clean_removes_the_state_and_nothing_else(project: Project) -> None:
    (project.state / "results").mkdir(parents=True)
    for _ in range(2):
        process = project.start("clean")
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert not project.state.exists()
    assert project.lock.is_file()


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose PATH holds one folder, without pyenv; returns the folder."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "no-pyenv"))
    return folder


def write_script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def find_other(state: Path) -> Path:
    """Look for a version that no machine has; uv has no lock to come from."""
    return find_interpreter(
        OTHER_VERSION, state=state, uv_lock=state / "none.txt", report=lambda line: None
    )


def test_without_any_python_the_error_names_three_ways_out(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=f"no Python {OTHER_VERSION}") as caught:
        find_other(tmp_path)
    assert [number in caught.value.fix for number in ("(1)", "(2)", "(3)")] == [True] * 3
    assert "ENGINE=" in caught.value.fix


def test_what_uv_says_is_in_the_error(bare: Path, tmp_path: Path) -> None:
    write_script(bare / "uv", "echo no download of that kind >&2; exit 3")
    with pytest.raises(InfrastructureError, match=r"exit 3\): no download of that kind"):
        find_other(tmp_path)


def test_what_uv_fetches_is_taken(bare: Path, tmp_path: Path) -> None:
    """The script stands for uv's download; that it is asked and believed only if right is real."""
    target = tmp_path / "pythons" / f"cpython-{OTHER_VERSION}.0" / "bin" / f"python{OTHER_VERSION}"
    write_script(tmp_path / "fetched", f"echo {OTHER_VERSION}")
    script = f"/bin/mkdir -p {target.parent} && /bin/cp {tmp_path}/fetched {target}"
    write_script(bare / "uv", script)
    assert find_other(tmp_path) == target


@pytest.mark.parametrize("answer", ["echo 3.98", "exit 1", "exec /nowhere", "kill -9 $$"])
def test_an_interpreter_that_is_not_what_its_name_says_is_passed_over(
    bare: Path, tmp_path: Path, answer: str
) -> None:
    write_script(bare / f"python{OTHER_VERSION}", answer)
    with pytest.raises(InfrastructureError):
        find_other(tmp_path)
    write_script(bare / f"python{OTHER_VERSION}", f"echo {OTHER_VERSION}")
    assert find_other(tmp_path) == bare / f"python{OTHER_VERSION}"
