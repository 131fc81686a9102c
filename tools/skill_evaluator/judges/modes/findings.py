"""The answers of a regression judge in both orders → what code confirms of them, and the verdict on a pair.

A finding that cannot be confirmed is kept and marked. Dropping it would let a regression ship because the judge
described it badly. What the judge says in one order only is *uncertain*, and a person decides. A regression of high
impact blocks all the same if the other answer does not count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from skill_evaluator.judges.asking.evidence import LEFT_OUT_FROM, Evidence, left_out, names_only_style, read_evidence
from skill_evaluator.judges.asking.reading import Unscored
from skill_evaluator.judges.modes.form import broken_rules
from skill_evaluator.judges.modes.regression import MOST_BASIS_WORDS, DimensionFinding, OutputPair, RegressionAnswer
from skill_evaluator.judges.modes.regression_results import FOR_PEOPLE, CheckedFinding, Flag, Leg, Mismatch
from skill_evaluator.judges.modes.ship_rules import (
    IMPACTS,
    Dimension,
    Finding,
    Impact,
    RegressionSeverity,
    ShipDecision,
    ShipRules,
    decide,
    severity_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One answer: its findings by dimension, and which of its own conclusions do not follow from them."""

    answer: RegressionAnswer
    findings: Mapping[str, CheckedFinding]
    mismatches: tuple[Mismatch, ...] = ()
    basis_too_long: bool = False


def check_answer(
    answer: RegressionAnswer, pair: OutputPair, dimensions: Sequence[Dimension], rules: ShipRules
) -> Reading:
    """Hold a whole answer about these dimensions against the outputs, and its conclusions against the rules.

    A conclusion is compared with what the judge was told: the rules on impact and blocking, not with what only code
    knows, such as the stakes.
    """
    by_name = {dimension.name: dimension for dimension in dimensions}
    given = {finding.dimension: finding for finding in answer.per_dimension}
    findings = {name: _check(given[name], dimension, pair) for name, dimension in by_name.items()}
    worse = {name: finding.impact for name, finding in findings.items() if finding.impact is not None}
    told = ShipRules(one_low=rules.one_low)
    right: Mapping[Mismatch, object] = {
        "regression_detected": bool(worse),
        "regression_severity": severity_of(list(worse.values())),
        "ship_decision": decide(worse, dimensions, told)[0],
    }
    mismatches = tuple(name for name, value in right.items() if getattr(answer, name) != value)
    too_long = len(answer.decision_basis.split()) > MOST_BASIS_WORDS
    return Reading(answer=answer, findings=findings, mismatches=mismatches, basis_too_long=too_long)


def _check(finding: DimensionFinding, dimension: Dimension, pair: OutputPair) -> CheckedFinding:
    baseline = read_evidence(finding.evidence_baseline, pair.baseline, beside=(pair.prompt, pair.candidate))
    candidate = read_evidence(finding.evidence_candidate, pair.candidate, beside=(pair.prompt, pair.baseline))
    worse = finding.verdict == "candidate_worse"
    legs = _legs(baseline, candidate, dimension, pair) if worse else ()
    flags: list[Flag] = []
    if worse and not legs:
        flags.append("unsupported")
    if finding.verdict != "same" and baseline.kind == candidate.kind == "none":
        flags.append("no_evidence")
    if baseline.not_found or candidate.not_found:
        flags.append("quote_not_found")
    if worse and not dimension.style and _only_style(baseline, candidate):
        flags.append("style_only")
    return CheckedFinding(
        dimension=dimension.name,
        verdict=finding.verdict,
        impact=finding.impact if worse else None,
        baseline=baseline,
        candidate=candidate,
        legs=legs,
        flags=tuple(flags),
    )


def _legs(baseline: Evidence, candidate: Evidence, dimension: Dimension, pair: OutputPair) -> tuple[Leg, ...]:
    """Return what code can confirm of a *worse*; one is enough."""
    confirmed: Mapping[Leg, bool] = {
        "quote": "quote" in (baseline.kind, candidate.kind),
        "omission": len(left_out((baseline.text, candidate.text), pair.baseline, pair.candidate)) >= LEFT_OUT_FROM,
        "form": dimension.form and bool(broken_rules(pair.prompt, pair.baseline, pair.candidate)),
    }
    return tuple(leg for leg, holds in confirmed.items() if holds)


