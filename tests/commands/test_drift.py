"""`plan --drift`: a model that moved is found though its prompt did not, and pooled with no run before it."""

from typing import Any

import pytest
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.records.record import Record, read_record

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.git import GitRepository
from tests.support.library import SKILL, Ended, Library, read
from tests.support.records import keep


class Vendor:
    """A model that answers as it does until the vendor puts another behind its name."""

    def __init__(self, server: ChatServer) -> None:
        self.served_model, self.year = "model-1", 2024
        server.reply = self

    def __call__(self, asked: Asked) -> Reply:
        return Reply(text=notice(asked.case_id, self.year), served_model=self.served_model)


@pytest.fixture
def vendor(server: ChatServer) -> Vendor:
    return Vendor(server)


@pytest.fixture
def recorded(served: Library, vendor: Vendor) -> Library:
    """A library in git whose one version was measured on the first day."""
    GitRepository(served.root)
    served.settings(replicates=3)
    for number in range(7):
        served.case(f"case-{number}")
    assert served.evaluate_here("--no-leaderboard").code == 0
    _keep(served, read_record(served.run_folder() / "record.json"), day=1)
    return served


def _keep(library: Library, record: Record, day: int) -> None:
    """Commit a record, dated, since two runs of a test may begin in one second."""
    keep(library, record.model_copy(update={"timestamp": f"2020-01-{day:02d}T00:00:00Z"}))
    library.write(".gitignore", "collected*\nartifacts*\nplan.json\ncomponents/*/evals/results/\n")
    GitRepository(library.root).commit()


def _asked_again(library: Library, day: int) -> tuple[Record, dict[str, Any]]:
    """The record of a drift run, kept as of a day, and what outcome.json says of its model."""
    assert library.call("plan", "--drift").code == 0
    plan = read_plan(library.root / "plan.json")
    (entry,) = plan.entries
    words = (f"--seed={entry.seed}", f"--replicates={entry.replicates}", f"--results=artifacts{day}/{entry.id}")
    assert library.evaluate_here(f"--model={entry.model_id}", f"--invocation={plan.invocation}", *words).code == 0
    assert library.call("collect", f"artifacts{day}", f"--out=collected{day}").code == 0
    (path,) = (library.root / f"collected{day}").glob("records/*/*.json")
    record = read_record(path)
    _keep(library, record, day)
    (result,) = read(library.root / f"collected{day}" / "outcome.json")["drift"]
    (model,) = result["models"]
    return record, model


def _page(library: Library, day: int) -> Ended:
    return library.call("report", f"collected{day}")


def test_a_model_that_moved_is_told_and_begins_a_series_of_its_own(recorded: Library, vendor: Vendor) -> None:
    vendor.served_model, vendor.year = "model-2", 1999
    moved, _ = _asked_again(recorded, day=2)
    assert moved.drift is not None
    assert moved.drift.moved[:2] == ["exact_match 1.000 → 0.000", "field_level_f1 1.000 → 0.500"]
    assert "year 1.000 → 0.000" in moved.drift.moved
    page = _page(recorded, 2)
    assert page.code == 3
    assert "**the model moved though the prompt did not**: `notice-extraction` on `served`" in page.out
    assert "`field_level_f1 1.000 → 0.500`" in page.out
    assert "`served`: the vendor served `model-1`, then `model-2`" in page.out
    since, model = _asked_again(recorded, day=3)
    assert since.drift is not None
    assert (since.drift.since, since.drift.moved) == (moved.run_id, [])
    assert (model["baseline_runs"], _page(recorded, 3).code) == (1, 0)  # not pooled with the run before it moved
    _, model = _asked_again(recorded, day=4)
    assert (model["baseline"]["run_id"], model["baseline_runs"]) == (since.run_id, 2)


def test_runs_of_a_model_that_did_not_move_are_pooled(recorded: Library) -> None:
    first = recorded.records()[0]
    second, model = _asked_again(recorded, day=2)
    assert second.drift is not None
    assert (second.drift.since, second.drift.moved, model["baseline_runs"]) == (first["run_id"], [], 1)
    assert second.seed != first["seed"]  # else a provider that keeps to seeds would repeat its answers
    page = _page(recorded, 2)
    assert (page.code, "**no drift**" in page.out) == (0, True)
    third, model = _asked_again(recorded, day=3)
    assert third.drift is not None
    assert (third.drift.since, model["baseline_runs"]) == (second.run_id, 2)


def test_a_version_that_is_not_recorded_is_not_asked_for_drift(recorded: Library) -> None:
    recorded.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: 1.0.1\n---\nExtract both.\n")
    GitRepository(recorded.root).commit()
    done = recorded.call("plan", "--drift", "--format", "json")
    (skipped,) = done.json["skipped"]
    assert (done.code, done.json["entries"], skipped["reason"]) == (0, [], "1.0.1 is not recorded")


@pytest.mark.parametrize("words", [("--base", "HEAD"), ("--scenario", "stern")])
def test_what_is_no_question_of_drift_is_refused(recorded: Library, words: tuple[str, ...]) -> None:
    refused = recorded.call("plan", "--drift", *words)
    assert (refused.code, "--drift asks what is recorded" in refused.err) == (2, True)
