"""Which models are run: those that have a key, or those named; what is wrong with the others is said."""

import sys
from pathlib import Path

import pytest

from tests.support.library import Library


def test_without_the_engine_one_line_says_what_to_install_and_no_weights_are_fetched(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    library.models({"id": "small", "provider": "local"})
    cache = tmp_path / "cache"
    ended = library.evaluate_here(env={"XDG_CACHE_HOME": str(cache)})
    assert (ended.code, ended.err) == (2, "error: the local model needs its engine: pip install xllamacpp\n")
    assert not cache.exists()
