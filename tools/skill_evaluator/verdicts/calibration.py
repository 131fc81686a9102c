"""A record's own replicates, dealt at random into two halves, through the gate: how often does it cry wolf, or sleep?

A record and what verdicts are drawn by come in, measured rates beside the nominal ones come out. Pure and seeded.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist, median

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import CaseRecord, FieldCount, Record
from skill_evaluator.records.strict_score import ANSWERED, SCORED
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.results import MeasureResult
from skill_evaluator.verdicts.rules import VerdictRules

LEAST_REPLICATES = 4
_FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # planted drops, as multiples of the tolerated one
_SHARE = 5  # a planted drop is tried a fifth as often as no drop
_NORMAL = NormalDist()
Told = Callable[[int, int], None]


class Planted(FrozenModel):
    """What the gate said when every score of one half was lowered by so much: shares of the times it was tried.

    `fell`: how far the primary metric fell on average (a score cannot fall below 0). `nominal`: the share of regressed
    that theory expects of a drop in the primary metric alone; for no drop, the false alarms that are accepted.
    """

    drop: float
    fell: float
    times: int
    regressed: float
    improved: float
    unchanged: float
    inconclusive: float
    nominal: float | None


class Calibration(FrozenModel):
    """The gate at the size of one run's halves. `planted` begins with no drop: there, any change said is false."""

    skill: str
    run_id: str
    model_id: str
    metric: str
    gate: str
    alpha: float
    tolerance: float
    n_cases: int
    left_out: int
    replicates: int
    family: int
    detectable_drop: float | None
    false_alarms: float
    planted: list[Planted]


