"""A judging that was killed or stopped goes on, by the one story of them all: no answered question is asked again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.asked_judges import ITEMS, QUOTE, RUBRIC, JudgingLibrary, answer, compared, method
from tests.support.chat_server import Asked, ChatServer, Reply, killed_at
from tests.support.judged import answer as regression

SAME = json.dumps(regression(dict.fromkeys(("factuality", "completeness", "format_adherence"), "same")))
FIRST = answer(totals=compared("first"))
PAIRWISE = method("pairwise_comparison")
PAIR = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}
JUDGE = ("--items", ITEMS, "--judge", "served")
Prepared = tuple[tuple[str, ...], int, Callable[[Asked], str]]


def pairs(library: JudgingLibrary) -> Prepared:
    def better(asked: Asked) -> str:
        user = asked.body["messages"][-1]["content"]
        return answer(totals=compared("first" if user.index(QUOTE) < user.index("no sum") else "second"))

    library.rubric({"method": PAIRWISE})
    library.items(*({"id": f"i{n}", **PAIR} for n in range(6)))
    return ("pairwise", RUBRIC, *JUDGE), 12, better


def calibration(library: JudgingLibrary) -> Prepared:
    library.rubric({"method": PAIRWISE})
    text = "- It opened in {}.\n- It is {} metres long.\n- It is dry."
    halls = ({**PAIR, "output_1": text.format(1950 + n, 30 + n), "human": 1} for n in range(12))
    library.items(*({"id": f"hall-{n}", **hall} for n, hall in enumerate(halls)))
    return (
        ("calibrate", "--labels", ITEMS, "--judge", "served", "--rubric", RUBRIC, "--corrupt", "6"),
        60,
        lambda asked: SAME if "<judged_candidate" in asked.body["messages"][-1]["content"] else FIRST,
    )


@pytest.mark.parametrize("prepare", [pairs, calibration])
def test_a_killed_judging_resumes_and_asks_no_answered_question_again(
    prepare: Callable[[JudgingLibrary], Prepared], tmp_path: Path, server: ChatServer
) -> None:
    library = JudgingLibrary(tmp_path)
    words, calls, reply = prepare(library)
    library.served_by(server.url, price={"input": 1.0, "output": 1.0})
    server.reply = lambda asked: Reply(text=reply(asked))
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
    assert (judge.get("record") or judge["judge"])["answered"] == calls
    assert server.requests == calls - len(before)
    asked = library.asked()
    assert asked[: len(before)] == before
    assert len(asked) == len({(line["case_id"], line["replicate"]) for line in asked}) == calls
    if prepare is pairs:
        assert judge["criteria"][0]["counts"] == {"1": 6}
