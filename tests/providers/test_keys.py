"""Keys are read from the environment, which is not changed; child processes do not inherit them."""

import os

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model
from skill_evaluator.processes import child_environment
from skill_evaluator.providers import PROVIDERS, find_key, read_keys

FIRST, SECOND = "sk-first-0123456789", "sk-second-0123456789"


GOOGLE = Model(id="g", provider="google")


def key_of(keys: dict[str, str]) -> str | None:
    return find_key(GOOGLE, PROVIDERS["google"], keys)


def test_first_variable_with_a_value_is_the_key() -> None:
    assert key_of({"GEMINI_API_KEY": "  ", "GOOGLE_API_KEY": f" {FIRST}\n"}) == FIRST
    assert key_of({"GEMINI_API_KEY": "  "}) is None


def test_key_that_no_header_can_carry_is_refused_by_name() -> None:
    for value in ("sk-two\nlines-0123", "sk-clé-0123456789", "sk-tab\t0123456789"):
        with pytest.raises(ConfigError, match=r"^GOOGLE_API_KEY has") as caught:
            key_of({"GOOGLE_API_KEY": value})
        assert value not in str(caught.value)


def test_keys_of_all_providers_are_read_and_hidden_from_children(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"LAB_KEY": FIRST, "ANTHROPIC_API_KEY": SECOND, "GEMINI_API_KEY": "one", "GOOGLE_API_KEY": "other"}
    monkeypatch.setenv("GITHUB_TOKEN", "of-the-job")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for variable, value in taken.items():
        monkeypatch.setenv(variable, value)
    model = Model(id="lab", provider="openai", base_url="http://127.0.0.1/v1", api_key_env="LAB_KEY")
    before = dict(os.environ)
    for _ in range(2):
        assert read_keys([model], {"openai": PROVIDERS["openai"]}) == taken
    assert os.environ == before
    assert child_environment() == {name: value for name, value in before.items() if name not in taken}
    assert child_environment()["GITHUB_TOKEN"] == "of-the-job"
