"""The environment record: what was locked, what was not, and errors in the place of values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ci_tools.environment.capture import capture, find_isa, find_unlocked, normalise, parse_hashes
from ci_tools.environment.origin import find_origin

ROOT = Path(__file__).resolve().parents[2]
H1, H2 = "sha256:" + "1" * 64, "sha256:" + "2" * 64
LOCK = f"""\
# a comment
jax==0.12.0.1 \\
    --hash={H1} \\
    --hash={H2}
    # via -r gate.in
Num_Py==2.3 ; python_version >= "3.11" \\
    --hash={H2}
"""


def test_the_hashes_of_a_lock() -> None:
    assert parse_hashes(LOCK) == {
        "jax": {"version": "0.12.0.1", "hashes": [H1, H2]},
        "num-py": {"version": "2.3", "hashes": [H2]},
    }
    assert parse_hashes("") == {}


@pytest.mark.parametrize("name", ["Flow_MC", "flow.mc", "FLOW--MC", "flow-mc"])
def test_names_are_compared_in_their_normal_form(name: str) -> None:
    assert normalise(name) == "flow-mc"


def row(name: str, **fields: bool) -> dict[str, Any]:
    return {"name": name, "version": "1", "is_locked": False, **fields}


@pytest.mark.parametrize(
    ("distributions", "expected"),
    [
        ([row("a", is_locked=True)], []),
        ([row("a", is_locked=True), row("b")], ["b 1"]),
        ([row("mine", is_in_tree=True)], []),
        ([{}], ["None None"]),
        ([7], ["the distributions could not be listed"]),
        ({"error": "x"}, ["the distributions could not be listed"]),
        (None, ["the distributions could not be listed"]),
    ],
)
def test_what_the_lock_does_not_have_is_named(distributions: Any, expected: list[str]) -> None:
    assert find_unlocked({"distributions": distributions}) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu sse4_2 avx avx2 avx512f", "AVX512"),
        ("fpu sse4_2 avx avx2", "AVX2"),
        ("sse4_2 avx", "AVX"),
        ("sse4_2", "SSE4_2"),
        ("avx512vl", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_highest_instruction_set(flags: str, expected: str) -> None:
    assert find_isa(flags.split()) == expected


def make_distribution(folder: Path, name: str, version: str) -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def run_capture(tree: Path, *paths: Path, **variables: str) -> dict[str, Any]:
    """Run the capture as the supervisor does, and return the record it leaves."""
    folder = tree / "records"
    folder.mkdir()
    launch = {"image": {"kind": "lockfile"}, "commit": "c0ffee", "dirty": True, "packages": ["p"]}
    (folder / "launch.json").write_text(json.dumps(launch))
    subprocess.run(
        [sys.executable, "-S", "-m", "ci_tools.environment.capture", str(folder), "gate.txt"],
        cwd=tree,
        env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(map(str, [ROOT, *paths]))},
        check=True,
    )
    data = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def test_the_record_of_an_environment(tmp_path: Path) -> None:
    make_distribution(tmp_path / "site", "jax", "0.12.0.1")
    make_distribution(tmp_path / "site", "Num.Py", "2.4")
    make_distribution(tmp_path, "mine", "1")
    make_distribution(tmp_path, "jax", "9")
    (tmp_path / "gate.txt").write_text(LOCK)
    (tmp_path / "p").mkdir()
    (tmp_path / "site" / "jax.py").write_text(
        "__version__ = '0.12.0.1'\ndef default_backend(): return 'cpu'\n"
        "def devices(): return ['cpu:0']\n"
    )
    record = run_capture(tmp_path, tmp_path / "site", JAX_PLATFORMS="cpu", HOME="/x")
    rows = {row["name"]: row for row in record["distributions"]}
    assert rows["jax"] | {"is_in_tree": False} == rows["jax"]
    assert (rows["jax"]["is_locked"], rows["jax"]["hashes"]) == (True, [H1, H2])
    assert (rows["num-py"]["is_locked"], rows["num-py"]["version"]) == (False, "2.4")
    assert rows["mine"]["is_in_tree"] is True
    assert find_unlocked(record) == ["num-py 2.4"]
    assert record["jax"] == {"version": "0.12.0.1", "backend": "cpu", "devices": ["cpu:0"]}
    assert record["packages_under_test"] == {"p": str(tmp_path / "p")}
    assert (record["status"], record["commit"], record["dirty"]) == ("ok", "c0ffee", True)
    assert record["variables"]["JAX_PLATFORMS"] == "cpu"
    assert "HOME" not in record["variables"]
    assert record["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert record["machine"]["cores"] >= 1


def test_a_broken_environment_is_recorded_as_broken(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("raise RuntimeError('no backend')")
    record = run_capture(tmp_path)
    assert record["jax"] == {"error": "RuntimeError: no backend"}
    assert record["packages_under_test"] == {"p": ""}


def test_without_a_launch_there_is_still_a_record(tmp_path: Path) -> None:
    record = capture({}, "")
    assert (record["image"], record["commit"], record["status"]) == ({}, "", "ok")


def test_where_a_package_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ci_one.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "ci_two").mkdir()
    (tmp_path / "ci_three").mkdir()
    (tmp_path / "ci_three" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_origin("ci_one") == tmp_path / "ci_one.py"
    assert find_origin("ci_two") == tmp_path / "ci_two"
    assert find_origin("ci_three") == tmp_path / "ci_three" / "__init__.py"
    assert find_origin("ci_nowhere") is None
    assert find_origin("") is None
    assert find_origin("sys") is None
