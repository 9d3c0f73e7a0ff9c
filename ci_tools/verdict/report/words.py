"""The sentences of a verdict that every form shares."""

from __future__ import annotations

import shlex

from ci_tools.verdict.decide import Verdict
from ci_tools.verdict.outcomes import Outcome


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
    """Return the command that runs one test again in the environment that the commit names."""
    only = shlex.quote(test_id or path or "")
    return f"ONLY={only} make ci-local" if test_id or path else "make ci-local"
