"""The answers to a case as people look at them: one leaf by leaf, all grouped, one field of all, two runs side by side.

Outcomes, scores and standings are the scorer's or the record's; no score and no verdict comes of a view. Its leaves are
those that every metric reads, with, for arrays, which item met which and why.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal

from skill_evaluator.checks.declared import Check
from skill_evaluator.comparing.comparison import AlignedArray, At, ComparedLeaf, LeafOutcome, align_arrays
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.comparing.sides import identities, key_value, pairs_by_best, values_by_path
from skill_evaluator.errors import RunError
from skill_evaluator.library.cases import Case, parse_case_output
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.base import Comparison, apply_metrics
from skill_evaluator.metrics.diagnosis.field_profile import Standing
from skill_evaluator.metrics.diagnosis.per_field import text_similarity
from skill_evaluator.parsing import Parsed
from skill_evaluator.parsing.answer import split_reasoning
from skill_evaluator.records.record import NOT_RUN, PASSED_FROM, SCORED, UNPARSEABLE, CaseRecord, Record, check_path
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.answers import TOO_COSTLY, CaseScore
from skill_evaluator.scoring.checked import CheckedCase, CheckScore, CheckScores, with_checks
from skill_evaluator.stats import by_key
from skill_evaluator.text import ValueChange, canonical_json, count_leaves, differences, nearest_path

_LONGEST_MARKED = 200_000  # characters of an answer whose leaves a page marks
_MOST_LEAVES = 2_000  # of truth and output together
MOST_OUTPUTS = 8  # distinct ones of a case that its page has
_LONGEST_COMPARED = 50_000  # characters of an answer whose differences are worked out; more would take minutes


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
        """The raw text, if the model answered anything."""
        return self.replicate.completion.text if self.replicate and self.replicate.completion else None

    @property
    def beside(self) -> dict[str, str]:
        """The reasoning and the arguments of tool calls, if there are any."""
        if self.replicate is None or (made := self.replicate.completion) is None:
            return {}
        texts = {"reasoning": made.reasoning or split_reasoning(made.text)[0].strip(), "tool_call": made.tool_call}
        return {name: text for name, text in texts.items() if text}

    @property
    def scored(self) -> Parsed | None:
        """What was parsed, if that was scored."""
        return self.parsed if self.outcome == SCORED else None

    @property
    def reason(self) -> str | None:
        """Why it was not scored, in the stable word that records count."""
        if self.too_costly:
            return TOO_COSTLY
        failure = self.replicate.failure if self.replicate else None
        return failure.reason if failure else self.parsed.problem if self.parsed else None


def read_answers(
    component: Component,
    case: Case,
    replicates: Iterable[Replicate | None],
    outcome_of: Callable[[int, str], str] = lambda index, text: SCORED,
    longest: int | None = None,
) -> list[Answer]:
    """Say what became of each call of a case, and parse its answer unless it was too costly to score.

    `outcome_of` gives the outcome that a text had when it was scored. Texts longer than `longest` are left unread.
    """
    answers = []
    for index, replicate in enumerate(replicates):
        if replicate is None or replicate.completion is None or replicate.failure is not None:
            kind = replicate.failure.kind if replicate and replicate.failure else NOT_RUN
            answers.append(Answer(index=index, outcome=kind, replicate=replicate))
            continue
        text = replicate.completion.text
        outcome = outcome_of(index, text)
        parsed = None if longest and len(text) > longest else parse_case_output(component, case, text)
        too_costly = outcome == UNPARSEABLE and parsed is not None and parsed.found is not None
        if outcome == SCORED and parsed is not None and parsed.found is None:  # its contract was different then
            outcome = UNPARSEABLE
        kept = None if too_costly else parsed
        answers.append(Answer(index=index, outcome=outcome, replicate=replicate, parsed=kept, too_costly=too_costly))
    return answers


def _grouped(answers: Iterable[Answer], same: Callable[[Answer], Hashable]) -> list[list[Answer]]:
    """Return the answers that are the same together, the commonest first."""
    return sorted(by_key((same(answer), answer) for answer in answers).values(), key=len, reverse=True)


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
    """One replicate of one case. Without a parsed output there are no leaves, arrays or schema errors.

    `checks` are those that were held against it, with what each gave.
    """

    case: Case
    answers: tuple[Answer, ...]
    answer: Answer
    metrics: Mapping[str, float | None]
    leaves: tuple[Leaf, ...] = ()
    arrays: tuple[ArrayMatch, ...] = ()
    schema_errors: tuple[str, ...] = ()
    checks: tuple[tuple[Check, CheckScore], ...] = ()


def explain_answer(
    component: Component,
    case: Case,
    answers: Sequence[Answer],
    index: int,
    scores: Mapping[str, float | None] | None = None,
    checks: CheckScores = MappingProxyType({}),
) -> Explanation:
    """Compare one answer of a case with its truth and keep every step; `scores` are those that it is known to have.

    `checks` has what the checks of the case gave for it.
    """
    answer = answers[index]
    held = tuple((check, checks[check.id]) for check in case.checks if check.id in checks)
    if answer.scored is None:
        answered = answer.text is not None
        metrics = {name: metric.unparseable if answered else None for name, metric in component.metrics.items()}
        metrics = with_checks(metrics, case, checks)
        return Explanation(case=case, answers=tuple(answers), answer=answer, metrics=scores or metrics, checks=held)
    output = answer.scored.value
    comparison = Comparison(case.truth, output, component.plan, component.contract.conforms)
    arrays = _Arrays(align_arrays(case.truth, output, component.plan), comparison.rows, component.plan)
    return Explanation(
        case=case,
        answers=tuple(answers),
        answer=answer,
        metrics=scores
        or with_checks(apply_metrics(component.metrics, comparison, labelled=case.labelled), case, checks),
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
        schema_errors=tuple(component.contract.errors(output)),
        checks=held,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctOutput:
    """Answers that say the same: the first of them explained, who gave it, and in which texts.

    `unmarked` says why its leaves are not compared, where they could have been.
    """

    explanation: Explanation
    replicates: tuple[int, ...]
    texts: tuple[str, ...]
    unmarked: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """The commonest distinct outputs of a case, and how many others are left out, which came of how many replicates."""

    outputs: tuple[DistinctOutput, ...]
    others: int
    others_replicates: int


def case_view(
    component: Component,
    case: Case,
    replicates: Iterable[Replicate | None],
    kept: CaseRecord,
    changed: str | None,
    most: int = MOST_OUTPUTS,
) -> CaseView:
    """Group the answers to a case and explain the first groups; `changed` says why they have no truth."""
    outcomes = dict(enumerate(kept.outcomes))
    answers = read_answers(
        component, case, replicates, lambda index, _: outcomes.get(index, NOT_RUN), longest=_LONGEST_MARKED
    )

    def said(answer: Answer) -> Hashable:
        checks = [score for _, score in sorted(_kept_checks(case, kept, answer).items())]  # they look at the text
        if answer.scored:
            return canonical_json(component.plan.with_numbers(answer.scored.value)), *checks
        return (answer.outcome, answer.reason, answer.text, *checks)

    ranked = _grouped(answers, said)
    outputs = []
    for group in ranked[:most]:
        first = group[0]
        scores = {name: dict(enumerate(values)).get(first.index) for name, values in kept.replicates.items()}
        why = _why_unmarked(case, first, changed) if first.outcome == SCORED else None
        if why is None:
            explained = explain_answer(component, case, answers, first.index, scores, _kept_checks(case, kept, first))
        else:
            explained = Explanation(case=case, answers=tuple(answers), answer=first, metrics=scores)
        outputs.append(
            DistinctOutput(
                explanation=explained,
                replicates=tuple(answer.index for answer in group),
                texts=tuple(dict.fromkeys(answer.text for answer in group if answer.text is not None)),
                unmarked=why,
            )
        )
    rest = ranked[most:]
    return CaseView(outputs=tuple(outputs), others=len(rest), others_replicates=sum(map(len, rest)))


def _kept_checks(case: Case, kept: CaseRecord, answer: Answer) -> dict[str, CheckScore]:
    """Return what a record says that an answer gave, of the checks that are still the same."""
    now = {check.id: check.digest for check in case.checks}
    same = {check_id: check for check_id, check in kept.checks.items() if now.get(check_id) == check.digest}
    return {check_id: CheckScore(dict(enumerate(check.scores)).get(answer.index)) for check_id, check in same.items()}


def _why_unmarked(case: Case, answer: Answer, changed: str | None) -> str | None:
    if changed is not None:
        return changed
    if answer.parsed is None:
        length = len(answer.text or "")
        return f"it has {length:,} characters, and what is longer than {_LONGEST_MARKED:,} is not marked here"
    leaves = count_leaves(case.truth) + count_leaves(answer.parsed.value)
    if leaves > _MOST_LEAVES:
        return f"it and the truth hold {leaves:,} values, and more than {_MOST_LEAVES:,} are not marked here"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One value of a field (of an array path the list of its values), as first written, and who gave it."""

    value: Any
    replicates: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOfCase:
    """One case: `values` are the parsed answers', the commonest first; `unparsed` the replicates by outcome."""

    case_id: str
    labelled: bool
    truth: Any
    values: tuple[Given, ...]
    unparsed: Mapping[str, tuple[int, ...]]
    answered: int
    standing: Standing

    @property
    def share(self) -> float | None:
        """The share of the commonest value in all answers; None without an answer."""
        most = len(self.values[0].replicates) if self.values else 0
        return most / self.answered if self.answered else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """One field over the cases of a run."""

    path: str
    rule: FieldRule
    cases: tuple[FieldOfCase, ...]


