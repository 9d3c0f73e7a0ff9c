"""A finding: one rule that does not hold, with its kind of red, its place and its fix.

Checks return lists of findings; nothing here decides whether a lane is green. Names of files and
tests are foreign text: `flatten` makes one harmless line of it for a terminal or a job's log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ci_tools.errors import render_place


class Kind(StrEnum):
    """The kinds of red.

    `test` is a test that failed before triage has told `branch`, `base` and `flaky` apart;
    `image` is a lockfile, Dockerfile, digest or image that do not belong together.
    """

    TEST = "test"
    BRANCH = "branch"
    BASE = "base"
    ENVIRONMENT = "environment"
    INTERACTION = "interaction"
    FLAKY = "flaky"
    MEMORY = "memory"
    TIMEOUT = "timeout"
    CRASH = "crash"
    ROSTER = "roster"
    IMAGE = "image"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One broken rule.

    Attributes:
        rule: `family/name`, for instance `roster/unlocked-id`.
        kind: The kind of red.
        message: What is wrong and why it matters.
        path: The file at fault, relative to the repository root.
        line: The 1-based line in `path`.
        test_id: The test at fault.
        fix: The command or the edit that mends it.
    """

    rule: str
    kind: Kind
    message: str
    fix: str
    path: str | None = None
    line: int | None = None
    test_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without the empty fields."""
        fields = {
            "rule": self.rule,
            "kind": self.kind.value,
            "message": self.message,
            "fix": self.fix,
            "path": self.path,
            "line": self.line,
            "test_id": self.test_id,
        }
        return {key: value for key, value in fields.items() if value is not None}


def parse_finding(data: Mapping[str, Any]) -> Finding:
    """Return the finding whose JSON form is `data`.

    Raises:
        ValueError: A field is missing or of the wrong type.
    """
    texts = {key: data.get(key) for key in ("rule", "message", "fix")}
    options = {key: data.get(key) for key in ("path", "test_id")}
    is_whole = all(isinstance(value, str) for value in texts.values())
    if not is_whole or not all(isinstance(v, str | None) for v in options.values()):
        raise ValueError(f"not a finding: {data!r}")
    line = data.get("line")
    return Finding(
        rule=str(texts["rule"]),
        kind=Kind(str(data.get("kind"))),
        message=str(texts["message"]),
        fix=str(texts["fix"]),
        path=options["path"],
        line=line if isinstance(line, int) else None,
        test_id=options["test_id"],
    )


def render_findings(findings: Iterable[Finding]) -> str:
    """Return the findings as text for a terminal, one block each."""
    return "\n".join(_render(finding) for finding in findings)


def _render(finding: Finding) -> str:
    place = render_place(finding.path, finding.line) or (finding.test_id or "")
    head = f"{place}: {finding.message}" if place else finding.message
    rule = f"({flatten(finding.rule)})"
    return f"[{finding.kind}] {flatten(head)} {rule}\n    fix: {flatten(finding.fix)}"


# Controls, line separators, marks that reverse or hide text, and lone surrogates; written out,
# because `str.isprintable` answers differently from one Python version to the next.
UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ud800-\udfff]+"
)


def flatten(text: str) -> str:
    """Return foreign text as one line that no terminal and no runner takes for a command.

    A runner obeys `##[...]` wherever it stands in a line; `::` only at the start of one.
    """
    return UNPRINTABLE.sub(" ", text).replace("##[", "# #[")
