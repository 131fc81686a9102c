"""Replicates in, one scorecard out: every answer is scored once, and every planned call accounted for.

`Scorer` takes replicates one by one, from a running engine or a journal, keeps only scores and distinct outputs, and
reduces them at the end. Equal texts to one case are scored once and counted as often as they came.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skill_evaluator.comparing.leaves import Lexicon
from skill_evaluator.comparing.sides import PreparedValue
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.agreement.array_lengths import ArrayLengths, array_lengths
from skill_evaluator.metrics.agreement.field_stability import field_stability_by_path
from skill_evaluator.metrics.base import CaseAnswers, Comparison, apply_metrics
from skill_evaluator.metrics.diagnosis.contract_errors import (
    NO_DRIFT,
    ContractError,
    NameDrift,
    contract_errors,
    name_drift,
    only_extra_keys,
    top_names,
)
from skill_evaluator.metrics.diagnosis.field_profile import (
    FieldValues,
    Standing,
    field_profile,
    field_values,
    flawed_fields,
)
from skill_evaluator.metrics.diagnosis.per_field import (
    FieldScores,
    FieldTotal,
    FilledCounts,
    filled_fields,
    per_field,
    total_fields,
)
from skill_evaluator.parsing.answer import parse_output
from skill_evaluator.providers.base import Usage
from skill_evaluator.records.record import ANSWERED, NOT_RUN, SCORED, UNPARSEABLE
from skill_evaluator.runner.schedule import Replicate
from skill_evaluator.text import canonical_json

_NO_FIELDS = FieldScores()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputContract:
    """How one output keeps its contract: by the letter, but for extra keys, with which errors and other names."""

    holds: bool = True
    holds_but_for_extra_keys: bool = True
    errors: tuple[ContractError, ...] = ()
    drift: NameDrift = NO_DRIFT


_KEPT = OutputContract()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The scores of one distinct text; `canonical` is its output as canonical JSON, None if there is none."""

    outcome: str
    metrics: Mapping[str, float | None]
    contract: OutputContract = _KEPT
    fields: FieldScores = _NO_FIELDS
    canonical: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """One case: per replicate its outcome and metrics, over its replicates the fields and the agreement.

    `outcomes` and each tuple of `metrics` have one entry per planned replicate; a metric is None where it was not
    measured. `undefined` are the metrics that have no value for this case whatever is answered. `exact` counts the
    answers equal to the truth (None: no truth). `contracts` are those of the distinct parsed texts, each with how often
    it came. `fields` and `filled` are of a labelled case only.
    """

    case_id: str
    labelled: bool
    outcomes: tuple[str, ...]
    metrics: Mapping[str, tuple[float | None, ...]]
    fields: Mapping[str, FieldTotal]
    reproducibility: Mapping[str, float | None]
    stability: Mapping[str, float]
    profile: Mapping[str, Standing]
    values: FieldValues
    filled: Mapping[str, FilledCounts]
    arrays: Mapping[str, ArrayLengths]
    exact: int | None
    contracts: tuple[tuple[OutputContract, int], ...]
    undefined: frozenset[str] = frozenset()

    @property
    def answered(self) -> int:
        """The number of replicates that the model answered, however badly."""
        return sum(outcome in ANSWERED for outcome in self.outcomes)

    @property
    def parsed(self) -> int:
        """The number of replicates whose answer was parsed and scored."""
        return self.outcomes.count(SCORED)


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
        """The number of planned calls."""
        return len(self.cases) * self.replicates

    @property
    def answered(self) -> int:
        """The number of calls that the model answered."""
        return sum(case.answered for case in self.cases)

    @property
    def failures(self) -> dict[str, int]:
        """The calls that were not scored, by kind; with the scored ones they add up to `planned`."""
        counts = Counter(outcome for case in self.cases for outcome in case.outcomes if outcome != SCORED)
        return dict(sorted(counts.items()))


@dataclass(slots=True)
class _CaseInProgress:
    """What has come in of one case: by replicate its outcome and scores, and the scores of each distinct text."""

    case: Case
    truth: PreparedValue
    answers: CaseAnswers
    outcomes: dict[int, str] = field(default_factory=dict)
    scored: dict[int, Scored] = field(default_factory=dict)
    by_text: dict[bytes, Scored] = field(default_factory=dict)


