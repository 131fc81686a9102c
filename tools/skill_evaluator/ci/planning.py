"""Plan the runs of a push or of a manual start: plan.json with every job, the reasons and the cost.

Planning makes no call and needs no key. The runs of a push depend on its version bump (base to head) and on the
leaderboards, so the next push makes up for a lost run. A pull request that changes code, workflows or settings is
refused, because the jobs have keys.
"""

import datetime
import math
import re
import sys
from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from skill_evaluator import __version__
from skill_evaluator.ci import plan as ci
from skill_evaluator.errors import GitError, NotEvaluatedError, PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.runs import find_baseline, fresh_seed, judge_of
from skill_evaluator.judges.modes.sentences import judge_estimate
from skill_evaluator.library import options as cli
from skill_evaluator.library.cases import Case, load_cases, refuse_unfilled
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Jobs, Limits, Model, Policy, retiring, select_models
from skill_evaluator.library.sources import component_names, prompt_file
from skill_evaluator.library.versions import (
    Bump,
    ComponentVersion,
    Problem,
    breaks_contract,
    bump,
    component_at,
    find_prompt,
    needs_evaluation,
    read_version,
    read_versions,
    version_before,
    versioning_problems,
)
from skill_evaluator.providers import Configuration, Kinds, program, with_program
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.records.archive import Archive, RecordedRun, recorded_runs, refusal_reason
from skill_evaluator.records.record import short_digest
from skill_evaluator.records.selection import versions_patched_to
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner.journal import RunPlan, RunSize, input_digests, new_invocation, plan_run, slug
from skill_evaluator.runner.prices import CostEstimate, InputSize, estimate, forecasts_of, input_sizes, sum_of
from skill_evaluator.runner.schedule import IN_FLIGHT, Shard, limits_under, refuse_amounts, replicates_of_baseline
from skill_evaluator.stats import by_key, total_or_none
from skill_evaluator.text import counted, is_generated, listed, nearest

_FULL_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_REFUSED = (".evaluator/*", ".github/*", "tools/*", "*.py", ".gitmodules")
_CAN_DECLARE_CHECKS = ("datasets.json", "meta.json", "*checks*", "cases.*")
MAX_JOBS = 256  # GitHub's limit of jobs in one matrix
_MAX_JOB_MINUTES = 300.0  # jobs are stopped after 350 minutes
_SLOW_CALL_S = 10.0


