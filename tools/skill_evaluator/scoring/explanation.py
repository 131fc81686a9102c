"""Which item of an array met which, and why: the steps of an alignment, for people.

Walks truth and output side by side as comparing them does, and asks the same `align`.

One answer, leaf by leaf: what was compared with what, how, and what came of it; which array item met which.

A case and what became of its calls in, an `Explanation` out. The rows are those every metric reads.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from skill_evaluator.comparing.comparison import At, ComparedLeaf, align
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.comparing.leaves import Lexicon, pairs_by_best
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.base import Comparison, apply_metrics
from skill_evaluator.metrics.diagnosis.per_field import text_similarity
from skill_evaluator.parsing import Output, Parsed
from skill_evaluator.parsing.answer import parse_output
from skill_evaluator.records.strict_score import SCORED, UNPARSEABLE
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.text import canonical_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Two array items that were compared with each other, by index; None where one had no counterpart. And why."""

    truth: int | None
    output: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayMatch:
    """How the items of one array found each other; `at` is its path with the indexes of the arrays around it."""

    at: str
    path: str
    rule: FieldRule
    items: tuple[Met, ...]


class ArrayMatches:
    """Every array of one comparison. First `walk` the two values, then read `found` and ask for the `place` of rows."""

    def __init__(self, plan: FieldPlan, rows: Sequence[ComparedLeaf]) -> None:
        self.found: list[ArrayMatch] = []
        self._plan = plan
        self._in_truth: dict[At, str] = {}
        self._in_output: dict[At, str] = {}
        self._leaves: Counter[tuple[str, At]] = Counter()
        for row in rows:
            side = "truth" if row.truth_at is not None else "output"
            for item in _items(row.truth_at if row.truth_at is not None else row.output_at or ()):
                self._leaves[side, item] += 1
                self._leaves["right", item] += row.verdict == "right"

    def place(self, row: ComparedLeaf) -> str:
        """A row's path with the array indexes of truth and output: `items[2→0].amount`; one index if they agree."""
        at, known = (row.truth_at, self._in_truth) if row.truth_at is not None else (row.output_at, self._in_output)
        at = at or ()
        item = next(_items(at), ())
        place = known.get(item, "")
        for key in at[len(item) :]:
            place = f"{place}.{key}" if place else str(key)
        return place

    def walk(self, truth: Any, output: Any, path: str, place: str, truth_at: At, output_at: At) -> None:
        """Note how each array in two values is aligned."""
        if path in self._plan.leaves:
            return
        if isinstance(truth, dict) or isinstance(output, dict):
            left, right = (side if isinstance(side, dict) else {} for side in (truth, output))
            for key in {**left, **right}:
                below, there = self._plan.below(path, key), f"{place}.{key}" if place else key
                self.walk(left.get(key), right.get(key), below, there, (*truth_at, key), (*output_at, key))
        if isinstance(truth, list) or isinstance(output, list):
            lefts, rights = (side if isinstance(side, list) else [] for side in (truth, output))
            self._walk_items(lefts, rights, path, place, truth_at, output_at)

    def _walk_items(
        self, truth: list[Any], output: list[Any], path: str, place: str, truth_at: At, output_at: At
    ) -> None:
        rule = self._plan.array(path, truth + output)
        pairs = list(align(truth, output, path, self._plan))
        reasons = _Reasons(rule, path, truth, output, self._plan)
        items = []
        for left, right in pairs:
            agreed = "" if left is None or right is None else self._agreed((*truth_at, left), (*output_at, right))
            items.append(Met(truth=left, output=right, why=reasons.why(left, right, agreed)))
        self.found.append(ArrayMatch(at=place, path=path, rule=rule, items=tuple(items)))
        for left, right in pairs:
            there = f"{place}[{_index(left, right)}]"
            in_truth = truth_at if left is None else (*truth_at, left)
            in_output = output_at if right is None else (*output_at, right)
            if left is not None:
                self._in_truth[in_truth] = there
            if right is not None:
                self._in_output[in_output] = there
            left_item = None if left is None else truth[left]
            right_item = None if right is None else output[right]
            self.walk(left_item, right_item, f"{path}[]", there, in_truth, in_output)

    def _agreed(self, left: At, right: At) -> str:
        leaves = self._leaves["truth", left] + self._leaves["output", right]
        return f"{self._leaves['right', left]} of {leaves} leaves right"


