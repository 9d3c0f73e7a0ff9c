"""The `excluded` mark as it is written in a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from ci_tools.roster.exclusion import MARKER, Exclusion
from ci_tools.roster.syntax import last_name

_FIELDS = ("kind", "reason", "owner", "review_by", "needs")


def is_mark(node: ast.AST) -> bool:
    """Return whether a node is `pytest.mark.excluded`, `mark.excluded`, or a call of it."""
    target = node.func if isinstance(node, ast.Call) else node
    return (
        isinstance(target, ast.Attribute)
        and target.attr == MARKER
        and last_name(target.value) == "mark"
    )


def is_called(node: ast.AST, marks: Iterable[ast.AST]) -> bool:
    """Return whether a mark is the function of a call that is a mark as well."""
    return any(isinstance(mark, ast.Call) and mark.func is node for mark in marks)


def as_call(node: ast.AST) -> ast.Call:
    """Return a mark as a call; a mark without arguments becomes one, always the same."""
    if isinstance(node, ast.Call):
        return node
    assert isinstance(node, ast.Attribute)
    call = getattr(node, "_ci_tools_call", None)
    if not isinstance(call, ast.Call):
        call = ast.copy_location(ast.Call(func=node, args=[], keywords=[]), node)
        node._ci_tools_call = call  # type: ignore[attr-defined]
    return call


def read_exclusion(call: ast.Call) -> Exclusion:
    """Return the exclusion that a call of the mark writes down; bad arguments become problems."""
    values: dict[str, object] = {}
    problems: list[str] = []
    named = [("kind", call.args[0])] if call.args else []
    named += [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
    if len(call.args) > 1:
        problems.append("only the kind is positional; name the other arguments")
    for name, node in named:
        if name not in _FIELDS:
            problems.append(f"unknown argument {name!r}; known are {', '.join(_FIELDS)}")
            continue
        try:
            values[name] = ast.literal_eval(node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            problems.append(f"argument {name!r} is no literal, so it cannot be read without import")
    needs = values.pop("needs", ())
    problems += [f"{name} must be a string" for name, v in values.items() if type(v) is not str]
    if not isinstance(needs, list | tuple) or not all(isinstance(n, str) for n in needs):
        problems.append('needs must be a list of package names such as ["flowmc"]')
        needs = ()
    whole = Exclusion(
        kind=str(values.get("kind", "")),
        reason=str(values.get("reason", "")),
        owner=str(values.get("owner", "")),
        review_by=str(values.get("review_by", "")),
        needs=tuple(needs),
    )
    return replace(whole, problems=tuple(problems))
