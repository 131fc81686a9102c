"""The cube: what every model scored in every scenario on every benchmark and, where it is known, on every question.

The one value that tables, runs and all statistics of an audit share. What a cube lacks is refused, or left out as the
user says, and then for every model; it is never filled in and never averaged over in silence.

A table of scores has one row a model and scenario: `model,template,<benchmark>,…`, per cent right. A table of single
answers has one row an answer: `model,scenario,benchmark,question,replicate,score`. It may have millions of rows, so it
is read and written in blocks, and only numbers are kept. Tables come from anywhere: an error names the line.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, islice
from pathlib import Path
from typing import Any, Self, TextIO

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.request import Missing
from skill_evaluator.errors import AuditError
from skill_evaluator.files import json_text, read_text, replace_blocks, replace_text
from skill_evaluator.library.tables import separator_of, with_decimal_point
from skill_evaluator.text import listed

Floats = NDArray[np.float64]
_SHOWN = 4  # models and scenarios that an error names
_SCENARIO = ("template", "scenario")
_EMPTY = {"", "na", "n/a", "nan", "null", "none", "-", "–"}
_OUTCOME_COLUMNS = ("model", "scenario", "benchmark", "question", "replicate", "score")
_LABELS = _OUTCOME_COLUMNS[:5]
_BLOCK = 200_000  # rows
_MOST_REPLICATES = 1000
Indices = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: what is derived is kept
class Outcomes:
    """One benchmark, question by question. `scores`: float32 [models, scenarios, questions, replicates] in [0, 1].

    NaN is "not measured": a provider's failure or a call that was not made, never a wrong answer.
    """

    questions: tuple[str, ...]
    scores: NDArray[np.float32]

    @property
    def replicates(self) -> int:
        """The number of answers that each question was asked for."""
        return int(self.scores.shape[3])

    @cached_property
    def means(self) -> Floats:
        """The means over measured replicates, [models, scenarios, questions] in [0, 1]; NaN where none was measured."""
        scores = self.scores
        if self.replicates == 1:
            return scores[..., 0].astype(np.float64)
        measured = ~np.isnan(scores)
        counts = measured.sum(axis=3)
        sums = np.where(measured, scores, 0.0).sum(axis=3, dtype=np.float64)
        return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCost:
    """The cost of a model in the audit: USD a call (None: unknown) and the median seconds of an answer."""

    usd_per_call: float | None
    latency_s: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Cube:
    """`scores`: [models, scenarios, benchmarks], per cent right, without holes. `weights` of the benchmarks sum to 1.

    `outcomes` by benchmark, where single answers are known; `questions` by benchmark, where at least their number is.
    `spending` and `answers` (how many were scored, unparseable, …) by model, where runs tell.
    `treatment`: what was left out, in words.
    """

    models: tuple[str, ...]
    scenarios: tuple[str, ...]
    benchmarks: tuple[str, ...]
    scores: Floats
    weights: Floats
    outcomes: Mapping[str, Outcomes] | None = None
    questions: Mapping[str, int] = field(default_factory=dict)
    spending: Mapping[str, ModelCost] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    treatment: str | None = None

    @cached_property
    def overall(self) -> Floats:
        """S(m, t): the weighted mean over the benchmarks, [models, scenarios], per cent."""
        return self.scores @ self.weights

    def on(self, benchmark: str) -> Self:
        """Return the cube of one benchmark alone."""
        place = self.benchmarks.index(benchmark)
        return replace(
            self,
            benchmarks=(benchmark,),
            scores=self.scores[:, :, [place]],
            weights=np.ones(1),
            outcomes=None if self.outcomes is None else {benchmark: self.outcomes[benchmark]},
            questions={name: count for name, count in self.questions.items() if name == benchmark},
        )

    def within(self, scenarios: Sequence[str]) -> Self:
        """Return the cube of some scenarios alone, in their order."""
        places = [self.scenarios.index(name) for name in scenarios]
        outcomes = {
            name: replace(benchmark, scores=benchmark.scores[:, places])
            for name, benchmark in (self.outcomes or {}).items()
        }
        return replace(self, scenarios=tuple(scenarios), scores=self.scores[:, places], outcomes=outcomes or None)

    @property
    def replicates(self) -> int | None:
        """The number of answers a question, the fewest over the benchmarks; None where single answers are not known."""
        return None if self.outcomes is None else min(outcomes.replicates for outcomes in self.outcomes.values())


def cube_of_scores(
    models: Sequence[str],
    scenarios: Sequence[str],
    benchmarks: Sequence[str],
    scores: Floats,
    *,
    weights: Mapping[str, float],
    missing: Missing = "refuse",
    where: str = "the table",
    lacking: str = "cell",
) -> Cube:
    """Make a cube of scores in per cent, [models, scenarios, benchmarks], with NaN where a cell is missing.

    A benchmark without a weight weighs 1. Raise AuditError for missing cells, unless `missing` says what to leave out;
    `lacking`: what a hole lacks, in words.
    """
    holes = np.asarray(np.isnan(scores).any(axis=2))
    if holes.any() and missing in ("refuse", "questions"):
        raise AuditError(_lacks(models, scenarios, holes, lacking, where))
    keeps_models = np.asarray(~(holes.any(axis=1) & (missing == "models")))
    keeps_scenarios = np.asarray(~(holes.any(axis=0) & (missing == "scenarios")))
    if not keeps_models.any() or not keeps_scenarios.any():
        raise AuditError(f"{where}: nothing is left when incomplete {missing} are left out")
    gone = [name for name, keeps in zip(models, keeps_models, strict=True) if not keeps]
    gone += [f"scenario {name}" for name, keeps in zip(scenarios, keeps_scenarios, strict=True) if not keeps]
    raw = np.array([weights.get(name, 1.0) for name in benchmarks], dtype=np.float64)
    return Cube(
        models=tuple(compress(models, keeps_models)),
        scenarios=tuple(compress(scenarios, keeps_scenarios)),
        benchmarks=tuple(benchmarks),
        scores=scores[np.ix_(keeps_models, keeps_scenarios)],
        weights=raw / raw.sum(),
        treatment=f"left out {listed(gone)}: incomplete" if gone else None,
    )


def cube_of_outcomes(
    models: Sequence[str],
    scenarios: Sequence[str],
    outcomes: Mapping[str, Outcomes],
    *,
    weights: Mapping[str, float],
    missing: Missing = "refuse",
    spending: Mapping[str, ModelCost] | None = None,
    answers: Mapping[str, Mapping[str, int]] | None = None,
    where: str = "the audit",
) -> Cube:
    """Make a cube of single answers; a question that some replicate of a cell answered counts as answered there.

    Raise AuditError where a question has no answer at all in some cell, unless `missing` says what to leave out.
    """
    treatment = None
    if missing == "questions":
        outcomes, treatment = _keep_answered(outcomes, where)
    scores = np.stack([100.0 * benchmark.means.mean(axis=2) for benchmark in outcomes.values()], axis=2)
    cube = cube_of_scores(
        models, scenarios, tuple(outcomes), scores, weights=weights, missing=missing, where=where, lacking="answer"
    )
    kept = np.ix_([models.index(name) for name in cube.models], [scenarios.index(name) for name in cube.scenarios])
    return replace(
        cube,
        outcomes={name: replace(benchmark, scores=benchmark.scores[kept]) for name, benchmark in outcomes.items()},
        questions={name: len(benchmark.questions) for name, benchmark in outcomes.items()},
        spending={name: spent for name, spent in (spending or {}).items() if name in cube.models},
        answers={name: counts for name, counts in (answers or {}).items() if name in cube.models},
        treatment=treatment or cube.treatment,
    )


def _keep_answered(outcomes: Mapping[str, Outcomes], where: str) -> tuple[dict[str, Outcomes], str | None]:
    """Keep the questions that every model answered in every scenario; return also which were left out, in words."""
    kept, dropped = {}, []
    for name, benchmark in outcomes.items():
        complete = np.asarray(~np.isnan(benchmark.means).any(axis=(0, 1)))
        if not complete.any():
            raise AuditError(f"{where}: no question of '{name}' has an answer from every model in every scenario")
        questions = tuple(compress(benchmark.questions, complete))
        kept[name] = Outcomes(questions=questions, scores=benchmark.scores[:, :, complete])
        dropped += [f"{name}/{question}" for question in compress(benchmark.questions, ~complete)]
    return kept, f"left out {listed(dropped)}: some model has no answer to them" if dropped else None


def _lacks(models: Sequence[str], scenarios: Sequence[str], holes: NDArray[np.bool_], lacking: str, where: str) -> str:
    """Say where there are holes, and how to do without them."""
    places = [
        f"{model} in {listed(list(compress(scenarios, own)), _SHOWN)}"
        for model, own in zip(models, holes, strict=True)
        if own.any()
    ]
    more = f"; and {len(places) - _SHOWN} more models" if len(places) > _SHOWN else ""
    ways = "scenarios or --missing models" if lacking == "cell" else "questions, scenarios or models"
    return (
        f"{where} lacks {lacking}s of {'; '.join(places[:_SHOWN])}{more}: complete it, or leave out what is "
        f"incomplete with --missing {ways}"
    )


def read_cube(path: Path, *, weights: Mapping[str, float], missing: Missing = "refuse") -> Cube:
    """Read a table of scores or of single answers, by its header; raise AuditError with the line of what is wrong."""
    with _opened(path) as lines:
        first = lines.readline()
        header = tuple(cell.strip() for cell in next(csv.reader([first], delimiter=separator_of(first)), []))
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
        raise AuditError(f"{path}: no score is above 1: these look like shares; write per cent, 0 to 100")
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
        text = read_text(path, AuditError)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(text), strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as problem:
        raise AuditError(f"{path} is not CSV: {problem}") from None
    columns = tuple(cell.strip() for cell in rows[0][1]) if rows else ()
    named = len(columns) >= 3 and columns[0] == "model" and columns[1] in _SCENARIO
    if not named or not all(columns) or len(set(columns)) != len(columns):
        raise AuditError(
            f"{path}:1 must name its columns: model,template,<benchmark>,… (each with a name of its own), "
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
    text = with_decimal_point(cell.strip())
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
    reader = csv.reader(file, delimiter=separator_of(next(file)), strict=True)
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
