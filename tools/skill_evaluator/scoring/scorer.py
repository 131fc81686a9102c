"""Reduce the replicates of a run to a scorecard; equal texts of a case are scored once, every call is counted."""

import hashlib
import math
from collections import Counter, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.accuracy import FieldCounts, total_fields
from skill_evaluator.metrics.agreement import CaseOutputs, Stability, field_profile
from skill_evaluator.records.record import NOT_RUN, PASSED_FROM, SCORED, UNPARSEABLE, CheckRecord, check_path
from skill_evaluator.records.summaries import FailedCalls
from skill_evaluator.runner.schedule import Call, Replicate, digest_of_answers
from skill_evaluator.scoring.answers import (
    TOO_COSTLY_TO_COMPARE,
    Agreement,
    AnswerScorer,
    CaseScore,
    CheckScores,
    CompletedCall,
    Scorecard,
    Scored,
    unparseable,
    wait_for,
    with_checks,
)
from skill_evaluator.stats import rounded
from skill_evaluator.text import canonical_json

_READ = (SCORED, UNPARSEABLE)  # outcomes of outputs that checks examine
_MAX_AHEAD = 32  # outputs sent to the workers before waiting for the first
_MAX_CASES_AHEAD = 4
_MAX_FAULT_CASES = 5
_MAX_MESSAGE_CHARS = 300


@dataclass(slots=True)
class _CaseScores:
    case: Case
    failed: dict[int, str] = field(default_factory=dict)  # the kind of failure by replicate
    texts: dict[int, bytes] = field(default_factory=dict)  # the digest of the text by replicate
    scores: dict[bytes, Scored | Future[Scored]] = field(default_factory=dict)  # key: digest of the text
    unusable: dict[int, Scored] = field(default_factory=dict)  # refused and truncated replicates

    def by_replicate(self) -> dict[int, Scored]:
        return {
            index: self.unusable[index] if index in self.unusable else wait_for(self.scores[digest])
            for index, digest in self.texts.items()
        }