def field_view(
    component: Component, answered: Sequence[tuple[Case, Sequence[Answer]]], scores: Sequence[CaseScore], path: str
) -> FieldView:
    """Gather the values of one field; raise RunError for a path that neither schema nor truths nor answers have."""
    plan = component.plan
    truths = [_values_at(plan.with_numbers(case.truth), plan) for case, _ in answered]
    paths = {*plan.leaves}.union(*(score.profile for score in scores), *truths)
    if path not in paths:
        raise RunError(f"unknown field '{path}' of '{component.name}' for --field {nearest_path(path, paths)}")
    checked = {score.case_id: one for score in scores for one in score.checks if check_path(one.check.id) == path}
    cases = tuple(
        _checked_case(score, checked[case.id])
        if checked
        else _gather_case(case, answers, score, truth.get(path, []), path, plan)
        for (case, answers), score, truth in zip(answered, scores, truths, strict=True)
        if not checked or case.id in checked
    )
    samples = [given.value for case in cases for given in case.values] + [case.truth for case in cases]
    return FieldView(path=path, rule=plan.leaf(path, *_flat(samples)), cases=cases)


def _checked_case(score: CaseScore, checked: CheckedCase) -> FieldOfCase:
    answers = {
        "failed": tuple(index for index, one in enumerate(checked.scores) if one is not None and one < PASSED_FROM),
        "passed": tuple(index for index, one in enumerate(checked.scores) if one is not None and one >= PASSED_FROM),
    }
    ranked = sorted(answers.items(), key=lambda item: len(item[1]), reverse=True)
    return FieldOfCase(
        case_id=score.case_id,
        labelled=True,
        truth="passed",
        values=tuple(Given(value=value, replicates=replicates) for value, replicates in ranked if replicates),
        unparsed={},
        answered=score.answered,
        standing=checked.standing,
    )


