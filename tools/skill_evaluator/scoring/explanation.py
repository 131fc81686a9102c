"""One answer, leaf by leaf: what was compared with what, how, and what came of it.

A case and its calls in, an `Explanation` out, with the leaves that every metric reads and, for arrays, which item met
which and why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skill_evaluator.comparing.comparison import AlignedArray, At, ComparedLeaf, LeafOutcome, align_arrays
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.comparing.sides import identities, key_value, pairs_by_best
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.base import Comparison, apply_metrics
from skill_evaluator.metrics.diagnosis.per_field import text_similarity
from skill_evaluator.parsing import Parsed
from skill_evaluator.parsing.answer import parse_output
from skill_evaluator.records.record import NOT_RUN, SCORED
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.scoring.answers import TOO_COSTLY
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.text import canonical_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPair:
    """Two array items that were compared with each other, by index, and why; None where one had no counterpart."""

    truth: int | None
    output: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMatch:
    """How the items of one array found each other; `at` is its path with the indexes of the arrays around it."""

    at: str
    path: str
    rule: FieldRule
    items: tuple[ItemPair, ...]


class ArrayMatches:
    """How every array of one comparison was aligned, and the `place` of its rows."""

    def __init__(self, arrays: Sequence[AlignedArray], rows: Sequence[ComparedLeaf], plan: FieldPlan) -> None:
        self.matches: list[ArrayMatch] = []
        self._in_truth: dict[At, str] = {}
        self._in_output: dict[At, str] = {}
        self._leaves: Counter[tuple[str, At]] = Counter()
        for row in rows:
            side = "truth" if row.truth_at is not None else "output"
            for item in _items(row.truth_at if row.truth_at is not None else row.output_at or ()):
                self._leaves[side, item] += 1
                self._leaves["right", item] += row.outcome == "right"
        for array in arrays:  # the outer ones first, whose items the inner ones are in
            rule = array.field.array_rule(*array.truth, *array.output)
            longer = len(array.truth_at) >= len(array.output_at)  # the shorter lacks an item
            names, at = (self._in_truth, array.truth_at) if longer else (self._in_output, array.output_at)
            place = self._name(at, names)
            reasons = _Reasons(rule, array.field.path, array.truth, array.output, plan)
            items = []
            for left, right in array.pairs:
                in_truth, in_output = (*array.truth_at, left or 0), (*array.output_at, right or 0)
                leaves = self._leaves["truth", in_truth] + self._leaves["output", in_output]
                agreed = f"{self._leaves['right', in_truth]} of {leaves} leaves right"
                items.append(ItemPair(truth=left, output=right, why=reasons.why(left, right, agreed)))
                indexes = ("–" if index is None else str(index) for index in (left, right))
                name = f"{place}[{left if left == right else '→'.join(indexes)}]"
                if left is not None:
                    self._in_truth[in_truth] = name
                if right is not None:
                    self._in_output[in_output] = name
            self.matches.append(ArrayMatch(at=place, path=array.field.path, rule=rule, items=tuple(items)))

    def place(self, row: ComparedLeaf) -> str:
        """Return a row's path with the array indexes of truth and output, as in `items[2→0].amount`."""
        if row.truth_at is not None:
            return self._name(row.truth_at, self._in_truth)
        return self._name(row.output_at or (), self._in_output)

    @staticmethod
    def _name(at: At, names: Mapping[At, str]) -> str:
        item = next(_items(at), ())
        place = names.get(item, "")
        for key in at[len(item) :]:
            place = f"{place}.{key}" if place else str(key)
        return place


class _Reasons:
    """Why two items of one array met, or why one met none."""

    def __init__(self, rule: FieldRule, path: str, truth: list[Any], output: list[Any], plan: FieldPlan) -> None:
        field = plan.field(path)
        self._keys = rule.key
        self._how = "best" if pairs_by_best(rule, field) else rule.align
        self._items = (truth, output)
        self._identities = [identities(items, rule, field) if rule.align == "key" else [] for items in self._items]
        self._times = [Counter(identities) for identities in self._identities]

    def why(self, left: int | None, right: int | None, agreed: str) -> str:
        """Say it in words; `agreed` is how many leaves of the two are right, and is read where both are there."""
        other = "output" if right is None else "truth"
        alone = left is None or right is None
        if self._how == "key":
            side, index = (0, left) if left is not None else (1, right or 0)
            key = ", ".join(
                f"{name} {canonical_json(key_value(self._items[side][index], name))}" for name in self._keys
            )
            counts = [times[self._identities[side][index]] for times in self._times]
            if alone:
                return f"the {other} has fewer items of {key}" if min(counts) else f"the {other} has none of {key}"
            return f"{key}, which is there more than once; {agreed}" if max(counts) > 1 else key
        if self._how == "ordered":
            return f"the {other} ends before" if alone else "the same place"
        if self._how == "set":
            return f"no equal item left in the {other}" if alone else "equal"
        return f"left over: the {other} has fewer items" if alone else f"best assignment: {agreed}"


