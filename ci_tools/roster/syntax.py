"""Questions to the syntax tree of a test file, none of which imports anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def last_name(node: ast.AST) -> str:
    """Return `c` of `a.b.c` and of `c`; empty for everything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def assignment(node: ast.stmt) -> tuple[ast.expr | None, set[str]]:
    """Return what a statement assigns, and the names it assigns to."""
    if isinstance(node, ast.Assign):
        return node.value, {name for target in node.targets for name in _target_names(target)}
    if isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
        return node.value, set(_target_names(node.target))
    return None, set()


def _target_names(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from _target_names(element)
    elif isinstance(node, ast.Subscript) and last_name(node.value) == "":
        yield "*"  # globals()[name] = ...


def binds_tests(node: ast.stmt) -> bool:
    """Return whether a statement binds a name that pytest would collect."""
    value, names = assignment(node)
    return value is not None and any(
        name == "*" or (name.startswith(("test", "Test")) and name != "testpaths") for name in names
    )


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the statement lists inside an `if`, `try`, `with`, `for`, `while` or `match`."""
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(node, name, None)
        if inner:
            yield inner
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is a pytest fixture."""
    targets = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return any(last_name(target) == "fixture" for target in targets)


def refuses_collection(node: ast.ClassDef, is_unittest: bool) -> bool:
    """Return whether pytest does not collect a class, whatever its name."""
    for part in node.body:
        value, names = assignment(part)
        if "__test__" in names and isinstance(value, ast.Constant) and value.value is False:
            return True
        has_constructor = isinstance(part, ast.FunctionDef) and part.name in (
            "__init__",
            "__new__",
        )
        if has_constructor and not is_unittest:
            return True
    return False


def bound_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield every name that a module's body binds."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        else:
            yield from assignment(node)[1]
            for inner in blocks(node):
                yield from bound_names(inner)
