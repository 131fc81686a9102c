"""One field over all answers of a run: the values it was given, the commonest first, beside truth and standing.

Standings and outcomes are the scorer's; `explain --field` shows them beside the values.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.comparing.sides import values_by_path
from skill_evaluator.errors import RunError
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.diagnosis.field_profile import Standing
from skill_evaluator.records.record import SCORED
from skill_evaluator.scoring.explanation import Answer
from skill_evaluator.scoring.scorecard import CaseScore
from skill_evaluator.text import canonical_json, nearest_path


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
    truths = [_values_at(case.truth, plan) for case, _ in answered]
    paths = {*plan.leaves}.union(*(score.profile for score in scores), *truths)
    if path not in paths:
        raise RunError(f"unknown field '{path}' of '{component.name}' for --field {nearest_path(path, paths)}")
    cases = tuple(
        _gather_case(case, answers, score, truth.get(path, []), path, plan)
        for (case, answers), score, truth in zip(answered, scores, truths, strict=True)
    )
    samples = [given.value for case in cases for given in case.values] + [case.truth for case in cases]
    return FieldView(path=path, rule=plan.leaf(path, *_flat(samples)), cases=cases)


def _gather_case(
    case: Case, answers: Sequence[Answer], score: CaseScore, truth: list[Any], path: str, plan: FieldPlan
) -> FieldOfCase:
    given: dict[Hashable, list[tuple[int, Any]]] = {}
    unparsed: dict[str, tuple[int, ...]] = {}
    for answer in answers:
        if answer.outcome != SCORED or answer.parsed is None:
            unparsed[answer.outcome] = (*unparsed.get(answer.outcome, ()), answer.index)
            continue
        value = _as_given(_values_at(answer.parsed.value, plan).get(path, []), path)
        ignored = plan.leaf(path, *_flat([value])).compare == "ignore"
        same = canonical_json(value) if ignored else values_by_path(answer.parsed.value, plan)[0].get(path)
        given.setdefault(same, []).append((answer.index, value))
    ranked = sorted(given.values(), key=len, reverse=True)
    return FieldOfCase(
        case_id=case.id,
        labelled=case.labelled,
        truth=_as_given(truth, path),
        values=tuple(Given(value=same[0][1], replicates=tuple(index for index, _ in same)) for same in ranked),
        unparsed=unparsed,
        answered=score.answered,
        standing=score.profile.get(path, "unscored"),
    )


def _values_at(value: Any, plan: FieldPlan) -> dict[str, list[Any]]:
    """Return the values of every leaf path as they are written."""
    values: dict[str, list[Any]] = {}
    for field, part in plan.walk(value):
        if part is not None and (field.rule is not None or not isinstance(part, dict | list)):
            values.setdefault(field.path, []).append(part)
    return values


def _as_given(values: list[Any], path: str) -> Any:
    """Return the list of values of a path through arrays or any key; of another path its one value, or None."""
    return values if "[]" in path or "*" in path.split(".") else values[0] if values else None


def _flat(values: Sequence[Any]) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]