def _gather_case(
    case: Case, answers: Sequence[Answer], score: CaseScore, truth: list[Any], path: str, plan: FieldPlan
) -> FieldOfCase:
    values: dict[int, Any] = {}
    same: dict[int, Hashable] = {}
    unparsed: dict[str, tuple[int, ...]] = {}
    for answer in answers:
        if answer.scored is None:
            unparsed[answer.outcome] = (*unparsed.get(answer.outcome, ()), answer.index)
            continue
        whole = plan.with_numbers(answer.scored.value)
        value = values[answer.index] = _as_given(_values_at(whole, plan).get(path, []), path)
        ignored = plan.leaf(path, *_flat([value])).compare == "ignore"
        same[answer.index] = canonical_json(value) if ignored else values_by_path(whole, plan)[0].get(path)
    ranked = _grouped((answer for answer in answers if answer.index in same), lambda answer: same[answer.index])
    return FieldOfCase(
        case_id=case.id,
        labelled=case.labelled,
        truth=_as_given(truth, path),
        values=tuple(
            Given(value=values[group[0].index], replicates=tuple(answer.index for answer in group)) for group in ranked
        ),
        unparsed=unparsed,
        answered=score.answered,
        standing=score.profile.get(path, "unscored"),
    )


def _values_at(value: Any, plan: FieldPlan) -> dict[str, list[Any]]:
    """Return the values of every leaf path as they are written."""
    return by_key(
        (field.path, part)
        for field, part in plan.walk(value)
        if part is not None and (field.rule is not None or not isinstance(part, dict | list))
    )


