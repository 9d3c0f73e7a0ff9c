"""Variables that libraries read when they are imported, and whether a file changed them since.

A fork has its libraries imported already, so a conftest that sets such a variable would be too
late there; the file then needs a fresh process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

SETTINGS_VARIABLE = "CI_TOOLS_IMPORTED_UNDER"
_PREFIXES = ("JAX_", "NUMPYRO_")
_NAMES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE")


def render_settings(variables: Mapping[str, str]) -> str:
    """Return the variables that are read at import, in a form to keep in a variable."""
    return json.dumps(_select(variables), sort_keys=True)


def find_changed_settings(variables: Mapping[str, str]) -> list[str]:
    """Return the names that differ from what the libraries were imported under; none if fresh."""
    text = variables.get(SETTINGS_VARIABLE)
    if text is None:
        return []
    before: dict[str, str] = json.loads(text)
    now = _select(variables)
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _select(variables: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in variables.items() if k.startswith(_PREFIXES) or k in _NAMES}
