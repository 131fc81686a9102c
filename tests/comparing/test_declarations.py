"""What a declaration may say, and how it is refused."""

import pytest
from skill_evaluator import plugins
from skill_evaluator.comparing.declarations import (
    COMPARATOR_GROUP,
    FieldRule,
    aligned_by,
    compared_as,
    refuse_wrong_rules,
)
from skill_evaluator.errors import ComponentError


def refuse(name: str) -> None:
    refuse_wrong_rules({"total": FieldRule(compare=name)}, "fields", "datasets.json")


def test_an_unknown_comparator_is_named_with_its_place_and_the_nearest() -> None:
    with pytest.raises(ComponentError) as caught:
        refuse("numbr")
    place = "at fields.total.compare in datasets.json"
    assert str(caught.value) == f"unknown comparator 'numbr' (did you mean 'number'?) {place}"


def test_an_alignment_is_no_comparator() -> None:
    with pytest.raises(
        ComponentError, match=r"^unknown comparator 'set' \(align: set\?\) at fields\.total\.compare in "
    ):
        refuse("set")


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%d/%m/%y", "%d %b %Y", "%B %Y", "%d/%m", "%Y-%m-%dT%H:%M:%S%z", "%G-W%V-%u"]
)
def test_a_format_by_which_days_differ(form: str) -> None:
    refuse_wrong_rules({"due": FieldRule(compare="date", formats=(form,))}, "fields", "datasets.json")


@pytest.mark.parametrize("form", ["YYYY-MM-DD", "%Q", "%-d.%m.%Y", "", "%A", "%H:%M", "%"])
def test_a_format_by_which_no_day_is_read(form: str) -> None:
    with pytest.raises(ComponentError) as caught:
        refuse_wrong_rules({"due": FieldRule(compare="date", formats=("%d.%m.%Y", form))}, "fields", "datasets.json")
    place = "at fields.due.formats in datasets.json"
    assert str(caught.value) == f"no date is written '{form}' {place}; formats are those of strptime, such as %Y-%m-%d"


def test_a_comparator_of_a_package_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: ["postcode"] if group == COMPARATOR_GROUP else [])
    refuse("postcode")
    with pytest.raises(ComponentError, match=r"did you mean 'postcode'\?"):
        refuse("post code")


def test_the_options_of_a_rule_are_the_settings_of_its_comparator_that_differ() -> None:
    rule = FieldRule(compare="date", formats=("%d/%m/%Y",), tolerance_days=1, threshold=None, weight=2, key=("a",))
    assert rule.options == {"formats": ("%d/%m/%Y",), "tolerance_days": 1}
    assert FieldRule().options == {}


@pytest.mark.parametrize(
    ("rule", "description"),
    [
        (FieldRule(), "exact value"),
        (FieldRule(compare="ignore"), "not looked at"),
        (FieldRule(compare="text"), "text, reported only"),
        (FieldRule(compare="text", threshold=0.8), "text, from token F1 0.8"),
        (FieldRule(compare="string", casefold=True, threshold=0.9), "string, case folded, from 0.9 edit similarity"),
        (FieldRule(compare="number", relative_tolerance=0.05), "number, ± 5 %"),
        (FieldRule(compare="date", formats=("%d.%m.%Y",), tolerance_days=2), "date, written %d.%m.%Y, ± 2 days"),
        (FieldRule(compare="postcode", tolerance=1), "postcode, ± 1"),
    ],
)
def test_comparison_is_described_with_its_options(rule: FieldRule, description: str) -> None:
    assert compared_as(rule) == description


def test_alignment_is_described() -> None:
    rules = [FieldRule(), FieldRule(align="set"), FieldRule(align="key", key=("a", "b"))]
    assert [aligned_by(rule) for rule in rules] == ["by what its items are", "as a set", "by key a + b"]
