"""Views of cases for people: outputs beside the ground truth, and changes between two runs."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skill_evaluator.checks import Check
from skill_evaluator.comparing.comparison import ComparedLeaf, compare
from skill_evaluator.display import WHOLE, value_pair
from skill_evaluator.errors import RunError
from skill_evaluator.library.cases import Case, parse_case_output
from skill_evaluator.library.components import Component
from skill_evaluator.parsing import Parsed, split_reasoning
from skill_evaluator.records.record import NOT_RUN, SCORED, UNPARSEABLE, CaseRecord, Record, check_path
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.scoring.scorer import TOO_COSTLY, CheckScore, CheckScores, Scored
from skill_evaluator.stats import by_key
from skill_evaluator.text import ValueChange, canonical_json, count_leaves, differences, nearest_path

_MAX_MARKED_CHARS = 200_000  # longer outputs are not compared value by value
_MAX_VALUES = 2_000  # values of ground truth and output together
MAX_OUTPUTS = 8  # distinct outputs shown per case
_MAX_COMPARED_CHARS = 50_000  # comparing longer outputs could take minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of one planned call of a case: its output, and its scores by metric name and by check id.

    `outcome` is `scored`, `unparseable`, `not_run`, or the kind of failure. `parsed` is None if the text was not parsed
    or was too costly to score. `unmarked` is the reason if the output is not compared with the truth.
    """

    index: int
    outcome: str
    replicate: Replicate | None = None
    parsed: Parsed | None = None
    too_costly: bool = False
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    checks: CheckScores = field(default_factory=dict)
    unmarked: str | None = None

    @property
    def text(self) -> str | None:
        """The raw text of the output. It is None if the call returned no output."""
        return self.replicate.completion.text if self.replicate and self.replicate.completion else None

    @property
    def beside(self) -> dict[str, str]:
        """The texts that accompany the output, by the names `reasoning` and `tool_call`. Empty texts are omitted."""
        if self.replicate is None or (made := self.replicate.completion) is None:
            return {}
        texts = {"reasoning": made.reasoning or split_reasoning(made.text)[0].strip(), "tool_call": made.tool_call}
        return {name: text for name, text in texts.items() if text}

    @property
    def scored(self) -> Parsed | None:
        """The parsed output. It is None if the output was not scored or its text was not parsed."""
        return self.parsed if self.outcome == SCORED else None

    @property
    def reason(self) -> str | None:
        """The reason why the output was not scored, such as `prose`, if known. It is None for a scored output."""
        if self.too_costly:
            return TOO_COSTLY
        failure = self.replicate.failure if self.replicate else None
        return failure.reason if failure else self.parsed.problem if self.parsed else None


def read_answers(
    component: Component,
    case: Case,
    replicates: Iterable[Replicate | None],
    scored: Mapping[int, Scored] | None = None,
    max_chars: int | None = None,
) -> list[Answer]:
    """Return one `Answer` per replicate, in the same order. A replicate of None was not run.

    `scored` has the scores of outputs by index. Without it, answers have no scores, and only parsing decides whether
    their outcome is `scored` or `unparseable`. Texts over `max_chars` are not parsed.
    """
    answers = []
    unscored = Scored(outcome=NOT_RUN, metrics=dict.fromkeys(component.scoring.metrics))
    for index, replicate in enumerate(replicates):
        scores = (scored or {}).get(index, unscored)
        answer = Answer(index=index, outcome=NOT_RUN, replicate=replicate, metrics=scores.metrics, checks=scores.checks)
        if replicate is None or replicate.completion is None or replicate.failure is not None:
            failure = replicate.failure if replicate else None
            answers.append(replace(answer, outcome=failure.kind) if failure else answer)
            continue
        text, outcome = replicate.completion.text, SCORED if scored is None else scores.outcome
        parsed = None if max_chars and len(text) > max_chars else parse_case_output(component, case, text)
        too_costly = outcome == UNPARSEABLE and parsed is not None and parsed.form is not None
        if outcome == SCORED and parsed is not None and parsed.form is None:  # the schema changed since the run
            outcome = UNPARSEABLE
        shown = None if too_costly else parsed
        answers.append(replace(answer, outcome=outcome, parsed=shown, too_costly=too_costly))
    return answers


