"""The store of compiled programs on the host: checked when it is opened, filled by renames.

An entry counts only while a manifest has its size and checksum. A truncated or foreign entry is
removed, because JAX would warn about it for ever and never write it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ENTRIES = "entries"
MANIFESTS = "manifests"
MAX_STORE_BYTES = 1024**3
MAX_MANIFESTS = 32
ENTRY_NAME = re.compile(r"[\w.-]{1,200}-cache")


@dataclass(frozen=True)
class Store:
    """One store; its folder need not exist yet."""

    folder: Path

    @property
    def entries(self) -> Path:
        """The folder that JAX reads from."""
        return self.folder / ENTRIES

    @property
    def is_warm(self) -> bool:
        """Whether an earlier run left anything."""
        return self.entries.is_dir() and any(self.entries.iterdir())

    def open(self) -> int:
        """Make the store ready and remove every entry that is not what it was; return how many."""
        self.entries.mkdir(parents=True, exist_ok=True)
        (self.folder / MANIFESTS).mkdir(exist_ok=True)
        known = self._sums()
        removed = 0
        for path in sorted(self.entries.iterdir()):
            if checksum(path) not in known.get(path.name, set()):
                _remove(path)
                removed += 1
        self._prune()
        self._merge_manifests()
        return removed

    def add(self, folder: Path) -> int:
        """Move finished entries from `folder` into the store; return how many were new.

        The manifest is there before the first entry is: another run that opens the store meanwhile
        finds each entry known, or not there yet.
        """
        sums = {
            path.name: checksum(path)
            for path in sorted(folder.iterdir())
            if ENTRY_NAME.fullmatch(path.name) and not path.is_symlink() and path.is_file()
        }
        new = {name: found for name, found in sums.items() if not (self.entries / name).exists()}
        if not new:
            return 0
        self.entries.mkdir(parents=True, exist_ok=True)
        (self.folder / MANIFESTS).mkdir(exist_ok=True)
        self._write_manifest({name: [found] for name, found in new.items()})
        for name in new:
            part = self.folder / f".{uuid.uuid4().hex}.part"
            shutil.move(folder / name, part)
            part.replace(self.entries / name)
        return len(new)

    def _sums(self) -> dict[str, set[str]]:
        """The checksums that any manifest has, by entry; a manifest that is damaged has none."""
        known: dict[str, set[str]] = {}
        for path in (self.folder / MANIFESTS).glob("*.json"):
            with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
                for name, sums in json.loads(path.read_text(encoding="utf-8")).items():
                    known.setdefault(name, set()).update(sums)
        return known

    def _write_manifest(self, sums: Mapping[str, list[str]]) -> Path:
        path = self.folder / MANIFESTS / f"{uuid.uuid4().hex}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(sums, sort_keys=True), encoding="utf-8")
        part.replace(path)
        return path

    def _merge_manifests(self) -> None:
        paths = list((self.folder / MANIFESTS).glob("*.json"))
        if len(paths) <= MAX_MANIFESTS:
            return
        merged = {name: sorted(sums) for name, sums in self._sums().items()}
        self._write_manifest(merged)
        for path in paths:
            _remove(path)

    def _prune(self) -> None:
        """Remove the oldest entries of a store that has grown too large."""
        found = []
        for path in self.entries.iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime, path.name, status.st_size, path))
        total = sum(size for _, _, size, _ in found)
        for _, _, size, path in sorted(found):
            if total <= MAX_STORE_BYTES:
                return
            _remove(path)
            total -= size


def checksum(path: Path) -> str:
    """Return `size:sha256` of a plain file; empty for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return ""
        with open(descriptor, "rb", closefd=False) as file:
            return f"{status.st_size}:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
