"""The page that compares two versions or two models: the verdict, what moved and how surely, and which cases flipped.

Finished comparisons come in, of which every figure is that of `compare`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from skill_evaluator.display import WHOLE, arrow, ends, number, signed
from skill_evaluator.display.addresses import Site
from skill_evaluator.display.pages import MOST_ROWS, SiteBlock, sheet_block, word_block
from skill_evaluator.display.sheets import Sheet
from skill_evaluator.errors import RunError, SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.reports.comparison import all_sheets, model_words, reading_words, verdict_words, worst_first
from skill_evaluator.reports.ending import ending
from skill_evaluator.reports.explanation import changes_of
from skill_evaluator.runner.journal import ANSWERS, outcomes
from skill_evaluator.scoring.answer_views import ChangedAnswers, answer_changes
from skill_evaluator.site.writing import SiteFolder, data_script, program_digest
from skill_evaluator.text import canonical_json, digest, listed
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.history.component import RecordedComponent

_HERE = Site(".")  # the site itself: a case leads to its page
_MOST_DRAWN = 40
_MOST_LOST = 12  # fields and cases that a verdict names
_CAPTIONS = {"metric": "Metrics", "field": "Fields"}
_FOLDED = frozenset({"metric", "the run", "the runs"})
Answers = Callable[[ModelVerdict], str | None]  # under which key the answers that changed are, if they may be shown


def version_parts(comparisons: Comparisons, answers: Answers) -> dict[str, Any]:
    """Return what is shown of each version beside the one it is judged against, by its number."""
    return {version: _result(result, answers) for version, result in comparisons.versions.items()}


def model_parts(comparisons: Comparisons, answers: Answers) -> list[dict[str, Any]]:
    """Return what is shown of each pair of models, the first of which is the baseline."""
    return [
        {"first": result.models[0].baseline.model_id, "second": result.models[0].model_id, **_result(result, answers)}
        for result in comparisons.models
        if result.models[0].baseline is not None
    ]


def _result(result: ComparisonResult, answers: Answers) -> dict[str, Any]:
    return {
        "finding": verdict_words(result),
        "verdict": result.verdict,
        "reading": reading_words(result),
        "leftOut": result.left_out,
        "models": [
            {
                "model": model.model_id,
                "verdict": model.verdict,
                "before": None if model.baseline is None else model.baseline.title,
                "after": model.candidate.title,
                "words": model_words(model, result),
                "forest": _forest(model),
                "lost": _lost(model),
                **_ending(result, model),
                "blocks": list(_tables(result.skill, model)),
                "answers": answers(model),
            }
            for model in worst_first(result)
        ],
    }


def _ending(result: ComparisonResult, model: ModelVerdict) -> dict[str, str]:
    """Return how sure the verdict on a model is, and what to do next, without a command: a page is read anywhere."""
    of_it = {"models": [model], "verdict": model.verdict}
    verdict, _, following = ending(result.model_copy(update=of_it))
    return {"sure": verdict.partition(": ")[2], "next": following.removeprefix("next: ")}


def _lost(model: ModelVerdict) -> dict[str, Any]:
    """Return the fields that fell beyond chance, each with how it fell, and the cases that broke or are worse."""
    fields = sorted((one for one in model.fields if one.verdict == "regressed"), key=lambda one: one.difference or 0.0)
    return {
        "fields": [[one.metric or WHOLE, arrow(one.baseline, one.candidate)] for one in fields[:_MOST_LOST]],
        "worse": model.cases.every_answer_worse[:_MOST_LOST],
        "cases": [case.case_id for case in model.cases.broke[:_MOST_LOST]],
        "more": [max(0, len(names) - _MOST_LOST) for names in (fields, model.cases.broke)],
    }


def _forest(model: ModelVerdict) -> dict[str, Any]:
    """Return the rows of the chart: metrics first, then the fields that moved, the largest loss first."""
    fields = sorted((one for one in model.fields if one.difference), key=lambda one: one.difference or 0.0)
    drawn = [one for one in (*model.metrics, *fields) if one.difference is not None][:_MOST_DRAWN]
    sure = [
        f"{one.metric or WHOLE} {signed(one.difference)}" for one in drawn if one.verdict in ("regressed", "improved")
    ]
    return {
        "title": f"Beyond chance: {listed(sure, 3)}" if sure else "Nothing moved beyond chance",
        "rows": [_row(one) for one in drawn],
    }


def _row(one: MeasureResult) -> dict[str, Any]:
    low, high = ends(one.ci95, one.n_cases)
    return {
        "name": one.metric or WHOLE,
        "kind": one.kind,
        "difference": one.difference,
        "low": low,
        "high": high,
        "verdict": one.verdict,
        "words": f"{one.metric or WHOLE}: {number(one.baseline)} → {number(one.candidate)}, {one.verdict}",
    }


def _tables(skill: str, model: ModelVerdict) -> Iterator[SiteBlock]:
    for piece in all_sheets(model, skill=skill, site=_HERE, most=MOST_ROWS):
        if isinstance(piece, Sheet):
            head = piece.columns[0]
            yield sheet_block(_CAPTIONS.get(head, f"{head[:1].upper()}{head[1:]}"), piece, folded=head in _FOLDED)
        else:
            yield word_block(piece)


_SHOWN_BY = ("text.py", "display/*.py", "reports/*.py", "site/*.py", "scoring/*.py", "parsing/*.py")
_LONGEST = 2_000  # characters of a sentence


def write_comparisons(
    site: SiteFolder,
    recorded: RecordedComponent,
    fixtures: Path | None,
    comparisons: Comparisons,
    *,
    shows_answers: bool,
) -> None:
    """Write the comparisons of a component."""
    read = lru_cache(maxsize=16)(lambda folder, *_: outcomes(folder))  # each run is in several comparisons
    answers: Answers = _BothAnswers(site, recorded, fixtures, read).of if shows_answers else lambda _: None
    key = f"compare/{recorded.component.name}"
    site.write_data(f"{key}/versions", version_parts(comparisons, answers), _LONGEST)
    site.write_data(f"{key}/models", model_parts(comparisons, answers), _LONGEST)


@dataclass(frozen=True)
class _BothAnswers:
    """The answers of two runs side by side; a file for each two, made when it is asked for."""

    site: SiteFolder
    recorded: RecordedComponent
    fixtures: Path | None
    read: Callable[..., Any]  # the answers in a folder, of a size and a time

    @cached_property
    def _cases(self) -> Sequence[Case]:
        return load_cases(self.recorded.component, self.fixtures)

    @cached_property
    def _digests(self) -> Mapping[str, str]:
        return self.recorded.archive.digests()

    def of(self, model: ModelVerdict) -> str | None:
        """Return the key of the answers that changed; None where those of one of the two runs are not here."""
        if model.baseline is None:
            return None
        component, runs = self.recorded.component, (model.baseline.run_id, model.candidate.run_id)
        folders = [component.results_dir / run_id for run_id in runs]
        if not all((folder / ANSWERS).is_file() for folder in folders):
            return None
        key = f"answers/{component.name}/{runs[0]}/{runs[1]}"
        self.site.when_opened(f"data/{key}.js", lambda: self._write(key, runs, folders))
        return key

    def _write(self, key: str, runs: tuple[str, str], folders: Sequence[Path]) -> None:
        component, archive = self.recorded.component, self.recorded.archive
        sizes = [[stat.st_size, stat.st_mtime_ns] for stat in ((folder / ANSWERS).stat() for folder in folders)]
        try:
            cases = self._cases
        except SkillEvaluatorError as problem:
            self.site.write_data(key, {"blocks": [word_block(f"The cases cannot be read: {problem}")]}, _LONGEST)
            return
        known = [
            program_digest(*_SHOWN_BY),
            sizes,
            [self._digests.get(run_id) for run_id in runs],
            [[case.id, case.digest] for case in cases],
            component.digests,
        ]
        first_line = f"/* {digest(canonical_json(known))} */"
        if self.site.keeps(f"data/{key}.js", first_line):
            return
        before, after = (archive.record_of(run_id) for run_id in runs)
        try:
            first, second = (self.read(folder, *size) for folder, size in zip(folders, sizes, strict=True))
            changed = ChangedAnswers(
                model_id=after.model_id,
                baseline=before.run_id,
                compared=len(common_part(before, after).cases),
                changes=tuple(answer_changes(component, cases, before, after, (first, second))),
            )
        except RunError as problem:
            self.site.write_data(key, {"blocks": [word_block(f"The answers cannot be read: {problem}")]}, _LONGEST)
            return
        words, sheet = changes_of(changed)
        table = [sheet_block("Answers that changed", sheet)] if sheet.rows else []
        value = {"blocks": [word_block(words), *table]}
        self.site.write(f"data/{key}.js", f"{first_line}\n{data_script(key, value, _LONGEST)}")
