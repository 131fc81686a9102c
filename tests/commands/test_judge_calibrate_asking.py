"""`judge calibrate --judge`: labelled and planted pairs are asked about in one judging, and the answers measured."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text
from skill_evaluator.judges.calibration.planting import CONTROLS, DAMAGES

from tests.support.asked_judges import ITEMS, RUBRIC, JudgingLibrary, compared, method
from tests.support.asked_judges import answer as comparison
from tests.support.judged import SAME, answer
from tests.support.library import Ended

LABELLED = [
    {
        "id": f"hall-{place}",
        "stratum": "short" if place < 6 else "long",
        "human": 1 + place % 2,
        "input": "Describe the hall in bullet points.",
        f"output_{1 + place % 2}": f"- It opened in {1950 + place}.\n- It is {30 + place} metres long.\n- It is dry.",
        f"output_{2 - place % 2}": "- It is a hall.\n- The sum is 12.",
    }
    for place in range(12)
]


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    of_scores = {"id": "tone", "name": "Tone"}  # which nobody is asked about here
    library.rubric({"method": method("pairwise_comparison"), "type": "subjective"}, of_scores)
    library.items(*LABELLED)
    return library


def calibrate(library: JudgingLibrary, *arguments: str, **options: Any) -> Ended:
    return library.call("judge", "calibrate", "--labels", ITEMS, "--judge", "recorded", *arguments, **options)


def both(library: JudgingLibrary, *arguments: str) -> Ended:
    return calibrate(library, "--rubric", RUBRIC, "--broken", "6", *arguments)


def answered_by_people(library: JudgingLibrary) -> None:
    """Record a judge that prefers what people do and calls everything the same that is not broken in a number."""
    dry = both(library, "--dry-run", "--format", "json")
    assert dry.code == 0, dry.err
    texts = {}
    for item in LABELLED:
        for order in (1, 2):
            winner = "first" if item["human"] == order else "second"
            texts[f"{item['id']}/{order}", 0] = comparison(totals=compared(winner))
            for way in (*DAMAGES, *CONTROLS):
                worse = {"factuality": ("worse", "high")} if way in ("number_changed", "date_changed") else {}
                texts[f"{item['id']}/{way}/{order}", 0] = json.dumps(answer({**SAME, **worse}))
    library.record_answers(texts)


def test_labelled_and_planted_pairs_are_asked_in_one_judging_and_measured(library: JudgingLibrary) -> None:
    answered_by_people(library)
    done = both(library, "--format", "json")
    assert done.code == 0, done.err
    jsonschema.validate(done.json, json.loads(schema_text("judge-calibration")))
    (judge,) = done.json["judges"]
    assert {stratum: figures["accuracy"] for stratum, figures in judge["strata"].items()} == {
        "long": [1.0, 1.0],
        "short": [1.0, 1.0],
    }
    found = {row["dimension"]: row["sensitivity"]["value"] for row in judge["detection"]["dimensions"]}
    assert found["completeness"] == found["format_adherence"] == 0.0
    assert judge["detection"]["broken"] == 6
    assert judge["detection"]["controls"] == 12
    assert judge["record"]["answered"] == 24 + 2 * 14
    assert done.json["judging"]["mode"] == "calibrate"


def test_the_report_says_what_the_judge_may_be_used_for(library: JudgingLibrary) -> None:
    answered_by_people(library)
    done = both(library)
    assert done.code == 0, done.err
    folder = library.judging()
    page = (folder / "bias_analysis_report.md").read_text(encoding="utf-8")
    assert "`recorded` on `long`: undecided: about" in page
    assert "recorded, regressions of completeness: undecided: about 11 more planted pairs would decide" in page
    assert {path.name for path in folder.iterdir()} >= {
        "evaluation_rubric.json",
        "evaluation_prompt.md",
        "evaluation_results.json",
        "bias_analysis_report.md",
        "verdicts.jsonl",
        "planted.jsonl",
        "regressions.json",
    }
    assert "recorded on short: undecided" in done.out


def test_what_a_judging_leaves_is_measured_again_without_a_call(library: JudgingLibrary) -> None:
    answered_by_people(library)
    first = both(library, "--format", "json").json["judges"][0]
    folder = library.judging().relative_to(library.root)
    again = library.call(
        "judge", "calibrate", "--format", "json", "--labels", ITEMS, "--verdicts", f"{folder}/verdicts.jsonl"
    )
    assert again.json["judges"][0]["strata"] == first["strata"]
    planted = ("--planted", f"{folder}/planted.jsonl", "--regressions", f"{folder}/regressions.json")
    again = library.call("judge", "calibrate", "--format", "json", *planted)
    assert again.json["judges"][0]["detection"]["dimensions"] == first["detection"]["dimensions"]


def test_a_dry_run_counts_both_orders_and_says_what_offers_no_place(library: JudgingLibrary) -> None:
    done = both(library, "--dry-run")
    assert done.code == 0, done.err
    assert "12 labelled pairs, 6 broken outputs, 12 controls: each is asked in both orders" in done.out
    assert "52 questions a judge" in done.out
    assert not library.judgements.exists()


def test_only_what_is_named_is_asked(library: JudgingLibrary) -> None:
    for arguments, calls in ((("--rubric", RUBRIC), 24), (("--broken", "3"), 14)):
        done = calibrate(library, *arguments, "--dry-run", "--format", "json")
        assert done.json["questions"] == calls, done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what is asked: --rubric FILE"),
        (("--rubric", RUBRIC, "--verdicts", "v.jsonl"), "--verdicts is for what was judged before"),
        (("--rubric", RUBRIC, "--split", "held_out"), "no item is in the split held_out"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_line(
    library: JudgingLibrary, arguments: tuple[str, ...], message: str
) -> None:
    assert calibrate(library, *arguments).refuses(message)


def test_items_without_texts_cannot_be_asked_about(library: JudgingLibrary) -> None:
    library.items({"id": "a", "human": 1})
    assert calibrate(library, "--rubric", RUBRIC).refuses("item 'a' of items.jsonl has no texts")


@pytest.mark.local_model
def test_a_real_model_is_calibrated_on_pairs_of_its_own_machine(library: JudgingLibrary) -> None:
    library.settings(timeout_s=600)  # of a machine that does other things, too
    library.models({"id": "recorded", "provider": "local", "params": {"max_output_tokens": 160, "threads": 2}})
    library.items(*LABELLED[:4])
    done = calibrate(library, "--rubric", RUBRIC, "--broken", "2", "--format", "json")
    assert done.code == 0, done.err
    (judge,) = done.json["judges"]
    assert judge["record"]["answered"] == 8 + 12
    assert not any(figures["trusted"] for figures in judge["strata"].values())
    assert not any(row["trusted"] for row in judge["detection"]["dimensions"])
