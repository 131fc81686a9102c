"""The local model as a judge: each output is scored, or has a reason for a missing score."""

from pathlib import Path

import pytest

from tests.support.asked_judges import JudgingLibrary


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.models({"id": "local", "provider": "local", "params": {"max_output_tokens": 100, "threads": 2}})
    library.settings(timeout_s=1e6)
    return library


@pytest.mark.local_model
def test_local_judge_scores_on_the_scale_or_gives_a_reason(library: JudgingLibrary) -> None:
    library.items({"id": "a", "input": "Add 5 and 7.", "output": "The sum is 12."})
    done = library.judge("score", "--judge", "local", "--format", "json")
    assert done.code in (0, 4), done.err
    (item,) = done.json["judges"][0]["items"]
    assert item["judgements"]
    for judgement in item["judgements"]:
        assert (judgement["score"] is None) == (judgement["unscored"] is not None)
    assert item["scores"]["totals"] in (None, 1, 2, 3, 4, 5)
