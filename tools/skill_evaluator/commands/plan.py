"""`skill-evaluator plan`: what a push (or a person) asks to be evaluated, cut into jobs, with the reasons and the cost.

It makes no call and needs no key. Jobs and `collect` go by the plan.json it writes; `--detect` plans a size instead.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from skill_evaluator import __version__
from skill_evaluator.ci.decisions import Decision, PushedComponent, decide, decide_again, grouped, recorded_boards
from skill_evaluator.ci.matrix import affordable, capped, entries_of, outputs_of, sharing
from skill_evaluator.ci.pending import component_of, lying_versions, put_together, read_pending
from skill_evaluator.ci.plan import Chosen, Entry, Fault, Plan, PlannedJudging, Skipped
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.commands.plan_inputs import PlanOptions, read_asked
from skill_evaluator.errors import EXIT_OK, ConfigError, GitError, LeaderboardError, PlanError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Model, load_settings, retiring, select_models
from skill_evaluator.library.scenarios import load_scenario
from skill_evaluator.library.versions import Problem, read_versions
from skill_evaluator.providers import Configuration, read_configuration, why_unbatched
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.selection import newest_of_versions, runs_of_models
from skill_evaluator.reports.ci import plan_page, print_plan
from skill_evaluator.repository import Repository, within
from skill_evaluator.runner.forecasts import forecasts_of
from skill_evaluator.runner.runs import is_invocation, new_invocation
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.runner.spending import month_of
from skill_evaluator.text import nearest

EXAMPLES = (
    "skill-evaluator plan --base origin/main",
    "skill-evaluator plan <component> --model <model> --max-cost 5",
    "skill-evaluator plan --detect 0.05 <component>",
)
_FULL_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The components and models to evaluate, not read yet, with what is wrong and how many need nothing."""

    decisions: Sequence[Decision]
    problems: Sequence[Problem]
    untouched: int = 0


def plan(options: PlanOptions) -> int:
    """Say what is to be evaluated, why, in how many calls and at what cost; write it to plan.json. Makes no call."""
    if options.detect is not None:
        return _size(options, options.detect)
    if options.pending is not None:
        return _tell(_collection(options, options.pending), options)
    if options.drift and (options.base is not None or options.scenario is not None):
        raise PlanError("--drift asks what is recorded: it goes with neither --base nor --scenario")
    refuse_amounts({"--replicates": options.replicates}, None, options.max_cost)
    configuration = read_configuration(options.config)
    models = select_models(configuration.models, options.models)
    if options.scenario is not None:
        load_scenario(options.config, options.scenario, configuration.settings.limits)
    repository = Repository(options.components)
    if options.base is None and not options.drift:
        names = options.names or sorted(path.parent.name for path in options.components.glob("*/prompt.md"))
        if not names:
            raise PlanError(f"{options.components} holds no component; name its folder with --components DIR")
        decisions = [
            Decision(skill=name, model_id=model.id, runs=True, reason="started by hand")
            for name in dict.fromkeys(names)
            for model in models
        ]
        choice = _Choice(decisions=decisions, problems=[])
    else:
        choice = _choose_by_record(options, models, repository)
    made = _cut(options, configuration, models, choice, repository)
    if made.month is not None and not options.dry_run:
        made.month.refuse(made.costs, options.max_cost)
    return _tell(made, options)


def _tell(made: Plan, options: PlanOptions) -> int:
    """Write the plan, show it, and hand it to the jobs that follow."""
    replace_text(options.out, json_text(made.model_dump(mode="json")))
    print_plan(made, options.format)
    if options.platform:
        platform = PLATFORMS[options.platform]
        platform.set_outputs(outputs_of(made, options.legs.split()))
        platform.add_summary(plan_page(made))
        for fault in made.faults:
            platform.annotate("warning", fault.message, fault.file, fault.line)
    return EXIT_OK


