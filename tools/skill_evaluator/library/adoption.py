"""What a library that exists lacks to be evaluated: which part of a schema is the contract of a component.

Its own module because it guesses, for a person to confirm; what is read everywhere else is declared.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.files import json_text, read_json
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.contract import Contract, constrains
from skill_evaluator.library.schema_files import read_schema
from skill_evaluator.library.truths import find_texts, output_of_truths, places_of, read_truths

_DEFINITIONS = ("$defs", "definitions")
_LIKELY = ("output", "answer", "response", "result")


def fitting_parts(folder: Path, limits: SafetyLimits) -> list[str]:
    """Return the parts of a component's schema.json that may be its contract, the likeliest first.

    There are some only where the whole schema asks nothing, or cannot be read; every ground truth validates against
    each of them.
    """
    path = folder / "schema.json"
    try:
        schema = read_json(path, limit=limits.size_of("schema_bytes"))
        if constrains(schema, schema):
            return []
        truths = _truths_of(folder, limits)
        places = [f"schema.json#/{key}/{name}" for key in _DEFINITIONS for name in schema.get(key, {})]
        fitting = [place for place in places if _fits(folder, place, truths, limits)]
    except (SkillEvaluatorError, AttributeError):  # lint says what is wrong with it
        return []
    return sorted(fitting, key=lambda place: place.rpartition("/")[2].lower() not in _LIKELY)


def declarations(folder: Path, place: str | None, limits: SafetyLimits) -> str | None:
    """Return the text of an evals/datasets.json with the contract and what is inferred of texts; None for neither."""
    truths = _truths_of(folder, limits)
    dataset: dict[str, Any] = {"schema": place} if place else {}
    with suppress(SkillEvaluatorError):  # lint says what is wrong with it
        schema = read_schema(folder, place, limits)[0]
        texts, prose = find_texts(schema, {}, truths)
        fields = {path: {"compare": "text" if path in prose else "string"} for path in texts if truths}
        dataset |= {"fields": fields} if fields else {}
    for_editors = "../../../.evaluator/schemas/datasets.json"
    return json_text({"$schema": for_editors, "datasets": [dataset]}) if dataset else None


def _truths_of(folder: Path, limits: SafetyLimits) -> list[Any]:
    cases = places_of(folder, folder.name, None, "cases")
    return list(read_truths(folder, cases, None, output_of_truths(cases), limits))


def _fits(folder: Path, place: str, truths: list[Any], limits: SafetyLimits) -> bool:
    try:
        schema, where, _ = read_schema(folder, place, limits)
        contract = Contract(schema, where)
    except SkillEvaluatorError:
        return False
    return constrains(schema, schema or {}) and all(map(contract.conforms, truths))
