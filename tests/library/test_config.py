"""models.yaml and settings.yaml: what is enough, what is refused, and where the mistake is said to be."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import (
    Model,
    Models,
    Settings,
    UnstableCase,
    load_models,
    load_settings,
    select_models,
)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_model_requires_id_and_provider_alone(tmp_path: Path) -> None:
    write(tmp_path, "models.yaml", "models: [{id: gpt-5, provider: openai}]")
    (model,) = load_models(tmp_path)
    assert model == Model(id="gpt-5", provider="openai")
    assert model.api_name == "gpt-5"
    assert model.profile == "deterministic"
    assert model.structured_output == "json_schema"
    assert model.params.max_output_tokens == 4096
    assert model.price is None


def test_model_reads_every_key(tmp_path: Path) -> None:
    params = "params: {max_output_tokens: 100, temperature: 0, min_p: 0.1}, price: {input: 0, output: 1.5}"
    limits = "limits: {max_concurrency: 2, tokens_per_minute: 1000}, base_url: 'http://127.0.0.1:8000/v1'"
    write(tmp_path, "models.yaml", f"models: [{{id: 'a:q4', provider: openai, api_id: small, {params}, {limits}}}]")
    (model,) = load_models(tmp_path)
    assert (model.api_name, model.limits.tokens_per_minute) == ("small", 1000)
    assert model.params.extra == {"min_p": 0.1}
    assert model.price is not None
    assert model.price.output == 1.5


REFUSED = {
    "models.yaml": [
        ("models: [", "{path}:2:1: broken YAML: "),
        ("models: []", "at least one entry is expected at models in {path}"),
        (
            "models: [{model: a, provider: openai}]",
            "a required key is missing at models[0].id in {path} (unknown key 'model': did you mean 'id'?)",
        ),
        ("models: [{id: a b, provider: openai}]", "String should match pattern"),
        (
            "models: [{id: a, providr: openai, provider: x}]",
            "unknown key at models[0].providr in {path} (did you mean 'provider'?)",
        ),
        (
            "models: [{id: a, provider: x}, {id: b, provider: x}, {id: a, provider: y}]",
            "duplicate model id 'a' at models[2] and models[0] in {path}",
        ),
        ("models: [{id: a, provider: x, params: {seed: 7}}]", "seed is not allowed: each call gets its own seed"),
        (
            "models: [{id: a, provider: x, profile: random}]",
            "unknown value 'random' at models[0].profile in {path} (known: deterministic, sampled)",
        ),
        (
            "models: [{id: a, provider: x, api_key_env: sk-123}]",
            "a variable's name, not a key, is expected at models[0].api_key_env in {path}",
        ),
        (
            "models: [{id: off, provider: x}]",
            "a text is expected, got false at models[0].id in {path} (YAML reads off and no as false",
        ),
        (
            "models: [{id: a, provider: x, family: 12:30}]",
            "a text is expected, got 750 at models[0].family in {path} (YAML reads this as a number; put it in quotes)",
        ),
    ],
    "settings.yaml": [
        ("site: {documents: true}", "unknown key at site.documents in {path}"),
        ("replicates: 10001", "Input should be less than or equal to 10000, got 10001 at replicates in {path}"),
        ("replicate: 5", "unknown key at replicate in {path} (did you mean 'replicates'?)"),
        ("audit: {benchmarks: [{a: 1}]}", "a mapping of keys to values is expected at audit.benchmarks in {path}"),
        (
            "policy: {metrics: {pairwise_exact_match: {tier: critical}}}",
            "'pairwise_exact_match' is a reproducibility metric, which decides no verdict; delete the entry at "
            "policy.metrics in {path}",
        ),
        ("policy: {components: {a: {metrics: {tara_at_n: {tolerance: 0.1}}}}}", "'tara_at_n' is a rep"),
    ],
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_configuration_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    for text, message in REFUSED[name]:
        path = write(tmp_path, name, text)
        with pytest.raises(ConfigError) as caught:
            (load_models if name == "models.yaml" else load_settings)(tmp_path)
        assert str(caught.value).startswith(message.format(path=path)), text
        assert str(path) in str(caught.value), text
        assert "\n" not in str(caught.value), text


def test_missing_models_file_says_how_to_create_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"models\.yaml does not exist; write it with `.+ init`, or go to the lib"):
        load_models(tmp_path)


@pytest.mark.parametrize("text", [None, "", "# nothing said\n"])
def test_settings_have_defaults(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path, "settings.yaml", text)
    assert load_settings(tmp_path) == Settings()


def test_benchmarks_of_an_audit_are_a_list_or_have_weights(tmp_path: Path) -> None:
    write(tmp_path, "settings.yaml", "audit: {benchmarks: [one, two], questions: 50}\n")
    listed = load_settings(tmp_path).audit
    assert ({name: benchmark.weight for name, benchmark in listed.benchmarks.items()}, listed.questions) == (
        {"one": 1, "two": 1},
        50,
    )
    write(tmp_path, "settings.yaml", "audit: {benchmarks: {one: {weight: 3}, two: {}}}\n")
    assert [benchmark.weight for benchmark in load_settings(tmp_path).audit.benchmarks.values()] == [3, 1]


def test_setting_leaves_the_others_at_their_defaults(tmp_path: Path) -> None:
    write(tmp_path, "settings.yaml", "replicates: 3\nretry: {attempts: 2}\n")
    settings = load_settings(tmp_path)
    assert (settings.replicates, settings.retry.attempts) == (3, 2)
    assert settings.retry.max_wait_s == Settings().retry.max_wait_s
    assert settings.timeout_s == Settings().timeout_s


def test_last_day_of_an_unstable_case_is_no_number() -> None:
    assert UnstableCase(reason="a", until="2027-01-31").until == date(2027, 1, 31)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="a day such as 2027-01-31 is expected, not '1798675200'"):
        UnstableCase(reason="a", until="1798675200")  # type: ignore[arg-type]


def test_exception_of_an_unstable_case_ends_after_its_last_day() -> None:
    today = datetime.now(UTC).date()
    yesterdays, todays = (UnstableCase(reason="a", until=day) for day in (today - timedelta(days=1), today))
    assert yesterdays.is_over
    assert not todays.is_over or datetime.now(UTC).date() > today  # the day may change during the test


def test_documents_are_private_by_default(tmp_path: Path) -> None:
    write(tmp_path, "settings.yaml", "site: {components: {receipts: {documents: true}, notices: {}}}\n")
    site = load_settings(tmp_path).site
    assert [site.publishes_documents(name) for name in ("receipts", "notices", "others")] == [True, False, False]


MODELS = Models.model_validate({"models": [{"id": name, "provider": "p"} for name in ("a", "b", "c")]}).models


@pytest.mark.parametrize(
    ("wanted", "expected"), [((), "abc"), (("b",), "b"), (("c", "a"), "ca"), (("b", "a", "b"), "ba")]
)
def test_models_are_chosen_in_the_order_named(wanted: tuple[str, ...], expected: str) -> None:
    assert "".join(model.id for model in select_models(MODELS, wanted)) == expected


def test_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"unknown model 'z' \(known: a, b, c\)"):
        select_models(MODELS, ("a", "z"))
