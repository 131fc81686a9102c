"""`judge pairwise`: both orders of every pair, several outputs, resuming, and the local model."""

from pathlib import Path

import pytest

from tests.support.asked_judges import ITEMS, JUDGE, QUOTE, RUBRIC, JudgingLibrary, answer, compared, method
from tests.support.chat_server import Asked, ChatServer, Reply, killed_at

PAIRWISE = method("pairwise_comparison", "ties_allowed", "ignore_position")
PAIR = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.rubric({"method": PAIRWISE})
    library.items(*({"id": f"i{n}", **PAIR} for n in range(6)))
    return library


def record(library: JudgingLibrary, words: dict[str, str]) -> None:
    library.record_answers({(case_id, 0): answer(totals=compared(word)) for case_id, word in words.items()})


def test_judge_that_is_right_in_both_orders_decides(library: JudgingLibrary) -> None:
    record(library, {f"i{n}/{order}": ("first", "second")[order - 1] for n in range(6) for order in (1, 2)})
    done = library.judge("pairwise", "--judge", JUDGE)
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line]
    assert lines[-3].startswith("win rate of output 1 on items of items.jsonl: recorded 1.000 ")
    assert lines[-1].startswith("next: label some of these outputs")
    assert lines[3].split()[:7] == [JUDGE, "totals", "6", "0", "0", "0", "0"]
    assert "overall" not in done.out
    totals, _ = library.judged()["judges"][0]["criteria"]
    record(library, {f"i{n}/{order}": "first" for n in range(6) for order in (1, 2)})
    biased, _ = library.outcome("pairwise", "--judge", JUDGE)["judges"][0]["criteria"]
    assert (biased["counts"], biased["lean"]["value"]) == ({"tie": 6}, 1.0)
    assert (totals["wins"]["value"], totals["flips"]["value"], totals["lean"]["value"]) == (1.0, 0.0, 0.0)


def test_several_outputs_are_ranked_by_win_rate(library: JudgingLibrary) -> None:
    outputs = {name: f"{name}. {QUOTE}" for name in ("plain", "good", "best")}
    library.items(*({"id": f"s{n}", "outputs": outputs} for n in range(4)))
    words = {}
    for n in range(4):
        for left, right in ((1, 2), (1, 3), (2, 3)):
            upset = (n, left, right) == (0, 1, 2)
            words[f"s{n}/{left}-{right}/1"] = "first" if upset else "second"
            words[f"s{n}/{left}-{right}/2"] = "second" if upset else "first"
    record(library, words)
    (judge,) = library.outcome("pairwise", "--judge", JUDGE)["judges"]
    wins = {name: (one["value"], one["n"]) for name, one in judge["win_rates"].items()}
    assert list(wins.items()) == [("best", (1.0, 4)), ("good", (0.375, 4)), ("plain", (0.125, 4))]


def test_wrong_input_is_an_error_before_any_call(library: JudgingLibrary) -> None:
    library.items({"id": "a", "output": "x"})
    assert library.judge("pairwise", "--judge", JUDGE).refuses("items.jsonl:1: expected output_1 and output_2")
    library.rubric({})
    wrong_method = library.judge("pairwise", "--judge", JUDGE)
    assert wrong_method.refuses("direct_scoring: use judge score, which scores one output")
    assert not library.judgements.exists()


def test_killed_judge_run_resumes_without_repeating_a_call(library: JudgingLibrary, server: ChatServer) -> None:
    library.served_by(server.url, price={"input": 1.0, "output": 1.0})

    def reply(asked: Asked) -> Reply:
        user = asked.body["messages"][-1]["content"]
        return Reply(text=answer(totals=compared("first" if user.index(QUOTE) < user.index("no sum") else "second")))

    server.reply = reply
    words = ("pairwise", RUBRIC, "--items", ITEMS, "--judge", "served")
    with killed_at(server, 8, library.judgements):
        library.call("judge", *words)
    before = library.asked()
    assert 4 <= len(before) < 8
    server.forget()
    stopped = library.call("judge", *words, "--resume", "--max-calls", "1")
    assert (stopped.code, server.requests) == (4, 1)
    capped = library.call("judge", *words, "--resume", "--max-cost", "0.0001")
    assert (capped.code, "--max-cost 0.0002" in capped.err) == (4, True), capped.err
    done = library.call(*capped.to_go_on(), "--format", "json")
    assert done.code == 0, done.err
    (judge,) = done.json["judges"]
    assert (judge["judge"]["answered"], judge["criteria"][0]["counts"]) == (12, {"1": 6})
    assert server.requests == 12 - len(before)
    asked = library.asked()
    assert asked[: len(before)] == before
    assert len(asked) == len({(line["case_id"], line["replicate"]) for line in asked}) == 12


@pytest.mark.local_model
def test_local_judge_compares_pairs_in_both_orders(library: JudgingLibrary) -> None:
    library.models({"id": "local", "provider": "local", "params": {"max_output_tokens": 160, "threads": 2}})
    library.settings(timeout_s=1e6)
    sums = [{"id": f"sum-{n}", "human": 1, "input": f"What is {n} + 3?"} for n in range(2)]
    library.items(*({**item, "output_1": f"{n + 3}", "output_2": f"{n * 3 + 1}"} for n, item in enumerate(sums)))
    done = library.judge("pairwise", "--judge", "local")
    assert done.code in (0, 4), done.err  # 4: no output is usable
    called = [line["case_id"] for line in library.asked()]
    assert len(called) == len(set(called)) == 4
    verdicts = str((library.judging() / "verdicts.jsonl").relative_to(library.root))
    calibrated = library.call("judge", "calibrate", "--labels", ITEMS, "--verdicts", verdicts)
    assert calibrated.code in (0, 4), calibrated.err
    assert "local" in calibrated.out
