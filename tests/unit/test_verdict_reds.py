"""Every rule of the verdict: one thing broken in a green run, and the rule that names it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from ci_tools.errors import ExitCode
from ci_tools.findings import Finding, Kind
from ci_tools.planning.making import make_plan
from ci_tools.planning.plan import Plan
from ci_tools.verdict.outcomes import Outcome
from tests.unit.builders import (
    EXCLUDED,
    IDS,
    A,
    B,
    C,
    Change,
    Event,
    Run,
    judge,
    make_lock,
    make_request,
    make_run,
    passed,
    phase,
    rules_of,
)

ONE, TWO = f"{A}::test_one", f"{A}::test_two[x y]"
REFUSAL = Finding(rule="environment/unusable", kind=Kind.IMAGE, message="no image", fix="publish")
LANELESS = Finding(rule="roster/no-lane", kind=Kind.ROSTER, message="in no lane", fix="lock it")
UNLOCKED = {"name": "ruff", "version": "1.0", "is_locked": False}
TWICE = [*passed(TWO), *passed(TWO)[1:]]


def steps(*changes: Change) -> Change:
    """Several changes as one."""
    return lambda run: [step(run) for step in changes]


def test_the_run_that_the_tests_break_is_green() -> None:
    verdict = judge(make_run())
    assert (verdict.is_green, verdict.is_gate, verdict.exit_code) == (True, True, ExitCode.GREEN)
    assert verdict.findings == ()
    assert set(verdict.results) == {ONE, TWO, f"{B}::TestB::test_three", f"{C}::test_four"}
    assert verdict.counts == {Outcome.PASSED: 4}


def set_start(run: Run, **fields: object) -> None:
    run.a[0].update(fields)


def set_end(run: Run, **fields: object) -> None:
    run.end_of_a().update(fields)


def cut_a(run: Run, keep: int) -> None:
    """Keep the first events of file A: its process ended there."""
    del run.a[keep:]


def drop(run: Run, name: str) -> None:
    """Leave out every event of a name in the first chunk's journal."""
    run.first.journal[:] = [event for event in run.first.journal if event["event"] != name]


def add_before_finish(run: Run, event: Event) -> None:
    run.a.insert(-1, event)


def die(run: Run, **how: object) -> None:
    """End the process of A inside its second test."""
    at = next(i for i, e in enumerate(run.a) if e.get("id") == TWO and e["event"] == "phase")
    cut_a(run, at)
    set_end(run, **how)


def fail(run: Run, when: str, **fields: object) -> None:
    events = [e for e in passed(TWO) if not (when == "setup" and e.get("when") == "call")]
    for event in events:
        if event.get("when") == when:
            event.update({"outcome": "failed", "message": "boom"} | fields)
    run.replace_test(TWO, events)
    run.end_badly()


def expect(run: Run, outcome: str, expected: str, message: str = "known bug") -> None:
    """Report the second test as one that is expected to fail."""
    call = phase(TWO, "call", outcome, expected=expected, message=message)
    run.replace_test(TWO, [passed(TWO)[0], phase(TWO, "setup"), call, phase(TWO, "teardown")])


def skip(run: Run, **fields: object) -> None:
    setup = phase(TWO, "setup", "skipped", message="no GPU", **fields)
    run.replace_test(TWO, [passed(TWO)[0], setup, phase(TWO, "teardown")])


def foreign_plan() -> Plan:
    return make_plan(make_lock({A: ("test_one",)}), make_request())


def add_chunk(run: Run, name: str, **start: object) -> None:
    run.chunks[name] = copy.deepcopy(run.first)
    run.chunks[name].journal[0].update(start)


def stop_chunk(run: Run) -> None:
    run.first.journal[-1] = {"event": "interrupted", "signal": 15, "not_started": ["x", "y"]}


def environment(run: Run, key: str, value: object, *, image: bool = False) -> None:
    record = run.first.environment
    assert record is not None
    target = record["image"] if image else record
    target[key] = value


def exit_at_import(run: Run) -> None:
    cut_a(run, 1)
    run.a.append({"event": "internal-error", "detail": "E\nSystemExit: 0"})
    run.a.append({"event": "finish", "exit_status": 3, "lines": None})
    set_end(run, exit_code=3)


