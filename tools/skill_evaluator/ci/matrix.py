"""The planned runs of components and models with their baselines, and the jobs that make the runs.

A run with very many calls is split into shards. Each run has its own job unless there are very many runs.
"""

import math
import re
import sys
from bisect import insort
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from skill_evaluator.ci.plan import Plan, PlannedBaseline, PlannedJob, PlannedJudge, PlannedRun
from skill_evaluator.errors import PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.runs import find_baseline, fresh_seed
from skill_evaluator.judges.modes.sentences import judge_estimate
from skill_evaluator.library.cases import Case, refuse_unfilled
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Jobs, Limits, Model, Policy
from skill_evaluator.library.options import ComponentsOption, ConfigOption, FixturesOption, options, rare
from skill_evaluator.library.sources import numbered, recorded_in, recorded_rows
from skill_evaluator.library.versions import component_at, find_prompt
from skill_evaluator.providers import Configuration, key_variables, program, read_configuration
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.records.archive import Archive
from skill_evaluator.repository import Repository
from skill_evaluator.runner.journal import ComponentRun, input_digests, slug
from skill_evaluator.runner.prices import CostEstimate, InputSize, estimate, input_sizes, sum_of
from skill_evaluator.runner.schedule import IN_FLIGHT, Shard, limits_under, replicates_of_baseline
from skill_evaluator.stats import by_key, total_or_none
from skill_evaluator.text import is_generated

MAX_JOBS = 256  # GitHub's limit of jobs in one matrix
_MAX_JOB_MINUTES = 300.0  # jobs are stopped after 350 minutes
_SLOW_CALL_S = 10.0


@options
class CiOptions(ComponentsOption, FixturesOption, ConfigOption):
    """The options that `ci plan` and `ci collect` share: the folders, and branches with more records."""

    recorded: tuple[str, ...] = rare("Also read the records on this branch; repeatable.", (), metavar="REF")

    @cached_property
    def configuration(self) -> Configuration:
        """The contents of models.yaml and settings.yaml."""
        return read_configuration(self.config)

    @cached_property
    def repository(self) -> Repository:
        """The git repository of the components. Raise GitError if there is none."""
        return Repository(self.components)

    @cached_property
    def folder(self) -> str:
        """The path of the components folder, relative to the root of the repository."""
        return self.repository.relative_path(self.components)

    def component(self, skill: str) -> Component:
        """Read a component; its version is numbered by the records if the prompt declares none."""
        component = load_component(self.components, skill, self.configuration.settings.limits, self.fixtures)
        return replace(component, version=self.version_of(skill, component.version, component.digests))

    def version_of(self, skill: str, version: str, digests: Mapping[str, str]) -> str:
        """Return `version`. If it is generated, renumber it by the records here and on the `recorded` branches."""
        if not (self.recorded and is_generated(version)):
            return version
        repository, board = self.repository, self.components / skill / "leaderboard.json"
        commits = filter(None, map(repository.commit, self.recorded))
        path = repository.relative_path(board)
        blobs = filter(None, (repository.files(commit, self.folder).get(path) for commit in commits))
        texts = repository.contents(blobs).values()
        return numbered(digests, [*recorded_in(board), *chain.from_iterable(map(recorded_rows, texts))])

    def archive(self, component: Component) -> Archive:
        """Open the archive of a component's records, here and on the `recorded` branches."""
        return Archive(component, self.repository if self.recorded else None, self.recorded)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEvaluation:
    """A run to plan, with its applicable `cases` and the `sizes` of their requests by case id.

    `baseline` is the interleaved baseline with the sizes of its requests. `judge` decides the checks with `expect`.
    """

    run: ComponentRun
    kind: ProviderKind
    cases: Mapping[str, Case]
    sizes: Mapping[str, InputSize]
    baseline: tuple[PlannedBaseline, Mapping[str, InputSize]] | None = None
    judge: tuple[Model, ProviderKind] | None = None

    @property
    def calls_each(self) -> int:
        """The number of calls per case, the baseline's included."""
        replicates = self.run.manifest.replicates
        return replicates + (0 if self.baseline is None else replicates_of_baseline(replicates))

    def estimates(self, case_ids: Collection[str]) -> list[tuple[str, CostEstimate]]:
        """Return (model id, cost estimate) for these cases: of the model with its baseline, and of the judge if any."""
        model, replicates = self.run.model, self.run.manifest.replicates
        requests = [(self.sizes, replicates)]
        if self.baseline is not None:
            requests.append((self.baseline[1], replicates_of_baseline(replicates)))
        parts = [
            estimate({case_id: sizes[case_id] for case_id in case_ids}, model, self.kind, replicates)
            for sizes, replicates in requests
        ]
        estimates = [(model.id, sum_of(parts))]
        if self.judge is not None:
            cases = [self.cases[case_id] for case_id in case_ids]
            estimates.append((self.judge[0].id, judge_estimate(*self.judge, cases, model, self.calls_each)))
        return estimates

    def minutes(self, calls: int) -> float:
        """Estimate the minutes for a number of calls within the model's rate limits, if each takes 10 seconds."""
        limits = self.run.model.limits
        in_flight = 1 if self.kind.one_at_a_time else limits.max_concurrency or IN_FLIGHT
        max_per_minute = limits.requests_per_minute or math.inf
        return max(calls * _SLOW_CALL_S / 60.0 / in_flight, calls / max_per_minute)


