"""What calls will cost, before any is made: asked directly, with caching and in batches."""

from typing import Any

import pytest

from tests.support.git import GitRepository
from tests.support.library import CASES, REPLAY, SKILL, Library, read

LONG = "A line of the notice that says nothing of its year.\n" * 100  # over the floor from which a vendor caches
GPT = {"id": "gpt-5", "provider": "openai"}  # $1.25 and $10 per million tokens, a read $0.125, a write free


@pytest.fixture
def long(library: Library) -> Library:
    for case_id in CASES:
        library.write(f"fixtures/{SKILL}/cases/{case_id}/document.md", f"{case_id} is of 2024.\n{LONG}")
    GitRepository(library.root).commit()
    return library


def _planned(library: Library, *words: str) -> dict[str | None, dict[str, Any]]:
    done = library.call("ci", "plan", SKILL, *words)
    assert done.code == 0, done.err
    return {one["model_id"]: one for one in read(library.root / "plan.json")["forecast"]}


def test_a_plan_says_what_it_costs_directly_with_caching_and_in_batches(long: Library) -> None:
    long.models(GPT, REPLAY)
    forecast = _planned(long, "--replicates", "10")
    (gpt, all_models) = (forecast["gpt-5"], forecast[None])
    output = 30 * 4096 * 10 / 1e6
    read_again = (gpt["direct_usd"] - output) * 0.9 * 0.9  # nine of ten replicates at a tenth
    assert gpt["cached_usd"] == pytest.approx(gpt["direct_usd"] - read_again)
    assert gpt["batch_usd"] == pytest.approx(gpt["direct_usd"] / 2)
    assert (forecast["recorded"]["direct_usd"], forecast["recorded"]["batch_usd"]) == (0, None)
    assert all_models["batch_usd"] == gpt["batch_usd"]  # the replayed answers cost nothing asked directly
    assert (gpt["calls"], all_models["calls"]) == (30, 60)


def test_the_dry_run_of_evaluate_shows_the_same_table(long: Library) -> None:
    long.models(GPT, REPLAY)
    planned = long.call("ci", "plan", SKILL, "--format", "markdown").out
    table = planned.partition("### Forecast\n\n")[2].partition("\n\n")[0]
    assert table.startswith("| cost at most | calls | directly | with caching | in batches |")
    assert table.replace("`", "") in long.evaluate_here("--dry-run", "--format", "markdown").out.replace("`", "")
    assert "no batch API" in long.evaluate_here("--dry-run").out
