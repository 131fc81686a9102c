"""`audit run`: every call is made once, also if the run is killed, stopped or resumed; the dry run."""

from pathlib import Path

import pytest

from tests.audit.audit_library import BENCHMARKS, CELLS, QUESTIONS, SCENARIOS, SECOND, AuditLibrary
from tests.support.chat_server import Asked, ChatServer, killed_at, varied
from tests.support.hostile_files import deep_yaml
from tests.support.library import SKILL, read

CALLS = len(CELLS) * 2


@pytest.fixture
def served(tmp_path: Path, server: ChatServer) -> AuditLibrary:
    library = AuditLibrary(tmp_path)
    library.served_by(server.url)
    return library


def test_every_cell_is_called_for_every_model_replicate_by_replicate(served: AuditLibrary, server: ChatServer) -> None:
    one = {"id": "one", "provider": "openai", "base_url": server.url, "price": {"input": 1, "output": 2}}
    served.models(one, {**one, "id": "two"}, {"id": "keyless", "provider": "anthropic"})
    heard: list[Asked] = []
    server.reply = lambda asked: heard.append(asked) or varied(asked)  # type: ignore[func-returns-value]
    done = served.audit("--concurrency", "1", "--seed", "4")
    assert done.code == 0
    assert "warning: skipping keyless: ANTHROPIC_API_KEY is not set" in done.err
    assert server.requests == 2 * CALLS
    systems = {asked.body["messages"][0]["content"] for asked in heard}
    assert systems == {f"Be {name}.\n\n{what} title and year." for name in SCENARIOS for what in ("Extract", "Find")}
    manifest = read(served.audit_folder() / "audit.json")
    assert list(manifest["models"]) == ["one", "two"]
    answered = served.answered()
    assert len(set(answered)) == CALLS
    first = answered[:CALLS]
    assert [replicate for _, replicate in first] == [0] * len(CELLS) + [1] * len(CELLS)
    assert [cell for cell, _ in first[:6]] == [
        f"{benchmark}/{scenario}/{QUESTIONS[benchmark][0]}" for benchmark in QUESTIONS for scenario in SCENARIOS
    ]
    assert done.err.endswith(f"report: skill-evaluator audit report audits/{manifest['id']}\n")
    assert (served.results.exists(), served.rows()) == (False, [])


def test_killed_audit_resumes_without_repeating_a_call(served: AuditLibrary, server: ChatServer) -> None:
    with killed_at(server, 13, served.audits):
        assert served.audit().code == 0
    before = served.answered()
    assert 9 <= len(before) < 13
    server.forget()
    resumed = served.call("audit", "run", "--resume", "--format", "json")
    assert resumed.code == 0
    (run,) = resumed.json["runs"]
    assert (run["planned"], run["outcomes"], run["complete"]) == (CALLS, {"scored": CALLS}, True)
    assert served.answered()[: len(before)] == before
    assert len(set(served.answered())) == len(served.answered()) == CALLS
    assert server.requests == CALLS - len(before)


def test_stopped_audit_prints_the_next_command_which_finishes_it(served: AuditLibrary, server: ChatServer) -> None:
    stopped = served.audit("--max-calls", "7", "--audits", "kept here")
    assert (stopped.code, server.requests) == (4, 7)
    assert "served stopped: max_calls" in stopped.out
    words = stopped.to_go_on()
    assert words[:2] == ["audit", "run"]
    assert "--run" in words
    assert served.call(*words).code == 0
    assert (server.requests, server.repeated) == (CALLS, [])
    assert served.call(*words).code == 0
    assert server.requests == CALLS


def test_cap_is_kept_and_the_next_command_names_a_sufficient_one(served: AuditLibrary, server: ChatServer) -> None:
    served.served_by(server.url, price={"input": 0, "output": 1000}, params={"max_output_tokens": 100})
    assert served.audit("--max-cost", "0.05").code == 4
    resumed = served.call("audit", "run", "--resume")
    assert (resumed.code, server.requests) == (4, 0)
    going_on = f"continue: skill-evaluator audit run --run {served.audit_folder().name}\n"
    assert served.call("audit", "report").refuses(going_on)
    assert served.call(*resumed.to_go_on(capped=True)).code == 0
    assert server.requests == CALLS


def test_resume_is_refused_if_inputs_have_changed(served: AuditLibrary, server: ChatServer) -> None:
    served.audit("--max-calls", "1")
    served.served_by("http://127.0.0.1:9/v1")
    refused = "changed since it was drawn: "
    assert served.call("audit", "run", "--resume").refuses(f"{refused}the settings of model 'served'; ")
    served.case("beta", {"title": "other", "year": 2024})
    assert served.call("audit", "run", "--resume").refuses(f"{refused}case 'beta' of benchmark '{SKILL}', ")
    served.write(f"components/{SECOND}/prompt.md", f"---\nname: {SECOND}\nversion: 1.0.0\n---\nAnother.\n")
    served.write(".evaluator/scenarios/curt.md", "---\nname: curt\nintent: i\n---\nShort!\n{{ prompt }}\n")
    changed = f"scenario 'curt', case 'beta' of benchmark '{SKILL}', prompt of benchmark '{SECOND}' and 1 more"
    assert served.call("audit", "run", "--resume").refuses(f"{refused}{changed}; ")
    assert server.requests == 1


