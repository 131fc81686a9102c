"""One answer of a regression judge, held against the two outputs: what of it code can confirm, and what it contradicts.

A finding that cannot be confirmed is kept and marked. Dropping it would let a regression ship because the judge
described it badly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.regression.answer import (
    MOST_BASIS_WORDS,
    DimensionFinding,
    Finding,
    Impact,
    RegressionAnswer,
)
from skill_evaluator.judges.regression.dimensions import Dimension
from skill_evaluator.judges.regression.evidence import (
    LEFT_OUT_FROM,
    Evidence,
    left_out,
    names_only_style,
    read_evidence,
)
from skill_evaluator.judges.regression.form import broken_rules
from skill_evaluator.judges.regression.rules import ShipRules, decide, severity_of

Leg = Literal["quote", "omission", "form"]
Flag = Literal["unsupported", "no_evidence", "quote_not_found", "style_only"]
Mismatch = Literal["regression_detected", "regression_severity", "ship_decision"]
FOR_PEOPLE: frozenset[Flag] = frozenset({"unsupported", "style_only"})
"""The flags of a *worse* that a person decides on: code has nothing that would bear a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPair:
    """What is judged: the prompt, and its two outputs."""

    prompt: str
    baseline: str
    candidate: str


class CheckedFinding(FrozenModel):
    """A finding with what code makes of it. `legs` are what supports a *worse*; `impact` is null for the others."""

    dimension: Label
    verdict: Finding
    impact: Impact | None
    baseline: Evidence
    candidate: Evidence
    legs: tuple[Leg, ...] = ()
    flags: tuple[Flag, ...] = ()


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
