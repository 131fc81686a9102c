"""Names of served models: which names are the same model, and which the same release."""

import pytest
from skill_evaluator.records.record import Record, Served, change_of, is_mixed, is_requested

from tests.support.records import a_record

DATED = ("-2024-08-06", "-20240806", "-0806", "-08-06", "-08-2024", "@20240806", "@2024-08-06", "-001", ":0", "-v1:0")


@pytest.mark.parametrize("form", DATED)
def test_release_of_a_served_model_is_compared_if_requested(form: str) -> None:
    assert change_of("x-1.5", f"x-1.5{form}", ["x-1.5"]) == "date"
    assert change_of("x-1.5", f"x-1.5{form}", [f"x-1.5{form}"]) == "model"
    assert is_requested(f"x-1.5{form}", ["x-1.5"])
    assert not is_requested("x-1.5-2023-01-01", [f"x-1.5{form}"])


@pytest.mark.parametrize(
    "name",
    [
        *("x-1.5-latest", "x-1.5:latest", "vendor/x-1.5", "models/x-1.5", "us.x-1.5", "eu.anthropic.x-1.5", "X-1.5"),
        *("/srv/models/x-1.5", "C:\\models\\x-1.5.gguf", "publishers/google/models/x-1.5@default"),
    ],
)
def test_location_in_a_model_name_is_ignored(name: str) -> None:
    assert change_of("x-1.5", name, [name]) is None
    assert is_requested(name, ["x-1.5"])
    assert is_requested("x-1.5-2024-08-06", [name])


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("gemini-2.5-pro", "gemini-3.8-flash", "model"),
        ("gpt-4", "gpt-4o", "model"),
        ("claude-opus-4-6", "claude-opus-4-7", "model"),
        ("llama3:8b", "llama3:70b", "model"),
        ("m-1", "m-2", "model"),
        (None, "m", None),
        (None, None, None),
        ("m", {"m": 1, "n": 1}, "model"),
        (None, {"m-0613": 1, "m-1106": 1}, "model"),
        ({"v/m": 3, "m": 1}, "m", None),
    ],
)
def test_other_base_name_is_another_model(before: Served, after: Served, change: str) -> None:
    assert change_of(before, after, ["m"]) == change
    assert change_of(after, before, ["m"]) == change


@pytest.mark.parametrize("served", ["m-1", None, {"m-1": 2, "m-2": 1}])
def test_served_model_is_a_name_or_counts_by_name(served: Served) -> None:
    record = a_record({"a": [1.0]}, served_model=served)
    assert Record.model_validate_json(record.model_dump_json()) == record
    assert (record.row().as_json()["served_model"], record.served_model) == (served, served)


def test_local_model_has_no_note_on_its_name() -> None:
    odd = {"served_model": "/srv/tiny.gguf"}
    assert a_record({"a": [1.0]}, **odd).served_note is not None
    assert [a_record({"a": [1.0]}, provider=name, **odd).served_note for name in ("local", "replay")] == [None] * 2
    assert "set `id: tiny.gguf` and" in str(a_record({"a": [1.0]}, **odd).served_note)  # an id is no path


@pytest.mark.parametrize("other", ["x-1.5@20240620", "us.anthropic.x-1.5-20240620-v1:0", "x-1.5-2024-06-20"])
def test_spellings_of_a_release_are_equal(other: str) -> None:
    for before, after in (("x-1.5-20240620", other), (other, "x-1.5-20240620")):
        assert change_of(before, after, [before]) is None
        assert is_requested(after, [before])
        assert not is_mixed({before: 1, after: 1})
    assert change_of(other, "x-1.5-20241022", [other]) == "model"
