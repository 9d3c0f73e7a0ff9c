"""What a test file says about itself, read with `ast` and without importing it.

A file that hangs, exits or fails at import is therefore still accounted for. What cannot be known
without importing (inherited methods, star imports, generated tests, parameter ids) is reported as
open, never guessed: collection in the lane decides it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from ci_tools.roster.exclusion import Exclusion
from ci_tools.roster.marks import as_call, is_called, is_mark, read_exclusion
from ci_tools.roster.syntax import (
    assignment,
    binds_tests,
    blocks,
    bound_names,
    is_fixture,
    last_name,
    refuses_collection,
)


@dataclass(frozen=True, kw_only=True)
class StaticTest:
    """A test function or method that a file defines.

    Attributes:
        name: Its node id below the file, without parameters: `test_x` or `TestC::test_x`.
        line: The 1-based line of its definition.
        exclusion: The exclusion that it carries or inherits from its class.
        is_certain: Whether it is defined unconditionally, so that collection must find it.
    """

    name: str
    line: int
    exclusion: Exclusion | None
    is_certain: bool


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What one file says.

    Attributes:
        path: The file, relative to the root.
        syntax_error: Line and message when it is not Python.
        module_exclusion: The exclusion of the whole file.
        module_line: The line of that exclusion.
        tests: The tests it defines.
        exclusions: Every `excluded` mark that is written out in the file, with its line.
        has_open_lanes: Whether marks on parameters can move single ids into another lane.
        is_open: Whether the file may define tests that `ast` cannot see.
        open_classes: Classes that inherit from something that `ast` cannot see through.
        bound_names: Every name bound at module level.
    """

    path: str
    syntax_error: tuple[int, str] | None = None
    module_exclusion: Exclusion | None = None
    module_line: int | None = None
    tests: tuple[StaticTest, ...] = ()
    exclusions: tuple[tuple[int, Exclusion], ...] = ()
    has_open_lanes: bool = False
    is_open: bool = False
    open_classes: frozenset[str] = frozenset()
    bound_names: frozenset[str] = frozenset()


def read_facts(path: str, source: bytes) -> FileFacts:
    """Return what the file `path` with the content `source` says about itself."""
    try:
        module = ast.parse(source, filename=path)
    except SyntaxError as error:
        return FileFacts(path=path, syntax_error=(error.lineno or 1, error.msg or "syntax error"))
    except (ValueError, RecursionError, MemoryError) as error:
        return FileFacts(path=path, syntax_error=(1, str(error) or type(error).__name__))
    try:
        return _Reader(path, module).facts()
    except RecursionError:
        return FileFacts(path=path, syntax_error=(1, "nested too deeply to be read"))


@dataclass
class _Reader:
    path: str
    module: ast.Module
    aliases: dict[str, ast.Call] = field(default_factory=dict)
    attached: set[int] = field(default_factory=set)
    tests: dict[str, StaticTest] = field(default_factory=dict)
    open_classes: set[str] = field(default_factory=set)
    is_open: bool = False

    def facts(self) -> FileFacts:
        self._collect_aliases()
        mark = self._mark_in_assignments(self.module.body)
        self._visit_body(self.module.body, prefix="", inherited=None, certain=True)
        marks = [node for node in ast.walk(self.module) if is_mark(node)]
        calls = [as_call(node) for node in marks if not is_called(node, marks)]
        return FileFacts(
            path=self.path,
            module_exclusion=None if mark is None else read_exclusion(mark),
            module_line=None if mark is None else mark.lineno,
            tests=tuple(self.tests.values()),
            exclusions=tuple((call.lineno, read_exclusion(call)) for call in calls),
            has_open_lanes=any(id(call) not in self.attached for call in calls)
            or self._uses_alias_inside_arguments(),
            is_open=self.is_open,
            open_classes=frozenset(self.open_classes),
            bound_names=frozenset(bound_names(self.module.body)),
        )

    def _collect_aliases(self) -> None:
        for node in ast.walk(self.module):
            if isinstance(node, ast.Assign) and is_mark(node.value):
                call = as_call(node.value)
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id != "pytestmark":
                        self.aliases[target.id] = call
                        self.attached.add(id(call))

    def _uses_alias_inside_arguments(self) -> bool:
        return any(
            isinstance(part, ast.Name) and part.id in self.aliases
            for node in ast.walk(self.module)
            if isinstance(node, ast.Call)
            for argument in (*node.args, *(keyword.value for keyword in node.keywords))
            for part in ast.walk(argument)
        )

    def _mark_of(self, node: ast.expr) -> ast.Call | None:
        """The excluded mark that an expression is, directly or by a name."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.List | ast.Tuple):
            return next((m for m in map(self._mark_of, node.elts) if m is not None), None)
        if is_mark(node):
            call = as_call(node)
            self.attached.add(id(call))
            return call
        return None

    def _mark_in_assignments(self, body: Iterable[ast.stmt]) -> ast.Call | None:
        found = None
        for node in body:
            value, targets = assignment(node)
            if value is not None and "pytestmark" in targets:
                found = self._mark_of(value) or found
        return found

    def _visit_body(
        self, body: Iterable[ast.stmt], *, prefix: str, inherited: Exclusion | None, certain: bool
    ) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._visit_function(node, prefix, inherited, certain)
            elif isinstance(node, ast.ClassDef):
                self._visit_class(node, prefix, inherited, certain)
            elif isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
                self.is_open = True
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.asname or alias.name for alias in node.names]
                self.is_open |= any(name.startswith(("test", "Test")) for name in names)
            elif binds_tests(node):
                self.is_open = True
            else:
                for inner in blocks(node):
                    self._visit_body(inner, prefix=prefix, inherited=inherited, certain=False)

    def _visit_function(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        prefix: str,
        inherited: Exclusion | None,
        certain: bool,
    ) -> None:
        if node.name == "pytest_generate_tests":
            self.is_open = True
        if not node.name.startswith("test") or is_fixture(node):
            return
        mark = self._mark_of_decorators(node.decorator_list)
        name = prefix + node.name
        exclusion = inherited if mark is None else read_exclusion(mark)
        before = self.tests.get(name)
        self.tests[name] = StaticTest(
            name=name,
            line=node.lineno,
            exclusion=exclusion,
            is_certain=certain or (before is not None and before.is_certain),
        )

    def _visit_class(
        self, node: ast.ClassDef, prefix: str, inherited: Exclusion | None, certain: bool
    ) -> None:
        is_unittest = any(last_name(base).endswith("TestCase") for base in node.bases)
        has_bases = any(last_name(base) != "object" for base in node.bases)
        if has_bases or node.decorator_list or node.keywords:
            self.open_classes.add(prefix + node.name)
        if not (node.name.startswith("Test") or is_unittest):
            self.is_open |= has_bases  # a base with another name can still be a TestCase
            return
        if refuses_collection(node, is_unittest):
            return
        mark = self._mark_of_decorators(node.decorator_list) or self._mark_in_assignments(node.body)
        self._visit_body(
            node.body,
            prefix=f"{prefix}{node.name}::",
            inherited=inherited if mark is None else read_exclusion(mark),
            certain=certain,
        )

    def _mark_of_decorators(self, decorators: Iterable[ast.expr]) -> ast.Call | None:
        marks = [self._mark_of(decorator) for decorator in decorators]
        return next((mark for mark in marks if mark is not None), None)
