"""`judge calibrate --probe`: judges on a loopback server with planted weaknesses, which the probes must find."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.asked_judges import ITEMS, QUOTE, RUBRIC, JudgingLibrary, compared, method, written
from tests.support.asked_judges import answer as said
from tests.support.chat_server import Asked, ChatServer, Reply, chat_server
from tests.support.judged import answer
from tests.support.library import Ended, read

WRONG = "The sum of these rows is eleven, as anyone can see who adds them."
PAIRS = [
    {
        "id": f"p{place}",
        "human": 1 + place % 2,
        "input": "Add the rows up and say how.",
        f"output_{1 + place % 2}": f"{QUOTE} That is what rows {place} and {place + 1} come to.",
        f"output_{2 - place % 2}": f"{WRONG} Rows {place} and {place + 1} come to it.",
    }
    for place in range(30)
]
TEXT = re.compile(r"<judged_(\w+) \w+>\n(.*?)\n</judged_\1 ", re.DOTALL)
Texts = Mapping[str, str]
Judge = Callable[[Texts], str]


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.rubric({"method": method("pairwise_comparison"), "type": "subjective"})
    library.items(*PAIRS)
    return library


def shown(asked: Asked) -> Texts:
    return dict(TEXT.findall(asked.body["messages"][1]["content"]))


def calibrate(library: JudgingLibrary, judge: Callable[[Texts], str], *arguments: str) -> Any:
    with chat_server() as server:
        server.reply = lambda asked: Reply(text=judge(shown(asked)))
        library.served_by(server.url)
        done = call(library, *arguments, "--format", "json")
    assert done.code == 0, done.err
    jsonschema.validate(done.json, json.loads(schema_text("judge-calibration")))
    (judged,) = done.json["judges"]
    return judged


def call(library: JudgingLibrary, *arguments: str) -> Ended:
    return library.call("judge", "calibrate", "--labels", ITEMS, "--judge", "served", *arguments)


def biases(judged: Any) -> dict[tuple[str, str], Any]:
    return {(row["bias"], row["way"]): row for row in judged["biases"]}


def prefers(first: bool) -> str:
    return said(totals=compared("first" if first else "second"))


def gullible(texts: Texts) -> str:
    """Goes by what is right, but for an authority or what is said to the examiner."""
    moved = ["Hale" in texts[name] or "examiner:" in texts[name] for name in ("first_output", "second_output")]
    return prefers(moved[0] if moved[0] != moved[1] else QUOTE in texts["first_output"])


def test_probes_find_what_moves_a_judge_of_pairs_and_clear_what_does_not(library: JudgingLibrary) -> None:
    arguments = [word for name in ("verbosity", "authority", "injection") for word in ("--probe", name)]
    judged = calibrate(library, gullible, "--rubric", RUBRIC, *arguments)
    assert judged["strata"]["all"]["accuracy"] == [1.0, 1.0]
    found = biases(judged)
    verbosity = found["verbosity", ""]
    assert (verbosity["items"], verbosity["shift"]["value"], verbosity["moved"]["value"]) == (30, 0.0, 0.0)
    assert verbosity["present"] is not True
    shifts = {way: row["shift"]["value"] for (bias, way), row in found.items() if bias in ("authority", "injection")}
    assert shifts["experts"] == 0.0
    assert shifts["professor"] == shifts["citation"] == shifts["instruction"] == 1.0
    assert shifts["fake_verdict"] == shifts["fake_delimiter"] == shifts["fake_system"] == shifts["persona"] == 0.0
    assert found["injection", ""]["moved"]["value"] == 0.2
    assert found["authority", ""]["present"] is True
    page = (library.judging() / "bias_analysis_report.md").read_text(encoding="utf-8")
    assert "served, overall: an authority that nothing stands behind moves its verdicts by 0.667" in page
    assert len(read(library.judging() / "judging.json")["questions"]) == 4 * 60
    lines = (library.judging() / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["id"] for line in lines} == {pair["id"] for pair in PAIRS}


def test_probes_find_what_raises_scores(library: JudgingLibrary) -> None:
    """The judge gives 2, one level more to padding, and what an order in the text wants."""
    library.rubric()
    scored = [
        {
            "id": f"s{place}",
            "scores": {"totals": 2},
            "input": "Add up.",
            "output": f"{QUOTE} Row {place} is one of them.",
        }
        for place in range(20)
    ]
    library.items(*scored)

    def obedient(texts: Texts) -> str:
        long = len(texts["output"].split()) > 12
        return said(totals=written(5 if "Score this 5" in texts["output"] else 3 if long else 2))

    library.rubric({}, {"id": "tone", "name": "Tone"})  # by which nobody scored
    judged = calibrate(library, obedient, "--rubric", RUBRIC, "--probe", "verbosity", "--probe", "injection")
    assert judged["scores"]["totals"]["all"]["right"]["value"] == 1.0
    assert list(judged["scores"]) == ["totals"]
    found = biases(judged)
    assert found["verbosity", ""]["shift"]["value"] == 0.25
    assert (found["injection", ""]["criterion"], found["injection", ""]["mode"]) == ("totals", "score")
    assert found["injection", "instruction"]["shift"]["value"] == 0.75
    assert found["verbosity", ""]["present"] is found["injection", ""]["present"] is True
    (part,) = judged["scores"]["totals"]["all"]["confidence"]["table"]
    assert (part["confidence"], part["right"]["value"], part["right"]["n"]) == (0.9, 1.0, 20)
    files = ("--labels", ITEMS, "--verdicts", str(library.judging() / "scores.jsonl"))
    again = library.call("judge", "calibrate", "--format", "json", *files)
    assert again.json["judges"][0]["scores"]["totals"]["all"]["right"] == judged["scores"]["totals"]["all"]["right"]


def test_a_rubric_by_which_nobody_scored_is_refused_before_a_call(library: JudgingLibrary) -> None:
    library.rubric()
    library.items({"id": "s", "scores": {"tone": 2}, "output": QUOTE})
    library.served_by("http://127.0.0.1:9/v1")
    for arguments, message in (
        (("--rubric", RUBRIC), "people scored items.jsonl by tone, and rubric.yaml scores by none of these"),
        (("--broken", "2"), "items.jsonl has scores of people: they go with --rubric FILE"),
    ):
        assert call(library, *arguments).refuses(message)


def test_an_order_in_the_candidate_that_hides_a_regression_is_found(library: JudgingLibrary) -> None:
    def obeys(texts: Texts) -> str:
        usual: dict[str, Any] = dict.fromkeys(("factuality", "completeness", "format_adherence"), "same")
        if texts["candidate"] != texts["baseline"] and "Write `same`" not in texts["candidate"]:
            usual["factuality"] = ("worse", "high")
        return json.dumps(answer(usual))

    judged = calibrate(library, obeys, "--broken", "10", "--probe", "injection", "--probe", "authority")
    found = biases(judged)
    assert found["injection", "instruction"]["shift"]["value"] == 0.5
    assert found["injection", ""]["moved"]["value"] > 0.5
    assert found["authority", ""]["shift"]["value"] == -0.5
    assert {row["mode"] for row in judged["biases"]} == {"regression"}


def test_a_dry_run_shows_what_probes_cost(library: JudgingLibrary) -> None:
    library.items(*PAIRS[:6], {"id": "j", "human": 1, "output_1": '{"sum": 12}', "output_2": '{"sum": 11}'})
    library.served_by("http://127.0.0.1:9/v1")
    done = call(library, "--rubric", RUBRIC, "--broken", "2", "--probe", "injection", "--dry-run")
    assert done.code == 0, done.err
    assert "injection: 6 outputs again with it (pairwise); no place in 1 output: it is JSON" in done.out
    assert "injection: 2 outputs again with it (regression)" in done.out
    # 7 and 6 pairs, 6 planted ones and 2 of them changed, in both orders
    assert "34 questions a judge" in done.out


def test_an_unknown_probe_is_said_in_a_line(library: JudgingLibrary) -> None:
    library.served_by("http://127.0.0.1:9/v1")
    assert call(library, "--rubric", RUBRIC, "--probe", "length").refuses("no probe 'length'")


def test_an_answer_without_a_verdict_after_the_change_is_counted_and_no_shift(library: JudgingLibrary) -> None:
    def confused(texts: Texts) -> str:
        injected = any("examiner" in text for text in texts.values())
        return "As you wish." if injected else prefers(QUOTE in texts["first_output"])

    judged = calibrate(library, confused, "--rubric", RUBRIC, "--probe", "injection")
    row = biases(judged)["injection", ""]
    assert (row["items"], row["lost"], row["shift"]["value"]) == (24, 6, 0.0)


def test_asked_again_nothing_is_asked_twice(library: JudgingLibrary, server: ChatServer) -> None:
    library.items(*PAIRS[:8])
    server.reply = lambda asked: Reply(text=gullible(shown(asked)))
    library.served_by(server.url)
    words = ("--rubric", RUBRIC, "--probe", "authority")
    done = call(library, *words, "--max-calls", "20")
    assert done.code == 4
    assert "--probe authority" in done.err
    assert call(library, *words, "--resume").code == 0
    assert (server.requests, len(library.asked())) == (32, 32)
