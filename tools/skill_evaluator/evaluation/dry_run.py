"""`evaluate --dry-run`: everything but the calls. Needs no key, writes nothing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from skill_evaluator.errors import FixtureError, LeaderboardError
from skill_evaluator.evaluation.inputs import Inputs, expand_bare, read_inputs
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.evaluation.runs import beside_words, plan_runs
from skill_evaluator.judges.modes.sentences import judge_estimate
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model
from skill_evaluator.providers import key_note
from skill_evaluator.providers.base import Completion
from skill_evaluator.providers.structured import schema_problems
from skill_evaluator.records.archive import Archive, read_entries
from skill_evaluator.records.record import Record, read_record
from skill_evaluator.runner.journal import RECORD, Run
from skill_evaluator.runner.prices import (
    COST_OF_BATCHES,
    Estimate,
    Forecast,
    InputSize,
    ModelEstimate,
    context_of,
    estimate,
    forecasts_of,
    input_sizes,
    sum_of,
)
from skill_evaluator.runner.schedule import Replicate, calls_in_flight, schedule_calls
from skill_evaluator.scoring.recording import Recorder
from skill_evaluator.scoring.scorer import Scorer, open_scores
from skill_evaluator.text import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The size of an evaluation: an estimate per model, remarks, problems, and the cost of each call mode."""

    component: Component
    cases: Sequence[Case]
    estimates: Sequence[ModelEstimate]
    forecasts: Sequence[Forecast]
    further: Sequence[str]
    problems: Sequence[str]


_FILES = "tokens of images and of pages of PDFs are estimates, by each vendor's rule of November 2026"


def dry_run(request: EvaluationRequest) -> DryRun:
    """Check everything that can be checked without a call, and return what a run would take."""
    request = expand_bare(request)
    inputs = read_inputs(request)
    kinds = inputs.kinds
    planned = plan_runs(inputs, replace(request, dry_run=True))
    runs = planned.runs
    chosen = [case for case in inputs.cases if any(case.id in run.manifest.cases for run in runs)]
    for ids, run in {tuple(run.manifest.cases): run for run in runs}.items():
        _check_truth(run, [case for case in chosen if case.id in ids], inputs)
    of_models: dict[str, list[Estimate]] = {}
    further, sizes_of = _further(runs), dict[tuple[object, ...], dict[str, InputSize]]()
    for run in runs:
        mine = [case for case in chosen if case.id in run.manifest.cases]
        asked = planned.components[run.manifest.run_id]
        alike = (id(asked), *run.manifest.cases)  # most models are asked the same
        sizes = sizes_of[alike] = sizes_of.get(alike) or input_sizes(asked, mine)
        kind, replicates = kinds[run.model.provider], run.manifest.replicates
        of_run = estimate(sizes, run.model, kind, replicates, batch=request.batch)
        of_models.setdefault(run.model.id, []).append(of_run)
        if (judge := inputs.judge) is not None:
            of_judge = judge_estimate(judge, kinds[judge.provider], mine, run.model, replicates)
            of_models.setdefault(judge.id, []).append(of_judge)
            further.append(f"{judge.id} judges answers, with at most three calls each, mostly one")
        left_out = [f"{case_id} ({why})" for case_id, why in run.manifest.not_applicable.items()]
        further += [f"not applicable to {run.model.id}, and not asked: {listed(left_out)}"] if left_out else []
        of_model = {case_id: size.of_model(run.model, kind) for case_id, size in sizes.items()}
        further += _too_long(of_model, run.model, context_of(run.model, kind))
        further += [_FILES] if any(size.files for size in sizes.values()) else []
    further += [COST_OF_BATCHES] if request.batch else _durations(of_models, runs, inputs, request)
    estimates = [
        ModelEstimate(
            model_id=model.id,
            provider=model.provider,
            key=key_note(model, kinds[model.provider], inputs.keys),
            **asdict(sum_of(of_models[model.id])),
        )
        for model in {model.id: model for model in (*(run.model for run in runs), inputs.judge) if model}.values()
        if model.id in of_models
    ]
    unpriced = listed([one.model_id for one in estimates if one.cost_upper_usd is None], 3)
    further += [f"no price is known of {unpriced}: give it as `price` in models.yaml"] if unpriced else []
    return DryRun(
        component=inputs.component,
        cases=chosen,
        estimates=estimates,
        forecasts=forecasts_of((one.model_id, one) for one in estimates),
        further=list(dict.fromkeys(further)),
        problems=schema_problems(inputs.component, inputs.models),
    )


