"""An answer is not paid for twice: `evaluate` goes on with what was left, and a PATCH takes the answers recorded."""

import threading
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest
from skill_evaluator import Library as PromptLibrary

from tests.support.chat_server import Asked, ChatServer, Reply, varied
from tests.support.git import GitRepository
from tests.support.library import SCHEMA, SKILL, Ended, Library, ended, journal, only_journal, read, wait_until

PROMPT = f"components/{SKILL}/prompt.md"
PRICE = {"price": {"input": 1000, "output": 1000}}  # of an answer: 40 + 20 tokens, 0.06 USD


def version(library: Library, to: str, text: str = "Extract title and year.") -> None:
    library.write(PROMPT, f"---\nname: {SKILL}\nversion: {to}\n---\n{text}\n")


def taken(library: Library) -> list[int | None]:
    """How many answers each recorded run took over, the newest first; None where none."""
    return [record["taken"]["answers"] if "taken" in record else None for record in library.records()]


def asked(server: ChatServer, ask: Callable[[], Ended], code: int = 0) -> int:
    """Count the requests of a command that ends like this."""
    before, done = server.requests, ask()
    assert done.code == code, done.err
    return server.requests - before


def test_killed_gone_on_with_and_bumped_as_a_patch_is_paid_for_once(served: Library, server: ChatServer) -> None:
    def stalling(request: Asked) -> Reply:
        return replace(varied(request), delay_s=60 if server.requests > 8 else 0.02)

    server.reply = stalling
    with served.start("-n", "6") as process:
        wait_until(lambda: len(only_journal(served)) >= 5 and server.requests > 8, 90)
        process.kill()
        ended(process)
    server.reply, before = varied, journal(served.run_folder())
    done = served.evaluate_here("-n", "6")
    assert (done.code, len(served.rows())) == (0, 1)
    assert f"{served.run_folder().name[:23]} was left unfinished, and goes on (--fresh asks anew)" in done.err
    assert journal(served.run_folder())[: len(before)] == before
    assert len(server.repeated) <= 3, "what was in flight"

    requests, (first,) = server.requests, served.rows()
    version(served, "1.0.1")
    done = served.evaluate_here("-n", "6", "--format", "markdown")
    assert (done.code, server.requests) == (0, requests)
    record = served.records()[0]
    told = {"run_ids": [first["run_id"]], "answers": 18, "cost_usd": record["taken"]["cost_usd"]}
    assert (record["skill_version"], record["taken"], record["beside"]) == ("1.0.1", told, None)
    assert f"18 of 18 answers are those of {first['run_id']}" in done.err
    assert f"18 of 18 answers are those of {first['run_id']}; this run counts as recorded" in done.out
    folders = [served.results / str(row["run_id"]) for row in served.rows()]
    assert journal(folders[0]) == sorted(journal(folders[1]), key=lambda line: (line["replicate"], line["case_id"]))
    assert read(folders[0] / "manifest.json")["taken"] == told
    assert "counts as recorded" in (folders[0] / "report.md").read_text()
    assert asked(server, lambda: served.evaluate_here("-n", "6")) == 18, "measured again, as nothing is left"


def test_a_chain_of_patches_names_all_whose_answers_it_has(served: Library, server: ChatServer) -> None:
    for patch in range(3):
        version(served, f"1.0.{patch}")
        assert served.evaluate_here().code == 0
    ids = [row["run_id"] for row in reversed(served.rows())]
    assert (server.requests, served.records()[0]["taken"]["run_ids"]) == (6, ids[:2])


@pytest.mark.parametrize(
    ("to", "words", "text", "requests"),
    [
        ("1.0.1", ("--fresh",), "Extract title and year.", 6),
        ("1.0.1", ("--seed", "7"), "Extract title and year.", 6),
        ("1.0.1", ("--draft",), "Extract title and year.", 6),
        ("1.0.1", ("--bare",), "Extract title and year.", 6),
        ("1.0.1", (), "Extract the title and the year.", 6),
        ("1.1.0", (), "Extract title and year.", 6),
        ("1.0.0", (), "Extract title and year.", 6),
        ("1.0.1", ("--seed", "0"), "Extract title and year.", 0),
        ("1.0.1", ("-n", "1"), "Extract title and year.", 0),
        ("1.0.1", ("-n", "3"), "Extract title and year.", 3),
        ("1.0.1", ("--case", "alpha", "-n", "4"), "Extract title and year.", 2),
    ],
)
def test_a_patch_with_equal_digests_alone_takes_answers(
    to: str, words: tuple[str, ...], text: str, requests: int, served: Library, server: ChatServer
) -> None:
    assert served.evaluate_here().code == 0
    version(served, to, text)
    assert asked(server, lambda: served.evaluate_here(*words)) == requests


