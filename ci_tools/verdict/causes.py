"""Why a process died by a signal: the strongest cause that the evidence carries, and no more.

What the kernel's log says of this very process is proof. A kill that was counted in a control group
that others share is not: the kernel may have shot an idle neighbour.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_tools.findings import Kind
from ci_tools.running.evidence import REFUSALS

FULL = 0.95  # of the mappings that the kernel allows; the next executable needs dozens
NATIVE = {
    signal.SIGSEGV: "a segmentation fault",
    signal.SIGBUS: "a bus error",
    signal.SIGABRT: "an abort",
    signal.SIGILL: "an illegal instruction: something was compiled for another processor",
    signal.SIGFPE: "an arithmetic exception",
}
OUTSIDE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
MAX_QUOTE = 400


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What a death is put down to.

    Attributes:
        kind: The kind of red.
        words: The cause, as the end of a sentence.
        quote: The line of evidence; empty where there is none.
    """

    kind: Kind
    words: str
    quote: str = ""

    def __str__(self) -> str:
        return f'{self.words} ("{self.quote}")' if self.quote else self.words


def find_cause(number: int, evidence: Mapping[str, Any]) -> Cause:
    """Return the cause of a death by the signal `number`; broken evidence counts as none."""
    if number == signal.SIGKILL:
        return _find_killer(evidence)
    if number in OUTSIDE:
        return Cause(kind=Kind.CRASH, words="it was terminated from outside, or by itself")
    words = _strings(evidence.get("last_words"))
    if number not in NATIVE:
        return Cause(kind=Kind.CRASH, words="the signal alone does not prove a cause")
    peak, limit = _count(evidence.get("peak_mappings")), _count(evidence.get("max_mappings"))
    if limit and peak >= FULL * limit:
        message = f"it had used up its memory mappings, {peak} of {limit}"
        return Cause(kind=Kind.MEMORY, words=message, quote=_first(words))
    allocation = [line for line in words if not line.startswith(("Fatal Python", "  File"))]
    refused = [line for line in allocation if _is_refused(line)]
    if refused:
        return Cause(kind=Kind.MEMORY, words="memory was refused to it", quote=_first(refused))
    return Cause(kind=Kind.CRASH, words=NATIVE[signal.Signals(number)], quote=_place(words))


def _find_killer(evidence: Mapping[str, Any]) -> Cause:
    named = _strings(evidence.get("kernel_log"))
    if named:
        return Cause(kind=Kind.MEMORY, words="the kernel killed it for memory", quote=_first(named))
    kills = _count(evidence.get("oom_kills"))
    if kills:
        return Cause(
            kind=Kind.CRASH,
            words=f"culprit unproven: the kernel killed {kills} process(es) for memory in this "
            "control group meanwhile, and in a shared one that can be an innocent neighbour",
        )
    return Cause(kind=Kind.CRASH, words="culprit unproven: nothing says who killed it, or why")


def _is_refused(line: str) -> bool:
    return any(word in line for word in REFUSALS)


def _place(words: Sequence[str]) -> str:
    """The fatal line and the innermost place that the fault handler names."""
    fatal = [line for line in words if line.startswith("Fatal Python error")]
    frames = [line.strip() for line in words if line.startswith("  File")]
    return "; ".join((*fatal[:1], *frames[:1]))[:MAX_QUOTE]


def _first(lines: Sequence[str]) -> str:
    return lines[0].strip()[:MAX_QUOTE] if lines else ""


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