def calibrate(record: Record, rules: VerdictRules, times: int, seed: int, told: Told | None = None) -> Calibration:
    """Deal a record's replicates into halves many times and judge them; raises LeaderboardError if they are too few."""
    cases = [case for case in record.per_case if len(_answered(case)) >= LEAST_REPLICATES]
    if not cases:
        raise LeaderboardError(
            f"run '{record.run_id}' has {record.replicates} replicates a case; calibration deals those that were "
            f"answered into two halves and needs at least {LEAST_REPLICATES}"
        )
    rules = replace(rules, waivers=[])
    dealer = _Dealer(record.model_copy(update={"per_case": cases}), random.Random(seed))  # noqa: S311
    trials = _Trials(dealer=dealer, rules=rules, told=told, of=times + len(_FACTORS) * max(1, times // _SHARE))
    none = trials.run(0.0, times)
    detectable = [one.detectable_drop for one in trials.primary if one.detectable_drop is not None]
    at_null, family = median(detectable) if detectable else None, trials.family
    tolerance = trials.primary[0].tolerance if trials.primary else rules.policy.tolerance
    alpha = rules.alpha
    rows = [none.model_copy(update={"nominal": alpha})]
    for factor in _FACTORS:
        row = trials.run(factor * (tolerance or rules.policy.tolerance or 0.05), max(1, times // _SHARE))
        nominal = None if at_null is None else _nominal(row.fell, at_null, tolerance, alpha, family)
        rows.append(row.model_copy(update={"nominal": nominal}))
    return Calibration(
        skill=record.skill,
        run_id=record.run_id,
        model_id=record.model_id,
        metric=rules.primary_metric,
        gate=rules.policy.gate,
        alpha=alpha,
        tolerance=tolerance,
        n_cases=len(cases),
        left_out=len(record.per_case) - len(cases),
        replicates=min(len(_answered(case)) // 2 for case in cases),
        family=family,
        detectable_drop=None if at_null is None else round(at_null, 6),
        false_alarms=round(none.regressed + none.improved, 6),
        planted=rows,
    )


class _Trials:
    """Runs of the gate, counted; remembers the primary metric's results and the size of the family."""

    def __init__(self, *, dealer: "_Dealer", rules: VerdictRules, told: Told | None, of: int) -> None:
        self._dealer, self._rules, self._told, self._of = dealer, rules, told, of
        self._done = 0
        self.primary: list[MeasureResult] = []
        self.family = 1

    def run(self, drop: float, times: int) -> Planted:
        said: Counter[str] = Counter()
        falls = []
        for _ in range(times):
            pair = self._dealer.deal(drop)
            (model,) = compare_records(self._rules.skill, [pair], self._rules).models
            said[model.verdict] += 1
            primary = [one for one in model.metrics if one.metric == self._rules.primary_metric]
            self.primary += primary
            falls += [-one.difference for one in primary if one.difference is not None]
            self.family = len(model.metrics) + len(model.fields)
            self._done += 1
            if self._told is not None:
                self._told(self._done, self._of)
        return Planted(
            drop=round(drop, 6),
            fell=round(sum(falls) / len(falls), 6) if falls else 0.0,
            times=times,
            regressed=said["regressed"] / times,
            improved=said["improved"] / times,
            unchanged=said["unchanged"] / times,
            inconclusive=(said["inconclusive"] + said["incomparable"]) / times,
            nominal=None,
        )


class _Dealer:
    """Deals the answered replicates of every case into two equal halves, and lowers the scores of the second."""

    def __init__(self, record: Record, dice: random.Random) -> None:
        self._record, self._dice = record, dice
        known: dict[str, list[float]] = {}
        for case in record.per_case:
            for name, scores in case.replicates.items():
                known.setdefault(name, []).extend(score for score in scores if score is not None)
        self._means = {name: sum(scores) / len(scores) for name, scores in known.items() if scores}
        self._rates = {name for name, scores in known.items() if set(scores) <= {0.0, 1.0}}

    def deal(self, drop: float) -> Pair:
        """Two records of half as many replicates. Agreement is not among their figures: it is of pairs of answers."""
        halves = [self._halves(case, drop) for case in self._record.per_case]
        before, after = ([half[side] for half in halves] for side in (0, 1))
        return Pair(baseline=self._with(before), candidate=self._with(after))

    def _with(self, cases: Sequence[CaseRecord]) -> Record:
        return self._record.model_copy(
            update={"per_case": list(cases), "coverage": 1.0, "replicates": max(len(case.outcomes) for case in cases)}
        )

    def _halves(self, case: CaseRecord, drop: float) -> tuple[CaseRecord, CaseRecord]:
        places = _answered(case)
        self._dice.shuffle(places)
        half = len(places) // 2
        first, second = places[:half], places[half : 2 * half]
        fields = {path: self._dealt_field(case, count, (first, second)) for path, count in case.fields.items()}
        return (
            self._half(case, first, {path: pair[0] for path, pair in fields.items()}, 0.0),
            self._half(case, second, {path: pair[1] for path, pair in fields.items()}, drop),
        )

    def _half(self, case: CaseRecord, places: list[int], fields: dict[str, FieldCount], drop: float) -> CaseRecord:
        scores = {
            name: [self._lowered(name, values[at], drop) for at in places]
            for name, values in case.replicates.items()
            if values
        }
        lower = {path: self._lowered_field(count, drop) for path, count in fields.items()}
        outcomes = [case.outcomes[at] for at in places]
        return case.model_copy(
            update={"outcomes": outcomes, "replicates": scores, "fields": lower, "reproducibility": {}}
        )

    def _lowered(self, name: str, score: float | None, drop: float) -> float | None:
        """A score less the drop, at least 0; of a rate, now and then a success turned into a failure."""
        if score is None or not drop:
            return score
        if name not in self._rates:
            return max(0.0, score - drop)
        return 0.0 if self._dice.random() * self._means[name] < drop else score

    def _dealt_field(
        self, case: CaseRecord, count: FieldCount, places: tuple[list[int], list[int]]
    ) -> tuple[FieldCount, FieldCount]:
        """Right of n of either half: which answers were right is not on record, so any of the scored ones may be."""
        scored = case.outcomes.count(SCORED)
        answers = max(1, min(count.n, scored))
        size = count.n / answers  # of an array, so many items an answer
        marks = [at < round(count.right / size) for at in range(answers)] if size else []
        self._dice.shuffle(marks)
        found = []
        for side in places:
            here = min(sum(case.outcomes[at] == SCORED for at in side), len(marks))
            mine, marks = marks[:here], marks[here:]
            found.append(FieldCount(right=round(sum(mine) * size), n=round(len(mine) * size)))
        return found[0], found[1]

    def _lowered_field(self, count: FieldCount, drop: float) -> FieldCount:
        if not drop or not count.right:
            return count
        chance = drop * count.n / count.right
        right = sum(self._dice.random() >= chance for _ in range(count.right))
        return FieldCount(right=right, n=count.n)


def _answered(case: CaseRecord) -> list[int]:
    """The places of the replicates that brought an answer."""
    return [at for at, outcome in enumerate(case.outcomes) if outcome in ANSWERED]


def _nominal(drop: float, detectable: float, tolerance: float, alpha: float, family: int) -> float:
    """How often a normal difference of this drop is beyond chance in the family, and a tolerable one not excluded."""
    strict = _NORMAL.inv_cdf(1 - alpha / family / 2)
    error = detectable / (strict + _NORMAL.inv_cdf(0.8))
    usual = _NORMAL.inv_cdf(0.975)
    return round(_NORMAL.cdf(drop / error + min(-strict, usual - tolerance / error)), 6)
