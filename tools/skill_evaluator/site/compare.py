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
from skill_evaluator.records.record import Row
from skill_evaluator.reports.comparison import all_sheets, model_words, reading_words
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.reports.summary import fell_most_words, scope_words, verdict_words, worst_first
from skill_evaluator.runner.journal import ANSWERS, outcomes
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.site.changes import ORDER, version_entry
from skill_evaluator.site.component import run_figures
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import SOUND, judged_alone, next_words
from skill_evaluator.text import listed, version_words
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.history.component import ComponentStanding, RecordedComponent
from skill_evaluator.verdicts.history.series import Point

_ROOT = Site("../..")  # the way from a page here to the root of the site
_MAX_DRAWN = 40
_MAX_LOST = 12  # fields and cases that a verdict names
_MAX_TEXT = 2_000  # characters of a sentence
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


@dataclass(frozen=True, kw_only=True)
class ComparedComponent:
    """A component with its comparisons; `shows_outputs`: the site may show outputs of its models."""

    recorded: RecordedComponent
    rows: Sequence[Row]
    standing: ComponentStanding
    comparisons: Comparisons
    state: Mapping[str, Any]
    fixtures: Path | None
    shows_outputs: bool

    @property
    def name(self) -> str:
        """The name of the component."""
        return self.recorded.component.name

    @cached_property
    def versions(self) -> dict[str, ComparisonResult]:
        """The comparison of each version that has a baseline, by version."""
        results = self.comparisons.versions.items()
        return {version: result for version, result in results if any(model.baseline for model in result.models)}

    @cached_property
    def pairs(self) -> dict[tuple[str, str], ComparisonResult]:
        """The comparison of each pair of models, the baseline first."""
        by_pair = {}
        for result in self.comparisons.models:
            model = result.models[0]
            if model.baseline is not None and model.baseline.model_id is not None:
                by_pair[model.baseline.model_id, model.model_id] = result
        return by_pair

    @property
    def first_address(self) -> str:
        """The page that compares the newest version, else the first two models; "" if nothing is compared."""
        newest = self.standing.history.newest
        if newest in self.versions:
            return compare_address(self.name, newest)
        return next((models_address(self.name, *pair) for pair in self.pairs), "")

    def is_latest(self, version: str) -> bool:
        """Return whether a version is the newest one; models are compared on it."""
        return version in ("", self.standing.history.newest)

    def next_step(self, result: ComparisonResult, model: ModelVerdict, version: str) -> str:
        """Return the next step for a model, or "" if a different model or a newer version decides it."""
        every = all(other.verdict in SOUND for other in result.models)
        if model.verdict in SOUND and not (every and self.is_latest(version)):
            return ""
        return next_words(result, model)


def write_comparisons(pages: "Pages", of: ComparedComponent) -> None:
    """Write a page for each of the newest versions, for each pair of models, and the verdict on each version."""
    outputs = _ChangedOutputs(of) if of.shows_outputs else None
    versions = [(version, compare_address(of.name, version)) for version in of.versions]
    pairs = [(f"{first} with {second}", models_address(of.name, first, second)) for first, second in of.pairs]
    links = {"versions": versions, "pairs": pairs}
    for (version, address), result in zip(versions, of.versions.values(), strict=True):
        _write_comparison(pages, of, address, result, outputs, {**links, "version": version, "two": None})
    for (_, address), (two, result) in zip(pairs, of.pairs.items(), strict=True):
        _write_comparison(pages, of, address, result, outputs, {**links, "version": "", "two": two})
    for version in {point.version for model in of.standing.history.models for point in model.points}:
        _write_verdict(pages, of, version)


def _write_comparison(
    pages: "Pages",
    of: ComparedComponent,
    place: str,
    result: ComparisonResult,
    outputs: "_ChangedOutputs | None",
    shown: Mapping[str, Any],
) -> None:
    two, version = shown["two"], shown["version"]
    titles = two or ("before", "after")
    pages.write(
        place,
        "compare.html",
        longest=_MAX_TEXT,
        component=of.name,
        state=of.state,
        private=not of.shows_outputs,
        finding=verdict_words(result, f"{two[1]} against {two[0]}" if two else version_words(version)),
        left_out=result.left_out,
        reading=reading_words(result),
        latest=of.is_latest(version),
        models=[
            {
                **_compared(result, model, two),
                "next": of.next_step(result, model, version),
                "blocks": [*_blocks(of.name, model, titles), *(outputs.blocks(model, titles) if outputs else ())],
            }
            for model in worst_first(result)
        ],
        **shown,
    )


