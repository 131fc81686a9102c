"""Invalid weights and params of the local model."""

from pathlib import Path

import pytest
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Model, Params
from skill_evaluator.providers.local import find_weights, params_of


def test_unusable_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_text("GGUF and no model")
    (tmp_path / "answers.jsonl").write_text("{}")
    for name, sha256, message in (
        ("none.gguf", None, "weights of the local model not found: .*none.gguf"),
        ("answers.jsonl", None, "weights of the local model are not a GGUF file: .*answers.jsonl"),
        ("tiny.gguf", "0" * 64, f"but params.sha256 in models.yaml is {'0' * 64}"),
    ):
        with pytest.raises(ConfigError, match=message):
            find_weights(tmp_path / name, sha256)


@pytest.mark.parametrize(("name", "value"), [("sha256", "abc"), ("weights", 7), ("thread", 2)])
def test_invalid_param_of_a_local_model_is_named(name: str, value: object) -> None:
    model = Model(id="m", provider="local", params=Params.model_validate({name: value}))
    with pytest.raises(ConfigError, match=rf"at {name} in params of local model 'm' in models.yaml"):
        params_of(model)
