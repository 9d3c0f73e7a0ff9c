"""What the end-to-end tests share: one world, made once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.containers import containers_in
from tests.e2e.support.world import World, make_world


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """The registry, the images and the engines; no test may leave a container in them."""
    with make_world() as world:
        yield world
        assert containers_in(world.puller) == []
