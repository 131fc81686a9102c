"""`judge rubric --draft`: a rubric that a model drafts, marked as unreviewed."""

import json
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.library.rubrics import load_rubric

from tests.support.asked_judges import JUDGE, JudgingLibrary
from tests.support.rubrics import level

OUT = ".evaluator/rubrics/tone.yaml"
DRAFT = ("judge", "rubric", "--draft", "Is the tone considerate?", "--judge", JUDGE, "--out", OUT)


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def drafted(library: JudgingLibrary, **changed: Any) -> None:
    """Have the model draft a criterion, changed."""
    criterion = {
        "name": "Considerate tone",
        "type": "subjective",
        "description": "Whether the reply treats the customer's time as worth something.",
        "levels": [{"score": score, **level(f"grade {score}")} for score in range(1, 6)],
        "edgeCases": [{"situation": "The customer is rude: 'yes'", "guidance": "Judge the reply alone"}],
        "scoringGuidelines": ["Name the sentence that decides."],
        **changed,
    }
    library.record_answers({("draft", 0): f"Here it is.\n```json\n{json.dumps(criterion)}\n```"})


def test_draft_is_a_rubric_marked_as_unreviewed(library: JudgingLibrary) -> None:
    drafted(library)
    done = library.call(*DRAFT)
    assert done.code == 0, done.err
    path = library.root / OUT
    rubric = load_rubric(path)
    (criterion,) = rubric.criteria
    assert rubric.unreviewed
    assert (criterion.id, criterion.highest, criterion.primary_method) == ("tone", 5, "pairwise_comparison")
    assert criterion.edge_cases[0].situation == "The customer is rude: 'yes'"
    assert "Drafted by a model and not reviewed." in path.read_text()
    linted = library.call("judge", "lint", OUT, "--format", "json")
    assert (linted.code, linted.json["errors"]) == (0, 0)
    assert [remark["rule"] for remark in linted.json["rubrics"][0]["remarks"]] == ["unreviewed"]
    path.write_text(path.read_text().replace("unreviewed: true\n", ""))
    assert library.call("judge", "lint", OUT, "--format", "json").json["warnings"] == 0
    assert load_rubric(path).digest == rubric.digest


def test_draft_overwrites_nothing(library: JudgingLibrary) -> None:
    drafted(library)
    library.write(OUT, "mine")
    assert library.call(*DRAFT).refuses(f"{OUT} exists already")
    assert library.call(*DRAFT[:-1], "Tone 2.yaml").refuses(
        "--out Tone 2.yaml must be a .yaml or .yml file; its name is the rubric"
    )
    assert (library.root / OUT).read_text() == "mine"
    assert not library.judgements.exists()


def test_output_without_a_rubric_writes_nothing(library: JudgingLibrary) -> None:
    for changed, complaint in (
        ({"levels": []}, ": wrong_format"),
        ({"type": "both"}, ": wrong_format"),
        ({"levels": [{"score": 5, **level("same")}] * 5}, ""),
        ({"edgeCases": []}, ": wrong_format"),
    ):
        drafted(library, **changed)
        done = library.call(*DRAFT)
        assert (done.code, f"the output contains no rubric{complaint}" in done.err) == (2, True), changed
        assert not (library.root / OUT).exists()


def test_failed_call_is_incomplete(library: JudgingLibrary) -> None:
    library.record_answers({})
    done = library.call(*DRAFT)
    assert (done.code, f"{JUDGE} gave no output" in done.err) == (4, True)
    assert not (library.root / OUT).exists()
