"""Score one text: parse it, validate it with the schema, compare it with the ground truth, and run its checks."""

import math
import os
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeVar

from skill_evaluator.checks import call_function, passes
from skill_evaluator.comparing.comparison import arrays_in, pairs_by_best
from skill_evaluator.comparing.declarations import same_value
from skill_evaluator.comparing.field_plan import COMPARATORS, FieldPlan
from skill_evaluator.errors import ConfigError, FixtureError
from skill_evaluator.library.cases import Case, parse_case_output
from skill_evaluator.library.components import Component
from skill_evaluator.library.prompts import File
from skill_evaluator.metrics import METRICS, REPRODUCIBILITY
from skill_evaluator.metrics.accuracy import Comparison, FieldCounts, apply_metrics, per_field, share_passed
from skill_evaluator.metrics.agreement import (
    ArrayLengths,
    CaseOutputs,
    FieldValues,
    Stability,
    array_lengths,
    field_stability_by_path,
    field_values,
)
from skill_evaluator.parsing import Expected, Parsed, parse_output, split_reasoning
from skill_evaluator.processes import Workers
from skill_evaluator.providers.base import Usage
from skill_evaluator.records.record import ANSWERED, CHECKS_METRIC, SCORED, UNPARSEABLE, CheckRecord
from skill_evaluator.records.summaries import FailedCalls
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


