"""The job page and the terminal: what a person reads, and what foreign text cannot do in them."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.findings import Finding, Kind, flatten, render_findings
from ci_tools.verdict.decide import Verdict
from ci_tools.verdict.report.people import MAX_ROWS, render_markdown, render_text
from ci_tools.verdict.report.words import conclusion_of, render_headline, reproduce_command
from tests.unit.builders import COMMIT, IMAGE, A, judge, make_run, passed

ONE = f"{A}::test_one"
PIECES = ("::error::", "##[error]", "|", "`", "``", "\n", "\r", "@team", "#12", "<img src=x>", "\\",
          "\\|", "https://x.example", "www.x.example", "[a](b)", "*b*", "_c_", "~~d~~", "$e$",
          "&lt;", "\u2028", "\u202e", "\ud800", "\0", "x", " ", "é", "😀")  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)
findings = st.builds(
    Finding,
    rule=st.just("test/failed") | hostile,
    kind=st.sampled_from(Kind),
    message=hostile,
    fix=hostile,
    path=st.none() | hostile,
    line=st.none() | st.integers(1, 9),
    test_id=st.none() | hostile,
)


def red(*found: Finding) -> Verdict:
    run = make_run()
    run.preflight = list(found)
    return judge(run)


def failed(message: str = "assert 1 == 2") -> Verdict:
    run = make_run()
    events = passed(ONE)
    events[2] |= {"outcome": "failed", "message": message, "path": A, "line": 7}
    run.replace_test(ONE, events)
    run.end_badly()
    return judge(run)


def rows_of(markdown: str) -> list[list[str]]:
    """The cells of each row of the table, split as GitHub splits them: at unescaped pipes."""
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    return [re.split(r"(?<!\\)(?:\\\\)*\|", row)[1:-1] for row in rows]


def test_the_page_of_a_green_run() -> None:
    assert render_markdown(judge(make_run())) == (
        "## ✅ GREEN: 4 of 4 planned tests passed in "
        f"{IMAGE.name}@\u200b{IMAGE.digest}\n\n"
        f"Commit `{COMMIT[:12]}`, plan `{make_run().plan.hash[:12]}`.\n\n"  # type: ignore[union-attr]
    )


def test_the_page_of_a_red_run() -> None:
    page = render_markdown(failed())
    assert page.startswith("## ❌ RED (test): 3 of 4 planned tests passed, 1 failed in ")
    assert f"`git checkout {COMMIT[:12]}`" in page
    assert "- **test**: a test failed" in page
    head, _, row = rows_of(page)
    assert [cell.strip() for cell in head] == ["kind", "where", "what", "mend it or repeat it"]
    assert [cell.strip() for cell in row] == [
        "test",
        f"`{A}:7`",
        "tests/roster/test\\_a.py::test\\_one failed: assert 1 == 2",
        f"`ONLY={ONE} make ci-local`",
    ]


def test_the_text_of_a_red_run() -> None:
    assert render_text(failed()).splitlines()[:3] == [
        f"[test] {A}:7: {ONE} failed: assert 1 == 2",
        "    fix: reproduce it with the command given",
        f"    run: ONLY={ONE} make ci-local",
    ]


def test_what_is_no_tests_fault_has_its_fix_in_the_place_of_a_command() -> None:
    finding = Finding(rule="roster/no-lane", kind=Kind.ROSTER, message="m", fix="make roster-lock")
    assert "`ONLY=" not in render_markdown(red(finding))
    assert "make roster-lock" in render_markdown(red(finding))


def test_many_findings_are_cut_and_counted() -> None:
    finding = Finding(rule="roster/no-lane", kind=Kind.ROSTER, message="m", fix="f")
    verdict = red(*[finding] * (MAX_ROWS + 3))
    assert len(rows_of(render_markdown(verdict))) == MAX_ROWS + 2
    assert "and 3 more" in render_markdown(verdict)
    assert "and 3 more" in render_text(verdict)


def test_a_part_never_reads_as_the_gates() -> None:
    verdict = judge(make_run(selection=(ONE,)), is_blocking=False)
    assert conclusion_of(verdict) == "partial-green"
    assert render_headline(verdict).startswith("PARTIAL, not the gate's verdict: GREEN")


def test_a_label_is_in_the_headline_and_cannot_be_overlooked() -> None:
    run = make_run()
    for chunk in run.chunks.values():
        assert chunk.environment is not None
        chunk.environment["image"] |= {"kind": "lockfile", "label": "lockfile, not the image"}
    assert render_headline(judge(run, is_blocking=False)).endswith(
        " in the lockfile, not the image"
    )


@given(st.lists(findings, min_size=1, max_size=3))
def test_no_line_of_the_terminal_is_a_command_of_the_runner(found: list[Finding]) -> None:
    for text in (render_text(red(*found)), render_findings(found)):
        text.encode("utf-8")
        assert "##[" not in text
        for line in re.split(r"[\r\n\u2028]", text):
            assert not line.strip().startswith("::")
        assert len(text.split("\n")) <= 3 * len(found) + 1


@given(st.lists(findings, min_size=1, max_size=3))
def test_foreign_text_stays_in_its_cell(found: list[Finding]) -> None:
    page = render_markdown(red(*found))
    rows = rows_of(page)
    assert len(rows) == len(found) + 2
    assert {len(row) for row in rows} == {4}
    for line in page.splitlines():
        assert line == "" or line.startswith(("## ", "- **", "|", "Commit `", "To repeat"))


ENTITY = re.compile(r"&(?:#\d+|amp|lt|gt);")
CODE = re.compile(r"(?<![\\`])`[^`]+`(?!`)|<code>[A-Za-z0-9 /&#;-]*</code>")


@given(st.lists(findings, min_size=1, max_size=3))
def test_foreign_text_does_nothing_outside_code(found: list[Finding]) -> None:
    for row in rows_of(render_markdown(red(*found)))[2:]:
        for cell in row:
            text = ENTITY.sub("", CODE.sub("", cell))
            assert not re.search(r"[<>&]", text), "HTML"
            assert not re.search(r"[@#](?!\u200b)", text), "a mention or a reference"
            assert not re.search(r"://|www\.", text), "a link"
            assert not re.search(r"(?<!\\)(?:\\\\)*[`*_~$\[\]]", text), "markup"


@pytest.mark.parametrize(
    "text", ["a|b", "a`b", "a``b", "`a`", "a\\|b", "a\\", "|", "`", "a`|`b", "x&y|z", "<b>|</b>"]
)
def test_code_reads_back_as_it_was(text: str) -> None:
    finding = Finding(rule="r", kind=Kind.ROSTER, message="m", fix="f", path=text)
    cell = rows_of(render_markdown(red(finding)))[2][1].strip()
    if cell.startswith("<code>"):
        inner = cell.removeprefix("<code>").removesuffix("</code>")
        assert re.sub(r"&#(\d+);", lambda match: chr(int(match[1])), inner) == text
    else:
        assert cell == f"`{text}`"


def test_a_foreign_plan_cannot_write_on_the_page() -> None:
    run = make_run()
    assert run.plan is not None
    object.__setattr__(run.plan, "commit", "`@team <b>\n# x")
    page = render_markdown(judge(run))
    assert "<code>&#96;&#64;team" in page
    assert "<b>" not in page


@given(hostile)
def test_flat_text_is_one_line_that_can_be_encoded(text: str) -> None:
    flat = flatten(text)
    flat.encode("utf-8")
    assert len(flat.splitlines()) <= 1
    assert "##[" not in flat


WORDS = ["t.py::a", "t.py::a[x y]", "a[it's]", 'a["q"]', "a[$HOME `id`]", "a[\n]", "a[\t\\n']",
         "a[é😀]", "a[\u2028]", "a[##[x]", "a[-k]", "a[::]", "a[;rm]", "a\\x41",
         "a[\x07]"]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_the_command_hands_the_id_to_make_through_a_shell(word: str) -> None:
    command = reproduce_command(failed(), word, "t.py")
    assert len(command.splitlines()) == 1
    shown = command.removesuffix("make ci-local") + "printenv ONLY"
    done = subprocess.run(["bash", "-c", shown], capture_output=True, check=True)
    assert done.stdout.decode() == f"{word}\n"


@pytest.mark.parametrize("word", ["a[\0]", "a[\ud800]", "a" * 301])
def test_the_file_stands_in_for_an_id_that_no_shell_can_pass_on(word: str) -> None:
    assert reproduce_command(failed(), word, "t e.py") == "ONLY='t e.py' make ci-local"
    assert reproduce_command(failed(), word, None) == "make ci-local"


@given(hostile)
def test_a_command_is_one_line_and_a_shell_reads_one_assignment(word: str) -> None:
    command = reproduce_command(failed(), word, "t.py")
    assert "##[" not in command
    assert len(command.splitlines()) == 1
    if "$'" not in command:
        assert shlex.split(command)[0] in (f"ONLY={word}", "ONLY=t.py")
