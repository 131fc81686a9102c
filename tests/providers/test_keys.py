"""Keys are read from the environment, and struck out of what comes back."""

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.providers import Redactor, read_key

FIRST, SECOND = "sk-first-0123456789", "sk-first-0123456789-and-more"


def test_the_first_variable_that_holds_something_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLANK_KEY", "  ")
    monkeypatch.setenv("FULL_KEY", f" {FIRST}\n")
    monkeypatch.delenv("ABSENT_KEY", raising=False)
    assert read_key(("ABSENT_KEY", "BLANK_KEY", "FULL_KEY")) == FIRST
    assert read_key(("ABSENT_KEY", "BLANK_KEY")) is None
    assert read_key(()) is None


@pytest.mark.parametrize("value", ["sk-two\nlines-0123", "sk-clé-0123456789", "sk-tab\t0123456789"])
def test_what_no_header_can_carry_is_refused_by_name(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(ConfigError, match=r"^SOME_KEY holds") as caught:
        read_key(("SOME_KEY",))
    assert value not in str(caught.value)


def test_every_known_key_is_struck_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_KEY", FIRST)
    monkeypatch.setenv("OTHER_KEY", "xoxb-9876543210")
    redactor = Redactor(("FIRST_KEY", "OTHER_KEY", "ABSENT_KEY"))
    assert redactor(f"wrong key {FIRST}, {FIRST} or xoxb-9876543210.") == (
        "wrong key [redacted], [redacted] or [redacted]."
    )


def test_a_key_inside_a_longer_key_leaves_no_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT_KEY", FIRST)
    monkeypatch.setenv("LONG_KEY", SECOND)
    assert Redactor(("SHORT_KEY", "LONG_KEY"))(f"<{SECOND}>") == "<[redacted]>"


def test_a_key_with_space_around_it_is_found_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_KEY", f" {FIRST}\n")
    assert Redactor(("FIRST_KEY",))(f"<{FIRST}>") == "<[redacted]>"


@pytest.mark.parametrize("placeholder", ["", "x", "none", "no-key"])
def test_a_placeholder_damages_no_text(placeholder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_KEY", placeholder)
    text = "none of the boxes has no-key written on it, x"
    assert Redactor(("LOCAL_KEY",))(text) == text
