"""The names of a component that a site may show if its documents are private: those that its schema declares.

If a schema allows any key, a path may be text of a ground truth or an output. If a schema allows any text, the label of
a category may be such text.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from skill_evaluator.checks import check_of
from skill_evaluator.comparing.declarations import schema_places
from skill_evaluator.display import WHOLE
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.accuracy import label
from skill_evaluator.records.record import CaseRecord, Record, check_path
from skill_evaluator.records.summaries import FieldSummary
from skill_evaluator.text import counted
from skill_evaluator.verdicts.component import ComponentStatus
from skill_evaluator.verdicts.decide.comparability import APART
from skill_evaluator.verdicts.decide.results import ComparisonResult, ModelVerdict
from skill_evaluator.verdicts.shipping import Point, Step

OTHERS = "(not in the schema)"
_FIELD, _CHECK = "a field that the schema does not name", "a check without a name"
ValueT = TypeVar("ValueT")
ModelT = TypeVar("ModelT", bound=BaseModel)


def _with(model: ModelT, **values: Any) -> ModelT:
    return model.model_copy(update=values)


class PublicNames:
    """The field paths and category values that a component's files declare.

    Other names are removed from records and verdicts, or replaced by a general text.
    """

    def __init__(self, component: Component) -> None:
        schema_paths = {} if component.contract.schema is None else schema_places(component.contract.schema)
        plan = component.scoring.plan
        checks = {check.id for check in component.scoring.checks}  # the id of a case's check may quote its ground truth
        of_cases = [dict(check) for _, _, row in component.files.cases.rows.rows for check in row.get("checks") or ()]
        checks |= {name for check in of_cases if (name := check.pop("id", None)) and check_of(check).id not in name}
        self._paths = {"", WHOLE, *schema_paths, *plan.leaves, *plan.arrays, *plan.declared, *map(check_path, checks)}
        self._labels = {
            path: {
                label(value)
                for node in place.nodes
                for value in node.get("enum", [node["const"]] if "const" in node else [])
            }
            for path, place in schema_paths.items()
        }
        self._choices = component.contract.schema is None  # labels of a multiple-choice question are its options

    def status(self, status: ComponentStatus) -> ComponentStatus:
        """Return the status of a component without private names, because such names may quote outputs."""
        history, ranking, reason = status.history, status.ranking, status.ranking.advice.reason
        paths = {path for record in status.newest.values() for path in record.per_field.keys() - record.accuracy.keys()}
        models = [
            _with(
                model,
                points=[self._public_point(point, paths) for point in model.points],
                flaky=[_with(value, path=self._public_path(value.path)) for value in model.flaky],
            )
            for model in history.models
        ]
        newest = {model_id: self.record(record) for model_id, record in status.newest.items()}
        for fell in {point.step.fell_most for model in history.models for point in model.points if point.step}:
            if fell and fell.rsplit(" ", 3)[0] not in self._paths:  # the path is followed by `0.500 → 1.000`
                reason = reason.replace(f"field {fell}", _FIELD)
        advice = _with(ranking.advice, reason=reason)
        history, ranking = _with(history, models=models, advice=advice), _with(ranking, advice=advice)
        return ComponentStatus(
            newest=newest,
            history=history,
            ranking=ranking,
            versions={version: self._public_result(result) for version, result in status.versions.items()},
            pairs=list(map(self._public_result, status.pairs)),
        )

    def remarks(self, status: ComponentStatus) -> list[str]:
        """Return one remark with the number of fields that are not shown. Return [] if all are shown."""
        every = {path for record in status.newest.values() for path in record.per_field}
        hidden = len(every - self._paths)
        hint = "The name may be text of an answer."
        return [f"Not shown: {counted(hidden, 'field')} that the schema does not name. {hint}"] if hidden else []

    def record(self, record: Record) -> Record:
        """Return a record without the fields, arrays, checks and labels that are not declared."""
        fields = self._public_paths(record.per_field)
        return _with(
            record,
            per_field={path: self._public_field(path, field) for path, field in fields.items()},
            per_array=self._public_paths(record.per_array),
            per_case=[self._public_case(case) for case in record.per_case],
        )

    def _public_paths(self, by_path: Mapping[str, ValueT]) -> dict[str, ValueT]:
        return {path: value for path, value in by_path.items() if path in self._paths}

    def _public_case(self, case: CaseRecord) -> CaseRecord:
        checks = {check_id: check for check_id, check in case.checks.items() if check_path(check_id) in self._paths}
        paths = self._public_paths
        return _with(case, profile=paths(case.profile), fields=paths(case.fields), checks=checks)

    def _public_field(self, path: str, field: FieldSummary) -> FieldSummary:
        """Merge undeclared labels of a confusion matrix into `OTHERS`. Drop a matrix without a declared true label."""
        if field.confusion is None or self._choices:
            return field
        named = self._labels.get(path, set()) | {label(None)}
        folded: dict[str, dict[str, int]] = {}
        for truth, outputs in field.confusion.items():
            row = folded.setdefault(truth if truth in named else OTHERS, {})
            for output, count in outputs.items():
                column = output if output in named else OTHERS
                row[column] = row.get(column, 0) + count
        is_declared = bool(folded.keys() & self._labels.get(path, set()))
        return _with(field, confusion=folded if is_declared else None)

    def _public_point(self, point: Point, paths: Iterable[str]) -> Point:
        if (step := point.step) is None:
            return point
        paths = {*paths, step.fell_most.rsplit(" ", 3)[0]}
        fell_most = self._public_text(step.fell_most, paths)
        return _with(point, step=_with(step, fell_most=fell_most, **self._public_reasons(step, paths)))

    def _public_result(self, result: ComparisonResult) -> ComparisonResult:
        return _with(result, models=[self._public_verdict(model) for model in result.models])

    def _public_verdict(self, model: ModelVerdict) -> ModelVerdict:
        broke, fixed = (
            [_with(change, fields=self._public_paths(change.fields)) for change in changes]
            for changes in (model.cases.broke, model.cases.fixed)
        )
        paths = {field.metric for field in model.fields} - {metric.metric for metric in model.metrics}
        return _with(
            model,
            fields=[field for field in model.fields if field.metric in self._paths],
            lost_fields=[path for path in model.lost_fields if path in self._paths],
            cases=_with(model.cases, broke=broke, fixed=fixed),
            **self._public_reasons(model, paths),
        )

    def _public_reasons(self, verdict: ModelVerdict | Step, paths: Iterable[str] = ()) -> dict[str, Any]:
        falls, since = verdict.falls, verdict.since_accepted
        paths = {*paths, *(path for path, _ in falls)}
        return {
            "reasons": [APART if one.startswith(APART) else self._public_text(one, paths) for one in verdict.reasons],
            "falls": [(self._public_path(path), words) for path, words in falls],
            "since_accepted": since and _with(since, metric=self._public_text(since.metric, paths)),
        }

    def _public_path(self, path: str) -> str:
        return path if path in self._paths else _CHECK if path.startswith(check_path("")) else _FIELD

    def _public_text(self, text: str, paths: Iterable[str]) -> str:
        """Replace the private names of fields (`paths`) and of checks in a text with general words."""
        names = sorted(filter(None, paths), key=len, reverse=True)  # a path may begin with another path
        pattern = "|".join([*map(re.escape, names), re.escape(check_path("")) + r"\w[\w-]*"])
        whole = rf"(?<!\w)(?<![\w\]][.-])(?:{pattern})(?![.-]?\w)"
        return re.sub(whole, lambda name: self._public_path(name[0]), text)
