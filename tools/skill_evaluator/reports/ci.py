"""A plan of CI, its outcome, and what `doctor` says: for a job's page, a comment on a pull request, or a terminal.

Text from outside is never taken for mark-up, and a page has limits that keep the most important in it.
"""

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from skill_evaluator.ci.doctor import DoctorReport
from skill_evaluator.ci.matrix import outputs_of
from skill_evaluator.ci.outcome import LostValue, Outcome, RunOutcome, Status
from skill_evaluator.ci.plan import OnModels, Plan, PlannedRun
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.display import cost_words, number
from skill_evaluator.display.addresses import NO_SITE, Site
from skill_evaluator.display.options import PlatformName
from skill_evaluator.display.pages import (
    Block,
    Fold,
    Line,
    Lines,
    Only,
    Page,
    Section,
    bullets,
    cut_table,
    page_of,
    print_page,
)
from skill_evaluator.display.safe_text import abridged, code_span, prose
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.errors import PlanError
from skill_evaluator.library.versions import Problem
from skill_evaluator.records.record import served_text
from skill_evaluator.reports.comparison import MARKS, comparison_sections, legend_section, tolerance_words
from skill_evaluator.reports.ending import ending
from skill_evaluator.reports.planning import forecast_sheet
from skill_evaluator.stats import by_key, total_or_none
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.planning.sizing import FEW_CASES, can_show

_PLAN_COLUMNS = ("component", "models", "jobs", "calls", "cost at most", "why")
_RUN_COLUMNS = ("component", "model", "version", "metric", "strict mean", "verdict", "agreement", "calls", "cost", "")
_MOST_PLANNED, _MOST_RUNS = 200, 300  # rows of one table of a page
_MOST_NAMED = 10  # runs or judgings in one conclusion
_LONGEST = 400  # characters of a message
_STATUSES: tuple[Status, ...] = ("complete", "incomplete", "refused", "missing", "skipped")
_NO_VERDICT, _NOT_MEASURED, _REFUSED = "–", "not measured", "refused"
_MEANINGS = {  # the worst first
    "moved": (MARKS["regressed"], "**the model moved though the prompt did not**"),
    "regressed": (MARKS["regressed"], "**regressed**, worse than the recorded version"),
    _REFUSED: ("✕", "**refused**, the version was recorded with another prompt; raise the version"),
    _NOT_MEASURED: ("!", "**not measured** in full, so nothing is said"),
    "inconclusive": (MARKS["inconclusive"], "**inconclusive**, a drop is neither shown nor ruled out"),
    "incomparable": (MARKS["incomparable"], "**incomparable**, not measured as the recorded version was"),
    "improved": (MARKS["improved"], "**improved**, better than the recorded version"),
    "unchanged": (MARKS["unchanged"], "**unchanged**"),
    "no drift": (MARKS["unchanged"], "**no drift**, the recorded version asked again shows none"),
    _NO_VERDICT: (_NO_VERDICT, "no lower version is recorded to compare with"),
}


def print_plan(plan: Plan, form: Format) -> None:
    """Print a plan to stdout."""
    print_page(form, json=lambda: plan, page=lambda: plan_page(plan))


def tell_plan(plan: Plan, platform: PlatformName | None, sha256: str) -> None:
    """Hand a plan in CI to the jobs that follow, with the SHA-256 of its file, and show its page and faults."""
    if platform is not None:
        PLATFORMS[platform].set_outputs({**outputs_of(plan), "sha256": sha256})
        PLATFORMS[platform].add_summary(plan_page(plan))
        for fault in plan.faults:
            PLATFORMS[platform].annotate("warning", fault.message, fault.file, fault.line)


def plan_page(plan: Plan) -> Page:
    """Return the page of a plan."""
    chosen = cut_table(_chosen_sheet(plan), _MOST_PLANNED) if plan.runs else []
    few = (Line(Cell(skill, code=True), f": {words}") for skill, words in _few(plan).items())
    tables = {
        "Forecast": forecast_sheet(plan.forecast),
        "Not evaluated": _skipped_sheet(plan.skipped),
        "Judged": _judging_sheet(plan),
        "Wrong, so not evaluated": _fault_sheet(plan.faults),
    }
    return Page(
        [
            Section(
                name="the plan",
                heading="## Evaluation plan",
                blocks=[f"{_total(plan)}.", *chosen, Lines([*plan.retiring, *few], "-")],
            ),
            *(
                Section(name=title, heading=f"### {title}", blocks=cut_table(sheet, _MOST_PLANNED))
                for title, sheet in tables.items()
                if sheet.rows
            ),
        ]
    )


