"""What came of several components that were evaluated at once: one table of verdicts, as text, Markdown or JSON."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skill_evaluator.display import cost_words, number, signed
from skill_evaluator.display.pages import Block, Line, Lines, page_of, print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.evaluation.many import ManyPlanned
from skill_evaluator.evaluation.pipeline import EvaluationResult
from skill_evaluator.reports.ending import ending
from skill_evaluator.text import counted, version_words

_COLUMNS = ("component", "model", "version", "score", "change", "verdict", "USD")


def print_planned(planned: ManyPlanned) -> None:
    """Print on stderr what is to be asked and what it costs at most, and what is left out."""
    for each in planned.ready:
        for estimate in each.estimates:
            told = f"{counted(estimate.calls, 'call')}, at most {cost_words(estimate.cost_upper_usd)}"
            print(f"{visible(each.component.name)} on {visible(estimate.model_id)}: {told}", file=sys.stderr)
    for name, reason in planned.left_out.items():
        print(f"left out: {visible(name)}: {visible(str(reason))}", file=sys.stderr)
    total = f"{counted(planned.calls, 'call')}, at most {cost_words(planned.cost_at_most_usd)}"
    print(f"{counted(len(planned.ready), 'component')}: {total}", file=sys.stderr)


def print_many(
    done: Mapping[str, EvaluationResult | SkillEvaluatorError],
    planned: ManyPlanned,
    form: Format,
    folders: Sequence[str],
) -> None:
    """Print what came of each component on each model, and of each that is not as good as before what to do next."""
    rows = [dict(zip(_COLUMNS, (name, *row), strict=True)) for name, each in done.items() for row in _rows(each)]
    value = {"runs": rows, "left_out": {name: str(reason) for name, reason in planned.left_out.items()}}
    cells = []
    for row in rows:
        scores = (version_words(row["version"] or "–"), number(row["score"]), signed(row["change"]))
        told = Cell(row["verdict"], "red" if row["verdict"].startswith(("regressed", "error")) else "")
        cells.append(cells_of([], row["component"], row["model"], *scores, told, cost_words(row["USD"])))
    blocks: list[Block] = [Sheet(columns=_COLUMNS, rows=cells)]
    for each in done.values():
        if (
            isinstance(each, EvaluationResult)
            and each.verdict
            and each.verdict.verdict not in ("improved", "unchanged")
        ):
            answers = {run.record.run_id: str(run.folder) for run in each.finished}
            first, *others = ending(each.verdict, answers, folders)
            blocks += [Line(first, style="bold"), Lines(others)]
    blocks.append(Lines([f"left out: {name}: {reason}" for name, reason in planned.left_out.items()]))
    print_page(form, json=lambda: value, page=lambda: page_of("components", blocks))


def _rows(done: EvaluationResult | SkillEvaluatorError) -> Iterator[tuple[Any, ...]]:
    for problem in [done] if isinstance(done, SkillEvaluatorError) else done.problems:
        yield None, None, None, None, f"error: {problem}", None
    if isinstance(done, SkillEvaluatorError):
        return
    for run in done.finished:
        record = run.record
        if record.beside is not None and done.planned.roles[record.run_id] == "baseline":
            continue
        verdict = None if done.verdict is None else done.verdict.on_run(record.run_id)
        metric = done.inputs.component.primary_metric
        change = None if verdict is None else next((m.difference for m in verdict.metrics if m.metric == metric), None)
        told = verdict.verdict if verdict else (record.stopped or "incomplete") if not record.complete else "recorded"
        score = record.accuracy[metric].strict_mean if metric in record.accuracy else None
        yield record.model_id, record.skill_version, score, change, told, record.cost_usd
