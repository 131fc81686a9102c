"""The last three lines of a comparison on a terminal: the verdict with its scope, what was lost, what to do next.

A decided `ComparisonResult` comes in. Of several models the worst is spoken of. And the end of a switch from one model
to another, which has a row a component.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from skill_evaluator.display import WHOLE, arrow
from skill_evaluator.display.pages import Line, page_of, print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, show
from skill_evaluator.evaluation.switching import Switch, SwitchedComponent
from skill_evaluator.records.record import Record, unusable_words
from skill_evaluator.reports.comparison import MARKS, STYLES, fell_most_words, lost_words, scope_words, worst_first
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict, calibration_words, less_repeatable
from skill_evaluator.verdicts.planning.sizing import can_show, profile_doubt

_MOST_NAMED = 2
AGAIN = "change the prompt or models.yaml, and {} asks again"
_STEPS = {
    "try": "change the prompt, and {} holds it against this run",
    "compare": "{} shows where, and what to do about it",
    "accept": "{} holds later versions against it",
}


def print_ending(
    result: ComparisonResult, form: Format, answers: Mapping[str, str] | None = None, folders: Sequence[str] = ()
) -> None:
    """Print the three lines to stdout, as text only.

    `answers` says by what `explain` finds the answers of a run, if they are on this machine; None where no library
    stands behind the runs. `folders` are the flags that name the library.
    """
    if form != "text":
        return
    first, *others = ending(result, answers, folders)
    show([Text(), Text(visible(first), style=STYLES.get(result.verdict, "bold")), *map(Text, map(visible, others))])


def ending(
    result: ComparisonResult, answers: Mapping[str, str] | None = None, folders: Sequence[str] = ()
) -> tuple[str, str, str]:
    """Return the three lines."""
    worst, *others = worst_first(result)
    models = counted(len(others) + 1, "model")
    alike = all(model.verdict == worst.verdict for model in others)
    of_several = f" ({f'each of {models}' if alike else f'{worst.model_id}, the worst of {models}'})" if others else ""
    words = f"{scope_words(result)}{of_several}"
    if result.verdict == "incomparable" and all(model.baseline is None for model in result.models):
        words = "nothing to compare with yet"
    first = f"{MARKS[result.verdict]} {result.skill}: {words}"
    following = _next(result.skill, worst, answers, folders)
    if result.asked_again and worst.verdict in ("improved", "unchanged"):
        all_cases = command(folders, "evaluate", result.skill)
        following = f"what is recorded stays as it is; {all_cases} asks all cases once more"
    lost = filter(None, (_lost(worst), less_repeatable(worst.metrics)))
    unusable = next((model.candidate.unusable for model in (worst, *others) if model.candidate.unusable), None)
    return first, unusable or "; ".join(lost), f"next: {following}"


def print_first(record: Record, form: Format, folders: Sequence[str] = (), *, kept: bool, incomplete: str = "") -> None:
    """Print the three lines of a run that there is nothing to judge against: what was measured, what it can show.

    `kept`: later versions will be held against it. `incomplete` names a run of a lower version that is incomplete.
    """
    if form != "text":
        return
    name, cases, unusable = record.skill, counted(record.n_cases, "case"), unusable_words(record)
    first = f"{record.skill} {version_words(record.skill_version)}: {'not ' * bool(unusable)}measured on {cases}"
    if not unusable:
        first += "; there is no lower version to judge it against" + (incomplete and f" ({incomplete})")
    following = next_step("try", folders, name)
    if not kept:
        following = f"{command(folders, 'evaluate', name)} records what later versions are held against"
    if unusable:
        following = AGAIN.format(command(folders, "evaluate", name))
    second = unusable or "; ".join(filter(None, [can_show(record.n_cases), profile_doubt(record)]))
    lines = (first, second, f"next: {following}")
    show([Text(), *(Text(visible(line), style="" if at else "bold") for at, line in enumerate(lines))])


def _lost(model: ModelVerdict) -> str:
    """Return what one model lost."""
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
        return f"lost by all changes since {since.version}: {since.metric} {since.difference:+.3f}"
    fell = [one for one in (*model.metrics, *model.fields) if one.verdict == "regressed" and one.tier != "advisory"]
    if not fell:  # an earlier run of the version regressed
        return f"lost: {model.reasons[0]}"
    fell.sort(key=lambda one: one.tier != "critical")
    moved = [f"{one.metric} {arrow(one.baseline, one.candidate)}" for one in fell]
    named = any(one in fell for one in model.fields)
    return f"lost: {listed(moved, _MOST_NAMED)}" + (f", most in {most}" if most and not named else "")


def _next(skill: str, model: ModelVerdict, answers: Mapping[str, str] | None, folders: Sequence[str]) -> str:
    """Return what to do."""
    if model.verdict == "regressed" or (model.verdict == "inconclusive" and model.lost_cases):
        look = _where_to_look(model, answers, folders)
        return look if model.unproved_judge is None else f"{look}; {calibration_words(model.unproved_judge)}"
    if model.verdict == "inconclusive":
        return model.remedy or next(iter(model.reasons), "more cases would decide it")
    if answers is None:
        return "compare what was measured alike" if model.verdict == "incomparable" else "nothing is in the way"
    if model.verdict == "incomparable":
        if model.baseline is None:
            return next_step("try", folders, skill)
        return f"{command(folders, 'evaluate', skill)} asks both versions side by side, by today's files"
    version = model.candidate.skill_version
    is_new = model.baseline is not None and model.baseline.skill_version != version
    if model.candidate.draft:
        first = "" if is_new else "raise the version in prompt.md if the prompt changed, and "
        return f"{first}{command(folders, 'evaluate', skill)} records it"
    if not is_new:
        return "nothing is in the way"
    return f"nothing is in the way of {version}; {next_step('accept', folders, skill, version, '--why', '…')}"


def _where_to_look(model: ModelVerdict, answers: Mapping[str, str] | None, folders: Sequence[str]) -> str:
    """Return the field or case in which most was lost, and the command that shows its answers."""
    fields = sorted((one for one in model.fields if (one.difference or 0.0) < 0.0), key=lambda one: one.difference or 0)
    cases = [*model.lost_cases, *(case.case_id for case in model.cases.broke), *model.cases.every_answer_worse]
    if model.lost_fields or (fields and not cases):
        kind, name = "field", next(iter(model.lost_fields), fields[0].metric if fields else "")
    elif cases:
        kind, name = "case", cases[0]
    else:
        return "see the figures above; no single field or case fell"
    words = f"look at {kind} {name}" if name else f"look at {WHOLE}"
    if answers is None:
        return words
    run = answers.get(model.candidate.run_id)
    if run is None:
        return f"{words}; the answers are not on this machine"
    return f"{words}: {command(folders, 'explain', run, *([f'--{kind}', name] if name else []))}"


def next_step(name: str, folders: Sequence[str], *words: str) -> str:
    """Return what to do next with one of the commands in `_STEPS`; `words` are a component and options."""
    return _STEPS[name].format(command(folders, name, *words))


def command(folders: Sequence[str], *words: str) -> str:
    """Return a command of the program in the library's folders, as code."""
    if words[0] in ("accept", "compare") and "--fixtures" in folders:  # they read no case
        at = folders.index("--fixtures")
        folders = [*folders[:at], *folders[at + 2 :]]
    quoted = (word if word == "…" else shlex.quote(word) for word in (*words, *folders))
    return f"`skill-evaluator {' '.join(quoted)}`"


