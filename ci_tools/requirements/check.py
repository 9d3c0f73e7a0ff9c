"""Holds every lock against its input, with no network: a `.txt` that is not its `.in`'s is red."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ci_tools.errors import UsageError
from ci_tools.findings import Finding, Kind
from ci_tools.requirements.parse import (
    InputFile,
    LockFile,
    Pin,
    digest_content,
    digest_inputs,
    is_sha256,
    normalise,
    parse_input,
    parse_lock,
    strip_header,
)
from ci_tools.requirements.versions import is_satisfied
from ci_tools.tree import Tree

GATE = "gate"


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The texts of the requirements folder by file name."""

    folder: str
    texts: Mapping[str, str]


def load_requirements(tree: Tree) -> Requirements:
    """Return the texts of every `.in` and `.txt` that is not hidden.

    Raises:
        UsageError: The folder or a file cannot be read.
    """
    folder = tree.relative(tree.requirements)
    try:
        paths = sorted(tree.requirements.iterdir())
        texts = {
            path.name: path.read_text(encoding="utf-8")
            for path in paths
            if path.suffix in (".in", ".txt") and not path.name.startswith(".")
        }
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"requirements cannot be read: {error}", path=folder) from error
    return Requirements(folder=folder, texts=texts)


def check_requirements(tree: Tree) -> list[Finding]:
    """Return a finding for every rule that a lockfile of the tree breaks."""
    return check_texts(load_requirements(tree))


def check_texts(given: Requirements) -> list[Finding]:
    """Return a finding for every broken rule in the texts, in the order of the files."""
    stems = sorted({name.rpartition(".")[0] for name in given.texts} | {GATE})
    return [finding for stem in stems for finding in _check_stem(given, stem)]


def digest_of(texts: Mapping[str, str], stem: str) -> str:
    """Return the digest of an input with every file that it includes, as its lock records it."""
    names = _included(texts, f"{stem}.in")
    return digest_inputs([(name, texts.get(name, "")) for name in names])


def _included(texts: Mapping[str, str], first: str) -> list[str]:
    """The input and every file below it, each once; locks include nothing."""
    names = [first]
    for name in names:
        if name.endswith(".in"):
            included = parse_input(texts.get(name, "")).includes
            names += [other for other in dict.fromkeys(included) if other not in names]
    return names


def _check_stem(given: Requirements, stem: str) -> Iterator[Finding]:
    report = _Reporter(given.folder, stem)
    source, locked = given.texts.get(f"{stem}.in"), given.texts.get(f"{stem}.txt")
    if source is None:
        what = f"{stem}.txt has no {stem}.in" if locked is not None else f"there is no {stem}.in"
        yield report.of("missing-input", "in" if locked is None else "txt", 1, what)
        return
    parsed = parse_input(source)
    for problem in parsed.problems:
        yield report.of(problem.what, "in", problem.line, problem.message)
    for name in parsed.includes:
        if name not in given.texts:
            yield report.of("missing-include", "in", 1, f"{stem}.in includes {name}, not here")
    if locked is None:
        yield report.of("missing-lock", "in", 1, f"{stem}.in has no {stem}.txt")
        return
    lock = parse_lock(locked)
    for problem in lock.problems:
        yield report.of(problem.what, "txt", problem.line, problem.message)
    if lock.digest != digest_of(given.texts, stem):
        yield report.of(
            "input-changed", "txt", 1, f"{stem}.txt was not compiled from this {stem}.in"
        )
    if lock.content != digest_content(strip_header(locked)):
        yield report.of("edited", "txt", 1, f"{stem}.txt was changed after it was compiled")
    yield from _check_pins(report, lock)
    yield from _check_wishes(report, parsed, lock)
    yield from _check_origins(report, given.texts, lock)
    yield from _check_constraints(report, given.texts, parsed, lock)


def _check_pins(report: _Reporter, lock: LockFile) -> Iterator[Finding]:
    counts = Counter(pin.name for pin in lock.pins)
    for pin in lock.pins:
        if not pin.hashes:
            yield report.of("missing-hash", "txt", pin.line, f"{pin.name} has no hash")
        for value in pin.hashes:
            if not is_sha256(value):
                yield report.of(
                    "malformed-hash", "txt", pin.line, f"{pin.name}: {value} is no SHA-256"
                )
        if counts[pin.name] > 1:
            yield report.of("doubled-name", "txt", pin.line, f"{pin.name} is locked twice")


def _check_wishes(report: _Reporter, parsed: InputFile, lock: LockFile) -> Iterator[Finding]:
    """What the input asks for is in the lock, in a version that it allows."""
    pins: dict[str, Pin] = {pin.name: pin for pin in lock.pins}
    counts = Counter(wish.name for wish in parsed.wishes)
    for wish in parsed.wishes:
        pin = pins.get(wish.name)
        if counts[wish.name] > 1:
            yield report.of("doubled-name", "in", wish.line, f"{wish.name} is asked for twice")
        if pin is None:
            yield report.of("unlocked-name", "in", wish.line, f"{wish.name} is not in the lock")
        elif is_satisfied(pin.version, wish.specifier) is False:
            message = f"{pin.name} {pin.version} does not satisfy {wish.specifier}"
            yield report.of("unsatisfied", "txt", pin.line, message)


def _check_origins(
    report: _Reporter, texts: Mapping[str, str], lock: LockFile
) -> Iterator[Finding]:
    """Every pin is there for an input that asks for it, or for another pin."""
    inputs = [name for name in _included(texts, f"{report.stem}.in") if name.endswith(".in")]
    wished = {
        name: {wish.name for wish in parse_input(texts.get(name, "")).wishes} for name in inputs
    }
    locked = {pin.name for pin in lock.pins}
    for pin in lock.pins:
        needed_by = []
        for parent in pin.parents:
            source = parent.removeprefix("-r ").rpartition("/")[2]
            if parent.startswith("-r ") and pin.name not in wished.get(source, ()):
                message = f"{pin.name} is locked for {source}, which does not ask for it"
                yield report.of("unwished-name", "txt", pin.line, message)
            needed_by += [parent] if parent.startswith("-r ") or normalise(parent) in locked else []
        if not needed_by:
            message = f"{pin.name} is in the lock and nothing in it needs it"
            yield report.of("orphan-name", "txt", pin.line, message)


def _check_constraints(
    report: _Reporter, texts: Mapping[str, str], parsed: InputFile, lock: LockFile
) -> Iterator[Finding]:
    """A name that a constraining lock holds too has the same version in both."""
    for name in parsed.constraints:
        bounds = {pin.name: pin.version for pin in parse_lock(texts.get(name, "")).pins}
        for pin in lock.pins:
            bound = bounds.get(pin.name, pin.version)
            if pin.version != bound:
                message = f"{pin.name} {pin.version} here, {bound} in {name}"
                yield report.of("constraint-differs", "txt", pin.line, message)


@dataclass(frozen=True)
class _Reporter:
    """Makes findings about one pair of files."""

    folder: str
    stem: str

    def of(self, rule: str, suffix: str, line: int, message: str) -> Finding:
        is_gate = self.stem == GATE
        return Finding(
            rule=f"requirements/{rule}",
            kind=Kind.IMAGE if is_gate else Kind.INFRASTRUCTURE,
            message=message,
            path=f"{self.folder}/{self.stem}.{suffix}",
            line=line,
            fix="edit the .in file and run `make lock`; the .txt is never written by hand",
        )
