"""The archive: recorded runs of the work tree and of other commits, each record read once."""

import datetime
from pathlib import Path

import pytest
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.records.archive import Acceptance, Archive, accept_version, entry_of
from skill_evaluator.records.record import write_record
from skill_evaluator.repository import Repository

from tests.support.git import GitRepository
from tests.support.library import SKILL, Library
from tests.support.records import a_run, keep

CASES = {"a": [0.5, 1.0]}
HERE, THERE = a_run("1.1.0", 2, CASES), a_run("1.0.0", 3, CASES)


def accept(component: Component, version: str) -> Acceptance:
    acceptance = Acceptance(version=version, by="me", why="good", date=datetime.date(2026, 1, 1), run_ids={})
    accept_version(component.accepted_path, component.results_dir / "lock", component.name, acceptance)
    return acceptance


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


@pytest.fixture
def component(library: Library) -> Component:
    return load_component(library.root / "components", SKILL)


@pytest.fixture
def branch(library: Library, component: Component) -> str:
    """A branch with a record and an acceptance that are not here."""
    repository = GitRepository(library.root)
    repository.commit()
    repository.git("switch", "-q", "-c", "records")
    keep(library, THERE)
    accept(component, "1.0.0")
    repository.commit()
    repository.git("switch", "-q", "main")
    assert not component.accepted_path.exists()
    return "records"


@pytest.mark.process
def test_archive_reads_runs_of_a_branch_but_not_its_acceptances(
    library: Library, component: Component, branch: str
) -> None:
    keep(library, HERE)
    here = accept(component, "1.1.0")
    archive = Archive(component, Repository(library.root), (branch, "gone", branch))
    assert [entry.version for entry in archive.entries] == ["1.0.0", "1.1.0"]  # newest first
    assert archive.accepted == [here]
    assert [archive.record(entry) for entry in archive.entries] == [THERE, HERE]


@pytest.mark.process
def test_record_of_another_run_is_refused(library: Library, component: Component, branch: str) -> None:
    repository = GitRepository(library.root)
    repository.git("switch", "-q", branch)
    write_record(component.records_dir / f"{THERE.run_id}.json", HERE)
    repository.commit()
    repository.git("switch", "-q", "main")
    archive = Archive(component, Repository(library.root), (branch,))
    with pytest.raises(LeaderboardError, match="holds run"):
        archive.record(archive.entries[0])


@pytest.mark.process
def test_archive_without_a_ref_reads_the_work_tree_only(library: Library, component: Component, branch: str) -> None:
    keep(library, HERE)
    archive = Archive(component)
    assert [entry.version for entry in archive.entries] == ["1.1.0"]
    assert archive.accepted == []
    with pytest.raises(LeaderboardError, match="does not exist"):
        archive.record(entry_of(THERE))


def test_record_is_read_once_and_an_added_run_needs_no_file(library: Library, component: Component) -> None:
    keep(library, HERE)
    archive = Archive(component)
    first = archive.record(archive.entries[0])
    (component.records_dir / f"{HERE.run_id}.json").unlink()
    assert archive.record(archive.entries[0]) is first
    archive = archive.with_records([THERE]).with_records([THERE])
    assert [entry.run_id for entry in archive.entries] == [THERE.run_id, HERE.run_id]
    assert archive.record(entry_of(THERE)) is THERE


def test_incomplete_attempt_is_superseded_by_the_complete_run(library: Library, component: Component) -> None:
    attempt = HERE.model_copy(update={"run_id": f"{HERE.run_id}-partial1", "complete": False})
    keep(library, attempt)
    assert [entry.run_id for entry in Archive(component).entries] == [attempt.run_id]
    keep(library, HERE)
    archive = Archive(component)
    assert [entry.run_id for entry in archive.entries] == [HERE.run_id]
    archive = archive.with_records([attempt])
    assert [entry.run_id for entry in archive.entries] == [HERE.run_id]
