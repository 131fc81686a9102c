"""A promptfoo configuration is evaluated where it lies, and a planted regression gets its verdict."""

from pathlib import Path

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply
from tests.support.git import git
from tests.support.library import call, ended, read, start

KEY = "sk-proj-Zq8vN3xT7mK2pL5w"
CONFIGURATION = f"""
prompts: [file://reply.txt]
providers:
  - id: openai:gpt-5
    config: {{apiKey: {KEY}}}
defaultTest:
  assert:
    - {{type: icontains, value: "{{{{city}}}}"}}
    - {{type: javascript, value: output.length < 90}}
tests:
  - vars: {{city: [Paris, Rome, Lima, Bern]}}
  - file://more.csv
"""
BASE = ".evaluator/components/reply/evals"


@pytest.fixture
def root(tmp_path: Path, server: ChatServer) -> Path:
    files = {
        "evals/promptfooconfig.yaml": CONFIGURATION,
        "evals/reply.txt": "Name the city {{city}}\n",
        "evals/more.csv": "city,__expected\nOslo,contains: Oslo\nBonn,starts-with: The\n",
        ".evaluator/models.yaml": "models:\n"
        f'- {{id: m, provider: openai, base_url: "{server.url}", price: {{input: 0, output: 0}}}}\n',
        ".evaluator/settings.yaml": "sources:\n- {kind: promptfoo, root: evals}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "as it was")
    return tmp_path


def names_the_city(asked: Asked) -> Reply:
    prompt = asked.body["messages"][-1]["content"]
    return Reply(text=f"The city is {prompt.split()[-1]}" if prompt.startswith("Name") else "I do not know.")


def test_it_is_evaluated_in_place_and_a_worse_prompt_is_regressed(root: Path, server: ChatServer) -> None:
    server.reply = names_the_city
    before = {path: path.read_bytes() for path in (root / "evals").iterdir()}
    done = call(root, "evaluate", "reply", env={"OPENAI_API_KEY": "x"})
    assert done.code == 0, done.err
    assert "checks.contains-city" not in done.out, "it passes always"
    [record] = [read(path) for path in (root / BASE / "records").iterdir()]
    assert len(record["per_case"]) == 6
    assert {path: path.read_bytes() for path in (root / "evals").iterdir()} == before
    (root / "evals/reply.txt").write_text("Think of the city {{city}}\n")
    worse = ended(start(root, "-m", "skill_evaluator", "evaluate", "reply", env={"OPENAI_API_KEY": "x"}))
    assert worse.code == 3, worse.out + worse.err
    assert "reply: regressed" in worse.out
    assert not [path for path in (root / ".evaluator").rglob("*") if path.is_file() and KEY in path.read_text()]


def test_lint_names_what_is_left_out(root: Path) -> None:
    done = call(root, "lint")
    assert "left out: javascript assert (6): no check here does that" in done.out
    assert "left out: key in plain text at providers[0].config.apiKey: take it out" in done.out
    assert KEY not in done.out + done.err
