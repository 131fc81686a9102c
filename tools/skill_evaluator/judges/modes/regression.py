"""`judge regression`: a judge finds regressions in pairs of outputs; code combines its findings and decides."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from pydantic import AliasChoices, BeforeValidator, Field, NonNegativeInt, StrictBool, ValidationError, model_validator

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, ConfigError, JudgeError
from skill_evaluator.files import FrozenModel, NestingModel, first_problem, flat_part, read_versioned
from skill_evaluator.identifiers import Label, ModelId, RunId, Share
from skill_evaluator.judges.judge_run import ORDERS, JudgeCalls, JudgeText, Order
from skill_evaluator.judges.modes import ship_rules
from skill_evaluator.judges.modes.results import NO_FIGURE, RESULTS_VERSION, JudgeFigures, ModeResults
from skill_evaluator.judges.prompting import questions
from skill_evaluator.judges.prompting.questions import Form
from skill_evaluator.judges.prompting.reading import Unscored, UnscoredReason, last_valid_verdict, shows_difference
from skill_evaluator.judges.statistics import Estimate, difference, mean_within, rate, repeatability
from skill_evaluator.providers.base import Request
from skill_evaluator.stats import ALPHA, benjamini_hochberg, by_key
from skill_evaluator.text import canonical_json, digest

PROMPT = "regression"
MAX_BASIS_WORDS = 40
_NAME_DIGITS = 12
_NAME_KEYS = ("dimension", "verdict", "impact", "regression_severity", "ship_decision")
MIN_PAIRS = 100  # rates from fewer pairs get a warning
DECISIONS: tuple[ship_rules.ShipDecision, ...] = ("ship", "review_required", "block")  # mildest first
PairVerdict = ship_rules.FindingVerdict | Literal["uncertain"]
_POINTS: Mapping[ship_rules.FindingVerdict, int] = {"candidate_worse": -1, "same": 0, "candidate_better": 1}


class RegressionItem(questions.JudgedItem):
    """A line of a file of pairs: a prompt with two outputs. The default `id` is a digest of the line.

    `regression_dimensions`, a list or a text with commas, replaces the command's dimensions for this pair.
    """

    input: questions.JudgedText = Field(min_length=1, validation_alias=AliasChoices("prompt", "input"))
    baseline_output: questions.JudgedText = Field(min_length=1)
    candidate_output: questions.JudgedText
    regression_dimensions: Annotated[
        tuple[str, ...], BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value)
    ] = ()
    baseline_model: Label | None = None
    candidate_model: Label | None = None

    @property
    def identical(self) -> bool:
        """Whether both outputs are equal apart from outer white space. Such a pair is not sent to a judge."""
        return self.baseline_output.strip() == self.candidate_output.strip()

    @property
    def orders(self) -> Sequence[Order]:
        """The orders in which a judge sees the outputs; none if the outputs are identical."""
        return () if self.identical else ORDERS

    @model_validator(mode="before")
    @classmethod
    def _have_a_name(cls, line: Any) -> Any:
        if isinstance(line, dict) and "id" not in line:
            return {"id": digest(canonical_json(line)).removeprefix("sha256:")[:_NAME_DIGITS], **line}
        return line


def rules_of_item(item: RegressionItem, rules: ship_rules.ShipRules) -> ship_rules.ShipRules:
    """Return the rules with the dimensions that an item names, else `rules`. Raise JudgeError for an invalid name."""
    if not any(name.strip() for name in item.regression_dimensions):
        return rules
    try:
        dimensions = ship_rules.dimensions_of(item.regression_dimensions, blocking=rules.blocking)
    except ConfigError as problem:
        raise JudgeError(f"item '{item.id}': {problem}") from None
    return replace(rules, dimensions=dimensions)


def pair_questions(item: RegressionItem, rules: ship_rules.ShipRules, seed: int) -> list[Request]:
    """Return a question for each order of a pair's outputs; [] if they are identical. `rules`: see `rules_of_item`."""
    prompt, form = questions.load_prompt(PROMPT), regression_form(rules.dimensions)
    system = questions.fill(prompt.instructions, _instructions(rules, form))
    outputs = {"baseline": item.baseline_output, "candidate": item.candidate_output}
    mark, in_orders = questions.mark_of(seed, item.digest), list[Request]()
    for order in item.orders:
        slots = {"mark": mark, "prompt": questions.delimited("prompt", item.input, mark)}
        for slot, role in zip(("first", "second"), outputs if order == 1 else reversed(outputs), strict=True):
            slots |= {f"{slot}_role": role, slot: questions.delimited(role, outputs[role], mark)}
        user, case_id = questions.fill(prompt.texts, slots), f"{item.id}/{order}"
        in_orders.append(questions.judge_request(case_id, system, user, form.schema))
    return in_orders


