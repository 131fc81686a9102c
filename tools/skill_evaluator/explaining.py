"""One answer, leaf by leaf: what was compared with what, how, and what came of it; which array item met which.

A case and what became of its calls in, an `Explanation` out. The rows are those every metric reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from skill_evaluator.array_matches import ArrayMatch, ArrayMatches
from skill_evaluator.components import Component
from skill_evaluator.fixtures import Case
from skill_evaluator.metrics.base import Comparison
from skill_evaluator.metrics.comparison import Row
from skill_evaluator.metrics.per_field import text_similarity
from skill_evaluator.parsed import Output, Parsed
from skill_evaluator.parsing import parse_output
from skill_evaluator.runner.replicates import Replicate
from skill_evaluator.scoring import SCORED

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
    row: Row
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
    outcome = SCORED if parsed.found else "unparseable"
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
        metrics={
            name: metric.score(comparison) if case.labelled or not metric.needs_truth else None
            for name, metric in component.metrics.items()
        },
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
