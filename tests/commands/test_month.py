"""The cap on a month: what its records cost and what is to come, held before any call, by `evaluate` and by `plan`."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.records.record import PARTIAL, write_record
from skill_evaluator.records.summaries import Tokens

from tests.support.asked_judges import JudgingLibrary
from tests.support.asked_judges import answer as scores
from tests.support.audits import BENCHMARKS, AuditLibrary
from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.git import GitRepository
from tests.support.library import SKILL, Library, read
from tests.support.records import a_record

NOW = datetime.now(UTC)
LAST_MONTH = NOW.replace(day=1) - timedelta(days=1)
PRICE = {"input": 1000.0, "output": 5000.0}  # a call costs $0.14 here, and $1.26 at most
PARAMS = {"max_output_tokens": 50}


@pytest.fixture
def capped(served: Library, server: ChatServer) -> Library:
    served.served_by(server.url, price=PRICE, params=PARAMS)
    _cap(served, 20.0)
    return served


def _cap(library: Library, usd: float) -> None:
    library.settings(budget={"month_usd": usd})


def _spend(
    library: Library, cost: float | None, name: str = "one", when: datetime = NOW, skill: str = SKILL, **changed: Any
) -> None:
    run_id = f"{when:%Y%m%dT%H%M%SZ}-000000-{name}"
    record = a_record({"alpha": [1.0]}, run_id=run_id.partition(PARTIAL)[0], cost_usd=cost, **changed)
    record = record.model_copy(update={"timestamp": f"{when:%Y-%m-%dT%H:%M:%SZ}"})
    path = library.root / "components" / skill / "evals" / "records" / f"{run_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_record(path, record)


def _planned(library: Library, *words: str) -> Any:
    done = library.call("plan", SKILL, *words)
    assert done.code == 0, done.err
    return read(library.root / "plan.json")["month"]


def test_evaluate_is_refused_before_any_call_with_figures_and_advice(capped: Library, server: ChatServer) -> None:
    _spend(capped, 18.5)
    refused = capped.evaluate_here()
    assert (refused.code, server.requests) == (2, 0)
    assert f"1 run of {NOW:%Y-%m} cost $18.50 of $20.00, and this may cost $" in refused.err
    assert "give --max-cost 1.50, ask less, or raise budget.month_usd in settings.yaml" in refused.err
    assert capped.evaluate_here("--max-cost", "1.5").code == 4  # to which it keeps
    assert server.requests > 0
    again = capped.evaluate_here("--max-cost", "1.5")
    assert (again.code, "2 runs of" in again.err) == (2, True)  # since some of that was spent, too


def test_what_other_components_and_runs_that_stopped_cost_counts_and_last_month_does_not(capped: Library) -> None:
    _spend(capped, 100.0, when=LAST_MONTH)
    _spend(capped, 5.0, skill="another")
    assert capped.evaluate_here("--max-cost", "0.9", "--replicates", "10").code == 4  # a record in its run folder alone
    cost = read(capped.run_folder() / "record.json")["cost_usd"]
    GitRepository(capped.root).commit()
    month = _planned(capped)
    assert (month["runs"], month["spent_usd"], month["unknown"]) == (2, pytest.approx(5.0 + cost), [])


def test_a_run_in_shards_that_came_in_parts_counts_once_and_so_do_answers_taken(capped: Library) -> None:
    _spend(capped, 2.0, f"stopped{PARTIAL}3")
    _spend(capped, 3.0, "stopped")
    _spend(capped, 1.0, "early")
    _spend(
        capped, 4.0, "whole", taken={"run_ids": [f"{NOW:%Y%m%dT%H%M%SZ}-000000-early"], "answers": 1, "cost_usd": 1.0}
    )
    for part in ("1of2", "2of2"):
        _spend(capped, 0.5, f"joined-{part}", shard=part.replace("of", "/"))
        _spend(capped, 0.25, f"apart-{part}", shard=part.replace("of", "/"))
    _spend(capped, 1.0, "joined")
    GitRepository(capped.root).commit()
    month = _planned(capped)
    assert (month["runs"], month["spent_usd"]) == (6, 8.5)


def test_runs_of_unknown_cost_are_said_and_those_of_other_tools_are_not_counted(capped: Library) -> None:
    _spend(capped, None, "unpriced")
    _spend(capped, 50.0, "elsewhere", settings=None)
    broken = capped.component / "evals" / "records" / f"{NOW:%Y%m%d}T000000Z-000000-broken.json"
    broken.write_text("{")
    ended = capped.evaluate_here()
    assert ended.code == 0, ended.err
    assert f"2 runs of {NOW:%Y-%m} cost $0.00 of $20.00; 2 runs of unknown cost not in it: {broken.stem}" in ended.err
    assert "2 runs of unknown cost not in it" in capped.evaluate_here("--dry-run").out


def test_what_another_name_answered_counts_by_the_price_of_what_was_asked(capped: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=notice(asked.case_id), served_model="of-the-deployment")
    assert capped.evaluate_here().code == 0
    (record,) = (read(path) for path in (capped.component / "evals" / "records").glob("*.json"))
    assert (record["cost_usd"], record["tokens"]["input"] > 0) == (None, True)
    tokens = record["tokens"]
    GitRepository(capped.root).commit()
    spent = tokens["input"] * 1000 / 1e6 + tokens["output"] * 5000 / 1e6
    assert _planned(capped)["spent_usd"] == pytest.approx(spent)
    assert _planned(capped)["unknown"] == []
    paid = {"model_id": "served", "tokens": Tokens(input=1000, output=1000)}
    _spend(capped, None, "lost", reasons={"lost_by_provider": 1}, **paid)  # of those that a batch lost nothing is known
    month = _planned(capped)
    assert (month["spent_usd"], len(month["unknown"])) == (pytest.approx(spent + 6.0), 1)


def test_a_plan_is_refused_by_what_is_recorded_on_the_branch_of_records(capped: Library) -> None:
    repository = GitRepository(capped.root)
    repository.commit()
    repository.git("checkout", "-q", "-b", "evaluation-records")
    _spend(capped, 18.5)
    repository.commit()
    repository.git("checkout", "-q", "main")
    assert _planned(capped)["spent_usd"] == 0
    (capped.root / "plan.json").unlink()
    refused = capped.call("plan", SKILL, "--recorded", "evaluation-records")
    assert (refused.code, (capped.root / "plan.json").exists()) == (2, False)
    assert "cost $18.50 of $20.00, and this may cost $" in refused.err
    assert _planned(capped, "--recorded", "evaluation-records", "--max-cost", "1.5")["spent_usd"] == 18.5
    assert _planned(capped, "--recorded", "evaluation-records", "--dry-run")["spent_usd"] == 18.5


def test_what_has_no_price_is_refused_and_what_is_free_is_not(served: Library, server: ChatServer) -> None:
    _cap(served, 1.0)
    _spend(served, 5.0)
    refused = served.evaluate_here()
    assert (refused.code, server.requests) == (2, 0)
    assert "budget.month_usd of settings.yaml cannot be kept: no price is known for 'served'" in refused.err
    served.served_by(server.url, price={"input": 0, "output": 0})
    assert served.evaluate_here().code == 0


def test_to_resume_only_what_is_left_must_fit(capped: Library, server: ChatServer) -> None:
    assert capped.evaluate_here("--max-calls", "5").code == 4
    spent = read(capped.run_folder() / "record.json")["cost_usd"]
    _cap(capped, spent + 1.3)  # one call is left, of $1.26 at most
    assert capped.evaluate_here("--resume").code == 0, "what is paid is not counted again"
    assert server.requests == 6


def test_a_run_that_was_killed_counts_by_its_answers(capped: Library) -> None:
    assert capped.evaluate_here("--max-calls", "5").code == 4
    record = capped.run_folder() / "record.json"
    spent = read(record)["cost_usd"]
    record.unlink()
    GitRepository(capped.root).commit()
    assert (_planned(capped)["runs"], _planned(capped)["spent_usd"]) == (1, pytest.approx(spent))


def test_what_an_audit_costs_counts_and_it_stops_where_the_cap_is_reached(tmp_path: Path, server: ChatServer) -> None:
    library = AuditLibrary(tmp_path)
    library.served_by(server.url, price=PRICE, params=PARAMS)
    _cap(library, 2.0)
    refused = library.call("audit", "plan", *BENCHMARKS)
    assert (refused.code, "and this may cost $" in refused.err) == (2, True), refused
    assert library.audit().code == 4
    asked = server.requests
    assert 0 < asked < 15
    first = library.audit_folder().name
    assert library.audit().code == 4
    assert server.requests == asked, "another audit finds nothing left"
    _cap(library, 4.0)
    assert library.audit("--resume", first).code == 4
    assert asked < server.requests < 29, "what is paid is not counted again"


def test_what_judges_cost_counts_and_they_are_refused_where_the_cap_is_reached(
    tmp_path: Path, server: ChatServer
) -> None:
    library = JudgingLibrary(tmp_path)
    library.items({"id": "a", "input": "alpha is the title.", "output": "a sum"})
    library.served_by(server.url, price=PRICE, params={"max_output_tokens": 50})
    server.reply = lambda asked: Reply(text=scores())
    _cap(library, 100.0)
    assert library.judge("score", "--judge", "served").code in (0, 4)
    asked = server.requests
    _cap(library, 0.14 * asked + 0.001)
    refused = library.judge("score", "--judge", "served")
    assert (refused.code, server.requests) == (2, asked)
    assert f"1 run of {NOW:%Y-%m} cost ${0.14 * asked:.2f} of" in refused.err


def test_the_dry_run_says_that_it_would_be_refused(capped: Library) -> None:
    assert f"0 runs of {NOW:%Y-%m} cost $0.00 of $20.00" in capped.evaluate_here("--dry-run").out
    _spend(capped, 19.999)
    ended = capped.evaluate_here("--dry-run")
    assert ended.code == 0
    assert "it would be refused: 1 run of" in ended.out
    assert "wait for the next month, or raise" in ended.out
