"""The rules that turn a measured effect into a verdict, and a verdict into an exit code."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED
from skill_evaluator.identifiers import Tier
from skill_evaluator.library.config import ComponentPolicy, MetricPolicy, Policy, Settings, VerdictName
from skill_evaluator.records.record import MIN_USABLE, Record
from skill_evaluator.records.summaries import MIN_LABELS
from skill_evaluator.stats import ROUNDING, rounded
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.measuring import FREE, Compared, Effect, Measure
from skill_evaluator.verdicts.decide.results import AmountResult, AmountTest, ComparisonResult, Missing, crosses

MOSTLY = 0.9  # share of outputs that must be right before, and wrong after, for a lost measure
_MAX_LEFT = 0.5  # share of a lost measure's outputs that may still be right, if cases and replicates suffice
_MIN_LOST_CASES, _MIN_LOST_REPLICATES = 3, 5
CRITICAL_SHARE = 0.7  # share of alpha: critical measures against the baseline
ACCEPTED_SHARE = 0.2  # share of alpha: critical measures against the accepted version
AMOUNT_TOLERANCE = 0.2  # relative increase of output tokens, cost or latency per output
OTHER_SHARE = 0.15  # share of alpha: supporting measures, and again fields
_NO_POLICY = ComponentPolicy()
WORST_FIRST: tuple[VerdictName, ...] = ("regressed", "inconclusive", "incomparable", "improved", "unchanged")


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRules:
    """The rules for verdicts on one component (`skill`): the policy, the primary metric and the required coverage."""

    policy: Policy
    skill: str
    primary_metric: str
    required_coverage: float

    @property
    def alpha(self) -> float:
        """The accepted rate of false alarms, set for the component or else for all components."""
        return self.policy.alpha if self._component.alpha is None else self._component.alpha

    def tier(self, measure: Measure) -> Tier:
        """Return the tier of a measure. The policy sets it, or else the measure's check.

        By default the primary metric is critical, other metrics are supporting, and all other measures are advisory.
        """
        declared = next((policy.tier for policy in self._declared(measure) if policy.tier is not None), None)
        if measure.kind != "accuracy":
            return declared or measure.tier or "advisory"
        return declared or ("critical" if measure.name == self.primary_metric else "supporting")

    def is_critical(self, measure: Measure) -> bool:
        """Return whether the tier of a measure is critical."""
        return self.tier(measure) == "critical"

    def uncalibrated_judge(self, candidate: Record) -> str | None:
        """Return the id of the model that judged the checks. Return None if it is calibrated, trusted or absent."""
        judged = candidate.judged
        if judged is None or judged.labels >= MIN_LABELS or judged.model_id in self.policy.judge.trusted:
            return None
        return judged.model_id

    def tolerance(self, measure: Measure) -> float:
        """Return the tolerated drop of a measure, or the tolerated relative increase of an amount."""
        policies: list[MetricPolicy | ComponentPolicy | Policy] = [*self._declared(measure)]
        policies += [] if measure.kind == "amount" else [self._component, self.policy]
        return next((policy.tolerance for policy in policies if policy.tolerance is not None), AMOUNT_TOLERANCE)

    @property
    def primary_tolerance(self) -> float:
        """The tolerated drop of the primary metric."""
        return self.tolerance(Measure(name=self.primary_metric, kind="accuracy"))

    def level(self, measure: Measure) -> float:
        """Return the largest adjusted one-sided p-value (q) at which a drop of a measure is significant."""
        return self.alpha * (CRITICAL_SHARE if self.is_critical(measure) else OTHER_SHARE)

    def has_room(self, metric: str, tolerance: float, before: float | None) -> bool:
        """Return whether the primary metric can fall from `before` by more than `tolerance`. True for other metrics."""
        return metric != self.primary_metric or before is None or before > tolerance + ROUNDING

    @property
    def critical_cases(self) -> tuple[str, ...]:
        """The ids of the cases whose loss alone is a regression."""
        return self._component.critical_cases

    @property
    def unstable_cases(self) -> dict[str, str]:
        """The cases that are unstable today, by case id, each as a text such as `unstable until 2026-12-31: reason`."""
        cases = self._component.unstable_cases.items()
        return {name: f"unstable until {one.until}: {one.reason}" for name, one in cases if not one.is_over}

    @property
    def _component(self) -> ComponentPolicy:
        return self.policy.components.get(self.skill, _NO_POLICY)

    def _declared(self, measure: Measure) -> list[MetricPolicy]:
        component, name = self._component, measure.name
        declared = [component.fields] if measure.kind == "field" else [component.metrics, self.policy.metrics]
        return [policies[name] for policies in declared if name in policies]


def rules_for(settings: Settings, candidate: Record) -> VerdictRules:
    """Return the rules of the settings for the component of a record."""
    required = settings.policy.components.get(candidate.skill, _NO_POLICY).required_coverage
    return VerdictRules(
        policy=settings.policy,
        skill=candidate.skill,
        primary_metric=candidate.primary_metric,
        required_coverage=settings.required_coverage if required is None else required,
    )


def tested_verdict(
    compared: Compared, measure: Measure, q: float | None, rules: VerdictRules, level: float
) -> VerdictName:
    """Return the verdict of a measure's test. If the scores do not support the verdict, return *inconclusive*."""
    verdict = measure_verdict(measure.effect, q, rules.tolerance(measure), level, rules.alpha)
    return limited_verdict(verdict, compared, measure, rules)


