"""Ranked models for people: which to ship, then a row a model, and how to read it; and what shows how small a drop."""

from collections.abc import Iterator, Mapping, Sequence

from skill_evaluator.display import cost_words, interval, number, probability, signed
from skill_evaluator.display.pages import Block, Heading, Line, Lines, Page, Section, page_of, print_page
from skill_evaluator.display.sheets import Cell, Format, Sheet, cells_of
from skill_evaluator.reports.comparison import MARKS, STYLES
from skill_evaluator.reports.ending import command, next_step
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.comparability import STALE_DAYS
from skill_evaluator.verdicts.planning.advice import ModelRanking, RankedModel
from skill_evaluator.verdicts.planning.sizing import PlannedDesign, Sizing, SizingPlan

_DESIGNS: Mapping[PlannedDesign, str] = {
    "beside": "the baseline is asked beside the candidate, half as often; calls and cost are of both",
    "recorded": "the baseline was recorded on another day; calls and cost are of the candidate alone",
}
_PREMISE = "on these cases, if the answers to a case are independent; several critical metrics or models need more"


def print_rankings(rankings: Sequence[ModelRanking], form: Format, folders: Sequence[str] = ()) -> None:
    """Print rankings to stdout, each with what to do; `folders` are the flags that name the library."""
    sections = (ranking_section(ranking, _next(ranking, folders)) for ranking in rankings)
    print_page(form, json=lambda: list(rankings), page=lambda: Page(list(sections)))


def _next(ranking: ModelRanking, folders: Sequence[str]) -> Line:
    """Return how to see why another version is to ship, or where the first two models differ, the best named last."""
    names, versions = [model.model_id for model in ranking.models], {model.skill_version for model in ranking.models}
    names.sort(key=lambda name: name != ranking.advice.model_id)
    following = f"{command(folders, 'compare', ranking.skill, '--models', *names[1::-1])} shows where they differ"
    if ranking.advice.version not in {None, *versions}:
        following = next_step("compare", folders, ranking.skill)
    elif not names:
        following = f"{command(folders, 'evaluate', ranking.skill)} asks again"
    elif len(names) < 2:
        measure = command(folders, "evaluate", ranking.skill)
        following = f"rank a second model: leave out `--model`, or list one in models.yaml, and {measure} measures it"
    return Line(f"next: {following}")


def ranking_section(ranking: ModelRanking, *last: Line) -> Section:
    """Return the section of a page."""
    tested = f"Holm over {counted(ranking.family, 'pair')}, α {ranking.alpha:g}, tolerance {ranking.tolerance:g}"
    words = f"{counted(len(ranking.models), 'model')} on the same {counted(ranking.n_cases, 'case')}"
    style = "" if ranking.advice.model_id is None else "green"
    legend = [
        *([f"= not significantly different from the best ({tested})"] if ranking.family else []),
        "strict means; USD: what 1,000 answers cost, one to a case; ◆ no other model is as good and as cheap",
    ]
    return Section(
        name=f"the models of {ranking.skill}",
        blocks=[
            Lines([*filter(None, [ranking.unmeasured])], style="yellow"),
            Heading(Cell(ranking.skill, code=True), f": {words}", level=2),
            Lines([ranking.advice.words], style=style),
            _sheet(ranking),
            Lines([f"{model_id} is left out: {why}" for model_id, why in ranking.left_out.items()], style="yellow"),
            Lines(legend, style="dim"),
            *last,
        ],
    )


def _sheet(ranking: ModelRanking) -> Sheet:
    """Return the table: a row a model, the best first."""
    others = sorted({name for model in ranking.models for name in model.accuracy} - {ranking.metric})
    agreement = sorted({name for model in ranking.models for name, share in model.reproducibility.items() if share})
    figures = ("95 % interval", *others, *agreement, "USD / 1,000", "median s", "95 % s")
    columns = ("", "model", "= best", ranking.metric, *figures, "measured", "verdict", "remarks")
    rows = []
    for model in ranking.models:
        score = model.accuracy.get(ranking.metric)
        metrics = [model.accuracy[name].strict_mean if name in model.accuracy else None for name in others]
        usd = None if model.usd_per_1000_cases is None else f"{model.usd_per_1000_cases:,.2f}"
        seconds = [None if s is None else f"{s:.2f}" for s in (model.latency_p50_s, model.latency_p95_s)]
        verdict = model.verdict and Cell(f"{MARKS[model.verdict]} {model.verdict}", STYLES.get(model.verdict, ""))
        row = cells_of(
            [model.model_id],
            "=" if model.like_best else "",
            *(None, None) if score is None else (number(score.strict_mean), interval(score.ci95, score.n_cases)),
            *map(number, (*metrics, *map(model.reproducibility.get, agreement))),
            *(usd, *seconds, _measured(model), verdict),
            "; ".join(_remarks(model)) or None,
        )
        rows.append([Cell(str(model.place)), *row])
    below = ("median s", "95 % s", *agreement, *others, "measured", "remarks")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"", ranking.metric, *figures}), below=below)


