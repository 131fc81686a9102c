"""Text in, text out: normalisation, tokens, canonical JSON, key paths, digests and the nearest known name.

Its own module because scoring, configuration and error messages must agree on what «the same text» is.
"""

import difflib
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

_WORD = re.compile(r"\w+", re.UNICODE)


def normalise(text: str) -> str:
    """NFC text with runs of white space folded to one space and none at the ends."""
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def without_punctuation(text: str) -> str:
    """Drop every character of a Unicode punctuation category, then fold white space again."""
    return " ".join("".join(" " if unicodedata.category(mark).startswith("P") else mark for mark in text).split())


def words(text: str) -> list[str]:
    """Case-folded words of a text, in order: what token F1 and ROUGE-L count."""
    return _WORD.findall(normalise(text).casefold())


def canonical_json(value: Any) -> str:
    """The one JSON text of equal values: keys sorted, null members dropped, whole floats as integers, text as NFC.

    >>> canonical_json({"b": 1.0, "a": None}) == canonical_json({"b": 1})
    True
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """One frame per level of nesting (a comprehension has its own): values may be hundreds of levels deep."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        members = {}
        for key, child in _members(value).items():
            members[key] = _plain(child)
        return members
    if isinstance(value, list):
        items = []
        for child in value:
            items.append(_plain(child))
        return items
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _members(value: dict[str, Any]) -> dict[str, Any]:
    """An object's members that are not null, by the names of their keys."""
    if None in value.values():
        value = {key: child for key, child in value.items() if child is not None}
    return with_nfc_keys(value)


def with_nfc_keys(value: dict[str, Any]) -> dict[str, Any]:
    """An object by the names of its keys in NFC; the object itself where its keys are these names."""
    return value if "".join(value).isascii() else rename_keys(value, keys_by_nfc_name(value))


def keys_by_nfc_name(value: dict[str, Any]) -> dict[str, str]:
    """The keys of an object that are not NFC, by their name in NFC; none where that would make two keys one."""
    if "".join(value).isascii():
        return {}
    names = {unicodedata.normalize("NFC", key): key for key in value}
    return {name: key for name, key in names.items() if name != key} if len(names) == len(value) else {}


def rename_keys(value: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """An object with its keys renamed; `names` are new name → key."""
    if not names:
        return value
    new = {key: name for name, key in names.items()}
    return {new.get(key, key): child for key, child in value.items()}


def frozen(value: Any) -> Hashable:
    """One hashable form of all equal JSON values (of nested tuples, so that it is made and compared quickly).

    >>> frozen({"b": 1.0, "a": None}) == frozen({"b": 1}), frozen([1]) == frozen([True])
    (True, False)
    """
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        members = _members(value)
        parts: list[Hashable] = ["object"]
        for key in sorted(members):
            parts += (key, frozen(members[key]))
        return tuple(parts)
    if isinstance(value, list):
        parts = ["array"]
        for child in value:
            parts.append(frozen(child))
        return tuple(parts)
    if value is None or isinstance(value, bool):
        return ("literal", value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def same_json(one: Any, other: Any) -> bool:
    """Whether two values have the same canonical text; quicker than making both.

    >>> same_json({"b": 1.0, "a": None}, {"b": 1}), same_json([1], [True])
    (True, False)
    """
    if isinstance(one, dict) and isinstance(other, dict):
        one, other = _members(one), _members(other)
        if one.keys() != other.keys():
            return False
        for key, child in one.items():  # noqa: SIM110 (a generator is one more frame per level of nesting)
            if not same_json(child, other[key]):
                return False
        return True
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        for left, right in zip(one, other, strict=True):  # noqa: SIM110
            if not same_json(left, right):
                return False
        return True
    if isinstance(one, str) and isinstance(other, str):
        return one == other or unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def refuse_constant(name: str) -> Any:
    """For `parse_constant`: NaN and Infinity are not JSON."""
    raise ValueError(f"{name} is not a JSON value")


def finite_float(text: str) -> float:
    """For `parse_float`: a number that no float can hold is none that could be compared."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is more than a number may be")
    return number


def key_path(location: tuple[int | str, ...]) -> str:
    """`("models", 2, "provider")` → `models[2].provider`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def digest(content: str | bytes) -> str:
    """Return `sha256:` and the hexadecimal SHA-256 of the content (text as UTF-8)."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def letters_of(options: Sequence[str]) -> str:
    """The letters that stand for so many options.

    >>> letters_of(("Paris", "Lyon", "Nice"))
    'ABC'
    """
    return ascii_uppercase[: len(options)]


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "case"), counted(2, "case")
    ('1 case', '2 cases')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def nearest(name: str, known: Iterable[str]) -> str:
    """`(did you mean 'x'?)` when a known name is close, else the list of known names."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"(did you mean '{close[0]}'?)"
    return f"(known: {', '.join(names)})" if names else "(none is known)"


def nearest_path(path: str, known: Collection[str]) -> str:
    """`nearest` among paths: those below it, else a close one, else those that end in the nearest name, else all.

    >>> nearest_path("price", ["total", "lines[].price"]), nearest_path("lines", ["line", "lines[].price"])
    ('(known: lines[].price)', '(known: lines[].price)')
    """
    inside = [other for other in known if path and other.startswith((f"{path}.", f"{path}[]"))]
    if inside:
        return f"(known: {', '.join(sorted(inside))})"
    names = {other: other.rpartition(".")[2] for other in known}
    close = difflib.get_close_matches(path.rpartition(".")[2], names.values(), n=1)
    if difflib.get_close_matches(path, known) or not close:
        return nearest(path, known)
    return nearest(path, [other for other, name in names.items() if name in close])
