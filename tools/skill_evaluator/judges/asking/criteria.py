"""Criteria of a rubric → the text a judge is told, and which of them a mode judges."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.library.rubrics import Criterion, MethodName, Mitigation, Rubric
from skill_evaluator.text import nearest

_ELSEWHERE: Mapping[MethodName, str] = {
    "pairwise_comparison": "judge pairwise compares two outputs by it",
    "direct_scoring": "judge score scores one output by it",
    "reference_based": "judge score scores one output by it, beside its source",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRubric:
    """A rubric with the file it was read from, and those of its criteria that are judged."""

    file: str
    rubric: Rubric
    criteria: Sequence[Criterion]

    @property
    def paper(self) -> dict[str, Any]:
        """The rubric as it is kept beside the results."""
        judged = [criterion.id for criterion in self.criteria]
        return {
            "file": self.file,
            "digest": self.rubric.digest,
            "judged": judged,
            **self.rubric.model_dump(mode="json"),
        }

    def field_of(self, component: str) -> str:
        """Return the field of a component's answer that the criteria judge, empty for the whole; raise JudgeError.

        They must not be for another component, nor for different fields.
        """
        applied = [(criterion.id, criterion.applies_to) for criterion in self.criteria if criterion.applies_to]
        for name, place in applied:
            if place.component != component:
                raise JudgeError(f"'{name}' in {self.file} is for the component '{place.component}', not '{component}'")
        fields = {place.field for _, place in applied}
        if len(fields) > 1:
            raise JudgeError(
                f"the criteria of {self.file} are for different fields ({', '.join(sorted(fields))}); judge them one "
                "after the other: --criterion ID"
            )
        return next(iter(fields), "")


def choose_criteria(file: str, rubric: Rubric, wanted: Sequence[str], methods: Sequence[MethodName]) -> NamedRubric:
    """Return the criteria that are named, or all; raise JudgeError for an unknown one, or one of another method."""
    by_id = {criterion.id: criterion for criterion in rubric.criteria}
    for name in wanted:
        if name not in by_id:
            raise JudgeError(f"no criterion '{name}' in {file} {nearest(name, by_id)}")
    chosen = [by_id[name] for name in dict.fromkeys(wanted)] or list(rubric.criteria)
    for criterion in chosen:
        if criterion.primary_method not in methods:
            others = [other.id for other in rubric.criteria if other.primary_method in methods]
            rest = f"; for the others here add --criterion {' --criterion '.join(others)}" if others else ""
            raise JudgeError(
                f"the method of '{criterion.id}' in {file} is {criterion.primary_method}: "
                f"{_ELSEWHERE[criterion.primary_method]}{rest}"
            )
    return NamedRubric(file=file, rubric=rubric, criteria=chosen)


def mitigations_of(criterion: Criterion) -> frozenset[Mitigation]:
    """Return the bias mitigations that a criterion declares."""
    return frozenset(criterion.method.bias_mitigations if criterion.method else ())


def criteria_text(rubric: Rubric, criteria: Sequence[Criterion], sentences: Mapping[str, str], *, scored: bool) -> str:
    """Return what a judge is told of criteria, as Markdown; `sentences` are those of the prompt's mitigations."""
    parts = ["\n".join(_lines(criterion, sentences, scored=scored)) for criterion in criteria]
    if rubric.scoring_guidelines:
        parts.append("\n".join(["## For all criteria", *(f"- {line}" for line in rubric.scoring_guidelines)]))
    return "\n\n".join(parts)


def _lines(criterion: Criterion, sentences: Mapping[str, str], *, scored: bool) -> Iterator[str]:
    yield f"## {criterion.id}: {criterion.name}"
    yield criterion.description
    yield f"Scale: whole numbers from 1 to {criterion.highest}." if scored else "From worse to better:"
    for score, level in sorted(criterion.rubric.items()):
        yield f"- {f'{score}, ' if scored else ''}{level.label}: {level.description}"
        yield from (f"  - {characteristic}" for characteristic in level.characteristics)
        yield from (f"  - Example: {example}" for example in level.examples)
    yield from (f"- If: {case.situation}. Then: {case.guidance}" for case in criterion.edge_cases)
    yield from (f"- {line}" for line in criterion.scoring_guidelines)
    mine = mitigations_of(criterion)
    yield from (f"- {sentence}" for name, sentence in sentences.items() if name in mine)
