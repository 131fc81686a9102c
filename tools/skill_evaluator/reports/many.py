"""The reports of several evaluations: of all components, of a switch to a new model, and of mutation testing."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skill_evaluator.display import amount, arrow, cost_words, interval, number, shortened, signed, visible
from skill_evaluator.display.pages import Block, Cell, Heading, Lines, Page, Sheet, cells_of, page_of
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.evaluation.many import ManyPlanned, Switch, SwitchedComponent
from skill_evaluator.evaluation.mutation import MutantResult, MutationResult
from skill_evaluator.evaluation.pipeline import EvaluationResult
from skill_evaluator.identifiers import is_baseline
from skill_evaluator.reports.evaluation import evaluation_summary
from skill_evaluator.reports.summary import MARKS, STYLES, ComparisonSummary, Reader, conclude
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.rules import WORST_FIRST

_COLUMNS = ("component", "model", "version", "score", "change", "verdict", "USD")
_STATUS_STYLES = {"killed": "green", "survived": "red", "undecided": "yellow"}
_SOUND = {"improved", "unchanged", "recorded"}
_MAX_NAMED = 5
_Results = Mapping[str, EvaluationResult | SkillEvaluatorError]


def print_planned(planned: ManyPlanned) -> None:
    """Print to stderr the calls and maximum cost of each component, the problems, and the skipped components."""
    for each in planned.ready:
        for estimate in each.estimates:
            size = f"{counted(estimate.calls, 'call')}, at most {cost_words(estimate.cost_upper_usd)}"
            print(f"{visible(each.component.name)} with {visible(estimate.model_id)}: {size}", file=sys.stderr)
        for problem in each.problems:
            print(f"problem: {visible(problem)}", file=sys.stderr)
    for name, reason in planned.left_out.items():
        print(f"skipped: {visible(name)}: {visible(str(reason))}", file=sys.stderr)
    total = f"{counted(planned.calls, 'call')}, at most {cost_words(planned.cost_at_most_usd)}"
    print(f"{counted(len(planned.ready), 'component')}: {total}", file=sys.stderr)


def many_json(done: _Results, planned: ManyPlanned) -> dict[str, Any]:
    """Return a JSON object: `runs` has a row per run or error, `left_out` the reason by skipped component."""
    return {"runs": list(_run_rows(done)), "left_out": {name: str(reason) for name, reason in planned.left_out.items()}}


def many_page(done: _Results, planned: ManyPlanned, folders: Sequence[str]) -> Page:
    """Build the page of several evaluations: runs and errors, conclusions, and skipped components.

    A component with only sound runs (improved, unchanged, recorded) has a short conclusion, unless all runs are sound.
    """
    cells = []
    for row in _run_rows(done):
        scores = (row["version"] or "–", number(row["score"]), signed(row["change"]))
        style = "red" if row["verdict"].startswith("error") else STYLES.get(row["verdict"], "")
        figures = (*scores, Cell(row["verdict"], style), cost_words(row["USD"]))
        cells.append(cells_of([], row["component"], row["model"], *figures))
    measured = [each for each in done.values() if isinstance(each, EvaluationResult)]
    worse = [each for each in measured if {state for *_, state, _ in _recorded_runs(each)} - _SOUND]
    shown = {each.inputs.component.name for each in worse or measured}
    summaries = [(each.inputs.component.name, evaluation_summary(each, folders)) for each in measured]
    closings = [one.closing for name, one in summaries if one and name in shown]
    others = [(name, (one.amounts, one.ship)) for name, one in summaries if one and name not in shown]
    lines = [f"{name}, {text}" for name, texts in others for text in texts if text]
    lines += [f"skipped: {name}: {reason}" for name, reason in planned.left_out.items()]
    return page_of("components", [Sheet(columns=_COLUMNS, rows=cells), *closings, Lines(lines)])


def _run_rows(done: _Results) -> Iterator[dict[str, Any]]:
    for name, each in done.items():
        for problem in [each] if isinstance(each, SkillEvaluatorError) else each.problems:
            yield dict.fromkeys(_COLUMNS) | {"component": name, "verdict": f"error: {problem}"}
        if not isinstance(each, SkillEvaluatorError):
            yield from (dict(zip(_COLUMNS, (name, *row), strict=True)) for row in _recorded_runs(each))


def _recorded_runs(done: EvaluationResult) -> Iterator[tuple[Any, ...]]:
    """Yield the model, version, score, change, verdict and cost in USD of each run. Skip interleaved baselines.

    A run without a verdict has `recorded`, `incomplete` or the reason why it stopped instead.
    """
    metric = done.inputs.component.scoring.primary_metric
    for record in (run.record for run in done.finished):
        if is_baseline(record.run_id, record.beside):
            continue
        verdict = None if done.verdict is None else done.verdict.on_run(record.run_id)
        change = None if verdict is None else next((m.difference for m in verdict.metrics if m.metric == metric), None)
        state = verdict.verdict if verdict else (record.stopped or "incomplete") if not record.complete else "recorded"
        score = record.accuracy[metric].strict_mean if metric in record.accuracy else None
        yield record.model_id, record.skill_version, score, change, state, record.cost.cost_usd


def switch_json(result: Switch, folders: Sequence[str]) -> dict[str, Any]:
    """Return the JSON value of a switch. `folders`: options such as `--config DIR`, which suggested commands repeat."""
    request = result.request
    models = {"old": request.old, "new": request.new, "dry_run": request.dry_run}
    rows = []
    for row in result.rows:
        value = {"component": row.component, "calls": row.calls, "cost_at_most_usd": row.cost_at_most_usd}
        if not request.dry_run:
            lost = None if row.comparison is None else conclude(row.comparison, Reader()).lost.removeprefix("lost: ")
            costs = {"usd_per_1000_old": row.usd_per_1000_old, "usd_per_1000_new": row.usd_per_1000_new}
            value |= {"verdict": row.verdict, **costs, "lost": lost}
        rows.append({**value, "remark": row.remark})
    conclusion = [] if request.dry_run else _switch_summary(result, folders).lines
    return {**models, "components": rows, "conclusion": conclusion}


def switch_page(result: Switch, folders: Sequence[str]) -> Page:
    """Build the page of a switch of models: a row per component, and the conclusion unless it is a dry run."""
    remarks = Lines([f"{row.component}: {row.remark}" for row in result.rows if row.remark], style="yellow")
    if result.request.dry_run:
        columns = ("component", "calls", "cost at most")
        rows = [cells_of([row.component], row.calls, cost_words(row.cost_at_most_usd)) for row in result.rows]
        sheet = Sheet(columns=columns, rows=rows, numbers=frozenset(columns[1:]))
        return page_of("the components", [sheet, remarks, "dry run: no call was made, nothing was written"])
    titles = ("component", "verdict", "score", "change", "95 % interval", "USD / 1,000")
    blocks: list[Block] = [
        Sheet(columns=titles, rows=list(map(_switched_row, result.rows)), below=titles[4:]),
        Lines(["score and USD: old model → new model"], style="dim"),
        remarks,
        _switch_summary(result, folders).closing,
    ]
    return page_of("the components", blocks)


def _switched_row(row: SwitchedComponent) -> list[Cell]:
    measures = row.comparison.models[0].metrics if row.comparison else []
    measure = next((measure for measure in measures if measure.tier == "critical"), None)
    verdict: str = row.verdict or "not compared"
    figures = ["–"] * 3
    if measure is not None:
        ci95 = interval(measure.test.ci95, measure.test.n_cases, signed)
        figures = [arrow(measure.baseline, measure.candidate), signed(measure.difference), ci95]
    cost = f"{amount(row.usd_per_1000_old)} → {amount(row.usd_per_1000_new)}"
    marked = Cell(f"{MARKS.get(verdict, '!')} {verdict}", STYLES.get(verdict, ""))
    return cells_of([row.component], marked, *figures, cost)


def _switch_summary(result: Switch, folders: Sequence[str]) -> ComparisonSummary:
    old, new, reader = result.request.old, result.request.new, Reader(folders=folders)
    worse = [row.component for row in result.rows if row.verdict == "regressed"]
    unsure = [row.component for row in result.rows if row.verdict not in ("regressed", "improved", "unchanged")]
    answer = f"no, {listed(worse)} regressed" if worse else f"not decided for {listed(unsure)}" if unsure else "yes"
    rank = ["regressed", None, *WORST_FIRST]
    worst = min(result.rows, key=lambda row: rank.index(row.verdict))
    summary = None if worst.comparison is None else conclude(worst.comparison, Reader())
    ships = [f"{row.component} {row.comparison.ship.partition(': ')[2]}" for row in result.rows if row.comparison]
    following = f"replace {old} with {new} in .evaluator/models.yaml"
    if shown := [*worse, *unsure][:1]:
        following = f"compare the two models: {reader.command('compare', *shown, '--models', old, new)}"
    return ComparisonSummary(
        verdict=f"may the library switch from {old} to {new}? {answer}",
        lost="" if summary is None else f"{worst.component}: {summary.lost}",
        sure="" if summary is None else f"{worst.component}, {summary.sure}",
        ship=f"to ship: {'; '.join(ships)}" if ships else "",
        next=following,
        style=STYLES["regressed" if worse else "inconclusive" if unsure else "improved"],
    )


def mutation_page(result: MutationResult) -> Page:
    """Build the page of mutation testing: the removed parts of a prompt and, unless it is a dry run, the results."""
    columns = ("mutant", "removed") if result.dry_run else ("mutant", "removed", "status", "noticed by")
    table = Sheet(columns=columns, rows=[_mutant_row(one)[: len(columns)] for one in result.mutants])
    notes = Lines(list(_mutation_notes(result)), style="dim")
    return page_of(result.skill, [_headline(result), table, notes])


def _headline(result: MutationResult) -> Heading:
    counts = counted(len(result.mutants), "mutant")
    if not result.dry_run:
        rest = [f", {count} {status}" for status in ("survived", "undecided") if (count := result.count(status))]
        score = "" if result.score is None else f" · mutation score {amount(result.score)}"
        counts = f"{result.count('killed')} of {counts} killed{''.join(rest)}{score}"
    size = f"{counted(result.n_cases, 'case')}, {counted(result.replicates, 'replicate')}"
    names = Cell(result.skill, code=True), Cell(result.model_id, code=True)
    return Heading(names[0], f": {counts} · ", names[1], f", {size}", level=2)


def _mutant_row(mutant: MutantResult) -> tuple[Cell, ...]:
    moved = [f"{one.name} {amount(one.before)} → {amount(one.after)}" for one in mutant.reactions]
    noticed = Cell(listed(moved, _MAX_NAMED) or mutant.reason or "–", code=bool(moved or mutant.reason))
    removed = Cell(shortened(mutant.text), code=True)
    return (Cell(mutant.id, code=True), removed, Cell(mutant.status, _STATUS_STYLES[mutant.status]), noticed)


def _mutation_notes(result: MutationResult) -> Iterator[str]:
    if result.left_out:
        yield f"not removed: {counted(result.left_out, 'shorter part')} (--mutants)"
    if result.dry_run:
        yield f"{counted(result.calls, 'call')}; cost at most {cost_words(result.cost_usd, digits=2)}"
        yield "dry run: no call was made, nothing was written"
    else:
        yield f"{counted(result.calls, 'call')}; cost {cost_words(result.cost_usd)}"
        yield f"outputs: {result.folder}"
