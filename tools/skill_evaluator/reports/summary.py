"""The conclusion of a comparison: the verdict, what was lost, how sure that is, what to ship and what to do next."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skill_evaluator.display import WHOLE, arrow, interval, plain, probability, relative_change, signed
from skill_evaluator.display.pages import Closing, Line
from skill_evaluator.records.record import Record, remedy, unusable_text
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide import results
from skill_evaluator.verdicts.decide.comparability import PART_CHANGED, SCHEMA_CHANGED
from skill_evaluator.verdicts.decide.results import ComparisonResult, MeasureResult, ModelVerdict, SinceAccepted
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.sizing import can_show, profile_doubt

MARKS = {"regressed": "▼", "improved": "▲", "unchanged": "=", "inconclusive": "?", "incomparable": "≠"}
STYLES = {"regressed": "bold red", "improved": "bold green", "inconclusive": "yellow", "incomparable": "yellow"}
AGAIN = "change the prompt or models.yaml, then run {}"
MERGE = "merge, nothing is in the way"
BOARD = "to ship: {} names the version and the model"
_READ_NO_CASES = ("accept", "compare", "leaderboard")
_TIERS = ("critical", "supporting", "advisory")
_MAX_LOST, _MAX_FELL = 3, 2


@dataclass(frozen=True, kw_only=True)
class Reader:
    """The place where a report is read. It decides which commands the report suggests.

    `outputs` maps the ids of runs with outputs on this machine to their folders, as `explain` takes them. `outputs` is
    None if the runs belong to no library. `folders` has options such as `--config DIR`. If `in_ci`, the report is read
    on a pull request. If `draft`, the pull request is not merged yet. If `is_partial`, only some of the cases were run.
    `record_step` is the step that records the runs. It is empty if they are recorded.
    """

    outputs: Mapping[str, str] | None = None
    folders: Sequence[str] = ()
    in_ci: bool = False
    draft: bool = False
    is_partial: bool = False
    record_step: str = ""

    @property
    def has_library(self) -> bool:
        """Whether the runs belong to a library that the reader can open."""
        return self.in_ci or self.outputs is not None

    def command(self, *arguments: str) -> str:
        """Return a command in backticks. The command ends with the options in `folders`, such as `--config DIR`."""
        folders = self.folders
        if arguments[0] in _READ_NO_CASES and "--fixtures" in folders:
            start = folders.index("--fixtures")
            folders = [*folders[:start], *folders[start + 2 :]]
        pull = "git pull && " if self.in_ci and not self.draft else ""
        return f"`{pull}skill-evaluator {shlex.join([*arguments, *folders])}`"


@dataclass(frozen=True, kw_only=True)
class ComparisonSummary:
    """Sentences on a comparison or a first run. All but `verdict` and `next` may be empty.

    `amounts` names the output tokens, cost and latency that moved. `sure` is the evidence for the verdict.
    """

    verdict: str
    lost: str = ""
    sure: str = ""
    amounts: str = ""
    ship: str = ""
    next: str
    style: str = "bold"

    @property
    def lines(self) -> list[str]:
        """The sentences of the summary that are not empty, in the order of the report."""
        sure = f"how sure: {self.sure}" if self.sure else ""
        return [line for line in (self.verdict, self.lost, self.amounts, sure, self.ship, f"next: {self.next}") if line]

    @property
    def closing(self) -> Closing:
        """The sentences of the summary as the last lines on a terminal, with the verdict in its style."""
        return Closing([Line(line, style=self.style * (line == self.verdict)) for line in self.lines])


def conclude(result: ComparisonResult, reader: Reader) -> ComparisonSummary:
    """Draw the conclusion from a comparison. With several models it is about the model with the worst verdict."""
    worst, *others = worst_first(result)
    models, alike = counted(len(others) + 1, "model"), sum(model.verdict == worst.verdict for model in result.models)
    which = f" ({worst.model_id}, the worst of {models})" if others else ""
    if others and (worst.verdict == "improved" or alike == len(result.models)):
        which = f" ({'each' if alike == len(result.models) else alike} of {models})"
    scope, title = f"{scope_words(result, worst)}{which}", worst.candidate.title
    if worst.baseline is not None and worst.baseline.model_id is not None:
        title += f" with {worst.model_id}"
    if all(model.baseline is None for model in result.models):
        scope = "nothing to compare with yet"
    unusable = next((model.candidate.unusable for model in (worst, *others) if model.candidate.unusable), None)
    lost = unusable or "; ".join(filter(None, (_loss_words(worst), results.less_repeatable(worst.metrics))))
    amounts = amount_words(result)
    return ComparisonSummary(
        verdict=f"{MARKS[result.verdict]} {result.skill} {title}: {scope}",
        lost=lost,
        sure=sure_words(worst, is_named=bool(others)),
        amounts="" if amounts in lost else amounts,
        ship=result.ship,
        next=next_step(result, worst, reader),
        style=STYLES.get(result.verdict, "bold"),
    )


def conclude_first(record: Record, reader: Reader, ship: str = "") -> ComparisonSummary:
    """Draw the conclusion from a run without a comparison."""
    name, cases = record.skill, counted(record.n_cases, "case")
    title = f"{name} {record.skill_version}"
    if not record.complete:
        lost, step = unusable_text(record), AGAIN.format(reader.command("evaluate", name))
        if lost is None:
            stopped = f"; stopped by {record.stopped}" if record.stopped else ""
            lost = f"{record.scored} of {record.planned} outputs are scored{stopped}"
            advice = [remedy(fault.reason, record.model_id) for fault in record.faults]
            step = next(filter(None, advice), "continue the run")
        verdict = f"{title}: not measured on {cases}, so this run has no verdict"
        return ComparisonSummary(verdict=verdict, lost=lost, ship=ship, next=step)
    verdict = f"{title}: measured on {cases}; no lower version has a complete run to compare it with"
    if record.scored_nothing:
        lost = f"{record.primary_metric} is 0 in every case, so no later version can be worse"
        run = (reader.outputs or {}).get(record.run_id, record.run_id)
        show = reader.command("explain", run, "--case", record.per_case[0].case_id)
        return ComparisonSummary(verdict=verdict, lost=lost, next=f"compare the outputs with the ground truth: {show}")
    unmeasured = f"{record.primary_metric} is not measured, because no case has a ground truth for it"
    number = sum(record.primary_metric in case.accuracy for case in record.per_case)
    sure = "; ".join(filter(None, [can_show(number) if number else unmeasured, profile_doubt(record)]))
    return ComparisonSummary(verdict=verdict, sure=sure, ship=ship, next=reader.record_step or try_step(name, reader))


def worst_first(result: ComparisonResult) -> list[ModelVerdict]:
    """Sort the models of a comparison by verdict, the worst first, then by their largest drop."""
    return sorted(result.models, key=lambda each: (WORST_FIRST.index(each.verdict), largest_fall(each), each.model_id))


def largest_fall(model: ModelVerdict) -> float:
    """Return the largest drop of a critical metric or of any field, as a difference that is negative or 0."""
    differences = [one.difference or 0.0 for one in model.metrics if one.tier == "critical"]
    if model.fell_most is not None:
        differences.append(model.fell_most.difference or 0.0)
    return min([0.0, *differences])


def scope_words(result: ComparisonResult, model: ModelVerdict) -> str:
    """Format the verdict of a comparison, for example as `regressed against 1.2.0 on these 40 cases`.

    The baseline of `model` is named. An improved or unchanged verdict adds how many of 100 new cases may be worse.
    """
    cases, text = result.n_cases, str(result.verdict)
    if model.baseline is not None:
        since = model.only_since_accepted
        baseline = model.baseline.title if since is None else since.version
        text += f" {'with' if text == 'incomparable' else 'against'} {baseline}"
    if result.verdict != "incomparable":
        text += f" on {({None: 'these cases', 1: 'this case'}).get(cases, f'these {cases} cases')}"
        if result.asked_again:
            text += ", run again"
        elif result.verdict in ("improved", "unchanged") and cases is not None:
            text += f"; {results.new_cases_words(cases)}"
    return with_served(*result.models, verdict=text)


def with_served(*models: ModelVerdict, verdict: str | None = None) -> str:
    """Format a verdict with remarks on uncalibrated judges and on a change of the model that the vendor served.

    The default of `verdict` is the verdict of the first model.
    """
    changes, text = {model.served for model in models}, verdict or models[0].verdict
    if judges := {model.unproved_judge for model in models if model.unproved_judge}:
        text = f"{text}; judged by {listed(sorted(judges))}, not calibrated"
    if "model" in changes:
        return f"{text}{':' if text.startswith('incomparable') else ';'} another model answered"
    return f"{text}; another release of the model answered" if "date" in changes else text


def lost_words(model: ModelVerdict) -> str:
    """Name the fields in `lost_fields` and the cases in `lost_cases` of a model. Return "" if both are empty."""
    lost = {"field": [path or WHOLE for path in model.lost_fields], "case": model.lost_cases}
    parts = [f"{kind}{'s' * (len(names) > 1)} {listed(names, _MAX_LOST)}" for kind, names in lost.items() if names]
    return f"lost: {'; '.join(parts)}" if parts else ""


def _loss_words(model: ModelVerdict) -> str:
    if model.verdict == "incomparable":
        return f"nothing was compared: {model.reasons[0]}" if model.reasons else "nothing was compared"
    fell_most = fell_most_words(model)
    if model.lost_fields or model.lost_cases:
        scores = [f" ({arrow(one.baseline, one.candidate)})" for one in model.fields if one.metric in model.lost_fields]
        return lost_words(model) + (scores[0] if len(scores) == 1 and not model.lost_cases else "")
    if model.verdict != "regressed":
        lost = "a loss is neither significant nor ruled out" if model.verdict == "inconclusive" else "nothing lost"
        return f"{lost}; fell most, not significantly: {fell_most}" if fell_most else lost
    since = model.only_since_accepted
    if since is not None:
        return f"lost by all changes since {since.version}: {since.metric} {signed(since.difference)}"
    fell = [one for one in (*model.metrics, *model.fields) if one.verdict == "regressed" and one.tier != "advisory"]
    rose = [one.change_text(model.candidate.calls.planned) for one in model.amounts if one.verdict == "regressed"]
    if not fell:
        return f"lost: {listed(rose or model.reasons[:1])}"  # the reason: an earlier run of the version regressed
    fell.sort(key=lambda measure: _TIERS.index(measure.tier))
    changes = [f"{one.metric} {arrow(one.baseline, one.candidate)}" for one in fell]
    in_field = f", most in {fell_most}" if fell_most and fell[0].kind != "field" else ""
    return f"lost: {'; '.join([f'{listed(changes, _MAX_FELL)}{in_field}', *rose])}"


def sure_words(model: ModelVerdict, *, is_named: bool = True) -> str:
    """Format the change that decides a verdict, with the number of cases, confidence interval and adjusted p-value.

    If the verdict is `unchanged`, the tolerance takes the place of the p-value. If `is_named`, add the name of the
    model. If there is no baseline, return the drop that the cases can detect. Return "" if the runs were not compared.
    """
    since, measure, calls = model.only_since_accepted, _deciding_measure(model), model.candidate.calls
    named = f" with {model.model_id}" if is_named else ""
    if since is not None:
        return f"{since_accepted_words(since)}{named}"
    if model.verdict == "incomparable" or measure is None:
        return "" if model.baseline else can_show(calls.planned // max(1, calls.replicates))
    rose = next((one for one in model.amounts if one.verdict == "regressed" == model.verdict), None)
    if rose is not None and measure.verdict != "regressed" and not measure.harmed:
        test = rose.test
        low, high = ("–", "–") if test.ci95 is None else [relative_change(1.0, 1.0 + end) for end in test.ci95]
        evidence = f"95 % confidence interval {low} to {high}, adjusted p-value {probability(test.q)}"
        return f"{rose.amount}{named} on {counted(test.n_cases, 'case')} ({evidence})"
    name = f"field {measure.metric or WHOLE}" if measure.kind == "field" else measure.metric
    tolerance = f"tolerance {plain(measure.tolerance)}"
    evidence = tolerance if measure.test.q is None else ""
    if model.verdict == "unchanged":
        rise = "; the rise is not significant" if (measure.difference or 0.0) > measure.tolerance else ""
        evidence = f"no drop beyond the {tolerance}{rise}"
    change = f"{name} {signed(measure.difference)}{named}"
    return difference_words(change, measure.test.n_cases, measure.test.ci95, measure.test.q, evidence)


def difference_words(
    change: str, cases: int, ci95: tuple[float, float] | None, q: float | None, evidence: str = ""
) -> str:
    """Format a change as `change on 5 cases (confidence interval, evidence)`.

    The evidence is by default the adjusted p-value `q`, if it is not None.
    """
    ends = interval(ci95, cases, signed)
    within = f"95 % confidence interval {ends}" if " to " in ends else "too few cases for a confidence interval"
    if not evidence and q is not None:
        evidence = f"adjusted p-value {probability(q)}"
    return f"{change} on {counted(cases, 'case')} ({', '.join(filter(None, (within, evidence)))})"


def _deciding_measure(model: ModelVerdict) -> MeasureResult | None:
    """Return the metric or field that decides a verdict, critical ones first. Return None if none was compared."""
    compared = [one for one in (*model.metrics, *model.fields) if one.difference is not None]
    compared.sort(key=lambda result: (result.verdict != model.verdict and not result.harmed, _TIERS.index(result.tier)))
    return next(iter(compared), None)


def amount_words(result: ComparisonResult) -> str:
    """Format the output tokens, cost and latency that moved, by model if there are several. Return "" if none did."""
    moved = {model.model_id: model.amount_words for model in worst_first(result) if model.amount_words}
    several = len(result.models) > 1
    return listed([f"{name}: {words}" if several else words for name, words in moved.items()], _MAX_FELL)


def fell_most_words(model: ModelVerdict) -> str:
    """Name the field that fell most (`model.fell_most`), with its scores.

    Return "" if there is no such field, if the field is in `lost_fields`, or if the model is incomparable.
    """
    field = None if model.verdict == "incomparable" else model.fell_most
    return "" if field is None or field.metric in model.lost_fields else fall_words(field)


def fall_words(field: MeasureResult) -> str:
    """Format a field with its scores as `field date 1.000 → 0.200`."""
    return f"field {field.metric or WHOLE} {arrow(field.baseline, field.candidate)}"


def since_accepted_words(change: SinceAccepted) -> str:
    """Format the change since the accepted (or else lowest) version, with its evidence and verdict."""
    low, high = map(signed, change.ci95)
    within = f"95 % confidence interval {low} to {high}, adjusted p-value {probability(change.q)}"
    since = f"all changes since {change.version}"
    return f"{since}: {change.metric} {signed(change.difference)} ({within}), {change.verdict}"


def tolerance_words(*models: ModelVerdict) -> str:
    """Return the meaning of *unchanged*, such as `no drop beyond the tolerance (0.05)`, with the models' tolerances."""
    tolerated = {plain(one.tolerance) for model in models for one in model.metrics if one.tier == "critical"}
    return f"no drop beyond the tolerance ({', '.join(sorted(tolerated)) or 'of settings.yaml'})"


