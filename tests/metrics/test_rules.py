"""What a declaration may say, and how it is refused."""

import pytest
from skill_evaluator import plugins
from skill_evaluator.errors import ComponentError
from skill_evaluator.metrics.rules import COMPARATOR_GROUP, FieldRule, refuse_wrong_rules


def refuse(name: str) -> None:
    refuse_wrong_rules({"total": FieldRule(compare=name)}, "fields", "datasets.json")


def test_an_unknown_comparator_is_named_with_its_place_and_the_nearest() -> None:
    with pytest.raises(ComponentError) as caught:
        refuse("numbr")
    place = "at fields.total.compare in datasets.json"
    assert str(caught.value) == f"unknown comparator 'numbr' (did you mean 'number'?) {place}"


def test_a_comparator_of_a_package_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: ["postcode"] if group == COMPARATOR_GROUP else [])
    refuse("postcode")
    with pytest.raises(ComponentError, match=r"did you mean 'postcode'\?"):
        refuse("post code")


def test_the_options_of_a_rule_are_the_settings_of_its_comparator_that_differ() -> None:
    rule = FieldRule(compare="date", formats=("%d/%m/%Y",), tolerance_days=1, threshold=None, weight=2, key=("a",))
    assert rule.options == {"formats": ("%d/%m/%Y",), "tolerance_days": 1}
    assert FieldRule().options == {}