def _as_given(values: list[Any], path: str) -> Any:
    """Return the list of values of a path through arrays or any key; of any other path its one value, or None."""
    return values if "[]" in path or "*" in path.split(".") else values[0] if values else None


def _flat(values: Sequence[Any]) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonAnswer:
    """The commonest answer to a case: `times` of `n`. `value` is None where it is a failure, which `failure` names."""

    value: Any
    failure: str | None
    times: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChange:
    """A case whose commonest answer changed, with the primary metric's strict mean before and after.

    `values` is empty where one of the two is no value, or too long to be compared.
    """

    case_id: str
    before: CommonAnswer
    after: CommonAnswer
    score_before: float | None
    score_after: float | None
    values: tuple[ValueChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAnswers:
    """What became of a model's answers since its baseline; `absent` says why that cannot be told."""

    model_id: str
    baseline: str
    compared: int = 0
    changes: tuple[AnswerChange, ...] = ()
    absent: str | None = None


Answers = Mapping[Call, Replicate]


def answer_changes(
    component: Component, cases: Sequence[Case], baseline: Record, candidate: Record, answers: tuple[Answers, Answers]
) -> Iterator[AnswerChange]:
    """Yield the changes of the cases that both runs have unchanged; `answers` are those of baseline and candidate."""
    before = {case.case_id: case for case in baseline.per_case}
    after = {case.case_id: case for case in candidate.per_case}
    case_of = attrgetter("case_id")
    asked = [{name: [*calls] for name, calls in groupby(sorted(each, key=case_of), case_of)} for each in answers]
    for case in cases:
        rows = before.get(case.id), after.get(case.id)
        if rows[0] is None or rows[1] is None or not rows[1].asks_what(rows[0]):
            continue
        given = ([made[call] for call in calls.get(case.id, ())] for made, calls in zip(answers, asked, strict=True))
        old, new = (_commonest(component, case, of_run) for of_run in given)
        texts = canonical_json(old.value), canonical_json(new.value)
        if (old.failure, texts[0]) == (new.failure, texts[1]):
            continue
        scores = [row.accuracy.get(candidate.primary_metric) for row in rows if row is not None]
        is_compared = old.failure is new.failure is None and max(map(len, texts)) <= _LONGEST_COMPARED
        yield AnswerChange(
            case_id=case.id,
            before=old,
            after=new,
            score_before=scores[0].strict_mean if scores[0] else None,
            score_after=scores[1].strict_mean if scores[1] else None,
            values=tuple(differences(old.value, new.value)) if is_compared else (),
        )


def _commonest(component: Component, case: Case, replicates: Sequence[Replicate]) -> CommonAnswer:
    """Return the answer that came most often, the first of several; failures of one kind are one answer."""
    given, plan = read_answers(component, case, replicates), component.plan
    if not given:
        return CommonAnswer(value=None, failure=NOT_RUN, times=0, n=0)
    values = {answer.index: plan.with_numbers(answer.scored.value) for answer in given if answer.scored}
    commonest = _grouped(given, lambda one: canonical_json(values[one.index]) if one.scored else (one.outcome,))[0]
    first = commonest[0]
    return CommonAnswer(
        value=values.get(first.index),
        failure=None if first.outcome == SCORED else first.outcome,
        times=len(commonest),
        n=len(given),
    )


class _Arrays:
    """How every array of one comparison was aligned, and the `place` of its rows."""

    def __init__(self, arrays: Sequence[AlignedArray], rows: Sequence[ComparedLeaf], plan: FieldPlan) -> None:
        self.matches: list[ArrayMatch] = []
        self._names: dict[tuple[str, At], str] = {}  # by side and place
        leaves: Counter[tuple[str, At]] = Counter()
        for row in rows:
            side = "truth" if row.truth_at is not None else "output"
            for item in _items(row.truth_at if row.truth_at is not None else row.output_at or ()):
                leaves[side, item] += 1
                leaves["right", item] += row.outcome == "right"
        for array in arrays:  # the outer ones first, whose items the inner ones are in
            rule = array.field.array_rule(*array.truth, *array.output)
            longer = len(array.truth_at) >= len(array.output_at)  # the shorter lacks an item
            place = self._name("truth", array.truth_at) if longer else self._name("output", array.output_at)
            why = _reasons(rule, array.field.path, array.truth, array.output, plan)
            items = []
            for left, right in array.pairs:
                in_truth, in_output = (*array.truth_at, left or 0), (*array.output_at, right or 0)
                of_both = leaves["truth", in_truth] + leaves["output", in_output]
                agreed = f"{leaves['right', in_truth]} of {of_both} leaves right"
                items.append(ItemPair(truth=left, output=right, why=why(left, right, agreed)))
                indexes = ("–" if index is None else str(index) for index in (left, right))
                name = f"{place}[{left if left == right else '→'.join(indexes)}]"
                self._names |= {("truth", in_truth): name} if left is not None else {}
                self._names |= {("output", in_output): name} if right is not None else {}
            self.matches.append(ArrayMatch(at=place, path=array.field.path, rule=rule, items=tuple(items)))

    def place(self, row: ComparedLeaf) -> str:
        """Return a row's path with the array indexes of truth and output, as in `items[2→0].amount`."""
        if row.truth_at is not None:
            return self._name("truth", row.truth_at)
        return self._name("output", row.output_at or ())

    def _name(self, side: str, at: At) -> str:
        item = next(_items(at), ())
        place = self._names.get((side, item), "")
        for key in at[len(item) :]:
            place = f"{place}.{key}" if place else str(key)
        return place


def _reasons(
    rule: FieldRule, path: str, truth: list[Any], output: list[Any], plan: FieldPlan
) -> Callable[[int | None, int | None, str], str]:
    """Return what says why two items met, or why an item met none, from how many leaves of the two are right."""
    field = plan.field(path)
    how = "best" if pairs_by_best(rule, field) else rule.align
    known_by = [identities(items, field, rule) for items in (truth, output)] if how == "key" else []
    times = [Counter(known) for known in known_by]

    def why(left: int | None, right: int | None, agreed: str) -> str:
        other = "output" if right is None else "truth"
        alone = left is None or right is None
        if how == "key":
            side, index = (0, left) if left is not None else (1, right or 0)
            item = (truth, output)[side][index]
            key = ", ".join(f"{name} {canonical_json(key_value(item, name))}" for name in rule.key)
            counts = [of_side[known_by[side][index]] for of_side in times]
            if alone:
                return f"the {other} has fewer items of {key}" if min(counts) else f"the {other} has none of {key}"
            return f"{key}, which is there more than once; {agreed}" if max(counts) > 1 else key
        if how == "ordered":
            return f"the {other} ends before" if alone else "the same place"
        if how == "set":
            return f"no equal item left in the {other}" if alone else "equal"
        return f"left over: the {other} has fewer items" if alone else f"best assignment: {agreed}"

    return why


def _items(at: At) -> Iterator[At]:
    """Yield the array items that a place is in, the innermost first."""
    for length in range(len(at), 0, -1):
        if isinstance(at[length - 1], int):
            yield at[:length]
