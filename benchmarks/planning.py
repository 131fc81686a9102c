"""A plan over 500 components × 8 models beside git alone, and lint of them.

What git itself takes is measured by running the very commands of the plan again, one after the other, with their input.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from skill_evaluator.records.leaderboard import append_rows
from skill_evaluator.records.record import write_record

from benchmarks.measure import ROOT, Measured, measure, spread
from tests.support.records import a_record

EXAMPLE = ROOT / "components" / "receipt-extraction"
MODELS = (
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-haiku-4-5"),
    ("openai", "gpt-5"),
    ("openai", "gpt-5-mini"),
    ("openai", "gpt-4.1"),
    ("google", "gemini-2.5-pro"),
    ("google", "gemini-2.5-flash"),
    ("google", "gemini-2.5-flash-lite"),
)
COMPONENTS = 500
BUMPED = 30  # with every model of each they are 240 jobs, of the 256 that a run may have
CASES = 5
# Stands in for git on the PATH: keeps arguments and input of every command in a folder of its own, then runs it.
_RECORDER = """#!/bin/sh
kept=$(mktemp -d "$KEPT/$(date +%s%N).XXXXXX")
printf '%s\\n' "$@" > "$kept/arguments"
cat > "$kept/input"
exec "{git}" "$@" < "$kept/input"
"""


def rows(quick: bool) -> Iterator[Measured]:
    runs = 1 if quick else 5
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "library")
        write_library(root)
        commands = _commands(root, Path(folder))
        beyond, gits = [], []
        for _ in range(runs):
            whole = measure(_plan(root), root).wall_s
            gits.append(sum(_seconds(command, root) for command in commands))
            beyond.append(whole - gits[-1])
        entries = len(json.loads((root / "plan.json").read_bytes())["entries"])
        yield Measured(
            name=f"`plan` of {COMPONENTS} components × {len(MODELS)} models ({entries} jobs) − git's own commands",
            values=tuple(beyond),
            most=2,
            unit="s",
            note=f"git {spread(gits)} s",
        )
        _record_all(root)
        lint = [sys.executable, "-m", "skill_evaluator", "lint", "--format", "json"]
        measure(lint, root)  # warms caches, not counted
        figures = [measure(lint, root) for _ in range(runs)]
        yield Measured(
            name=f"`lint` of {COMPONENTS} components with {len(MODELS)} records each",
            values=tuple(one.wall_s for one in figures),
            most=3,
            unit="s",
            note=f"processor {spread([one.cpu_s for one in figures])} s",
        )


def _record_all(root: Path) -> None:
    """Put in place of every leaderboard one that agrees with records."""
    for component in (root / "components").iterdir():
        (component / "leaderboard.json").unlink()
        records = [
            a_record(
                {f"case-{case}": [0.9, 1.0, 0.8] for case in range(CASES)},
                skill=component.name,
                model_id=model_id,
                run_id=f"20260101T00000{at}Z-aaaaaa-{model_id}",
            )
            for at, (_, model_id) in enumerate(MODELS)
        ]
        for record in records:
            write_record(component / "evals" / "records" / f"{record.run_id}.json", record)
        append_rows(component / "leaderboard.json", component.name, [record.row() for record in records])


def write_library(root: Path, bumped: int = BUMPED) -> None:
    """A repository in which the last commit bumps some of many components, all recorded on every model."""
    (row,) = json.loads((EXAMPLE / "leaderboard.json").read_bytes())["runs"][:1]
    for number in range(COMPONENTS):
        _write_component(root, f"component-{number:03d}", row)
    config = root / ".evaluator"
    config.mkdir()
    models = [{"id": model_id, "provider": provider} for provider, model_id in MODELS]
    (config / "models.yaml").write_text(json.dumps({"models": models}))
    _git(root, "init", "-q", "-b", "main")
    commit(root)
    for number in range(bumped):
        prompt = root / "components" / f"component-{number * 16:03d}" / "prompt.md"
        prompt.write_text(prompt.read_text().replace("1.0.0", "1.1.0").replace("Read", "Carefully read"))
    commit(root)


def _write_component(root: Path, name: str, row: dict[str, Any]) -> None:
    component = root / "components" / name
    component.mkdir(parents=True)
    body = (EXAMPLE / "prompt.md").read_text().split("---\n", 2)[2]
    (component / "prompt.md").write_text(f"---\nname: {name}\nversion: 1.0.0\n---\nRead as {name} does.\n{body}")
    shutil.copy(EXAMPLE / "schema.json", component)
    rows = [
        {**row, "skill": name, "skill_version": "1.0.0", "model_id": model_id, "run_id": f"{row['run_id']}-{model_id}"}
        for _, model_id in MODELS
    ]
    board = {"skill": name, "schema_version": 2, "runs": rows}
    (component / "leaderboard.json").write_text(json.dumps(board, indent=2))
    source = ROOT / "fixtures" / EXAMPLE.name / "cases"
    for case in sorted(source.iterdir())[:CASES]:
        shutil.copytree(case, root / "fixtures" / name / "cases" / case.name)


def _plan(root: Path) -> list[str]:
    arguments = ["--base", "HEAD~1", "--recorded", "main", "--recorded", "origin/none"]
    return [sys.executable, "-m", "skill_evaluator", "ci", "plan", *arguments, "--out", str(root / "plan.json")]


def _commands(root: Path, folder: Path) -> list[Path]:
    """One plan with a recorder in git's place; the folders of its commands in their order."""
    git = shutil.which("git")
    recorder, kept = folder / "bin" / "git", folder / "kept"
    recorder.parent.mkdir()
    kept.mkdir()
    recorder.write_text(_RECORDER.format(git=git))
    recorder.chmod(0o755)
    path = f"{recorder.parent}{os.pathsep}{os.environ['PATH']}"
    measure(_plan(root), root, {**os.environ, "PATH": path, "KEPT": str(kept)})
    return sorted(kept.iterdir())


def _seconds(command: Path, root: Path) -> float:
    begun = time.perf_counter()
    with (command / "input").open("rb") as given:
        arguments = (command / "arguments").read_text().splitlines()
        subprocess.run(["git", *arguments], cwd=root, stdin=given, capture_output=True, check=False)
    return time.perf_counter() - begun


def commit(root: Path) -> None:
    _git(root, "add", "-A")
    _git(root, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "change")


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True)
