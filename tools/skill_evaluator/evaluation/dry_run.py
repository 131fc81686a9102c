"""`evaluate --dry-run`: check the inputs and estimate the calls. It needs no key and writes nothing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from skill_evaluator.errors import FixtureError, LeaderboardError
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.evaluation.runs import Inputs, baseline_notes, plan_runs, read_inputs
from skill_evaluator.judges.modes.sentences import judge_estimate
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model
from skill_evaluator.providers import key_note
from skill_evaluator.providers.base import Completion
from skill_evaluator.providers.structured import schema_problems
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record
from skill_evaluator.runner.journal import Run
from skill_evaluator.runner.prices import (
    COST_OF_BATCHES,
    CostEstimate,
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
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The calls and cost of an evaluation: an estimate per model, the cost of each call mode, remarks and problems."""

    component: Component
    cases: Sequence[Case]
    estimates: Sequence[ModelEstimate]
    forecasts: Sequence[Forecast]
    further: Sequence[str]
    problems: Sequence[str]

    @property
    def calls(self) -> int:
        """The number of calls of all models."""
        return sum(each.calls for each in self.estimates)

    @property
    def cost_at_most_usd(self) -> float | None:
        """The maximum cost of all models in USD. None if a price is unknown."""
        return total_or_none(each.cost_upper_usd for each in self.estimates)


_FILES = "tokens of images and of pages of PDFs are estimates, by each vendor's rule of November 2026"


def dry_run(request: EvaluationRequest) -> DryRun:
    """Check everything that requires no call, and estimate the calls, cost and duration of a run."""
    inputs = read_inputs(request)
    kinds = inputs.kinds
    planned = plan_runs(replace(inputs, request=replace(inputs.request, dry_run=True)))
    runs = planned.runs
    chosen = [case for case in inputs.cases if any(case.id in run.manifest.cases for run in runs)]
    for ids, run in {tuple(run.manifest.cases): run for run in runs}.items():
        _check_truth(run, [case for case in chosen if case.id in ids], inputs)
    estimates_of_model: dict[str, list[CostEstimate]] = {}
    remarks, sizes_of_group = _extra_calls(runs), dict[tuple[object, ...], dict[str, InputSize]]()
    for run in runs:
        run_cases = [case for case in chosen if case.id in run.manifest.cases]
        component = planned.components[run.manifest.run_id]
        group = (id(component), *run.manifest.cases)  # most models have the same component and cases
        sizes = sizes_of_group[group] = sizes_of_group.get(group) or input_sizes(component, run_cases)
        kind, replicates = kinds[run.model.provider], run.manifest.replicates
        run_estimate = estimate(sizes, run.model, kind, replicates, batch=request.batch)
        estimates_of_model.setdefault(run.model.id, []).append(run_estimate)
        if (judge := inputs.judge) is not None:
            judge_share = judge_estimate(judge, kinds[judge.provider], run_cases, run.model, replicates)
            estimates_of_model.setdefault(judge.id, []).append(judge_share)
            remarks.append(f"{judge.id} judges each output with one to three calls, mostly one")
        excluded = [f"{case_id} ({reason})" for case_id, reason in run.manifest.not_applicable.items()]
        remarks += [f"not applicable to {run.model.id} and not called: {listed(excluded)}"] if excluded else []
        model_sizes = {case_id: size.of_model(run.model, kind) for case_id, size in sizes.items()}
        remarks += _too_long(model_sizes, run.model, context_of(run.model, kind))
        remarks += [_FILES] if any(size.files for size in sizes.values()) else []
    remarks += [COST_OF_BATCHES] if request.batch else _durations(estimates_of_model, runs, inputs)
    estimates = [
        ModelEstimate(
            model_id=model.id,
            provider=model.provider,
            key=key_note(model, kinds[model.provider], inputs.keys),
            **asdict(sum_of(estimates_of_model[model.id])),
        )
        for model in {model.id: model for model in (*(run.model for run in runs), inputs.judge) if model}.values()
        if model.id in estimates_of_model
    ]
    unpriced = listed([each.model_id for each in estimates if each.cost_upper_usd is None], 3)
    remarks += [f"the price of {unpriced} is unknown: set `price` in models.yaml"] if unpriced else []
    return DryRun(
        component=inputs.component,
        cases=chosen,
        estimates=estimates,
        forecasts=forecasts_of((each.model_id, each) for each in estimates),
        further=list(dict.fromkeys(remarks)),
        problems=schema_problems(inputs.component, inputs.models),
    )


def _extra_calls(runs: Sequence[Run]) -> list[str]:
    versions: dict[str, list[str]] = {}
    for run in runs:
        manifest = run.manifest
        if manifest.role == "again":
            suffix = f" under {manifest.scenario}" if manifest.scenario else ""
            versions.setdefault(run.model.id, []).append(f"{manifest.skill_version}{suffix}")
    recorded = [f"{name} is called with recorded prompts: {', '.join(of)}" for name, of in versions.items()]
    return [*baseline_notes(runs), *recorded]


def _too_long(sizes: Mapping[str, InputSize], model: Model, context: int | None) -> Iterator[str]:
    too_long = [(name, size.likely) for name, size in sizes.items() if context and size.likely > context]
    if too_long:
        cases = listed([f"{name} (about {tokens:,} tokens)" for name, tokens in too_long])
        yield f"longer than the context of {model.id} ({context:,} tokens): {cases}"


def _durations(
    estimates_of_model: Mapping[str, Sequence[CostEstimate]], runs: Sequence[Run], inputs: Inputs
) -> Iterator[str]:
    """Estimate the duration of each model's calls by the median latency of its newest record, if there is one."""
    archive = Archive(inputs.component)
    for model in {run.model.id: run.model for run in runs}.values():
        row = next((row for row in archive.entries if row.model_id == model.id), None)
        record = None
        with suppress(LeaderboardError):  # `lint` reports an unreadable record
            record = None if row is None else archive.record(row)
        if record is None or record.latency_s.p50 is None:
            continue
        kind = inputs.kinds[model.provider]
        _, flights = calls_in_flight(model, kind, inputs.request.concurrency or inputs.settings.concurrency)
        calls = sum_of(estimates_of_model[model.id]).calls
        minutes = calls * record.latency_s.p50 / min(flights, calls) / 60
        duration = "under a minute" if minutes < 1 else f"about {minutes:,.0f} minutes"
        yield f"{model.id} will take {duration}, as its calls in {record.run_id} took"


def _check_truth(run: Run, cases: Sequence[Case], inputs: Inputs) -> None:
    """Raise FixtureError if a ground truth, scored as an output, scores below 1 on a metric that is defined."""
    component, replicates = inputs.component, run.manifest.replicates
    cases = [replace(case, checks=()) for case in cases]  # checks are about outputs, and may run programs
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
                scored = f"scored as an output, has {accuracy.strict_mean} on {name} instead of 1"
                remedy = "check how its fields are compared in evals/datasets.json"
                raise FixtureError(f"case '{case.case_id}': the ground truth, {scored}; {remedy}")
