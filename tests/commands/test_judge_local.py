"""A small local model as judge: each output is scored or counted under a reason."""

from pathlib import Path

import pytest

from tests.support.asked_judges import JudgingLibrary

LOCAL = {"id": "local", "provider": "local", "params": {"max_output_tokens": 160, "threads": 2}}


@pytest.mark.local_model
def test_local_judge_scores_on_the_scale_or_gives_a_reason(tmp_path: Path) -> None:
    library = JudgingLibrary(tmp_path)
    library.models(LOCAL)
    library.settings(timeout_s=1e6)  # other work may have the machine
    library.items({"id": "a", "input": "Add 5 and 7.", "output": "The sum is 12."})
    done = library.judge("score", "--judge", "local", "--format", "json")
    assert done.code in (0, 4), done.err  # 4: none of its answers counts
    (item,) = done.json["judges"][0]["items"]
    for judgement in item["judgements"]:
        assert (judgement["score"] is None) == (judgement["unscored"] is not None)
    assert item["scores"]["totals"] in (None, 1, 2, 3, 4, 5)
