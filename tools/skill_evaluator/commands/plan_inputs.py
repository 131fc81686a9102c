"""The options of `plan`, and everything that is to run, read: components with their cases, on each of their models.

Its own module because what a push asks for is decided without reading a case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skill_evaluator.ci.decisions import Decision
from skill_evaluator.ci.judging import plan_judgings
from skill_evaluator.ci.matrix import Recordings, Wanted, beside_baselines
from skill_evaluator.ci.plan import Fault, PlannedJudging, Skipped
from skill_evaluator.commands.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    Legs,
    Names,
    OnlyModels,
    PlatformOption,
    Reason,
    flag,
    option,
    options,
)
from skill_evaluator.errors import NotEvaluatedError, PlanError, SkillEvaluatorError
from skill_evaluator.evaluation.designs import fresh_seed
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import Configuration
from skill_evaluator.records.archive import Archive, why_refused
from skill_evaluator.records.pinned import read_pinned
from skill_evaluator.records.selection import versions_patched_to
from skill_evaluator.repository import Repository
from skill_evaluator.runner.prices import Estimate, input_sizes, not_applicable
from skill_evaluator.text import counted, listed


@options
class PlanOptions(ComponentsOption, FixturesOption, ConfigOption, PlatformOption, FormatOption):
    """The options of `plan`. `base` None: started by hand, so that the policy of versions does not apply."""

    names: Names = ()
    base: str | None = option(
        "What was pushed onto: MINOR and MAJOR bumps since then run. Without it, everything named runs.",
        metavar="COMMIT",
    )
    recorded: tuple[str, ...] = option("A branch that holds leaderboards beside HEAD; repeatable.", (), metavar="REF")
    models: OnlyModels = ()
    replicates: int | None = option("Answers per case and model.", None, "-n")
    seed: int | None = option("Seed of the replicates' seeds.")
    max_cost: float | None = option("What all jobs together may cost.", metavar="USD")
    scenario: str | None = option("Put every prompt into .evaluator/scenarios/NAME.md.", metavar="NAME")
    drift: bool = flag("Ask the recorded versions again, to see whether a model moved.")
    batch: bool = flag("Have models whose vendor has a batch API asked by it, at half the price.")
    pending: str | None = option(
        "Ask nothing: plan the collection of what an earlier plan left at the vendors in batches.", metavar="INVOCATION"
    )
    dry_run: bool = flag("Plan jobs that make no call.")
    reason: Reason = ""
    detect: float | None = option(
        "Plan no evaluation: say how many cases and replicates of one component would show this drop.", metavar="DROP"
    )
    out: Path = option("Where the plan goes.", Path("plan.json"), metavar="FILE")
    legs: Legs = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Everything that is to run, read: what is evaluated or not, what is judged after it or not, and what is wrong."""

    wanted: list[Wanted] = field(default_factory=list)
    judgings: list[tuple[PlannedJudging, Estimate]] = field(default_factory=list)
    unjudged: list[Skipped] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    not_evaluated: list[Skipped] = field(default_factory=list)

    def estimates(self) -> list[tuple[str, Estimate]]:
        """Return what each evaluation and judging takes, with the id of the model that is asked."""
        evaluations = [(pair.model.id, pair.estimate(pair.cases)) for pair in self.wanted]
        return [*evaluations, *((judging.model_id, size) for judging, size in self.judgings)]


def read_asked(
    options: PlanOptions,
    configuration: Configuration,
    models: Mapping[str, Model],
    decisions: Sequence[Decision],
    repository: Repository,
) -> Asked:
    """Read every component and model to be evaluated; one that is wrong is a fault, unless a person named it."""
    asked = Asked()
    policy = configuration.settings.policy
    for skill in dict.fromkeys(decision.skill for decision in decisions if decision.runs):
        try:
            component = apply_scenario(
                load_component(options.components, skill, configuration.settings.limits, options.fixtures),
                options.config,
                options.scenario,
            )
            cases = load_cases(component, options.fixtures)
            archive = Archive(component, repository, options.recorded)
            why = why_refused(archive.entries, component.version, component.digests["prompt"])
            if why is not None:
                raise PlanError(f"'{skill}' {why}")
            pinned = read_pinned(component.folder, skill) if policy.judge_of(skill) else {}
        except SkillEvaluatorError as problem:
            if skill in options.names:
                raise
            if isinstance(problem, NotEvaluatedError):
                ids = [decision.model_id for decision in decisions if decision.runs and decision.skill == skill]
                asked.not_evaluated.append(Skipped(skill=skill, models=ids, reason=str(problem)))
                continue
            place = repository.place(options.components / skill / "prompt.md")
            asked.faults.append(Fault(file=place, line=1, message=str(problem)))
            continue
        chosen = [models[decision.model_id] for decision in decisions if decision.runs and decision.skill == skill]
        plain, left_out = _on_models(chosen, component, cases, archive, options, configuration)
        asked.not_evaluated.extend(left_out)
        if policy.design == "beside" and options.scenario is None and not options.drift:
            places = Recordings(repository=repository, refs=options.recorded)
            plain = beside_baselines(plain, cases, places, policy, fresh=options.seed is None)
        asked.wanted.extend(plain)
        if options.drift:
            continue
        judgings, unjudged = plan_judgings(plain, cases, pinned, configuration, options.scenario)
        asked.judgings.extend(judgings)
        asked.unjudged.extend(unjudged)
    return asked


def _on_models(
    models: Sequence[Model],
    component: Component,
    cases: Sequence[Case],
    archive: Archive,
    options: PlanOptions,
    configuration: Configuration,
) -> tuple[list[Wanted], list[Skipped]]:
    """Return a component on each model that a case is applicable to, and where cases are left out, and why."""
    sizes = input_sizes(component, cases)
    wanted, skipped = [], []
    for model in models:
        kind = configuration.kinds[model.provider]
        left_out = not_applicable(cases, sizes, model, kind)
        if left_out:
            named = listed([f"{case_id} ({why})" for case_id, why in left_out.items()])
            reason = f"{len(left_out)} of {counted(len(cases), 'case')} not applicable: {named}"
            skipped.append(Skipped(skill=component.name, models=[model.id], reason=reason))
        applicable = {case.id: case.digest for case in cases if case.id not in left_out}
        seed = configuration.settings.seed if options.seed is None else options.seed
        if options.drift and options.seed is None:
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
                    replicates=options.replicates or configuration.settings.replicates,
                    seed=seed,
                )
            )
    return wanted, skipped
