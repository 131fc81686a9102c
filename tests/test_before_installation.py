"""What is typed before anything is installed ends in one line with the command that installs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.library import ROOT, SCRIPT

TEMPLATE = ROOT / "tools" / "skill_evaluator" / "scaffold" / "tools" / "evaluate_skill.py.template"


def run_bare(script: Path) -> tuple[int, str, str]:
    """Run a script with nothing but the standard library."""
    command = [sys.executable, "-I", "-S", str(script), "receipt-extraction"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_script_in_a_clone_prints_the_set_up_command() -> None:
    code, out, error = run_bare(SCRIPT)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert error.startswith("error: ")
    readme = next(line for line in (ROOT / "README.md").read_text().splitlines() if "-e '.[local]'" in line)
    assert readme.rpartition(" && ")[0] in error


@pytest.mark.parametrize("script", [SCRIPT, TEMPLATE])
def test_script_elsewhere_prints_the_installation_of_the_workflows(script: Path, tmp_path: Path) -> None:
    shutil.copy(script, tmp_path / "evaluate_skill.py")
    code, out, error = run_bare(tmp_path / "evaluate_skill.py")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert error.startswith("error: skill_evaluator is not installed; run: python3 -m venv .venv && ")
    workflow = (ROOT / ".github" / "actions" / "set-up" / "action.yml").read_text()
    installs = [line.strip() for line in workflow.splitlines() if "pip install" in line]
    assert len(installs) == 2
    for line in installs:
        assert line.partition("--quiet ")[2] in error
