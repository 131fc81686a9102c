"""A family of scenarios and the answers of a trial → whether it can carry an audit, and what stands against it.

An audit takes a fluctuation for the model's own. That holds only if every template puts the same task in a different
ordinary protocol. Code says what it can against the texts; what needs a reader stands in REVIEW, as questions. Whether
templates move models at all is told by answers to the same question: those in two scenarios must differ more often than
those in one, which differ by themselves. Where a question has one answer a scenario, nobody knows that.
"""

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
from rapidfuzz import fuzz
from scipy.special import stdtr, stdtrit

from skill_evaluator.audit.cube import Cube, Floats, read_cube
from skill_evaluator.audit.request import ScenariosCheckRequest
from skill_evaluator.audit.results import Shift
from skill_evaluator.audit.run.gathering import gather
from skill_evaluator.audit.run.plan import AUDIT, FEWEST_SCENARIOS, read_audit_manifest
from skill_evaluator.audit.statistics.figures import neutrality_of
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import AuditError, ConfigError
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.scenarios import SLOT, Scenario, family_paths, read_scenario
from skill_evaluator.library.sources import component_names
from skill_evaluator.stats import ALPHA, by_key
from skill_evaluator.text import counted, listed, words

FamilyVerdict = Literal["can carry an audit", "cannot carry an audit", "not settled"]
_PAIRS_SHOWN = 5
_LESS = 0.5  # of what two scenarios of the family usually differ by
_SAME = 1e-6  # scores are float32
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
        r"(?:is an?|is about|are about|concerns?|about|of type)\b": "it differs from task to task"
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


class ScenarioPair(FrozenModel):
    """Two scenarios: how alike their texts are (0 to 1), and the share of answers that have the same score in both."""

    first: str
    second: str
    likeness: float
    agreement: float | None = None


class Trial(FrozenModel):
    """What answers say of a family. `moved`: how often answers to a question differ between two scenarios; `itself`:
    how often within one (None: one answer each); `p`: that the first is no more than the second (Student's t over the
    questions; None: not known). `shifts`: how far each scenario moves all models.
    """

    models: int
    questions: int
    replicates: int
    moved: float
    itself: float | None
    p: float | None
    neutrality: str
    shifts: list[Shift] = []


class FamilyCheck(FrozenModel):
    """The result of `scenarios check`. `review`: what only a person can say; `pairs`: the most alike first."""

    family: str | None
    scenarios: list[str]
    verdict: FamilyVerdict
    reasons: list[str]
    remarks: list[ScenarioRemark]
    pairs: list[ScenarioPair]
    trial: Trial | None
    review: list[str]


def check_scenarios(request: ScenariosCheckRequest) -> FamilyCheck:
    """Judge a family by its texts and a trial's answers; raise ConfigError or AuditError for what cannot be read."""
    paths = family_paths(request.config, request.family)
    if not paths:
        raise ConfigError(
            f"{request.config / 'scenarios'} holds no scenario; write one, or draft some: scenarios draft"
        )
    scenarios, unreadable = _read_family(request.config, paths, request.limits)
    benchmarks = component_names(request.components)
    trial = _trial(request, scenarios)
    return judge_family(request.family, scenarios, [*unreadable, *check_family(scenarios, benchmarks)], trial)


def check_draft(family: str, config: Path, limits: SafetyLimits) -> FamilyCheck:
    """Judge a family that was just drafted, by its texts alone."""
    scenarios, unreadable = _read_family(config, family_paths(config, family), limits)
    return judge_family(family, scenarios, [*unreadable, *check_family(scenarios, [])], None)


def _read_family(
    config: Path, paths: Iterable[Path], limits: SafetyLimits
) -> tuple[list[Scenario], list[ScenarioRemark]]:
    """Read the scenarios of a family, reviewed or not; an unreadable file becomes a remark."""
    scenarios, remarks = [], []
    for path in paths:
        try:
            scenarios.append(read_scenario(config, path, limits))
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
    own, other = (" ".join(words(scenario.template.replace(SLOT, " "))) for scenario in (first, second))
    return float(fuzz.ratio(own, other)) / 100


def _remark(severity: Literal["error", "warning"], scenario: str | None, rule: str, message: str) -> ScenarioRemark:
    return ScenarioRemark(severity=severity, scenario=scenario, rule=rule, message=message)


