"""A library with a bare origin, and what the jobs of CI do with it: plan, evaluate, collect, publish."""

import json
import shutil
from pathlib import Path
from typing import Any, Self

from skill_evaluator.ci.plan import Plan, PlannedRun, read_plan

from tests.support.chat_server import notice
from tests.support.git import IDENTITY, bare_copy, file_at, git, head
from tests.support.library import CASES, REPLAY, SKILL, Ended, Library, call, read

BOARD = f"components/{SKILL}/leaderboard.json"
OTHER = {"id": "vendor/other", "provider": "replay", "params": {"file": "others.jsonl"}}


class Pipeline:
    """`checkout` is where plan, collect and publish run; jobs run in clones of their own and leave `artifacts`.

    Two replayed models, one of them wrong now and then; each has two shards.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.origin = root / "origin.git"
        self.artifacts = root / "artifacts"
        self.collected = root / "collected"
        self.plan_file = root / "plan.json"
        self.checkout = root / "checkout"

    @classmethod
    def new(cls, root: Path) -> Self:
        made = cls(root)
        library = Library(made.checkout)
        library.settings(jobs={"max_calls": 4})
        library.models(REPLAY, OTHER)
        answers = {(case_id, index): notice(case_id, 2024 - index) for case_id in CASES for index in range(2)}
        library.record_answers(answers, "others.jsonl")
        library.write(".gitignore", "components/*/evals/results/\n")
        git(made.checkout, "init", "-q", "-b", "main")
        made.commit()
        git(made.checkout, "repack", "-adq")
        bare_copy(made.checkout, made.origin)
        made.artifacts.mkdir()
        return made

    def copy(self, root: Path) -> Self:
        """The same in another folder, to go on from here; its jobs clone anew."""
        shutil.copytree(self.root, root, ignore=shutil.ignore_patterns("jobs"))
        copied = type(self)(root)
        git(copied.checkout, "remote", "set-url", "origin", copied.origin.as_uri())
        return copied

    def commit(self) -> str:
        git(self.checkout, "add", "-A")
        git(self.checkout, "commit", "-q", "-m", "change")
        return head(self.checkout)

    def run(self, *arguments: str, folder: Path | None = None, **env: str) -> Ended:
        return call(folder or self.checkout, *arguments, env={**IDENTITY, **env})

    def plan(self, *arguments: str) -> Plan:
        done = self.run("ci", "plan", *arguments, "--out", str(self.plan_file))
        assert done.code == 0, done.err
        return read_plan(self.plan_file)

    def evaluate(self, entry: PlannedRun, *arguments: str, **env: str) -> Ended:
        """One run of the matrix, with the arguments that the workflow gives it."""
        clone = self.root / "jobs" / entry.id
        if not clone.exists():
            git(self.root, "clone", "-q", str(self.origin), str(clone))
        return self.run(
            "evaluate",
            entry.skill,
            f"--model={entry.model_id}",
            f"--plan={self.plan_file}",
            f"--planned={entry.id}",
            f"--results={self.artifacts / entry.id}",
            *arguments,
            folder=clone,
            **env,
        )

    def collect(self, *arguments: str, **env: str) -> Ended:
        return self.run(
            "ci",
            "collect",
            str(self.artifacts),
            f"--plan={self.plan_file}",
            f"--out={self.collected}",
            *arguments,
            **env,
        )

    def publish(self, *arguments: str) -> Ended:
        return self.run("ci", "publish", str(self.collected), *arguments)

    def outcome(self) -> dict[str, dict[str, Any]]:
        return {run["model_id"]: run for run in read(self.collected / "outcome.json")["runs"]}

    def records(self) -> dict[str, dict[str, Any]]:
        return {path.stem: read(path) for path in self.collected.glob("records/*/*.json")}

    def rows(self, branch: str = "main") -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(file_at(self.origin, branch, BOARD))["runs"]
        return rows

    def tip(self, branch: str = "main") -> str:
        return git(self.origin, "rev-parse", branch)
