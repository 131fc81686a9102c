"""What a prompt demands of the form of an answer, as ranges that code can check: bullets, JSON, lengths.

Its own module because such a check is worth more than any judge's opinion of the same. The tables say in words what
code understands. A demand is no rule if they do not cover it, if it is hedged, or if it stands beside another of
its kind.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from skill_evaluator.parsing.answer import parse_output

FormKind = Literal["bullets", "json", "words", "sentences", "characters", "lines", "paragraphs"]

_UNITS: Mapping[str, FormKind] = {
    "bullet point": "bullets",
    "bulleted item": "bullets",
    "bullet": "bullets",
    "word": "words",
    "sentence": "sentences",
    "character": "characters",
    "line": "lines",
    "paragraph": "paragraphs",
}
_RANGES = (  # what a prompt says, its least and its most: N and M are numbers, None is no bound
    ("at least N and at most M UNIT", "N", "M"),
    ("between N and M UNIT", "N", "M"),
    ("N to M UNIT", "N", "M"),
    ("N or M UNIT", "N", "M"),
    ("N - M UNIT", "N", "M"),
    ("exactly N UNIT", "N", "N"),
    ("at most N UNIT", None, "N"),
    ("no more than N UNIT", None, "N"),
    ("not more than N UNIT", None, "N"),
    ("up to N UNIT", None, "N"),
    ("maximum N UNIT", None, "N"),
    ("maximum of N UNIT", None, "N"),
    ("max N UNIT", None, "N"),
    ("max. N UNIT", None, "N"),
    ("within N UNIT", None, "N"),
    ("N UNIT or less", None, "N"),
    ("N UNIT or fewer", None, "N"),
    ("N UNIT at most", None, "N"),
    ("N UNIT maximum", None, "N"),
    ("N UNIT max", None, "N"),
    ("under N UNIT", None, "N - 1"),
    ("below N UNIT", None, "N - 1"),
    ("fewer than N UNIT", None, "N - 1"),
    ("less than N UNIT", None, "N - 1"),
    ("at least N UNIT", "N", None),
    ("no fewer than N UNIT", "N", None),
    ("no less than N UNIT", "N", None),
    ("minimum of N UNIT", "N", None),
    ("minimum N UNIT", "N", None),
    ("N UNIT or more", "N", None),
    ("N UNIT at least", "N", None),
    ("more than N UNIT", "N + 1", None),
    ("over N UNIT", "N + 1", None),
)
_EXACT = ("a N", "in N", "as N", "give N", "use N", "write N", "list N", "list of N", "return N")  # of what is counted:
# a demand of 100 words means about 100
_COUNTED: frozenset[FormKind] = frozenset({"bullets", "sentences", "lines", "paragraphs"})
_WHOLE: Mapping[FormKind, tuple[str, ...]] = {  # demands without a number
    "bullets": ("as bullets", "in bullets", "as bullet points", "in bullet points", "use bullets", "use bullet points",
                "as a bullet list", "as a bulleted list", "bulleted list of", "bullet list of"),
    "json": ("as JSON", "in JSON", "valid JSON", "only JSON", "JSON only", "return JSON", "one JSON object",
             "as a JSON object", "return a JSON object", "as a JSON array", "return a JSON array"),
}  # fmt: skip
_DOUBTS = (  # words of a sentence that demands nothing for certain
    "about", "around", "roughly", "approximately", "almost", "nearly", "not", "never", "don't", "without", "unless",
    "if", "when", "optionally", "ideally", "preferably", "may", "might", "could", "either", "instead", "example",
)  # fmt: skip
_PARTS = ("bullets", "points", "items", "sentences", "paragraphs", "lines", "entries", "title", "heading")
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_NUMBER = rf"(?:\d[\d,]*|{'|'.join(_NUMBERS)})"
_UNIT = rf"(?:\w+ +)?(?P<unit>{'|'.join(_UNITS)})s?\b"  # «three short bullets»
_WRAPPED = re.compile(r"\s*\n(?![\s\d*•#-])\s*")
_SENTENCE = re.compile(r"(?:[^.!?;\n]|\.(?=\S))+")
_DOUBT = re.compile(rf"\b(?:{'|'.join(_DOUBTS)})\b", re.IGNORECASE)
_OF_A_PART = re.compile(rf"\b(?:(?:{'|'.join(_PARTS)})s? (?:of|with)|each|per) *$", re.IGNORECASE)
_EACH = re.compile(r" *(?:each|per|every)\b", re.IGNORECASE)
_ANOTHER_NUMBER = re.compile(rf"\b{_NUMBER} *(?:,|or|and|to|-|–) *$", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*[-*•+–][ \t]+\S", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?]+(?=[\"')\]]*(?:\s|$))")
_COUNTERS: Mapping[str, Callable[[str], int]] = {
    "bullets": lambda text: len(_BULLET.findall(text)),
    "words": lambda text: len(text.split()),
    "sentences": lambda text: len(_SENTENCE_END.findall(text)),
    "characters": len,
    "lines": lambda text: sum(bool(line.strip()) for line in text.splitlines()),
    "paragraphs": lambda text: sum(bool(part.strip()) for part in re.split(r"\n\s*\n", text)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRule:
    """At least and at most this many of a kind, both included; of JSON, that the answer is one value."""

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
    """Return what a prompt demands of the form, as far as code understands it.

    >>> [str(rule) for rule in form_rules("Summarize it in between 3 and 5 bullet points, in about 100 words.")]
    []
    >>> [str(rule) for rule in form_rules("Summarize it in between 3 and 5 bullet points. Use about 100 words.")]
    ['3 to 5 bullets']
    """
    sentences = _SENTENCE.findall(_WRAPPED.sub(" ", prompt))
    demanded = dict.fromkeys(rule for sentence in sentences for rule in _demands(sentence))
    numbered = {rule.kind for rule in demanded if rule != FormRule(kind=rule.kind)}
    rules = [rule for rule in demanded if rule.kind not in numbered or rule != FormRule(kind=rule.kind)]
    kinds = [rule.kind for rule in rules]
    return tuple(rule for rule in rules if kinds.count(rule.kind) == 1)


def _demands(sentence: str) -> Iterator[FormRule]:
    """Yield the rules that a sentence states: of phrases that overlap the longest, and none beside a doubt."""
    matches = [(match, least, most) for pattern, least, most in _patterns() for match in pattern.finditer(sentence)]
    matches.sort(key=lambda found: found[0].start() - found[0].end())
    read: list[re.Match[str]] = []
    rules: list[FormRule] = []
    certain = sentence
    for match, least, most in matches:
        if any(match.start() < other.end() and other.start() < match.end() for other in read):
            continue
        read.append(match)
        certain = certain.replace(match[0], "", 1)
        before, after = sentence[: match.start()], sentence[match.end() :]
        if not (_OF_A_PART.search(before) or _ANOTHER_NUMBER.search(before) or _EACH.match(after)):
            kind = _UNITS[match["unit"].casefold()]
            bounds = {"N": _number(match["n"]), "M": _number(match.groupdict().get("m"))}
            low, high = (None if bound is None else _bound(bound, bounds) for bound in (least, most))
            if (least != most or kind in _COUNTED or "exactly" in match[0].casefold()) and (
                high is None or high >= (low or 1)
            ):
                rules.append(FormRule(kind=kind, least=low or 1, most=high))
    rules += [
        FormRule(kind=kind)
        for kind, phrases in _WHOLE.items()
        if any(re.search(rf"\b{phrase}\b", sentence, re.IGNORECASE) for phrase in phrases)
    ]
    if not _DOUBT.search(certain):
        yield from rules


@cache
def _patterns() -> list[tuple[re.Pattern[str], str | None, str | None]]:
    """Return the phrases of the table as patterns."""
    phrases = [*_RANGES, *((f"{phrase} UNIT", "N", "N") for phrase in _EXACT)]
    parts = {"N": rf"(?P<n>{_NUMBER})", "M": rf"(?P<m>{_NUMBER})", "UNIT": _UNIT, "-": "[-–]"}
    patterns = []
    for phrase, least, most in phrases:
        text = " +".join(parts.get(word, re.escape(word)) for word in phrase.split())
        text = text.replace(" +[-–] +", " *[-–] *").replace(f" +{_UNIT}", f"[ -]+{_UNIT}")
        patterns.append((re.compile(rf"\b{text}", re.IGNORECASE), least, most))
    return patterns


def _number(text: str | None) -> int:
    if text is None:
        return 0
    return _NUMBERS.index(text.casefold()) + 1 if text.casefold() in _NUMBERS else int(text.replace(",", ""))


def _bound(bound: str, numbers: Mapping[str, int]) -> int:
    """Return the number that a bound of the table stands for, such as `N + 1`."""
    name, _, offset = bound.partition(" ")
    return numbers[name] + int(offset.replace(" ", "") or 0)


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
