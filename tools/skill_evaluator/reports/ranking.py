"""The report of ranked models with the one to ship, and of the sizes that show a drop."""

from collections.abc import Iterator, Mapping, Sequence

from skill_evaluator.display import amount, cost_words, count, interval, number, plain, probability, seconds, signed
from skill_evaluator.display.pages import Block, Heading, Line, Lines, Page, Section
from skill_evaluator.display.sheets import Cell, Sheet, cells_of
from skill_evaluator.reports.summary import MARKS, STYLES, Reader
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.comparability import STALE_DAYS
from skill_evaluator.verdicts.planning.advice import ModelRanking, RankedModel
from skill_evaluator.verdicts.planning.sizing import PlannedDesign, Sizing, SizingPlan

_DESIGNS: Mapping[PlannedDesign, str] = {
    "beside": "the baseline is asked beside the candidate, half as often; calls and cost are of both",
    "recorded": "the baseline was recorded on another day; calls and cost are of the candidate alone",
}
_PREMISE = "on these cases, if the answers to a case are independent; several critical metrics or models need more"


def rankings_page(rankings: Sequence[ModelRanking], folders: Sequence[str] = ()) -> Page:
    """Report rankings, each with its next step; `folders` are the options that name the library."""
    sections = []
    for ranking in rankings:
        following = f"next: {_next_step(ranking, Reader(folders=folders))}"
        sections.append(Section(name=f"the models of {ranking.skill}", blocks=[*ranking_blocks(ranking), following]))
    return Page(sections)


def _next_step(ranking: ModelRanking, reader: Reader) -> str:
    """Return the next step: see why another version is to ship, or where the first two models differ."""
    names, versions = [model.model_id for model in ranking.models], {model.skill_version for model in ranking.models}
    names.sort(key=lambda name: name != ranking.advice.model_id)
    if ranking.advice.version not in {None, *versions}:
        return reader.step("compare", ranking.skill)
    if not names:
        return f"{reader.command('evaluate', ranking.skill)} runs the models again"
    if len(names) < 2:
        measure = reader.command("evaluate", ranking.skill)
        return f"rank a second model: leave out `--model`, or list one in models.yaml, and {measure} measures it"
    return f"{reader.command('compare', ranking.skill, '--models', *names[1::-1])} shows where they differ"


def ranking_blocks(ranking: ModelRanking) -> list[Block]:
    """Return the model to ship, the table of models and how to read it."""
    words = f"{counted(len(ranking.models), 'model')} on the same {counted(ranking.n_cases, 'case')}"
    tested = f"Holm over {counted(ranking.family, 'pair')}, α {plain(ranking.alpha)}"
    tested += f", tolerance {plain(ranking.tolerance)}"
    legend = [
        *([f"= not significantly different from the best ({tested})"] if ranking.family else []),
        "strict means; USD: what 1,000 answers cost, one to a case; ◆ no other model is as good and as cheap",
    ]
    return [
        Lines([ranking.unmeasured] if ranking.unmeasured else [], style="yellow"),
        Heading(Cell(ranking.skill, code=True), f": {words}", level=2),
        Line(ranking.advice.words, style="" if ranking.advice.model_id is None else "green"),
        _sheet(ranking),
        Lines([f"{model_id} is left out: {why}" for model_id, why in ranking.left_out.items()], style="yellow"),
        Lines(legend, style="dim"),
    ]


def _sheet(ranking: ModelRanking) -> Sheet:
    """Build the table of models, the best first."""
    others = sorted({name for model in ranking.models for name in model.accuracy} - {ranking.metric})
    agreement = sorted({name for model in ranking.models for name, share in model.reproducibility.items() if share})
    figures = ("95 % interval", *others, *agreement, "USD / 1,000", "latency, median", "latency, 95 % below")
    columns = ("", "model", "= best", ranking.metric, *figures, "measured", "verdict", "remarks")
    rows = []
    for model in ranking.models:
        score = model.accuracy.get(ranking.metric)
        metrics = [model.accuracy[name].strict_mean if name in model.accuracy else None for name in others]
        verdict = model.verdict and Cell(f"{MARKS[model.verdict]} {model.verdict}", STYLES.get(model.verdict, ""))
        row = cells_of(
            [model.model_id],
            "=" if model.like_best else "",
            *(None, None) if score is None else (number(score.strict_mean), interval(score.ci95, score.n_cases)),
            *map(number, (*metrics, *map(model.reproducibility.get, agreement))),
            *(amount(model.usd_per_1000_cases), seconds(model.latency_p50_s), seconds(model.latency_p95_s)),
            *(_measured(model), verdict),
            "; ".join(_remarks(model)) or None,
        )
        rows.append([Cell(str(model.place)), *row])
    below = ("latency, median", "latency, 95 % below", *agreement, *others, "measured", "remarks")
    return Sheet(columns=columns, rows=rows, numbers=frozenset({"", ranking.metric, *figures}), below=below)


def _measured(model: RankedModel) -> str:
    if model.age_days is None:
        return version_words(model.skill_version)
    stale = ", stale" if model.age_days > STALE_DAYS else ""
    age = f"{counted(model.age_days, 'day')} ago" if model.age_days else "today"
    return f"{version_words(model.skill_version)}, {age}{stale}"


def _remarks(model: RankedModel) -> Iterator[str]:
    """Yield remarks on a model: on the cost frontier, dominated by others, or what its prompt adds."""
    if model.frontier:
        yield "◆"
    if model.dominated_by:
        yield f"{listed(model.dominated_by, 2)}: no worse on any metric (in these figures) and cheaper"
    added = model.prompt_adds
    if added is not None and added.difference is not None and added.ci95 is not None:
        low, high = map(signed, added.ci95)
        yield f"the prompt adds {signed(added.difference)} ({low} to {high}, q {probability(added.q)})"


def sizing_blocks(plan: SizingPlan) -> Iterator[Block]:
    """Yield the sizes that show a drop, by model, and the design that they are of."""
    power = f"{plain(plan.power * 100)} % power at α {plain(plan.alpha)}"
    title = f": what shows a drop of {plain(plan.detect)} with {power}"
    yield Heading(Cell(plan.skill, code=True), title, level=2)
    for model in plan.models:
        yield Heading(Cell(model.model_id, code=True), f": {_present(model)}")
        yield Lines(list(_facts(model, plan)))
        yield _sizes(model, plan.detect)
    yield Line(_DESIGNS[plan.design], style="dim")
    yield Line(_PREMISE, style="dim")


def _present(model: Sizing) -> str:
    """Return the drop that the present cases and replicates show, or why it is not known."""
    if model.shows is None:
        return "; ".join(model.remarks)
    return f"its {counted(model.cases, 'case')} × {model.replicates} show a drop of about {plain(model.shows, 2)}"


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
        yield f"no number of replicates of these cases shows {plain(plan.detect)}{remedy}"
    else:
        yield f"{counted(model.replicates_needed, 'replicate')} of these cases would show {plain(plan.detect)}"


def _sizes(model: Sizing, detect: float) -> Sheet:
    columns = ("replicates", f"{model.cases} cases show", f"cases for {plain(detect)}", "calls", "cost")
    rows = []
    for choice in model.choices:
        shown = number(choice.shows)
        drop = Cell(f"{shown} ✓", "green") if choice.shows <= detect else Cell(f"{shown}  ")
        cost = None if choice.cost_usd is None else cost_words(choice.cost_usd)
        rows.append(cells_of([], choice.replicates, drop, count(choice.cases), count(choice.calls), cost))
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns))
