"""The served model: a verdict compares outputs of one model, whatever model was requested."""

import pytest

from tests.support.chat_server import ChatServer, Reply, notice
from tests.support.git import GitRepository
from tests.support.library import SKILL, Ended, Library

CASES, REPLICATES = 8, 3
CALLS = CASES * REPLICATES
ANSWERED = "another model answered"


class Vendor:
    """Answers rightly under the name of a served model."""

    def __init__(self, server: ChatServer) -> None:
        self.server = server
        server.reply = lambda asked: Reply(text=notice(asked.case_id), served_model=self.served_model)
        self.served_model = "served"

    def serve(self, name: str) -> None:
        self.server.forget()
        self.served_model = name


@pytest.fixture
def vendor(library: Library, server: ChatServer) -> Vendor:
    """A library behind a server, which is asked one call at a time."""
    for number in range(CASES - 3):
        library.case(f"case-{number}")
    library.settings(replicates=REPLICATES, concurrency=1)
    library.served_by(server.url)
    return Vendor(server)


def evaluate(library: Library, version: str, *words: str) -> Ended:
    prompt = f"---\nname: {SKILL}\nversion: {version}\n---\nExtract title and year, {version}.\n"
    library.write(f"components/{SKILL}/prompt.md", prompt)
    return library.evaluate_here(*words)


def ending(done: Ended) -> str:
    """The last three lines, each a line of its own whatever the width."""
    return " ".join(done.out.split())[-900:]


def test_runs_of_two_served_models_are_incomparable(library: Library, vendor: Vendor) -> None:
    vendor.serve("served")
    first = evaluate(library, "1.0.0")
    assert (first.code, "requested" in first.err) == (0, False)
    vendor.serve("other")
    library.settings(replicates=REPLICATES, policy={"fail_on": []})  # it says nothing of what answered
    done = evaluate(library, "1.1.0")
    assert done.code == 4
    assert f"≠ {SKILL} 1.1.0: incomparable with 1.0.0: {ANSWERED}" in done.out
    assert f"not comparable: {ANSWERED}: served, then other; `evaluate` runs both versions" in ending(done)
    assert "next: run both versions interleaved: `skill-evaluator evaluate" in ending(done)
    shown = library.call("compare", SKILL, "--format", "json")
    (model,) = shown.json["models"]
    assert (shown.code, shown.json["verdict"], model["served"]) == (4, "incomparable", "model")
    page = library.call("compare", SKILL, "--format", "markdown")
    assert f"≠ {SKILL} 1.1.0: incomparable with 1.0.0: {ANSWERED}" in page.out


def test_interleaved_runs_of_one_served_model_have_a_verdict(library: Library, vendor: Vendor) -> None:
    vendor.serve("served")
    evaluate(library, "1.0.0")
    GitRepository(library.root).commit()
    library.settings(replicates=REPLICATES, concurrency=1, policy={"design": "beside"})
    vendor.serve("other")
    done = evaluate(library, "1.1.0", "--with-baseline")
    assert (done.code, f"{SKILL} 1.1.0: unchanged against 1.0.0 on" in done.out) == (0, True), done.out
    assert "next: " in ending(done)


def test_first_run_of_another_served_model_gets_a_warning(library: Library, vendor: Vendor) -> None:
    library.served_by(vendor.server.url, api_id="deployed", price={"input": 3, "output": 15})
    vendor.serve("other-2024-08-06")
    done = evaluate(library, "1.0.0")
    words = (
        "other-2024-08-06 answered, but deployed was requested: "
        "if this is intended, set `id: other-2024-08-06` and `api_id: deployed` in models.yaml"
    )
    assert (done.code, done.err.splitlines()[-1]) == (0, f"warning: {words}")
    assert library.records()[0]["cost_usd"] is None  # nobody says what that model costs
    entry = {"id": "other-2024-08-06", "api_id": "deployed", "provider": "openai", "base_url": vendor.server.url}
    library.models({**entry, "price": {"input": 3, "output": 15}})
    named = evaluate(library, "1.0.0")
    assert (named.code, "requested" in named.err) == (0, False)
    assert library.records()[0]["cost_usd"] == pytest.approx(CALLS * (40 * 3 + 20 * 15) / 1e6)