def test_invalid_option_is_one_line_of_error_and_no_call(served: AuditLibrary, server: ChatServer) -> None:
    served.audit("--max-calls", "0")
    for options, message in (
        (("--resume", "--seed", "9"), "--seed cannot be combined with --resume or --run; omit them"),
        (("--resume", "--model", "othr"), "'othr' is not a model of the audit"),
        (("--resume", "--dry-run"), "--dry-run cannot be combined with --resume"),
        (("--run", "20200101T000000Z-aaaaaa"), "no audit '20200101T000000Z-aaaaaa' in audits to resume"),
        (("--questions", "0"), "--questions must be at least 1"),
        (("--benchmark", "nothing"), "unknown component 'nothing'"),
        ((*BENCHMARKS, "--scenario", "nothing"), "unknown scenario 'nothing'"),
        ((), "no component in components declares `output: choice`; name the benchmarks with --benchmark NAME"),
    ):
        assert served.call("audit", "run", *options).refuses(message), options
    assert server.requests == 0


def test_options_override_settings(served: AuditLibrary, server: ChatServer) -> None:
    settings = {"benchmarks": {SECOND: {}, SKILL: {}}, "scenarios": ["grand"], "questions": 1, "replicates": 1}
    served.settings(audit=settings)
    assert served.call("audit", "run").code == 0
    assert server.requests == 2
    assert served.call("audit", "run", "--benchmark", SKILL, "--scenario", "bare", "--questions", "3").code == 0
    assert server.requests == 5


def test_run_of_an_audit_is_not_a_run_of_a_component(served: AuditLibrary) -> None:
    served.audit("--max-calls", "1")
    (run,) = (served.audit_folder() / "runs").iterdir()
    for command in (("score", str(run)), ("explain", str(run), "--case", "alpha")):
        assert served.call(*command).refuses("(see `audit report`), not of a component")


PRICE = {"input": 1, "output": 2, "cache_read": 1, "cache_write": 1}
PRICED = {"provider": "openai", "params": {"max_output_tokens": 100}, "price": PRICE}
FEW = [
    "2 models, fewer than 4: grades are only a ranking",
    "3 scenarios, fewer than 6: σ is imprecise",
    f"fewer than 50 questions ({SKILL} 3, {SECOND} 2): use the confidence intervals",
    f"1 case of '{SECOND}' skipped: no ground truth",
]


def test_dry_run_prints_size_and_cost_and_writes_nothing(tmp_path: Path) -> None:
    library = AuditLibrary(tmp_path)
    library.models({"id": "one", **PRICED}, {"id": "two", **PRICED, "provider": "anthropic"})
    before = library.tree()
    done = library.audit("--dry-run")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "2 models × 3 scenarios × 5 questions of 2 benchmarks × 2 replicates = 60 calls."
    assert lines[-1] == "dry run: no call was made, nothing was written."
    assert done.err.splitlines() == [f"warning: {each}" for each in FEW]
    assert library.tree() == before
    found = library.audit("--dry-run", "--format", "json").json
    assert found["doubts"] == FEW
    assert [each["calls"] for each in found["models"]] == [CALLS, CALLS]
    assert [each["key"] for each in found["models"]] == ["OPENAI_API_KEY not set", "ANTHROPIC_API_KEY not set"]
    assert (found["total"]["calls"], found["total"]["output_tokens_upper"]) == (60, 60 * 100)
    library.models({"id": "unpriced", "provider": "openai", "base_url": "http://127.0.0.1:9/v1"})
    assert library.audit("--dry-run", "--max-cost", "1").refuses("--max-cost requires a price for 'unpriced'")


def test_choice_components_are_the_default_and_an_unreadable_one_is_left_out(tmp_path: Path) -> None:
    library = AuditLibrary(tmp_path)
    question = {"id": "a", "question": "Which?", "options": ["x", "y"], "answer": "A"}
    for name, rest in (("good", ""), ("broken", deep_yaml())):
        library.write(f"components/{name}/prompt.md", f"---\nversion: 1.0.0\noutput: choice\n{rest}---\nAnswer.\n")
        library.lines(f"fixtures/{name}/questions.jsonl", question)
    done = library.call("audit", "run", "--dry-run", "--format", "json")
    assert done.code == 0, done
    assert [each["name"] for each in done.json["benchmarks"]] == ["good"]
    (warning,) = [line for line in done.err.splitlines() if "not in the audit" in line]
    assert warning.startswith("warning: not in the audit: components/broken/prompt.md:4:53: broken YAML: nested")