def _instructions(rules: ship_rules.ShipRules, form: Form) -> dict[str, str]:
    blocking = ship_rules.blocking_sentence(rules.dimensions)
    lines = ["any impact `high`: `block`", blocking, "any `medium`: `review_required`"]
    if rules.one_low == "ship":
        lines += ["several `low`: `review_required`", "a single `low`: `ship`"]
    else:
        lines += ["any `low`: `review_required`"]
    return {
        "rules": "\n".join(f"  - {line}" for line in [*lines, "nothing of that: `ship`"]),
        "dimensions": "\n".join(f"- `{dimension.name}`: {dimension.question}" for dimension in rules.dimensions),
        "form": form.as_json(),
    }


def regression_form(dimensions: Sequence[ship_rules.Dimension]) -> Form:
    """Return the form of a judge's output. Findings precede the decision, so that the judge writes them first."""
    names = [dimension.name for dimension in dimensions]
    members = {
        "dimension": Form.one_of(names),
        "verdict": Form.one_of(get_args(ship_rules.FindingVerdict)),
        "evidence_baseline": Form.text(),
        "evidence_candidate": Form.text(),
        "impact": Form.one_of(ship_rules.IMPACTS),
    }
    finding = Form.object_of(members)
    findings = [{**finding.placeholder, "dimension": name} for name in names]
    conclusion = {
        "per_dimension": Form({"type": "array", "items": finding.schema}, findings),
        "regression_detected": Form({"type": "boolean"}, "a boolean: true | false"),
        "regression_severity": Form.one_of(get_args(ship_rules.RegressionSeverity)),
        "ship_decision": Form.one_of(get_args(ship_rules.ShipDecision)),
        "ship_reason": Form.text(),
        "decision_basis": Form({"type": "string", "description": f"at most {MAX_BASIS_WORDS} words"}, "…"),
    }
    return Form.object_of(conclusion)


class DimensionFinding(FrozenModel):
    """A judge's verdict in one dimension. `impact` and `verified` are null unless the candidate is worse.

    `verified`: whether the evidence quotes a passage that only one of the outputs has.
    """

    dimension: str
    verdict: ship_rules.FindingVerdict
    evidence_baseline: JudgeText = ""
    evidence_candidate: JudgeText = ""
    impact: ship_rules.Impact | None = None
    verified: bool | None = None

    @model_validator(mode="after")
    def _require_impact(self) -> Self:
        if self.verdict == "candidate_worse" and self.impact is None:
            raise ValueError("candidate_worse requires an impact")
        return self


class Conclusion(FrozenModel):
    """A judge's own conclusion from its findings. It decides nothing; contradictions with the findings are counted."""

    regression_detected: StrictBool
    regression_severity: ship_rules.RegressionSeverity
    ship_decision: ship_rules.ShipDecision
    ship_reason: JudgeText
    decision_basis: JudgeText = Field(description=f"at most {MAX_BASIS_WORDS} words")
    per_dimension: tuple[DimensionFinding, ...] = Field(default=(), exclude=True)


Mismatch = Literal["regression_detected", "regression_severity", "ship_decision", "decision_basis"]


