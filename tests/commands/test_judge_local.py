"""A small local model as judge: each output is scored or counted under a reason, and no call is repeated."""

import re
from pathlib import Path

import pytest

from tests.support.asked_judges import ITEMS, RUBRIC, JudgingLibrary, method
from tests.support.library import SCRIPT, ended, wait_until

LOCAL = {"id": "local", "provider": "local", "params": {"max_output_tokens": 160, "threads": 2}}
EVER = 1e6  # seconds: other work may have the machine, and how long a call takes decides nothing here


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.models(LOCAL)
    library.settings(timeout_s=EVER)
    return library


@pytest.mark.local_model
def test_local_judge_of_40_pairs_resumes_and_is_calibrated(
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
def test_local_judge_scores_on_the_scale_or_gives_a_reason(library: JudgingLibrary) -> None:
    library.items({"id": "a", "input": "Add 5 and 7.", "output": "The sum is 12."})
    done = library.judge("score", "--judge", "local", "--format", "json")
    assert done.code in (0, 4), done.err  # 4: none of its answers counts
    (item,) = done.json["judges"][0]["items"]
    for judgement in item["judgements"]:
        assert (judgement["score"] is None) == (judgement["unscored"] is not None)
    assert item["scores"]["totals"] in (None, 1, 2, 3, 4, 5)
