"""`--with-baseline`, `--rerun-baseline`: what is asked, in what order, under which limits, and what is recorded."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.git import GitRepository, git
from tests.support.library import CASES, SCHEMA, SKILL, Library, journal, read

OLD, NEW = "Extract title and year.", "Extract the title and the year."
PLANNED = 3 * len(CASES)  # two replicates of the new version, one of the baseline
Prompts = list[tuple[str, str]]  # (prompt, case) of every request in the order in which they came


class Asking:
    """A server's script: it notes what was asked, and answers wrongly what it is told to."""

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        self.seen: Prompts = []
        self.wrong: Callable[[str, Asked], bool] = lambda prompt, asked: False
        self.delay_s = 0.0
        server.reply = self

    def __call__(self, asked: Asked) -> Reply:
        prompt = asked.body["messages"][0]["content"]
        self.seen.append((prompt, asked.case_id))
        year = 1999 if self.wrong(prompt, asked) else 2024
        return Reply(text=notice(asked.case_id, year), delay_s=self.delay_s)


@pytest.fixture
def server(standing: ChatServer) -> ChatServer:
    """The one server of these tests, of which nothing was asked yet."""
    standing.forget()
    standing.most_in_flight = 0
    return standing


@pytest.fixture
def asking(server: ChatServer) -> Asking:
    return Asking(server)


