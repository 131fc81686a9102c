"""`judge lint`: mistakes in a rubric, each with its line and rule.

A rubric that two careful people would read differently cannot be calibrated. Errors are what no judge can follow;
warnings are often a mistake and can be right.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.rubrics import MITIGATIONS, USUAL_METHOD, Criterion, Place, RubricText, read_rubric_text
from skill_evaluator.text import listed

Severity = Literal["error", "warning"]
Fault = tuple[Severity, str, Place, str]
"""The severity, the rule, the place in the criterion and the message of a mistake."""


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


def lint_rubrics(paths: Sequence[Path], *, follow_links: bool) -> RubricLint:
    """Check rubrics."""
    rubrics = tuple(_lint_rubric(path, follow_links=follow_links) for path in paths)
    count = Counter(remark.severity for rubric in rubrics for remark in rubric.remarks)
    return RubricLint(rubrics=rubrics, errors=count["error"], warnings=count["warning"])


def _lint_rubric(path: Path, *, follow_links: bool) -> LintedRubric:
    try:
        text = read_rubric_text(path, follow_links=follow_links)
    except SkillEvaluatorError as problem:
        placed = re.match(rf"{re.escape(str(path))}:(\d+)(?::\d+)?: ", str(problem))
        message = str(problem)[placed.end() :] if placed else str(problem)
        remark = Remark(severity="error", rule="unreadable", line=int(placed[1]) if placed else 1, message=message)
        return LintedRubric(file=str(path), remarks=(remark,))
    rubric, problems = text.check()
    criteria = () if rubric is None else rubric.criteria
    remarks = [Remark(severity="error", rule="format", line=one.line, message=one.message) for one in problems]
    if rubric is not None and rubric.unreviewed:
        message = "a model drafted it, and nobody has read it; read it, then take `unreviewed` out"
        remarks.append(Remark(severity="warning", rule="unreviewed", line=text.line(("unreviewed",)), message=message))
    for index, criterion in enumerate(criteria):
        for severity, rule, place, message in (*_level_faults(criterion), *_method_faults(criterion)):
            line = text.line(_place_in_levels(text, place) if text.has_levels else ("criteria", index, *place))
            remarks.append(Remark(severity=severity, rule=rule, line=line, message=f"'{criterion.name}': {message}"))
    return LintedRubric(
        file=str(path),
        criteria=tuple(criterion.id for criterion in criteria),
        remarks=tuple(sorted(remarks, key=lambda remark: remark.line)),
    )


def _place_in_levels(text: RubricText, place: Place) -> Place:
    """Return the place in the JSON form of a place in a criterion."""
    if place[:1] != ("rubric",):
        return place
    scores = [level["score"] for level in text.value["levels"]]
    return ("levels", scores.index(place[1]), *place[2:]) if len(place) > 1 else ("levels",)


def _level_faults(criterion: Criterion) -> Iterator[Fault]:
    """Yield undescribed levels (the ends; of 1-10 all), levels without characteristics, and missing edge cases."""
    missing = [score for score in range(1, criterion.highest + 1) if score not in criterion.rubric]
    if criterion.highest == 10 and missing:
        message = f"of a scale 1-10 every level needs a description; missing: {listed(list(map(str, missing)), 9)}"
        yield "error", "undescribed-level", ("rubric",), message
    elif ends := [score for score in missing if score in (1, criterion.highest)]:
        message = f"level {ends[0]} is an end of the scale 1-{criterion.highest} and is not described"
        yield "error", "undescribed-level", ("rubric",), message
    bare = [score for score, level in sorted(criterion.rubric.items()) if not level.characteristics]
    if len(bare) == len(criterion.rubric):
        message = "no level has characteristics; say what is seen in a text, such as «two of the totals are wrong»"
        yield "error", "no-characteristic", ("rubric",), message
    else:
        for score in bare:
            message = f"level {score} has no characteristics; say what is seen in such a text"
            yield "warning", "no-characteristic", ("rubric", score), message
    if not criterion.edge_cases:
        message = "no edge case; add the situation on which two careful people would differ, and what to do then"
        yield "warning", "no-edge-case", (), message


_UNUSUAL = {
    "subjective": "a subjective criterion: people agree more on which of two texts is better than on a score",
    "objective": "an objective criterion: which of two texts is better does not say whether either is right",
}


def _method_faults(criterion: Criterion) -> Iterator[Fault]:
    """Yield a missing type, a method that is unusual for the type, and mitigations without effect in the method."""
    method = criterion.primary_method
    if criterion.type is None:
        message = "no type; say `objective` (careful people agree) or `subjective`, which decides the method"
        yield "warning", "no-type", (), message
    elif method not in ("reference_based", usual := USUAL_METHOD[criterion.type]):
        message = f"{method} for {_UNUSUAL[criterion.type]}; use {usual}"
        yield "warning", "method", ("method", "primary"), message
    for index, name in enumerate(criterion.method.bias_mitigations if criterion.method else ()):
        if method not in MITIGATIONS[name]:
            message = f"{name} has no effect on {method}; it is for {' and '.join(MITIGATIONS[name])}"
            yield "warning", "mitigation", ("method", "bias_mitigations", index), message
