"""What may import what: layers from the bottom up, and the standard library on the host.

A module may import from its own layer's package and from the layers below, never from above.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "ci_tools"

# From the bottom up; the packages of one row do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("ci_tools", "ci_tools.errors"),
    ("ci_tools.findings", "ci_tools.tree"),
    ("ci_tools.config", "ci_tools.records", "ci_tools.edges", "ci_tools.compilation"),
    ("ci_tools.roster", "ci_tools.provision"),
    ("ci_tools.planning", "ci_tools.environment", "ci_tools.requirements"),
    ("ci_tools.running",),
    ("ci_tools.verdict", "ci_tools.image"),
    ("ci_tools.lanes",),
    ("ci_tools.commands",),
    ("ci_tools.cli",),
    ("ci_tools.__main__", "ci_tools.devtools"),
)
# What comes from a lock, and the one place that may need it: all of these run inside the image.
THIRD_PARTY = {
    "pytest": ("ci_tools.running.plugin", "ci_tools.running.reports"),
    "jax": ("ci_tools.environment.capture", "ci_tools.running.compilations"),
}
# The one module for each part of the world: nothing else starts a process.
DOORS = {"subprocess": ("ci_tools.edges.process", "ci_tools.running", "ci_tools.image.attach")}


def imports_of(module: str, source: str) -> Iterator[tuple[int, str]]:
    """The line and the full name of everything that a module imports, wherever it does so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, name) for name in _imports_by_call(node))


def _imports_by_call(node: ast.Call) -> Iterator[str]:
    """What `__import__("x")` and `importlib.import_module("x")` name."""
    if "import" in ast.unparse(node.func).rpartition(".")[2]:
        yield from (str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant))


def layer_of(module: str) -> tuple[int, str] | None:
    """The layer of a module, and the package that it belongs to there: the longest that fits."""
    found = [
        (len(name), number, name)
        for number, names in enumerate(LAYERS)
        for name in names
        if module == name or (module.startswith(f"{name}.") and name != PACKAGE)
    ]
    return max(found)[1:] if found else None


def find_broken(module: str, source: str) -> list[str]:
    """Every import of a module that the contract does not allow, as `line: what (rule)`."""
    own = layer_of(module)
    broken = [] if own else [f"1: {module} (in no layer)"]
    for line, name in imports_of(module, source):
        rule = _rule_against(module, own, name)
        if rule:
            broken.append(f"{line}: {name} ({rule})")
    return broken


def _rule_against(module: str, own: tuple[int, str] | None, name: str) -> str:
    top = name.partition(".")[0]
    if top == "":
        return "relative"
    if top == PACKAGE:
        other = layer_of(name) or layer_of(name.rpartition(".")[0])
        is_below = own and other and (other == own or other[0] < own[0])
        return "" if is_below else "not below"
    doors = DOORS.get(top)
    if doors and not any(module == door or module.startswith(f"{door}.") for door in doors):
        return "not the door"
    if top in sys.stdlib_module_names:
        return ""
    return "" if module in THIRD_PARTY.get(top, ()) else "third party"


def modules() -> dict[str, Path]:
    paths = sorted((ROOT / PACKAGE).rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return {n.removesuffix(".__init__"): p for n, p in zip(names, paths, strict=True)}


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_what_it_may(module: str) -> None:
    assert find_broken(module, modules()[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source", "rule"),
    [
        ("ci_tools.roster.lock", "from ci_tools.verdict.decide import decide", "not below"),
        ("ci_tools.roster.lock", "import ci_tools.verdict.decide", "not below"),
        ("ci_tools.roster.lock", "from ci_tools.planning import plan", "not below"),
        ("ci_tools.verdict.decide", "from ci_tools.image.lock import ImageLock", "not below"),
        ("ci_tools.config", "from ci_tools.edges import git", "not below"),
        ("ci_tools.errors", "from ci_tools.findings import Finding", "not below"),
        ("ci_tools.commands.lanes", "from ci_tools.cli import main", "not below"),
        ("ci_tools.roster.lock", "def f():\n    from ci_tools import cli", "not below"),
        ("ci_tools.roster.lock", "from .markers import x", "relative"),
        ("ci_tools.roster.lock", "from . import markers", "relative"),
        ("ci_tools.roster.lock", "import pytest", "third party"),
        ("ci_tools.roster.lock", "import jax.numpy", "third party"),
        ("ci_tools.roster.lock", "if False:\n    import requests", "third party"),
        ("ci_tools.roster.lock", "importlib.import_module('numpy')", "third party"),
        ("ci_tools.roster.lock", "__import__('numpy')", "third party"),
        ("ci_tools.running.plugin", "import jax", "third party"),
        ("ci_tools.environment.capture", "import pytest", "third party"),
        ("ci_tools.roster.lock", "import subprocess", "not the door"),
        ("ci_tools.attic.old", "", "in no layer"),
    ],
)
def test_each_rule_can_be_broken(module: str, source: str, rule: str) -> None:
    broken = find_broken(module, source)
    assert len(broken) == 1
    assert broken[0].endswith(f"({rule})")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("ci_tools.roster.lock", "from ci_tools.roster.markers import x\nimport json, os.path"),
        ("ci_tools.roster.lock", "from ci_tools.config import Config\nfrom ci_tools import tree"),
        ("ci_tools.verdict.report.people", "from ci_tools.verdict.decide import Verdict"),
        ("ci_tools.running.plugin", "import pytest"),
        ("ci_tools.environment.capture", "def f():\n    import jax"),
        ("ci_tools.edges.process", "import subprocess"),
        ("ci_tools.cli", "from ci_tools import __version__"),
    ],
)
def test_what_is_beside_the_rules_is_allowed(module: str, source: str) -> None:
    assert find_broken(module, source) == []


def test_every_layer_is_there() -> None:
    known = set(modules())
    assert {name for names in LAYERS for name in names} <= known


HOST_COMMANDS = ("roster check", "plan", "verdict", "image check", "run", "ci-local", "with")


@pytest.mark.parametrize("command", HOST_COMMANDS)
def test_a_host_command_starts_without_site_packages(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-m", PACKAGE, *command.split(), "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
