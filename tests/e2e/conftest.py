"""What the end-to-end tests share: the base image's archive."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.support.machine import require_programs

CACHE = Path(__file__).resolve().parents[2] / ".ci-tools" / "cache"


@pytest.fixture(scope="session")
def base_archive() -> Path:
    """A minimal Debian with Python 3.13, made once."""
    require_programs()
    archive = CACHE / "base-trixie.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        part = archive.with_suffix(".part.tar")
        packages = "--include=ca-certificates,python3,python3-venv,git"
        subprocess.run(["mmdebstrap", "--variant=minbase", packages, "trixie", part], check=True)
        part.replace(archive)
    return archive
