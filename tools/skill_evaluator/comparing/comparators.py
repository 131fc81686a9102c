"""Compare two leaves by a canonical form, or with a declared tolerance.

A canonical form carries its type, so that `1` is not `"1"`. A package adds a `Comparator` through the entry-point group
`skill_evaluator.comparators`.
"""

import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

from skill_evaluator import plugins
from skill_evaluator.comparing.declarations import COMPARATOR_GROUP, FieldRule
from skill_evaluator.errors import ComponentError
from skill_evaluator.text import frozen, nearest, normalise, without_punctuation, words

_NOT_AMOUNT = re.compile(r"[^\d.,]|[.,](?!\s*\d)|(?<=[^\W\d_])[.,]")  # includes the point of «Rs.» and of «5.-»
_MINUS = re.compile(r"(?<![.,])[-−]")
_JSON_NUMBER = re.compile(r"\s*-?(0|[1-9][0-9]{0,99})(\.[0-9]{1,99})?([eE][-+]?[0-9]{1,2})?\s*")  # always finite
_TWO_NUMBERS = re.compile(r"\d[^\d]*[^\d\s.,'’][^\d]*\d")


@dataclass(frozen=True, slots=True)
class Comparator:
    """A comparator. Two leaves are equal if their hashable `canonical` forms are equal.

    Under a rule with a tolerance or threshold, `close` (if any) decides instead. It gets the two raw values, must be
    reflexive and symmetric, and must return the same result for values with the same forms. Neither function is called
    with null.
    """

    canonical: Callable[[Any, FieldRule], Hashable]
    close: Callable[[Any, Any, FieldRule], bool] | None = None


@cache
def comparator(name: str) -> Comparator:
    """Return the shipped or plugin comparator with this name. Raise ComponentError if there is none.

    Raise ConfigError if the plugin cannot be loaded.
    """
    if name in COMPARATORS:
        return COMPARATORS[name]
    added = plugins.load(COMPARATOR_GROUP, name, Comparator)
    if added is None:
        choices = COMPARATORS.keys() | set(plugins.names(COMPARATOR_GROUP))
        raise ComponentError(f"unknown comparator '{name}' {nearest(name, choices)}")
    called = partial(partial, plugins.call, f"comparator '{name}'")
    return Comparator(called(added.canonical), added.close and called(added.close))


def equal(truth: Any, output: Any, rule: FieldRule) -> bool:
    """Return whether two leaves are equal under a rule, including its tolerance or threshold. Null equals only null."""
    if truth is None or output is None:
        return truth is output
    by = comparator(rule.compare or "exact")
    if rule.exact_equality or by.close is None:
        return by.canonical(truth, rule) == by.canonical(output, rule)
    return by.close(truth, output, rule)


def canonical(value: Any, rule: FieldRule) -> Hashable:
    """Return the hashable form of a leaf under a rule. Without a tolerance, leaves with equal forms are equal."""
    return comparator(rule.compare or "exact").canonical(value, rule)


def _string(value: Any, rule: FieldRule) -> Hashable:
    if not isinstance(value, str):
        return frozen(value)
    text = normalise(value)
    if rule.casefold:
        text = text.casefold()
    return without_punctuation(text) if rule.ignore_punctuation else text


def _has_edit_similarity(truth: Any, output: Any, rule: FieldRule) -> bool:
    truth_text, output_text = _string(truth, rule), _string(output, rule)
    if not (isinstance(truth_text, str) and isinstance(output_text, str)):
        return truth_text == output_text
    from rapidfuzz.distance import Levenshtein

    longest = max(len(truth_text), len(output_text))
    edits = int((1 - _threshold(rule)) * longest + 1e-9)  # whole edits: 1 - 0.8 of 5 letters is one, not 0.9999
    return Levenshtein.distance(truth_text, output_text, score_cutoff=edits) <= edits


def _threshold(rule: FieldRule) -> float:
    return 1.0 if rule.threshold is None else rule.threshold


def amount(text: str) -> float | None:
    """Return the number in a printed amount, such as `RM 1,234.50`, `1.234,50 €`, `(12.00)` or `-3`.

    If both separators occur, the last one is decimal. A comma alone is a thousands separator if exactly three digits
    follow it in every group, else decimal; a point alone is decimal. Return None for other texts, and for texts with
    two numbers (`3 x 4.00`, `10-12`).
    """
    if _TWO_NUMBERS.search(text):
        return None
    negative = _MINUS.search(text) or (text.strip().startswith("(") and text.strip().endswith(")"))
    digits = _NOT_AMOUNT.sub("", text)
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma > point and (point >= 0 or not re.fullmatch(r"\d{1,3}(,\d{3})+", digits)):
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.replace(",", "")
    if not re.fullmatch(r"(\d+|\d*\.\d+)", digits):
        return None
    number = -float(digits) if negative else float(digits)
    return number if math.isfinite(number) else None  # hundreds of digits


