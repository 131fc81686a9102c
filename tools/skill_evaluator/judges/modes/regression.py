"""`judge regression`: pairs of outputs → questions in both orders, and the answer that a judge must give, exactly.

The keys of an answer stand in the order in which the judge writes: findings and their evidence before the decision. An
answer that is not whole (a dimension left out or repeated, a word off the scale) counts for nothing and says why. What
says nothing costs nothing: another key or dimension, capital letters, null for no evidence, the impact of what is no
worse.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import AliasChoices, BeforeValidator, Field, StrictBool, ValidationError, model_validator

from skill_evaluator.errors import ConfigError, JudgeError
from skill_evaluator.files import FrozenModel, first_problem
from skill_evaluator.identifiers import Label
from skill_evaluator.judges.asking.items import JudgedItem, JudgedText
from skill_evaluator.judges.asking.questions import (
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
from skill_evaluator.judges.asking.reading import Unscored, last_whole
from skill_evaluator.judges.asking.results import Order
from skill_evaluator.judges.modes.ship_rules import (
    IMPACTS,
    Dimension,
    Finding,
    Impact,
    RegressionSeverity,
    ShipDecision,
    ShipRules,
    blocking_sentence,
    dimension_name,
    dimensions_of,
)
from skill_evaluator.text import canonical_json, digest, nearest

ORDERS: tuple[Order, Order] = (1, 2)  # 1: the baseline stands first, 2: the candidate does
MOST_BASIS_WORDS = 40
_NAME_DIGITS = 12


def _names(value: Any) -> Any:
    return [name for name in value.split(",") if name.strip()] if isinstance(value, str) else value


class RegressionItem(JudgedItem):
    """A line: a prompt with the output in use and the new one. Without `id` a digest of the line names it.

    `regression_dimensions`, a list or a text with commas, are those of this pair, whatever the command asks about.
    `baseline_model` and `candidate_model` wrote the outputs, where that is known. `document` is shown after the prompt,
    and demands nothing of the outputs' form.
    """

    input: JudgedText = Field(min_length=1, validation_alias=AliasChoices("prompt", "input"))
    baseline_output: JudgedText = Field(min_length=1)
    candidate_output: JudgedText
    document: JudgedText = ""
    regression_dimensions: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    baseline_model: Label | None = None
    candidate_model: Label | None = None

    @property
    def shown(self) -> str:
        """The prompt with its document."""
        return f"{self.input}\n\n{self.document}" if self.document else self.input

    @property
    def digest(self) -> str:
        """The digest of all its texts; where the prompt ends does not matter."""
        texts = self.model_dump(mode="json", exclude={"document"})
        return digest(canonical_json({**texts, "input": self.shown}))

    @property
    def writers(self) -> list[str]:
        """Who wrote the outputs, as far as that is known."""
        return [name for name in (self.baseline_model, self.candidate_model) if name is not None]

    @model_validator(mode="before")
    @classmethod
    def _have_a_name(cls, line: Any) -> Any:
        if isinstance(line, dict) and "id" not in line:
            return {"id": digest(canonical_json(line)).removeprefix("sha256:")[:_NAME_DIGITS], **line}
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPair:
    """One pair as it is asked about: its texts, and the dimensions that are asked of it."""

    item: RegressionItem
    dimensions: tuple[Dimension, ...]

    @property
    def id(self) -> str:
        """The id of the item."""
        return self.item.id


def pairs_of(
    items: Mapping[str, RegressionItem], names: Sequence[str], preset: str, blocking: Collection[str]
) -> tuple[JudgedPair, ...]:
    """Return items with their dimensions: their own, else those that are named, else those of the preset.

    Raise ConfigError for an unknown preset, one named twice, and a blocking dimension that no item is asked about;
    JudgeError naming the item whose own dimensions are wrong.
    """
    pairs = []
    for item in items.values():
        own = item.regression_dimensions
        try:
            asked = dimensions_of(own or names, "default" if own else preset)
            mine = {dimension_name(name) for name in blocking} & {dimension.name for dimension in asked}
            dimensions = dimensions_of(own or names, "default" if own else preset, mine)
        except ConfigError as problem:
            raise JudgeError(f"item '{item.id}': {problem}") if own else problem from None
        pairs.append(JudgedPair(item=item, dimensions=dimensions))
    return tuple(pairs)


def refuse_unasked_blocking(pairs: Sequence[JudgedPair], blocking: Collection[str]) -> None:
    """Raise ConfigError for a blocking dimension that no pair is asked about: it would never block."""
    asked = {dimension.name: None for pair in pairs for dimension in pair.dimensions}
    for name in blocking:
        if dimension_name(name) not in asked:
            raise ConfigError(f"the blocking dimension '{name}' is not asked about {nearest(name, asked)}")


def _word(value: Any) -> Any:
    return dimension_name(value) if isinstance(value, str) else value


class DimensionFinding(FrozenModel):
    """What a judge finds in one dimension; the impact matters only where the candidate is worse."""

    dimension: Annotated[str, BeforeValidator(_word)]
    verdict: Annotated[Finding, BeforeValidator(_word)]
    evidence_baseline: str = ""
    evidence_candidate: str = ""
    impact: Annotated[Impact, BeforeValidator(_word)]

    @model_validator(mode="before")
    @classmethod
    def _without_what_says_nothing(cls, finding: Any) -> Any:
        if not isinstance(finding, dict):
            return finding
        written = {key: value for key, value in finding.items() if value is not None}
        harmless = _word(written.get("verdict")) in ("same", "candidate_better")
        return {**written, "impact": "low"} if harmless else written


class Conclusion(FrozenModel):
    """What a judge concludes from its findings; code decides again."""

    regression_detected: StrictBool
    regression_severity: Annotated[RegressionSeverity, BeforeValidator(_word)]
    ship_decision: Annotated[ShipDecision, BeforeValidator(_word)]
    ship_reason: str
    decision_basis: str = Field(description=f"at most {MOST_BASIS_WORDS} words")


class _Findings(FrozenModel):
    per_dimension: tuple[DimensionFinding, ...]


class RegressionAnswer(Conclusion, _Findings):
    """The whole answer of a regression judge: what it finds, then what it concludes, in this order."""


def read_answer(text: str, dimensions: Sequence[Dimension], judged: Sequence[str] = ()) -> RegressionAnswer | Unscored:
    """Read a judge's answer about these dimensions; of several in the text the last that is whole binds.

    So a verdict that the judge repeats from the texts it judges does not bind when its own comes after, and one that
    stands in a `judged` text never does.
    """
    return last_whole(text, lambda value: _checked(value, dimensions), judged)


def _checked(value: object, dimensions: Sequence[Dimension]) -> RegressionAnswer | Unscored:
    wanted = {dimension.name for dimension in dimensions}
    if isinstance(value, dict) and isinstance(findings := value.get("per_dimension"), list):
        names = (_word(finding.get("dimension")) if isinstance(finding, dict) else None for finding in findings)
        mine = [one for one, name in zip(findings, names, strict=True) if not isinstance(name, str) or name in wanted]
        value = {**value, "per_dimension": mine}
    try:
        answer = RegressionAnswer.model_validate(value)
    except ValidationError as problem:
        off_scale = problem.errors(include_url=False)[0]["type"] == "literal_error"
        return Unscored(reason="off_scale" if off_scale else "wrong_format", detail=first_problem(problem))
    given = Counter(finding.dimension for finding in answer.per_dimension)
    if repeated := [name for name, count in given.items() if count > 1]:
        return Unscored(reason="repeated_dimension", detail=", ".join(repeated))
    if missing := [dimension.name for dimension in dimensions if dimension.name not in given]:
        return Unscored(reason="missing_dimension", detail=", ".join(missing))
    return answer


def regression_questions(
    pairs: Sequence[JudgedPair], rules: ShipRules, seed: int
) -> tuple[list[JudgeQuestion], JudgePrompt]:
    """Return two questions a pair, called `<pair>/1` and `<pair>/2`, with the prompt they are put by."""
    prompt = load_prompt("regression")
    questions = []
    for pair in pairs:
        mark = mark_of(seed, pair.item.digest)
        form = regression_form(pair.dimensions)
        system = fill(prompt.instructions, _instructions(pair.dimensions, rules, form))
        outputs = [
            ("baseline", delimited("baseline", pair.item.baseline_output, mark)),
            ("candidate", delimited("candidate", pair.item.candidate_output, mark)),
        ]
        for order in ORDERS:
            (first_role, first), (second_role, second) = outputs if order == 1 else reversed(outputs)
            slots = {
                "mark": mark,
                "prompt": delimited("prompt", pair.item.shown, mark),
                "first_role": first_role,
                "first": first,
                "second_role": second_role,
                "second": second,
            }
            questions.append(
                JudgeQuestion(
                    case_id=question_id(pair.id, order), system=system, user=fill(prompt.texts, slots), schema=form[0]
                )
            )
    return questions, prompt


def question_id(pair: str, order: int) -> str:
    """Return the id under which a judging has the question of a pair in an order."""
    return f"{pair}/{order}"


def regression_form(dimensions: Sequence[Dimension]) -> Form:
    """Return the form of an answer; the order of its keys has the judge look before it concludes."""
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
    basis = {**TEXT[0], "description": f"at most {MOST_BASIS_WORDS} words"}
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


def _instructions(dimensions: Sequence[Dimension], rules: ShipRules, form: Form) -> dict[str, str]:
    low = (
        ["several `low`: `review_required`", "a single `low`: `ship`"]
        if rules.one_low == "ship"
        else ["any `low`: `review_required`"]
    )
    lines = ["any impact `high`: `block`", blocking_sentence(dimensions), "any `medium`: `review_required`", *low]
    return {
        "rules": "\n".join(f"  - {line}" for line in [*lines, "nothing of that: `ship`"]),
        "dimensions": "\n".join(f"- `{dimension.name}`: {dimension.question}" for dimension in dimensions),
        "form": form_text(form),
    }
