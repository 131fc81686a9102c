"""What a push (or a person) asks to be evaluated → plan.json: every job, with the reasons and the cost.

No call is made and no key is needed. What a push asks for is decided without reading a case.
"""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from skill_evaluator import __version__
from skill_evaluator.ci.decisions import Decision, PushedComponent, decide, decide_again, grouped, recorded_boards
from skill_evaluator.ci.judging import plan_judgings
from skill_evaluator.ci.matrix import Checkout, Wanted, affordable, beside_baselines, capped, entries_of, sharing
from skill_evaluator.ci.pending import component_of, lying_versions, put_together, read_pending
from skill_evaluator.ci.plan import Entry, OnModels, Plan, PlannedJudging
from skill_evaluator.ci.publishing import attested_records, needing_no_proof
from skill_evaluator.errors import GitError, NotEvaluatedError, PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.designs import fresh_seed
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model, retiring, select_models, settings_at
from skill_evaluator.library.scenarios import apply_scenario, load_scenario
from skill_evaluator.library.versions import Problem, read_versions
from skill_evaluator.providers import Configuration, why_unbatched
from skill_evaluator.records.archive import Archive, why_refused
from skill_evaluator.records.pinned import read_pinned
from skill_evaluator.records.selection import versions_patched_to
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner.prices import Estimate, forecasts_of, input_sizes, not_applicable
from skill_evaluator.runner.runs import is_invocation, new_invocation
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.runner.spending import month_of
from skill_evaluator.text import counted, listed, nearest

_FULL_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is to be planned. `base` None: started by hand, so that the policy of versions does not apply."""

    names: tuple[str, ...]
    base: str | None
    models: tuple[str, ...]
    replicates: int | None
    seed: int | None
    max_cost: float | None
    scenario: str | None
    drift: bool
    batch: bool
    dry_run: bool
    reason: str


def make_plan(request: PlanRequest, checkout: Checkout) -> Plan:
    """Return what is to be evaluated, why, in how many calls and at what cost; raise where it cannot be asked."""
    if request.drift and (request.base is not None or request.scenario is not None):
        raise PlanError("--drift asks what is recorded: it goes with neither --base nor --scenario")
    refuse_amounts({"--replicates": request.replicates}, None, request.max_cost)
    models = select_models(checkout.configuration.models, request.models)
    if request.scenario is not None:
        load_scenario(checkout.config, request.scenario, checkout.configuration.settings.limits)
    if request.base is None and not request.drift:
        names = request.names or sorted(path.parent.name for path in checkout.components.glob("*/prompt.md"))
        if not names:
            raise PlanError(f"{checkout.components} holds no component; name its folder with --components DIR")
        decisions = [
            Decision(skill=name, model_id=model.id, runs=True, reason="started by hand")
            for name in dict.fromkeys(names)
            for model in models
        ]
        choice = _Choice(decisions=decisions, problems=[])
    else:
        choice = _choose_by_record(request, models, checkout)
    plan = _cut(request, models, choice, checkout)
    if plan.month is not None and not request.dry_run:
        plan.month.refuse(plan.costs, request.max_cost)
    return plan


def plan_collection(invocation: str, components: Path, recorded: Sequence[str]) -> Plan:
    """Return what is left of an earlier plan whose calls are at the vendors; without an entry if all of it is taken."""
    if not is_invocation(invocation):
        raise PlanError(f"--pending '{invocation}' is not <time>-<token>, such as 20261121T093000Z-3fa9c1")
    repository = Repository(components)
    folder = repository.place(components)
    waiting, problems = read_pending(repository, ("HEAD", *recorded), folder)
    broken = [each for each in problems if PurePosixPath(each.file).name.startswith(invocation)]
    if broken:
        raise PlanError(broken[0].message)
    mine = [each for each in waiting if each.invocation == invocation]
    here = [
        each for each in mine if repository.commit(each.head or "") and repository.is_ancestor(str(each.head), "HEAD")
    ]
    if here:
        return put_together(here)
    now = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
    elsewhere = [
        OnModels(
            skill=entry.skill, models=[entry.model_id], reason="it was planned at a commit that is not on this branch"
        )
        for each in mine
        for entry in each.entries
    ]
    return Plan(
        invocation=invocation,
        created=now,
        trigger="dispatch",
        base=None,
        head=None,
        entries=[],
        chosen=[],
        skipped=elsewhere,
        faults=[],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Everything that is to run, read: what is evaluated or not, what is judged after it or not, and what is wrong."""

    wanted: list[Wanted] = field(default_factory=list)
    judgings: list[tuple[PlannedJudging, Estimate]] = field(default_factory=list)
    unjudged: list[OnModels] = field(default_factory=list)
    faults: list[Problem] = field(default_factory=list)
    not_evaluated: list[OnModels] = field(default_factory=list)

    def estimates(self) -> list[tuple[str, Estimate]]:
        """Return what each evaluation and judging takes, with the id of the model that is asked."""
        evaluations = [(pair.model.id, pair.estimate(pair.cases)) for pair in self.wanted]
        return [*evaluations, *((judging.model_id, size) for judging, size in self.judgings)]


