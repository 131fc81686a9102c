"""A component with its cases and what its runs left → its field plan, hints, and everything that is wrong with it."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skill_evaluator.checking.hints import KeyBalance, hints, key_balance, waiver_hints
from skill_evaluator.comparing.field_plan import FieldRule
from skill_evaluator.comparing.schema_paths import Place, schema_places
from skill_evaluator.errors import ComponentError, JudgeError, NotEvaluatedError, SkillEvaluatorError
from skill_evaluator.files import read_json
from skill_evaluator.library.cases import (
    Case,
    case_folders,
    cases_without_document,
    find_cases,
    load_cases,
    read_question_cases,
)
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import DEFAULT_LIMITS, SafetyLimits, Waiver
from skill_evaluator.library.versions import Problem
from skill_evaluator.parsing import Output
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.pinned import read_pinned
from skill_evaluator.records.record import read_record
from skill_evaluator.repository import within
from skill_evaluator.runner.journal import ANSWERS, has_other_answers, read_manifest
from skill_evaluator.verdicts.planning.sizing import FEW_CASES, can_show

Declaration = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """One path of the field plan; `why` says where its comparison, or its alignment, comes from."""

    path: str
    kind: Literal["field", "array"]
    rule: FieldRule
    why: str

    @property
    def counted(self) -> bool:
        """Whether the field moves field_level_f1."""
        return self.kind == "field" and self.rule.counts and self.rule.weight > 0


def plan_lines(component: Component, declared: Mapping[str, Declaration]) -> list[PlanLine]:
    """Return every array and field of the plan in the schema's order, an array before its items.

    `declared` has the entries of evals/datasets.json by path.
    """
    plan, schema = component.plan, component.schema or {}
    if component.output != "json":
        why = f"{_prose(component, '')}output: {component.output}"
        return [PlanLine(path="", kind="field", rule=plan.leaf("", ""), why=why)]
    if component.schema is None:
        return [
            PlanLine(path=path, kind="field", rule=rule, why=f"{_prose(component, path)}no schema")
            for path, rule in plan.leaves.items()
        ]
    lines = []
    for path, place in schema_places(schema).items():
        given = declared.get(path, {})
        if path in plan.arrays:
            why = _reason(given, ("align", "key"), place.kind)
            lines.append(PlanLine(path=path, kind="array", rule=plan.arrays[path], why=why))
        elif path in plan.leaves:
            rule = plan.leaves[path]
            keyword = schema_keyword(place, rule.compare or "exact")
            why = _reason(given, ("compare",), _prose(component, path) + keyword)
            lines.append(PlanLine(path=path, kind="field", rule=rule, why=why))
    return lines


def _prose(component: Component, path: str) -> str:
    return f"prose, {component.prose[path]:g} characters; " if path in component.prose else ""


def _reason(given: Declaration, deciding: Sequence[str], inferred: str) -> str:
    """Say what decided: the declaration, or the schema and what is declared beside it, such as a weight."""
    if any(given.get(name) for name in deciding):
        return "declared"
    return f"{inferred} (declared: {', '.join(sorted(given))})" if given else inferred


def schema_keyword(place: Place, compare: str) -> str:
    """Return the keyword of the schema from which the comparison at a place is inferred.

    >>> schema_keyword(Place(nodes=[{"type": ["string", "null"], "format": "date"}]), "date")
    'format: date'
    """
    keywords = []
    for node in place.nodes:
        if "enum" in node or "const" in node:
            keywords.append("enum" if "enum" in node else "const")
        elif compare == "date" and "format" in node:
            keywords.append(f"format: {node['format']}")
        else:
            types = node.get("type", ())
            names = [name for name in ([types] if isinstance(types, str) else types) if name != "null"]
            keywords += [f"type: {' or '.join(names)}"] if names else []
    return " or ".join(dict.fromkeys(keywords)) or "the schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """What lint says of a component; `version`, `output` and `primary_metric` are None when it could not be loaded.

    `attested` counts its records by what a platform attests of them, if that was asked for. `not_evaluated` says why
    it is not to be evaluated, or not yet, and `waiting` are the ids of its cases that have no document yet. It can be
    sent between processes.
    """

    name: str
    version: str | None = None
    output: Output | None = None
    metrics: Sequence[str] = ()
    primary_metric: str | None = None
    inferred: Sequence[str] = ()
    lines: Sequence[PlanLine] = ()
    cases: int = 0
    labelled: int = 0
    hints: Sequence[str] = ()
    problems: Sequence[str] = ()
    balance: KeyBalance | None = None
    attested: Mapping[str, int] | None = None
    not_evaluated: str | None = None
    waiting: Sequence[str] = ()


def lint_component(
    components: Path,
    name: str,
    fixtures: Path | None,
    problems: Sequence[str],
    waivers: Sequence[Waiver] = (),
    limits: SafetyLimits = DEFAULT_LIMITS,
) -> Linted:
    """Read a component with all its cases and check it, and its waivers; `problems` with it are known already."""
    try:
        component = load_component(components, name, limits, fixtures)
        path = component.folder / "evals" / "datasets.json"  # checked with the component
        declared = read_json(path, ComponentError)["datasets"][0].get("fields", {}) if path.exists() else {}
    except NotEvaluatedError as reason:
        return Linted(name=name, not_evaluated=str(reason), problems=problems)
    except SkillEvaluatorError as problem:
        return Linted(name=name, problems=list(dict.fromkeys([str(problem), *problems])))
    not_evaluated = None
    waiting: list[str] = []
    cases: list[Case] = []
    case_problems: list[str] = []
    try:
        waiting = [] if component.output == "choice" else cases_without_document(find_cases(component, fixtures))
        cases, case_problems = _read_cases(component, fixtures, waiting)
    except NotEvaluatedError as reason:
        not_evaluated = str(reason)
    except SkillEvaluatorError as problem:
        case_problems = [str(problem)]
    stale, pinned_problems = pinned_remarks(component, cases)
    labelled = sum(case.labelled for case in cases)
    balance = key_balance(cases) if component.output == "choice" else None
    return Linted(
        name=name,
        version=component.version,
        output=component.output,
        metrics=list(component.metrics),
        primary_metric=component.primary_metric,
        inferred=component.inferred,
        lines=plan_lines(component, declared),
        cases=len(cases),
        labelled=labelled,
        hints=[
            *component.inferred,
            *hints(component, [case.truth for case in cases if case.labelled]),
            *(balance.warnings if balance else ()),
            *waiver_hints(waivers, name),
            *(() if case_problems else stale),
            *([can_show(labelled)] if 0 < labelled < FEW_CASES else []),
            *_served_otherwise(component),
        ],
        balance=balance,
        not_evaluated=not_evaluated,
        waiting=waiting,
        problems=[*case_problems, *pinned_problems, *problems],
    )


def _served_otherwise(component: Component) -> list[str]:
    """Return of each model's newest record what else answered; of one that cannot be read others say so."""
    with suppress(SkillEvaluatorError):
        archive = Archive(component)
        newest = {entry.model_id: entry for entry in reversed(archive.entries)}
        records = map(archive.record, newest.values())
        return [f"record {record.run_id}: {words}" for record in records if (words := record.served_otherwise)]
    return []


