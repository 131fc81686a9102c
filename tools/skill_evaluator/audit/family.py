"""`scenarios check`: whether a family, a folder of scenarios, is ready for an audit."""

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
from rapidfuzz import fuzz

from skill_evaluator.audit.calls import gather
from skill_evaluator.audit.manifest import AUDIT, MIN_SCENARIOS, audit_folders, read_audit_manifest
from skill_evaluator.audit.request import ScenariosCheckRequest
from skill_evaluator.audit.statistics import neutrality_of
from skill_evaluator.display import visible
from skill_evaluator.errors import AuditError, ConfigError, SkillEvaluatorError
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.scenarios import SLOT, Scenario, family_paths, read_scenario
from skill_evaluator.text import split_words

FamilyVerdict = Literal["ready", "not reviewed", "not ready"]
COPY_SHARE, WARNING_SHARE = 0.9, 0.7  # similarity of two templates
REVIEW = (
    "Does each template request exactly the output of the task, only in another manner?",
    "Is each template an ordinary protocol that your product could have, and none adversarial?",
    "Does each template have one intent, the same on every benchmark?",
    "Do the templates differ as widely as the system prompts around your own prompts?",
)
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\{[a-z_]+\}|<<.*?>>|\[(?:insert|your) [^\]]*\]", re.IGNORECASE)


class ScenarioRemark(FrozenModel):
    """A finding about a scenario, or about the whole family if `scenario` is null."""

    severity: Literal["error", "warning"]
    scenario: str | None
    rule: str
    message: str


class Trial(FrozenModel):
    """An earlier audit that used two or more of the checked scenarios as they are now, and its results.

    `questions`: the number on all benchmarks. `scores` are in per cent right, by model and then scenario. `neutrality`
    says if the scenarios are equally hard.
    """

    audit: str
    questions: int
    scores: dict[str, dict[str, float]]
    neutrality: str


class FamilyCheck(FrozenModel):
    """The result of `scenarios check`. `family` is null for scenarios in no folder. `review`: questions for people."""

    family: str | None
    scenarios: list[str]
    verdict: FamilyVerdict
    remarks: list[ScenarioRemark]
    trial: Trial | None
    review: list[str]


def check_scenarios(request: ScenariosCheckRequest) -> FamilyCheck:
    """Check a family's templates, and read an audit that used them, if any. Raise ConfigError if no template exists."""
    paths = family_paths(request.config, request.family)
    if not paths:
        raise ConfigError(
            f"{request.config / 'scenarios'} contains no scenario outside of families; name a family, write scenarios, "
            "or use `skill-evaluator scenarios draft`"
        )
    scenarios, remarks = [], []
    for path in paths:
        try:
            scenarios.append(read_scenario(request.config, path, request.limits))
        except ConfigError as problem:
            remarks.append(_remark("error", path.stem, "unreadable", str(problem)))
    remarks += check_templates(scenarios)
    trial = _trial(request, scenarios)
    if trial is not None and all(len(set(scores.values())) == 1 for scores in trial.scores.values()):
        remarks.append(_remark("warning", None, "no effect", "no model's score changes between the scenarios"))
    verdict: FamilyVerdict = "ready"
    if any(remark.severity == "error" for remark in remarks):
        verdict = "not ready"
    elif any(scenario.unreviewed for scenario in scenarios):
        verdict = "not reviewed"
    return FamilyCheck(
        family=request.family,
        scenarios=[scenario.name for scenario in scenarios],
        verdict=verdict,
        remarks=remarks,
        trial=trial,
        review=list(REVIEW),
    )


def similarity(first: Scenario, second: Scenario) -> float:
    """Return the similarity of the words of two templates, from 0 to 1 (normalized Indel similarity)."""
    texts = (" ".join(split_words(scenario.template.replace(SLOT, " "))) for scenario in (first, second))
    return float(fuzz.ratio(*texts)) / 100


def check_templates(scenarios: Sequence[Scenario]) -> Iterator[ScenarioRemark]:
    """Yield remarks on too few templates, unreviewed templates, unknown placeholders and near-copies."""
    if len(scenarios) < MIN_SCENARIOS:
        message = f"{len(scenarios)} scenarios; an audit requires at least {MIN_SCENARIOS}"
        yield _remark("error", None, "too few", message)
    for scenario in scenarios:
        if scenario.unreviewed:
            message = "drafted by a model; read it, then remove `unreviewed` from its front matter"
            yield _remark("warning", scenario.name, "not reviewed", message)
        placeholder = _PLACEHOLDER.search(scenario.template.replace(SLOT, " "))
        if placeholder is not None:
            message = f"{placeholder[0]} is never filled in; {SLOT} is the only placeholder"
            yield _remark("error", scenario.name, "placeholder", message)
    for first, second in combinations(scenarios, 2):
        share = similarity(first, second)
        if share >= WARNING_SHARE:
            message = f"{share:.0%} of its text is the same as {first.name}; keep one of them or change one"
            yield _remark("error" if share >= COPY_SHARE else "warning", second.name, "near-copy", message)


def _remark(severity: Literal["error", "warning"], scenario: str | None, rule: str, message: str) -> ScenarioRemark:
    return ScenarioRemark(severity=severity, scenario=scenario, rule=rule, message=message)


def _trial(request: ScenariosCheckRequest, scenarios: Sequence[Scenario]) -> Trial | None:
    """Return the trial that the request names, else the newest audit that fits, else None.

    An audit fits if it used at least two of the scenarios unchanged. Raise AuditError if the named trial does not fit.
    """
    if request.trial is not None:
        trial = _read_trial(request, request.trial, scenarios)
        if trial is None:
            raise AuditError(
                f"{request.trial} used fewer than two of the checked scenarios as they are now; make a new trial: "
                "skill-evaluator audit run"
            )
        return trial
    for folder in reversed(audit_folders(request.audits)):
        try:
            if (trial := _read_trial(request, folder, scenarios)) is not None:
                return trial
        except SkillEvaluatorError as problem:
            print(f"warning: not used as the trial: {visible(str(problem))}", file=sys.stderr)
    return None


def _read_trial(request: ScenariosCheckRequest, folder: Path, scenarios: Sequence[Scenario]) -> Trial | None:
    """Read the audit in a folder as a trial. Return None if it used fewer than two of the scenarios unchanged."""
    digests = read_audit_manifest(folder / AUDIT).scenarios
    names = [scenario.name for scenario in scenarios if digests.get(scenario.name) == scenario.digest]
    if len(names) < 2:
        return None
    gathered = gather(folder, request)
    for remark in gathered.remarks:
        print(f"warning: {visible(remark)}", file=sys.stderr)
    cube = gathered.cube({}, "questions")
    cube = cube.select(cube.models, names)
    scores = np.round(cube.overall, 2).tolist()
    return Trial(
        audit=gathered.manifest.id,
        questions=sum(cube.questions.values()),
        scores={model: dict(zip(names, row, strict=True)) for model, row in zip(cube.models, scores, strict=True)},
        neutrality=neutrality_of(cube).verdict,
    )
