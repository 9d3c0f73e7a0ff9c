"""`image.lock`: which published image the lanes run, and the inputs that it was made from.

Reads, checks and renders the file; whether it belongs to the tree is decided in `check`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any, NoReturn

from ci_tools.errors import UsageError
from ci_tools.image.words import is_digest, is_image_name, is_inputs_hash
from ci_tools.tree import Tree

KEYS = ("name", "digest", "media", "platform", "inputs", "published")
MEDIA = ("index", "manifest")
HEADER = (
    "# The published image that every lane runs. Written by a command, never by hand.\n"
    "# An empty digest: nothing has been published yet.\n"
)
MEND = "take the file from the default branch again, or publish with .github/workflows/image.yml"


@dataclass(frozen=True, kw_only=True)
class ImageLock:
    """The published image.

    Attributes:
        name: `host/path`, without tag or digest.
        digest: `sha256:` and 64 hexadecimal digits, or empty while nothing is published.
        media: What the digest names: `index` (several platforms) or `manifest` (one).
        platform: `os/architecture`.
        inputs: The inputs hash that the image was built from; empty while nothing is published.
        published: When, as RFC 3339 text in UTC; empty while nothing is published.
    """

    name: str
    digest: str
    media: str
    platform: str
    inputs: str
    published: str

    @property
    def is_published(self) -> bool:
        """Whether there is an image to pull."""
        return bool(self.digest)

    @property
    def reference(self) -> str:
        """`name@digest`: what engines pull and run."""
        return f"{self.name}@{self.digest}"


def load_image_lock(tree: Tree) -> ImageLock:
    """Return the image lock of a tree.

    Raises:
        UsageError: The file is missing, unreadable, or breaks a rule of `parse_image_lock`.
    """
    path = tree.relative(tree.image_lock)
    try:
        text = tree.image_lock.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"the image lock cannot be read, so nothing says which image is the gate's: {reason}",
            path=path,
            fix=MEND,
        ) from error
    return parse_image_lock(text, path)


def parse_image_lock(text: str, path: str) -> ImageLock:
    """Return the lock in `text`; `path` is for error messages.

    Raises:
        UsageError: Not TOML; a key unknown, missing or not text; a digest that is neither empty
            nor `sha256:` with 64 lowercase hexadecimal digits; a tag; a name that engines read
            differently; a published image without its inputs hash.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place.group(1)) if place else len(text.splitlines()) or 1
        raise UsageError(f"not valid TOML: {error}", path=path, line=line, fix=MEND) from error
    return _Checker(text, path).lock(document)


class _Checker:
    """Checks one parsed file; every error carries the line of the key."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path

    def fail(self, key: str, message: str) -> NoReturn:
        line = key_line(self._text, key)
        raise UsageError(f"{key}: {message}", path=self._path, line=line, fix=MEND)

    def lock(self, document: dict[str, Any]) -> ImageLock:
        for key in document:
            if key not in KEYS:
                self.fail(key, f"unknown key; known are {', '.join(KEYS)}")
        for key in KEYS:
            if key not in document:
                self.fail(key, "missing key; every key is written, if empty")
            if not isinstance(document[key], str):
                self.fail(key, f"must be text in quotes, not {document[key]!r}")
        lock = ImageLock(**document)
        self.check_name(lock.name)
        self.check_digest(lock.digest)
        self.check_rest(lock)
        return lock

    def check_name(self, name: str) -> None:
        if name != name.lower():
            self.fail("name", f"{name!r} has upper-case letters, which registries refuse")
        if "@" in name:
            self.fail("name", f"{name!r} holds a digest; that belongs in `digest`")
        if ":" in name.rpartition("/")[2]:
            self.fail("name", f"{name!r} holds a tag; the digest alone says which image it is")
        if not is_image_name(name):
            self.fail("name", f"{name!r} is not `host/path`, as in ghcr.io/owner/image")

    def check_digest(self, digest: str) -> None:
        if not digest or is_digest(digest):
            return
        if "@" in digest or (":" in digest and "sha" not in digest.lower()):
            self.fail("digest", f"{digest!r} holds a tag or a name beside the digest")
        self.fail(
            "digest", f"{digest!r} is not `sha256:` with exactly 64 lowercase hexadecimal digits"
        )

    def check_rest(self, lock: ImageLock) -> None:
        if lock.media not in MEDIA:
            self.fail("media", f"{lock.media!r} is not one of {', '.join(MEDIA)}")
        if not re.fullmatch(r"[a-z0-9]+/[a-z0-9]+(/v\d+)?", lock.platform):
            self.fail("platform", f"{lock.platform!r} is not `os/architecture`, as in linux/amd64")
        if lock.inputs and not is_inputs_hash(lock.inputs):
            self.fail("inputs", f"{lock.inputs!r} is not 64 lowercase hexadecimal digits")
        if lock.digest and not lock.inputs:
            self.fail("inputs", "empty beside a digest, so nothing ties the image to its lockfile")


def render_image_lock(lock: ImageLock) -> str:
    """Return the text of the file."""
    rows = "".join(f'{key} = "{getattr(lock, key)}"\n' for key in KEYS)
    return HEADER + rows


def key_line(text: str, key: str) -> int:
    """Return the 1-based line that sets `key`, else the first line."""
    pattern = re.compile(rf"""\s*["'\[]*{re.escape(key)}["'\]]*\s*(=|$)""")
    for number, line in enumerate(text.splitlines(), start=1):
        if pattern.match(line):
            return number
    return 1
