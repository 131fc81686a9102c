"""The report of ranked models with the model to ship, and of the numbers of cases that detect a drop."""

from collections.abc import Iterator, Mapping, Sequence

from skill_evaluator.display import amount, cost_words, count, interval, number, plain, probability, seconds, signed
from skill_evaluator.display.pages import Block, Fold, Heading, Line, Lines, Page, Section
from skill_evaluator.display.sheets import Cell, Sheet, cells_of
from skill_evaluator.reports.summary import MARKS, STYLES, Reader, difference_words
from skill_evaluator.text import counted, listed, version_words
from skill_evaluator.verdicts.decide.comparability import STALE_DAYS
from skill_evaluator.verdicts.planning.ranking import ModelRanking, RankedModel
from skill_evaluator.verdicts.planning.sizing import PlannedDesign, Sizing, SizingPlan

_DESIGNS: Mapping[PlannedDesign, str] = {
    "beside": "the baseline is interleaved with half of the calls; calls and cost are of both versions",
    "recorded": "the baseline was recorded on another day; calls and cost are of the candidate alone",
}
_PREMISE = "on these cases, if the outputs of a case are independent; several critical metrics or models need more"


def rankings_page(rankings: Sequence[ModelRanking], folders: Sequence[str] = ()) -> Page:
    """Report rankings, each with its next step; `folders` are the options that name the library."""
    sections = []
    for ranking in rankings:
        following = f"next: {_next_step(ranking, Reader(folders=folders))}"
        sections.append(Section(name=f"the models of {ranking.skill}", blocks=[*ranking_blocks(ranking), following]))
    return Page(sections)


def _next_step(ranking: ModelRanking, reader: Reader) -> str:
    names, versions = [model.model_id for model in ranking.models], {model.skill_version for model in ranking.models}
    names.sort(key=lambda name: name != ranking.advice.model_id)
    if ranking.advice.version not in {None, *versions}:
        return f"compare the two versions: {reader.command('compare', ranking.skill)}"
    if not names:
        return f"run the models again: {reader.command('evaluate', ranking.skill)}"
    if len(names) < 2:
        return f"list a second model in models.yaml and run it: {reader.command('evaluate', ranking.skill)}"
    return f"compare the two models: {reader.command('compare', ranking.skill, '--models', *names[1::-1])}"


def ranking_blocks(ranking: ModelRanking) -> list[Block]:
    """Return the table of models, how sure their difference is, and the model to ship; all figures are collapsed."""
    versions = listed(list(dict.fromkeys(version_words(model.skill_version) for model in ranking.models)), 2)
    models, cases = counted(len(ranking.models), "model"), counted(ranking.n_cases, "case")
    title = f" {versions}: {ranking.metric} of {models} on the same {cases}"
    tested = f"Holm over {counted(ranking.family, 'pair')}, α {plain(ranking.alpha)}"
    legend = ["USD per 1,000 outputs · ◆ no other model is as good and as cheap"]
    if ranking.family:
        legend.append(f"= not significantly different from the best ({tested}, tolerance {plain(ranking.tolerance)})")
    left_out = [f"{model_id} is skipped: {reason}" for model_id, reason in ranking.left_out.items()]
    return [
        Lines([ranking.unmeasured] if ranking.unmeasured else [], style="yellow"),
        Heading(Cell(ranking.skill, code=True), title, level=2),
        _ranking_sheet(ranking),
        Lines(left_out, style="yellow"),
        Lines(legend if ranking.models else [], style="dim"),
        Fold("All figures of the models", [_figures_sheet(ranking)] if ranking.models else []),
        Lines(list(_lead(ranking))),
        Line(ranking.advice.words, style="bold" if ranking.advice.model_id is None else "bold green"),
    ]


def _lead(ranking: ModelRanking) -> Iterator[str]:
    names = [model.model_id for model in ranking.models[:2]]
    for pair in ranking.pairs:
        if [pair.higher, pair.lower] == names and pair.difference is not None:
            change = f"{pair.lower} {signed(pair.difference)} against {pair.higher}"
            field = f"; most in field {pair.fell_most}" if pair.fell_most else ""
            yield f"how sure: {difference_words(change, pair.n_cases, pair.ci95, pair.q)}{field}"


