"""Score each text of a run's outputs, and reduce the replicates of the run to a scorecard.

A text is parsed, validated with the schema, compared with the ground truth and checked. Equal texts of a case are
scored once, and every call is counted.
"""

import hashlib
import math
import os
import time
from collections import Counter, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeVar

from skill_evaluator.checks import call_function, passes
from skill_evaluator.comparing.comparison import arrays_in, pairs_by_best
from skill_evaluator.comparing.field_plan import COMPARATORS
from skill_evaluator.errors import ConfigError, FixtureError
from skill_evaluator.library.cases import Case, parse_case_output
from skill_evaluator.library.components import Component
from skill_evaluator.library.contract import OutputContract
from skill_evaluator.library.prompts import File
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY
from skill_evaluator.metrics.accuracy import (
    Comparison,
    FieldCounts,
    Metric,
    apply_metrics,
    per_field,
    share_passed,
    total_fields,
)
from skill_evaluator.metrics.agreement import (
    ArrayLengths,
    CaseOutputs,
    FieldValues,
    Stability,
    array_lengths,
    field_profile,
    field_stability_by_path,
    field_values,
)
from skill_evaluator.parsing import Expected, Parsed, parse_output, split_reasoning
from skill_evaluator.processes import Workers
from skill_evaluator.providers.base import Usage
from skill_evaluator.records.record import (
    ANSWERED,
    CHECKS_METRIC,
    NOT_RUN,
    PASSED_FROM,
    SCORED,
    UNPARSEABLE,
    CheckRecord,
    check_path,
)
from skill_evaluator.records.summaries import FailedCalls
from skill_evaluator.runner.journal import Manifest
from skill_evaluator.runner.schedule import Call, Replicate, digest_of_outputs
from skill_evaluator.stats import rounded
from skill_evaluator.text import canonical_json, count_leaves, digest


class CheckScore(NamedTuple):
    """The result of a check for one output: a score in [0, 1] and a reason. The score is None until it is measured."""

    score: float | None
    reason: str | None = None


CheckScores = Mapping[str, CheckScore]  # key: check id


def _check_text(case: Case, text: str, expected: Expected) -> dict[str, CheckScore]:
    text = split_reasoning(text)[1]
    has_paths = any(check.pointer is not None for check in case.checks)
    parsed = parse_output(text, "json", (), expected) if has_paths else Parsed()
    passed = {check.id: passes(check, text, parsed) for check in case.checks}
    return {check_id: CheckScore(None if result is None else float(result)) for check_id, result in passed.items()}


def takes_programs(case: Case) -> bool:
    """Return whether a check of the case runs a program."""
    return any(check.kind == "python" for check in case.checks)


def _run_programs(case: Case, text: str, value: Any, scores: CheckScores, until: float) -> dict[str, CheckScore]:
    """Run the python checks that have no score yet, and return all results by check id.

    `value` is the parsed value. A check that has not begun by `until` (monotonic clock) scores 0.
    """
    context = {
        "answer": value,
        "inputs": {name: str(value) if isinstance(value, File) else value for name, value in case.inputs.items()},
        "truth": case.truth,
    }
    results = dict(scores)
    for check in case.checks:
        if check.kind == "python" and scores[check.id].score is None:
            if time.monotonic() >= until:
                results[check.id] = CheckScore(0.0, "the time for scoring was used up")
                continue
            result = call_function(check, split_reasoning(text)[1], context)
            results[check.id] = CheckScore(result.score, result.reason or None)
    return results


def _weighted(case: Case, scores: CheckScores) -> list[tuple[float, float | None]]:
    return [(check.weight, scores[check.id].score) for check in case.checks if check.id in scores]


def with_checks(metrics: Mapping[str, float | None], case: Case, scores: CheckScores) -> dict[str, float | None]:
    """Return a copy of `metrics`. Its metric `checks`, if present, becomes the weighted mean of the check `scores`."""
    passed = {CHECKS_METRIC: share_passed(_weighted(case, scores))} if CHECKS_METRIC in metrics else {}
    return {**metrics, **passed}


