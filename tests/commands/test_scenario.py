"""`--scenario`: what the model is sent, what the record says, and how a run under one goes on."""

import pytest
from skill_evaluator.records.archive import newest_recorded

from tests.support.chat_server import Asked, ChatServer, Reply, varied
from tests.support.library import Library, read


@pytest.fixture
def polite(served: Library) -> Library:
    served.write(".evaluator/scenarios/polite.md", "---\nname: polite\nintent: manners\n---\nPlease.\n\n{{ prompt }}\n")
    return served


def test_the_model_is_sent_the_template_and_the_record_names_it(polite: Library, server: ChatServer) -> None:
    asked: list[str] = []

    def listening(one: Asked) -> Reply:
        asked.append(one.body["messages"][0]["content"])
        return varied(one)

    server.reply = listening
    assert polite.evaluate_here("--scenario", "polite").code == 0
    assert set(asked) == {"Please.\n\nExtract title and year."}
    (row,) = polite.rows()
    assert row["scenario"] == "polite"
    assert "scenario" in row["digests"]
    assert newest_recorded(polite.leaderboard.read_bytes(), "here") == {}  # it measures the surroundings, too


def test_a_run_under_a_scenario_goes_on_under_it_alone(polite: Library, server: ChatServer) -> None:
    stopped = polite.evaluate_here("--scenario", "polite", "--max-calls", "2")
    assert stopped.code == 4
    assert "--scenario polite" in stopped.err
    refused = polite.evaluate_here("--resume")
    assert (refused.code, "it was begun with --scenario polite" in refused.err) == (2, True)
    assert polite.evaluate_here("--scenario", "polite", "--resume").code == 0
    assert (server.requests, server.repeated) == (6, [])


def test_a_saved_run_is_scored_again_under_its_scenario(polite: Library) -> None:
    polite.evaluate_here("--scenario", "polite")
    again = polite.call("score", str(polite.run_folder()))
    assert (again.code, again.err) == (0, "")
    assert read(polite.run_folder() / "record.json")["scenario"] == "polite"
