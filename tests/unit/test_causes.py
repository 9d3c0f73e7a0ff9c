"""A death is put down to what the evidence proves, and to nothing more."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.findings import Kind
from ci_tools.verdict.causes import find_cause

KERNEL = "Memory cgroup out of memory: Killed process 7 (python) total-vm:1kB, anon-rss:1kB"
SEGFAULT = [
    "Fatal Python error: Segmentation fault",
    "Current thread 0x00007f (most recent call first):",
    '  File "/repo/tests/roster/test_a.py", line 3 in test_x',
    '  File "/repo/x.py", line 9 in pytest_pyfunc_call',
]
LLVM = "LLVM ERROR: Unable to allocate section memory!"
XLA = "INTERNAL: Failed to materialize symbols: { (<xla_jit_dylib_0>, { add }) }"


@pytest.mark.parametrize(
    ("number", "evidence", "kind", "words", "quote"),
    [
        (9, {"kernel_log": [KERNEL]}, Kind.MEMORY, "the kernel killed it for memory", KERNEL),
        (9, {"kernel_log": [], "oom_kills": 1}, Kind.CRASH, "an innocent neighbour", ""),
        (9, {"oom_kills": 0}, Kind.CRASH, "nothing says who killed it", ""),
        (9, {"oom_kills": None}, Kind.CRASH, "nothing says who killed it", ""),
        (9, {"last_words": [XLA]}, Kind.CRASH, "nothing says who killed it", ""),
        (15, {}, Kind.CRASH, "terminated from outside", ""),
        (1, {"kernel_log": [KERNEL]}, Kind.CRASH, "terminated from outside", ""),
        (
            11,
            {"last_words": SEGFAULT},
            Kind.CRASH,
            "a segmentation fault",
            "Fatal Python error: Segmentation fault; "
            'File "/repo/tests/roster/test_a.py", line 3 in test_x',
        ),
        (11, {}, Kind.CRASH, "a segmentation fault", ""),
        (6, {"last_words": ["Fatal Python error: Aborted"]}, Kind.CRASH, "an abort",
         "Fatal Python error: Aborted"),
        (6, {"last_words": [LLVM]}, Kind.MEMORY, "memory was refused to it", LLVM),
        (11, {"last_words": [XLA, *SEGFAULT]}, Kind.MEMORY, "memory was refused to it", XLA),
        (
            11,
            {"peak_mappings": 65_000, "max_mappings": 65_530, "last_words": [XLA]},
            Kind.MEMORY,
            "it had used up its memory mappings, 65000 of 65530",
            XLA,
        ),
        (6, {"peak_mappings": 60_000, "max_mappings": 65_530}, Kind.CRASH, "an abort", ""),
        (6, {"peak_mappings": 60_000, "max_mappings": 0}, Kind.CRASH, "an abort", ""),
        (4, {}, Kind.CRASH, "an illegal instruction", ""),
        (7, {}, Kind.CRASH, "a bus error", ""),
        (8, {}, Kind.CRASH, "an arithmetic exception", ""),
        (31, {}, Kind.CRASH, "the signal alone does not prove a cause", ""),
        (99, {"kernel_log": [KERNEL]}, Kind.CRASH, "the signal alone does not prove", ""),
    ],
)  # fmt: skip
def test_each_cause_has_its_evidence(
    number: int, evidence: dict[str, Any], kind: Kind, words: str, quote: str
) -> None:
    cause = find_cause(number, evidence)
    assert (cause.kind, cause.quote) == (kind, quote)
    assert words in cause.words
    assert quote in str(cause)


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
KEYS = ("last_words", "kernel_log", "oom_kills", "peak_mappings", "max_mappings")


@given(st.sampled_from([*signal.Signals, 99]), st.dictionaries(st.sampled_from(KEYS), values))
def test_broken_evidence_breaks_nothing(number: int, evidence: dict[str, Any]) -> None:
    assert str(find_cause(number, evidence))
