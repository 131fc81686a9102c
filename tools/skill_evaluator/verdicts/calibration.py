"""A record's own replicates, dealt at random into two halves and compared: how often is the verdict right?

A record and the rules come in, the measured rates come out beside the nominal ones. Pure and seeded.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist, median

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import ANSWERED, SCORED, CaseRecord, FieldCount, Record
from skill_evaluator.stats import rounded
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.results import MeasureResult
from skill_evaluator.verdicts.rules import VerdictRules

LEAST_REPLICATES = 4
_FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # planted drops, as multiples of the tolerated one
_SHARE = 5  # a planted drop is tried a fifth as often as no drop
_DROP_WITHOUT_TOLERANCE = 0.05
_NORMAL = NormalDist()
Progress = Callable[[int, int], None]
"""Called with the comparisons done, and with how many there will be."""


class Planted(FrozenModel):
    """The verdicts when every score of one half was lowered by `drop`, as shares of the times this was tried.

    `fell` is how far the primary metric fell on average (a score cannot fall below 0). `nominal` is the share of
    regressed that theory expects of a drop in the primary metric alone; for no drop, the accepted false alarms.
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
    """The gate at the size of one run's halves. `planted` begins with no drop, where any change is a false alarm."""

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


def calibrate(
    record: Record, rules: VerdictRules, times: int, seed: int, progress: Progress | None = None
) -> Calibration:
    """Deal a record's replicates into halves many times and compare them; raises LeaderboardError if too few."""
    cases = [case for case in record.per_case if len(_answered(case)) >= LEAST_REPLICATES]
    if not cases:
        raise LeaderboardError(
            f"run '{record.run_id}' has {record.replicates} replicates a case; calibration deals those that were "
            f"answered into two halves and needs at least {LEAST_REPLICATES}"
        )
    rules = replace(rules, waivers=[])
    dealer = _Dealer(record.model_copy(update={"per_case": cases}), random.Random(seed))  # noqa: S311
    fewer = max(1, times // _SHARE)
    trials = _Trials(dealer=dealer, rules=rules, progress=progress, planned=times + len(_FACTORS) * fewer)
    no_drop = trials.run(0.0, times)
    drops = [primary.detectable_drop for primary in trials.primary if primary.detectable_drop is not None]
    detectable, family = median(drops) if drops else None, trials.family
    tolerance = trials.primary[0].tolerance if trials.primary else rules.policy.tolerance
    unit = tolerance or rules.policy.tolerance or _DROP_WITHOUT_TOLERANCE
    rows = [no_drop.model_copy(update={"nominal": rules.alpha})]
    for factor in _FACTORS:
        row = trials.run(factor * unit, fewer)
        nominal = None if detectable is None else _nominal_rate(row.fell, detectable, tolerance, rules.alpha, family)
        rows.append(row.model_copy(update={"nominal": nominal}))
    return Calibration(
        skill=record.skill,
        run_id=record.run_id,
        model_id=record.model_id,
        metric=rules.primary_metric,
        gate=rules.policy.gate,
        alpha=rules.alpha,
        tolerance=tolerance,
        n_cases=len(cases),
        left_out=len(record.per_case) - len(cases),
        replicates=min(len(_answered(case)) // 2 for case in cases),
        family=family,
        detectable_drop=rounded(detectable),
        false_alarms=round(no_drop.regressed + no_drop.improved, 6),
        planted=rows,
    )


class _Trials:
    """Runs of the gate, counted. They leave the primary metric's results and the size of the family."""

    def __init__(self, *, dealer: "_Dealer", rules: VerdictRules, progress: Progress | None, planned: int) -> None:
        self._dealer, self._rules, self._progress = dealer, rules, progress
        self._done, self._planned = 0, planned
        self.primary: list[MeasureResult] = []
        self.family = 1

    def run(self, drop: float, times: int) -> Planted:
        """Deal, lower one half by the drop and compare, so many times; return the shares of the verdicts."""
        verdicts: Counter[str] = Counter()
        falls = []
        for _ in range(times):
            pair = self._dealer.deal(drop)
            (model,) = compare_records(self._rules.skill, [pair], self._rules).models
            verdicts[model.verdict] += 1
            primary = [result for result in model.metrics if result.metric == self._rules.primary_metric]
            self.primary += primary
            falls += [-result.difference for result in primary if result.difference is not None]
            self.family = len(model.metrics) + len(model.fields)
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, self._planned)
        return Planted(
            drop=round(drop, 6),
            fell=round(sum(falls) / len(falls), 6) if falls else 0.0,
            times=times,
            regressed=verdicts["regressed"] / times,
            improved=verdicts["improved"] / times,
            unchanged=verdicts["unchanged"] / times,
            inconclusive=(verdicts["inconclusive"] + verdicts["incomparable"]) / times,
            nominal=None,
        )


class _Dealer:
    """Deals the answered replicates of every case into two equal halves, and lowers the scores of the second."""

    def __init__(self, record: Record, dice: random.Random) -> None:
        self._record, self._dice = record, dice
        measured: dict[str, list[float]] = {}
        for case in record.per_case:
            for name, scores in case.replicates.items():
                measured.setdefault(name, []).extend(score for score in scores if score is not None)
        self._means = {name: sum(scores) / len(scores) for name, scores in measured.items() if scores}
        self._rates = {name for name, scores in measured.items() if set(scores) <= {0.0, 1.0}}

    def deal(self, drop: float) -> Pair:
        """Return two records of half as many replicates, without agreement, which is a figure of pairs of answers."""
        before, after = [], []
        for case in self._record.per_case:
            places = _answered(case)
            self._dice.shuffle(places)
            half = len(places) // 2
            first, second = places[:half], places[half : 2 * half]
            fields = {path: self._deal_field(case, count, (first, second)) for path, count in case.fields.items()}
            before.append(self._half(case, first, {path: pair[0] for path, pair in fields.items()}, 0.0))
            after.append(self._half(case, second, {path: pair[1] for path, pair in fields.items()}, drop))
        return Pair(baseline=self._record_of(before), candidate=self._record_of(after))

    def _record_of(self, cases: Sequence[CaseRecord]) -> Record:
        return self._record.model_copy(
            update={"per_case": list(cases), "coverage": 1.0, "replicates": max(len(case.outcomes) for case in cases)}
        )

    def _half(self, case: CaseRecord, places: list[int], fields: dict[str, FieldCount], drop: float) -> CaseRecord:
        scores = {
            name: [self._lower(name, values[at], drop) for at in places]
            for name, values in case.replicates.items()
            if values
        }
        lower = dict(fields)
        for path, count in fields.items():
            if drop and count.right:
                chance = drop * count.n / count.right
                right = sum(self._dice.random() >= chance for _ in range(count.right))
                lower[path] = FieldCount(right=right, n=count.n)
        outcomes = [case.outcomes[at] for at in places]
        return case.model_copy(
            update={"outcomes": outcomes, "replicates": scores, "fields": lower, "reproducibility": {}}
        )

    def _lower(self, name: str, score: float | None, drop: float) -> float | None:
        """Return a score less the drop, at least 0. In a rate, some successes turn into failures instead."""
        if score is None or not drop:
            return score
        if name not in self._rates:
            return max(0.0, score - drop)
        return 0.0 if self._dice.random() * self._means[name] < drop else score

    def _deal_field(
        self, case: CaseRecord, count: FieldCount, places: tuple[list[int], list[int]]
    ) -> tuple[FieldCount, FieldCount]:
        """Return right of n of either half. A record does not say which answers were right, so they are drawn."""
        scored = case.outcomes.count(SCORED)
        answers = max(1, min(count.n, scored))
        size = count.n / answers  # an array has several items in an answer
        marks = [at < round(count.right / size) for at in range(answers)] if size else []
        self._dice.shuffle(marks)
        counts = []
        for half in places:
            scored_here = min(sum(case.outcomes[at] == SCORED for at in half), len(marks))
            dealt, marks = marks[:scored_here], marks[scored_here:]
            counts.append(FieldCount(right=round(sum(dealt) * size), n=round(len(dealt) * size)))
        return counts[0], counts[1]


def _answered(case: CaseRecord) -> list[int]:
    """Return the places of the replicates that brought an answer."""
    return [at for at, outcome in enumerate(case.outcomes) if outcome in ANSWERED]


def _nominal_rate(drop: float, detectable: float, tolerance: float, alpha: float, family: int) -> float:
    """Return how often a normally distributed difference with this drop is a regression.

    It must be beyond chance in the family, z₁ = z(1 − α ÷ 2 family), and its 95 % interval must reach beyond the
    tolerance. The standard error is that at which `detectable` has 80 % power.
    """
    strict = _NORMAL.inv_cdf(1 - alpha / family / 2)
    error = detectable / (strict + _NORMAL.inv_cdf(0.8))
    usual = _NORMAL.inv_cdf(0.975)
    return round(_NORMAL.cdf(drop / error + min(-strict, usual - tolerance / error)), 6)
