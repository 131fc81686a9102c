"""`judge pairwise --cascade`: a cheap judge, a strong one for what it leaves open, then people."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.asked_judges import QUOTE, JudgingLibrary, answer, compared, method
from tests.support.chat_server import Asked, ChatServer, Reply, killed_at
from tests.support.library import journal, read

PAIR = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}
CASCADE = ("--cascade", "cheap,strong")
LABELS = "labels.jsonl"
N = 8
BY_ORDER = ("first", "first")  # whatever stands first: the orders disagree
BETTER_1, BETTER_2 = ("first", "second"), ("second", "first")


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.rubric({"method": method("pairwise_comparison", "ties_allowed")})
    library.answered_by("cheap", "strong")
    settings(library)
    library.items(*({"id": f"i{n}", **PAIR} for n in range(N)))
    return library


def settings(library: JudgingLibrary, **cascade: Any) -> None:
    library.settings(policy={"judge": {"cascade": {"audit": 0, **cascade}}})


def said(library: JudgingLibrary, judge: str, *verdicts: tuple[tuple[str, str], float]) -> None:
    """Have a judge answer about i0, i1, … by order, with a confidence."""
    asked = {
        (f"i{n}/{order}", 0): answer(totals=compared(words[order - 1], confidence=sure))
        for n, (words, sure) in enumerate(verdicts)
        for order in (1, 2)
    }
    library.record_answers(asked, f"{judge}.jsonl")


def made_by(library: JudgingLibrary, judge: str) -> list[str]:
    """The questions in the journal of a judge."""
    (folder,) = (path for path in library.judging().rglob("runs/*") if path.name.endswith(judge))
    return [line["case_id"] for line in journal(folder)]


def test_what_is_unsure_or_disagrees_goes_to_the_strong_judge_and_then_to_people(library: JudgingLibrary) -> None:
    sure = [(BETTER_1, 0.9)] * (N - 3)
    said(library, "cheap", *sure, (BETTER_1, 0.5), (BY_ORDER, 0.9), (BY_ORDER, 0.9))
    said(library, "strong", *[(BETTER_2, 0.9)] * (N - 2), (BETTER_2, 0.9), (BY_ORDER, 0.9))
    result = library.outcome("pairwise", *CASCADE)["cascade"]
    assert [(stage["judge"], stage["asked"], stage["settled"]) for stage in result["stages"]] == [
        ("cheap", N, N - 3),
        ("strong", 3, 2),
    ]
    assert [match["by"] for match in result["matches"]] == ["cheap"] * (N - 3) + ["strong", "strong", "people"]
    assert [match["winner"] for match in result["matches"]] == [1] * (N - 3) + [2, 2, None]
    assert (result["people"], result["wins"]["n"], result["guarantee"]) == (1, N - 1, None)
    assert {question.partition("/")[0] for question in made_by(library, "strong")} == {"i5", "i6", "i7"}
    assert library.reasons() == {"i7": ["disagreement"]}
    text = library.judge("pairwise", *CASCADE).out
    assert "nothing guarantees that what the judges settled agrees with people" in text


def test_labels_choose_a_threshold_that_holds_with_confidence(library: JudgingLibrary) -> None:
    pairs = 80
    settings(library, alpha=0.2, delta=0.2)
    library.items(*({"id": f"i{n}", **PAIR} for n in range(pairs)))
    # the cheap judge is right from 0.8 on and a coin below; what it leaves open, the strong one gets right
    confident = [0.9 if n % 2 else 0.6 for n in range(pairs)]
    said(library, "cheap", *((BETTER_1 if sure > 0.8 or n % 4 else BETTER_2, sure) for n, sure in enumerate(confident)))
    said(library, "strong", *[(BETTER_1, 0.9)] * pairs)
    library.lines(LABELS, *({"id": f"i{n}", "human": 1} for n in range(pairs)))
    result = library.outcome("pairwise", *CASCADE, "--labels", LABELS)["cascade"]
    cheap, strong = result["stages"]
    assert result["guarantee"] == {"alpha": 0.2, "delta": 0.2}
    assert cheap["labels"] == pairs
    assert 0.6 < cheap["threshold"] <= 0.9
    assert (cheap["settled"], strong["settled"], result["people"]) == (pairs / 2, pairs / 2, 0)
    text = library.judge("pairwise", *CASCADE, "--labels", LABELS).out
    assert "at least 0.800 of what cheap settled agrees with people" in text


def test_with_too_few_labels_the_cheap_judge_settles_nothing(library: JudgingLibrary) -> None:
    said(library, "cheap", *[(BETTER_1, 0.9)] * N)
    said(library, "strong", *[(BETTER_1, 0.9)] * N)
    library.lines(LABELS, *({"id": f"i{n}", "human": 1} for n in range(N - 1)))
    done = library.judge("pairwise", *CASCADE, "--labels", LABELS)
    assert done.code == 0, done.err
    assert "cheap settled 0 of 8: no threshold could be shown to be safe on 7 labels" in done.out
    assert "strong settled 8 of 8: by the criteria's own thresholds" in done.out
    assert library.reasons() == {}


def test_a_share_of_what_the_cheap_judge_settled_is_checked_by_the_strong_one(library: JudgingLibrary) -> None:
    settings(library, judges=["cheap", "strong"], audit=1)
    said(library, "cheap", *[(BETTER_1, 0.9)] * N)
    said(library, "strong", *[(BETTER_1, 0.9)] * (N - 2), (BETTER_2, 0.9), (BETTER_2, 0.9))
    result = library.outcome("pairwise")["cascade"]
    assert (result["audited"], result["audit"]["value"], result["people"]) == (N, 0.75, 0)
    strong = result["stages"][1]
    assert (strong["judge"], strong["asked"], strong["settled"], strong["threshold"]) == ("strong", 0, 0, None)
    assert {match["by"] for match in result["matches"]} == {"cheap"}
    assert library.reasons() == {}


def test_a_dry_run_counts_all_pairs_for_both_judges(library: JudgingLibrary) -> None:
    size = library.outcome("pairwise", *CASCADE, "--dry-run")
    assert size["total"]["calls"] == 2 * 2 * N
    assert "at most: strong is asked only what cheap leaves open, and the audited share" in size["notes"]
    assert not library.judgements.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--cascade", "cheap"), "--cascade names two judges"),
        (("--cascade", "cheap,cheap"), "--cascade names two judges"),
        ((*CASCADE, "--judge", "cheap"), "replaces --judge"),
        (("--judge", "cheap", "--labels", LABELS), "--labels chooses the threshold of a cascade"),
        ((*CASCADE, "--labels", LABELS), "labels.jsonl has no label of a pair that is judged here"),
    ],
)
def test_a_cascade_that_cannot_be_is_one_line_before_any_call(
    library: JudgingLibrary, arguments: tuple[str, ...], complaint: str
) -> None:
    library.lines(LABELS, {"id": "i0", "human": 1, "split": "held_out"})
    assert library.judge("pairwise", *arguments).refuses(complaint)
    assert not library.judgements.exists()


def test_the_limit_of_calls_is_of_both_stages_and_a_resumed_cascade_goes_on(library: JudgingLibrary) -> None:
    said(library, "cheap", *[(BY_ORDER, 0.9)] * N)
    said(library, "strong", *[(BETTER_1, 0.9)] * N)
    stopped = library.judge("pairwise", *CASCADE, "--max-calls", str(2 * N + 4), "--concurrency", "1")
    assert stopped.code == 4
    assert len(library.judging().name) > 0
    assert f"--max-calls {2 * N + 4} --concurrency 1 --items items.jsonl --cascade cheap,strong" in stopped.err
    assert f"--resume judgements/{library.judging().name}" in stopped.err
    assert library.reasons() == {}
    done = library.outcome("pairwise", *CASCADE, "--resume")
    assert done["cascade"]["stages"][1]["settled"] == N


def test_a_cascade_killed_in_its_second_stage_asks_nothing_twice(library: JudgingLibrary, server: ChatServer) -> None:
    def reply(asked: Asked) -> Reply:
        user = asked.body["messages"][-1]["content"]
        sees_it = asked.body["model"] == "strong-1" and user.index(QUOTE) > user.index("no sum")
        return Reply(text=answer(totals=compared("second" if sees_it else "first")))

    server.reply = reply
    served = {"provider": "openai", "base_url": server.url}
    library.models(*({"id": judge, "api_id": f"{judge}-1", **served} for judge in ("cheap", "strong")))
    with killed_at(server, 2 * N + 6, library.judgements):
        library.judge("pairwise", *CASCADE)
    answered = sum(len(made_by(library, judge)) for judge in ("cheap", "strong"))
    assert 2 * N < answered < 2 * N + 6
    server.forget()
    resumed = library.outcome("pairwise", *CASCADE, "--resume")
    assert resumed["cascade"]["stages"][1]["settled"] == N
    assert server.requests == 4 * N - answered
    assert len(list(library.judging().rglob("judging.json"))) == 2
    assert read(library.judging() / "strong" / "judging.json")["judges"].keys() == {"strong"}
    for judge in ("cheap", "strong"):
        assert len(made_by(library, judge)) == len(set(made_by(library, judge))) == 2 * N
