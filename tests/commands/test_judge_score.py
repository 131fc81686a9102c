"""`judge score`: outputs scored by a rubric, each with evidence; what does not count is counted under its reason."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator import api

from tests.support.asked_judges import JUDGE, QUOTE, RUBRIC, JudgingLibrary, answer, method, written
from tests.support.chat_server import ChatServer, Reply
from tests.support.library import ANSWERS, CASES, REPLAY, SKILL, read

ITEM = {"input": "Add 5 and 7.", "output": QUOTE}
TWO = ({"id": "a", **ITEM}, {"id": "b", **ITEM})
REFERENCE = method("reference_based")


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    return JudgingLibrary(tmp_path)


def test_item_is_the_unit_of_the_figures(library: JudgingLibrary) -> None:
    library.rubric({"id": "totals", "weight": 3.0}, {"id": "words", "scale": "1-3", "rubric": _three_levels()})
    library.items(*({"id": f"i{n}", "stratum": "odd" if n % 2 else "even", **ITEM} for n in range(4)))
    library.record_answers(
        {
            (f"i{n}/direct", replicate): answer(totals=written(1 + n), words=written(3 if replicate else 1))
            for n in range(4)
            for replicate in range(2)
        }
    )
    (judge,) = library.outcome("score", "--judge", JUDGE, "--replicates", "2")["judges"]
    totals, words = judge["criteria"]
    assert (totals["score"]["value"], totals["score"]["n"]) == (2.5, 4)
    assert words["score"]["value"] == 2.0
    assert (totals["repeats"]["value"], words["repeats"]["value"]) == (1.0, 0.0)
    assert [item["summary"] for item in judge["items"]] == [
        pytest.approx((3 * n / 4 + 0.5) / 4, abs=1e-6) for n in range(4)
    ]
    assert judge["summary"]["n"] == 4
    assert judge["strata"]["odd"]["value"] == pytest.approx((3 * 2 / 4 + 0.5) / 4, abs=1e-6)
    low, high = judge["summary"]["ci95"]
    assert 0 <= low < judge["summary"]["value"] < high <= 1
    first = judge["items"][0]["judgements"][0]
    assert (first["score"], first["evidence"], first["quotes"]) == (1, [QUOTE], 1)


def test_summary_needs_a_score_on_every_criterion(library: JudgingLibrary) -> None:
    library.rubric({"id": "totals"}, {"id": "words"})
    library.items(*TWO)
    library.record_answers(
        {
            ("a/direct", 0): answer(totals=written(5), words=written(5)),
            ("b/direct", 0): answer(totals=written(1), words=written(9)),
        }
    )
    judge = library.outcome("score", "--judge", JUDGE)["judges"][0]
    assert [item["summary"] for item in judge["items"]] == [1.0, None]
    assert (judge["summary"]["value"], judge["summary"]["n"]) == (1.0, 1)
    assert [criterion["score"]["n"] for criterion in judge["criteria"]] == [2, 1]


def test_judge_run_writes_four_files_beside_its_journal(library: JudgingLibrary) -> None:
    library.items(*TWO)
    library.record_answers({(f"{name}/direct", 0): answer(totals=written()) for name in ("a", "b")})
    done = library.judge("score", "--judge", JUDGE)
    assert done.code == 0, done.err
    folder = library.judging()
    assert f"all results are in judgements/{folder.name}" in done.out
    results, rubric = read(folder / "evaluation_results.json"), read(folder / "evaluation_rubric.json")
    judging = read(folder / "judging.json")
    assert results["judging"]["rubric"] == rubric["digest"] == judging["rubric"]
    assert results["judging"]["prompts"] == judging["prompts"]
    assert results["judges"][0]["judge"]["settings"] == judging["judges"][JUDGE]
    prompt = (folder / "evaluation_prompt.md").read_text()
    assert judging["prompts"][0]["digest"] in prompt
    assert "## totals: Right totals" in prompt
    assert "No judge was compared with people here" in (folder / "bias_analysis_report.md").read_text()
    (run,) = (folder / "runs").iterdir()
    assert read(run / "manifest.json")["judging"] == judging["id"]


def test_unscored_answers_are_counted_by_reason(library: JudgingLibrary) -> None:
    library.items(*({"id": name, **ITEM} for name in ("good", "off", "prose", "refused", "cut", "bare")))
    said = {
        "good": {"text": answer(totals=written(5))},
        "off": {"text": answer(totals=written(7))},
        "prose": {"text": "Very good."},
        "refused": {"text": "I cannot judge this.", "stop_reason": "refusal"},
        "cut": {"text": answer(totals=written(5)), "stop_reason": "length"},
        "bare": {"text": answer(totals=written(5, evidence=[]))},
    }
    library.lines(ANSWERS, *({"case_id": f"{name}/direct", "replicate": 0, **line} for name, line in said.items()))
    (judge,) = library.outcome("score", "--judge", JUDGE)["judges"]
    (criterion,) = judge["criteria"]
    assert criterion["unscored"] == {"off_scale": 1, "not_json": 1, "refused": 1, "truncated": 1, "no_evidence": 1}
    assert (criterion["score"]["value"], criterion["score"]["n"], judge["summary"]["n"]) == (5.0, 1, 1)


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff"])
def test_lone_surrogate_in_an_answer_is_escaped(library: JudgingLibrary, half: str) -> None:
    library.items(*TWO)
    texts = written(4, evidence=[QUOTE, "HALF"], justification="Nine HALF.", suggestion="HALF")
    lone = answer(totals=texts).replace("HALF", half)
    library.record_answers({("a/direct", 0): lone, ("b/direct", 0): answer(totals=written(half))})
    first, second = library.outcome("score", "--judge", JUDGE)["judges"][0]["items"]
    assert (first["judgements"][0]["score"], first["judgements"][0]["justification"]) == (4, f"Nine {half}.")
    assert second["judgements"][0]["unscored"] == "off_scale"


def test_judge_without_usable_output_ends_with_4(library: JudgingLibrary) -> None:
    library.items(*TWO)
    library.record_answers({(f"{name}/direct", 0): "Well." for name in ("a", "b")})
    assert library.judge("score", "--judge", JUDGE).code == 4
    library.served_by("http://127.0.0.1:9/v1")
    done = library.judge("score", "--judge", "served")
    assert (done.code, "served failed: 2 × unreachable: " in done.err) == (4, True), done.err


def test_criteria_of_two_methods_are_scored_in_two_questions(library: JudgingLibrary) -> None:
    library.rubric({"id": "plain"}, {"id": "faithful", "method": REFERENCE})
    library.items({"id": "a", **ITEM, "source": "Five and seven are twelve."})
    library.record_answers({("a/direct", 0): answer(plain=written(2)), ("a/reference", 0): answer(faithful=written(3))})
    (judge,) = library.outcome("score", "--judge", JUDGE)["judges"]
    assert judge["items"][0]["scores"] == {"plain": 2, "faithful": 3}


def test_api_gives_the_results_of_the_command(library: JudgingLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    library.items(*TWO)
    library.record_answers({(f"{name}/direct", 0): answer(totals=written()) for name in ("a", "b")})
    monkeypatch.chdir(library.root)
    judge = api.Library().judge
    asked: dict[str, Any] = {"rubric": Path(RUBRIC), "items": Path("items.jsonl"), "judges": (JUDGE,)}
    size = judge.score(**asked, dry_run=True)
    assert [one.calls for one in size.judges] == [2]
    judged = judge.score(**asked)
    assert (judged.code, judged.again, judged.folder.resolve()) == (0, [], library.judging())
    assert judged.results.model_dump(mode="json") == library.judged()


@pytest.mark.parametrize(
    ("rubric", "item", "arguments", "complaint"),
    [
        ({"method": method("pairwise_comparison")}, ITEM, (), "the method of 'totals' in rubric.yaml is pairwise_comp"),
        ({"method": REFERENCE}, ITEM, (), 'item \'a\' has neither; give it "source" or "reference"'),
        ({}, {"input": "x"}, (), "items.jsonl:1: a required key is missing at output"),
        ({}, ITEM, ("--criterion", "total"), "no criterion 'total' in rubric.yaml (did you mean 'totals'?)"),
        ({}, ITEM, ("--run", "somewhere"), "use either --items FILE, or --run RUN"),
        ({}, ITEM, ("--judge", "recordet"), "did you mean 'recorded'"),
        ({}, ITEM, ("--replicates", "0"), "--replicates must be at least 1"),
    ],
)
def test_wrong_input_is_an_error_before_any_call(
    library: JudgingLibrary,
    rubric: Mapping[str, Any],
    item: Mapping[str, Any],
    arguments: tuple[str, ...],
    complaint: str,
) -> None:
    library.rubric(rubric)
    library.items({"id": "a", **item})
    assert library.judge("score", "--judge", JUDGE, *arguments).refuses(complaint)
    without = library.judge("score")
    assert without.refuses("no judge: name one of models.yaml with --judge ID, such as recorded")
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
    scores = {"kind": 5, "strict": 2}
    for name, score in scores.items():
        texts = {(f"{item}/direct", 0): answer(totals=written(score)) for item in "ab"}
        library.record_answers(texts, f"{name}.jsonl")
    judges = ({**REPLAY, "id": name, "params": {"file": f"{name}.jsonl"}} for name in scores)
    library.models(*judges, {"id": "keyless", "provider": "anthropic"})
    both = library.outcome("score", "--judge", "kind", "--judge", "strict")
    assert [judge["criteria"][0]["score"]["value"] for judge in both["judges"]] == [5.0, 2.0]
    missed = library.judge("score", "--judge", "kind", "--judge", "keyless", "--format", "json")
    assert (missed.code, len(missed.json["judges"])) == (4, 1)
    assert "warning: skipping keyless: ANTHROPIC_API_KEY is not set" in missed.err


def test_results_have_the_share_of_cached_input(library: JudgingLibrary, server: ChatServer) -> None:
    library.items(*TWO)
    usage = {"prompt_tokens": 40, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 30}}
    server.reply = lambda asked: Reply(text=answer(totals=written(4)), fields={"usage": usage})
    library.served_by(server.url)
    (judge,) = library.outcome("score", "--judge", "served")["judges"]
    assert judge["judge"]["hit_rate"] == 0.75


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
    applied = library.call(*words, "--format", "json").json["judges"][0]
    assert [item["scores"] for item in applied["items"]] == [{"totals": 5.0}] * 3
    digests = [read(path)["items"] for path in library.judgements.glob("*/judging.json")]
    assert digests[0] == digests[1]
    library.rubric({"method": REFERENCE, "applies_to": {"component": "another"}})
    assert "'totals' in rubric.yaml is for the component 'another'" in library.call(*words).err
    library.rubric({"method": REFERENCE})
    library.case("beta", {"title": "another", "year": 1})
    changed = library.call(*words)
    assert (changed.code, "case 'beta' changed since" in changed.err) == (2, True)


def test_component_of_a_run_is_read_under_the_limits(library: JudgingLibrary) -> None:
    library.settings(limits={"follow_links": True})
    prompt = library.component / "prompt.md"
    prompt.symlink_to(prompt.rename(library.root / "elsewhere.md"))
    assert library.evaluate_here().code == 0
    library.rubric({"applies_to": {"component": SKILL, "field": ""}, "method": method()})
    run = str(library.run_folder().relative_to(library.root))
    for words in (("score", RUBRIC, "--run", run, "--judge", "recorded", "--dry-run"), ("lint", RUBRIC)):
        done = library.call("judge", *words)
        assert "leads out of" not in done.out + done.err, words
    assert library.call("judge", "score", RUBRIC, "--run", run, "--judge", "recorded", "--dry-run").code == 0


def _three_levels() -> dict[str, Any]:
    level = {"label": "level", "description": "It is so", "characteristics": ["A row is there"]}
    return {"1": level, "3": level}
