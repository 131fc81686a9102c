"""Worse is never better: a worse answer takes no *regressed* away, no lost field, and makes nothing *improved*."""

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ModelVerdict

from tests.support.records import a_record
from tests.verdicts.rules import some_rules

RIGHT, WRONG, MISSING = 2, 1, 0
Answer = list[int] | None
"""What became of each field; None: an answer that cannot be read."""
OLD, NEW = "20260101T000000Z-000000-m", "20260102T000000Z-000001-m"
BEST_FIRST = ("improved", "unchanged", "inconclusive", "regressed", "incomparable")
FLAKINESS = (1.0, 1.0, 0.95, 0.8, 0.5)


def a_run_of(cases: list[list[Answer]], fields: int, run_id: str, **changed: object) -> Record:
    """A record whose metric is the share of fields that are right."""
    scores = {
        f"c{at}": ["unparseable" if answer is None else answer.count(RIGHT) / fields for answer in answers]
        for at, answers in enumerate(cases)
    }
    read = {f"c{at}": [answer for answer in answers if answer is not None] for at, answers in enumerate(cases)}
    counts = {
        f"f{at}": {
            case: (sum(one[at] == RIGHT for one in answers), len(answers)) for case, answers in read.items() if answers
        }
        for at in range(fields)
    }
    record = a_record(scores, fields=counts, run_id=run_id, skill_version=run_id[7:8] + ".0.0", **changed)
    assert record.settings is not None
    return record.model_copy(update={"settings": record.settings.model_copy(update={"profile": "deterministic"})})


def drawn(rng: random.Random, rates: list[list[float]], replicates: int) -> list[list[Answer]]:
    """Answers of which some repeat what is common to their case."""
    alike = rng.choice((0.0, 0.6, 0.9))

    def one(rate: float) -> int:
        return RIGHT if rng.random() < rate else rng.choice((WRONG, MISSING))

    cases: list[list[Answer]] = []
    for case in rates:
        common = [one(rate) for rate in case]
        cases.append(
            [
                [same if rng.random() < alike else one(rate) for same, rate in zip(common, case, strict=True)]
                for _ in range(replicates)
            ]
        )
    return cases


def worse(rng: random.Random, cases: list[list[Answer]]) -> list[list[Answer]]:
    """The same with one answer that is worse: in a field, in all, or not to be read."""
    changed = [list(answers) for answers in cases]
    answers = rng.choice([answers for answers in changed if any(answers)] or [changed[0]])
    place = rng.choice([at for at, answer in enumerate(answers) if answer] or [0])
    answer, how = answers[place], rng.random()
    wanting = [at for at, outcome in enumerate(answer or ()) if outcome > MISSING]
    if answer is None or not wanting or how < 0.4:
        answers[place] = None
    else:
        picked = wanting if how < 0.6 else [rng.choice(wanting)]
        answers[place] = [outcome - (at in picked) for at, outcome in enumerate(answer)]
    return changed


def chains(seed: int, judge: Callable[[Record, Record], ModelVerdict], *, beside: bool) -> list[list[ModelVerdict]]:
    """Verdicts on candidates, each with one worse answer more than the one before."""
    rng, found = random.Random(seed), []
    for _ in range(40):
        cases, replicates, fields = rng.randint(1, 12), rng.choice((1, 2, 3, 5)), rng.randint(3, 5)
        rates = [[rng.choice(FLAKINESS) for _ in range(fields)] for _ in range(cases)]
        fall, share = rng.choice((0.0, 0.3, 0.6)), rng.random()
        lower = [[max(0.0, rate - fall * (rng.random() < share)) for rate in case] for case in rates]
        baseline = a_run_of(drawn(rng, rates, replicates), fields, OLD)
        candidate, chain = drawn(rng, lower, replicates), []
        for _ in range(4):
            changed = {"beside": OLD} if beside else {"timestamp": "2026-01-02T00:00:00Z"}
            chain.append(judge(baseline, a_run_of(candidate, fields, NEW, **changed)))
            candidate = worse(rng, candidate)
        found.append(chain)
    return found


@pytest.mark.parametrize("beside", [True, False], ids=["beside", "recorded"])
def test_worse_outputs_never_make_a_verdict_better(*, beside: bool) -> None:
    rules = some_rules()

    def judge(baseline: Record, candidate: Record) -> ModelVerdict:
        return compare_records([Pair(baseline=baseline, candidate=candidate)], rules).models[0]

    steps = [pair for chain in chains(3, judge, beside=beside) for pair in pairwise(chain)]
    taken = [
        (before.reasons, after.reasons)
        for before, after in steps
        if (before.verdict == "regressed" and after.verdict != "regressed")
        or set(before.lost_fields) - set(after.lost_fields)
        or BEST_FIRST.index(after.verdict) < BEST_FIRST.index(before.verdict)
    ]
    assert any(before.verdict == "regressed" for before, _ in steps)
    assert any(before.verdict != "regressed" for before, _ in steps)
    assert not taken


GOOD: Answer = [RIGHT] * 3
BAD: Answer = [WRONG] * 3


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([None] * 5, [None] * 5, "inconclusive"),
        ([BAD] * 5, [BAD] * 5, "inconclusive"),
        ([GOOD] * 5, [None] * 5, "regressed"),
        ([None] * 5, [GOOD] * 5, "improved"),
        ([BAD] * 5, [GOOD] * 5, "improved"),
        ([GOOD, GOOD, None, None, None], [GOOD, GOOD, None, None, None], "inconclusive"),
        ([GOOD, GOOD, GOOD, None, None], [GOOD, GOOD, GOOD, None, None], "unchanged"),
        ([None] * 5, [GOOD, GOOD, None, None, None], "inconclusive"),
        ([GOOD] * 5, [GOOD] * 5, "unchanged"),
    ],
)
def test_verdict_needs_usable_outputs_and_room_to_fall(before: list[Answer], after: list[Answer], verdict: str) -> None:
    pair = Pair(baseline=a_run_of([before] * 12, 3, OLD), candidate=a_run_of([after] * 12, 3, NEW, beside=OLD))
    model = compare_records([pair], some_rules()).models[0]
    assert model.verdict == verdict
    for name, outputs in (("baseline", before), ("candidate", after)):
        read = 12 * (5 - outputs.count(None))
        named = f"{read} of 60 outputs of the {name} could be read, fewer than half" in model.reasons
        assert named is (read < 30)
    no_room = "field_level_f1 was 0.000 and cannot fall by more than the tolerated 0.05, so it is never unchanged"
    assert (no_room in model.reasons) is (verdict == "inconclusive" and GOOD not in before + after)
