"""The verdict on runs that were just made. Their baselines are looked up in the archive of their component.

Its own module because it imports numpy only when there is a baseline: most runs of a new component have none.
"""

from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Settings
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import Archive, entry_of, next_lower
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.results import ComparisonResult
from skill_evaluator.verdicts.rules import rules_for


def verdict_on(
    records: Sequence[Record], component: Component, archive: Archive, settings: Settings, config: Path
) -> ComparisonResult | None:
    """Compare complete runs with the newest complete ones of a lower version; None where no model has such a one."""
    baselines = [(record, next_lower(archive.entries, entry_of(record))) for record in records]
    pairs = [
        Pair(baseline=archive.record(baseline), candidate=record)
        for record, baseline in baselines
        if baseline is not None
    ]
    if not pairs:
        return None
    from skill_evaluator.verdicts.comparison import compare_records

    return compare_records(component.name, pairs, rules_for(settings, config, records[0]))
