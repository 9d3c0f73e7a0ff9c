"""A fresh tiny project for each test that asks for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.projects import Project, make_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)
