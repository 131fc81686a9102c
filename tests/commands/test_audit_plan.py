"""`audit plan` and `audit run --dry-run`: how large an audit is and what it may cost, and its jobs for CI."""

import json
from pathlib import Path

import pytest

from tests.support.audits import BENCHMARKS, CELLS, SECOND, AuditLibrary
from tests.support.chat_server import ChatServer
from tests.support.hostile_files import deep_yaml
from tests.support.library import SKILL, Ended, read

PRICE = {"input": 1, "output": 2, "cache_read": 1, "cache_write": 1}
PRICED = {"provider": "openai", "params": {"max_output_tokens": 100}, "price": PRICE}
CALLS = len(CELLS) * 2
FEW = [
    "2 models: below 4 quartiles are hardly more than an order",
    "3 scenarios: below 6 a fluctuation is known only roughly",
    f"2 questions of '{SECOND}': below 50 single questions weigh much",
    f"1 case of '{SECOND}' left out: no ground truth",
]


@pytest.fixture
def priced(tmp_path: Path) -> AuditLibrary:
    library = AuditLibrary(tmp_path)
    library.models({"id": "one", **PRICED}, {"id": "two", **PRICED, "provider": "anthropic"})
    return library


def plan(library: AuditLibrary, *arguments: str, env: dict[str, str] | None = None) -> Ended:
    return library.call("audit", "plan", *BENCHMARKS, *arguments, env=env)


def test_a_dry_run_says_the_size_of_the_cube_and_writes_nothing(priced: AuditLibrary) -> None:
    before = priced.tree()
    done = priced.audit("--dry-run")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "2 models × 3 scenarios × 5 questions of 2 benchmarks × 2 replicates = 60 calls."
    assert lines[-1] == "dry run: no call was made, nothing was written."
    assert done.err.splitlines() == [f"warning: {one}" for one in FEW]
    assert priced.tree() == before
    found = priced.audit("--dry-run", "--format", "json").json
    assert found["doubts"] == FEW
    assert [(one["model_id"], one["calls"], one["note"]) for one in found["models"]] == [
        ("one", CALLS, "OPENAI_API_KEY not set"),
        ("two", CALLS, "ANTHROPIC_API_KEY not set"),
    ]
    assert found["total"]["calls"] == 60
    assert found["total"]["output_tokens_upper"] == 60 * 100
    assert found["total"]["cost_upper_usd"] == pytest.approx(sum(one["cost_upper_usd"] for one in found["models"]))
    part = priced.audit("--dry-run", "--format", "json", "--shard", "1/2", "--questions", "1").json
    assert [one["calls"] for one in part["models"]] == [6, 6]
    page = priced.audit("--dry-run", "--format", "markdown").out
    assert f"| `{SECOND}` | 1.0.0 | field_level_f1 | 1 | 2 | 2 |" in page
    assert page.count("\n- ") == len(FEW)


