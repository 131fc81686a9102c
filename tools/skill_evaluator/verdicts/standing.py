"""What is known of a component today: its history and the ranking of its models, each drawn once and then kept.

`history`, `leaderboard` and the site say the same of a component, because all of them ask here.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Settings, load_waivers
from skill_evaluator.records.archive import Archive, RecordedRun, precedence
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import choose, newest_of_versions, next_lower, runs_of_versions
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.history import history_of
from skill_evaluator.verdicts.history_results import History
from skill_evaluator.verdicts.kept import KeptVerdicts, kept_verdicts
from skill_evaluator.verdicts.ranking_results import ModelRanking
from skill_evaluator.verdicts.recorded import models_pair, pair_of, ranking_of, usual_baseline, verdict_on
from skill_evaluator.verdicts.results import ComparisonResult, Comparisons
from skill_evaluator.verdicts.rules import rules_for

_NEWEST = 5  # versions that are compared without being asked
_MOST_MODELS = 8  # whose pairs are


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentStanding:
    """A component with at least one complete run: the newest record of each model, its history and its ranking.

    `kept` holds more that was drawn of it. The age of a model in the ranking is that of the day on which it was drawn.
    """

    newest: Mapping[str, Record]
    history: History
    ranking: ModelRanking
    kept: KeptVerdicts = field(compare=False)


def standing_of(component: Component, archive: Archive, settings: Settings, config: Path) -> ComponentStanding | None:
    """Return what is known of a component; None where no run is complete. Draw only what is not kept."""
    newest = newest_of_versions(archive.entries)
    if not newest:
        return None
    kept = kept_of(component, archive, settings, config)
    history = kept.history(
        archive.entries, lambda: judged_history(archive.entries, archive, settings, config, component.name, kept)
    )
    ranking = kept.ranking(
        archive.entries, lambda: ranked_models(archive.entries, None, component, archive, settings, config)
    )
    records = {model_id: archive.record(runs[-1]) for model_id, runs in sorted(newest.items())}
    return ComponentStanding(newest=records, history=history, ranking=ranking, kept=kept)


def kept_of(component: Component, archive: Archive, settings: Settings, config: Path) -> KeptVerdicts:
    """Return the verdicts that are kept of a component under today's rules."""
    today = datetime.datetime.now(datetime.UTC).date()
    waivers = [(waiver, today <= waiver.expires) for waiver in load_waivers(config, settings.limits)]
    return kept_verdicts(archive, component.results_dir, settings, waivers)


def judged_history(
    entries: Sequence[RecordedRun],
    archive: Archive,
    settings: Settings,
    config: Path,
    skill: str,
    kept: KeptVerdicts,
) -> History:
    """Judge each version beside the one before; only a model's highest is also held against the anchor."""
    by_model: dict[str, list[Pair]] = {}
    for model_id, versions in sorted(runs_of_versions(entries).items()):
        newest = [runs[-1] for runs in versions.values()]
        by_model[model_id] = [
            pair_of(
                archive.record(run),
                archive.baseline_beside(run) or next_lower(archive.entries, run),
                archive,
                settings.policy,
                anchored=run is newest[-1],
            )
            for run in newest
        ]
    latest = max((pairs[-1].candidate for pairs in by_model.values()), key=lambda record: record.timestamp)
    return history_of(skill, by_model, rules_for(settings, config, latest), kept.steps)


def ranked_models(
    entries: Sequence[RecordedRun],
    version: str | None,
    component: Component,
    archive: Archive,
    settings: Settings,
    config: Path,
) -> ModelRanking:
    """Rank the models of a version, by default of the highest, each with its verdict against a lower version."""
    chosen = choose(entries, version, None)
    records = [archive.record(choice.candidate) for choice in chosen.choices]
    verdict = verdict_on(records, component, archive, settings, config)
    return ranking_of(records, component, archive, settings, config, verdict, chosen.left_out)


def compared(component: Component, archive: Archive, settings: Settings, config: Path) -> Comparisons:
    """Compare the newest versions as `compare --candidate` does, and pairs of models as `compare --models` does."""
    from skill_evaluator.verdicts.comparison import compare_records

    entries, policy = archive.entries, settings.policy

    def result(pairs: Sequence[Pair], left_out: Mapping[str, str] | None = None) -> ComparisonResult:
        rules = rules_for(settings, config, pairs[0].candidate)
        return compare_records(component.name, pairs, rules, left_out=left_out or {})

    by_model = runs_of_versions(entries)
    every = sorted({version for versions in by_model.values() for version in versions}, key=precedence, reverse=True)
    versions = {}
    for version in every[:_NEWEST]:
        chosen = choose(entries, version, None, usual=lambda run: usual_baseline(run, archive, policy))
        pairs = [
            replace(pair_of(archive.record(one.candidate), one.baseline, archive, policy), absent=one.absent)
            for one in chosen.choices
        ]
        versions[version] = result(pairs, chosen.left_out)
    beside = (models_pair(entries, names, archive) for names in combinations(sorted(by_model)[:_MOST_MODELS], 2))
    return Comparisons(versions=versions, models=[result([pair]) for pair in beside if pair is not None])
