"""The launcher and the survey as real processes, and a command in a virtual environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ci_tools.errors import InfrastructureError
from ci_tools.image.attach import attach
from ci_tools.image.engines.inside import launcher_arguments, program_text
from ci_tools.image.engines.venv import VenvEnvironment, find_network_mode, try_network_mode
from ci_tools.image.execute import new_launch_name, run_inside
from ci_tools.image.identity import ENFORCED, EnvironmentIdentity, Launch
from tests.integration.processes import is_alive, wait_until

IDENTITY = EnvironmentIdentity(
    engine="venv",
    kind="lockfile",
    name="",
    digest="",
    image_id="",
    inputs="",
    engine_version="",
    label="",
)


def launcher(folder: Path, *argv: str, directory: Path | None = None) -> list[str]:
    command = launcher_arguments(
        python=sys.executable,
        report=str(folder / "report"),
        directory=str(directory or folder),
        scratch=str(folder / "scratch"),
        network="keep",
        count_oom=False,
    )
    return [*command, *argv]


def events_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "report").read_text().splitlines()]


@pytest.mark.parametrize("code", [0, 1, 125, 126, 127, 255])
def test_the_exit_code_is_the_commands_own(tmp_path: Path, code: int) -> None:
    done = subprocess.run(launcher(tmp_path, "sh", "-c", f"exit {code}"), check=False)
    assert done.returncode == code
    assert [event["event"] for event in events_of(tmp_path)] == ["started", "ended"]
    assert events_of(tmp_path)[-1]["code"] == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_signal_is_128_and_its_number(tmp_path: Path, number: signal.Signals) -> None:
    done = subprocess.run(launcher(tmp_path, "sh", "-c", f"kill -{int(number)} $$"), check=False)
    assert done.returncode == 128 + number
    assert events_of(tmp_path)[-1]["code"] == 128 + number


@pytest.mark.parametrize(
    ("program", "reason"),
    [("no-such-program", "No such file or directory"), ("/etc", "Permission denied")],
)
def test_a_command_that_cannot_start_is_reported(tmp_path: Path, program: str, reason: str) -> None:
    done = subprocess.run(launcher(tmp_path, program), check=False)
    assert done.returncode == 127
    assert events_of(tmp_path) == [{"event": "failed", "reason": reason, "program": program}]


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    command = launcher(tmp_path, "true", directory=tmp_path / "gone")
    assert subprocess.run(command, check=False).returncode == 127
    assert "gone" in str(events_of(tmp_path)[0]["reason"])


def test_sigterm_reaches_the_command_and_the_end_is_still_reported(tmp_path: Path) -> None:
    script = "trap 'exit 9' TERM; touch ready; while :; do sleep 0.05; done"
    with subprocess.Popen(launcher(tmp_path, "sh", "-c", script)) as child:
        wait_until((tmp_path / "ready").exists)
        child.terminate()
        assert child.wait(timeout=20) == 9
    assert events_of(tmp_path)[-1]["code"] == 9


COUNT_INTERRUPTS = """
import pathlib, signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
pathlib.Path("ready").touch()
end = time.monotonic() + 1
while time.monotonic() < end:
    time.sleep(0.01)
