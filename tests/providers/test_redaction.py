"""Keys are struck out of what comes back, in every spelling of them, and nothing else is."""

import base64
import json
import random
import string
import time
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import assume, given
from hypothesis import strategies as st
from skill_evaluator.library.config import Model
from skill_evaluator.providers.redaction import Redactor, _without_parts, redactor_of

FIRST, SECOND = "sk-first-0123456789", "sk-first-0123456789-and-more"
CHARACTERS = string.ascii_letters + string.digits + "-_.+/="
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in capitals": str.upper,
    "in lower case": str.lower,
    "percent-encoded": lambda key: quote(key, safe=""),
    "percent-encoded in full": lambda key: "".join(f"%{ord(mark):02x}" for mark in key),
    "percent-encoded in capitals": lambda key: "".join(f"%{ord(mark):02X}" for mark in key),
    "percent-encoded twice": lambda key: quote("".join(f"%{ord(mark):02X}" for mark in key), safe=""),
    "as JSON": lambda key: json.dumps(key)[1:-1],
    "with JSON's slashes": lambda key: key.replace("/", r"\/"),
    "in JSON escapes": lambda key: "".join(f"\\u{ord(mark):04x}" for mark in key),
    "in JSON escapes in capitals": lambda key: "".join(f"\\u{ord(mark):04X}" for mark in key),
    "in JSON escapes inside JSON": lambda key: "".join(f"\\\\u{ord(mark):04x}" for mark in key),
}


def encoded(text: str, *, urlsafe: bool, padded: bool) -> str:
    """Return a text in base64."""
    code = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(text.encode()).decode()
    return code if padded else code.rstrip("=")


keys = st.text(CHARACTERS, min_size=12, max_size=80)


def redactor(key: str) -> Redactor:
    return Redactor([key])


@given(keys)
def test_a_key_is_struck_out_however_it_is_spelled(key: str) -> None:
    strike_out = redactor(key)
    for name, spell in SPELLINGS.items():
        assert strike_out(f"<{spell(key)}>") == "<[redacted]>", name


@given(
    key=keys,
    before=st.text(max_size=7),
    after=st.text(max_size=7),
    urlsafe=st.booleans(),
    padded=st.booleans(),
    wrap=st.sampled_from([str, lambda code: quote(code, safe=""), lambda code: code.replace("/", r"\/")]),
)
def test_a_key_in_base64_is_struck_out_wherever_it_begins_in_it(
    key: str, before: str, after: str, urlsafe: bool, padded: bool, wrap: Callable[[str], str]
) -> None:
    around = encoded(before + key + after, urlsafe=urlsafe, padded=padded)
    alone = encoded(key, urlsafe=urlsafe, padded=padded)
    left = redactor(key)(f"Basic {wrap(around)}")
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


def test_a_text_that_almost_holds_a_key_is_searched_quickly() -> None:
    strike_out = redactor("ssk-" + "sk-%5s" * 12)
    for mark in (*"\\%us5", "sk-", "\\u0073", "%73", "c2st"):
        began = time.process_time()
        strike_out(mark * (100_000 // len(mark)))
        assert time.process_time() - began < 2.5, mark


def test_a_key_in_a_large_answer_is_found_among_many_keys() -> None:
    chance = random.Random(7)
    secrets = ["".join(chance.choices(CHARACTERS, k=60)) for _ in range(8)]
    text = json.dumps([{"title": f"notice {number}", "year": 2024} for number in range(2_000)])
    assert Redactor(secrets)(text + secrets[3] + text) == f"{text}[redacted]{text}"


def test_every_known_key_is_struck_out() -> None:
    strike_out = Redactor([FIRST, "xoxb-9876543210"])
    assert strike_out(f"wrong key {FIRST}, {FIRST} or xoxb-9876543210.") == (
        "wrong key [redacted], [redacted] or [redacted]."
    )


def test_a_key_inside_a_longer_key_leaves_no_tail() -> None:
    assert Redactor([FIRST, SECOND])(f"<{SECOND}>") == "<[redacted]>"


def test_a_key_with_space_around_it_is_found_without() -> None:
    assert Redactor([f" {FIRST}\n"])(f"<{FIRST}>") == "<[redacted]>"


def test_a_placeholder_damages_no_text() -> None:
    text = "none of the boxes has no-key written on it, x"
    for placeholder in ("", "x", "none", "no-key"):
        assert Redactor([placeholder])(text) == text


def test_the_password_of_an_address_is_struck_out_and_its_basic_authentication() -> None:
    model = Model(id="m", provider="openai", base_url="https://someone:p%40ssword-1@models.example/v1?key=query-secret")
    strike_out = redactor_of({}, [model])
    basic = base64.b64encode(b"someone:p@ssword-1").decode()
    assert strike_out(f"<p@ssword-1> <p%40ssword-1> <Basic {basic}>") == "<[redacted]> <[redacted]> <Basic [redacted]>"
    assert model.public_url == "https://models.example/v1"


BODY = "Zx9Kq2Lm7Pv4Rt8Wy3Bn6Hc1"


def test_parts_of_a_key_are_struck_out_of_failures_and_long_ones_of_answers() -> None:
    redact = Redactor([f"sk-ant-api03-{BODY}"])
    code = BODY.encode().hex()
    for part in (BODY[:12], BODY[5:20], BODY[::-1][3:16], code[:24], code[10:40].upper(), BODY[-12:]):
        assert redact(f"no such key: {part}!") == "no such key: [redacted]!", part
    assert redact.answer(f"<{BODY[2:22]}>") == "<[redacted]>"
    for text in (BODY[:11], code[:23], "keys begin with sk-ant-api03-", "sk-ant-api03-" + BODY[:3]):
        assert redact(text) == text, text
    for text in (BODY[:19], BODY[::-1][:22]):
        assert redact.answer(text) == text, text


@given(key=st.text("abc", min_size=12, max_size=60), text=st.text("abc", max_size=200))
def test_no_part_of_a_key_of_that_length_is_left(key: str, text: str) -> None:
    left = _without_parts(text, key, 12).split("[redacted]")
    assert not [part for piece in left for at in range(len(piece) - 11) if (part := piece[at : at + 12]) in key]


def test_an_answer_full_of_parts_is_searched_in_little_time() -> None:
    begun = time.process_time()
    assert len(Redactor(["a" * 60]).answer("a" * 1_000_000)) < 1_000_000
    assert time.process_time() - begun < 5
