"""A saved run of the record, scored by a process of its own: 12 cases × 10 replicates, all metrics, imports included.

`python benchmarks/whole_run.py FOLDER` is that process: a component and fixtures there, and the answers as a file. It
scores as every command does, in workers.
Its own module because what is timed is everything from the start of the interpreter to the finished record.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

NAME, CASES, REPLICATES = "award", 12, 10
ANSWERS = "answers.json"


def write_run(root: Path, keyed: bool, cases: int = CASES) -> None:
    """A component whose arrays align by key or by the best assignment, its cases, and an answer to every call."""
    from benchmarks.records import KEYS, SCHEMA, mutant, record, text_of

    component = root / "components" / NAME
    (component / "evals").mkdir(parents=True)
    (component / "prompt.md").write_text(f"---\nname: {NAME}\nversion: 1.0.0\n---\nRead the notice of award.\n")
    (component / "schema.json").write_text(json.dumps(SCHEMA))
    fields = {path: {"align": "key", "key": key} for path, key in KEYS.items()} if keyed else {}
    datasets = {"datasets": [{"id": NAME, "fields": fields}]}
    (component / "evals" / "datasets.json").write_text(json.dumps(datasets))
    answers: dict[str, list[str]] = {}
    for number in range(cases):
        truth = record(number)
        case = root / "fixtures" / NAME / "cases" / f"case-{number:03}"
        case.mkdir(parents=True)
        (case / "document.md").write_text(f"Notice {number}.")
        (case / "ground_truth.json").write_text(json.dumps(truth))
        answers[case.name] = [text_of(mutant(truth, seed)) for seed in range(REPLICATES)]
    (root / ANSWERS).write_text(json.dumps(answers))


def score_run(root: Path) -> None:
    """What `skill-evaluator score` does of it: every answer scored, the scorecard, the record as JSON."""
    from skill_evaluator.library.cases import load_cases
    from skill_evaluator.library.components import load_component
    from skill_evaluator.library.config import Model, Settings
    from skill_evaluator.providers import PROVIDERS
    from skill_evaluator.providers.base import Completion
    from skill_evaluator.records.summaries import Commits
    from skill_evaluator.runner.journal import Manifest
    from skill_evaluator.runner.schedule import Call, Replicate
    from skill_evaluator.scoring.recording import Recorder
    from skill_evaluator.scoring.scorer import RunScorer, open_scorer

    component = load_component(root / "components", NAME, fixtures_dir=root / "fixtures")
    cases = load_cases(component)
    with open_scorer(component, cases, len(cases)) as scores:
        scorer = RunScorer(scores, scores.cases, REPLICATES)
        for case_id, texts in json.loads((root / ANSWERS).read_text()).items():
            for index, text in enumerate(texts):
                scorer.add(Replicate(call=Call(case_id, index), completion=Completion(text=text)))
        scorecard = scorer.scorecard()
    manifest = Manifest(
        run_id="20240101T000000Z-abc123-m",
        created="2024-01-01T00:00:00Z",
        skill=NAME,
        skill_version=component.version,
        model_id="m",
        provider="replay",
        replicates=REPLICATES,
        seed=0,
        cases={case.id: case.digest for case in cases},
        digests={"prompt": "sha256:1", "schema": "sha256:2", "settings": "sha256:3"},
        evaluator_version="0",
    )
    commits = Commits(prompt_commit=None, dataset_commit=None)
    recorder = Recorder(component=component, settings=Settings(), kinds=PROVIDERS, git=commits)
    record = recorder.record(Model(id="m", provider="replay"), manifest, scorecard)
    (root / "record.json").write_text(record.model_dump_json())


def wall_seconds(root: Path, runs: int) -> list[float]:
    """Wall times of the process, from its start to its end; the first one warms caches, and is not counted."""
    command = [sys.executable, __file__, str(root)]
    times = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        subprocess.run(command, check=True)
        times.append(time.perf_counter() - begun)
    return times[1:]


if __name__ == "__main__":
    score_run(Path(sys.argv[1]))