def _few(plan: Plan) -> dict[str, str]:
    """Return of each component with few cases what these can show."""
    cases: dict[str, set[str]] = {}
    for entry in plan.runs:
        cases.setdefault(entry.skill, set()).update(entry.cases)
    return {skill: can_show(len(ids)) for skill, ids in cases.items() if 0 < len(ids) < FEW_CASES}


def _names(models: Sequence[str]) -> Cell:
    return Cell(", ".join(models), code=True)


def _chosen_sheet(plan: Plan) -> Sheet:
    rows = []
    for chosen in plan.chosen:
        entries = [entry for entry in plan.runs if entry.skill == chosen.skill and entry.model_id in chosen.models]
        size = map(Cell, (str(len(entries)), *_size(entries)))
        names = (Cell(chosen.skill, code=True), _names(chosen.models))
        besides = dict.fromkeys(entry.beside_words for entry in entries if entry.beside_words)
        rows.append((*names, *size, Cell("; ".join([chosen.reason, *besides]), code=True)))
    return Sheet(columns=_PLAN_COLUMNS, rows=rows, numbers=frozenset(_PLAN_COLUMNS[2:5]))


def _skipped_sheet(skipped: Sequence[OnModels]) -> Sheet:
    rows = [[Cell(one.skill, code=True), _names(one.models), Cell(one.reason, code=True)] for one in skipped]
    return Sheet(columns=("component", "models", "why"), rows=rows)


def _judging_sheet(plan: Plan) -> Sheet:
    rows = [
        cells_of((run.skill, run.model_id, run.judge.model_id), f"{run.judge.calls:,}")
        for run in plan.runs
        if run.judge
    ]
    return Sheet(
        columns=("component", "model", "judge", "calls at most"), rows=rows, numbers=frozenset(("calls at most",))
    )


def _fault_sheet(faults: Sequence[Problem]) -> Sheet:
    rows = [
        [Cell(text, code=True) for text in (f"{fault.file}:{fault.line}", abridged(fault.message, _LONGEST))]
        for fault in faults
    ]
    return Sheet(columns=("file", "what"), rows=rows)


def _total(plan: Plan) -> str:
    untouched = f"; {counted(plan.untouched, 'component')} untouched" if plan.untouched else ""
    if not plan.runs:
        return f"Nothing to evaluate{untouched}"
    dry = ", as a dry run (no call is made)" if plan.dry_run else ""
    calls, cost = _size(plan.runs)
    caps = [run.max_cost_usd for run in plan.runs if run.max_cost_usd is not None]
    cap = f", capped at ${sum(caps):,.2f}" if caps else ""
    shared = f" of {counted(len(plan.runs), 'run')}" if len(plan.jobs) < len(plan.runs) else ""
    return f"{counted(len(plan.jobs), 'job')}{shared}, {calls} calls, {cost} at most{cap}{dry}{untouched}"


def _size(runs: Sequence[PlannedRun]) -> tuple[str, str]:
    """Return the number of calls and the most they can cost."""
    cost = total_or_none(run.cost_upper_usd for run in runs)
    return f"{sum(run.all_calls for run in runs):,}", "unknown cost" if cost is None else f"${cost:,.2f}"


def print_outcome(outcome: Outcome, form: Format, site: Site = NO_SITE) -> None:
    """Print an outcome to stdout."""
    print_page(form, json=lambda: outcome, page=lambda: outcome_page(outcome, site=site))


def outcome_page(outcome: Outcome, published: bool = True, site: Site = NO_SITE) -> Page:
    """Return the page of an outcome; `published` is False when records did not reach their branch.

    First what is concluded, then what changed, the worst first, then every run, last what did not change.
    """
    astray = "" if published else "**Not every record reached its branch**; the job that collects them says why."
    if outcome.draft:
        cost = total_or_none(run.cost_usd for run in outcome.runs if run.scored)
        astray = f"A draft before the merge, which is not recorded; cost: {cost_words(cost)}."
    worst_first = sorted(outcome.verdicts, key=lambda result: WORST_FIRST.index(result.verdict))
    changed = [result for result in worst_first if result.verdict != "unchanged"]
    unchanged = [result for result in worst_first if result.verdict == "unchanged"]
    compared = [*outcome.verdicts, *outcome.drift]
    lost = {run.run_id: _lost_sheet(run.lost_values) for run in outcome.runs if run.run_id and run.lost_values}
    left = ((run.skill, run.model_id) for run in outcome.runs if run.status != "complete" and not run.is_baseline)
    missing = {
        skill: f"{_NOT_MEASURED} in full on {prose(listed(models))}, else " for skill, models in by_key(left).items()
    }
    ends = {one.skill: missing.get(one.skill, "") + _next(one, draft=outcome.draft) for one in worst_first}
    following = bullets([f"next for {code_span(skill)}: {words}" for skill, words in ends.items()])
    runs: list[Block] = cut_table(_run_sheet(outcome, site), _MOST_RUNS)
    folded = [Fold("Every run", runs)] if outcome.runs else []
    return Page(
        [
            Section(name="the summary", heading="## Evaluation", blocks=[*_summary(outcome), following, astray]),
            *_fault_sections(outcome.faults),
            *(section for result in changed for section in comparison_sections(result, site, lost)),
            *(section for result in outcome.drift for section in _drift_sections(result, site)),
            Section(name="the table of all runs", blocks=[Only(("terminal",), runs), *folded]),
            *(section for result in unchanged for section in comparison_sections(result, site)),
            *([legend_section(compared)] if compared else []),
        ]
    )


