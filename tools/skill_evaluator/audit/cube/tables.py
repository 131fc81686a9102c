"""A table of scores → a cube. One row a model and scenario: `model,template,<benchmark>,…`, per cent right.

Its own module because such a table comes from anywhere: every row is checked, and what is wrong is said with its line.

A table from a file → a cube, whichever of the two kinds of table it is.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from skill_evaluator.audit.cube.cube import Cube, Missing, cube_of_scores
from skill_evaluator.errors import AuditError
from skill_evaluator.files import read_text

_SCENARIO = ("template", "scenario")
_EMPTY = {"", "na", "n/a", "nan", "null", "none", "-", "–"}
OUTCOME_COLUMNS = ("model", "scenario", "benchmark", "question", "replicate", "score")


def header_of(path: Path) -> tuple[str, ...]:
    """The names of a table's columns; raises AuditError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return tuple(cell.strip() for cell in next(csv.reader(lines), []))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise AuditError(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from None


def read_scores(path: Path, *, weights: Mapping[str, float], missing: Missing = "refuse") -> Cube:
    """Read a table of scores; raises AuditError with line and column for what is wrong in it."""
    try:
        reader = csv.reader(io.StringIO(read_text(path, AuditError), newline=""), strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as problem:
        raise AuditError(f"{path} is no CSV: {problem}") from None
    columns = _columns(rows[0][1] if rows else [], path)
    cells: dict[tuple[str, str], tuple[int, list[float]]] = {}
    for line, row in rows[1:]:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(columns):
            raise AuditError(f"{path}:{line} has {len(row)} cells; the header has {len(columns)}")
        key = (row[0].strip(), row[1].strip())
        if not all(key):
            raise AuditError(f"{path}:{line} has no {columns[0] if not key[0] else columns[1]}")
        if key in cells:
            raise AuditError(f"{path}:{line} repeats {key[0]} in {key[1]}, which line {cells[key][0]} has already")
        cells[key] = (
            line,
            [_score(cell, f"{path}:{line}", name) for name, cell in zip(columns[2:], row[2:], strict=True)],
        )
    if not cells:
        raise AuditError(f"{path} has no row below its header")
    _refuse_shares(cells.values(), path)
    models = tuple(dict.fromkeys(model for model, _ in cells))
    scenarios = tuple(dict.fromkeys(scenario for _, scenario in cells))
    scores = np.full((len(models), len(scenarios), len(columns) - 2), np.nan)
    for (model, scenario), (_, values) in cells.items():
        scores[models.index(model), scenarios.index(scenario)] = values
    return cube_of_scores(models, scenarios, columns[2:], scores, weights=weights, missing=missing, where=str(path))


def _refuse_shares(cells: Iterable[tuple[int, list[float]]], path: Path) -> None:
    known = [score for _, scores in cells for score in scores if not math.isnan(score)]
    if known and 0 < max(known) <= 1:
        raise AuditError(f"{path}: no score is above 1, so that they look like shares; give them in per cent, 0 to 100")


def _columns(header: Sequence[str], path: Path) -> tuple[str, ...]:
    columns = tuple(cell.strip() for cell in header)
    named = len(columns) >= 3 and columns[0] == "model" and columns[1] in _SCENARIO
    if not named or not all(columns) or len(set(columns)) != len(columns):
        raise AuditError(
            f"{path}:1 must name its columns: model,template,<benchmark>,… (a name for every one, none twice), "
            f"or {','.join(OUTCOME_COLUMNS)}; it has: {','.join(columns) or 'nothing'}"
        )
    return columns


def _score(cell: str, where: str, column: str) -> float:
    text = cell.strip()
    if text.casefold() in _EMPTY:
        return float("nan")
    try:
        score = float(text.replace("_", "?"))
    except ValueError:
        raise AuditError(f"{where}: '{text}' in column {column} is no number") from None
    if not 0 <= score <= 100:
        raise AuditError(f"{where}: {text} in column {column} is outside 0 to 100 (per cent right)")
    return score
