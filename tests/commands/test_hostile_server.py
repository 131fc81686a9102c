"""A model's server that says whatever it likes: the run ends as usual, within its budget, memory and limits."""

import pytest

from tests.support.chat_server import notice
from tests.support.library import CASES, Library, journal


def test_an_answer_over_the_limit_keeps_no_text_and_counts_as_a_wrong_answer(library: Library) -> None:
    library.settings(limits={"answer_bytes": 60})
    texts = {(case_id, index): notice(case_id) for case_id in CASES for index in range(2)}
    library.record_answers({**texts, ("beta", 1): notice("b" * 60)})
    assert library.evaluate_here().code == 0
    (row,) = library.rows()
    assert (row["accuracy"]["field_level_f1"]["strict_mean"], row["coverage"]) == (pytest.approx(5 / 6, abs=1e-3), 1.0)
    assert library.records()[0]["reasons"] == {"answer_too_large": 1}
    assert [line["text"] for line in journal(library.run_folder()) if line["stop_reason"] == "too_large"] == [""]
