"""`scenarios draft` and `scenarios check`, from a domain to a trial of the drafted family."""

import json
from pathlib import Path

import pytest

from tests.audit.audit_library import BENCHMARKS, LEGAL, AuditLibrary
from tests.support.chat_server import Asked, ChatServer, Reply
from tests.support.library import Ended

FAMILY = ".evaluator/scenarios/legal"
DRAFT = ("scenarios", "draft", "--task", "legal document analysis", "--model", "served", "--family", "legal")
KEY = "sk-this-is-a-secret-key"


def drafted() -> str:
    scenarios = []
    for name, text in LEGAL.items():
        template = f"{text}\n\n{{{{ prompt }}}}"
        scenarios.append(
            {"name": f"{name.capitalize()} manner", "intent": f"A protocol: {name}.", "template": template}
        )
    return f"Here they are.\n```json\n{json.dumps({'scenarios': scenarios})}\n```"


@pytest.fixture
def library(tmp_path: Path, server: ChatServer) -> AuditLibrary:
    made = AuditLibrary(tmp_path)
    made.served_by(server.url, price={"input": 1, "output": 2}, api_key_env="DRAFTING_KEY")
    server.reply = lambda _: Reply(text=drafted())
    return made


def draft(library: AuditLibrary, *arguments: str) -> Ended:
    return library.call(*DRAFT, *arguments, env={"DRAFTING_KEY": KEY})


def review(library: AuditLibrary) -> None:
    for path in (library.root / FAMILY).iterdir():
        path.write_text(path.read_text().replace("unreviewed: true\n", ""))


def test_drafted_scenarios_are_marked_unreviewed_and_hold_no_key(library: AuditLibrary, server: ChatServer) -> None:
    done = draft(library, "--format", "json")
    assert done.code == 0, done.err
    assert server.requests == 1
    paths = sorted((library.root / FAMILY).iterdir())
    assert [path.name for path in paths][:2] == ["legal-01-concise-manner.md", "legal-02-reasoned-manner.md"]
    assert len(paths) == 8
    assert all("\nunreviewed: true\n" in path.read_text() for path in paths)
    assert "8 scenarios written to" in done.err
    assert (done.json["verdict"], {one["rule"] for one in done.json["remarks"]}) == ("not reviewed", {"not reviewed"})
    kept = [path for path in library.root.rglob("*") if path.is_file()]
    assert any(path.name == "replicates.jsonl" for path in kept)
    assert not any(KEY in path.read_text(errors="replace") for path in kept)


def test_dry_run_and_a_low_cap_make_no_call_and_write_nothing(library: AuditLibrary, server: ChatServer) -> None:
    size = draft(library, "--dry-run", "--format", "json")
    assert size.json["total"]["cost_upper_usd"] > 0
    capped = draft(library, "--max-cost", "0.000001")
    assert (size.code, capped.code, server.requests) == (0, 4, 0)
    assert not (library.root / FAMILY).exists()


def test_draft_overwrites_nothing_and_makes_no_call(library: AuditLibrary, server: ChatServer) -> None:
    library.write(f"{FAMILY}/mine.md", "mine")
    assert draft(library).refuses("exists already; choose a new --family")
    assert server.requests == 0
    assert [path.name for path in (library.root / FAMILY).iterdir()] == ["mine.md"]


def test_invalid_draft_writes_nothing(library: AuditLibrary, server: ChatServer) -> None:
    for answer in (
        "no JSON",
        json.dumps({"scenarios": [{"name": "one", "intent": "x", "template": "{{ prompt }}"}]}),
        drafted().replace("{{ prompt }}", "{{ input }}"),
        drafted().replace(LEGAL["concise"], LEGAL["expert"]),
        drafted().replace('"name": "Concise manner"', '"name": "../.."'),
    ):
        server.reply = lambda _, text=answer: Reply(text=text)
        done = draft(library)
        assert (done.code, "the output contains no family of scenarios" in done.err) == (2, True), answer
        assert not (library.root / FAMILY).exists()


def test_reviewed_family_is_ready_and_a_trial_shows_its_scores(library: AuditLibrary, server: ChatServer) -> None:
    """One protocol makes the model fail; the others change nothing."""
    draft(library)
    before = library.call("scenarios", "check", "legal")
    assert (before.code, "not reviewed" in before.out) == (4, True)
    review(library)
    untried = library.call("scenarios", "check", "legal")
    assert untried.code == 0
    assert "skill-evaluator audit run --scenario legal --questions 20" in untried.err

    def answered(asked: Asked) -> Reply:
        expert = LEGAL["expert"] in asked.body["messages"][0]["content"]
        return Reply(text="no idea") if expert else Reply(text=json.dumps({"title": asked.case_id, "year": 2024}))

    server.reply = answered
    run = library.call("audit", "run", *BENCHMARKS, "--scenario", "legal", env={"DRAFTING_KEY": KEY})
    assert run.code == 0, run.err
    done = library.call("scenarios", "check", "legal", "--format", "json")
    assert (done.code, done.json["verdict"], done.json["trial"]["questions"]) == (0, "ready", 5)
    scores = done.json["trial"]["scores"]["served"]
    assert sorted(scores.values()) == [0.0] + [100.0] * 7
    assert scores["legal-04-expert-manner"] == 0.0
    page = library.call("scenarios", "check", "legal", "--format", "markdown").out
    assert "| `legal-04-expert-manner` | 0.0 |" in page
    assert "- [ ] Does each template request exactly the output of the task" in page
    concise = library.root / FAMILY / "legal-01-concise-manner.md"
    concise.write_text(concise.read_text().replace(LEGAL["concise"], "Answer for {name}."))
    unfilled = library.call("scenarios", "check", "legal", "--trial", str(library.audit_folder()))
    assert (unfilled.code, "not ready" in unfilled.out) == (2, True)


def test_unknown_family_and_repeated_scenario_are_refused(library: AuditLibrary) -> None:
    library.write(f"{FAMILY}/curt.md", (library.root / ".evaluator/scenarios/curt.md").read_text())
    assert library.call("scenarios", "check", "legl").refuses("no family 'legl'")
    assert library.audit("--dry-run", "--scenario", "curt").refuses("have the same name")