def try_step(skill: str, reader: Reader) -> str:
    """Return the step "change the prompt and compare it with this run", with its command."""
    return f"change the prompt and compare it with this run: {reader.command('try', skill)}"


def measure_step(skill: str, reader: Reader) -> str:
    """Return the step "measure the version on disk", with its command."""
    return f"measure the version on disk: {reader.command('evaluate', skill)}"


def accept_step(skill: str, version: str, reason: str, reader: Reader) -> str:
    """Return the step "accept it as the baseline of later versions", with its command."""
    command = reader.command("accept", skill, version, "--reason", reason)
    return f"accept it as the baseline of later versions: {command}"


def next_step(result: ComparisonResult, model: ModelVerdict, reader: Reader) -> str:
    """Return the next step for a model of a comparison as text, with a command if the step has one."""
    skill = result.skill
    is_partial = result.asked_again or (reader.is_partial and not model.candidate.draft)
    if is_partial and model.verdict not in ("regressed", "incomparable"):
        return f"run all cases, because the record stays as it is: {reader.command('evaluate', skill)}"
    if result.unmeasured:
        return measure_step(skill, reader)
    if model.has_loss_to_see:
        look = _where_to_look(skill, model, reader)
        return look if model.unproved_judge is None else f"{look}; {results.calibration_words(model.unproved_judge)}"
    if model.verdict == "inconclusive":
        remedy = model.remedy or next(iter(model.reasons), "more cases would decide it")
        again = reader.command("try" if model.candidate.draft else "evaluate", skill)
        return f"{remedy}; then run {again}" if reader.has_library else remedy
    if model.verdict == "incomparable":
        if not reader.has_library:
            return "compare runs with the same cases, scorer and settings"
        if model.baseline is None:
            return try_step(skill, reader)
        if any(reason.endswith((SCHEMA_CHANGED, PART_CHANGED)) for reason in model.reasons):
            return f"undo the change of the schema; or {try_step(skill, reader)}"
        return f"run both versions interleaved: {reader.command('evaluate', skill)}"
    if not reader.has_library:
        return "nothing is in the way"
    if reader.draft:
        return MERGE
    version, baseline = model.candidate.skill_version, model.baseline
    is_new = baseline is not None and baseline.skill_version != version
    if model.candidate.draft:
        first = "" if is_new else "raise the version in prompt.md if the prompt changed, and "
        return f"{first}record the version: {reader.command('evaluate', skill)}"
    if baseline is None or not is_new:
        return f"nothing is in the way; rank the models: {reader.command('leaderboard', skill)}"
    if version == result.accepted or reader.record_step:
        return reader.record_step or try_step(skill, reader)
    return accept_step(skill, version, f"{model.verdict} against {baseline.skill_version}", reader)


