"""The verdict on runs that were just made, against what is recorded: for `evaluate` and `collect`."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.components import Component
from skill_evaluator.config import Settings
from skill_evaluator.records import Record
from skill_evaluator.regression.archive import Archive
from skill_evaluator.regression.choosing import choose_baseline
from skill_evaluator.regression.policy import Rules, load_waivers
from skill_evaluator.regression.results import ComparisonResult


def verdict_on(
    records: Sequence[Record], component: Component, archive: Archive, settings: Settings, config_dir: Path
) -> ComparisonResult | None:
    """Compare complete runs with the newest complete ones of a lower version; None where no model has such a one."""
    chosen = [(record, choose_baseline(archive.of_model(record.model_id), record, None)) for record in records]
    known = [(record, before) for record, before in chosen if before is not None]
    if not known:
        return None
    from skill_evaluator.regression.comparing import Judge, Pair, compare_records

    judge = Judge(
        rules=Rules(policy=settings.policy, skill=component.name, primary_metric=component.primary_metric),
        required_coverage=settings.required_coverage,
        waivers=load_waivers(config_dir),
        today=datetime.datetime.now(datetime.UTC).date(),
    )
    pairs = [Pair(baseline=archive.record(before), candidate=record) for record, before in known]
    return compare_records(component.name, pairs, judge)
