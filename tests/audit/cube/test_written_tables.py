"""An audit's scores as files: what is written can be read again, and nothing that was not measured is made up."""

import csv
import json
from pathlib import Path

import numpy as np
from skill_evaluator.audit.cube.cube import Cube, Outcomes, normalised_weights
from skill_evaluator.audit.cube.tables import write_cube

ODD = ('a"b', "c,d", "line\nbreak", "return\rhere", "=1+1", " room ")


def cube(**changed: object) -> Cube:
    fields: dict[str, object] = {
        "models": ("Kimi-K2", "elm"),
        "scenarios": ("0", "1"),
        "benchmarks": ("gpqa", "mmlu_pro"),
        "scores": np.array([[[47.0, 54.0], [51.0, 61.5]], [[100 / 3, 0.0], [30.0, 31.0]]]),
        "weights": normalised_weights(("gpqa", "mmlu_pro"), {"gpqa": 3.0}),
    }
    return Cube(**{**fields, **changed})  # type: ignore[arg-type]


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.reader(handle))


def test_the_table_has_a_line_a_model_and_scenario_and_loses_no_digit_nor_does_the_json(tmp_path: Path) -> None:
    assert [path.name for path in write_cube(cube(), tmp_path)] == ["cube.csv", "cube.json"]
    assert (tmp_path / "cube.csv").read_text() == (
        "model,template,gpqa,mmlu_pro\n"
        "Kimi-K2,0,47.0,54.0\n"
        "Kimi-K2,1,51.0,61.5\n"
        "elm,0,33.333333333333336,0.0\n"
        "elm,1,30.0,31.0\n"
    )
    write_cube(cube(), tmp_path)
    read = json.loads((tmp_path / "cube.json").read_text())
    assert list(read) == ["models", "scenarios", "benchmarks", "weights", "scores"]
    assert (read["models"], read["scenarios"]) == (["Kimi-K2", "elm"], ["0", "1"])
    assert (read["benchmarks"], read["weights"]) == (["gpqa", "mmlu_pro"], [0.75, 0.25])
    assert read["scores"] == cube().scores.tolist()


def test_odd_names_are_read_again_as_they_are(tmp_path: Path) -> None:
    odd = cube(models=ODD, scores=np.ones((len(ODD), 2, 2)))
    write_cube(odd, tmp_path)
    assert [row[0] for row in rows(tmp_path / "cube.csv")[1::2]] == list(ODD)


def test_every_answer_has_a_line_and_one_not_measured_has_none(tmp_path: Path) -> None:
    scores = np.array([[[[1.0, 0.0], [np.nan, 1 / 3]]]], dtype=np.float32)
    known = Outcomes(questions=('q"1', "q\n2"), scores=scores)
    one = cube(
        models=("a,b",),
        scenarios=("bare",),
        benchmarks=("gpqa",),
        scores=np.array([[[50.0]]]),
        weights=np.array([1.0]),
        outcomes={"gpqa": known},
    )
    write_cube(one, tmp_path)
    header, *lines = rows(tmp_path / "outcomes.csv")
    assert header == ["model", "scenario", "benchmark", "question", "replicate", "score"]
    assert lines == [
        ["a,b", "bare", "gpqa", 'q"1', "0", "1"],
        ["a,b", "bare", "gpqa", 'q"1', "1", "0"],
        ["a,b", "bare", "gpqa", "q\n2", "1", "0.33333334"],
    ]