TOO_COSTLY = "too_costly_to_score"
TOO_COSTLY_TO_COMPARE = "too_costly_to_compare"  # outputs of a case with each other
_SHORT = 2_000  # bounds characters × schemas tried per value
_MAX_VALUE_CHARS = 100
_MAX_LOCAL_EFFORT = 10**8  # pairs × characters²: ten outputs of 1.5 kB take about 10 ms
_MIN_ARRAY_ITEMS = 10  # shorter arrays are usually aligned without scipy


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The scores of one distinct text of a case.

    `canonical` is the canonical JSON of the parsed value, or None if the text was not scored. `problem` is the reason
    why a text was not parsed or was too costly to score.
    """

    outcome: str
    metrics: Mapping[str, float | None]
    contract: OutputContract = field(default_factory=OutputContract)
    fields: Mapping[str, FieldCounts] = field(default_factory=dict)
    canonical: str | None = None
    problem: str | None = None
    checks: CheckScores = field(default_factory=dict)
    several: bool = False  # whether the text contains several output candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The agreement of a case's outputs with each other.

    If `is_too_costly`, the outputs were not compared, and `metrics` has the worst values. `stability`, `values` and
    `arrays` are by path. `values` counts the values of a field, long texts as digests.
    """

    metrics: Mapping[str, float | None]
    stability: Mapping[str, float] = field(default_factory=dict)
    values: FieldValues = field(default_factory=dict)
    arrays: Mapping[str, ArrayLengths] = field(default_factory=dict)
    is_too_costly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """The scores of one case.

    `outcomes` and each tuple of `metrics` have one entry per planned replicate. `fields` and `profile` are by path and
    include the checks. If there is no ground truth, `fields` has only the checks.
    """

    case_id: str
    labelled: bool
    outcomes: tuple[str, ...]
    metrics: Mapping[str, tuple[float | None, ...]]  # None: not measured
    agreement: Agreement
    fields: Mapping[str, FieldCounts] = field(default_factory=dict)
    profile: Mapping[str, Stability] = field(default_factory=dict)
    exact: int | None = None  # number of outputs that equal the ground truth; None: no ground truth
    contracts: tuple[tuple[OutputContract, int], ...] = ()  # (schema result, number of outputs) of each text
    undefined: frozenset[str] = frozenset()  # metrics that no output can have, such as `jaccard` without an array
    parts: Mapping[str, str] = field(default_factory=dict)  # digests of the inputs by name
    checks: Mapping[str, CheckRecord] = field(default_factory=dict)  # key: check id

    @property
    def answered(self) -> int:
        """The number of replicates that returned an output: scored, unparseable, refused or truncated."""
        return sum(outcome in ANSWERED for outcome in self.outcomes)

    @property
    def parsed(self) -> int:
        """The number of replicates with a parsed and scored output."""
        return self.outcomes.count(SCORED)


class CompletedCall(NamedTuple):
    """A call that returned a completion: its case, token usage, latency (None: unknown) and served model."""

    case_id: str
    usage: Usage
    latency_s: float | None
    served: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """The scores of all cases of a run.

    `reasons` counts failures and other problems by reason. `faults` names some cases of each failure. `completed` has
    the calls that returned a completion. `digest` is the digest of all outputs.
    """

    cases: tuple[CaseScore, ...]
    replicates: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[FailedCalls, ...] = ()
    completed: tuple[CompletedCall, ...] = ()
    retries: int = 0
    digest: str = ""

    @property
    def planned(self) -> int:
        """The number of planned calls."""
        return len(self.cases) * self.replicates

    @property
    def answered(self) -> int:
        """The number of calls that returned an output: scored, unparseable, refused or truncated."""
        return sum(case.answered for case in self.cases)

    @property
    def failures(self) -> dict[str, int]:
        """The number of calls that were not scored, by kind. Scored calls and failures add up to `planned`."""
        counts = Counter(outcome for case in self.cases for outcome in case.outcomes if outcome != SCORED)
        return dict(sorted(counts.items()))


ResultT = TypeVar("ResultT")


def wait_for(result: ResultT | Future[ResultT]) -> ResultT:
    """Return `result`. If it is a future, wait for it and return its result."""
    return result.result() if isinstance(result, Future) else result


def _agreement_of(outputs: CaseOutputs, *, is_too_costly: bool = False) -> Agreement:
    """Return the agreement of a case's outputs. If `is_too_costly`, all `metrics` have their worst values."""
    metrics: Mapping[str, float | None]
    if is_too_costly:
        metrics = {name: float(outputs.n) if metric.is_count else 0.0 for name, metric in REPRODUCIBILITY.items()}
    else:
        metrics = {name: metric.score(outputs) for name, metric in REPRODUCIBILITY.items()}
    values = {
        path: Counter({_shortened(value): count for value, count in counts.items()})
        for path, counts in field_values(outputs).items()
    }
    return Agreement(
        metrics=metrics,
        stability=field_stability_by_path(outputs),
        values=values,
        arrays=array_lengths(outputs),
        is_too_costly=is_too_costly,
    )


