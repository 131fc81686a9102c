"""plan.json (the planned runs, their jobs, and the skipped runs) and outcome.json (the results of these runs).

`ci collect` writes outcome.json, `ci report` reads it. In each run there, scored + failed + not run = planned.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, NonNegativeInt

from skill_evaluator import __version__
from skill_evaluator import identifiers as ids
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, PlanError
from skill_evaluator.evaluation.runs import EvaluationRequest, PlannedValues
from skill_evaluator.files import FrozenModel, NestingModel, flat_part, read_json, read_versioned, validated
from skill_evaluator.library import options as cli
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Limits, Model, Policy
from skill_evaluator.library.prompts import DOCUMENT, UsedInputs
from skill_evaluator.library.sources import numbered, recorded_in, recorded_rows
from skill_evaluator.library.versions import Problem
from skill_evaluator.providers import Configuration, key_variables, read_configuration
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.records.archive import Archive
from skill_evaluator.repository import Repository
from skill_evaluator.runner.journal import MANIFEST, Manifest, RunPlan, run_id_of, slug
from skill_evaluator.runner.prices import Forecast
from skill_evaluator.runner.schedule import Shard, replicates_of_baseline
from skill_evaluator.stats import by_key
from skill_evaluator.text import is_generated, nearest
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.decide.rules import exit_code_of

PLAN_VERSION = 1
OUTCOME = "outcome.json"
RECORDS = "records"  # folder with files COMPONENT/RUN_ID.json
Status = Literal["complete", "incomplete", "refused", "skipped", "missing"]
RequestT = TypeVar("RequestT", bound=EvaluationRequest)


@cli.options
class CiOptions(cli.ComponentsOption, cli.FixturesOption, cli.ConfigOption):
    """The options that `ci plan` and `ci collect` share: the folders, and branches with more records."""

    recorded: tuple[str, ...] = cli.rare("Also read the records on this branch; repeatable.", (), metavar="REF")

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
        """Read a component. Replace a generated version, such as `0.3.0+3af3d45f`, by the result of `version_of`."""
        component = load_component(self.components, skill, self.configuration.settings.limits, self.fixtures)
        return replace(component, version=self.version_of(skill, component.version, component.digests))

    def version_of(self, skill: str, version: str, digests: Mapping[str, str]) -> str:
        """Return `version`. Renumber a generated version by the records of the checkout and the `recorded` branches."""
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


class PlannedBaseline(FrozenModel):
    """The interleaved baseline of a planned run, and the commit of its prompt.

    `inputs` are the names of the inputs that the prompt uses. `digests` are those of the prompt, schema, scenario and
    model settings, by name.
    """

    skill_version: ids.VersionText
    commit: ids.Commit
    inputs: UsedInputs = (DOCUMENT,)
    digests: dict[str, ids.Digest]


class PlannedJudge(FrozenModel):
    """The judge of a run's `expect` checks, the variable with its key, and its maximum number of calls."""

    model_id: ids.ModelId
    key_variable: str
    calls: NonNegativeInt


