"""One case over the answers of one recorded run: its distinct outputs, the commonest first, each beside the truth.

Outcomes and scores are those of the record. Only leaves are compared again, as `explain` does it, so nothing is done
here that was too costly when the answers were scored.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.parsing.answer import parse_output
from skill_evaluator.records.record import NOT_RUN, SCORED, UNPARSEABLE, CaseRecord
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.scoring.explanation import Answer, Explanation, explain_answer
from skill_evaluator.text import canonical_json, count_leaves

_LONGEST = 200_000  # characters of an answer that is read here
_MOST_LEAVES = 2_000  # of truth and output together
_MOST_OUTPUTS = 8


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
    """The commonest distinct outputs of a case, and how many others, by how many replicates, are left out."""

    outputs: tuple[DistinctOutput, ...]
    others: int
    others_replicates: int


def case_view(
    component: Component, case: Case, replicates: Iterable[Replicate | None], kept: CaseRecord, changed: str | None
) -> CaseView:
    """Group the answers to a case and explain each group; `changed` says why they cannot be held against the truth."""
    answers = [
        _answer(component, case, index, replicate, kept.outcomes[index] if index < len(kept.outcomes) else NOT_RUN)
        for index, replicate in enumerate(replicates)
    ]
    groups: dict[Hashable, list[Answer]] = {}
    for answer in answers:
        groups.setdefault(_sameness(answer), []).append(answer)
    ranked = sorted(groups.values(), key=len, reverse=True)
    rest = ranked[_MOST_OUTPUTS:]
    return CaseView(
        outputs=tuple(_distinct(component, case, answers, group, kept, changed) for group in ranked[:_MOST_OUTPUTS]),
        others=len(rest),
        others_replicates=sum(map(len, rest)),
    )


def _answer(component: Component, case: Case, index: int, replicate: Replicate | None, outcome: str) -> Answer:
    """Read an answer whose outcome is known; what is very long is left unread."""
    if replicate is None or replicate.completion is None or replicate.failure is not None:
        return Answer(index=index, outcome=outcome, replicate=replicate)
    text = replicate.completion.text
    parsed = parse_output(text, component.output, case.options) if len(text) <= _LONGEST else None
    too_costly = outcome == UNPARSEABLE and parsed is not None and parsed.found is not None
    if too_costly:
        parsed = None
    elif outcome == SCORED and parsed is not None and parsed.found is None:  # its contract was another then
        outcome = UNPARSEABLE
    return Answer(index=index, outcome=outcome, replicate=replicate, parsed=parsed, too_costly=too_costly)


def _sameness(answer: Answer) -> Hashable:
    if answer.outcome == SCORED and answer.parsed is not None:
        return SCORED, canonical_json(answer.parsed.value)
    return answer.outcome, answer.reason, answer.text


def _distinct(
    component: Component,
    case: Case,
    answers: Sequence[Answer],
    group: Sequence[Answer],
    kept: CaseRecord,
    changed: str | None,
) -> DistinctOutput:
    first = group[0]
    scores = {
        name: values[first.index] if first.index < len(values) else None for name, values in kept.replicates.items()
    }
    why = _why_unmarked(case, first, changed) if first.outcome == SCORED else None
    texts = dict.fromkeys(answer.text for answer in group if answer.text is not None)
    return DistinctOutput(
        explanation=(
            explain_answer(component, case, answers, first.index, scores)
            if why is None
            else Explanation(case=case, answers=tuple(answers), answer=first, metrics=scores)
        ),
        replicates=tuple(answer.index for answer in group),
        texts=tuple(texts),
        unmarked=why,
    )


def _why_unmarked(case: Case, answer: Answer, changed: str | None) -> str | None:
    if changed is not None:
        return changed
    if answer.parsed is None:
        return f"it has {len(answer.text or ''):,} characters, and what is longer than {_LONGEST:,} is not marked here"
    leaves = count_leaves(case.truth) + count_leaves(answer.parsed.value)
    if leaves > _MOST_LEAVES:
        return f"it and the truth hold {leaves:,} values, and more than {_MOST_LEAVES:,} are not marked here"
    return None
