"""What a declaration may say, and how it is refused."""

import pytest
from pydantic import ValidationError
from skill_evaluator import plugins
from skill_evaluator.metrics.rules import COMPARATOR_GROUP, FieldRule


def test_an_unknown_comparator_is_named_with_the_nearest() -> None:
    with pytest.raises(ValidationError, match=r"unknown comparator 'numbr' \(did you mean 'number'\?\)"):
        FieldRule(compare="numbr")


def test_a_comparator_of_a_package_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: ["postcode"] if group == COMPARATOR_GROUP else [])
    assert FieldRule(compare="postcode").compare == "postcode"
    with pytest.raises(ValidationError, match=r"did you mean 'postcode'\?"):
        FieldRule(compare="post code")