class PlannedRun(RunPlan):
    """A run of the plan, or one shard of it. The costs include the judge's.

    `environment` is the CI environment that may hold the provider's key, `key_variable` the variable of the key ("" if
    the provider needs none). `limits` has the run's share of the rate limits by model id.
    """

    id: ids.FileName
    environment: ids.Label
    key_variable: str
    cost_upper_usd: ids.Usd | None
    max_cost_usd: ids.Usd | None = None
    limits: dict[ids.ModelId, Limits] = Field(default={}, exclude_if=lambda limits: not limits)
    baseline: PlannedBaseline | None = None
    judge: PlannedJudge | None = None

    @property
    def calls(self) -> int:
        """The number of calls to the run's own model, the interleaved baseline included."""
        baseline_replicates = 0 if self.baseline is None else replicates_of_baseline(self.replicates)
        return len(self.cases) * (self.replicates + baseline_replicates)

    @property
    def all_calls(self) -> int:
        """The number of calls to the run's own model, plus the maximum number to its judge."""
        return self.calls + (0 if self.judge is None else self.judge.calls)

    @property
    def keys(self) -> list[str]:
        """The names of the environment variables with the API keys of the run's model and judge."""
        variables = (self.key_variable, "" if self.judge is None else self.judge.key_variable)
        return list(dict.fromkeys(filter(None, variables)))

    def run_id(self, invocation: str, mark: str = "") -> str:
        """Return the run id, which is also the name of the run folder. For the baseline, `mark` is "baseline"."""
        shard = None if self.shard is None else Shard.parse(self.shard)
        return run_id_of(invocation, self.skill, self.model_id, shard, mark)


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
    """Return the name of the CI environment of a model's key, such as `eval-openai`.

    The name is made from `api_key_env`, or else from the provider and the cloud vendor (`place`), if any. If the
    `base_url` needs no key, the name is `eval-no-key`. With `auth: oidc`, the environment stores no key, but the vendor
    accepts only tokens with the name of the environment.
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


class PlannedJob(FrozenModel):
    """A job of the CI matrix: the ids of its runs, in order, and the environment variables that hold API keys."""

    id: ids.FileName
    runs: list[ids.FileName]
    environment: ids.Label
    keys: list[str]


class OnModels(FrozenModel):
    """A component and models, with the reason to evaluate or to skip it on them."""

    skill: str
    models: list[str]  # one model, until `grouped` merges equal reasons
    reason: str


class Event(FrozenModel):
    """The event that started planning: a push or pull request, a manual start ("dispatch"), or a drift check."""

    trigger: Literal["push", "dispatch", "drift"]
    base: ids.Commit | None  # commit before the push; None for other triggers, or if it is unknown
    head: ids.Commit | None  # None if the repository has no commit


class Decisions(FrozenModel):
    """The components to evaluate and to skip, with the reasons, and the errors that prevent runs."""

    chosen: list[OnModels]
    skipped: list[OnModels]
    untouched: NonNegativeInt = 0  # unchanged components without a planned run
    faults: list[Problem]  # errors that prevent runs


class Plan(NestingModel):
    """The file plan.json. With the trigger `drift`, recorded versions run again to detect a changed model."""

    plan_version: int = PLAN_VERSION
    invocation: ids.RunId
    created: ids.Timestamp
    event: Event = flat_part("event")
    dry_run: bool = False
    # runs of an open pull request; their records are not published
    draft: bool = Field(default=False, exclude_if=lambda draft: not draft)
    runs: list[PlannedRun]
    jobs: list[PlannedJob]
    decisions: Decisions = flat_part("decisions")
    evaluator_version: ids.Label | None = None
    forecast: list[Forecast] = []
    retiring: list[str] = Field(default=[], exclude_if=lambda lines: not lines)

    def job_of(self, run: PlannedRun) -> str:
        """Return the id of the job that makes a run, or the id of the run if no job does."""
        return next((job.id for job in self.jobs if run.id in job.runs), run.id)

    def manifests(self) -> Iterator[tuple[PlannedRun, Manifest]]:
        """Yield each run with its manifest. If it has a baseline, yield the run again with the baseline's manifest."""
        for run in self.runs:
            new = Manifest.view(
                run,
                run_id=run.run_id(self.invocation),
                created=self.created,
                evaluator_version=self.evaluator_version or __version__,
            )
            if run.baseline is None:
                yield run, new
                continue
            baseline_fields = {
                "run_id": run.run_id(self.invocation, ids.BASELINE),
                "skill_version": run.baseline.skill_version,
                "replicates": replicates_of_baseline(run.replicates),
                "inputs": run.baseline.inputs,
                "digests": run.baseline.digests,
                "role": ids.BASELINE,
                "prompt_commit": run.baseline.commit,
                "beside": new.run_id,
            }
            yield run, new.model_copy(update={"beside": baseline_fields["run_id"]})
            yield run, new.model_copy(update=baseline_fields)


def outputs_of(plan: Plan) -> dict[str, Any]:
    """Return the outputs of the CI job that plans: the matrix of jobs, the number of jobs and the number of errors."""
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
    return {"matrix": {"include": matrix}, "jobs": len(plan.jobs), "faults": len(plan.decisions.faults)}


def read_plan(path: Path) -> Plan:
    """Read a plan. Raise PlanError if it is missing, invalid or of a newer version."""
    return read_versioned(Plan, path, "plan_version", PLAN_VERSION, PlanError)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def planned_request(request: RequestT, plan: Plan, run_id: str) -> RequestT:
    """Return the request that makes a planned run, or resumes the run if its folder exists.

    Raise PlanError if the plan has no such run, or if the request has no `results` folder. Raise PlanError, too, if the
    request names the component or model of a different run.
    """
    runs = {run.id: run for run in plan.runs}
    if run_id not in runs:
        raise PlanError(f"the plan has no run '{run_id}' {nearest(run_id, list(runs))}")
    run = runs[run_id]
    if request.skill not in ("", run.skill) or request.models not in ((), (run.model_id,)):
        raise PlanError(
            f"{run.id} of the plan is component '{run.skill}' on model {run.model_id}: "
            "omit the component and --model, or name these"
        )
    if request.results is None:
        raise PlanError("--planned requires --results DIR, the folder for the run")
    folder = request.results / run.run_id(plan.invocation)
    has_begun = (folder / MANIFEST).exists() and not plan.dry_run
    return replace(
        request,
        skill=run.skill,
        models=(run.model_id,),
        replicates=run.replicates,
        seed=run.seed,
        shard=run.shard,
        max_cost=run.max_cost_usd,
        dry_run=plan.dry_run,
        with_baseline=run.baseline is not None,
        run=str(folder) if has_begun else request.run,
        planned=PlannedValues(
            invocation=plan.invocation,
            baseline_commit=None if run.baseline is None else run.baseline.commit,
            limits=run.limits,
        ),
        leaderboard=False,
    )


