"""The action that gates another tool's results, run by act as a workflow of another repository uses it."""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.library import ROOT
from tests.workflows.act import WORKFLOWS, Acted
from tests.workflows.forge import Forge

pytestmark = pytest.mark.act

MADE = ROOT / "tests" / "data" / "elsewhere"
PLACE = ".github/skill-evaluator"  # where the repository has the action; a test fetches none
WORKFLOW = ".github/workflows/gate.yml"
LOCK = (ROOT / ".evaluator" / "requirements-lock.txt").read_text()
BUILD = re.findall(r"^setuptools==.*?(?=^\w|\Z)", LOCK, re.DOTALL | re.MULTILINE)[0]  # with its hashes
CHECKOUT = re.findall(r"uses: (actions/checkout@[0-9a-f]{40})", (WORKFLOWS / "check.yml").read_text())[0]
GATE = f"""
on: push
jobs:
  gate:
    runs-on: ubuntu-latest
    steps:
      - uses: {CHECKOUT}
      - uses: ./{PLACE}
        with: {{baseline: main/results.json, candidate: results.json}}
"""


def gated(forge: Forge) -> Acted:
    """Push worse results beside those of before, to a repository with the action and without anything of ours."""
    for folder in ("components", "fixtures", ".evaluator"):
        shutil.rmtree(forge.library.root / folder)
    action = forge.library.root / PLACE
    package = "tools/skill_evaluator"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / package, action / package, ignore=ignore)
    for name in ("action.yml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, action / name)
    forge.library.write(f"{PLACE}/.evaluator/requirements-lock.txt", BUILD)  # what else it would fetch is installed
    forge.library.write("main/results.json", (MADE / "promptfoo_a.json").read_text())
    forge.library.write("results.json", (MADE / "promptfoo_b.json").read_text())
    forge.library.write(WORKFLOW, GATE)
    wheels = forge.root / "wheels"
    download = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    subprocess.run([sys.executable, *download, str(wheels), BUILD.split()[0]], check=True, timeout=400)
    env = {"PYTHONPATH": str(installed(forge.root)), "PIP_FIND_LINKS": str(wheels)}
    return forge.run(forge.push(), "push", WORKFLOW, env=env)


def installed(folder: Path) -> Path:
    """What the action's own environment has of the rest of the lock: what is installed here, but not the evaluator."""
    site = folder / "site"
    site.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.search("skill_evaluator|setuptools|distutils|pkg_resources", path.name):
            (site / path.name).symlink_to(path)
    return site


def test_action_fails_on_worse_results_with_the_verdict_as_summary(forge: Forge) -> None:
    acted = gated(forge)
    assert acted.jobs == {"gate": "failure"}
    assert "exit status 3" in acted.log
    verdict = acted.commands("summary")[-1]["content"].splitlines()[2]
    assert verdict.startswith("**▼ results ")
    assert verdict.endswith(" on these 10 cases**")
