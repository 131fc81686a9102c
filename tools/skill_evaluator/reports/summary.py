"""The conclusion of a comparison in four sentences: the verdict, what was lost, what to ship and what to do next."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skill_evaluator.display import WHOLE, arrow, plain, signed
from skill_evaluator.display.pages import Closing, Line
from skill_evaluator.records.record import Record, unusable_text
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.results import (
    ComparisonResult,
    MeasureResult,
    ModelVerdict,
    SinceAccepted,
    calibration_words,
    less_repeatable,
    new_cases_words,
)
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.planning.sizing import can_show, profile_doubt

MARKS = {"regressed": "▼", "improved": "▲", "unchanged": "=", "inconclusive": "?", "incomparable": "≠"}
STYLES = {"regressed": "bold red", "improved": "bold green", "inconclusive": "yellow", "incomparable": "yellow"}
AGAIN = "change the prompt or models.yaml, and {} asks again"
_MAX_LOST, _MAX_FELL = 3, 2
_STEPS = {
    "try": "change the prompt, and {} compares it with this run",
    "compare": "{} shows where, and what to do about it",
    "accept": "{} makes it the baseline of later versions",
}


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Where a report is read, which decides the next steps that it can name.

    `outputs` has by run id the run name that `explain` takes, if the outputs are on this machine; None if no library
    belongs to the runs. `folders` are the options that name the library. A report `in_ci` is read on a pull request,
    before its merge if it is of a `draft`.
    """

    outputs: Mapping[str, str] | None = None
    folders: Sequence[str] = ()
    in_ci: bool = False
    draft: bool = False

    def command(self, *words: str) -> str:
        """Return a command of the program for the library's folders, as code."""
        folders = self.folders
        if words[0] in ("accept", "compare") and "--fixtures" in folders:  # these commands read no cases
            at = folders.index("--fixtures")
            folders = [*folders[:at], *folders[at + 2 :]]
        quoted = (word if word == "…" else shlex.quote(word) for word in (*words, *folders))
        return f"`skill-evaluator {' '.join(quoted)}`"

    def step(self, name: str, *words: str) -> str:
        """Return a next step with the command `try`, `compare` or `accept` and its arguments."""
        return _STEPS[name].format(self.command(name, *words))


@dataclass(frozen=True, kw_only=True)
class ComparisonSummary:
    """Sentences on a component: the verdict, what was lost, what to ship ("" if it is not known) and the next step.

    `amounts` has the output tokens, cost and latency that moved ("" if none did).
    """

    verdict: str
    lost: str
    amounts: str = ""
    ship: str = ""
    next: str
    style: str = field(default="bold")

    @property
    def closing(self) -> Closing:
        """The sentences as the last lines of a terminal."""
        rest = filter(None, (self.lost, self.amounts, self.ship, f"next: {self.next}"))
        return Closing([Line(self.verdict, style=self.style), *map(Line, rest)])


def conclude(result: ComparisonResult, reader: Reader) -> ComparisonSummary:
    """Draw the conclusion from a comparison; of several models it is about the worst."""
    worst, *others = worst_first(result)
    alike = all(model.verdict == worst.verdict for model in others)
    models = counted(len(others) + 1, "model")
    which = f" ({f'each of {models}' if alike else f'{worst.model_id}, the worst of {models}'})" if others else ""
    words = f"{scope_words(result)}{which}"
    if result.verdict == "incomparable" and all(model.baseline is None for model in result.models):
        words = "nothing to compare with yet"
    following = _next_step(result.skill, worst, reader)
    if result.asked_again and worst.verdict in ("improved", "unchanged"):
        all_cases = reader.command("evaluate", result.skill)
        following = f"the record stays as it is; {all_cases} runs all cases again"
    unusable = next((model.candidate.unusable for model in (worst, *others) if model.candidate.unusable), None)
    lost = unusable or "; ".join(filter(None, (_lost_sentence(worst), less_repeatable(worst.metrics))))
    amounts = amount_words(result)
    return ComparisonSummary(
        verdict=f"{MARKS[result.verdict]} {result.skill}: {words}",
        lost=lost,
        amounts="" if amounts in lost else amounts,
        ship=result.ship,
        next=following,
        style=STYLES.get(result.verdict, "bold"),
    )


