"""What one run leaves for the next on this machine: compiled programs, and what files cost.

Both make a run faster and neither decides anything: where they are missing, damaged or switched
off, everything is compiled and files start as they are listed.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ci_tools.compilation.key import compute_key
from ci_tools.compilation.store import Store
from ci_tools.config import Config
from ci_tools.image.identity import ReadyEnvironment
from ci_tools.lanes.costs import load_history, remember
from ci_tools.planning.costs import Cost, forecast, order_files
from ci_tools.records.layout import COMPILED
from ci_tools.running.worklist import Worklist
from ci_tools.tree import Tree

NAMES = ("engine", "kind", "digest", "image_id", "inputs")


@dataclass(frozen=True)
class Carried:
    """What a run finds, and where it leaves its own.

    Attributes:
        report: Gets what a person should know.
        store: The compiled programs; None: switched off, or not usable.
        cache_inside: Where the environment sees the programs; empty: nowhere.
        history: The costs of files; None: not kept for this run.
    """

    report: Callable[[str], None]
    store: Store | None = None
    cache_inside: str = ""
    history: Path | None = None

    @property
    def entries(self) -> Path | None:
        """The folder of compiled programs that the environment gets to read."""
        return None if self.store is None else self.store.entries

    def prepare(self, worklist: Worklist) -> Worklist:
        """Return the worklist with the programs that are there, in the order of its forecast."""
        worklist = replace(worklist, cache=self.cache_inside)
        if self.history is None:
            return worklist
        paths = [file.path for file in worklist.files]
        default = Cost(0.0, worklist.file_memory_bytes)
        expected = forecast(load_history(self.history), paths, default)
        if len(expected.unseen) == len(paths):
            return worklist
        work = sum(cost.seconds for cost in expected.costs.values())
        new = f"; {len(expected.unseen)} of {len(paths)} files are new" if expected.unseen else ""
        self.report(f"forecast: {work:.0f} s of work{new}")
        places = {path: place for place, path in enumerate(paths)}
        return replace(
            worklist,
            order=tuple(places[path] for path in order_files(expected)),
            peaks=tuple(expected.costs[path].peak_bytes for path in paths),
        )

    def keep(self, folder: Path) -> None:
        """Take from a chunk's folder what the next run can use; a loss costs only time."""
        compiled = folder / COMPILED
        if self.store is not None and compiled.is_dir():
            with contextlib.suppress(OSError):
                self.store.add(compiled)
        shutil.rmtree(compiled, ignore_errors=True)
        if self.history is not None:
            remember(self.history, folder)


def find_carried(
    tree: Tree,
    config: Config,
    environment: ReadyEnvironment,
    report: Callable[[str], None],
    worklist: Worklist,
) -> Carried:
    """Return what earlier runs in this environment on this processor left.

    A listing takes and leaves nothing; a run of parts of files leaves no costs, because they are
    not those of the files.
    """
    if worklist.list_only:
        return Carried(report)
    identity = {name: str(getattr(environment.identity, name)) for name in NAMES}
    try:
        key = compute_key(identity, Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        store = _open_store(tree, key, report) if config.run.compilation_cache else None
    except OSError as error:
        report(f"nothing of earlier runs is used: {error}")
        return Carried(report)
    state = "no-cache" if store is None else "warm" if store.is_warm else "cold"
    is_whole = all(file.ids is None for file in worklist.files)
    history = tree.state / "history" / f"costs-{key}-{state}.json" if is_whole else None
    inside = "" if store is None else environment.cache_inside(store.entries)
    return Carried(report, store, inside, history)


def _open_store(tree: Tree, key: str, report: Callable[[str], None]) -> Store:
    store = Store(tree.state / "cache" / "compiled" / key)
    removed = store.open()
    if removed:
        report(f"compilation cache: {removed} damaged entries were removed")
    return store
