"""Cases that pass always, sometimes or never, and reruns of failing cases."""

from pathlib import Path

import pytest

from tests.commands.test_checks import GOOD, RUDE, checked
from tests.support.chat_server import Asked, ChatServer, Reply
from tests.support.git import GitRepository
from tests.support.library import SKILL, Library

BRIEF = "Be brief."


def bumped(library: Library, version: str = "1.1.0") -> None:
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\n{BRIEF}\n")


class Served:
    """A library in git with a recorded 1.0.0, and a server that answers the new prompt rudely in the `rude` cases."""

    def __init__(self, root: Path, server: ChatServer) -> None:
        self.server, self.library = server, checked(root)
        self.library.served_by(server.url)
        self.library.settings(replicates=4)
        self.rude = {"beta"}
        self.seen: list[tuple[str, bool]] = []
        server.reply = self.reply
        repository = GitRepository(self.library.root)
        repository.commit("first")
        assert self.library.evaluate_here().code == 0
        repository.commit("record")
        bumped(self.library)

    def reply(self, asked: Asked) -> Reply:
        is_new = BRIEF in str(asked.body)
        self.seen.append((asked.case_id, is_new))
        return Reply(text=RUDE if is_new and asked.case_id in self.rude else GOOD)


@pytest.fixture
def served(tmp_path: Path, server: ChatServer) -> Served:
    return Served(tmp_path, server)


def test_failing_cases_are_run_again_with_both_versions(served: Served) -> None:
    library = served.library
    library.settings(replicates=4)
    assert "turned: beta passes always → fails always" in library.evaluate_here("--recorded-baseline").out
    before = library.call("compare", SKILL, "--format", "json").json
    rows, records = library.leaderboard.read_bytes(), sorted((library.component / "evals/records").iterdir())
    served.seen.clear()
    again = library.evaluate_here("--failing", "--format", "json")
    assert sorted(served.seen) == [("beta", False)] * 2 + [("beta", True)] * 4
    verdict = again.json["comparison"]
    (model,) = verdict["models"]
    assert (model["baseline_runs"], model["candidate_runs"], model["since_accepted"]) == (1, 1, None)
    assert model["cases"]["turned"][0]["case_id"] == "beta"
    assert verdict["asked_again"]
    served.rude.clear()
    chance = library.evaluate_here("--failing")
    assert "beta failed in 2" in chance.err
    assert "on this case, run again" in chance.out
    assert "turned" not in chance.out
    assert library.leaderboard.read_bytes() == rows
    assert sorted((library.component / "evals/records").iterdir()) == records
    assert library.call("compare", SKILL, "--format", "json").json == before


def test_stopped_rerun_of_failing_cases_has_no_verdict_until_resumed(served: Served) -> None:
    library = served.library
    library.evaluate_here("--recorded-baseline")
    stopped = library.evaluate_here("--failing", "--max-calls", "5")
    assert stopped.code == 4
    assert "run again" not in stopped.out
    again = library.call(*stopped.to_go_on())
    assert "run again" in again.out, again.err
