"""Run a support script in a fresh interpreter and read the JSON it prints.

The child gets none of the parent's JAX_* variables: a test states the ones it is about. XLA_FLAGS
is kept and added to, so that an instruction-set cap on the whole run also holds in the child.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parent
TIMEOUT_SECONDS = 120


def run_script(
    name: str,
    *arguments: str,
    scratch: Path,
    variables: Mapping[str, str] | None = None,
    xla_flags: str = "",
) -> Any:
    """Return what `support/<name>.py` prints as its last line, parsed.

    Args:
        name: The script, without its suffix.
        arguments: Its command line.
        scratch: An existing folder to run in, which is also HOME.
        variables: Environment variables on top of the inherited ones.
        xla_flags: Flags to add to those inherited.

    Raises:
        AssertionError: The script failed; the message carries the end of its standard error.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment |= {"JAX_PLATFORMS": "cpu", "HOME": str(scratch), **(variables or {})}
    environment["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {xla_flags}".strip()
    # -P keeps the script's folder off the import path: its neighbours must not shadow a library.
    command = [sys.executable, "-P", str(SUPPORT / f"{name}.py"), *arguments]
    done = subprocess.run(
        command,
        cwd=scratch,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{done.stderr[-4000:]}"
    return json.loads(done.stdout.splitlines()[-1])