def _about_number(scenarios: Sequence[Scenario]) -> Iterator[ScenarioRemark]:
    if len(scenarios) < FEWEST_SCENARIOS:
        needed = f"an audit needs at least {FEWEST_SCENARIOS}"
        message = f"{len(scenarios)} scenarios, and {needed}: a fluctuation of so few is a guess"
        yield _remark("error", None, "too few", message)
    named = by_key((index, scenario.name) for scenario in scenarios for index in _INDEX.findall(scenario.name))
    for index, names in named.items():
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


def judge_family(
    family: str | None, scenarios: Sequence[Scenario], remarks: Sequence[ScenarioRemark], cube: Cube | None
) -> FamilyCheck:
    """Put together what code says of the texts (`remarks`) and what the answers of a trial say."""
    trial, agreements, seen = None, {}, list(remarks)
    if cube is not None and cube.outcomes is not None:
        differing = _Differing(cube)
        trial = _trial_of(cube, differing)
        agreements = {
            pair: 1 - float(differing.between[at].mean()) for at, pair in enumerate(combinations(cube.scenarios, 2))
        }
        seen += [*_about_answers(cube, differing, trial), *_about_difficulty(trial)]
    pairs = [
        ScenarioPair(
            first=first.name,
            second=second.name,
            likeness=likeness(first, second),
            agreement=agreements.get((first.name, second.name)),
        )
        for first, second in combinations(scenarios, 2)
    ]
    verdict, reasons = _verdict(seen, trial)
    return FamilyCheck(
        family=family,
        scenarios=[scenario.name for scenario in scenarios],
        verdict=verdict,
        reasons=reasons,
        remarks=seen,
        pairs=sorted(pairs, key=lambda pair: -pair.likeness)[:_PAIRS_SHOWN],
        trial=trial,
        review=list(REVIEW),
    )


def _verdict(remarks: Sequence[ScenarioRemark], trial: Trial | None) -> tuple[FamilyVerdict, list[str]]:
    """Return the verdict and its reasons: errors decide against a family, what is not known leaves it open."""
    errors = [remark for remark in remarks if remark.severity == "error"]
    if errors:
        return "cannot carry an audit", [f"{counted(len(errors), 'error')} below"]
    unknown = []
    unread = sum(remark.rule == "unreviewed" for remark in remarks)
    if unread:
        unknown.append(f"{counted(unread, 'scenario')} unreviewed")
    if trial is None:
        unknown.append("no trial: nobody knows whether these templates move a model")
    elif trial.p is None:
        unknown.append("one answer a question: nobody knows what differs by itself; ask two replicates")
    elif trial.p > ALPHA:
        unknown.append(f"no model was moved beyond chance (p = {trial.p:.2f}): ask more questions, or write bolder")
    return ("not settled", unknown) if unknown else ("can carry an audit", ["models answer differently in it"])


class _Differing:
    """How often answers differ, question by question: means over the models, [questions of all benchmarks].

    `between` scenarios, [pairs, questions]; within one (`itself`: None where no model answered twice); and how much
    more often between, of the models and questions that were answered twice (`excess`).
    """

    def __init__(self, cube: Cube) -> None:
        across, within = [], []
        for outcomes in (cube.outcomes or {}).values():
            scores = outcomes.scores
            pairs = [
                _apart(scores[:, first, :, :, None], scores[:, second, :, None, :])
                for first, second in combinations(range(len(cube.scenarios)), 2)
            ]
            across.append(np.stack(pairs))
            replicates = list(combinations(range(outcomes.replicates), 2))
            one, other = ([pair[at] for pair in replicates] for at in (0, 1))
            within.append(_apart(scores[..., one].swapaxes(1, 2), scores[..., other].swapaxes(1, 2)))
        between, itself = np.concatenate(across, axis=2), np.concatenate(within, axis=1)
        twice = ~np.isnan(itself).all(axis=0)
        self.between: Floats = between.mean(axis=1)
        self.itself: Floats | None = np.nanmean(itself[:, twice], axis=0) if twice.any() else None
        self.excess: Floats = np.nanmean((between - itself)[:, :, twice], axis=1) if twice.any() else self.between


def _apart(first: np.ndarray, second: np.ndarray) -> Floats:
    """Return how often two answers of a model to a question differ; [models, questions, …, …] → [models, questions].

    It is NaN where no two answers were measured: they may have failed, or not have been asked yet.
    """
    measured = ~(np.isnan(first) | np.isnan(second))
    differ = (np.abs(np.nan_to_num(first) - np.nan_to_num(second)) > _SAME) & measured
    counts = measured.sum(axis=(2, 3))
    shares = differ.sum(axis=(2, 3)) / np.maximum(counts, 1)
    return np.where(counts > 0, shares, np.nan).astype(np.float64)


