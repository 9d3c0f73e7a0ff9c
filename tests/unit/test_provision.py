"""Where an environment lies, which interpreters are tried, and which variables reach pip."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_tools.errors import UsageError
from ci_tools.provision.interpreters import HOST_VERSION, find_candidates
from ci_tools.provision.making import clean_variables, folder_of

OTHER_VERSION = "3.99"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "name",
    ["PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH", "PYTHONUSERBASE", "VIRTUAL_ENV"]
    + [f"PIP_{word}" for word in ("TARGET", "USER", "PREFIX", "CONSTRAINT", "REQUIREMENT")]
    + [f"PIP_{word}" for word in ("NO_BINARY", "PRE", "NO_DEPS", "REQUIRE_VIRTUALENV", "EDITABLE")],
)
def test_variables_that_change_what_is_installed_are_dropped(name: str) -> None:
    assert clean_variables({name: "1", "HOME": "/home/x"}) == {"HOME": "/home/x"}


@pytest.mark.parametrize(
    "name",
    [
        *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CERT"),
        *("PIP_CONFIG_FILE", "PIP_PROXY", "HTTPS_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PATH"),
    ],
)
def test_index_certificate_and_proxy_settings_stay(name: str) -> None:
    assert clean_variables({name: "value"}) == {name: "value"}


def test_an_environment_is_named_by_lock_and_python(tmp_path: Path) -> None:
    lock = write(tmp_path / "x.txt", "a==1\n")
    first = folder_of(tmp_path, "x", lock, "3.13")
    assert first == folder_of(tmp_path, "x", lock, "3.13")
    assert first.parent == tmp_path / "venvs"
    assert first.name.startswith("x-")
    assert len(first.name) == len("x-") + 16
    assert first != folder_of(tmp_path, "x", lock, "3.12")
    write(lock, "a==2\n")
    assert first != folder_of(tmp_path, "x", lock, "3.13")


def test_a_missing_lock_is_named_with_its_fix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.txt.*cannot be read") as caught:
        folder_of(tmp_path, "x", tmp_path / "x.txt", "3.13")
    assert caught.value.fix == "make lock"


def test_candidates_are_path_then_the_newest_of_pyenv_then_what_uv_fetched(tmp_path: Path) -> None:
    name = f"bin/python{OTHER_VERSION}"
    on_path = write(tmp_path / name)
    pyenv = tmp_path / "pyenv" / "versions"
    old = write(pyenv / f"{OTHER_VERSION}.9" / name)
    new = write(pyenv / f"{OTHER_VERSION}.10" / name)
    fetched = write(tmp_path / "state" / "pythons" / f"cpython-{OTHER_VERSION}.1-linux" / name)
    write(pyenv / "3.9.9" / "bin" / "python3.9")
    variables = {"PATH": str(on_path.parent), "PYENV_ROOT": str(tmp_path / "pyenv")}
    found = list(find_candidates(OTHER_VERSION, variables, tmp_path / "state"))
    assert found == [on_path, new, old, fetched]


def test_the_running_interpreter_is_tried_first_for_its_own_version_only(tmp_path: Path) -> None:
    variables = {"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    assert len(list(find_candidates(HOST_VERSION, variables, tmp_path))) == 1
    assert list(find_candidates(OTHER_VERSION, variables, tmp_path)) == []