def _lost_sheet(values: Sequence[LostValue]) -> Sheet:
    """Return the table of an output before and after for each lost field."""
    rows = [[Cell(text, code=True) for text in (one.path, one.case_id, one.before, one.after)] for one in values]
    return Sheet(columns=("lost value", "case", "before", "after"), rows=rows)


def _next(result: ComparisonResult, *, draft: bool) -> str:
    """Return what to do about a verdict, as Markdown; the outputs of a run of CI are in its artifacts."""
    words = ending(result)[2].removeprefix("next: ")
    if not words.startswith("look at"):
        return prose(words)
    compare = f"after a pull, {code_span(shlex.join(['skill-evaluator', 'compare', result.skill]))} shows where"
    return f"{prose(words)}; {'the artifacts of this run have the outputs' if draft else compare}"


def tell_outcome(outcome: Outcome, platform: PlatformName | None, site: Site) -> None:
    """Tell the page of an outcome where it is collected in CI."""
    if platform is not None:
        PLATFORMS[platform].add_summary(outcome_page(outcome, site=site))


def refuse_untold(platform: PlatformName | None) -> None:
    """Raise PlanError or ConfigError where there is no pull request to tell of an outcome."""
    if platform is None:
        raise PlanError("--commit and --open need --platform github")
    PLATFORMS[platform].check_access()


def announce(page: Page, platform: PlatformName, commits: Sequence[str], number: int | None) -> None:
    """Show a page as summary, and as comment on a pull request or on those that were merged with the commits."""
    told = PLATFORMS[platform]
    told.add_summary(page)
    addresses = [told.comment_on(number, page)] if number is not None else []
    addresses += filter(None, (told.comment(commit, page) for commit in commits))
    for address in dict.fromkeys(addresses):
        print(f"comment: {address}", file=sys.stderr)
    if commits and not addresses:
        print("comment: none, as no merged pull request has a commit of this push", file=sys.stderr)


def open_pull_request(outcome: Outcome, platform: PlatformName, branch: str, to: str) -> None:
    """Open the pull request of the records on a branch, if a run has a record."""
    if any(run.run_id for run in outcome.runs):
        address = PLATFORMS[platform].pull_request(branch, to, "Record evaluations")
        print(f"pull request of the records: {address or 'there is nothing to review'}", file=sys.stderr)


def _drift_sections(result: ComparisonResult, site: Site) -> list[Section]:
    """Return for each model what moved, and which model the vendor served if that changed; then the runs in full."""
    lines = []
    for model in result.models:
        name = code_span(model.model_id)
        if model.moved:
            lines.append(f"the model moved though the prompt did not: {name}: {', '.join(map(code_span, model.moved))}")
        else:
            lines.append(f"no drift: {name}; its runs are pooled")
        runs = (run for run in (model.baseline, model.candidate) if run)
        served = [served_text(run.served_model) or "an unnamed model" for run in runs]
        if len(set(served)) > 1:
            lines.append(f"{name}: the vendor served {', then '.join(map(code_span, served))}")
    details = [
        block
        for section in comparison_sections(result, site)
        for part in (section.heading, *section.blocks)
        for block in (part.blocks if isinstance(part, Fold) else [part])
    ]
    return [
        Section(
            name=f"{result.skill}: drift",
            heading=f"## {code_span(result.skill)}: drift",
            blocks=[bullets(lines), Fold("The runs side by side", details)],
        )
    ]


