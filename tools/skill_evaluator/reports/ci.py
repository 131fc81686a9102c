"""The reports of CI: a plan, the results of its runs as job summary and pull-request comment, and `doctor`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from skill_evaluator.ci.linting import DoctorReport
from skill_evaluator.ci.plan import Outcome, Plan, PlannedRun, RunOutcome, Status
from skill_evaluator.display import abridged, cost_words, count, interval, number, pages, plain
from skill_evaluator.display.pages import Block, Cell, Fold, ForMedia, Heading, Lines, Page, Section, Sheet, cells_of
from skill_evaluator.library.versions import Problem
from skill_evaluator.records.record import ANSWERED, served_text
from skill_evaluator.reports import summary
from skill_evaluator.reports.comparison import Example, comparison_section, legend_section
from skill_evaluator.reports.evaluation import forecast_sheet
from skill_evaluator.reports.summary import MARKS, ComparisonSummary, Reader, amount_words, conclude, tolerance_words
from skill_evaluator.stats import by_key, total_or_none
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.sizing import FEW_CASES, can_show

_PLAN_COLUMNS = ("component", "models", "jobs", "calls", "cost at most", "why")
_RUN_COLUMNS = ("component", "model", "version", "metric", "strict mean", "verdict", "agreement", "calls", "cost", "")
_MAX_PLANNED, _MAX_RUNS = 200, 300  # rows of one table of a page
_MAX_NAMED = 10  # runs listed per verdict
_MAX_MESSAGE = 400  # characters
_MISSING = "run the missing calls of {}: re-run the jobs, or run the commands that `ci collect` prints"
_STATUSES: tuple[Status, ...] = ("complete", "incomplete", "refused", "missing", "skipped")
_NO_VERDICT, _NOT_MEASURED, _REFUSED = "–", "not measured", "refused"
_MEANINGS = {  # the worst first
    "moved": f"{MARKS['regressed']} drift, the model changed though the prompt did not",
    "regressed": f"{MARKS['regressed']} regressed, worse than the recorded version",
    _REFUSED: "✕ refused, the version was recorded with another prompt; raise the version",
    _NOT_MEASURED: "! not measured in full, so there is no verdict",
    "inconclusive": f"{MARKS['inconclusive']} inconclusive, a drop is neither significant nor ruled out",
    "incomparable": f"{MARKS['incomparable']} incomparable, measured differently from the recorded version",
    "improved": f"{MARKS['improved']} improved, better than the recorded version",
    "unchanged": f"{MARKS['unchanged']} unchanged",
    "no drift": f"{MARKS['unchanged']} no drift, another run of the recorded version shows none",
    _NO_VERDICT: f"{_NO_VERDICT} no lower version is recorded",
}


def plan_page(plan: Plan) -> Page:
    """Build the page of a plan: chosen components, forecast, skipped components, judge calls and errors."""
    chosen = pages.cut_table(_chosen_sheet(plan), _MAX_PLANNED) if plan.runs else []
    skipped = [cells_of((one.skill, ", ".join(one.models), one.reason)) for one in plan.decisions.skipped]
    judging = [(run, run.judge) for run in plan.runs if run.judge]
    judged = [cells_of((run.skill, run.model_id, judge.model_id), count(judge.calls)) for run, judge in judging]
    columns = ("component", "model", "judge", "calls at most")
    tables = {
        "Forecast": forecast_sheet(plan.forecast),
        "Not evaluated": Sheet(columns=("component", "models", "why"), rows=skipped),
        "Judged": Sheet(columns=columns, rows=judged, numbers=frozenset(columns[-1:])),
    }
    cases = by_key((run.skill, case_id) for run in plan.runs for case_id in run.cases)
    sizes = {skill: len(set(case_ids)) for skill, case_ids in cases.items()}
    few = (f"{skill}: {can_show(n)}" for skill, n in sizes.items() if 0 < n < FEW_CASES)
    first = [Heading("Evaluation plan", level=2), f"{_plan_size(plan)}.", *chosen, Lines([*plan.retiring, *few], "-")]
    sections = [
        Section(name=title, blocks=[Heading(title), *pages.cut_table(sheet, _MAX_PLANNED)])
        for title, sheet in tables.items()
        if sheet.rows
    ]
    faults = [_fault_section(plan.decisions.faults)] if plan.decisions.faults else []
    return Page([Section(name="the plan", blocks=first), *sections, *faults])


def _chosen_sheet(plan: Plan) -> Sheet:
    rows = []
    for chosen in plan.decisions.chosen:
        runs = [run for run in plan.runs if run.skill == chosen.skill and run.model_id in chosen.models]
        remarks = [chosen.reason]
        for run in runs:
            if run.baseline is not None:
                times = run.calls / len(run.cases) / run.replicates
                remarks.append(f"interleaved with {run.baseline.skill_version}: {plain(times, 3)} × the calls")
        reason = Cell("; ".join(dict.fromkeys(remarks)), code=True)
        rows.append(cells_of((chosen.skill, ", ".join(chosen.models)), len(runs), *_calls_and_cost(runs), reason))
    return Sheet(columns=_PLAN_COLUMNS, rows=rows, numbers=frozenset(_PLAN_COLUMNS[2:5]))


def _fault_section(faults: Sequence[Problem]) -> Section:
    rows = [cells_of((f"{fault.file}:{fault.line}", abridged(fault.message, _MAX_MESSAGE))) for fault in faults]
    table = pages.cut_table(Sheet(columns=("file", "error"), rows=rows), _MAX_RUNS)
    return Section(name="the errors", blocks=[Heading("Not evaluated because of errors"), *table])


def _plan_size(plan: Plan) -> str:
    untouched = f"; {counted(plan.decisions.untouched, 'component')} untouched" if plan.decisions.untouched else ""
    if not plan.runs:
        return f"Nothing to evaluate{untouched}"
    dry = ", as a dry run (no call is made)" if plan.dry_run else ""
    calls, cost = _calls_and_cost(plan.runs)
    caps = [run.max_cost_usd for run in plan.runs if run.max_cost_usd is not None]
    cap = f", capped at {cost_words(sum(caps), digits=2)}" if caps else ""
    shared = f" of {counted(len(plan.runs), 'run')}" if len(plan.jobs) < len(plan.runs) else ""
    return f"{counted(len(plan.jobs), 'job')}{shared}, {calls} calls, {cost} at most{cap}{dry}{untouched}"


def _calls_and_cost(runs: Sequence[PlannedRun]) -> tuple[str, str]:
    cost = total_or_none(run.cost_upper_usd for run in runs)
    return count(sum(run.all_calls for run in runs)), "unknown cost" if cost is None else cost_words(cost, digits=2)


def outcome_page(outcome: Outcome, published: bool = True, site: str | None = None) -> Page:
    """Build the page of CI results: a list of verdicts, errors, comparisons (worst first), drift, and all runs.

    `published` is False if some records did not reach their branch; `site` is the address for links to the website.
    """
    remark = "" if published else "Some records were not pushed to their branch; the log of the job has the reason."
    if outcome.draft:
        cost = total_or_none(run.cost_usd for run in outcome.runs if run.counts.scored)
        remark = f"A draft before the merge, not recorded; cost: {cost_words(cost)}."
    worst_first = sorted(outcome.verdicts, key=lambda result: WORST_FIRST.index(result.verdict))
    values = dict[str, Example]()
    for run in outcome.runs:
        if run.run_id and run.lost_values:
            rows = [cells_of((one.path, one.case_id, one.before, one.after)) for one in run.lost_values]
            values[run.run_id] = "", Sheet(columns=("lost value", "case", "before", "after"), rows=rows)
    compared = [
        (result, comparison_section(result, _component_conclusion(result, outcome), values)) for result in worst_first
    ]
    changed = [section for result, section in compared if result.verdict != "unchanged"]
    unchanged = [block for result, section in compared if result.verdict == "unchanged" for block in section.blocks]
    runs: list[Block] = pages.cut_table(_run_sheet(outcome), _MAX_RUNS) if outcome.runs else []
    sections = [Section(name="the summary", blocks=[Heading("Evaluation", level=2), *_outcome_blocks(outcome), remark])]
    sections += [_fault_section(outcome.faults)] if outcome.faults else []
    sections += [*changed, *map(_drift_section, outcome.drift)]
    sections += [_collapsed_section("Unchanged", unchanged), _collapsed_section("Every run", runs)]
    everything = [*outcome.verdicts, *outcome.drift]
    return Page([*sections, *([legend_section(everything)] if everything else [])], site)


def _collapsed_section(title: str, blocks: Sequence[Block]) -> Section:
    fold = ForMedia(("markdown", "site"), [Fold(title, blocks)])
    return Section(name=title.lower(), blocks=[ForMedia(("terminal",), blocks), fold])


def _component_conclusion(result: ComparisonResult, outcome: Outcome) -> ComparisonSummary:
    conclusion = conclude(result, Reader(in_ci=True, draft=outcome.draft))
    runs = [run for run in outcome.runs if run.skill == result.skill and not run.is_baseline]
    if models := [run.model_id for run in runs if _lacks_calls(run)]:
        return replace(conclusion, next=f"{_MISSING.format(listed(models))}; otherwise {conclusion.next}")
    return conclusion


def _lacks_calls(run: RunOutcome) -> bool:
    """Return whether a run is incomplete because calls failed or were not made, not only by unreadable outputs."""
    unreadable = sum(run.counts.failed.get(kind, 0) for kind in ANSWERED)
    return run.status not in ("complete", "refused") and not 0 < unreadable == run.counts.planned - run.counts.scored


def _drift_section(result: ComparisonResult) -> Section:
    lines = []
    for model in result.models:
        moved = f"the model changed though the prompt did not: {model.model_id}: {', '.join(model.moved)}"
        lines.append(moved if model.moved else f"no drift: {model.model_id}; its runs are pooled")
        runs = filter(None, (model.baseline, model.candidate))
        served = [served_text(run.served_model) or "an unnamed model" for run in runs]
        if len(set(served)) > 1:
            lines.append(f"{model.model_id}: the vendor served {', then '.join(served)}")
    details = comparison_section(result, conclude(result, Reader(in_ci=True))).blocks
    heading = Heading(Cell(result.skill, code=True), ": drift", level=2)
    return Section(name=f"{result.skill}: drift", blocks=[heading, Lines(lines, "-"), Fold("Both runs", details)])


def _outcome_blocks(outcome: Outcome) -> Iterator[Block]:
    if not outcome.runs:
        yield "No run was made." if outcome.faults else "Nothing was to be evaluated."
        return
    otherwise = {"complete": _NO_VERDICT, "refused": _REFUSED}
    made = [run for run in outcome.runs if not run.is_baseline]
    by_verdict = by_key((outcome.verdict_text(run) or otherwise.get(run.status, _NOT_MEASURED), run) for run in made)
    tolerance = f", {tolerance_words(*(model for result in outcome.verdicts for model in result.models))}"
    lines = []
    for verdict, text in _MEANINGS.items():
        if runs := by_verdict.get(verdict):
            names = listed([f"{run.skill} with {run.model_id}" for run in runs], _MAX_NAMED)
            lines.append(f"{text}{tolerance * (verdict == 'unchanged')}: {names}")
    collapsed = (result for result in outcome.verdicts if result.verdict == "unchanged")
    lines += [f"{result.skill}: {amounts}" for result in collapsed if (amounts := amount_words(result))]
    reader = Reader(in_ci=True, draft=outcome.draft)
    judged = {result.skill for result in (*outcome.verdicts, *outcome.drift)}
    for skill, runs in by_key((run.skill, run) for run in made if run.skill not in judged).items():
        if not any(run.counts.scored for run in runs):
            state = "nothing was measured"
        elif outcome.draft:
            state = "there is no lower version to compare with"
        else:
            state = f"{summary.BOARD.format(reader.command('leaderboard', skill))}, with confidence intervals"
        if open_runs := [run.model_id for run in runs if _lacks_calls(run)]:
            step = f"{_MISSING.format(listed(open_runs))}; the table of runs has the reasons"
        elif any(run.status == "incomplete" for run in runs):
            step = summary.AGAIN.format(reader.command("evaluate", skill))
        else:
            step = summary.MERGE if outcome.draft else summary.try_step(skill, reader)
        lines.append(f"{skill}: {state}; next: {step}")
    yield Lines(lines, "-")
    statuses = Counter(run.status for run in outcome.runs)
    kinds = ", ".join(f"{statuses[status]} {status}" for status in _STATUSES if statuses[status])
    planned, scored = sum(run.counts.planned for run in outcome.runs), sum(run.counts.scored for run in outcome.runs)
    failed = sum(sum(run.counts.failed.values()) for run in outcome.runs)
    calls = f"{count(planned)} calls planned: {count(scored)} scored, {count(failed)} failed"
    yield f"{counted(len(outcome.runs), 'run')} ({kinds}); {calls}, {count(planned - scored - failed)} not run."


def _run_sheet(outcome: Outcome) -> Sheet:
    rows = []
    for run in outcome.runs:
        figures = run.figures
        ci95 = f" ({interval(figures.ci95, 0)})" if figures and figures.ci95 else ""
        text = [] if run.status == "complete" else [run.status.upper()]
        text.append(", ".join(f"{times} {kind}" for kind, times in run.counts.failed.items()))
        remark = "; ".join(filter(None, [*text, abridged(run.reason, _MAX_MESSAGE)]))
        cells = [
            Cell(run.skill, code=True, link=pages.component_address(run.skill)),
            Cell(run.model_id, code=True),
            Cell(figures.skill_version, code=True) if figures else None,
            Cell(run.primary_metric, code=True) if run.primary_metric else None,
            number(figures.accuracy) + ci95 if figures else None,
            "baseline" if run.is_baseline else outcome.verdict_text(run) or _NO_VERDICT,
            number(figures.reproducibility if figures else None),
            f"{run.counts.scored}/{run.counts.planned}",
            None if run.cost_usd is None else cost_words(run.cost_usd, run.hit_rate),
            Cell(remark, code=bool(remark)),
        ]
        rows.append(cells_of((), *cells))
    return Sheet(columns=_RUN_COLUMNS, rows=rows)


def doctor_blocks(report: DoctorReport) -> list[Block]:
    """Return the table of keys, and lines on workflows, problems of the set-up, and resources that were not checked."""
    here = {"not_needed": "not needed", "set": "set", "in_ci_only": "none, in CI only"}
    in_ci = {
        "not_needed": "not needed",
        "environment": "{0}: set",
        "repository": "repository: {1} set",
        "identity": "identity of {0}",
        "missing": "none in {0}, no {1}",
        "unknown": "not checked",
    }
    rows = []
    for key in report.models:
        set_in_ci = in_ci[key.in_ci].format(key.environment, key.variables_text)
        set_here = here.get(key.here) or f"{key.variables_text} not set"
        rows.append(cells_of([key.id], set_here, set_in_ci, key.call.replace("_", " ")))
    workflows = ", ".join(report.workflows) or "none; `skill-evaluator init --workflows` adds them"
    lines = [
        f"workflows: {workflows}",
        *(f"problem: {line}" for line in report.problems),
        *(f"not checked: {line}" for line in report.unseen),
        counted(len(report.problems), "problem"),
    ]
    columns = ("model", "key here", "key in CI", "call")
    return [Sheet(columns=columns, rows=rows, whole=frozenset({"model"})), Lines(lines)]
