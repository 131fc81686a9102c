"""Which models are run: those that have a key, or those named; what is wrong with the others is said."""

import sys
from pathlib import Path

import pytest

from tests.support.library import REPLAY, Library

KEYLESS = [
    ({"id": "gpt-5", "provider": "openai"}, "OPENAI_API_KEY"),
    ({"id": "claude", "provider": "anthropic"}, "ANTHROPIC_API_KEY"),
    ({"id": "gemini", "provider": "google"}, "GEMINI_API_KEY or GOOGLE_API_KEY"),
    ({"id": "lab", "provider": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "LAB_KEY"}, "LAB_KEY"),
]


def test_a_model_without_its_key_is_skipped_with_a_warning_and_the_rest_run(library: Library) -> None:
    library.models(*(entry for entry, _ in KEYLESS), REPLAY)
    ended = library.evaluate_here("--format", "json")
    assert ended.code == 0
    assert [run["model_id"] for run in ended.json["runs"]] == ["recorded"]
    for entry, variables in KEYLESS:
        assert f"warning: skipping {entry['id']}: {variables} is not set\n" in ended.err


def test_with_no_model_left_it_says_what_to_do(library: Library) -> None:
    library.models(*(entry for entry, _ in KEYLESS))
    before = library.tree()
    refused = library.evaluate_here()
    assert refused.code == 2
    *warnings, error = refused.err.splitlines()
    assert len(warnings) == len(KEYLESS)
    assert error.startswith("error: no model is left to run; set what is named above")
    assert "--model" in error
    assert library.tree() == before


def test_a_blank_key_is_no_key(library: Library) -> None:
    library.models(KEYLESS[0][0])
    refused = library.evaluate_here(env={"OPENAI_API_KEY": "  "})
    assert refused.code == 2
    assert "OPENAI_API_KEY is not set" in refused.err


def test_without_the_engine_one_line_says_what_to_install_and_no_weights_are_fetched(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    library.models({"id": "small", "provider": "local"})
    cache = tmp_path / "cache"
    ended = library.evaluate_here(env={"XDG_CACHE_HOME": str(cache)})
    assert (ended.code, ended.err) == (2, "error: the local model needs its engine: pip install xllamacpp\n")
    assert not cache.exists()