def read_number(text: str) -> int | float | str:
    """Return the number in a text of JSON's number format. Return any other text unchanged.

    >>> read_number("4.750"), read_number("1E+2"), read_number("007"), read_number("4 kg")
    (4.75, 100.0, '007', '4 kg')
    """
    return json.loads(text) if _JSON_NUMBER.fullmatch(text) else text


def _as_number(value: Any, rule: FieldRule) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    return amount(value) if rule.from_string and isinstance(value, str) else None


def _number(value: Any, rule: FieldRule) -> Hashable:
    number = _as_number(value, rule)
    return _category(value, rule) if number is None else frozen(number)


def _within_tolerance(truth: Any, output: Any, rule: FieldRule) -> bool:
    truth_number, output_number = _as_number(truth, rule), _as_number(output, rule)
    if truth_number is None or output_number is None:
        return _number(truth, rule) == _number(output, rule)
    if truth_number == output_number:
        return True
    try:
        allowed = max(rule.tolerance, rule.relative_tolerance * max(abs(truth_number), abs(output_number)))
        difference = abs(truth_number - output_number)
        return math.isfinite(difference) and (difference <= allowed or math.isclose(difference, allowed, rel_tol=1e-9))
    except OverflowError:  # an integer of more than 308 digits
        return False


def _as_date(value: Any, rule: FieldRule) -> datetime.date | None:
    return _parsed_date(normalise(value), rule.formats or ("%Y-%m-%d",)) if isinstance(value, str) else None


@lru_cache(maxsize=4096)  # strptime caches only five formats
def _parsed_date(text: str, formats: tuple[str, ...]) -> datetime.date | None:
    for form in formats:
        try:
            return datetime.datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None


def _date(value: Any, rule: FieldRule) -> Hashable:
    day = _as_date(value, rule)
    return ("date", day) if day else frozen(normalise(value) if isinstance(value, str) else value)


def _within_days(truth: Any, output: Any, rule: FieldRule) -> bool:
    truth_date, output_date = _as_date(truth, rule), _as_date(output, rule)
    if truth_date is None or output_date is None:
        return _date(truth, rule) == _date(output, rule)
    return abs((truth_date - output_date).days) <= rule.tolerance_days


def _has_token_f1(truth: Any, output: Any, rule: FieldRule) -> bool:
    if not (isinstance(truth, str) and isinstance(output, str)):
        return frozen(truth) == frozen(output)
    return token_f1(truth, output) >= _threshold(rule)


def _category(value: Any, rule: FieldRule) -> Hashable:
    return normalise(value) if isinstance(value, str) else frozen(value)


def token_f1(truth: str, output: str) -> float:
    """Return the harmonic mean of precision and recall of the output's words, as multisets.

    Range 0 to 1, 1 is best; both empty → 1. Rajpurkar et al. 2016 (SQuAD), https://arxiv.org/abs/1606.05250, but
    articles count.

    >>> round(token_f1("the cat sat", "the cat ran"), 3)
    0.667
    """
    truth_words, output_words = words(truth), words(output)
    if not truth_words and not output_words:
        return 1.0
    common = sum((Counter(truth_words) & Counter(output_words)).values())
    return 2 * common / (len(truth_words) + len(output_words))


def rouge_l(truth: str, output: str) -> float:
    """Return the F-measure of the longest common subsequence of words (β = 1).

    Range 0 to 1, 1 is best; both empty → 1. Lin 2004, https://aclanthology.org/W04-1013.

    >>> round(rouge_l("police killed the gunman", "police kill the gunman"), 2)
    0.75
    """
    truth_words, output_words = words(truth), words(output)
    if not truth_words and not output_words:
        return 1.0
    from rapidfuzz.distance import LCSseq

    return 2 * LCSseq.similarity(truth_words, output_words) / (len(truth_words) + len(output_words))


COMPARATORS: Mapping[str, Comparator] = {
    "exact": Comparator(lambda value, rule: frozen(value)),
    "string": Comparator(_string, _has_edit_similarity),
    "number": Comparator(_number, _within_tolerance),
    "date": Comparator(_date, _within_days),
    "category": Comparator(_category),
    "text": Comparator(_category, _has_token_f1),
    "ignore": Comparator(lambda value, rule: ("ignored",)),
}
