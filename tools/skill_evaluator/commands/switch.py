"""`skill-evaluator switch`: may every component go from one model to another? Both are asked, in the same minutes."""

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from skill_evaluator.commands.evaluating import print_how_to_resume
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    Names,
    argument,
    flag,
    option,
    options,
)
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Sheet, markdown_table, print_result
from skill_evaluator.errors import EXIT_INCOMPLETE, ConfigError, NotEvaluatedError, RunError, SkillEvaluatorError
from skill_evaluator.evaluation.inputs import Inputs, read_inputs
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.evaluation.runs import PlannedRuns, plan_runs
from skill_evaluator.evaluation.story import ask_and_score, keep
from skill_evaluator.library.config import select_models
from skill_evaluator.providers import Configuration, lack_of, read_configuration
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.selection import runs_of_versions
from skill_evaluator.reports.ending import ending
from skill_evaluator.reports.evaluation import write_report
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.prices import estimate, input_sizes
from skill_evaluator.runner.runs import new_invocation
from skill_evaluator.runner.spending import month_of
from skill_evaluator.stats import total_or_none
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.rules import exit_code, rules_for
from skill_evaluator.verdicts.history.baselines import models_pair
from skill_evaluator.verdicts.planning.advice import usd_per_1000

EXAMPLES = ("skill-evaluator switch <model> <model> --dry-run", "skill-evaluator switch <model> <model> <component>")
EXITS = {3: "a component is worse with the new model", 4: "a component could not be compared"}
_JUDGED = ("verdict", "usd_per_1000_old", "usd_per_1000_new", "lost")
_Row = dict[str, Any]  # what is told of a component, by column
_Planned = tuple[_Row, EvaluationRequest, Inputs, PlannedRuns]


@options
class SwitchOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption):
    """The options of `switch`."""

    old: str = argument("The model in use, or once in use.")
    new: str = argument("The model of models.yaml to go to.")
    skills: Names = ()
    replicates: int | None = option("Answers per case and model.", None, "-n")
    dry_run: bool = flag("Make no call, print the cost at most.")


def switch(options: SwitchOptions) -> int:
    """Ask every component of two models, in the same minutes, and say which would be worse with the new one.

    The answers are recorded like any others. Where the old model does not answer, its newest record stands in.
    """
    configuration = read_configuration(options.config)
    settings, alone = configuration.settings, _why_alone(options, configuration)
    given = {name: getattr(options, name) for name in ("replicates", "components", "fixtures", "config")}
    given |= {"models": (options.new,) if alone else (options.old, options.new), "recorded": True}
    given |= {"invocation": new_invocation(datetime.now(UTC))}
    rows: list[_Row] = []
    plans: list[_Planned] = []
    for name in options.skills or sorted(path.parent.name for path in options.components.glob("*/prompt.md")):
        judged = {} if options.dry_run else dict.fromkeys(_JUDGED)
        rows.append({"component": name, "calls": 0, "cost_at_most_usd": 0.0, **judged, "remark": ""})
        try:
            plans.append(_plan(rows[-1], EvaluationRequest(skill=name, **given), options.old, alone, configuration))
        except NotEvaluatedError as problem:
            print(f"warning: {rows.pop()['component']} is left out: {problem}", file=sys.stderr)
        except SkillEvaluatorError as problem:
            rows[-1]["remark"] = str(problem)
    if not rows:
        raise ConfigError(f"{options.components} holds no component to ask; name its folder with --components DIR")
    month = month_of(settings, options.config, options.components)
    costs = {f"{options.old} or {options.new}": total_or_none(row["cost_at_most_usd"] for row in rows)}
    if options.dry_run:
        words = [] if month is None else [month.why_refused(costs) or month.words]
        _print(rows, options, [*words, "dry run: no call was made, nothing was written"])
        return EXIT_INCOMPLETE if len(plans) < len(rows) else 0
    if month is not None:
        month.refuse(costs)
    for plan in plans:
        if _ask(*plan, (options.old, options.new)):
            break  # stopped by the user
    _print(rows, options, _answer(rows, options))
    verdicts, fail_on = [row["verdict"] for row in rows], settings.policy.fail_on
    compared = {verdict: exit_code(verdict, fail_on) for verdict in verdicts if verdict not in (None, "incomparable")}
    codes = [compared.get(verdict, EXIT_INCOMPLETE) for verdict in verdicts]
    return min(filter(None, codes), default=0)