class _Reasons:
    """Why two items of one array met, or why one met none."""

    def __init__(self, rule: FieldRule, path: str, truth: list[Any], output: list[Any], plan: FieldPlan) -> None:
        field, lexicon = plan.field(path), Lexicon(plan)
        self._keys = rule.key
        self._how = "best" if pairs_by_best(rule, field) else rule.align
        self._items = (truth, output)
        self._known_by = [
            lexicon.identities(items, rule, field) if rule.align == "key" else [] for items in self._items
        ]
        self._times = [Counter(identities) for identities in self._known_by]

    def why(self, left: int | None, right: int | None, agreed: str) -> str:
        """In words; `agreed` says how many leaves of the two are right."""
        other = "output" if right is None else "truth"
        alone = left is None or right is None
        if self._how == "key":
            return self._by_key(left, right, agreed)
        if self._how == "ordered":
            return f"the {other} ends before" if alone else "the same place"
        if self._how == "set":
            return f"no equal item left in the {other}" if alone else "equal"
        return f"left over: the {other} has fewer items" if alone else f"best assignment: {agreed}"

    def _by_key(self, left: int | None, right: int | None, agreed: str) -> str:
        side, index = (0, left) if left is not None else (1, right or 0)
        key = ", ".join(f"{name} {canonical_json(_value(self._items[side][index], name))}" for name in self._keys)
        counts = [times[self._known_by[side][index]] for times in self._times]
        if left is not None and right is not None:
            return f"{key}, which is there more than once; {agreed}" if max(counts) > 1 else key
        other = "output" if right is None else "truth"
        return f"the {other} has fewer items of {key}" if min(counts) else f"the {other} has none of {key}"


def _value(item: Any, key: str) -> Any:
    """The value of a key field, which may be dotted."""
    if isinstance(item, dict) and key in item:
        return item[key]
    for part in key.split("."):
        item = item.get(part) if isinstance(item, dict) else None
    return item


def _index(left: int | None, right: int | None) -> str:
    return str(left) if left == right else f"{'–' if left is None else left}→{'–' if right is None else right}"


def _items(at: At) -> Iterator[At]:
    """The array items that a place is in, the innermost first."""
    for length in range(len(at), 0, -1):
        if isinstance(at[length - 1], int):
            yield at[:length]


Verdict = Literal["right", "wrong", "missing", "extra", "unscored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one planned call: `scored`, `unparseable`, or why there is nothing to parse."""

    index: int
    outcome: str
    replicate: Replicate | None = None
    parsed: Parsed | None = None

    @property
    def text(self) -> str | None:
        """The raw text, if the model said anything."""
        return self.replicate.completion.text if self.replicate and self.replicate.completion else None

    @property
    def reason(self) -> str | None:
        """Why it was not scored, in the stable word that records count."""
        failure = self.replicate.failure if self.replicate else None
        return failure.reason if failure else self.parsed.problem if self.parsed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One aligned leaf; `at` is its path with the array indexes of truth and output, `items[2→0].amount`.

    `similarity` is that of two free texts, by the measure the field declares.
    """

    at: str
    row: ComparedLeaf
    verdict: Verdict
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


def read_answer(index: int, replicate: Replicate | None, output: Output, options: Sequence[str] = ()) -> Answer:
    """Name what became of a call, and parse its answer if there is one."""
    if replicate is None:
        return Answer(index=index, outcome="not_run")
    if replicate.completion is None or replicate.failure is not None:
        kind = replicate.failure.kind if replicate.failure else "not_run"
        return Answer(index=index, outcome=kind, replicate=replicate)
    parsed = parse_output(replicate.completion.text, output, options)
    outcome = SCORED if parsed.found else UNPARSEABLE
    return Answer(index=index, outcome=outcome, replicate=replicate, parsed=parsed)


def explain_answer(component: Component, case: Case, answers: Sequence[Answer], index: int) -> Explanation:
    """Compare one answer of a case with its truth and keep every step."""
    answer = answers[index]
    if answer.outcome != SCORED or answer.parsed is None:
        answered = answer.text is not None
        metrics = {name: metric.unparseable if answered else None for name, metric in component.metrics.items()}
        return Explanation(case=case, answers=tuple(answers), answer=answer, metrics=metrics)
    output = answer.parsed.value
    comparison = Comparison(case.truth, output, component.plan, component.conforms)
    arrays = ArrayMatches(component.plan, comparison.rows)
    arrays.walk(case.truth, output, "", "", (), ())
    return Explanation(
        case=case,
        answers=tuple(answers),
        answer=answer,
        metrics=apply_metrics(component.metrics, comparison, labelled=case.labelled),
        leaves=tuple(
            Leaf(
                at=arrays.place(row),
                row=row,
                verdict=row.verdict if case.labelled else "unscored",
                similarity=text_similarity(row),
            )
            for row in comparison.rows
        ),
        arrays=tuple(arrays.found) if case.labelled else (),
        schema_errors=tuple(component.schema_errors(output)),
    )
