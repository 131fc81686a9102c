"""What would decide an open measure: the promised cases or replicates do, and fewer do not."""

import re
from typing import Any

import pytest
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult

from tests.support.records import Score, a_record
from tests.support.rules import some_rules


def flickering(cases: int, replicates: int, drop: float = 0.0, **changed: Any) -> Record:
    """Every third answer to a case is worse by 0.2; more cases and more replicates are the same over again."""
    scores: dict[str, list[Score]] = {
        f"c{at:03d}": [0.8 - drop - 0.2 * ((at + one) % 3 == 0) for one in range(replicates)] for at in range(cases)
    }
    digests = {"prompt": f"p{drop}", "schema": "s", "settings": "m", "datasets": "d"}
    return a_record(scores, **{"run_id": f"r{drop}", "digests": digests, **changed})


def compared(cases: int, replicates: int, drop: float = 0.03, **changed: Any) -> ComparisonResult:
    pair = Pair(baseline=flickering(cases, replicates), candidate=flickering(cases, replicates, drop), **changed)
    return compare_records("s", [pair], some_rules())


def test_the_cases_or_the_replicates_that_are_named_decide_and_fewer_do_not() -> None:
    (words,) = compared(6, 3, side_by_side=True).models[0].reasons
    match = re.fullmatch(
        r"field_level_f1: a drop beyond 0.05 is not ruled out \(interval -0\.\d+ to \+0\.\d+\); about (\d+) cases "
        r"\(([\d.]+) × the calls\), or (\d+) replicates of these \(([\d.]+) ×\), would decide it, .*",
        words,
    )
    assert match, words
    cases, times, replicates, times_replicates = map(float, match.groups())
    assert (times, times_replicates) == (pytest.approx(cases / 6, abs=0.1), pytest.approx(replicates / 3, abs=0.1))
    for size, verdict in (
        ((int(cases) // 3 * 3 + 3, 3), "regressed"),
        ((int(cases) // 3 * 3 - 3, 3), "inconclusive"),
        ((6, int(replicates) // 3 * 3 + 3), "regressed"),
        ((6, int(replicates) // 2 // 3 * 3), "inconclusive"),
    ):
        assert compared(*size, side_by_side=True).verdict == verdict, size


def test_where_a_day_is_in_the_way_both_versions_side_by_side_are_named_first() -> None:
    recorded = compared(40, 6, 0.02)
    assert recorded.verdict == "inconclusive"
    assert "; both versions asked side by side (1.5 × the calls)" in recorded.models[0].reasons[0]
    assert compared(40, 6, 0.02, side_by_side=True).verdict == "unchanged"


def test_what_nothing_in_reach_decides_is_said_to_be_out_of_reach() -> None:
    (words, _) = compared(4, 2, 0.03).models[0].reasons
    assert words.endswith("; more than 20 times the cases or replicates would be needed, if the difference stays")
