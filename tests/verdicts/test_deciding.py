"""What would decide an open measure: the promised cases or replicates do, and fewer do not."""

import math
import re
from typing import Any

import pytest
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules


def flickering(cases: int, replicates: int, drop: float = 0.0, **changed: Any) -> Record:
    """Every third answer to a case is worse by 0.2; more cases and more replicates are the same over again."""
    scores: dict[str, list[Score]] = {
        f"c{at:03d}": [0.8 - drop - 0.2 * ((at + one) % 3 == 0) for one in range(replicates)] for at in range(cases)
    }
    digests = {"prompt": f"p{drop}", "schema": "s", "settings": "m", "datasets": "d"}
    return a_record(scores, **{"run_id": f"r{drop}", "digests": digests, **changed})


def compared(cases: int, replicates: int, drop: float = 0.03, **changed: Any) -> ComparisonResult:
    pair = Pair(baseline=flickering(cases, replicates), candidate=flickering(cases, replicates, drop), **changed)
    return compare_records([pair], some_rules())


def test_named_number_of_cases_decides_and_fewer_do_not() -> None:
    (words,) = compared(6, 3, side_by_side=True).models[0].reasons
    match = re.search(r"; about (\d+) cases \(([\d.]+) × the calls\) would decide it, if the difference stays$", words)
    assert match, words
    cases, times = map(float, match.groups())
    assert times == pytest.approx(cases / 6, abs=0.1)
    assert compared(math.ceil(cases / 3) * 3, 3, side_by_side=True).verdict == "regressed"
    assert compared(math.floor(cases / 6) * 3, 3, side_by_side=True).verdict == "inconclusive"


def test_remedy_names_an_interleaved_baseline_first() -> None:
    recorded = compared(40, 6, 0.02)
    assert recorded.verdict == "inconclusive"
    assert "; the baseline interleaved (1.5 × the calls), or about" in recorded.models[0].reasons[0]
    assert compared(40, 6, 0.02, side_by_side=True).verdict == "unchanged"


def test_remedy_names_at_most_twenty_times_the_cases() -> None:
    (words, _) = compared(4, 2, 0.03).models[0].reasons
    assert words.endswith("; more than 20 times the cases would be needed, if the difference stays")


def test_number_of_cases_is_named_if_single_equal_outputs_leave_failures_unseen() -> None:
    once: dict[str, list[Score]] = {f"c{at}": [1.0] for at in range(20)}
    pair = Pair(baseline=a_record(once, run_id="old"), candidate=a_record(once, run_id="new"), side_by_side=True)
    (reason,) = compare_records([pair], some_rules()).models[0].reasons
    assert reason == (
        "field_level_f1: a drop beyond 0.05 is not ruled out, as 14% of new outputs could fail unseen; "
        "2 replicates of each case, or 59 cases, would decide it"
    )


def test_profile_is_named_if_it_would_decide() -> None:
    """Some cases fall and some rise, each by more than its outputs differ: these very cases fell."""
    moves = (-0.3, -0.3, 0.1, -0.1, 0.1, -0.2)
    before: dict[str, list[Score]] = {f"c{at}": [0.6, 0.61, 0.62, 0.61] for at in range(6)}
    after: dict[str, list[Score]] = {f"c{at}": [0.61 + move, 0.6 + move] * 2 for at, move in enumerate(moves)}
    record = a_record(before)
    assert record.settings is not None
    settings = record.settings.model_copy(update={"profile": "deterministic"})
    old, new = (a_record(scores, run_id=name, settings=settings) for scores, name in ((before, "old"), (after, "new")))
    (model,) = compare_records([Pair(baseline=old, candidate=new, side_by_side=True)], some_rules()).models
    assert model.verdict == "inconclusive"
    assert "`profile: sampled` of m in models.yaml, if each output is an independent sample, would" in (
        model.remedy or ""
    )
