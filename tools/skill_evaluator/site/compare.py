"""The pages that compare two versions or two models, and the verdict on a version.

Every figure is that of a finished comparison.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from skill_evaluator.display import WHOLE, arrow, ends, signed
from skill_evaluator.display.addresses import (
    Site,
    case_address,
    compare_address,
    component_address,
    models_address,
    verdict_address,
)
from skill_evaluator.display.pages import MOST_ROWS, Block, Captioned, Fold, Line
from skill_evaluator.display.sheets import Sheet
from skill_evaluator.errors import RunError, SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.records.archive import precedence
from skill_evaluator.reports.comparison import all_sheets, model_words, reading_words, verdict_words, worst_first
from skill_evaluator.reports.ending import ending
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.runner.journal import ANSWERS, outcomes
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.site.changes import ORDER, version_entry
from skill_evaluator.site.component import run_figures
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import fell_most
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.history.component import ComponentStanding, RecordedComponent
from skill_evaluator.verdicts.history.series import Point

_ROOT = Site("../..")  # the way from a page here to the root of the site
_MAX_DRAWN = 40
_MAX_LOST = 12  # fields and cases that a verdict names
_LONGEST = 2_000  # characters of a sentence
_CAPTIONS = {"metric": "Metrics", "field": "Fields"}
_FOLDED = frozenset({"metric", "the run", "the runs"})
_HEADS = {
    "regressed": "Do not ship",
    "improved": "Nothing is in the way of",
    "unchanged": "Nothing is in the way of",
    "inconclusive": "Not decided:",
    "incomparable": "Not compared:",
    "first": "The first version:",
}
_SOUND = ("improved", "unchanged")


@dataclass(frozen=True, kw_only=True)
class ComparedComponent:
    """A component with its comparisons; `shows_outputs`: the site may show outputs of its models."""

    recorded: RecordedComponent
    standing: ComponentStanding
    comparisons: Comparisons
    state: Mapping[str, Any]
    fixtures: Path | None
    shows_outputs: bool

    @property
    def name(self) -> str:
        """The name of the component."""
        return self.recorded.component.name


def write_comparisons(pages: "Pages", of: ComparedComponent) -> None:
    """Write a page for each of the newest versions, for each pair of models, and the verdict on each version."""
    outputs = _ChangedOutputs(of) if of.shows_outputs else None
    versions, pairs = of.comparisons.versions, _pairs(of.comparisons)
    links = {
        "versions": [{"words": version, "address": compare_address(of.name, version)} for version in versions],
        "pairs": [
            {"words": f"{first} with {second}", "address": models_address(of.name, first, second)}
            for first, second in pairs
        ],
    }
    for version, result in versions.items():
        _write_comparison(pages, of, compare_address(of.name, version), result, outputs, {**links, "version": version})
    for (first, second), result in pairs.items():
        shown = {**links, "version": "", "two": [first, second]}
        _write_comparison(pages, of, models_address(of.name, first, second), result, outputs, shown)
    for version in _versions(of.standing):
        write_verdict(pages, of, version)


def _pairs(comparisons: Comparisons) -> dict[tuple[str, str], ComparisonResult]:
    """Return the comparison of each pair of models, the baseline first."""
    by_pair = {}
    for result in comparisons.models:
        model = result.models[0]
        if model.baseline is not None and model.baseline.model_id is not None:
            by_pair[model.baseline.model_id, model.model_id] = result
    return by_pair


def _versions(standing: ComponentStanding) -> list[str]:
    versions = {point.version for model in standing.history.models for point in model.points}
    return sorted(versions, key=precedence, reverse=True)


def _write_comparison(
    pages: "Pages",
    of: ComparedComponent,
    place: str,
    result: ComparisonResult,
    outputs: "_ChangedOutputs | None",
    shown: Mapping[str, Any],
) -> None:
    known = [
        result.model_dump(mode="json"),
        of.state,
        shown,
        [outputs.known(model) for model in result.models] if outputs else None,
    ]
    if pages.keeps(place, "compare.html", known, longest=_LONGEST):
        return
    two = shown.get("two", ("before", "after"))
    latest = shown["version"] in ("", of.standing.history.newest)
    models = worst_first(result)
    pages.write(
        place,
        "compare.html",
        known,
        longest=_LONGEST,
        component=of.name,
        address=component_address(of.name),
        state=of.state,
        private=not of.shows_outputs,
        finding=verdict_words(result),
        left_out=result.left_out,
        reading=reading_words(result),
        models=[
            {
                **_compared(result, model, two=shown.get("two")),
                "next": _next(result, model, models[0], latest=latest),
                "blocks": [*_blocks(of.name, model, two), *(outputs.blocks(model, two) if outputs else ())],
            }
            for model in models
        ],
        **{"two": None, **shown},
    )


def _compared(result: ComparisonResult, model: ModelVerdict, two: Sequence[str] | None) -> dict[str, Any]:
    facts, *reasons = model_words(model, result)
    return {
        "name": f"{two[1]} against {two[0]}" if two else model.model_id,
        "verdict": model.verdict,
        "before": None if model.baseline is None else model.baseline.title,
        "after": model.candidate.title,
        "facts": facts,
        "reasons": [reason for reason in reasons if not (two and reason.startswith("the models differ:"))],
        "forest": differences(model),
    }


def _next(result: ComparisonResult, model: ModelVerdict, worst: ModelVerdict, *, latest: bool) -> dict[str, str] | None:
    """Return the next step for a model. Return None if there is none, or if a different model regressed."""
    if model.verdict in _SOUND and not (latest and worst.verdict in _SOUND):
        return None
    return {"title": "Next" if latest else "To see why", "words": _ending(result, model)[1]}


def _ending(result: ComparisonResult, model: ModelVerdict) -> tuple[str, str]:
    """Return how significant the verdict on a model is, and what to do next without naming a command."""
    verdict, _, following = ending(result.model_copy(update={"models": [model], "verdict": model.verdict}))
    return verdict.partition(": ")[2], following.removeprefix("next: ")


def differences(model: ModelVerdict) -> dict[str, Any]:
    """Return the differences to draw: metrics first, then the fields that moved, the largest loss first."""
    fields = sorted((one for one in model.fields if one.difference), key=lambda one: one.difference or 0.0)
    drawn = [one for one in (*model.metrics, *fields) if one.difference is not None][:_MAX_DRAWN]
    moved = [
        f"{one.metric or WHOLE} {signed(one.difference)}" for one in drawn if one.verdict in ("regressed", "improved")
    ]
    rows = [_drawn(one) for one in drawn]
    values = [abs(value) for row in rows for value in (row["difference"], row["low"], row["high"]) if value is not None]
    return {
        "title": f"Significant: {listed(moved, 3)}" if moved else "No significant change",
        "rows": rows,
        "reach": max([0.1, *values]),
    }


def _drawn(one: MeasureResult) -> dict[str, Any]:
    low, high = ends(one.ci95, one.n_cases)
    return {
        "name": one.metric or WHOLE,
        "difference": one.difference,
        "low": low,
        "high": high,
        "verdict": one.verdict or "unchanged",
        "words": f"{one.metric or WHOLE}: {arrow(one.baseline, one.candidate)}, {one.verdict or 'not tested'}",
    }


def _blocks(skill: str, model: ModelVerdict, two: Sequence[str]) -> Iterator[Block]:
    """Yield the tables of a comparison; those of the metrics and of the runs are folded."""
    for piece in all_sheets(model, skill=skill, site=_ROOT, most=MOST_ROWS):
        if not isinstance(piece, Sheet):
            yield Line(piece)
            continue
        head = piece.columns[0]
        caption = _CAPTIONS.get(head, f"{head[:1].upper()}{head[1:]}")
        table = Captioned(_titled(piece, two), caption)
        yield Fold(caption, [table]) if head in _FOLDED else table


def _titled(sheet: Sheet, two: Sequence[str]) -> Sheet:
    """Return a table whose columns name the two that are compared."""

    def named(title: str) -> str:
        return title.replace("before", "\0").replace("after", two[1]).replace("\0", two[0])

    return replace(sheet, columns=[*map(named, sheet.columns)], numbers=frozenset(map(named, sheet.numbers)))


def write_verdict(pages: "Pages", of: ComparedComponent, version: str) -> None:
    """Write the verdict on a version with every model, to print."""
    newest, result = of.standing.history.newest, of.comparisons.versions.get(version)
    points = [
        (model.model_id, point)
        for model in of.standing.history.models
        for point in model.points
        if point.version == version
    ]
    cards = [_card(of, model, point, result) for model, point in points]
    cards.sort(key=lambda card: (ORDER.index(card["verdict"]), card["model"]))
    for card in cards:
        if card["verdict"] in _SOUND and not (version == newest and cards[0]["verdict"] in _SOUND):
            card["next"] = ""
    records = [of.recorded.archive.record_of(point.run_id) for _, point in points]
    ranking = of.standing.ranking
    pages.write(
        verdict_address(of.name, version),
        "verdict.html",
        component=of.name,
        address=component_address(of.name),
        compare_address=compare_address(of.name, version) if result is not None else "",
        version=version,
        newest=newest,
        ship=ranking.advice.words,
        cards=cards,
        metric=of.standing.history.metric,
        figures=[run_figures(record) for record in records],
        rules={"tolerance": ranking.tolerance, "alpha": ranking.alpha},
        longest=_LONGEST,
    )


def _card(of: ComparedComponent, model: str, point: Point, result: ComparisonResult | None) -> dict[str, Any]:
    """Return what a verdict page says of one model; every figure is since the version before."""
    entry = version_entry(model, point, of.standing)
    compared = None if result is None else result.on_run(point.run_id)
    compared = None if compared is None or compared.baseline is None else compared
    lost = None if compared is None else _lost(of.name, compared)
    sure, following = _ending(result, compared) if result is not None and compared is not None else ("", "")
    reasons = [] if point.step is None else _other_reasons(point.step.reasons, of.standing.history.metric, lost)
    verdict = {"head": _HEADS[entry["verdict"]], "sure": sure, "next": following}
    return {**entry, **verdict, "lost": lost, "reasons": reasons}


def _lost(skill: str, model: ModelVerdict) -> dict[str, Any]:
    """Return the fields that fell significantly, else the field that fell most, and the cases that broke."""
    fields = sorted((one for one in model.fields if one.verdict == "regressed"), key=lambda one: one.difference or 0.0)
    cases = [case.case_id for case in model.cases.broke] or model.cases.every_answer_worse
    return {
        "fields": [
            {
                "words": f"{one.metric or WHOLE} {arrow(one.baseline, one.candidate)}",
                "address": component_address(skill, one.metric),
            }
            for one in fields[:_MAX_LOST]
        ],
        "more_fields": max(0, len(fields) - _MAX_LOST),
        "most": "" if fields else fell_most(model),
        "broke": bool(model.cases.broke),
        "cases": [{"words": name, "address": case_address(skill, name)} for name in cases[:_MAX_LOST]],
        "more_cases": max(0, len(cases) - _MAX_LOST),
    }


def _other_reasons(reasons: Sequence[str], metric: str, lost: Mapping[str, Any] | None) -> list[str]:
    """Return the reasons that neither the fields that fell nor the change of the primary metric say."""
    fields = [] if lost is None else [field["words"] for field in lost["fields"]]
    return [
        reason
        for reason in reasons
        if not reason.startswith((f"{metric} fell from", f"{metric} rose from"))
        and not any(field in reason for field in fields)
    ]


class _ChangedOutputs:
    """The outputs of two runs side by side, if the folders of both are here."""

    def __init__(self, of: ComparedComponent) -> None:
        self._recorded, self._fixtures = of.recorded, of.fixtures
        self._read = lru_cache(maxsize=16)(lambda folder, *_: outcomes(folder))  # each run is in several comparisons

    @cached_property
    def _cases(self) -> Sequence[Case]:
        return load_cases(self._recorded.component, self._fixtures)

    def known(self, model: ModelVerdict) -> list[Any] | None:
        """Return what tells whether the outputs that changed are still the same; None if they are not here."""
        if model.baseline is None:
            return None
        results = self._recorded.component.results_dir
        files = [results / run.run_id / ANSWERS for run in (model.baseline, model.candidate)]
        if not all(file.is_file() for file in files):
            return None
        return [[stat.st_size, stat.st_mtime_ns] for stat in (file.stat() for file in files)]

    def blocks(self, model: ModelVerdict, two: Sequence[str]) -> Iterator[Block]:
        """Yield the outputs that changed with both values; nothing if they are not here."""
        sizes = self.known(model)
        if sizes is None or model.baseline is None:
            return
        component, archive = self._recorded.component, self._recorded.archive
        try:
            before, after = (archive.record_of(run.run_id) for run in (model.baseline, model.candidate))
            first, second = (
                self._read(component.results_dir / record.run_id, *size)
                for record, size in zip((before, after), sizes, strict=True)
            )
            changed = ChangedAnswers(
                model_id=after.model_id,
                baseline=before.run_id,
                compared=len(common_part(before, after).cases),
                changes=tuple(answer_changes(component, self._cases, before, after, (first, second))),
            )
        except (RunError, SkillEvaluatorError) as problem:
            yield Line(f"The outputs cannot be read: {problem}")
            return
        words, sheet = changes_of(changed)
        table = [Captioned(_titled(sheet, two), "Outputs that changed")] if sheet.rows else []
        yield Fold("Outputs that changed, with both values", [Line(words), *table])