def runs_of(wanted: Sequence[PlannedEvaluation], jobs: Jobs) -> list[PlannedRun]:
    """Return the run of each evaluation, split into shards if it has more than `jobs.max_calls` calls."""
    runs = []
    for pair in wanted:
        count = min(len(pair.cases), math.ceil(len(pair.cases) * pair.calls_each / jobs.max_calls))
        runs += [_make_run(pair, Shard(index, count)) for index in range(1, count + 1)]
    return runs


def _make_run(wanted: PlannedEvaluation, shard: Shard) -> PlannedRun:
    run, kind = wanted.run, wanted.kind
    component, model, manifest = run.component, run.model, run.manifest
    case_ids = shard.of(list(wanted.cases))
    estimates = wanted.estimates(case_ids)
    judge, environment, key_variable = None, environment_of(model, kind), key_variable_of(model, kind)
    if wanted.judge is not None:
        judge_key, calls = key_variable_of(*wanted.judge), estimates[-1][1].calls
        judge = PlannedJudge(model_id=wanted.judge[0].id, key_variable=judge_key, calls=calls)
    if component.program is not None:
        environment = environment_of_program(component.name)
        key_variable = program.VARIABLES if component.program.variables else key_variable
    return PlannedRun.view(
        manifest,
        id=f"{component.name}@{slug(model.id)}" + (f"@{shard.index}of{shard.count}" if shard.count > 1 else ""),
        environment=environment,
        key_variable=key_variable,
        shard=str(shard) if shard.count > 1 else None,
        cases={case_id: manifest.cases[case_id] for case_id in case_ids},
        cost_upper_usd=total_or_none(estimate.cost_upper_usd for _, estimate in estimates),
        baseline=None if wanted.baseline is None else wanted.baseline[0],
        judge=judge,
    )


def packed(runs: Sequence[PlannedRun], minutes: Mapping[str, float], jobs: Jobs) -> list[PlannedJob]:
    """Return one job per run. If there are more than `jobs.max_jobs` runs, the shortest runs share jobs.

    Runs of one model share a job before runs that only have their keys in common. A shared job has at most
    `jobs.max_calls` calls and takes at most 300 minutes; `minutes` has the duration by run id. Raise PlanError if there
    are more jobs than GitHub accepts.
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
        planned.append(PlannedJob(id=name, runs=run_ids, environment=environment, keys=first.keys))
    return planned


def _merged(
    runs_by_job: Sequence[list[PlannedRun]], minutes: Mapping[str, float], jobs: Jobs, *, with_model: bool
) -> list[list[PlannedRun]]:
    """Join the two shortest jobs with equal keys (`with_model`: and model) until `max_jobs` remain or no two fit."""
    groups: dict[object, list[tuple[float, int, list[PlannedRun]]]] = {}
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


def outputs_of(plan: Plan) -> dict[str, Any]:
    """Return the outputs of the planning job: the `matrix` of jobs, and the numbers of `jobs` and `faults`."""
    runs = {run.id: run for run in plan.runs}
    matrix = [
        {
            "id": job.id,
            "environment": job.environment,
            "keys": job.keys,
            "runs": "\n".join(f"{run_id} {runs[run_id].skill} {runs[run_id].model_id}" for run_id in job.runs),
        }
        for job in plan.jobs
    ]
    return {"matrix": {"include": matrix}, "jobs": len(plan.jobs), "faults": len(plan.faults)}


def capped(runs: Sequence[PlannedRun], max_cost_usd: float | None) -> list[PlannedRun]:
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
    runs: Sequence[PlannedRun], jobs: Sequence[PlannedJob], configuration: Configuration
) -> list[PlannedRun]:
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


def key_variable_of(model: Model, kind: ProviderKind) -> str:
    """Return the first variable that may hold a model's key. Return "" if the model needs no key."""
    return next(iter(secrets_for(model, kind)), "")