class RegressionAnswer(FrozenModel):
    """One output of a judge: in order 1 the baseline was shown first, in order 2 the candidate.

    `mismatches` lists the fields of the conclusion that contradict the findings, and `decision_basis` if it is too
    long. `unrequested` lists dimensions that were not requested. They do not count, but they require a human review.
    """

    order: Literal[1, 2]
    replicate: NonNegativeInt = 0
    findings: list[DimensionFinding] = []
    conclusion: Conclusion | None = None
    mismatches: list[Mismatch] = []
    unrequested: list[JudgeText] = []
    unscored: UnscoredReason | None = None
    detail: JudgeText = ""

    def finding(self, dimension: str) -> DimensionFinding | None:
        """Return the finding in a dimension. Return None if the output does not count or has no such dimension."""
        return next((finding for finding in self.findings if finding.dimension == dimension), None)


def read_answer(
    text: str | Unscored, item: RegressionItem, rules: ship_rules.ShipRules, order: Order = 1, replicate: int = 0
) -> RegressionAnswer:
    """Read the last complete answer in a judge's output. Return an unscored answer if there is none.

    An answer that is copied from a judged text does not count. `rules` have the dimensions of the item.
    """
    judged = (item.input, item.baseline_output, item.candidate_output)
    answer = last_valid_verdict(text, lambda value: _check_answer(value, item, rules, order, replicate), judged)
    if isinstance(answer, Unscored):
        return RegressionAnswer(order=order, replicate=replicate, unscored=answer.reason, detail=answer.detail)
    return answer


def _check_answer(
    value: object, item: RegressionItem, rules: ship_rules.ShipRules, order: Order, replicate: int
) -> RegressionAnswer | Unscored:
    requested = [dimension.name for dimension in rules.dimensions]
    unrequested: list[str] = []
    if isinstance(value, dict) and isinstance(findings := value.get("per_dimension"), list):
        findings = [_normalized(finding) if isinstance(finding, dict) else finding for finding in findings]
        names = [finding.get("dimension") if isinstance(finding, dict) else None for finding in findings]
        unrequested = [name for name in names if isinstance(name, str) and name not in requested]
        requested_findings = [finding for finding, name in zip(findings, names, strict=True) if name not in unrequested]
        value = {**_normalized(value), "per_dimension": requested_findings}
    try:
        conclusion = Conclusion.model_validate(value)
    except ValidationError as problem:
        off_scale = problem.errors(include_url=False)[0]["type"] == "literal_error"
        return Unscored(reason="off_scale" if off_scale else "wrong_format", detail=first_problem(problem))
    counts = Counter(finding.dimension for finding in conclusion.per_dimension)
    if repeated := [name for name, count in counts.items() if count > 1]:
        return Unscored(reason="repeated_dimension", detail=", ".join(repeated))
    if absent := [name for name in requested if name not in counts]:
        return Unscored(reason="missing_dimension", detail=", ".join(absent))
    by_name = {finding.dimension: finding for finding in conclusion.per_dimension}
    outputs = (item.baseline_output, item.candidate_output)
    verified = {
        name: shows_difference((finding.evidence_baseline, finding.evidence_candidate), *outputs)
        for name, finding in by_name.items()
        if finding.verdict == "candidate_worse"
    }
    return RegressionAnswer(
        order=order,
        replicate=replicate,
        findings=[by_name[name].model_copy(update={"verified": verified.get(name)}) for name in requested],
        conclusion=conclusion,
        mismatches=_mismatches(conclusion, rules, complete=not unrequested),
        unrequested=unrequested,
    )


def _normalized(members: Mapping[str, Any]) -> dict[str, Any]:
    plain = {
        key: ship_rules.dimension_name(value) if key in _NAME_KEYS and isinstance(value, str) else value
        for key, value in members.items()
        if value is not None and key != "verified"
    }
    if plain.get("verdict") in ("same", "candidate_better"):
        plain.pop("impact", None)
    return plain


def _mismatches(conclusion: Conclusion, rules: ship_rules.ShipRules, *, complete: bool) -> list[Mismatch]:
    worse = {finding.dimension: finding.impact for finding in conclusion.per_dimension if finding.impact is not None}
    expected: dict[Mismatch, object] = {
        "regression_detected": bool(worse),
        "regression_severity": ship_rules.highest(worse.values()) or ship_rules.NONE,
        "ship_decision": ship_rules.decide(worse, replace(rules, high_stakes=False))[0],
    }
    mismatches = [name for name, value in expected.items() if complete and getattr(conclusion, name) != value]
    too_long = len(conclusion.decision_basis.split()) > MAX_BASIS_WORDS
    return [*mismatches, "decision_basis"] if too_long else mismatches


