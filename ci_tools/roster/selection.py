"""Turns the words of `ONLY=` into ids of a lane; a word that matches nothing is an error."""

from __future__ import annotations

from collections.abc import Sequence

from ci_tools.errors import UsageError
from ci_tools.roster.lock import file_of


def select_ids(ids: Sequence[str], selection: Sequence[str]) -> tuple[str, ...]:
    """Return the ids that a selection names, in the order of `ids`.

    A word selects the id equal to it, every parametrisation of it, every test of a class or file,
    or every file below a folder.

    Raises:
        UsageError: A word matches no id.
    """
    chosen: set[str] = set()
    for word in selection:
        matches = [test_id for test_id in ids if is_selected(test_id, word)]
        if not matches:
            raise UsageError(
                f"{word!r} matches no id of this lane, so running it would prove nothing",
                fix=f"python3 -m ci_tools roster explain {word!r}",
            )
        chosen.update(matches)
    return tuple(test_id for test_id in ids if test_id in chosen)


def is_selected(test_id: str, word: str) -> bool:
    """Return whether one word of a selection names this id."""
    name = word.removeprefix("./")
    if test_id == name or test_id.startswith((f"{name}[", f"{name}::")):
        return True
    return file_of(test_id).startswith(f"{name.rstrip('/')}/")