def _why_alone(options: SwitchOptions, configuration: Configuration) -> str:
    """Return why the old model is not asked, or nothing; raise ConfigError where the new one cannot be."""
    (new,) = select_models(configuration.models, (options.new,))
    lack = lack_of(new, configuration.kinds[new.provider], configuration.keys)
    if options.old == options.new or (lack and not options.dry_run):
        raise ConfigError(f"{options.new} is nothing to go to: {lack or 'it is the old model; name another one'}")
    old = next((model for model in configuration.models if model.id == options.old), None)
    if old is None:
        return "is not in models.yaml"
    is_off = old.retires is not None and old.retires <= datetime.now(UTC).date()
    return f"was switched off on {old.retires}" if is_off else ""


def _plan(row: _Row, own: EvaluationRequest, old: str, alone: str, configuration: Configuration) -> _Planned:
    """Plan the runs of a component; raise SkillEvaluatorError where it cannot be asked, or held against anything."""
    inputs = read_inputs(own, configuration)
    planned, version = plan_runs(inputs, own), inputs.component.version
    if alone:
        runs = runs_of_versions(Archive(inputs.component).entries).get(old, {}).get(version)
        if not runs:
            raise RunError(f"{old} {alone}, and no run of {version} is recorded")
        row["remark"] = f"{old} {alone}; its run {runs[-1].run_id} stands in, with days between"
    sizes = input_sizes(inputs.component, inputs.cases)
    for run in planned.runs:
        asked = {case_id: sizes[case_id] for case_id in run.manifest.cases}
        size = estimate(asked, run.model, inputs.kinds[run.model.provider], run.manifest.replicates)
        row["calls"] += size.calls
        row["cost_at_most_usd"] = total_or_none([row["cost_at_most_usd"], size.cost_upper_usd])
    return row, own, inputs, planned


def _ask(row: _Row, own: EvaluationRequest, inputs: Inputs, planned: PlannedRuns, names: tuple[str, str]) -> bool:
    """Ask the runs of a component and judge them; return whether the user stopped that."""
    from skill_evaluator.verdicts.decide.comparison import compare_records

    scored, _ = ask_and_score(planned, inputs, own, watch)
    problems = keep(planned, scored, inputs, own, write_report)
    print_how_to_resume(planned.left(), own)
    records = {run.record.model_id: run.record for run in planned.finished}
    for name in own.models:
        if name not in records or not records[name].complete:
            why = [*map(str, problems), *(one.stopped for one in records.values() if one.model_id == name)]
            row["remark"] = f"{name} did not answer ({next(filter(None, why), 'too few answers')})"
    after, archive = records.get(names[1]), Archive(inputs.component)
    pair = models_pair(archive.entries, names, archive, after.skill_version) if after and after.complete else None
    if pair is not None and pair.baseline is not None:
        result = compare_records(row["component"], [pair], rules_for(inputs.settings, own.config, pair.candidate))
        if row["remark"] and names[0] in own.models:
            row["remark"] += f"; its run {pair.baseline.run_id} stands in, with days between"
        others = [words for one in (pair.baseline, pair.candidate) if (words := one.served_otherwise)]
        told = (row["remark"], *others)
        barred = others and inputs.settings.policy.served == "same"
        verdict = "incomparable" if barred else result.verdict
        costs = {"usd_per_1000_old": usd_per_1000(pair.baseline), "usd_per_1000_new": usd_per_1000(pair.candidate)}
        row |= {"verdict": verdict, **costs, "lost": ending(result)[1], "remark": "; ".join(filter(None, told))}
    return any("interrupted" in (record.stopped or "") for record in records.values())


def _answer(rows: Sequence[_Row], options: SwitchOptions) -> list[str]:
    """Return whether the library may go to the new model, and where to look if not."""
    worse = [row["component"] for row in rows if row["verdict"] == "regressed"]
    unsure = [row["component"] for row in rows if row["verdict"] not in ("regressed", "improved", "unchanged")]
    answer = f"no, {listed(worse)} regressed" if worse else f"not shown of {listed(unsure)}" if unsure else "yes"
    look = shlex.join(["compare", *worse[:1], "--models", options.old, options.new])
    lines = [f"may we switch from {options.old} to {options.new}? {answer}", f"next: `skill-evaluator {look}`"]
    return lines if worse else lines[:1]


def _print(rows: Sequence[_Row], options: SwitchOptions, lines: Sequence[str]) -> None:
    """Print a row a component, then the lines."""
    cells = [
        [Cell(f"{value:,.2f}" if isinstance(value, float) else str(value or "–"), code=True) for value in row.values()]
        for row in rows
    ]
    sheet = Sheet(columns=[name.replace("_", " ") for name in rows[0]], rows=cells)
    models = {"old": options.old, "new": options.new, "dry_run": options.dry_run}
    print_result(
        options.format,
        json=lambda: {**models, "components": rows, "conclusion": lines},
        markdown=lambda: markdown_table(sheet) + "".join(f"\n{code_span(line)}\n" for line in lines),
        text=lambda: [sheet, "", *map(visible, lines)],
    )
