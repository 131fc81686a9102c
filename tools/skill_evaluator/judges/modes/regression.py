"""`judge regression`: pairs of outputs → questions in both orders, and a judge's output → findings.

The keys of an output stand in the order in which the judge writes: findings and their evidence before the decision. An
output that is not whole (a dimension missing or repeated, an unknown word) is unscored with its reason. A further key,
capital letters, null for no evidence and the impact of a verdict other than worse are ignored.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AliasChoices, BeforeValidator, Field, NonNegativeInt, StrictBool, ValidationError, model_validator

from skill_evaluator.errors import ConfigError, JudgeError
from skill_evaluator.files import FrozenModel, first_problem
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.modes.ship_rules import (
    IMPACTS,
    Dimension,
    Finding,
    Impact,
    RegressionSeverity,
    ShipDecision,
    ShipRules,
    blocking_sentence,
    decide,
    dimension_name,
    dimensions_of,
    severity_of,
)
from skill_evaluator.judges.prompting.items import JudgedItem, JudgedText
from skill_evaluator.judges.prompting.questions import (
    TEXT,
    Form,
    JudgePrompt,
    JudgeQuestion,
    delimited,
    fill,
    form_of,
    form_text,
    load_prompt,
    mark_of,
    one_of,
)
from skill_evaluator.judges.prompting.reading import Unscored, UnscoredReason, last_whole, shows_difference
from skill_evaluator.judges.prompting.results import JudgeText, Order
from skill_evaluator.text import canonical_json, digest

ORDERS: tuple[Order, Order] = (1, 2)  # 1: the baseline stands first, 2: the candidate does
MAX_BASIS_WORDS = 40
_NAME_DIGITS = 12
_WORDS = ("dimension", "verdict", "impact", "regression_severity", "ship_decision")


class RegressionItem(JudgedItem):
    """A line: a prompt with the output in use and the new one. Without `id` a digest of the line names it.

    `regression_dimensions`, a list or a text with commas, are those of this pair, whatever the command names.
    `baseline_model` and `candidate_model` wrote the outputs, if that is known.
    """

    input: JudgedText = Field(min_length=1, validation_alias=AliasChoices("prompt", "input"))
    baseline_output: JudgedText = Field(min_length=1)
    candidate_output: JudgedText
    regression_dimensions: Annotated[
        tuple[str, ...], BeforeValidator(lambda value: value.split(",") if isinstance(value, str) else value)
    ] = ()
    baseline_model: Label | None = None
    candidate_model: Label | None = None

    @property
    def writers(self) -> list[str]:
        """The models that wrote the outputs, as far as they are known."""
        return [name for name in (self.baseline_model, self.candidate_model) if name is not None]

    @model_validator(mode="before")
    @classmethod
    def _have_a_name(cls, line: Any) -> Any:
        if isinstance(line, dict) and "id" not in line:
            return {"id": digest(canonical_json(line)).removeprefix("sha256:")[:_NAME_DIGITS], **line}
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """One item, and the dimensions in which its outputs are compared."""

    item: RegressionItem
    dimensions: tuple[Dimension, ...]

    @property
    def id(self) -> str:
        """The id of the item."""
        return self.item.id

    @property
    def identical(self) -> bool:
        """Whether both outputs are the same text, which needs no judge."""
        return self.item.baseline_output.strip() == self.item.candidate_output.strip()


def pairs_of(
    items: Mapping[str, RegressionItem], names: Sequence[str], preset: str, blocking: Collection[str]
) -> tuple[JudgedPair, ...]:
    """Return items with their own dimensions, the named ones or the preset's. Raise ConfigError or JudgeError."""
    usual = dimensions_of(names, preset, blocking)
    pairs = []
    for item in items.values():
        try:
            own = any(name.strip() for name in item.regression_dimensions)
            dimensions = dimensions_of(item.regression_dimensions, blocking=blocking) if own else usual
        except ConfigError as problem:
            raise JudgeError(f"item '{item.id}': {problem}") from None
        pairs.append(JudgedPair(item=item, dimensions=dimensions))
    return tuple(pairs)


