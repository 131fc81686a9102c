"""The checks of a case, held against its answers: what each scores, and the field that it is over all of them."""

import time
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from skill_evaluator.checks.declared import Check, passes
from skill_evaluator.checks.programs import call_function
from skill_evaluator.library.cases import Case
from skill_evaluator.library.messages import File
from skill_evaluator.metrics.accuracy.checks import share_passed
from skill_evaluator.metrics.diagnosis.field_profile import Standing
from skill_evaluator.metrics.diagnosis.per_field import FieldCounts, FieldTotal
from skill_evaluator.parsing import ANY_VALUE, Expected, Parsed
from skill_evaluator.parsing.answer import parse_output, split_reasoning
from skill_evaluator.records.record import CHECKS_METRIC, PASSED_FROM


class CheckScore(NamedTuple):
    """What a check gave for one answer: a score in [0, 1], None while nobody measured it; perhaps why."""

    score: float | None
    reason: str | None = None


CheckScores = Mapping[str, CheckScore]
"""By the id of the check."""


def check_text(case: Case, text: str, expected: Expected = ANY_VALUE) -> dict[str, CheckScore]:
    """Return what the checks of a case give for a text; those that take a process or a judge have no score."""
    text = split_reasoning(text)[1]
    in_places = any(check.at is not None for check in case.checks)
    parsed = parse_output(text, "json", (), expected) if in_places else Parsed()
    passed = {check.id: passes(check, text, parsed) for check in case.checks}
    return {check_id: CheckScore(None if whether is None else float(whether)) for check_id, whether in passed.items()}


def takes_programs(case: Case) -> bool:
    """Return whether a check of a case runs a program."""
    return any(check.kind == "python" for check in case.checks)


def run_programs(case: Case, text: str, answer: Any, scores: CheckScores, until: float) -> dict[str, CheckScore]:
    """Return scores with those of the functions that have none yet; none is called `until` then, and it fails."""
    context = {
        "answer": answer,
        "inputs": {name: str(value) if isinstance(value, File) else value for name, value in case.inputs.items()},
        "truth": case.truth,
    }
    called = dict(scores)
    for check in case.checks:
        if check.kind == "python" and scores[check.id].score is None:
            if time.monotonic() >= until:
                called[check.id] = CheckScore(0.0, "there was no time left")
                continue
            judged = call_function(check, split_reasoning(text)[1], context)
            called[check.id] = CheckScore(judged.score, judged.reason or None)
    return called


def all_failed(case: Case) -> dict[str, CheckScore]:
    """Return what an answer gives that was refused, truncated or too large to be read."""
    return {check.id: CheckScore(0.0) for check in case.checks}


def weighed(case: Case, scores: CheckScores) -> list[tuple[float, float | None]]:
    """Return the weight and the score of each check."""
    return [(check.weight, scores[check.id].score) for check in case.checks if check.id in scores]


def with_checks(metrics: Mapping[str, float | None], case: Case, scores: CheckScores) -> dict[str, float | None]:
    """Return the metrics of an answer with the share of checks that it passed, where that is measured."""
    passed = {CHECKS_METRIC: share_passed(weighed(case, scores))} if CHECKS_METRIC in metrics else {}
    return {**metrics, **passed}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCase:
    """One check over the planned answers of a case; None where it was not measured."""

    check: Check
    scores: tuple[float | None, ...]

    @property
    def passed(self) -> Counter[Hashable]:
        """How many answers passed, and how many did not."""
        return Counter(score >= PASSED_FROM for score in self.scores if score is not None)

    @property
    def total(self) -> FieldTotal:
        """The check as a field: a value that is right where it passed."""
        return FieldTotal(counts=FieldCounts(right=self.passed[True], wrong=self.passed[False]))

    @property
    def stability(self) -> float | None:
        """The share of what came more often; None of fewer than two answers."""
        n = self.passed.total()
        return max(self.passed.values()) / n if n > 1 else None

    @property
    def standing(self) -> Standing:
        """Whether it passes always, never, or now and then."""
        if self.passed.total() < 2:
            return "unscored"
        return "flaky" if len(self.passed) > 1 else "stable_right" if self.passed[True] else "stable_wrong"
