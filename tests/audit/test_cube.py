"""Tables: a bad one is refused by line and column, holes as asked; what is written can be read again."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from skill_evaluator.audit.cube import Outcomes, cube_of_outcomes, cube_of_scores, read_cube, write_cube
from skill_evaluator.audit.findings.auditing import audit
from skill_evaluator.audit.request import Missing
from skill_evaluator.errors import AuditError

GOOD = "model,template,quiz,exam\na,0,50,60\na,1,52,61\nb,0,70,71\nb,1,70,75\n"
LONG = "model,scenario,benchmark,question,replicate,score\n" + "".join(
    f"{m},{t},quiz,{q},{r},{(q + r) % 2}\n" for m in "ab" for t in "xy" for q in range(3) for r in range(2)
)


def _read(tmp_path: Path, text: str, missing: Missing = "refuse"):
    path = tmp_path / "cube.csv"
    path.write_text(text, "utf-8")
    return read_cube(path, weights={}, missing=missing)


def test_what_is_wrong_is_said_with_its_place(tmp_path: Path) -> None:
    for text, said in (
        ("", "cube.csv:1 must name its columns"),
        ("model,template\n", "must name its columns"),
        ("name,template,quiz\n", "it has: name,template,quiz"),
        ("model,template,quiz,quiz\n", "must name its columns"),
        ("model,template,quiz\n", "no row below its header"),
        (GOOD + "b,1,1,2\n", "cube.csv:6 repeats b in 1, which line 5 has already"),
        (GOOD.replace("75", "175"), "cube.csv:5: 175 in column exam is outside 0 to 100"),
        (GOOD.replace("75", "-1"), "cube.csv:5: -1 in column exam is outside"),
        (GOOD.replace("75", "good"), "cube.csv:5: 'good' in column exam is no number"),
        (GOOD.replace("75", "inf"), "cube.csv:5: inf in column exam is outside"),
        (GOOD.replace(",75", ""), "cube.csv:5 has 3 cells; the header has 4"),
        (GOOD.replace(",75", ","), "lacks cells of b in 1"),
        (GOOD.replace(",75", ",n/a"), "lacks cells of b in 1"),
        (GOOD.replace("b,1,70,75\n", ""), "lacks cells of b in 1"),
        (GOOD.replace("b,1", "b,2"), "lacks cells of a in 2; b in 1"),
        (GOOD.replace("b,1", ",1"), "cube.csv:5 has no model"),
        (LONG + "a,x,quiz,0,0,1\n", "repeats the answer of line 2"),
        (LONG + "a,x,quiz,9,0,1.5\n", "1.5 in column score is outside 0 to 1"),
        (LONG + "a,x,quiz,9,0,\n", "'' in column score is no number"),
        (LONG + "a,x,quiz,9,0,nan\n", "nan in column score is outside"),
        (GOOD.replace("50,60", "0.5,0.6").replace("52,61", "1,1").replace("70,7", "0.7,0."), "look like shares"),
        (GOOD.replace("75", "7_5"), "'7_5' in column exam is no number"),
        (GOOD.replace("b,1,70,75", '"b\nb",1,70\n'), "cube.csv:6 has 3 cells"),
        (LONG + ",x,quiz,9,0,1\n", "a model that is empty"),
        (LONG + "a ,x,quiz,9,0,1\n", "spaces around it: 'a '"),
        (LONG + "".join(f"a,x,quiz,9,r{one},1\n" for one in range(1001)), "1,003 different replicates"),
        (LONG + "a,x,quiz,9\n", "cube.csv:26 has 4 cells"),
        (LONG + "a,x,quiz,9,0,1\n", "lacks answers of a in y; b in x, y"),
    ):
        with pytest.raises(AuditError) as problem:
            _read(tmp_path, text)
        assert said in str(problem.value), text


def test_holes_and_questions_without_an_answer_are_left_out_for_everybody_and_it_is_said(tmp_path: Path) -> None:
    for missing, models, scenarios in (("models", ("a",), ("0", "1")), ("scenarios", ("a", "b"), ("0",))):
        cube = _read(tmp_path, GOOD.replace(",75", ","), missing)
        assert (cube.models, cube.scenarios) == (models, scenarios), missing
        assert "incomplete" in cube.treatment, missing
    cube = _read(tmp_path, LONG.replace("a,x,quiz,2,0,0\n", "").replace("a,x,quiz,2,1,1\n", ""), "questions")
    assert cube.questions == {"quiz": 2}
    assert cube.treatment == "left out quiz/2: some model has no answer to them"
    assert cube.scores.shape == (2, 2, 1)
    with pytest.raises(AuditError, match="nothing is left"):
        _read(tmp_path, GOOD.replace("50", "").replace("75", ""), "scenarios")


def test_a_replicate_that_is_missing_leaves_the_others_and_lines_may_be_empty_or_in_any_order(tmp_path: Path) -> None:
    cube = _read(tmp_path, LONG.replace("a,x,quiz,2,0,0\n", ""))
    assert cube.scores[0, 0, 0] == pytest.approx(100 * (0.5 + 0.5 + 1.0) / 3)
    assert _read(tmp_path, LONG + "\n\n").models == ("a", "b")
    assert _read(tmp_path, GOOD.replace("b,", '"b\nc",') + "\n").models == ("a", "b\nc")
    head, *rows = LONG.splitlines()
    shuffled = [rows[place] for place in np.random.default_rng(1).permutation(len(rows))]
    plain = _read(tmp_path, LONG)
    other = _read(tmp_path, "\n".join([head, *shuffled]) + "\n")
    for model in plain.models:
        m, n = plain.models.index(model), other.models.index(model)
        assert sorted(plain.scores[m].ravel()) == sorted(other.scores[n].ravel())


def test_one_scenario_has_no_fluctuation_one_model_no_grade_and_cases_need_single_answers(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="one scenario"):
        audit(_read(tmp_path, "model,template,quiz\na,0,50\nb,0,60\n"))
    result = audit(_read(tmp_path, "model,template,quiz\na,0,50\na,1,60\na,2,58\n"))
    assert (result.models[0].grade, result.models[0].quadrant, result.thresholds) == (None, None, None)
    assert any("1 model, fewer than 4" in warning for warning in result.warnings)
    assert any("3 scenarios, fewer than 6" in warning for warning in result.warnings)
    with pytest.raises(AuditError, match="needs single answers"):
        audit(_read(tmp_path, GOOD), resampled="cases")


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.reader(lines))


def test_scores_are_written_with_odd_names_as_they_are_and_lose_no_digit(tmp_path: Path) -> None:
    names = ('a"b', "c,d", "line\nbreak", "return\rhere", "=1+1", " room ")
    scores = np.random.default_rng(0).uniform(0, 100, (6, 2, 2))
    cube = cube_of_scores(names, ("0", "1"), ("gpqa", "mmlu_pro"), scores, weights={"gpqa": 3.0})
    table, nested = write_cube(cube, tmp_path)
    header, *rows = _rows(table)
    assert (header, [row[0] for row in rows[::2]]) == (["model", "template", "gpqa", "mmlu_pro"], list(names))
    assert [[float(cell) for cell in row[2:]] for row in rows] == scores.reshape(12, 2).tolist()
    axes = {"models": list(names), "scenarios": ["0", "1"], "benchmarks": ["gpqa", "mmlu_pro"]}
    assert json.loads(nested.read_text()) == {**axes, "weights": [0.75, 0.25], "scores": scores.tolist()}


def test_every_answer_is_written_on_a_line_and_one_not_measured_has_none(tmp_path: Path) -> None:
    scores = np.array([[[[1.0, 0.0], [np.nan, 1 / 3]]]], dtype=np.float32)
    known = Outcomes(questions=('q"1', "q\n2"), scores=scores)
    path = write_cube(cube_of_outcomes(["a,b"], ["bare"], {"gpqa": known}, weights={}), tmp_path)[2]
    assert _rows(path) == [
        ["model", "scenario", "benchmark", "question", "replicate", "score"],
        ["a,b", "bare", "gpqa", 'q"1', "0", "1"],
        ["a,b", "bare", "gpqa", 'q"1', "1", "0"],
        ["a,b", "bare", "gpqa", "q\n2", "1", "0.33333334"],
    ]