sys.exit(len(seen))
"""


def test_what_a_terminal_sends_is_not_sent_twice(tmp_path: Path) -> None:
    command = launcher(tmp_path, sys.executable, "-c", COUNT_INTERRUPTS)
    with subprocess.Popen(command, start_new_session=True) as child:
        wait_until((tmp_path / "ready").exists)
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=20) == 1


def test_what_a_command_leaves_running_is_ended(tmp_path: Path) -> None:
    command = launcher(tmp_path, "sh", "-c", "sleep 300 & echo $!")
    # The pipe stays open as long as anything that the command started is alive.
    done = subprocess.run(
        command, capture_output=True, start_new_session=True, timeout=20, check=False
    )
    assert done.returncode == 0
    wait_until(lambda: not is_alive(int(done.stdout)))


def test_broken_pipes_end_a_command_as_in_a_shell(tmp_path: Path) -> None:
    command = launcher(tmp_path, "sh", "-c", "yes | head -n 1")
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.stdout == b"y\n"
    assert done.stderr == b""


def test_the_survey_sees_where_it_runs(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    argv = ["-c", program_text("survey"), str(tmp_path), str(tmp_path), "nonce"]
    variables = {**os.environ, "HOME": str(tmp_path / "no-home")}
    done = subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, env=variables, check=True
    )
    found = json.loads(done.stdout)
    assert (tmp_path / "answer").read_text() == "nonce"
    assert found["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found["tree"] is True
    assert found["tree_writable"] is True
    assert found["results"] == ""
    assert found["home"] == "No such file or directory"


@pytest.fixture
def environment(tmp_path: Path) -> VenvEnvironment:
    return VenvEnvironment(
        interpreter=Path(sys.executable), root=tmp_path, network="keep", identity=IDENTITY
    )


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    results = tmp_path / "results"
    return Launch(
        tree=tmp_path,
        results=results,
        memory_bytes=None,
        variables={"ADDED": "1"},
        name=new_launch_name("test"),
    )


def test_a_command_sees_the_tree_its_variables_and_nothing_of_the_host(
    environment: VenvEnvironment, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/host")
    monkeypatch.setenv("SECRET", "1")
    code = "import os, json; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    lines: list[str] = []
    argv = [environment.python, "-c", code]
    ending = run_inside(environment, argv, launch, on_line=lines.append)
    folder, variables = json.loads(lines[0])
    assert ending.code == 0
    assert Path(folder) == launch.tree
    assert variables["ADDED"] == variables["PYTHONNOUSERSITE"] == "1"
    assert not {"PYTHONPATH", "SECRET"} & set(variables)
    assert not Path(variables["HOME"]).exists(), "the scratch folder is removed"
    assert list(launch.results.iterdir()) == [], "the launcher's report is removed"


def test_ending_and_failure_are_told_apart(environment: VenvEnvironment, launch: Launch) -> None:
    ending = run_inside(environment, ["sh", "-c", "exit 127"], launch, on_line=print)
    assert ending.code == 127
    with pytest.raises(InfrastructureError, match="cannot start `no-such-program`"):
        run_inside(environment, ["no-such-program"], launch, on_line=print)


def test_an_interpreter_that_is_gone_is_infrastructure(
    environment: VenvEnvironment, launch: Launch
) -> None:
    gone = replace(environment, interpreter=launch.tree / "gone")
    with pytest.raises(InfrastructureError, match=r"cannot start .*gone: No such file"):
        run_inside(gone, ["true"], launch, on_line=print)


def test_a_time_out_leaves_nothing_behind(environment: VenvEnvironment, launch: Launch) -> None:
    argv = ["sh", "-c", f"echo $$ > {launch.tree}/pid; sleep 300"]
    with pytest.raises(InfrastructureError, match="ran over"):
        run_inside(environment, argv, launch, on_line=print, timeout_seconds=3)
    wait_until(lambda: not is_alive(int((launch.tree / "pid").read_text())))
    assert list(launch.results.iterdir()) == []


def test_a_network_of_its_own_has_a_loopback_that_works() -> None:
    python = Path(sys.executable)
    mode, words = find_network_mode(python)
    if mode == "keep":
        assert words != ENFORCED
        assert try_network_mode(python, "net")[1] in words
    else:
        assert words == ENFORCED
        assert try_network_mode(python, mode) == (["lo"], "")


def test_an_attached_command_keeps_its_two_streams(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    argv = ["sh", "-c", "echo out; echo err >&2; cat; exit 7"]
    assert attach(argv, cwd=tmp_path, env=dict(os.environ)) == 7
    assert capfd.readouterr() == ("out\n", "err\n")
    with pytest.raises(InfrastructureError, match="cannot start no-such-program"):
        attach(["no-such-program"], cwd=tmp_path, env=dict(os.environ))