def _read_cases(component: Component, fixtures: Path | None, waiting: Sequence[str]) -> tuple[list[Case], list[str]]:
    """Return the cases that are in order, and the problems of the others; raise NotEvaluatedError without any case."""
    try:
        return list(load_cases(component, fixtures)), []
    except NotEvaluatedError:
        raise
    except SkillEvaluatorError as problem:
        first = str(problem)
    place = find_cases(component, fixtures)
    if component.output == "choice":
        return read_question_cases(place, component)
    good: list[Case] = []
    problems: list[str] = []
    for name in [folder.name for folder in case_folders(place) if folder.name not in waiting]:
        try:
            good += load_cases(component, fixtures, [glob.escape(name)])
        except SkillEvaluatorError as problem:
            problems.append(str(problem))
    return good, problems or [first]


def answer_problems(components: Path, name: str, folder: str) -> Iterator[Problem]:
    """Yield each record of a component whose run folder is still here, and keeps other answers.

    `folder` names the folder of components in the problems. What cannot be read is left to the checks of its own file.
    """
    evals = components / name / "evals"
    for path in sorted((evals / "records").glob("*.json")):
        run = evals / "results" / path.stem
        if not (run / ANSWERS).exists():
            continue
        try:
            is_other = has_other_answers(read_record(path), run, read_manifest(run))
        except SkillEvaluatorError:
            continue
        if is_other:
            message = f"this record was not made of the answers in {run / ANSWERS}: one of the two was edited"
            yield Problem(file=within(folder, f"{name}/evals/records/{path.name}"), line=1, message=message)


def pinned_remarks(component: Component, cases: Sequence[Case]) -> tuple[list[str], list[str]]:
    """Return hints on outputs that are stale, and problems with files that cannot be used.

    An output is stale if its case is gone or changed, or if the prompt of its version changed.
    """
    try:
        pinned = read_pinned(component.folder, component.name)
    except JudgeError as problem:
        return [], [str(problem)]
    digests, remarks = {case.id: case.digest for case in cases}, []
    for outputs in pinned.values():
        stale = [
            f"case '{case_id}' is {'another' if case_id in digests else 'gone'}"
            for case_id, output in outputs.outputs.items()
            if digests.get(case_id) != output.case
        ]
        if outputs.skill_version == component.version and outputs.digests.get("prompt") != component.digests["prompt"]:
            stale.append(f"the prompt of {component.version} is another")
        name = f"the pinned outputs of {outputs.model_id} ({outputs.run_id})"
        remarks += [f"{name} are stale: {what}; pin a newer run with `judge pin RUN`" for what in stale]
    return remarks, []