class Figures(FrozenModel):
    """Mean scores of a run, in which unreadable outputs count as 0. `accuracy` is the mean of the primary metric."""

    skill_version: ids.VersionText
    accuracy: ids.Share | None
    ci95: tuple[float, float] | None  # None below five cases
    reproducibility: float | None


class LostValue(FrozenModel):
    """An example of a lost field: its value in a case's most frequent output before and after, shortened."""

    case_id: str
    path: str
    before: str
    after: str


class CallCounts(FrozenModel):
    """The calls of a run: the planned calls, the calls with a scored output, and the failed calls by kind."""

    planned: NonNegativeInt
    scored: NonNegativeInt = 0
    failed: dict[str, NonNegativeInt] = {}


class RunOutcome(NestingModel):
    """The result of one planned run. `run_id` is None if the run has no record.

    Status `refused`: the version was recorded meanwhile with a different prompt. Status `skipped`: the job made no
    call, for example because a key is missing. Status `missing`: no output arrived, or no output was scored.
    """

    skill: ids.ComponentName
    model_id: ids.ModelId
    status: Status
    reason: str
    counts: CallCounts = flat_part("counts")
    run_id: ids.RunId | None = None
    is_baseline: bool = False
    primary_metric: str | None = None
    figures: Figures | None = None
    cost_usd: ids.Usd | None = None
    hit_rate: ids.Share | None = Field(default=None, exclude_if=lambda rate: rate is None)
    lost_values: list[LostValue] = Field(default=[], exclude_if=lambda values: not values)


class Outcome(FrozenModel):
    """The file outcome.json.

    `verdicts` compares new versions with recorded lower versions. `drift` compares new runs of recorded
    versions with earlier runs. `faults` has the errors that prevented runs.
    """

    invocation: ids.RunId
    head: ids.Commit | None
    dry_run: bool
    draft: bool = Field(default=False, exclude_if=lambda draft: not draft)
    runs: list[RunOutcome]
    faults: list[Problem] = []
    verdicts: list[ComparisonResult] = []
    drift: list[ComparisonResult] = []

    @property
    def complete(self) -> bool:
        """Whether every run is complete or was skipped."""
        return all(run.status in ("complete", "skipped") for run in self.runs)

    def exit_code(self, policy: Policy) -> int:
        """Return 3 if a model drifted, else the code of the verdicts, else 4 for faults and missing runs, else 0."""
        if any(model.moved for result in self.drift for model in result.models):
            return EXIT_REGRESSED
        code = exit_code_of(self.verdicts, policy) if self.verdicts else EXIT_OK
        # the job of an incomplete run has failed itself
        is_missing = not self.dry_run and any(run.status == "missing" for run in self.runs)
        return code or (EXIT_INCOMPLETE if self.faults or is_missing else EXIT_OK)

    def verdict_text(self, run: RunOutcome) -> str | None:
        """Return the verdict on a run ("moved" or "no drift" for a drift plan), or None if it was not compared."""
        drift = next(filter(None, (result.on_run(run.run_id) for result in self.drift)), None)
        if drift is not None:
            return "moved" if drift.moved else "no drift"
        models = (result.on_run(run.run_id) for result in self.verdicts if result.skill == run.skill)
        return next((model.verdict for model in models if model is not None), None)


def read_outcome(collected: Path, plan: Path | None = None) -> Outcome:
    """Read the outcome that `collect` wrote into a folder. If there is none, every run of `plan` is missing.

    Raise PlanError if the outcome is invalid, or missing without a plan.
    """
    path = collected / OUTCOME
    if plan is None or path.exists():
        return validated(Outcome, read_json(path, PlanError), path, PlanError)
    made = read_plan(plan)
    calls_by_run = by_key(((run.skill, run.model_id), run.calls) for run in made.runs)
    reason = "its results could not be collected; see the log of the run"
    runs = [
        RunOutcome(skill=skill, model_id=model, status="missing", reason=reason, counts=CallCounts(planned=sum(calls)))
        for (skill, model), calls in calls_by_run.items()
    ]
    return Outcome.view(made, runs=runs)