def _trial_of(cube: Cube, differing: _Differing) -> Trial:
    neutrality = neutrality_of(cube)
    excess = differing.excess.mean(axis=0)
    p = None
    if not differing.between.any():
        p = 1.0
    elif differing.itself is not None and len(excess) > 1:
        error = float(excess.std(ddof=1)) / math.sqrt(len(excess))
        p = float(stdtr(len(excess) - 1, -float(excess.mean()) / error)) if error else float(excess.mean() <= 0)
    return Trial(
        models=len(cube.models),
        questions=differing.between.shape[1],
        replicates=cube.replicates or 1,
        moved=float(differing.between.mean()),
        itself=None if differing.itself is None else float(differing.itself.mean()),
        p=p,
        neutrality=neutrality.verdict,
        shifts=neutrality.shifts,
    )


def _about_answers(cube: Cube, differing: _Differing, trial: Trial) -> Iterator[ScenarioRemark]:
    """Name pairs that answers hardly tell apart, where the family as a whole moves models beyond chance."""
    questions = differing.excess.shape[1]
    if trial.p is None or trial.p > ALPHA or len(cube.scenarios) < 3:
        return
    usual = float(differing.excess.mean())
    margin = float(stdtrit(questions - 1, 1 - ALPHA)) / math.sqrt(questions)
    for (first, second), excess, between in zip(
        combinations(cube.scenarios, 2), differing.excess, differing.between, strict=True
    ):
        if float(excess.mean()) + margin * float(excess.std(ddof=1)) < _LESS * usual:
            message = (
                f"{1 - float(between.mean()):.0%} of its answers score as in {first}, where the family usually differs "
                "more than twice as often; keep one of them, or both count as one"
            )
            yield _remark("warning", second, "same answers", message)


def _about_difficulty(trial: Trial) -> Iterator[ScenarioRemark]:
    """Name scenarios that are harder, or easier, for everybody."""
    for shift in trial.shifts:
        if shift.significant:
            harder = "harder" if shift.shift < 0 else "easier"
            message = f"it is {harder} for everybody by {abs(shift.shift):.1f} points (q = {shift.q:.3f}): drop it"
            yield _remark("warning", shift.scenario, f"{harder} for all", message)


def _trial(request: ScenariosCheckRequest, scenarios: Sequence[Scenario]) -> Cube | None:
    """Return the answers in these scenarios as they are; None where nobody was asked in two of them."""
    trial = request.trial
    if trial is not None and trial.is_file():
        cube = read_cube(trial, weights={}, missing="questions")
        if cube.outcomes is None:
            raise AuditError(f"{trial} has only scores; a trial needs single answers, as in outcomes.csv")
        return _within(cube, [scenario.name for scenario in scenarios if scenario.name in cube.scenarios], trial)
    if trial is not None:
        return _answers(request, _asked(trial, scenarios), trial)
    for folder in sorted((path.parent for path in request.audits.glob(f"*/{AUDIT}")), reverse=True):
        try:
            asked = _asked(folder, scenarios)
            if len(asked) > 1:
                return _answers(request, asked, folder)
        except AuditError as problem:  # of an audit that nobody named
            print(f"warning: no trial: {visible(str(problem))}", file=sys.stderr)
    return None


def _asked(folder: Path, scenarios: Sequence[Scenario]) -> list[str]:
    """Return which of these scenarios an audit asked in as they are now."""
    drawn = read_audit_manifest(folder / AUDIT).scenarios
    return [scenario.name for scenario in scenarios if drawn.get(scenario.name) == scenario.digest]


def _answers(request: ScenariosCheckRequest, asked: Sequence[str], folder: Path) -> Cube:
    """Gather the answers of an audit in these scenarios."""
    gathered = gather([folder], request)
    for remark in gathered.remarks:
        print(f"warning: {visible(remark)}", file=sys.stderr)
    return _within(gathered.cube({}, "questions"), asked, folder)


def _within(cube: Cube, asked: Sequence[str], where: Path) -> Cube:
    if len(asked) < 2:
        raise AuditError(
            f"{where} asked in fewer than 2 of these scenarios as they are now; run a new trial: audit run"
        )
    return cube.within(asked)
