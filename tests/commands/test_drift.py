"""`plan --drift`: a model that moved is found though its prompt did not, and pooled with no run before it."""

from pathlib import Path
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
    assert "▼ drift, the model changed though the prompt did not: notice-extraction on served" in page.out
    assert "field_level_f1 1.000 → 0.500" in page.out
    assert "served: the vendor served model-1, then model-2" in page.out
    since, model = _asked_again(recorded, day=3)
    assert since.drift is not None
    assert (since.drift.since, since.drift.moved) == (moved.run_id, [])
    assert (model["baseline_runs"], _page(recorded, 3).code) == (1, 0)  # not pooled with the run before it moved


def _patch(library: Library, version: str, prompt: str) -> None:
    library.write(f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\n{prompt}\n")
    GitRepository(library.root).commit()


def test_patched_prompt_starts_a_new_series(recorded: Library, vendor: Vendor) -> None:
    _patch(recorded, "1.0.1", "Extract both.")
    vendor.year = 1999  # it may be the prompt, so nobody is alarmed
    (chosen,) = recorded.call("ci", "plan", "--drift", "--format", "json").json["chosen"]
    assert chosen["reason"] == "PATCH since the recorded 1.0.0"
    first = _drift_run(recorded, day=2)
    assert (first.skill_version, first.drift, _page(recorded, 2).code) == ("1.0.1", None, 0)
    again, model = _asked_again(recorded, day=3)
    assert again.drift is not None
    assert (again.drift.since, again.drift.moved, model["baseline_runs"]) == (first.run_id, [], 1)


def test_drift_and_base_are_refused_together(recorded: Library) -> None:
    assert recorded.call("ci", "plan", "--drift", "--base", "HEAD").refuses("--drift runs the recorded versions")


def test_aa_pools_equal_runs_and_starts_a_series_after_drift(recorded: Library, vendor: Vendor) -> None:
    first = recorded.records()[0]
    alike = recorded.evaluate_here("--rerun-baseline", "--format", "json")
    assert (alike.code, alike.err.count("drifted with")) == (0, 0)
    (spread,) = alike.json["spreads"]
    assert len(spread["scores"]) == 2
    vendor.year = 1999
    moved = recorded.evaluate_here("--rerun-baseline", "--format", "json")
    assert moved.code == 0
    assert "warning: served drifted with an unchanged prompt: exact_match 1.000 → 0.000" in moved.err
    newest, second, _ = sorted(recorded.records(), key=lambda one: one["timestamp"] + one["run_id"], reverse=True)
    assert second["drift"] == {"since": first["run_id"], "moved": []}
    assert newest["drift"]["since"] == second["run_id"]
    (spread,) = moved.json["spreads"]
    assert set(spread["scores"]) == {newest["run_id"]}
    since = recorded.evaluate_here("--rerun-baseline", "--format", "json")
    assert (len(since.json["spreads"][0]["scores"]), since.err.count("drifted with")) == (2, 0)


def test_drift_is_not_blamed_on_the_prompt(recorded: Library, vendor: Vendor) -> None:
    _patch(recorded, "1.1.0", "Extract both.")
    assert recorded.evaluate_here("--recorded-baseline").code == 0
    vendor.year = 1999
    assert recorded.evaluate_here("--rerun-baseline").code == 0
    compared = recorded.call("compare", SKILL)
    assert compared.code == 0
    moved = "the model moved after 1.0.0 was run, though the prompt did not (exact_match 1.000 → 0.000)"
    assert f"not comparable: {moved}" in compared.out
    assert "if the model did not move" not in compared.out
    assert "run both versions interleaved" in compared.out
