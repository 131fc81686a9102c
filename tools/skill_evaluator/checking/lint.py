"""Lint of components and of rubrics: errors, and hints on probable mistakes, which may be intended."""

import datetime
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from skill_evaluator.checks import Check
from skill_evaluator.comparing.declarations import schema_places
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule, amount
from skill_evaluator.errors import ComponentError, NotEvaluatedError, SkillEvaluatorError
from skill_evaluator.evaluation.runs import judge_of
from skill_evaluator.files import FrozenModel, read_json
from skill_evaluator.judges.modes.run_outputs import read_pinned
from skill_evaluator.library.cases import Case, UnfilledError, cases_without_document, find_cases, read_cases
from skill_evaluator.library.components import Component, Scoring, load_component
from skill_evaluator.library.config import ComponentPolicy, Model, SafetyLimits, Settings
from skill_evaluator.library.prompts import section_headings
from skill_evaluator.library.rubrics import MITIGATIONS, USUAL_METHOD, Criterion, Place, RubricText, read_rubric_text
from skill_evaluator.parsing import Output
from skill_evaluator.providers.structured import schema_problems
from skill_evaluator.records.archive import Archive
from skill_evaluator.stats import by_key
from skill_evaluator.text import listed, nearest
from skill_evaluator.verdicts.sizing import FEW_CASES, can_show, profile_doubt

Declaration = Mapping[str, Any]
_NO_TRUTH = "whether values are right is not measured: no case has a ground truth or a check"
_MIN_TRUTHS = 3  # fewer ground truths show no pattern
_DATE_FORMATS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d")
_MONEY = re.compile(r"\d,\d{3}(?!\d)|\d[.,]\d\d(?!\d)")  # digits alone, or `47.041`, may be a code


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """One field or array of the field plan, with the rule of its comparison and the `reason` for the rule."""

    path: str
    kind: Literal["field", "array"]
    rule: FieldRule
    reason: str

    @property
    def counted(self) -> bool:
        """Whether the field counts in field_level_f1."""
        return self.kind == "field" and self.rule.counts and self.rule.weight > 0


def plan_lines(component: Component, declared: Mapping[str, Declaration]) -> list[PlanLine]:
    """Return the arrays and fields of the field plan in the schema's order, each array before its items.

    An output that is not JSON is one field with the path "". `declared` has the entries of evals/datasets.json by path.
    """
    plan, schema = component.scoring.plan, component.contract.schema
    prose = {path: f"prose, {size:g} characters; " for path, size in component.scoring.prose.items()}

    def field_line(path: str, rule: FieldRule, reason: str) -> PlanLine:
        return PlanLine(path=path, kind="field", rule=rule, reason=prose.get(path, "") + reason)

    if component.output != "json":
        return [field_line("", plan.leaf("", ""), f"output: {component.output}")]
    if schema is None:
        return [field_line(path, rule, "no schema") for path, rule in plan.leaves.items()]
    lines = []
    for path, location in schema_places(schema).items():
        declaration = declared.get(path, {})
        if path in plan.arrays:
            reason = _reason(declaration, ("align", "key"), location.kind)
            lines.append(PlanLine(path=path, kind="array", rule=plan.arrays[path], reason=reason))
        elif path in plan.leaves:
            reason = _reason(declaration, ("compare",), f"{prose.get(path, '')}schema")
            lines.append(PlanLine(path=path, kind="field", rule=plan.leaves[path], reason=reason))
    return lines


def _reason(declaration: Declaration, deciding: Sequence[str], inferred: str) -> str:
    if any(declaration.get(name) for name in deciding):
        return "declared"
    return f"{inferred} (declared: {', '.join(sorted(declaration))})" if declaration else inferred


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedCases:
    """The numbers of reviewed cases and of those with ground truth, and the ids of cases that are not evaluated."""

    reviewed: int = 0
    labelled: int = 0
    waiting: Sequence[str] = ()  # cases without a document
    unreviewed: Sequence[str] = ()  # drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class LintResult:
    """A lint result. If the component cannot be loaded, `version`, `output` and `primary_metric` are None."""

    name: str
    version: str | None = None
    output: Output | None = None
    metrics: Sequence[str] = ()
    primary_metric: str | None = None
    inferred: Sequence[str] = ()
    lines: Sequence[PlanLine] = ()
    checks: Sequence[Check] = ()
    cases: LintedCases = LintedCases()
    not_evaluated: str | None = None  # the reason why no case is evaluated
    hints: Sequence[str] = ()
    problems: Sequence[str] = ()


