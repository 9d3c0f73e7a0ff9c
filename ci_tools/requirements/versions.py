"""Whether a pinned version satisfies an input's conditions, where plain numbers decide it.

A small part of PEP 440: releases of numbers with an optional `.postN`. Everything else is
undecided, and pip-compile remains the judge.
"""

from __future__ import annotations

import re

_RELEASE = re.compile(r"\d+(?:\.\d+)*(?:\.post\d+)?")
_CONDITION = re.compile(r"(===|==|>=|<=|~=|!=|<|>)(.+)")


def is_satisfied(version: str, specifier: str) -> bool | None:
    """Return whether `version` meets every condition; None where that is not decidable."""
    undecided = False
    for part in (part for part in specifier.split(",") if part):
        result = _meets(version, part)
        if result is False:
            return False
        undecided |= result is None
    return None if undecided else True


def _meets(version: str, condition: str) -> bool | None:
    match = _CONDITION.fullmatch(condition)
    if match is None:
        return None
    operator, wanted = match.groups()
    prefix = wanted.removesuffix(".*")
    if not _RELEASE.fullmatch(version) or not _RELEASE.fullmatch(prefix):
        return None
    have, want = _key(version), _key(prefix)
    if wanted.endswith(".*"):
        is_inside = have[: len(want)] == want
        return {"==": is_inside, "!=": not is_inside}.get(operator)
    width = max(len(have), len(want))
    padded_have, padded_want = _pad(have, width), _pad(want, width)
    if operator == "~=":
        return padded_have >= padded_want and have[: len(want) - 1] == want[:-1]
    return {
        "==": padded_have == padded_want,
        "===": version == wanted,
        "!=": padded_have != padded_want,
        ">=": padded_have >= padded_want,
        "<=": padded_have <= padded_want,
        ">": padded_have > padded_want,
        "<": padded_have < padded_want,
    }.get(operator)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _pad(key: tuple[int, ...], width: int) -> tuple[int, ...]:
    return key + (0,) * (width - len(key))