def conclude_first(record: Record, reader: Reader, *, is_recorded: bool, incomplete: str = "") -> ComparisonSummary:
    """Draw the conclusion from a run without a baseline: what was measured, and which drops it could detect.

    Later versions are compared with the run if it `is_recorded`. `incomplete` names an incomplete run of a lower
    version.
    """
    name, cases, unusable = record.skill, counted(record.n_cases, "case"), unusable_text(record)
    first = f"{record.skill} {version_words(record.skill_version)}: {'not ' * bool(unusable)}measured on {cases}"
    if not unusable:
        first += "; there is no lower version to compare it with" + (incomplete and f" ({incomplete})")
    following = reader.step("try", name)
    if not is_recorded:
        following = f"{reader.command('evaluate', name)} records a baseline for later versions"
    if unusable:
        following = AGAIN.format(reader.command("evaluate", name))
    power = "; ".join(filter(None, [can_show(record.n_cases), profile_doubt(record)]))
    return ComparisonSummary(verdict=first, lost=unusable or power, next=following)


def worst_first(result: ComparisonResult) -> list[ModelVerdict]:
    """Sort the models of a comparison, the worst verdict first."""
    return sorted(result.models, key=lambda model: (WORST_FIRST.index(model.verdict), model.model_id))


def verdict_words(result: ComparisonResult, name: str) -> str:
    """Return the verdict on `name` in a line, with the lost fields and cases that a good mean may hide."""
    return " · ".join(filter(None, [f"{name}: {scope_words(result)}", lost_words(*result.models)]))


def scope_words(result: ComparisonResult) -> str:
    """Return the verdict with its cases, what it says of new cases, and whether a different model answered."""
    cases, words = result.n_cases, str(result.verdict)
    if result.verdict != "incomparable":
        words += f" on {({None: 'these cases', 1: 'this case'}).get(cases, f'these {cases} cases')}"
        if result.asked_again:
            words += ", asked again"
        elif result.verdict in ("improved", "unchanged") and cases is not None:
            words += f"; {new_cases_words(cases)}"
    return with_served(*result.models, words=words)


def with_served(*models: ModelVerdict, words: str | None = None) -> str:
    """Add to a verdict the judge that is not calibrated, and whether a different model or release answered."""
    changes, words = {model.served for model in models}, words or models[0].verdict
    if judges := {model.unproved_judge for model in models if model.unproved_judge}:
        words = f"{words}; judged by {listed(sorted(judges))}, not calibrated"
    if "model" in changes:
        return f"{words}{':' if words == 'incomparable' else ';'} another model answered"
    return f"{words}; another release of the model answered" if "date" in changes else words


def lost_words(*models: ModelVerdict) -> str:
    """Name the lost fields and cases. Return "" if there are none."""
    lost = {
        "field": dict.fromkeys(path for model in models for path in model.lost_fields),
        "case": dict.fromkeys(case_id for model in models for case_id in model.lost_cases),
    }
    words = [
        f"{kind}{'s' * (len(names) > 1)} {listed([name or WHOLE for name in names], _MAX_LOST)}"
        for kind, names in lost.items()
        if names
    ]
    return f"lost: {'; '.join(words)}" if words else ""


def amount_words(result: ComparisonResult) -> str:
    """Return the output tokens, cost and latency that moved, by model if there are several; "" if none did."""
    moved = {model.model_id: model.amount_words for model in result.models if model.amount_words}
    several = len(result.models) > 1
    return listed([f"{name}: {words}" if several else words for name, words in moved.items()], _MAX_FELL)


def fell_most_words(model: ModelVerdict) -> str:
    """Name the field that fell most beyond its tolerance. Return "" if there is none or if it is a lost field."""
    most = model.fell_most
    if most is None or most.metric in model.lost_fields or model.verdict == "incomparable":
        return ""
    return fall_words(most)


def fall_words(field: MeasureResult) -> str:
    """Format a field's name with its score before and after."""
    return f"field {field.metric or WHOLE} {arrow(field.baseline, field.candidate)}"


def since_accepted_words(change: SinceAccepted) -> str:
    """Format the change since the accepted baseline."""
    low, high = map(signed, change.ci95)
    moved = f"{change.metric} {signed(change.difference)} ({low} to {high})"
    return f"all changes since {version_words(change.version)}: {moved}, {change.verdict}"