@pytest.fixture(scope="module")
def recorded(standing: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library in git: 1.0.0 is recorded and committed, the work tree holds 1.1.0 with another prompt."""
    library = Library(tmp_path_factory.mktemp("recorded"))
    library.served_by(standing.url)
    repository = GitRepository(library.root)
    repository.commit()
    Asking(standing)
    assert library.evaluate_here().code == 0
    repository.commit("record")
    _prompt(library, "1.1.0", NEW)
    return library


@pytest.fixture
def bumped(recorded: Library, asking: Asking, tmp_path: Path) -> Library:
    return recorded.copy(tmp_path / "library")


def _prompt(library: Library, version: str, text: str) -> None:
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\n{text}\n")


def _records(library: Library) -> list[dict[str, Any]]:
    return [read(path) for path in (library.component / "evals" / "records").iterdir()]


def _pair(library: Library) -> list[dict[str, Any]]:
    """The records of two runs beside each other: the new version's, then the baseline's."""
    return sorted((one for one in _records(library) if one["beside"]), key=lambda one: one["run_id"])


def test_interleaved_versions_take_turns_and_are_compared(bumped: Library, asking: Asking) -> None:
    bumped.settings(concurrency=1)
    done = bumped.evaluate_here("--with-baseline", "--format", "json")
    assert done.code == 0
    assert [prompt for prompt, _ in asking.seen] == [NEW, OLD, OLD, NEW, NEW, OLD, NEW, NEW, NEW]
    assert [case for _, case in asking.seen[:6]] == [case for case in CASES for _ in range(2)]
    candidate, baseline = _pair(bumped)
    assert (candidate["skill_version"], baseline["skill_version"]) == ("1.1.0", "1.0.0")
    assert (candidate["beside"], baseline["beside"]) == (baseline["run_id"], candidate["run_id"])
    assert candidate["timestamp"] == baseline["timestamp"]
    (model,) = done.json["comparison"]["models"]
    assert (model["baseline"]["run_id"], model["candidate"]["run_id"]) == (baseline["run_id"], candidate["run_id"])
    (compared,) = bumped.call("compare", SKILL, "--format", "json").json["models"]
    assert compared["baseline"]["run_id"] == baseline["run_id"]


def test_draft_is_interleaved_with_its_version_before_the_edit(bumped: Library, asking: Asking) -> None:
    before = bumped.leaderboard.read_bytes()
    _prompt(bumped, "1.0.0", NEW)
    done = bumped.evaluate_here("--with-baseline", "--draft", "--format", "json")
    assert (done.code, bumped.leaderboard.read_bytes()) == (0, before)
    assert {prompt for prompt, _ in asking.seen} == {OLD, NEW}
    candidate, baseline = _pair(bumped)
    assert (candidate["draft"], baseline["draft"], candidate["beside"]) == (True, True, baseline["run_id"])
    again = bumped.call("compare", SKILL, "--candidate", candidate["run_id"], "--format", "json")
    for result in (done.json["comparison"], again.json):
        (model,) = result["models"]
        assert (model["baseline"]["run_id"], model["candidate"]["run_id"]) == (baseline["run_id"], candidate["run_id"])
    assert bumped.call("lint", SKILL).err == "error: 1 problem in 1 of 1 component\n", "the version was not raised"


def test_interleaved_baseline_has_a_record_and_no_row(bumped: Library) -> None:
    (first,) = bumped.records()
    assert bumped.evaluate_here("--with-baseline").code == 0
    _, baseline = _pair(bumped)
    assert baseline["digests"] == {**first["digests"], "answers": baseline["digests"]["answers"]}  # half as many
    assert baseline["seed"] != first["seed"]  # else a provider that keeps to seeds would repeat its answers
    assert bumped.call("lint", SKILL).code == 0
    assert [row["skill_version"] for row in bumped.rows()] == ["1.1.0", "1.0.0"]
    assert bumped.call("compare", SKILL, "--candidate", baseline["run_id"]).refuses("no complete run of 'served'")


def test_call_limit_covers_both_versions_and_no_call_is_repeated(
    bumped: Library, server: ChatServer, asking: Asking
) -> None:
    rows = len(bumped.rows())
    stopped = bumped.evaluate_here("--with-baseline", "--max-calls", "7")
    assert (stopped.code, server.requests) == (4, 7)
    assert {len(journal(folder)) for folder in bumped.results.glob("*-served*")} >= {3, 4}
    assert len(bumped.rows()) == rows  # neither is recorded
    assert bumped.evaluate_here("--resume", "--max-calls", "1").code == 4
    assert bumped.evaluate_here("--with-baseline", "--resume", "--replicates", "2").code == 0
    assert server.requests == PLANNED == len(asking.seen)
    assert sorted(asking.seen) == sorted((prompt, case) for prompt in (OLD, NEW, NEW) for case in CASES)
    candidate, baseline = _pair(bumped)
    assert (candidate["beside"], baseline["beside"]) == (baseline["run_id"], candidate["run_id"])


def test_failed_baseline_leaves_the_candidate_recorded(bumped: Library, asking: Asking, server: ChatServer) -> None:
    (before,) = bumped.rows()
    server.reply = lambda asked: (
        Reply(status=500) if asked.body["messages"][0]["content"] == OLD else Reply(text=notice(asked.case_id))
    )
    stopped = bumped.evaluate_here("--with-baseline", "--format", "json")
    assert stopped.code == 4
    assert [run["complete"] for run in stopped.json["runs"]] == [True, False]
    assert [row["skill_version"] for row in bumped.rows()] == ["1.1.0", "1.0.0"]
    (model,) = stopped.json["comparison"]["models"]
    assert model["baseline"]["run_id"] == before["run_id"]
    assert "its interleaved baseline is not complete" in str(model)
    server.forget()
    server.reply = asking
    asking.seen.clear()
    words = next(line for line in stopped.err.splitlines() if "--run" in line).split()
    resumed = bumped.evaluate_here(*words[words.index("--run") :], "--format", "json")
    assert resumed.code == 0
    assert {prompt for prompt, _ in asking.seen} == {OLD}
    (model,) = resumed.json["comparison"]["models"]
    assert model["baseline"]["run_id"] == _pair(bumped)[1]["run_id"]
    assert len(bumped.rows()) == 2


def test_failed_candidate_leaves_its_baseline_unrecorded(bumped: Library, asking: Asking, server: ChatServer) -> None:
    server.reply = lambda asked: (
        Reply(status=500) if asked.body["messages"][0]["content"] == NEW else Reply(text=notice(asked.case_id))
    )
    assert bumped.evaluate_here("--with-baseline").code == 4
    assert _pair(bumped) == []
    server.reply = asking
    assert bumped.evaluate_here("--resume").code == 0
    assert [record["skill_version"] for record in _pair(bumped)] == ["1.1.0", "1.0.0"]


def test_baseline_prompt_is_found_by_its_digest(bumped: Library, asking: Asking) -> None:
    """1.1.0 is evaluated before it is committed, as people do; its record names a commit that lacks it."""
    assert bumped.evaluate_here().code == 0
    (record,) = (one for one in _records(bumped) if one["skill_version"] == "1.1.0")
    assert record["prompt_commit"].endswith("-dirty")
    git(bumped.root, "add", "-A")
    git(bumped.root, "commit", "-qm", "1.1.0")
    commit = git(bumped.root, "rev-parse", "HEAD")
    _prompt(bumped, "1.2.0", "Extract both.")
    git(bumped.root, "commit", "-qam", "1.2.0")
    asking.seen.clear()
    assert bumped.evaluate_here("--with-baseline").code == 0
    assert {prompt for prompt, _ in asking.seen} == {NEW, "Extract both."}
    assert _pair(bumped)[1]["prompt_commit"] == commit


def test_baseline_is_refused_without_a_lower_version(served: Library, server: ChatServer) -> None:
    refused = served.evaluate_here("--with-baseline")
    assert (refused.code, server.requests) == (2, 0)
    warning, error = refused.err.splitlines()
    assert warning.startswith("warning: skipping served: there is no complete record of a lower version")
    assert "evaluate it without --with-baseline first" in error


def test_contradicting_designs_are_refused(bumped: Library) -> None:
    before = bumped.tree()
    for words, reason in (
        (("--with-baseline", "--rerun-baseline"), "--with-baseline and --rerun-baseline cannot be combined"),
        (("--rerun-baseline", "--recorded-baseline"), "--recorded-baseline and --rerun-baseline cannot be combined"),
    ):
        assert bumped.evaluate_here(*words).refuses(reason), words
    assert bumped.tree() == before


def test_rerun_baseline_runs_the_recorded_version_again(bumped: Library, asking: Asking) -> None:
    asking.wrong = lambda prompt, asked: asked.case_id == "alpha"
    done = bumped.evaluate_here("--rerun-baseline", "--format", "json")
    assert (done.code, done.json["comparison"]) == (0, None)
    assert {prompt for prompt, _ in asking.seen} == {OLD}
    first, again = sorted(_records(bumped), key=lambda one: int(one["seed"]))
    assert (first["skill_version"], again["skill_version"], again["beside"]) == ("1.0.0", "1.0.0", None)
    asked_alike = {name for name, digest in first["digests"].items() if again["digests"][name] == digest}
    assert asked_alike == first["digests"].keys() - {"answers"}
    assert first["prompt_commit"] == again["prompt_commit"]
    assert first["seed"] != again["seed"]
    (spread,) = done.json["spreads"]
    assert set(spread["scores"]) == {first["run_id"], again["run_id"]}
    assert spread["sigma"] == pytest.approx((1 - 5 / 6) / 2**0.5, abs=1e-6)


@pytest.fixture
def by_default(bumped: Library) -> Library:
    """The same under the settings that a library has where nothing else is said."""
    bumped.settings(policy={"design": "beside"})
    return bumped


def _calls(library: Library, *words: str) -> int:
    shown = library.evaluate_here("--dry-run", "--format", "json", *words)
    assert shown.code == 0, shown.err
    return int(sum(model["calls"] for model in shown.json["models"]))


def test_option_or_policy_selects_the_recorded_baseline(by_default: Library, asking: Asking) -> None:
    assert (_calls(by_default), _calls(by_default, "--recorded-baseline")) == (PLANNED, 6)
    done = by_default.evaluate_here("--recorded-baseline")
    assert (done.code, {prompt for prompt, _ in asking.seen}) == (0, {NEW})
    assert by_default.evaluate_here("--recorded-baseline", "--with-baseline").refuses("cannot be combined")
    by_default.settings(policy={"design": "recorded"})
    assert (_calls(by_default), _calls(by_default, "--with-baseline")) == (6, PLANNED)


@pytest.mark.parametrize(
    ("words", "calls"), [(("--draft",), 6), (("--case", "alpha"), 2), (("--shard", "1/3"), 2), (("--no-prompt",), 6)]
)
def test_run_without_a_verdict_calls_no_baseline(by_default: Library, words: tuple[str, ...], calls: int) -> None:
    assert _calls(by_default, *words) == calls


def test_run_of_some_cases_changes_neither_the_version_to_ship_nor_proposes_accept(
    by_default: Library, asking: Asking
) -> None:
    asking.wrong = lambda prompt, asked: prompt == OLD
    assert by_default.evaluate_here("--replicates", "4").code == 0
    advice = _lines(by_default.call("history", SKILL).out, "to ship: ")
    assert advice[0].startswith("to ship: 1.1.0 ")
    some = by_default.evaluate_here("--case", "alpha", "--replicates", "1").out
    assert _lines(some, "to ship: ") == advice
    assert _lines(some, "next: run all cases")
    asking.wrong = lambda prompt, asked: True
    assert _lines(by_default.evaluate_here("--case", "alpha").out, "to ship: ") == advice


def _lines(out: str, start: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(start)]


def _without_git(library: Library) -> None:
    shutil.rmtree(library.root / ".git")


def _with_another_schema(library: Library) -> None:
    library.write(f"components/{SKILL}/schema.json", {**SCHEMA, "title": "Notice"})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_without_git, "the earlier prompt of component 'notice-extraction' 1.0.0 cannot be read from git"),
        (_with_another_schema, "had a different schema from"),
    ],
)
def test_recorded_baseline_is_used_when_its_prompt_is_not_available(
    by_default: Library, asking: Asking, change: Callable[[Library], None], why: str
) -> None:
    (before,) = by_default.rows()
    change(by_default)
    done = by_default.evaluate_here("--format", "json")
    warning = next(line for line in done.err.splitlines() if line.startswith("warning: served is called without"))
    assert (done.code, why in warning) == (0, True)
    assert {prompt for prompt, _ in asking.seen} == {NEW}
    (model,) = done.json["comparison"]["models"]
    assert model["baseline"]["run_id"] == before["run_id"]


def test_limit_that_excludes_the_baseline_is_reported_before_the_first_call(
    by_default: Library, server: ChatServer, asking: Asking
) -> None:
    done = by_default.evaluate_here("--max-calls", "8")
    words = "without its baseline: --max-calls 8 covers the new version (at most 6 calls), but not both versions (9)"
    assert (done.code, words in done.err.splitlines()[0]) == (0, True)
    assert {prompt for prompt, _ in asking.seen} == {NEW}
    by_default.served_by(server.url, price={"input": 1000.0, "output": 5000.0})
    (alone,) = by_default.evaluate_here("--recorded-baseline", "--dry-run", "--format", "json").json["models"]
    cap = f"{1.2 * alone['cost_upper_usd']:.2f}"
    assert (_calls(by_default), _calls(by_default, "--max-cost", cap)) == (PLANNED, 6)
