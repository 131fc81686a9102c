"""The pages that compare a version with the one before, and two models."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from skill_evaluator.display import WHOLE, ends, signed
from skill_evaluator.display.addresses import Site, compare_address
from skill_evaluator.display.pages import MAX_ROWS, Block, Captioned, Fold, Line
from skill_evaluator.display.sheets import Sheet
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.records.record import Row
from skill_evaluator.reports.comparison import all_sheets, model_words, reading_words
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.reports.summary import verdict_words, worst_first
from skill_evaluator.runner.journal import ANSWERS, outcomes
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.site.rendering import Pages
from skill_evaluator.site.state import ComponentState
from skill_evaluator.text import listed, version_words
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, ModelVerdict
from skill_evaluator.verdicts.history.component import ComponentStatus, RecordedComponent

_ROOT = Site(".")  # addresses on a page are seen from the root of the site
_MAX_DRAWN = 40
_MAX_SENTENCE = 2_000  # characters
_CAPTIONS = {"metric": "Metrics", "field": "Fields"}
_FOLDED = frozenset({"metric", "the run", "the runs"})


@dataclass(frozen=True, kw_only=True)
class ComparedComponent:
    """A component with its comparisons; `shows_outputs`: the site may show outputs of its models."""

    recorded: RecordedComponent
    rows: Sequence[Row]
    standing: ComponentStatus
    comparisons: Comparisons
    state: ComponentState
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
        return next((compare_address(self.name, *pair) for pair in self.pairs), "")


def write_comparisons(pages: Pages, compared: ComparedComponent) -> None:
    """Write a page for each of the newest versions and for each pair of models."""
    outputs = _ChangedOutputs(compared) if compared.shows_outputs else None
    versions = [(version, compare_address(compared.name, version)) for version in compared.versions]
    pairs = [(f"{pair[0]} with {pair[1]}", compare_address(compared.name, *pair)) for pair in compared.pairs]
    results: list[tuple[ComparisonResult, str, tuple[str, str] | None]] = [
        *((result, version, None) for version, result in compared.versions.items()),
        *((result, "", pair) for pair, result in compared.pairs.items()),
    ]
    for (_, address), (result, version, pair) in zip([*versions, *pairs], results, strict=True):
        titles = pair or ("before", "after")
        pages.write(
            address,
            "compare.html",
            max_text=_MAX_SENTENCE,
            component=compared.name,
            state=compared.state,
            private=outputs is None,
            version=version,
            pair=pair,
            finding=verdict_words(result, f"{pair[1]} against {pair[0]}" if pair else version_words(version)),
            left_out=result.left_out,
            reading=reading_words(result),
            models=[
                {
                    **_model_entry(model, pair),
                    "blocks": [
                        *_tables(compared.name, model, titles),
                        *(outputs.blocks(model, titles) if outputs else ()),
                    ],
                }
                for model in worst_first(result)
            ],
            versions=versions,
            pairs=pairs,
        )


def _model_entry(model: ModelVerdict, pair: tuple[str, str] | None) -> dict[str, Any]:
    """Return the verdict on a model, its reasons, and the differences to draw with the ends of their intervals.

    Metrics are drawn first, then the fields that moved, the largest loss first.
    """
    facts, *reasons = model_words(model)
    fields = sorted((field for field in model.fields if field.difference), key=lambda field: field.difference or 0.0)
    drawn = [measure for measure in (*model.metrics, *fields) if measure.difference is not None][:_MAX_DRAWN]
    moved = [one for one in drawn if one.verdict in ("regressed", "improved")]
    named = listed([f"{one.metric or WHOLE} {signed(one.difference)}" for one in moved], 3)
    spans = [(measure, *ends(measure.ci95, measure.n_cases)) for measure in drawn]
    values = [abs(value) for measure, *span in spans for value in (measure.difference, *span) if value is not None]
    return {
        "verdict": model,
        "name": f"{pair[1]} against {pair[0]}" if pair else model.model_id,
        "facts": facts,
        "reasons": [reason for reason in reasons if not (pair and reason.startswith("the models differ:"))],
        "title": f"Significant: {named}" if moved else "No significant change",
        "spans": spans,
        "reach": max([0.1, *values]),
    }


def _tables(component: str, model: ModelVerdict, titles: Sequence[str]) -> Iterator[Block]:
    for piece in all_sheets(model, skill=component, site=_ROOT, limit=MAX_ROWS):
        if not isinstance(piece, Sheet):
            yield Line(piece)
            continue
        head = piece.columns[0]
        caption = _CAPTIONS.get(head, f"{head[:1].upper()}{head[1:]}")
        table = Captioned(_titled(piece, titles), caption)
        yield Fold(caption, [table]) if head in _FOLDED else table


def _titled(sheet: Sheet, titles: Sequence[str]) -> Sheet:

    def named(title: str) -> str:
        return title.replace("before", "\0").replace("after", titles[1]).replace("\0", titles[0])

    return replace(sheet, columns=[*map(named, sheet.columns)], numbers=frozenset(map(named, sheet.numbers)))


class _ChangedOutputs:
    """The outputs that differ between two runs, if the folders of both are here."""

    def __init__(self, compared: ComparedComponent) -> None:
        self._recorded, self._fixtures = compared.recorded, compared.fixtures
        self._outcomes = lru_cache(maxsize=16)(lambda folder: outcomes(folder))  # each run is in several comparisons

    @cached_property
    def _cases(self) -> Sequence[Case]:
        return load_cases(self._recorded.component, self._fixtures)

    def blocks(self, model: ModelVerdict, titles: Sequence[str]) -> Iterator[Block]:
        """Yield the outputs that changed with both values. Yield nothing if the outputs are not on this machine."""
        component, archive = self._recorded.component, self._recorded.archive
        runs = [run.run_id for run in (model.baseline, model.candidate) if run is not None]
        folders = [component.results_dir / run for run in runs]
        if len(runs) < 2 or not all((folder / ANSWERS).is_file() for folder in folders):
            return
        try:
            before, after = map(archive.record_of, runs)
            first, second = map(self._outcomes, folders)
            changed = ChangedAnswers(
                model_id=after.model_id,
                baseline=before.run_id,
                compared=len(common_part(before, after).cases),
                changes=tuple(answer_changes(component, self._cases, before, after, (first, second))),
            )
        except SkillEvaluatorError as problem:
            yield Line(f"The outputs cannot be read: {problem}")
            return
        sentence, sheet = changes_of(changed)
        table = [Captioned(_titled(sheet, titles), "Outputs that changed")] if sheet.rows else []
        yield Fold("Outputs that changed, with both values", [Line(sentence), *table])