def _further(runs: Sequence[Run]) -> list[str]:
    """Describe the further calls: interleaved baselines, and recorded prompts by model."""
    versions: dict[str, list[str]] = {}
    for run in runs:
        manifest = run.manifest
        if manifest.role == "again":
            under = f" under {manifest.scenario}" if manifest.scenario else ""
            versions.setdefault(run.model.id, []).append(f"{manifest.skill_version}{under}")
    recorded = [f"{model_id} is asked by recorded prompts: {', '.join(asked)}" for model_id, asked in versions.items()]
    return [*beside_words(runs), *recorded]


def _too_long(sizes: Mapping[str, InputSize], model: Model, context: int | None) -> Iterator[str]:
    """Yield a line on the cases that are longer than a model's context, by their approximate size."""
    over = {case_id: size.likely for case_id, size in sizes.items() if context is not None and size.likely > context}
    if over and context is not None:
        named = listed([f"{case_id} (about {tokens:,} tokens)" for case_id, tokens in over.items()])
        yield f"over the context of {model.id}, {context:,} tokens: {named}"


def _durations(
    of_models: Mapping[str, Sequence[Estimate]], runs: Sequence[Run], inputs: Inputs, request: EvaluationRequest
) -> Iterator[str]:
    """Estimate the duration of each model's calls, by the median latency of its last record."""
    archive = Archive(inputs.component)
    for model in {run.model.id: run.model for run in runs}.values():
        record = _last_record(model.id, archive, inputs, request.components)
        if record is None or record.latency_s.p50 is None:
            continue
        kind = inputs.kinds[model.provider]
        _, flights = calls_in_flight(model, kind, request.concurrency or inputs.settings.concurrency)
        calls = sum_of(of_models[model.id]).calls
        minutes = calls * record.latency_s.p50 / min(flights, calls) / 60
        time = "under a minute" if minutes < 1 else f"about {minutes:,.0f} minutes"
        yield f"{model.id} will take {time}, as its calls in {record.run_id} took"


def _last_record(model_id: str, archive: Archive, inputs: Inputs, components: Path) -> Record | None:
    """Return a model's last record, else that of its last run folder, else its last of any other component.

    An unreadable record tells nothing.
    """
    for entry in (entry for entry in archive.entries if entry.model_id == model_id):
        with suppress(LeaderboardError):
            return archive.record(entry)
    for path in sorted(inputs.results_dir.glob(f"*/{RECORD}"), reverse=True):
        with suppress(LeaderboardError):
            record = read_record(path)
            if (record.skill, record.model_id) == (inputs.component.name, model_id):
                return record
    elsewhere = []
    for board in components.glob(f"*/{inputs.component.leaderboard_path.name}"):
        with suppress(LeaderboardError):
            runs = [entry for entry in read_entries(board) if entry.model_id == model_id]
            elsewhere += [(run.order, board.parent / "evals" / "records" / f"{run.run_id}.json") for run in runs[:1]]
    for _, path in sorted(elsewhere, reverse=True):
        with suppress(LeaderboardError):
            return read_record(path)
    return None


def _check_truth(run: Run, cases: Sequence[Case], inputs: Inputs) -> None:
    """Raise FixtureError unless the ground truth, taken as an answer, scores 1 on every metric that is defined."""
    component, replicates = inputs.component, run.manifest.replicates
    cases = [replace(case, checks=()) for case in cases]  # they look at what a model writes, and some run a program
    with open_scores(component, cases, calls=0) as scores:
        scorer = Scorer(component, cases, replicates, scores)
        for call in schedule_calls([case.id for case in cases if case.labelled], replicates):
            truth = next(case.truth for case in cases if case.id == call.case_id)
            text = json.dumps(truth) if component.output == "json" else truth
            scorer.add(Replicate(call=call, completion=Completion(text=text)))
        scorecard = scorer.scorecard()
    recorder = Recorder(component=component, settings=inputs.settings, kinds=inputs.kinds)
    record = recorder.record(run.model, run.manifest, scorecard)
    Record.model_validate_json(record.model_dump_json())
    for case in record.per_case:
        for name, accuracy in case.accuracy.items():
            if accuracy.strict_mean is not None and accuracy.strict_mean != 1.0:
                raise FixtureError(
                    f"case '{case.case_id}': its own ground truth scores {accuracy.strict_mean} on {name}; "
                    "check how its fields are compared in evals/datasets.json"
                )
