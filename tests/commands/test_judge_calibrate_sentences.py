"""`judge calibrate` on labelled sentences: a judge is called as for checks, and its errors are counted."""

import json
from pathlib import Path

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.commands.sentences import judging
from tests.support.asked_judges import ITEMS, JudgingLibrary
from tests.support.chat_server import ChatServer
from tests.support.library import Ended
from tests.support.sites import site_page, words

POLITE, SHORT = "It is polite.", "It is short."


@pytest.fixture
def library(tmp_path: Path, server: ChatServer) -> JudgingLibrary:
    """40 outputs, of which 30 are polite and 20 short, and a judge that takes the first four rude ones for polite."""
    library = JudgingLibrary(tmp_path)
    library.served_by(server.url)
    lines = [
        {"id": f"o{n}", "output": f"output {n}.", "sentence": sentence, "human": human}
        for n in range(40)
        for sentence, human in ((POLITE, n < 30), (SHORT, n < 20))
    ]
    library.items(*lines[:75])
    server.reply = judging(lambda output, sentence, _: int(output[7:-1]) < (34 if sentence == POLITE else 20))
    return library


def calibrate(library: JudgingLibrary, *arguments: str) -> Ended:
    return library.call("judge", "calibrate", "--labels", ITEMS, "--judge", "served", "--format", "json", *arguments)


def test_errors_are_counted_over_all_sentences_and_by_sentence(library: JudgingLibrary, server: ChatServer) -> None:
    done = calibrate(library)
    assert done.code == 0, done.err
    jsonschema.validate(done.json, json.loads(schema_text("judge-calibration")))
    (judge,) = done.json["judges"]
    counts = {
        name: (one["yes_right"], one["yes"], one["no_right"], one["no"]) for name, one in judge["sentences"].items()
    }
    assert counts == {"": (50, 50, 21, 25), POLITE: (30, 30, 4, 8), SHORT: (20, 20, 17, 17)}
    assert judge["record"]["answered"] == server.requests == 38 + 18  # what is denied is asked a second time
    page = (library.judging() / "bias_analysis_report.md").read_text(encoding="utf-8")
    assert "`It is polite.`: TPR 30 of 30, TNR 4 of 8" in page
    (row,) = judge["agreement"]
    assert (row["n"], row["agreement"]["value"], row["trust"]["trusted"]) == (
        75,
        pytest.approx(71 / 75, abs=1e-6),
        True,
    )
    assert (library.judging() / "evaluation_results.json").exists()


def test_stopped_calibration_resumes_without_repeating_a_call(library: JudgingLibrary, server: ChatServer) -> None:
    dry = calibrate(library, "--dry-run")
    assert (dry.code, server.requests) == (0, 0), dry.err
    assert [judge["calls"] for judge in dry.json["judges"]] == [3 * 38]
    stopped = calibrate(library, "--max-calls", "10")
    assert (stopped.code, server.requests) == (4, 10)
    assert library.call("site", "build", "--out", "site").code == 0
    outcome = words(site_page(library.root / "site", "judges.html").find("td", {"data-title": "Outcome"}))
    assert outcome.startswith("? incomplete, with 10 answers: ")
    done = library.call(*stopped.to_go_on())
    assert done.code == 0, done.err
    assert server.requests == 38 + 18
    assert server.repeated == []


def test_options_that_do_not_fit_sentences_are_refused(library: JudgingLibrary) -> None:
    for arguments in (("--corrupt", "3"), ("--judge", "served2"), ("--replicates", "2")):
        assert calibrate(library, *arguments).code == 2, arguments
    library.items({"id": "a", "output": "x", "sentence": POLITE, "human": "yes"})
    assert "human" in calibrate(library).err
    twice = {"id": "a", "output": "x", "sentence": POLITE, "human": True}
    library.items(twice, {**twice, "output": "y", "sentence": SHORT})
    assert "different texts" in calibrate(library).err
