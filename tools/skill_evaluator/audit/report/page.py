"""An audit as a page: what to take first, then what that rests on, scenario by scenario and benchmark by benchmark.

A finished result in, Markdown out; nothing in it that came from outside is taken for mark-up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from skill_evaluator.audit.findings.results import AuditResult, Quadrant
from skill_evaluator.audit.report.charts import BOXES, HEAT, MAP, NEUTRALITY, map_names
from skill_evaluator.audit.report.sheets import (
    adjusted_sheet,
    answer_sheet,
    benchmark_grade_sheet,
    benchmark_sheet,
    beyond_sheet,
    carried_sheet,
    carrier_sheet,
    model_sheet,
    noise_sheet,
    probability_sheet,
    score_sheet,
    separation_sheet,
    shift_sheet,
    used_sheet,
)
from skill_evaluator.audit.report.terminal import audit_pieces
from skill_evaluator.audit.report.verdict import verdict_words
from skill_evaluator.audit.report.wording import (
    about_words,
    cohort_words,
    method_words,
    neutrality_words,
    points,
    threshold_words,
)
from skill_evaluator.display.mermaid import quadrant_chart
from skill_evaluator.display.pages import Block, Fold, Page, Section
from skill_evaluator.display.safe_text import code_span, prose
from skill_evaluator.display.sheets import Format, print_result
from skill_evaluator.text import counted

_CORNERS: Sequence[Quadrant] = ("strong but scenario-fragile", "avoid", "predictable baseline", "safe default")
_MOST_RANKED, _MOST_CASES, _MOST_NAMED, _MOST_POINTS = 10, 10, 5, 40


def print_audit(result: AuditResult, form: Format) -> None:
    """Print an audit to stdout; a page that is printed has no charts beside it."""
    print_result(
        form,
        json=lambda: result.model_dump(mode="json"),
        markdown=lambda: audit_page(result, charts=False).markdown(),
        text=lambda: audit_pieces(result),
    )


def audit_page(result: AuditResult, *, charts: bool = True) -> Page:
    """Return the page; with `charts` it shows the files that `charts.draw` writes to the folder `charts` beside it.

    Without them Mermaid draws the map.
    """
    return Page(
        [
            Section(name="the conclusions", blocks=list(_conclusions(result, charts))),
            Section(name="which model to take", blocks=list(_choices(result))),
            Section(name="what the grades rest on", blocks=list(_premises(result))),
            Section(name="the scenarios", blocks=list(_scenarios(result, charts)), folds=[_scores(result)]),
            Section(
                name="the benchmarks",
                blocks=list(_benchmarks(result, charts)),
                folds=[Fold("Every model on each benchmark alone", [benchmark_sheet(result)])],
            ),
            Section(name="the fluctuation", blocks=list(_fluctuation(result, charts))),
            Section(name="how it was computed", blocks=list(_method(result))),
        ]
    )


def _conclusions(result: AuditResult, charts: bool) -> Iterator[Block]:
    """Yield what to take first, then what the grades rest on."""
    yield "## Stability audit"
    finding, why = verdict_words(result, code_span)
    yield f"**{finding}**: {why}"
    abilities = [model.ability for model in result.models]
    fluctuations = [model.fluctuation for model in result.models]
    ranges = (
        f"ability {points(min(abilities))} to {points(max(abilities))}, "
        f"fluctuation {points(min(fluctuations))} to {points(max(fluctuations))}"
    )
    axes = "ability across and fluctuation up"
    yield _image(charts, MAP, f"Map of {counted(len(result.models), 'model')}, {axes}: {ranges}")
    yield "" if charts else _drawn_map(result)
    yield model_sheet(result)
    yield (
        "Ability: % right, mean over the scenarios; fluctuation: its spread over them, in points. *Corrected*: the "
        "fluctuation without the noise of single answers. *Drop*: how far the score in the worst scenario is below the "
        f"ability. In brackets 95 % intervals; those of the fluctuation and the odds of the grades are over "
        f"{about_words(result)}."
    )


def _premises(result: AuditResult) -> Iterator[Block]:
    yield "### What the grades rest on"
    premise = "" if result.premise is None else f"\n- {prose(result.premise)}"
    yield f"- {prose(threshold_words(result))}\n- {cohort_words(result)}{premise}"
    if any(model.grade_probability for model in result.models):
        yield "Probability of each grade:"
        odds = probability_sheet(result)
        columns = [odds.columns[0], *(code_span(grade) for grade in odds.columns[1:])]
        yield replace(odds, columns=columns, numbers=frozenset(columns[1:]))
    yield "\n".join(f"- warning: {prose(warning)}" for warning in result.warnings)


def _scenarios(result: AuditResult, charts: bool) -> Iterator[Block]:
    models, scenarios = counted(len(result.models), "model"), counted(len(result.scenarios), "scenario")
    yield "### Scenarios"
    yield _image(charts, HEAT, f"Heat map of {models} in {scenarios}: each score against the model's ability")
    yield f"Are the scenarios alike? {neutrality_words(result.neutrality, prose)}."
    means = result.neutrality.means
    ends = f", from {points(min(means))} to {points(max(means))}" if means else ""
    yield _image(charts, NEUTRALITY, f"Mean over the models in each of {scenarios}{ends}")
    if result.neutrality.shifts:
        yield "How far each scenario moves all models:"
        yield shift_sheet(result)
    yield "Grades once each scenario's difficulty, its mean over the models, is taken out:"
    yield adjusted_sheet(result)


def _benchmarks(result: AuditResult, charts: bool) -> Iterator[Block]:
    names = [benchmark.name for benchmark in result.used]
    yield "### Benchmarks"
    if any(model.grade for model in result.models):
        yield (
            "A grade on one benchmark is among these models on that benchmark, where fluctuations are larger than "
            "those of a mean. *Grades end at*: the quartiles there. With each grade stand fluctuation and ability; "
            "*(noise)*: nothing is left of the fluctuation without its noise, so that the grade says nothing."
        )
    yield used_sheet(result)
    yield benchmark_grade_sheet(result, [code_span(name) for name in names])
    yield "Share: of the variance of the model's score over the scenarios."
    if any(model.answers for model in result.models):
        yield "What became of the answers; unparseable, refused and truncated ones count as wrong:"
        yield answer_sheet(result)
    for name, file in zip(names, map_names(names), strict=True):
        yield _image(charts, file, f"Map on {code_span(name)}: ability across and fluctuation up")


def _fluctuation(result: AuditResult, charts: bool) -> Iterator[Block]:
    yield "### Fluctuation"
    yield _image(
        charts, BOXES, f"Spread of {counted(len(result.models), 'model')} over the scenarios, the ablest on top"
    )
    floor, ceiling = result.noise_floor, result.noise_ceiling
    lines = [] if floor is None else [f"noise floor {points(floor)}, as single answers tell"]
    lines += [] if ceiling is None else [f"noise ceiling {points(ceiling)}, as if every answer had been drawn anew"]
    yield f"What noise alone would give a typical model: {'; '.join(lines)}." if lines else ""
    yield noise_sheet(result)
    carried = carried_sheet(result)
    if carried.rows:
        yield (
            "Fluctuations that one scenario carries: what the others alone give, and the grade among all models "
            "without that scenario. p: Grubbs' test for one outlier; q over the models."
        )
        yield carried
    if result.premise is not None:
        yield f"Over other scenarios, as far as it can be told: {prose(result.premise)}."
        yield beyond_sheet(result)
    if result.carriers:
        yield "What carries the fluctuation, mean over the models:"
        yield carrier_sheet("scenario", result.carriers)
    if result.cases:
        yield carrier_sheet("question", result.cases[:_MOST_CASES])
    if result.separations:
        yield (
            "What it takes to tell the fluctuations of two models apart, if they are as they seem, with 80 % power at "
            "5 %: scenarios with the questions there are, or questions (all benchmarks together) with the scenarios "
            "there are. A dash: not known without single answers. The first pair was picked as the farthest apart."
        )
        yield separation_sheet(result)


def _choices(result: AuditResult) -> Iterator[Block]:
    if result.regimes:
        yield "### Which model to take"
    for regime in result.regimes.values():
        yield f"**{prose(regime.title)}**: {prose(regime.note)}" if regime.note else f"**{prose(regime.title)}**"
        ranked = regime.ranked[:_MOST_RANKED]
        lines = [f"{place}. {code_span(item.model)}: {prose(item.reason)}" for place, item in enumerate(ranked, 1)]
        if len(regime.ranked) > len(ranked):
            lines.append(f"\n… and {len(regime.ranked) - len(ranked)} more")
        yield "\n".join(lines)


def _method(result: AuditResult) -> Iterator[Block]:
    yield "### How it was computed"
    yield "\n".join(f"- {fact}" for fact in method_words(result, code_span, prose))


def _scores(result: AuditResult) -> Fold:
    scores = score_sheet(result, [code_span(name) for name in result.scenarios])
    return Fold("Score of each model in each scenario, % right", [scores])


def _drawn_map(result: AuditResult) -> str:
    """Return the map as Mermaid draws it; nothing without medians, where the quadrants would meet."""
    if result.medians is None:
        return ""
    return quadrant_chart(
        ("ability, % right:", "fluctuation, points:"),
        _CORNERS,
        (result.medians.ability, result.medians.fluctuation),
        {model.model: (model.ability, model.fluctuation) for model in result.models[:_MOST_POINTS]},
    )


def _image(charts: bool, file: str, words: str) -> str:
    return f"![{words}](charts/{file})" if charts else ""
