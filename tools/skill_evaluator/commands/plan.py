"""`skill-evaluator plan`: what a push (or a person) asks to be evaluated, cut into jobs, with the reasons and the cost.

It makes no call and needs no key. Jobs and `collect` go by the plan.json it writes; `--detect` plans a size instead.
"""

from dataclasses import fields
from pathlib import Path

from skill_evaluator.ci.matrix import Checkout, outputs_of
from skill_evaluator.ci.planning import PlanRequest, make_plan, plan_collection
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.display.options import (
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
from skill_evaluator.errors import EXIT_OK, ConfigError, LeaderboardError, PlanError
from skill_evaluator.files import json_text, replace_text
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.providers import read_configuration
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.selection import newest_of_versions, runs_of_models
from skill_evaluator.reports.ci import plan_page, print_plan

EXAMPLES = (
    "skill-evaluator plan --base origin/main",
    "skill-evaluator plan <component> --model <model> --max-cost 5",
    "skill-evaluator plan --detect 0.05 <component>",
)


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


def plan(options: PlanOptions) -> int:
    """Say what is to be evaluated, why, in how many calls and at what cost; write it to plan.json. Makes no call."""
    if options.detect is not None:
        return _size(options, options.detect)
    if options.pending is not None:
        if options.names or options.models or options.drift or options.batch or options.base is not None:
            raise PlanError("--pending plans what is left as it was planned: leave out what says what is to be asked")
        made = plan_collection(options.pending, options.components, options.recorded)
    else:
        checkout = Checkout(
            components=options.components,
            fixtures=options.fixtures,
            config=options.config,
            recorded=options.recorded,
            configuration=read_configuration(options.config),
            platform=PLATFORMS[options.platform] if options.platform else None,
        )
        made = make_plan(
            PlanRequest(**{field.name: getattr(options, field.name) for field in fields(PlanRequest)}), checkout
        )
    replace_text(options.out, json_text(made.model_dump(mode="json")))
    print_plan(made, options.format)
    if options.platform:
        platform = PLATFORMS[options.platform]
        attests = load_settings(options.config).attestations.since is not None
        platform.set_outputs({**outputs_of(made, options.legs.split()), "attest": attests})
        platform.add_summary(plan_page(made))
        for fault in made.faults:
            platform.annotate("warning", fault.message, fault.file, fault.line)
    return EXIT_OK


def _size(options: PlanOptions, drop: float) -> int:
    """Print how many cases and replicates would show a drop, by the newest version of each model."""
    from skill_evaluator.reports.planning import print_sizing  # these import scipy, which takes a second to load
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
