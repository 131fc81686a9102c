"""The shell scripts of the workflows, and a way to run one with its programs replaced by notes of their arguments."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.workflows.act import WORKFLOWS

_NOTE = """#!/usr/bin/env bash
printf '%s\\0' "${0##*/}" "$@" >> "$NOTED"
printf '\\n' >> "$NOTED"
exit "${ENDS_WITH:-0}"
"""


@dataclass(frozen=True)
class Step:
    workflow: str
    job: str
    name: str
    script: str

    def __str__(self) -> str:
        return f"{self.workflow}: {self.job}: {self.name}"


@cache
def steps() -> tuple[Step, ...]:
    return tuple(
        Step(path.name, job, step["name"], step["run"])
        for path in sorted(WORKFLOWS.glob("*.yml"))
        for job, what in yaml.safe_load(path.read_text())["jobs"].items()
        for step in what.get("steps", ())
        if "run" in step
    )


def step_of(workflow: str, job: str, name: str) -> Step:
    """The one step of a job that has this name."""
    (found,) = (one for one in steps() if (one.workflow, one.job, one.name) == (workflow, job, name))
    return found


@dataclass(frozen=True)
class Ran:
    """How a script ended, and what `python` and `gh` were called with."""

    code: int
    calls: list[list[str]]
    printed: str


def run_script(step: Step, folder: Path, env: Mapping[str, str]) -> Ran:
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("python", "gh"):
        (programs / name).write_text(_NOTE)
        (programs / name).chmod(0o755)
    noted = folder / "noted"
    noted.unlink(missing_ok=True)
    given = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "NOTED": str(noted), **env}
    given.setdefault("GITHUB_OUTPUT", str(folder / "outputs"))
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.script]
    done = subprocess.run(
        command, cwd=folder, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    lines = noted.read_bytes().decode().split("\0\n")[:-1] if noted.exists() else []
    return Ran(code=done.returncode, calls=[line.split("\0") for line in lines], printed=done.stdout)
