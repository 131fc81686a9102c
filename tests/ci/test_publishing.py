"""Publishing records on a branch: retries after concurrent pushes, refused records, data and review branches."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.publishing import PublishRequest, publish_records, read_records
from skill_evaluator.errors import GitError, LeaderboardError, PlanError
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.records.record import Record
from skill_evaluator.repository import Repository

from tests.support.components import FAILED, case, component, record, write_collected
from tests.support.git import GitRepository, bare_copy, file_at, git

RIGHT = '{"shop": "A", "total": 9}'
RUN = [(case("a", {"shop": "A", "total": 9}), [RIGHT, RIGHT])]
PART = [(RUN[0][0], [RIGHT, FAILED])]
PUSH = PublishRequest()
REVIEW = PublishRequest(mode="pull-request", branch="review")
BOARD = "components/receipts/leaderboard.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A bare origin, a clone of it, and what is at the origin's branches."""

    bare: Path
    clone: Path
    skill: Component

    @property
    def repository(self) -> Repository:
        return Repository(self.clone)

    @property
    def push(self) -> PublishRequest:
        return replace(PUSH, components=self.clone / "components")

    def publish(self, *records: Record, to: PublishRequest = PUSH, repository: Repository | None = None) -> str | None:
        repository = repository or self.repository
        to = replace(to, components=repository.root / to.components)
        return publish_records(repository, records, to, wait=_no_wait)

    def tip(self, branch: str = "main") -> str:
        return git(self.bare, "rev-parse", branch)

    def rows(self, branch: str = "main", path: str = BOARD) -> list[str]:
        return [row["run_id"] for row in json.loads(file_at(self.bare, branch, path))["runs"]]

    def records(self, branch: str = "main") -> set[str]:
        listed = git(self.bare, "ls-tree", "-r", "--name-only", branch, "components/receipts/evals/records/")
        return {Path(path).stem for path in listed.splitlines()}

    def made(self, run_id: str, day: int = 1, run: Any = RUN, **changed: Any) -> Record:
        return record(self.skill, run, run_id=run_id, created=f"2024-01-{day:02}T00:00:00Z", **changed)

    def commit(self, branch: str, files: dict[str, str]) -> None:
        repository = self.repository
        tip = repository.fetch(branch)
        commit = repository.add([tip or ""], {path: text.encode() for path, text in files.items()}, "another")
        assert commit is not None
        assert repository.push(commit, branch)


def _no_wait(seconds: float) -> None:
    assert 0 <= seconds < 32


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    folder = tmp_path_factory.mktemp("pushed")
    library = GitRepository(folder / "clone")
    skill = component(library.root)
    library.commit()
    bare_copy(library.root, folder / "origin.git")
    return Origin(bare=folder / "origin.git", clone=library.root, skill=skill)


@pytest.fixture
def origin(pushed: Origin, tmp_path: Path) -> Origin:
    shutil.copytree(pushed.bare.parent, tmp_path, dirs_exist_ok=True)
    bare, clone = tmp_path / "origin.git", tmp_path / "clone"
    git(clone, "remote", "set-url", "origin", bare.as_uri())
    return Origin(bare=bare, clone=clone, skill=load_component(clone / "components", "receipts"))


def test_concurrent_push_is_kept(origin: Origin) -> None:
    other = Path(str(origin.clone) + "-2")
    git(origin.bare, "clone", "-q", str(origin.bare), str(other))
    origin.publish(origin.made("theirs", 2), repository=Repository(other))
    origin.commit("main", {"README.md": "read me"})
    origin.publish(origin.made("mine", 1))
    assert origin.rows() == ["theirs", "mine"]
    assert file_at(origin.bare, "main", "README.md") == "read me"


class Overtaken(Repository):
    """A clone in which somebody else pushes before every push of ours, so many times."""

    def __init__(self, origin: Origin, times: int) -> None:
        super().__init__(origin.clone)
        self._origin, self._left = origin, times

    def push(self, commit: str, branch: str) -> bool:
        if self._left:
            self._left -= 1
            theirs = self._origin.made(f"theirs-{self._left}", 20)
            self._origin.publish(theirs)
        return super().push(commit, branch)


def test_overtaken_publisher_retries_with_growing_waits(origin: Origin) -> None:
    waits: list[float] = []
    commit = publish_records(Overtaken(origin, 5), [origin.made("mine")], origin.push, wait=waits.append)
    assert commit == origin.tip()
    assert origin.rows() == [*(f"theirs-{n}" for n in (4, 3, 2, 1, 0)), "mine"]
    assert len(waits) == 5
    assert git(origin.bare, "rev-list", "--count", "--merges", "main") == "0"


def test_publisher_gives_up_after_six_attempts(origin: Origin) -> None:
    waits: list[float] = []
    with pytest.raises(GitError, match="main of origin moved 6 times during publishing; run this again"):
        publish_records(Overtaken(origin, 99), [origin.made("mine")], origin.push, wait=waits.append)
    assert len(waits) == 5  # none after the last
    assert len(origin.rows()) == 6


def test_changed_record_is_refused_and_the_others_published(origin: Origin) -> None:
    origin.publish(origin.made("r1"))
    before = file_at(origin.bare, "main", "components/receipts/evals/records/r1.json")
    with pytest.raises(LeaderboardError, match=r"records/r1\.json exists with different content"):
        origin.publish(origin.made("r1", seed=9), origin.made("r2", 2))
    assert origin.rows() == ["r2", "r1"]
    assert file_at(origin.bare, "main", "components/receipts/evals/records/r1.json") == before


