"""A user adopts a library of each format, evaluates it, breaks a prompt and repairs it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, chat_server
from tests.support.git import GitRepository
from tests.support.library import Ended, call, read

KEY = "loopback-secret-0123456789"
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fern")
BROKEN = "Never name it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """A library of one format: its component, its files, and the file that the user edits."""

    component: str
    files: Mapping[str, Any]
    edited: str


SKILL = "---\nname: pdf\ndescription: Reads pdf files. Be brief.\n---\nAnswer about the word. Be brief.\n"
EVALS = [{"prompt": f"{word}?", "assertions": [{"type": "contains", "value": word}]} for word in WORDS]
QUERIES = [
    {"query": f"{word} pdf" if at % 2 else f"{word} song", "should_trigger": at % 2 == 1}
    for at, word in enumerate(WORDS)
]
PROMPT_YML = {
    "messages": [{"role": "system", "content": "Repeat it. Be brief."}, {"role": "user", "content": "{{word}}"}],
    "testData": [{"word": word, "expected": word} for word in WORDS],
    "evaluators": [{"name": "repeats", "string": {"contains": "{{expected}}"}}],
}
PROMPTFOO = {
    "prompts": ["{{word}}: repeat it. Be brief."],
    "providers": ["openai:gpt-5"],
    "tests": [{"vars": {"word": word}, "assert": [{"type": "contains", "value": word}]} for word in WORDS],
}
LIBRARIES = {
    "skills": Adopted(
        component="pdf",
        files={"skills/pdf/SKILL.md": SKILL, "skills/pdf/evals/evals.json": EVALS},
        edited="skills/pdf/SKILL.md",
    ),
    "trigger evals": Adopted(
        component="routing",
        files={"skills/pdf/SKILL.md": SKILL, "skills/pdf/evals/trigger-eval.json": QUERIES},
        edited="skills/pdf/SKILL.md",
    ),
    "prompt_yml": Adopted(
        component="repeat", files={"prompts/repeat.prompt.yml": PROMPT_YML}, edited="prompts/repeat.prompt.yml"
    ),
    "promptfoo": Adopted(
        component="words", files={"words/promptfooconfig.yaml": PROMPTFOO}, edited="words/promptfooconfig.yaml"
    ),
}


def answer(asked: Asked) -> Reply:
    """Answer correctly, but wrongly to a broken prompt. Refuse a wrong key."""
    if asked.key != KEY:
        return Reply(status=401, text="wrong key")
    request = json.dumps(asked.body["messages"])
    query = asked.body["messages"][-1]["content"]
    if "Choose the skill" in request:
        skill = "pdf" if ("pdf" in query) != (BROKEN in request) else None
        return Reply(text=json.dumps({"skill": skill}))
    return Reply(text="It is a word." if BROKEN in request else f"It is {query.split()[0].strip('?:')}.")


class Story:
    """A user who types commands in the folder of a library."""

    def __init__(self, root: Path, adopted: Adopted, server: ChatServer) -> None:
        self.git, self.adopted, self.server = GitRepository(root), adopted, server
        for path, content in adopted.files.items():
            self.git.write(path, content if isinstance(content, str) else json.dumps(content))
        self.git.commit()

    def type(self, *words: str) -> Ended:
        return call(self.git.root, *words, env={"LOOPBACK_KEY": KEY})

    def edit(self, before: str, after: str) -> None:
        path = self.git.root / self.adopted.edited
        path.write_text(path.read_text().replace(before, after))

    def adopt(self) -> None:
        """Adopt the library, and write the model of the loopback server to models.yaml."""
        proposed = self.type("init", "--adopt")
        assert f"{self.adopted.component} " in proposed.out
        assert self.type("init", "--adopt", "--yes").code == 0
        model = {"id": "served", "provider": "openai", "base_url": self.server.url, "api_key_env": "LOOPBACK_KEY"}
        self.git.write(".evaluator/models.yaml", json.dumps({"models": [model]}))
        settings = self.git.root / ".evaluator/settings.yaml"
        settings.write_text(settings.read_text().replace("replicates: 10", "replicates: 3"))
        self.git.commit("adopt")

    def evaluate(self) -> Ended:
        return self.type("evaluate", self.adopted.component)

    def versions(self) -> list[str]:
        board = self.git.root / f".evaluator/components/{self.adopted.component}/leaderboard.json"
        return [row["skill_version"].partition("+")[0] for row in read(board)["runs"]]


@pytest.mark.parametrize("name", LIBRARIES)
def test_adopted_library_regresses_if_broken_until_it_is_repaired(name: str, tmp_path: Path) -> None:
    with chat_server() as server:
        server.reply = answer
        story = Story(tmp_path / "library", LIBRARIES[name], server)
        story.adopt()
        first = story.evaluate()
        assert (first.code, story.versions()) == (0, ["0.1.0"]), first.err
        assert "no lower version has a complete run to compare it with" in first.out
        story.git.commit("records")

        story.edit("Be brief.", BROKEN)
        broken = story.evaluate()
        assert (broken.code, "regressed" in broken.out, story.versions()) == (3, True, ["0.2.0", "0.1.0"]), broken.out

        story.edit(BROKEN, "Be short.")
        mended = story.evaluate()
        assert (mended.code, story.versions()) == (0, ["0.3.0", "0.2.0", "0.1.0"]), mended.out

        story.git.commit("mend")
        again = story.evaluate()
        assert (again.code, story.versions()) == (0, ["0.3.0", "0.3.0", "0.2.0", "0.1.0"]), again.out
        assert "to ship: 0.3.0+" in story.type("history", LIBRARIES[name].component).out
