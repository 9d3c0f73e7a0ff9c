"""Real pytest processes under the real supervisor: however a file ends, the verdict is exact."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci_tools.errors import ExitCode
from ci_tools.findings import Finding
from ci_tools.planning.plan import Plan
from ci_tools.records.layout import chunk_folder
from ci_tools.verdict.decide import Verdict
from ci_tools.verdict.report.machine import render_junit
from tests.integration.projects import Project, events_of, make_project
from tests.integration.scenarios import GREEN, SCENARIOS, Scenario

A, B = "tests/roster/test_a.py", "tests/roster/test_b.py"


@dataclass(frozen=True)
class Recorded:
    """One run of all scenarios, each in a file of its own."""

    project: Project
    plan: Plan
    codes: list[int]
    verdict: Verdict

    def findings(self, path: str) -> list[Finding]:
        """What is said about one file: at its path, or by naming it."""
        return [f for f in self.verdict.findings if f.path == path or path in f.message]


def record(project: Project, scenarios: dict[str, Scenario]) -> Recorded:
    for folder, scenario in scenarios.items():
        path = scenario.path(folder)
        project.write(path, scenario.body + "\n")
        if scenario.conftest:
            project.write(f"{path.rpartition('/')[0]}/conftest.py", scenario.conftest + "\n")
    plan = project.plan(
        {scenario.path(folder): list(scenario.outcomes) for folder, scenario in scenarios.items()},
        {s.path(folder): s.excluded for folder, s in scenarios.items() if s.excluded},
    )
    codes = project.run(plan)
    return Recorded(project, plan, codes, project.judge(plan))


@pytest.fixture(scope="module", params=[(), ("pytest", "jax")], ids=["fresh", "forked"])
def recorded(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Recorded:
    project = make_project(tmp_path_factory.mktemp("all"))
    project.preload = request.param
    return record(project, SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_file_has_exactly_its_outcomes_and_findings(recorded: Recorded, name: str) -> None:
    scenario = SCENARIOS[name]
    path = scenario.path(name)
    results = recorded.verdict.results
    outcomes = {n: str(results[f"{path}::{n}"].outcome) for n in scenario.outcomes}
    found = recorded.findings(path)
    assert outcomes == scenario.outcomes, found
    assert sorted({finding.rule for finding in found}) == sorted(scenario.rules), found
    said = "\n".join(f"{finding.message}\n{finding.fix}" for finding in found)
    assert scenario.words in said


def test_no_scenario_disturbs_another_and_all_are_accounted_for(recorded: Recorded) -> None:
    assert recorded.codes == [ExitCode.RED]
    planned = [i for chunk in recorded.plan.chunks for file in chunk.files for i in file.ids]
    assert sorted(recorded.verdict.results) == sorted(planned)
    journal = recorded.project.chunk_journal()
    assert journal.problems == ()
    assert len(events_of(journal, "file-end")) == len(SCENARIOS)
    assert 'errors="0"' not in render_junit(recorded.verdict)


def test_a_failure_stands_at_the_line_of_the_test_and_not_of_its_helper(recorded: Recorded) -> None:
    (finding,) = recorded.findings(SCENARIOS["failing"].path("failing"))
    assert finding.line == 3
    result = recorded.verdict.results[f"{finding.path}::test_x"]
    assert "def helper" in result.detail


def test_the_good_files_alone_are_the_gates_green(tmp_path: Path) -> None:
    green = record(make_project(tmp_path), GREEN)
    assert (green.codes, green.verdict.findings) == ([ExitCode.GREEN], ())
    assert (green.verdict.is_green, green.verdict.is_gate) == (True, True)


HANGS = {
    "at_import": "import time\ndef test_x(): pass\ntime.sleep(600)",
    "in_a_test": "import time\ndef hang(): time.sleep(600)\ndef test_x(): hang()",
    "deaf": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "def hang(): time.sleep(600)\ndef test_x():\n    while True: hang()",
    "after_the_last_test": "import threading, time\ndef hang(): time.sleep(600)\n"
    "def test_x(): threading.Thread(target=hang).start()",
}


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    project = make_project(tmp_path_factory.mktemp("hung"))
    project.timeout_seconds = 3.0
    for name, body in HANGS.items():
        project.write(f"tests/test_{name}.py", body + "\n")
    plan = project.plan({f"tests/test_{name}.py": ["test_x"] for name in HANGS})
    codes = project.run(plan)
    return Recorded(project, plan, codes, project.judge(plan))


@pytest.mark.parametrize(
    ("name", "where", "outcome"),
    [
        ("at_import", "at import or collection", "unaccounted"),
        ("in_a_test", "during tests/test_in_a_test.py::test_x", "unaccounted"),
        ("deaf", "during tests/test_deaf.py::test_x", "unaccounted"),
        ("after_the_last_test", "after the last test", "passed"),
    ],
)
def test_a_file_that_hangs_is_ended_and_shows_its_stacks(
    hung: Recorded, name: str, where: str, outcome: str
) -> None:
    path = f"tests/test_{name}.py"
    (finding,) = hung.findings(path)
    assert (finding.rule, where in finding.message) == ("death/timeout", True)
    assert hung.verdict.results[f"{path}::test_x"].outcome == outcome
    index = [file.path for file in hung.plan.chunks[0].files].index(path)
    assert "most recent call first" in hung.project.log(index)
    assert ("in hang" in hung.project.log(index)) is (name != "at_import")
    (end,) = (e for e in events_of(hung.project.chunk_journal(), "file-end") if e["path"] == path)
    assert 3.0 <= end["seconds"] < 12.0


NAMES = ["a b", "::", "x/y.py::z", "[x]", "]", "'", '"', "-k", "--lf", "a\nb", "\0", "é", "😀",
         "\\", "$HOME", "`id`", "#", "gate x", "\t", "\x7f", "\u2028", "%0A", " "]  # fmt: skip


@pytest.mark.parametrize("is_raw", [False, True], ids=["escaped", "raw"])
def test_any_parameter_id_is_listed_locked_planned_run_and_accounted_for(
    project: Project, is_raw: bool
) -> None:
    if is_raw:
        text = (project.root / "pyproject.toml").read_text(encoding="utf-8")
        option = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n"
        project.write("pyproject.toml", text + option)
    project.write(
        "tests/roster/test é b.py",
        f"import pytest\n@pytest.mark.parametrize('v', {NAMES!r})\ndef test_p(v): pass\n"
        "@pytest.mark.parametrize('v', [1, 2], ids=['same', 'same'])\ndef test_q(v): pass\n",
    )
    listed = project.list_ids("tests/roster/test é b.py")
    (names,) = listed.values()
    assert len(set(names)) == len(NAMES) + 2
    assert ("test_p[a\nb]" in names) is is_raw
    plan = project.plan(listed)
    assert project.run(plan) == [ExitCode.GREEN]
    verdict = project.judge(plan)
    assert (verdict.findings, len(verdict.results)) == ((), len(NAMES) + 2)


def test_a_part_runs_what_was_asked_for_and_nothing_else(project: Project) -> None:
    project.write(A, "def test_x(): pass\ndef test_y(): assert 0\n")
    project.write(B, "def test_z(): assert 0\n")
    plan = project.plan({A: ["test_x", "test_y"], B: ["test_z"]}, selection=(f"{A}::test_x",))
    assert project.run(plan) == [ExitCode.GREEN]
    verdict = project.judge(plan)
    assert (verdict.is_green, verdict.is_partial, verdict.is_gate) == (True, True, False)
    assert list(verdict.results) == [f"{A}::test_x"]


def test_chunks_of_one_plan_are_judged_together(project: Project) -> None:
    for path in (A, B):
        project.write(path, "def test_x(): pass\n")
    plan = project.plan({A: ["test_x"], B: ["test_x"]}, tests_per_chunk=1)
    assert project.run(plan) == [ExitCode.GREEN] * 2
    assert project.judge(plan).is_gate
    shutil.rmtree(chunk_folder(project.records, 2))
    verdict = project.judge(plan)
    assert [finding.rule for finding in verdict.findings] == ["record/missing-chunk"]
    assert verdict.results[f"{A}::test_x"].outcome == "passed"


def test_variables_that_change_the_selection_are_not_handed_on(project: Project) -> None:
    project.write(A, "import os\ndef test_x(): assert 'PYTEST_ADDOPTS' not in os.environ\n")
    project.write("helper.py", "assert False, 'a plugin from outside'\n")
    project.variables = {
        "PYTEST_ADDOPTS": "-k nothing --collect-only",
        "PYTEST_PLUGINS": "helper",
        "PYTHONOPTIMIZE": "2",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    plan = project.plan({A: ["test_x"]})
    assert project.run(plan) == [ExitCode.GREEN]
    assert project.judge(plan).is_green


def test_helpers_assert_whatever_the_outside_says(project: Project) -> None:
    project.write("helper.py", "def check(x):\n    assert x\n")
    project.write(A, "import helper\ndef test_x(): helper.check(False)\n")
    project.variables = {"PYTHONOPTIMIZE": "1"}
    plan = project.plan({A: ["test_x"]})
    project.run(plan)
    assert [finding.rule for finding in project.judge(plan).findings] == ["test/failed"]


@pytest.mark.parametrize(
    ("packages", "is_refused"), [(("mine",), False), (("pytest",), True), (("nowhere",), True)]
)
def test_a_package_of_another_checkout_is_refused(
    project: Project, packages: tuple[str, ...], is_refused: bool
) -> None:
    project.packages = packages
    project.write("mine/__init__.py", "")
    project.write(A, "def test_x(): pass\n")
    plan = project.plan({A: ["test_x"]})
    assert project.run(plan) == [ExitCode.RED if is_refused else ExitCode.GREEN]
    verdict = project.judge(plan)
    rules = [finding.rule for finding in verdict.findings]
    assert rules == (["record/foreign-package"] if is_refused else [])
    if is_refused:
        assert f"package {packages[0]!r} resolves to " in verdict.findings[0].message


def test_a_settings_file_above_or_below_the_tree_moves_no_id(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -k nothing\n")
    project = make_project(tmp_path)
    project.write("pyproject.toml", "[tool.ci_tools]\n")
    project.write("tests/roster/pytest.ini", "[pytest]\n")
    project.write(A, "def test_x(): pass\n")
    plan = project.plan({A: ["test_x"]})
    assert project.run(plan) == [ExitCode.GREEN]
    assert project.judge(plan).is_green


def test_options_of_the_tree_itself_that_drop_tests_are_red(project: Project) -> None:
    text = (project.root / "pyproject.toml").read_text(encoding="utf-8")
    project.write("pyproject.toml", text.replace("addopts = [", 'addopts = ["-k", "not test_y", '))
    project.write(A, "def test_x(): pass\ndef test_y(): pass\n")
    plan = project.plan({A: ["test_x", "test_y"]})
    project.run(plan)
    assert [finding.rule for finding in project.judge(plan).findings] == ["roster/missing-id"]
