"""Deaths of every kind at random places: nothing is lost, nothing hangs, no cause is invented."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.projects import Project, make_project

# Enough for every kind at every place; a variable asks for more.
FILES = int(os.environ.get("JAX_GATE_DEATHS", "60"))
TESTS = 4
SEED = 20_251
# The statement that ends a process, and what the verdict has to say of it.
KINDS = {
    "os._exit(0)": "exited with 0 without finishing",
    "os._exit(3)": "exited with 3 without finishing",
    "os.kill(os.getpid(), signal.SIGKILL)": "died by SIGKILL",
    "os.kill(os.getpid(), signal.SIGTERM)": "died by SIGTERM",
    "os.kill(os.getpid(), signal.SIGILL)": "died by SIGILL",
    "os.abort()": "died by SIGABRT",
    "ctypes.string_at(0)": "died by SIGSEGV",
    "os.execv('/bin/true', ['true'])": "exited with 0 without finishing",
    "ctypes.CDLL(None)._exit(1)": "exited with 1 without finishing",
}
PLACES = ("import", "setup", "call", "teardown", "exit")


@dataclass(frozen=True)
class Death:
    """How, where and during which test one file dies."""

    statement: str
    place: str
    test: int

    def body(self) -> str:
        """The file: its tests pass, but for the one that ends the process."""
        rows = ["import atexit, ctypes, os, pytest, signal", f"def die(): {self.statement}"]
        if self.place == "import":
            rows.append("die()")
        if self.place == "exit":
            rows.append("atexit.register(die)")
        rows += ["@pytest.fixture", "def dying(request):"]
        rows += [f"    {'die()' if self.place == 'setup' else 'pass'}", "    yield"]
        rows += [f"    {'die()' if self.place == 'teardown' else 'pass'}"]
        for number in range(TESTS):
            dies = number == self.test
            rows.append(f"def test_{number}({'dying' if dies else ''}):")
            rows.append(f"    {'die()' if dies and self.place == 'call' else 'pass'}")
        return "\n".join(rows) + "\n"

    def outcomes(self) -> list[str]:
        """What each test has to be: what had ended stands, what had not is unaccounted for."""
        if self.place == "exit":
            return ["passed"] * TESTS
        done = 0 if self.place == "import" else self.test
        return ["passed"] * done + ["unaccounted"] * (TESTS - done)


def make_deaths(seed: int) -> dict[str, Death]:
    chance = random.Random(seed)
    deaths = {}
    for number in range(FILES):
        statement = chance.choice(list(KINDS))
        place = PLACES[number % len(PLACES)]
        deaths[f"tests/test_{number:04d}.py"] = Death(statement, place, chance.randrange(TESTS))
    return deaths


@pytest.fixture(scope="module", params=[(), ("pytest", "jax")], ids=["fresh", "forked"])
def project(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Project:
    made = make_project(tmp_path_factory.mktemp("deaths"))
    made.preload = request.param
    return made


def test_every_death_is_told_and_every_test_accounted_for(project: Project) -> None:
    deaths = make_deaths(SEED)
    for path, death in deaths.items():
        project.write(path, death.body())
    plan = project.plan({path: [f"test_{n}" for n in range(TESTS)] for path in deaths})
    project.run(plan)
    verdict = project.judge(plan)
    found = {finding.path: finding for finding in verdict.findings}
    assert len(verdict.findings) == len(found) == len(deaths) - silent(deaths)
    assert len(verdict.results) == TESTS * len(deaths)
    for path, death in deaths.items():
        outcomes = [str(verdict.results[f"{path}::test_{n}"].outcome) for n in range(TESTS)]
        assert outcomes == death.outcomes(), (path, death)
        if path in found:
            assert_told(found[path].message, path, death)
    assert list(Path("/dev/shm").glob(f"jax-gate-compiled-{os.getpid()}-*")) == []


def silent(deaths: dict[str, Death]) -> int:
    """Exits with the session's own code after the last line: nothing is wrong with these."""
    ends_well = ("os._exit(0)", "os.execv('/bin/true', ['true'])")
    return sum(d.place == "exit" and d.statement in ends_well for d in deaths.values())


def assert_told(message: str, path: str, death: Death) -> None:
    if death.place == "exit":
        assert "after the last test" in message, (message, death)
        return
    assert KINDS[death.statement] in message, (message, death)
    where = "at import" if death.place == "import" else f"during {path}::test_{death.test}"
    assert where in message, (message, death)
    if "SIGKILL" in death.statement:
        assert "culprit unproven" in message