CHUNKS: dict[str, tuple[str, Change]] = {
    "a chunk is missing": ("record/missing-chunk", lambda r: r.chunks.pop("chunk-001")),
    "a chunk is there twice": ("record/doubled-chunk", lambda r: add_chunk(r, "chunk-009")),
    "a chunk that is not planned": (
        "record/foreign-chunk",
        lambda r: add_chunk(r, "chunk-009", chunk=9),
    ),
    "a chunk of another plan": ("record/foreign-chunk", lambda r: add_chunk(r, "x", plan="0")),
    "a chunk of another schema": ("record/foreign-chunk", lambda r: add_chunk(r, "x", schema=2)),
    "an empty chunk journal": ("record/broken-chunk", lambda r: r.first.journal.clear()),
    "no chunk start": ("record/broken-chunk", lambda r: drop(r, "chunk-start")),
    "no chunk finish": ("record/unfinished-chunk", lambda r: drop(r, "chunk-finish")),
    "a finish of other lines": (
        "record/unfinished-chunk",
        lambda r: r.first.journal[-1].update(lines=99),
    ),
    "an interrupted chunk": ("record/interrupted", stop_chunk),
    "started with more files": (
        "record/foreign-chunk",
        lambda r: r.first.journal[0].update(files=2),
    ),
    "started another file": (
        "record/foreign-file",
        lambda r: r.first.journal[1].update(path=B),
    ),
    "did not start a file": ("record/foreign-file", lambda r: drop(r, "file-start")),
    "a journal that nobody planned": (
        "record/foreign-journal",
        lambda r: r.first.files.update({1: copy.deepcopy(r.a)}),
    ),
    "the end of a file that nobody planned": (
        "record/foreign-file",
        lambda r: r.first.journal.insert(-1, {**r.end_of_a(), "index": 7}),
    ),
    "an environment that could not be had": (
        "environment/unusable",
        steps(lambda r: r.chunks.pop("chunk-001"), lambda r: r.refusals.update({1: REFUSAL})),
    ),
}
FILES: dict[str, tuple[str, Change]] = {
    "no journal": ("record/missing-journal", lambda r: r.first.files.clear()),
    "an empty journal": ("record/foreign-journal", lambda r: cut_a(r, 0)),
    "a journal of another plan": ("record/foreign-journal", lambda r: set_start(r, plan="0")),
    "a journal of another chunk": ("record/foreign-journal", lambda r: set_start(r, chunk=2)),
    "a journal of another file": ("record/foreign-journal", lambda r: set_start(r, path=B)),
    "a journal of another schema": ("record/foreign-journal", lambda r: set_start(r, schema=0)),
    "no start": ("record/foreign-journal", lambda r: r.a.pop(0)),
    "no list of what was collected": ("record/broken-journal", lambda r: r.a.pop(1)),
    "a finish of other lines": ("record/broken-journal", lambda r: r.a[-1].update(lines=99)),
    "no end": ("record/missing-end", lambda r: drop(r, "file-end")),
    "two ends": (
        "record/missing-end",
        lambda r: r.first.journal.insert(2, dict(r.end_of_a())),
    ),
    "ended by an interrupt": ("record/interrupted", lambda r: die(r, ended_by="interrupt")),
    "a package of another checkout": (
        "record/foreign-package",
        lambda r: r.a.insert(1, {"event": "refused", "message": "'p' resolves to /elsewhere"}),
    ),
    "a test with two outcomes": ("record/doubled-outcome", lambda r: r.replace_test(TWO, TWICE)),
    "a test that starts twice": (
        "record/doubled-outcome",
        lambda r: add_before_finish(r, passed(TWO)[0]),
    ),
    "clean outcomes and exit 1": ("record/unexplained-exit", lambda r: r.end_badly(1)),
}
DEATHS: dict[str, tuple[str, Change]] = {
    "killed by a signal": ("death/crash", lambda r: die(r, exit_code=None, signal=9)),
    "exit 0 inside a test": ("death/crash", lambda r: die(r)),
    "exit 0 after the last test": ("death/crash", lambda r: cut_a(r, len(r.a) - 1)),
    "exit 0 at import": ("death/crash", lambda r: cut_a(r, 1)),
    "died after its finish": ("death/crash", lambda r: set_end(r, exit_code=1)),
    "killed after its finish": ("death/crash", lambda r: set_end(r, exit_code=None, signal=11)),
    "ran over its time": ("death/timeout", lambda r: die(r, ended_by="timeout", signal=15)),
    "hung after its finish": ("death/timeout", lambda r: set_end(r, ended_by="timeout")),
    "pytest failed in itself": (
        "death/crash",
        lambda r: add_before_finish(r, {"event": "internal-error", "detail": "E\nKeyError: x"}),
    ),
}
OUTCOMES: dict[str, tuple[str, Change]] = {
    "a failing call": ("test/failed", lambda r: fail(r, "call")),
    "a failing setup": ("test/error", lambda r: fail(r, "setup")),
    "a failing teardown": ("test/error", lambda r: fail(r, "teardown")),
    "a failing subtest of a passing test": (
        "test/failed",
        lambda r: add_before_finish(r, {"event": "subtest", "id": TWO, "outcome": "failed"}),
    ),
    "a skipped subtest": (
        "roster/skipped",
        lambda r: add_before_finish(r, {"event": "subtest", "id": TWO, "outcome": "skipped"}),
    ),
    "a rerun": ("test/failed", lambda r: fail(r, "call", outcome="rerun")),
    "a skip": ("roster/skipped", skip),
    "an xfail that does not run": (
        "roster/skipped",
        lambda r: expect(r, "skipped", "not-run", "known bug"),
    ),
    "an xfail that is not strict": (
        "roster/loose-xfail",
        lambda r: expect(r, "skipped", "loose"),
    ),
    "a pass where a failure is expected": (
        "roster/xpassed",
        lambda r: expect(r, "passed", "loose"),
    ),
}
COLLECTION: dict[str, tuple[str, Change]] = {
    "an id that vanished": (
        "roster/missing-id",
        steps(lambda r: r.replace_test(TWO, []), lambda r: r.a[1].update(gated=[ONE])),
    ),
    "an id that nobody planned": (
        "roster/unlocked-id",
        lambda r: r.a[1]["gated"].append(f"{A}::test_new"),
    ),
    "an outcome that nobody planned": (
        "roster/unlocked-id",
        lambda r: r.a.__setitem__(slice(-1, -1), passed(f"{A}::test_new")),
    ),
    "an excluded test that ran": (
        "roster/unlocked-id",
        lambda r: r.a.__setitem__(slice(-1, -1), passed(f"{A}::test_slow")),
    ),
    "an excluded id that is gone": (
        "roster/excluded-differs",
        lambda r: r.a[1].update(excluded=[]),
    ),
    "an excluded id that is not locked": (
        "roster/excluded-differs",
        lambda r: r.a[1]["excluded"].append(f"{A}::test_slower"),
    ),
    "a planned id that did not run": ("roster/not-run", lambda r: r.replace_test(TWO, [])),
    "a collection error": (
        "roster/collection-error",
        lambda r: r.a.insert(1, {"event": "collect-report", "id": A, "outcome": "failed"}),
    ),
    "a file that skips itself": (
        "roster/skipped-file",
        lambda r: r.a.insert(1, {"event": "collect-report", "id": A, "outcome": "skipped"}),
    ),
    "an exit at import": (
        "roster/collection-error",
        exit_at_import,
    ),
}
ENVIRONMENTS: dict[str, tuple[str, Change]] = {
    "no environment record": (
        "environment/missing-record",
        lambda r: setattr(r.first, "environment", None),
    ),
    "a record that is not ok": (
        "environment/missing-record",
        lambda r: environment(r, "status", "resolution"),
    ),
    "another digest in one chunk": (
        "environment/differs",
        lambda r: environment(r, "digest", "sha256:" + "4e" * 32, image=True),
    ),
    "not the published image": (
        "environment/not-published",
        lambda r: environment(r, "kind", "local-build", image=True),
    ),
    "another digest than locked": (
        "environment/wrong-image",
        lambda r: environment(r, "digest", "sha256:" + "4e" * 32, image=True),
    ),
    "other inputs than locked": (
        "environment/wrong-image",
        lambda r: environment(r, "inputs", "5f" * 32, image=True),
    ),
    "another name than locked": (
        "environment/wrong-image",
        lambda r: environment(r, "name", "ghcr.io/owner/other", image=True),
    ),
    "no image at all": ("environment/not-published", lambda r: environment(r, "image", None)),
    "a distribution that is not locked": (
        "environment/unlocked-distribution",
        lambda r: environment(r, "distributions", [UNLOCKED]),
    ),
    "no distribution": ("environment/unreadable", lambda r: environment(r, "distributions", [])),
    "jax cannot be imported": (
        "environment/unreadable",
        lambda r: environment(r, "jax", {"error": "ImportError: no"}),
    ),
    "distributions cannot be listed": (
        "environment/unreadable",
        lambda r: environment(r, "distributions", {"error": "OSError: no"}),
    ),
    "a part of the record is missing": (
        "environment/unreadable",
        lambda r: environment(r, "python", None),
    ),
}
RUNS: dict[str, tuple[str, Change]] = {
    "no plan": ("record/missing-plan", lambda r: setattr(r, "plan", None)),
    "another plan than the tree gives": (
        "record/foreign-plan",
        lambda r: setattr(r, "plan", foreign_plan()),
    ),
    "no preflight": ("record/missing-preflight", lambda r: setattr(r, "preflight", None)),
    "a red preflight": ("roster/no-lane", lambda r: setattr(r, "preflight", [LANELESS])),
    "a job that failed with clean records": (
        "record/job-failed",
        lambda r: r.job_results.update(chunk="failure"),
    ),
    "a job that was cancelled with clean records": (
        "record/job-failed",
        lambda r: r.job_results.update(plan="cancelled"),
    ),
    "a job that was skipped with clean records": (
        "record/job-failed",
        lambda r: r.job_results.update(chunk="skipped"),
    ),
}
ALL = CHUNKS | FILES | DEATHS | OUTCOMES | COLLECTION | ENVIRONMENTS | RUNS


