"""The persistent compilation cache: what one process compiled, the next one does not compile."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.roster.support.processes import run_script

EAGER = {
    # Store even what was compiled in no time and takes no space.
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def probe(
    folder: Path, *, length: int = 100, factor: float = 0.5, xla_flags: str = "", **variables: str
) -> dict[str, Any]:
    """Run the probe in a fresh process whose cache is `folder` / "cache"."""
    environment = EAGER | {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache")} | variables
    return run_script(
        "cache_probe",
        str(length),
        str(factor),
        scratch=folder,
        variables=environment,
        xla_flags=xla_flags,
    )


def entries(folder: Path) -> dict[str, str]:
    """Digest of every cached executable, by file name."""
    files = sorted((folder / "cache").rglob("*-cache"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A cache after one process, and what that process reported. Tests may add to the cache."""
    folder = tmp_path_factory.mktemp("filled")
    return folder, probe(folder)


def test_the_first_process_compiles_and_stores(filled: tuple[Path, dict[str, Any]]) -> None:
    folder, first = filled
    assert first["hits"] == 0
    assert first["misses"] == first["requests"] > 0
    assert any("program" in name for name in entries(folder))


@pytest.fixture(scope="module")
def reused(filled: tuple[Path, dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """What a second process reports, and whether it left the cache exactly as it was."""
    folder, _ = filled
    before = entries(folder)
    return probe(folder), entries(folder) == before


def test_the_second_process_compiles_nothing(
    filled: tuple[Path, dict[str, Any]], reused: tuple[dict[str, Any], bool]
) -> None:
    first, (second, untouched) = filled[1], reused
    assert second["misses"] == 0
    assert second["hits"] == second["requests"] == first["requests"]
    assert untouched


def test_a_cached_program_gives_the_same_bits(
    filled: tuple[Path, dict[str, Any]], reused: tuple[dict[str, Any], bool]
) -> None:
    assert reused[0]["result"] == filled[1]["result"]


@pytest.mark.parametrize(
    "changed",
    [{"length": 101}, {"factor": 0.25}, {"JAX_ENABLE_X64": "true"}],
    ids=["shape", "constant", "precision"],
)
def test_a_different_program_is_not_taken_from_the_cache(
    filled: tuple[Path, dict[str, Any]], changed: dict[str, Any]
) -> None:
    folder, _ = filled
    before = entries(folder)
    other = probe(folder, **changed)
    assert other["misses"] > 0
    added = entries(folder).keys() - before.keys()
    assert sum("program" in name for name in added) == 1


def test_a_flag_that_changes_the_code_is_part_of_the_key(
    filled: tuple[Path, dict[str, Any]],
) -> None:
    folder, _ = filled
    other = probe(folder, xla_flags="--xla_backend_optimization_level=1")
    assert other["hits"] == 0


def test_a_damaged_entry_is_compiled_again(tmp_path: Path) -> None:
    first = probe(tmp_path)
    for file in (tmp_path / "cache").rglob("*-cache"):
        file.write_bytes(b"damaged")
    second = probe(tmp_path)
    assert second["hits"] == 0
    assert second["result"] == first["result"]


def test_a_disabled_cache_leaves_nothing_behind(tmp_path: Path) -> None:
    report = probe(tmp_path, JAX_ENABLE_COMPILATION_CACHE="false")
    assert report["requests"] == report["hits"] == 0
    assert entries(tmp_path) == {}


def test_quick_compilations_are_not_stored_unless_asked_for(tmp_path: Path) -> None:
    report = probe(tmp_path, JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="1000")
    assert report["requests"] > 0
    assert entries(tmp_path) == {}


def test_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path: Path) -> None:
    """The cache is an optimisation: a plain file stands where its folder should be."""
    (tmp_path / "cache").write_text("in the way")
    report = probe(tmp_path)
    assert report["hits"] == 0
    assert float.fromhex(report["result"]) != 0.0
