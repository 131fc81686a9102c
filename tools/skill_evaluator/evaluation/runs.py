"""The runs of an evaluation: new ones, those of a design, or unfinished ones that are taken up again.

Nobody pays twice for an answer to the same question. A draft, so also `try`, and `--failing` neither give answers to
a later run nor take any: the best of many drafts would pass for an improvement.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.errors import RunError
from skill_evaluator.evaluation.inputs import Inputs
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.files import try_lock
from skill_evaluator.identifiers import invocation_of
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Policy
from skill_evaluator.providers import lack_of
from skill_evaluator.records.archive import RecordedRun, read_entries, why_refused
from skill_evaluator.records.leaderboard import append_rows
from skill_evaluator.records.record import read_record
from skill_evaluator.runner.journal import (
    MANIFEST,
    Manifest,
    Role,
    create_run,
    find_runs,
    is_unfinished,
    outcomes,
    read_component_manifest,
    read_manifest,
)
from skill_evaluator.runner.prices import input_sizes, most_cost, price_of
from skill_evaluator.runner.runs import Run, new_runs, resumed_run
from skill_evaluator.scoring.recording import Finished
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import counted, listed

_ANEW = "(--fresh asks anew)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRuns:
    """The runs to ask, runs that are recorded already, and by run id the component that a run asks and its role."""

    runs: list[Run]
    components: Mapping[str, Component]
    finished: list[Finished]
    roles: Mapping[str, Role | None]

    def left(self) -> list[str]:
        """Return the ids of the runs that are not complete, where asking again may help."""
        over = {run.folder for run in self.finished if run.record.is_final or "model_retired" in run.record.reasons}
        ids = [(run.manifest.run_id, run.folder) for run in self.runs]
        return [run_id for run_id, folder in ids if folder not in over]


def plan_runs(inputs: Inputs, request: EvaluationRequest) -> PlannedRuns:
    """Return the runs to ask; with `--resume` also those that are recorded already and stay as they are.

    Raise RunError for what cannot be asked as the options say, or could not be recorded once it was paid for.
    """
    recorded = read_entries(inputs.component.leaderboard_path)
    if request.resumed is not None:
        planned = _resume_runs(inputs, request, request.resumed)
    else:
        planned = _new_runs(inputs, request)
        if not (request.fresh or request.dry_run or request.draft or request.failing or request.invocation):
            planned = _with_unfinished_runs(planned, inputs, request, [entry for entry in recorded if entry.complete])
    for manifest in (run.manifest for run in planned.runs if is_measurement(run, request)):
        if manifest.draft:
            continue
        why = why_refused(recorded, manifest.skill_version, manifest.digests["prompt"])
        if why is not None:
            raise RunError(f"'{inputs.component.name}' {why}")
    anew = [run for run in planned.runs if not run.folder.exists()]
    for line in () if request.dry_run else beside_words(anew):  # a dry run says it itself
        print(line, file=sys.stderr)
    return planned


def is_measurement(run: Run, request: EvaluationRequest) -> bool:
    """Return whether the run, once complete, is kept among the component's records."""
    return request.leaderboard and run.manifest.whole


def _new_runs(inputs: Inputs, request: EvaluationRequest) -> PlannedRuns:
    plain = new_runs(
        inputs.component,
        inputs.cases,
        inputs.models,
        inputs.results_dir,
        inputs.kinds,
        replicates=request.replicates or inputs.settings.replicates,
        seed=inputs.settings.seed if request.seed is None else request.seed,
        shard=inputs.shard,
        selection=request.cases,
        invocation=request.invocation,
        transport="batch" if request.batch else "direct",
    )
    for run in plain:
        if not run.manifest.cases:
            reasons = listed([f"{case_id} ({why})" for case_id, why in run.manifest.not_applicable.items()])
            print(f"warning: skipping {run.model.id}: no case is applicable to it: {reasons}", file=sys.stderr)
    plain = [run for run in plain if run.manifest.cases]
    if not plain:
        raise RunError(
            f"no case of '{inputs.component.name}' is applicable to a model; see not_applicable in meta.json"
        )
    alone = _planned([(run, inputs.component) for run in plain], request)
    designed = request.with_baseline or request.failing or request.aa
    if not designed and not _goes_beside(request, inputs.settings.policy):
        return alone
    from skill_evaluator.evaluation.designs import design_runs, failing_runs, runs_beside  # they import much

    if request.failing and not (plain := failing_runs(plain, inputs)):
        return _planned([], request)
    planned = _planned((design_runs if designed else runs_beside)(plain, inputs, request), request)
    if not designed and (why := _suffices_for_one(planned, alone, inputs, request)):
        print(f"warning: {inputs.component.name} is asked without its baseline: {why}", file=sys.stderr)
        return alone
    return planned


