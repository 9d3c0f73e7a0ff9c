"""The facts about a dead process are read from where they are, and from nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ci_tools.running import evidence
from ci_tools.running.evidence import (
    Watch,
    count_mappings,
    count_oom_kills,
    find_kernel_lines,
    find_last_words,
    gather,
    read_kernel_log,
    read_max_mappings,
    read_pss_bytes,
    read_tail,
)

KILLED = "Memory cgroup out of memory: Killed process 77 (python) total-vm:1kB"
OOM = "oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=77,uid=0"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (f"3,1,2,-;{KILLED}\n SUBSYSTEM=x\n", [KILLED]),
        (f"6,1,2,-;{OOM}\n3,2,3,-;{KILLED}\n", [OOM, KILLED]),
        (f"3,1,2,-;{KILLED.replace('77', '777')}\n", []),
        (f"3,1,2,-;{KILLED.replace('77', '7')}\n", []),
        (f"6,1,2,-;{OOM.replace('pid=77', 'pid=770')}\n", []),
        (f"6,1,2,-;{OOM.replace('pid=77', 'ppid=77')}\n", []),
        ("", []),
    ],
)
def test_the_kernel_names_the_process(log: str, expected: list[str]) -> None:
    assert find_kernel_lines(77, log) == expected


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("test.py .F\nE  assert 0\n", []),
        ("a\nFatal Python error: Aborted\n\nThread 0x1:\n  File x", [
            "Fatal Python error: Aborted", "Thread 0x1:", "  File x"]),
        ("x: Cannot allocate memory\nFatal Python error: Aborted\n", [
            "x: Cannot allocate memory", "Fatal Python error: Aborted"]),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n", [
            "terminate called after throwing an instance of 'std::bad_alloc'"]),
        ("tests/test_x.py .Fatal Python error: x\n", ["Fatal Python error: x"]),
    ],
)  # fmt: skip
def test_last_words_say_how_it_died(log: str, expected: list[str]) -> None:
    assert find_last_words(log) == expected


def test_last_words_are_few_and_short() -> None:
    text = "Fatal Python error: x\n" + "y" * 1000 + "\n" + "z\n" * 100
    words = find_last_words(text)
    assert len(words) == evidence.MAX_WORDS
    assert max(map(len, words)) == 300


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first" + b"\xff" * evidence.LOG_BYTES + b"last")
    assert read_tail(path).endswith("last")
    assert "first" not in read_tail(path)
    assert read_tail(tmp_path / "nothing") == ""


def test_this_process_has_a_size_and_a_dead_one_has_none() -> None:
    assert read_pss_bytes(os.getpid()) > 1_000_000
    assert 10 < count_mappings(os.getpid()) < read_max_mappings()
    assert (read_pss_bytes(2**22 + 1), count_mappings(2**22 + 1)) == (0, 0)


def test_a_watch_keeps_the_peaks_and_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([(5, 50), (9, 20), (1, 90)])
    current = (0, 0)

    def next_pss(pid: int) -> int:
        nonlocal current
        current = next(sizes)
        return current[0]

    monkeypatch.setattr(evidence, "read_pss_bytes", next_pss)
    monkeypatch.setattr(evidence, "count_mappings", lambda pid: current[1])
    watch = Watch(pid=1)
    for offset in (0.0, 0.1, 0.3, 0.35, 0.7):
        watch.sample(1000 + offset)
    assert (watch.samples, watch.peak_pss_bytes, watch.peak_mappings) == (3, 9, 90)


def test_sampling_a_slow_process_costs_no_more_than_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    reads = []

    def slow(pid: int) -> int:
        reads.append(clock[0])
        clock[0] += 0.1
        return 1

    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr(evidence, "read_pss_bytes", slow)
    monkeypatch.setattr(evidence, "count_mappings", lambda pid: 1)
    watch = Watch(pid=1)
    for _ in range(1000):
        watch.sample(clock[0])
        clock[0] += 0.01
    assert 0.1 * len(reads) <= 0.02 * clock[0] + 0.1
    assert watch.samples > 10 * len(reads)


@pytest.mark.parametrize(
    ("row", "file"),
    [
        ("0::/a/b", "a/b/memory.events"),
        ("3:memory:/a", "memory/a/memory.oom_control"),
        ("0::/gone", "memory.events"),
    ],
)
def test_the_counter_of_the_own_control_group_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, file: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("oom 5\noom_kill 3\noom_group_kill 1\n")
    real = evidence._read

    def read(path: Path) -> str:
        if path == Path("/proc/self/cgroup"):
            return row + "\n"
        base = Path("/sys/fs/cgroup")
        return real(tmp_path / path.relative_to(base) if path.is_relative_to(base) else path)

    monkeypatch.setattr(evidence, "_read", read)
    assert count_oom_kills() == 3


def test_kills_are_counted_from_the_start_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "count_oom_kills", lambda: 5)
    assert gather(Watch(pid=1, oom_kills_before=3), tmp_path / "log")["oom_kills"] == 2
    assert gather(Watch(pid=1, oom_kills_before=None), tmp_path / "log")["oom_kills"] is None


def test_the_kernels_log_is_text_or_nothing() -> None:
    assert isinstance(read_kernel_log(), str)
