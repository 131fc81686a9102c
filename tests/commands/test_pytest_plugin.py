"""The pytest plugin: a team's own test holds a component to what is recorded, and fails in words that help."""

import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.commands.test_draft import RIGHT, WRONG, evaluate, write
from tests.support.library import ROOT, SCRIPT, SKILL, Ended, Library, ended, start

MODULE = "skill_evaluator.commands.pytest_plugin"
PLUGINS = ("-p", MODULE, "-p", "no:cacheprovider")
CHECKS = f"""
def test_holds(evaluate_skill):
    tried = evaluate_skill("{SKILL}", models=["recorded"], replicates=6)
    tried.check()
    assert tried.verdict == "unchanged"  # every answer is the same
"""
UNJUDGED = """
def test_unjudged_with_one_case(evaluate_skill):
    tried = evaluate_skill("new", cases=["alpha"])
    tried.check()
    assert tried.result["runs"][0]["n_cases"] == 1
"""
MISTYPED = "def test_mistyped(evaluate_skill):\n    evaluate_skill('notices')\n"


@pytest.fixture
def recorded(library: Library) -> Library:
    """Three cases, 1.0.0 recorded with every year right, and a test of the team's."""
    library.settings(replicates=6)
    write(library, "1.0.0", "Extract title and year.", RIGHT)
    assert evaluate(library).code == 0
    library.write("test_skills.py", CHECKS)
    return library


def run_pytest(library: Library, *arguments: str) -> Ended:
    """Run the team's tests as where this plugin is installed, and no other."""
    env = {"PYTHONPATH": str(SCRIPT.parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    env["PYTEST_DEBUG_TEMPROOT"] = str(library.root.parent)  # else it tidies up after others' sessions
    with start(library.root, "-m", "pytest", "-q", *PLUGINS, *arguments, "test_skills.py", env=env) as process:
        return ended(process)


@pytest.mark.pages
def test_plugin_passes_warns_and_records_nothing(recorded: Library) -> None:
    for folder in (recorded.root / "components", recorded.root / "fixtures"):
        shutil.copytree(folder / SKILL, folder / "new", ignore=shutil.ignore_patterns("evals", "leaderboard.json"))
    recorded.write("components/new/prompt.md", "---\nname: new\nversion: 1.0.0\n---\nExtract title and year.\n")
    recorded.write("test_skills.py", CHECKS + UNJUDGED)
    write(recorded, "1.0.0", "Extract title and year, please.", RIGHT)
    before = {path for path in recorded.tree() if "__pycache__" not in path}
    done = run_pytest(recorded)
    assert (done.code, done.out.splitlines()[-1].split(" in ")[0]) == (0, "2 passed, 1 warning"), done.out
    assert "UserWarning: new: no verdict" in done.out
    assert "no complete record to compare with; first run: skill-evaluator evaluate new" in done.out
    assert {path for path in recorded.tree() if "__pycache__" not in path} == before


def test_plugin_fails_on_a_regression_and_an_unknown_name(recorded: Library) -> None:
    write(recorded, "1.0.0", "Extract.", WRONG)
    recorded.write("test_skills.py", CHECKS + MISTYPED)
    done = run_pytest(recorded, "-k", "holds or mistyped")
    assert done.code == 1
    lines = done.out.splitlines()
    assert f"{SKILL}: regressed" in lines
    assert "recorded: regressed, 1.0.0 → 1.0.0" in lines
    assert "  lost fields: year" in lines
    assert not [line for line in lines if "pytest_plugin.py" in line]  # no traceback of ours
    assert "skill-evaluator try notices: error: " in done.out


def test_plugin_imports_only_itself() -> None:
    program = (
        "import json, os, subprocess, sys, warnings, pytest; before = set(sys.modules); "
        f"import {MODULE}; print(sorted(set(sys.modules) - before))"
    )
    env = {"PYTHONPATH": str(SCRIPT.parent)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "['skill_evaluator', 'skill_evaluator.commands', 'skill_evaluator.commands.pytest_plugin']\n"


def test_plugin_is_installed_as_an_entry_point() -> None:
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert entry_points["pytest11"] == {"skill_evaluator": MODULE}
