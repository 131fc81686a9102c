"""`switch`: rows of components, models that can no longer be called, and exit codes."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.chat_server import Asked, ChatServer, Reply, notice, varied
from tests.support.git import GitRepository
from tests.support.library import REPLAY, SKILL, Library, invoked

GONE = Reply(status=410, text="this model was retired")
PRICE = {"input": 1.0, "output": 2.0}


def worse(asked: Asked) -> Reply:
    """The model `new` loses the year."""
    return Reply(text=notice(asked.case_id, 1999)) if asked.body["model"] == "new" else varied(asked)


def without_old(asked: Asked) -> Reply:
    return GONE if asked.body["model"] == "old" else varied(asked)


@pytest.fixture
def two(library: Library, server: ChatServer) -> Library:
    """A library of two models behind one server."""
    entries = [{"id": name, "provider": "openai", "base_url": server.url, "price": PRICE} for name in ("old", "new")]
    library.models(*entries)
    return library


def test_switch_reports_a_worse_model_and_records_both(two: Library, server: ChatServer) -> None:
    server.reply = worse
    for number in range(6):
        two.case(f"case-{number}")
    ended = two.call("switch", "old", "new", "-n", "4")
    assert ended.code == 3
    row = next(line for line in ended.out.splitlines() if line.startswith(SKILL))
    assert row.split()[1:6] == ["▼", "regressed", "0.833", "→", "0.500"]
    *_, answer, lost, sure, ship, following = ended.out.splitlines()
    assert answer == "may the library switch from old to new? no, notice-extraction regressed"
    assert lost == "notice-extraction: lost: field year (0.667 → 0.000)"
    assert sure.startswith(
        "how sure: notice-extraction, field_level_f1 -0.333 on 9 cases (95 % confidence interval -0."
    )
    assert ship.startswith("to ship: notice-extraction 1.0.0 with old (")
    assert following == "next: compare the two models: `skill-evaluator compare notice-extraction --models old new`"
    assert {row["model_id"]: row["replicates"] for row in two.rows()} == {"old": 4, "new": 4}
    assert two.call("compare", SKILL, "--models", "old", "new", "--format", "json").json["verdict"] == "regressed"
    back = two.call("switch", "new", "old", "--format", "json")
    assert back.code == 0
    assert back.json["components"][0]["verdict"] == "improved"
    assert back.json["conclusion"][0] == "may the library switch from new to old? yes"


def test_switch_prints_its_result_if_settings_break_or_a_report_fails(two: Library, server: ChatServer) -> None:
    invocation = "20260301T080000Z-abcdef"
    blocked, written = (two.results / f"{invocation}-{SKILL}-{model}" / "report.md" for model in ("old", "new"))
    blocked.mkdir(parents=True)

    def breaking(asked: Asked) -> Reply:
        two.write(".evaluator/settings.yaml", "policy: [")
        return varied(asked)

    server.reply = breaking
    with invoked(invocation):
        ended = two.call("switch", "old", "new", "--format", "json")
    assert (ended.code, ended.json["components"][0]["verdict"] is None, written.is_file()) == (0, False, True)
    assert f"warning: {SKILL}: cannot write {blocked.relative_to(two.root)}: " in ended.err


def test_switch_dry_run_calls_and_writes_nothing(two: Library, server: ChatServer) -> None:
    two.write("components/broken/prompt.md", "---\nname: broken\n---\nno version\n")
    before = two.tree()
    ended = two.call("switch", "old", "new", "--dry-run", "--format", "json", "-n", "5")
    assert (ended.code, server.requests, two.tree()) == (4, 0, before)
    broken, row = ended.json["components"]
    assert (broken["calls"], row["calls"]) == (0, 30)
    assert "version" in broken["remark"]
    assert row["cost_at_most_usd"] == pytest.approx(
        sum(
            one["cost_upper_usd"]
            for one in two.evaluate_here("--dry-run", "-n", "5", "--format", "json").json["models"]
        )
    )


def test_switch_reads_components_under_the_limits_of_settings(two: Library) -> None:
    two.write(".evaluator/settings.yaml", "limits: {follow_links: true}")
    prompt = two.root / "components" / SKILL / "prompt.md"
    prompt.rename(two.root / "shared.md")
    prompt.symlink_to(two.root / "shared.md")
    ended = two.call("switch", "old", "new", "--dry-run", "--format", "json", "-n", "5")
    assert (ended.code, ended.json["components"][0]["remark"]) == (0, "")


@pytest.mark.parametrize("entry", [None, {**REPLAY, "id": "old", "retires": "2026-01-31"}])
def test_removed_or_retired_model_is_compared_by_its_record(
    two: Library, server: ChatServer, entry: dict[str, object] | None
) -> None:
    assert two.evaluate_here("--model", "old").code == 0
    new = {"id": "new", "provider": "openai", "base_url": server.url, "price": PRICE}
    two.models(new, *([] if entry is None else [entry]))
    (row,) = two.call("switch", "old", "new", "--format", "json").json["components"]
    assert row["remark"].startswith("old can no longer be called; compared with its run")
    assert (row["calls"], row["verdict"] is not None) == (6, True)


def test_switch_names_another_served_model(two: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(text=notice(asked.case_id), served_model="new")
    ended = two.call("switch", "old", "new", "--format", "json")
    (row,) = ended.json["components"]
    assert (ended.code, row["verdict"]) == (4, "incomparable")
    assert row["remark"].startswith("new answered, but old was requested")


def test_switch_refuses_unknown_and_equal_models(two: Library) -> None:
    assert two.call("switch", "old", "nwe").refuses("unknown model 'nwe' (did you mean 'new'?)")
    assert two.call("switch", "old", "old").refuses("it is the old model")
    two.models({"id": "new", "provider": "openai"})
    assert two.call("switch", "old", "new").refuses("OPENAI_API_KEY is not set")
    two.models({"id": "new", "provider": "openai", "base_url": "http://127.0.0.1:9"})
    empty = two.call("switch", "old", "new", "--components", "nowhere")
    assert empty.refuses("nowhere has no component: `skill-evaluator init` creates one")


def test_retired_model_stops_its_run_after_the_calls_in_flight(two: Library, server: ChatServer) -> None:
    server.reply = without_old
    ended = two.evaluate_here("--model", "old", "-n", "9", "--concurrency", "4")
    assert (ended.code, two.rows()) == (4, [])
    assert 1 <= server.requests <= 4
    assert "model_retired" in ended.out
    assert "the model is retired: `skill-evaluator switch old NEW` compares it with another" in ended.out
    assert "--resume" not in ended.err


def test_unknown_model_that_answered_before_is_retired(two: Library, server: ChatServer) -> None:
    server.reply = lambda asked: Reply(status=404, text="no such model")
    assert "unknown_model" in two.evaluate_here("--model", "old").out
    server.reply = varied
    assert two.evaluate_here("--model", "old").code == 0
    server.reply = lambda asked: Reply(status=404, text="no such model")
    assert "model_retired" in two.evaluate_here("--model", "old").out
    two.models({"id": "old", "provider": "openai", "base_url": f"{server.url}/elsewhere"})
    assert "unknown_model" in two.evaluate_here("--model", "old").out  # perhaps the address is wrong


def test_plan_names_models_that_retire_within_sixty_days(library: Library) -> None:
    today = datetime.now(UTC).date()
    days = {"gone": -1, "soon": 60, "later": 62}  # still later if the day changes during the test
    retires = {name: str(today + timedelta(days=ahead)) for name, ahead in days.items()}
    library.models(*({**REPLAY, "id": name, "retires": day} for name, day in retires.items()))
    GitRepository(library.root).commit()
    text = " ".join(library.call("ci", "plan").out.split())
    assert f"gone was switched off on {retires['gone']}: `skill-evaluator switch gone NEW`" in text
    assert f"soon is switched off on {retires['soon']}" in text
    assert not re.search("later (is|was) switched off", text)