def lint_component(
    components: Path, name: str, fixtures: Path | None, settings: Settings, models: Sequence[Model] = ()
) -> LintResult:
    """Lint a component with its cases, policy and judge. Errors become problems of the result."""
    try:
        component = load_component(components, name, settings.limits, fixtures)
        path = component.files.datasets  # checked with the component
        declared = read_json(path, ComponentError)["datasets"][0].get("fields", {}) if path.exists() else {}
    except NotEvaluatedError as reason:
        return LintResult(name=name, not_evaluated=str(reason))
    except SkillEvaluatorError as problem:
        return LintResult(name=name, problems=[str(problem)])
    read, waiting, not_evaluated, case_problems = _read_cases(component)
    cases = [case for case in read if not case.unreviewed]
    if read and not cases and not case_problems:
        not_evaluated = f"component '{name}' is not evaluated yet: no case is reviewed"
    settings_problems, stale = list[str](), list[str]()
    try:
        judge_of(component, cases, (), tuple(models), settings)
    except SkillEvaluatorError as problem:
        settings_problems.append(str(problem))
    settings_problems += _unknown_in_policy(component, cases, settings)
    try:
        stale += _stale_outputs(component, cases)
    except SkillEvaluatorError as problem:
        settings_problems.append(str(problem))
    labelled = sum(case.labelled for case in cases)
    has_no_array = component.contract.schema is not None and not component.scoring.plan.arrays
    return LintResult(
        name=name,
        version=component.version,
        output=component.output,
        metrics=[name for name in component.scoring.metrics if name != "jaccard" or not has_no_array],
        primary_metric=component.scoring.primary_metric,
        inferred=component.inferred,
        lines=plan_lines(component, declared),
        checks=list({check.id: check for case in reversed(cases) for check in reversed(case.checks)}.values())[::-1],
        cases=LintedCases(
            reviewed=len(cases),
            labelled=labelled,
            waiting=waiting,
            unreviewed=[case.id for case in read if case.unreviewed],
        ),
        not_evaluated=not_evaluated,
        hints=[
            *component.inferred,
            *_section_hints(component),
            *hints(component, [case.truth for case in cases if case.labelled]),
            *(() if case_problems else stale),
            *([can_show(labelled)] if 0 < labelled < FEW_CASES else []),
            *([_NO_TRUTH] if cases and not labelled and not any(case.checks for case in cases) else []),
            *_contradicted_profiles(component),
        ],
        problems=[*case_problems, *schema_problems(component, models), *settings_problems],
    )


def _read_cases(component: Component) -> tuple[list[Case], list[str], str | None, list[str]]:
    """Return (cases, ids of cases without document, reason why no case is evaluated or None, problems)."""
    cases, waiting, not_evaluated, case_problems = list[Case](), list[str](), None, list[SkillEvaluatorError]()
    try:
        waiting += [] if component.output == "choice" else cases_without_document(find_cases(component))
        cases += read_cases(component, on_problem=case_problems.append)
    except NotEvaluatedError as reason:
        not_evaluated = str(reason)
    except SkillEvaluatorError as problem:
        case_problems.append(problem)
    problems = list(map(str, case_problems))
    if len(case_problems) > 1 and not cases and all(isinstance(problem, UnfilledError) for problem in case_problems):
        problems = [
            f"no case has all inputs of the prompt: {case_problems[0]} (same in all {len(case_problems)} cases)"
        ]
    return cases, waiting, not_evaluated, problems


def _unknown_in_policy(component: Component, cases: Sequence[Case], settings: Settings) -> Iterator[str]:
    policy, plan = settings.policy.components.get(component.name, ComponentPolicy()), component.scoring.plan
    key = f"policy.components.{component.name}"
    if plan.leaves and not plan.stars:
        checks = {f"checks.{check.id}" for case in cases for check in case.checks}
        yield from unknown_names(f"{key}.fields", policy.fields, {*plan.leaves, *plan.arrays, *checks})
    ids = {case.id for case in cases}
    yield from unknown_names(f"{key}.critical_cases", policy.critical_cases, ids)
    yield from unknown_names(f"{key}.unstable_cases", policy.unstable_cases, ids)
    for name, unstable in policy.unstable_cases.items():
        if unstable.is_over:
            yield f"{key}.unstable_cases: '{name}' was unstable until {unstable.until}; extend the date or delete it"
        if name in policy.critical_cases:
            yield f"{key}: '{name}' is in critical_cases and in unstable_cases; delete one of them"


def unknown_names(key: str, names: Iterable[str], existing: Collection[str]) -> Iterator[str]:
    """Yield a message for each name in the setting `key` that does not exist, with the most similar existing name."""
    for name in names:
        if name not in existing:
            yield f"{key}: '{name}' does not exist {nearest(name, existing)}"


