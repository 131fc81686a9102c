"""Very deep, wide, long and large values, and odd keys, letters and numbers, are scored.

The time limits are generous: they stop what would grow with the square of the size, not what is merely slow.
"""

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule
from skill_evaluator.library.contract import Contract
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY
from skill_evaluator.metrics.accuracy import Comparison, per_field
from skill_evaluator.parsing import parse_output
from skill_evaluator.text import canonical_json

from tests.metrics.orders import ALIGNMENTS, ORDER_SCHEMA, answers, order_plan

pytestmark = pytest.mark.faults

SECONDS = 90  # of a machine that does other things, too; what is not linear takes hours
NO_SCHEMA = "no schema"
CONTRACT = Contract(ORDER_SCHEMA, "the schema of an order")


under_every_plan = pytest.mark.parametrize("align", [NO_SCHEMA, *ALIGNMENTS])


def plan_of(align: str) -> FieldPlan:
    """Return a new plan, since plans cache the fields of their values."""
    return FieldPlan() if align == NO_SCHEMA else order_plan(align)


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    def too_late(*_: object) -> None:
        raise TimeoutError(f"not done after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def all_scores(truth: Any, output: Any, plan: FieldPlan) -> dict[str, float | None]:
    """Return every accuracy metric of the output, and every reproducibility metric of truth and output as answers."""
    comparison = Comparison(truth, output, plan, CONTRACT.conforms(output))
    found: dict[str, float | None] = {name: metric.score(comparison) for name, metric in METRICS.items()}
    per_field(comparison.rows)
    two = answers(truth, output, plan=plan)
    return found | {name: metric.score(two) for name, metric in REPRODUCIBILITY.items()}


def assert_sane(truth: Any, output: Any, align: str = NO_SCHEMA) -> dict[str, float | None]:
    """Return the scores of the output, after checking their ranges and that the truth itself scores best."""
    plan = plan_of(align)
    itself = all_scores(truth, truth, plan)
    assert {value for name, value in itself.items() if name != "schema_valid"} <= {1.0, None}, itself
    found = all_scores(truth, output, plan)
    for name, value in found.items():
        assert value is None or 0 <= value <= (2 if name == "distinct_outputs" else 1), (name, value)
    return found


def nested(kinds: str, depth: int, core: Any) -> Any:
    """Return `core` inside `depth` arrays (`[`), objects (`{`), or both in turn."""
    for level in range(depth):
        core = [core] if kinds[level % len(kinds)] == "[" else {"a": core}
    return core


@pytest.mark.parametrize(("kinds", "align"), [("[", NO_SCHEMA), ("{", NO_SCHEMA), ("[{", "key")])
def test_values_500_levels_deep_are_scored(kinds: str, align: str) -> None:
    found = assert_sane(nested(kinds, 500, 1), nested(kinds, 500, 2), align)
    assert found["exact_match"] == found["field_level_f1"] == found["pairwise_field_f1"] == 0
    assert assert_sane({"lines": nested(kinds, 499, 1)}, {"lines": []}, align)["field_level_f1"] == 0
    assert json.loads(canonical_json(nested(kinds, 500, 1.0))) == nested(kinds, 500, 1)


MANY = 100_000


def wide_scores(truth: Any, output: Any, align: str, leaves: int) -> None:
    """Check the scores of an output in which one of `leaves` leaves is wrong."""
    assert parse_output(json.dumps(truth), "json").value == truth
    found = all_scores(truth, output, plan_of(align))
    assert found["exact_match"] == 0
    assert found["field_level_f1"] == found["pairwise_field_f1"] == pytest.approx(1 - 1 / leaves, abs=1e-9)


def test_an_object_of_100_000_members_is_scored() -> None:
    truth = {f"k{index}": index for index in range(MANY)}
    wide_scores(truth, dict(reversed({**truth, "k7": -1}.items())), NO_SCHEMA, MANY)


def test_an_array_of_100_000_scalars_is_scored() -> None:
    items = list(range(MANY))
    comparison = Comparison({"a": items}, {"a": [-1, *reversed(items[1:])]}, FieldPlan())
    found = {name: metric.score(comparison) for name, metric in METRICS.items()}
    assert found["field_level_f1"] == pytest.approx(1 - 1 / MANY, abs=1e-9)
    assert found["jaccard"] == pytest.approx((MANY - 1) / (MANY + 1), abs=1e-9)


FEW = [index % 3 for index in range(MANY // 4)]
OBJECTS = [{"sku": f"s{index}", **{f"f{field}": field for field in range(49)}} for index in range(MANY // 50)]
ONE_KEY = [{"sku": "one", "qty": index, "price": index % 7} for index in range(200)]
EQUAL = [{"sku": "x", "qty": 1} for _ in range(200)]


@pytest.mark.parametrize(
    ("items", "changed", "align", "leaves"),
    [
        pytest.param(FEW, -1, NO_SCHEMA, len(FEW), id="equal scalars"),
        pytest.param(OBJECTS, {**OBJECTS[0], "f7": "wrong"}, "key", MANY, id="objects of 50 leaves"),
        pytest.param(ONE_KEY, {**ONE_KEY[0], "price": "wrong"}, "best", 600, id="hundreds of objects"),
        pytest.param(ONE_KEY, {**ONE_KEY[0], "price": "wrong"}, "key", 600, id="hundreds of objects with one key"),
        pytest.param(EQUAL, {"sku": "x", "qty": 2}, "best", 400, id="hundreds of equal objects"),
    ],
)
def test_long_array_is_aligned(items: list[Any], changed: Any, align: str, leaves: int) -> None:
    wide_scores({"lines": items}, {"lines": [changed, *items[1:]][::-1]}, align, leaves)


MEGABYTE = "consectetuer adipiscing, " * 40_000
ODD = {
    "an integer of 400 digits": int("7" * 400),
    "the largest float": 1.7976931348623157e308,
    "the smallest float": 5e-324,
    "minus zero": -0.0,
    "beyond 53 bits": 2**53 + 1,
    "no text": "",
    "a lone surrogate": "a\ud800b",
    "NUL": "\x00",
    "decomposed": "e\u0301",
    "composed": "\u00e9",
    "right to left": "\u202eabc",
    "a number as text": "1e400",
    "a megabyte": MEGABYTE,
    "a path": "lines[].sku",
    "an empty array": [],
    "nulls": [None, None],
    "a null inside": {"a": None},
}


@under_every_plan
@pytest.mark.parametrize("odd", ODD.values(), ids=list(ODD))
def test_odd_values_are_scored_at_any_path(odd: Any, align: str) -> None:
    for truth in (odd, [odd], {"id": odd, "note": odd, "total": odd, "day": odd, "tags": odd, "lines": odd}):
        assert_sane(truth, None, align)
        assert_sane(None, truth, align)
    line = {"sku": odd, "qty": odd, "marks": [odd, odd]}
    assert_sane({"lines": [line, {"sku": "x"}, odd]}, {"lines": [{"sku": "x", "qty": odd}, line]}, align)


@under_every_plan
@pytest.mark.parametrize("odd", [odd for odd in ODD.values() if isinstance(odd, str)], ids=lambda odd: repr(odd[:12]))
def test_odd_keys_are_keys(odd: str, align: str) -> None:
    found = assert_sane({odd: {odd: 1}, "lines": [{odd: 1}]}, {odd: {odd: 2}, "lines": [{odd: 2}]}, align)
    assert found["exact_match"] == found["field_level_f1"] == 0
    assert_sane({odd: 1, "a": {"b": 2}}, {"a": {odd: 1}, "b": 2}, align)


TEXT_RULES = [
    FieldRule(compare="string", casefold=True, ignore_punctuation=True),
    FieldRule(compare="string", threshold=0.9),
    FieldRule(compare="text", threshold=0.8),
    FieldRule(compare="number", from_string=True, tolerance=0.1),
    FieldRule(compare="date", formats=("%d %B %Y", "%d.%m.%y", "%Y-%m-%d")),
    FieldRule(compare="category"),
]
LONG = {
    "words": (MEGABYTE, MEGABYTE[::-1]),
    "digits": ("7" * 1_000_000, "78" * 500_000),
    "signs": ("-(" * 500_000, "1,." * 300_000),
    "spaces": (" \n" * 500_000 + "x", "y."),
    "marks": ("e\u0301" * 500_000, "\u0301" * 1_000_000),
}


@pytest.mark.parametrize("texts", LONG.values(), ids=list(LONG))
@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: f"{rule.compare} {rule.options}")
def test_texts_of_a_megabyte_are_compared_under_every_rule(rule: FieldRule, texts: tuple[str, str]) -> None:
    comparison = Comparison({"a": texts[0]}, {"a": texts[1]}, FieldPlan(leaves={"a": rule}))
    assert [row.outcome for row in comparison.rows] == ["wrong"]
    per_field(comparison.rows)
