"""What came of several components that were evaluated at once: one table of verdicts, as text, Markdown or JSON."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from skill_evaluator.display import cost_words, number, signed
from skill_evaluator.display.pages import Block, Line, Lines, page_of, print_page
from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.evaluation.many import ManyPlanned
from skill_evaluator.evaluation.story import Evaluation
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


def print_many(done: Mapping[str, Evaluation | SkillEvaluatorError], planned: ManyPlanned, form: Format) -> None:
    """Print what came of each component on each model."""
    rows = [row for name, each in done.items() for row in _rows(name, each)]
    value = {"runs": rows, "left_out": {name: str(reason) for name, reason in planned.left_out.items()}}
    print_page(form, json=lambda: value, page=lambda: page_of("components", _blocks(rows, planned)))


def _rows(name: str, done: Evaluation | SkillEvaluatorError) -> Iterator[dict[str, Any]]:
    problems = [done] if isinstance(done, SkillEvaluatorError) else done.problems
    for problem in problems:
        yield dict(zip(_COLUMNS, (name, None, None, None, None, f"error: {problem}", None), strict=True))
    if isinstance(done, SkillEvaluatorError):
        return
    for asked in (run.manifest for run in done.planned.runs if run.manifest.run_id in done.pending):
        waits = (name, asked.model_id, asked.skill_version, None, None, f"waits: {done.pending[asked.run_id]}", None)
        yield dict(zip(_COLUMNS, waits, strict=True))
    for run in done.finished:
        record = run.record
        if record.beside is not None and done.planned.roles[record.run_id] == "baseline":
            continue
        verdict = None if done.verdict is None else done.verdict.on_run(record.run_id)
        metric = done.inputs.component.primary_metric
        change = None if verdict is None else next((m.difference for m in verdict.metrics if m.metric == metric), None)
        told = verdict.verdict if verdict else (record.stopped or "incomplete") if not record.complete else "recorded"
        score = record.accuracy[metric].strict_mean if metric in record.accuracy else None
        values = (name, record.model_id, record.skill_version, score, change, told, record.cost_usd)
        yield dict(zip(_COLUMNS, values, strict=True))


def _blocks(rows: list[dict[str, Any]], planned: ManyPlanned) -> Iterator[Block]:
    cells = []
    for row in rows:
        scores = (version_words(row["version"] or "–"), number(row["score"]), signed(row["change"]))
        verdict = Cell(row["verdict"], "red" if row["verdict"].startswith(("regressed", "error")) else "")
        cells.append(cells_of([], row["component"], row["model"], *scores, verdict, cost_words(row["USD"])))
    yield Sheet(columns=_COLUMNS, rows=cells)
    if planned.left_out:
        yield Line("")
        yield Lines([f"left out: {name}: {reason}" for name, reason in planned.left_out.items()])