def _only_style(baseline: Evidence, candidate: Evidence) -> bool:
    observations = [evidence.text for evidence in (baseline, candidate) if evidence.kind == "observation"]
    return names_only_style(observations) and "quote" not in (baseline.kind, candidate.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionVerdict:
    """What both orders say of a dimension; `by_order` has null for an answer that counted for nothing.

    `impact` is a regression's, the higher one where the orders differ. `legs` are those that either answer has.
    """

    dimension: str
    verdict: Finding | Literal["uncertain"]
    impact: Impact | None
    by_order: tuple[Finding | None, Finding | None]
    legs: tuple[Leg, ...] = ()
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionVerdict:
    """The verdict on a pair. `decision` is null where no answer counted; `reasons` begin with what decided.

    Whether there is a regression is null, too, where only one order speaks of one and the other does not. `flipped`
    of `compared` dimensions came out differently in the second order. `mismatches` counts the answers whose own
    conclusion does not follow from their findings.
    """

    dimensions: tuple[DimensionVerdict, ...]
    regression_detected: bool | None
    regression_severity: RegressionSeverity | None
    decision: ShipDecision | None
    reasons: tuple[str, ...]
    flipped: int
    compared: int
    mismatches: Mapping[Mismatch, int]
    unscored: tuple[Unscored, ...] = ()


def combine_orders(
    first: Reading | Unscored, second: Reading | Unscored, dimensions: Sequence[Dimension], rules: ShipRules
) -> RegressionVerdict:
    """Return the verdict of the answer with the baseline first and of the one with the candidate first."""
    unscored = tuple(answer for answer in (first, second) if isinstance(answer, Unscored))
    verdicts = tuple(_combine(dimension.name, first, second) for dimension in dimensions)
    worse = {verdict.dimension: verdict.impact for verdict in verdicts if verdict.impact is not None}
    confirmed = {one.dimension: one.impact for one in verdicts if one.impact and not FOR_PEOPLE & {*one.flags}}
    decision, reason = decide(confirmed, dimensions, rules)
    doubts = [
        *(f"uncertain: {verdict.dimension} ({_orders(verdict)})" for verdict in verdicts if _flipped(verdict)),
        *(
            f"{flag.replace('_', ' ')}: {verdict.dimension}"
            for verdict in verdicts
            for flag in verdict.flags
            if flag in FOR_PEOPLE
        ),
        *(f"unscored answer: {answer.reason}{f' ({answer.detail})' if answer.detail else ''}" for answer in unscored),
    ]
    if doubts and decision == "ship":
        decision, reason = "review_required", doubts.pop(0)
    unknown = not worse and any("candidate_worse" in verdict.by_order for verdict in verdicts)
    judged = len(unscored) < len((first, second))
    return RegressionVerdict(
        dimensions=verdicts,
        regression_detected=bool(worse) if judged and not unknown else None,
        regression_severity=severity_of(list(worse.values())) if judged and not unknown else None,
        decision=decision if judged else None,
        reasons=(reason, *doubts),
        flipped=sum(map(_flipped, verdicts)),
        compared=0 if unscored else len(dimensions),
        mismatches=Counter(
            name for answer in (first, second) if isinstance(answer, Reading) for name in answer.mismatches
        ),
        unscored=unscored,
    )


def _combine(name: str, first: Reading | Unscored, second: Reading | Unscored) -> DimensionVerdict:
    findings = [answer.findings[name] for answer in (first, second) if isinstance(answer, Reading)]
    worse = [finding for finding in findings if finding.impact is not None]
    sound = [finding for finding in worse if not FOR_PEOPLE & {*finding.flags}]
    agreed = len(findings) == len((first, second)) and len({finding.verdict for finding in findings}) == 1
    told = agreed or (len(findings) == 1 and any(finding.impact == "high" for finding in sound))
    impacts = [finding.impact for finding in worse if finding.impact is not None]
    legs = tuple(dict.fromkeys(leg for finding in findings for leg in finding.legs))
    flags = dict.fromkeys(flag for finding in findings for flag in finding.flags)
    if legs:
        flags.pop("unsupported", None)  # one leg is enough, and one answer may give it
    if sound:
        flags.pop("style_only", None)
    return DimensionVerdict(
        dimension=name,
        verdict=findings[0].verdict if told else "uncertain",
        impact=max(impacts, key=IMPACTS.index) if told and impacts else None,
        by_order=(_verdict_in(first, name), _verdict_in(second, name)),
        legs=legs,
        flags=tuple(flags),
    )


def _verdict_in(answer: Reading | Unscored, name: str) -> Finding | None:
    return answer.findings[name].verdict if isinstance(answer, Reading) else None


def _flipped(verdict: DimensionVerdict) -> bool:
    """Return whether both answers counted and say different things."""
    return None not in verdict.by_order and verdict.by_order[0] != verdict.by_order[1]


def _orders(verdict: DimensionVerdict) -> str:
    return ", then ".join(str(finding) for finding in verdict.by_order)