class DimensionResult(FrozenModel):
    """A judge's verdict on a pair in one dimension.

    `by_order` has the majority verdict of the replicates in each order, or null if the order has no usable output. If
    both orders have the same verdict, it is the `verdict`. If only one order is usable and has a regression of high
    impact, the `verdict` is `candidate_worse`. Otherwise the `verdict` is `uncertain`. `confidence` is the share of
    replicates with the `verdict`. If the `verdict` is `uncertain`, `confidence` is at most 0.5.
    """

    dimension: Label
    verdict: PairVerdict
    impact: ship_rules.Impact | None
    by_order: list[ship_rules.FindingVerdict | None]
    confidence: Share = 1.0
    verified: bool | None = None

    @property
    def flipped(self) -> bool:
        """Whether both orders have a usable output and disagree."""
        return None not in self.by_order and len(set(self.by_order)) > 1


class PairResult(FrozenModel):
    """A judge's verdict on one pair. The first reason explains the ship decision. Unknown fields are null."""

    id: Label
    stratum: Label
    ship_decision: ship_rules.ShipDecision | None
    reasons: list[str]
    regression_detected: bool | None
    regression_severity: ship_rules.RegressionSeverity | None
    dimensions: list[DimensionResult]
    answers: list[RegressionAnswer]
    identical: bool = False

    @property
    def counted(self) -> list[DimensionResult]:
        """The dimensions in which both orders have a usable output."""
        return [dimension for dimension in self.dimensions if None not in dimension.by_order]

    @property
    def compared(self) -> bool:
        """Whether both orders have a usable output in every dimension."""
        return len(self.counted) == len(self.dimensions)

    @property
    def confidence(self) -> float:
        """The lowest confidence of a dimension that is not uncertain; 1 if all dimensions are uncertain."""
        return min((one.confidence for one in self.dimensions if one.verdict != "uncertain"), default=1.0)


class DimensionSummary(FrozenModel):
    """A judge's verdicts in one dimension, over the pairs with usable outputs in both orders.

    `worse` is the rate of regressions. `unverified` counts the regressions without a quotation that shows the
    difference. `flips` is the share of pairs whose verdict changes with the order.
    """

    dimension: Label
    blocking: bool
    better: NonNegativeInt
    same: NonNegativeInt
    uncertain: NonNegativeInt
    worse: Estimate
    impacts: dict[ship_rules.Impact, NonNegativeInt]
    unverified: NonNegativeInt = 0
    flips: Estimate


class OutputCounts(FrozenModel):
    """Counts of a judge's outputs (`answers`), unscored outputs, contradictions and unrequested dimensions."""

    answers: NonNegativeInt
    unscored: dict[UnscoredReason, NonNegativeInt]
    mismatches: dict[Mismatch, NonNegativeInt]
    unrequested: dict[JudgeText, NonNegativeInt] = {}


class JudgeRegressions(JudgeFigures, NestingModel):
    """The verdicts of one judge on all pairs.

    `decisions` and `flips` are shares of the pairs with usable outputs in both orders. `lean` is the advantage of the
    output shown first, from −1 to 1. `repeats` is the share of pairs of replicates with equal verdicts. `unverified` is
    the share of regressions without a quotation that shows the difference. `undecided` and `severity` count pairs,
    `answers` and `mismatches` count outputs, and `unrequested` counts findings.
    """

    declared_strong: bool
    ship_decision: ship_rules.ShipDecision | None
    decisions: dict[ship_rules.ShipDecision, Estimate]
    undecided: NonNegativeInt
    dimensions: list[DimensionSummary]
    flips: Estimate
    lean: Estimate
    repeats: Estimate
    unverified: Estimate = NO_FIGURE
    outputs: OutputCounts = flat_part("outputs")
    severity: dict[Label, NonNegativeInt] = {}
    pairs: list[PairResult]

    @property
    def held(self) -> list[PairResult]:
        """The pairs that the judge blocks, sends to review or leaves undecided."""
        return [pair for pair in self.pairs if pair.ship_decision != "ship"]


