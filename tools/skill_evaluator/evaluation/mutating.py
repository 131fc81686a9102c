"""Mutation testing: run the prompt without each of its parts, interleaved with the whole prompt, and compare."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from skill_evaluator.errors import RunError
from skill_evaluator.evaluation.inputs import Inputs, read_inputs
from skill_evaluator.evaluation.mutation import decide_mutant
from skill_evaluator.evaluation.mutation_results import MutantResult, MutationResult
from skill_evaluator.evaluation.request import EvaluationRequest, MutationRequest
from skill_evaluator.evaluation.runs import PlannedRuns
from skill_evaluator.evaluation.story import ask_and_score
from skill_evaluator.files import read_text
from skill_evaluator.library.mutants import Mutant, controls_of, mutants_of
from skill_evaluator.records.record import Record
from skill_evaluator.runner.journal import outcomes
from skill_evaluator.runner.prices import estimate, input_sizes
from skill_evaluator.runner.runs import input_digests, new_runs
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import rounded, total_or_none
from skill_evaluator.text import canonical_json, digest
from skill_evaluator.verdicts.decide.rules import rules_for

_WHOLE = ("whole", "control-1", "control-2", "control-3")
_MIN_REPLICATES = 2  # one output per case does not show chance
_MIN_CASES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _MutationPlan:
    """A mutation test. Its runs are those of the whole prompt and its controls, then one per mutant."""

    request: EvaluationRequest
    inputs: Inputs
    runs: PlannedRuns
    mutants: Sequence[Mutant]
    left_out: int


def mutate(request: MutationRequest, watch: Watch) -> MutationResult:
    """Return which removals the cases notice. A dry run makes no call and returns the mutants and the highest cost."""
    plan = _plan(request)
    if request.dry_run:
        calls, cost = _size(plan)
        return _result(plan, [MutantResult.view(one) for one in plan.mutants], calls, cost, dry_run=True)
    (model,) = plan.inputs.models
    if model.provider == "replay":
        raise RunError(f"'{model.id}' replays outputs and ignores the prompt; choose another model")
    scored = ask_and_score(plan.runs, plan.inputs, plan.request, watch)
    records = [one.record for one in scored]
    calls = sum(replicate.answered for run in plan.runs.runs for replicate in outcomes(run.folder).values())
    return _result(plan, _decide(plan, records), calls, total_or_none(record.cost_usd for record in records))


def _plan(request: MutationRequest) -> _MutationPlan:
    """Read and check everything and remove the parts; raise for any fault, before any call."""
    refuse_amounts({"--mutants": request.mutants}, None, None)
    if request.replicates < _MIN_REPLICATES:
        raise RunError(f"--replicates must be at least {_MIN_REPLICATES}: one output per case does not show chance")
    shared = ("skill", "replicates", "results", "components", "fixtures", "config")
    evaluation = EvaluationRequest(
        **{name: getattr(request, name) for name in (*shared, "concurrency", "max_cost", "max_calls")},
        models=() if request.model is None else (request.model,),
        draft=True,
        leaderboard=False,
    )
    inputs = read_inputs(evaluation)
    inputs = replace(inputs, cases=tuple(case for case in inputs.cases if case.labelled), judge=None)
    component = inputs.component
    if component.program is not None:
        raise RunError(f"'{component.name}' is a program and has no prompt to mutate")
    if len(inputs.models) != 1:
        raise RunError(f"mutate runs one model: name it with --model ({', '.join(one.id for one in inputs.models)})")
    every = mutants_of(component.prompt, read_text(component.files[0], RunError))
    longest = sorted(every, key=lambda one: -len(one.text))[: request.mutants]
    mutants = [one for one in every if one in longest]
    if not mutants:
        raise RunError(f"the prompt of '{component.name}' has no part that can be removed")
    runs = _runs(inputs, request.replicates, mutants)
    left_out = len(every) - len(mutants)
    return _MutationPlan(request=evaluation, inputs=inputs, runs=runs, mutants=mutants, left_out=left_out)


def _runs(inputs: Inputs, replicates: int, mutants: Sequence[Mutant]) -> PlannedRuns:
    """Return the runs in one folder, which depends on all that shapes the outputs: a second call resumes them."""
    component, seed = inputs.component, inputs.settings.seed
    (plain,) = new_runs(
        component, inputs.cases, inputs.models, inputs.results_dir, inputs.kinds, replicates=replicates, seed=seed
    )
    manifest = plain.manifest
    if len(manifest.cases) < _MIN_CASES:
        raise RunError(f"'{component.name}' has too few cases with ground truth: mutate requires {_MIN_CASES}")
    shaping = [manifest.digests, component.digests["datasets"], manifest.cases, replicates, seed]
    folder = inputs.results_dir / f"mutants-{digest(canonical_json(shaping))[-12:]}"
    prompts = dict(zip(_WHOLE, (component.prompt, *controls_of(component.prompt)), strict=True))
    prompts |= {_run_id(one): one.prompt for one in mutants}
    runs, components = [], {}
    for name, prompt in prompts.items():
        digests = {**component.digests, "prompt": prompt.digest}
        components[name] = replace(component, prompt=prompt, digests=digests)
        update = {
            "run_id": name,
            "digests": input_digests(components[name], plain.model),
            "seed": seed + (_WHOLE.index(name) if name in _WHOLE else 0),  # else a seed repeats the outputs
            "draft": True,
        }
        runs.append(replace(plain, manifest=manifest.model_copy(update=update), folder=folder / name))
    return PlannedRuns(runs=runs, components=components, finished=[], roles=dict.fromkeys(prompts))


def _run_id(mutant: Mutant) -> str:
    return f"{mutant.id}-{mutant.prompt.digest[-8:]}"


def _size(plan: _MutationPlan) -> tuple[int, float | None]:
    """Return how many calls all runs make and what they cost at most; None if the price is unknown."""
    estimates = []
    for run in plan.runs.runs:
        cases = [case for case in plan.inputs.cases if case.id in run.manifest.cases]
        sizes = input_sizes(plan.runs.components[run.manifest.run_id], cases)
        kind = plan.inputs.kinds[run.model.provider]
        estimates.append(estimate(sizes, run.model, kind, run.manifest.replicates))
    return sum(one.calls for one in estimates), total_or_none(one.cost_upper_usd for one in estimates)


def _decide(plan: _MutationPlan, records: Sequence[Record]) -> list[MutantResult]:
    """Return whether each mutant is killed, in the order of the prompt."""
    by_id = {record.run_id: record for record in records}
    whole = [by_id[name] for name in _WHOLE]
    rules = rules_for(plan.inputs.settings, whole[0])
    results = []
    for mutant in plan.mutants:
        lacking = [one for one in (by_id[_run_id(mutant)], *whole) if not one.complete]
        if not lacking:
            results.append(decide_mutant(mutant, whole, by_id[_run_id(mutant)], rules))
            continue
        reason = lacking[0].stopped or f"only {lacking[0].coverage:.0%} of the calls of {lacking[0].run_id} succeeded"
        results.append(MutantResult.view(mutant, reason=reason))
    return results


def _result(
    plan: _MutationPlan, mutants: Sequence[MutantResult], calls: int, cost_usd: float | None, *, dry_run: bool = False
) -> MutationResult:
    first = plan.runs.runs[0]
    return MutationResult.view(
        first.manifest,
        n_cases=len(first.manifest.cases),
        alpha=plan.inputs.settings.policy.alpha,
        mutants=list(mutants),
        left_out=plan.left_out,
        calls=calls,
        cost_usd=rounded(cost_usd),
        folder=str(first.folder.parent),
        dry_run=dry_run,
    )
