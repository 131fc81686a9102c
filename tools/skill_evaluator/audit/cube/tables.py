"""A cube in files: tables of scores or of single answers are read, and both are written.

A table of scores has one row a model and scenario: `model,template,<benchmark>,…`, per cent right. A table of single
answers has one row an answer: `model,scenario,benchmark,question,replicate,score`. It may have millions of rows, so it
is read and written in blocks, and only numbers are kept. Tables come from anywhere: an error names the line.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.cube.cube import Cube, Outcomes, cube_of_outcomes, cube_of_scores
from skill_evaluator.audit.request import Missing
from skill_evaluator.errors import AuditError
from skill_evaluator.files import json_text, read_text, replace_blocks, replace_text

_SCENARIO = ("template", "scenario")
_EMPTY = {"", "na", "n/a", "nan", "null", "none", "-", "–"}
_OUTCOME_COLUMNS = ("model", "scenario", "benchmark", "question", "replicate", "score")
_LABELS = _OUTCOME_COLUMNS[:5]
_BLOCK = 200_000  # rows
_MOST_REPLICATES = 1000
Indices = NDArray[np.int32]


def read_cube(path: Path, *, weights: Mapping[str, float], missing: Missing = "refuse") -> Cube:
    """Read a table of scores or of single answers, by its header; raise AuditError with the line of what is wrong."""
    with _opened(path) as lines:
        header = tuple(cell.strip() for cell in next(csv.reader(lines), []))
    if header == _OUTCOME_COLUMNS:
        rows = _read_rows(path)
        models, scenarios = tuple(rows.names["model"]), tuple(rows.names["scenario"])
        outcomes = {
            name: _lay_out(rows, number, len(models), len(scenarios), path)
            for name, number in rows.names["benchmark"].items()
        }
        return cube_of_outcomes(models, scenarios, outcomes, weights=weights, missing=missing, where=str(path))
    benchmarks, cells = _read_scores(path)
    models = tuple(dict.fromkeys(model for model, _ in cells))
    scenarios = tuple(dict.fromkeys(scenario for _, scenario in cells))
    scores = np.full((len(models), len(scenarios), len(benchmarks)), np.nan)
    for (model, scenario), values in cells.items():
        scores[models.index(model), scenarios.index(scenario)] = values
    if 0 < np.max(scores, initial=0.0, where=~np.isnan(scores)) <= 1:
        raise AuditError(f"{path}: no score is above 1, so that they look like shares; give them in per cent, 0 to 100")
    return cube_of_scores(models, scenarios, benchmarks, scores, weights=weights, missing=missing, where=str(path))


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield lines
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise AuditError(f"cannot read {path}: {getattr(problem, 'strerror', None) or problem}") from None


def _read_scores(path: Path) -> tuple[tuple[str, ...], dict[tuple[str, str], list[float]]]:
    """Read the benchmarks and, by model and scenario, the score on each of them; NaN where it is missing."""
    try:
        reader = csv.reader(io.StringIO(read_text(path, AuditError), newline=""), strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as problem:
        raise AuditError(f"{path} is no CSV: {problem}") from None
    columns = tuple(cell.strip() for cell in rows[0][1]) if rows else ()
    named = len(columns) >= 3 and columns[0] == "model" and columns[1] in _SCENARIO
    if not named or not all(columns) or len(set(columns)) != len(columns):
        raise AuditError(
            f"{path}:1 must name its columns: model,template,<benchmark>,… (a name for every one, none twice), "
            f"or {','.join(_OUTCOME_COLUMNS)}; it has: {','.join(columns) or 'nothing'}"
        )
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
        named_cells = zip(columns[2:], row[2:], strict=True)
        cells[key] = line, [_parse_score(cell, f"{path}:{line}", column) for column, cell in named_cells]
    if not cells:
        raise AuditError(f"{path} has no row below its header")
    return columns[2:], {key: scores for key, (_, scores) in cells.items()}


def _parse_score(cell: str, where: str, column: str) -> float:
    text = cell.strip()
    if text.casefold() in _EMPTY:
        return math.nan
    try:
        score = float(text.replace("_", "?"))  # float() would take 1_0 for 10
    except ValueError:
        raise AuditError(f"{where}: '{text}' in column {column} is no number") from None
    if not 0 <= score <= 100:
        raise AuditError(f"{where}: {text} in column {column} is outside 0 to 100 (per cent right)")
    return score


class _Names(dict[str, int]):
    """Names in the order they occur; a name that is looked up for the first time gets the next number."""

    def __missing__(self, name: str) -> int:
        number = len(self)
        self[name] = number
        return number

    def of(self, column: Sequence[str]) -> Indices:
        """Return the number of each name in a column."""
        return np.fromiter(map(self.__getitem__, column), np.int32, len(column))


@dataclass(frozen=True, slots=True)
class _Rows:
    """All rows as numbers: `labels` [5, rows] index into `names`, `scores` [rows]."""

    names: Mapping[str, _Names]
    labels: Indices
    scores: NDArray[np.float32]


def _read_rows(path: Path) -> _Rows:
    names = {label: _Names() for label in _LABELS}
    labels: list[Indices] = []
    scores: list[NDArray[np.float32]] = []
    with _opened(path) as file:
        for line, (*texts, cells) in _read_columns(file, path):
            named = zip(names.values(), texts, strict=True)
            labels.append(np.stack([numbers.of(column) for numbers, column in named]))
            scores.append(_parse_scores(cells, path, line))
    if not scores:
        raise AuditError(f"{path} has no row below its header")
    for label, occurring in names.items():
        wrong = next((name for name in occurring if not name or name != name.strip()), None)
        if wrong is not None:
            raise AuditError(f"{path} has a {label} that is empty or has spaces around it: '{wrong}'")
    if len(names["replicate"]) > _MOST_REPLICATES:
        raise AuditError(
            f"{path} has {len(names['replicate']):,} different replicates; number the answers to a question from 0"
        )
    return _Rows(names, np.concatenate(labels, axis=1), np.concatenate(scores))


def _read_columns(file: Iterator[str], path: Path) -> Iterator[tuple[int, list[tuple[str, ...]]]]:
    """Read the rows below the header in blocks, each as its first line's number and its columns."""
    reader = csv.reader(file, strict=True)
    next(reader)
    line = 2
    while block := list(islice(reader, _BLOCK)):
        while block and not block[-1]:  # empty lines at the end of a block
            block.pop()
        if not block:
            continue
        try:
            columns = list(zip(*block, strict=True))
        except ValueError:
            columns = []
        width = len(_OUTCOME_COLUMNS)
        if len(columns) != width:
            wrong = next(place for place, row in enumerate(block) if len(row) != width)
            raise AuditError(f"{path}:{line + wrong} has {len(block[wrong])} cells; the header has {width}")
        yield line, columns
        line += len(block)


