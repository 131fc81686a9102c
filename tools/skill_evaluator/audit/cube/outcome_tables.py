"""A table of single answers → a cube: `model,scenario,benchmark,question,replicate,score`, one row an answer.

Its own module because such tables have millions of rows: they are read in blocks, and only numbers are kept.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.cube.cube import Cube, Missing, Outcomes, cube_of_outcomes
from skill_evaluator.audit.cube.tables import OUTCOME_COLUMNS, header_of, read_scores
from skill_evaluator.errors import AuditError

_BLOCK = 200_000  # rows
_MOST_REPLICATES = 1000
_LABELS = OUTCOME_COLUMNS[:5]
Indices = NDArray[np.int32]


class _Names(dict[str, int]):
    """Names in the order they occur; asking for a new one gives it the next number."""

    def __missing__(self, name: str) -> int:
        number = len(self)
        self[name] = number
        return number


@dataclass(frozen=True, slots=True)
class _Rows:
    """All rows as numbers: `labels` [5, rows] index into `names`, `scores` [rows]."""

    names: Mapping[str, _Names]
    labels: Indices
    scores: NDArray[np.float32]


def read_cube(path: Path, *, weights: Mapping[str, float], missing: Missing = "refuse") -> Cube:
    """Read a table of scores or of single answers, by its header; raises AuditError."""
    read = read_outcomes if header_of(path) == OUTCOME_COLUMNS else read_scores
    return read(path, weights=weights, missing=missing)


def read_outcomes(path: Path, *, weights: Mapping[str, float], missing: Missing = "refuse") -> Cube:
    """Read a table of single answers, scores in [0, 1]; raises AuditError with the line of what is wrong."""
    rows = _read(path)
    models, scenarios = tuple(rows.names["model"]), tuple(rows.names["scenario"])
    outcomes = {
        name: _benchmark(rows, number, len(models), len(scenarios), path)
        for name, number in rows.names["benchmark"].items()
    }
    return cube_of_outcomes(models, scenarios, outcomes, weights=weights, missing=missing, where=str(path))


def _read(path: Path) -> _Rows:
    names = {label: _Names() for label in _LABELS}
    labels: list[Indices] = []
    scores: list[NDArray[np.float32]] = []
    line = 2
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for block in _blocks(file):
                if not block:
                    continue
                columns = _columns(block, path, line)
                labels.append(np.stack([_numbers(names[label], columns[k]) for k, label in enumerate(_LABELS)]))
                scores.append(_scores(columns[5], path, line))
                line += len(block)
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise AuditError(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from None
    if not scores:
        raise AuditError(f"{path} has no row below its header")
    for label, known in names.items():
        wrong = next((name for name in known if not name or name != name.strip()), None)
        if wrong is not None:
            raise AuditError(f"{path} has a {label} that is empty or has spaces around it: '{wrong}'")
    if len(names["replicate"]) > _MOST_REPLICATES:
        raise AuditError(
            f"{path} has {len(names['replicate']):,} different replicates; number the answers to a question from 0"
        )
    return _Rows(names, np.concatenate(labels, axis=1), np.concatenate(scores))


def _blocks(file: Iterator[str]) -> Iterator[list[list[str]]]:
    reader = csv.reader(file, strict=True)
    next(reader)
    while block := list(islice(reader, _BLOCK)):
        while block and not block[-1]:
            block.pop()  # an empty line at the end
        yield block


def _columns(block: Sequence[Sequence[str]], path: Path, line: int) -> list[tuple[str, ...]]:
    try:
        columns = list(zip(*block, strict=True))
    except ValueError:
        columns = []
    if len(columns) != len(OUTCOME_COLUMNS):
        wrong = next(place for place, row in enumerate(block) if len(row) != len(OUTCOME_COLUMNS))
        raise AuditError(f"{path}:{line + wrong} has {len(block[wrong])} cells; the header has {len(OUTCOME_COLUMNS)}")
    return columns


def _numbers(names: _Names, column: Sequence[str]) -> Indices:
    return np.fromiter(map(names.__getitem__, column), np.int32, len(column))


def _scores(column: Sequence[str], path: Path, line: int) -> NDArray[np.float32]:
    try:
        scores = np.fromiter(map(float, column), np.float32, len(column))
    except ValueError:
        wrong = next(place for place, cell in enumerate(column) if not _is_number(cell))
        raise AuditError(f"{path}:{line + wrong}: '{column[wrong]}' in column score is no number") from None
    outside = np.flatnonzero(~((scores >= 0) & (scores <= 1)))
    if outside.size:
        wrong = int(outside[0])
        raise AuditError(f"{path}:{line + wrong}: {column[wrong]} in column score is outside 0 to 1")
    return scores


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _benchmark(rows: _Rows, number: int, models: int, scenarios: int, path: Path) -> Outcomes:
    """One benchmark's answers, laid out; raises AuditError where one occurs twice."""
    mine = np.flatnonzero(rows.labels[2] == number)
    m, t, _, question, replicate = rows.labels[:, mine]
    known, question = np.unique(question, return_inverse=True)
    replicates = int(replicate.max()) + 1
    shape = (models, scenarios, len(known), replicates)
    place = np.ravel_multi_index((m, t, question, replicate), shape)
    times = np.bincount(place, minlength=1)
    if times.max() > 1:
        again = mine[np.flatnonzero(place == int(np.argmax(times > 1)))]
        raise AuditError(f"{path}:{again[1] + 2} repeats the answer of line {again[0] + 2}")
    scores = np.full(shape, np.nan, dtype=np.float32)
    scores.ravel()[place] = rows.scores[mine]
    names = tuple(rows.names["question"])
    return Outcomes(questions=tuple(names[one] for one in known), scores=scores)
