"""The reports of several components: of an evaluation of all, and of a switch to a new model."""

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skill_evaluator.display import amount, cost_words, number, signed
from skill_evaluator.display.pages import Block, Lines, Page, page_of
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Sheet, cells_of
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.evaluation.many import ManyPlanned
from skill_evaluator.evaluation.pipeline import EvaluationResult
from skill_evaluator.evaluation.switching import Switch, SwitchedComponent
from skill_evaluator.reports.evaluation import run_names
from skill_evaluator.reports.summary import STYLES, Reader, amount_words, conclude
from skill_evaluator.text import counted, listed, version_words

_COLUMNS = ("component", "model", "version", "score", "change", "verdict", "USD")
_Results = Mapping[str, EvaluationResult | SkillEvaluatorError]


def print_planned(planned: ManyPlanned) -> None:
    """Print to stderr the calls and the maximum cost of each component, its problems, and the skipped components."""
    for each in planned.ready:
        for estimate in each.estimates:
            size = f"{counted(estimate.calls, 'call')}, at most {cost_words(estimate.cost_upper_usd)}"
            print(f"{visible(each.component.name)} on {visible(estimate.model_id)}: {size}", file=sys.stderr)
        for problem in each.problems:
            print(f"problem: {visible(problem)}", file=sys.stderr)
    for name, reason in planned.left_out.items():
        print(f"left out: {visible(name)}: {visible(str(reason))}", file=sys.stderr)
    total = f"{counted(planned.calls, 'call')}, at most {cost_words(planned.cost_at_most_usd)}"
    print(f"{counted(len(planned.ready), 'component')}: {total}", file=sys.stderr)


def many_json(done: _Results, planned: ManyPlanned) -> dict[str, Any]:
    """Return the runs of several components as JSON, and the components that were skipped."""
    return {"runs": list(_rows(done)), "left_out": {name: str(reason) for name, reason in planned.left_out.items()}}


def many_page(done: _Results, planned: ManyPlanned, folders: Sequence[str]) -> Page:
    """Report the verdict on each run, and the conclusion of each component that is not as good as before.

    `folders` are the options that name the library.
    """
    cells = []
    for row in _rows(done):
        scores = (version_words(row["version"] or "–"), number(row["score"]), signed(row["change"]))
        style = "red" if row["verdict"].startswith("error") else STYLES.get(row["verdict"], "")
        verdict = Cell(row["verdict"], style)
        cells.append(cells_of([], row["component"], row["model"], *scores, verdict, cost_words(row["USD"])))
    blocks: list[Block] = [Sheet(columns=_COLUMNS, rows=cells)]
    for each in done.values():
        if isinstance(each, SkillEvaluatorError) or each.verdict is None:
            continue
        if len(done) == 1 or each.verdict.verdict not in ("improved", "unchanged"):
            blocks.append(conclude(each.verdict, Reader(outputs=run_names(each), folders=folders)).closing)
        elif words := amount_words(each.verdict):
            blocks.append(f"{each.verdict.skill}: {words}")
    blocks.append(Lines([f"left out: {name}: {reason}" for name, reason in planned.left_out.items()]))
    return page_of("components", blocks)


def _rows(done: _Results) -> Iterator[dict[str, Any]]:
    for name, each in done.items():
        for problem in [each] if isinstance(each, SkillEvaluatorError) else each.problems:
            yield dict.fromkeys(_COLUMNS) | {"component": name, "verdict": f"error: {problem}"}
        if not isinstance(each, SkillEvaluatorError):
            yield from (dict(zip(_COLUMNS, (name, *row), strict=True)) for row in _runs(each))


def _runs(done: EvaluationResult) -> Iterator[tuple[Any, ...]]:
    """Yield model, version, score, change, verdict and cost of each run that is not an interleaved baseline."""
    metric = done.inputs.component.primary_metric
    for record in (run.record for run in done.finished):
        if record.beside is not None and done.planned.roles[record.run_id] == "baseline":
            continue
        verdict = None if done.verdict is None else done.verdict.on_run(record.run_id)
        change = None if verdict is None else next((m.difference for m in verdict.metrics if m.metric == metric), None)
        state = verdict.verdict if verdict else (record.stopped or "incomplete") if not record.complete else "recorded"
        score = record.accuracy[metric].strict_mean if metric in record.accuracy else None
        yield record.model_id, record.skill_version, score, change, state, record.cost_usd


def switch_json(result: Switch) -> dict[str, Any]:
    """Return a switch as JSON."""
    request = result.request
    models = {"old": request.old, "new": request.new, "dry_run": request.dry_run}
    return {**models, "components": _switched_rows(result), "conclusion": _answer(result)}


def switch_page(result: Switch) -> Page:
    """Report a switch: a row per component, and whether the library may move to the new model."""
    rows = _switched_rows(result)
    cells = [
        [Cell(amount(value) if isinstance(value, float) else str(value or "–"), code=True) for value in row.values()]
        for row in rows
    ]
    sheet = Sheet(columns=[name.replace("_", " ") for name in rows[0]], rows=cells)
    return page_of("the components", [sheet, *_answer(result)])


def _switched_rows(result: Switch) -> list[dict[str, Any]]:
    """Return the columns of each component; a dry run has no verdicts."""

    def judged(row: SwitchedComponent) -> dict[str, Any]:
        return {
            "verdict": row.verdict,
            "usd_per_1000_old": row.usd_per_1000_old,
            "usd_per_1000_new": row.usd_per_1000_new,
            "lost": None if row.comparison is None else conclude(row.comparison, Reader()).lost.removeprefix("lost: "),
        }

    return [
        {
            "component": row.component,
            "calls": row.calls,
            "cost_at_most_usd": row.cost_at_most_usd,
            **({} if result.request.dry_run else judged(row)),
            "remark": row.remark,
        }
        for row in result.rows
    ]


def _answer(result: Switch) -> list[str]:
    """Return whether the library may move to the new model, and where to look if not."""
    if result.request.dry_run:
        return ["dry run: no call was made, nothing was written"]
    old, new = result.request.old, result.request.new
    worse = [row.component for row in result.rows if row.verdict == "regressed"]
    unsure = [row.component for row in result.rows if row.verdict not in ("regressed", "improved", "unchanged")]
    answer = f"no, {listed(worse)} regressed" if worse else f"not shown of {listed(unsure)}" if unsure else "yes"
    following = f"put {new} in the place of {old} in .evaluator/models.yaml"
    if shown := [*worse, *unsure][:1]:
        following = f"`{shlex.join(['skill-evaluator', 'compare', *shown, '--models', old, new])}` shows where"
    return [f"may we switch from {old} to {new}? {answer}", f"next: {following}"]
