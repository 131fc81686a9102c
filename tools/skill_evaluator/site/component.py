"""The pages of a component, of its comparisons and of its verdicts."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import altair as alt

from skill_evaluator.display import WHOLE, ends, number, pages, signed, visible
from skill_evaluator.display.chart_style import COLOURS, NARROW, PageChart, drawn_from, page_svg, series_legend
from skill_evaluator.display.pages import MAX_ROWS, Block, Cell, Fold, Line, LinePart, Sheet, page_address
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import Record, Row
from skill_evaluator.records.summaries import values_of_arrays
from skill_evaluator.reports import summary
from skill_evaluator.reports.comparison import model_blocks, reading_words
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.runner.journal import ANSWERS, outcomes
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.site import SiteFolder, cut_name
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.rendering import write_page
from skill_evaluator.stats import by_key, rounded
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.component import ComponentStatus, RecordedComponent
from skill_evaluator.verdicts.decide import results
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict
from skill_evaluator.verdicts.decide.rules import WORST_FIRST
from skill_evaluator.verdicts.shipping import History, Point, Step
from skill_evaluator.verdicts.sizing import can_show

ORDER = (*WORST_FIRST, "first")
_SOUND = ("improved", "unchanged")
_DRAWN = 15  # versions in the small chart of the overview
_NEWEST = 5  # versions of a model among which earlier regressions are named
_LARGE_DROP = 0.1  # a field that fell further is named even if the verdict is improved or unchanged
_MAX_NAMED = 2  # models in a sentence
_MAX_CATEGORIES = 12  # the record has all
_MAX_TREND_ROWS = 150
_MAX_FIELD_ROWS = 400  # a row has one field with one model
_VERDICT_SHAPES = {
    "regressed": "triangle-down",
    "improved": "triangle-up",
    "unchanged": "circle",
    "inconclusive": "diamond",
    "incomparable": "cross",
    "first": "square",
}
_MAX_DRAWN = 40  # measures in the chart of a comparison
_MAX_CASES = 12  # cases that a verdict names
_MAX_SENTENCE = 2_000  # characters
_MAX_CHART_NAME = 100  # characters; vl-convert aborts the process for very long texts


def component_page(status: ComponentStatus, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the values for the template of a component's page; `rows` are all its runs, complete or not."""
    history, newest, ranking = status.history, status.newest, status.ranking
    points = list(_trend_points(history, rows))
    newest_points = sorted(points, key=lambda point: point["run"].timestamp)[-_MAX_TREND_ROWS:]
    latest = {point["run"].run_id for point in newest_points}
    trend = [point for point in points if point["run"].run_id in latest]
    versions = sorted({point["run"].skill_version for point in points}, key=precedence)
    fields = list(_field_rows(newest))
    shown_fields = fields[: _MAX_FIELD_ROWS // len(newest)]
    return {
        "status": status,
        "versions": versions,
        "others": sorted({name for model in ranking.models for name in model.run.accuracy} - {ranking.metric}),
        "moved": {model.model_id: verdict_of(model.model_id, status) for model in ranking.models},
        "newest": list(map(run_figures, newest.values())),
        "trend": trend,
        "older_runs": len(points) - len(trend),
        "chart": _trend_chart(trend, versions, list(newest), history.metric) if len(versions) > 1 else None,
        "fields": shown_fields,
        "map": sorted(shown_fields, key=lambda row: (row["right"], -row["lost"])),
        "more_fields": len(fields) - len(shown_fields),
        "arrays": [(name, path, array) for name, record in newest.items() for path, array in record.per_array.items()],
        "items": list(_item_rows(newest)),
        "confusions": list(_confusion_matrices(newest)),
        "failures": [
            (name, kind, rounded(results.per_1000(count, record.planned), 1))
            for name, record in newest.items()
            for kind, count in record.failures.items()
            if count
        ],
        "remarks": list(_history_remarks(history)),
    }


def _field_rows(newest: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    """Yield a row per field, with its summary and its numbers of cases by stability (`profiles`) for each model."""
    fields = by_key((path, (name, part)) for name, record in newest.items() for path, part in record.per_field.items())
    for path, summaries in fields.items():
        profiles = {name: field.profile.model_dump() for name, field in summaries if field.profile}
        yield {
            "field": path or WHOLE,
            "anchor": pages.field_anchor(path),
            "lost": sum(profile["stable_wrong"] + profile["flaky"] for profile in profiles.values()),
            "right": bool(profiles) and all(map(is_flawless, profiles.values())),
            "profiles": profiles,
            "summaries": summaries,
        }


def is_flawless(profile: Mapping[str, int]) -> bool:
    """Return whether there are cases and all cases are `stable_right`. `profile` counts the cases by stability."""
    return bool(profile.get("stable_right")) and sum(profile.values()) == profile["stable_right"]


def _trend_points(history: History, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the figures of each measured version of each model, then of each incomplete run without a scenario."""
    by_run = {row.run_id: row for row in rows}
    for model in history.models:
        stretch = 0
        for point in model.points:
            verdict, against = "first", ""
            if point.step is not None:
                verdict, against = point.step.verdict, f" against {point.step.before}"
                stretch += verdict == "incomparable"
            if point.run_id in by_run:
                text = f"{point.version}: {number(point.strict_mean)}, {verdict}{against}"
                state = {"point": point, "verdict": verdict, "segment": f"{model.model_id} {stretch}"}
                yield {**run_figures(by_run[point.run_id]), **state, "words": text}
    for row in rows:
        if not row.complete and row.scenario is None:
            yield {**run_figures(row), "point": None, "verdict": None, "segment": None, "words": _unmeasured_words(row)}


def _history_remarks(history: History) -> Iterator[str]:
    for model in history.models:
        highest = model.points[-1].step
        if highest is not None and highest.since_accepted is not None:
            yield f"{model.model_id}: {summary.since_accepted_words(highest.since_accepted)}"
        yield from (f"{model.model_id}: {remark}" for remark in model.remarks)


def _item_rows(newest: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    by_model = {model_id: values_of_arrays(record.per_field) for model_id, record in newest.items()}
    for path in dict.fromkeys(path for arrays in by_model.values() for path in arrays):
        for model_id, arrays in by_model.items():
            if path in arrays and arrays[path].n:
                yield {"array": path or WHOLE, "model": model_id, **dict(arrays[path])}


def _confusion_matrices(newest: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    """Yield the confusion matrix of each category field and model. The most frequent truth is its first row."""
    fields = [(path, model, part) for model, record in newest.items() for path, part in record.per_field.items()]
    for path, model_id, part in fields:
        if counts := part.confusion:
            truths = sorted(counts, key=lambda truth: -sum(counts[truth].values()))
            outputs = list(dict.fromkeys([*truths, *(output for row in counts.values() for output in row)]))
            yield {
                "title": f"{path or WHOLE}, {model_id}",
                "counts": counts,
                "truths": truths[:_MAX_CATEGORIES],
                "outputs": outputs[:_MAX_CATEGORIES],
                "left": len(outputs) - _MAX_CATEGORIES,
                "macro_f1": part.macro_f1,
            }


def overview_rows(status: ComponentStatus, grades: Mapping[str, str | None]) -> Iterator[dict[str, Any]]:
    """Yield the overview's row of each model, with the figures of the newest run of the model's highest version."""
    points = {model.model_id: model.points[-_DRAWN:] for model in status.history.models}
    ranked = {model.model_id: model.run for model in status.ranking.models}
    for model_id, record in status.newest.items():
        judged = verdict_of(model_id, status)
        verdicts = [verdict["verdict"] or "first" for verdict in (judged, judged["also"]) if verdict is not None]
        yield {
            "component": status.history.skill,
            **run_figures(record),
            "ranked": ranked.get(model_id),
            **judged,
            "verdicts": verdicts,
            "rank": min(map(ORDER.index, verdicts)),
            "scores": [point.strict_mean for point in points[model_id]],
            "grade": grades.get(model_id),
        }


def run_figures(run: Row | Record) -> dict[str, Any]:
    """Return a run with its cost in USD per 1,000 outputs and its output tokens per output."""
    outputs = round(run.coverage * run.planned)
    tokens = None if run.cost.tokens.output is None or not outputs else run.cost.tokens.output / outputs
    return {"run": run, "usd": results.per_1000(run.cost.cost_usd, outputs), "tokens": tokens}


def verdict_of(model_id: str, status: ComponentStatus) -> dict[str, Any]:
    """Return the verdict on a model's highest version: `verdict`, `before`, `difference` and `also`.

    `before` names the baseline, and `difference` is the difference of the scores. The baseline is the previous version.
    It is the accepted version if the model improved, or if it regressed and fell further since the accepted version.
    `also` has the comparison with the other baseline if its verdict differs. A first version has only None.
    """
    ranked = next((model for model in status.ranking.models if model.model_id == model_id), None)
    step = next(model.points[-1].step for model in status.history.models if model.model_id == model_id)
    verdict = ranked.verdict if ranked is not None else step and step.verdict
    last = {"verdict": verdict, "before": step and step.before, "difference": step and step.difference, "also": None}
    if step is None or (since := step.since_accepted) is None:
        return last
    same = status.history.metric == since.metric
    whole = {"verdict": since.verdict, "before": since.version, "difference": since.difference if same else None}
    fell = same and verdict == "regressed" == since.verdict and since.difference < (step.difference or 0.0)
    stands, also = (whole, last) if verdict == "improved" or fell else (last, whole)
    differs = stands["verdict"] != also["verdict"] and stands["before"] != also["before"]
    return {**stands, "also": also if differs else None}


def _trend_chart(
    points: Sequence[Mapping[str, Any]], versions: Sequence[str], models: Sequence[str], metric: str
) -> PageChart:
    rows = []
    for point in points:
        run, score = point["run"], point["run"].accuracy.get(point["run"].primary_metric)
        low, high = ends(score.ci95 if score else None, run.n_cases)
        figures = {"accuracy": score.strict_mean if score else None, "low": low, "high": high}
        texts = {name: _chart_name(point[name]) for name in ("segment", "words")}
        names = {
            "version": run.skill_version,
            "model": _chart_name(run.model_id),
            "complete": point["point"] is not None,
        }
        rows.append({**figures, **texts, **names, "verdict": point["verdict"]})
    verdicts = list(dict.fromkeys(row["verdict"] for row in rows if row["verdict"]))
    lowest = min(value for row in rows for value in (row["accuracy"], row["low"], 1.0) if value is not None)
    scale = alt.Scale(domain=[0 if lowest < 0.5 else 0.5, 1])  # a cut axis would make a step look larger than it is
    title = f"strict mean of {_chart_name(metric)}"
    axis = alt.Axis(labelAngle=-35, labelOverlap=True)
    x = alt.X("version:N", sort=list(versions), title="version", axis=axis)
    value = alt.Y("accuracy:Q", title=title, scale=scale, axis=alt.Axis(format=".1f", tickCount=5))
    colours = alt.Scale(domain=[*map(_chart_name, models)], range=list(COLOURS))
    base = drawn_from(rows).encode(x=x, color=alt.Color("model:N", scale=colours, legend=series_legend()))
    complete = base.transform_filter("datum.verdict !== null")
    shapes = alt.Scale(domain=list(_VERDICT_SHAPES), range=list(_VERDICT_SHAPES.values()))
    shape = alt.Shape("verdict:N", scale=shapes, legend=series_legend(values=verdicts))
    spans = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=1.5, opacity=0.45, aria=False)
    hollow = base.transform_filter("datum.verdict === null").mark_point(filled=False, size=80, strokeWidth=2, opacity=1)
    chart = alt.layer(
        spans.encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q"),
        complete.mark_line(strokeWidth=2, aria=False).encode(y=value, detail="segment:N"),
        complete.mark_point(filled=True, size=90, opacity=1).encode(y=value, shape=shape, description="words:N"),
        hollow.encode(y=value, description="words:N"),
    )
    return PageChart(
        page_svg(chart.properties(height=320), "trend", 1_000),
        page_svg(chart.properties(height=190), "trend-n", NARROW),
    )


def _chart_name(text: str | None) -> str | None:
    return None if text is None else visible(cut_name(text, _MAX_CHART_NAME))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentState:
    """The state of a component's newest version. If no version was measured, `version` is "" and `reason` is set.

    If `alarm`, the version regressed or could not be measured. If `calm`, nothing was lost. `ship` names the version
    and model to ship. `verdicts` has each verdict and a text on its baseline. `where` names the field and cases that
    fell most. `sure` is the evidence for the verdict. `next` is the next step. `unmeasured` names runs without
    a verdict. `past` names earlier regressions.
    """

    component: str
    version: str = ""
    reason: str = ""
    alarm: bool = False
    calm: bool = False
    ship: str = ""
    verdicts: Sequence[tuple[str, str]] = ()
    where: Line = field(default_factory=Line)
    sure: str = ""
    next: Line = field(default_factory=Line)
    unmeasured: Sequence[str] = ()
    past: Sequence[Line] = ()


def component_state(status: ComponentStatus, rows: Sequence[Row]) -> ComponentState:
    """Return the state of a measured component; `rows` are all its runs, complete or not."""
    history, verdicts = status.history, list(_verdicts_since(status))
    unmeasured, failed = _unmeasured_runs(status, rows)
    regressed = any(verdict == "regressed" for verdict, _ in verdicts)
    name, newest = history.skill, history.newest
    state = ComponentState(
        component=name,
        version=newest,
        alarm=regressed or failed,
        ship=status.ranking.advice.choice,
        verdicts=verdicts,
        unmeasured=unmeasured,
        past=list(_past_regressions(history)),
    )
    result = status.versions.get(newest)
    compared = [] if result is None else [one for one in summary.worst_first(result) if one.baseline is not None]
    reader = summary.Reader()
    if result is None or not compared:
        where = Line("no lower version has a complete run to compare it with")
        sure = can_show(min(record.n_cases for record in status.newest.values()))
        return replace(state, where=where, sure=sure, next=Line(summary.try_step(name, reader)), calm=not regressed)
    worst = compared[0]
    is_sound = all(one.verdict in _SOUND and summary.largest_fall(one) > -_LARGE_DROP for one in compared)
    return replace(
        state,
        where=_where_line(name, worst),
        sure=certainty(worst, is_named=len(compared) > 1),
        next=Line(summary.measure_step(name, reader)) if history.unmeasured else _next_line(result, worst),
        calm=is_sound and not regressed,
    )


def _verdicts_since(status: ComponentStatus) -> Iterator[tuple[str, str]]:
    """Yield (verdict, text) for each verdict on the newest version. The latest baseline comes first.

    The text names the baseline and models, for example ` since 1.2.0 with a, b`. If all models have the verdict, the
    text names no models.
    """
    steps, shown = status.history.newest_steps, set[tuple[str, str]]()
    by_verdict: dict[tuple[str, str], list[str]] = {}
    for model, step in steps.items():
        current = verdict_of(model, status)
        judged = [(one["verdict"] or "first", one["before"] or "") for one in (current, current["also"]) if one]
        shown.update(judged)
        for pair in dict.fromkeys([*judged, *_step_verdicts(step)]):
            by_verdict.setdefault(pair, []).append(model)
    ordered = sorted(shown, key=lambda pair: ORDER.index(pair[0]))
    for verdict, before in sorted(ordered, key=lambda pair: precedence(pair[1] or "0.0.0"), reverse=True):
        named = by_verdict[verdict, before]
        since = f" since {before}" if before else ""
        yield verdict, since + ("" if len(named) == len(steps) else f" with {listed(named, _MAX_NAMED)}")


def _step_verdicts(step: Step | None) -> list[tuple[str, str]]:
    """Return the pairs (verdict, baseline) of a step, for the previous version and then the accepted version.

    If the version did not regress against the previous version but did against the accepted one, omit the first pair.
    """
    if step is None:
        return [("first", "")]
    since = step.since_accepted
    later = [] if since is None or since.version == step.before else [(str(since.verdict), since.version)]
    return later if later and step.regressed_since else [(step.verdict, step.before), *later]


def _unmeasured_runs(status: ComponentStatus, rows: Sequence[Row]) -> tuple[list[str], bool]:
    """Return (sentences on the incomplete runs since the newest version, whether one had too few readable outputs)."""
    newest = precedence(status.history.newest)
    measured = {(record.model_id, record.skill_version) for record in status.newest.values()}
    lacking = {
        (row.model_id, row.skill_version): row
        for row in rows
        if not row.complete and row.scenario is None and precedence(row.skill_version) >= newest
    }
    runs = [row for key, row in lacking.items() if key not in measured]
    return list(map(_unmeasured_words, runs)), any(row.usable is not None for row in runs)


def _unmeasured_words(row: Row) -> str:
    reason = "not finished" if row.usable is None else "could not be measured, too few outputs could be read"
    scored = f"{row.scored} of {counted(row.planned, 'call')} scored"
    return f"{row.skill_version} with {row.model_id}: {reason} ({scored})"


def _where_line(name: str, model: ModelVerdict) -> Line:
    assert model.baseline is not None  # noqa: S101  (callers choose compared models)
    if (since := model.only_since_accepted) is not None:
        return Line(f"{since.metric} {signed(since.difference)} with {model.model_id} since {since.version}")
    against = f" with {model.model_id} since {model.baseline.skill_version}"
    if model.verdict == "incomparable":
        return Line(f"nothing was compared{against}: {next(iter(model.reasons), 'no case is the same')}")
    return Line(*loss_parts(name, model), against)


def loss_parts(name: str, model: ModelVerdict, max_cases: int = 3) -> list[LinePart]:
    """Return links to the field that fell most and to the worse cases, or a sentence that there are none."""
    parts: list[LinePart] = []
    if (fell := model.fell_most) is not None:
        parts.append(Cell(summary.fall_words(fell), link=pages.component_address(name, fell.metric)))
    cases = list(dict.fromkeys([*model.lost_cases, *model.cases.worse]))
    if cases:
        parts.append("; cases " if parts else "cases ")
        for number, case_id in enumerate(cases[:max_cases]):
            parts += [*([", "] if number else []), Cell(case_id, link=pages.page_address("cases", name, case_id))]
        parts += [f" and {len(cases) - max_cases} more"] if len(cases) > max_cases else []
    return parts or ["nothing lost" if model.verdict in _SOUND else "no single field or case stands out"]


def certainty(model: ModelVerdict, *, is_named: bool = False) -> str:
    """Format the change that decides the verdict on a model, with the evidence for the change."""
    change = summary.sure_words(model, is_named=is_named) or "no figure can be compared"
    if model.baseline is not None and not model.only_since_accepted:
        change = f"since {model.baseline.skill_version}: {change}"
    return f"{change}; {results.new_cases_words(model.n_cases)}" if model.verdict in _SOUND else change


def _next_line(result: ComparisonResult, model: ModelVerdict) -> Line:
    name, version = result.skill, model.candidate.skill_version
    comparison = Cell("the comparison", link=page_address("compare", name, version))
    if not model.has_loss_to_see:
        step = summary.next_step(result, model, summary.Reader(outputs={}))
        return Line(step) if "`" in step else Line(step, "; see ", comparison)
    lost = [part for part in loss_parts(name, model) if isinstance(part, Cell)][:1]
    return Line("look at ", *lost, " and " if lost else "", comparison)


def _past_regressions(history: History) -> Iterator[Line]:
    """Yield a line on each regression in the last five versions, with the later version that fixed it."""
    fell: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for model in history.models:
        newest = model.points[-_NEWEST:]
        for index, point in enumerate(newest):
            step = point.step
            if step is not None and step.verdict == "regressed" and point.version != history.newest:
                later = (one.version for one in newest[index + 1 :] if one.step and one.step.verdict == "improved")
                regression = (model.model_id, point.timestamp[:10], next(later, ""))
                fell.setdefault((point.version, step.before), []).append(regression)
    for version, before in sorted(fell, key=lambda pair: precedence(pair[0]), reverse=True):
        models, dates, fixes = zip(*fell[version, before], strict=True)
        end = "no later version is better" if "" in fixes else f"fixed in {max(fixes, key=precedence)}"
        link = Cell(version, link=page_address("verdicts", history.skill, version))
        yield Line(link, f" had regressed since {before} with {listed(models, _MAX_NAMED)} ({max(dates)}); {end}")


@dataclass(frozen=True, kw_only=True)
class ComparedComponent:
    """A component with its comparisons. `rows` are all its runs, complete or not.

    If `names` is not None, the documents are private, and pages show only these names.
    """

    recorded: RecordedComponent
    rows: Sequence[Row]
    status: ComponentStatus
    names: PublicNames | None

    @property
    def name(self) -> str:
        """The name of the component."""
        return self.recorded.component.name

    def write_page(self, site: SiteFolder, address: str, template: str, **shown: Any) -> None:
        """Write a page with the values `shown`, the component's name and the state of its newest version."""
        shared: dict[str, Any] = {"component": self.name, "state": self.state, "private": self.is_private}
        write_page(site, address, template, **shared, **shown)

    @property
    def is_private(self) -> bool:
        """Whether its documents, ground truths and outputs may not be shown."""
        return self.names is not None

    @cached_property
    def state(self) -> ComponentState:
        """The state of its newest version."""
        return component_state(self.status, self.rows)

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """The cases by id. Raises SkillEvaluatorError if they cannot be read."""
        return {case.id: case for case in load_cases(self.recorded.component)}

    @cached_property
    def outcomes(self) -> Callable[[Path], Mapping[Call, Replicate]]:
        """The function that reads the outputs of a run folder. It has a cache, because comparisons share runs."""
        return lru_cache(maxsize=16)(outcomes)

    @cached_property
    def versions(self) -> dict[str, ComparisonResult]:
        """The comparisons of the versions that have a baseline, by version."""
        results = self.status.versions.items()
        return {version: result for version, result in results if any(model.baseline for model in result.models)}

    @cached_property
    def pairs(self) -> dict[tuple[str, str], ComparisonResult]:
        """The comparisons of two models by their model ids. The first id is the baseline."""
        compared = [(result.models[0].baseline, result) for result in self.status.pairs]
        return {
            (baseline.model_id, result.models[0].model_id): result
            for baseline, result in compared
            if baseline is not None and baseline.model_id is not None
        }

    @cached_property
    def entries(self) -> dict[str, list[dict[str, Any]]]:
        """The verdicts of the models by version, the highest version first and in each the worst verdict first."""
        points = ((model.model_id, point) for model in self.status.history.models for point in model.points)
        entries = by_key((point.version, _version_entry(self, model_id, point)) for model_id, point in points)
        for by_model in entries.values():
            by_model.sort(key=lambda entry: (ORDER.index(entry["verdict"]), entry["difference"], entry["model"]))
        return {version: entries[version] for version in sorted(entries, key=precedence, reverse=True)}

    @property
    def first_address(self) -> str:
        """The address of the newest version's comparison, or else of the first pair of models. "" if there is none."""
        newest = self.status.history.newest
        if newest in self.versions:
            return page_address("compare", self.name, newest)
        return next((page_address("compare", self.name, *pair) for pair in self.pairs), "")


def write_comparisons(site: SiteFolder, compared: ComparedComponent) -> None:
    """Write a comparison page for each of the newest versions with its baseline, and for each pair of models."""
    name = compared.name
    shown: list[tuple[str, tuple[str, str] | None]] = [(version, None) for version in compared.versions]
    for version, pair in [*shown, *(("", pair) for pair in compared.pairs)]:
        result = compared.versions[version] if pair is None else compared.pairs[pair]
        compared.write_page(
            site,
            page_address("compare", name, *(pair or [version])),
            "compare.html",
            max_text=_MAX_SENTENCE,
            version=version,
            pair=pair,
            conclusion=summary.conclude(result, summary.Reader()),
            result=result,
            reading=reading_words(result),
            models=[_model_entry(compared, model, pair) for model in summary.worst_first(result)],
            versions=[(version, page_address("compare", name, version)) for version in compared.versions],
            pairs=[(" with ".join(pair), page_address("compare", name, *pair)) for pair in compared.pairs],
        )


def _model_entry(compared: ComparedComponent, model: ModelVerdict, pair: tuple[str, str] | None) -> dict[str, Any]:
    """Return the template's values for a model on a comparison page: its verdict, chart and blocks."""
    fields = sorted((field for field in model.fields if field.difference), key=lambda field: field.difference or 0.0)
    drawn = [measure for measure in (*model.metrics, *fields) if measure.difference is not None][:_MAX_DRAWN]
    spans = [(measure, *ends(measure.test.ci95, measure.test.n_cases)) for measure in drawn]
    values = [abs(value) for measure, *span in spans for value in (measure.difference, *span) if value is not None]
    blocks = [*model_blocks(model, compared.name, MAX_ROWS), *_changed_outputs(compared, model)]
    if pair is not None:
        blocks = [_titled(block, pair) for block in blocks]
    return {"verdict": model, "spans": spans, "reach": max([0.1, *values]), "blocks": blocks}


def _titled(block: Block, pair: tuple[str, str]) -> Block:
    """Replace `before` and `after` in the column titles of a table with the names of two models."""
    if isinstance(block, Fold):
        return replace(block, blocks=[_titled(one, pair) for one in block.blocks])
    if not isinstance(block, Sheet):
        return block
    titles = {name: re.sub("before|after", lambda word: pair[word[0] == "after"], name) for name in block.columns}
    return replace(
        block, columns=list(titles.values()), numbers=frozenset(titles.get(name, name) for name in block.numbers)
    )


def _changed_outputs(compared: ComparedComponent, model: ModelVerdict) -> Iterator[Block]:
    """Yield the changed outputs with both values. Yield nothing if outputs are private or not on this machine."""
    component, archive = compared.recorded.component, compared.recorded.archive
    runs = [run.run_id for run in (model.baseline, model.candidate) if run is not None]
    folders = [component.results_dir / run for run in runs]
    if compared.is_private or len(runs) < 2 or not all((folder / ANSWERS).is_file() for folder in folders):
        return
    try:
        before, after = map(archive.record, runs)
        first, second = map(compared.outcomes, folders)
        cases = list(compared.cases.values())
        changed = ChangedAnswers(
            model_id=after.model_id,
            baseline=before.run_id,
            compared=len(common_part(before, after).cases),
            changes=tuple(answer_changes(component, cases, before, after, (first, second))),
        )
    except SkillEvaluatorError as problem:
        yield Line(f"The outputs cannot be read: {problem}")
        return
    sentence, sheet = changes_of(changed)
    yield Fold(
        "Outputs that changed, with both values", [Line(sentence), replace(sheet, caption="Outputs that changed")]
    )


def write_verdicts(site: SiteFolder, compared: ComparedComponent) -> None:
    """Write a page for each version with the verdict on every model."""
    status, rows = compared.status, {row.run_id: row for row in compared.rows}
    for version, entries in compared.entries.items():
        compared.write_page(
            site,
            page_address("verdicts", compared.name, version),
            "verdict.html",
            compare_page=page_address("compare", compared.name, version) if version in compared.versions else "",
            version=version,
            ranking=status.ranking,
            cards=entries,
            figures=[rows[entry["point"].run_id] for entry in entries if entry["point"].run_id in rows],
            max_text=_MAX_SENTENCE,
        )


def _version_entry(compared: ComparedComponent, model_id: str, point: Point) -> dict[str, Any]:
    """Return the verdict on a version with one model, its evidence, and its lost fields and cases."""
    step, result = point.step, compared.versions.get(point.version)
    model = None if result is None else result.on_run(point.run_id)
    figures, where = "", None
    if model is not None and model.baseline is not None and model.verdict != "incomparable":
        figures, where = certainty(model), Line(*loss_parts(compared.name, model, _MAX_CASES))
    elif step is not None and step.difference is not None and (model is None or model.baseline is None):
        change = f"since {step.before}: {compared.status.history.metric} {signed(step.difference)}"
        figures = summary.difference_words(change, point.n_cases, step.ci95, step.q)
    return {
        "model": model_id,
        "point": point,
        "verdict": "first" if step is None else step.verdict,
        "verdicts": _step_verdicts(step),
        "difference": (step and step.difference) or 0.0,
        "figures": figures,
        "where": where,
    }
