"""One leaf changed: into a value that its rule must call wrong, or into one that says the same.

Nothing here asks the product what is equal: a wrong value is wrong by a wide margin, the same one by the rule's words.
"""

import random
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from skill_evaluator.comparing.field_plan import FieldRule

_LETTERS = "bcdfgkmpz4579"
_OTHER_WORDS = "qqvz xkjw zzqy wvxq"  # shares no word, and hardly a letter, with anything
_AMOUNT = re.compile(r"-?\d+(\.\d+)?")


def wrong_value(value: Any, rule: FieldRule, seen: Sequence[Any], dice: random.Random) -> Any:
    """A value really different under the rule: another one seen at the same path, or an edit; null → any value."""
    others = [other for other in seen if not may_be_equal(value, other, rule)]
    if others and dice.random() < 0.5:
        return dice.choice(others)
    match rule.compare, value:
        case _, bool():
            return dice.choice([not value, str(value)])
        case _, int() | float():
            step = 10 * (rule.tolerance + rule.relative_tolerance * abs(value)) + dice.choice([0.5, 1, 1000])
            text = [] if rule.from_string else [str(value)]
            return dice.choice([value + step, value - step, *text])
        case "number", str():
            amount = float(value) if _AMOUNT.fullmatch(value) else 0.0
            return f"{amount + 10 * rule.tolerance + dice.choice([1, 20, 300]):.2f}"
        case "date", _:
            return f"19{dice.randint(70, 89)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
        case "text", str() if rule.threshold is None:
            return f"{value} {dice.choice(_OTHER_WORDS.split())}"
        case "string" | "text", str() if rule.threshold is not None:
            return _OTHER_WORDS
        case _, str():
            return _with_other_letter(value, dice)
    return _made_up(rule, dice)


def _made_up(rule: FieldRule, dice: random.Random) -> Any:
    """A value where there was none."""
    match rule.compare:
        case "number":
            return dice.choice(["12.50", "7"]) if rule.from_string else dice.choice([7, 12.5])
        case "exact":
            return dice.choice([True, 3])
    return _OTHER_WORDS


def _with_other_letter(text: str, dice: random.Random) -> str:
    places = [place for place, letter in enumerate(text) if letter.isalnum()]
    if not places or dice.random() < 0.2:
        return f"{text} {dice.choice(_LETTERS)}"
    place = dice.choice(places)
    letter = dice.choice([other for other in _LETTERS if other not in text[place].casefold()])
    return text[:place] + letter + text[place + 1 :]


def same_said_otherwise(value: Any, rule: FieldRule, dice: random.Random) -> Any:
    """A value that is equal under the rule and written in another way, if there is one."""
    if isinstance(value, bool) or not isinstance(value, str):
        return _same_number(value)
    ways = [unicodedata.normalize("NFD", value), value]
    if rule.compare in ("string", "date", "category", "text"):
        ways += [f" {value}\n", value.replace(" ", "  ")]
    free_text = rule.compare == "text" and rule.threshold is not None
    if free_text or rule.casefold:
        ways += [way for way in (value.upper(), value.swapcase()) if way.casefold() == value.casefold()]
    if free_text or rule.ignore_punctuation:
        ways += [f"«{value}»", f"{value}."]
    if rule.compare == "number" and rule.from_string and _AMOUNT.fullmatch(value):
        ways += [f"RM {value}", f" {value} "]
    return dice.choice(ways)


def _same_number(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**50 else value


def bare(value: Any) -> str:
    """What is left of a value when all that any rule forgives is taken off."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{float(value):.1f}"
    text = unicodedata.normalize("NFC", str(value)).casefold()
    return "".join(letter for letter in text if letter.isalnum())


def may_be_equal(one: Any, other: Any, rule: FieldRule) -> bool:
    """True if two leaves could be equal under the rule; errs on that side."""
    if one is None or other is None:
        return one is other
    if rule.compare == "number" and isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= 10 * (rule.tolerance + rule.relative_tolerance * abs(one)) + 1e-6
    if rule.from_string or rule.formats:
        return True
    if rule.threshold is not None and isinstance(one, str) and isinstance(other, str):
        left, right = set(bare_words(one)), set(bare_words(other))
        shared = 2 * len(left & right) / max(1, len(left) + len(right))
        return rule.compare != "text" or shared >= rule.threshold / 2
    return bare(one) == bare(other)


def bare_words(text: str) -> list[str]:
    """The words of a text without case and punctuation."""
    return [word for word in map(bare, text.split()) if word]
