"""Whether a pinned version satisfies an input's conditions, where plain numbers decide it.

A small part of PEP 440: releases of plain numbers. Everything else (pre-, post- and local
releases, epochs) is undecided, and pip-compile remains the judge.
"""

from __future__ import annotations

import re

_RELEASE = re.compile(r"\d+(?:\.\d+)*")
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
    written = _key(prefix)
    width = max(version.count("."), prefix.count(".")) + 1
    have, want = _pad(_key(version), width), _pad(written, width)
    if wanted.endswith(".*"):
        is_inside = have[: len(written)] == written
        return {"==": is_inside, "!=": not is_inside}.get(operator)
    if operator == "~=":
        is_series = have[: len(written) - 1] == written[:-1]
        return have >= want and is_series if len(written) > 1 else None
    return {
        "==": have == want,
        "===": version == wanted,
        "!=": have != want,
        ">=": have >= want,
        "<=": have <= want,
        ">": have > want,
        "<": have < want,
    }.get(operator)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def _pad(key: tuple[int, ...], width: int) -> tuple[int, ...]:
    return key + (0,) * (width - len(key))
