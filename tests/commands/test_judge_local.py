"""The local model as a judge of pairs."""

from pathlib import Path

import pytest

from tests.support.asked_judges import ITEMS, JudgingLibrary, method

PAIRS = 2


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    library.models({"id": "local", "provider": "local", "params": {"max_output_tokens": 160, "threads": 2}})
    library.settings(timeout_s=1e6)
    return library


@pytest.mark.local_model
def test_local_judge_compares_pairs_in_both_orders_and_is_calibrated(library: JudgingLibrary) -> None:
    library.rubric({"method": method("pairwise_comparison", "ignore_position")})
    sums = [{"id": f"sum-{n}", "human": 1, "input": f"What is {n} + 3?"} for n in range(PAIRS)]
    library.items(*({**item, "output_1": f"{n + 3}", "output_2": f"{n * 3 + 1}"} for n, item in enumerate(sums)))
    done = library.judge("pairwise", "--judge", "local")
    assert done.code in (0, 4), done.err  # 4: no output is usable
    called = [line["case_id"] for line in library.asked()]
    assert len(called) == len(set(called)) == 2 * PAIRS
    verdicts = str((library.judging() / "verdicts.jsonl").relative_to(library.root))
    calibrated = library.call("judge", "calibrate", "--labels", ITEMS, "--verdicts", verdicts)
    assert calibrated.code in (0, 4), calibrated.err
    assert "local" in calibrated.out