def _section_hints(component: Component) -> Iterator[str]:
    headings = section_headings(component.prompt.system) if len(component.prompt.messages) == 1 else []
    if headings:
        yield (
            f"prompt.md has the heading '{headings[0][0].strip()}' but is a single system prompt; "
            "if messages begin there, add `messages: sections` to its front matter"
        )


def _contradicted_profiles(component: Component) -> Iterator[str]:
    with suppress(SkillEvaluatorError):
        archive = Archive(component)
        for record in map(archive.record, {entry.model_id: entry for entry in reversed(archive.entries)}.values()):
            is_sampled = record.settings is not None and record.settings.profile == "sampled"
            if is_sampled and (doubt := profile_doubt(record)):
                yield f"record {record.run_id}: {doubt}"


def _stale_outputs(component: Component, cases: Sequence[Case]) -> Iterator[str]:
    by_id = {case.id: case for case in cases}
    for outputs in read_pinned(component.files.folder, component.name).values():
        stale = [
            f"case '{case_id}' {'changed' if case_id in by_id else 'no longer exists'}"
            for case_id, output in outputs.outputs.items()
            if case_id not in by_id or not by_id[case_id].was(output.case)
        ]
        if outputs.skill_version == component.version and outputs.digests.get("prompt") != component.digests["prompt"]:
            stale.append(f"the prompt of {component.version} changed")
        name = f"the pinned outputs of {outputs.model_id} ({outputs.run_id})"
        yield from (f"{name} are stale: {reason}; pin a newer run with `judge pin RUN`" for reason in stale)


def hints(component: Component, truths: Sequence[Any]) -> list[str]:
    """Return hints on prose fields. With three or more ground truths, add hints on texts that are dates or amounts."""
    plan, prose = component.scoring.plan, list(_prose_hints(component.scoring))
    if component.output != "json" or len(truths) < _MIN_TRUTHS:
        return prose
    parts = (part for truth in truths for part in plan.walk(truth))
    values = by_key((field.path, value) for field, value in parts if value is not None)
    return [*prose, *_type_hints(plan, values)]


def _prose_hints(scoring: Scoring) -> Iterator[str]:
    for path, median in scoring.prose.items():
        subject = f"'{path}'" if path else "the whole output"
        threshold = scoring.plan.leaves[path].threshold
        counts = "is not in field_level_f1" if threshold is None else f"counts from token F1 {threshold:g}"
        advice = "" if threshold is not None else ', or a "threshold" from which it counts as equal'
        yield (
            f"{subject} is prose (a median of {median:g} characters in the ground truths): it is compared as text and "
            f'{counts}; declare "compare": "string" at fields.{json.dumps(path)} where the wording matters{advice}'
        )

    if scoring.primary_metric == "exact_match" and not scoring.plan.counts:
        remedy = (
            'declare the token F1 from which a text is right at fields in evals/datasets.json: {"": {"threshold": 0.6}}'
        )
        yield f"the primary metric is exact_match, but all outputs are prose: it would be 0 for every output; {remedy}"


def _type_hints(plan: FieldPlan, values_by_path: Mapping[str, list[Any]]) -> Iterator[str]:
    for path, rule in plan.leaves.items():
        values = values_by_path.get(path, [])
        if rule.compare != "string" or path in plan.declared or len(values) < _MIN_TRUTHS:
            continue
        where = f"at fields.{json.dumps(path)} in evals/datasets.json"
        formats = [form for form in _DATE_FORMATS if all(_is_date(value, form) for value in values)]
        if formats:
            declared = '"compare": "date"' + (f', "formats": ["{formats[0]}"]' if formats[0] != "%Y-%m-%d" else "")
            alternatives = f" (or {', '.join(formats[1:])})" if formats[1:] else ""
            yield f"'{path}' is a date in every ground truth; to compare days, declare {declared}{alternatives} {where}"
        elif all(isinstance(value, str) and amount(value) is not None and _MONEY.search(value) for value in values):
            declared = '"compare": "number", "from_string": true'
            yield f"'{path}' is a number in every ground truth; to compare amounts, declare {declared} {where}"


def _is_date(value: Any, form: str) -> bool:
    with suppress(ValueError, TypeError):
        return bool(datetime.datetime.strptime(value, form))
    return False


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


def lint_rubrics(paths: Sequence[Path], limits: SafetyLimits) -> RubricLint:
    """Return the lint result of rubric files. A file that cannot be read has one error with the rule `unreadable`."""
    rubrics = tuple(_lint_rubric(path, limits) for path in paths)
    count = Counter(remark.severity for rubric in rubrics for remark in rubric.remarks)
    return RubricLint(rubrics=rubrics, errors=count["error"], warnings=count["warning"])


def _lint_rubric(path: Path, limits: SafetyLimits) -> LintedRubric:
    try:
        text = read_rubric_text(path, limits)
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
