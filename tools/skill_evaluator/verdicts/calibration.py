"""A version's own answers, dealt at random to a baseline and a candidate and compared: how often is the verdict right?

Records and the rules come in, the measured rates come out beside the nominal ones. Pure and seeded.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist, median

from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import Record
from skill_evaluator.stats import rounded
from skill_evaluator.verdicts.comparison import compare_records
from skill_evaluator.verdicts.dealing import Dealer, HalvesDealer, RunsDealer
from skill_evaluator.verdicts.noise import samples
from skill_evaluator.verdicts.results import MeasureResult
from skill_evaluator.verdicts.rules import VerdictRules

_FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # planted drops, as multiples of the tolerated one
_SHARE = 5  # a planted drop is tried a fifth as often as no drop
_DROP_WITHOUT_TOLERANCE = 0.05
_NORMAL = NormalDist()
Progress = Callable[[int, int], None]
"""Called with the comparisons done, and with how many there will be."""


class Planted(FrozenModel):
    """The verdicts when every score of the candidate was lowered by `drop`, as shares of the times this was tried.

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


class DealtRuns(FrozenModel):
    """What A/A runs told: how many there are beside the run, and the standard deviation of a whole run (`day`).

    `day` is that of the primary metric. By it every dealt run was moved.
    """

    aa_runs: int
    day: float


class Calibration(FrozenModel):
    """The gate at the size of what was dealt. `planted` begins with no drop, where any change is a false alarm.

    `runs` is None where halves of one run were dealt. `one_draw` is the first row if a case's answers were one draw;
    None where A/A runs tell, and where the provider samples each answer.
    """

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
    runs: DealtRuns | None
    sampled: bool
    one_draw: Planted | None
    planted: list[Planted]


def calibrate(
    record: Record,
    rules: VerdictRules,
    times: int,
    seed: int,
    progress: Progress | None = None,
    again: Sequence[Record] = (),
) -> Calibration:
    """Deal a version's answers to two sides many times and compare them; raise LeaderboardError if they are too few.

    With A/A runs (`again`) whole runs are dealt, else the replicates of the one run, in halves.
    """
    rules = replace(rules, waivers=[])
    dice = random.Random(seed)  # noqa: S311
    dealer = RunsDealer((record, *again), rules.primary_metric, dice) if again else HalvesDealer(record, dice)
    fewer = max(1, times // _SHARE)
    copies = not again and not samples(record)
    trials = _Trials(rules=rules, progress=progress, planned=times + (len(_FACTORS) + copies) * fewer)
    no_drop = trials.run(dealer, 0.0, times)
    drops = [primary.detectable_drop for primary in trials.primary if primary.detectable_drop is not None]
    detectable, family = median(drops) if drops else None, trials.family
    tolerance = trials.primary[0].tolerance if trials.primary else rules.policy.tolerance
    unit = tolerance or rules.policy.tolerance or _DROP_WITHOUT_TOLERANCE
    rows = [no_drop.model_copy(update={"nominal": rules.alpha})]
    for factor in _FACTORS:
        row = trials.run(dealer, factor * unit, fewer)
        nominal = None
        if detectable is not None:
            nominal = _nominal_rate(row.fell, detectable, tolerance, rules.alpha, trials.primary_family)
        rows.append(row.model_copy(update={"nominal": nominal}))
    one_draw = trials.run(HalvesDealer(record, dice, copies=True), 0.0, fewer) if copies else None
    return Calibration(
        skill=record.skill,
        run_id=record.run_id,
        model_id=record.model_id,
        metric=rules.primary_metric,
        gate=rules.policy.gate,
        alpha=rules.alpha,
        tolerance=tolerance,
        n_cases=len(dealer.cases),
        left_out=len(record.per_case) - len(dealer.cases),
        replicates=dealer.replicates,
        family=family,
        detectable_drop=rounded(detectable),
        false_alarms=round(no_drop.regressed + no_drop.improved, 6),
        runs=DealtRuns(aa_runs=len(again), day=round(dealer.day, 6)) if isinstance(dealer, RunsDealer) else None,
        sampled=samples(record),
        one_draw=one_draw,
        planted=rows,
    )


@dataclass(slots=True, kw_only=True)
class _Trials:
    """Runs of the gate, counted. They leave the primary metric's results and the sizes of families.

    `family` is the number of all measures, and `primary_family` that of those of the primary metric's weight.
    """

    rules: VerdictRules
    progress: Progress | None
    planned: int
    done: int = 0
    primary: list[MeasureResult] = field(default_factory=list)
    family: int = 1
    primary_family: int = 1

    def run(self, dealer: Dealer, drop: float, times: int) -> Planted:
        """Deal, lower the candidate by the drop and compare, so many times; return the shares of the verdicts."""
        verdicts: Counter[str] = Counter()
        falls = []
        for _ in range(times):
            (model,) = compare_records(self.rules.skill, [dealer.deal(drop)], self.rules).models
            verdicts[model.verdict] += 1
            primary = [result for result in model.metrics if result.metric == self.rules.primary_metric]
            self.primary += primary
            falls += [-result.difference for result in primary if result.difference is not None]
            measured = [*model.metrics, *model.fields]
            self.family = len(measured)
            self.primary_family = sum(one.tier == primary[0].tier for one in measured) if primary else 1
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self.planned)
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


def _nominal_rate(drop: float, detectable: float, tolerance: float, alpha: float, family: int) -> float:
    """Return how often a normally distributed difference with this drop is a regression.

    It must be beyond chance in the family, z₁ = z(1 − α ÷ 2 family), and its 95 % interval must reach beyond the
    tolerance. The standard error is that at which `detectable` has 80 % power.
    """
    strict = _NORMAL.inv_cdf(1 - alpha / family / 2)
    error = detectable / (strict + _NORMAL.inv_cdf(0.8))
    usual = _NORMAL.inv_cdf(0.975)
    return round(_NORMAL.cdf(drop / error + min(-strict, usual - tolerance / error)), 6)
