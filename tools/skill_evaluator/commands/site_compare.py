"""The part of `site build` that compares: the newest versions of a component, and pairs of its models.

Where documents may be shown, also the answers that are others than they were, of runs whose answers are at hand.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from skill_evaluator.display.pages import sheet_block, word_block
from skill_evaluator.errors import RunError, SkillEvaluatorError
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Settings
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record
from skill_evaluator.reports.changed_answers import changes_part
from skill_evaluator.runner.journal import ANSWERS, outcomes
from skill_evaluator.scoring.changed_answers import ChangedAnswers, answer_changes
from skill_evaluator.site.compare import model_parts, version_parts
from skill_evaluator.site.public import PublicNames
from skill_evaluator.site.writing import SiteFolder, data_script
from skill_evaluator.text import canonical_json, digest
from skill_evaluator.verdicts.decide.comparability import common_part
from skill_evaluator.verdicts.decide.results import ModelVerdict
from skill_evaluator.verdicts.history.cache import program_digest
from skill_evaluator.verdicts.history.component import ComponentStanding, compared

_SHOWN_BY = ("text.py", "display/*.py", "reports/**/*.py", "scoring/*.py", "parsing/*.py", "commands/site_compare.py")
_LONGEST = 2_000  # characters of a sentence


def write_comparisons(
    site: SiteFolder,
    component: Component,
    archive: Archive,
    standing: ComponentStanding,
    settings: Settings,
    config: Path,
    fixtures: Path | None,
    names: PublicNames | None,
) -> None:
    """Write what is compared of a component; draw nothing where the site has it already.

    With `names` its texts are private, and only these are in it.
    """
    documents = names is None
    schema = component.digests.get("schema")
    keys = [f"compare/{component.name}/versions", f"compare/{component.name}/models"]
    known = digest(
        canonical_json([program_digest(_SHOWN_BY), standing.kept.digest_of(archive.entries), documents, schema])
    )
    first_line = f"/* {known} */"
    kept = [site.keeps(f"data/{key}.js", first_line) for key in keys]
    if all(kept) and not documents:  # else the answers that changed are to be found, too
        return
    comparisons = standing.kept.comparisons(archive.entries, lambda: compared(component, archive, settings, config))
    comparisons = comparisons if names is None else names.comparisons(comparisons)
    shown = _BothAnswers(site, component, archive, standing.kept.records, fixtures) if documents else None

    def answers(model: ModelVerdict) -> str | None:
        return None if shown is None else shown.of(model)

    for key, value in zip(keys, (version_parts(comparisons, answers), model_parts(comparisons, answers)), strict=True):
        site.write(f"data/{key}.js", f"{first_line}\n{data_script(key, value, _LONGEST)}")


class _BothAnswers:
    """The answers of two runs side by side; a file for each two, made when it is asked for."""

    def __init__(
        self,
        site: SiteFolder,
        component: Component,
        archive: Archive,
        digests: Mapping[str, str],
        fixtures: Path | None,
    ) -> None:
        """`digests` are those of the records by run id."""
        self._site = site
        self._component = component
        self._archive = archive
        self._cases = cache(lambda: load_cases(component, fixtures))
        self._digests = digests

    def of(self, model: ModelVerdict) -> str | None:
        """Return the key of the answers that changed; None where those of one of the two runs are not here."""
        if model.baseline is None:
            return None
        runs = (model.baseline.run_id, model.candidate.run_id)
        folders = [self._component.results_dir / run_id for run_id in runs]
        if not all((folder / ANSWERS).is_file() for folder in folders):
            return None
        key = f"answers/{self._component.name}/{runs[0]}/{runs[1]}"
        self._site.when_opened(f"data/{key}.js", lambda: self._write(key, runs, folders))
        return key

    def _write(self, key: str, runs: tuple[str, str], folders: Sequence[Path]) -> None:
        stats = [(folder / ANSWERS).stat() for folder in folders]
        try:
            cases = self._cases()
        except SkillEvaluatorError as problem:
            self._site.write_data(key, {"blocks": [word_block(f"The cases cannot be read: {problem}")]}, _LONGEST)
            return
        known = [program_digest(_SHOWN_BY), [[stat.st_size, stat.st_mtime_ns] for stat in stats]]
        records = [self._digests.get(run_id) for run_id in runs]
        of_cases = [[case.id, case.digest] for case in cases]
        first_line = f"/* {digest(canonical_json([*known, records, of_cases, self._component.digests]))} */"
        if self._site.keeps(f"data/{key}.js", first_line):
            return
        before, after = (self._archive.record_of(run_id) for run_id in runs)
        try:
            words, sheet = changes_part(_changed(self._component, cases, before, after, folders))
        except RunError as problem:
            self._site.write_data(key, {"blocks": [word_block(f"The answers cannot be read: {problem}")]}, _LONGEST)
            return
        table = [sheet_block("Answers that changed", sheet)] if sheet.rows else []
        value = {"blocks": [word_block(words), *table]}
        self._site.write(f"data/{key}.js", f"{first_line}\n{data_script(key, value, _LONGEST)}")


def _changed(
    component: Component, cases: Sequence[Case], before: Record, after: Record, folders: Sequence[Path]
) -> ChangedAnswers:
    answers = (outcomes(folders[0]), outcomes(folders[1]))
    return ChangedAnswers(
        model_id=after.model_id,
        baseline=before.run_id,
        compared=len(common_part(before, after).cases),
        changes=tuple(answer_changes(component, cases, before, after, answers)),
    )
