"""The page of a component: its ranking, its trend, and the fields in which its models are right, wrong or flaky."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from skill_evaluator.display import WHOLE, ends, number
from skill_evaluator.display.addresses import field_anchor
from skill_evaluator.display.chart_style import COLOURS, PageChart, drawn_from, page_svg, series_legend
from skill_evaluator.display.safe_text import visible
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import Record, Row, RowAccuracy
from skill_evaluator.records.summaries import FieldSummary, values_of_arrays
from skill_evaluator.reports.summary import since_accepted_words
from skill_evaluator.site.writing import cut_name, first_rows
from skill_evaluator.stats import rounded
from skill_evaluator.text import counted, version_words
from skill_evaluator.verdicts.component import ComponentStatus
from skill_evaluator.verdicts.decide.results import per_1000
from skill_evaluator.verdicts.shipping import History, RankedModel, Score

AGREEMENT = "pairwise_exact_match"
_DRAWN = 15  # versions in the small line of the overview
_MAX_CATEGORIES = 12  # the record has all
_MAX_ROWS = {"trend": 150, "arrays": 60, "items": 60, "confusions": 20, "failures": 40}
_MAX_FIELD_ROWS = 400  # a row has one field with one model
_VERDICT_SHAPES = {
    "regressed": "triangle-down",
    "improved": "triangle-up",
    "unchanged": "circle",
    "inconclusive": "diamond",
    "incomparable": "cross",
    "first": "square",
}
_WORDS: dict[str, Any] = {"description": "words:N"}
_WIDE, _NARROW = 1_000, 300  # pixels
_FIT = {"type": "fit-x", "contains": "padding"}
_MAX_NAME = 100  # characters; vl-convert aborts the process for texts of very many


def component_page(version: str, status: ComponentStatus, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the values for the template of a component's page, by name; `rows` are the runs of its leaderboard."""
    history, newest, ranking = status.history, status.newest, status.ranking
    points = list(_trend_points(history, rows))
    long: dict[str, Iterable[Any]] = {
        "trend": sorted(points, key=lambda point: point["timestamp"], reverse=True),
        "fields": _fields_by_path(newest).items(),
        "arrays": ((name, path, array) for name, record in newest.items() for path, array in record.per_array.items()),
        "items": _item_rows(newest),
        "confusions": _confusion_matrices(newest),
        "failures": (
            (name, kind, rounded(per_1000(count, record.planned), 1))
            for name, record in newest.items()
            for kind, count in record.failures.items()
            if count
        ),
    }
    limits = {**_MAX_ROWS, "fields": _MAX_FIELD_ROWS // len(newest)}
    parts = {name: first_rows(values, limits[name]) for name, values in long.items()}
    runs = {point["run"] for point in parts["trend"][0]}
    trend = [point for point in points if point["run"] in runs]
    versions = sorted({point["version"] for point in points}, key=precedence)
    return {
        "disk_version": version,
        "metric": history.metric,
        "agreement": AGREEMENT,
        "models": list(newest),
        "versions": versions,
        "ranking": ranking,
        "others": sorted({name for model in ranking.models for name in model.accuracy} - {ranking.metric}),
        "scores": {model.model_id: _ranked_score(status, model) for model in ranking.models},
        "moved": {model.model_id: verdict_of(model.model_id, status) for model in ranking.models},
        "newest": [
            {**figures, "calls": newest[model_id].calls} for model_id, figures in newest_figures(status, rows).items()
        ],
        **{name: shown for name, (shown, _) in parts.items()},
        "trend": trend,
        "map": _field_map(parts["fields"][0]),
        "left": {name: left for name, (_, left) in parts.items()},
        "chart": _trend_chart(trend, versions, list(newest), history.metric) if len(versions) > 1 else None,
        "remarks": list(_history_remarks(history)),
    }


def _fields_by_path(newest: Mapping[str, Record]) -> dict[str, dict[str, FieldSummary]]:
    """Return the summary of each field as `{path: {model id: summary}}`."""
    paths = dict.fromkeys(path for record in newest.values() for path in record.per_field)
    return {
        path: {name: record.per_field[path] for name, record in newest.items() if path in record.per_field}
        for path in paths
    }


def _ranked_score(status: ComponentStatus, model: RankedModel) -> dict[str, float | None]:
    score = model.accuracy.get(status.ranking.metric)
    return {
        **_score_figures(score, score.n_cases if score else 0),
        "reproducibility": model.reproducibility.get(AGREEMENT),
    }


def _score_figures(score: Score | RowAccuracy | None, cases: int) -> dict[str, float | None]:
    """Return a strict mean as `accuracy`, and its confidence interval as `low` and `high`; each may be None."""
    low, high = ends(score.ci95 if score else None, cases)
    return {"accuracy": score.strict_mean if score else None, "low": low, "high": high}


def _field_map(fields: Iterable[tuple[str, Mapping[str, FieldSummary]]]) -> list[dict[str, Any]]:
    """Return a row for each field with the counts of cases by stability and model, the worst field first."""
    rows = []
    for path, by_model in fields:
        profiles = {name: field.profile.model_dump() for name, field in by_model.items() if field.profile}
        lost = sum(profile["stable_wrong"] + profile["flaky"] for profile in profiles.values())
        right = bool(profiles) and all(map(is_flawless, profiles.values()))
        row = {"field": path or WHOLE, "anchor": field_anchor(path), "lost": lost, "right": right}
        rows.append({**row, "profiles": profiles})
    return sorted(rows, key=lambda row: (row["right"], -row["lost"]))


def is_flawless(profile: Mapping[str, int]) -> bool:
    """Return whether every case of a profile is right in every output, and there is one."""
    return bool(profile.get("stable_right")) and sum(profile.values()) == profile["stable_right"]


def _trend_points(history: History, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the figures of each judged version, then of each run that was not finished.

    A `segment` ends where two versions cannot be compared.
    """
    by_run = {row.run_id: row for row in rows}
    for model in history.models:
        stretch = 0
        for point in model.points:
            step, row = point.step, by_run.get(point.run_id)
            stretch += step is not None and step.verdict == "incomparable"
            if row is None:
                continue
            verdict, against = "first", ""
            if step is not None:
                verdict, against = step.verdict, f" against {version_words(step.before)}"
            yield {
                **run_figures(row),
                "complete": row.complete,
                "segment": f"{model.model_id} {stretch}",
                "verdict": verdict,
                "before": step and step.before,
                "runs": point.runs,
                "pooled": point.strict_mean,
                "words": f"{version_words(point.version)}: {number(point.strict_mean)}, {verdict}{against}",
            }
    for row in rows:
        if not row.complete and row.scenario is None:
            state = "not finished, " if row.usable is None else "too few outputs could be read: "
            tooltip = f"{row.model_id} {row.skill_version}: {state}{row.scored} of {counted(row.planned, 'call')}"
            nothing = {"complete": False, "segment": None, "verdict": None, "before": None, "runs": 1}
            yield {**run_figures(row), **nothing, "words": tooltip}


def _history_remarks(history: History) -> Iterator[str]:
    for model in history.models:
        highest = model.points[-1].step
        if highest is not None and highest.since_accepted is not None:
            yield f"{model.model_id}: {since_accepted_words(highest.since_accepted)}"
        yield from (f"{model.model_id}: {remark}" for remark in model.remarks)


def _item_rows(newest: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    """Yield for each array and model the number of right, wrong, missing and extra values in its items."""
    by_model = {model_id: values_of_arrays(record.per_field) for model_id, record in newest.items()}
    for path in dict.fromkeys(path for arrays in by_model.values() for path in arrays):
        for model_id, arrays in by_model.items():
            if path in arrays and arrays[path]["n"]:
                yield {"array": path or WHOLE, "model": model_id, **arrays[path]}


def _confusion_matrices(newest: Mapping[str, Record]) -> Iterator[dict[str, Any]]:
    """Yield the confusion matrix of each category field: truths are rows, outputs columns, the most frequent first."""
    for model_id, record in newest.items():
        for path, field in record.per_field.items():
            counts = field.confusion
            if not counts:
                continue
            truths = sorted(counts, key=lambda truth: -sum(counts[truth].values()))
            outputs = list(dict.fromkeys([*truths, *(output for row in counts.values() for output in row)]))
            yield {
                "title": f"{path or WHOLE}, {model_id}",
                "counts": counts,
                "truths": truths[:_MAX_CATEGORIES],
                "outputs": outputs[:_MAX_CATEGORIES],
                "left": len(outputs) - _MAX_CATEGORIES,
                "macro_f1": field.macro_f1,
            }


def overview_rows(
    name: str, status: ComponentStatus, rows: Sequence[Row], grades: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Return a row of the overview for each model, with the figures of its newest run of its highest version."""
    points = {model.model_id: model.points[-_DRAWN:] for model in status.history.models}
    scores = {model.model_id: _ranked_score(status, model) for model in status.ranking.models}
    return [
        {
            "component": name,
            **figures,
            **scores.get(model_id, {}),
            **verdict_of(model_id, status),
            "scores": [point.strict_mean for point in points[model_id]],
            "grade": grades.get(model_id),
        }
        for model_id, figures in newest_figures(status, rows).items()
    ]


def newest_figures(status: ComponentStatus, rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Return the figures of each model's newest complete run of its highest version, by model id."""
    by_run = {row.run_id: row for row in rows}
    return {model_id: run_figures(by_run[record.run_id]) for model_id, record in status.newest.items()}


def run_figures(row: Row) -> dict[str, Any]:
    """Return the figures of a run by the names that templates use; costs are in USD for 1,000 outputs."""
    outputs = round(row.coverage * row.planned)
    return {
        "run": row.run_id,
        "model": row.model_id,
        "version": row.skill_version,
        "timestamp": row.timestamp,
        "metric": row.primary_metric,
        **_score_figures(row.accuracy.get(row.primary_metric), row.n_cases),
        "reproducibility": row.reproducibility.get(AGREEMENT),
        "coverage": row.coverage,
        "usd": per_1000(row.cost_usd, outputs),
        "tokens": None if row.tokens.output is None or not outputs else row.tokens.output / outputs,
        "p50": row.latency_s.p50,
        "p95": row.latency_s.p95,
    }


def verdict_of(model_id: str, status: ComponentStatus) -> dict[str, Any]:
    """Return the `verdict` on a model's highest version, its baseline `before` and the score `difference`.

    A version that repairs the one before is *improved* only if it is also better than the accepted version; otherwise
    the verdict is that since the accepted version. `also` is the verdict since the other one of these two baselines, or
    None if the two verdicts agree. All values are None for a first version.
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
    """Draw the scores of each model over the versions; unfinished runs are hollow."""
    texts = ("model", "segment", "words")
    rows = [{**point, **{name: _short_name(point[name]) for name in texts}} for point in points]
    rows = [{**row, "version": version_words(row["version"])} for row in rows]
    verdicts = list(dict.fromkeys(row["verdict"] for row in rows if row["verdict"]))
    lowest = min(value for row in rows for value in (row["accuracy"], row["low"], 1.0) if value is not None)
    scale = alt.Scale(domain=[0 if lowest < 0.5 else 0.5, 1])  # a cut axis would make a step look larger than it is
    title = f"strict mean of {_short_name(metric)}"
    x = alt.X(
        "version:N",
        sort=[*map(version_words, versions)],
        title="version",
        axis=alt.Axis(labelAngle=-35, labelOverlap=True),
    )
    value = alt.Y("accuracy:Q", title=title, scale=scale, axis=alt.Axis(format=".1f", tickCount=5))
    colours = alt.Scale(domain=[*map(_short_name, models)], range=list(COLOURS))
    base = drawn_from(rows).encode(x=x, color=alt.Color("model:N", scale=colours, legend=series_legend()))
    complete = base.transform_filter("datum.complete")
    shapes = alt.Scale(domain=list(_VERDICT_SHAPES), range=list(_VERDICT_SHAPES.values()))
    shape = alt.Shape("verdict:N", scale=shapes, legend=series_legend(values=verdicts))
    spans = base.transform_filter("datum.low !== null").mark_rule(strokeWidth=1.5, opacity=0.45, aria=False)
    hollow = base.transform_filter("!datum.complete").mark_point(filled=False, size=80, strokeWidth=2, opacity=1)
    chart = alt.layer(
        spans.encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q"),
        complete.mark_line(strokeWidth=2, aria=False).encode(y=value, detail="segment:N"),
        complete.mark_point(filled=True, size=90, opacity=1).encode(y=value, shape=shape, **_WORDS),
        hollow.encode(y=value, **_WORDS),
    )
    wide, narrow = (chart.properties(height=height).to_dict(validate=False) for height in (320, 190))
    return PageChart(
        page_svg({**wide, "width": _WIDE, "autosize": _FIT}, "trend"),
        page_svg({**narrow, "width": _NARROW, "autosize": _FIT}, "trend-n"),
    )


def _short_name(text: str | None) -> str | None:
    return None if text is None else visible(cut_name(text, _MAX_NAME))
