"""Components and cases on disk, as the loaders read them, and whole runs scored from a table of answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skill_evaluator.ci.plan import OUTCOME, RECORDS, CallCounts, Outcome, RunOutcome
from skill_evaluator.evaluation.runs import Finished
from skill_evaluator.files import json_text
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import DEFAULT_LIMITS, Model, SafetyLimits, Settings
from skill_evaluator.providers import replay
from skill_evaluator.providers.base import Completion, Failure, ProviderKind, Sampling, Usage
from skill_evaluator.records.record import Record, write_record
from skill_evaluator.records.summaries import Commits
from skill_evaluator.runner.journal import Manifest, Run
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import RunScorer, Scorecard, TextScorer

NAME = "receipts"
PROMPT = f"---\nname: {NAME}\nversion: 1.2.0\n---\nRead the receipt.\n"
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "shop": {"type": ["string", "null"]},
        "total": {"type": ["number", "null"]},
        "items": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["shop", "total"],
    "additionalProperties": False,
}
# What may become of a call, as tables of runs write it; any other text is the model's answer.
REFUSED, TRUNCATED, FAILED, NOT_RUN = "<refused>", "<truncated>", "<failed>", "<not run>"


def write_component(
    root: Path,
    *,
    name: str = NAME,
    prompt: str | bytes = PROMPT,
    schema: Any = SCHEMA,
    datasets: Mapping[str, Any] | None = None,
) -> Path:
    """Write `components/<name>`; a schema given as text is written as it is, None is left out. Returns the folder."""
    folder = root / "components" / name
    (folder / "evals").mkdir(parents=True, exist_ok=True)
    (folder / "prompt.md").write_bytes(prompt if isinstance(prompt, bytes) else prompt.encode())
    if schema is not None:
        (folder / "schema.json").write_text(schema if isinstance(schema, str) else json.dumps(schema))
    if datasets is not None:
        (folder / "evals" / "datasets.json").write_text(json.dumps({"datasets": [datasets]}))
    return folder


def component(root: Path, *, limits: SafetyLimits = DEFAULT_LIMITS, **parts: Any) -> Component:
    folder = write_component(root, **parts)
    return load_component(folder.parent, folder.name, limits)


def with_fixtures(component: Component, folder: Path) -> Component:
    files = component.files
    return replace(component, files=replace(files, cases=replace(files.cases, fixtures_dir=folder)))


def case(case_id: str, truth: Any = None, *, labelled: bool = True) -> Case:
    return Case(
        id=case_id,
        inputs={"document": f"receipt {case_id}"},
        truth=truth,
        labelled=labelled,
        meta={},
        parts={"document": "sha256:0"},
    )


def replicate(case_id: str, index: int, outcome: str) -> Replicate | None:
    """What became of one call; None if it was never made."""
    call = Call(case_id, index)
    match outcome:
        case "<not run>":
            return None
        case "<failed>":
            return Replicate(call=call, error=Failure(kind="provider_error", reason="server_error"), attempts=3)
        case "<refused>":
            return Replicate(call=call, completion=Completion(text="I cannot", stop_reason="refusal"))
        case "<truncated>":
            return Replicate(call=call, completion=Completion(text='{"shop": ', stop_reason="length"))
        case text:
            usage = Usage(input_tokens=100, output_tokens=10)
            return Replicate(
                call=call, completion=Completion(text=text, usage=usage, served_model="served-1"), latency_s=0.5
            )


def scorecard(skill: Component, run: Sequence[tuple[Case, Sequence[str]]]) -> Scorecard:
    """Score a table of runs: each case with the outcome of each of its replicates."""
    scores = TextScorer(skill, [case for case, _ in run])
    scorer = RunScorer(scores, scores.cases, len(run[0][1]))
    for case, outcomes in run:
        for index, outcome in enumerate(outcomes):
            made = replicate(case.id, index, outcome)
            if made is not None:
                scorer.add(made)
    return scorer.scorecard()


def record(skill: Component, run: Sequence[tuple[Case, Sequence[str]]], **changed: Any) -> Record:
    """The record of such a run; `changed` replaces what its manifest says."""
    card = scorecard(skill, run)
    manifest = Manifest(
        run_id="20240101T000000Z-abc123-model-a",
        created="2024-01-01T00:00:00Z",
        skill=skill.name,
        skill_version=skill.version,
        model_id="model-a",
        provider="replay",
        replicates=card.replicates,
        seed=0,
        cases={case.id: case.digest for case, _ in run},
        digests={"prompt": "sha256:1", "schema": "sha256:2", "settings": "sha256:3"},
        evaluator_version="0.1.0",
    )
    unpriced = ProviderKind(open=replay.KIND.open, sampling=lambda _: Sampling())
    commits = Commits(prompt_commit="a" * 40, dataset_commit=None)
    recorder = Recorder(component=skill, settings=Settings(), kinds={"replay": unpriced}, git=commits)
    return recorder.record(Model(id="model-a", provider="replay"), manifest.model_copy(update=changed), card)


def finished(record: Record, record_path: str = "r.json", folder: str = "r") -> Finished:
    """Return a run without a model and a manifest, with this record."""
    run = Run(model=Model.model_construct(), manifest=Manifest.model_construct(), folder=Path(folder))
    return Finished(run=run, record=record, record_path=Path(record_path))


def write_collected(folder: Path, *records: Record) -> None:
    runs = []
    for one in records:
        write_record(folder / RECORDS / one.skill / f"{one.run_id}.json", one)
        runs.append(
            RunOutcome(
                skill=one.skill,
                model_id=one.model_id,
                status="complete" if one.complete else "incomplete",
                reason="",
                counts=CallCounts.view(one, failed=one.failures),
                run_id=one.run_id,
            )
        )
    outcome = Outcome(invocation="20240101T000000Z-abc123", head=None, reason="", dry_run=False, runs=runs)
    (folder / OUTCOME).write_text(json_text(outcome.model_dump(mode="json")))
