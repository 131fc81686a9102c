"""The verdict on runs that were just made. Their baselines ran beside them, or are in the archive of their component.

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
    """Compare complete runs with the newest complete ones of a lower version; None where no model has such a one.

    Of two runs whose calls alternated, the lower version is the baseline and is not judged itself.
    """
    made = {record.run_id: record for record in records}
    entries = [*map(entry_of, records), *(entry for entry in archive.entries if entry.run_id not in made)]
    chosen = [(record, next_lower(entries, entry_of(record))) for record in records]
    besides = {lower.run_id for record, lower in chosen if lower is not None and lower.run_id == record.beside}
    pairs = [
        Pair(baseline=made.get(lower.run_id) or archive.record(lower), candidate=record)
        for record, lower in chosen
        if lower is not None and record.run_id not in besides
    ]
    if not pairs:
        return None
    from skill_evaluator.verdicts.comparison import compare_records

    return compare_records(component.name, pairs, rules_for(settings, config, records[0]))