def tolerance_words(*models: ModelVerdict) -> str:
    """Define the verdict "unchanged" for some models."""
    tolerated = {plain(one.tolerance) for model in models for one in model.metrics if one.tier == "critical"}
    return f"no drop beyond the tolerance ({', '.join(sorted(tolerated)) or 'of settings.yaml'})"


def _lost_sentence(model: ModelVerdict) -> str:
    if model.verdict == "incomparable":
        return f"nothing was compared: {model.reasons[0]}" if model.reasons else "nothing was compared"
    if model.lost_fields or model.lost_cases:
        return lost_words(model)
    most = fell_most_words(model)
    if model.verdict != "regressed":
        lost = "nothing lost" if model.verdict != "inconclusive" else "no loss is shown, and none is ruled out"
        return f"{lost}; fell most, not significantly: {most}" if most else lost
    since = model.since_accepted
    if since is not None and since.verdict == "regressed":
        return f"lost by all changes since {since.version}: {since.metric} {signed(since.difference)}"
    fell = [one for one in (*model.metrics, *model.fields) if one.verdict == "regressed" and one.tier != "advisory"]
    if rose := [one.words(model.candidate.planned) for one in model.amounts if one.verdict == "regressed"]:
        return f"lost: {listed(rose)}"
    if not fell:  # an earlier run of the version regressed
        return f"lost: {model.reasons[0]}"
    fell.sort(key=lambda one: one.tier != "critical")
    moved = [f"{one.metric} {arrow(one.baseline, one.candidate)}" for one in fell]
    named = any(one in fell for one in model.fields)
    return f"lost: {listed(moved, _MAX_FELL)}" + (f", most in {most}" if most and not named else "")


def _next_step(skill: str, model: ModelVerdict, reader: Reader) -> str:
    if model.verdict == "regressed" or (model.verdict == "inconclusive" and model.lost_cases):
        look = _where_to_look(skill, model, reader)
        return look if model.unproved_judge is None else f"{look}; {calibration_words(model.unproved_judge)}"
    if model.verdict == "inconclusive":
        return model.remedy or next(iter(model.reasons), "more cases would decide it")
    if reader.outputs is None:
        return "compare what was measured alike" if model.verdict == "incomparable" else "nothing is in the way"
    if model.verdict == "incomparable":
        if model.baseline is None:
            return reader.step("try", skill)
        return f"{reader.command('evaluate', skill)} runs both versions side by side, by today's files"
    version = model.candidate.skill_version
    is_new = model.baseline is not None and model.baseline.skill_version != version
    if model.candidate.draft:
        first = "" if is_new else "raise the version in prompt.md if the prompt changed, and "
        return f"{first}{reader.command('evaluate', skill)} records it"
    if not is_new:
        return "nothing is in the way"
    return f"nothing is in the way of {version}; {reader.step('accept', skill, version, '--reason', '…')}"


def _where_to_look(skill: str, model: ModelVerdict, reader: Reader) -> str:
    """Name the field or case in which most was lost, and the command or place that shows its outputs."""
    fields = sorted((one for one in model.fields if (one.difference or 0.0) < 0.0), key=lambda one: one.difference or 0)
    cases = [*model.lost_cases, *(case.case_id for case in model.cases.broke), *model.cases.every_answer_worse]
    cases += [one.rose_most for one in model.amounts if one.verdict == "regressed"]
    if model.lost_fields or (fields and not cases):
        kind, name = "field", next(iter(model.lost_fields), fields[0].metric if fields else "")
    elif cases:
        kind, name = "case", cases[0]
    else:
        since = model.since_accepted
        if since is not None and since.verdict == "regressed" and reader.outputs is not None:
            return reader.step("compare", skill, "--baseline", since.version)
        return "see the figures above; no single field or case fell"
    words = f"look at {kind} {name}" if name else f"look at {WHOLE}"
    if reader.in_ci:
        compare = f"after a pull, {reader.command('compare', skill)} shows where"
        return f"{words}; {'the artifacts of this run have the outputs' if reader.draft else compare}"
    if reader.outputs is None:
        return words
    run = reader.outputs.get(model.candidate.run_id)
    if run is None:
        return f"{words}; the answers are not on this machine"
    return f"{words}: {reader.command('explain', run, *([f'--{kind}', name] if name else []))}"