def _goes_beside(request: EvaluationRequest, policy: Policy) -> bool:
    """Return whether new versions are asked beside their baselines unasked: where a verdict on all cases comes of it.

    A job of a plan, which has its invocation, asks what was planned.
    """
    otherwise = (request.draft, request.cases, request.shard, request.scenario, request.invocation)
    return policy.design == "beside" and not request.recorded and not any(otherwise)


def _planned(pieces: Sequence[tuple[Run, Component]], request: EvaluationRequest) -> PlannedRuns:
    runs = [replace(run, manifest=run.manifest.model_copy(update={"draft": request.draft})) for run, _ in pieces]
    components = {run.manifest.run_id: component for run, component in pieces}
    return PlannedRuns(runs=runs, components=components, finished=[], roles=_roles_of(runs))


def beside_words(runs: Sequence[Run]) -> list[str]:
    """Return what is asked beside new versions, and how many calls that makes of each, a line a version."""
    replicates = {run.manifest.run_id: run.manifest.replicates for run in runs}
    models: dict[str, list[str]] = {}
    for manifest in (
        run.manifest for run in runs if run.manifest.role == "baseline" and run.manifest.beside in replicates
    ):
        times = 1 + manifest.replicates / replicates[str(manifest.beside)]
        models.setdefault(f"beside {manifest.skill_version}: {times:.3g} × the calls", []).append(manifest.model_id)
    alone = "" if any(run.manifest.asked_again for run in runs) else " (--recorded asks the new version alone)"
    return [f"{words} of {listed(ids)}{alone}" for words, ids in models.items()]


def _suffices_for_one(
    beside: PlannedRuns, alone: PlannedRuns, inputs: Inputs, request: EvaluationRequest
) -> str | None:
    """Say of a limit that it is enough for the new versions, and not for their baselines, too; None of any other."""
    if request.max_calls is None and request.max_cost is None:
        return None
    plans = (alone, beside)
    calls = [float(sum(run.manifest.calls for run in planned.runs)) for planned in plans]
    costs = [total_or_none(costs_left(planned, inputs).values()) for planned in plans]
    limits: Sequence[tuple[str, float | None, Sequence[float | None]]] = (
        ("--max-calls", request.max_calls, calls),
        ("--max-cost", request.max_cost, costs),
    )
    for name, limit, (one, both) in limits:
        if limit is not None and one is not None and both is not None and one <= limit < both:
            return f"{name}, {limit:,g}, is enough for the new version (at most {one:,g}), not for both ({both:,g})"
    return None


def costs_left(planned: PlannedRuns, inputs: Inputs) -> dict[str, float | None]:
    """Return by model the most that the calls which are left of the runs can cost; None where no price is known."""
    costs: dict[str, float | None] = {}
    usable = [run for run in planned.runs if not lack_of(run.model, inputs.kinds[run.model.provider], inputs.keys)]
    for run in usable:
        manifest, model = run.manifest, run.model
        cases = [case for case in inputs.cases if case.id in manifest.cases]
        answered = Counter(call.case_id for call, replicate in outcomes(run.folder).items() if replicate.answered)
        price, batch = price_of(model, inputs.kinds[model.provider]), manifest.transport == "batch"
        for case_id, size in input_sizes(planned.components[manifest.run_id], cases).items():
            of_model = size.of_model(model, inputs.kinds[model.provider])
            most = most_cost(price, of_model.most, model.params.max_output_tokens, batch=batch)
            before = costs.get(model.id, 0.0)
            left = manifest.replicates - answered[case_id]
            costs[model.id] = None if most is None or before is None else before + left * most
        if (judge := inputs.judge) is not None:
            from skill_evaluator.judges.modes.sentences import judge_estimate

            most = judge_estimate(judge, inputs.kinds[judge.provider], cases, model, manifest.replicates).cost_upper_usd
            before = costs.get(judge.id, 0.0)
            costs[judge.id] = None if most is None or before is None else before + most
    return costs