def limited_verdict(verdict: VerdictName, compared: Compared, measure: Measure, rules: VerdictRules) -> VerdictName:
    """Return the verdict on a measure. If the scores do not support the verdict, return *inconclusive*.

    Scores may not support a verdict if an uncalibrated judge decided them, or if outputs are missing. *improved* also
    requires that half of the candidate's planned outputs could be read. *unchanged* also requires that half of the
    planned outputs of each version could be read, and that the baseline's primary metric is above the tolerance.
    """
    tolerance, is_critical = rules.tolerance(measure), rules.is_critical(measure)
    verdict = judged_verdict(verdict, measure, compared.pair, rules.policy.harm)
    verdict = bounded_verdict(verdict, measure.missing, tolerance, rules.required_coverage if is_critical else 0.0)
    if verdict not in ("improved", "unchanged"):
        return verdict
    before, after = (read >= MIN_USABLE * planned for read, planned in compared.common.outputs)
    has_room = rules.has_room(measure.name, tolerance, measure.before.mean)
    return verdict if after and (verdict == "improved" or (before and has_room)) else "inconclusive"


def measure_verdict(
    effect: Effect | None, q: float | None, tolerance: float, level: float, alpha: float
) -> VerdictName:
    """Return the verdict on one measure. The first rule that applies decides.

    1. inconclusive: there is no effect or no adjusted p-value (q).
    2. improved: the score rose, and q is at most α ÷ 2.
    3. unchanged: the effect excludes a drop beyond the tolerance or, if no drop is tolerated, the score did not fall.
    4. regressed: the score fell, and q is at most `level`.
    5. inconclusive: no other rule applies. A difference that is not significant is no proof of *unchanged*.
    """
    if effect is None or q is None:
        return "inconclusive"
    if effect.difference > ROUNDING and q <= alpha / 2:
        return "improved"
    fell = effect.difference < -ROUNDING
    if not fell if tolerance == 0.0 else effect.lowest >= -tolerance and effect.unseen <= tolerance:
        return "unchanged"
    return "regressed" if fell and q <= level else "inconclusive"


