"""Versions that use other inputs of the same cases: what each is asked, what is compared, and what is refused."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice
from tests.support.git import GitRepository
from tests.support.library import CASES, SKILL, Library, read

PLAIN = "Extract title and year."
TYPED = "## System\n\nYou read a {{doc_type}}.\n\n## User\n\n{{document}}\n\nIt is a {{doc_type}}."
INPUTS = ("inputs: [document, doc_type]", "messages: sections")


def prompt(library: Library, version: str, body: str, *front: str) -> None:
    text = "\n".join(["---", f"name: {SKILL}", f"version: {version}", *front, "---", body, ""])
    library.write(f"components/{SKILL}/prompt.md", text)


def inputs(library: Library, case_id: str, values: Mapping[str, Any]) -> None:
    library.write(f"fixtures/{SKILL}/cases/{case_id}/inputs.json", values)


class Seen:
    """A server's script that notes the messages of each case, and answers rightly."""

    def __init__(self, server: ChatServer) -> None:
        self.messages: dict[str, set[str]] = {}
        server.reply = self

    def __call__(self, asked: Asked) -> Reply:
        self.messages.setdefault(asked.case_id, set()).add(json.dumps(asked.body["messages"]))
        return Reply(text=notice(asked.case_id))


@pytest.fixture
def seen(server: ChatServer) -> Seen:
    return Seen(server)


@pytest.fixture
def typed(served: Library, seen: Seen) -> Library:
    """1.0.0 is recorded and committed; the work tree holds 1.1.0, which uses one input more."""
    repository = GitRepository(served.root)
    repository.commit()
    assert served.evaluate_here().code == 0
    repository.commit("record")
    served.settings(policy={"design": "beside"})
    prompt(served, "1.1.0", TYPED, *INPUTS)
    for case_id in CASES:
        inputs(served, case_id, {"doc_type": f"notice {case_id}"})
    seen.messages.clear()
    return served


def measured(library: Library) -> dict[str, dict[str, Any]]:
    """The newest records by version."""
    paths = sorted((library.component / "evals" / "records").iterdir())
    return {record["skill_version"]: record for record in map(read, paths)}


def left_out(library: Library) -> Mapping[str, str]:
    """What the comparison of the two versions leaves out, and why."""
    done = library.call("compare", SKILL, "--format", "json")
    assert done.code == 0, done.err
    (model,) = done.json["models"]
    assert model["verdict"] != "incomparable"
    return dict(model["cases"]["left_out"])


def test_each_version_is_asked_with_its_own_template_and_an_added_input_is_comparable(
    typed: Library, seen: Seen
) -> None:
    done = typed.evaluate_here()
    assert done.code == 0, done.err
    document = "alpha is the title of a notice of 2024.\n"
    assert [json.loads(messages) for messages in sorted(seen.messages["alpha"])] == [
        [{"role": "system", "content": PLAIN}, {"role": "user", "content": document}],
        [
            {"role": "system", "content": "You read a notice alpha."},
            {"role": "user", "content": f"{document}\n\nIt is a notice alpha."},
        ],
    ]
    assert not left_out(typed)
    old, new = (measured(typed)[version]["per_case"][0]["parts"] for version in ("1.0.0", "1.1.0"))
    assert old == {"document": new["document"]}
    assert new.keys() == {"document", "doc_type"}
    assert typed.call("lint").code == 0


def test_a_version_that_drops_an_input_is_compared_on_those_that_are_left(typed: Library, seen: Seen) -> None:
    assert typed.evaluate_here().code == 0
    GitRepository(typed.root).commit("typed")
    prompt(typed, "1.2.0", "Extract the title and the year.")
    seen.messages.clear()
    assert typed.evaluate_here().code == 0
    assert {len(messages) for messages in seen.messages.values()} == {2}
    assert any("You read a notice beta." in messages for messages in seen.messages["beta"])
    assert not left_out(typed)
    assert measured(typed)["1.1.0"]["per_case"][0]["parts"].keys() == {"document", "doc_type"}


def test_a_changed_value_counts_where_both_versions_use_it(typed: Library, seen: Seen) -> None:
    assert typed.evaluate_here("--recorded").code == 0
    GitRepository(typed.root).commit("typed")
    inputs(typed, "alpha", {"doc_type": "letter"})  # 1.0.0 never saw it
    prompt(typed, "1.2.0", f"{TYPED} Be brief.", *INPUTS)
    assert typed.evaluate_here("--recorded").code == 0
    assert left_out(typed) == {"alpha": "inputs or truth changed"}
    done = typed.call("compare", SKILL, "--baseline", "1.0.0", "--format", "json")
    assert done.json["models"][0]["cases"]["left_out"] == {}


def test_lint_names_file_and_line_and_goes_on_to_the_other_components(library: Library) -> None:
    lines = ["---", "name: other", "version: 1.0.0", "inputs: [document, doc_type]", "---", "Read."]
    library.write("components/other/prompt.md", "\n".join(lines))
    prompt(library, "1.0.0", "## User\n\nExtract {{doc_type}}.", "inputs: [document, doc_type]")
    inputs(library, "alpha", {"doc_type": "notice"})
    done = library.call("lint")
    assert done.code == 2
    assert "components/other/prompt.md:4: inputs: no message uses doc_type; write {{doc_type}} where it" in done.out
    assert "case 'beta' has no doc_type: 'doc_type' in fixtures/notice-extraction/cases/beta/inputs.json" in done.out
    assert "prompt.md has the heading '## User', and is one system prompt all the same" in done.out
    assert "3 problems in 2 of 2 components" in done.err
    (library.root / "fixtures" / SKILL / "cases" / "alpha" / "inputs.json").unlink()
    done = library.call("lint", SKILL)
    assert "1 problem in" in done.err
    assert "no case has all inputs of the prompt: case 'alpha' has no doc_type" in done.out