@cli.options
class PlanRequest(ci.CiOptions, cli.FormatOption):
    """The options of `ci plan`. Without `base` and `drift`, components run even if their version is not new."""

    names: tuple[str, ...] = cli.argument(cli.SKILLS, (), "COMPONENT")
    base: str | None = cli.option("Plan components with a new version since this commit.", metavar="COMMIT")
    models: cli.OnlyModels = ()
    replicates: int | None = cli.option("Calls per case and model; default 10 (settings.yaml).", None, "-n")
    max_cost: float | None = cli.option("Maximum cost of all jobs together, in USD.", metavar="USD")
    pull_request: str | None = cli.rare("Merge commit of an open PR to plan as drafts.", metavar="COMMIT")
    drift: bool = cli.rare("Plan recorded versions again, to detect a changed model.", False)
    dry_run: bool = cli.rare("Plan jobs that print their maximum cost and make no call.", False)
    platform: cli.PlatformName | None = cli.rare("On GitHub Actions: also write outputs, summary, annotations.")
    out: Path = cli.rare("File to write the plan to.", Path("plan.json"), metavar="FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEvaluation:
    """A planned run before it is split into shards: its `cases`, and the `sizes` of the requests by case id.

    The requests of the interleaved baseline have `baseline_sizes`. `judge` decides whether an output agrees with the
    `expect` sentences of the case. `kinds` has the provider kinds of the model and the judge.
    """

    run: ci.PlannedRun
    model: Model
    kinds: Kinds
    cases: Mapping[str, Case]
    sizes: Mapping[str, InputSize]
    baseline_sizes: Mapping[str, InputSize] = field(default_factory=dict)
    judge: Model | None = None

    @property
    def kind(self) -> ProviderKind:
        """The provider kind of the model."""
        return self.kinds[self.model.provider]

    def estimates(self, case_ids: Collection[str]) -> list[tuple[str, CostEstimate]]:
        """Return (model id, cost estimate) for these cases: of the model with its baseline, and of the judge if any."""
        requests = [(self.sizes, self.run.replicates)]
        if self.run.baseline is not None:
            requests.append((self.baseline_sizes, replicates_of_baseline(self.run.replicates)))
        parts = [
            estimate({case_id: sizes[case_id] for case_id in case_ids}, self.model, self.kind, replicates)
            for sizes, replicates in requests
        ]
        estimates = [(self.model.id, sum_of(parts))]
        if self.judge is not None:
            cases = [self.cases[case_id] for case_id in case_ids]
            kind = self.kinds[self.judge.provider]
            calls_each = sum(replicates for _, replicates in requests)
            estimates.append((self.judge.id, judge_estimate(self.judge, kind, cases, self.model, calls_each)))
        return estimates

    def minutes(self, calls: int) -> float:
        """Estimate the minutes for a number of calls within the model's rate limits, if each takes 10 seconds."""
        limits = self.model.limits
        in_flight = 1 if self.kind.one_at_a_time else limits.max_concurrency or IN_FLIGHT
        max_per_minute = limits.requests_per_minute or math.inf
        return max(calls * _SLOW_CALL_S / 60.0 / in_flight, calls / max_per_minute)


def make_plan(request: PlanRequest) -> ci.Plan:
    """Return the plan for a request. Raise a SkillEvaluatorError if it cannot be made."""
    if request.drift and (request.base is not None or request.pull_request is not None):
        raise PlanError("--drift runs the recorded versions: it cannot be combined with --base or --pull-request")
    refuse_amounts({"--replicates": request.replicates}, None, request.max_cost)
    models = select_models(request.configuration.models, request.models)
    repository, limits = request.repository, request.configuration.settings.jobs
    changed, refused = set[str](), list[Problem]()
    if request.pull_request is not None:
        changed = _changed_paths(repository, request.pull_request)
        refused = list(_refusals(changed, repository.relative_path(request.config / "settings.yaml"), limits))
        caps = [cap for cap in (limits.max_cost, request.max_cost) if cap is not None]
        request = replace(request, base=repository.commit("HEAD^1"), max_cost=min(caps, default=None))
    event = ci.Event(
        trigger="drift" if request.drift else "dispatch" if request.base is None else "push",
        base=None if request.base is None else repository.commit(request.base),
        head=repository.commit("HEAD"),
    )
    decisions = ci.Decisions(chosen=[], skipped=[], faults=refused)
    if event.trigger == "dispatch" and not refused:
        decisions = ci.Decisions(chosen=list(_named(request, models)), skipped=[], faults=[])
    elif not refused:
        decisions = _decide_all(event, request, models)
    evaluations, decisions = _read_components(decisions, request, changed)
    max_cost = limits.max_cost if request.max_cost is None else request.max_cost
    evaluations = affordable(evaluations, max_cost)
    by_run = {(each.run.skill, each.model.id): each for each in evaluations}
    runs = capped(shards_of(evaluations, limits), max_cost)
    jobs = packed(runs, {run.id: by_run[run.skill, run.model_id].minutes(run.calls) for run in runs}, limits)
    now = datetime.datetime.now(datetime.UTC)
    return ci.Plan(
        invocation=new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        event=event,
        dry_run=request.dry_run,
        draft=request.pull_request is not None,
        runs=with_limits(runs, jobs, request.configuration),
        jobs=jobs,
        decisions=decisions,
        evaluator_version=__version__,
        forecast=forecasts_of(part for each in evaluations for part in each.estimates(each.cases)) if runs else [],
        retiring=retiring(models),
    )


def _named(request: PlanRequest, models: Sequence[Model]) -> Iterator[ci.OnModels]:
    names = request.names or component_names(request.components)
    if not names:
        raise PlanError(f"{request.components} holds no component; name its folder with --components DIR")
    for name in dict.fromkeys(names):
        for model_id in _models_of(read_version(request.components / name, name), models, request):
            yield ci.OnModels(skill=name, models=[model_id], reason="started by hand")


def _models_of(version: ComponentVersion | None, models: Sequence[Model], request: PlanRequest) -> list[str]:
    if version is None or version.program is None:
        return [model.id for model in models]
    return [] if request.models else [program.MODEL.id]


def _decide_all(event: ci.Event, request: PlanRequest, models: Sequence[Model]) -> ci.Decisions:
    """Decide whether each component runs on each model. Collect errors of versions and of unreadable leaderboards."""
    repository, folder = request.repository, request.folder
    if event.head is None:
        raise GitError(f"{repository.root} has no commit yet; commit the components first")
    base_commit, base_known = _base_of(event.base, request)
    before, after = read_versions(repository, (base_commit, event.head), folder)
    unknown = [name for name in request.names if name not in after]
    if unknown:
        raise PlanError(f"no component '{unknown[0]}' in {request.components} at HEAD {nearest(unknown[0], after)}")
    recorded, unreadable = recorded_runs(repository, ("HEAD", *request.recorded), folder)
    chosen, skipped, untouched, faults = list[ci.OnModels](), list[ci.OnModels](), 0, [*unreadable]
    for name, version in after.items():
        path = within(folder, f"{name}/leaderboard.json")
        if (request.names and name not in request.names) or any(problem.file == path for problem in unreadable):
            continue
        if version.version:
            digests = {"prompt": version.prompt or "", "schema": version.schema or ""}
            version = replace(version, version=request.version_of(name, version.version, digests))
        earlier = version_before(before, version)
        version_problems = [] if request.drift else list(versioning_problems(earlier, version))
        faults += version_problems
        runs = [run for each in (name, *version.formerly) for run in recorded.get(each, ())]
        newest = {run.model_id: run for run in sorted(runs, key=lambda run: run.version_order)}
        component_runs, component_skips = list[ci.OnModels](), list[ci.OnModels]()
        for model_id in _models_of(version, models, request):
            is_run, reason = False, "invalid version, see the errors"
            if request.drift:
                is_run, reason = _decide_drift_run(version.version, newest.get(model_id))
            elif not version_problems:
                is_run, reason = decide_run(earlier, version, newest.get(model_id), base_known=base_known)
            decision = ci.OnModels(skill=name, models=[model_id], reason=reason)
            (component_runs if is_run else component_skips).append(decision)
        if before.get(name) == version and not component_runs:
            untouched += 1
        else:
            chosen += component_runs
            skipped += component_skips
    skipped += _deleted_cases(event, request, {decision.skill for decision in chosen})
    return ci.Decisions(chosen=chosen, skipped=skipped, untouched=untouched, faults=faults)


def _base_of(base_commit: str | None, request: PlanRequest) -> tuple[str | None, bool]:
    """Return the commit to compare HEAD with, and whether the base of the push is known.

    `base_commit` is the commit of `request.base`, or None if it is not in this clone. A base of zeros means the first
    push of a branch: there is no commit, but the base is known. After a force push, the clone may lack the base: there
    is no commit, and the base is unknown.
    """
    base = request.base or ""
    is_first_push = not base.strip("0")
    is_id = _FULL_ID.fullmatch(base) is not None
    if base_commit is None and not is_first_push and not is_id:
        raise PlanError(f"--base {base} is not a commit here; run git fetch, or use --base 0 for a new branch")
    # a branch means its merge base with the head
    commit = base_commit if base_commit is None or is_id else request.repository.merge_base(base_commit)
    return commit, base_commit is not None or is_first_push


def _deleted_cases(event: ci.Event, request: PlanRequest, running: Collection[str]) -> Iterator[ci.OnModels]:
    repository, fixtures = request.repository, request.fixtures or request.components.parent / "fixtures"
    base, head = event.base, event.head
    if base is None or head is None or not fixtures.resolve().is_relative_to(repository.root.resolve()):
        return
    folder = repository.relative_path(fixtures)
    missing = repository.files(base, folder).keys() - repository.files(head, folder).keys()
    deleted = by_key((PurePosixPath(path).relative_to(folder).parts[0], path) for path in sorted(missing))
    for name, paths in deleted.items():
        if name not in running and (request.components / name / "prompt.md").exists():
            reason = f"cases changed without a new version: {counted(len(paths), 'file')} deleted, such as {paths[0]}"
            yield ci.OnModels(skill=name, models=[model.id for model in request.configuration.models], reason=reason)


def _read_components(
    decisions: ci.Decisions, request: PlanRequest, changed: set[str]
) -> tuple[list[PlannedEvaluation], ci.Decisions]:
    """Read the chosen components. Return the evaluations and the updated decisions.

    `chosen` keeps only evaluated runs; skipped runs and errors are added. Raise the error of a named component.
    """
    evaluations, skipped, faults = list[PlannedEvaluation](), [*decisions.skipped], [*decisions.faults]
    for skill, ids in by_key((decision.skill, decision.models[0]) for decision in decisions.chosen).items():
        try:
            component = request.component(skill)
            archive = request.archive(component)
            cases = load_cases(component)
            refusal = refusal_reason(archive.entries, component.version, component.digests["prompt"])
            if refusal is not None:
                raise PlanError(f"component '{skill}' {refusal}")
            _refuse_code(component, cases, request.folder, changed)
        except SkillEvaluatorError as problem:
            if skill in request.names:
                raise
            empty = [f"the submodule {path} is empty" for path in request.repository.empty_submodules]
            is_new = not (request.components / skill / "leaderboard.json").exists()
            if isinstance(problem, NotEvaluatedError) and is_new and not empty:
                skipped.append(ci.OnModels(skill=skill, models=ids, reason=str(problem)))
            else:
                path = prompt_file(request.components, skill, request.folder)
                faults.append(Problem(file=path, line=1, message="; ".join([str(problem), *empty])))
        else:
            evaluations += _evaluations(request, component, archive, cases, ids, skipped)
    evaluated = {(each.run.skill, each.model.id) for each in evaluations}
    chosen = [each for each in decisions.chosen if (each.skill, each.models[0]) in evaluated]
    update = {"chosen": grouped(chosen), "skipped": grouped(skipped), "faults": faults}
    return evaluations, decisions.model_copy(update=update)


def grouped(decisions: Iterable[ci.OnModels]) -> list[ci.OnModels]:
    """Merge decisions with the same component and reason into one with all their models, in order."""
    groups = by_key(((each.skill, each.reason), model_id) for each in decisions for model_id in each.models)
    return [ci.OnModels(skill=skill, models=models, reason=reason) for (skill, reason), models in groups.items()]


def _evaluations(
    request: PlanRequest,
    component: Component,
    archive: Archive,
    cases: Sequence[Case],
    ids: Sequence[str],
    skipped: list[ci.OnModels],
) -> Iterator[PlannedEvaluation]:
    """Yield the evaluation of a component on each model, on the cases that are applicable to the model.

    Add a model to `skipped`, with the reason, if a case is not applicable to it or if it has no judge.
    """
    configuration, sizes = with_program(request.configuration, component), input_sizes(component, cases)
    settings, models = configuration.settings, {model.id: model for model in configuration.models}
    size = RunSize(replicates=request.replicates or settings.replicates, seed=settings.seed)
    selected = [models[model_id] for model_id in ids if model_id in models]
    for model in selected:
        calls = plan_run(component, cases, model, configuration.kinds[model.provider], size, sizes)
        if calls.not_applicable:
            cases_with_reasons = listed([f"{case_id} ({reason})" for case_id, reason in calls.not_applicable.items()])
            reason = (
                f"{len(calls.not_applicable)} of {counted(len(cases), 'case')} not applicable: {cases_with_reasons}"
            )
            skipped.append(ci.OnModels(skill=component.name, models=[model.id], reason=reason))
        applicable = {case.id: case for case in cases if case.id in calls.cases}
        if not applicable:
            continue
        try:
            judge, _ = judge_of(component, applicable.values(), (model,), request.configuration.models, settings)
        except SkillEvaluatorError as problem:
            skipped.append(ci.OnModels(skill=component.name, models=[model.id], reason=str(problem)))
            continue
        run = whole_run(calls, component, model, configuration.kinds[model.provider])
        if request.drift:
            seed = fresh_seed(archive, model.id, versions_patched_to(archive.entries, component.version), size.seed)
            run = run.model_copy(update={"seed": seed})
        evaluation = PlannedEvaluation(
            run=run,
            model=model,
            kinds=configuration.kinds,
            cases=applicable,
            sizes=sizes,
            judge=judge,
        )
        if settings.policy.design == "beside" and not request.drift:
            evaluation = with_baseline(evaluation, component, archive, settings.policy)
        yield evaluation


def whole_run(calls: RunPlan, component: Component, model: Model, kind: ProviderKind) -> ci.PlannedRun:
    """Return the planned run of all cases. Its baseline, judge and cost are set later."""
    environment, key_variable = ci.environment_of(model, kind), ci.key_variable_of(model, kind)
    if component.program is not None:
        environment = ci.environment_of_program(component.name)
        key_variable = program.VARIABLES if component.program.variables else key_variable
    return ci.PlannedRun.view(
        calls,
        id=f"{component.name}@{slug(model.id)}",
        environment=environment,
        key_variable=key_variable,
        cost_upper_usd=None,
    )


def with_baseline(
    evaluation: PlannedEvaluation, component: Component, archive: Archive, policy: Policy
) -> PlannedEvaluation:
    """Add an interleaved baseline to an evaluation, and a seed that neither the baseline nor the new version used.

    If there is no baseline, return the evaluation unchanged. If the baseline cannot be called, also print a warning.
    """
    run, model = evaluation.run, evaluation.model
    try:
        row = find_baseline(component, model, archive, policy)
        if row is None or model.provider == "replay":  # replay returns the same outputs for every prompt
            return evaluation
        record = archive.record(row)
        commit = find_prompt(component, record, record.git.prompt_commit).commit
        baseline, _ = component_at(component, commit)
        if is_generated(row.version):  # its number may be in records that only a branch has
            baseline = replace(baseline, version=row.version)
        refuse_unfilled(baseline, evaluation.cases.values(), component)
        versions = (baseline.version, component.version)
        seed = fresh_seed(archive, model.id, versions, run.seed)
        planned = ci.PlannedBaseline(
            skill_version=baseline.version,
            commit=commit,
            inputs=baseline.prompt.inputs,
            digests=input_digests(baseline, model),
        )
        run = run.model_copy(update={"seed": seed, "baseline": planned})
        return replace(evaluation, run=run, baseline_sizes=input_sizes(baseline, evaluation.cases.values()))
    except SkillEvaluatorError as problem:
        print(f"warning: {component.name} with {model.id} is called without its baseline: {problem}", file=sys.stderr)
        return evaluation


def affordable(evaluations: Sequence[PlannedEvaluation], cap_usd: float | None) -> list[PlannedEvaluation]:
    """Drop the baselines, with a warning, if the cap is enough only without them. Otherwise change nothing."""
    reduced = [replace(each, run=each.run.model_copy(update={"baseline": None})) for each in evaluations]
    without, with_baselines = (
        total_or_none(part.cost_upper_usd for each in work for _, part in each.estimates(each.cases))
        for work in (reduced, evaluations)
    )
    if cap_usd is None or without is None or with_baselines is None or not without <= cap_usd < with_baselines:
        return list(evaluations)
    print(
        f"warning: baselines are not called: ${cap_usd:,.2f} is enough for the new versions (at most ${without:,.2f}) "
        f"but not for both (${with_baselines:,.2f})",
        file=sys.stderr,
    )
    return reduced


def shards_of(evaluations: Sequence[PlannedEvaluation], jobs: Jobs) -> list[ci.PlannedRun]:
    """Return the runs with their costs. Split runs with more than `jobs.max_calls` calls into shards."""
    runs = []
    for evaluation in evaluations:
        count = min(len(evaluation.cases), math.ceil(evaluation.run.calls / jobs.max_calls))
        runs += [_shard_of(evaluation, Shard(index, count)) for index in range(1, count + 1)]
    return runs


def _shard_of(evaluation: PlannedEvaluation, shard: Shard) -> ci.PlannedRun:
    run, case_ids, judge = evaluation.run, shard.of(list(evaluation.cases)), None
    estimates, is_whole = evaluation.estimates(case_ids), shard.count == 1
    if evaluation.judge is not None:
        judge_key = ci.key_variable_of(evaluation.judge, evaluation.kinds[evaluation.judge.provider])
        calls = estimates[-1][1].calls
        judge = ci.PlannedJudge(model_id=evaluation.judge.id, key_variable=judge_key, calls=calls)
    return ci.PlannedRun.view(
        run,
        id=run.id if is_whole else f"{run.id}@{shard.index}of{shard.count}",
        shard=None if is_whole else str(shard),
        cases={case_id: run.cases[case_id] for case_id in case_ids},
        judge=judge,
        cost_upper_usd=total_or_none(estimate.cost_upper_usd for _, estimate in estimates),
    )


def packed(runs: Sequence[ci.PlannedRun], minutes: Mapping[str, float], jobs: Jobs) -> list[ci.PlannedJob]:
    """Return one job per run. If there are more than `jobs.max_jobs` runs, the shortest runs share jobs.

    Runs of the same model are joined first, then runs with the same keys. A shared job has at most `jobs.max_calls`
    calls and takes at most 300 minutes. `minutes` has the duration by run id. Raise PlanError if there are more jobs
    than GitHub accepts.
    """
    runs_by_job = [[run] for run in runs]
    for with_model in (True, False):
        runs_by_job = _merged(runs_by_job, minutes, jobs, with_model=with_model)
    if len(runs_by_job) > MAX_JOBS:
        raise PlanError(
            f"{len(runs)} runs make {len(runs_by_job)} jobs of at most {jobs.max_calls:,} calls, but GitHub accepts at "
            f"most {MAX_JOBS} jobs; name fewer components or models, or raise jobs.max_calls in settings.yaml"
        )
    shared = by_key((job_runs[0].environment, job_runs) for job_runs in runs_by_job if len(job_runs) > 1)
    planned = []
    for job_runs in runs_by_job:
        first = job_runs[0]
        name, environment, alike = first.id, first.environment, shared.get(first.environment, [])
        if job_runs in alike:
            name = f"{environment}@{alike.index(job_runs) + 1}of{len(alike)}"
        run_ids = [run.id for run in sorted(job_runs, key=lambda run: -minutes[run.id])]  # longest first
        planned.append(ci.PlannedJob(id=name, runs=run_ids, environment=environment, keys=first.keys))
    return planned


def _merged(
    runs_by_job: Sequence[list[ci.PlannedRun]], minutes: Mapping[str, float], jobs: Jobs, *, with_model: bool
) -> list[list[ci.PlannedRun]]:
    """Join short jobs with the same API keys until `max_jobs` remain. If `with_model`, join only jobs of one model."""
    groups: dict[object, list[tuple[float, int, list[ci.PlannedRun]]]] = {}
    for number, job_runs in enumerate(runs_by_job):
        group = (job_runs[0].environment, *job_runs[0].keys, job_runs[0].model_id if with_model else None)
        insort(groups.setdefault(group, []), (sum(minutes[run.id] for run in job_runs), number, job_runs))
    for _ in range(len(runs_by_job) - jobs.max_jobs):
        fitting = [
            group
            for group in groups.values()
            if len(group) > 1
            and group[0][0] + group[1][0] <= _MAX_JOB_MINUTES
            and sum(run.all_calls for run in (*group[0][2], *group[1][2])) <= jobs.max_calls
        ]
        if not fitting:
            break
        shortest = min(fitting, key=lambda group: group[0][0] + group[1][0])
        (length, number, job_runs), (second_length, _, second_runs) = shortest[:2]
        shortest[:2] = []
        insort(shortest, (length + second_length, number, [*job_runs, *second_runs]))
    entries = sorted((entry for group in groups.values() for entry in group), key=lambda entry: entry[1])
    return [job_runs for _, _, job_runs in entries]


def capped(runs: Sequence[ci.PlannedRun], max_cost_usd: float | None) -> list[ci.PlannedRun]:
    """Return the runs, each capped at its share of `max_cost_usd`, in proportion to its maximum cost.

    Raise PlanError if `max_cost_usd` is not None and the price of a model is unknown.
    """
    if max_cost_usd is None:
        return list(runs)
    for run in runs:
        if run.cost_upper_usd is None:
            raise PlanError(
                f"the cost cannot be capped because the price of model '{run.model_id}' is unknown; "
                "set price: {input, output} in models.yaml, or plan without this model"
            )
    costs = [run.cost_upper_usd or 0.0 for run in runs]
    share = min(1.0, max_cost_usd / sum(costs)) if any(costs) else 1.0
    caps = [math.floor(cost * share * 1e6) / 1e6 for cost in costs]
    return [run.model_copy(update={"max_cost_usd": cap}) for run, cap in zip(runs, caps, strict=True)]


def with_limits(
    runs: Sequence[ci.PlannedRun], jobs: Sequence[ci.PlannedJob], configuration: Configuration
) -> list[ci.PlannedRun]:
    """Return the runs with their rate limits: concurrent jobs share the limits of a model and of a provider."""
    ceilings, models = configuration.settings.ceilings, {model.id: model for model in configuration.models}
    models_of_run = {
        run.id: [models[each] for each in (run.model_id, run.judge and run.judge.model_id) if each in models]
        for run in runs
    }
    called = [{model.id for run_id in job.runs for model in models_of_run[run_id]} for job in jobs]
    of_model = Counter(model_id for ids in called for model_id in ids)
    of_provider = Counter(provider for ids in called for provider in {models[model_id].provider for model_id in ids})
    shared = []
    for run in runs:
        limits: dict[str, Limits] = {}
        for model in models_of_run[run.id]:
            share = limits_under(Limits(), model.limits, of_model[model.id])
            share = limits_under(share, ceilings.get(model.provider), of_provider[model.provider])
            limits |= {} if share == Limits() else {model.id: share}
        shared.append(run.model_copy(update={"limits": limits}))
    return shared


def decide_run(
    before: ComponentVersion | None, after: ComponentVersion, recorded: RecordedRun | None, *, base_known: bool
) -> tuple[bool, str]:
    """Return whether a component runs on a model, and the reason.

    The component at the head of the push (`after`) is compared with the recorded version. Without a record, it is
    compared with the component at the base (`before`). If the base is not known either (after a force push), the
    component does not run.
    """
    version = str(after.version)
    if recorded is not None:
        step = bump(recorded.version, version)
        if step is Bump.SAME:
            return False, f"{version} is recorded"
        if step is Bump.LOWERED:
            return False, f"{version} is below the recorded {recorded.version}"
        if not needs_evaluation(step):
            return False, f"{step} since the recorded {recorded.version}"
        schema = after.schema and short_digest(after.schema)
        recorded_schema = recorded.digests.get("schema")
        schema_changed = None not in (recorded_schema, schema) and recorded_schema != schema
        if schema_changed and not breaks_contract(recorded.version, version):
            return False, f"the schema differs from that of the recorded {recorded.version}: bump the MAJOR version"
        of_this_push = before is None or needs_evaluation(bump(before.version, version))
        lost = "" if of_this_push else f" (no run of {version} is complete)"
        return True, f"{step} {recorded.version} → {version}{lost}"
    if not base_known:
        return False, "no record of this model, and the base of this push is unknown; start it by hand"
    if before is not None and before.version is None:
        return True, f"{version}, after a version that could not be read"
    old = None if before is None else before.version
    step = bump(old, version)
    if step is Bump.NEW:
        return True, f"new component at {version}"
    if needs_evaluation(step):
        return True, f"{step} {old} → {version}"
    change = "unchanged" if step is Bump.SAME else f"{step} {old} → {version}"
    return False, f"{change}; no record of this model yet: start it by hand to have one"


def _decide_drift_run(version: str | None, recorded: RecordedRun | None) -> tuple[bool, str]:
    step = None if recorded is None or version is None else bump(recorded.version, version)
    if recorded is None or step not in (Bump.SAME, Bump.PATCH):
        return False, f"{version} is not recorded"
    return True, f"{version} is recorded" if step is Bump.SAME else f"PATCH since the recorded {recorded.version}"


def _changed_paths(repository: Repository, commit: str) -> set[str]:
    merge, base = repository.commit(commit), repository.commit(f"{commit}^1")
    if merge is None or base is None:
        raise GitError(f"--pull-request {commit}: this clone has no such merge commit; fetch it")
    return {path for path, _ in repository.files(base, "").items() ^ repository.files(merge, "").items()}


def _refusals(changed: set[str], settings: str, jobs: Jobs) -> Iterator[Problem]:
    refused = sorted(path for path in changed if any(fnmatch(path, pattern) for pattern in _REFUSED))
    if refused:
        message = (
            f"the pull request changes {listed(refused, 3)}: files of .evaluator, .github and tools and Python files "
            "decide which code runs with keys; merge them first"
        )
        yield Problem(file=refused[0], line=1, message=message)
    if jobs.max_cost is None:
        message = "a pull request is evaluated only up to a cap: set jobs: {max_cost: USD} in settings.yaml"
        yield Problem(file=settings, line=1, message=message)


def _refuse_code(component: Component, cases: Sequence[Case], folder: str, changed: set[str]) -> None:
    changed_here = {path for path in changed if path.startswith(f"{within(folder, component.name)}/")}
    if component.program is not None and changed_here:
        raise PlanError(
            f"component '{component.name}' is a program, which would run with keys; merge the pull request first"
        )
    related = changed_here | {path for path in changed if component.files.cases.fixtures in PurePosixPath(path).parts}
    declaring = {
        path for path in related if any(fnmatch(PurePosixPath(path).name, name) for name in _CAN_DECLARE_CHECKS)
    }
    if declaring and any(check.kind == "python" for case in cases for check in case.checks):
        raise PlanError(
            f"component '{component.name}' has checks in Python, whose code would run with keys, and the pull "
            f"request changes {listed(sorted(declaring), 3)}; merge the pull request first"
        )