def _shortened(value: Hashable) -> Hashable:
    if isinstance(value, frozenset):
        value = repr(sorted(value, key=repr))
    return digest(value) if isinstance(value, str) and len(value) > _MAX_VALUE_CHARS else value


def unparseable(
    metrics: Mapping[str, Metric],
    case: Case,
    outcome: str = UNPARSEABLE,
    problem: str | None = None,
    checks: CheckScores | None = None,
) -> Scored:
    """Return the scores of an output that cannot be parsed or used. If `checks` is None, all its checks fail."""
    scores = {check.id: CheckScore(0.0) for check in case.checks} if checks is None else checks
    values = with_checks({name: metric.unparseable for name, metric in metrics.items()}, case, scores)
    return Scored(outcome=outcome, metrics=values, problem=problem, checks=scores)


class TextScorer:
    """Scores texts as outputs of a component's cases, in this process and, if started, in workers.

    `until` (monotonic clock) is a deadline. A worker's task that has not begun by then counts as too costly to score.
    A check program that has not begun by then scores 0.
    """

    def __init__(self, component: Component, cases: Iterable[Case], until: float = math.inf) -> None:
        self.component = component
        self._until = until
        self._programs: ThreadPoolExecutor | None = None
        self._workers: Workers | None = None
        self._short: frozenset[str] = frozenset()  # cases with a short ground truth
        self.cases = {case.id: case for case in cases}
        self._undefined: dict[str, frozenset[str] | Future[frozenset[str]]] = {}
        compared = {rule.compare or "exact" for rule in component.scoring.plan.leaves.values()}
        is_shipped = component.scoring.metrics.keys() <= METRICS.keys() and compared <= COMPARATORS.keys()
        self._may_last = not is_shipped  # a plugin's metric or comparator may never end

    def start_workers(self, calls: int) -> None:
        """Start workers if a ground truth or one of the planned `calls` may take long. Without `fork`, start none."""
        component, cases = self.component, self.cases.values()
        self._short = frozenset(case.id for case in cases if self._is_short(canonical_json(case.truth)))
        needs_none = not calls and len(self._short) == len(cases)
        if needs_none or (component.output == "choice" and not self._may_last) or not hasattr(os, "fork"):
            return
        arrays = (array for case in cases for array in arrays_in(case.truth, component.scoring.plan))
        if calls and any(
            len(items) >= _MIN_ARRAY_ITEMS and pairs_by_best(field.array_rule(*items), field) for field, items in arrays
        ):
            import scipy.optimize  # noqa: F401 - imported once here instead of in every worker
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        count = min(cores, max(calls, len(cases), 1))
        limits = component.limits
        self._workers = Workers(self._run_task, limits.score_seconds, limits.score_megabytes, count)
        for case in cases:
            if case.labelled and case.id not in self._short:
                task = ("undefined", case.id)
                self._undefined[case.id] = self._workers.submit(task, partial(self._refuse_truth, case))

    def _run_task(self, task: str, *arguments: Any) -> object:
        if task == "agreement":
            return _agreement_of(CaseOutputs(self.component.scoring.plan, *arguments))
        try:
            return self.score(*arguments) if task == "score" else self._undefined_metrics(*arguments)
        except ConfigError as problem:  # raised by a plugin's metric or comparator
            raise ConfigError(f"case {arguments[0]!r:.60}: {problem}") from None

    def _refuse_truth(self, case: Case) -> NoReturn:
        limits = self.component.limits
        raise FixtureError(
            f"case '{case.id}' of '{self.component.name}': its ground truth is too costly to score; it takes more than "
            f"{limits.score_seconds:g} s or {limits.score_megabytes:,} MB; make it smaller, align its arrays by key in "
            "evals/datasets.json, or raise limits.score_seconds or score_megabytes in settings.yaml"
        )

    def begin(self, case_id: str, text: str) -> Scored | Future[Scored]:
        """Return the scores of a text as the output of a case. Return a future if it needs a program or a worker."""
        case = self.cases[case_id]
        scoring: Scored | Future[Scored]
        if self._workers is None or (case_id in self._short and self._is_short(text)):
            scoring = self.score(case_id, text)
        else:
            too_costly = partial(unparseable, self.component.scoring.metrics, case, problem=TOO_COSTLY)
            scoring = self._workers.submit(("score", case_id, text), too_costly, until=self._until)
        if not takes_programs(case):
            return scoring

        def scored() -> Scored:
            scored_text, value = wait_for(scoring), parse_case_output(self.component, case, text).value
            checks = _run_programs(case, text, value, scored_text.checks, self._until)
            return replace(scored_text, checks=checks, metrics=with_checks(scored_text.metrics, case, checks))

        self._programs = self._programs or ThreadPoolExecutor(os.cpu_count())
        return self._programs.submit(scored)

    def close(self) -> None:
        """Wait for the running check programs, cancel the waiting ones, and kill the workers."""
        if self._programs is not None:
            self._programs.shutdown(cancel_futures=True)
        if self._workers is not None:
            self._workers.close()

    def _is_short(self, text: str) -> bool:  # whether it is validated in less than 0.1 s in the worst case
        return not self._may_last and len(text) * self.component.contract.effort <= _SHORT

    def begin_agreement(self, outputs: CaseOutputs) -> Agreement | Future[Agreement]:
        """Return the agreement of a case's outputs with each other. Return a future if it needs a worker."""
        effort = outputs.pairs * max(map(len, outputs.groups), default=0) ** 2
        is_quick = not self._may_last and (len(outputs.groups) < 2 or effort <= _MAX_LOCAL_EFFORT)
        if self._workers is None or is_quick:
            return _agreement_of(outputs)
        task = ("agreement", outputs.groups, outputs.raw, outputs.n)
        too_costly = partial(_agreement_of, outputs, is_too_costly=True)
        return self._workers.submit(task, too_costly, times=outputs.n, until=self._until)

    def score(self, case_id: str, text: str) -> Scored:
        """Return the scores of a text as the output of a case. Checks by a program or a judge have no score yet."""
        case, component, scoring = self.cases[case_id], self.component, self.component.scoring
        parsed = parse_case_output(component, case, text)
        checks = _check_text(case, text, component.contract.expected.or_type_of(case.truth))
        if parsed.form is None:
            return unparseable(scoring.metrics, case, problem=parsed.problem, checks=checks)
        max_leaves = component.limits.answer_leaves
        if len(text) > max_leaves and count_leaves(parsed.value) > max_leaves:
            return unparseable(scoring.metrics, case, problem=TOO_COSTLY)
        contract = component.contract.check(parsed.value, scoring.plan, component.limits.schema_errors)
        comparison = Comparison(case.truth, parsed.value, scoring.plan, contract.holds, _weighted(case, checks))
        return Scored(
            outcome=SCORED,
            metrics=apply_metrics(scoring.metrics, comparison, labelled=case.labelled),
            contract=contract,
            fields=per_field(comparison.rows) if case.labelled else {},
            canonical=comparison.memoized_output.canonical_text,
            checks=checks,
            several=parsed.several,
        )

    def undefined(self, case_id: str) -> frozenset[str]:
        """Return the metrics that no output of a case can have, such as `jaccard` if the ground truth has no array.

        Raise FixtureError if the ground truth is too costly to score.
        """
        if case_id not in self._undefined:
            self._undefined[case_id] = self._undefined_metrics(case_id)
        return wait_for(self._undefined[case_id])

    def _undefined_metrics(self, case_id: str) -> frozenset[str]:
        case = self.cases[case_id]
        metrics = {name: metric for name, metric in self.component.scoring.metrics.items() if metric.needs_truth}
        if case.labelled:
            truth = Comparison(case.truth, case.truth, self.component.scoring.plan)
            metrics = {name: metric for name, metric in metrics.items() if metric.score(truth) is None}
        unchecked = {CHECKS_METRIC} if CHECKS_METRIC in self.component.scoring.metrics and not case.checks else set()
        return frozenset(metrics.keys() | unchecked)


