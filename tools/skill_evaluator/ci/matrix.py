"""Components and models to evaluate → jobs and their matrix, each with its baseline beside it where that can be asked.

A component on a model is one job, or several with a shard of the cases each when there are many calls. The commit of a
baseline's prompt is planned, since a job sees neither the branch of records nor the plan.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, Self, TypeVar

from skill_evaluator.ci.plan import Entry, Plan, PlannedBaseline
from skill_evaluator.display.options import ComponentsOption, ConfigOption, FixturesOption, options, rare
from skill_evaluator.errors import PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.designs import find_baseline, fresh_seed, past_prompt_of
from skill_evaluator.library.cases import Case, refuse_unfilled
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Jobs, Limits, Model
from skill_evaluator.library.sources import numbered, recorded_in, recorded_rows
from skill_evaluator.library.versions import component_at, find_prompt
from skill_evaluator.providers import Configuration, key_variables, program, read_configuration
from skill_evaluator.providers.base import ProviderKind
from skill_evaluator.records.archive import Archive
from skill_evaluator.repository import Repository
from skill_evaluator.runner.prices import Estimate, InputSize, estimate, input_sizes, sum_of
from skill_evaluator.runner.runs import input_digests, slug
from skill_evaluator.runner.schedule import Shard, replicates_beside, under
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import is_generated
from skill_evaluator.verdicts.history.component import RecordedComponent

REST = "rest"


@options
class Checkout(ComponentsOption, FixturesOption, ConfigOption):
    """The work tree that a job sees, its configuration, and the branches that hold records beside it."""

    recorded: tuple[str, ...] = rare("A branch that holds records beside the work tree; repeatable.", (), metavar="REF")

    @cached_property
    def configuration(self) -> Configuration:
        """What models.yaml and settings.yaml say."""
        return read_configuration(self.config)

    def component(self, skill: str) -> Component:
        """Read a component."""
        component = load_component(self.components, skill, self.configuration.settings.limits, self.fixtures)
        return replace(component, version=self.version_of(skill, component.version, component.digests))

    def version_of(self, skill: str, version: str, digests: Mapping[str, str]) -> str:
        """Return a version as the records here and on the branches number it, if the prompt declares none."""
        if not (self.recorded and is_generated(version)):
            return version
        repository, board = Repository(self.components), self.components / skill / "leaderboard.json"
        folder, path = repository.place(self.components), repository.place(board)
        commits = filter(None, map(repository.commit, self.recorded))
        blobs = filter(None, (repository.files(commit, folder).get(path) for commit in commits))
        texts = repository.contents(blobs).values()
        return numbered(digests, [*recorded_in(board), *chain.from_iterable(map(recorded_rows, texts))])

    def archive(self, component: Component) -> Archive:
        """Return what is recorded of a component, here and on the branches."""
        return Archive(component, Repository(self.components) if self.recorded else None, self.recorded)

    def recorded_component(self, skill: str) -> RecordedComponent:
        """Return a component with what is recorded of it, here and on the branches."""
        component, settings = self.component(skill), self.configuration.settings
        archive = self.archive(component)
        return RecordedComponent(component=component, archive=archive, settings=settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A component to evaluate on a model; `cases` is id → digest, `sizes` is id → size of the request.

    `not_applicable` has the cases that this model is not asked, and why.

    `beside` is the baseline to ask with it, and `sizes_beside` are those of its requests.
    """

    component: Component
    model: Model
    kind: ProviderKind
    cases: Mapping[str, str]
    sizes: Mapping[str, InputSize]
    replicates: int
    seed: int
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    beside: PlannedBaseline | None = None
    sizes_beside: Mapping[str, InputSize] = field(default_factory=dict)

    @property
    def calls_each(self) -> int:
        """The number of calls that one case takes."""
        return self.replicates + (0 if self.beside is None else replicates_beside(self.replicates))

    def estimate(self, case_ids: Collection[str], *, batch: bool = False) -> Estimate:
        """Estimate what its calls on these cases take, call by call or in a batch."""
        asked = [(self.sizes, self.replicates)]
        if self.beside is not None:
            asked.append((self.sizes_beside, replicates_beside(self.replicates)))
        return sum_of(
            [
                estimate({case: sizes[case] for case in case_ids}, self.model, self.kind, replicates, batch=batch)
                for sizes, replicates in asked
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Work that may be cut into shards between its pieces, of `calls_each` calls each."""

    pieces: int
    calls_each: int


class MatrixJob(Protocol):
    """The fields that the jobs of evaluations and of audits have in common."""

    id: str
    model_id: str
    provider: str
    environment: str
    key_variable: str
    shard: str | None
    cost_upper_usd: float | None
    max_cost_usd: float | None
    limits: Limits | None

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Return the job with some fields changed."""


JobT = TypeVar("JobT", bound=MatrixJob)


def entries_of(wanted: Sequence[Wanted], jobs: Jobs, batched: Collection[str] = ()) -> list[Entry]:
    """Return the jobs, at most `jobs.max_jobs`: one a component and model, or more while there is room.

    `batched` are the models whose calls go in batches. Raise PlanError when components × models alone are too many.
    """
    if len(wanted) > jobs.max_jobs:
        components = len({pair.component.name for pair in wanted})
        raise PlanError(
            f"{components} components on their models are {len(wanted)} jobs, more than the {jobs.max_jobs} a run may "
            "have; name fewer components or models, and start the rest in a second run"
        )
    shards = shard_counts([Cut(pieces=len(pair.cases), calls_each=pair.calls_each) for pair in wanted], jobs)
    return [
        _make_entry(pair, Shard(index, count) if count > 1 else None, is_batched=pair.model.id in batched)
        for pair, count in zip(wanted, shards, strict=True)
        for index in range(1, count + 1)
    ]


def outputs_of(plan: Plan, own: Collection[str]) -> dict[str, Any]:
    """Return what the job that plans hands to those that follow; `own` are environments with a job of their own."""
    entries = (
        {
            **job_words(entry),
            "skill": entry.skill,
            "replicates": str(entry.replicates),
            "seed": str(entry.seed),
            "baseline": "" if entry.baseline is None else entry.baseline.commit,
            "history": "0" if entry.baseline else "1",
            "transport": entry.transport,
        }
        for entry in plan.entries
    )
    judgings = (
        {**job_words(judging), "answers": f"{job_id(judging.skill, judging.candidate)}{{,@*of*}}"}
        for judging in plan.judgings
    )
    return {
        "legs": legs_of(entries, own),
        "jobs": len(plan.entries),
        "judge_legs": legs_of(judgings, own),
        "invocation": plan.invocation,
        "head": plan.head or "",
    }


def legs_of(jobs: Iterable[dict[str, str]], own: Collection[str]) -> dict[str, dict[str, list[dict[str, str]]]]:
    """Return the matrices of a workflow by environment, for those in `own`; that of all other jobs is called `rest`."""
    legs: dict[str, dict[str, list[dict[str, str]]]] = {}
    for job in jobs:
        leg = job["environment"] if job["environment"] in own else REST
        legs.setdefault(leg, {"include": []})["include"].append(job)
    return legs


def job_id(skill: str, model_id: str, part: str = "") -> str:
    """Return the name of a job on a component and model, or of its part, such as `1of2`."""
    return f"{skill}@{slug(model_id)}" + (f"@{part}" if part else "")


def job_words(job: MatrixJob) -> dict[str, str]:
    """Return what every job of a workflow must know, as text."""
    return {
        "id": job.id,
        "model": job.model_id,
        "provider": job.provider,
        "shard": job.shard or "",
        "environment": job.environment,
        "key_variable": job.key_variable,
        "lock": "requirements-leg-lock.txt" if job.key_variable else "requirements-lock.txt",  # a vendor's needs less
        "max_cost": "" if job.max_cost_usd is None else f"{job.max_cost_usd:.6f}",
        "limits": "" if job.limits is None else job.limits.model_dump_json(exclude_none=True),
    }


def capped(entries: Sequence[JobT], max_cost_usd: float | None) -> list[JobT]:
    """Return the jobs with their parts of a cap on the cost of all, in proportion to what each can cost at most.

    Raise PlanError when a job's price is unknown, since the cap could not be kept.
    """
    if max_cost_usd is None:
        return list(entries)
    unpriced = next((entry for entry in entries if entry.cost_upper_usd is None), None)
    if unpriced is not None:
        raise PlanError(
            f"a cap on the cost cannot be kept: no price is known for '{unpriced.model_id}'; "
            "give it price: {input, output} in models.yaml, or leave it out"
        )
    total = sum(entry.cost_upper_usd or 0.0 for entry in entries)
    share = min(1.0, max_cost_usd / total) if total else 1.0
    return [
        entry.model_copy(update={"max_cost_usd": math.floor((entry.cost_upper_usd or 0.0) * share * 1e6) / 1e6})
        for entry in entries
    ]


def sharing(jobs: Sequence[JobT], models: Iterable[Model], ceilings: Mapping[str, Limits]) -> list[JobT]:
    """Return jobs that run side by side with their parts of their models' limits, and of their providers' ceilings."""
    limits = {model.id: model.limits for model in models}
    of_model, of_provider = Counter(job.model_id for job in jobs), Counter(job.provider for job in jobs)
    shared = []
    for job in jobs:
        own = under(Limits(), limits.get(job.model_id), of_model[job.model_id])
        share = under(own, ceilings.get(job.provider), of_provider[job.provider])
        shared.append(job.model_copy(update={"limits": None if share == Limits() else share}))
    return shared


def shard_counts(cuts: Sequence[Cut], jobs: Jobs) -> list[int]:
    """Return the number of jobs of each: as many as its calls need, or fewer in proportion until all fit."""
    most_calls = jobs.max_calls
    while True:
        counts = [min(cut.pieces, math.ceil(cut.pieces * cut.calls_each / most_calls)) for cut in cuts]
        if sum(counts) <= jobs.max_jobs:
            return counts
        most_calls *= 2


def _make_entry(wanted: Wanted, shard: Shard | None, *, is_batched: bool) -> Entry:
    component, model, kind = wanted.component, wanted.model, wanted.kind
    tested = component.program
    mine = list(wanted.cases) if shard is None else list(shard.of(list(wanted.cases)))
    return Entry(
        id=job_id(component.name, model.id, "" if shard is None else f"{shard.index}of{shard.count}"),
        skill=component.name,
        skill_version=component.version,
        model_id=model.id,
        provider=model.provider,
        environment=environment_of(model, kind) if tested is None else environment_of_program(component.name),
        key_variable=program.VARIABLES if tested and tested.variables else key_variable_of(model, kind),
        shard=None if shard is None else str(shard),
        replicates=wanted.replicates,
        seed=wanted.seed,
        cases={case_id: wanted.cases[case_id] for case_id in mine},
        inputs=component.prompt.inputs,
        not_applicable=dict(wanted.not_applicable),
        digests=input_digests(component, model),
        cost_upper_usd=wanted.estimate(mine, batch=is_batched).cost_upper_usd,
        baseline=wanted.beside,
        transport="batch" if is_batched else "direct",
    )


def key_variable_of(model: Model, kind: ProviderKind) -> str:
    """Return the variable in which a model's provider looks for its key first; empty when no secret is needed."""
    return next(iter(secrets_for(model, kind)), "")


def secrets_for(model: Model, kind: ProviderKind) -> tuple[str, ...]:
    """Return the names of the secrets that may hold a model's key; nothing for a model without a key."""
    return () if model.auth == "oidc" else key_variables(model, kind)


def environment_of_program(name: str) -> str:
    """Return the CI environment whose secret holds the variables of a component's program."""
    return f"eval-program-{slug(name)}"


def environment_of(model: Model, kind: ProviderKind) -> str:
    """Return the CI environment that holds a model's key: one a provider, or one a key where the model names its own.

    A model that needs no key, such as one on a server of one's own, must not see its provider's key. With `auth: oidc`
    it holds none, but is part of the identity that the vendor trusts.
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


def beside_baselines(
    wanted: Iterable[Wanted], cases: Sequence[Case], checkout: Checkout, *, fresh: bool
) -> list[Wanted]:
    """Return work with the baseline of each beside it; as it is, with a warning, where that cannot be asked.

    `fresh`: with a seed that neither version was asked with.
    """
    paired = []
    for alone in wanted:
        try:
            paired.append(_beside_baseline(alone, cases, checkout, fresh))
        except SkillEvaluatorError as problem:
            where = f"{alone.component.name} on {alone.model.id}"
            print(f"warning: {where} is asked without its baseline: {problem}", file=sys.stderr)
            paired.append(alone)
    return paired


def affordable(
    wanted: Sequence[Wanted], batched: Collection[str], others: Iterable[float | None], cap_usd: float | None
) -> list[Wanted]:
    """Return work without baselines, with a warning, where a cap is enough for it and the `others` costs alone."""
    alone = [replace(each, beside=None, sizes_beside={}) for each in wanted]
    if cap_usd is None or alone == wanted:
        return list(wanted)
    rest = total_or_none(others)
    one, both = (
        total_or_none(
            [rest, *(each.estimate(each.cases, batch=each.model.id in batched).cost_upper_usd for each in work)]
        )
        for work in (alone, wanted)
    )
    if one is None or both is None or not one <= cap_usd < both:
        return list(wanted)
    print(
        f"warning: baselines are not asked: ${cap_usd:,.2f} is enough for the new versions (at most ${one:,.2f}), not "
        f"for both (${both:,.2f})",
        file=sys.stderr,
    )
    return alone


def _beside_baseline(wanted: Wanted, cases: Sequence[Case], checkout: Checkout, fresh: bool) -> Wanted:
    component, model = wanted.component, wanted.model
    archive = checkout.archive(component)
    entry = find_baseline(component, model, archive, checkout.configuration.settings.policy)
    if entry is None or model.provider == "replay":  # which answers every prompt alike
        return wanted
    commit = find_prompt(component, past_prompt_of(archive.record(entry))).commit
    again, _ = component_at(component, commit)
    if is_generated(entry.version):  # whose number may be on a branch of records alone
        again = replace(again, version=entry.version)
    refuse_unfilled(again, cases, component)
    seed = fresh_seed(archive, model.id, (again.version, component.version), wanted.seed) if fresh else wanted.seed
    return replace(
        wanted,
        seed=seed,
        beside=PlannedBaseline(
            skill_version=again.version, commit=commit, inputs=again.prompt.inputs, digests=input_digests(again, model)
        ),
        sizes_beside=input_sizes(again, cases),
    )
