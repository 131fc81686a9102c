"""A judge run that was killed or stopped resumes and repeats no call."""

from pathlib import Path

from tests.support.asked_judges import ITEMS, QUOTE, RUBRIC, JudgingLibrary, answer, compared, method
from tests.support.chat_server import Asked, ChatServer, Reply, killed_at

PAIR = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}
CALLS = 12


def better(asked: Asked) -> Reply:
    user = asked.body["messages"][-1]["content"]
    return Reply(text=answer(totals=compared("first" if user.index(QUOTE) < user.index("no sum") else "second")))


def test_killed_judge_run_resumes_without_repeating_a_call(tmp_path: Path, server: ChatServer) -> None:
    library = JudgingLibrary(tmp_path)
    library.rubric({"method": method("pairwise_comparison")})
    library.items(*({"id": f"i{n}", **PAIR} for n in range(6)))
    library.served_by(server.url, price={"input": 1.0, "output": 1.0})
    server.reply = better
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
    assert (judge["judge"]["answered"], judge["criteria"][0]["counts"]) == (CALLS, {"1": 6})
    assert server.requests == CALLS - len(before)
    asked = library.asked()
    assert asked[: len(before)] == before
    assert len(asked) == len({(line["case_id"], line["replicate"]) for line in asked}) == CALLS