def run_of(name: str) -> Run:
    run = make_run()
    ALL[name][1](run)
    return run


@pytest.mark.parametrize("name", ALL)
def test_each_defect_is_red_under_its_rule(name: str) -> None:
    run = run_of(name)
    expected = make_run().plan if name.startswith("another plan") else run.plan
    verdict = judge(run, expected_plan=None if expected is None else expected.hash)
    assert not verdict.is_green
    assert ALL[name][0] in rules_of(verdict)
    assert verdict.exit_code != ExitCode.GREEN
    assert all(finding.message and finding.fix for finding in verdict.findings)


@pytest.mark.parametrize("name", FILES | DEATHS | OUTCOMES | COLLECTION)
def test_a_defect_in_one_file_leaves_the_results_of_the_others(name: str) -> None:
    verdict = judge(run_of(name))
    others = [verdict.results[i] for i in verdict.results if not i.startswith(f"{A}::")]
    assert [result.outcome for result in others] == [Outcome.PASSED] * 2


EXITS: dict[str, ExitCode] = {
    "a failing call": ExitCode.RED,
    "a skip": ExitCode.RED,
    "exit 0 inside a test": ExitCode.INCOMPLETE,
    "an id that vanished": ExitCode.INCOMPLETE,
    "a chunk is missing": ExitCode.INFRASTRUCTURE,
    "no journal": ExitCode.INFRASTRUCTURE,
    "no environment record": ExitCode.INFRASTRUCTURE,
    "no plan": ExitCode.INFRASTRUCTURE,
}


