"""A prompt library in a git repository, and what `plan` makes of a push to it."""

import json
import shutil
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

from skill_evaluator.ci.plan import Plan, read_plan
from skill_evaluator.commands import ci as command

from tests.support.git import GitRepository
from tests.support.library import SCHEMA

MODELS = ("m", "n")
NOON = "2026-01-01T12:00:00Z"
NONE = "0" * 40  # what GitHub says was there before a first push


class PushedLibrary(GitRepository):
    """Components in versions, with one case each, on two replayed models."""

    def __init__(self, root: Path, folder: str = "components") -> None:
        super().__init__(root)
        self.folder = folder
        self.models(*MODELS)
        self.settings()

    def copy(self, root: Path) -> Self:
        """The same in another folder, to go on from here."""
        shutil.copytree(self.root, root)
        copied = copy(self)
        copied.root = root
        return copied

    def models(self, *models: str | Mapping[str, Any]) -> None:
        replayed = {"provider": "replay", "params": {"file": "answers.jsonl"}}
        entries = [{"id": one, **replayed} if isinstance(one, str) else one for one in models]
        self.write(".evaluator/models.yaml", json.dumps({"models": entries}))

    def settings(self, **settings: Any) -> None:
        self.write(".evaluator/settings.yaml", json.dumps({"replicates": 2, **settings}))

    def component(self, name: str, version: str, prompt: str | None = None, schema: Any = SCHEMA) -> None:
        """Write a component, with a prompt of its own in every version, and its case."""
        front = f"---\nname: {name}\nversion: {version}\n---\n"
        self.write(f"{self.folder}/{name}/prompt.md", front + (prompt or f"Read as in {version}.") + "\n")
        self.write(f"{self.folder}/{name}/schema.json", json.dumps(schema))
        self.write(f"fixtures/{name}/cases/one/document.md", "A notice.\n")

    def record(self, name: str, *versions: str, models: Sequence[str] = MODELS, complete: bool = True) -> None:
        """Add rows to a leaderboard, with as much in them as a plan reads."""
        path = self.root / self.folder / name / "leaderboard.json"
        board = json.loads(path.read_text()) if path.exists() else {"skill": name, "schema_version": 2, "runs": []}
        for version in versions:
            for model in models:
                row = {
                    "model_id": model,
                    "skill_version": version,
                    "complete": complete,
                    "timestamp": NOON,
                    "digests": {},
                }
                board["runs"].insert(0, {"run_id": f"{version}-{model}", **row})
        self.write(f"{self.folder}/{name}/leaderboard.json", json.dumps(board))

    def recorded(self, name: str, version: str) -> None:
        """Write a component that is measured, as it is once its run came back."""
        self.component(name, version)
        self.record(name, version)

    def plan(self, base: str | None, **options: Any) -> Plan:
        """What is planned for a push onto `base`, or (None) by hand."""
        out = self.root.parent / "plan.json"
        places = {
            "components": self.root / self.folder,
            "fixtures": self.root / "fixtures",
            "config": self.root / ".evaluator",
        }
        code = command.plan(command.PlanRequest(base=base, out=out, **{**places, **options}))
        assert code == 0
        return read_plan(out)

    def push(self, **versions: str) -> Plan:
        """The plan of one push that gives components these versions."""
        base = self.git("rev-parse", "HEAD")
        for name, version in versions.items():
            self.component(name, version)
        self.commit()
        return self.plan(base)


def jobs(plan: Plan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in plan.runs:
        found.setdefault(entry.skill, []).append(entry.model_id)
    return found


def reasons(plan: Plan) -> dict[str, str]:
    return {one.skill: one.reason for one in (*plan.decisions.chosen, *plan.decisions.skipped)}


def faults(plan: Plan) -> list[tuple[str, str]]:
    return [(f"{one.file}:{one.line}", one.message) for one in plan.decisions.faults]