_READ = (SCORED, UNPARSEABLE)  # outcomes of outputs that checks examine
_MAX_AHEAD = 32  # outputs sent to the workers before waiting for the first
_MAX_CASES_AHEAD = 4
_MAX_FAULT_CASES = 5
_MAX_MESSAGE_CHARS = 300


class RunScorer:
    """Scores the replicates of one run. Each call may be added only once."""

    def __init__(self, scorer: TextScorer, case_ids: Collection[str], replicates: int) -> None:
        self._component = scorer.component
        self._replicates = replicates
        self._scorer = scorer
        self._cases = {case_id: case for case_id, case in scorer.cases.items() if case_id in case_ids}
        self._failed: dict[Call, str] = {}  # the kind of failure of each call without a usable output
        self._texts: dict[str, dict[int, bytes]] = {case_id: {} for case_id in self._cases}  # digests by replicate
        self._scored: dict[tuple[str, bytes], Scored | Future[Scored]] = {}  # keys: case id, digest of the text
        self._pending: deque[tuple[str, bytes]] = deque()
        self._completed: list[CompletedCall] = []
        self._faults: dict[tuple[str, str], dict[Call, str]] = {}
        self._retries = 0
        self._output_digests: dict[Call, str] = {}

    def add(self, replicate: Replicate) -> None:
        """Count and begin to score a replicate. Wait while more than 32 texts are pending."""
        call, completion, failure = replicate.call, replicate.completion, replicate.failure
        self._retries += replicate.attempts - 1
        self._output_digests[call] = replicate.digest
        if failure is not None:
            self._failed[call] = failure.kind
            self._faults.setdefault((failure.kind, failure.reason), {})[call] = failure.message
        if completion is None:
            return
        served = completion.served_model
        self._completed.append(CompletedCall(call.case_id, completion.usage, replicate.latency_s, served))
        text = call.case_id, _digest(completion.text)
        self._texts[call.case_id][call.replicate] = text[1]
        if failure is None and text not in self._scored:
            self._scored[text] = self._scorer.begin(call.case_id, completion.text)
            if isinstance(self._scored[text], Future):
                self._pending.append(text)
        while len(self._pending) > _MAX_AHEAD:
            self._settle_first()

    def by_replicate(self, case_id: str) -> dict[int, Scored]:
        """Return the scores of a case's outputs by replicate index. Calls that returned no output are absent."""
        scores = {}
        for index, text in self._texts[case_id].items():
            failure = self._failed.get(Call(case_id, index))
            if failure is None:
                scores[index] = wait_for(self._scored[case_id, text])
            else:
                scores[index] = unparseable(self._component.scoring.metrics, self._cases[case_id], failure)
        return scores

    def take(self, judged: Mapping[tuple[str, str], CheckScores]) -> None:
        """Add the scores of judged checks by (case id, text). Unusable outputs, such as truncated ones, stay failed."""
        for (case_id, text), scores in judged.items():
            key = case_id, _digest(text)
            scored = wait_for(self._scored[key]) if key in self._scored else None
            if scored is not None and scored.outcome in _READ:
                checks = {**scored.checks, **scores}
                metrics = with_checks(scored.metrics, self._cases[case_id], checks)
                self._scored[key] = replace(scored, checks=checks, metrics=metrics)

    def scorecard(self) -> Scorecard:
        """Wait for all scores and return the scorecard. Calls without an outcome are `not_run`.

        Raise FixtureError if a ground truth is too costly to score.
        """
        while self._pending:
            self._settle_first()
        cases = tuple(self._case_scores())
        reasons = Counter({TOO_COSTLY_TO_COMPARE: sum(case.agreement.is_too_costly for case in cases)})
        for (_, reason), calls in self._faults.items():
            reasons[reason] += len(calls)
        return Scorecard(
            cases=cases,
            replicates=self._replicates,
            reasons=dict(sorted((+reasons).items())),
            faults=tuple(sorted(self._fault_list(), key=lambda fault: (-fault.count, fault.reason))),
            completed=tuple(self._completed),
            retries=self._retries,
            digest=digest_of_outputs(self._output_digests),
        )

    def _fault_list(self) -> Iterator[FailedCalls]:
        positions = {case_id: position for position, case_id in enumerate(self._cases)}
        for (kind, reason), calls in self._faults.items():
            first = min(calls, key=lambda call: (positions[call.case_id], call.replicate))
            cases = sorted({call.case_id for call in calls}, key=positions.__getitem__)
            yield FailedCalls(
                kind=kind,
                reason=reason,
                count=len(calls),
                n_cases=len(cases),
                cases=cases[:_MAX_FAULT_CASES],
                message=calls[first][:_MAX_MESSAGE_CHARS],
            )

    def _settle_first(self) -> None:
        text = self._pending[0]
        self._scored[text] = wait_for(self._scored[text])
        self._pending.popleft()

    def _case_scores(self) -> Iterator[CaseScore]:
        pending: deque[tuple[Case, CaseOutputs, Agreement | Future[Agreement]]] = deque()
        for case in self._cases.values():
            outputs = CaseOutputs(self._component.scoring.plan)
            for index, scored in self.by_replicate(case.id).items():
                outputs.add(self._texts[case.id][index], scored.canonical if scored.outcome == SCORED else None)
                call = Call(case.id, index)
                if scored.problem is not None:
                    self._faults.setdefault((scored.outcome, scored.problem), {})[call] = ""
                if scored.several:
                    several = self._faults.setdefault((scored.outcome, "ambiguous"), {})
                    several[call] = "one of several values was scored"
            pending.append((case, outputs, self._scorer.begin_agreement(outputs)))
            while pending and (len(pending) > _MAX_CASES_AHEAD or not isinstance(pending[0][-1], Future)):
                yield self._case_score(*pending.popleft())
        while pending:
            yield self._case_score(*pending.popleft())

    def _case_score(self, case: Case, outputs: CaseOutputs, compared: Agreement | Future[Agreement]) -> CaseScore:
        labelled, agreement, planned = case.labelled, wait_for(compared), range(self._replicates)
        by_replicate, texts = self.by_replicate(case.id), self._texts[case.id]
        outcomes = {index: scored.outcome for index, scored in by_replicate.items()}
        times = Counter(texts[index] for index, scored in by_replicate.items() if scored.outcome == SCORED)
        parsed = [(wait_for(self._scored[case.id, text]), count) for text, count in times.items()]
        fields = total_fields((scored.fields, count) for scored, count in parsed)
        check_scores = {
            check.id: [
                by_replicate[index].checks[check.id].score if index in by_replicate else None for index in planned
            ]
            for check in case.checks
        }
        passed = {check_path(check_id): passed_counts(scores) for check_id, scores in check_scores.items()}
        check_stabilities = {
            path: max(counts.values()) / n for path, counts in passed.items() if (n := counts.total()) > 1
        }
        return CaseScore(
            case_id=case.id,
            labelled=labelled,
            outcomes=tuple(self._failed.get(Call(case.id, index)) or outcomes.get(index, NOT_RUN) for index in planned),
            metrics={
                name: tuple(by_replicate[index].metrics[name] if index in by_replicate else None for index in planned)
                for name in self._component.scoring.metrics
            },
            fields=fields
            | {path: FieldCounts(right=counts[True], wrong=counts[False]) for path, counts in passed.items()},
            agreement=replace(
                agreement,
                stability={**agreement.stability, **check_stabilities},
                values={**agreement.values, **passed},
            ),
            profile=field_profile(outputs, agreement.values, fields if labelled else None)
            | {path: check_stability(counts) for path, counts in passed.items()},
            exact=outputs.groups[canonical_json(outputs.plan.with_numbers(case.truth))] if labelled else None,
            contracts=tuple((scored.contract, count) for scored, count in parsed),
            undefined=self._scorer.undefined(case.id),
            parts=case.parts,
            checks={
                check.id: CheckRecord.view(
                    check, scores=list(map(rounded, check_scores[check.id])), judged=check.kind == "expect"
                )
                for check in case.checks
            },
        )


