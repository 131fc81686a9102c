"""`plan --drift`: a model that moved is found though its prompt did not, and pooled with no run before it."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.plan import read_plan
from skill_evaluator.records.record import Record, read_record

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.git import GitRepository
from tests.support.library import Ended, Library, read
from tests.support.records import keep


class Vendor:
    """A model that answers as it does until the vendor puts another behind its name."""

    def __init__(self, server: ChatServer) -> None:
        self.served_model, self.year = "model-1", 2024
        server.reply = self

    def __call__(self, asked: Asked) -> Reply:
        return Reply(text=notice(asked.case_id, self.year), served_model=self.served_model)


@pytest.fixture
def vendor(standing: ChatServer) -> Vendor:
    return Vendor(standing)


@pytest.fixture(scope="module")
def first(standing: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library in git whose one version was measured on the first day."""
    library = Library(tmp_path_factory.mktemp("first"))
    GitRepository(library.root)
    library.served_by(standing.url)
    library.settings(replicates=3)
    for number in range(7):
        library.case(f"case-{number}")
    Vendor(standing)
    assert library.evaluate_here("--no-leaderboard").code == 0
    _keep(library, read_record(library.run_folder() / "record.json"), day=1)
    return library


@pytest.fixture
def recorded(first: Library, vendor: Vendor, tmp_path: Path) -> Library:
    return first.copy(tmp_path)


def _keep(library: Library, record: Record, day: int) -> None:
    """Commit a record, dated, since two runs of a test may begin in one second."""
    keep(library, record.model_copy(update={"timestamp": f"2020-01-{day:02d}T00:00:00Z"}))
    library.write(".gitignore", "collected*\nartifacts*\nplan.json\ncomponents/*/evals/results/\n")
    GitRepository(library.root).commit()


def _drift_run(library: Library, day: int) -> Record:
    """The record of a drift run, kept as of a day."""
    assert library.call("ci", "plan", "--drift").code == 0
    plan = read_plan(library.root / "plan.json")
    (entry,) = plan.runs
    words = ("--plan=plan.json", f"--planned={entry.id}", f"--results=artifacts{day}/{entry.id}")
    asked = library.call("evaluate", *words)
    assert asked.code in (0, 3), asked.err  # a PATCH may be worse than what it patches, which is no drift
    assert library.call("ci", "collect", f"artifacts{day}", f"--out=collected{day}").code == 0
    (path,) = (library.root / f"collected{day}").glob("records/*/*.json")
    record = read_record(path)
    _keep(library, record, day)
    return record


def _asked_again(library: Library, day: int) -> tuple[Record, dict[str, Any]]:
    """The same, and what outcome.json says of its model."""
    record = _drift_run(library, day)
    (result,) = read(library.root / f"collected{day}" / "outcome.json")["drift"]
    (model,) = result["models"]
    return record, model


def _page(library: Library, day: int) -> Ended:
    return library.call("ci", "report", f"collected{day}")


def test_drifted_model_is_reported_and_starts_a_new_series(recorded: Library, vendor: Vendor) -> None:
    vendor.served_model, vendor.year = "model-2", 1999
    moved, _ = _asked_again(recorded, day=2)
    assert moved.drift is not None
    assert moved.drift.moved[:2] == ["exact_match 1.000 → 0.000", "field_level_f1 1.000 → 0.500"]
    assert "year 1.000 → 0.000" in moved.drift.moved
    page = _page(recorded, 2)
    assert page.code == 3
    assert "▼ drift, the model changed though the prompt did not: notice-extraction with served" in page.out
    assert "field_level_f1 1.000 → 0.500" in page.out
    assert "served: the vendor served model-1, then model-2" in page.out
    since, model = _asked_again(recorded, day=3)
    assert since.drift is not None
    assert (since.drift.since, since.drift.moved) == (moved.run_id, [])
    assert (model["baseline_runs"], _page(recorded, 3).code) == (1, 0)  # not pooled with the run before it moved


def test_drift_and_base_are_refused_together(recorded: Library) -> None:
    assert recorded.call("ci", "plan", "--drift", "--base", "HEAD").refuses("--drift runs the recorded versions")
