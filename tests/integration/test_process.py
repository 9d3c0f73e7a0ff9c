"""The one door to other programs: what they print, how they end, and how they are ended."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from ci_tools.edges.process import run, stream
from ci_tools.errors import InfrastructureError
from tests.integration.processes import is_alive, wait_until


def test_lines_arrive_one_by_one_from_both_streams() -> None:
    lines: list[str] = []
    code = stream(["sh", "-c", "echo out; echo err >&2; printf last; exit 3"], lines.append)
    assert (code, lines) == (3, ["out", "err", "last"])


def test_a_signal_is_a_negative_code() -> None:
    assert stream(["sh", "-c", "kill -9 $$"], print) == -9


def test_a_program_that_is_not_there_is_infrastructure() -> None:
    for call in (lambda: run(["no-such-program"]), lambda: stream(["no-such-program"], print)):
        with pytest.raises(InfrastructureError, match="cannot start no-such-program"):
            call()


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path / 'pid'}; exec sleep 60"
    with pytest.raises(InfrastructureError, match=r"ran over 0\.5 s"):
        stream(["sh", "-c", script], print, timeout_seconds=0.5)
    wait_until(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_what_is_printed_while_it_is_ended_breaks_no_pipe(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time, pathlib\n"
        "def end(*_):\n"
        "    print('ending', flush=True)\n"
        f"    pathlib.Path({str(tmp_path / 'ended')!r}).touch()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream([sys.executable, "-c", script], interrupt)
    assert (tmp_path / "ended").exists()


def test_no_descriptor_is_left_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            stream(["true"], print)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