def _compared(result: ComparisonResult, model: ModelVerdict, two: Sequence[str] | None) -> dict[str, Any]:
    facts, *reasons = model_words(model)
    return {
        "name": f"{two[1]} against {two[0]}" if two else model.model_id,
        "verdict": model.verdict,
        "before": None if model.baseline is None else model.baseline.title,
        "after": model.candidate.title,
        "facts": facts,
        "reasons": [reason for reason in reasons if not (two and reason.startswith("the models differ:"))],
        "forest": differences(model),
    }


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
    name, verdict = one.metric or WHOLE, one.verdict or "unchanged"
    low, high = ends(one.ci95, one.n_cases)
    words = f"{name}: {arrow(one.baseline, one.candidate)}, {one.verdict or 'not tested'}"
    return {"name": name, "difference": one.difference, "low": low, "high": high, "verdict": verdict, "words": words}


def _blocks(skill: str, model: ModelVerdict, two: Sequence[str]) -> Iterator[Block]:
    """Yield the tables of a comparison; those of the metrics and of the runs are folded."""
    for piece in all_sheets(model, skill=skill, site=_ROOT, limit=MOST_ROWS):
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


def _write_verdict(pages: "Pages", of: ComparedComponent, version: str) -> None:
    """Write the verdict on a version with every model, to print."""
    points = [
        (model.model_id, point)
        for model in of.standing.history.models
        for point in model.points
        if point.version == version
    ]
    cards = [_card(of, model, point) for model, point in points]
    ranking, rows = of.standing.ranking, {row.run_id: row for row in of.rows}
    pages.write(
        verdict_address(of.name, version),
        "verdict.html",
        component=of.name,
        compare_address=compare_address(of.name, version) if version in of.versions else "",
        version=version,
        newest=of.standing.history.newest,
        ship=ranking.advice.words,
        cards=sorted(cards, key=lambda card: (ORDER.index(card["verdict"]), card["model"])),
        metric=of.standing.history.metric,
        figures=[run_figures(rows[point.run_id]) for _, point in points if point.run_id in rows],
        rules={"tolerance": ranking.tolerance, "alpha": ranking.alpha},
        longest=_MAX_TEXT,
    )


def _card(of: ComparedComponent, model: str, point: Point) -> dict[str, Any]:
    """Build the card of one model for the verdict page; every figure is since the version before."""
    entry = version_entry(model, point, of.standing)
    card = {**entry, "head": _HEADS[entry["verdict"]], "sure": "", "next": "", "lost": None}
    result = of.versions.get(point.version)
    compared = None if result is None else result.on_run(point.run_id)
    if result is None or compared is None or compared.baseline is None:
        return card
    lost = _lost(of.name, compared)
    shown = [field["words"] for field in lost["fields"]]
    return {
        **card,
        "sure": scope_words(judged_alone(result, compared)),
        "next": of.next_step(result, compared, point.version),
        "lost": lost,
        "reasons": [reason for reason in entry["reasons"] if not any(field in reason for field in shown)],
    }


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
        "most": "" if fields else fell_most_words(model),
        "broke": bool(model.cases.broke),
        "cases": [{"words": name, "address": case_address(skill, name)} for name in cases[:_MAX_LOST]],
        "more_cases": max(0, len(cases) - _MAX_LOST),
    }


class _ChangedOutputs:
    """The outputs that differ between two runs, if the folders of both are here."""

    def __init__(self, of: ComparedComponent) -> None:
        self._recorded, self._fixtures = of.recorded, of.fixtures
        self._read = lru_cache(maxsize=16)(lambda folder: outcomes(folder))  # each run is in several comparisons

    @cached_property
    def _cases(self) -> Sequence[Case]:
        return load_cases(self._recorded.component, self._fixtures)

    def blocks(self, model: ModelVerdict, two: Sequence[str]) -> Iterator[Block]:
        """Yield the outputs that changed with both values. Yield nothing if the outputs are not on this machine."""
        component, archive = self._recorded.component, self._recorded.archive
        runs = [run.run_id for run in (model.baseline, model.candidate) if run is not None]
        folders = [component.results_dir / run for run in runs]
        if len(runs) < 2 or not all((folder / ANSWERS).is_file() for folder in folders):
            return
        try:
            before, after = map(archive.record_of, runs)
            first, second = map(self._read, folders)
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