def _where_to_look(skill: str, model: ModelVerdict, reader: Reader) -> str:
    since = model.only_since_accepted
    if since is not None and reader.has_library:
        command = reader.command("compare", skill, "--baseline", since.version)
        return f"compare with {since.version}: {command}"
    fields = [one for one in model.fields if (one.difference or 0.0) < 0.0]
    fields.sort(key=lambda field: field.difference or 0.0)
    cases = [*model.worse_cases, *(one.rose_most for one in model.amounts if one.verdict == "regressed")]
    is_whole = next(iter(model.lost_fields), None) == ""
    is_one_case = cases and (is_whole or model.verdict == "inconclusive")  # a case says more than its only field
    if not is_one_case and (model.lost_fields or (fields and not cases)):
        kind, name = "field", next(iter(model.lost_fields), fields[0].metric if fields else "")
    elif cases:
        kind, name = "case", cases[0]
    else:
        return "see the figures above; no single field or case fell"
    look = f"look at {kind} {name}" if name else f"look at {WHOLE}"
    if reader.in_ci:
        where = f"compare the two versions: {reader.command('compare', skill)}"
        if reader.draft:
            where = f"its outputs are artifacts of this run; compare a new prompt: {reader.command('try', skill)}"
        return f"{look}; {where}"
    if reader.outputs is None:
        return look
    run = reader.outputs.get(model.candidate.run_id)
    if run is None:
        return f"{look}; the outputs are not on this machine: {reader.command('compare', skill)} has the scores"
    return f"{look}: {reader.command('explain', run, f'--{kind}', name)}"
