"""Replicates in, one scorecard out: every answer scored once, every planned call accounted for.

`Scorer` takes outcomes one by one (from a running engine or from a journal), keeps only scores and distinct outputs,
and reduces them at the end. Equal texts to one case are scored once and counted as often as they came.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skill_evaluator.components import Component
from skill_evaluator.fixtures import Case
from skill_evaluator.metrics import REPRODUCIBILITY
from skill_evaluator.metrics.answers import CaseAnswers
from skill_evaluator.metrics.base import Comparison
from skill_evaluator.metrics.field_stability import field_stability_by_path
from skill_evaluator.metrics.per_field import FieldScores, FieldTotal, per_field, total_fields
from skill_evaluator.parsing import parse_output
from skill_evaluator.providers.base import Completion, Usage
from skill_evaluator.runner.replicates import Replicate

SCORED = "scored"
ANSWERED = (SCORED, "unparseable", "refused", "truncated")  # the model's own doing; anything else lowers coverage
_NO_FIELDS = FieldScores()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The scores of one distinct text; `canonical` is its output as canonical JSON, None if there is none."""

    outcome: str
    metrics: Mapping[str, float | None]
    fields: FieldScores = _NO_FIELDS
    canonical: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """One case: per replicate its outcome and metrics, over its replicates the fields and the agreement.

    `outcomes` and each tuple of `metrics` have one entry per planned replicate; a metric is None where it was not
    measured. `undefined` are the metrics that have no value for this case whatever is answered.
    """

    case_id: str
    labelled: bool
    outcomes: tuple[str, ...]
    metrics: Mapping[str, tuple[float | None, ...]]
    fields: Mapping[str, FieldTotal]
    reproducibility: Mapping[str, float | None]
    stability: Mapping[str, float]
    undefined: frozenset[str] = frozenset()

    @property
    def answered(self) -> int:
        """Replicates the model answered, however badly."""
        return sum(outcome in ANSWERED for outcome in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """All cases of one run, and what its calls used. `reasons` counts every failure by its stable word."""

    cases: tuple[CaseScore, ...]
    replicates: int
    reasons: Mapping[str, int]
    usages: tuple[Usage, ...]
    latencies_s: tuple[float, ...]
    served_models: tuple[str, ...]
    retries: int

    @property
    def planned(self) -> int:
        """Calls planned."""
        return len(self.cases) * self.replicates

    @property
    def answered(self) -> int:
        """Calls the model answered."""
        return sum(case.answered for case in self.cases)

    @property
    def failures(self) -> dict[str, int]:
        """Calls that were not scored, by kind; with the scored ones they add up to `planned`."""
        counts = Counter(outcome for case in self.cases for outcome in case.outcomes if outcome != SCORED)
        return dict(sorted(counts.items()))


@dataclass(slots=True)
class _CaseInProgress:
    case: Case
    answers: CaseAnswers
    outcomes: dict[int, str] = field(default_factory=dict)
    scored: dict[int, Scored] = field(default_factory=dict)
    by_text: dict[bytes, Scored] = field(default_factory=dict)


class Scorer:
    """Scores the replicates of one run as they come; each call must be given once."""

    def __init__(self, component: Component, cases: Iterable[Case], replicates: int) -> None:
        self._component = component
        self._replicates = replicates
        self._cases = {case.id: _CaseInProgress(case, CaseAnswers(component.plan)) for case in cases}
        self._usages: list[Usage] = []
        self._latencies: list[float] = []
        self._served: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._retries = 0
        self._unparseable = {name: metric.unparseable for name, metric in component.metrics.items()}

    def add(self, replicate: Replicate) -> None:
        """Take one outcome."""
        case = self._cases[replicate.call.case_id]
        self._retries += replicate.attempts - 1
        failure = replicate.failure
        if failure is not None:
            self._reasons[failure.reason] += 1
            case.outcomes[replicate.call.replicate] = failure.kind
        if replicate.completion is None:
            return
        self._note_use(replicate.completion, replicate.latency_s)
        raw = _digest(replicate.completion.text)
        if failure is not None:
            scored = Scored(outcome=failure.kind, metrics=self._unparseable)
        else:
            scored = case.by_text.get(raw) or case.by_text.setdefault(raw, self._score(case, replicate.completion.text))
            if scored.problem is not None:
                self._reasons[scored.problem] += 1
        case.answers.add(raw, scored.canonical)
        case.scored[replicate.call.replicate] = scored
        case.outcomes[replicate.call.replicate] = scored.outcome

    def scorecard(self) -> Scorecard:
        """Everything so far, reduced; a planned call without an outcome is `not_run`."""
        return Scorecard(
            cases=tuple(self._case_score(case) for case in self._cases.values()),
            replicates=self._replicates,
            reasons=dict(sorted(self._reasons.items())),
            usages=tuple(self._usages),
            latencies_s=tuple(self._latencies),
            served_models=tuple(name for name, _ in self._served.most_common()),
            retries=self._retries,
        )

    def _note_use(self, completion: Completion, latency_s: float) -> None:
        self._usages.append(completion.usage)
        self._latencies.append(latency_s)
        if completion.served_model:
            self._served[completion.served_model] += 1

    def _score(self, case: _CaseInProgress, text: str) -> Scored:
        parsed = parse_output(text, self._component.output)
        if parsed.found is None:
            return Scored(outcome="unparseable", metrics=self._unparseable, problem=parsed.problem)
        comparison = Comparison(case.case.truth, parsed.value, self._component.plan, self._component.conforms)
        labelled = case.case.labelled
        return Scored(
            outcome=SCORED,
            metrics={
                name: metric.score(comparison) if labelled or not metric.needs_truth else None
                for name, metric in self._component.metrics.items()
            },
            fields=per_field(comparison.rows) if labelled else _NO_FIELDS,
            canonical=comparison.output_key,
        )

    def _case_score(self, case: _CaseInProgress) -> CaseScore:
        planned = range(self._replicates)
        times = Counter(id(scored) for scored in case.scored.values())
        return CaseScore(
            case_id=case.case.id,
            labelled=case.case.labelled,
            outcomes=tuple(case.outcomes.get(index, "not_run") for index in planned),
            metrics={
                name: tuple(case.scored[index].metrics[name] if index in case.scored else None for index in planned)
                for name in self._component.metrics
            },
            fields=total_fields((scored.fields, times[id(scored)]) for scored in case.by_text.values()),
            reproducibility={name: metric(case.answers) for name, metric in REPRODUCIBILITY.items()},
            stability=field_stability_by_path(case.answers),
            undefined=self._undefined(case.case),
        )

    def _undefined(self, case: Case) -> frozenset[str]:
        """The metrics that not even the truth has a value of, such as `jaccard` where there is no array."""
        truth = Comparison(case.truth, case.truth, self._component.plan, self._component.conforms)
        return frozenset(
            name
            for name, metric in self._component.metrics.items()
            if metric.needs_truth and (not case.labelled or metric.score(truth) is None)
        )


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
