"""Scores read from a judge's output, and the reasons for outputs that do not count."""

import json
from typing import Any

from skill_evaluator.judges.modes.scoring import read_scores, score_form, weighted_summary

from tests.support.asked_judges import QUOTE, answer, method, rubric_of, written

OUTPUT = f"12 and nothing else. {QUOTE}"


def read(text: str, *mitigations: str, output: str = OUTPUT) -> int | str:
    """The score of the usual criterion, or the reason why there is none."""
    (said,) = read_scores(text, rubric_of({"method": method("direct_scoring", *mitigations)}).criteria, [output])
    return said.unscored or said.score


def test_score_counts_only_on_its_scale_with_evidence() -> None:
    for totals, expected in (
        (written(4), 4),
        (written(5.0), 5),
        (written(4, evidence="the sum is 12"), 4),
        (written(0), "off_scale"),
        (written(6), "off_scale"),
        (written(3.5), "off_scale"),
        (written(True), "off_scale"),
        (written(4, score="absent"), "off_scale"),
        (written(4, confidence=85), "off_scale"),
        (written(4, evidence=[]), "no_evidence"),
        (written(4, evidence=["…"]), "no_evidence"),
        (written(4, justification="…"), "no_justification"),
        (written(4, justification="absent"), "no_justification"),
        (4, "missing_criterion"),
    ):
        assert read(answer(totals=totals)) == expected, totals
    for text, reason in (
        ("", "empty"),
        ("Four out of five.", "not_json"),
        (json.dumps({"totals": written(4)}), "wrong_format"),
        (answer(other=written(4)), "missing_criterion"),
    ):
        assert read(text) == reason, text
    criteria = rubric_of({"id": "a"}, {"id": "b"}).criteria
    first, second = read_scores(answer(a=written(9), b=written(3)), criteria, [OUTPUT])
    assert (first.unscored, second.score) == ("off_scale", 3)


def test_mitigations_require_evidence_and_argument_first() -> None:
    seen, unseen = answer(totals=written(4)), answer(totals=written(4, evidence=["It is very well written."]))
    assert (read(seen, "evidence_required"), read(unseen, "evidence_required")) == (4, "evidence_not_in_text")
    assert read(unseen) == 4
    turned = {"score": 4, **written(4, score="absent")}
    assert read(answer(totals=turned), "require_justification_first") == "score_before_justification"
    assert read(answer(totals=turned)) == 4
    schema: Any = score_form(rubric_of({}, {"id": "b", "scale": "1-10"}).criteria)[0]
    criteria = schema["properties"]["criteria"]["properties"]
    assert list(criteria) == ["totals", "b"]
    assert list(criteria["b"]["properties"]) == ["evidence", "justification", "score", "suggestion", "confidence"]
    assert criteria["b"]["properties"]["score"]["enum"] == list(range(1, 11))


def test_summary_is_weighted_and_requires_all_criteria() -> None:
    criteria = rubric_of({"id": "a", "weight": 3.0}, {"id": "b", "scale": "1-10"}).criteria
    assert weighted_summary({"a": 5.0, "b": 1.0}, criteria) == 0.75
    assert weighted_summary({"a": 5.0, "b": None}, criteria) is None
