"""The recipes and the first component: their files and commands, typed in a fresh repository, end in a verdict."""

import json
import re
from pathlib import Path

import pytest

from tests.shell import ROOT, is_excerpt, type_block
from tests.support.chat_server import Asked, Reply, chat_server
from tests.support.git import IDENTITY, GitRepository

SECTIONS = re.split(r"^## ", (ROOT / "docs" / "recipes.md").read_text(), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.partition("\n")[0])
def test_recipe_has_at_most_40_lines(section: str) -> None:
    assert len(section.rstrip().splitlines()) <= 40


def section_of(title: str, folder: Path, server: str) -> str:
    """Write the files of a recipe, with its model on a local server; return its commands."""
    (section,) = (section for section in SECTIONS if section.startswith(title))
    return commands_of(section, folder, server)


def commands_of(page: str, folder: Path, server: str) -> str:
    """Write the files of a page, with its model on a local server; return its commands."""
    for path, text in re.findall(r"^```\w+\n# (\S+)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.replace("provider: openai", f"provider: openai, base_url: '{server}'"))
    return "".join(re.findall(r"^```console\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    return GitRepository(tmp_path).root


@pytest.mark.pages
def test_from_gh_models_eval(folder: Path) -> None:
    def reply(asked: Asked) -> Reply:
        answers = "answer" in str(asked.body["messages"][0]["content"])
        return Reply(text=f" {asked.case_id.title()}.\n" if answers else "No.")

    with chat_server() as server:
        server.reply = reply
        first, second = type_block(section_of("From `gh models eval`", folder, server.url), folder)
    assert (first.code, second.code) == (0, 3), first.err + second.err
    assert "lost: field checks.answers-in-kind" in second.out
    assert [path.name for path in (folder / "prompts").iterdir()] == ["greeting.prompt.yml"]


@pytest.mark.pages
def test_from_promptfoo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")

    def reply(asked: Asked) -> Reply:
        prompt = str(asked.body["messages"][-1]["content"])
        return Reply(text=f"It is {prompt.split()[-1]}." if prompt.startswith("Name") else "Which one?")

    with chat_server() as server:
        server.reply = reply
        typed = type_block(section_of("From promptfoo", folder, server.url), folder)
        adopted = next(typed)
        models = folder / ".evaluator" / "models.yaml"
        here = f"provider: openai\n  base_url: {server.url}\n  price: {{input: 0, output: 0}}"
        models.write_text(models.read_text().replace("provider: openai", here))
        first, second = typed
    assert "reply      ready      4 cases" in adopted.out
    assert (first.code, second.code) == (0, 3), first.err + second.err
    assert " on these 4 cases" in second.out
    assert sorted(path.name for path in (folder / "evals").iterdir()) == ["promptfooconfig.yaml", "reply.txt"]


@pytest.mark.pages
def test_from_openai_evals(folder: Path) -> None:
    def reply(asked: Asked) -> Reply:
        prompt = str(asked.body["messages"][-1]["content"])
        label = "Software" if "vim" in prompt else "Hardware"
        return Reply(text=label if "with that word" in prompt else f"I would say {label}.")

    with chat_server() as server:
        server.reply = reply
        imported, first, second = type_block(section_of("From OpenAI Evals", folder, server.url), folder)
    assert "2 cases of tickets" in imported.out, imported.err
    assert (first.code, second.code) == (0, 3), first.err + second.err
    assert "lost: field (the whole output)" in second.out


@pytest.mark.pages
def test_for_a_repository_of_skills(folder: Path) -> None:
    def reply(asked: Asked) -> Reply:
        named = "Name a Python library" in str(asked.body["messages"][0]["content"])
        return Reply(text="Use pypdf." if named else "No.")

    with chat_server() as server:
        server.reply = reply
        adopted, first, bare, second = type_block(section_of("For a repository of skills", folder, server.url), folder)
    assert "pdf        ready      2 cases" in adopted.out, adopted.err
    assert (first.code, bare.code, second.code) == (0, 0, 3), first.err + bare.err + second.err
    assert "checks: with pdf 1.000, without 0.000" in bare.out
    assert " on these 2 cases" in second.out


@pytest.mark.pages
def test_first_component_ends_in_a_verdict(folder: Path) -> None:
    truths: dict[str, dict[str, object]] = {}

    def reply(asked: Asked) -> Reply:
        prompt, document = (str(message["content"]) for message in asked.body["messages"])
        return Reply(
            text=json.dumps(truths[document] if "urgent: true" in prompt else {**truths[document], "urgent": False})
        )

    with chat_server() as server:
        server.reply = reply
        commands = commands_of((ROOT / "docs" / "first-component.md").read_text(), folder, server.url)
        for line in (folder / "fixtures" / "ticket-triage" / "cases.jsonl").read_text().splitlines():
            truths[json.loads(line)["document"]] = json.loads(line)["ground_truth"]
        typed = list(type_block(commands, folder))
    assert [each.code for each in typed] == [0, 0, 0, 0, 0, 3], typed[-1].err
    for each in typed:
        assert is_excerpt("\n".join(each.shown), each.err + each.out), f"{each.command}\n{each.err}{each.out}"
