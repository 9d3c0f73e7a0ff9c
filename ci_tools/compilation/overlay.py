"""A private cache folder for each test process: links to what is there, and room for what is new.

JAX does not write an entry in one step, so a process that is killed can leave half of one. What it
wrote stays in its own folder, and is handed on only after the process has ended by itself. The
private folders lie in memory where they can: thousands of links are slow to make on a disk.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "jax-gate-compiled"
_SHARED_MEMORY = Path("/dev/shm")
# Every program is kept, however small or quick to compile; nothing in an entry names a folder.
SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
}
FOLDER_VARIABLE = "JAX_COMPILATION_CACHE_DIR"


class Overlays:
    """The private folders of one run.

    Args:
        new: Made here; gets the finished entries of this run.
        base: What earlier runs left, only read; None: nothing.
    """

    def __init__(self, new: Path, base: Path | None) -> None:
        self._new = new
        self._base = base
        new.mkdir()
        parent = find_memory_folder(Path("/proc/self/mounts").read_text(encoding="utf-8"))
        remove_stale(parent)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}-{os.getpid()}-", dir=parent))

    def make(self, index: int) -> Path:
        """Return the folder of one process, with links to every finished entry."""
        overlay = self._of(index)
        shutil.rmtree(overlay, ignore_errors=True)
        overlay.mkdir()
        for entry in self._finished():
            with contextlib.suppress(FileExistsError):
                (overlay / entry.name).symlink_to(entry)
        return overlay

    def settle(self, index: int, *, is_finished: bool) -> None:
        """Hand on what a process wrote that ended by itself, and remove its folder."""
        overlay = self._of(index)
        if is_finished:
            for entry in os.scandir(overlay):
                target = self._new / entry.name
                if entry.is_file(follow_symlinks=False) and not target.exists():
                    with contextlib.suppress(OSError):  # a full disk costs time, no result
                        shutil.move(entry.path, target)
        shutil.rmtree(overlay, ignore_errors=True)

    def close(self) -> None:
        """Remove every private folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _of(self, index: int) -> Path:
        return self._folder / f"{index:04d}"

    def _finished(self) -> Iterator[Path]:
        for folder in (self._base, self._new):
            if folder is not None and folder.is_dir():
                yield from (Path(entry.path) for entry in os.scandir(folder))


def find_memory_folder(mounts: str) -> Path:
    """Return the folder for what lives as long as a run: in memory if there is one to write to.

    Args:
        mounts: The text of `/proc/self/mounts`.
    """
    usual = Path(tempfile.gettempdir())
    rows = [line.split() for line in mounts.splitlines()]
    in_memory = {Path(row[1]) for row in rows if len(row) > 2 and row[2] == "tmpfs"}
    places = [folder for folder in (usual, _SHARED_MEMORY) if folder in in_memory]
    return next((folder for folder in places if os.access(folder, os.W_OK)), usual)


def remove_stale(parent: Path) -> None:
    """Remove the folders of runs that were killed: their process is gone."""
    for path in parent.glob(f"{_PREFIX}-*"):
        found = re.match(rf"{_PREFIX}-(\d+)-", path.name)
        if found and not Path(f"/proc/{found.group(1)}").exists():
            shutil.rmtree(path, ignore_errors=True)
