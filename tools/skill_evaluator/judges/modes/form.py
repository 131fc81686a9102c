"""What a prompt demands of the form of an answer, as rules that code can check: bullets, JSON, lengths.

Its own module because such a check is worth more than any judge's opinion of the same.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from skill_evaluator.parsing.answer import parse_output

FormKind = Literal["bullets", "json", "words", "sentences", "characters", "lines", "paragraphs"]

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNT = rf"(\d[\d,]*|{'|'.join(_NUMBERS)})"
_AT_MOST = (
    r"at most|no more than|not more than|up to|a maximum of|maximum|max\.?|within|under|below|fewer than|less than"
)
_AT_LEAST = r"at least|no fewer than|no less than|a minimum of|minimum|more than|over"
_UNIT = r"bullet points?|bulleted items?|bullets?|words?|sentences?|characters?|lines?|paragraphs?"
_AMOUNT = re.compile(
    rf"(?:\b(?P<bound>{_AT_MOST}|{_AT_LEAST})\s+)?(?:\b(?P<exact>exactly|in)\s+)?\b{_COUNT}(?:\s*(?:-|–|to)\s*{_COUNT})?"
    rf"[\s-]+(?:\w+\s+)?(?P<unit>{_UNIT})\b(?:\s+(?P<after>or less|or fewer|at most|or more|at least|maximum|max))?",
    re.IGNORECASE,
)
_STRICT = frozenset({"fewer than", "less than", "under", "below", "more than", "over"})
_OF_A_PART = re.compile(  # «bullets of at most 12 words», «a title of at most 8 words»
    r"\b(?:(?:bullets|points|items|sentences|paragraphs|lines|entries|titles?|headings?)\s+(?:of|with)|each|per)\s*$",
    re.IGNORECASE,
)
_EACH = re.compile(r"\s*(?:each|per|every)\b", re.IGNORECASE)
_NEARBY = 20  # characters
_BULLETED = re.compile(r"\b(?:bullet points|bullets|bullet(?:ed)? list)\b", re.IGNORECASE)
_JSON = re.compile(r"\bJSON\b")
_BULLET = re.compile(r"^[ \t]*[-*•+–][ \t]+\S", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?]+(?=[\"')\]]*(?:\s|$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRule:
    """At least and at most so many of a kind; of JSON, that the answer is one value."""

    kind: FormKind
    least: int = 1
    most: int | None = None

    def __str__(self) -> str:
        if self.kind == "json":
            return "JSON"
        if self.most is None:
            return f"at least {self.least} {self.kind}"
        return f"{self.least} {self.kind}" if self.least == self.most else f"{self.least} to {self.most} {self.kind}"


def form_rules(prompt: str) -> tuple[FormRule, ...]:
    """Return what a prompt demands of the form, as far as code understands it; bounds include their ends.

    >>> [str(rule) for rule in form_rules("Summarize it in 3 bullet points of at most 12 words.")]
    ['3 bullets']
    """
    rules = dict.fromkeys(_amounts(prompt))
    if _BULLETED.search(prompt) and not any(rule.kind == "bullets" for rule in rules):
        rules[FormRule(kind="bullets")] = None
    if _JSON.search(prompt):
        rules[FormRule(kind="json")] = None
    return tuple(rules)


def _amounts(prompt: str) -> Iterator[FormRule]:
    for match in _AMOUNT.finditer(prompt):
        before, behind = (
            prompt[max(0, match.start() - _NEARBY) : match.start()],
            prompt[match.end() : match.end() + _NEARBY],
        )
        if _OF_A_PART.search(before) or _EACH.match(behind):
            continue
        bound = " ".join((match["bound"] or "").casefold().split())
        after = (match["after"] or "").casefold()
        unit = match["unit"].casefold()
        kind: FormKind = "bullets" if unit.startswith("bullet") else _UNIT_KINDS[unit.rstrip("s")]
        first, second = (None if text is None else _number(text) for text in match.group(3, 4))
        if first is None:
            continue
        off = 1 if bound in _STRICT else 0
        if second is not None:
            yield FormRule(kind=kind, least=first, most=second)
        elif re.fullmatch(_AT_MOST, bound) or after in ("or less", "or fewer", "at most", "maximum", "max"):
            yield FormRule(kind=kind, most=first - off)
        elif re.fullmatch(_AT_LEAST, bound) or after in ("or more", "at least"):
            yield FormRule(kind=kind, least=first + off)
        elif match["exact"] or kind == "bullets":
            yield FormRule(kind=kind, least=first, most=first)


_UNIT_KINDS: Mapping[str, FormKind] = {
    "word": "words",
    "sentence": "sentences",
    "character": "characters",
    "line": "lines",
    "paragraph": "paragraphs",
}
_COUNTERS: Mapping[str, Callable[[str], int]] = {
    "bullets": lambda text: len(_BULLET.findall(text)),
    "words": lambda text: len(text.split()),
    "sentences": lambda text: len(_SENTENCE_END.findall(text)),
    "characters": len,
    "lines": lambda text: sum(bool(line.strip()) for line in text.splitlines()),
    "paragraphs": lambda text: sum(bool(part.strip()) for part in re.split(r"\n\s*\n", text)),
}


def _number(text: str) -> int:
    return _NUMBERS.index(text.casefold()) + 1 if text.casefold() in _NUMBERS else int(text.replace(",", ""))


def keeps(text: str, rule: FormRule) -> bool:
    """Return whether an answer keeps a rule; JSON may stand in a code fence.

    >>> keeps("- a\\n- b", FormRule(kind="bullets", least=3, most=3))
    False
    """
    if rule.kind == "json":
        return parse_output(text, "json").found in ("whole", "fenced")
    count = _COUNTERS[rule.kind](text.strip())
    return rule.least <= count and (rule.most is None or count <= rule.most)


def broken_rules(prompt: str, baseline: str, candidate: str) -> list[FormRule]:
    """Return the rules of form that the baseline keeps and the candidate does not."""
    return [rule for rule in form_rules(prompt) if keeps(baseline, rule) and not keeps(candidate, rule)]
