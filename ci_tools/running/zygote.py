"""A process that imports the heavy modules once and forks one test process for each file.

It never runs a test, initialises no JAX backend and starts no thread: forking after either would
hang every child. It says so instead, and the supervisor then starts fresh processes. The forked
process is handed to the supervisor, which reaps it: the one in between ends at once.

Runs as `python -m ci_tools.running.zygote DESCRIPTOR MODULE...` with one end of a socket pair.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import runpy
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ci_tools.compilation.overlay import FOLDER_VARIABLE
from ci_tools.running.settings import SETTINGS_VARIABLE, render_settings

# Libraries that start threads when they are imported do so under these; the tests get them back.
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}


def main(arguments: Sequence[str]) -> int:
    """Import, report readiness, and fork on request until the supervisor hangs up."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    before = dict(os.environ)
    os.environ.update({k: v for k, v in ONE_THREAD.items() if k not in before})
    report = import_modules(arguments[1:])
    os.environ.clear()
    os.environ.update(before)
    gc.collect()
    gc.freeze()
    _send(control, {**report, "unfit": why_unfit()})
    with control.makefile("r", encoding="utf-8") as requests:
        for line in requests:
            request = json.loads(line)
            reason = why_unfit()
            if reason:
                _send(control, {"unfit": reason})
                continue
            _send(control, {"pid": fork_orphan(control, request)})
    return 0


def fork_orphan(control: socket.socket, request: Mapping[str, Any]) -> int:
    """Return the process id of a test process whose parent has ended: its reaper has it now."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        child = os.fork()
        if child == 0:
            for descriptor in (reading, writing):
                os.close(descriptor)
            control.close()
            _become_test_process(request)
        os.write(writing, str(child).encode("ascii"))
        os._exit(0)
    os.close(writing)
    os.waitpid(between, 0)
    with os.fdopen(reading, "rb") as answer:
        return int(answer.read())


def import_modules(names: Sequence[str]) -> dict[str, Any]:
    """Import what there is; the modules that are missing or fail are named with their error."""
    began = time.monotonic()
    failed = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    return {"failed": failed, "seconds": round(time.monotonic() - began, 3)}


def why_unfit() -> str:
    """Return why this process must not fork a test; empty when it may."""
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        return f"importing left {threads} threads running, and only one survives a fork"
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        return "importing initialised a JAX backend, which hangs after a fork"
    return ""


def _send(control: socket.socket, data: Mapping[str, Any]) -> None:
    control.sendall(json.dumps(data).encode("ascii") + b"\n")


def _become_test_process(request: Mapping[str, Any]) -> NoReturn:
    """Be what a fresh `python -m pytest` would be, but for what is imported already."""
    os.setsid()
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    os.environ[SETTINGS_VARIABLE] = render_settings(os.environ)
    _point_to_cache()
    _reseed()
    sys.argv = [request["module"], *request["arguments"]]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    raise SystemExit(0)


def _point_to_cache() -> None:
    """Give jax, which has read its variables already, this process's own cache folder."""
    jax = sys.modules.get("jax")
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is not None and jax is not None and hasattr(jax, "config"):
        jax.config.update("jax_compilation_cache_dir", folder)


def _reseed() -> None:
    """Seed the global generators from the system, as a fresh process does."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        with contextlib.suppress(AttributeError):
            numpy.random.seed()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