def secrets_for(model: Model, kind: ProviderKind) -> tuple[str, ...]:
    """Return the names of the secrets that may hold a model's key. Return () if the model needs no key."""
    return () if model.auth == "oidc" else key_variables(model, kind)


def environment_of_program(name: str) -> str:
    """Return the CI environment whose secret holds the variables of a component's program."""
    return f"eval-program-{slug(name)}"


def environment_of(model: Model, kind: ProviderKind) -> str:
    """Return the CI environment of a model's key, named after `api_key_env`, or else after provider and place.

    It is `eval-no-key` for a `base_url` that needs no key. With `auth: oidc` the environment holds no key, but is
    part of the identity that the vendor trusts.
    """
    if model.api_key_env is not None:
        name = model.api_key_env.removesuffix("_API_KEY")
    elif model.place is not None:
        name = f"{model.provider}-{model.place}"
    elif model.auth == "key" and kind.key_variables and not key_variables(model, kind):
        name = "no-key"
    else:
        name = model.provider
    return "eval-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def with_baseline(wanted: PlannedEvaluation, archive: Archive, policy: Policy) -> PlannedEvaluation:
    """Return the evaluation with an interleaved baseline and a seed that no record of the two versions has.

    Return it unchanged if there is no baseline or, with a warning, if the baseline cannot be called.
    """
    component, model, manifest = wanted.run.component, wanted.run.model, wanted.run.manifest
    try:
        row = find_baseline(component, model, archive, policy)
        if row is None or model.provider == "replay":  # replay returns the same outputs for every prompt
            return wanted
        commit = find_prompt(component, archive.record(row)).commit
        baseline, _ = component_at(component, commit)
        if is_generated(row.version):  # its number may be in records that only a branch has
            baseline = replace(baseline, version=row.version)
        refuse_unfilled(baseline, wanted.cases.values(), component)
        versions = (baseline.version, component.version)
        seed = fresh_seed(archive, model.id, versions, manifest.seed)
        planned = PlannedBaseline(
            skill_version=baseline.version,
            commit=commit,
            inputs=baseline.prompt.inputs,
            digests=input_digests(baseline, model),
        )
        run = replace(wanted.run, manifest=manifest.model_copy(update={"seed": seed}))
        return replace(wanted, run=run, baseline=(planned, input_sizes(baseline, wanted.cases.values())))
    except SkillEvaluatorError as problem:
        print(f"warning: {component.name} on {model.id} is called without its baseline: {problem}", file=sys.stderr)
        return wanted


def affordable(wanted: Sequence[PlannedEvaluation], cap_usd: float | None) -> list[PlannedEvaluation]:
    """Return the evaluations, without baselines (with a warning) if the cap is enough for the new versions only."""
    reduced = [replace(pair, baseline=None) for pair in wanted]
    without, with_baselines = (
        total_or_none(part.cost_upper_usd for pair in work for _, part in pair.estimates(pair.cases))
        for work in (reduced, wanted)
    )
    if cap_usd is None or without is None or with_baselines is None or not without <= cap_usd < with_baselines:
        return list(wanted)
    print(
        f"warning: baselines are not called: ${cap_usd:,.2f} is enough for the new versions (at most ${without:,.2f}) "
        f"but not for both (${with_baselines:,.2f})",
        file=sys.stderr,
    )
    return reduced