def test_a_plan_has_a_job_a_model_and_what_each_may_spend(priced: AuditLibrary) -> None:
    github = {name: str(priced.root / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = plan(priced, "--max-cost", "0.01", "--reason", "a <b>look", "--platform", "github", env=github)
    assert done.code == 0
    made = read(priced.root / "audit-plan.json")
    assert [(job["id"], job["calls"], job["shard"], job["max_cost_usd"]) for job in made["jobs"]] == [
        ("audit@one", CALLS, None, 0.005),
        ("audit@two", CALLS, None, 0.005),
    ]
    assert done.out.splitlines()[-1] == "2 jobs, capped at $0.01; no call was made."
    outputs = (priced.root / "GITHUB_OUTPUT").read_text()
    legs = json.loads(outputs.partition("legs=")[2].splitlines()[0])
    assert legs["rest"]["include"][1] == {
        "id": "audit@two",
        "model": "two",
        "provider": "anthropic",
        "shard": "",
        "environment": "eval-anthropic",
        "key_variable": "ANTHROPIC_API_KEY",
        "max_cost": "0.005000",
        "limits": "",
        "lock": "requirements-leg-lock.txt",
    }
    assert "Reason: `a <b>look`" in (priced.root / "GITHUB_STEP_SUMMARY").read_text()


def test_many_calls_are_cut_into_shards_of_whole_questions(priced: AuditLibrary) -> None:
    priced.settings(jobs={"max_calls": 12, "max_jobs": 6})
    assert plan(priced).code == 0
    jobs = read(priced.root / "audit-plan.json")["jobs"]
    assert [(job["id"], job["calls"]) for job in jobs[:3]] == [
        ("audit@one@1of3", 12),
        ("audit@one@2of3", 12),
        ("audit@one@3of3", 6),
    ]
    priced.settings(jobs={"max_calls": 12, "max_jobs": 1})
    refused = plan(priced)
    assert (refused.code, "2 models are more than the 1 jobs a run may have" in refused.err) == (2, True)


def test_the_jobs_of_a_plan_make_its_calls_and_again_none(tmp_path: Path, server: ChatServer) -> None:
    library = AuditLibrary(tmp_path)
    library.served_by(server.url, price={"input": 1, "output": 2})
    library.settings(jobs={"max_calls": 20})
    assert plan(library, "--max-cost", "1000").code == 0
    job = ("audit", "run", "--plan", "audit-plan.json", "--model", "served", "--audits", "kept")
    for again in range(2):
        for index in (1, 2):
            assert library.call(*job, "--shard", f"{index}/2").code == 0, again
    assert (server.requests, server.repeated) == (CALLS, [])
    (folder,) = (library.root / "kept").iterdir()
    assert read(folder / "audit.json") == read(library.root / "audit-plan.json")["audit"]
    refused = library.call(*job, "--shard", "1/5")
    assert refused.refuses("--shard 1/5 is not a shard of the planned audit, which has 1/2, 2/2")
    assert "goes on" not in library.call(*job, "--seed", "3").out
    assert library.call(*job, "--seed", "3").code == 2


def test_a_jobs_part_of_the_cap_is_kept(tmp_path: Path, server: ChatServer) -> None:
    library = AuditLibrary(tmp_path)
    library.served_by(server.url, price={"input": 0, "output": 1_000_000}, params={"max_output_tokens": 20})
    assert plan(library, "--max-cost", "60").code == 0
    done = library.call("audit", "run", "--plan", "audit-plan.json", "--concurrency", "1")
    assert done.code == 4
    assert server.requests == 3
    assert "served stopped: max_cost" in done.out
    again = library.call("audit", "run", "--plan", "audit-plan.json", "--concurrency", "1")
    assert (again.code, server.requests) == (4, 3), "what an earlier attempt took counts"
    more = library.call("audit", "run", "--resume", "--max-cost", "80", "--concurrency", "1")
    assert (more.code, server.requests) == (4, 4)


def test_a_cap_needs_a_price_and_choice_components_are_the_default(priced: AuditLibrary) -> None:
    priced.models({"id": "unpriced", "provider": "openai", "base_url": "http://127.0.0.1:9/v1"})
    refused = plan(priced, "--max-cost", "1")
    assert (refused.code, "no price is known for 'unpriced'" in refused.err) == (2, True)
    assert priced.call("audit", "plan", "--benchmark", SKILL).code == 0
    assert "unknown" in priced.call("audit", "plan", "--benchmark", SKILL).out


def test_a_component_that_cannot_be_read_is_left_out_with_a_warning(tmp_path: Path) -> None:
    library = AuditLibrary(tmp_path)
    question = {"id": "a", "question": "Which?", "options": ["x", "y"], "answer": "A"}
    for name, rest in (("good", ""), ("broken", deep_yaml())):
        library.write(f"components/{name}/prompt.md", f"---\nversion: 1.0.0\noutput: choice\n{rest}---\nAnswer.\n")
        library.lines(f"fixtures/{name}/questions.jsonl", question)
    planned = library.call("audit", "plan")
    assert planned.code == 0, planned
    assert [one["name"] for one in read(tmp_path / "audit-plan.json")["audit"]["benchmarks"]] == ["good"]
    (warning,) = [line for line in planned.err.splitlines() if "left out of the audit" in line]
    assert warning.startswith("warning: left out of the audit: components/broken/prompt.md:4:53: broken YAML: nested")