class RateAlert(FrozenModel):
    """A judge's rate of regressions in a dimension, corrected for its errors, and the rate that the policy allows.

    `above`: whether the whole interval of `corrected` is above `allowed`; null if unknown, with the reason in
    `problem`.
    """

    judge: ModelId
    dimension: Label
    allowed: Share
    above: bool | None
    reported: Estimate | None = None
    corrected: Estimate | None = None
    sensitivity: Estimate | None = None
    specificity: Estimate | None = None
    calibration: RunId | None = None
    problem: str = ""


class RateChange(FrozenModel):
    """A judge's rates of regressions in one dimension in two batches; `difference` is later − earlier.

    `p`: Fisher's exact test. `q`: `p` adjusted over the dimensions of the judge. `rose`: the later rate is higher, and
    q < 0.05.
    """

    judge: ModelId
    dimension: Label
    earlier: Estimate
    later: Estimate
    difference: Estimate
    p: Share
    q: Share
    rose: bool


class RegressionResults(ModeResults):
    """The results of `judge regression`. `changes`: the changes of rates since the judge run `against`."""

    judges: list[JudgeRegressions]
    baseline: RunId | None = None
    candidate: RunId | None = None
    ship_decision: ship_rules.ShipDecision | None
    alerts: list[RateAlert] = []
    against: RunId | None = None
    changes: list[RateChange] = []

    @property
    def held(self) -> list[tuple[str, PairResult]]:
        """The pairs that usable judges block, send to review or leave undecided, in this order, with the judge's id."""
        usable = [judge for judge in self.judges if judge.unusable is None]
        held = [(judge.judge.model_id, pair) for judge in usable for pair in judge.held]
        return sorted(held, key=lambda row: (row[1].ship_decision != "block", row[1].ship_decision is None))

    @property
    def alerting(self) -> bool:
        """Whether a rate rose significantly, or the whole interval of a corrected rate is above the allowed rate."""
        return any(alert.above for alert in self.alerts) or any(change.rose for change in self.changes)

    @property
    def exit_code(self) -> int:
        """3 for a block, an alert or a risen rate; 0 if the decision is `ship` and all judges are usable; else 4."""
        if self.alerting or self.ship_decision == "block":
            return EXIT_REGRESSED
        ships = self.ship_decision == "ship" and not any(judge.unusable for judge in self.judges)
        return EXIT_OK if ships else EXIT_INCOMPLETE


def read_regressions(path: Path) -> RegressionResults:
    """Read the evaluation_results.json of a judge run. Raise JudgeError if it is missing or invalid."""
    return read_versioned(RegressionResults, path, "results_version", RESULTS_VERSION, JudgeError)


def most_careful(decisions: Sequence[ship_rules.ShipDecision | None]) -> ship_rules.ShipDecision | None:
    """Return the most careful decision; if one is None, at least `review_required`. Return None if all are None.

    >>> most_careful(["ship", None]), most_careful([None])
    ('review_required', None)
    """
    worst = max((one for one in decisions if one is not None), key=DECISIONS.index, default=None)
    return "review_required" if worst == "ship" and None in decisions else worst


