"""`image.lock`: what it may hold, and the place and words of every refusal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.errors import UsageError
from ci_tools.image.lock import ImageLock, load_image_lock, parse_image_lock, render_image_lock
from ci_tools.image.words import is_digest, is_image_name
from ci_tools.tree import Tree, find_tree

DIGEST = "sha256:" + "0a" * 32
PUBLISHED = ImageLock(
    name="ghcr.io/owner/gate-cpu",
    digest=DIGEST,
    media="manifest",
    platform="linux/amd64",
    inputs="1b" * 32,
    published="2030-01-02T03:04:05Z",
)
UNPUBLISHED = replace(PUBLISHED, digest="", inputs="", published="")


@pytest.mark.parametrize("lock", [PUBLISHED, UNPUBLISHED], ids=["published", "unpublished"])
def test_what_is_rendered_is_read_back(lock: ImageLock) -> None:
    assert parse_image_lock(render_image_lock(lock), "image.lock") == lock


def test_the_reference_is_name_and_digest() -> None:
    assert PUBLISHED.reference == f"ghcr.io/owner/gate-cpu@{DIGEST}"
    assert PUBLISHED.is_published
    assert not UNPUBLISHED.is_published


def change(old: str, new: str) -> str:
    text = render_image_lock(PUBLISHED)
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param(change(DIGEST, DIGEST[:-1]), 4, "64 lowercase hex", id="63 digits"),
        pytest.param(change(DIGEST, DIGEST + "0"), 4, "64 lowercase hex", id="65 digits"),
        pytest.param(change(DIGEST, DIGEST.upper()), 4, "64 lowercase hex", id="all upper case"),
        pytest.param(
            change(DIGEST, "sha256:" + "0A" * 32), 4, "64 lowercase hex", id="upper-case digits"
        ),
        pytest.param(change(DIGEST, "0a" * 32), 4, "64 lowercase hex", id="no algorithm"),
        pytest.param(change(DIGEST, "sha512:" + "0a" * 64), 4, "64 lowercase", id="sha512"),
        pytest.param(change(DIGEST, f" {DIGEST}"), 4, "64 lowercase hex", id="blank before"),
        pytest.param(change(DIGEST, DIGEST[:-1] + "g"), 4, "64 lowercase hex", id="not hex"),
        pytest.param(change(DIGEST, f"v1@{DIGEST}"), 4, "a tag", id="tag beside the digest"),
        pytest.param(change(DIGEST, "gate:v1"), 4, "a tag", id="tag for the digest"),
        pytest.param(change("gate-cpu", "gate-cpu:v1"), 3, "a tag", id="tag in the name"),
        pytest.param(change("gate-cpu", f"x@{DIGEST}"), 3, "a digest", id="digest in the name"),
        pytest.param(change("owner", "Owner"), 3, "upper-case", id="upper-case name"),
        pytest.param(change("ghcr.io/owner/", ""), 3, "host/path", id="name without host"),
        pytest.param(change("ghcr.io/owner/gate-cpu", ""), 3, "host/path", id="empty name"),
        pytest.param(change("ghcr.io/", "ghcr.io//"), 3, "host/path", id="empty part of a name"),
        pytest.param(change("manifest", "layer"), 5, "not one of index", id="unknown media"),
        pytest.param(change("linux/amd64", "amd64"), 6, "os/architecture", id="bad platform"),
        pytest.param(change("1b" * 32, "1b" * 31), 7, "64 lowercase hex", id="short inputs"),
        pytest.param(change("1b" * 32, ""), 7, "beside a digest", id="digest without inputs"),
        pytest.param(change("media", "medium"), 5, "unknown key", id="unknown key"),
        pytest.param(
            render_image_lock(PUBLISHED) + 'tag = "v1"\n', 9, "unknown key", id="one key more"
        ),
        pytest.param(
            render_image_lock(PUBLISHED) + "[more]\nx = 1\n", 9, "unknown key", id="a table"
        ),
        pytest.param(change(f'digest = "{DIGEST}"\n', ""), 1, "missing key", id="missing key"),
        pytest.param(change('"linux/amd64"', "64"), 6, "must be text", id="a number"),
        pytest.param(change('"linux/amd64"', "linux"), 6, "not valid TOML", id="no quotes"),
        pytest.param(
            render_image_lock(PUBLISHED) + 'name = "x"\n', 9, "not valid TOML", id="doubled key"
        ),
        pytest.param(change("published", "<<<<<<< ours"), 8, "not valid TOML", id="conflict"),
        pytest.param("", 1, "missing key", id="empty file"),
    ],
)
def test_a_refusal_names_file_and_line(text: str, line: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_image_lock(text, "containers/cpu/image.lock")
    assert caught.value.path == "containers/cpu/image.lock"
    assert caught.value.line == line
    assert words in caught.value.message
    assert caught.value.fix


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"containers/cpu/image\.lock: the image lock cannot"):
        load_image_lock(Tree(tmp_path))


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.image_lock.parent.mkdir(parents=True)
    tree.image_lock.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"containers/cpu/image\.lock: the image lock cannot"):
        load_image_lock(tree)


def test_the_lock_of_this_repository_is_in_the_form_that_is_written() -> None:
    tree = find_tree(Path(__file__).parent)
    lock = load_image_lock(tree)
    assert tree.image_lock.read_text(encoding="utf-8") == render_image_lock(lock)


@given(st.text(alphabet="0123456789abcdefABCDEFg", min_size=60, max_size=68))
def test_a_digest_is_exactly_64_lowercase_hex_digits(text: str) -> None:
    fits = len(text) == 64 and not set(text) - set("0123456789abcdef")
    assert is_digest(f"sha256:{text}") is fits


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("ghcr.io/owner/gate", True),
        ("127.0.0.1:5000/gate", True),
        ("localhost/gate", True),
        ("localhost:5000/a/b/c", True),
        ("registry:5000/gate", True),
        ("owner/gate", False),
        ("ghcr.io", False),
        ("ghcr.io/owner/gate/", False),
        ("https://ghcr.io/owner/gate", False),
        ("ghcr.io/owner/-gate", False),
        ("ghcr.io/owner/gate\n", False),
    ],
)
def test_a_name_has_a_host_and_a_path(name: str, fits: bool) -> None:
    assert is_image_name(name) is fits