class Scorer:
    """Scores the replicates of one run. Each call may be added once.

    `scores` may also have cases of other runs. `replicates` is the number of planned calls per case.
    """

    def __init__(self, scores: AnswerScorer, case_ids: Collection[str], replicates: int) -> None:
        self._component = scores.component
        self._replicates = replicates
        self._scores = scores
        self._cases = {case_id: _CaseScores(case) for case_id, case in scores.cases.items() if case_id in case_ids}
        self._pending: deque[tuple[_CaseScores, bytes, Future[Scored]]] = deque()
        self._completed: list[CompletedCall] = []
        self._faults: dict[tuple[str, str], dict[Call, str]] = {}
        self._retries = 0
        self._answers: dict[Call, str] = {}

    def add(self, replicate: Replicate) -> None:
        """Count and begin to score a replicate. Wait while more than 32 texts are pending."""
        case, completion, index = self._cases[replicate.call.case_id], replicate.completion, replicate.call.replicate
        self._retries += replicate.attempts - 1
        self._answers[replicate.call] = replicate.digest
        failure = replicate.failure
        if failure is not None:
            self._faults.setdefault((failure.kind, failure.reason), {})[replicate.call] = failure.message
        if completion is None:
            case.failed.update({} if failure is None else {index: failure.kind})
            return
        served = completion.served_model
        self._completed.append(CompletedCall(case.case.id, completion.usage, replicate.latency_s, served))
        digest = case.texts[index] = _digest(completion.text)
        if failure is not None:
            case.unusable[index] = unparseable(self._component, case.case, failure.kind)
        elif digest not in case.scores:
            scoring = case.scores[digest] = self._scores.begin(case.case.id, completion.text)
            if isinstance(scoring, Future):
                self._pending.append((case, digest, scoring))
        while len(self._pending) > _MAX_AHEAD:
            self._settle_first()

    def add_all(self, replicates: Iterable[Replicate]) -> None:
        """Count replicates and begin to score them."""
        for replicate in replicates:
            self.add(replicate)

    def by_replicate(self, case_id: str) -> dict[int, Scored]:
        """Return the scores of a case's outputs by replicate index. Calls that returned no output are absent."""
        return self._cases[case_id].by_replicate()

    def take(self, judged: Mapping[tuple[str, str], CheckScores]) -> None:
        """Add the scores of judged checks by (case id, text). Refused and truncated outputs still fail all checks."""
        for (case_id, text), scores in judged.items():
            case, digest = self._cases[case_id], _digest(text)
            scored = wait_for(case.scores[digest]) if digest in case.scores else None
            if scored is not None and scored.outcome in _READ:
                checks = {**scored.checks, **scores}
                metrics = with_checks(scored.metrics, case.case, checks)
                case.scores[digest] = replace(scored, checks=checks, metrics=metrics)

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
            answers=digest_of_answers(self._answers),
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
        case, digest, scoring = self._pending[0]
        case.scores[digest] = scoring.result()
        self._pending.popleft()

    def _case_scores(self) -> Iterator[CaseScore]:
        pending: deque[tuple[_CaseScores, CaseOutputs, Agreement | Future[Agreement]]] = deque()
        for case in self._cases.values():
            answers = CaseOutputs(self._component.plan)
            for index, scored in case.by_replicate().items():
                answers.add(case.texts[index], scored.canonical if scored.outcome == SCORED else None)
                call = Call(case.case.id, index)
                if scored.problem is not None:
                    self._faults.setdefault((scored.outcome, scored.problem), {})[call] = ""
                if scored.several:
                    several = self._faults.setdefault((scored.outcome, "ambiguous"), {})
                    several[call] = "one of several values was scored"
            pending.append((case, answers, self._scores.begin_agreement(answers)))
            while pending and (len(pending) > _MAX_CASES_AHEAD or not isinstance(pending[0][-1], Future)):
                yield self._case_score(*pending.popleft())
        while pending:
            yield self._case_score(*pending.popleft())

    def _case_score(
        self, case: _CaseScores, answers: CaseOutputs, comparison: Agreement | Future[Agreement]
    ) -> CaseScore:
        labelled, agreement, planned = case.case.labelled, wait_for(comparison), range(self._replicates)
        by_replicate = case.by_replicate()
        times = Counter(case.texts[index] for index, scored in by_replicate.items() if scored.outcome == SCORED)
        parsed = [(wait_for(case.scores[digest]), count) for digest, count in times.items()]
        fields = total_fields((scored.fields, count) for scored, count in parsed)
        outcomes = {**case.failed, **{index: scored.outcome for index, scored in by_replicate.items()}}
        check_scores = {
            check.id: [
                by_replicate[index].checks[check.id].score if index in by_replicate else None for index in planned
            ]
            for check in case.case.checks
        }
        passed = {check_path(check_id): passed_counts(scores) for check_id, scores in check_scores.items()}
        check_stabilities = {
            path: max(counts.values()) / n for path, counts in passed.items() if (n := counts.total()) > 1
        }
        return CaseScore(
            case_id=case.case.id,
            labelled=labelled,
            outcomes=tuple(outcomes.get(index, NOT_RUN) for index in planned),
            metrics={
                name: tuple(by_replicate[index].metrics[name] if index in by_replicate else None for index in planned)
                for name in self._component.metrics
            },
            fields=fields
            | {path: FieldCounts(right=counts[True], wrong=counts[False]) for path, counts in passed.items()},
            agreement=replace(
                agreement,
                stability={**agreement.stability, **check_stabilities},
                values={**agreement.values, **passed},
            ),
            profile=field_profile(answers, agreement.values, fields if labelled else None)
            | {path: check_stability(counts) for path, counts in passed.items()},
            exact=answers.groups[canonical_json(answers.plan.with_numbers(case.case.truth))] if labelled else None,
            contracts=tuple((scored.contract, count) for scored, count in parsed),
            undefined=self._scores.undefined(case.case.id),
            parts=case.case.parts,
            checks={
                check.id: CheckRecord.view(
                    check, scores=list(map(rounded, check_scores[check.id])), judged=check.kind == "expect"
                )
                for check in case.case.checks
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
    component: Component,
    cases: Sequence[Case],
    replicates: int,
    outcomes: Sequence[Replicate],
    judged: Mapping[tuple[str, str], CheckScores],
    until: float = math.inf,
) -> Scorecard:
    """Return the scorecard of saved outcomes. `judged` is as in `Scorer.take`, `until` as in `open_scores`."""
    with open_scores(component, cases, len(outcomes), until) as scores:
        scorer = Scorer(scores, scores.cases, replicates)
        scorer.add_all(outcomes)
        scorer.take(judged)
        return scorer.scorecard()


@contextmanager
def open_scores(
    component: Component, cases: Iterable[Case], calls: int, until: float = math.inf
) -> Iterator[AnswerScorer]:
    """Open a scorer for at most `calls` outputs of these cases, with worker processes if they are needed.

    A worker's task that has not begun by `until` (monotonic clock) is too costly to score. The workers are forked here,
    so this process must have no other thread and hold no lock.
    """
    with closing(AnswerScorer(component, cases, until)) as scorer:
        scorer.start_workers(calls)
        yield scorer