def _grouped(answers: Iterable[Answer], same: Callable[[Answer], Hashable]) -> list[list[Answer]]:
    return sorted(by_key((same(answer), answer) for answer in answers).values(), key=len, reverse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctOutput:
    """Equal outputs of a case: their replicates and their distinct texts. Other fields describe the first output."""

    answer: Answer
    replicates: tuple[int, ...]
    texts: tuple[str, ...]
    leaves: tuple[ComparedLeaf, ...] = ()
    schema_errors: tuple[str, ...] = ()
    checks: tuple[tuple[Check, CheckScore], ...] = ()


FieldValue = tuple[ComparedLeaf, tuple[int, ...]]
"""A value of a field compared with the ground truth, and the replicates that have it."""


def leaf_texts(leaf: ComparedLeaf, *limit: int | None) -> tuple[str, str]:
    """Format the ground truth and the output of a value. An absent value is a dash, a null ground truth is null."""
    truth, output = value_pair(leaf.truth, leaf.output, *limit)
    return "null" if leaf.outcome == "extra" and leaf.truth_at is not None else truth, output


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """A case with the answers of all its calls, and its distinct outputs, most frequent first.

    `outputs` omits `hidden_outputs` distinct outputs, which `hidden_replicates` calls returned.
    """

    case: Case
    answers: tuple[Answer, ...]
    outputs: tuple[DistinctOutput, ...]
    hidden_outputs: int = 0
    hidden_replicates: int = 0

    @property
    def fields(self) -> dict[str, list[FieldValue]]:
        """The distinct values of each field in `outputs` and their replicates, by path with array indexes."""
        fields: dict[str, dict[Hashable, FieldValue]] = {}
        for output in self.outputs:
            for leaf in output.leaves:
                values = fields.setdefault(leaf.location, {})
                key = leaf.outcome, canonical_json(leaf.output)
                first, replicates = values.get(key, (leaf, ()))
                values[key] = (first, tuple(sorted({*replicates, *output.replicates})))
        return {path: list(values.values()) for path, values in fields.items()}


def case_view(component: Component, case: Case, answers: Sequence[Answer], max_outputs: int | None = None) -> CaseView:
    """Return the view of a case with its `max_outputs` most frequent distinct outputs; by default with all."""

    def content(answer: Answer) -> Hashable:
        checks = [score for _, score in sorted(answer.checks.items())]  # checks examine the text
        if answer.scored:
            return canonical_json(component.scoring.plan.with_numbers(answer.scored.value)), *checks
        return (answer.outcome, answer.reason, answer.text, *checks)

    ranked = _grouped(answers, content)
    outputs = [_distinct_output(component, case, group) for group in ranked[:max_outputs]]
    hidden = ranked[len(outputs) :]
    return CaseView(
        case=case,
        answers=(*answers,),
        outputs=(*outputs,),
        hidden_outputs=len(hidden),
        hidden_replicates=sum(map(len, hidden)),
    )


def _distinct_output(component: Component, case: Case, group: Sequence[Answer]) -> DistinctOutput:
    answer, leaves, errors = group[0], list[ComparedLeaf](), list[str]()
    if answer.scored is not None and answer.unmarked is None:
        leaves = compare(case.truth, answer.scored.value, component.scoring.plan)
        leaves = leaves if case.labelled else [replace(leaf, outcome="unscored", truth_at=None) for leaf in leaves]
        errors = component.contract.errors(answer.scored.value)
    return DistinctOutput(
        answer=answer,
        replicates=tuple(member.index for member in group),
        texts=tuple(dict.fromkeys(member.text for member in group if member.text is not None)),
        leaves=tuple(leaves),
        schema_errors=tuple(errors),
        checks=tuple((check, answer.checks[check.id]) for check in case.checks if check.id in answer.checks),
    )


def recorded_case_view(
    component: Component,
    case: Case,
    replicates: Iterable[Replicate | None],
    recorded: CaseRecord,
    unmarked: str | None,
    max_outputs: int = MAX_OUTPUTS,
) -> CaseView:
    """Return the view of a case with its recorded scores. Checks that changed since the record have no score.

    If `unmarked` has a reason, outputs are not compared with the ground truth. Huge outputs are never compared.
    """
    metrics = {name: dict(enumerate(scores)) for name, scores in recorded.replicates.items()}
    digests = {check.id: check.digest for check in case.checks}
    same = {name: check for name, check in recorded.checks.items() if digests.get(name) == check.digest}
    checks = {name: dict(enumerate(check.scores)) for name, check in same.items()}
    scored = {
        index: Scored(
            outcome=outcome,
            metrics={name: scores.get(index) for name, scores in metrics.items()},
            checks={name: CheckScore(scores.get(index)) for name, scores in checks.items()},
        )
        for index, outcome in enumerate(recorded.outcomes)
    }
    answers = [
        replace(answer, unmarked=unmarked or _unmarked_reason(case, answer)) if answer.outcome == SCORED else answer
        for answer in read_answers(component, case, replicates, scored, _MAX_MARKED_CHARS)
    ]
    return case_view(component, case, answers, max_outputs)


def _unmarked_reason(case: Case, answer: Answer) -> str | None:
    if answer.parsed is None:
        length = len(answer.text or "")
        return f"it has {length:,} characters, more than the {_MAX_MARKED_CHARS:,} that are compared here"
    leaves = count_leaves(case.truth) + count_leaves(answer.parsed.value)
    if leaves > _MAX_VALUES:
        return f"output and ground truth have {leaves:,} values, more than the {_MAX_VALUES:,} that are compared here"
    return None


def only_field(views: Sequence[CaseView], component: Component, path: str) -> list[CaseView]:
    """Return the views with only the field or check at `path`. Raise RunError if there is no such field or check."""
    paths, path = {*component.scoring.plan.leaves}, "" if path == WHOLE else path
    for view in views:
        paths |= {check_path(check.id) for check in view.case.checks}
        paths |= {leaf.path for output in view.outputs for leaf in output.leaves}
    if path not in paths:
        raise RunError(f"unknown field '{path}' of '{component.name}' for --field {nearest_path(path, paths)}")

    def only(output: DistinctOutput) -> DistinctOutput:
        leaves = tuple(leaf for leaf in output.leaves if leaf.path == path)
        checks = tuple(pair for pair in output.checks if check_path(pair[0].id) == path)
        return replace(output, leaves=leaves, checks=checks, schema_errors=())

    return [replace(view, outputs=tuple(map(only, view.outputs))) for view in views]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonAnswer:
    """The most frequent result of a case: an output (`value`) or a kind of failure, which `times` of `n` calls had."""

    value: Any
    failure: str | None
    times: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChange:
    """A case whose most frequent output changed, and its score on the primary metric before and after.

    `values` lists the changed values. It is empty if either output is a failure or is too long to compare.
    """

    case_id: str
    before: CommonAnswer
    after: CommonAnswer
    score_before: float | None
    score_after: float | None
    values: tuple[ValueChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAnswers:
    """The changed outputs of a model. `compared` counts the cases. `absent` is the reason if nothing was compared."""

    model_id: str
    baseline: str
    compared: int = 0
    changes: tuple[AnswerChange, ...] = ()
    absent: str | None = None


Answers = Mapping[Call, Replicate]


def answer_changes(
    component: Component, cases: Sequence[Case], baseline: Record, candidate: Record, answers: tuple[Answers, Answers]
) -> Iterator[AnswerChange]:
    """Yield the cases with the same inputs but another most frequent output. `answers`: (baseline, candidate)."""
    before = {case.case_id: case for case in baseline.per_case}
    after = {case.case_id: case for case in candidate.per_case}
    by_case = [by_key((call.case_id, replicate) for call, replicate in outcomes.items()) for outcomes in answers]
    for case in cases:
        if case.id not in before or case.id not in after or not after[case.id].has_same_inputs(before[case.id]):
            continue
        old, new = (_commonest(component, case, replicates.get(case.id, [])) for replicates in by_case)
        texts = canonical_json(old.value), canonical_json(new.value)
        if (old.failure, texts[0]) == (new.failure, texts[1]):
            continue
        scores = [row[case.id].accuracy.get(candidate.primary_metric) for row in (before, after)]
        is_compared = old.failure is new.failure is None and max(map(len, texts)) <= _MAX_COMPARED_CHARS
        yield AnswerChange(
            case_id=case.id,
            before=old,
            after=new,
            score_before=scores[0].strict_mean if scores[0] else None,
            score_after=scores[1].strict_mean if scores[1] else None,
            values=tuple(differences(old.value, new.value)) if is_compared else (),
        )


def _commonest(component: Component, case: Case, replicates: Sequence[Replicate]) -> CommonAnswer:
    """Return the most frequent output, the first in a tie. Failures of the same kind count as equal."""
    answers, plan = read_answers(component, case, replicates), component.scoring.plan
    if not answers:
        return CommonAnswer(value=None, failure=NOT_RUN, times=0, n=0)
    values = {answer.index: plan.with_numbers(answer.scored.value) for answer in answers if answer.scored}
    commonest = _grouped(
        answers, lambda answer: canonical_json(values[answer.index]) if answer.scored else (answer.outcome,)
    )[0]
    first = commonest[0]
    return CommonAnswer(
        value=values.get(first.index),
        failure=None if first.outcome == SCORED else first.outcome,
        times=len(commonest),
        n=len(answers),
    )
