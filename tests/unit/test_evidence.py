"""Records read from a folder: foreign, doubled and broken ones never count as whole ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_tools.findings import Finding, Kind
from ci_tools.verdict.decide import Demand, Verdict, decide
from ci_tools.verdict.evidence import load_evidence, write_refusal
from tests.unit.builders import Run, judge, make_run, rules_of, write_run

REFUSAL = Finding(rule="environment/unusable", kind=Kind.IMAGE, message="no image", fix="publish")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    write_run(make_run(), tmp_path / "records")
    return tmp_path / "records"


def conclude(records: Path) -> Verdict:
    plan = make_run().plan
    assert plan is not None
    demand = Demand(is_blocking=True, expected_plan=plan.hash)
    return decide(load_evidence(records, {"plan": "success"}), demand)


def test_a_folder_holds_what_the_run_held(records: Path) -> None:
    verdict = conclude(records)
    assert (verdict.is_green, verdict.is_gate) == (True, True)
    assert verdict.results == judge(make_run()).results


def test_artifacts_may_lie_at_any_depth(records: Path, tmp_path: Path) -> None:
    for name in ("chunk-001", "chunk-002"):
        (tmp_path / "all" / f"gate-{name}").mkdir(parents=True)
        (records / name).rename(tmp_path / "all" / f"gate-{name}" / name)
    records.rename(tmp_path / "all" / "gate-plan")
    assert conclude(tmp_path / "all").is_green


def other_files(records: Path) -> None:
    (records / "chunk-001" / "files" / "0000.log").write_text("text", encoding="utf-8")
    (records / "chunk-001" / "files" / "0000.job.json").write_text("{}", encoding="utf-8")
    (records / "verdict.json").write_text("{}", encoding="utf-8")


def test_what_else_a_run_leaves_is_passed_over(records: Path) -> None:
    other_files(records)
    assert conclude(records).is_green


def link(path: Path) -> None:
    """Move a file or folder aside and put a symbolic link in its place."""
    target = path.parent.parent / f"moved-{path.name}"
    path.rename(target)
    path.symlink_to(target)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "record/missing-preflight"),
    "no plan": (lambda r: (r / "plan.json").unlink(), "record/missing-plan"),
    "a broken plan": (lambda r: (r / "plan.json").write_text("{"), "record/broken-plan"),
    "a linked plan": (lambda r: link(r / "plan.json"), "record/broken-plan"),
    "a plan that is a pipe": (lambda r: pipe(r / "plan.json"), "record/broken-plan"),
    "two plans": (
        lambda r: shutil.copy(r / "plan.json", r / "chunk-001" / "plan.json"),
        "record/doubled-plan",
    ),
    "no preflight": (lambda r: (r / "preflight.json").unlink(), "record/missing-preflight"),
    "an empty preflight": (
        lambda r: (r / "preflight.json").write_text("{}"),
        "record/broken-preflight",
    ),
    "findings of no form": (
        lambda r: (r / "preflight.json").write_text('{"findings": [7]}'),
        "record/broken-preflight",
    ),
    "findings that are no list": (
        lambda r: (r / "preflight.json").write_text('{"findings": 7}'),
        "record/broken-preflight",
    ),
    "a preflight of no form": (
        lambda r: (r / "preflight.json").write_text("[]"),
        "record/missing-preflight",
    ),
    "a linked preflight": (lambda r: link(r / "preflight.json"), "record/missing-preflight"),
    "two preflights": (
        lambda r: shutil.copy(r / "preflight.json", r / "chunk-001" / "preflight.json"),
        "record/doubled-preflight",
    ),
    "no chunk": (lambda r: shutil.rmtree(r / "chunk-001"), "record/missing-chunk"),
    "no chunk journal": (
        lambda r: (r / "chunk-001" / "chunk.jsonl").unlink(),
        "record/broken-chunk",
    ),
    "a chunk journal that is a pipe": (
        lambda r: pipe(r / "chunk-001" / "chunk.jsonl"),
        "record/broken-chunk",
    ),
    "a copy of a chunk": (
        lambda r: shutil.copytree(r / "chunk-001", r / "copy"),
        "record/doubled-chunk",
    ),
    "a linked chunk": (lambda r: link(r / "chunk-001"), "record/missing-chunk"),
    "an empty chunk folder": (lambda r: (r / "chunk-003").mkdir(), "record/broken-chunk"),
    "no file journal": (
        lambda r: (r / "chunk-001" / "files" / "0000.jsonl").unlink(),
        "record/missing-journal",
    ),
    "a linked file journal": (
        lambda r: link(r / "chunk-001" / "files" / "0000.jsonl"),
        "record/broken-journal",
    ),
    "a linked folder of journals": (
        lambda r: link(r / "chunk-001" / "files"),
        "record/missing-journal",
    ),
    "a file journal of another name": (
        lambda r: (r / "chunk-001" / "files" / "0000.jsonl").rename(
            r / "chunk-001" / "files" / "0.jsonl"
        ),
        "record/missing-journal",
    ),
    "one file journal too many": (
        lambda r: shutil.copy(
            r / "chunk-001" / "files" / "0000.jsonl", r / "chunk-001" / "files" / "0001.jsonl"
        ),
        "record/foreign-journal",
    ),
    "no environment": (
        lambda r: (r / "chunk-001" / "environment.json").unlink(),
        "environment/missing-record",
    ),
    "a broken environment": (
        lambda r: (r / "chunk-001" / "environment.json").write_text('{"status": "ok"'),
        "environment/missing-record",
    ),
    "a linked environment": (
        lambda r: link(r / "chunk-001" / "environment.json"),
        "environment/missing-record",
    ),
    "a broken refusal": (
        lambda r: (r / "refusal.json").write_text('{"chunk": 1}'),
        "record/broken-refusal",
    ),
    "a refusal of no chunk": (
        lambda r: (r / "refusal.json").write_text(
            json.dumps({"chunk": float("inf"), "finding": REFUSAL.to_json()})
        ),
        "record/broken-refusal",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_records_are_red_and_say_what_is_wrong(records: Path, name: str) -> None:
    damage, rule = DAMAGE[name]
    damage(records)
    verdict = conclude(records)
    assert not verdict.is_green
    assert rule in rules_of(verdict)


def test_every_single_file_counts(records: Path, tmp_path: Path) -> None:
    files = sorted(path.relative_to(records) for path in records.rglob("*") if path.is_file())
    assert len(files) == 9
    for number, file in enumerate(files):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(records, copy)
        (copy / file).unlink()
        assert not conclude(copy).is_green, file


def test_why_an_environment_could_not_be_had_is_told(records: Path) -> None:
    shutil.rmtree(records / "chunk-001")
    write_refusal(records / "gate-chunk-1", 1, REFUSAL)
    verdict = conclude(records)
    assert verdict.findings == (REFUSAL,)


def test_a_part_lies_beside_its_own_plan_only(records: Path, tmp_path: Path) -> None:
    part: Run = make_run(selection=("tests/roster/test_a.py",))
    write_run(part, tmp_path / "part")
    (tmp_path / "part" / "chunk-001").rename(records / "chunk-part")
    assert "record/foreign-chunk" in rules_of(conclude(records))