def regression_questions(
    pairs: Sequence[JudgedPair], rules: ShipRules, seed: int
) -> tuple[list[JudgeQuestion], JudgePrompt]:
    """Return the prompt, and two questions for each pair, `<pair>/1` and `<pair>/2`; none for identical outputs."""
    prompt = load_prompt("regression")
    questions = []
    for pair in pairs:
        if pair.identical:
            continue
        mark, form = mark_of(seed, pair.item.digest), regression_form(pair.dimensions)
        system = fill(prompt.instructions, _instructions(pair.dimensions, rules, form))
        outputs = {"baseline": pair.item.baseline_output, "candidate": pair.item.candidate_output}
        for order in ORDERS:
            first, second = outputs if order == 1 else reversed(outputs)
            slots = {
                "mark": mark,
                "prompt": delimited("prompt", pair.item.input, mark),
                "first_role": first,
                "first": delimited(first, outputs[first], mark),
                "second_role": second,
                "second": delimited(second, outputs[second], mark),
            }
            user = fill(prompt.texts, slots)
            questions.append(
                JudgeQuestion(case_id=question_id(pair.id, order), system=system, user=user, schema=form[0])
            )
    return questions, prompt


def question_id(pair: str, order: int) -> str:
    """Return the id under which a judge run has the question of a pair in an order."""
    return f"{pair}/{order}"


def _instructions(dimensions: Sequence[Dimension], rules: ShipRules, form: Form) -> dict[str, str]:
    low = ["any `low`: `review_required`"]
    if rules.one_low == "ship":
        low = ["several `low`: `review_required`", "a single `low`: `ship`"]
    lines = ["any impact `high`: `block`", blocking_sentence(dimensions), "any `medium`: `review_required`", *low]
    return {
        "rules": "\n".join(f"  - {line}" for line in [*lines, "nothing of that: `ship`"]),
        "dimensions": "\n".join(f"- `{dimension.name}`: {dimension.question}" for dimension in dimensions),
        "form": form_text(form),
    }


def regression_form(dimensions: Sequence[Dimension]) -> Form:
    """Return the form of an output; the order of its keys has the judge look before it concludes."""
    names = [dimension.name for dimension in dimensions]
    finding, shown = form_of(
        {
            "dimension": one_of(names),
            "verdict": one_of(get_args(Finding)),
            "evidence_baseline": TEXT,
            "evidence_candidate": TEXT,
            "impact": one_of(IMPACTS),
        }
    )
    basis = {**TEXT[0], "description": f"at most {MAX_BASIS_WORDS} words"}
    return form_of(
        {
            "per_dimension": ({"type": "array", "items": finding}, [{**shown, "dimension": name} for name in names]),
            "regression_detected": ({"type": "boolean"}, "a boolean: true | false"),
            "regression_severity": one_of(get_args(RegressionSeverity)),
            "ship_decision": one_of(get_args(ShipDecision)),
            "ship_reason": TEXT,
            "decision_basis": (basis, TEXT[1]),
        }
    )


class DimensionFinding(FrozenModel):
    """A judge's verdict in one dimension; `impact` and `verified` are null unless the candidate is worse."""

    dimension: str
    verdict: Finding
    evidence_baseline: JudgeText = ""
    evidence_candidate: JudgeText = ""
    impact: Impact | None = None
    verified: bool | None = None

    @model_validator(mode="after")
    def _require_impact(self) -> Self:
        if self.verdict == "candidate_worse" and self.impact is None:
            raise ValueError("candidate_worse requires an impact")
        return self


class Conclusion(FrozenModel):
    """A judge's own conclusion from its findings; code decides again. The answer keeps the findings."""

    regression_detected: StrictBool
    regression_severity: RegressionSeverity
    ship_decision: ShipDecision
    ship_reason: JudgeText
    decision_basis: JudgeText = Field(description=f"at most {MAX_BASIS_WORDS} words")
    per_dimension: tuple[DimensionFinding, ...] = Field(default=(), exclude=True)


Mismatch = Literal["regression_detected", "regression_severity", "ship_decision", "decision_basis"]


