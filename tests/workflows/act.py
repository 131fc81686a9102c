"""act (nektos/act) in host mode, without Docker and off the network: it runs a workflow on what a clone has there.

Stand-in actions copy artifacts to and from one folder. act knows no environments, so that a secret is there for every
job, and no re-runs.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
import skill_evaluator

from tests.support.library import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
SET_UP = ROOT / ".github" / "actions" / "set-up" / "action.yml"
TOKEN = "token-of-the-workflow"
_ACTIONS = Path(__file__).with_name("actions")
_BIN = Path(sys.executable).parent
_PINNED = re.compile(r"uses: actions/([a-z-]+)@([0-9a-f]{40})")
_INSTALLS = re.compile(r"python -m pip install --quiet [a-z -]*-r(?= )")
_UNKNOWN_TO_ACT = re.compile(r"^ +(queue: max|deployment: false)\n", re.MULTILINE)  # and of no effect in it


@dataclass(frozen=True)
class Acted:
    """What act left: its exit code, its log (one JSON object a line), and what the servers beside it know."""

    code: int
    log: str
    world: Mapping[str, Any]

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]

    @property
    def jobs(self) -> dict[str, str]:
        """How every job ended. Of a matrix with a failed job act says that the later ones failed, too."""
        return {_job(line): line["jobResult"] for line in self.lines if "jobResult" in line}

    def steps(self, name: str) -> dict[str, str]:
        return {_job(line): line["stepResult"] for line in self.lines if "stepResult" in line and line["step"] == name}

    def commands(self, name: str) -> list[dict[str, Any]]:
        """The workflow commands of a name that took effect (`summary`: what was written to that file)."""
        return [line for line in self.lines if line.get("command") == name]

    def printed(self, job: str) -> str:
        """All that the steps of a job printed."""
        return "".join(line["msg"] for line in self.lines if line.get("raw_output") and _job(line) == job)


def _job(line: Mapping[str, Any]) -> str:
    """A job by its id, one of a matrix by the id of its entry."""
    return str((line.get("matrix") or {}).get("id") or line["jobID"])


def for_act(workflow: str) -> str:
    """A workflow or action without the parts that are too new for act.

    Everything is installed already. Pip would take a quarter of the processor time to say so.
    """
    installed = _INSTALLS.sub("test -f", workflow)
    return _UNKNOWN_TO_ACT.sub("", installed).replace("uses: $/", "uses: ./")


def act(
    clone: Path,
    folder: Path,
    event: Mapping[str, Any],
    *,
    name: str,
    workflow: str,
    world: Mapping[str, Any],
    env: Mapping[str, str],
    secrets: Mapping[str, str],
    variables: Mapping[str, str],
) -> Acted:
    """Run a workflow file of a clone; `folder` is where everything else is kept."""
    _skip_without("act", "gh")
    files = {"event.json": json.dumps(event), "world.json": json.dumps(world)}
    values = {key: json.dumps(value) for key, value in {"GITHUB_TOKEN": TOKEN, **secrets}.items()}  # of several lines
    files["secrets"] = "".join(f"{key}={value}\n" for key, value in values.items())
    for file, content in files.items():
        (folder / file).write_text(content)
    command = [
        *_off_the_network(),
        *(sys.executable, "-m", "tests.workflows.loopback", str(folder / "world.json")),
        *(str(_BIN / "act"), name, "--json", "--directory", str(clone), "--workflows", str(clone / workflow)),
        *("--eventpath", str(folder / "event.json"), "--secret-file", str(folder / "secrets")),
        *("--env-file", os.devnull, "--var-file", os.devnull, "--input-file", os.devnull),
        *("--platform", "ubuntu-latest=-self-hosted", "--container-daemon-socket", "-", "--no-cache-server"),
        *("--action-offline-mode", "--action-cache-path", str(folder / "act"), "--no-skip-checkout"),
        *(word for pair in _stand_ins().items() for word in ("--local-repository", "=".join(pair))),
        *(word for pair in env.items() for word in ("--env", "=".join(pair))),
        *(word for pair in variables.items() for word in ("--var", "=".join(pair))),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,  # for what hangs; a busy machine takes long
        check=False,
    )
    return Acted(done.returncode, done.stdout, json.loads((folder / "world.json").read_text()))


def _skip_without(*programs: str) -> None:
    for program in programs:
        if shutil.which(program, path=f"{_BIN}{os.pathsep}{os.environ['PATH']}") is None:
            if os.environ.get("CI") == "true":
                pytest.fail(f"{program} is needed to run the workflows, and CI must not skip that")
            pytest.skip(f"{program} is needed to run the workflows")


@cache
def _stand_ins() -> dict[str, str]:
    """What the workflows use, at its commit → the folder that stands in for it."""
    texts = [path.read_text() for path in (SET_UP, *WORKFLOWS.glob("*.yml"))]
    used = sorted({match for text in texts for match in _PINNED.findall(text)})
    return {f"actions/{name}@{commit}": str(_ACTIONS / name) for name, commit in used}


@cache
def _off_the_network() -> tuple[str, ...]:
    """A network name space with nothing but a loopback, where we may have one."""
    if shutil.which("unshare"):
        for command in (("unshare", "--net"), ("unshare", "--map-root-user", "--net")):
            if subprocess.run([*command, "true"], check=False, capture_output=True).returncode == 0:
                return command
    return ()


def _environment(folder: Path) -> dict[str, str]:
    """What a runner has: a home of its own, and the Python with the evaluator first on the path."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    cache_folder = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # the local model's weights
    source = str(Path(skill_evaluator.__file__).parents[1])
    return {
        "PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_CACHE_HOME": cache_folder,
        "PYTHONPATH": os.pathsep.join((source, str(ROOT))),
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        "NO_PROXY": "127.0.0.1",
        "LANG": "C.UTF-8",
    }