@pytest.mark.parametrize("name", EXITS)
def test_the_exit_code_says_what_to_mend_first(name: str) -> None:
    assert judge(run_of(name)).exit_code == EXITS[name]


KINDS: dict[str, Kind] = {
    "a failing call": Kind.TEST,
    "killed by a signal": Kind.CRASH,
    "ran over its time": Kind.TIMEOUT,
    "an id that nobody planned": Kind.ROSTER,
    "a chunk is missing": Kind.INFRASTRUCTURE,
}


@pytest.mark.parametrize("name", KINDS)
def test_one_defect_has_one_kind(name: str) -> None:
    assert judge(run_of(name)).kinds == (KINDS[name],)


def test_a_refused_plan_is_red_and_not_a_fault_of_the_machine() -> None:
    run = Run(plan=None, preflight=[LANELESS], chunks={}, job_results={"plan": "failure"})
    verdict = judge(run)
    assert (verdict.exit_code, rules_of(verdict)) == (ExitCode.RED, ["roster/no-lane"])


def test_nothing_at_all_is_red() -> None:
    verdict = judge(Run(plan=None, preflight=None, chunks={}, job_results={}))
    assert (verdict.is_green, verdict.exit_code) == (False, ExitCode.INFRASTRUCTURE)


def test_a_clean_preflight_without_a_plan_is_red() -> None:
    verdict = judge(Run(plan=None, preflight=[], chunks={}, job_results={}))
    assert rules_of(verdict) == ["record/missing-plan"]


