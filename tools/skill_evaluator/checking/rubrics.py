"""`judge lint`: errors in a rubric, which make it unusable, and probable mistakes, each with line and rule."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Literal

from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.rubrics import MITIGATIONS, USUAL_METHOD, Criterion, Place, RubricText, read_rubric_text
from skill_evaluator.text import listed

Severity = Literal["error", "warning"]
Fault = tuple[Severity, str, Place, str]
"""The severity, the rule, the path in the criterion and the message of a mistake."""


class Remark(FrozenModel):
    """A mistake at a line of a rubric; `rule` is the name of the lint rule."""

    severity: Severity
    rule: str
    line: int
    message: str


class LintedRubric(FrozenModel):
    """The lint result of a rubric file: the ids of its criteria (none if it is invalid), and remarks sorted by line."""

    file: str
    criteria: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()


class RubricLint(FrozenModel):
    """The result of `judge lint`, with the numbers of errors and warnings."""

    rubrics: tuple[LintedRubric, ...]
    errors: int
    warnings: int


def lint_rubrics(paths: Sequence[Path], *, follow_links: bool) -> RubricLint:
    """Return the lint result of rubric files. A file that cannot be read has one error with the rule `unreadable`."""
    rubrics = tuple(_lint_rubric(path, follow_links=follow_links) for path in paths)
    count = Counter(remark.severity for rubric in rubrics for remark in rubric.remarks)
    return RubricLint(rubrics=rubrics, errors=count["error"], warnings=count["warning"])


def _lint_rubric(path: Path, *, follow_links: bool) -> LintedRubric:
    try:
        text = read_rubric_text(path, follow_links=follow_links)
    except SkillEvaluatorError as problem:
        match = re.match(rf"{re.escape(str(path))}:(\d+)(?::\d+)?: ", str(problem))
        message = str(problem)[match.end() :] if match else str(problem)
        remark = Remark(severity="error", rule="unreadable", line=int(match[1]) if match else 1, message=message)
        return LintedRubric(file=str(path), remarks=(remark,))
    rubric, problems = text.check()
    criteria = () if rubric is None else rubric.criteria
    remarks = [Remark(severity="error", rule="format", line=each.line, message=each.message) for each in problems]
    if rubric is not None and rubric.unreviewed:
        message = "a model drafted this rubric and nobody reviewed it; review it, then remove `unreviewed`"
        line = text.line(("unreviewed",))
        remarks.append(Remark(severity="warning", rule="unreviewed", line=line, message=message))
    for index, criterion in enumerate(criteria):
        for severity, rule, location, message in (*_level_faults(criterion), *_method_faults(criterion)):
            line = text.line(_json_path(text, location) if text.has_levels else ("criteria", index, *location))
            message = f"'{criterion.name}': {message}"
            remarks.append(Remark(severity=severity, rule=rule, line=line, message=message))
    remarks.sort(key=attrgetter("line"))
    return LintedRubric(file=str(path), criteria=tuple(each.id for each in criteria), remarks=tuple(remarks))


def _json_path(text: RubricText, location: Place) -> Place:
    if location[:1] != ("rubric",):
        return location
    scores = [level["score"] for level in text.value["levels"]]
    return ("levels", scores.index(location[1]), *location[2:]) if len(location) > 1 else ("levels",)


def _level_faults(criterion: Criterion) -> Iterator[Fault]:
    missing = [score for score in range(1, criterion.highest + 1) if score not in criterion.rubric]
    if criterion.highest == 10 and missing:
        message = f"every level of a scale 1-10 requires a description; missing: {listed(list(map(str, missing)), 9)}"
        yield "error", "undescribed-level", ("rubric",), message
    elif undescribed_ends := [score for score in missing if score in (1, criterion.highest)]:
        message = f"level {undescribed_ends[0]} is an end of the scale 1-{criterion.highest} and is not described"
        yield "error", "undescribed-level", ("rubric",), message
    scores = [score for score, level in sorted(criterion.rubric.items()) if not level.characteristics]
    if len(scores) == len(criterion.rubric):
        message = "no level has characteristics; describe what such a text shows, as in «two of the totals are wrong»"
        yield "error", "no-characteristic", ("rubric",), message
    else:
        for score in scores:
            message = f"level {score} has no characteristics; describe what such a text shows"
            yield "warning", "no-characteristic", ("rubric", score), message
    if not criterion.edge_cases:
        message = "no edge case; add a situation in which careful people may disagree, and the rule for it"
        yield "warning", "no-edge-case", (), message


_UNUSUAL = {
    "subjective": "a subjective criterion: people agree more on which of two texts is better than on a score",
    "objective": "an objective criterion: which of two texts is better does not say whether either is right",
}


def _method_faults(criterion: Criterion) -> Iterator[Fault]:
    method = criterion.primary_method
    if criterion.type is None:
        message = "no type; set `objective` (careful people agree) or `subjective`, which decides the method"
        yield "warning", "no-type", (), message
    elif method not in ("reference_based", usual := USUAL_METHOD[criterion.type]):
        message = f"{method} for {_UNUSUAL[criterion.type]}; use {usual}"
        yield "warning", "method", ("method", "primary"), message
    for index, name in enumerate(criterion.method.bias_mitigations if criterion.method else ()):
        if method not in MITIGATIONS[name]:
            message = f"{name} has no effect on {method}; it is for {' and '.join(MITIGATIONS[name])}"
            yield "warning", "mitigation", ("method", "bias_mitigations", index), message
