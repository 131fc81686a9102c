"""Weights of the local model that cannot be used are refused in one line."""

from pathlib import Path

import pytest

from tests.support.library import Library

REFUSED = [
    ({"weights": "tiny.gguf", "sha256": "0" * 64}, f"expected {'0' * 64} (sha256 in models.yaml)"),
    ({"sha256": "abc"}, "at sha256 in params of local model 'm' in models.yaml"),
    ({"weights": "none.gguf"}, "weights of the local model not found: none.gguf"),
    ({"weights": "answers.jsonl"}, "weights of the local model are not a GGUF file: answers.jsonl"),
    ({"weights": 7}, "at weights in params of local model"),
]


@pytest.mark.parametrize(("params", "message"), REFUSED)
def test_unusable_weights_are_refused_in_one_line(tmp_path: Path, params: dict[str, object], message: str) -> None:
    library = Library(tmp_path)
    library.write("tiny.gguf", "GGUF and no model")
    library.models({"id": "m", "provider": "local", "params": params})
    refused = library.evaluate_here("-n", "1", "--case", "alpha")
    (line,) = [line for line in refused.err.splitlines() if line.startswith("error: ")]
    assert (refused.code, message in line) == (2, True)