def _run_programs(case: Case, text: str, answer: Any, scores: CheckScores, until: float) -> dict[str, CheckScore]:
    """Run the python checks that have no score yet, and return all results by check id.

    `answer` is the parsed value. Checks that would start after the time `until` (monotonic clock) score 0.
    """
    context = {
        "answer": answer,
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
_EXTRA_KEYS = ("additionalProperties", "unevaluatedProperties")
_BRANCH_KEYWORDS = ("anyOf", "oneOf")
_COMBINING_KEYWORDS = ("allOf", *_BRANCH_KEYWORDS, "if", "then", "else")
_MAX_MESSAGE = 200  # characters; a message quotes the invalid value


class ContractError(NamedTuple):
    """One schema error: its path, schema keyword and message. The path ends with a missing or extra key."""

    path: str
    rule: str
    message: str


def contract_errors(errors: Iterable[Any], plan: FieldPlan) -> tuple[ContractError, ...]:
    """Convert errors of a `jsonschema_rs` validator. Each extra key becomes one error. Long messages are shortened."""
    broken = []
    for error in errors:
        rule, message, error_paths = error.kind.name, error.message, [error.instance_path]
        if rule == "required":
            error_paths = [[*error.instance_path, error.kind.property]]
        elif rule in _EXTRA_KEYS:
            error_paths = [[*error.instance_path, key] for key in error.kind.unexpected]
        if len(message) > _MAX_MESSAGE:
            message = f"{message[: _MAX_MESSAGE - 1]}…"
        broken += [ContractError(plan.field("").descendant(steps).path, rule, message) for steps in error_paths]
    return tuple(broken)


def only_extra_keys(errors: Sequence[Any]) -> bool:
    """Return whether each error is an extra key. For `anyOf` and `oneOf`, one branch with only such errors suffices."""
    for error in errors:
        if error.kind.name in _BRANCH_KEYWORDS:
            if not any(branch and only_extra_keys(branch) for branch in getattr(error.kind, "context", ())):
                return False
        elif error.kind.name not in _EXTRA_KEYS:
            return False
    return True


def missing_and_extra_keys(
    output: Any, required: frozenset[str], named: frozenset[str] | None
) -> tuple[frozenset[str], frozenset[str]]:
    """Return (missing keys, extra keys), both empty if the output is no object. If `named` is None, no key is extra."""
    if not isinstance(output, dict):
        return frozenset(), frozenset()
    return required - output.keys(), frozenset() if named is None else frozenset(output) - named


def top_names(schema: Mapping[str, Any] | None) -> tuple[frozenset[str], frozenset[str] | None]:
    """Return (required keys, named keys) of the top level of a schema, also through `$ref` and `allOf`.

    Branches such as `anyOf` add only named keys. The named keys are None if the schema names no key, or if
    `patternProperties` or `additionalProperties` has a schema for other keys.
    """
    nodes = [node for node in same_value(schema, schema or {}, _COMBINING_KEYWORDS) if isinstance(node, Mapping)]
    certain = [node for node in same_value(schema, schema or {}, ("allOf",)) if isinstance(node, Mapping)]
    property_names = frozenset(name for node in nodes for name in node.get("properties", ()))
    required = frozenset(name for node in certain for name in node.get("required", ()))
    is_open = any(
        "patternProperties" in node or isinstance(node.get("additionalProperties"), Mapping) for node in nodes
    )
    return required, property_names if property_names and not is_open else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputContract:
    """The validity of an output, with and without extra keys, its errors, and its missing and extra top-level keys."""

    holds: bool = True
    holds_but_for_extra_keys: bool = True
    errors: tuple[ContractError, ...] = ()
    missing_keys: frozenset[str] = frozenset()
    extra_keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The scores of one distinct text of a case.

    `canonical` is the canonical JSON of the parsed value, or None if the text was not scored. `problem` is the reason
    why a text was not parsed or was too costly to score.
    """

    outcome: str
    metrics: Mapping[str, float | None]
    contract: OutputContract = OutputContract()
    fields: Mapping[str, FieldCounts] = field(default_factory=dict)
    canonical: str | None = None
    problem: str | None = None
    checks: CheckScores = field(default_factory=dict)
    several: bool = False  # whether the text contains several output candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The agreement of a case's outputs with each other.

    If it `is_too_costly` to compare the outputs, `metrics` has the worst values. `stability`, `values` and `arrays` are
    by path. `values` counts the values of a field, long texts as digests.
    """

    metrics: Mapping[str, float | None]
    stability: Mapping[str, float] = field(default_factory=dict)
    values: FieldValues = field(default_factory=dict)
    arrays: Mapping[str, ArrayLengths] = field(default_factory=dict)
    is_too_costly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """The scores of one case: per replicate, and over its replicates.

    `outcomes` and each tuple of `metrics` have one entry per planned replicate. A metric is None if it was not
    measured. `undefined` names the metrics that no output of the case can have, such as `jaccard` without an array.
    `exact` counts the outputs that equal the ground truth (None: no ground truth). `contracts` has the schema result of
    each distinct parsed text, with the number of outputs that are this text. `fields` and `profile` are by path and
    include checks; without a ground truth, `fields` has only checks. `checks` are by check id. `parts` are digests of
    the case's inputs by name.
    """

    case_id: str
    labelled: bool
    outcomes: tuple[str, ...]
    metrics: Mapping[str, tuple[float | None, ...]]
    agreement: Agreement
    fields: Mapping[str, FieldCounts] = field(default_factory=dict)
    profile: Mapping[str, Stability] = field(default_factory=dict)
    exact: int | None = None
    contracts: tuple[tuple[OutputContract, int], ...] = ()
    undefined: frozenset[str] = frozenset()
    parts: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, CheckRecord] = field(default_factory=dict)

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
    """The scores of all cases of a run, and the calls with a completion.

    `reasons` counts failures, ambiguous outputs and cases that were too costly to compare. `faults` has the cases of
    each failure. `answers` is the digest of all outputs.
    """

    cases: tuple[CaseScore, ...]
    replicates: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[FailedCalls, ...] = ()
    completed: tuple[CompletedCall, ...] = ()
    retries: int = 0
    answers: str = ""

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


def _agreement_of(answers: CaseOutputs, *, is_too_costly: bool = False) -> Agreement:
    """Return the agreement of a case's outputs. If `is_too_costly`, all `metrics` have their worst values."""
    metrics: Mapping[str, float | None]
    if is_too_costly:
        metrics = {name: float(answers.n) if metric.is_count else 0.0 for name, metric in REPRODUCIBILITY.items()}
    else:
        metrics = {name: metric.score(answers) for name, metric in REPRODUCIBILITY.items()}
    values = {
        path: Counter({_shortened(value): count for value, count in counts.items()})
        for path, counts in field_values(answers).items()
    }
    return Agreement(
        metrics=metrics,
        stability=field_stability_by_path(answers),
        values=values,
        arrays=array_lengths(answers),
        is_too_costly=is_too_costly,
    )


def _shortened(value: Hashable) -> Hashable:
    if isinstance(value, frozenset):
        value = repr(sorted(value, key=repr))
    return digest(value) if isinstance(value, str) and len(value) > _MAX_VALUE_CHARS else value


