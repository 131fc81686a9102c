"""Fixtures of the journeys: a prompt library in a git repository, and a loopback vendor that checks keys."""

import json
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.git import IDENTITY, GitRepository
from tests.support.library import SCRIPT, Ended, call, ended, read, start
from tests.support.vendor_dialects import Answer
from tests.support.vendor_server import Asked, VendorServer, vendor_server

KEYS = {"FIRST_KEY": "first-secret-0123456789", "SECOND_KEY": "second-secret-0123456789"}
COMMAND = str(Path(sys.executable).with_name("skill-evaluator"))
PROMPT = "Return shop and total of the receipt as JSON."
SHOPS = ("Acme", "Bell", "Crow")
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"shop": {"type": "string"}, "total": {"type": "number"}},
    "required": ["shop", "total"],
    "additionalProperties": False,
}
_SETTINGS = {
    "replicates": 2,
    "timeout_s": 20,
    "retry": {"attempts": 2, "first_wait_s": 0.01, "max_wait_s": 0.02, "max_retry_after_s": 1},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: its model, prompt, document and seed."""

    model: str
    prompt: str
    document: str
    seed: int | None


Reply = str | Answer


def truth(document: str) -> str:
    """Return the right output for a document such as `Acme 9.5`."""
    shop, total = re.findall(r"(\w+) ([\d.]+)", document)[0]
    return json.dumps({"shop": shop, "total": float(total)})


def usual(call: Call) -> Reply:
    """Answer correctly, but return a wrong total to a prompt that says `carelessly`."""
    right = json.loads(truth(call.document))
    return json.dumps({**right, "total": -1.0} if "carelessly" in call.prompt else right)


class Vendor:
    """A vendor that answers with `reply`, or with 401 to a wrong key. `calls` counts the answered requests.

    If a request forces a tool call, the text of `reply` becomes its arguments. `bodies` has the answered requests.
    """

    def __init__(self, server: VendorServer) -> None:
        self.url = f"{server.url}/v1"
        self.keys: dict[str, str] = {}
        self.reply: Callable[[Call], Reply] = usual
        self.delay_s = 0.0
        self.calls: Counter[Call] = Counter()
        self.bodies: list[Any] = []
        server.default = self._answer

    def model(self, name: str, key: str = "FIRST_KEY") -> dict[str, Any]:
        """Return the entry of a model in models.yaml. The vendor accepts only the key of the variable `key`."""
        self.keys[name] = KEYS[key]
        price = {"input": 1.0, "output": 2.0}
        return {"id": name, "provider": "openai", "base_url": self.url, "api_key_env": key, "price": price}

    def _answer(self, asked: Asked) -> None:
        body = asked.received.body
        if asked.key != self.keys[body["model"]]:
            asked.refuse(401, "wrong key")
            return
        prompt, document = (body["messages"][at]["content"] for at in (0, -1))
        call = Call(model=body["model"], prompt=prompt, document=document, seed=body.get("seed"))
        self.calls[call] += 1
        self.bodies.append(body)
        time.sleep(self.delay_s)
        reply = self.reply(call)
        if isinstance(reply, str):
            output = {"text": "Here:", "tool_call": json.loads(reply)} if "tools" in body else {"text": reply}
            reply = Answer(served_model=call.model, **output)
        asked.answer(reply)


class Folder(GitRepository):
    """A repository in which a user types commands, with both keys in the environment."""

    def __init__(self, root: Path, vendor: Vendor) -> None:
        super().__init__(root)
        self.vendor = vendor
        self.write(".evaluator/settings.yaml", json.dumps(_SETTINGS))
        self.write(".gitignore", "components/*/evals/results/\nsite/\n")

    def models(self, *models: Mapping[str, Any]) -> None:
        self.write(".evaluator/models.yaml", json.dumps({"models": models}))

    def prompt(self, name: str, version: str = "1.0.0", prompt: str = PROMPT, front: str = "") -> None:
        self.write(f"components/{name}/prompt.md", f"---\nname: {name}\nversion: {version}\n{front}---\n{prompt}\n")

    def component(self, name: str, shops: tuple[str, ...] = SHOPS) -> None:
        """Write a component that reads receipts, with a case for each shop."""
        self.prompt(name)
        self.write(f"components/{name}/schema.json", json.dumps(SCHEMA))
        for at, shop in enumerate(shops):
            document = f"{shop} {at + 1.5}"
            self.write(f"components/{name}/evals/cases/{shop.lower()}/input.md", document)
            self.write(f"components/{name}/evals/cases/{shop.lower()}/expected.json", truth(document))

    def run(self, *words: str, keys: Mapping[str, str] = KEYS, stdin: str = "") -> Ended:
        """Run `skill-evaluator` with these words in a new process."""
        environment = {**IDENTITY, **keys, "PYTHONPATH": str(SCRIPT.parent)}
        self.write("../typed.txt", stdin)
        with (
            (self.root.parent / "typed.txt").open() as typed,
            start(self.root, COMMAND, *words, env=environment, stdin=typed) as process,
        ):
            return ended(process)

    def here(self, *words: str, keys: Mapping[str, str] = KEYS) -> Ended:
        """Run `skill-evaluator` with these words in this process, which is quicker."""
        return call(self.root, *words, env={**IDENTITY, **keys})

    def next_step(self, done: Ended) -> list[str]:
        """Return the words of the last command in an output, such as the next step or the command to resume."""
        (*_, line) = (
            line for line in (done.out + done.err).splitlines() if "skill-evaluator " in line and ": " in line
        )
        return shlex.split(line.partition("skill-evaluator ")[2].partition("`")[0])

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a leaderboard, newest first."""
        rows: list[dict[str, Any]] = read(self.root / "components" / name / "leaderboard.json")["runs"]
        return rows


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    with vendor_server() as server:
        yield Vendor(server)


@pytest.fixture
def folder(tmp_path: Path, vendor: Vendor) -> Folder:
    """A repository with one model and no component."""
    made = Folder(tmp_path / "library", vendor)
    made.models(vendor.model("m"))
    return made
