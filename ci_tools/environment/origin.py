"""Where an import package comes from, without importing it."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def find_origin(package: str) -> Path | None:
    """Return the folder or file that an import package resolves to; None when it does not."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.origin and not spec.has_location:
        return None  # built into the interpreter
    locations = [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])
    return Path(locations[0]).resolve() if locations else None
