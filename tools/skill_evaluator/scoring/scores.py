"""Public API for other programs: score one output against one ground truth. It is as stable as `Library`."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from enum import Enum
from typing import Any, Final

from skill_evaluator.comparing.comparison import ComparedLeaf, LeafOutcome, ValuePath
from skill_evaluator.comparing.declarations import field_rules
from skill_evaluator.comparing.field_plan import FieldPlan, plan_fields
from skill_evaluator.display import value_text
from skill_evaluator.errors import ComponentError, SkillEvaluatorError
from skill_evaluator.library.contract import Contract
from skill_evaluator.metrics import DEFAULT_METRICS, accuracy_metrics
from skill_evaluator.metrics.accuracy import Comparison, apply_metrics
from skill_evaluator.parsing import ANY_VALUE, OutputForm, ParseProblem, parse_output
from skill_evaluator.text import key_path

_WHERE = "the arguments"
_TOO_LARGE = 10**4300
_PLAIN = frozenset({str, bool, type(None)})
FieldSettings = Mapping[str, Mapping[str, Any]]


class _NoTruth(Enum):
    NO_TRUTH = "no ground truth"


NO_TRUTH: Final = _NoTruth.NO_TRUTH
"""Marks a missing ground truth (None is the truth `null`): only metrics that need none are measured."""


class NotJsonError(SkillEvaluatorError):
    """A ground truth or output is not JSON or is nested too deeply to compare, or a raw text is not a str."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRow:
    """One value of the ground truth or output, with its path, the compared values, and the outcome (`verdict`).

    `path` names the field (`lines[].price`). `truth_at` and `output_at` locate the value (`("lines", 2, "price")`) and
    are None if it is absent. `compare` is the comparator's name. `weight` is the weight in `field_level_f1`, or 0 for
    an excluded value (free text without a threshold).
    """

    path: str
    truth_at: ValuePath | None
    output_at: ValuePath | None
    truth: Any
    output: Any
    compare: str
    weight: float
    verdict: LeafOutcome

    def __str__(self) -> str:
        """Describe the value in one line, for a test message."""
        truth, output = value_text(self.truth), value_text(self.output)
        message = {
            "right": f"{truth} is expected, and {output} is right",
            "missing": f"{truth} is expected",
            "extra": f"{output} is not expected",
        }.get(self.verdict, f"{truth} is expected, not {output}")
        paths = [key_path(at) or "the top" for at in (self.truth_at, self.output_at) if at is not None]
        location = paths[0] if len(set(paths)) == 1 else f"{paths[0]}, in the output {paths[1]}"
        return f"{self.verdict} at {location}: {message} (compared as {self.compare})"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputScores:
    """The scores of one output.

    `scores` has every metric by name: a number in [0, 1], or None if the metric was not measured. `valid` is None if
    there is no schema. If a raw text was scored, `found` is the form of the output in the text, such as `fenced`. If
    the raw text has no output, `found` is None and `problem` is the reason. `rows` has one row per compared value, in
    the order of the ground truth. `rows` is empty without a ground truth or an output.
    """

    scores: Mapping[str, float | None]
    valid: bool | None = None
    schema_errors: tuple[str, ...] = ()
    found: OutputForm | None = None
    problem: ParseProblem | None = None
    rows: tuple[LeafRow, ...] = field(default=(), repr=False)

    @property
    def mistakes(self) -> tuple[LeafRow, ...]:
        """The rows that lower the score: rows that are not right and have a weight above 0."""
        return tuple(row for row in self.rows if row.verdict != "right" and row.weight)

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes as dicts, lists and scalars for `json.dumps`. The values are not copied."""
        return {**_members(self), "scores": dict(self.scores), "rows": [_members(row) for row in self.rows]}


class OutputScorer:
    """A schema and field settings, compiled once for any number of outputs.

    Scoring raises NotJsonError if a ground truth or output is not JSON or is nested too deeply.

    >>> scorer = OutputScorer({"properties": {"total": {"type": "number"}}}, {"total": {"tolerance": 0.01}})
    >>> scorer.score({"total": 9.5}, {"total": 9.504}).scores["field_level_f1"]
    1.0
    >>> scorer.score_text({"total": 9.5}, 'Sure: {"total": "9.5"}').schema_errors
    ('/total: "9.5" is not of type "number"',)
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | None = None,
        fields: FieldSettings | None = None,
        metrics: Iterable[str] | None = None,
    ) -> None:
        """Compile schema, fields and metrics. Raise SkillEvaluatorError if one is invalid.

        `fields` has settings by path, as in evals/datasets.json. Without a schema, each requires `compare` or `align`.
        `metrics` are by default the standard metrics, with `schema_valid` only if there is a schema.
        """
        self._contract = None if schema is None else Contract(schema, "the schema argument")
        self._plan = _plan(schema, fields or {})
        if metrics is None:
            metrics = [name for name in DEFAULT_METRICS if schema is not None or name != "schema_valid"]
        self._metrics = accuracy_metrics([metrics] if isinstance(metrics, str) else metrics, _WHERE)
        if schema is None and "schema_valid" in self._metrics:
            raise ComponentError(f"the metric 'schema_valid' in {_WHERE} requires a schema")

    def score(self, truth: Any, output: Any) -> OutputScores:
        """Score a parsed output, which may be any JSON value: a `str` is a JSON string. `truth` may be `NO_TRUTH`."""
        return self._score(truth, output, None)

    def score_text(self, truth: Any, text: str) -> OutputScores:
        """Score the raw text of an output: JSON alone, in a code fence, or in other text. `truth` may be `NO_TRUTH`."""
        if not isinstance(text, str):
            kind = type(text).__name__
            raise NotJsonError(f"the text of the output is a {kind}, not a str; use score_output for a parsed output")
        expected = ANY_VALUE if self._contract is None else self._contract.expected
        parsed = parse_output(text, "json", (), expected.or_type_of(truth))
        if parsed.form is None:
            return OutputScores(
                scores={name: metric.unparseable for name, metric in self._metrics.items()},
                valid=None if self._contract is None else False,
                problem=parsed.problem,
            )
        return self._score(truth, parsed.value, parsed.form)

    def _score(self, truth: Any, output: Any, form: OutputForm | None) -> OutputScores:
        labelled, name = truth is not NO_TRUTH, "output"
        try:
            if form is None:
                _refuse_non_json(output, "output")
            errors = [] if self._contract is None else self._contract.errors(output)
            name, truth = "truth", truth if labelled else None
            _refuse_non_json(truth, "truth")
            name = "truth or output"
            comparison = Comparison(truth, output, self._plan, not errors)
            return OutputScores(
                scores=apply_metrics(self._metrics, comparison, labelled=labelled),
                valid=None if self._contract is None else not errors,
                schema_errors=tuple(errors),
                found=form,
                rows=tuple(map(_row_of, comparison.rows)) if labelled else (),
            )
        except RecursionError:
            raise NotJsonError(f"{name} is nested too deeply to be compared") from None


