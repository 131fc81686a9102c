"""`judge regression`: make the questions on pairs of outputs in both orders, and read the findings of a judge."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AliasChoices, BeforeValidator, Field, NonNegativeInt, StrictBool, ValidationError, model_validator

from skill_evaluator.errors import ConfigError, JudgeError
from skill_evaluator.files import FrozenModel, first_problem
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.modes import ship_rules
from skill_evaluator.judges.modes.ship_rules import Dimension, ShipRules
from skill_evaluator.judges.prompting import forms
from skill_evaluator.judges.prompting.questions import (
    JudgedItem,
    JudgedText,
    JudgePrompt,
    JudgeQuestion,
    delimited,
    fill,
    load_prompt,
    mark_of,
)
from skill_evaluator.judges.prompting.reading import Unscored, UnscoredReason, last_valid_verdict, shows_difference
from skill_evaluator.judges.prompting.results import ORDERS, JudgeText, Order
from skill_evaluator.text import canonical_json, digest

MAX_BASIS_WORDS = 40
_NAME_DIGITS = 12
_NAME_KEYS = ("dimension", "verdict", "impact", "regression_severity", "ship_decision")


class RegressionItem(JudgedItem):
    """A line of a file of pairs: a prompt with two outputs. The default `id` is a digest of the line.

    `regression_dimensions`, a list or a text with commas, replaces the command's dimensions for this pair.
    `baseline_model` and `candidate_model` name the models that wrote the outputs, if known.
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
        """The known models that wrote the outputs."""
        return [name for name in (self.baseline_model, self.candidate_model) if name is not None]

    @property
    def identical(self) -> bool:
        """Whether both outputs are the same text apart from outer white space; this needs no judge."""
        return self.baseline_output.strip() == self.candidate_output.strip()

    @model_validator(mode="before")
    @classmethod
    def _have_a_name(cls, line: Any) -> Any:
        if isinstance(line, dict) and "id" not in line:
            return {"id": digest(canonical_json(line)).removeprefix("sha256:")[:_NAME_DIGITS], **line}
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """One item, the dimensions in which its outputs are compared, and the question in each order."""

    item: RegressionItem
    dimensions: tuple[Dimension, ...]
    questions: tuple[JudgeQuestion, ...] = ()


def pairs_of(
    items: Mapping[str, RegressionItem], names: Sequence[str], preset: str, blocking: Collection[str]
) -> list[JudgedPair]:
    """Pair each item with its own dimensions, else `names`, else the preset's. Raise ConfigError or JudgeError."""
    default = ship_rules.dimensions_of(names, preset, blocking)
    pairs = []
    for item in items.values():
        dimensions = default
        if any(name.strip() for name in item.regression_dimensions):
            try:
                dimensions = ship_rules.dimensions_of(item.regression_dimensions, blocking=blocking)
            except ConfigError as problem:
                raise JudgeError(f"item '{item.id}': {problem}") from None
        pairs.append(JudgedPair(item=item, dimensions=dimensions))
    return pairs


def with_questions(pairs: Sequence[JudgedPair], rules: ShipRules, seed: int) -> tuple[list[JudgedPair], JudgePrompt]:
    """Return the pairs with their questions, and the prompt. Identical outputs have no question."""
    prompt = load_prompt("regression")
    judged_pairs = []
    for pair in pairs:
        questions = list[JudgeQuestion]()
        mark, form = mark_of(seed, pair.item.digest), regression_form(pair.dimensions)
        system = fill(prompt.instructions, _instructions(pair.dimensions, rules, form))
        outputs = {"baseline": pair.item.baseline_output, "candidate": pair.item.candidate_output}
        for order in () if pair.item.identical else ORDERS:
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
            questions.append(JudgeQuestion(case_id=f"{pair.item.id}/{order}", system=system, user=user, schema=form[0]))
        judged_pairs.append(replace(pair, questions=tuple(questions)))
    return judged_pairs, prompt


def _instructions(dimensions: Sequence[Dimension], rules: ShipRules, form: forms.Form) -> dict[str, str]:
    low = ["any `low`: `review_required`"]
    if rules.one_low == "ship":
        low = ["several `low`: `review_required`", "a single `low`: `ship`"]
    lines = [
        "any impact `high`: `block`",
        ship_rules.blocking_sentence(dimensions),
        "any `medium`: `review_required`",
        *low,
    ]
    return {
        "rules": "\n".join(f"  - {line}" for line in [*lines, "nothing of that: `ship`"]),
        "dimensions": "\n".join(f"- `{dimension.name}`: {dimension.question}" for dimension in dimensions),
        "form": forms.as_json(form),
    }