def bounded_verdict(verdict: VerdictName, missing: Missing | None, tolerance: float, required: float) -> VerdictName:
    """Return the verdict if the missing outputs cannot change it. Otherwise return *inconclusive*.

    *regressed* requires that the score fell even if all missing outputs favour the candidate. *improved* and
    *unchanged* require that no drop exceeds the tolerance even if all missing outputs favour the baseline. They also
    require that the metric has a value for the share `required` of the cases with a ground truth.
    """
    if missing is None or verdict in ("inconclusive", "incomparable"):
        return verdict
    if verdict == "regressed":
        return "inconclusive" if missing.lost and missing.best >= -ROUNDING else verdict
    too_few = missing.rests_on < required
    return "inconclusive" if too_few or crosses(missing, tolerance) else verdict


def judged_verdict(verdict: VerdictName, measure: Measure, pair: Pair, harm: float) -> VerdictName:
    """Return the verdict on a measure, or *inconclusive* if an uncalibrated judge may not decide it.

    An uncalibrated judge may decide *unchanged*. It may also decide a regression by more than `harm` if it judged both
    versions, because an error that it makes on both cancels.
    """
    if pair.unproved_judge is None or not measure.judged:
        return verdict
    is_harm = pair.is_judged_alike and measure.after.mean - measure.before.mean < -harm - ROUNDING
    stands = verdict == "unchanged" or (verdict == "regressed" and is_harm)
    return verdict if stands else "inconclusive"


def model_verdict(measures: Iterable[tuple[Tier, VerdictName]]) -> VerdictName:
    """Return the verdict on a model from the tier and the verdict of each of its measures.

    It is *regressed* if a critical or supporting measure regressed. Otherwise only the critical measures decide.
    """
    verdicts = [(tier, verdict) for tier, verdict in measures if tier != "advisory"]
    critical = [verdict for tier, verdict in verdicts if tier == "critical"]
    if any(verdict == "regressed" for _, verdict in verdicts):
        return "regressed"
    if not critical or "inconclusive" in critical:
        return "inconclusive"
    if "incomparable" in critical:
        return "incomparable"
    return "improved" if "improved" in critical else "unchanged"


def has_collapsed(measure: Measure, models: int) -> bool:
    """Return whether nearly all outputs were right in the baseline, and few outputs are right in the candidate.

    This detects losses in too few cases for a test. See "Lost" in docs/statistics.md for the thresholds, which depend
    on the numbers of cases, replicates and models.
    """
    before, after = measure.before, measure.after
    cases, replicates = len(before.means), min(before.counts.min(), after.counts.min())
    max_share = _MAX_LEFT if cases >= _MIN_LOST_CASES and replicates >= _MIN_LOST_REPLICATES else 1.0 - MOSTLY
    if before.mean < MOSTLY - ROUNDING or after.mean > max_share + ROUNDING:
        return False
    repeated = bool((after.counts > 1).all())
    if cases < _MIN_LOST_CASES - (models == 1 and repeated) or (models > 1 and not repeated):
        return False
    return bool((before.means - after.means > MOSTLY / 2).all())


def is_harmed_everywhere(measure: Measure, harm: float) -> bool:
    """Return whether a measure lost more than `harm` in every case, and there are at least three cases."""
    # with three cases a t-test finds drops of different size less significant than equal drops
    falls = measure.before.means - measure.after.means
    return len(falls) >= _MIN_LOST_CASES and bool((falls > harm + ROUNDING).all())


def component_verdict(models: Iterable[VerdictName]) -> VerdictName:
    """Return the worst verdict of a component's models. Return "incomparable" if there are none."""
    return min(models, key=WORST_FIRST.index, default="incomparable")


def exit_code_of(results: Sequence[ComparisonResult], policy: Policy, fail_on: Iterable[str] = ()) -> int:
    """Return the exit code of the worst verdict: 0, 3 or 4. `fail_on` replaces the policy's list unless it is empty.

    Return 4 instead of 0 if a model is incomparable because another model was served, unless the policy ignores that.
    """
    code = exit_code(component_verdict(result.verdict for result in results), fail_on or policy.fail_on)
    models = (model for result in results for model in result.models)
    unlike = policy.served == "same" and any((one.verdict, one.served) == ("incomparable", "model") for one in models)
    return EXIT_INCOMPLETE if code == EXIT_OK and unlike else code


