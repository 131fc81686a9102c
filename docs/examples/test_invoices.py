"""A pytest suite over a prompt's answers: a test that fails names every wrong leaf. Run: `pytest test_invoices.py`."""

import json
from pathlib import Path

import pytest
from skill_evaluator import OutputScorer

INVOICES = Path(__file__).parent / "invoices"
SCORER = OutputScorer(
    schema=json.loads((INVOICES / "schema.json").read_text()),
    fields={
        "supplier": {"casefold": True, "ignore_punctuation": True},
        "lines": {"align": "key", "key": ["code"]},
        "total": {"tolerance": 0.005},
    },
)


def extract(case: Path) -> str:
    """Stands for your program, which would read `document.md` and ask a model; here the answer is on disk."""
    return (case / "answer.txt").read_text()


@pytest.mark.parametrize("case", sorted(INVOICES.glob("*/")), ids=lambda case: case.name)
def test_an_invoice_is_read_well_enough(case: Path) -> None:
    truth = json.loads((case / "ground_truth.json").read_text())
    result = SCORER.score_text(truth, extract(case))
    assert result.problem is None, f"no JSON in the answer: {result.problem}"
    assert not result.schema_errors
    f1 = result.scores["field_level_f1"]
    assert f1 is not None
    assert f1 >= 0.95, "\n".join(map(str, result.mistakes))