def combine_orders(
    item: RegressionItem, answers: Sequence[RegressionAnswer], rules: ship_rules.ShipRules
) -> PairResult:
    """Combine a judge's outputs on a pair over both orders and all replicates. `rules` have the item's dimensions."""
    names = [dimension.name for dimension in rules.dimensions]
    dimensions = [_combine_dimension(name, answers) for name in names]
    if item.identical:
        dimensions = [
            DimensionResult(dimension=name, verdict="same", impact=None, by_order=["same"] * 2) for name in names
        ]
    worse = {one.dimension: one.impact for one in dimensions if one.impact is not None}
    decision, reason = ship_rules.decide(worse, rules)
    doubts = list(_doubts(dimensions, answers))
    if decision == "ship" and item.identical:
        reason = "identical outputs"
    elif decision == "ship" and doubts:
        decision, reason = "review_required", doubts.pop(0)
    judged = item.identical or any(answer.unscored is None for answer in answers)
    is_known = judged and (bool(worse) or not any("candidate_worse" in one.by_order for one in dimensions))
    return PairResult(
        id=item.id,
        stratum=item.stratum,
        ship_decision=decision if judged else None,
        reasons=[reason, *(f"unverified: {one.dimension}" for one in dimensions if one.verified is False), *doubts],
        regression_detected=bool(worse) if is_known else None,
        regression_severity=(ship_rules.highest(worse.values()) or ship_rules.NONE) if is_known else None,
        dimensions=dimensions,
        answers=list(answers),
        identical=item.identical,
    )


def _doubts(dimensions: Sequence[DimensionResult], answers: Sequence[RegressionAnswer]) -> Iterator[str]:
    yield from (
        f"uncertain: {one.dimension} ({', then '.join(map(str, one.by_order))})" for one in dimensions if one.flipped
    )
    if unrequested := dict.fromkeys(name for answer in answers for name in answer.unrequested):
        yield f"dimension that was not requested: {', '.join(unrequested)}"
    yield from dict.fromkeys(
        f"unscored answer: {answer.unscored}{f' ({answer.detail})' if answer.detail else ''}"
        for answer in answers
        if answer.unscored is not None
    )


def _combine_dimension(name: str, answers: Sequence[RegressionAnswer]) -> DimensionResult:
    by_order = [
        [finding for answer in answers if answer.order == order and (finding := answer.finding(name)) is not None]
        for order in ORDERS
    ]
    votes = [_majority_finding(findings) for findings in by_order]
    order_votes = [vote for vote in votes if vote is not None]
    verdicts = {verdict for verdict, _ in order_votes}
    impact = ship_rules.highest(one.impact for findings in by_order for one in findings if one.impact is not None)
    verdict: PairVerdict = "uncertain"
    confidence = 0.5 if order_votes else 0.0
    blocks = verdicts == {"candidate_worse"} and impact == "high"
    if len(verdicts) == 1 and (len(order_votes) == len(ORDERS) or blocks):
        verdict, confidence = order_votes[0][0], sum(share for _, share in order_votes) / len(ORDERS)
    worse = verdict == "candidate_worse"
    return DimensionResult(
        dimension=name,
        verdict=verdict,
        impact=impact if worse else None,
        by_order=[None if vote is None else vote[0] for vote in votes],
        confidence=round(confidence, 6),
        verified=any(finding.verified for findings in by_order for finding in findings) if worse else None,
    )


def _majority_finding(findings: Sequence[DimensionFinding]) -> tuple[ship_rules.FindingVerdict, float] | None:
    """Return the most frequent verdict and its share of the findings. If two verdicts are tied, return *same*."""
    if not findings:
        return None
    (verdict, votes), *others = Counter(finding.verdict for finding in findings).most_common(2)
    share = votes / len(findings)
    return ("same", share / 2) if others and others[0][1] == votes else (verdict, share)


