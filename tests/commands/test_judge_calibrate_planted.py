"""`judge calibrate` on planted pairs: a regression judge is asked about them as usual, and then measured."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text
from skill_evaluator.judges.calibration.planting import GoodOutput, PlantedPair, plant

from tests.support.asked_judges import JudgingLibrary
from tests.support.judged import SAME, answer
from tests.support.library import Ended, read

OUTPUTS = [
    GoodOutput(
        id=f"notice-{place}",
        input="Summarize the notice in bullet points.",
        output=f"- The hall was opened in {1980 + place}.\n- It is {40 + place} metres long, such as the old one.\n"
        "- Dogs are not allowed in it.\n- Its keeper lives next door, and has the key.",
    )
    for place in range(12)
]
PLANTED = plant(OUTPUTS, broken=28, controls=30, seed=2)
Finds = Callable[[PlantedPair], dict[str, Any]]


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def sees_all_but_dates(pair: PlantedPair) -> dict[str, Any]:
    if pair.dimension is None or pair.planted == "date_changed":
        return {}
    return {pair.dimension: ("worse", pair.impact)}


def sees_all(pair: PlantedPair) -> dict[str, Any]:
    return {pair.dimension: ("worse", pair.impact)} if pair.dimension else {}


def judged(library: JudgingLibrary, name: str, pairs: Sequence[PlantedPair], finds: Finds) -> str:
    """Have a judge judge pairs by `judge regression`; return the path of its results."""
    library.lines(f"{name}.jsonl", *(pair.model_dump(mode="json") for pair in pairs))
    texts = {pair.id: json.dumps(answer({**SAME, **finds(pair)})) for pair in pairs}
    library.record_answers({(f"{name}/{order}", 0): text for name, text in texts.items() for order in (1, 2)})
    asked = ("--items", f"{name}.jsonl", "--judge", "recorded", "--out", name)
    done = library.call("judge", "regression", *asked, "--format", "json")
    assert done.code in (0, 3, 4), done.err
    return str(Path(done.json["folder"]) / "evaluation_results.json")


def calibrate(library: JudgingLibrary, *arguments: str) -> Ended:
    return library.call("judge", "calibrate", *arguments)


def test_what_a_judge_misses_of_planted_pairs_is_said(library: JudgingLibrary) -> None:
    results = judged(library, "planted", PLANTED.pairs, sees_all_but_dates)
    done = calibrate(library, "--planted", "planted.jsonl", "--regressions", results, "--format", "json")
    assert done.code == 0, done.err
    jsonschema.validate(done.json, json.loads(schema_text("judge-calibration")))
    (judge,) = done.json["judges"]
    found = {way["planted"]: way["found"]["value"] for way in judge["detection"]["ways"]}
    assert found == {**dict.fromkeys(found, 1.0), "date_changed": 0.0}
    assert len(found) == 7
    assert all(row["specificity"]["value"] == 1.0 for row in judge["detection"]["dimensions"])
    page = calibrate(library, "--planted", "planted.jsonl", "--regressions", results)
    assert "recorded, regressions of factuality: undecided: about" in page.out
    assert "warning: 28 broken outputs and 30 controls" in page.out


def test_the_batch_of_the_same_judge_is_corrected(library: JudgingLibrary) -> None:
    results = judged(library, "planted", PLANTED.pairs, sees_all_but_dates)
    batch = judged(library, "batch", plant(OUTPUTS, broken=20, controls=20, seed=5).pairs, sees_all_but_dates)
    library.write("labels.jsonl", '{"id": "notice-0/same_text", "dimension": "factuality", "human": "same"}\n')
    named = ("--planted", "planted.jsonl", "--regressions", results, "--batch", batch)
    done = calibrate(library, *named, "--format", "json")
    assert done.code == 0, done.err
    (judge,) = done.json["judges"]
    assert [row["dimension"] for row in judge["batch"]["dimensions"]][-1] == "any"
    assert judge["batch"]["too_few"]
    text = calibrate(library, *named, "--labels", "labels.jsonl").out
    assert "under 100 the rates of a batch say little" in text
    assert "recorded, severity in the controls: none 30, low 0, medium 0, high 0" in text
    assert "| `recorded` | `factuality` |" in calibrate(library, *named, "--format", "markdown").out


def test_verdicts_and_severities_are_held_against_peoples_labels_by_dimension(library: JudgingLibrary) -> None:
    """The judge finds all that was broken; people see it as the planting does, but call a lost item of low impact."""
    pairs = plant(OUTPUTS, broken=48, controls=24, seed=5).pairs
    batch = judged(library, "batch", pairs, sees_all)
    labels = [
        {"id": pair.id, "dimension": name, "human": "candidate_worse" if name == pair.dimension else "same"}
        | ({"impact": "low" if name == "completeness" else pair.impact} if name == pair.dimension else {})
        for pair in pairs
        for name in ("factuality", "completeness")
    ]
    library.lines("labels.jsonl", *labels)
    done = calibrate(library, "--batch", batch, "--labels", "labels.jsonl", "--format", "json")
    assert done.code == 0, done.err
    (judge,) = done.json["judges"]
    rows = {row["dimension"]: row for row in judge["batch"]["dimensions"]}
    assert (rows["factuality"]["kappa_people"]["value"], rows["factuality"]["trusted"]) == (1.0, True)
    assert rows["format_adherence"]["kappa_people"] is None
    assert judge["batch"]["rated_kappa"]["value"] < 1
    text = calibrate(library, "--batch", batch, "--labels", "labels.jsonl").out
    assert f"recorded, factuality beside people's labels ({len(pairs)}): trusted. κ with people 1.00" in text
    assert "its severity agrees with people's ratings by κ" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "say what is measured"),
        (("--planted", "planted.jsonl"), "go together"),
        (("--verdicts", "v.jsonl"), "--verdicts FILE needs the labels"),
        (("--batch", "b.json"), "--batch FILE needs"),
    ],
)
def test_what_is_missing_is_said_in_a_line(library: JudgingLibrary, arguments: tuple[str, ...], message: str) -> None:
    assert calibrate(library, *arguments).refuses(message)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"id": "nowhere", "dimension": "tone", "human": "same"}, "no label of a pair and dimension of the batch"),
        ({"id": "notice-0/same_text", "dimension": "tone", "human": "same"}, "no label of a pair and dimension"),
        (
            {"id": "notice-0/same_text", "dimension": "factuality", "human": "worse"},
            "labels.jsonl:1: unknown value 'worse'",
        ),
    ],
)
def test_a_wrong_label_is_named(library: JudgingLibrary, label: dict[str, str], message: str) -> None:
    pairs = [pair for pair in plant(OUTPUTS, broken=0, controls=60, seed=0).pairs if pair.id == "notice-0/same_text"]
    results = judged(library, "planted", pairs, sees_all_but_dates)
    library.lines("labels.jsonl", label)
    named = ("--planted", "planted.jsonl", "--regressions", results, "--batch", results, "--labels", "labels.jsonl")
    assert calibrate(library, *named).refuses(message)


def test_results_about_other_pairs_or_of_another_judge_are_refused(library: JudgingLibrary) -> None:
    results = judged(library, "planted", PLANTED.pairs, sees_all_but_dates)
    other = plant([GoodOutput(id="x", input="p", output="o")], 0, 1, 0).pairs[0]
    library.lines("other.jsonl", other.model_dump(mode="json"))
    done = calibrate(library, "--planted", "other.jsonl", "--regressions", results)
    assert (done.code, "contain no planted pair" in done.err) == (2, True)
    changed = read(Path(library.root / results))
    changed["judges"][0]["judge"]["settings"] = "sha256:other"
    library.write("changed.json", changed)
    done = calibrate(library, "--planted", "planted.jsonl", "--regressions", results, "--batch", "changed.json")
    assert (done.code, "different settings" in done.err) == (2, True)
