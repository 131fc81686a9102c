"""A prompt library with the workflows in it, its bare origin, and what happens there: pushes, dispatches, re-runs."""

import json
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from skill_evaluator.ci.plan import outputs_of, read_plan, sha256_of

from tests.support.git import GitRepository, bare_copy
from tests.support.library import ROOT, SCHEMA, Library
from tests.workflows.act import SET_UP, WORKFLOWS, Acted, act, for_act

EVALUATE = ".github/workflows/evaluate.yml"
CHECK = ".github/workflows/check.yml"
SITE = ".github/workflows/site.yml"
_PROMPT = "---\nname: {name}\nversion: {version}\n---\nExtract title and year.\n"


_KEY = "          JOB: ${{ matrix.id }}\n"


def with_key(workflow: str, name: str = "SERVED_API_KEY") -> str:
    """A workflow with the line for one more key, as `lint` asks for it."""
    line = f"          {name}: ${{{{ contains(matrix.keys, '{name}') && secrets.{name} || '' }}}}\n"
    return workflow.replace(_KEY, line + _KEY)


class Forge:
    """`library` is the clone that is worked in; `world` is what the servers on the loopback answer and were asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.origin = f"file://{root}/origin.git"
        self.artifacts = root / "artifacts"
        self.artifacts.mkdir()
        self.pages = root / "pages"
        self.library = Library(root / "clone")
        shutil.rmtree(self.library.component)
        for path in WORKFLOWS.glob("*.yml"):
            self.library.write(f".github/workflows/{path.name}", with_key(for_act(path.read_text())))
        self.library.write(".github/actions/set-up/action.yml", for_act(SET_UP.read_text()))
        shutil.copy(ROOT / "tools" / "evaluate_skill.py", self.library.write("tools/evaluate_skill.py", ""))
        for path in (ROOT / ".evaluator").glob("requirements*.txt"):
            self.library.write(f".evaluator/{path.name}", "")  # all is installed that there is
        self.library.write(".gitignore", "plan.json\ncollected/\n")
        chat, api = _free_ports(2)
        self.world: dict[str, Any] = {"chat_port": chat, "api_port": api, "refused": {}, "comments": [], "by_people": 0}
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", f"{root}/origin.git"], check=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("remote", "add", "origin", self.origin)
        self.fixtures = "fixtures"

    def fixtures_elsewhere(self) -> str:
        """Move the cases into a bare repository of their own, which settings.yaml then names; return its commit."""
        data = GitRepository(self.root / "data")
        (self.library.root / "fixtures").rename(data.root / "sets")
        self.fixtures = "../data/sets"
        commit = data.commit()
        repository = bare_copy(data.root, self.root / "data-sets.git")
        self.library.settings(fixtures={"repository": repository, "path": "sets"})
        return commit

    @property
    def served(self) -> dict[str, Any]:
        """The entry of models.yaml for the chat server; it needs a key."""
        address = f"http://127.0.0.1:{self.world['chat_port']}/v1"
        return {"id": "served", "provider": "openai", "base_url": address, "api_key_env": "SERVED_API_KEY"}

    def git(self, *arguments: str) -> str:
        """What git prints in the clone."""
        identity = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=self.library.root, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def component(self, name: str, version: str, cases: Sequence[str] = ("alpha", "beta")) -> None:
        """Write a component with its cases, or another version of it."""
        self.library.write(f"components/{name}/prompt.md", _PROMPT.format(name=name, version=version))
        self.library.write(f"components/{name}/schema.json", SCHEMA)
        for case_id in cases:
            folder = f"{self.fixtures}/{name}/cases/{case_id}"
            self.library.write(f"{folder}/document.md", f"{case_id} is the title of a notice of 2024.\n")
            self.library.write(f"{folder}/ground_truth.json", {"title": case_id, "year": 2024})

    def push(self, message: str = "Work on the prompts") -> dict[str, Any]:
        """Commit everything, push it, and give the event that GitHub tells of it."""
        before = self.git("rev-parse", "HEAD") if self.git("branch") else "0" * 40
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", "HEAD:main")
        return {"ref": "refs/heads/main", "before": before, "after": self.git("rev-parse", "HEAD")}

    def pull_request(self, *, fork: bool = False) -> dict[str, Any]:
        """Commit everything as pull request 7, and give the event of its label; HEAD is then its merge with main."""
        base = self.git("rev-parse", "origin/main")
        self.git("checkout", "--quiet", "-B", "topic", base)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Work on the prompts")
        self.git("checkout", "--quiet", "-B", "merge", base)
        self.git("merge", "--quiet", "--no-ff", "topic", "--message", "Merge")
        self.git("push", "--quiet", "--force", "origin", "HEAD:refs/pull/7/merge")
        head = {"ref": "topic", "repo": {"fork": fork}}
        pull = {"number": 7, "head": head, "base": {"ref": "main", "sha": base}}
        return {"action": "labeled", "label": {"name": "evaluate"}, "number": 7, "pull_request": pull}

    def run(
        self,
        event: Mapping[str, Any],
        name: str = "push",
        workflow: str = EVALUATE,
        secrets: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Acted:
        """Run a workflow on an event, at what the clone has checked out."""
        given = {
            **(env or {}),
            "STAND_IN_ORIGIN": self.origin,
            "STAND_IN_ARTIFACTS": str(self.artifacts),
            "STAND_IN_PAGES": str(self.pages),
            "GITHUB_REPOSITORY": "octo/library",
            **({} if self.fixtures == "fixtures" else {"XDG_CACHE_HOME": str(self.root / "cache")}),
            "GITHUB_API_URL": f"http://127.0.0.1:{self.world['api_port']}",
        }
        acted = act(
            self.library.root,
            self.root,
            event,
            name=name,
            workflow=workflow,
            world=self.world,
            env=given,
            secrets=secrets or {},
            variables=variables or {},
        )
        self.world = dict(acted.world)
        return acted

    def dispatch(self, secrets: Mapping[str, str] | None = None, workflow: str = EVALUATE, **inputs: Any) -> Acted:
        return self.run({"ref": "refs/heads/main", "inputs": inputs}, "workflow_dispatch", workflow, secrets)

    def pull(self) -> None:
        """Have the clone at what was pushed to main meanwhile, with no artifact left of the runs before."""
        self.git("pull", "--quiet", "--rebase", "origin", "main")
        shutil.rmtree(self.artifacts)
        self.artifacts.mkdir()

    def rerun_failed_jobs(self, event: Mapping[str, Any], name: str, secrets: Mapping[str, str]) -> Acted:
        """What «Re-run failed jobs» does: the plan is not made again, its outputs stand; artifacts are still there."""
        workflow = yaml.safe_load((self.library.root / EVALUATE).read_text())
        workflow["on"] = workflow.pop(True)  # which is what YAML 1.1 takes `on` for
        path = self.artifacts / "plan" / "plan.json"
        outputs = {**outputs_of(read_plan(path)), "sha256": sha256_of(path)}
        values = ((key, value if isinstance(value, str) else json.dumps(value)) for key, value in outputs.items())
        lines = "".join(f"{key}={value}\n" for key, value in values)
        workflow["jobs"]["plan"]["steps"] = [
            {"id": "plan", "env": {"OUTPUTS": lines}, "run": 'printf %s "$OUTPUTS" >> "$GITHUB_OUTPUT"'}
        ]
        again = self.library.write(".github/workflows/again.yml", workflow)
        try:
            return self.run(event, name, ".github/workflows/again.yml", secrets)
        finally:
            again.unlink()

    def uploaded(self) -> set[str]:
        return {path.name for path in self.artifacts.iterdir()}

    def fetched(self, path: str) -> Any:
        """A JSON file as it is on main of the origin now."""
        self.git("fetch", "--quiet", "origin")
        return json.loads(self.git("show", f"origin/main:{path}"))

    def rows(self, component: str) -> list[dict[str, Any]]:
        """The rows of a leaderboard on main of the origin, newest first."""
        rows: list[dict[str, Any]] = self.fetched(f"components/{component}/leaderboard.json")["runs"]
        return rows

    def landed(self, since: str) -> list[str]:
        """The files of every commit on main of the origin since one; the list has one text a commit."""
        self.git("fetch", "--quiet", "origin")
        commits = self.git("rev-list", "--reverse", f"{since}..origin/main").split()
        return [self.git("show", "--format=", "--name-only", commit) for commit in commits]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