CHANGES: Mapping[str, tuple[Callable[[Library, str], object], int]] = {
    "a setting": (lambda of, url: of.served_by(url, params={"temperature": 0.5}), 6),
    "the schema": (lambda of, _: of.write(f"components/{SKILL}/schema.json", {**SCHEMA, "title": "Notice"}), 6),
    "a truth": (lambda of, _: of.case("beta", {"title": "beta", "year": 2025}), 2),
    "a document": (lambda of, _: of.write(f"fixtures/{SKILL}/cases/beta/document.md", "beta is new.\n"), 2),
    "a new case": (lambda of, _: of.case("delta"), 2),
    "a case that is gone": (lambda of, _: (of.root / f"fixtures/{SKILL}/cases/beta").rename(of.root / "beta"), 0),
    "a price": (lambda of, url: of.served_by(url, **PRICE), 0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("left", [True, False], ids=["unfinished", "patched"])
def test_only_answers_to_equal_questions_are_taken(
    change: str, *, left: bool, served: Library, server: ChatServer
) -> None:
    server.reply = lambda one: Reply(status=500) if left and one.case_id == "gamma" else varied(one)
    assert served.evaluate_here().code == (4 if left else 0)
    server.reply = varied
    apply, requests = CHANGES[change]
    apply(served, server.url)
    version(served, "1.0.1")
    more = 2 if left and requests < 6 else 0
    assert asked(server, served.evaluate_here) == requests + more
    assert taken(served)[0] == (None if requests == 6 else 6 - more - (0 if change in ("a new case", "a price") else 2))


@pytest.mark.parametrize("replicates", [1, 3])
def test_fewer_or_more_replicates_take_what_is_there_and_ask_the_rest(
    replicates: int, served: Library, server: ChatServer
) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    assert asked(server, lambda: served.evaluate_here("-n", str(replicates))) == max(0, 3 * replicates - 4)
    assert (taken(served), server.repeated) == ([min(4, 3 * replicates)], [])
    assert asked(server, lambda: served.evaluate_here("-n", str(replicates))) == 3 * replicates, "measured since"


def test_a_torn_journal_gives_its_whole_lines(served: Library, server: ChatServer) -> None:
    assert served.evaluate_here().code == 0
    path = served.run_folder() / "replicates.jsonl"
    (served.run_folder() / "record.json").unlink()
    served.leaderboard.unlink()
    for record in (served.component / "evals/records").iterdir():
        record.unlink()
    path.write_bytes(path.read_bytes()[:-9])
    assert asked(server, lambda: served.evaluate_here("-n", "3")) == 4
    assert taken(served) == [5]


def test_answers_edited_since_they_were_recorded_are_not_taken(served: Library, server: ChatServer) -> None:
    assert served.evaluate_here().code == 0
    path = served.run_folder() / "replicates.jsonl"
    path.write_text(path.read_text().replace("1999", "2024"))
    version(served, "1.0.1")
    assert asked(server, served.evaluate_here) == 6


def test_a_manifest_that_cannot_be_read_stops_nobody(served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    (served.run_folder() / "manifest.json").write_text("{")
    assert asked(server, served.evaluate_here) == 6


def test_another_served_model_in_the_rest_is_said_and_then_asked_anew(served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    server.reply = lambda one: replace(varied(one), served_model="served-2")
    mixed = served.evaluate_here()
    assert "no version is compared with this run" in mixed.err + mixed.out
    assert server.requests == 6
    assert asked(server, served.evaluate_here) == 6
    assert served.records()[0]["served_model"] == "served-2"


@pytest.mark.parametrize("first", [("try", SKILL), ("evaluate", SKILL, "--draft"), ("evaluate", SKILL, "--failing")])
def test_nothing_is_taken_of_drafts_and_of_cases_asked_again(
    first: tuple[str, ...], served: Library, server: ChatServer
) -> None:
    repository = GitRepository(served.root)
    if "--failing" in first:
        repository.commit()
        server.reply = lambda one: Reply(text="{}")
        assert served.evaluate_here().code == 0
        repository.commit("record")
        version(served, "1.1.0", "Extract both.")
        assert served.evaluate_here().code in (0, 3)
    assert served.call(*first, "--max-calls", "4").code == 4
    assert asked(server, served.evaluate_here) == 6
    assert taken(served)[0] is None
    assert asked(server, lambda: served.call(*first[:2], "--draft"[: 9 * (first[0] == "evaluate")] or "-n2")) == 6


def test_a_run_beside_its_baseline_goes_on_as_that_or_not_at_all(served: Library, server: ChatServer) -> None:
    repository = GitRepository(served.root)
    repository.commit()
    assert served.evaluate_here().code == 0
    repository.commit("record")
    version(served, "1.1.0", "Extract both.")
    served.settings(policy={"design": "beside"})
    assert served.evaluate_here("--max-calls", "4").code == 4
    assert asked(server, lambda: served.evaluate_here("-n", "4", "--max-calls", "2"), code=4) == 2
    done = served.evaluate_here()
    assert ("1.5 × the calls" in done.err, "goes on" in done.err, done.code) == (False, True, 0)
    (record, _) = served.records()
    assert (taken(served), bool(record["beside"])) == ([None, None], True)
    assert server.requests == 6 + 9 + 2

    version(served, "1.1.1", "Extract both.")
    patched = served.evaluate_here()
    assert (patched.code, server.requests, taken(served)[0]) == (0, 6 + 9 + 2, 6)
    assert served.records()[0]["beside"] is None
    assert "× the calls" not in patched.err
    version(served, "1.1.2", "Extract both.")
    assert asked(server, lambda: served.evaluate_here("--with-baseline")) == 9


def test_models_that_are_done_are_not_asked_again_while_another_is_not(served: Library, server: ChatServer) -> None:
    entry = {"provider": "openai", "base_url": server.url}
    served.models({"id": "one", **entry}, {"id": "two", **entry})
    server.reply = lambda one: Reply(status=400) if one.body["model"] == "two" else varied(one)
    assert served.evaluate_here().code == 4
    server.reply = varied
    done = served.evaluate_here()
    assert "-one is recorded and complete" in done.err
    assert (done.code, [row["model_id"] for row in served.rows()], server.times.total() <= 6 + 12) == (
        0,
        ["two", "one"],
        True,
    )
    assert asked(server, served.evaluate_here) == 12


def test_a_run_under_way_is_left_alone(served: Library, server: ChatServer) -> None:
    go_on = threading.Event()

    def waiting(one: Asked) -> Reply:
        if server.requests > 3 and not go_on.is_set() and one.times == 1:
            go_on.wait(60)
        return varied(one)

    server.reply = waiting
    with served.start() as process:
        wait_until(lambda: len(only_journal(served)) >= 2, 90)
        server.reply = varied
        second = served.evaluate_here()
        go_on.set()
        assert ended(process).code == 0
    assert (second.code, "goes on" in second.err, len(served.rows()), taken(served)) == (0, False, 2, [None, None])


def test_two_that_go_on_at_once_pay_once_or_one_is_refused(served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "2").code == 4
    server.reply = lambda one: replace(varied(one), delay_s=0.3)
    with served.start() as first, served.start() as second:
        codes = sorted((ended(first).code, ended(second).code))
    assert codes in ([0, 0], [0, 2])
    assert len(journal(served.run_folder())) == 6 if codes == [0, 2] else True


def test_what_was_taken_counts_against_no_cap(served: Library, server: ChatServer) -> None:
    served.served_by(server.url, **PRICE)
    assert served.evaluate_here().code == 0
    version(served, "1.0.1")
    assert served.evaluate_here("-n", "3", "--max-cost", "100").code == 0
    record = served.records()[0]
    assert (round(record["cost_usd"], 2), round(record["taken"]["cost_usd"], 2)) == (0.54, 0.36)


def test_fresh_and_resume_exclude_each_other(served: Library) -> None:
    assert served.evaluate_here("--resume", "--fresh").refuses("cannot be combined with --dry-run or --fresh")


def test_a_kill_while_answers_are_taken_leaves_no_run(served: Library, server: ChatServer, tmp_path: Path) -> None:
    assert served.evaluate_here().code == 0
    torn = served.results / "20991231T000000Z-abcdef-x"
    torn.mkdir()
    (torn / "replicates.jsonl").write_bytes(
        (served.results / served.rows()[0]["run_id"] / "replicates.jsonl").read_bytes()
    )
    version(served, "1.0.1")
    assert asked(server, served.evaluate_here) == 0


def test_a_dry_run_takes_nothing_however_it_is_asked_for(served: Library, server: ChatServer) -> None:
    assert served.evaluate_here("--max-calls", "4").code == 4
    version(served, "1.0.1")
    before = served.tree()
    with chdir(served.root):
        assert PromptLibrary("components").dry_run(SKILL).estimates[0].calls == 6
    assert served.evaluate_here("--dry-run").code == 0
    assert (served.tree(), server.requests) == (before, 4)