def _items(at: At) -> Iterator[At]:
    """Yield the array items that a place is in, the innermost first."""
    for length in range(len(at), 0, -1):
        if isinstance(at[length - 1], int):
            yield at[:length]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one planned call: `scored`, `unparseable`, or why there is nothing to parse."""

    index: int
    outcome: str
    replicate: Replicate | None = None
    parsed: Parsed | None = None
    too_costly: bool = False

    @property
    def text(self) -> str | None:
        """The raw text, if the model said anything."""
        return self.replicate.completion.text if self.replicate and self.replicate.completion else None

    @property
    def reason(self) -> str | None:
        """Why it was not scored, in the stable word that records count."""
        if self.too_costly:
            return TOO_COSTLY
        failure = self.replicate.failure if self.replicate else None
        return failure.reason if failure else self.parsed.problem if self.parsed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One aligned leaf; `at` is its path with the array indexes of truth and output, `items[2→0].amount`.

    `similarity` is that of two free texts, by the measure the field declares.
    """

    at: str
    row: ComparedLeaf
    outcome: LeafOutcome | Literal["unscored"]
    similarity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One replicate of one case. Without a parsed output there are no leaves, arrays or schema errors."""

    case: Case
    answers: tuple[Answer, ...]
    answer: Answer
    metrics: Mapping[str, float | None]
    leaves: tuple[Leaf, ...] = ()
    arrays: tuple[ArrayMatch, ...] = ()
    schema_errors: tuple[str, ...] = ()


def read_answers(
    component: Component, case: Case, replicates: Iterable[Replicate | None], scorer: Scorer
) -> list[Answer]:
    """Say what became of each call of a case, and parse its answer if there is one that is not too costly to score."""
    answers = []
    for index, replicate in enumerate(replicates):
        if replicate is None or replicate.completion is None or replicate.failure is not None:
            kind = replicate.failure.kind if replicate and replicate.failure else NOT_RUN
            answers.append(Answer(index=index, outcome=kind, replicate=replicate))
            continue
        text = replicate.completion.text
        scored = scorer.scored(case.id, text)
        too_costly = scored.problem == TOO_COSTLY
        parsed = None if too_costly else parse_output(text, component.output, case.options)
        answers.append(
            Answer(index=index, outcome=scored.outcome, replicate=replicate, parsed=parsed, too_costly=too_costly)
        )
    return answers


def explain_answer(
    component: Component,
    case: Case,
    answers: Sequence[Answer],
    index: int,
    scores: Mapping[str, float | None] | None = None,
) -> Explanation:
    """Compare one answer of a case with its truth and keep every step; `scores` are those that it is known to have."""
    answer = answers[index]
    if answer.outcome != SCORED or answer.parsed is None:
        answered = answer.text is not None
        metrics = {name: metric.unparseable if answered else None for name, metric in component.metrics.items()}
        return Explanation(case=case, answers=tuple(answers), answer=answer, metrics=scores or metrics)
    output = answer.parsed.value
    comparison = Comparison(case.truth, output, component.plan, component.conforms)
    arrays = ArrayMatches(align_arrays(case.truth, output, component.plan), comparison.rows, component.plan)
    return Explanation(
        case=case,
        answers=tuple(answers),
        answer=answer,
        metrics=scores or apply_metrics(component.metrics, comparison, labelled=case.labelled),
        leaves=tuple(
            Leaf(
                at=arrays.place(row),
                row=row,
                outcome=row.outcome if case.labelled else "unscored",
                similarity=text_similarity(row),
            )
            for row in comparison.rows
        ),
        arrays=tuple(arrays.matches) if case.labelled else (),
        schema_errors=tuple(component.schema_errors(output)),
    )
