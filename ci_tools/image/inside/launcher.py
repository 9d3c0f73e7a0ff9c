"""Starts one command inside the environment and reports how it went.

Run as `python -I -S -c <this text> SPEC COMMAND...` with SPEC as JSON: `report` (the file to
append JSON lines to), `directory`, `folders` to make, `network` (`keep`, `net` or `user-net`) and
`count_oom`. In a container it is process 1: it forwards signals and reaps orphans. Its report is
what tells a command that exits 125 to 127 from an engine that failed with these codes.
"""

import contextlib
import json
import os
import signal
import sys
from typing import Any

# What a terminal sends reaches the command directly, unless a container lies between.
FROM_TERMINAL = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
# Python ignores these two; the command must find them as any program does.
RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
PR_SET_PDEATHSIG = 1  # of linux/prctl.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
OOM_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def main(spec: dict[str, Any], argv: list[str]) -> int:
    """Run the command to its end; the exit code is the command's own, or 127 if it never ran."""
    try:
        for folder in spec["folders"]:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chdir(spec["directory"])
        cut_network(spec["network"])
        before = count_oom_kills() if spec["count_oom"] else None
        child = os.posix_spawnp(argv[0], argv, os.environ, setsigdef=RESTORED)
    except OSError as error:
        place = f": {error.filename}" if error.filename not in (None, argv[0]) else ""
        return fail(spec, f"{error.strerror or error}{place}", argv[0])
    relay_signals(child)
    write(spec, event="started", pid=child)
    code = wait_for(child)
    kills = None if before is None else (count_oom_kills() or 0) - before
    write(spec, event="ended", code=code, oom_kills=kills)
    end_leftovers()
    return code


def fail(spec: dict[str, Any], reason: str, program: str) -> int:
    """Report that the command never ran; on standard error where the report cannot be written."""
    try:
        write(spec, event="failed", reason=reason, program=program)
    except OSError as error:
        print(f"cannot start {program}: {reason}", file=sys.stderr)
        print(f"cannot write {spec['report']}: {error.strerror}", file=sys.stderr)
    return 127


def write(spec: dict[str, Any], **event: object) -> None:
    """Append one line to the report."""
    with open(spec["report"], "a", encoding="utf-8") as report:
        report.write(json.dumps(event) + "\n")


def relay_signals(child: int) -> None:
    """Hand signals on to the command, and outlive them to report its end."""

    def relay(number: int, _: object) -> None:
        if number == signal.SIGTERM or os.getpid() == 1:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)

    for number in (signal.SIGTERM, *FROM_TERMINAL):
        signal.signal(number, relay)
    ask_for_news_of_parent()


def ask_for_news_of_parent() -> None:
    """Have the kernel send SIGTERM when the starter dies: nobody waits for the command then.

    Process 1 of a container has its engine for that.
    """
    if os.getpid() != 1:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def wait_for(child: int) -> int:
    """Reap every process that ends until the command does; 128 + N for signal N."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def end_leftovers() -> None:
    """Ask what is left of the command's process group to end, so that no pipe stays open."""
    if os.getpid() != 1 and os.getpgrp() == os.getpid():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(os.getpgrp(), signal.SIGTERM)


def count_oom_kills() -> int | None:
    """Return the control group's own count of processes killed at the memory limit."""
    for path in OOM_FILES:
        try:
            with open(path, encoding="ascii") as file:
                rows = dict(line.split(" ", 1) for line in file.read().splitlines())
        except (OSError, ValueError):
            continue
        if "oom_kill" in rows:
            return int(rows["oom_kill"])
    return None


def cut_network(mode: str) -> None:
    """Leave the host's network for one with nothing but a loopback interface."""
    if mode == "keep":
        return
    if sys.version_info < (3, 12):
        raise OSError("this Python cannot make a network namespace")
    user, group = os.getuid(), os.getgid()
    if mode == "user-net":
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)
        map_own_ids(user, group)
    else:
        os.unshare(os.CLONE_NEWNET)
    raise_loopback()


def map_own_ids(user: int, group: int) -> None:
    """Keep the caller's ids in the new user namespace."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def raise_loopback() -> None:
    """Bring the interface `lo` up; a new network namespace has it down."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sH14x", b"lo", 0)
        answer = fcntl.ioctl(probe, SIOCGIFFLAGS, request)
        flags = struct.unpack("16sH14x", answer)[1]
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