def test_first_of_two_equal_attempts_is_kept(origin: Origin) -> None:
    first, second = (origin.made("r1-partial1", run=PART, seed=seed) for seed in (1, 2))
    assert not first.complete
    commit = origin.publish(first)
    assert origin.publish(second) is None
    assert origin.tip() == commit


def test_more_complete_attempt_ranks_first(origin: Origin) -> None:
    for made in (origin.made("r1"), *(origin.made(f"r1-partial{n}", run=PART) for n in (9, 10))):
        origin.publish(made)
    assert origin.rows() == ["r1", "r1-partial9", "r1-partial10"]  # equally far, so by name
    more = [(case("a", {"shop": "A", "total": 9}), [RIGHT] * 3 + [FAILED] * 2)]
    origin.publish(origin.made("r1-partial3", run=more))
    assert origin.rows() == ["r1", "r1-partial3", "r1-partial9", "r1-partial10"]


def test_unreadable_leaderboard_is_unchanged_and_the_others_published(origin: Origin) -> None:
    origin.commit("main", {BOARD: "<<<<<<< HEAD\n"})
    other = origin.made("r2", 2).model_copy(update={"skill": "other"})
    with pytest.raises(LeaderboardError, match=r"receipts/leaderboard\.json:1:1: not JSON"):
        origin.publish(origin.made("r1"), other)
    assert file_at(origin.bare, "main", BOARD) == "<<<<<<< HEAD"
    assert origin.rows(path="components/other/leaderboard.json") == ["r2"]


def test_data_branch_holds_records_alone(origin: Origin) -> None:
    main = origin.tip()
    to = PublishRequest(mode="branch", branch="records")
    origin.publish(origin.made("r1", 1), to=to)
    origin.publish(origin.made("r2", 2), to=to)
    assert origin.publish(origin.made("r2", 2), to=to) is None
    assert (origin.rows("records"), origin.tip()) == (["r2", "r1"], main)
    assert git(origin.bare, "rev-list", "--count", "records") == "2"
    assert not git(origin.bare, "ls-tree", "-r", "--name-only", "records", "components/receipts/prompt.md")


def linear(origin: Origin, older: str, newer: str) -> bool:
    return git(origin.bare, "merge-base", older, newer) == older


def test_review_branch_starts_at_its_target(origin: Origin) -> None:
    main = origin.tip()
    origin.publish(origin.made("r1", 1), to=REVIEW)
    origin.publish(origin.made("r2", 2), to=REVIEW)
    assert origin.publish(origin.made("r1", 1), to=REVIEW) is None
    assert origin.tip() == main
    assert origin.rows("review") == ["r2", "r1"]
    assert linear(origin, main, "review")


@pytest.mark.parametrize("how", ["merge", "squash"])
def test_merged_review_branch_starts_again(origin: Origin, how: str) -> None:
    origin.publish(origin.made("r1", 1), to=REVIEW)
    if how == "merge":
        git(origin.bare, "update-ref", "refs/heads/main", origin.tip("review"))
    else:
        tree = git(origin.bare, "rev-parse", "review^{tree}")
        squashed = git(origin.bare, "commit-tree", tree, "-p", "main", "-m", "squashed")
        git(origin.bare, "update-ref", "refs/heads/main", squashed)
    assert origin.publish(origin.made("r1", 1), to=REVIEW) is None  # nothing that main has not
    origin.publish(origin.made("r2", 2), to=REVIEW)
    assert origin.rows("review") == ["r2", "r1"]
    assert linear(origin, origin.tip(), "review")
    assert git(origin.bare, "diff", "--name-only", "main", "review", "--", "components/receipts/evals").count("\n") == 0


def test_diverged_review_branch_loses_nothing(origin: Origin) -> None:
    origin.publish(origin.made("waiting", 1), to=REVIEW)
    review = origin.tip("review")
    origin.publish(origin.made("direct", 2))
    origin.commit("main", {"README.md": "read me", "components/receipts/prompt.md": "changed"})
    main = origin.tip()
    origin.publish(origin.made("new", 3), to=REVIEW)
    assert origin.rows("review") == ["new", "direct", "waiting"]
    assert origin.records("review") == {"new", "direct", "waiting"}
    assert file_at(origin.bare, "review", "components/receipts/prompt.md") == "changed"
    assert linear(origin, review, "review")
    assert linear(origin, main, "review")
    assert origin.tip() == main


def test_records_of_the_outcome_are_read_by_id(origin: Origin, tmp_path: Path) -> None:
    write_collected(tmp_path, origin.made("c-partial1", run=PART))
    write_collected(tmp_path, *(origin.made(run_id) for run_id in ("c", "a", "b")))
    assert [one.run_id for one in read_records(tmp_path)[0]] == ["a", "b", "c"]
    with pytest.raises(PlanError, match=r"outcome\.json does not exist"):
        read_records(tmp_path / "records")


def test_unreadable_record_under_review_hides_no_other(origin: Origin) -> None:
    origin.publish(origin.made("waiting", 1), to=REVIEW)
    origin.commit("review", {"components/receipts/evals/records/broken.json": '{"run_id": "../x"}'})
    origin.commit("main", {"README.md": "read me"})
    with pytest.raises(LeaderboardError, match=r"broken\.json"):
        origin.publish(origin.made("new", 3), to=REVIEW)
    assert origin.rows("review") == ["new", "waiting"]


def test_path_outside_the_repository_is_refused(pushed: Origin) -> None:
    for path in ("../x", "a/../x", "/x", "a//x", ".git/config", "a/.GIT/x", "a/./x", "a\0b"):
        with pytest.raises(GitError, match="cannot be the path of a file in a repository"):
            pushed.repository.add([pushed.tip()], {path: b"x"}, "Record")