def record_path(run: Run, component: Component) -> Path:
    """Return where the record of a complete run is kept."""
    return component.records_dir / f"{run.manifest.run_id}.json"


def _with_unfinished_runs(
    planned: PlannedRuns, inputs: Inputs, request: EvaluationRequest, recorded: Sequence[RecordedRun]
) -> PlannedRuns:
    """Return the planned runs, or the unfinished ones of the same plan; an unfinished run with fewer calls is extended.

    The unfinished ones are the newest on this machine.
    """
    runs = [run for run in planned.runs if not lack_of(run.model, inputs.kinds[run.model.provider], inputs.keys)]
    earlier = {run.manifest.run_id: run for run in _earlier_runs(runs, inputs, request)}
    for invocation in sorted({invocation_of(name) for name in earlier}, reverse=True):
        names = [invocation + run.manifest.run_id.removeprefix(invocation_of(run.manifest.run_id)) for run in runs]
        begun = [earlier[name] for name in names if name in earlier]
        alike = [was.manifest.is_planned_as(run.manifest) for was, run in zip(begun, runs, strict=False)]
        if len(begun) == len(runs) and all(alike) and any(_is_left(was, recorded) for was in begun):
            print(f"{invocation} was left unfinished, and goes on {_ANEW}", file=sys.stderr)
            return _resume_runs(inputs, replace(request, models=tuple(run.model.id for run in runs)), invocation)
    left = [run for run in earlier.values() if _is_left(run, recorded)]
    pieces = []
    for run in planned.runs:
        parts = [one for one in left if one.manifest.is_part_of(run.manifest)]
        pieces.append((_extended(parts[-1], run) if parts else run, planned.components[run.manifest.run_id]))
    return _planned(pieces, request)


def _extended(unfinished: Run, run: Run) -> Run:
    """Add the cases and replicates of a planned run to an unfinished one, on disk too."""
    names = ("cases", "replicates", "selection", "not_applicable")
    manifest = unfinished.manifest.model_copy(update={name: getattr(run.manifest, name) for name in names})
    create_run(unfinished.folder, manifest)
    size = f"{counted(len(manifest.cases), 'case')} × {counted(manifest.replicates, 'replicate')}"
    print(f"{manifest.run_id} was left unfinished, and goes on with {size} {_ANEW}", file=sys.stderr)
    return replace(unfinished, manifest=manifest)


def _earlier_runs(runs: Sequence[Run], inputs: Inputs, request: EvaluationRequest) -> Iterator[Run]:
    """Yield the runs on this machine whose prompt, contract and settings are those of new ones; none under way."""
    models = {run.model.id: run.model for run in runs if run.model.provider != "replay"}  # which costs nothing
    for folder in sorted(path.parent for path in inputs.results_dir.glob(f"*/{MANIFEST}")):
        with suppress(RunError):  # what cannot be read is nobody's
            manifest = read_component_manifest(folder)
            alike = manifest.model_id in models and any(manifest.asks_like(run.manifest) for run in runs)
            as_named = manifest.run_id == folder.name and request.seed in (None, manifest.seed)
            if alike and as_named and try_lock(folder / ".lock") is not None:  # which is given back at once
                yield Run(model=models[manifest.model_id], manifest=manifest, folder=folder)


def _is_left(run: Run, recorded: Sequence[RecordedRun]) -> bool:
    """Return whether a run is unfinished, and nothing was recorded since of its model and scenario."""
    same = (entry for entry in recorded if (entry.model_id, entry.scenario) == (run.model.id, run.manifest.scenario))
    newest = max((invocation_of(entry.run_id) for entry in same), default="")
    return newest <= invocation_of(run.manifest.run_id) and is_unfinished(run.folder)