def _summary(outcome: Outcome) -> list[str]:
    """Return a line for each verdict, the worst first, with its runs; then how many calls were made."""
    if not outcome.runs:
        return ["No run was made." if outcome.faults else "Nothing was to be evaluated."]
    by_verdict: dict[str, list[RunOutcome]] = {}
    for run in outcome.runs:
        if run.is_baseline:
            continue
        otherwise = {"complete": _NO_VERDICT, "refused": _REFUSED}
        verdict = outcome.verdict_on(run) or otherwise.get(run.status, _NOT_MEASURED)
        by_verdict.setdefault(verdict, []).append(run)
    lines = list[str]()
    tolerance = f", {tolerance_words(*(model for result in outcome.verdicts for model in result.models))}"
    for verdict, (mark, words) in _MEANINGS.items():
        meaning = mark, words + tolerance * (verdict == "unchanged")
        lines += _conclusion(meaning, [(run.skill, run.model_id) for run in by_verdict.get(verdict, ())])
    statuses = Counter(run.status for run in outcome.runs)
    kinds = ", ".join(f"{statuses[status]} {status}" for status in _STATUSES if statuses[status])
    planned, scored = sum(run.planned for run in outcome.runs), sum(run.scored for run in outcome.runs)
    failed = sum(sum(run.failed.values()) for run in outcome.runs)
    calls = f"{planned:,} calls planned: {scored:,} scored, {failed:,} failed, {planned - scored - failed:,} not run"
    return ["\n".join(lines), f"{counted(len(outcome.runs), 'run')} ({kinds}); {calls}."]


def _run_sheet(outcome: Outcome, site: Site = NO_SITE) -> Sheet:
    rows = []
    for run in outcome.runs:
        figures = run.figures
        interval = f" ({number(figures.ci95[0])} to {number(figures.ci95[1])})" if figures and figures.ci95 else ""
        words = [] if run.status == "complete" else [run.status.upper()]
        words.append(", ".join(f"{count} {kind}" for kind, count in run.failed.items()))
        remark = "; ".join(filter(None, [*words, abridged(run.reason, _LONGEST)]))
        rows.append(
            (
                Cell(run.skill, code=True, link=site.page(run.skill)),
                Cell(run.model_id, code=True),
                Cell(version_words(figures.skill_version), code=True) if figures else Cell("–"),
                Cell(run.primary_metric, code=True) if run.primary_metric else Cell("–"),
                Cell(number(figures.accuracy) + interval if figures else "–"),
                Cell("baseline" if run.is_baseline else outcome.verdict_on(run) or _NO_VERDICT),
                Cell(number(figures.reproducibility if figures else None)),
                Cell(f"{run.scored}/{run.planned}"),
                Cell("–" if run.cost_usd is None else cost_words(run.cost_usd, run.hit_rate)),
                Cell(remark, code=bool(remark)),
            )
        )
    return Sheet(columns=_RUN_COLUMNS, rows=rows)


def _fault_sections(faults: Sequence[Problem]) -> Iterator[Section]:
    """Yield the table of the components that should have been evaluated and could not be."""
    if faults:
        table = cut_table(_fault_sheet(faults), _MOST_RUNS)
        yield Section(name="the components with faults", heading="### Wrong, so not evaluated", blocks=table)


def _conclusion(meaning: tuple[str, str], judged: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield what holds of components on models, if there are any."""
    names = [f"{code_span(skill)} on {code_span(model_id)}" for skill, model_id in judged[:_MOST_NAMED]]
    more = [f"{len(judged) - _MOST_NAMED} more"] if len(judged) > _MOST_NAMED else []
    if judged:
        yield f"- {' '.join(meaning)}: {', '.join([*names, *more])}"


def print_doctor(report: DoctorReport, form: Format) -> None:
    """Print what `doctor` found to stdout."""
    blocks: list[Block] = [_key_sheet(report), Lines(_doctor_lines(report))]
    print_page(form, json=lambda: report, page=lambda: page_of("what doctor found", blocks))


def _key_sheet(report: DoctorReport) -> Sheet:
    here = {"not_needed": "not needed", "set": "set", "in_ci_only": "none, in CI only"}
    in_ci = {
        "not_needed": "not needed",
        "environment": "{0}: set",
        "repository": "repository: {1} set",
        "identity": "identity of {0}",
        "missing": "none in {0}, no {1}",
        "unknown": "not looked at",
    }
    calls = {"answered": "answered", "failed": "failed", "not_made": "not made"}
    rows = []
    for key in report.models:
        set_in_ci = in_ci[key.in_ci].format(key.environment, key.words)
        rows.append(cells_of([key.id], here.get(key.here) or f"{key.words} not set", set_in_ci, calls[key.call]))
    return Sheet(columns=("model", "key here", "key in CI", "call"), rows=rows, whole=frozenset({"model"}))


def _doctor_lines(report: DoctorReport) -> list[str]:
    return [
        f"workflows: {', '.join(report.workflows) or 'none; `skill-evaluator init --workflows` adds them'}",
        *(f"problem: {line}" for line in report.problems),
        *(f"not looked at: {line}" for line in report.unseen),
        counted(len(report.problems), "problem"),
    ]
