"""Declared comparators, formats and options: errors and descriptions."""

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


def test_unknown_comparator_is_rejected_with_key_path_and_nearest_name() -> None:
    with pytest.raises(ComponentError) as caught:
        refuse("numbr")
    place = "at fields.total.compare in datasets.json"
    assert str(caught.value) == f"unknown comparator 'numbr' (did you mean 'number'?) {place}"


def test_alignment_is_rejected_as_comparator() -> None:
    with pytest.raises(
        ComponentError, match=r"^unknown comparator 'set' \(align: set\?\) at fields\.total\.compare in "
    ):
        refuse("set")


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%d/%m/%y", "%d %b %Y", "%B %Y", "%d/%m", "%Y-%m-%dT%H:%M:%S%z", "%G-W%V-%u"]
)
def test_date_format_with_parts_of_a_day_is_accepted(form: str) -> None:
    refuse_wrong_rules({"due": FieldRule(compare="date", formats=(form,))}, "fields", "datasets.json")


@pytest.mark.parametrize("form", ["YYYY-MM-DD", "%Q", "%-d.%m.%Y", "", "%A", "%H:%M", "%"])
def test_date_format_without_parts_of_a_day_is_rejected(form: str) -> None:
    with pytest.raises(ComponentError) as caught:
        refuse_wrong_rules({"due": FieldRule(compare="date", formats=("%d.%m.%Y", form))}, "fields", "datasets.json")
    place = "at fields.due.formats in datasets.json"
    assert str(caught.value) == f"'{form}' is not a date format {place}; write the codes of strptime, such as %Y-%m-%d"


def test_comparator_of_a_package_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: ["postcode"] if group == COMPARATOR_GROUP else [])
    refuse("postcode")
    with pytest.raises(ComponentError, match=r"did you mean 'postcode'\?"):
        refuse("post code")


def test_options_are_the_comparator_settings_other_than_the_default() -> None:
    rule = FieldRule(compare="date", formats=("%d/%m/%Y",), tolerance_days=1, threshold=None, weight=2, key=("a",))
    assert rule.options == {"formats": ("%d/%m/%Y",), "tolerance_days": 1}
    assert FieldRule().options == {}


@pytest.mark.parametrize(
    ("rule", "description"),
    [
        (FieldRule(), "exact value"),
        (FieldRule(compare="ignore"), "ignored"),
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
    assert [aligned_by(rule) for rule in rules] == ["by its items", "as a set", "by key a + b"]