def print_switch(result: "Switch", form: Format) -> None:
    """Print a switch to stdout: a row a component, whether the library may go to the new model, and where to look."""
    request, rows = result.request, [_switched(row, asked=not result.request.dry_run) for row in result.rows]
    lines = ["dry run: no call was made, nothing was written"] if request.dry_run else _answer(result)
    cells = [
        [Cell(f"{value:,.2f}" if isinstance(value, float) else str(value or "–"), code=True) for value in row.values()]
        for row in rows
    ]
    sheet = Sheet(columns=[name.replace("_", " ") for name in rows[0]], rows=cells)
    models = {"old": request.old, "new": request.new, "dry_run": request.dry_run}
    value, page = {**models, "components": rows, "conclusion": lines}, [Line(line) for line in lines]
    print_page(form, json=lambda: value, page=lambda: page_of("the components", [sheet, *page]))


def _switched(row: "SwitchedComponent", *, asked: bool) -> dict[str, Any]:
    """Return what is told of a component, by column."""
    judged = {
        "verdict": row.verdict,
        "usd_per_1000_old": row.usd_per_1000_old,
        "usd_per_1000_new": row.usd_per_1000_new,
        "lost": None if row.comparison is None else ending(row.comparison)[1],
    }
    size = {"component": row.component, "calls": row.calls, "cost_at_most_usd": row.cost_at_most_usd}
    return {**size, **(judged if asked else {}), "remark": row.remark}


def _answer(result: "Switch") -> list[str]:
    """Return whether the library may go to the new model, and where to look if not."""
    old, new = result.request.old, result.request.new
    worse = [row.component for row in result.rows if row.verdict == "regressed"]
    unsure = [row.component for row in result.rows if row.verdict not in ("regressed", "improved", "unchanged")]
    answer = f"no, {listed(worse)} regressed" if worse else f"not shown of {listed(unsure)}" if unsure else "yes"
    look = shlex.join(["compare", *worse[:1], "--models", old, new])
    lines = [f"may we switch from {old} to {new}? {answer}", f"next: `skill-evaluator {look}`"]
    return lines if worse else lines[:1]
