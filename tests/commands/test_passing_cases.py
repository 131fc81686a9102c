"""Cases that pass always, now and then or never: in words, and asked again where they failed."""

from pathlib import Path

import pytest

from tests.commands.test_checks import DATASETS, GOOD, RUDE, answered, checked
from tests.support.chat_server import Asked, ChatServer, Reply
from tests.support.git import GitRepository
from tests.support.library import CASES, SKILL, Library
from tests.support.sites import site_page, words

BRIEF = "Be brief."


def bumped(library: Library, version: str = "1.1.0") -> None:
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\n{BRIEF}\n")


def test_reports_say_which_cases_turned_first_and_which_were_unreliable_before(tmp_path: Path) -> None:
    library = checked(tmp_path)
    answered(library, GOOD, alpha_1=RUDE)
    done = library.evaluate_here()
    assert done.code == 0, done.err
    report = (library.run_folder() / "report.md").read_text()
    for shown in (done.out, report.replace("`", "")):
        assert "flaky: alpha (1 of 2)" in shown
        assert "passes always: 2 cases" in shown
    bumped(library)
    answered(library, GOOD, beta_0=RUDE, beta_1=RUDE, alpha_0=RUDE)
    library.evaluate_here()
    (model,) = library.call("compare", SKILL, "--format", "json").json["models"]
    (turned,) = model["cases"]["turned"]
    assert turned == {"case_id": "beta", "before": "passes always", "after": "fails always"}
    for form in ("text", "markdown"):
        shown = library.call("compare", SKILL, "--format", form).out.replace("`", "")
        words = "turned: beta passes always → fails always"
        assert words in shown
        assert "unreliable baseline: alpha flaky (1 of 2)" in shown
        reasons = [shown.index(reason) for reason in model["reasons"] if reason in shown]
        assert all(shown.index(words) < reason for reason in reasons)


def test_a_check_of_no_weight_for_the_verdict_fails_no_case_and_a_truth_has_to_be_met(tmp_path: Path) -> None:
    library = Library(tmp_path)
    advisory = {"contains": "thanks", "tier": "advisory"}
    library.write(DATASETS, {"datasets": [{"checks": [{"is_json": True}, advisory]}]})
    right = {(case_id, index): f'{{"title": "{case_id}", "year": 2024}}' for case_id in CASES for index in range(2)}
    wrong = right["beta", 1].replace("2024", "1999")
    library.record_answers({**right, ("beta", 1): wrong, ("gamma", 0): "no", ("gamma", 1): wrong})
    shown = library.evaluate_here().out
    assert "fails always: gamma" in shown
    assert "flaky: beta (1 of 2)" in shown
    assert "passes always: 1 case" in shown


def test_the_page_of_a_case_says_how_often_it_passes(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    library = checked(tmp_path)
    answered(library, GOOD, alpha_1=RUDE)
    library.evaluate_here()
    assert library.call("site", "build", "--out", "site").code == 0
    page = site_page(library.root / "site", f"cases/{SKILL}/alpha.html")
    assert "flaky (1 of 2)" in words(page.main)


class Served:
    """A library in git whose 1.0.0 is recorded, and a server that is rude to the new prompt in the cases it is told."""

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


def test_failing_cases_are_asked_again_of_both_versions_and_only_the_new_answers_count(served: Served) -> None:
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


def test_where_the_baseline_is_not_asked_to_the_end_there_is_no_verdict_and_resume_brings_it(served: Served) -> None:
    library = served.library
    library.evaluate_here("--recorded-baseline")
    stopped = library.evaluate_here("--failing", "--max-calls", "5")
    assert stopped.code == 4
    assert "run again" not in stopped.out
    again = library.call(*stopped.to_go_on())
    assert "run again" in again.out, again.err