def _ranking_sheet(ranking: ModelRanking) -> Sheet:
    rows = []
    for model in ranking.models:
        score = model.accuracy.get(ranking.metric)
        marks = f"{' =' if model.like_best else '  '}{' ◆' if model.frontier else ''}"
        rows.append(
            cells_of(
                [model.model_id],
                "–" if score is None else number(score.strict_mean) + marks.rstrip(),
                None if score is None else interval(score.ci95, score.n_cases),
                amount(model.usd_per_1000_cases),
                version_words(model.skill_version),
                model.verdict and Cell(f"{MARKS[model.verdict]} {model.verdict}", STYLES.get(model.verdict, "")),
            )
        )
    columns = ("model", "score", "95 % interval", "USD / 1,000", "version", "verdict")
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns[2:4]), below=("95 % interval", "USD / 1,000"))


def _figures_sheet(ranking: ModelRanking) -> Sheet:
    metrics = dict.fromkeys(name for model in ranking.models for name in (*model.accuracy, *model.reproducibility))
    rows = {name: [_score_words(model, name) for model in ranking.models] for name in metrics}
    rows |= {
        "latency, median": [seconds(model.latency_p50_s) for model in ranking.models],
        "latency, 95 % below": [seconds(model.latency_p95_s) for model in ranking.models],
        "measured": [_age(model) for model in ranking.models],
        "added by the prompt": [_prompt_effect(model) for model in ranking.models],
    }
    names = [model.model_id for model in ranking.models]
    shown = [[Cell(name), *map(Cell, cells)] for name, cells in rows.items() if set(cells) != {"–"}]
    return Sheet(columns=("figure", *names), rows=shown, named=frozenset(names))


def _score_words(model: RankedModel, metric: str) -> str:
    score = model.accuracy.get(metric)
    return number(model.reproducibility.get(metric) if score is None else score.strict_mean)


def _age(model: RankedModel) -> str:
    if model.age_days is None:
        return "–"
    stale = ", stale" if model.age_days > STALE_DAYS else ""
    return f"{counted(model.age_days, 'day')} ago{stale}" if model.age_days else "today"


def _prompt_effect(model: RankedModel) -> str:
    effect = model.prompt_adds
    if effect is None or effect.difference is None or effect.ci95 is None:
        return "–"
    low, high = map(signed, effect.ci95)
    return f"{signed(effect.difference)} ({low} to {high}, adjusted p-value {probability(effect.q)})"


def sizing_blocks(plan: SizingPlan) -> Iterator[Block]:
    """Yield for each model the drop that its cases detect, the sizes that detect the planned drop, and the design."""
    power = f"{plain(plan.power * 100)} % power at α {plain(plan.alpha)}"
    title = f": cases that detect a drop of {plain(plan.detect)} with {power}"
    yield Heading(Cell(plan.skill, code=True), title, level=2)
    for model in plan.models:
        yield Heading(Cell(model.model_id, code=True), f": {_detects_now(model)}")
        yield Lines(list(_sizing_facts(model, plan)))
        yield _sizing_sheet(model, plan.detect)
    yield Line(_DESIGNS[plan.design], style="dim")
    yield Line(_PREMISE, style="dim")


def _detects_now(model: Sizing) -> str:
    if model.shows is None:
        return "; ".join(model.remarks)
    return f"its {counted(model.cases, 'case')} × {model.replicates} detect a drop of about {plain(model.shows, 2)}"


def _sizing_facts(model: Sizing, plan: SizingPlan) -> Iterator[str]:
    cost = cost_words(model.cost_per_call_usd, digits=6)
    size = f"{counted(model.cases, 'case')} × {model.replicates}"
    yield f"{model.skill_version}, run {model.run_id}: {model.metric} {number(model.strict_mean)} on {size}"
    if model.shows is None:
        return
    day = f", between days {number(model.between_runs)}" if model.between_runs else ""
    yield f"standard deviation between replicates {number(model.between_replicates)}{day}; cost of a call {cost}"
    if model.replicates_needed is None:
        remedy = "" if plan.design == "beside" else ": interleave the baseline or add cases"
        yield f"no number of replicates of these cases detects {plain(plan.detect)}{remedy}"
    else:
        yield f"{counted(model.replicates_needed, 'replicate')} of these cases would detect {plain(plan.detect)}"


def _sizing_sheet(model: Sizing, detect: float) -> Sheet:
    columns = ("replicates", f"{model.cases} cases detect", f"cases for {plain(detect)}", "calls", "cost")
    rows = []
    for choice in model.choices:
        drop = Cell(f"{number(choice.shows)} ✓", "green") if choice.shows <= detect else f"{number(choice.shows)}  "
        cost = None if choice.cost_usd is None else cost_words(choice.cost_usd)
        rows.append(cells_of([], choice.replicates, drop, count(choice.cases), count(choice.calls), cost))
    return Sheet(columns=columns, rows=rows, numbers=frozenset(columns))