def _read_asked(
    request: PlanRequest, checkout: Checkout, models: Mapping[str, Model], decisions: Sequence[Decision]
) -> _Asked:
    """Read every component and model to be evaluated; one that is wrong is a fault, unless a person named it."""
    asked = _Asked()
    repository, policy = Repository(checkout.components), checkout.configuration.settings.policy
    skills = list(dict.fromkeys(decision.skill for decision in decisions if decision.runs))
    unproven = _unproven(request, checkout, repository, skills)
    for skill in skills:
        if unproven.get(skill):
            asked.faults.extend(unproven[skill])
            continue
        try:
            component = apply_scenario(checkout.component(skill), checkout.config, request.scenario)
            cases = load_cases(component, checkout.fixtures)
            archive = checkout.archive(component)
            why = why_refused(archive.entries, component.version, component.digests["prompt"])
            if why is not None:
                raise PlanError(f"'{skill}' {why}")
            pinned = read_pinned(component.folder, skill) if policy.judge_of(skill) else {}
        except SkillEvaluatorError as problem:
            if skill in request.names:
                raise
            if isinstance(problem, NotEvaluatedError):
                ids = [decision.model_id for decision in decisions if decision.runs and decision.skill == skill]
                asked.not_evaluated.append(OnModels(skill=skill, models=ids, reason=str(problem)))
                continue
            place = repository.place(checkout.components / skill / "prompt.md")
            asked.faults.append(Problem(file=place, line=1, message=str(problem)))
            continue
        chosen = [models[decision.model_id] for decision in decisions if decision.runs and decision.skill == skill]
        plain, left_out = _on_models(chosen, component, cases, archive, request, checkout.configuration)
        asked.not_evaluated.extend(left_out)
        if policy.design == "beside" and request.scenario is None and not request.drift:
            plain = beside_baselines(plain, cases, checkout, fresh=request.seed is None)
        asked.wanted.extend(plain)
        if request.drift:
            continue
        judgings, unjudged = plan_judgings(plain, cases, pinned, checkout.configuration, request.scenario)
        asked.judgings.extend(judgings)
        asked.unjudged.extend(unjudged)
    return asked


def _unproven(
    request: PlanRequest, checkout: Checkout, repository: Repository, skills: Sequence[str]
) -> dict[str, list[Problem]]:
    """Return by component the records that no trusted job wrote, as the settings before the push say; see lint."""
    base = repository.commit(request.base or "")
    settings = checkout.configuration.settings if base is None else settings_at(repository, base, checkout.config)
    trusted, folder = settings.attestations, repository.place(checkout.components)
    if checkout.platform is None or trusted.since is None:
        return {}
    old = needing_no_proof(trusted, repository, folder, skills)
    return {
        skill: attested_records(checkout.platform, checkout.components, skill, folder, old, trusted)[1]
        for skill in skills
    }


