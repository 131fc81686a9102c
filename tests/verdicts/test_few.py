"""What so many cases can show is what a comparison of them shows."""

import random

import pytest
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.planning.sizing import can_show, typical_drop

from tests.support.records import Score, a_record
from tests.support.rules import some_rules


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        (1, "1 case: nothing can turn red unless its answers are known to be independent (`profile: sampled`)"),
        (2, "2 cases: a lost field is seen, a drop of 0.05 is not; 12 would see 0.12"),
        (3, "3 cases: a lost field is seen, a drop of 0.05 is not; 12 would see 0.12"),
        (6, "6 cases: a drop of 0.19 is seen, a drop of 0.05 is not; 12 would see 0.12"),
        (20, "20 cases: a drop of 0.091 is seen, a drop of 0.05 is not; about 63 would see it"),
        (100, "100 cases: a drop of 0.039 is seen"),
    ],
)
def test_what_so_many_cases_can_show(cases: int, words: str) -> None:
    assert can_show(cases) == words


@pytest.mark.parametrize("cases", [5, 12])
def test_a_drop_that_is_said_to_be_seen_is_seen_in_four_of_five_comparisons(cases: int) -> None:
    dice = random.Random(cases)
    drop = typical_drop(cases)
    assert drop is not None
    regressed = 0
    for _ in range(200):
        before: dict[str, list[Score]] = {f"c{at}": [0.8] for at in range(cases)}
        after: dict[str, list[Score]] = {name: [0.8 - drop + dice.gauss(0, 0.15)] for name in before}
        pair = Pair(baseline=a_record(before), candidate=a_record(after), side_by_side=True)
        regressed += compare_records("s", [pair], some_rules()).verdict == "regressed"
    assert 0.7 < regressed / 200 < 0.92