def regression_form(dimensions: Sequence[Dimension]) -> forms.Form:
    """Return the form of a judge's output. Findings precede the decision, so that the judge writes them first."""
    names = [dimension.name for dimension in dimensions]
    finding, shown = forms.object_of(
        {
            "dimension": forms.one_of(names),
            "verdict": forms.one_of(get_args(ship_rules.Finding)),
            "evidence_baseline": forms.TEXT,
            "evidence_candidate": forms.TEXT,
            "impact": forms.one_of(ship_rules.IMPACTS),
        }
    )
    basis = {**forms.TEXT[0], "description": f"at most {MAX_BASIS_WORDS} words"}
    return forms.object_of(
        {
            "per_dimension": ({"type": "array", "items": finding}, [{**shown, "dimension": name} for name in names]),
            "regression_detected": ({"type": "boolean"}, "a boolean: true | false"),
            "regression_severity": forms.one_of(get_args(ship_rules.RegressionSeverity)),
            "ship_decision": forms.one_of(get_args(ship_rules.ShipDecision)),
            "ship_reason": forms.TEXT,
            "decision_basis": (basis, forms.TEXT[1]),
        }
    )


class DimensionFinding(FrozenModel):
    """A judge's verdict in one dimension; `impact` and `verified` are null unless the candidate is worse."""

    dimension: str
    verdict: ship_rules.Finding
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
    """A judge's own conclusion from its findings, which code only compares with its decision."""

    regression_detected: StrictBool
    regression_severity: ship_rules.RegressionSeverity
    ship_decision: ship_rules.ShipDecision
    ship_reason: JudgeText
    decision_basis: JudgeText = Field(description=f"at most {MAX_BASIS_WORDS} words")
    per_dimension: tuple[DimensionFinding, ...] = Field(default=(), exclude=True)


Mismatch = Literal["regression_detected", "regression_severity", "ship_decision", "decision_basis"]


class RegressionAnswer(FrozenModel):
    """One output of a judge: in order 1 the baseline was shown first, in order 2 the candidate.

    `unscored` is the reason why it does not count. `mismatches` lists the fields of the conclusion that contradict the
    findings, and `decision_basis` if it is too long. `unrequested` lists further dimensions, which are ignored.
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
    """Read a judge's output on a pair: the last complete answer that is not copied from a judged text."""
    judged = (pair.item.input, pair.item.baseline_output, pair.item.candidate_output)
    answer = last_valid_verdict(text, lambda value: _check_answer(value, pair, rules), judged)
    if isinstance(answer, Unscored):
        return RegressionAnswer(order=order, replicate=replicate, unscored=answer.reason, detail=answer.detail)
    return answer.model_copy(update={"order": order, "replicate": replicate})


def _check_answer(value: object, pair: JudgedPair, rules: ShipRules) -> RegressionAnswer | Unscored:
    requested = [dimension.name for dimension in pair.dimensions]
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


def _normalized(members: Mapping[str, Any]) -> dict[str, Any]:
    plain = {
        key: ship_rules.dimension_name(value) if key in _NAME_KEYS and isinstance(value, str) else value
        for key, value in members.items()
        if value is not None and key != "verified"
    }
    if plain.get("verdict") in ("same", "candidate_better"):
        plain.pop("impact", None)
    return plain


def _mismatches(conclusion: Conclusion, pair: JudgedPair, rules: ShipRules, *, complete: bool) -> list[Mismatch]:
    """List the fields of a conclusion that contradict the findings. If not `complete`, check only its length."""
    worse = {finding.dimension: finding.impact for finding in conclusion.per_dimension if finding.impact is not None}
    expected: dict[Mismatch, object] = {
        "regression_detected": bool(worse),
        "regression_severity": ship_rules.severity_of(worse.values()),
        "ship_decision": ship_rules.decide(worse, pair.dimensions, ShipRules(one_low=rules.one_low))[0],
    }
    mismatches = [name for name, value in expected.items() if complete and getattr(conclusion, name) != value]
    too_long = len(conclusion.decision_basis.split()) > MAX_BASIS_WORDS
    return [*mismatches, "decision_basis"] if too_long else mismatches