def _on_models(
    models: Sequence[Model],
    component: Component,
    cases: Sequence[Case],
    archive: Archive,
    request: PlanRequest,
    configuration: Configuration,
) -> tuple[list[Wanted], list[OnModels]]:
    """Return a component on each model that a case is applicable to, and where cases are left out, and why."""
    sizes = input_sizes(component, cases)
    wanted, skipped = [], []
    for model in models:
        kind = configuration.kinds[model.provider]
        left_out = not_applicable(cases, sizes, model, kind)
        if left_out:
            named = listed([f"{case_id} ({why})" for case_id, why in left_out.items()])
            reason = f"{len(left_out)} of {counted(len(cases), 'case')} not applicable: {named}"
            skipped.append(OnModels(skill=component.name, models=[model.id], reason=reason))
        applicable = {case.id: case.digest for case in cases if case.id not in left_out}
        seed = configuration.settings.seed if request.seed is None else request.seed
        if request.drift and request.seed is None:
            seed = fresh_seed(archive, model.id, versions_patched_to(archive.entries, component.version), seed)
        if applicable:
            wanted.append(
                Wanted(
                    component=component,
                    model=model,
                    kind=kind,
                    cases=applicable,
                    not_applicable=left_out,
                    sizes=sizes,
                    replicates=request.replicates or configuration.settings.replicates,
                    seed=seed,
                )
            )
    return wanted, skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The components and models to evaluate, not read yet, with what is wrong and how many need nothing."""

    decisions: Sequence[Decision]
    problems: Sequence[Problem]
    untouched: int = 0


def _choose_by_record(request: PlanRequest, models: Sequence[Model], checkout: Checkout) -> _Choice:
    """Choose what a push asks for, or with `--drift` what is recorded as it is."""
    repository = Repository(checkout.components)
    head = repository.commit("HEAD")
    if head is None:
        raise GitError(f"{repository.root} has no commit yet")
    folder = repository.place(checkout.components)
    named = request.base or ""
    base = repository.commit(named)
    is_first_push = not named.strip("0")  # zeros say that there was no commit before
    if base is None and not is_first_push and not _FULL_ID.fullmatch(named):
        raise PlanError(f"--base {named} is no commit here; for a branch that was never pushed give --base 0")
    before, after = read_versions(repository, (base, head), folder)
    unknown = [name for name in request.names if name not in after]
    if unknown:
        raise PlanError(f"no component '{unknown[0]}' in {checkout.components} at HEAD {nearest(unknown[0], after)}")
    boards, problems = recorded_boards(repository, ("HEAD", *checkout.recorded), folder)
    waiting, unread = read_pending(repository, ("HEAD", *checkout.recorded), folder)
    lying, problems = lying_versions(waiting), [*problems, *unread]
    decisions: list[Decision] = []
    untouched = 0
    for name, version in after.items():
        if request.names and name not in request.names:
            continue
        change = PushedComponent(
            after=version,
            before=before.get(name),
            base_known=base is not None or is_first_push,  # an id may be of a commit that is lost
            board=boards.get(name, {}),
        )
        ids = [model.id for model in models]
        decided, wrong = (decide_again(change, ids), []) if request.drift else decide(change, ids)
        problems += wrong
        at_vendor = {model_id: lying.get((name, model_id, version.version or "")) for model_id in ids}
        decided = [
            replace(each, runs=False, reason=why) if (why := at_vendor[each.model_id]) else each for each in decided
        ]
        if before.get(name) == version and not any(each.runs or at_vendor[each.model_id] for each in decided):
            untouched += 1
        else:
            decisions += decided
    broken = {problem.file for problem in problems}
    unsure = {component_of(problem.file) for problem in unread}  # what they hold may be at a vendor
    return _Choice(
        decisions=[
            decision
            for decision in decisions
            if decision.skill not in unsure and within(folder, f"{decision.skill}/leaderboard.json") not in broken
        ],
        problems=problems,
        untouched=untouched,
    )


def _cut(request: PlanRequest, models: Sequence[Model], choice: _Choice, checkout: Checkout) -> Plan:
    now = datetime.datetime.now(datetime.UTC)
    by_id = {model.id: model for model in models}
    asked = _read_asked(request, checkout, by_id, choice.decisions)
    repository, configuration = Repository(checkout.components), checkout.configuration
    running = {(entry.component.name, entry.model.id) for entry in asked.wanted}
    groups = list(grouped(choice.decisions))
    settings = configuration.settings
    batched = {model.id for model in models if request.batch and why_unbatched(model) is None}
    month = month_of(settings, checkout.config, checkout.components, repository=repository, refs=checkout.recorded)
    caps = [*([] if request.max_cost is None else [request.max_cost]), *([] if month is None else [month.left_usd])]
    of_judges = [judging.cost_upper_usd for judging, _ in asked.judgings]
    asked = replace(asked, wanted=affordable(asked.wanted, batched, of_judges, min(caps, default=None)))
    planned: list[Entry | PlannedJudging] = [
        *entries_of(asked.wanted, settings.jobs, batched),
        *(judging for judging, _ in asked.judgings),
    ]
    jobs = capped(planned, request.max_cost)
    entries = [job for job in jobs if isinstance(job, Entry)]
    judgings = [job for job in jobs if isinstance(job, PlannedJudging)]  # which run when all entries have
    return Plan(
        invocation=new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        trigger="drift" if request.drift else "dispatch" if request.base is None else "push",
        reason=request.reason,
        base=None if request.base is None else repository.commit(request.base),
        head=repository.commit("HEAD"),
        scenario=request.scenario,
        dry_run=request.dry_run,
        entries=sharing(entries, configuration.models, settings.ceilings),
        chosen=[
            OnModels(skill=decision.skill, models=mine, reason=decision.reason)
            for decision, ids in groups
            if decision.runs and (mine := [model_id for model_id in ids if (decision.skill, model_id) in running])
        ],
        skipped=[
            OnModels(skill=decision.skill, models=ids, reason=decision.reason)
            for decision, ids in groups
            if not decision.runs
        ]
        + asked.not_evaluated,
        untouched=choice.untouched,
        faults=[
            *choice.problems,
            *asked.faults,
        ],
        evaluator_version=__version__,
        judgings=sharing(judgings, configuration.models, settings.ceilings),
        unjudged=asked.unjudged,
        forecast=forecasts_of(asked.estimates()) if entries else [],
        month=month,
        retiring=retiring(models),
    )
