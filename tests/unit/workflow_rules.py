"""The contract of every workflow, held against its text: one small function for each rule.

YAML is read as version 1.2, where the key `on` is a word and not a truth value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError

PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40}$")
VERSION = re.compile(r"uses: \S+ # v\d+\.\d+\.\d+$")
EXPRESSION = re.compile(r"\$\{\{.*?\}\}")
CALL = re.compile(r"^(?:make|python3 -m ci_tools) [^\n;&|`$]*(?:\"\$[A-Z_]+\"[^\n;&|`$]*)*\n?$")
PULL_REQUESTS_ONLY = "${{ github.event_name == 'pull_request' }}"
# The workflows with one required check, and that check's job.
REQUIRED = {"gate": "gate", "checks": "checks"}
FILTERS = ("paths", "paths-ignore", "types", "branches-ignore")


@dataclass(frozen=True)
class Workflow:
    """A workflow as text and as data."""

    text: str
    data: Mapping[str, Any]

    @property
    def jobs(self) -> Mapping[str, Mapping[str, Any]]:
        jobs = self.data.get("jobs")
        return jobs if isinstance(jobs, Mapping) else {}

    @property
    def steps(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each step with its job's id."""
        for name, job in self.jobs.items():
            yield from ((name, step) for step in job.get("steps", ()))

    @property
    def aggregate(self) -> str | None:
        """The job that is the required check, where there is one."""
        return REQUIRED.get(str(self.data.get("name")))


def permissions(workflow: Workflow) -> Iterator[str]:
    if workflow.data.get("permissions") != {}:
        yield "the workflow grants something to every job"
    for name, job in workflow.jobs.items():
        if not isinstance(job.get("permissions"), Mapping):
            yield f"{name} does not say what it is granted"


def reasons(workflow: Workflow) -> Iterator[str]:
    """A grant is a line of its own and says why it is needed."""
    for line in workflow.text.splitlines():
        if re.search(r"^\s+[a-z-]+: (?:read|write)\b(?!.* # \w+)", line):
            yield line.strip()


def pins(workflow: Workflow) -> Iterator[str]:
    for name, step in workflow.steps:
        if "uses" in step and not PINNED.match(str(step["uses"])):
            yield f"{name}: {step['uses']}"


def versions(workflow: Workflow) -> Iterator[str]:
    for line in workflow.text.splitlines():
        if re.search(r"\buses:", line) and not VERSION.search(line):
            yield line.strip()


def credentials(workflow: Workflow) -> Iterator[str]:
    for name, step in workflow.steps:
        is_checkout = str(step.get("uses", "")).startswith("actions/checkout@")
        if is_checkout and step.get("with", {}).get("persist-credentials") is not False:
            yield f"{name} leaves the token in the checkout"


def secrets(workflow: Workflow) -> Iterator[str]:
    if re.search(r"\bsecrets\b", workflow.text):
        yield "a pull request of a fork has no secrets"


def timeouts(workflow: Workflow) -> Iterator[str]:
    for name, job in workflow.jobs.items():
        if not isinstance(job.get("timeout-minutes"), int):
            yield f"{name} may run for six hours"


def runners(workflow: Workflow) -> Iterator[str]:
    for name, job in workflow.jobs.items():
        if not re.fullmatch(r"ubuntu-\d\d\.\d\d", str(job.get("runs-on"))):
            yield f"{name} runs on {job.get('runs-on')}"


def expressions(workflow: Workflow) -> Iterator[str]:
    for name, step in workflow.steps:
        if EXPRESSION.search(str(step.get("run", ""))):
            yield f"{name} pastes an expression into a shell"


def calls(workflow: Workflow) -> Iterator[str]:
    for name, step in workflow.steps:
        if "run" in step and not CALL.match(EXPRESSION.sub("", str(step["run"]))):
            yield f"{name}: {step['run']!r} is not one call of make or ci_tools"


def concurrency(workflow: Workflow) -> Iterator[str]:
    found = workflow.data.get("concurrency")
    if not isinstance(found, Mapping):
        yield "the workflow has no concurrency group"
    elif found.get("cancel-in-progress") != PULL_REQUESTS_ONLY:
        yield "runs other than pull requests' can be cancelled"
    elif "${{ github.event.pull_request.number || github.ref }}" not in str(found.get("group")):
        yield "runs of different branches share a group"


def artifacts(workflow: Workflow) -> Iterator[str]:
    for name, step in _uploads(workflow):
        if step.get("with", {}).get("if-no-files-found") != "error":
            yield f"{name} uploads nothing without saying so"
        if step.get("if") != "always()":
            yield f"{name} uploads nothing when it is red"


def artifact_names(workflow: Workflow) -> Iterator[str]:
    names: Counter[str] = Counter()
    for job, step in _uploads(workflow):
        name = str(step.get("with", {}).get("name"))
        names[name] += 1
        if "matrix" in workflow.jobs[job].get("strategy", {}) and "${{ matrix." not in name:
            yield f"{name} is uploaded by every job of a matrix"
    yield from (f"{name} is uploaded twice" for name, count in names.items() if count > 1)


def _uploads(workflow: Workflow) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, step in workflow.steps:
        if str(step.get("uses", "")).startswith("actions/upload-artifact@"):
            yield name, step


def aggregate(workflow: Workflow) -> Iterator[str]:
    """The required check needs every other job, has a static name, and runs always."""
    required = workflow.aggregate
    if required is None:
        return
    job = workflow.jobs.get(required)
    if job is None:
        yield f"there is no job {required}"
        return
    needs = job.get("needs", [])
    missing = set(workflow.jobs) - {required} - set([needs] if isinstance(needs, str) else needs)
    yield from (f"{required} does not need {name}" for name in sorted(missing))
    if job.get("name") != required:
        yield f"the check's name is {job.get('name')!r}, not {required!r}"
    if job.get("if") != "always()":
        yield f"{required} can be skipped, and a skipped check counts as a success"
    if "strategy" in job:
        yield f"{required} is several checks"


def conclusions(workflow: Workflow) -> Iterator[str]:
    """In a workflow with a required check no job may turn its red into a success."""
    if workflow.aggregate is None:
        return
    for name, job in workflow.jobs.items():
        for part in (job, *job.get("steps", ())):
            if "continue-on-error" in part:
                yield f"{name} goes on after an error"


def triggers(workflow: Workflow) -> Iterator[str]:
    """A required workflow that a filter leaves out stays pending for ever."""
    if workflow.aggregate is None:
        return
    events = workflow.data.get("on")
    events = events if isinstance(events, Mapping) else {}
    for event in ("pull_request", "merge_group", "push"):
        if event not in events:
            yield f"it does not run on {event}"
        filters = [name for name in FILTERS if name in (events.get(event) or {})]
        yield from (f"{event} is filtered by {name}" for name in filters)
    if "pull_request_target" in events:
        yield "pull_request_target runs a fork's code with this repository's rights"


RULES: tuple[Callable[[Workflow], Iterator[str]], ...] = (
    permissions,
    reasons,
    pins,
    versions,
    credentials,
    secrets,
    timeouts,
    runners,
    expressions,
    calls,
    concurrency,
    artifacts,
    artifact_names,
    aggregate,
    conclusions,
    triggers,
)


def find_broken(text: str) -> list[str]:
    """Return `rule: what` for every rule that a workflow's text breaks."""
    try:
        data = YAML(typ="safe", pure=True).load(text)
    except DuplicateKeyError as error:
        return [f"duplicate_keys: {error.problem}"]
    workflow = Workflow(text, data)
    return [f"{rule.__name__}: {what}" for rule in RULES for what in rule(workflow)]