def _collection(options: PlanOptions, invocation: str) -> Plan:
    """Return what is left of an earlier plan whose calls are at the vendors; without an entry if all of it is taken."""
    if options.names or options.models or options.drift or options.batch or options.base is not None:
        raise PlanError("--pending plans what is left as it was planned: leave out what says what is to be asked")
    if not is_invocation(invocation):
        raise PlanError(f"--pending '{invocation}' is not <time>-<token>, such as 20261121T093000Z-3fa9c1")
    repository = Repository(options.components)
    folder = repository.place(options.components)
    waiting, problems = read_pending(repository, ("HEAD", *options.recorded), folder)
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
        Skipped(
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


def _choose_by_record(options: PlanOptions, models: Sequence[Model], repository: Repository) -> _Choice:
    """Choose what a push asks for, or with `--drift` what is recorded as it is."""
    head = repository.commit("HEAD")
    if head is None:
        raise GitError(f"{repository.root} has no commit yet")
    folder = repository.place(options.components)
    named = options.base or ""
    base = repository.commit(named)
    is_first_push = not named.strip("0")  # zeros say that there was no commit before
    if base is None and not is_first_push and not _FULL_ID.fullmatch(named):
        raise PlanError(f"--base {named} is no commit here; for a branch that was never pushed give --base 0")
    before, after = read_versions(repository, (base, head), folder)
    unknown = [name for name in options.names if name not in after]
    if unknown:
        raise PlanError(f"no component '{unknown[0]}' in {options.components} at HEAD {nearest(unknown[0], after)}")
    boards, problems = recorded_boards(repository, ("HEAD", *options.recorded), folder)
    waiting, unread = read_pending(repository, ("HEAD", *options.recorded), folder)
    lying, problems = lying_versions(waiting), [*problems, *unread]
    decisions: list[Decision] = []
    untouched = 0
    for name, version in after.items():
        if options.names and name not in options.names:
            continue
        change = PushedComponent(
            after=version,
            before=before.get(name),
            base_known=base is not None or is_first_push,  # an id may be of a commit that is lost
            board=boards.get(name, {}),
        )
        ids = [model.id for model in models]
        decided, wrong = (decide_again(change, ids), []) if options.drift else decide(change, ids)
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


def _cut(
    options: PlanOptions,
    configuration: Configuration,
    models: Sequence[Model],
    choice: _Choice,
    repository: Repository,
) -> Plan:
    now = datetime.datetime.now(datetime.UTC)
    by_id = {model.id: model for model in models}
    asked = read_asked(options, configuration, by_id, choice.decisions, repository)
    running = {(entry.component.name, entry.model.id) for entry in asked.wanted}
    groups = list(grouped(choice.decisions))
    settings = configuration.settings
    batched = {model.id for model in models if options.batch and why_unbatched(model) is None}
    month = month_of(settings, options.config, options.components, repository=repository, refs=options.recorded)
    caps = [*([] if options.max_cost is None else [options.max_cost]), *([] if month is None else [month.left_usd])]
    of_judges = [judging.cost_upper_usd for judging, _ in asked.judgings]
    asked = replace(asked, wanted=affordable(asked.wanted, batched, of_judges, min(caps, default=None)))
    planned: list[Entry | PlannedJudging] = [
        *entries_of(asked.wanted, settings.jobs, batched),
        *(judging for judging, _ in asked.judgings),
    ]
    jobs = capped(planned, options.max_cost)
    entries = [job for job in jobs if isinstance(job, Entry)]
    judgings = [job for job in jobs if isinstance(job, PlannedJudging)]  # which run when all entries have
    return Plan(
        invocation=new_invocation(now),
        created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        trigger="drift" if options.drift else "dispatch" if options.base is None else "push",
        reason=options.reason,
        base=None if options.base is None else repository.commit(options.base),
        head=repository.commit("HEAD"),
        scenario=options.scenario,
        dry_run=options.dry_run,
        entries=sharing(entries, configuration.models, settings.ceilings),
        chosen=[
            Chosen(skill=decision.skill, models=mine, reason=decision.reason)
            for decision, ids in groups
            if decision.runs and (mine := [model_id for model_id in ids if (decision.skill, model_id) in running])
        ],
        skipped=[
            Skipped(skill=decision.skill, models=ids, reason=decision.reason)
            for decision, ids in groups
            if not decision.runs
        ]
        + asked.not_evaluated,
        untouched=choice.untouched,
        faults=[
            *(Fault(file=problem.file, line=problem.line, message=problem.message) for problem in choice.problems),
            *asked.faults,
        ],
        evaluator_version=__version__,
        judgings=sharing(judgings, configuration.models, settings.ceilings),
        unjudged=asked.unjudged,
        forecast=forecasts_of(asked.estimates()) if entries else [],
        month=month,
        retiring=retiring(models),
    )


def _size(options: PlanOptions, drop: float) -> int:
    """Print how many cases and replicates would show a drop, by the newest version of each model."""
    from skill_evaluator.reports.sensitivity import print_sizing  # these import scipy, which takes a second to load
    from skill_evaluator.verdicts.planning.sizing import PlannedDesign, SizingPlan, sizing_of

    if not 0 < drop < 1:  # not a number compares false
        raise ConfigError(f"--detect must be a drop between 0 and 1, such as 0.05, not {drop:g}")
    if len(options.names) != 1:
        raise ConfigError("--detect takes one component: skill-evaluator plan --detect 0.05 <component>")
    settings = load_settings(options.config)
    component = load_component(options.components, options.names[0], settings.limits)
    archive, policy = Archive(component), settings.policy
    where = component.leaderboard_path
    entries = newest_of_versions(runs_of_models(archive.entries, options.models, where))
    if not entries:
        raise LeaderboardError(f"{where} holds no complete run to plan by; evaluate '{component.name}' first")
    records = [archive.record(versions[-1]) for _, versions in sorted(entries.items())]
    design: PlannedDesign = "recorded" if policy.design == "recorded" else "beside"
    models = [sizing_of(record, drop, design, policy.alpha) for record in records]
    plan = SizingPlan(skill=component.name, detect=drop, design=design, alpha=policy.alpha, models=models)
    print_sizing(plan, options.format)
    return EXIT_OK
