"""Text similarity and schema validity against other libraries and published definitions."""

import json
import random
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
from hypothesis import given
from skill_evaluator.comparing.field_plan import FieldPlan, rouge_l, token_f1
from skill_evaluator.library.contract import Contract
from skill_evaluator.metrics import METRICS
from skill_evaluator.metrics.accuracy import Comparison

from tests.metrics.orders import ORDER_SCHEMA, orders
from tests.support.json_values import json_values, quick

WORDS = ("grant", "award", "notice", "2024", "7", "funds", "no", "cost", "x1")


def texts(seed: int) -> tuple[str, str]:
    """Words on which all tokenisers agree: ASCII letters and digits, between spaces and punctuation."""
    dice = random.Random(seed)

    def text() -> str:
        chosen = [dice.choice((str.upper, str.lower, str.title))(dice.choice(WORDS)) for _ in range(dice.randrange(20))]
        return "".join(word + dice.choice((" ", ", ", " - ", ".\n", "; ", "/")) for word in chosen)

    return text(), text()


def test_rouge_l_equals_rouge_score(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nltk", "nltk.stem"):  # takes seconds to import, and only stemming asks for it
        monkeypatch.setitem(sys.modules, name, Mock())
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    for seed in range(300):
        truth, output = texts(seed)
        if truth or output:  # of two empty texts it says 0
            assert rouge_l(truth, output) == pytest.approx(scorer.score(truth, output)["rougeL"].fmeasure), (
                f"seed {seed}"
            )


@pytest.mark.parametrize(
    ("truth", "output", "tokens", "sequence"),
    [
        ("the cat sat", "The cat, sat!", 1, 1),  # case and punctuation are not words
        ("Café au lait", "cafe\u0301 au lait", 1, 1),
        ("the cat sat", "sat cat the", 1, 1 / 3),  # the same words, one of three in order
        ("", "", 1, 1),
        ("—", "…", 1, 1),  # neither has a word
    ],
)
def test_text_similarity_by_hand(truth: str, output: str, tokens: float, sequence: float) -> None:
    assert token_f1(truth, output) == pytest.approx(tokens)
    assert rouge_l(truth, output) == pytest.approx(sequence)
    assert token_f1(output, truth) == pytest.approx(tokens)
    assert rouge_l(output, truth) == pytest.approx(sequence)


def verdicts_of(conforms: Any, schema: Any, values: Iterable[Any]) -> Counter[bool]:
    """How many values are valid and how many are not; both libraries must agree on each."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    other = jsonschema.Draft202012Validator(schema, format_checker=checker)
    found: Counter[bool] = Counter()
    for value in values:
        valid = METRICS["schema_valid"].score(Comparison(None, value, FieldPlan(), conforms(value))) == 1
        assert valid is other.is_valid(value), value
        found[valid] += 1
    return found


@quick
@given(value=orders | json_values)
def test_schema_valid_equals_jsonschema_for_any_value(value: Any) -> None:
    verdicts_of(Contract(ORDER_SCHEMA, "the schema of an order").conforms, ORDER_SCHEMA, [value])


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        ({"type": "integer"}, [1, 1.0, -0.0, 1.5, True, "1", None, 10**400, 1e308]),
        (
            {"type": "string", "format": "date"},
            ["2024-02-29", "2023-02-29", "29/02/2024", "2024-2-3", "20240101", "2024-01-01\n", ""],
        ),
    ],
    ids=lambda part: json.dumps(part)[:40] if isinstance(part, dict) else "",
)
def test_schema_valid_equals_jsonschema_for_numbers_and_formats(rule: Any, values: list[Any]) -> None:
    verdicts_of(Contract(rule, "the schema").conforms, rule, values)