def _parse_scores(column: Sequence[str], path: Path, line: int) -> NDArray[np.float32]:
    cells = iter(column)
    try:
        scores = np.fromiter(map(float, cells), np.float32, len(column))
    except ValueError:
        wrong = len(column) - len(list(cells)) - 1  # the last cell that was taken
        raise AuditError(f"{path}:{line + wrong}: '{column[wrong]}' in column score is no number") from None
    outside = np.flatnonzero(~((scores >= 0) & (scores <= 1)))
    if outside.size:
        wrong = int(outside[0])
        raise AuditError(f"{path}:{line + wrong}: {column[wrong]} in column score is outside 0 to 1")
    return scores


def _lay_out(rows: _Rows, benchmark: int, models: int, scenarios: int, path: Path) -> Outcomes:
    """Put the answers of one benchmark in their places; raise AuditError where one occurs twice."""
    mine = np.flatnonzero(rows.labels[2] == benchmark)
    m, t, _, question, replicate = rows.labels[:, mine]
    questions, question = np.unique(question, return_inverse=True)
    shape = (models, scenarios, len(questions), int(replicate.max()) + 1)
    place = np.ravel_multi_index((m, t, question, replicate), shape)
    times = np.bincount(place, minlength=1)
    if times.max() > 1:
        again = mine[np.flatnonzero(place == int(np.argmax(times > 1)))]
        raise AuditError(f"{path}:{again[1] + 2} repeats the answer of line {again[0] + 2}")
    scores = np.full(shape, np.nan, dtype=np.float32)
    scores.ravel()[place] = rows.scores[mine]
    names = tuple(rows.names["question"])
    return Outcomes(questions=tuple(names[number] for number in questions), scores=scores)


def write_cube(cube: Cube, folder: Path) -> list[Path]:
    """Write cube.csv, cube.json and, where single answers are known, outcomes.csv; raise StorageError.

    Names stand as they are, so that a table read again is the same table.
    """
    table, nested, answers = (folder / name for name in ("cube.csv", "cube.json", "outcomes.csv"))
    lines = [_line("model", "template", *cube.benchmarks)]
    for model, rows in zip(cube.models, cube.scores.tolist(), strict=True):
        lines += [_line(model, scenario, *scores) for scenario, scores in zip(cube.scenarios, rows, strict=True)]
    replace_text(table, "".join(lines))
    axes = {"models": list(cube.models), "scenarios": list(cube.scenarios), "benchmarks": list(cube.benchmarks)}
    replace_text(nested, json_text({**axes, "weights": cube.weights.tolist(), "scores": cube.scores.tolist()}))
    if cube.outcomes is None:
        return [table, nested]
    replace_blocks(answers, _answer_blocks(cube, cube.outcomes))
    return [table, nested, answers]


def _answer_blocks(cube: Cube, outcomes: Mapping[str, Outcomes]) -> Iterator[str]:
    """Write the header, then a block a cell; an answer that was not measured has no line."""
    yield _line(*_OUTCOME_COLUMNS)
    ends = {
        name: [f"{_cells(question)},{r}" for question in benchmark.questions for r in range(benchmark.replicates)]
        for name, benchmark in outcomes.items()
    }
    texts: dict[float, str] = {}  # of float32, in as few digits as tell it from every other
    for m, model in enumerate(cube.models):
        for t, scenario in enumerate(cube.scenarios):
            for name, benchmark in outcomes.items():
                start = _cells(model, scenario, name)
                scores = benchmark.scores[m, t].ravel().tolist()
                new = {value for value in scores if value == value} - texts.keys()  # NaN is not equal to itself
                texts |= {value: np.format_float_positional(np.float32(value), trim="-") for value in new}
                pairs = zip(ends[name], scores, strict=True)
                yield "".join([f"{start},{end},{texts[value]}\n" for end, value in pairs if value == value])


def _line(*values: Any) -> str:
    return f"{_cells(*values)}\n"


def _cells(*values: Any) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(values)  # whose own end of line has both marks, so that a name with either is quoted
    return text.getvalue().removesuffix("\r\n")
