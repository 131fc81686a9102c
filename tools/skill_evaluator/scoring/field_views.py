"""One field over all answers of a run: which values it was given, the commonest, the truth, and its standing.

Standing and outcomes are the scorer's own; here they are put beside the values.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.comparing.leaves import values_by_path
from skill_evaluator.errors import RunError
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.diagnosis.field_profile import Standing
from skill_evaluator.records.strict_score import SCORED
from skill_evaluator.scoring.explanation import Answer
from skill_evaluator.scoring.scorer import CaseScore, Scorer
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
        """Share of the commonest value in all answers; None without an answer."""
        most = len(self.values[0].replicates) if self.values else 0
        return most / self.answered if self.answered else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """One field over the cases of a run."""

    path: str
    rule: FieldRule
    cases: tuple[FieldOfCase, ...]


def field_view(component: Component, answered: Sequence[tuple[Case, Sequence[Answer]]], path: str) -> FieldView:
    """Gather one field; raises RunError for a path that neither the schema nor any truth or answer has."""
    plan = component.plan
    scores = _scores(component, answered)
    truths = [_values_at(case.truth, plan) for case, _ in answered]
    known = {
        *plan.leaves,
        *(name for score in scores for name in score.profile),
        *(name for at in truths for name in at),
    }
    if path not in known:
        raise RunError(f"unknown field '{path}' of '{component.name}' for --field {nearest_path(path, known)}")
    cases = tuple(
        _of_case(case, answers, score, truth.get(path, []), path, plan)
        for (case, answers), score, truth in zip(answered, scores, truths, strict=True)
    )
    samples = [given.value for case in cases for given in case.values] + [case.truth for case in cases]
    return FieldView(path=path, rule=plan.leaf(path, *_flat(samples)), cases=cases)


def _scores(component: Component, answered: Sequence[tuple[Case, Sequence[Answer]]]) -> tuple[CaseScore, ...]:
    scorer = Scorer(component, [case for case, _ in answered], max(len(answers) for _, answers in answered))
    for _, answers in answered:
        for answer in answers:
            if answer.replicate is not None:
                scorer.add(answer.replicate)
    return scorer.scorecard().cases


def _of_case(
    case: Case, answers: Sequence[Answer], score: CaseScore, truth: list[Any], path: str, plan: FieldPlan
) -> FieldOfCase:
    found: dict[Hashable, list[tuple[int, Any]]] = {}
    unparsed: dict[str, tuple[int, ...]] = {}
    for answer in answers:
        if answer.outcome != SCORED or answer.parsed is None:
            unparsed[answer.outcome] = (*unparsed.get(answer.outcome, ()), answer.index)
            continue
        value = _one(_values_at(answer.parsed.value, plan).get(path, []), path)
        ignored = plan.leaf(path, *_flat([value])).compare == "ignore"
        same = canonical_json(value) if ignored else values_by_path(answer.parsed.value, plan).get(path)
        found.setdefault(same, []).append((answer.index, value))
    ranked = sorted(found.values(), key=len, reverse=True)
    return FieldOfCase(
        case_id=case.id,
        labelled=case.labelled,
        truth=_one(truth, path),
        values=tuple(Given(value=same[0][1], replicates=tuple(index for index, _ in same)) for same in ranked),
        unparsed=unparsed,
        answered=score.answered,
        standing=score.profile.get(path, "unscored"),
    )


def _values_at(value: Any, plan: FieldPlan) -> dict[str, list[Any]]:
    """The values of every leaf path as they are written."""
    found: dict[str, list[Any]] = {}
    for field, part in plan.walk(value):
        if part is not None and (field.rule is not None or not isinstance(part, dict | list)):
            found.setdefault(field.path, []).append(part)
    return found


def _one(values: list[Any], path: str) -> Any:
    """A path through arrays, or through any key, has a list of values; another has one value or none."""
    return values if "[]" in path or "*" in path.split(".") else values[0] if values else None


def _flat(values: Sequence[Any]) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]
