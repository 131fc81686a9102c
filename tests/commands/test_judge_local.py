"""A real small model as judge: what it writes is a judgement or is counted under a reason, and asked for once."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.asked_judges import ITEMS, RUBRIC, JudgingLibrary, method
from tests.support.library import SCRIPT, ended, wait_until

LOCAL = {"id": "local", "provider": "local", "params": {"max_output_tokens": 160, "threads": 2}}
EVER = 1e6  # seconds: other work may have the machine, and how long a call takes decides nothing here
PAIR = {"input": "Name a colour.", "output_1": "Red.", "output_2": "Seven."}


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.models(LOCAL)
    library.settings(timeout_s=EVER)
    return library


@pytest.mark.local_model
def test_a_real_model_compares_in_both_orders_and_is_asked_nothing_twice(library: JudgingLibrary) -> None:
    library.rubric({"method": method("pairwise_comparison")})
    library.items({"id": "a", **PAIR}, {"id": "b", **PAIR, "output_2": "Blue, I think."})
    done = library.judge("pairwise", "--judge", "local", "--format", "json")
    assert done.code in (0, 4), done.err  # 4: none of its answers counts
    (judge,) = done.json["judges"]
    assert (judge["judge"]["answered"], judge["judge"]["cost_usd"]) == (4, 0.0)
    _all_accounted_for([order for match in judge["matches"] for one in match["judgements"] for order in one["orders"]])
    again = library.judge("pairwise", "--judge", "local", "--resume", "--format", "json")
    assert again.json["judges"] == done.json["judges"]
    assert len(library.asked()) == 4


@pytest.mark.local_model
def test_what_a_real_judge_is_worth_on_40_labelled_pairs_is_said_and_nothing_is_asked_twice(
    library: JudgingLibrary,
) -> None:
    library.rubric({"method": method("pairwise_comparison", "ignore_position")})
    sums = [(number, number + 3) for number in range(2, 42)]
    library.items(
        *(
            {
                "id": f"sum-{left}",
                "human": 1 if left % 2 else 2,
                "input": f"What is {left} + {right}?",
                "output_1": f"{left + right if left % 2 else left * right}",
                "output_2": f"{left * right if left % 2 else left + right}",
            }
            for left, right in sums
        )
    )
    words = ("-m", "skill_evaluator", "judge", "pairwise", RUBRIC, "--items", ITEMS, "--judge", "local")
    place = {"PYTHONPATH": str(SCRIPT.parent)}
    with library.command(*words, env=place) as process:
        wait_until(lambda: len(library.asked()) >= 5 or process.poll() is not None, seconds=EVER)
        process.kill()
        killed = ended(process, seconds=EVER)
    assert 5 <= len(library.asked()) < 80, killed.err
    with library.command(*words, "--resume", env=place) as process:  # whoever stops the tests does not stop a command
        done = ended(process, seconds=EVER)
    assert done.code in (0, 4), done.err  # 4: none of its answers counts
    asked = [line["case_id"] for line in library.asked()]
    assert len(asked) == len(set(asked)) == 80
    verdicts = str((library.judging() / "verdicts.jsonl").relative_to(library.root))
    worth = library.call("judge", "calibrate", "--labels", ITEMS, "--verdicts", verdicts)
    assert worth.code in (0, 4), worth.err  # 4: none of its outputs counts
    said = re.search(r"^local, pairs +(.*?) *$", worth.out, re.MULTILINE)
    assert worth.code == 4 or (said and said[1] in ("not trusted", "undecided")), worth.out


@pytest.mark.local_model
def test_a_real_model_scores_on_the_scale_or_not_at_all(library: JudgingLibrary) -> None:
    library.items({"id": "a", "input": "Add 5 and 7.", "output": "The sum is 12."})
    done = library.judge("score", "--judge", "local", "--format", "json")
    assert done.code in (0, 4), done.err  # 4: none of its answers counts
    (item,) = done.json["judges"][0]["items"]
    _all_accounted_for(item["judgements"])
    assert item["scores"]["totals"] in (None, 1, 2, 3, 4, 5)


def _all_accounted_for(judgements: list[Mapping[str, Any]]) -> None:
    for judgement in judgements:
        decided = judgement.get("winner") or judgement.get("score")
        assert (decided is None) == (judgement["unscored"] is not None)