def passed_counts(scores: Iterable[float | None]) -> Counter[Hashable]:
    """Count the outputs that pass a check (key True, score ≥ 0.5) and that fail it (key False). Ignore None."""
    return Counter(score >= PASSED_FROM for score in scores if score is not None)


def check_stability(passed: Counter[Hashable]) -> Stability:
    """Return whether a check is `stable_right`, `stable_wrong` or `flaky`, or `unscored` for fewer than two outputs."""
    if passed.total() < 2:
        return "unscored"
    return "flaky" if len(passed) > 1 else "stable_right" if passed[True] else "stable_wrong"


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def score_outcomes(
    scorer: TextScorer,
    manifest: Manifest,
    outcomes: Iterable[Replicate],
    judged: Mapping[tuple[str, str], CheckScores],
) -> Scorecard:
    """Return the scorecard of a run. `judged` has the scores of judged checks by (case id, text of the output)."""
    run_scorer = RunScorer(scorer, manifest.cases, manifest.replicates)
    for replicate in outcomes:
        run_scorer.add(replicate)
    run_scorer.take(judged)
    return run_scorer.scorecard()


@contextmanager
def open_scorer(
    component: Component, cases: Iterable[Case], calls: int, until: float = math.inf
) -> Iterator[TextScorer]:
    """Open a scorer for at most `calls` outputs of these cases, with worker processes if they are needed.

    A worker's task that has not begun by `until` (monotonic clock) counts as too costly to score. The workers are
    forked here, so this process must have no other thread and hold no lock.
    """
    with closing(TextScorer(component, cases, until)) as scorer:
        scorer.start_workers(calls)
        yield scorer
