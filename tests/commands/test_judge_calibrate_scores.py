"""`judge calibrate` on scores: outputs that people scored, and a judge's scores of them, from files or asked for."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.asked_judges import ITEMS, RUBRIC, JudgingLibrary, written
from tests.support.asked_judges import answer as scored_answer
from tests.support.library import Ended

RNG = np.random.default_rng(7)
PEOPLE = RNG.integers(1, 6, 80).tolist()
KEEN = [score if chance > 0.1 else 3 for score, chance in zip(PEOPLE, RNG.random(80), strict=True)]
TIMID = [3 if chance > 0.4 else score for score, chance in zip(PEOPLE, RNG.random(80), strict=True)]


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def scored(library: JudgingLibrary, *arguments: str) -> Ended:
    return library.call("judge", "calibrate", "--labels", ITEMS, "--verdicts", "scores.jsonl", *arguments)


def calibrated(library: JudgingLibrary, *arguments: str) -> Any:
    done = scored(library, "--format", "json", *arguments)
    assert done.code == 0, done.err
    jsonschema.validate(done.json, json.loads(schema_text("judge-calibration")))
    return {judge["judge"]: judge for judge in done.json["judges"]}


def said(judge: str, scores: list[int], **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"s{place}", "judge": judge, "criterion": "clear", "score": score, **more}
        for place, score in enumerate(scores)
    ]


def two_judges(library: JudgingLibrary) -> None:
    library.lines(ITEMS, *({"id": f"s{place}", "scores": {"clear": score}} for place, score in enumerate(PEOPLE)))
    library.lines("scores.jsonl", *said("keen", KEEN), *said("timid", TIMID))


def test_scores_have_the_figures_of_other_libraries(library: JudgingLibrary) -> None:
    from scipy.stats import spearmanr
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    two_judges(library)
    for judge, scores in (("keen", KEEN), ("timid", TIMID)):
        row = calibrated(library)[judge]["scores"]["clear"]["all"]
        for weights in ("linear", "quadratic"):
            kappa = cohen_kappa_score(scores, PEOPLE, weights=weights)
            assert row[f"kappa_{weights}"]["value"] == pytest.approx(kappa, abs=1e-6)
        assert row["spearman"]["value"] == pytest.approx(spearmanr(scores, PEOPLE).statistic, abs=1e-6)
        assert row["right"]["value"] == np.mean(np.equal(scores, PEOPLE))
        assert row["spread"]["value"] == pytest.approx(np.std(scores) / np.std(PEOPLE), abs=1e-6)
        counts = confusion_matrix(scores, PEOPLE).tolist()
        assert [list(by_people.values()) for by_people in row["confusion"].values()] == counts
        for name in ("right", "kappa_linear", "kappa_quadratic", "alpha", "spearman", "higher", "middle", "spread"):
            low, high = row[name]["ci95"]
            assert low <= row[name]["value"] <= high
            assert high - low > 0.01


def test_the_page_says_by_criterion_whether_scores_are_trusted(library: JudgingLibrary) -> None:
    two_judges(library)
    text = scored(library).out
    assert "keen, clear on all: trusted. Weighted κ with people" in text
    assert "timid, clear on all: not trusted. Weighted κ with people" in text
    assert "It keeps to the middle of the scale more than people do" in text
    library.lines(ITEMS, *({"id": f"s{place}", "scores": {"clear": score}} for place, score in enumerate(PEOPLE[:15])))
    library.lines("scores.jsonl", *said("keen", KEEN[:15]))
    page = scored(library, "--format", "markdown").out
    assert "`keen`, `clear` on `all`: undecided: about" in page
    assert "more labels would decide" in page


def test_each_person_of_an_item_counts_alike_and_people_are_measured_too(library: JudgingLibrary) -> None:
    from sklearn.metrics import cohen_kappa_score

    others = [score if place % 3 else 3 for place, score in enumerate(PEOPLE)]
    both = list(zip(PEOPLE, others, strict=True))
    library.lines(ITEMS, *({"id": f"s{place}", "scores": {"clear": scores}} for place, scores in enumerate(both)))
    library.lines("scores.jsonl", *said("keen", KEEN))
    row = calibrated(library)["keen"]["scores"]["clear"]["all"]
    twice = cohen_kappa_score(KEEN + KEEN, PEOPLE + others, weights="linear")
    assert row["kappa_linear"]["value"] == pytest.approx(twice, abs=1e-6)
    assert row["kappa_linear"]["n"] == 80
    assert row["raters"] == 2
    assert row["people_alpha"]["n"] == 80


def test_strata_splits_and_scores_that_do_not_count_are_kept_apart(library: JudgingLibrary) -> None:
    items = [
        {"id": f"s{place}", "stratum": f"kind {place % 2}", "scores": {"clear": score}, "split": "development"}
        for place, score in enumerate(PEOPLE[:20])
    ]
    items[0]["split"] = "held_out"
    library.lines(ITEMS, *items)
    library.lines("scores.jsonl", *said("keen", KEEN[:18]), {**said("keen", KEEN[:19])[18], "score": None})
    strata = calibrated(library)["keen"]["scores"]["clear"]
    assert {name: (row["n"], row["unscored"], row["unjudged"]) for name, row in strata.items()} == {
        "kind 0": (9, 1, 0),
        "kind 1": (9, 0, 1),
    }
    held_out = calibrated(library, "--split", "held_out")["keen"]["scores"]["clear"]
    assert {name: row["n"] for name, row in held_out.items()} == {"kind 0": 1}
    (apart,) = scored(library, "--format", "json").json["held_out"]
    assert apart["scores"]["clear"] == held_out
    assert scored(library, "--format", "json", "--split", "held_out").json["held_out"] == []
    for form in ("text", "markdown"):
        before, _, after = scored(library, "--format", form).out.replace("`", "").partition("On held-out items alone")
        assert "keen, clear on kind 1" in before
        assert "keen, clear on kind 1" not in after
        assert "keen, clear on kind 0" in after


def test_what_its_own_family_wrote_is_held_against_what_people_say_of_it(library: JudgingLibrary) -> None:
    """The judge gives a level more to its own family, and people do not."""
    writers = ["gpt-5" if place % 2 else "claude-5" for place in range(80)]
    people = [min(score, 4) for score in PEOPLE]
    given = [score + (writer == "gpt-5") for score, writer in zip(people, writers, strict=True)]
    items = enumerate(zip(people, writers, strict=True))
    library.items(*({"id": f"s{n}", "scores": {"clear": score}, "model": writer} for n, (score, writer) in items))
    library.lines("scores.jsonl", *said("gpt-5-mini", given))
    (bias,) = calibrated(library)["gpt-5-mini"]["biases"]
    assert (bias["bias"], bias["mode"], bias["criterion"]) == ("self_preference", "score", "clear")
    assert bias["present"] is True
    assert bias["shift"]["value"] == 0.25
    assert "gpt-5-mini, clear: its own family as the writer moves its verdicts by 0.250" in scored(library).out


def test_own_outputs_in_pairs_are_held_against_what_people_prefer(library: JudgingLibrary) -> None:
    pairs = [
        {"id": f"p{place}", "human": 1 + place % 2, "model_1": "gpt-5", "model_2": "claude-5"} for place in range(60)
    ]
    library.lines(ITEMS, *pairs)
    verdicts = [{"id": pair["id"], "judge": "gpt-4", "order": order, "winner": 1} for pair in pairs for order in (1, 2)]
    library.lines("scores.jsonl", *verdicts)
    (bias,) = calibrated(library)["gpt-4"]["biases"]
    assert (bias["shift"]["value"], bias["items"], bias["present"]) == (0.5, 60, True)


def test_verdicts_by_a_criterion_are_held_against_labels_by_it(library: JudgingLibrary) -> None:
    pairs = [{"id": f"p{place}", "criteria": {"tone": 1 + place % 2}} for place in range(60)]
    pairs += [{"id": f"q{place}", "human": 1 + place % 2} for place in range(60)]
    library.lines(ITEMS, *pairs)
    right = [{"winner": 1, "criteria": {"tone": pair.get("criteria", {}).get("tone", 2)}} for pair in pairs]
    verdicts = [{"id": pair["id"], "judge": "j", **one} for pair, one in zip(pairs, right, strict=True)]
    library.lines("scores.jsonl", *({**verdict, "order": order} for verdict in verdicts for order in (1, 2)))
    judge = calibrated(library)["j"]
    assert (judge["strata"]["all"]["n"], judge["strata"]["all"]["trusted"]) == (60, False)
    assert (judge["criteria"]["tone"]["all"]["n"], judge["criteria"]["tone"]["all"]["trusted"]) == (60, True)
    assert "j on all by tone: trusted. κ with people 1.00" in scored(library).out


@pytest.mark.parametrize(
    ("item", "score", "message"),
    [
        (
            {"scores": {"clear": 11}},
            {},
            "items.jsonl:1: Input should be less than or equal to 10, got 11 at scores.clear[0]",
        ),
        ({"scores": {}}, {}, "items.jsonl:1: "),
        ({}, {"score": 2.5}, "scores.jsonl:1: Input should be a valid integer"),
        ({}, {"winner": 1}, "scores.jsonl:1: unknown key at winner"),
        ({}, {"id": "elsewhere"}, "scores.jsonl:1: id 'elsewhere' is no item of items.jsonl"),
    ],
)
def test_a_wrong_line_is_one_line_of_error(
    library: JudgingLibrary, item: dict[str, Any], score: dict[str, Any], message: str
) -> None:
    library.lines(ITEMS, {"id": "s0", "scores": {"clear": 3}, **item})
    library.lines("scores.jsonl", {**said("j", [3])[0], **score})
    assert scored(library).refuses(message)


def test_what_judge_score_leaves_is_measured(library: JudgingLibrary) -> None:
    library.rubric({"scale": "1-10"})
    library.items({"id": "a", "output": "The sum is 12."}, {"id": "b", "output": "The sum is 12."})
    scores = {"a": 4, "b": 2}
    library.record_answers({(f"{name}/direct", 0): scored_answer(totals=written(n)) for name, n in scores.items()})
    done = library.judge("score", "--judge", "recorded")
    assert done.code == 0, done.err
    library.items({"id": "a", "scores": {"totals": 4}}, {"id": "b", "scores": {"totals": [1, 2]}})
    library.write("scores.jsonl", (library.judging() / "scores.jsonl").read_text(encoding="utf-8"))
    row = calibrated(library)["recorded"]["scores"]["totals"]["all"]
    assert (row["n"], row["right"]["value"], len(row["confusion"])) == (2, 0.75, 5)
    row = calibrated(library, "--rubric", RUBRIC)["recorded"]["scores"]["totals"]["all"]
    assert len(row["confusion"]) == 10
    library.rubric()
    library.items({"id": "a", "scores": {"totals": 4}}, {"id": "b", "scores": {"totals": 8}})
    done = scored(library, "--rubric", RUBRIC)
    assert (done.code, "a score by 'totals' is 8, and its scale ends at 5" in done.err) == (2, True)
