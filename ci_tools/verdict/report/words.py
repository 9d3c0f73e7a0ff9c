"""The sentences of a verdict that every form shares."""

from __future__ import annotations

import re
import shlex

from ci_tools.verdict.decide import Verdict
from ci_tools.verdict.outcomes import Outcome

MAX_WORD = 300
_SURROGATE = re.compile("[\ud800-\udfff]")


def conclusion_of(verdict: Verdict) -> str:
    """Return the one word for machines: a partial verdict never reads `green` or `red`."""
    colour = "green" if verdict.is_green else "red"
    return f"partial-{colour}" if verdict.is_partial else colour


def render_headline(verdict: Verdict) -> str:
    """Return the verdict as one line: colour, kinds of red, counts, and what it ran in."""
    colour = "GREEN" if verdict.is_green else "RED"
    kinds = f" ({', '.join(verdict.kinds)})" if verdict.kinds else ""
    partial = "PARTIAL, not the gate's verdict: " if verdict.is_partial else ""
    return f"{partial}{colour}{kinds}: {render_counts(verdict)}{render_place(verdict)}"


def render_counts(verdict: Verdict) -> str:
    """Return how many of the planned tests passed, and what became of the others."""
    total = len(verdict.results)
    if not total:
        return "nothing ran"
    counts = verdict.counts
    green = sum(counts[outcome] for outcome in Outcome if outcome.is_green)
    others = [f"{counts[o]} {o}" for o in Outcome if counts[o] and not o.is_green]
    return ", ".join([f"{green} of {total} planned tests passed", *others])


def render_place(verdict: Verdict) -> str:
    """Return ` in <environment>`; empty when no chunk left a record."""
    image = verdict.environment
    if verdict.label:
        return f" in the {verdict.label}"
    if image.get("digest"):
        return f" in {image['name']}@{image['digest']}"
    return ""


def reproduce_command(verdict: Verdict, test_id: str | None, path: str | None) -> str:
    """Return the command that runs one test again in the environment that the commit names.

    The file stands in for an id that no shell can pass on.
    """
    only = next((word for word in (test_id, path) if word and _is_typeable(word)), None)
    return "make ci-local" if only is None else f"ONLY={_quote(only)} make ci-local"


def _is_typeable(word: str) -> bool:
    return "\0" not in word and len(word) <= MAX_WORD and not _SURROGATE.search(word)


def _quote(word: str) -> str:
    """Quote for a shell; what is not printable as bash and zsh write it, all on one line."""
    if word.isprintable() and "##[" not in word:
        return shlex.quote(word)
    return "$'" + "".join(map(_quote_character, word)) + "'"


def _quote_character(character: str) -> str:
    if character.isprintable() and character not in "\\'#":
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8"))
