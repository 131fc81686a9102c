"""Normalization of texts and JSON values for scoring, digests and messages."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skill_evaluator.text import (
    canonical_json,
    digest,
    frozen,
    key_path,
    nearest,
    normalise,
    split_words,
    without_punctuation,
)

from tests.support.json_values import json_values, quick, thorough, with_keys_reordered


@pytest.mark.parametrize(
    ("change", "text", "expected"),
    [
        (normalise, "  a\t b\n\nc ", "a b c"),
        (normalise, "a\u00a0b\u2003c", "a b c"),
        (normalise, "e\u0301", "é"),
        (normalise, "\u212b", "Å"),  # the ångström sign is the letter
        (normalise, "ﬁ", "ﬁ"),  # a ligature is not two letters (that would be NFKC)
        (without_punctuation, "A-B", "A B"),
        (without_punctuation, "«Bob’s»", "Bob s"),
        (without_punctuation, "a + b", "a + b"),
        (without_punctuation, "---", ""),
        (split_words, "The cat, the CAT!", ["the", "cat", "the", "cat"]),
        (split_words, "e\u0301té 2024", ["été", "2024"]),
        (split_words, "Straße", ["strasse"]),
    ],
)
def test_texts_are_normalized_for_comparison(change: Callable[[str], Any], text: str, expected: Any) -> None:
    assert change(text) == expected


@quick
@given(text=st.text(st.characters(exclude_categories=())))
def test_normalization_is_idempotent(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("value", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": None}, {}, True),
        ([1, None], [1], False),
        ({"a": {"b": None}}, {"a": {}}, True),
        ({"a": []}, {}, False),
        (None, {}, False),
        (1, 1.0, True),
        (-0.0, 0, True),
        (1e20, 10**20, True),
        (2**53 + 1, float(2**53), False),
        (int("7" * 400), int("7" * 399 + "8"), False),
        (10**400, 1e308, False),
        (5e-324, 0, False),
        ("\u212b", "\u00c5", True),
        ("\ud800", "\udfff", False),
        (False, 0, False),
        (1, True, False),
        (1, "1", False),
        ("é", "e\u0301", True),
        ([1, 2], [2, 1], False),
        # keys and kinds that might be taken for each other
        ({"\u00e9": 1}, {"e\u0301": 1}, True),
        ({"\u00e9": 1, "e\u0301": 2}, {"e\u0301": 2, "\u00e9": 1}, True),  # two keys, in whatever order
        ({"\u00e9": 1, "e\u0301": 2}, {"\u00e9": 2, "e\u0301": 1}, False),
        ({"\u00e9": 1, "e\u0301": 2}, {"\u00e9": 1}, False),
        ({"\u00e9": 1, "e\u0301": None}, {"\u00e9": 1}, True),
        ([True], [1], False),
        ([[]], [{}], False),
        (["array"], [["array"]], False),
        ([], ["array"], False),
    ],
)
def test_equal_values_have_equal_canonical_and_frozen_forms(value: Any, other: Any, same: bool) -> None:
    assert (canonical_json(value) == canonical_json(other)) is same
    assert (frozen(value) == frozen(other)) is same


@thorough
@given(value=json_values | st.lists(st.floats(-1e-3, 1e-3)), seed=st.integers(0, 99))
@example(value=[1e-05, 0.000012, 1e-4, -9.9e-5, 5e-324, 1e22, 2**70, "3e-5", 0.1], seed=0)
@example(value=json.loads("[" * 200 + "]" * 200), seed=0)
def test_canonical_json_is_valid_json_in_any_key_order(value: Any, seed: int) -> None:
    text = canonical_json(value)
    assert text == json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    assert canonical_json(json.loads(text)) == canonical_json(with_keys_reordered(value, seed)) == text


def test_digest_names_its_algorithm_and_accepts_any_text() -> None:
    assert digest("") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest("é") == digest("é".encode())
    assert digest("\ud800") != digest("\ud801")


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("antropic", ["openai", "anthropic"], "(did you mean 'anthropic'?)"),
        ("zzz", ["openai", "anthropic"], "(known: anthropic, openai)"),
        ("zzz", [], "(none is known)"),
    ],
)
def test_nearest_names_the_similar_or_all(name: str, names: list[str], expected: str) -> None:
    assert nearest(name, names) == expected


@thorough
@given(value=json_values, other=json_values, seed=st.integers(0, 99))
def test_frozen_forms_are_equal_if_canonical_texts_are(value: Any, other: Any, seed: int) -> None:
    for left, right in (
        (value, other),
        (value, with_keys_reordered(value, seed)),
        (value, json.loads(canonical_json(value))),
    ):
        same = canonical_json(left) == canonical_json(right)
        assert (frozen(left) == frozen(right)) is same
        assert hash(frozen(left)) == hash(frozen(right)) or not same


def test_key_path_joins_keys_and_indices() -> None:
    assert [key_path(parts) for parts in ((), ("a",), ("a", 0, "b"), (0, "a"))] == ["", "a", "a[0].b", "[0].a"]