def _measured(model: RankedModel) -> str:
    if model.age_days is None:
        return version_words(model.skill_version)
    stale = ", stale" if model.age_days > STALE_DAYS else ""
    age = f"{counted(model.age_days, 'day')} ago" if model.age_days else "today"
    return f"{version_words(model.skill_version)}, {age}{stale}"


def _remarks(model: RankedModel) -> Iterator[str]:
    """Yield what a reader must know of a model beyond its figures."""
    if model.frontier:
        yield "◆"
    if model.dominated_by:
        yield f"{listed(model.dominated_by, 2)}: no worse on any metric (in these figures) and cheaper"
    added = model.prompt_adds
    if added is not None and added.difference is not None and added.ci95 is not None:
        low, high = map(signed, added.ci95)
        yield f"the prompt adds {signed(added.difference)} ({low} to {high}, q {probability(added.q)})"


def print_sizing(plan: SizingPlan, form: Format) -> None:
    """Print a sizing plan to stdout."""
    print_page(form, json=lambda: plan.model_dump(mode="json"), page=lambda: page_of(plan.skill, _blocks(plan)))


def _blocks(plan: SizingPlan) -> Iterator[Block]:
    title = f": what shows a drop of {plan.detect:g} with {plan.power * 100:g} % power at α {plan.alpha:g}"
    yield Heading(Cell(plan.skill, code=True), title, level=2)
    for model in plan.models:
        yield Heading(Cell(model.model_id, code=True), f": {_present(model)}")
        yield Lines(list(_facts(model, plan)))
        yield _sizes(model, plan.detect)
    yield Line(_DESIGNS[plan.design], style="dim")
    yield Line(_PREMISE, style="dim")


def _present(model: Sizing) -> str:
    """Word the drop that the present cases and replicates show, or why nobody knows."""
    if model.shows is None:
        return "; ".join(model.remarks)
    return f"its {counted(model.cases, 'case')} × {model.replicates} show a drop of about {model.shows:.2g}"


def _facts(model: Sizing, plan: SizingPlan) -> Iterator[str]:
    cost = cost_words(model.cost_per_call_usd, digits=6)
    size = f"{counted(model.cases, 'case')} × {model.replicates}"
    yield f"{model.skill_version}, run {model.run_id}: {model.metric} {number(model.strict_mean)} on {size}"
    if model.shows is None:
        return
    day = f", of a day {number(model.between_runs)}" if model.between_runs else ""
    yield f"standard deviation of an answer to a case {number(model.between_replicates)}{day}; cost of a call {cost}"
    if model.replicates_needed is None:
        remedy = "" if plan.design == "beside" else ": ask the baseline beside it, or add cases"
        yield f"no number of replicates of these cases shows {plan.detect:g}{remedy}"
    else:
        yield f"{counted(model.replicates_needed, 'replicate')} of these cases would show {plan.detect:g}"


def _sizes(model: Sizing, detect: float) -> Sheet:
    columns = ("replicates", f"{model.cases} cases show", f"cases for {detect:g}", "calls", "cost")
    rows = []
    for choice in model.choices:
        shown = number(choice.shows)
        drop = Cell(f"{shown} ✓", "green") if choice.shows <= detect else Cell(f"{shown}  ")
        counts = (None if count is None else f"{count:,}" for count in (choice.cases, choice.calls))
        cost = None if choice.cost_usd is None else cost_words(choice.cost_usd)
        rows.append(cells_of([], choice.replicates, drop, *counts, cost))
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns))
