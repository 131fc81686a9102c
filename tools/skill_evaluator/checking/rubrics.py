"""A rubric's file → what is wrong with it as an instrument: remarks, each with its line and the rule it comes from.

A rubric that two careful people would read differently cannot be calibrated. These checks find what makes it so before
any model is asked. Errors are what no judge can follow; warnings are what is often a mistake and can be right.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.errors import FixtureError, SkillEvaluatorError
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.rubrics import (
    MITIGATIONS,
    USUAL_METHOD,
    Criterion,
    Place,
    RubricText,
    criteria_of,
    read_rubric_text,
)
from skill_evaluator.text import listed, nearest_path

Severity = Literal["error", "warning"]

_FINEST = 10  # the longest scale: nobody guesses alike what stands between two described levels so close together


class Remark(FrozenModel):
    """What is wrong at a line of a rubric; `rule` names the check."""

    severity: Severity
    rule: str
    line: int
    message: str


class LintedRubric(FrozenModel):
    """What lint says of a file: the ids of the criteria that could be read, and remarks in the order of their lines."""

    file: str
    criteria: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()


class RubricLint(FrozenModel):
    """The result of `judge lint`."""

    rubrics: tuple[LintedRubric, ...]
    errors: int
    warnings: int


class _Fault(NamedTuple):
    severity: Severity
    rule: str
    place: Place  # below the criterion
    message: str


def lint_rubrics(paths: Sequence[Path], components: Path, fixtures: Path | None, limits: SafetyLimits) -> RubricLint:
    """Check rubrics; components and cases are read only where a criterion names a field of them."""
    rubrics = tuple(_lint_rubric(path, components, fixtures, limits) for path in paths)
    count = Counter(remark.severity for rubric in rubrics for remark in rubric.remarks)
    return RubricLint(rubrics=rubrics, errors=count["error"], warnings=count["warning"])


def _lint_rubric(path: Path, components: Path, fixtures: Path | None, limits: SafetyLimits) -> LintedRubric:
    try:
        text = read_rubric_text(path, follow_links=limits.follow_links)
    except SkillEvaluatorError as problem:
        placed = re.match(rf"{re.escape(str(path))}:(\d+)(?::\d+)?: ", str(problem))
        message = str(problem)[placed.end() :] if placed else str(problem)
        line = int(placed[1]) if placed else 1
        remark = Remark(severity="error", rule="unreadable", line=line, message=message)
        return LintedRubric(file=str(path), remarks=(remark,))
    criteria, problems = criteria_of(text)
    remarks = [
        Remark(severity="error", rule="format", line=problem.line, message=problem.message) for problem in problems
    ]
    if isinstance(text.value, dict) and text.value.get("unreviewed") is True:
        message = "a model drafted it, and nobody has read it; read it, then take `unreviewed` out"
        line = text.line(("unreviewed",))
        remarks.append(Remark(severity="warning", rule="unreviewed", line=line, message=message))
    for index, criterion in criteria.items():
        found = [check(criterion) for check in _CHECKS]
        for fault in chain(*found, _check_ground_truth(criterion, components, fixtures, limits)):
            place = _place_in_levels(text, fault.place) if text.has_levels else ("criteria", index, *fault.place)
            message = f"'{criterion.name}': {fault.message}"
            remarks.append(Remark(severity=fault.severity, rule=fault.rule, line=text.line(place), message=message))
    return LintedRubric(
        file=str(path),
        criteria=tuple(criterion.id for criterion in criteria.values()),
        remarks=tuple(sorted(remarks, key=lambda remark: remark.line)),
    )


def _place_in_levels(text: RubricText, place: Place) -> Place:
    """Return where the JSON form has what stands at a place of a criterion."""
    if place[:1] != ("rubric",):
        return place
    scores = [level["score"] for level in text.value["levels"]]
    return ("levels", scores.index(place[1]), *place[2:]) if len(place) > 1 else ("levels",)


def _check_levels(criterion: Criterion) -> Iterator[_Fault]:
    """Refuse a scale whose ends, or of 1-10 any level, nobody has described."""
    missing = [score for score in range(1, criterion.highest + 1) if score not in criterion.rubric]
    if criterion.highest == _FINEST and missing:
        message = f"of a scale 1-10 every level needs a description; missing: {listed(list(map(str, missing)), 9)}"
        yield _Fault("error", "undescribed-level", ("rubric",), message)
    elif ends := [score for score in missing if score in (1, criterion.highest)]:
        message = f"level {ends[0]} is an end of the scale 1-{criterion.highest} and is not described"
        yield _Fault("error", "undescribed-level", ("rubric",), message)


def _check_edge_cases(criterion: Criterion) -> Iterator[_Fault]:
    if not criterion.edge_cases:
        message = "no edge case; add the situation on which two careful people would differ, and what to do then"
        yield _Fault("warning", "no-edge-case", (), message)


def _check_characteristics(criterion: Criterion) -> Iterator[_Fault]:
    """Refuse a rubric without any characteristic; warn of a level without one."""
    missing = [score for score, level in sorted(criterion.rubric.items()) if not level.characteristics]
    if len(missing) == len(criterion.rubric):
        message = "no level has characteristics; say what is seen in a text, such as «two of the totals are wrong»"
        yield _Fault("error", "no-characteristic", ("rubric",), message)
        return
    for score in missing:
        message = f"level {score} has no characteristics; say what is seen in such a text"
        yield _Fault("warning", "no-characteristic", ("rubric", score), message)


def _check_method(criterion: Criterion) -> Iterator[_Fault]:
    """Warn of a method that cannot be combined with the type, and of a mitigation without effect in the method."""
    method = criterion.primary_method
    place: Place = ("method", "primary") if criterion.method else ()
    if criterion.type is None:
        message = "no type; say `objective` (careful people agree) or `subjective`, which decides the method"
        yield _Fault("warning", "no-type", (), message)
    elif method != "reference_based" and method != USUAL_METHOD[criterion.type]:
        reason = {
            "subjective": "a subjective criterion: people agree more on which of two texts is better than on a score",
            "objective": "an objective criterion: which of two texts is better does not say whether either is right",
        }[criterion.type]
        message = f"{method} for {reason}; use {USUAL_METHOD[criterion.type]}"
        yield _Fault("warning", "method", place, message)
    for index, name in enumerate(criterion.method.bias_mitigations if criterion.method else ()):
        if method not in MITIGATIONS[name]:
            message = f"{name} has no effect on {method}; it is for {' and '.join(sorted(MITIGATIONS[name]))}"
            yield _Fault("warning", "mitigation", ("method", "bias_mitigations", index), message)


_CHECKS: Sequence[Callable[[Criterion], Iterator[_Fault]]] = (
    _check_levels,
    _check_edge_cases,
    _check_characteristics,
    _check_method,
)


def _check_ground_truth(
    criterion: Criterion, components: Path, fixtures: Path | None, limits: SafetyLimits
) -> Iterator[_Fault]:
    """Refuse a judge for a field whose right value is known and compared by code: a metric is exact and free."""
    target = criterion.applies_to
    if target is None:
        return
    try:
        component = load_component(components, target.component, limits, fixtures)
    except SkillEvaluatorError as problem:
        yield _Fault("error", "applies-to", ("applies_to", "component"), f"applies to: {problem}")
        return
    paths = {"", *component.plan.leaves, *component.plan.arrays}
    if target.field not in paths:
        message = f"'{target.field}' is no field of '{component.name}' {nearest_path(target.field, paths - {''})}"
        yield _Fault("error", "applies-to", ("applies_to",), message)
        return
    labelled = _labelled_cases(component, fixtures, target.field)
    if labelled and _counts(component.plan, target.field):
        message = (
            f"{labelled} cases of '{component.name}' have ground truth for '{target.field or 'the whole answer'}', "
            "which code compares exactly and free of charge; use the metrics of `evaluate` instead of a judge"
        )
        yield _Fault("error", "ground-truth", ("applies_to",), message)


def _labelled_cases(component: Component, fixtures: Path | None, field: str) -> int:
    """Return how many cases have a true value at a field; none where there are no cases."""
    try:
        cases = load_cases(component, fixtures)
    except FixtureError:
        return 0
    return sum(
        any(part.path == field and value is not None for part, value in component.plan.walk(case.truth))
        for case in cases
        if case.labelled
    )


def _counts(plan: FieldPlan, field: str) -> bool:
    """Return whether the deterministic metrics compare a field: all do but free text, and what is ignored."""
    if field in plan.arrays:
        return True
    return any(rule.counts for rule in plan.leaves.values()) if not field else plan.leaves[field].counts