class RegressionAnswer(FrozenModel):
    """One output of a judge: in order 1 the baseline stood first, in order 2 the candidate.

    `unscored` says why it does not count. `mismatches` name the fields of the conclusion that do not follow from the
    findings, or a decision_basis that is too long. `unrequested` names further dimensions, which count for nothing.
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
        """Return the finding in a dimension. Return None if the output does not count."""
        return next((finding for finding in self.findings if finding.dimension == dimension), None)


def read_answer(
    text: str | Unscored, pair: JudgedPair, rules: ShipRules, order: Order = 1, replicate: int = 0
) -> RegressionAnswer:
    """Read a judge's output on a pair: the last whole answer that is not copied from a judged text."""
    judged = (pair.item.input, pair.item.baseline_output, pair.item.candidate_output)
    answer = (
        text if isinstance(text, Unscored) else last_whole(text, lambda value: _checked(value, pair, rules), judged)
    )
    if isinstance(answer, Unscored):
        return RegressionAnswer(order=order, replicate=replicate, unscored=answer.reason, detail=answer.detail)
    return answer.model_copy(update={"order": order, "replicate": replicate})


def _checked(value: object, pair: JudgedPair, rules: ShipRules) -> RegressionAnswer | Unscored:
    requested = [dimension.name for dimension in pair.dimensions]
    unrequested: list[str] = []
    if isinstance(value, dict) and isinstance(findings := value.get("per_dimension"), list):
        findings = [_plain(finding) if isinstance(finding, dict) else finding for finding in findings]
        names = [finding.get("dimension") if isinstance(finding, dict) else None for finding in findings]
        unrequested = [name for name in names if isinstance(name, str) and name not in requested]
        requested_findings = [finding for finding, name in zip(findings, names, strict=True) if name not in unrequested]
        value = {**_plain(value), "per_dimension": requested_findings}
    try:
        conclusion = Conclusion.model_validate(value)
    except ValidationError as problem:
        off_scale = problem.errors(include_url=False)[0]["type"] == "literal_error"
        return Unscored(reason="off_scale" if off_scale else "wrong_format", detail=first_problem(problem))
    counts = Counter(finding.dimension for finding in conclusion.per_dimension)
    if repeated := [name for name, count in counts.items() if count > 1]:
        return Unscored(reason="repeated_dimension", detail=", ".join(repeated))
    if missing := [name for name in requested if name not in counts]:
        return Unscored(reason="missing_dimension", detail=", ".join(missing))
    by_name = {finding.dimension: finding for finding in conclusion.per_dimension}
    outputs = (pair.item.baseline_output, pair.item.candidate_output)
    verified = {
        name: shows_difference((finding.evidence_baseline, finding.evidence_candidate), *outputs)
        for name, finding in by_name.items()
        if finding.verdict == "candidate_worse"
    }
    return RegressionAnswer(
        order=1,
        findings=[by_name[name].model_copy(update={"verified": verified.get(name)}) for name in requested],
        conclusion=conclusion,
        mismatches=_mismatches(conclusion, pair, rules, complete=not unrequested),
        unrequested=unrequested,
    )


def _plain(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that say something, with words as records have them."""
    plain = {
        key: dimension_name(value) if key in _WORDS and isinstance(value, str) else value
        for key, value in members.items()
        if value is not None and key != "verified"
    }
    if plain.get("verdict") in ("same", "candidate_better"):
        plain.pop("impact", None)
    return plain


def _mismatches(conclusion: Conclusion, pair: JudgedPair, rules: ShipRules, *, complete: bool) -> list[Mismatch]:
    """Name the fields of a conclusion that do not follow from the findings; if not `complete`, only its length."""
    worse = {finding.dimension: finding.impact for finding in conclusion.per_dimension if finding.impact is not None}
    right: dict[Mismatch, object] = {
        "regression_detected": bool(worse),
        "regression_severity": severity_of(worse.values()),
        "ship_decision": decide(worse, pair.dimensions, ShipRules(one_low=rules.one_low))[0],
    }
    wrong = [name for name, value in right.items() if complete and getattr(conclusion, name) != value]
    too_long = len(conclusion.decision_basis.split()) > MAX_BASIS_WORDS
    return [*wrong, "decision_basis"] if too_long else wrong
