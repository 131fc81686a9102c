"""`mutate`: a prompt with five rules, each covered by three cases but one, asked of a server that obeys."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply
from tests.support.library import SKILL, Library

RULES: Mapping[str, tuple[str, Any, Any]] = {  # a field, its value where the rule is obeyed, and where it is not
    "Write the title in capitals.": ("title", "NOTICE", "notice"),
    "The year is that of the sale.": ("year", 2024, 1999),
    "Places are named in English.": ("place", "Vienna", "Wien"),
    "A refund has a minus.": ("amount", -5, 5),
    "Take the second signature.": ("signed", "B", "A"),
}
UNCOVERED = "Take the second signature."
TYPES: Mapping[str, Any] = {"title": "string", "year": "integer", "place": "string", "amount": "integer"}
PROMPT = f"---\nname: {SKILL}\nversion: 1.0.0\n---\nRead the notice.\n\n" + "".join(f"- {rule}\n" for rule in RULES)
COVERED = 3  # cases a rule; of fewer nobody can tell whether any other edit would move them
N_CASES = 4 * COVERED + 1
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
    """A component of five rules, of which four have three cases each, and one more case that no rule is about."""
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


def test_the_rule_that_no_case_covers_is_named_and_killed_mutants_are_asked_no_further(
    ruled: Library, server: ChatServer
) -> None:
    before = set(ruled.tree())
    done = ruled.call("mutate", SKILL, "--format", "json")
    assert done.code == 0, done.err
    by_text = {mutant["text"].removeprefix("- "): mutant for mutant in done.json["mutants"]}
    assert {text: mutant["status"] for text, mutant in by_text.items()} == {
        rule: "survived" if rule == UNCOVERED else "killed" for rule in RULES
    }
    for rule, (name, *_) in RULES.items():
        cases = [one["name"] for one in by_text[rule]["reactions"] if one["kind"] == "case"]
        assert cases == ([] if rule == UNCOVERED else [f"{name}-{number}" for number in range(COVERED)])
    assert by_text[UNCOVERED]["line"] == 11
    assert "this rule decides" in by_text[UNCOVERED]["advice"]
    assert done.json["silent"] == ["plain"]
    assert done.json["control"] == []
    assert done.json["score"] == pytest.approx(0.8)
    assert {one["status"]: one["replicates"] for one in done.json["mutants"]} == {"killed": 2, "survived": 4}
    # thirteen cases: the undamaged prompt, three controls and the survivor four times, four killed mutants twice
    assert server.requests == N_CASES * (5 * 4 + 4 * 2) == done.json["calls"]
    assert done.json["saved_calls"] == N_CASES * 4 * 2

    new = {path for path in set(ruled.tree()) - before if "/evals/results" not in path and not path.endswith("/evals")}
    assert not new, "something is recorded"

    server.forget()  # running again asks nothing, and says the same as a page
    again, text, page = (ruled.call("mutate", SKILL, "--format", form) for form in ("json", "text", "markdown"))
    assert server.requests == 0
    assert again.json == done.json
    assert text.out.index("-- Take the second signature.") < text.out.index("rule-dropped-7")
    assert "4 of 5 mutants killed, 1 survived · mutation score 0.80" in text.out
    assert "noticed no mutant: plain" in text.out
    assert "-- Take the second signature." in page.out


def test_a_ceiling_leaves_mutants_undecided_and_the_same_command_goes_on(ruled: Library, server: ChatServer) -> None:
    whole = N_CASES * (5 * 4 + 4 * 2)
    stopped = ruled.call("mutate", SKILL, "--max-calls", "30", "--format", "json")
    assert stopped.code == 4
    assert "undecided" in {mutant["status"] for mutant in stopped.json["mutants"]}
    assert all("max_calls" in mutant["reason"] for mutant in stopped.json["mutants"] if mutant["status"] == "undecided")
    assert server.requests == 30
    done = ruled.call("mutate", SKILL, "--format", "json")
    assert (done.code, server.requests) == (0, whole)


def test_a_cost_ceiling_counts_what_was_spent_before(ruled: Library, server: ChatServer) -> None:
    price, params = {"input": 1000.0, "output": 1000.0}, {"max_output_tokens": 20}
    ruled.served_by(server.url, structured_output="none", price=price, params=params)
    first = ruled.call("mutate", SKILL, "--max-cost", "2.5", "--format", "json")
    assert first.code == 4
    assert 0 < first.json["cost_usd"] <= 2.5
    server.forget()
    again = ruled.call("mutate", SKILL, "--max-cost", "2.5", "--format", "json")
    assert (again.code, server.requests) == (4, 0)


def test_a_cost_ceiling_holds_where_the_server_counts_no_tokens(ruled: Library, server: ChatServer) -> None:
    price, params = {"input": 1000.0, "output": 1000.0}, {"max_output_tokens": 20}
    ruled.served_by(server.url, structured_output="none", price=price, params=params)
    server.reply = lambda asked: replace(obedient(asked), fields={"usage": None})
    size = ruled.call("mutate", SKILL, "--dry-run", "--format", "json").json
    each = size["cost_upper_usd"] / size["most_calls"]
    looked = size["most_calls"] / 2  # at the first look each has two of four answers
    done = ruled.call("mutate", SKILL, "--max-cost", f"{each * (looked + 2)}", "--format", "json")
    assert (done.code, done.json["cost_usd"]) == (4, None)
    assert looked <= server.requests <= looked + 4


def test_a_model_that_changes_meanwhile_kills_no_mutant(ruled: Library, server: ChatServer) -> None:
    """Without a ceiling all mutants are asked beside the undamaged prompt, so that both change at once."""
    more = "".join(f"- Rule {number} is about nothing.\n" for number in range(9))
    ruled.write(f"components/{SKILL}/prompt.md", PROMPT + more)

    def moving(asked: Asked) -> Reply:
        moved = server.requests > N_CASES * 2 * (4 + 8)  # after the first look at eight mutants
        return Reply(text=json.dumps({**CALM, "title": "moved"})) if moved else obedient(asked)

    server.reply = moving
    done = ruled.call("mutate", SKILL, "--format", "json")
    assert done.code == 0, done.err
    assert [one["status"] for one in done.json["mutants"][5:]] == ["survived"] * 9


def test_a_dry_run_lists_the_mutants_and_makes_no_call(ruled: Library, server: ChatServer) -> None:
    before = ruled.tree()
    done = ruled.call("mutate", SKILL, "--dry-run", "--format", "json")
    assert server.requests == 0
    assert ruled.tree() == before
    assert [mutant["id"] for mutant in done.json["mutants"]] == [f"rule-dropped-{line}" for line in range(7, 12)]
    assert (done.json["most_calls"], done.json["least_calls"]) == (N_CASES * 9 * 4, N_CASES * 9 * 2)


def test_the_cap_says_what_is_left_out(ruled: Library) -> None:
    done = ruled.call("mutate", SKILL, "--mutants", "2", "--dry-run")
    assert "left out: 3 (rule-dropped, over --mutants 2)" in done.out


def test_noise_as_large_as_a_mutant_kills_nothing(ruled: Library, server: ChatServer) -> None:
    """Where an edit without meaning breaks cases at random, what a mutant breaks is no evidence."""

    def fickle(asked: Asked) -> Reply:
        system = asked.body["messages"][0]["content"]
        lucky = sum(f"{asked.case_id}{system}".encode()) % 2
        return Reply(text=json.dumps({**CALM, "title": "other" if lucky else "x"}))

    server.reply = fickle
    for name in ("year", "place", "amount", "plain"):
        ruled.case(name, dict(CALM))
    done = ruled.call("mutate", SKILL, "--format", "json")
    assert done.json["control"]
    assert {mutant["status"] for mutant in done.json["mutants"]} == {"survived"}


def test_answers_that_ignore_the_prompt_are_refused(library: Library) -> None:
    library.write(f"components/{SKILL}/prompt.md", PROMPT)
    assert library.call("mutate", SKILL).refuses("its answers ignore the prompt")
    assert not library.results.exists()


def test_several_models_are_refused(ruled: Library, server: ChatServer) -> None:
    entry = {"provider": "openai", "base_url": server.url}
    ruled.models({"id": "one", **entry}, {"id": "two", **entry})
    assert ruled.call("mutate", SKILL).refuses("name it with --model (one, two)")
    assert ruled.call("mutate", SKILL, "--model", "two", "--dry-run").code == 0
