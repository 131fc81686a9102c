"""The cube: errors in a table with line and column, missing scores, and the written tables."""

import csv
from pathlib import Path

import numpy as np
import pytest
from skill_evaluator.audit.cube import Outcomes, cube_of_outcomes, cube_of_scores, read_cube, without_gaps, write_cube
from skill_evaluator.audit.request import Missing
from skill_evaluator.audit.results import audit
from skill_evaluator.errors import AuditError, SkillEvaluatorError

GOOD = "model,template,quiz,exam\na,0,50,60\na,1,52,61\nb,0,70,71\nb,1,70,75\n"


def _read(tmp_path: Path, text: str, missing: Missing = "refuse"):
    path = tmp_path / "cube.csv"
    path.write_text(text, "utf-8")
    return read_cube(path, weights={}, missing=missing)


def test_mistake_in_a_table_is_named_with_its_line(tmp_path: Path) -> None:
    for text, said in (
        ("", "cube.csv has no rows with the columns model,template"),
        ("name,template,quiz\na,0,1\n", "found: name,template,quiz"),
        ("model,template,quiz,quiz\n", "cube.csv:1: every column needs a unique name"),
        ("model,template,quiz\n", "has no rows"),
        (GOOD + "b,1,1,2\n", "cube.csv:6 repeats b in 1"),
        (GOOD.replace("75", "175"), "cube.csv:5: 175 in column exam is outside 0 to 100"),
        (GOOD.replace("75", "good"), "cube.csv:5: 'good' in column exam is not a number"),
        (GOOD.replace(",75", ""), "cube.csv:5: 3 cells, where the first row has 4"),
        (GOOD.replace(",75", ","), "lacks scores of b in 1"),
        (GOOD.replace("b,1,70,75\n", ""), "lacks scores of b in 1"),
        (GOOD.replace("b,1", "b,2"), "lacks scores of a in 2; b in 1"),
        (GOOD.replace("b,1", ",1"), "cube.csv:5 has no model"),
        (GOOD.replace("50,60", "0.5,0.6").replace("52,61", "1,1").replace("70,7", "0.7,0."), "look like shares"),
        (GOOD.replace("75", "7_5"), "'7_5' in column exam is not a number"),
        (GOOD.replace("b,1,70,75", '"b\nb",1,70\n'), "cube.csv:5: 3 cells"),
    ):
        with pytest.raises(SkillEvaluatorError) as problem:
            _read(tmp_path, text)
        assert said in str(problem.value), text


def test_incomplete_models_or_scenarios_are_left_out_on_request(tmp_path: Path) -> None:
    for missing, models, scenarios in (("models", ("a",), ("0", "1")), ("scenarios", ("a", "b"), ("0",))):
        cube = _read(tmp_path, GOOD.replace(",75", ","), missing)
        assert (cube.models, cube.scenarios) == (models, scenarios), missing
        assert "incomplete" in cube.treatment, missing
    with pytest.raises(AuditError, match="would exclude all"):
        _read(tmp_path, GOOD.replace("50", "").replace("75", ""), "scenarios")


def test_mean_ignores_missing_replicates_and_unanswered_questions() -> None:
    scores = np.array([[[[1, 0], [1, np.nan]]], [[[1, 1], [np.nan, np.nan]]]], dtype=np.float32)
    outcomes = {"quiz": Outcomes(questions=("q0", "q1"), scores=scores)}
    incomplete = cube_of_outcomes(["a", "b"], ["x"], outcomes, weights={})
    with pytest.raises(AuditError, match="lacks scores of b in x"):
        without_gaps(incomplete, "refuse", "the audit")
    cube = without_gaps(incomplete, "questions", "the audit")
    assert (cube.questions, cube.scores.ravel().tolist()) == ({"quiz": 1}, [50, 100])
    assert cube.treatment == "excluded quiz/q1: some model has no output for them"
    alone = cube_of_outcomes(["a"], ["x"], {"quiz": Outcomes(questions=("q0", "q1"), scores=scores[:1])}, weights={})
    assert alone.scores.ravel().tolist() == [75]


def test_centered_cube_has_equal_scenario_means_and_the_same_cohort_mean() -> None:
    cube = cube_of_scores(["a", "b"], ["x", "y"], ["quiz"], np.array([[[50.0], [40]], [[70], [64]]]), weights={})
    assert cube.centered().overall.tolist() == [[46, 44], [66, 68]]


def test_one_scenario_is_refused_and_one_model_has_no_grade(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="at least 2 scenarios"):
        audit(_read(tmp_path, "model,template,quiz\na,0,50\nb,0,60\n"))
    result = audit(_read(tmp_path, "model,template,quiz\na,0,50\na,1,60\na,2,58\n"))
    assert (result.models[0].grading.quadrant, result.figures.thresholds) == (None, None)


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.reader(lines))


def test_written_table_keeps_odd_names_and_every_digit(tmp_path: Path) -> None:
    names = ('a"b', "c,d", "line\nbreak", "return\rhere", "=1+1", " room ")
    scores = np.random.default_rng(0).uniform(0, 100, (6, 2, 2))
    cube = cube_of_scores(names, ("0", "1"), ("gpqa", "mmlu_pro"), scores, weights={"gpqa": 3.0})
    (table,) = write_cube(cube, tmp_path)
    header, *rows = _rows(table)
    assert (header, [row[0] for row in rows[::2]]) == (["model", "template", "gpqa", "mmlu_pro"], list(names))
    assert [[float(cell) for cell in row[2:]] for row in rows] == scores.reshape(12, 2).tolist()


def test_outcomes_have_a_line_for_each_measured_output(tmp_path: Path) -> None:
    scores = np.array([[[[1.0, 0.0], [np.nan, 1 / 3]]]], dtype=np.float32)
    known = Outcomes(questions=('q"1', "q\n2"), scores=scores)
    path = write_cube(cube_of_outcomes(["a,b"], ["bare"], {"gpqa": known}, weights={}), tmp_path)[1]
    assert _rows(path) == [
        ["model", "scenario", "benchmark", "question", "replicate", "score"],
        ["a,b", "bare", "gpqa", 'q"1', "0", "1"],
        ["a,b", "bare", "gpqa", 'q"1', "1", "0"],
        ["a,b", "bare", "gpqa", "q\n2", "1", "0.33333334"],
    ]