def _resume_runs(inputs: Inputs, request: EvaluationRequest, resume: str) -> PlannedRuns:
    """Find the runs that `--resume` or `--run` means, each planned as the options say; raise RunError."""
    component = inputs.component
    runs, components = _saved_runs(inputs, request, resume)
    unfinished = [run for run in runs if not record_path(run, component).exists()]
    finished = []
    for run in runs:
        if run not in unfinished:
            record = read_record(record_path(run, component))
            complete = " and complete" * record.complete
            if record.has_row:  # a crash may have come before its row
                append_rows(component.leaderboard_path, component.name, [record.row()])
            print(f"{run.manifest.run_id} is recorded{complete}: there is nothing to resume", file=sys.stderr)
            finished.append(Finished(record=record, record_path=record_path(run, component), folder=run.folder))
    return PlannedRuns(runs=unfinished, components=components, finished=finished, roles=_roles_of(runs))


def _saved_runs(inputs: Inputs, request: EvaluationRequest, wanted: str) -> tuple[list[Run], dict[str, Component]]:
    """Find runs by id, folder or invocation, planned as the options say, with what each asks; raise RunError."""
    from skill_evaluator.evaluation.designs import component_of

    cases = {case.id: case for case in inputs.cases}
    models = {model.id: model for model in inputs.models}
    folders = _with_those_beside(find_runs(inputs.results_dir, wanted, inputs.component.name))
    for folder, manifest in folders:
        if manifest.scenario != request.scenario:
            how = f"with --scenario {manifest.scenario}" if manifest.scenario else "without --scenario"
            raise RunError(f"cannot resume {folder} like this: it was begun {how}")
    mine = [(folder, manifest) for folder, manifest in folders if not request.models or manifest.model_id in models]
    if not mine:
        raise RunError(f"no run of --model {' '.join(request.models)} among those to resume")
    components = {manifest.run_id: component_of(manifest, inputs, request) for _, manifest in mine}
    runs = [resumed_run(folder, components[manifest.run_id], cases, models) for folder, manifest in mine]
    _refuse_other_plan(runs, request)
    return runs, components


def _roles_of(runs: Sequence[Run]) -> dict[str, Role | None]:
    return {run.manifest.run_id: run.manifest.role for run in runs}


def _with_those_beside(folders: Sequence[tuple[Path, Manifest]]) -> list[tuple[Path, Manifest]]:
    """Add the runs whose calls alternate with these; raise RunError if one is gone."""
    wanted = dict(folders)
    for folder, manifest in folders:
        if manifest.beside is not None:
            other = folder.parent / manifest.beside
            wanted.setdefault(other, read_manifest(other))
    return list(wanted.items())


def _refuse_other_plan(runs: Sequence[Run], request: EvaluationRequest) -> None:
    """Raise RunError for an option that a run was not planned with."""
    for run in runs:
        manifest = run.manifest
        for flag, given, planned in (
            ("--replicates", None if manifest.role == "baseline" else request.replicates, manifest.replicates),
            ("--seed", request.seed, manifest.seed),
            ("--shard", request.shard, manifest.shard),
            ("--case", request.cases or None, manifest.selection),
        ):
            if given is not None and given != planned:
                was = f"with {_wording(planned)}" if planned not in (None, ()) else "without it"
                raise RunError(f"cannot resume {run.folder} with {flag} {_wording(given)}: it was planned {was}")
        for flag, is_given, is_planned in (
            ("--with-baseline", request.with_baseline, manifest.beside is not None),
            ("--failing", request.failing, manifest.asked_again),
            ("--aa", request.aa, manifest.role == "again"),
            ("--draft", request.draft, manifest.draft),
            ("--batch", request.batch, manifest.transport == "batch"),
        ):
            if is_given and not is_planned:
                raise RunError(f"cannot resume {run.folder} with {flag}: it was planned without it")


def _wording(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)
