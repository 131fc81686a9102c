"""An audit's scores as files for other programs: the table of cells, every single answer, and the cube as JSON.

Names stand as they are, so that a table read again is the same table. Single answers may be millions: they are written
a cell at a time.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from skill_evaluator.audit.cube.cube import Cube, Outcomes
from skill_evaluator.audit.cube.tables import OUTCOME_COLUMNS
from skill_evaluator.files import json_text, replace_blocks, replace_text


def write_cube(cube: Cube, folder: Path) -> list[Path]:
    """Write cube.csv, cube.json and, where single answers are known, outcomes.csv; raises StorageError."""
    table, nested, answers = (folder / name for name in ("cube.csv", "cube.json", "outcomes.csv"))
    replace_text(table, "".join(_table(cube)))
    replace_text(nested, json_text(_nested(cube)))
    if cube.outcomes is None:
        return [table, nested]
    replace_blocks(answers, _answers(cube, cube.outcomes))
    return [table, nested, answers]


def _table(cube: Cube) -> Iterator[str]:
    """One line a model and scenario, a column a benchmark."""
    yield _line("model", "template", *cube.benchmarks)
    for model, rows in zip(cube.models, cube.scores.tolist(), strict=True):
        for scenario, scores in zip(cube.scenarios, rows, strict=True):
            yield _line(model, scenario, *scores)


def _nested(cube: Cube) -> dict[str, Any]:
    return {
        "models": list(cube.models),
        "scenarios": list(cube.scenarios),
        "benchmarks": list(cube.benchmarks),
        "weights": cube.weights.tolist(),
        "scores": cube.scores.tolist(),
    }


def _answers(cube: Cube, outcomes: Mapping[str, Outcomes]) -> Iterator[str]:
    """The header, then a block a cell; an answer that was not measured has no line."""
    yield _line(*OUTCOME_COLUMNS)
    ends = {name: _ends(one) for name, one in outcomes.items()}
    shown: dict[float, str] = {}
    for place, model in enumerate(cube.models):
        for at, scenario in enumerate(cube.scenarios):
            for name, one in outcomes.items():
                start = _cells(model, scenario, name)
                scores = one.scores[place, at].ravel().tolist()
                shown.update({value: _shortest(value) for value in set(scores) - shown.keys() if value == value})
                pairs = zip(ends[name], scores, strict=True)
                yield "".join([f"{start},{end},{shown[value]}\n" for end, value in pairs if value == value])


def _ends(one: Outcomes) -> list[str]:
    """`question,replicate` of every answer of a cell, in the order of its scores."""
    return [f"{_cells(question)},{replicate}" for question in one.questions for replicate in range(one.replicates)]


def _shortest(score: float) -> str:
    """A float32 in as few digits as tell it from every other."""
    return np.format_float_positional(np.float32(score), trim="-")


def _line(*values: Any) -> str:
    return f"{_cells(*values)}\n"


def _cells(*values: Any) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(values)  # whose own end of line has both marks, so that a name with either is quoted
    return text.getvalue().removesuffix("\r\n")
