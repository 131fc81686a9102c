"""`judge score`: figures, files, errors, dry run, and the outputs of a run."""

from pathlib import Path

import pytest

from tests.support.asked_judges import JUDGE, QUOTE, RUBRIC, JudgingLibrary, answer, method, written
from tests.support.library import CASES, REPLAY, SKILL, read

ITEM = {"input": "Add 5 and 7.", "output": QUOTE}
TWO = ({"id": "a", **ITEM}, {"id": "b", **ITEM})
REFERENCE = method("reference_based")


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def test_item_is_the_unit_of_the_figures(library: JudgingLibrary) -> None:
    library.rubric({"id": "totals", "weight": 3.0}, {"id": "words"})
    library.items(*({"id": f"i{n}", "stratum": "odd" if n % 2 else "even", **ITEM} for n in range(4)))
    library.record_answers(
        {
            (f"i{n}/direct", replicate): answer(totals=written(1 + n), words=written(5 if replicate else 1))
            for n in range(4)
            for replicate in range(2)
        }
    )
    (judge,) = library.outcome("score", "--judge", JUDGE, "--replicates", "2")["judges"]
    totals, words = judge["criteria"]
    assert (totals["score"]["value"], totals["score"]["n"]) == (2.5, 4)
    assert (totals["repeats"]["value"], words["repeats"]["value"]) == (1.0, 0.0)
    assert [item["summary"] for item in judge["items"]] == [
        pytest.approx((3 * n / 4 + 0.5) / 4, abs=1e-6) for n in range(4)
    ]
    assert judge["summary"]["n"] == 4
    assert judge["strata"]["odd"]["value"] == pytest.approx((3 * 2 / 4 + 0.5) / 4, abs=1e-6)
    first = judge["items"][0]["judgements"][0]
    assert (first["score"], first["evidence"], first["quotes"]) == (1, [QUOTE], 1)


def test_judge_run_writes_four_files_beside_its_journal(library: JudgingLibrary) -> None:
    library.items(*TWO)
    library.record_answers({(f"{name}/direct", 0): answer(totals=written()) for name in ("a", "b")})
    done = library.judge("score", "--judge", JUDGE)
    assert done.code == 0, done.err
    folder = library.judging()
    assert f"results: judgements/{folder.name}" in done.out
    results, judging = read(folder / "evaluation_results.json"), read(folder / "judging.json")
    assert results["judging"]["rubric"] == read(folder / "evaluation_rubric.json")["digest"] == judging["rubric"]
    assert results["judges"][0]["judge"]["settings"] == judging["judges"][JUDGE]
    prompt = (folder / "evaluation_prompt.md").read_text()
    assert judging["prompts"][0]["digest"] in prompt
    assert "## totals: Right totals" in prompt
    assert "These figures need no human labels" in (folder / "bias_analysis_report.md").read_text()


def test_wrong_input_is_an_error_before_any_call(library: JudgingLibrary) -> None:
    for rubric, item, arguments, complaint in (
        (
            {"method": method("pairwise_comparison")},
            ITEM,
            (),
            "the method of criterion 'totals' in rubric.yaml is pairwise_comp",
        ),
        ({"method": REFERENCE}, ITEM, (), "requires a source or a reference"),
        ({}, {"input": "x"}, (), "items.jsonl:1: a required key is missing at output"),
        ({}, ITEM, ("--criterion", "total"), "no criterion 'total' in rubric.yaml (did you mean 'totals'?)"),
        ({}, ITEM, ("--run", "somewhere"), "use either --items FILE, or --run RUN"),
    ):
        library.rubric(rubric)
        library.items({"id": "a", **item})
        assert library.judge("score", "--judge", JUDGE, *arguments).refuses(complaint)
    assert library.judge("score").refuses("no judge: name one of models.yaml with --judge ID, such as recorded")
    assert not library.judgements.exists()


def test_dry_run_prints_calls_and_cost_and_writes_nothing(library: JudgingLibrary) -> None:
    library.rubric({"id": "plain"}, {"id": "faithful", "method": REFERENCE})
    library.items(*({**item, "reference": "12"} for item in TWO))
    library.models({"id": "paid", "provider": "anthropic", "price": {"input": 1, "output": 10}})
    size = library.outcome("score", "--judge", "paid", "--replicates", "3", "--dry-run")
    assert size["total"]["calls"] == 2 * 2 * 3
    assert size["total"]["cost_upper_usd"] > 2 * 2 * 3 * 4096 * 10 / 1e6
    assert size["judges"][0]["key"] == "ANTHROPIC_API_KEY not set"
    assert not library.judgements.exists()


def test_judge_without_a_key_is_skipped_beside_others(library: JudgingLibrary) -> None:
    library.items(*TWO)
    library.record_answers({(f"{item}/direct", 0): answer(totals=written()) for item in "ab"})
    library.models(REPLAY, {"id": "keyless", "provider": "anthropic"})
    missed = library.judge("score", "--judge", JUDGE, "--judge", "keyless", "--format", "json")
    assert (missed.code, len(missed.json["judges"])) == (4, 1)
    assert "warning: skipping keyless: ANTHROPIC_API_KEY is not set" in missed.err


def test_outputs_of_a_run_are_scored_with_its_documents(library: JudgingLibrary) -> None:
    assert library.evaluate_here().code == 0
    library.rubric({"method": REFERENCE})
    library.models(REPLAY, {**REPLAY, "id": "judge", "params": {"file": "judge.jsonl"}})
    texts = {(f"{case}/reference", 0): answer(totals=written(5, evidence=[f"{case} is the title"])) for case in CASES}
    library.record_answers(texts, "judge.jsonl")
    run = str(library.run_folder().relative_to(library.root))
    words = ("judge", "score", RUBRIC, "--run", run, "--judge", "judge")
    done = library.call(*words, "--field", "title", "--format", "json")
    assert done.code == 0, done.err
    (judge,) = done.json["judges"]
    assert [item["id"] for item in judge["items"]] == ["alpha", "beta", "gamma"]
    assert judge["criteria"][0]["quoted"]["value"] == 1.0
    library.rubric({"method": REFERENCE, "applies_to": {"component": SKILL, "field": "title"}})
    assert library.call(*words).code == 0
    digests = [read(path)["items"] for path in library.judgements.glob("*/judging.json")]
    assert digests[0] == digests[1]
    library.rubric({"method": REFERENCE, "applies_to": {"component": "another"}})
    assert "criterion 'totals' in rubric.yaml applies to component 'another'" in library.call(*words).err
    library.rubric({"method": REFERENCE})
    library.case("beta", {"title": "another", "year": 1})
    changed = library.call(*words)
    assert (changed.code, "case 'beta' changed since" in changed.err) == (2, True)
