"""Weights of the hub come once, to its own cache, and are held to the digest that was declared or came first."""

import gc
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from skill_evaluator.providers.weights import smollm2_weights

from tests.support.hub import Hub, hub
from tests.support.library import Ended, Library

NAME = "acme/tiny-gguf/q4/tiny.gguf"
BROKEN = b"GGUF and no model"


@pytest.fixture
def served(library: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The hub of huggingface_hub in this process, which reads its environment when it is imported."""
    from huggingface_hub import constants

    with hub() as running:
        running.files[NAME] = BROKEN
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.url + template[template.index("/{") :])
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(library.root / "hub"))
        yield running


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


def evaluate(library: Library, **params: object) -> Ended:
    library.models(
        {"id": "m", "provider": "local", "params": {"weights": f"hf:{NAME}", "max_output_tokens": 8, **params}}
    )
    env = {"XDG_CACHE_HOME": str(library.root / "cache")}
    return library.evaluate_here("-n", "1", "--case", "alpha", "--format", "json", env=env)


@pytest.mark.local_model
def test_a_model_of_the_hub_answers_and_is_fetched_once(library: Library, served: Hub) -> None:
    served.files[NAME] = smollm2_weights().read_bytes()
    for run in range(2):
        done = evaluate(library, sha256=hashlib.sha256(served.files[NAME]).hexdigest())
        assert done.code in (0, 4), done.err
        assert ("fetching q4/tiny.gguf of acme/tiny-gguf once" in done.err) is (run == 0)
        assert done.json["runs"][0]["served_model"] == "tiny.gguf"
    assert served.fetched == 1


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")  # of a model that could not be opened
def test_weights_that_are_not_those_of_the_first_time_are_refused(library: Library, served: Hub) -> None:
    assert "cannot be opened" in evaluate(library).err
    gc.collect()  # its folder of saved states goes with it, which warns here and in no other test
    for file in (library.root / "hub").rglob("tiny.gguf"):
        file.unlink()
    served.files[NAME] = BROKEN + b" any more"
    refused = evaluate(library)
    assert refused.code == 2
    assert f"have digest {hashlib.sha256(served.files[NAME]).hexdigest()}" in refused.err
    assert (
        f"expected {hashlib.sha256(BROKEN).hexdigest()} ({library.root}/cache/skill-evaluator/weights.json)"
        in refused.err
    )


REFUSED = [
    ({"sha256": "0" * 64}, f"expected {'0' * 64} (sha256 in models.yaml)"),
    ({"sha256": "abc"}, "sha256 of local model 'm' in models.yaml is no digest"),
    (
        {"weights": "hf:acme/tiny-gguf/other.gguf"},
        "other.gguf of acme/tiny-gguf could not be fetched from the hub: 404 Client Error. Entry Not Found",
    ),
    (
        {"weights": "hf:acme/none/other.gguf"},
        "other.gguf of acme/none could not be fetched from the hub: 404 Client Error. Repository Not Found",
    ),
    ({"weights": "hf:tiny.gguf"}, "are not like hf:<owner>/<repository>/<file>"),
    ({"weights": "none.gguf"}, "weights of the local model not found: none.gguf"),
    ({"weights": "answers.jsonl"}, "weights of the local model are no GGUF file: answers.jsonl"),
    ({"weights": 7}, "is no text"),
]


def test_weights_that_cannot_be_had_are_one_line(library: Library, served: Hub) -> None:
    for params, words in REFUSED:
        refused = evaluate(library, **params)
        assert refused.code == 2, params
        (line,) = [line for line in refused.err.splitlines() if line.startswith("error: ")]
        assert words in line
