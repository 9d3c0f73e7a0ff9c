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
    digest_inputs,
    is_sha256,
    parse_input,
    parse_lock,
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
    """Return the texts of every `.in` and `.txt`.

    Raises:
        UsageError: The folder or a file cannot be read.
    """
    folder = tree.relative(tree.requirements)
    try:
        paths = sorted(tree.requirements.iterdir())
        texts = {
            path.name: path.read_text(encoding="utf-8")
            for path in paths
            if path.suffix in (".in", ".txt")
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
    names = [f"{stem}.in"]
    for name in names:
        if name.endswith(".in"):
            included = parse_input(texts.get(name, "")).includes
            names += [other for other in included if other not in names]
    return digest_inputs([(name, texts.get(name, "")) for name in names])


def _check_stem(given: Requirements, stem: str) -> Iterator[Finding]:
    report = _Reporter(given.folder, stem)
    source, locked = given.texts.get(f"{stem}.in"), given.texts.get(f"{stem}.txt")
    if source is None:
        yield report.of("missing-input", "txt", 1, f"{stem}.txt has no {stem}.in")
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
    yield from _check_pins(report, lock)
    yield from _check_names(report, parsed, lock, f"{stem}.in")


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


def _check_names(
    report: _Reporter, parsed: InputFile, lock: LockFile, input_name: str
) -> Iterator[Finding]:
    pins: dict[str, Pin] = {pin.name: pin for pin in lock.pins}
    wished = {wish.name for wish in parsed.wishes}
    for wish in parsed.wishes:
        pin = pins.get(wish.name)
        if pin is None:
            yield report.of("unlocked-name", "in", wish.line, f"{wish.name} is not in the lock")
        elif is_satisfied(pin.version, wish.specifier) is False:
            yield report.of(
                "unsatisfied",
                "txt",
                pin.line,
                f"{pin.name} {pin.version} does not satisfy {wish.specifier}",
            )
    for pin in lock.pins:
        is_direct = any(parent.startswith("-r ") and input_name in parent for parent in pin.parents)
        if is_direct and pin.name not in wished:
            yield report.of(
                "unwished-name",
                "txt",
                pin.line,
                f"{pin.name} is locked for {input_name}, not in it",
            )
        if not pin.parents and pin.name not in wished:
            yield report.of(
                "orphan-name", "txt", pin.line, f"{pin.name} is in the lock and nothing needs it"
            )


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
