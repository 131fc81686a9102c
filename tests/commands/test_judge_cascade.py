"""`--cascade`: a cheap judge, a strong judge for doubtful items, then people, in each mode."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.asked_judges import QUOTE, JudgingLibrary, answer, compared, method
from tests.support.chat_server import Asked, ChatServer, Reply
from tests.support.judged import CHANGE
from tests.support.judged import answer as regression
from tests.support.library import Ended, journal, read

PAIR = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}
CASCADE = ("--cascade", "cheap,strong")
N = 6
BY_ORDER = ("first", "first")  # whatever stands first: the orders disagree
BETTER_1, BETTER_2 = ("first", "second"), ("second", "first")
SAME = {"factuality": "same", "completeness": "same"}
WORSE = {**SAME, "completeness": ("worse", "medium")}
BLOCK = {**SAME, "completeness": ("worse", "high")}
UNVERIFIED = {**SAME, "completeness": ("worse", "medium", "nice", "less nice")}


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.rubric({"method": method("pairwise_comparison", "ties_allowed")})
    library.answered_by("cheap", "strong")
    library.items(*({"id": f"i{n}", **PAIR} for n in range(N)))
    return library


def preferred(library: JudgingLibrary, judge: str, *verdicts: tuple[tuple[str, str], float]) -> None:
    """Have a judge answer about i0, i1, … by order, with a confidence."""
    answers = {
        (f"i{n}/{order}", 0): answer(totals=compared(words[order - 1], confidence=sure))
        for n, (words, sure) in enumerate(verdicts)
        for order in (1, 2)
    }
    library.record_answers(answers, f"{judge}.jsonl")


def called(library: JudgingLibrary, judge: str) -> list[str]:
    """The questions in the journal of a judge."""
    (folder,) = (path for path in library.judging().rglob("runs/*") if path.name.endswith(judge))
    return [line["case_id"] for line in journal(folder)]


def decisions(done: Any) -> list[tuple[str, Any]]:
    return [(one["by"], one["verdict"]) for one in done["cascade"]["decisions"]]


def test_doubtful_matches_go_to_the_strong_judge_then_to_people(library: JudgingLibrary) -> None:
    preferred(library, "cheap", *[(BETTER_1, 0.9)] * 3, (BETTER_1, 0.5), (BY_ORDER, 0.9), (BY_ORDER, 0.9))
    preferred(library, "strong", *[(BETTER_2, 0.9)] * 5, (BY_ORDER, 0.9))
    done = library.outcome("pairwise", *CASCADE)
    assert decisions(done) == [*[("cheap", 1.0)] * 3, *[("strong", 0.0)] * 2, ("people", None)]
    assert [(stage["judge"], stage["asked"], stage["decided"]) for stage in done["cascade"]["stages"]] == [
        ("cheap", 6, 3),
        ("strong", 3, 2),
    ]
    assert {question.partition("/")[0] for question in called(library, "strong")} == {"i3", "i4", "i5"}
    assert library.reasons() == {"i5": ["disagreement"]}
    library.settings(policy={"judge": {"cascade": ["cheap", "strong"]}})
    text = library.judge("pairwise").out
    assert "cascade: cheap decided 3 of 6, strong decided 2 of 3; sent to human review: 1" in text
    assert "both judges together: 0.600 " in text


def found(library: JudgingLibrary, judge: str, *findings: Any) -> None:
    """Have a judge find this in p0, p1, …: in both orders the same, or in each what a pair says."""
    answers = {
        (f"p{n}/{order}", 0): json.dumps(regression(given[order - 1] if isinstance(given, tuple) else given))
        for n, given in enumerate(findings)
        for order in (1, 2)
    }
    library.record_answers(answers, f"{judge}.jsonl")


def regressions(library: JudgingLibrary, count: int, *arguments: str) -> Ended:
    library.items(*({"id": f"p{n}", **CHANGE, "prompt": f"{CHANGE['prompt']} {n}"} for n in range(count)))
    words = ("--items", "items.jsonl", "--dimensions", "factuality,completeness", *CASCADE, "--format", "json")
    return library.call("judge", "regression", *words, *arguments)


def test_doubtful_regressions_go_to_the_strong_judge(library: JudgingLibrary) -> None:
    found(library, "cheap", SAME, BLOCK, (SAME, WORSE), UNVERIFIED, (SAME, WORSE))
    found(library, "strong", *[SAME] * 3, WORSE, (SAME, WORSE))
    done = regressions(library, 5)
    assert (done.code, done.json["ship_decision"]) == (3, "block"), done.err
    assert decisions(done.json) == [
        ("cheap", "ship"),
        ("cheap", "block"),
        ("strong", "ship"),
        ("strong", "review_required"),
        ("people", "review_required"),
    ]
    assert library.reasons() == {"p1": ["block"], "p3": ["regression"], "p4": ["disagreement"]}
    found(library, "cheap", *[SAME] * 5)
    assert regressions(library, 5).code == 0
    assert regressions(library, 5, "--against", "latest").refuses("--against cannot be combined with a cascade")


def test_wrong_cascade_is_refused_before_any_call(library: JudgingLibrary) -> None:
    for names in ("cheap", "cheap,cheap"):
        assert library.judge("pairwise", "--cascade", names).refuses("--cascade requires two different judge ids")
    assert library.judge("pairwise", *CASCADE, "--judge", "cheap").refuses("--cascade cannot be combined with --judge")
    library.settings(policy={"judge": {"cascade": ["cheap", "cheap"]}})
    assert library.judge("pairwise").refuses("policy.judge.cascade in settings.yaml requires")
    assert not library.judgements.exists()


def test_cascade_stopped_in_its_second_stage_repeats_no_call(library: JudgingLibrary, server: ChatServer) -> None:
    def reply(asked: Asked) -> Reply:
        user = asked.body["messages"][-1]["content"]
        sees_it = asked.body["model"] == "strong-1" and user.index(QUOTE) > user.index("no sum")
        return Reply(text=answer(totals=compared("second" if sees_it else "first")))

    server.reply = reply
    served = {"provider": "openai", "base_url": server.url}
    library.models(*({"id": judge, "api_id": f"{judge}-1", **served} for judge in ("cheap", "strong")))
    stopped = library.judge("pairwise", *CASCADE, "--max-calls", str(2 * N + 5))
    assert (stopped.code, server.requests) == (4, 2 * N + 5), stopped.err
    assert f"--judge-run judgements/{library.judging().name}" in stopped.err
    resumed = library.outcome("pairwise", *CASCADE, "--resume")
    assert resumed["cascade"]["stages"][1]["decided"] == N
    assert server.requests == 4 * N
    assert read(library.judging() / "strong" / "judging.json")["judges"].keys() == {"strong"}
