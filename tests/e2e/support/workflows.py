"""Real runs of the project's workflows by act, in a scratch repository, without GitHub.

act emulates the hosted runner: steps run on this machine, `actions/checkout` is a copy of the
repository, and the two artifact actions are stand-ins on the real artifact client.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.support.machine import free_port, run

ACT_SECONDS = 400.0
STAND_INS = {
    "upload-artifact": "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f",
    "download-artifact": "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c",
}


def build_stand_ins(source: Path, out: Path) -> Path:
    """Bundle the local artifact actions into `out`, once."""
    if not (out / "complete").exists():
        work = out.with_suffix(".work")
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(source, work, ignore=shutil.ignore_patterns("node_modules"))
        run(["npm", "ci", "--no-audit", "--no-fund"], cwd=work)
        run(["node", "build.mjs", out], cwd=work)
        shutil.rmtree(work)
        (out / "complete").write_text("ok\n", encoding="utf-8")
    return out


@dataclass(frozen=True, kw_only=True)
class Runner:
    """What act runs with.

    Attributes:
        act: The program.
        stand_ins: The folder of the bundled actions.
        environment: The environment of act and of every step.
        work: A folder for act's caches and artifacts.
    """

    act: Path
    stand_ins: Path
    environment: Mapping[str, str]
    work: Path

    def pull_request(self, repository: Path, base: str, head: str) -> WorkflowRun:
        """Run the gate for a pull request from `head` onto `base`."""
        work = self.work / f"act-{repository.name}"
        (work / "artifacts" / "1").mkdir(parents=True)
        event = work / "event.json"
        event.write_text(json.dumps(_event(base, head)), encoding="utf-8")
        command = [
            str(self.act),
            "pull_request",
            *("--eventpath", str(event)),
            *("--workflows", ".github/workflows/gate.yml"),
            *("--platform", "ubuntu-24.04=-self-hosted"),
            *("--artifact-server-path", str(work / "artifacts")),
            *("--artifact-server-addr", "127.0.0.1"),
            *("--artifact-server-port", str(free_port())),
            *("--action-cache-path", str(work / "actions")),
            "--no-cache-server",
            "--json",
        ]
        for name, commit in STAND_INS.items():
            folder = self.stand_ins / name
            command += ["--local-repository", f"actions/{name}@{commit}={folder}"]
        done = subprocess.run(
            command,
            cwd=repository,
            env=dict(self.environment) | {"XDG_CACHE_HOME": str(work / "cache")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ACT_SECONDS,
            check=False,
        )
        (work / "out.json").write_text(done.stdout + done.stderr, encoding="utf-8")
        return read_run(done.returncode, done.stdout, work / "artifacts" / "1")


def _event(base: str, head: str) -> dict[str, Any]:
    return {
        "number": 1,
        "pull_request": {
            "number": 1,
            "base": {"sha": base, "ref": "main"},
            "head": {"sha": head, "ref": "change"},
        },
        "repository": {"default_branch": "main", "full_name": "jax-gate/scratch"},
    }


@dataclass(frozen=True, kw_only=True)
class WorkflowRun:
    """What a run left.

    Attributes:
        code: act's exit code: 0 only if every job succeeded.
        jobs: The result of each job by its id; the last one of a matrix that failed.
        text: What all steps printed.
        artifacts: The folder of uploaded artifacts, one zip archive each.
    """

    code: int
    jobs: Mapping[str, str]
    text: str
    artifacts: Path

    def artifact(self, name: str, member: str) -> str:
        """Return one file of an uploaded artifact."""
        archive = next(self.artifacts.glob(f"**/{name}*.zip"))
        return run(["python3", "-c", _UNZIP, archive, member])

    def verdict(self) -> dict[str, Any]:
        """Return `verdict.json` as the gate uploaded it."""
        data = json.loads(self.artifact("verdict", "verdict.json"))
        assert isinstance(data, dict)
        return data


_UNZIP = "import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode())"


def read_run(code: int, output: str, artifacts: Path) -> WorkflowRun:
    """Return what act's JSON lines say."""
    jobs: dict[str, str] = {}
    texts: list[str] = []
    for line in output.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            texts.append(line)
            continue
        texts.append(str(event.get("msg", "")))
        result, job = event.get("jobResult"), str(event.get("jobID"))
        if result is not None and jobs.get(job) != "failure":
            jobs[job] = str(result)
    return WorkflowRun(code=code, jobs=jobs, text="\n".join(texts), artifacts=artifacts)
