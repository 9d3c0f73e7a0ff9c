"""Every workflow keeps the contract, and every rule of the contract can be broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.workflow_rules import REQUIRED, RULES, find_broken

FOLDER = Path(__file__).resolve().parents[2] / ".github" / "workflows"
SHA = "0123456789abcdef0123456789abcdef01234567"
UPLOAD = f"""\
      - uses: actions/upload-artifact@{SHA} # v1.0.0
        if: always()
        with:
          name: records-${{{{ matrix.n }}}}
          path: records
          if-no-files-found: error
"""
GOOD = f"""\
name: checks
on:
  pull_request:
  merge_group:
  push:
    branches: [main]
permissions: {{}}
concurrency:
  group: checks-${{{{ github.event.pull_request.number || github.ref }}}}
  cancel-in-progress: ${{{{ github.event_name == 'pull_request' }}}}
jobs:
  test:
    name: test ${{{{ matrix.n }}}}
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions:
      contents: read # checkout
    strategy:
      matrix: {{n: [1, 2]}}
    steps:
      - uses: actions/checkout@{SHA} # v1.0.0
        with:
          persist-credentials: false
      - env:
          NUMBER: ${{{{ matrix.n }}}}
        run: python3 -m ci_tools run --chunk "$NUMBER" --results results
{UPLOAD}\
  checks:
    name: checks
    needs: [test]
    if: always()
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions: {{}}
    steps:
      - run: make lint
"""
GO_ON = "continue-on-error: true"
BAD = {
    "permissions": [("permissions: {}\nconcurrency", "concurrency"),
                    ("permissions: {}\nconcurrency", "permissions: read-all\nconcurrency"),
                    ("    permissions: {}\n", "")],
    "reasons": [("contents: read # checkout", "contents: read"),
                ("contents: read # checkout", "contents: write #")],
    "pins": [(f"checkout@{SHA} # v1.0.0", f"checkout@{SHA[:7]}0 # v1.0.0"),
             (f"actions/checkout@{SHA} #", f"checkout@{SHA} #")],
    "versions": [(f"checkout@{SHA} # v1.0.0", f"checkout@{SHA}"),
                 (f"checkout@{SHA} # v1.0.0", f"checkout@{SHA} # v1")],
    "credentials": [("persist-credentials: false", "persist-credentials: true"),
                    ("persist-credentials: false", "fetch-depth: 0")],
    "secrets": [("${{ matrix.n }}\n        run", "${{ secrets.TOKEN }}\n        run")],
    "timeouts": [("    timeout-minutes: 5\n    permissions: {}", "    permissions: {}")],
    "runners": [("runs-on: ubuntu-24.04\n    timeout-minutes: 5\n    permissions: {}",
                 "runs-on: ubuntu-latest\n    timeout-minutes: 5\n    permissions: {}")],
    "expressions": [('"$NUMBER" --results', '"$NUMBER" --results ${{ github.head_ref }}')],
    "calls": [("run: make lint", "run: make lint && make test"),
              ("run: make lint", "run: |\n          make lint\n          make test"),
              ("run: make lint", "run: pip install x"),
              ("run: make lint", "run: make lint || true"),
              ("run: make lint", "run: make `id`"),
              ("run: make lint", "run: make $(id)"),
              ("run: make lint", "run: make $TARGET")],
    "concurrency": [("concurrency:\n  group", "defaults:\n  group"),
                    ("${{ github.event_name == 'pull_request' }}", "true"),
                    ("checks-${{ github.event.pull_request.number || github.ref }}", "checks")],
    "artifacts": [("if-no-files-found: error", "if-no-files-found: warn"),
                  ("        if: always()\n        with", "        with")],
    "artifact_names": [("records-${{ matrix.n }}", "records"), (UPLOAD, UPLOAD * 2)],
    "aggregate": [("needs: [test]", "needs: []"),
                  ("    name: checks\n", "    name: checks ${{ github.ref }}\n"),
                  ("    if: always()\n    runs-on", "    if: ${{ !cancelled() }}\n    runs-on"),
                  ("    if: always()\n    runs-on", "    runs-on"),
                  ("  checks:\n    name", "  other:\n    name")],
    "conclusions": [("run: make lint", f"run: make lint\n        {GO_ON}"),
                    ("    permissions: {}\n", f"    permissions: {{}}\n    {GO_ON}\n")],
    "triggers": [("  merge_group:\n", ""), ("  pull_request:\n", ""),
                 ("  pull_request:\n", "  pull_request:\n    paths: [ci_tools]\n"),
                 ("  merge_group:\n", "  merge_group:\n  pull_request_target:\n")],
    "duplicate_keys": [("    timeout-minutes: 5\n    permissions: {}",
                        "    timeout-minutes: 5\n    timeout-minutes: 9\n    permissions: {}")],
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.y*ml")), ids=lambda path: path.name)
def test_a_workflow_keeps_the_contract(path: Path) -> None:
    assert find_broken(path.read_text(encoding="utf-8")) == []


def test_the_example_is_good() -> None:
    assert find_broken(GOOD) == []


@pytest.mark.parametrize(
    ("rule", "old", "new"), [(rule, *change) for rule, changes in BAD.items() for change in changes]
)
def test_each_rule_can_be_broken(rule: str, old: str, new: str) -> None:
    assert GOOD.count(old) == 1
    broken = find_broken(GOOD.replace(old, new))
    assert {what.partition(":")[0] for what in broken} == {rule}


def test_every_rule_is_broken_here() -> None:
    assert {rule.__name__ for rule in RULES} == BAD.keys() - {"duplicate_keys"}


def test_every_required_check_has_its_workflow() -> None:
    assert {path.stem for path in FOLDER.glob("*.yml")} >= REQUIRED.keys()
