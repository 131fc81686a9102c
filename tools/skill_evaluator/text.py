"""Texts and JSON values: normalization, canonical JSON, digests, differences, and names and versions in messages."""

import difflib
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from string import ascii_uppercase
from typing import Any

_WORD = re.compile(r"\w+", re.UNICODE)


def normalise(text: str) -> str:
    """Return a text in NFC with single spaces and no surrounding white space."""
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def without_punctuation(text: str) -> str:
    """Return a text with Unicode punctuation replaced by spaces, and with single spaces."""
    characters = (" " if unicodedata.category(character).startswith("P") else character for character in text)
    return " ".join("".join(characters).split())


def unix_lines(text: str) -> str:
    """Return a text in which every line end is `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def split_words(text: str) -> list[str]:
    """Return the case-folded words of a text, which token F1 and ROUGE-L compare."""
    return _WORD.findall(normalise(text).casefold())


def canonical_json(value: Any) -> str:
    """Format a value as canonical JSON: sorted keys, no null members, whole floats as integers, texts in NFC."""
    return json.dumps(_canonical(value), separators=(",", ":"), ensure_ascii=False, check_circular=False)


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        members = dict(sorted(_members(value).items()))
        return dict(zip(members, map(_canonical, members.values()), strict=True))
    if isinstance(value, list):
        return list(map(_canonical, value))
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _members(value: dict[str, Any]) -> dict[str, Any]:
    if None in value.values():
        value = {key: child for key, child in value.items() if child is not None}
    return with_nfc_keys(value)


def with_nfc_keys(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with its keys in NFC. Return it unchanged if two keys would become equal."""
    return rename_keys(value, keys_by_nfc_name(value))


def keys_by_nfc_name(value: dict[str, Any]) -> dict[str, str]:
    """Return the keys of an object that are not in NFC, by their NFC form. Return {} if two keys would become equal."""
    if "".join(value).isascii():
        return {}
    names = {unicodedata.normalize("NFC", key): key for key in value}
    return {name: key for name, key in names.items() if name != key} if len(names) == len(value) else {}


def rename_keys(value: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return an object with some keys renamed; `names` maps each new name to the present key."""
    if not names:
        return value
    new = {key: name for name, key in names.items()}
    return {new.get(key, key): child for key, child in value.items()}


def frozen(value: Any) -> Hashable:
    """Return a hashable form of a JSON value. Values with the same canonical JSON have equal forms."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        members = dict(sorted(_members(value).items()))
        return ("object", *members, *map(frozen, members.values()))
    if isinstance(value, list):
        return ("array", *map(frozen, value))
    if value is None or isinstance(value, bool):
        return ("literal", value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def count_leaves(value: Any) -> int:
    """Count the scalars and the empty arrays and objects of a JSON value."""
    leaves, stack = 0, [value]
    while stack:
        part = stack.pop()
        if part and isinstance(part, dict | list):
            stack += part.values() if isinstance(part, dict) else part
        else:
            leaves += 1
    return leaves


def refuse_constant(name: str) -> Any:
    """Raise ValueError. `json.loads` calls this function as `parse_constant` for NaN and Infinity."""
    raise ValueError(f"{name} is not a JSON value")


def finite_float(text: str) -> float:
    """Parse a number (`parse_float` of `json.loads`). Raise ValueError if it is too large for a float."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large for a number")
    return number


def key_path(location: tuple[int | str, ...]) -> str:
    """Format a location in a JSON value as a path: `("models", 2, "provider")` → `models[2].provider`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def digest(content: str | bytes) -> str:
    """Return `sha256:` and the hexadecimal SHA-256 of the content (text as UTF-8)."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def letters_of(options: Sequence[str]) -> str:
    """Return the letters that name the options of a multiple-choice question: `ABC` for three options."""
    return ascii_uppercase[: len(options)]


def counted(number: int, noun: str) -> str:
    """Format a number with its noun, such as `1 case` or `1,200 cases`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], max_names: int = 5) -> str:
    """Format the first names and the number of other names, such as `a, b and 3 more`."""
    return ", ".join(names[:max_names]) + (f" and {len(names) - max_names} more" if len(names) > max_names else "")