def reduce_regressions(
    items: Sequence[RegressionItem], calls: JudgeCalls, rules_by_item: Mapping[str, ship_rules.ShipRules]
) -> JudgeRegressions:
    """Read one judge's verdicts on pairs, and compute the figures of each dimension."""
    results, blocking = list[PairResult](), dict[str, bool]()
    for item in items:
        item_rules = rules_by_item[item.id]
        answers = [
            read_answer(calls.output(f"{item.id}/{order}", replicate), item, item_rules, order, replicate)
            for replicate in range(calls.replicates)
            for order in item.orders
        ]
        results.append(combine_orders(item, answers, item_rules))
        blocking |= {dimension.name: dimension.blocking for dimension in item_rules.dimensions}
    all_answers = [answer for result in results for answer in result.answers]
    unusable = calls.unusable([answer.unscored for answer in all_answers])
    compared = [result for result in results if result.compared]  # both orders count
    decided = [result.ship_decision for result in compared]
    summaries = [_dimension_summary(name, blocks, compared) for name, blocks in blocking.items()]
    worse = [one for result in compared for one in result.dimensions if one.verified is not None]
    repeats = [_replicate_agreement(result) for result in results]
    severities = [result.regression_severity or ship_rules.NONE for result in compared]
    return JudgeRegressions(
        judge=calls.record,
        declared_strong=calls.model.judge == "strong",
        ship_decision=most_careful([result.ship_decision for result in results]),
        decisions={} if unusable else {name: rate(decided.count(name), len(decided)) for name in DECISIONS},
        undecided=[result.ship_decision for result in results].count(None),
        dimensions=[] if unusable else summaries,
        flips=rate(sum(any(one.flipped for one in result.dimensions) for result in compared), len(compared)),
        lean=mean_within([_position_advantage(result) for result in compared if not result.identical], -1.0, 1.0),
        repeats=mean_within([share for share in repeats if share is not None]),
        unverified=rate(sum(not one.verified for one in worse), len(worse)),
        outputs=OutputCounts(
            answers=len(all_answers),
            unscored=Counter(answer.unscored for answer in all_answers if answer.unscored is not None),
            mismatches=Counter(name for answer in all_answers for name in answer.mismatches),
            unrequested=Counter(name for answer in all_answers for name in answer.unrequested),
        ),
        severity={level: severities.count(level) for level in ship_rules.SEVERITIES},
        unusable=unusable,
        pairs=results,
    )


def _position_advantage(result: PairResult) -> float:
    by_order = [dimension.by_order for dimension in result.dimensions]
    return fmean((_POINTS[second] - _POINTS[first]) / 2 for first, second in by_order if first and second)


def _replicate_agreement(result: PairResult) -> float | None:
    counting = [answer for answer in result.answers if answer.unscored is None]
    verdicts = by_key((answer.order, tuple(one.verdict for one in answer.findings)) for answer in counting)
    return repeatability(list(verdicts.values())).value


def _dimension_summary(name: str, blocking: bool, compared: Sequence[PairResult]) -> DimensionSummary:
    verdicts = [one for result in compared for one in result.dimensions if one.dimension == name]
    worse = [one for one in verdicts if one.verdict == "candidate_worse"]
    counts = Counter(one.verdict for one in verdicts)
    return DimensionSummary(
        dimension=name,
        blocking=blocking,
        better=counts["candidate_better"],
        same=counts["same"],
        uncertain=counts["uncertain"],
        worse=rate(len(worse), len(verdicts)),
        impacts={impact: sum(one.impact == impact for one in worse) for impact in ship_rules.IMPACTS},
        unverified=sum(one.verified is False for one in worse),
        flips=rate(sum(one.flipped for one in verdicts), len(verdicts)),
    )


def rate_changes(results: Sequence[JudgeRegressions], earlier_results: Sequence[JudgeRegressions]) -> list[RateChange]:
    """Compare each judge's rates of regressions with the earlier rates, in the dimensions that both results have."""
    from scipy.stats import fisher_exact

    earlier_rates = {
        (judge.judge.model_id, one.dimension): one.worse for judge in earlier_results for one in judge.dimensions
    }
    changes = []
    for judge in results:
        model_id = judge.judge.model_id
        pairs = [(one, earlier_rates.get((model_id, one.dimension))) for one in judge.dimensions]
        comparable = [(one, old) for one, old in pairs if old is not None and old.n and one.worse.n]
        tables = [[[one.count, one.n - one.count] for one in (row.worse, old)] for row, old in comparable]
        p_values = [min(1.0, float(fisher_exact(np.array(table)).pvalue)) for table in tables]
        for (result, old), p, q in zip(comparable, p_values, benjamini_hochberg(p_values), strict=True):
            change = difference(result.worse, old)
            rose = q < ALPHA and (change.value or 0.0) > 0
            rates = {"earlier": old, "later": result.worse, "difference": change}
            changes.append(RateChange(judge=model_id, dimension=result.dimension, **rates, p=p, q=q, rose=rose))
    return changes