def unparseable(
    component: Component,
    case: Case,
    outcome: str = UNPARSEABLE,
    problem: str | None = None,
    checks: CheckScores | None = None,
) -> Scored:
    """Return the scores of an output that cannot be parsed or used. If `checks` is None, all its checks fail."""
    scores = {check.id: CheckScore(0.0) for check in case.checks} if checks is None else checks
    metrics = with_checks({name: metric.unparseable for name, metric in component.metrics.items()}, case, scores)
    return Scored(outcome=outcome, metrics=metrics, problem=problem, checks=scores)


class AnswerScorer:
    """Scores texts as outputs of a component's cases, in this process and, if started, in workers.

    A worker's task that has not begun by `until` (monotonic clock) is too costly. A check program that would start
    after `until` scores 0.
    """

    def __init__(self, component: Component, cases: Iterable[Case], until: float = math.inf) -> None:
        self.component = component
        self._until = until
        self._programs: ThreadPoolExecutor | None = None
        self._workers: Workers | None = None
        self._short: frozenset[str] = frozenset()  # cases with a short ground truth
        self.cases = {case.id: case for case in cases}
        self._names = top_names(component.schema)
        self._undefined: dict[str, frozenset[str] | Future[frozenset[str]]] = {}
        compared = {rule.compare or "exact" for rule in component.plan.leaves.values()}
        is_shipped = component.metrics.keys() <= METRICS.keys() and compared <= COMPARATORS.keys()
        self._may_last = not is_shipped  # a plugin's metric or comparator may never end

    def start_workers(self, calls: int) -> None:
        """Start workers if the ground truths or at most `calls` outputs may need them. Without `fork`, start none."""
        component, cases = self.component, self.cases.values()
        self._short = frozenset(case.id for case in cases if self._is_short(canonical_json(case.truth)))
        needs_none = not calls and len(self._short) == len(cases)
        if needs_none or (component.output == "choice" and not self._may_last) or not hasattr(os, "fork"):
            return
        arrays = (array for case in cases for array in arrays_in(case.truth, component.plan))
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
            return _agreement_of(CaseOutputs(self.component.plan, *arguments))
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
            too_costly = partial(unparseable, self.component, case, problem=TOO_COSTLY)
            scoring = self._workers.submit(("score", case_id, text), too_costly, until=self._until)
        if not takes_programs(case):
            return scoring

        def scored() -> Scored:
            scored_text, answer = wait_for(scoring), parse_case_output(self.component, case, text).value
            checks = _run_programs(case, text, answer, scored_text.checks, self._until)
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
        case, component = self.cases[case_id], self.component
        parsed = parse_case_output(component, case, text)
        checks = _check_text(case, text, component.contract.expected.or_type_of(case.truth))
        if parsed.form is None:
            return unparseable(component, case, problem=parsed.problem, checks=checks)
        max_leaves = component.limits.answer_leaves
        if len(text) > max_leaves and count_leaves(parsed.value) > max_leaves:
            return unparseable(component, case, problem=TOO_COSTLY)
        contract = self._contract(parsed.value)
        comparison = Comparison(case.truth, parsed.value, component.plan, contract.holds, _weighted(case, checks))
        return Scored(
            outcome=SCORED,
            metrics=apply_metrics(component.metrics, comparison, labelled=case.labelled),
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
        metrics = {name: metric for name, metric in self.component.metrics.items() if metric.needs_truth}
        if case.labelled:
            truth = Comparison(case.truth, case.truth, self.component.plan)
            metrics = {name: metric for name, metric in metrics.items() if metric.score(truth) is None}
        unchecked = {CHECKS_METRIC} if CHECKS_METRIC in self.component.metrics and not case.checks else set()
        return frozenset(metrics.keys() | unchecked)

    def _contract(self, output: Any) -> OutputContract:
        missing, extra = missing_and_extra_keys(output, *self._names)
        contract, max_errors = self.component.contract, self.component.limits.schema_errors
        holds = contract.conforms(output)
        violations = [] if holds else contract.violations(output, max_errors)
        return OutputContract(
            holds=holds,
            holds_but_for_extra_keys=only_extra_keys(violations),
            # one error may name any number of extra keys
            errors=contract_errors(violations, self.component.plan)[:max_errors],
            missing_keys=missing,
            extra_keys=extra,
        )
