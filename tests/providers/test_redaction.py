"""Keys are removed from texts in every encoding, and nothing else is removed."""

import base64
import json
import string
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from hypothesis import assume, given
from hypothesis import strategies as st
from skill_evaluator.display import Redactor
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.processes import Program
from skill_evaluator.providers import Configuration
from skill_evaluator.providers.access import Identity
from skill_evaluator.providers.base import Federation

FIRST, SECOND = "sk-first-0123456789", "sk-first-0123456789-and-more"
CHARACTERS = string.ascii_letters + string.digits + "-_.+/="
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "URL-quoted": lambda key: quote(key, safe=""),
    "as JSON": lambda key: json.dumps(key)[1:-1],
    "with JSON's slashes": lambda key: key.replace("/", r"\/"),
}


def encoded(text: str, *, urlsafe: bool, padded: bool) -> str:
    """Return a text in base64."""
    code = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(text.encode()).decode()
    return code if padded else code.rstrip("=")


keys = st.text(CHARACTERS, min_size=12, max_size=80)


def redactor(key: str) -> Redactor:
    return Redactor([key])


@given(keys)
def test_key_is_removed_in_every_encoding(key: str) -> None:
    strike_out = redactor(key)
    for name, spell in SPELLINGS.items():
        assert strike_out(f"<{spell(key)}>") == "<[redacted]>", name


@given(key=keys, before=st.text(max_size=7), after=st.text(max_size=7), urlsafe=st.booleans(), padded=st.booleans())
def test_key_in_base64_is_removed_at_any_offset(key: str, before: str, after: str, urlsafe: bool, padded: bool) -> None:
    around = encoded(before + key + after, urlsafe=urlsafe, padded=padded)
    alone = encoded(key, urlsafe=urlsafe, padded=padded)
    left = redactor(key)(f"Basic {around}")
    assert "[redacted]" in left
    assert alone[:-2].strip("=") not in left
    assert key[2:-2] not in "".join(
        base64.urlsafe_b64decode(piece + "=" * (-len(piece) % 4)).decode("latin-1")
        for piece in left.removeprefix("Basic ").split("[redacted]")
        if set(piece) <= set(string.ascii_letters + string.digits + "-_") and len(piece) % 4 != 1
    )


@given(st.text(), keys)
def test_a_text_without_a_key_is_unchanged(text: str, key: str) -> None:
    assume(key[:8].lower() not in text.lower())
    assert redactor(key)(text) == text


def test_a_key_inside_a_longer_key_leaves_no_tail() -> None:
    assert Redactor([FIRST, SECOND])(f"<{SECOND}>") == "<[redacted]>"


def test_a_key_with_space_around_it_is_found_without() -> None:
    assert Redactor([f" {FIRST}\n"])(f"<{FIRST}>") == "<[redacted]>"


def test_a_placeholder_damages_no_text() -> None:
    text = "none of the boxes has no-key written on it, x"
    for placeholder in ("", "x", "none", "no-key"):
        assert Redactor([placeholder])(text) == text


def test_password_of_an_address_is_removed_in_every_encoding() -> None:
    model = Model(id="m", provider="openai", base_url="https://someone:p%40ssword-1@models.example/v1?key=query-secret")
    strike_out = Configuration(settings=Settings(), models=(model,), kinds={}, keys={}).redactor()
    basic = base64.b64encode(b"someone:p@ssword-1").decode()
    assert strike_out(f"<p@ssword-1> <p%40ssword-1> <Basic {basic}>") == "<[redacted]> <[redacted]> <Basic [redacted]>"
    assert model.public_url == "https://models.example/v1"


def test_repr_of_an_object_with_a_key_does_not_show_it() -> None:
    federation = Federation(required=(), optional=(), audience="", rule="")
    identity = Identity(federation, FIRST, faults=(), refusals=())
    program = Program(argv=(), folder=Path(), seconds=1, output_bytes=1, environment={"KEY": FIRST})
    configuration = Configuration(settings=Settings(), models=(), kinds={}, keys={"KEY": FIRST})
    assert [item for item in (identity, program, configuration) if FIRST in repr(item)] == []
