"""A program or an endpoint under test: calls, records, verdicts and restrictions."""

import json
import sys
from typing import Any

import pytest
from skill_evaluator.library.components import load_component
from skill_evaluator.providers import read_configuration, with_program
from skill_evaluator.providers.program import MARGIN_S, values_of

from tests.support.git import GitRepository
from tests.support.http_server import Received, Server, serve
from tests.support.library import CASES, SKILL, Ended, Library

KEY, OTHER = "key-of-the-program-0123456789", "key-of-a-vendor-0123456789abc"
APP = """
import json, os, sys
asked = json.load(sys.stdin)
title = asked["inputs"]["document"].split()[0]
print(json.dumps({{"answer": {{"title": title, "year": {year}}}, "usage": {{"input_tokens": 7, "output_tokens": 3}},
                   "model": "chain-{year}", "version": "r5"}}))
"""
RUN: dict[str, Any] = {"run": [sys.executable, "app.py"], "watch": ["*.py"]}


class Endpoint(Server):
    """An endpoint that a test says how to behave."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[Received] = []
        self.reply: Any = {"data": {"text": ['{"title": "alpha", "year": 2024}']}}
        self.status, self.headers = 200, {}

    def handle(self, received: Received) -> None:
        self.received.append(received)
        received.reply(self.status, self.reply, self.headers)


def declare(library: Library, program: dict[str, Any], version: str = "1.0.0", **front: Any) -> None:
    """Write a prompt.md without a prompt."""
    front = {"name": SKILL, "version": version, "program": program, **front}
    library.write(f"components/{SKILL}/prompt.md", f"---\n{json.dumps(front)}\n---\n")


def app(library: Library, code: str = APP.format(year=2024)) -> None:
    library.write(f"components/{SKILL}/app.py", code)


def answers(library: Library) -> list[dict[str, Any]]:
    """Return the lines of the journal of the one run."""
    return [json.loads(line) for line in (library.run_folder() / "replicates.jsonl").read_text().splitlines()]


def fails_with(library: Library, done: Ended, reason: str, message: str) -> None:
    """Check that every replicate failed like this, and was not tried again."""
    assert done.code == 4, (done.out, done.err)
    lines = answers(library)
    assert {line["error"]["reason"] for line in lines} == {reason}, lines
    assert all(message in line["error"]["message"] for line in lines), lines
    assert {line["attempts"] for line in lines} == {1}


def test_two_versions_of_a_program_are_measured_and_compared(library: Library) -> None:
    declare(library, RUN)
    app(library)
    done = library.evaluate_here("--format", "json")
    assert done.code == 0, done.err
    (record,) = library.records()
    assert (record["model_id"], record["provider"], record["complete"]) == ("program", "program", True)
    (row,) = library.rows()
    assert row["accuracy"]["exact_match"] == row["accuracy"]["exact_match"] | {"mean": 1.0, "n": 6}
    assert row["reproducibility"]["pairwise_exact_match"] == 1.0
    assert (row["served_model"], row["tokens"]["input"]) == ("chain-2024", 42)
    app(library, APP.format(year=2023))
    refused = library.evaluate_here()
    assert refused.refuses("1.0.0 was recorded with another prompt"), refused
    declare(library, RUN, "1.1.0")
    library.settings(policy={"design": "beside"})
    worse = library.evaluate_here()
    assert worse.code == 3, (worse.out, worse.err)  # whichever model the program asks now
    assert "chain-2023 answered" not in worse.out + worse.err
    assert "runs both interleaved" not in worse.out
    assert worse.err.count("is a program whose earlier files are not available") == 1
    assert [row["skill_version"] for row in library.rows()] == ["1.1.0", "1.0.0"]


def test_program_receives_inputs_turns_and_its_variables(library: Library) -> None:
    declare(library, RUN | {"env": ["A_KEY"]}, inputs=["document", "kinds"])
    app(library, "import json, os, sys; print(json.dumps({'answer': [json.load(sys.stdin), sorted(os.environ)]}))")
    for case_id in CASES:
        library.write(f"fixtures/{SKILL}/cases/{case_id}/inputs.json", {"kinds": ["{{document}}", 1]})
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
        library.write(f"fixtures/{SKILL}/cases/{case_id}/turns.json", turns)
    done = library.evaluate_here("--case", "alpha", "-n", "1", env={"A_KEY": KEY, "B_KEY": OTHER})
    assert done.code == 0, done.err
    (line,) = answers(library)
    asked, names = json.loads(line["text"])
    assert asked["inputs"] == {"document": "alpha is the title of a notice of 2024.\n", "kinds": ["{{document}}", 1]}
    assert asked["turns"] == turns
    assert (asked["case_id"], asked["replicate"], isinstance(asked["seed"], int)) == ("alpha", 0, True)
    assert set(names) == {"A_KEY", "HOME", "LC_CTYPE", "PATH", "TMPDIR"}


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        ("while True: pass", "timeout", "not done after 1 s"),
        ("import sys; sys.exit('no index')", "exit_code", "exit code 1: no index"),
        ("print('The title is alpha.')", "no_answer", "stdout is not valid JSON"),
    ],
    ids=["never ends", "fails", "talks"],
)
def test_failing_program_is_a_failure_with_its_reason(library: Library, code: str, reason: str, message: str) -> None:
    declare(library, RUN | {"timeout_s": 1 if reason == "timeout" else 60})
    app(library, code)
    fails_with(library, library.evaluate_here("-n", "1", "--case", "alpha"), reason, message)


def test_program_sees_only_its_keys_and_stores_none(library: Library) -> None:
    declare(library, RUN | {"env": ["A_KEY"]})
    dump = "json.dumps({'answer': dict(os.environ)})"
    app(library, f"import json, os, sys; print({dump}); sys.exit(os.environ['A_KEY'] if os.getpid() % 2 else 0)")
    done = library.evaluate_here("-n", "6", env={"A_KEY": KEY, "OPENAI_API_KEY": OTHER})
    everything = {str(path): raw for path, raw in library.tree().items() if raw}
    everything |= {"out": done.out.encode(), "err": done.err.encode()}
    assert any("[redacted]" in line.get("text", "") for line in answers(library))
    assert not [name for name, raw in everything.items() if KEY.encode() in raw or OTHER.encode() in raw]


def test_secret_of_ci_holds_the_variables_of_a_program() -> None:
    secret = {"PROGRAM_ENV": f"A_KEY={KEY}\nURL=x?a=b\nB_KEY={OTHER}\n"}
    assert values_of(["A_KEY", "URL"], secret, {"URL": "other"}) == {"A_KEY": KEY, "URL": "x?a=b"}


def test_missing_variable_is_named_before_a_call(library: Library) -> None:
    declare(library, RUN | {"env": ["A_KEY", "B_KEY", "C_KEY"], "setup": ["touch", "made"]})
    app(library)
    done = library.evaluate_here(env={"B_KEY": KEY})
    assert done.code == 2
    assert "skipping program: A_KEY and C_KEY is not set" in done.err
    assert "A_KEY and C_KEY not set" in library.evaluate_here("--dry-run", env={"B_KEY": KEY}).out
    assert not (library.component / "made").exists()


def test_setup_runs_once_without_keys_and_only_before_calls(library: Library) -> None:
    note = "import os; open('made', 'a').write(' '.join(sorted(os.environ)) + '\\n')"
    declare(library, RUN | {"setup": [sys.executable, "-c", note], "env": ["A_KEY"]})
    app(library)
    env = {"A_KEY": KEY, "OPENAI_API_KEY": OTHER}
    for command in (["lint"], ["evaluate", SKILL, "--dry-run"], ["cases"], ["doctor"]):
        library.call(*command, env=env)
        assert not (library.component / "made").exists()
    assert library.evaluate_here(env=env).code == 0
    assert (library.component / "made").read_text() == "HOME LC_CTYPE PATH TMPDIR\n"
    declare(library, RUN | {"setup": [sys.executable, "-c", "import sys; sys.exit('no wheel')"]}, "1.1.0")
    assert library.evaluate_here().refuses("exit code 1: no wheel")


def test_endpoint_is_called_with_body_and_headers(library: Library) -> None:
    with serve(Endpoint()) as server:
        body = {"q": "Read {{ document }}", "raw": "{{kinds}}", "n": [1, {"{{document}}": True}]}
        http = {"url": f"{server.url}/ask", "body": body, "answer": "/data/text/0", "headers": {"X-Key": "A_KEY"}}
        declare(library, {"http": http}, inputs=["document", "kinds"])
        for case_id in CASES:
            library.write(f"fixtures/{SKILL}/cases/{case_id}/inputs.json", {"kinds": ["{{document}}"]})
        done = library.evaluate_here(env={"A_KEY": KEY})
        assert done.code == 0, done.err
        assert len(server.received) == 6
        first = next(received for received in server.received if "alpha" in received.raw.decode())
        assert (first.method, first.path, first.headers["x-key"]) == ("POST", "/ask", KEY)
        assert first.body == {
            "q": "Read alpha is the title of a notice of 2024.\n",
            "raw": ["{{document}}"],
            "n": [1, {"{{document}}": True}],
        }
    (row,) = library.rows()
    assert row["accuracy"]["exact_match"]["mean"] == pytest.approx(1 / 3)


def test_program_is_ended_before_its_call_times_out(library: Library) -> None:
    times = []
    app(library)
    for program in ({"http": {"url": "http://127.0.0.1", "body": {}}}, RUN):
        declare(library, program | {"timeout_s": 3})
        component = load_component(library.root / "components", SKILL)
        times.append(with_program(read_configuration(library.root / ".evaluator"), component).settings.timeout_s)
    assert times == [3, 3 + MARGIN_S]


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ({}, "exactly one of `run` and `http` is required at program"),
        ({"run": ["python"], "watch": ["no*"]}, "no file matches no* of program.watch"),
        ({"http": {"url": "http://host", "body": {"a": "{{dokument}}"}}}, "is not an input of the prompt (did you"),
    ],
)
def test_invalid_program_is_refused_in_one_line(library: Library, program: dict[str, Any], complaint: str) -> None:
    declare(library, program)
    app(library)
    done = library.evaluate_here("--dry-run")
    assert done.refuses(complaint), done.err


def test_program_has_its_own_job_and_environment(library: Library) -> None:
    repository = GitRepository(library.root)
    declare(library, RUN | {"env": ["A_KEY"], "setup": ["touch", "made"]})
    app(library)
    library.write("components/other/prompt.md", "---\nname: other\nversion: 1.0.0\n---\nSay it.\n")
    library.write("fixtures/other/cases/a/document.md", "x")
    repository.commit()
    done = library.call("ci", "plan", "--format", "json", "--base", "0")
    assert done.code == 0, done.err
    entries = {entry["skill"]: entry for entry in done.json["runs"]}
    mine = entries[SKILL]
    assert (mine["environment"], mine["key_variable"]) == (f"eval-program-{SKILL}", "PROGRAM_ENV")
    assert (mine["model_id"], entries["other"]["model_id"]) == ("program", "recorded")
    assert not (library.component / "made").exists()


def test_options_that_need_a_prompt_are_refused_for_a_program(library: Library) -> None:
    declare(library, RUN)
    app(library)
    assert library.evaluate_here("--no-prompt").refuses("is a program")
    assert library.call("mutate", SKILL).refuses("is a program")
    assert library.evaluate_here("--batch").refuses("has no batch API")
    assert library.evaluate_here("--model", "recorded").refuses("unknown model 'recorded'")
    assert library.evaluate_here("--max-cost", "1").refuses("program")


def test_lint_requires_a_new_version_for_a_changed_program(library: Library) -> None:
    repository = GitRepository(library.root)
    library.write(".gitignore", "__pycache__/\nresults/\n")
    declare(library, {"run": [sys.executable, "app.py"], "watch": ["**", "../../shared/*.txt"]})
    app(library)
    library.write("shared/words.txt", "a")
    lint = ("lint", "--base", repository.commit())
    assert library.evaluate_here().code == 0
    assert library.call(*lint).code == 0, "its own record and leaderboard change nothing"
    library.write("shared/words.txt", "b")
    message = "the program, or a file that it watches, changed but the version did not"
    assert message in library.call(*lint).out
    repository.commit()
    assert message in library.call(*lint).out
