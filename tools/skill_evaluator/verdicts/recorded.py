"""The verdict on runs that were just made, against what is recorded; and what every verdict is drawn by."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Settings
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import entry_of, next_lower
from skill_evaluator.verdicts.results import ComparisonResult
from skill_evaluator.verdicts.rules import TierRules, VerdictRules, load_waivers


def rules_for(settings: Settings, config: Path, candidate: Record) -> VerdictRules:
    """What a candidate is judged by: policy, coverage and the waivers of the configuration. Raises ConfigError."""
    own = settings.policy.components.get(candidate.skill)
    required = own.required_coverage if own and own.required_coverage is not None else settings.required_coverage
    return VerdictRules(
        rules=TierRules(policy=settings.policy, skill=candidate.skill, primary_metric=candidate.primary_metric),
        required_coverage=required,
        waivers=load_waivers(config),
        today=datetime.datetime.now(datetime.UTC).date(),
    )


def verdict_on(
    records: Sequence[Record], component: Component, archive: Archive, settings: Settings, config: Path
) -> ComparisonResult | None:
    """Compare complete runs with the newest complete ones of a lower version; None where no model has such a one."""
    chosen = [(record, next_lower(archive.entries, entry_of(record))) for record in records]
    known = [(record, before) for record, before in chosen if before is not None]
    if not known:
        return None
    from skill_evaluator.verdicts.comparison import Pair, compare_records

    pairs = [Pair(baseline=archive.record(before), candidate=record) for record, before in known]
    return compare_records(component.name, pairs, rules_for(settings, config, records[0]))