def score_output(
    truth: Any,
    output: Any,
    schema: Mapping[str, Any] | None = None,
    fields: FieldSettings | None = None,
    metrics: Iterable[str] | None = None,
) -> OutputScores:
    """Score one parsed output. For many outputs of one schema, make an `OutputScorer`.

    >>> result = score_output({"total": 9.5, "paid": True}, {"total": 9.4, "paid": True})
    >>> result.scores["field_level_f1"]
    0.5
    >>> print(*result.mistakes)
    wrong at total: 9.5 is expected, not 9.4 (compared as number)
    """
    return OutputScorer(schema, fields, metrics).score(truth, output)


def score_text(
    truth: Any,
    text: str,
    schema: Mapping[str, Any] | None = None,
    fields: FieldSettings | None = None,
    metrics: Iterable[str] | None = None,
) -> OutputScores:
    """Score the raw text of one output. For many outputs of one schema, make an `OutputScorer`.

    >>> score_text({"total": 9.5}, "I cannot read it.").problem
    'prose'
    """
    return OutputScorer(schema, fields, metrics).score_text(truth, text)


def _plan(schema: Mapping[str, Any] | None, fields: FieldSettings) -> FieldPlan:
    rules = field_rules(fields, _WHERE) if fields else {}
    for path, rule in rules.items() if schema is None else ():
        if rule.compare is None and rule.align is None:
            raise ComponentError(f"fields.{path} in {_WHERE} requires `compare` or `align`, since there is no schema")
    return plan_fields(schema, rules, _WHERE)


def _refuse_non_json(value: Any, path: str) -> None:
    """Raise NotJsonError if a part of a value is not JSON, such as NaN, a tuple or a key 1; name its path."""
    if isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str):
                raise NotJsonError(f"the key {key!r} of {path} is not a str; pass values as json.loads returns them")
            if child.__class__ not in _PLAIN:
                _refuse_non_json(child, f"{path}.{key}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if child.__class__ not in _PLAIN:
                _refuse_non_json(child, f"{path}[{index}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise NotJsonError(f"{path} is {value}, which is not a JSON value")
    elif isinstance(value, int) and abs(value) >= _TOO_LARGE:
        raise NotJsonError(f"{path} is an integer of more than 4,300 digits, which json.loads does not read")
    elif not (value is None or isinstance(value, str | int)):
        raise NotJsonError(
            f"{path} is a {type(value).__name__}, not a JSON value; pass values as json.loads returns them"
        )


def _row_of(leaf: ComparedLeaf) -> LeafRow:
    rule = leaf.rule
    return LeafRow(
        path=leaf.path,
        truth_at=leaf.truth_at,
        output_at=leaf.output_at,
        truth=leaf.truth,
        output=leaf.output,
        compare=rule.compare or "exact",
        weight=rule.weight if rule.counts else 0.0,
        verdict=leaf.outcome,
    )


def _members(instance: LeafRow | OutputScores) -> dict[str, Any]:
    members = {member.name: getattr(instance, member.name) for member in dataclass_fields(instance)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in members.items()}
