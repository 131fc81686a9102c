"""The reports of a comparison and of a history."""

from collections.abc import Callable
from typing import Any

import pytest
from skill_evaluator.display import ends, probability, signed
from skill_evaluator.display.pages import Page, print_page
from skill_evaluator.reports.comparison import comparison_page, measure_sheet, run_sheet
from skill_evaluator.reports.history import history_page
from skill_evaluator.reports.summary import Reader, scope_words
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.shipping import history_of

from tests.support.records import Score, a_record
from tests.verdicts.rules import some_rules

HOSTILE = "<img src=x onerror=alert(1)>|`](http://x)\n# title\x1b[31m[red]\u202e&\"'"
RULES = some_rules(skill=HOSTILE)


def hostile_pair() -> Pair:
    names = [f"{at}{HOSTILE}" for at in range(12)]
    good: dict[str, list[Score]] = {name: [0.9, 0.92, 0.91] for name in names}
    bad: dict[str, list[Score]] = {name: [0.3, 0.31, "unparseable"] for name in names}
    outside = {"skill": HOSTILE, "model_id": HOSTILE, "served_model": HOSTILE}  # a report trusts no file's model
    before = a_record(good, skill_version="1.0.0", fields={HOSTILE: dict.fromkeys(names, (3, 3))})
    after = a_record(bad, skill_version="2.0.0", fields={HOSTILE: dict.fromkeys(names, (0, 3))}, failures={HOSTILE: 12})
    return Pair(
        baseline=before.model_copy(update={**outside, "run_id": "1" + HOSTILE}),
        candidate=after.model_copy(update={**outside, "run_id": "2" + HOSTILE}),
    )


def hostile_result() -> ComparisonResult:
    return compare_records([hostile_pair()], RULES, left_out={HOSTILE: HOSTILE})


def without_code(page: str) -> str:
    """Return the text of a page outside of code spans, which have two backticks because the name has one."""
    return "".join(page.split("``")[::2])


@pytest.mark.parametrize("page", [lambda: comparison_page(hostile_result(), Reader()), lambda: hostile_history()])
def test_external_names_are_printable_text(page: Callable[[], Page], capsys: pytest.CaptureFixture[str]) -> None:
    for full in (False, True):
        print_page("text", json=dict, page=page, full=full)
        out = capsys.readouterr().out
        assert all(mark.isprintable() or mark == "\n" for mark in out)
        assert "\n# title" not in out
        assert "[red]" in out
    shown = without_code(page().markdown())
    assert [mark for mark in ("<img", "](", "# title") if mark in shown] == []


def hostile_history() -> Page:
    return history_page(history_of(HOSTILE, {HOSTILE: _sequence()}, RULES))


def _sequence() -> list[Pair]:
    pair = hostile_pair()
    return [Pair(baseline=None, candidate=pair.baseline), pair]


@pytest.mark.parametrize(
    ("verdict", "cases", "words"),
    [
        ("regressed", 3, "regressed on these 3 cases"),
        ("inconclusive", 1, "inconclusive on this case"),
        ("unchanged", 12, "unchanged on these 12 cases; of 100 new cases, up to 22 may still be worse"),
        ("improved", 6, "improved on these 6 cases; of 100 new cases, up to 39 may still be worse"),
        ("incomparable", 0, "incomparable"),
    ],
)
def test_verdict_has_number_of_cases_and_bound_for_new_cases(verdict: str, cases: int, words: str) -> None:
    result = hostile_result()
    metrics = [
        one.model_copy(update={"test": one.test.model_copy(update={"n_cases": cases})})
        for one in result.models[0].metrics
    ]
    models = [result.models[0].model_copy(update={"metrics": metrics, "baseline": None})]
    assert scope_words(result.model_copy(update={"verdict": verdict, "models": models}), models[0]) == words


@pytest.mark.parametrize(("count", "written", "drawn"), [(4, "too few", False), (5, "-0.", True)])
def test_interval_needs_five_cases(count: int, written: str, drawn: bool) -> None:
    before: dict[str, list[Score]] = {f"c{at}": [0.9, 0.8 - 0.01 * at] for at in range(count)}
    after: dict[str, list[Score]] = {name: [0.4, 0.3] for name in before}
    result = compare_records([Pair(baseline=a_record(before), candidate=a_record(after))], some_rules())
    assert measure_sheet(result.models[0]).rows[0][3].text.startswith(written)
    low, high = ends(result.models[0].metrics[0].test.ci95, count)
    assert (low is not None) == (high is not None) == drawn


def test_long_tables_are_cut_with_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"case-{at:02d}" for at in range(30)]
    fields = {f"field-{at:02d}": dict.fromkeys(names, (2, 2)) for at in range(20)}
    fallen = {path: dict.fromkeys(names, (0, 2)) for path in fields}
    good, bad = ({name: [score, score - 0.01] for name in names} for score in (0.9, 0.2))
    pair = Pair(baseline=a_record(good, fields=fields), candidate=a_record(bad, fields=fallen))
    result = compare_records([pair], RULES)
    print_page("text", json=dict, page=lambda: comparison_page(result, Reader()), full=True)
    out = capsys.readouterr().out
    assert "broke: 30" in out
    assert "… and 20 more" in out
    assert "field-01 2/2 → 0/2 and 18 more" in out
    assert "… and 10 more." in out


def test_small_probability_is_not_zero_and_zero_has_no_sign() -> None:
    for value, shown in ((None, "–"), (0.0, "<0.001"), (0.0004, "<0.001"), (0.05, "0.050")):
        assert probability(value) == shown, value
    for value, shown in ((None, "–"), (-0.0001, "0.000"), (0.25, "+0.250"), (-0.25, "-0.250")):
        assert signed(value) == shown, value


def test_amounts_are_per_1000_outputs_if_replicates_differ() -> None:
    cost: dict[str, Any] = {"tokens": {"input": 50, "output": 12}, "cost_usd": 0.01, "failures": {"refused": 1}}
    double: dict[str, Any] = {"tokens": {"input": 100, "output": 24}, "cost_usd": 0.03, "failures": {"refused": 2}}
    before = a_record({"a": [1.0], "b": [1.0]}, **cost)
    after = a_record({"a": [1.0] * 2, "b": [1.0] * 2}, skill_version="1.1.0", **double)
    result = compare_records([Pair(baseline=before, candidate=after)], some_rules({}, skill="s"))
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in run_sheet(result.models[0]).rows}
    assert rows["input tokens per 1,000"] == ["25,000", "25,000", "="]
    assert rows["output tokens per 1,000"] == ["6,000", "6,000", "="]
    assert rows["refused per 1,000"] == ["500", "500", "="]
    assert rows["cost per 1,000"] == ["$5.0000", "$7.5000", "+50 %"]
