"""The cube: the score of every model in every scenario on every benchmark and, if known, of every output.

Missing scores are never imputed. Ability and fluctuation: Song et al. 2026 (arXiv 2602.02515), §3.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skill_evaluator.audit.request import Missing
from skill_evaluator.errors import AuditError, refuse
from skill_evaluator.files import read_text, replace_text
from skill_evaluator.library.tables import read_cells, with_decimal_point
from skill_evaluator.text import listed

Floats = NDArray[np.float64]
_MAX_NAMED = 4  # models and scenarios in an error message
_MAX_CELL_CHARS = 131_072
_SCENARIO_COLUMNS = ("template", "scenario")
_EMPTY_CELLS = {"", "na", "n/a", "nan", "null", "none", "-", "–"}
_OUTCOME_COLUMNS = ("model", "scenario", "benchmark", "question", "replicate", "score")


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: `means` is cached
class Outcomes:
    """The scores of the outputs on one benchmark: [models, scenarios, questions, replicates] in [0, 1].

    `questions` are case ids. NaN means "not measured": a provider failure or a call that was not made.
    """

    questions: tuple[str, ...]
    scores: NDArray[np.float32]

    @cached_property
    def means(self) -> Floats:
        """The mean over the measured replicates: [models, scenarios, questions] in [0, 1]. NaN if none was measured."""
        scores = self.scores
        measured = ~np.isnan(scores)
        counts = measured.sum(axis=3)
        sums = np.where(measured, scores, 0.0).sum(axis=3, dtype=np.float64)
        return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Cube:
    """The scores of an audit, [models, scenarios, benchmarks] in per cent, and the weight of each benchmark."""

    models: tuple[str, ...]
    scenarios: tuple[str, ...]
    benchmarks: tuple[str, ...]
    scores: Floats  # array of models × scenarios × benchmarks, per cent; NaN: missing
    weights: Floats  # one weight per benchmark; their sum is 1
    outcomes: Mapping[str, Outcomes] | None = None  # scores of the outputs by benchmark; None: unknown
    questions: Mapping[str, int] = field(default_factory=dict)  # number of questions by benchmark, if known
    treatment: str | None = None  # text on the scores that were excluded or centered; None: no scores were

    @cached_property
    def overall(self) -> Floats:
        """The score of each model in each scenario, in per cent: the weighted mean of the scores over benchmarks."""
        return self.scores @ self.weights

    @cached_property
    def abilities(self) -> Floats:
        """The ability μ of each model, in per cent: the mean of `overall` over the scenarios."""
        return np.asarray(self.overall.mean(axis=1))

    @cached_property
    def fluctuations(self) -> Floats:
        """The fluctuation σ of each model, in points: the sample standard deviation of `overall` over the scenarios."""
        return np.asarray(self.overall.std(axis=1, ddof=1))

    def for_benchmark(self, benchmark: str) -> Self:
        """Return a copy with only the scores on one benchmark. The weight of this benchmark becomes 1."""
        column = self.benchmarks.index(benchmark)
        return replace(
            self,
            benchmarks=(benchmark,),
            scores=self.scores[:, :, [column]],
            weights=np.ones(1),
            outcomes=None if self.outcomes is None else {benchmark: self.outcomes[benchmark]},
        )

    def select(self, models: Sequence[str], scenarios: Sequence[str]) -> Self:
        """Return a copy with only the scores of these models in these scenarios, in this order."""
        cells = np.ix_([self.models.index(name) for name in models], [self.scenarios.index(name) for name in scenarios])
        outcomes = None
        if self.outcomes is not None:
            outcomes = {name: replace(known, scores=known.scores[cells]) for name, known in self.outcomes.items()}
        return replace(
            self, models=tuple(models), scenarios=tuple(scenarios), scores=self.scores[cells], outcomes=outcomes
        )

    def centered(self) -> Self:
        """Return a copy in which the mean score of the models on a benchmark is the same in all scenarios."""
        means = self.scores.mean(axis=0, keepdims=True)
        return replace(self, scores=self.scores - means + means.mean(axis=1, keepdims=True))

    def with_treatment(self, note: str) -> Self:
        """Return a copy with a sentence appended to `treatment`."""
        return replace(self, treatment=f"{self.treatment}; {note}" if self.treatment else note)

    @property
    def replicates(self) -> int | None:
        """The number of replicates per question, the minimum over the benchmarks. None if `outcomes` are unknown."""
        return None if self.outcomes is None else min(known.scores.shape[3] for known in self.outcomes.values())


def cube_of_scores(
    models: Sequence[str],
    scenarios: Sequence[str],
    benchmarks: Sequence[str],
    scores: Floats,
    *,
    weights: Mapping[str, float],
) -> Cube:
    """Build a cube from scores in per cent, [models, scenarios, benchmarks]. Scale weights (default 1) to the sum 1."""
    raw_weights = np.array([weights.get(name, 1.0) for name in benchmarks], dtype=np.float64)
    return Cube(
        models=tuple(models),
        scenarios=tuple(scenarios),
        benchmarks=tuple(benchmarks),
        scores=scores,
        weights=raw_weights / raw_weights.sum(),
    )


def cube_of_outcomes(
    models: Sequence[str], scenarios: Sequence[str], outcomes: Mapping[str, Outcomes], *, weights: Mapping[str, float]
) -> Cube:
    """Build a cube from `outcomes` by benchmark. A score is NaN if one of its questions has no measured output."""
    scores = np.stack([100.0 * benchmark.means.mean(axis=2) for benchmark in outcomes.values()], axis=2)
    cube = cube_of_scores(models, scenarios, tuple(outcomes), scores, weights=weights)
    return replace(cube, outcomes=outcomes, questions={name: len(known.questions) for name, known in outcomes.items()})


def without_gaps(cube: Cube, missing: Missing, source: str) -> Cube:
    """Return a cube in which no score is missing. `source` names the cube in errors.

    If a score is missing, "refuse" raises AuditError. The other values of `missing` exclude the models, scenarios or
    questions that lack a score; "questions" requires `cube.outcomes`. Raise AuditError, too, if nothing would be left.
    """
    holes = np.asarray(np.isnan(cube.scores).any(axis=2))
    if not holes.any():
        return cube
    if missing == "questions" and cube.outcomes is not None:
        return _complete_questions(cube, cube.outcomes, source)
    if missing in ("refuse", "questions"):
        gaps = [
            f"{model} in {listed(list(compress(cube.scenarios, row)), _MAX_NAMED)}"
            for model, row in zip(cube.models, holes, strict=True)
            if row.any()
        ]
        more = f"; and {len(gaps) - _MAX_NAMED} more models" if len(gaps) > _MAX_NAMED else ""
        raise AuditError(
            f"{source} lacks scores of {'; '.join(gaps[:_MAX_NAMED])}{more}: complete the scores, or exclude the "
            f"incomplete ones with {'' if cube.outcomes is None else '--missing questions, '}--missing scenarios or "
            "--missing models"
        )
    models, scenarios = list(cube.models), list(cube.scenarios)
    if missing == "models":
        models = list(compress(models, np.asarray(~holes.any(axis=1))))
    else:
        scenarios = list(compress(scenarios, np.asarray(~holes.any(axis=0))))
    if not models or not scenarios:
        raise AuditError(f"{source}: --missing {missing} would exclude all {missing}; each has a missing score")
    excluded = [name for name in cube.models if name not in models]
    excluded += [f"scenario {name}" for name in cube.scenarios if name not in scenarios]
    return cube.select(models, scenarios).with_treatment(f"excluded {listed(excluded)}: incomplete")


def _complete_questions(cube: Cube, outcomes: Mapping[str, Outcomes], source: str) -> Cube:
    selected, excluded = {}, []
    for name, benchmark in outcomes.items():
        complete = np.asarray(~np.isnan(benchmark.means).any(axis=(0, 1)))
        if not complete.any():
            raise AuditError(
                f"{source}: no question of benchmark '{name}' has an output of every model in every scenario; "
                "make the missing calls with `audit run`"
            )
        questions = tuple(compress(benchmark.questions, complete))
        selected[name] = Outcomes(questions=questions, scores=benchmark.scores[:, :, complete])
        excluded += [f"{name}/{question}" for question in compress(benchmark.questions, ~complete)]
    complete_cube = replace(cube_of_outcomes(cube.models, cube.scenarios, selected, weights={}), weights=cube.weights)
    return complete_cube.with_treatment(f"excluded {listed(excluded)}: some model has no output for them")


def read_cube(path: Path, *, weights: Mapping[str, float], missing: Missing = "refuse") -> Cube:
    """Read a CSV file of scores; `without_gaps` handles missing scores. Raise AuditError if the file is invalid."""
    benchmarks, cells = _read_scores(path)
    models = tuple(dict.fromkeys(model for model, _ in cells))
    scenarios = tuple(dict.fromkeys(scenario for _, scenario in cells))
    scores = np.full((len(models), len(scenarios), len(benchmarks)), np.nan)
    for (model, scenario), values in cells.items():
        scores[models.index(model), scenarios.index(scenario)] = values
    if 0 < np.max(scores, initial=0.0, where=~np.isnan(scores)) <= 1:
        raise AuditError(f"{path}: no score is above 1: these look like shares; write per cent, 0 to 100")
    return without_gaps(cube_of_scores(models, scenarios, benchmarks, scores, weights=weights), missing, str(path))


def _read_scores(path: Path) -> tuple[list[str], dict[tuple[str, str], list[float]]]:
    """Return the names of the benchmarks, and their scores by (model, scenario). A missing score is NaN."""
    rows = list(read_cells(read_text(path, AuditError), path, _MAX_CELL_CHARS, refuse))
    columns = list(rows[0][1]) if rows else []
    if len(columns) < 3 or columns[0] != "model" or columns[1] not in _SCENARIO_COLUMNS:
        raise AuditError(
            f"{path} has no rows with the columns model,template (or scenario),<benchmark>,…; "
            f"found: {','.join(columns) or 'nothing'}"
        )
    cells: dict[tuple[str, str], list[float]] = {}
    for line, row in rows:
        model, scenario, *texts = (cell.strip() for cell in row.values())
        if not model or not scenario:
            raise AuditError(f"{path}:{line} has no {columns[1] if model else columns[0]}")
        if (model, scenario) in cells:
            raise AuditError(f"{path}:{line} repeats {model} in {scenario}")
        named_texts = zip(columns[2:], texts, strict=True)
        cells[model, scenario] = [_parse_score(text, f"{path}:{line}", column) for column, text in named_texts]
    return columns[2:], cells


def _parse_score(cell: str, location: str, column: str) -> float:
    text = with_decimal_point(cell)
    if text.casefold() in _EMPTY_CELLS:
        return math.nan
    try:
        score = float(text.replace("_", "?"))  # float() would take 1_0 for 10
    except ValueError:
        raise AuditError(f"{location}: '{text}' in column {column} is not a number") from None
    if not 0 <= score <= 100:
        raise AuditError(f"{location}: {text} in column {column} is outside 0 to 100 (per cent right)")
    return score


def write_cube(cube: Cube, folder: Path) -> list[Path]:
    """Write cube.csv into a folder, and outcomes.csv if outputs are known. Return the paths of the written files."""
    table, answers = folder / "cube.csv", folder / "outcomes.csv"
    rows: list[list[Any]] = [["model", "template", *cube.benchmarks]]
    for model, scores in zip(cube.models, cube.scores.tolist(), strict=True):
        rows += [[model, scenario, *row] for scenario, row in zip(cube.scenarios, scores, strict=True)]
    replace_text(table, "".join(map(_csv_line, rows)))
    if cube.outcomes is None:
        return [table]
    replace_text(answers, "".join(map(_csv_line, [_OUTCOME_COLUMNS, *_outcome_rows(cube, cube.outcomes)])))
    return [table, answers]


def _outcome_rows(cube: Cube, outcomes: Mapping[str, Outcomes]) -> Iterator[Sequence[Any]]:
    for m, model in enumerate(cube.models):
        for t, scenario in enumerate(cube.scenarios):
            for name, benchmark in outcomes.items():
                for question, scores in zip(benchmark.questions, benchmark.scores[m, t], strict=True):
                    for replicate, score in enumerate(scores):
                        if not np.isnan(score):
                            digits = np.format_float_positional(score, trim="-")  # the shortest exact form
                            yield model, scenario, name, question, replicate, digits


def _csv_line(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)  # the default line ending makes it quote names that contain \r or \n
    return text.getvalue().removesuffix("\r\n") + "\n"
