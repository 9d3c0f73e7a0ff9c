"""Turns the user's variables into a request for an environment."""

from __future__ import annotations

import os
from collections.abc import Callable

from ci_tools.config import Config
from ci_tools.edges import actions
from ci_tools.image.identity import EnvironmentRequest
from ci_tools.image.settings import find_ca_bundle
from ci_tools.tree import Tree


def make_environment_request(
    tree: Tree, config: Config, engine: str | None, report: Callable[[str], None]
) -> EnvironmentRequest:
    """Return the request: `engine`, else `ENGINE`; `BASE_IMAGE`; in CI no local build, no venv."""
    in_ci = actions.is_ci(os.environ)
    return EnvironmentRequest(
        tree=tree,
        engine=engine or os.environ.get("ENGINE") or None,
        allow_local_build=not in_ci,
        in_ci=in_ci,
        base_image=os.environ.get("BASE_IMAGE") or None,
        ca_bundle=find_ca_bundle(os.environ),
        report=report,
    )