def exit_code(verdict: VerdictName, fail_on: Iterable[str]) -> int:
    """Return 0 if the verdict is not in `fail_on`. Otherwise return 3 for a regression and 4 for any other verdict."""
    if verdict not in fail_on:
        return EXIT_OK
    return EXIT_REGRESSED if verdict == "regressed" else EXIT_INCOMPLETE


_DOUBLED = math.log(2)  # an increase by more than this in every case needs no test
_MAX_LOG = 50.0  # bounds the relative change that is shown


def amount_results(compared: Compared, rules: VerdictRules, *, covered: bool) -> list[AmountResult]:
    """Return the result of each amount (tokens, cost, latency). `covered`: the coverage suffices for a verdict."""
    results = []
    for name, amount in compared.amounts.items():
        if not isinstance(amount, str):
            results.append(_amount_result(amount, compared.q(amount), rules, covered=covered))
            continue
        measure = Measure(name=name, kind="amount")
        tier, tolerance = rules.tier(measure), rules.tolerance(measure)
        verdict: VerdictName | None = "unchanged" if amount == FREE else "inconclusive"
        verdict = None if tier == "advisory" else verdict
        results.append(AmountResult(amount=name, tier=tier, tolerance=tolerance, verdict=verdict, unmeasured=amount))
    return results


def _amount_result(measure: Measure, q: float | None, rules: VerdictRules, *, covered: bool) -> AmountResult:
    effect, tier, tolerance = measure.effect, rules.tier(measure), rules.tolerance(measure)
    increases, limit = measure.before.means - measure.after.means, math.log1p(tolerance)
    increase = float(increases.mean())
    level = rules.alpha / 2 if tier == "advisory" else rules.level(measure)
    is_significant = is_harmed_everywhere(measure, max(_DOUBLED, limit)) or (q is not None and q <= level)
    moved = covered and is_significant and abs(increase) > limit + ROUNDING
    verdict: VerdictName = "regressed" if moved and increase > 0.0 else "inconclusive"
    if covered and effect is not None and effect.lowest >= -limit - ROUNDING:
        verdict = "unchanged"
    before, after = (fmean(math.exp(-score) for (score,) in arm) for arm in measure.scores)
    return AmountResult(
        amount=measure.name,
        tier=tier,
        tolerance=tolerance,
        baseline=rounded(before, 9),
        candidate=rounded(after, 9),
        change=_relative(increase),
        test=AmountTest(
            ci95=None if effect is None else (_relative(-effect.ci95[1]), _relative(-effect.ci95[0])),
            q=rounded(q),
            n_cases=len(measure.case_ids),
        ),
        moved=moved,
        rose_most=measure.case_ids[int(np.argmax(increases))],
        verdict=None if tier == "advisory" else verdict,
    )


def _relative(log_ratio: float) -> float:
    """Convert the logarithm of a ratio to a relative change: ln 1.5 to 0.5."""
    return round(math.expm1(max(-_MAX_LOG, min(_MAX_LOG, log_ratio))), 6)


def amount_reasons(amounts: Iterable[AmountResult], calls: int) -> Iterator[str]:
    """Yield the reasons for a verdict from output tokens, cost and latency. Costs are per run of `calls` calls."""
    for result in amounts:
        tolerated = f"{result.tolerance:.0%}"
        if result.verdict == "regressed":
            increase = f"more than the tolerated increase of {tolerated}, most in case {result.rose_most}"
            yield f"{result.change_text(calls)}: {increase}"
        elif result.verdict is not None and result.unmeasured:
            yield f"{result.name} is not measured: {result.unmeasured}"
        elif result.tier == "critical" and result.verdict == "inconclusive":
            yield f"{result.name}: an increase of more than {tolerated} is not ruled out; more cases would decide it"
