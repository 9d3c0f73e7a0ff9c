"""Compiled programs are kept only whole, only known, and only for the same image and processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_tools.compilation import overlay as overlay_module
from ci_tools.compilation import store as store_module
from ci_tools.compilation.key import compute_key
from ci_tools.compilation.overlay import Overlays, find_memory_folder, remove_stale
from ci_tools.compilation.store import Store

CPU = "processor\t: 0\nvendor_id\t: A\nmodel name\t: M\nflags\t\t: avx avx2\ncpu MHz\t: {}\n\nother"
IMAGE = {"digest": "sha256:1"}


def test_what_changes_while_it_runs_is_no_part_of_the_key() -> None:
    assert compute_key(IMAGE, CPU.format(1)) == compute_key(IMAGE, CPU.format(2))
    assert len(compute_key(IMAGE, CPU)) == 32


@pytest.mark.parametrize(
    ("image", "cpu"),
    [
        ({"digest": "sha256:2"}, CPU),
        (IMAGE, CPU.replace("avx2", "avx512f")),
        (IMAGE, CPU.replace("M", "N")),
        (IMAGE, CPU.replace(": A", ": B")),
        (IMAGE, ""),
    ],
)
def test_another_image_or_processor_has_another_key(image: dict[str, str], cpu: str) -> None:
    assert compute_key(image, cpu) != compute_key(IMAGE, CPU)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def add(store: Store, tmp_path: Path, **contents: str) -> int:
    folder = tmp_path / "made"
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}-cache").write_text(content)
    return store.add(folder)


def names(store: Store) -> list[str]:
    return sorted(path.name for path in store.entries.iterdir())


def test_an_entry_that_is_what_it_was_stays(store: Store, tmp_path: Path) -> None:
    assert add(store, tmp_path, a="one", b="two") == 2
    assert store.open() == 0
    assert names(store) == ["a-cache", "b-cache"]
    assert (store.entries / "a-cache").read_text() == "one"
    assert list((tmp_path / "made").iterdir()) == []


@pytest.mark.parametrize("damage", ["truncated", "changed", "unknown", "link", "folder"])
def test_an_entry_that_is_not_what_it_was_is_removed(
    store: Store, tmp_path: Path, damage: str
) -> None:
    add(store, tmp_path, a="one", b="two")
    entry = store.entries / "b-cache"
    if damage == "truncated":
        entry.write_text("tw")
    elif damage == "changed":
        entry.write_text("owt")
    elif damage == "unknown":
        (store.entries / "c-cache").write_text("two")
    else:
        entry.unlink()
        entry.mkdir() if damage == "folder" else entry.symlink_to(store.entries / "a-cache")
    assert store.open() == 1
    assert names(store) == ["a-cache"] + (["b-cache"] if damage == "unknown" else [])


def test_an_entry_that_is_there_is_not_replaced(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path, a="one")
    assert add(store, tmp_path, a="another") == 0
    assert (store.entries / "a-cache").read_text() == "one"
    assert store.open() == 0


@pytest.mark.parametrize("name", ["plain", "-cache", "a b-cache", "a-cache.part", "x" * 300])
def test_what_is_no_entry_is_not_taken(store: Store, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / name[:250]).write_text("x")
    (folder / "link-cache").symlink_to(folder / name[:250])
    assert store.add(folder) == 0


def test_a_damaged_manifest_vouches_for_nothing(store: Store, tmp_path: Path) -> None:
    add(store, tmp_path, a="one")
    add(store, tmp_path, b="two")
    for path in (store.folder / "manifests").iterdir():
        if "b-cache" in path.read_text():
            path.write_text("[1")
    assert store.open() == 1
    assert names(store) == ["a-cache"]


def test_many_manifests_become_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_MANIFESTS", 2)
    for name in "abc":
        add(store, tmp_path, **{name: name})
    assert store.open() == 0
    assert len(list((store.folder / "manifests").iterdir())) == 1
    assert store.open() == 0
    assert len(names(store)) == 3


def test_a_store_that_grows_too_large_loses_its_oldest(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, tmp_path, a="x" * 10, b="x" * 10, c="x" * 10)
    os.utime(store.entries / "b-cache", (1, 1))
    monkeypatch.setattr(store_module, "MAX_STORE_BYTES", 20)
    store.open()
    assert names(store) == ["a-cache", "c-cache"]


@pytest.fixture
def overlays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Overlays:
    base = tmp_path / "base"
    base.mkdir()
    (base / "old-cache").write_text("old")
    monkeypatch.setattr(overlay_module, "find_memory_folder", lambda mounts: tmp_path)
    return Overlays(tmp_path / "new", base)


def test_what_a_process_wrote_is_handed_on_after_it_finished(overlays: Overlays) -> None:
    first = overlays.make(0)
    assert (first / "old-cache").read_text() == "old"
    (first / "a-cache").write_text("a")
    assert not (overlays.make(1) / "a-cache").exists()
    overlays.settle(0, is_finished=True)
    assert sorted(path.name for path in overlays.make(2).iterdir()) == ["a-cache", "old-cache"]
    assert not first.exists()


def test_what_a_killed_process_wrote_is_thrown_away(overlays: Overlays, tmp_path: Path) -> None:
    (overlays.make(0) / "half-cache").write_text("ha")
    overlays.settle(0, is_finished=False)
    assert [path.name for path in overlays.make(1).iterdir()] == ["old-cache"]
    assert list((tmp_path / "new").iterdir()) == []


def test_links_are_never_handed_on(overlays: Overlays, tmp_path: Path) -> None:
    folder = overlays.make(0)
    (folder / "link-cache").symlink_to("/etc/passwd")
    overlays.settle(0, is_finished=True)
    assert list((tmp_path / "new").iterdir()) == []


def test_the_private_folders_go_with_the_run(overlays: Overlays) -> None:
    folder = overlays.make(0)
    overlays.close()
    assert not folder.exists()


def test_folders_of_dead_runs_are_removed_and_others_stay(tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    for name in (f"jax-gate-compiled-{dead}-x", f"jax-gate-compiled-{os.getpid()}-x", "other-1-x"):
        (tmp_path / name).mkdir()
    remove_stale(tmp_path)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [f"jax-gate-compiled-{os.getpid()}-x", "other-1-x"]


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ("tmpfs {tmp} tmpfs rw 0 0\n", "{tmp}"),
        ("/dev/sda {tmp} ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n", "/dev/shm"),
        ("/dev/sda / ext4 rw 0 0\n", "{tmp}"),
        ("", "{tmp}"),
    ],
)
def test_memory_is_preferred_where_it_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, expected: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = find_memory_folder(mounts.format(tmp=tmp_path))
    assert str(found) == expected.format(tmp=tmp_path)
