"""A large library: `lint` and `leaderboard` of 8,000 records, then `plan` and `lint --base` of a push beside 160,000.

The 8,000 are those of a run of `demo` with other names, and scores that moved by chance. Of the 160,000 those of the
component that is pushed are its own; the rest are links to them, since neither command reads what lies in them.
"""

import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from skill_evaluator.processes import map_in_processes

from benchmarks import planning, site
from benchmarks.measure import Measured, measure, spread
from tests.support.records import a_record, keep_in

COMMAND = (sys.executable, "-m", "skill_evaluator")
COMPONENTS, MODELS, VERSIONS = 100, 4, 20
MANY = 40  # versions on each model of the benchmark of plans
BOUND_S = 5.0


def rows(quick: bool) -> Iterator[Measured]:
    """Yield the time of each command."""
    turns = 1 if quick else 3
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "library"
        lay_out(root)
        size = f"{COMPONENTS} × {MODELS} × {VERSIONS}"
        for name in ("lint", "leaderboard"):
            yield timed(f"`{name}` of {size}", (*COMMAND, name, "--format", "json"), root, turns)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "library"
        push(root)
        size = f"{planning.COMPONENTS} × {len(planning.MODELS)} × {MANY}"
        plan = (*COMMAND, "ci", "plan", "--base", "HEAD~1", "--recorded", "main", "--out", f"{folder}/plan.json")
        yield timed(f"`plan` of a push to one of {size}", plan, root, turns)
        yield timed(f"`lint --base` of a push to one of {size}", (*COMMAND, "lint", "--base", "HEAD~1"), root, turns)


def timed(name: str, command: tuple[str, ...], root: Path, turns: int) -> Measured:
    """Run a command some times."""
    measure(command, root)  # warms caches, not counted
    figures = [measure(command, root) for _ in range(turns)]
    note = f"processor {spread([one.cpu_s for one in figures])} s"
    return Measured(name=name, values=tuple(one.wall_s for one in figures), most=BOUND_S, unit="s", note=note)


def lay_out(root: Path) -> None:
    """Lay out components with a complete run of each version on each model, none with the scores of a second."""
    run = site.run_of_demo(root)
    template = json.loads((run / "record.json").read_text())
    demo = root / "components" / "receipts"
    folders = [demo.with_name(f"component-{at:02}") for at in range(COMPONENTS)]
    for folder in folders:
        shutil.copytree(demo, folder, ignore=shutil.ignore_patterns("records", "results", "leaderboard.json"))
        prompt = folder / "prompt.md"
        prompt.write_text(prompt.read_text().replace("name: receipts", f"name: {folder.name}"))
    shutil.rmtree(demo)
    shutil.rmtree(run)

    def record_all(folder: Path) -> None:
        rng = random.Random(folder.name)
        pairs = [(version, f"model-{model}") for version in range(VERSIONS) for model in range(MODELS)]
        site.add(folder, [site.record(template, folder.name, model, version, rng) for version, model in pairs])

    list(map_in_processes(record_all, folders))


def push(root: Path) -> None:
    """Lay out a repository with all versions recorded on all models, and push to one of its components."""
    planning.write_library(root, bumped=1)
    first, *others = sorted((root / "components").iterdir())
    digests = json.loads((first / "leaderboard.json").read_bytes())["runs"][0]["digests"]
    (first / "leaderboard.json").unlink()
    scores = {f"case-{case}": [0.9, 1.0, 0.8] for case in range(planning.CASES)}
    versions = [*(f"0.{at}.0" for at in range(1, MANY)), "1.0.0"]
    records = [
        a_record(
            scores,
            skill=first.name,
            skill_version=version,
            model_id=model,
            digests=digests,
            run_id=f"20260101T{at:06}Z-aaaaaa-{model}",
        )
        for at, version in enumerate(versions)
        for _, model in planning.MODELS
    ]
    keep_in(first, *records)
    files, board = list((first / "evals" / "records").iterdir()), (first / "leaderboard.json").read_bytes()
    for other in others:
        (other / "leaderboard.json").write_bytes(board.replace(first.name.encode(), other.name.encode()))
        kept = other / "evals" / "records"
        kept.mkdir(parents=True)
        for file in files:
            os.link(file, kept / file.name)
    planning.commit(root)
    prompt = first / "prompt.md"
    prompt.write_text(prompt.read_text().replace("1.1.0", "1.2.0").replace("Carefully", "With care"))
    planning.commit(root)
