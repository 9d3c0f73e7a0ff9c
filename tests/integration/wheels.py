"""Tiny real wheels in a folder, which pip and pip-compile take for an index of their own."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path


def build_wheel(folder: Path, name: str, version: str, needs: Sequence[str] = ()) -> str:
    """Write a pure wheel with one module and a console script; return its hash for a lock."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {need}\n" for need in needs)
    info = f"{name}-{version}.dist-info"
    members = {
        f"{name}.py": f"VERSION = {version!r}\n\n\ndef main():\n    print({name!r}, VERSION)\n",
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    members[f"{info}/RECORD"] = "".join(f"{member},,\n" for member in [*members, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return hash_of(path)


def hash_of(path: Path) -> str:
    """Return the hash of a file as a lock writes it."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
