"""`judge regression` on pairs, runs and an earlier batch: decisions, warnings and errors."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.asked_judges import JudgingLibrary
from tests.support.chat_server import notice
from tests.support.judged import BLOCKS, CHANGE, LOST, SAME, answer
from tests.support.library import ANSWERS, CASES, REPLAY, SKILL, Ended

PAIRS = "pairs.jsonl"
SHIP, REVIEW, BLOCK = 0, 4, 3


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def pairs(library: JudgingLibrary, *lines: Mapping[str, Any]) -> None:
    library.lines(PAIRS, *({**CHANGE, **line} for line in lines))


def answered(library: JudgingLibrary, answers: Mapping[str, Any]) -> None:
    """Have the judge answer by question: a text or an answer."""
    texts = {question: given if isinstance(given, str) else json.dumps(given) for question, given in answers.items()}
    library.record_answers({(question, 0): text for question, text in texts.items()})


def both(pair: str, given: Any) -> dict[str, Any]:
    return {f"{pair}/1": given, f"{pair}/2": given}


def judge(library: JudgingLibrary, *arguments: str, **options: Any) -> Ended:
    return library.call("judge", "regression", "--items", PAIRS, "--judge", "recorded", *arguments, **options)


def result(library: JudgingLibrary, given: Any, *arguments: str, **line: Any) -> tuple[int, Any]:
    """The exit code and the whole result of one pair, `p`, where both orders are answered alike."""
    pairs(library, {"id": "p", **line})
    answered(library, both("p", given))
    done = judge(library, *arguments, "--format", "json")
    assert done.code in (SHIP, REVIEW, BLOCK), done.err
    return done.code, done.json


def test_worked_example_of_lost_bullets_and_content_blocks(library: JudgingLibrary) -> None:
    """The judge paraphrases its evidence; the expected answer gives `block` in both dimensions."""
    prompt = "Summarize the following article in 3 bullet points: [article about a town library]"
    code, whole = result(
        library,
        answer(LOST, **BLOCKS),
        prompt=prompt,
        regression_dimensions="factuality, format_adherence, completeness",
    )
    assert (code, whole["ship_decision"]) == (BLOCK, "block")
    jsonschema.validate(library.judged(), json.loads(schema_text("judge-regression")))
    (pair,) = whole["judges"][0]["pairs"]
    assert {one["dimension"]: (one["verdict"], one["impact"]) for one in pair["dimensions"]} == {
        "factuality": ("same", None),
        "format_adherence": ("candidate_worse", "high"),
        "completeness": ("candidate_worse", "high"),
    }
    assert (whole["judging"]["source"], whole["judges"][0]["unverified"]["value"]) == (PAIRS, 1.0)
    page = judge(library)
    verdict, where, sure, following = page.out.splitlines()[-4:]
    assert (verdict, where[:36]) == ("block: items of pairs.jsonl", "where: a regression of high impact: ")
    assert "their share: recorded 1 of 1 (0.050–1.000); fewer than 100 pairs" in sure
    assert following.startswith("next: read the evidence in the folder of the judge run ")
    assert "Free prose without any bullet." in page.out
    assert "warning: 1 pair: rates from fewer than 100 pairs are uncertain" in page.out


def test_identical_outputs_are_the_same_without_a_call(library: JudgingLibrary) -> None:
    outputs = {"candidate_output": CHANGE["baseline_output"]}
    pairs(library, *({"id": f"p{n}", **outputs} for n in range(3)))
    answered(library, {})
    done = judge(library, "--format", "json")
    assert (done.code, done.json["judges"][0]["judge"]["planned"]) == (SHIP, 0)
    assert {pair["reasons"][0] for pair in done.json["judges"][0]["pairs"]} == {"identical outputs"}


def test_batch_is_compared_with_an_earlier_batch_of_its_judge(library: JudgingLibrary) -> None:
    _, earlier = result(library, answer(SAME))
    done = judge(library, "--against", earlier["folder"], "--format", "json")
    assert (done.code, done.json["against"]) == (SHIP, earlier["judging"]["id"]), done.err
    assert [change["rose"] for change in done.json["changes"]] == [False] * 3
    library.models({**REPLAY, "profile": "sampled"})
    changed = judge(library, "--against", earlier["folder"])
    assert (changed.code, "the settings of the judge recorded changed since" in changed.err) == (2, True)
    library.models(REPLAY)
    assert judge(library, "--against", "nothing").refuses("no judge run 'nothing'")
    resumed = judge(library, "--resume", "--out", "new")
    assert (resumed.code, "error: new contains no run of `judge regression`\n" in resumed.err) == (2, True)


QUOTED = json.dumps(answer(SAME))


def test_preset_and_stakes_set_dimensions_and_blocking(library: JudgingLibrary) -> None:
    findings = {"correctness": ("worse", "low"), "format": "same", "efficiency": "same"}
    assert result(library, answer(findings), "--preset", "code")[0] == BLOCK
    assert result(library, answer(SAME), "--stakes", "high")[0] == REVIEW


def test_judge_that_is_not_declared_strong_gets_a_warning(library: JudgingLibrary) -> None:
    _, weak = result(library, answer(SAME))
    assert "warning: recorded is not declared strong enough" in judge(library).err
    library.models({**REPLAY, "judge": "strong"})
    strong = judge(library, "--format", "json")
    assert "warning" not in strong.err
    assert strong.json["judges"][0]["judge"]["settings"] == weak["judges"][0]["judge"]["settings"]


@pytest.mark.parametrize(
    ("line", "arguments", "complaint"),
    [
        ({"id": "p", "baseline_output": ""}, (), "pairs.jsonl:1: "),
        ({"id": "p"}, ("--candidate", "x"), "use either --items FILE, or --candidate RUN"),
    ],
)
def test_wrong_input_is_an_error_before_any_call(
    library: JudgingLibrary, line: Mapping[str, Any], arguments: Sequence[str], complaint: str
) -> None:
    pairs(library, line)
    assert judge(library, *arguments).refuses(complaint)
    assert not library.judgements.exists()


JUDGE_ENTRY = {"id": "judge", "provider": "replay", "params": {"file": "judge.jsonl"}, "judge": "strong"}


def run_of(library: JudgingLibrary, **otherwise: Mapping[str, Any]) -> str:
    """Evaluate the component, which is right but in what is said otherwise of a case; return the id of the run."""
    lines = {case: {"text": notice(case)} for case in CASES} | otherwise
    library.lines(ANSWERS, *({"case_id": case, "replicate": n, **line} for case, line in lines.items() for n in (0, 1)))
    done = library.evaluate_here("--draft", "--model", "recorded", "--format", "json")
    return str(done.json["runs"][0]["run_id"])


@pytest.fixture(scope="module")
def measured_twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[JudgingLibrary, str, str]:
    """A library with a judge that finds nothing, and two runs: the second forgets the year of `beta`."""
    library = JudgingLibrary(tmp_path_factory.mktemp("measured"))
    library.models(REPLAY, JUDGE_ENTRY)
    library.record_answers({(f"{case}/{order}", 0): QUOTED for case in CASES for order in (1, 2)}, "judge.jsonl")
    before = run_of(library)
    return library, before, run_of(library, beta={"text": '{"title": "beta", "year": null}'})


@pytest.fixture
def two_runs(measured_twice: tuple[JudgingLibrary, str, str], tmp_path: Path) -> tuple[JudgingLibrary, str, str]:
    """A copy of it."""
    library, before, after = measured_twice
    return library.copy(tmp_path), before, after


def of_runs(library: JudgingLibrary, candidate: str, *arguments: str) -> Ended:
    words = ("judge", "regression", "--candidate", candidate, "--judge", "judge", "--format", "json")
    return library.call(*words, *arguments)


def test_two_runs_are_compared_case_by_case(two_runs: tuple[JudgingLibrary, str, str]) -> None:
    library, before, after = two_runs
    done = of_runs(library, after, "--baseline", before)
    assert done.code == SHIP, done.err
    assert (done.json["baseline"], done.json["candidate"]) == (before, after)
    assert [pair["id"] for pair in done.json["judges"][0]["pairs"]] == list(CASES)
    assert done.json["judges"][0]["judge"]["planned"] == 2, "the outputs of two cases are identical"
    library.settings(policy={"components": {SKILL: {"stakes": "high"}}})
    assert of_runs(library, after, "--baseline", before).code == REVIEW, "never without a person"


def test_case_that_cannot_be_compared_is_named_and_nothing_ships(two_runs: tuple[JudgingLibrary, str, str]) -> None:
    library, before, _ = two_runs
    after = run_of(library, gamma={"text": "No.", "stop_reason": "refusal"})
    library.case("alpha", {"title": "another", "year": 1})
    done = of_runs(library, after, "--baseline", before)
    assert (done.code, done.json["ship_decision"]) == (REVIEW, "review_required")
    assert done.json["left_out"] == {
        "alpha": "the case changed since the baseline was run",
        "gamma": "candidate: refused",
    }
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.1.0\n---\nExtract.\n")
    assert of_runs(library, after, "--baseline", before).refuses("changed since the candidate")
