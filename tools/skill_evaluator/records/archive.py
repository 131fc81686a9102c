"""The records of a component that can be a baseline: in the work tree, and on branches that hold records."""

from collections.abc import Iterable
from pathlib import Path

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.files import parse_json
from skill_evaluator.library.components import Component
from skill_evaluator.records.record import Record, read_record, record_of
from skill_evaluator.records.selection import RecordedRun, parse_entries, read_entries
from skill_evaluator.repository import Repository


class Archive:
    """What is recorded of one component."""

    def __init__(self, component: Component, repository: Repository | None = None, refs: Iterable[str] = ()) -> None:
        """Look at the work tree, and at commits of the repository; a commit that is not here is left out."""
        self._component = component
        self._repository = repository
        self._blobs: dict[str, str] = {}
        self.entries: list[RecordedRun] = read_entries(component.leaderboard_path)
        if repository is None:
            return
        folder = repository.place(component.folder)
        for commit in filter(None, map(repository.commit, refs)):
            files = repository.files(commit, folder)
            board = files.get(f"{folder}/leaderboard.json")
            if board is not None:
                known = {entry.run_id for entry in self.entries}
                text = repository.contents([board])[board].decode("utf-8", "replace")
                found = parse_entries(text, Path(f"{commit}:{folder}/leaderboard.json"))
                self.entries += [entry for entry in found if entry.run_id not in known]
            self._blobs |= {path.removeprefix(f"{folder}/evals/records/"): blob for path, blob in files.items()}

    def record(self, entry: RecordedRun) -> Record:
        """The record of a run; raises LeaderboardError."""
        path = self._component.records_dir / f"{entry.run_id}.json"
        blob = self._blobs.get(path.name)
        if path.exists() or self._repository is None or blob is None:
            return read_record(path)
        text = self._repository.contents([blob])[blob].decode("utf-8", "replace")
        return record_of(parse_json(text, path, LeaderboardError), path)
