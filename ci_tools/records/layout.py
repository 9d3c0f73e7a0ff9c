"""Where the records of a run lie: names of folders and files, shared by writers and readers."""

from __future__ import annotations

from pathlib import Path

PLAN = "plan.json"
PREFLIGHT = "preflight.json"
CHUNK_JOURNAL = "chunk.jsonl"
ENVIRONMENT = "environment.json"
LAUNCH = "launch.json"
REFUSAL = "refusal.json"
JOURNALS = "files"
COMPILED = "compiled"


def chunk_folder(results: Path, number: int) -> Path:
    """Return the folder of one chunk's records."""
    return results / f"chunk-{number:03d}"


def journal_path(folder: Path, index: int) -> Path:
    """Return the journal of the chunk's file number `index`, counted from 0 in plan order."""
    return folder / JOURNALS / f"{index:04d}.jsonl"


def job_path(folder: Path, index: int) -> Path:
    """Return the job description of the chunk's file number `index`."""
    return folder / JOURNALS / f"{index:04d}.job.json"


def log_path(folder: Path, index: int) -> Path:
    """Return what the chunk's file number `index` printed."""
    return folder / JOURNALS / f"{index:04d}.log"
