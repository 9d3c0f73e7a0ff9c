"""The verdict: green only if everything planned has exactly one green outcome in one environment.

Pure: it takes evidence and returns a value; files and words belong to its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ci_tools.errors import ExitCode
from ci_tools.findings import Finding, Kind
from ci_tools.planning.plan import Plan, Scope
from ci_tools.verdict.chunks import judge_chunk, match_chunks, unrun_results
from ci_tools.verdict.environments import PUBLISHED, check_environments, identity_of
from ci_tools.verdict.evidence import ChunkRecord, Evidence
from ci_tools.verdict.outcomes import Outcome, TestResult


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What the verdict is for.

    Attributes:
        is_blocking: Only a full plan in the published image can be green.
        expected_plan: The hash of the plan that the tree under test gives; None: not compared.
    """

    is_blocking: bool
    expected_plan: str | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a lane concludes.

    Attributes:
        is_green: Whether nothing at all is wrong.
        is_gate: Whether it may be taken for the gate's: full, blocking, in the published image.
        plan: The plan; None when there was none.
        environment: The identity of the environment that the chunks ran in.
        label: What the environment is, where it is not the published image.
        findings: Everything that is wrong, worst things first.
        results: The result of each planned id.
    """

    is_green: bool
    is_gate: bool
    plan: Plan | None
    environment: Mapping[str, str]
    label: str
    findings: tuple[Finding, ...]
    results: Mapping[str, TestResult]

    @property
    def counts(self) -> Counter[Outcome]:
        """How many planned ids have each outcome."""
        return Counter(result.outcome for result in self.results.values())

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of red, the most frequent last; empty when green."""
        return tuple(dict.fromkeys(finding.kind for finding in self.findings))

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the lane was asked for."""
        return self.plan is not None and self.plan.scope is Scope.PARTIAL

    @property
    def exit_code(self) -> ExitCode:
        """Infrastructure before incomplete before red: the first says what to mend first."""
        if self.is_green:
            return ExitCode.GREEN
        if Kind.INFRASTRUCTURE in self.kinds:
            return ExitCode.INFRASTRUCTURE
        if self.counts[Outcome.UNACCOUNTED] or not self.results:
            return ExitCode.INCOMPLETE if not self._is_refused() else ExitCode.RED
        return ExitCode.RED

    def _is_refused(self) -> bool:
        """Whether the checks before the plan were red, so that nothing was meant to run."""
        return self.plan is None and bool(self.findings)


def decide(evidence: Evidence, demand: Demand) -> Verdict:
    """Return the verdict on the evidence."""
    findings = list(evidence.problems)
    if evidence.preflight is None:
        findings.append(_no_preflight(evidence))
    else:
        findings += evidence.preflight
    if evidence.plan is None:
        if not findings:
            findings.append(_infrastructure("missing-plan", "there is no plan among the records"))
        return _conclude(evidence, demand, findings, {}, {})
    plan = evidence.plan
    findings += _check_plan(plan, demand)
    matched, chunk_findings = match_chunks(plan, evidence)
    findings += chunk_findings
    results: dict[str, TestResult] = {}
    for chunk in plan.chunks:
        if chunk.number in matched:
            found, outcomes = judge_chunk(plan, chunk, matched[chunk.number])
            findings += found
            results |= outcomes
        else:
            results |= unrun_results(chunk, f"chunk {chunk.number} left no usable record")
    findings += check_environments(matched, plan.image, is_blocking=demand.is_blocking)
    return _conclude(evidence, demand, findings, results, matched)


def _check_plan(plan: Plan, demand: Demand) -> list[Finding]:
    findings = []
    ids = [test_id for chunk in plan.chunks for file in chunk.files for test_id in file.ids]
    if not ids or len(set(ids)) != len(ids):
        findings.append(_infrastructure("broken-plan", "the plan is empty or plans an id twice"))
    if demand.is_blocking and plan.scope is not Scope.FULL:
        findings.append(
            _infrastructure("partial-plan", "the plan is partial and can never be the gate's")
        )
    if demand.expected_plan is not None and plan.hash != demand.expected_plan:
        findings.append(
            _infrastructure("foreign-plan", "the plan is not the one that this tree gives")
        )
    return findings


def _no_preflight(evidence: Evidence) -> Finding:
    result = evidence.job_results.get("plan", "")
    because = f": the plan job ended as {result!r}" if result else ""
    return _infrastructure(
        "missing-preflight", f"the checks before the plan left no record{because}"
    )


def _conclude(
    evidence: Evidence,
    demand: Demand,
    findings: list[Finding],
    results: Mapping[str, TestResult],
    matched: Mapping[int, ChunkRecord],
) -> Verdict:
    findings += _check_jobs(evidence, findings)
    all_green = bool(results) and all(result.outcome.is_green for result in results.values())
    if not all_green and not findings:
        findings.append(_infrastructure("unexplained", "a planned test has no green outcome"))
    first = next((r.environment for r in matched.values() if r.environment is not None), {})
    is_full = evidence.plan is not None and evidence.plan.scope is Scope.FULL
    image = identity_of(first)
    return Verdict(
        is_green=all_green and not findings,
        is_gate=demand.is_blocking and is_full and image["kind"] == PUBLISHED,
        plan=evidence.plan,
        environment=image,
        label=_label(first),
        findings=tuple(findings),
        results=results,
    )


def _check_jobs(evidence: Evidence, findings: list[Finding]) -> list[Finding]:
    """A job that failed although its records are clean is red: records may not overrule it."""
    if findings:
        return []
    return [
        _infrastructure("job-failed", f"the {name} job ended as {result!r} with clean records")
        for name, result in evidence.job_results.items()
        if result != "success"
    ]


def _label(environment: Mapping[str, Any]) -> str:
    image = environment.get("image")
    return str(image.get("label", "")) if isinstance(image, dict) else ""


def _infrastructure(rule: str, message: str) -> Finding:
    return Finding(
        rule=f"record/{rule}",
        kind=Kind.INFRASTRUCTURE,
        message=message,
        fix="run the lane again; if it repeats, read the log of the job that failed",
    )
