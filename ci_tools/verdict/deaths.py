"""How the process of one file ended, and what that says.

The culprit is the test that started and did not finish; a signal alone proves no cause.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from typing import Any

from ci_tools.findings import Finding, Kind
from ci_tools.verdict.case import Events, FileCase, death_finding, record_finding
from ci_tools.verdict.causes import find_cause
from ci_tools.verdict.outcomes import find_unfinished

_USAGE_ERROR = 4  # pytest's own code for it


def check_end(case: FileCase, events: Events) -> Iterator[Finding]:
    """The process ended by itself, after its finish event, with the code written there."""
    path = case.planned.path
    if len(case.ends) != 1:
        how = "no end" if not case.ends else f"{len(case.ends)} ends"
        yield record_finding(case, "missing-end", f"the supervisor recorded {how} of {path}")
        return
    end = case.ends[0]
    finish = events[-1] if events and events[-1]["event"] == "finish" else None
    if not _ended_well(end, finish) and not _is_told(case, end, events):
        yield _explain_end(case, end, finish, events)
    if finish is not None and finish.get("lines") != len(events):
        yield record_finding(
            case, "broken-journal", f"journal of {path} has {len(events)} lines, not what it says"
        )


def _ended_well(end: Mapping[str, Any], finish: Mapping[str, Any] | None) -> bool:
    is_own_end = end.get("ended_by") == "exit" and end.get("signal") is None
    return is_own_end and finish is not None and finish.get("exit_status") == end.get("exit_code")


def _is_told(case: FileCase, end: Mapping[str, Any], events: Events) -> bool:
    """Whether a missing finish has its own finding: a refusal, or a journal that is not whole."""
    if end.get("ended_by") != "exit" or end.get("signal") is not None:
        return False
    if case.journal is None or (events and case.journal.problems):
        return True
    is_refused = any(event["event"] == "refused" for event in events)
    return is_refused and end.get("exit_code") == _USAGE_ERROR


def _explain_end(
    case: FileCase,
    end: Mapping[str, Any],
    finish: Mapping[str, Any] | None,
    events: Events,
) -> Finding:
    path, kind = case.planned.path, Kind.CRASH
    culprit = find_unfinished(events)
    during = f"during {culprit}" if culprit else _where_between(events, finish)
    if end.get("ended_by") == "timeout":
        kind = Kind.TIMEOUT
        message = (
            f"{path} ran over its time limit after {end.get('seconds')} s, {during}; Python stacks "
            f"are in {case.log}"
        )
    elif end.get("ended_by") != "exit":
        return record_finding(case, "interrupted", f"{path} was ended by {end.get('ended_by')}")
    elif isinstance(end.get("signal"), int):
        cause = find_cause(end["signal"], _evidence(end))
        kind = cause.kind
        message = f"{path} died by {_signal_name(end['signal'])} {during}: {cause}"
    elif finish is None:
        message = (
            f"{path} exited with {end.get('exit_code')} without finishing, {during}: os._exit, "
            "sys.exit or a native exit"
        )
    else:
        message = (
            f"{path} finished with {finish.get('exit_status')} and exited with "
            f"{end.get('exit_code')}: it died after the last test"
        )
    return death_finding(case, kind, message, culprit)


def _evidence(end: Mapping[str, Any]) -> Mapping[str, Any]:
    found = end.get("evidence")
    return found if isinstance(found, dict) else {}


def _where_between(events: Events, finish: Mapping[str, Any] | None) -> str:
    if finish is not None:
        return "after the last test"
    names = {event["event"] for event in events}
    if "collected" in names:
        return "between tests, in teardown or at exit"
    return "at import or collection" if names else "before pytest started"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
