"""Reads `*.in` and hashed `*.txt` files into values; what is not understood becomes a problem."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

DIGEST_PREFIX = "# inputs-sha256: "
CONTENT_PREFIX = "# content-sha256: "
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(
    rf"^({_NAME})\s*(?:\[[^\]]*\])?\s*((?:(?:===|==|>=|<=|~=|!=|<|>)\s*[^\s,;]+\s*,?\s*)*)$"
)
_PIN = re.compile(rf"^({_NAME})==([^\s;=]+)((?:\s+--hash=\S+)*)$")
_HASH = re.compile(r"--hash=(\S+)")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_OPTION = re.compile(r"^(?:-i|-f|-e|--[a-z-]+)(?:[ =]|$)")
_INCLUDE = re.compile(r"^(-c|-r|--constraint|--requirement)[ =]\s*(\S+)$")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A requirement of an `.in` file: a normalised name and its version conditions."""

    name: str
    specifier: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A locked distribution; `parents` is what its `via` comment names."""

    name: str
    version: str
    hashes: tuple[str, ...]
    parents: tuple[str, ...]
    line: int


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A line that has no place in its file; `what` is a rule's name and `message` says why."""

    what: str
    message: str
    line: int


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A parsed `.in`: requirements, names of the files it includes, problems.

    `constraints` are those of the included files that bound versions and add no names (`-c`).
    """

    wishes: tuple[Wish, ...]
    includes: tuple[str, ...]
    constraints: tuple[str, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, kw_only=True)
class LockFile:
    """A parsed `.txt`.

    Attributes:
        pins: The locked distributions.
        digest: The digest of the inputs that it was compiled from.
        content: The digest of the rest of the file as it was written.
        problems: Lines that have no place in it.
    """

    pins: tuple[Pin, ...]
    digest: str | None
    content: str | None
    problems: tuple[Problem, ...]


def normalise(name: str) -> str:
    """Return the PEP 503 normal form of a distribution name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_input(text: str) -> InputFile:
    """Return the content of an `.in` file."""
    wishes: list[Wish] = []
    includes: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = re.sub(r"(?:^|\s)#.*$", "", line).strip()
        if not content:
            continue
        if include := _INCLUDE.match(content):
            includes.append((include.group(1), include.group(2)))
        elif problem := _find_problem(content, number):
            problems.append(problem)
        elif match := _REQUIREMENT.match(content):
            wishes.append(
                Wish(
                    name=normalise(match.group(1)),
                    specifier=re.sub(r"\s+", "", match.group(2)),
                    line=number,
                )
            )
        else:
            problems.append(Problem(what="malformed", message="not a requirement", line=number))
    return InputFile(
        wishes=tuple(wishes),
        includes=tuple(name for _, name in includes),
        constraints=tuple(name for option, name in includes if option in ("-c", "--constraint")),
        problems=tuple(problems),
    )


def parse_lock(text: str) -> LockFile:
    """Return the content of a hashed `.txt` file."""
    pins: list[Pin] = []
    problems: list[Problem] = []
    digest = written = None
    for number, content, comment in _logical_lines(text):
        if not content:
            if comment.startswith(DIGEST_PREFIX):
                digest = comment.removeprefix(DIGEST_PREFIX).strip()
            elif comment.startswith(CONTENT_PREFIX):
                written = comment.removeprefix(CONTENT_PREFIX).strip()
            elif pins and comment.startswith("    #"):
                pins[-1] = _with_parents(pins[-1], comment)
            continue
        if problem := _find_problem(content, number):
            problems.append(problem)
            continue
        match = _PIN.match(content)
        if match is None:
            problems.append(
                Problem(what="malformed", message="not `name==version --hash=...`", line=number)
            )
            continue
        pins.append(
            Pin(
                name=normalise(match.group(1)),
                version=match.group(2),
                hashes=tuple(_HASH.findall(match.group(3))),
                parents=(),
                line=number,
            )
        )
    return LockFile(pins=tuple(pins), digest=digest, content=written, problems=tuple(problems))


def _logical_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, content with continuations joined, and the raw comment line."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not parts and line.lstrip().startswith("#"):
            yield number, "", line
            continue
        first = first if parts else number
        stripped = re.sub(r"\s#.*$", "", line).strip()
        parts.append(stripped.removesuffix("\\").strip())
        if not stripped.endswith("\\"):
            yield first, " ".join(part for part in parts if part), ""
            parts = []
    if parts:
        yield first, " ".join(part for part in parts if part), ""


def _with_parents(pin: Pin, comment: str) -> Pin:
    text = comment.strip().removeprefix("#").strip().removeprefix("via").strip()
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    return Pin(
        name=pin.name,
        version=pin.version,
        hashes=pin.hashes,
        parents=pin.parents + found,
        line=pin.line,
    )


def _find_problem(content: str, line: int) -> Problem | None:
    """What may stand in neither file: another source, an editable, a machine's option."""
    if re.match(r"^(?:-e|--editable)(?:[ =]|$)", content):
        return Problem(what="editable", message="an editable install has no hash", line=line)
    if _OPTION.match(content) and not _INCLUDE.match(content):
        return Problem(
            what="option",
            message=f"option {re.split('[ =]', content)[0]} is this machine's",
            line=line,
        )
    if "://" in content or re.search(rf"^{_NAME}\s*(?:\[[^\]]*\]\s*)?@", content):
        return Problem(what="url", message="a URL or VCS source is not from the index", line=line)
    if re.match(r"^(?:\.|/|~|file:)", content) or content.endswith((".whl", ".tar.gz", ".zip")):
        return Problem(what="local-path", message="a local path is not from the index", line=line)
    if re.match(rf"^{_NAME}[^;]*;", content):
        return Problem(
            what="marker", message="a marker: the locks are for one platform only", line=line
        )
    return None


def is_sha256(text: str) -> bool:
    """Return whether a hash is `sha256:` and 64 lowercase hexadecimal digits."""
    return _SHA256.fullmatch(text) is not None


def digest_inputs(texts: list[tuple[str, str]]) -> str:
    """Return the SHA-256 over inputs, as (name, text) pairs; comments and spacing do not count."""
    total = hashlib.sha256()
    for name, text in texts:
        lines = (re.sub(r"(?:^|\s)#.*$", "", line).strip() for line in text.splitlines())
        content = "\n".join(" ".join(line.split()) for line in lines if line)
        total.update(f"{name} {len(content)}\n{content}\n".encode())
    return total.hexdigest()


def strip_header(text: str) -> str:
    """Return a lock's text without the lines that say what it belongs to."""
    lines = text.splitlines(keepends=True)
    return "".join(li for li in lines if not li.startswith((DIGEST_PREFIX, CONTENT_PREFIX)))


def render_header(inputs: str, body: str) -> str:
    """Return the lines that say what a lock belongs to, and that it is as it was written."""
    return f"{DIGEST_PREFIX}{inputs}\n{CONTENT_PREFIX}{digest_content(body)}\n"


def digest_content(body: str) -> str:
    """Return the SHA-256 of a lock's text below its header."""
    return hashlib.sha256(body.encode()).hexdigest()
