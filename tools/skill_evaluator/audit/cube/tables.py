"""A cube in files: tables of scores or of single answers, read and written."""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.cube.cube import Cube, Missing, Outcomes, cube_of_outcomes, cube_of_scores
from skill_evaluator.errors import AuditError
from skill_evaluator.files import json_text, read_text, replace_blocks, replace_text

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
                columns = _transpose(block, path, line)
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


def _transpose(block: Sequence[Sequence[str]], path: Path, line: int) -> list[tuple[str, ...]]:
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