def test_a_part_is_green_for_itself_and_red_for_the_gate() -> None:
    run = make_run(selection=(ONE,))
    verdict = judge(run, is_blocking=False)
    assert (verdict.is_green, verdict.is_partial, verdict.is_gate) == (True, True, False)
    assert list(verdict.results) == [ONE]
    blocking = judge(run)
    assert (blocking.is_green, blocking.is_gate) == (False, False)
    assert "record/partial-plan" in rules_of(blocking)


def test_in_a_part_the_rest_of_the_file_may_be_collected_and_may_not_run() -> None:
    run = make_run(selection=(ONE,))
    run.a[1]["gated"].append(TWO)
    assert judge(run, is_blocking=False).is_green
    run.a[-1:-1] = passed(TWO)
    assert rules_of(judge(run, is_blocking=False)) == ["roster/unlocked-id"]


@pytest.mark.parametrize("kind", ["local-build", "lockfile"])
def test_another_environment_is_green_where_nothing_blocks_and_never_the_gates(kind: str) -> None:
    run = make_run()
    for chunk in run.chunks.values():
        assert chunk.environment is not None
        chunk.environment["image"] |= {"kind": kind, "digest": "", "label": "not the image"}
    verdict = judge(run, is_blocking=False)
    assert (verdict.is_green, verdict.is_gate, verdict.label) == (True, False, "not the image")
    assert not judge(run).is_green


def test_engines_that_number_the_published_image_differently_agree() -> None:
    run = make_run()
    environment(run, "image_id", "sha256:other", image=True)
    assert judge(run).is_green


def test_local_builds_with_other_image_ids_differ() -> None:
    run = make_run()
    for number, chunk in enumerate(run.chunks.values()):
        assert chunk.environment is not None
        chunk.environment["image"] |= {"kind": "local-build", "digest": "", "image_id": str(number)}
    assert rules_of(judge(run, is_blocking=False)) == ["environment/differs"]


NEIGHBOURS: dict[str, Change] = {
    "a strict xfail": lambda r: expect(r, "skipped", "strict"),
    "a passing subtest": lambda r: add_before_finish(
        r, {"event": "subtest", "id": TWO, "outcome": "passed", "subtest": "i=1"}
    ),
    "an unknown event": lambda r: add_before_finish(r, {"event": "note", "text": "later"}),
    "a refusal that a later try made good": lambda r: r.refusals.update({1: REFUSAL}),
    "no word about jobs": lambda r: r.job_results.clear(),
    "another order of the files in the folder": lambda r: setattr(
        r, "chunks", dict(reversed(r.chunks.items()))
    ),
    "a folder of another name": lambda r: r.chunks.update(x=r.chunks.pop("chunk-001")),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_what_is_beside_a_rule_stays_green(name: str) -> None:
    run = make_run()
    NEIGHBOURS[name](run)
    verdict = judge(run)
    assert (rules_of(verdict), verdict.is_green) == ([], True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: die(r, exit_code=None, signal=11), "died by SIGSEGV during " + TWO),
        (lambda r: die(r, exit_code=None, signal=99), "died by signal 99 during"),
        (lambda r: die(r), "exited with 0 without finishing, during " + TWO),
        (lambda r: cut_a(r, len(r.a) - 1), "between tests, in teardown or at exit"),
        (lambda r: cut_a(r, 1), "at import or collection"),
        (lambda r: cut_a(r, 0), "before pytest started"),
        (lambda r: set_end(r, ended_by="timeout"), "after the last test"),
    ],
)
def test_a_death_names_the_test_or_the_place(change: Callable[[Run], None], words: str) -> None:
    run = make_run()
    change(run)
    assert any(words in finding.message for finding in judge(run).findings)


def test_every_planned_id_says_why_it_did_not_run() -> None:
    run = make_run()
    die(run, exit_code=None, signal=9)
    del run.chunks["chunk-002"]
    verdict = judge(run)
    assert verdict.results[ONE].outcome is Outcome.PASSED
    for test_id in set(verdict.results) - {ONE}:
        assert verdict.results[test_id].outcome is Outcome.UNACCOUNTED
        assert verdict.results[test_id].message


def test_a_plan_that_holds_an_id_twice_is_red() -> None:
    lock = make_lock(IDS, EXCLUDED)
    doubled = type(lock)((*lock.lines, lock.lines[-1]))
    run = make_run()
    run.plan = make_plan(doubled, make_request())
    assert "record/broken-plan" in rules_of(judge(run))