def ranges(indexes: Sequence[int]) -> str:
    """Format ascending numbers as ranges.

    >>> ranges([0, 1, 2, 5])
    '0-2, 5'
    """
    runs = [[pair[1] for pair in run] for _, run in groupby(enumerate(indexes), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def nearest(name: str, names: Iterable[str]) -> str:
    """Format the most similar of `names` as `(did you mean 'x'?)`. If none is similar, format all: `(known: x, y)`."""
    choices = sorted(names)
    close = difflib.get_close_matches(name, choices, n=1, cutoff=0.6)
    if close:
        return f"(did you mean '{close[0]}'?)"
    return f"(known: {', '.join(choices)})" if choices else "(none is known)"


def nearest_path(path: str, paths: Collection[str]) -> str:
    """Format a hint for an unknown path: the known paths below it, else the most similar path.

    If no path is similar, the hint has the paths whose last name is similar, or else all paths.

    >>> nearest_path("price", ["total", "lines[].price"]), nearest_path("lines", ["line", "lines[].price"])
    ('(known: lines[].price)', '(known: lines[].price)')
    """
    inside = [candidate for candidate in paths if path and candidate.startswith((f"{path}.", f"{path}[]"))]
    if inside:
        return f"(known: {', '.join(sorted(inside))})"
    names = {candidate: candidate.rpartition(".")[2] for candidate in paths}
    close = difflib.get_close_matches(path.rpartition(".")[2], names.values(), n=1)
    if difflib.get_close_matches(path, paths) or not close:
        return nearest(path, paths)
    return nearest(path, [candidate for candidate, name in names.items() if name in close])


@lru_cache(maxsize=1_000)
def re2_pattern(pattern: str) -> Any:
    """Compile a pattern with RE2, which matches in linear time; raise ValueError if RE2 rejects the pattern."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        reason = problem.args[0].decode("utf-8", "replace") if isinstance(problem.args[0], bytes) else problem
        raise ValueError(
            f"RE2 rejects the pattern ({reason}); it has no look-around and no back-references: "
            "use two checks, or a Python check"
        ) from None


def matches(text: str, pattern: str) -> bool:
    """Return whether an RE2 pattern matches anywhere in a text; raise ValueError if RE2 rejects the pattern."""
    encodable = text.encode("utf-8", "replace").decode()  # RE2 rejects lone surrogates
    return re2_pattern(pattern).search(encodable) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """A difference between two JSON values at a path such as `items[2].amount`; a missing value is None."""

    path: str
    before: Any
    after: Any


def differences(before: Any, after: Any) -> list[ValueChange]:
    """Return the differences between two JSON values, sorted by path; the order of array items is ignored.

    >>> changes = differences({"a": 1, "b": [2, 3]}, {"a": 1, "b": [3, 4]})
    >>> [(change.path, change.before, change.after) for change in changes]
    [('b[0]', 2, 4)]
    """
    from deepdiff import DeepDiff  # slow to import
    from deepdiff.helper import notpresent

    tree = DeepDiff(before, after, ignore_order=True, view="tree", ignore_numeric_type_changes=True)
    changes = []
    for level in (level for levels in tree.values() for level in levels):
        old, new = (None if side is notpresent else side for side in (level.t1, level.t2))
        if old is not None or new is not None:  # null equals a missing value
            path = key_path(tuple(level.path(output_format="list", force="fake")))
            changes.append(ValueChange(path=path, before=old, after=new))
    return sorted(changes, key=lambda change: change.path)


_GENERATED = re.compile(r"\d+\.\d+\.\d+\+[0-9a-f]{8}")


def is_generated(version: str) -> bool:
    """Return whether a version has the form of a generated version, such as `0.3.0+3af3d45f`."""
    return _GENERATED.fullmatch(version) is not None


def version_words(version: str, timestamp: str) -> str:
    """Format a version for a report. Append the date of `timestamp` if the version is generated.

    >>> version_words("0.3.0+3af3d45f", "2026-01-24T09:30:00Z"), version_words("1.2.0", "2026-01-24T09:30:00Z")
    ('0.3.0+3af3d45f (2026-01-24)', '1.2.0')
    """
    return f"{version} ({timestamp[:10]})" if is_generated(version) else version


Piece = tuple[str, bool]
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_MAX_TOKENS = 20_000  # tokens in both texts; the time grows with the square


def marked_differences(first: str, second: str) -> tuple[list[Piece], list[Piece]]:
    """Split two texts into pieces, each with True if the other text lacks it. Long texts are one piece with False.

    >>> marked_differences("It opens at 8", "It opens at nine")
    ([('It opens at ', False), ('8', True)], [('It opens at ', False), ('nine', True)])
    """
    from rapidfuzz.distance import LCSseq

    first_tokens, second_tokens = _TOKEN.findall(first), _TOKEN.findall(second)
    if len(first_tokens) + len(second_tokens) > _MAX_TOKENS:
        return [(first, False)], [(second, False)]
    marked_left, marked_right = [False] * len(first_tokens), [False] * len(second_tokens)
    for step in LCSseq.editops(first_tokens, second_tokens):
        if step.tag == "delete":
            marked_left[step.src_pos] = True
        else:
            marked_right[step.dest_pos] = True
    return _joined(first_tokens, marked_left), _joined(second_tokens, marked_right)


def _joined(tokens: Sequence[str], marked: list[bool]) -> list[Piece]:
    for index in range(1, len(tokens) - 1):  # also marks a space between two marked words
        if tokens[index].isspace() and marked[index - 1] and marked[index + 1]:
            marked[index] = True
    return [
        ("".join(token for token, _ in run), kind)
        for kind, run in groupby(zip(tokens, marked, strict=True), key=lambda pair: pair[1])
    ]