class Scorer:
    """Scores the replicates of one run as they come; each call may be added once."""

    def __init__(self, component: Component, cases: Iterable[Case], replicates: int) -> None:
        self._component = component
        self._replicates = replicates
        plan = component.plan
        self._cases = {
            case.id: _CaseInProgress(case, PreparedValue(case.truth, Lexicon(plan)), CaseAnswers(plan))
            for case in cases
        }
        self._usages: list[Usage] = []
        self._latencies: list[float] = []
        self._served: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._retries = 0
        self._names = top_names(component.schema)
        self._unparseable = {name: metric.unparseable for name, metric in component.metrics.items()}

    def add(self, replicate: Replicate) -> None:
        """Score a replicate and count it."""
        case = self._cases[replicate.call.case_id]
        self._retries += replicate.attempts - 1
        failure = replicate.failure
        if failure is not None:
            self._reasons[failure.reason] += 1
            case.outcomes[replicate.call.replicate] = failure.kind
        if replicate.completion is None:
            return
        self._usages.append(replicate.completion.usage)
        self._latencies.append(replicate.latency_s)
        if replicate.completion.served_model:
            self._served[replicate.completion.served_model] += 1
        raw = _digest(replicate.completion.text)
        if failure is not None:
            scored = Scored(outcome=failure.kind, metrics=self._unparseable)
        else:
            scored = self._scored(case, raw, replicate.completion.text)
            if scored.problem is not None:
                self._reasons[scored.problem] += 1
        case.answers.add(raw, scored.canonical)
        case.scored[replicate.call.replicate] = scored
        case.outcomes[replicate.call.replicate] = scored.outcome

    def scored(self, case_id: str, text: str) -> Scored:
        """Return the scores of a text as the answer to a case, without counting it; equal texts are scored once."""
        return self._scored(self._cases[case_id], _digest(text), text)

    def scorecard(self, replicates: int | None = None) -> Scorecard:
        """Reduce all replicates so far; a planned call without an outcome is `not_run`.

        `replicates` is the number planned, where a run stopped early with fewer; no later replicate may have come.
        """
        planned = replicates or self._replicates
        return Scorecard(
            cases=tuple(self._case_score(case, range(planned)) for case in self._cases.values()),
            replicates=planned,
            reasons=dict(sorted(self._reasons.items())),
            usages=tuple(self._usages),
            latencies_s=tuple(self._latencies),
            served_models=tuple(name for name, _ in self._served.most_common()),
            retries=self._retries,
        )

    def _scored(self, case: _CaseInProgress, raw: bytes, text: str) -> Scored:
        if raw in case.by_text:
            return case.by_text[raw]
        parsed = parse_output(text, self._component.output, case.case.options)
        if parsed.found is None:
            scored = Scored(outcome=UNPARSEABLE, metrics=self._unparseable, problem=parsed.problem)
        else:
            drift = name_drift(parsed.value, self._names)
            if self._component.conforms(parsed.value):
                contract = _KEPT if drift is NO_DRIFT else OutputContract(drift=drift)
            else:  # what is wrong is listed only where something is, which is slower
                violations = self._component.contract.violations(parsed.value)
                contract = OutputContract(
                    holds=False,
                    holds_but_for_extra_keys=only_extra_keys(violations),
                    errors=contract_errors(violations, self._component.plan),
                    drift=drift,
                )
            comparison = self._comparison(case.truth, parsed.value, contract.holds)
            labelled = case.case.labelled
            scored = Scored(
                outcome=SCORED,
                metrics=apply_metrics(self._component.metrics, comparison, labelled=labelled),
                contract=contract,
                fields=per_field(comparison.rows) if labelled else _NO_FIELDS,
                canonical=comparison.output_key,
            )
        case.by_text[raw] = scored
        return scored

    def _comparison(self, truth: PreparedValue, output: Any, holds: bool) -> Comparison:
        return Comparison(truth.value, output, self._component.plan, lambda _: holds, truth)

    def _case_score(self, case: _CaseInProgress, planned: range) -> CaseScore:
        labelled, answers = case.case.labelled, case.answers
        times = Counter(id(scored) for scored in case.scored.values())
        parsed = [(scored, times[id(scored)]) for scored in case.by_text.values() if scored.outcome == SCORED]
        fields = [(scored.fields, count) for scored, count in parsed]
        values = field_values(answers)
        # Not even the truth has a value of some metrics, such as `jaccard` where there is no array.
        truth = self._comparison(case.truth, case.case.truth, holds=True)
        undefined = frozenset(
            name
            for name, metric in self._component.metrics.items()
            if metric.needs_truth and (not labelled or metric.score(truth) is None)
        )
        return CaseScore(
            case_id=case.case.id,
            labelled=labelled,
            outcomes=tuple(case.outcomes.get(index, NOT_RUN) for index in planned),
            metrics={
                name: tuple(case.scored[index].metrics[name] if index in case.scored else None for index in planned)
                for name in self._component.metrics
            },
            fields=total_fields(fields),
            reproducibility={name: metric.score(answers) for name, metric in self._component.agreement.items()},
            stability=field_stability_by_path(answers),
            profile=field_profile(answers, values, flawed_fields(fields) if labelled else None),
            values=values,
            filled=filled_fields(fields) if labelled else {},
            arrays=array_lengths(answers),
            exact=answers.groups[canonical_json(case.case.truth)] if labelled else None,
            contracts=tuple((scored.contract, count) for scored, count in parsed),
            undefined=undefined,
        )


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
