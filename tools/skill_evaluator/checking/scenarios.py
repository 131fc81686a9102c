"""A family of scenarios → what code can say against it: remarks on single templates, and pairs that are near-copies.

An audit takes a fluctuation for the model's own. That holds only if every template puts the same task in another
ordinary protocol. What needs a reader stands in REVIEW, as questions.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Literal

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import DEFAULT_LIMITS, SafetyLimits
from skill_evaluator.library.scenarios import SLOT, Scenario, read_scenario
from skill_evaluator.text import listed, words

FEWEST = 6  # below it an audit warns that a fluctuation is a guess
COPY, ALIKE = 0.9, 0.7  # of the letters of two texts, in order
REVIEW = (
    "Does each template ask for exactly what the task asks for, in another manner alone?",
    "Is each one an ordinary protocol that a product of yours could have, and none a trap?",
    "Does each stand for its one intent, and would it for every benchmark you mean to ask?",
    "Do they differ as widely as the surroundings of your prompts do?",
)
_LONG = 4  # times the family's median
_PATTERNS: Mapping[str, Mapping[str, str]] = {  # by rule: what is matched, and what it does
    "adversarial": {
        r"\b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,40}\b(?:instructions?|rules?|prompts?|task|above|below"
        r"|previous|everything)\b": "it sets the task aside",
        r"\b(?:deliberately|intentionally|on purpose)\b|\b(?:mislead|deceive|sabotage|jailbreak|lie to)\b": (
            "it asks for a wrong answer"
        ),
        r"\b(?:wrong|incorrect|false) (?:answer|value|option)s?\b[^.]{0,30}\b(?:give|choose|pick|prefer)\b"
        r"|\b(?:give|choose|pick|prefer)\b[^.]{0,30}\b(?:wrong|incorrect|false) (?:answer|value|option)s?\b": (
            "it asks for a wrong answer"
        ),
        r"\b(?:refuse|decline|do not|don't|never) (?:to )?(?:answer|do|carry out) (?:the|this|any)\b": (
            "it forbids the task"
        ),
        r"\b(?:you will be|you'll be|or else|will get you) (?:punished|penali[sz]ed|fired|shut down|deleted|replaced)\b"
        r"|\btip of \$?\d|\$\d+ (?:tip|bonus)|\b(?:somebody|someone|people) will die\b": "it threatens or bribes",
    },
    "changes the task": {
        r"\b(?:answer|reply|respond|write|translate)\b[^.]{0,30}\b(?:in|into) (?:arabic|chinese|dutch|english|french"
        r"|german|hindi|italian|japanese|korean|polish|portuguese|russian|spanish|turkish|another language)\b": (
            "it sets a language"
        ),
        r"\b(?:answer|reply|respond|output|return|write)\b[^.]{0,30}\b(?:json|yaml|xml|csv|markdown|html)\b": (
            "it sets a format of its own"
        ),
        r"\b(?:the (?:right|correct) (?:answer|option) is|always (?:answer|choose|pick)|choose (?:option )?[A-E]\b"
        r"|answer (?:with )?(?:yes|no|[A-E])\b(?! question))": "it gives away an answer",
        r"\b(?:in addition to|besides|as well as|after) (?:the|your|this) (?:task|answer)\b[^.]{0,40}\b(?:also|add|list"
        r"|write|give|rate|explain)\b|\balso (?:add|list|rate|translate|summari[sz]e|provide|include)\b": (
            "it asks for something more"
        ),
        r"\binstead of (?:the|this|your) (?:task|answer|question|document)\b|\b(?:summari[sz]e|translate|paraphrase) "
        r"(?:the|this) (?:document|text|material|question|task)\b": "it asks for something else",
    },
    "one task": {
        r"\b(?:if|when|where|for) (?:the |a |an )?(?:task|question|benchmark)s?(?: below)? "
        r"(?:is|are|asks?|has|have|concerns?|about|with|of type)\b"
        r"|\b(?:if|when|for) (?:the |a |an )?(?:document|material|input)s?(?: below)? "
        r"(?:is an?|is about|are about|concerns?|about|of type)\b": "it differs from task to task",
    },
}
_ERRORS = {"adversarial", "changes the task"}
_PROTOCOLS = {  # words by which a protocol is known; a template of several measures none of them
    "brevity": r"\b(?:brief(?:ly)?|concise(?:ly)?|terse(?:ly)?|as short as|shortest)\b",
    "length": r"\b(?:at length|in (?:great |full )?detail|exhaustive(?:ly)?|elaborate(?:ly)?|verbose(?:ly)?)\b",
    "steps": r"\b(?:step[- ]by[- ]step|one step at a time|chain of thought)\b",
    "persona": r"\byou are (?:a|an|the) ",
    "format": r"\bread by a (?:program|machine)|\b(?:nothing|no text) before (?:it|or)|\bmachine[- ]readable\b",
    "checking": r"\b(?:double[- ]check|once more|check your (?:answer|work)|verify your (?:answer|work)|proof-?read)",
    "caution": r"\b(?:rather than guess|do not guess|treat it as not known|when in doubt|err on the side)\b",
    "audience": r"\b(?:lay(?:man|person|people)|beginner|new to the subject|non-?experts?|plain (?:words|language))\b",
    "tone": r"\b(?:polite(?:ly)?|friendly|warm(?:ly)?|empath\w+|formal(?:ly)?|courteous(?:ly)?)\b",
}
_TWO_INTENTS = re.compile(r"[.;!?]\s+\S|\bas well as\b|\bplus\b|\band also\b|\bon the other hand\b", re.IGNORECASE)
_ANY_SLOT = re.compile(r"\{\{.*?\}\}|\{[a-z_]+\}|<<.*?>>|\[(?:insert|your) [^\]]*\]", re.IGNORECASE)
_INDEX = re.compile(r"(?:^|-)(\d+)(?:-|$)")


class ScenarioRemark(FrozenModel):
    """What is wrong with a family; `scenario` is None for the family as a whole, `rule` names the check."""

    severity: Literal["error", "warning"]
    scenario: str | None
    rule: str
    message: str


def read_family(
    config_dir: Path, paths: Iterable[Path], limits: SafetyLimits = DEFAULT_LIMITS
) -> tuple[list[Scenario], list[ScenarioRemark]]:
    """Read the scenarios of a family, reviewed or not; a file that is none becomes a remark."""
    scenarios, remarks = [], []
    for path in paths:
        try:
            scenarios.append(read_scenario(config_dir, path, limits))
        except ConfigError as problem:
            remarks.append(_remark("error", path.stem, "unreadable", str(problem)))
    return scenarios, remarks


def check_family(scenarios: Sequence[Scenario], benchmarks: Sequence[str]) -> list[ScenarioRemark]:
    """Return what code can say against a family; `benchmarks`: names that no template may speak of."""
    usual = median([len(scenario.template) for scenario in scenarios] or [0])
    return [
        *_about_number(scenarios),
        *(remark for scenario in scenarios for remark in _about_template(scenario, benchmarks, usual)),
        *_about_pairs(scenarios),
    ]


def likeness(first: Scenario, second: Scenario) -> float:
    """Return how alike the words of two templates are, from 0 to 1: equal letters in order (Indel similarity)."""
    from rapidfuzz import fuzz

    return float(fuzz.ratio(_own_text(first), _own_text(second))) / 100


def _remark(severity: Literal["error", "warning"], scenario: str | None, rule: str, message: str) -> ScenarioRemark:
    return ScenarioRemark(severity=severity, scenario=scenario, rule=rule, message=message)


def _own_text(scenario: Scenario) -> str:
    return " ".join(words(scenario.template.replace(SLOT, " ")))


def _about_number(scenarios: Sequence[Scenario]) -> Iterator[ScenarioRemark]:
    if len(scenarios) < FEWEST:
        message = (
            f"{len(scenarios)} scenarios, and an audit needs at least {FEWEST}: a fluctuation of so few is a guess"
        )
        yield _remark("error", None, "too few", message)
    indices: dict[str, list[str]] = {}
    for scenario in scenarios:
        for index in _INDEX.findall(scenario.name):
            indices.setdefault(index, []).append(scenario.name)
    for index, names in indices.items():
        if len(names) > 1:
            message = f"{listed(names)} have the index {index}; an index stands for one intent on every benchmark"
            yield _remark("error", None, "one index, one intent", message)


def _about_template(scenario: Scenario, benchmarks: Sequence[str], usual: float) -> Iterator[ScenarioRemark]:
    name, text = scenario.name, " ".join(scenario.template.replace(SLOT, " ").split())
    if scenario.unreviewed:
        message = "a model drafted it and nobody has read it; read it, then take `unreviewed` out of its front matter"
        yield _remark("warning", name, "unreviewed", message)
    for rule, patterns in _PATTERNS.items():
        for pattern, does in patterns.items():
            match = re.search(pattern, text, re.IGNORECASE)
            if match is not None:
                yield _remark("error" if rule in _ERRORS else "warning", name, rule, f"{does}: «{match[0]}»")
    slot = _ANY_SLOT.search(scenario.template.replace(SLOT, " "))
    if slot is not None:
        yield _remark("error", name, "another slot", f"nothing is put into {slot[0]}; {SLOT} is the only slot")
    for benchmark in benchmarks:
        if re.search(rf"(?<![\w-]){re.escape(benchmark)}(?![\w-])", text, re.IGNORECASE):
            message = f"it speaks of '{benchmark}', and is put around every benchmark"
            yield _remark("error", name, "one index, one intent", message)
    intent = " ".join(scenario.intent.split())
    if not intent or _TWO_INTENTS.search(intent):
        yield _remark("warning", name, "one intent", f"the intent is to be one, in one sentence; it says: «{intent}»")
    protocols = [protocol for protocol, pattern in _PROTOCOLS.items() if re.search(pattern, text, re.IGNORECASE)]
    if len(protocols) > 1:
        message = f"it mixes {listed(protocols)}; if it moves a model, nobody knows which of them did"
        yield _remark("warning", name, "one intent", message)
    if len(scenario.template) > _LONG * max(usual, len(SLOT)):
        message = f"{len(scenario.template):,} letters, more than {_LONG} times as long as half of the family"
        yield _remark("warning", name, "length", message)


def _about_pairs(scenarios: Sequence[Scenario]) -> Iterator[ScenarioRemark]:
    for first, second in combinations(scenarios, 2):
        alike = likeness(first, second)
        severity: Literal["error", "warning"] = "error" if alike >= COPY else "warning"
        if alike >= ALIKE:
            message = f"{alike:.0%} of its text is that of {first.name}; keep one of them, or make them differ"
            yield _remark(severity, second.name, "near-copy", message)
        elif words(first.intent) == words(second.intent):
            message = f"it has the intent of {first.name}; two indices for one intent count it twice"
            yield _remark("error", second.name, "one index, one intent", message)
