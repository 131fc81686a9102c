"""`mutate`: a prompt with three rules, of which three cases each cover two; the server obeys the prompt."""

import json
import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply
from tests.support.library import SKILL, Library

RULES: Mapping[str, tuple[str, Any, Any]] = {  # a field, its value where the rule is obeyed, and where it is not
    "Write the title in capitals.": ("title", "NOTICE", "notice"),
    "The year is that of the sale.": ("year", 2024, 1999),
    "Take the second signature.": ("signed", "B", "A"),
}
UNCOVERED = "Take the second signature."
TYPES: Mapping[str, Any] = {"title": "string", "year": "integer", "place": "string", "amount": "integer"}
PROMPT = f"---\nname: {SKILL}\nversion: 1.0.0\n---\nRead the notice.\n\n" + "".join(f"- {rule}\n" for rule in RULES)
COVERED = 3  # cases a rule; of fewer nobody can tell whether any other edit would move them
N_CASES = 2 * COVERED + 1
CALM: Mapping[str, Any] = {"title": "x", "year": 1, "place": "x", "amount": 1, "signed": "A"}


def obedient(asked: Asked) -> Reply:
    """Answer by the rules that are in the prompt; a case is named after the field that its rule is about."""
    system = asked.body["messages"][0]["content"]
    answer = dict(CALM)
    for rule, (name, right, wrong) in RULES.items():
        if asked.case_id.startswith(name):
            answer[name] = right if rule.removesuffix(".") in system else wrong
    return Reply(text=json.dumps(answer))


@pytest.fixture
def ruled(library: Library, server: ChatServer) -> Library:
    """A component of three rules, of which two have three cases each, and one more case that no rule is about."""
    server.reply = obedient
    library.served_by(server.url, structured_output="none")
    library.write(f"components/{SKILL}/prompt.md", PROMPT)
    properties = {**{name: {"type": kind} for name, kind in TYPES.items()}, "signed": {"type": "string"}}
    library.write(f"components/{SKILL}/schema.json", {"type": "object", "properties": properties})
    shutil.rmtree(library.root / "fixtures" / SKILL)
    for rule, (name, right, _) in RULES.items():
        if rule != UNCOVERED:
            for number in range(COVERED):
                library.case(f"{name}-{number}", {**CALM, name: right})
    library.case("plain", dict(CALM))
    return library


def test_removed_parts_are_killed_where_cases_cover_them(ruled: Library, server: ChatServer) -> None:
    before = set(ruled.tree())
    done = ruled.call("mutate", SKILL, "-n", "2", "--format", "json")
    assert done.code == 0, done.err
    by_text = {mutant["text"].removeprefix("- "): mutant for mutant in done.json["mutants"]}
    irrelevant = {"Read the notice.", UNCOVERED}
    statuses = {text: "survived" if text in irrelevant else "killed" for text in ("Read the notice.", *RULES)}
    assert {text: mutant["status"] for text, mutant in by_text.items()} == statuses
    for rule, (name, *_) in RULES.items():
        cases = [one["name"] for one in by_text[rule]["reactions"] if one["kind"] == "case"]
        assert cases == ([] if rule == UNCOVERED else [f"{name}-{number}" for number in range(COVERED)])
    assert by_text[UNCOVERED]["line"] == 9
    assert done.json["score"] == 0.5
    assert server.requests == N_CASES * 2 * (4 + 4) == done.json["calls"]  # four mutants, the prompt, three controls
    new = {path for path in set(ruled.tree()) - before if "/evals/results" not in path and not path.endswith("/evals")}
    assert not new, "something is recorded"
    server.forget()  # a second run makes no call
    again, text = (ruled.call("mutate", SKILL, "-n", "2", "--format", form) for form in ("json", "text"))
    assert server.requests == 0
    assert again.json == done.json
    assert "2 of 4 mutants killed, 2 survived · mutation score 0.50" in text.out
    assert "year-0 1.00 → 0.80" in text.out


def test_ceiling_leaves_mutants_undecided_and_next_run_resumes(ruled: Library, server: ChatServer) -> None:
    stopped = ruled.call("mutate", SKILL, "-n", "2", "--max-calls", "30", "--format", "json")
    assert (stopped.code, server.requests) == (4, 30)
    assert {mutant["status"] for mutant in stopped.json["mutants"]} == {"undecided"}
    assert all("max_calls" in mutant["reason"] for mutant in stopped.json["mutants"])
    done = ruled.call("mutate", SKILL, "-n", "2", "--format", "json")
    assert (done.code, server.requests) == (0, N_CASES * 2 * (4 + 4))


def test_dry_run_lists_the_longest_parts_and_makes_no_call(ruled: Library, server: ChatServer) -> None:
    before = ruled.tree()
    done = ruled.call("mutate", SKILL, "--mutants", "2", "--dry-run", "--format", "json")
    assert (server.requests, ruled.tree()) == (0, before)
    assert [mutant["id"] for mutant in done.json["mutants"]] == ["bullet-7", "bullet-8"]
    assert (done.json["left_out"], done.json["calls"]) == (2, N_CASES * 6 * 4)


def test_replayed_outputs_and_several_models_are_refused(library: Library, server: ChatServer) -> None:
    library.write(f"components/{SKILL}/prompt.md", PROMPT)
    assert library.call("mutate", SKILL).refuses("ignores the prompt")
    entry = {"provider": "openai", "base_url": server.url}
    library.models({"id": "one", **entry}, {"id": "two", **entry})
    assert library.call("mutate", SKILL).refuses("name it with --model (one, two)")
    assert library.call("mutate", SKILL, "--model", "two", "--dry-run").code == 0
