"""Replicates in, one scorecard out: every answer is scored once, and every planned call accounted for.

`Scorer` takes replicates one by one, from a running engine or a journal. Of a scored one it holds outcome and
metrics; the rest waits in a file until all are reduced, case by case. Equal texts to one case are scored once and
counted as often as they came.
"""

import hashlib
import math
import os
import pickle
import sys
import tempfile
import weakref
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from skill_evaluator.files import storing
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.base import CaseAnswers
from skill_evaluator.metrics.diagnosis.field_profile import field_profile, flawed_fields
from skill_evaluator.metrics.diagnosis.per_field import filled_fields, total_fields
from skill_evaluator.providers.base import Usage
from skill_evaluator.records.record import NOT_RUN, SCORED, UNPARSEABLE, check_path
from skill_evaluator.records.summaries import FailedCalls
from skill_evaluator.runner.schedule import Call, Replicate, digest_of_answers
from skill_evaluator.scoring.answers import (
    CONTRACT_KEPT,
    NO_FIELDS,
    TOO_COSTLY_TO_COMPARE,
    Agreement,
    AnswerScorer,
    CaseScore,
    Scorecard,
    Scored,
    unparseable,
)
from skill_evaluator.scoring.checked import CheckedCase, CheckScores, with_checks
from skill_evaluator.text import canonical_json

_READ = (SCORED, UNPARSEABLE)  # what became of an answer that checks look at
_AHEAD = 32  # answers that are sent to be scored before the first of them is waited for
_COMPARED_AHEAD = 4  # cases; what was scored of the answers to each is in memory meanwhile
_NAMED = 5  # cases of a fault
_MESSAGE = 300  # characters of what was said of it
_WAITING = 256  # answers; calls take longer than scoring, but where thousands are answered at once
_IN_MEMORY = 4_000_000  # bytes
T = TypeVar("T")


@dataclass(slots=True)
class _CaseInProgress:
    """What has come in of one case: replicates without an answer, scores of the others as they came, and of each text.

    Equal texts share what is held. `aside` says where the rest of what was scored of a text is put.
    """

    case: Case
    failed: dict[int, str] = field(default_factory=dict)
    scored: dict[int, Scored] = field(default_factory=dict)
    by_text: dict[bytes, Scored | Future[Scored]] = field(default_factory=dict)
    aside: dict[bytes, int] = field(default_factory=dict)


class _PutAside:
    """What was scored of thousands of answers, in a file without a name that ends with this object."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def put(self, scored: Scored) -> int:
        with storing(Path(tempfile.gettempdir())):
            place = self._file.seek(0, os.SEEK_END)
            pickle.dump(scored, self._file, pickle.HIGHEST_PROTOCOL)
        return place

    def take(self, place: int) -> Scored:
        self._file.seek(place)
        scored: Scored = pickle.load(self._file)  # noqa: S301
        return scored


class Scorer:
    """Scores the replicates of one run as they come; each call may be added once.

    `scores` says where the scores come from; without it they are worked out here, as each answer is added.
    """

    def __init__(
        self, component: Component, cases: Iterable[Case], replicates: int, scores: AnswerScorer | None = None
    ) -> None:
        mine = list(cases)
        self._component = component
        self._replicates = replicates
        self._scores = scores or AnswerScorer(component, mine)
        self._cases = {case.id: _CaseInProgress(case) for case in mine}
        self._pending: deque[tuple[_CaseInProgress, int, bytes, Scored | Future[Scored]]] = deque()
        self._aside = _PutAside()
        self._usages: list[Usage] = []
        self._distinct: dict[Usage, Usage] = {}  # thousands of calls share them
        self._latencies = array("d")
        self._served: list[str | None] = []
        self._faults: dict[tuple[str, str], dict[Call, str]] = {}
        self._retries = 0
        self._answers: dict[Call, str] = {}

    def add(self, replicate: Replicate) -> Future[Scored] | None:
        """Count a replicate and begin to score it; what is scored by now is put aside.

        Return what to wait for before the next is added, if many are waiting.
        """
        case = self._cases[replicate.call.case_id]
        self._retries += replicate.attempts - 1
        self._answers[replicate.call] = sys.intern(replicate.digest)  # equal answers have one
        failure = replicate.failure
        if failure is not None:
            self._faults.setdefault((failure.kind, failure.reason), {})[replicate.call] = failure.message
        if replicate.completion is None:
            case.failed.update({} if failure is None else {replicate.call.replicate: failure.kind})
            return None
        self._usages.append(self._distinct.setdefault(replicate.completion.usage, replicate.completion.usage))
        self._latencies.extend([] if replicate.latency_s is None else [replicate.latency_s])
        self._served.append((served := replicate.completion.served_model) and sys.intern(served))
        raw = _digest(replicate.completion.text)
        if failure is not None:
            scored: Scored | Future[Scored] = replace(unparseable(self._component, case.case, failure.kind), raw=raw)
        else:
            scored = self._begin(case, raw, replicate.completion.text)
        self._pending.append((case, replicate.call.replicate, raw, scored))
        while self._pending:
            begun = self._pending[0][-1]
            if isinstance(begun, Future) and (not begun.done() or begun.exception()):  # whoever waits for it is told
                return begun if len(self._pending) > _WAITING else None
            self._count_first()
        return None

    def add_all(self, replicates: Iterable[Replicate]) -> None:
        """Count replicates, and wait for the scores of some before the next is taken."""
        for replicate in replicates:
            self.add(replicate)
            while len(self._pending) > _AHEAD:
                self._count_first()

    def begin(self, case_id: str, text: str) -> None:
        """Begin to score a text as the answer to a case, without counting it; equal texts are scored once."""
        self._begin(self._cases[case_id], _digest(text), text)

    def scored(self, case_id: str, text: str) -> Scored:
        """Return the scores of a text as the answer to a case, without counting it."""
        case, raw = self._cases[case_id], _digest(text)
        scored = case.by_text[raw] = _wait_for(self._begin(case, raw, text))
        return scored

    def take(self, judged: Mapping[tuple[str, str], CheckScores]) -> None:
        """Take the scores of checks that something else decides, by case and text; what failed stays failed."""
        while self._pending:
            self._count_first()
        for (case_id, text), scores in judged.items():
            case, raw = self._cases[case_id], _digest(text)
            if before := next((one for one in case.scored.values() if one.raw == raw and one.outcome in _READ), None):
                checks = {**before.checks, **scores}
                after = replace(before, checks=checks, metrics=with_checks(before.metrics, case.case, checks))
                case.by_text[raw] = after
                case.scored |= {index: after for index, one in case.scored.items() if one is before}

    def scorecard(self) -> Scorecard:
        """Reduce all replicates so far, once they are scored; a planned call without an outcome is `not_run`.

        Raise FixtureError for a truth that is too costly to score.
        """
        while self._pending:
            self._count_first()
        scored = list(self._case_scores(range(self._replicates)))
        reasons = Counter({TOO_COSTLY_TO_COMPARE: [compared for _, compared in scored].count(False)})
        for (_, reason), calls in self._faults.items():
            reasons[reason] += len(calls)
        return Scorecard(
            cases=tuple(case for case, _ in scored),
            replicates=self._replicates,
            reasons=dict(sorted((+reasons).items())),
            faults=tuple(sorted(self._fault_list(), key=lambda fault: (-fault.count, fault.reason))),
            usages=tuple(self._usages),
            latencies_s=self._latencies,
            served=tuple(self._served),
            retries=self._retries,
            answers=digest_of_answers(self._answers),
        )

    def _fault_list(self) -> Iterator[FailedCalls]:
        places = {case_id: place for place, case_id in enumerate(self._cases)}
        for (kind, reason), calls in self._faults.items():
            first = min(calls, key=lambda call: (places[call.case_id], call.replicate))
            cases = sorted({call.case_id for call in calls}, key=places.__getitem__)
            message = calls[first][:_MESSAGE]
            yield FailedCalls(
                kind=kind, reason=reason, count=len(calls), n_cases=len(cases), cases=cases[:_NAMED], message=message
            )

    def _begin(self, case: _CaseInProgress, raw: bytes, text: str) -> Scored | Future[Scored]:
        if raw not in case.by_text:
            case.by_text[raw] = self._scores.begin(case.case.id, text)
        return case.by_text[raw]

    def _count_first(self) -> None:
        """Wait for the scores of the first replicate that is not counted, count it, and put what it takes aside."""
        case, index, raw, begun = self._pending[0]
        scored = _wait_for(begun)
        self._pending.popleft()
        if scored.problem is not None:
            self._faults.setdefault((scored.outcome, scored.problem), {})[Call(case.case.id, index)] = ""
        if scored.several:
            several = self._faults.setdefault((scored.outcome, "ambiguous"), {})
            several[Call(case.case.id, index)] = "one of several values was scored"
        if not scored.raw:
            if scored.outcome == SCORED and raw not in case.aside:
                case.aside[raw] = self._aside.put(scored)
            if not _wait_for(case.by_text[raw]).raw:
                case.by_text[raw] = replace(scored, fields=NO_FIELDS, contract=CONTRACT_KEPT, canonical=None, raw=raw)
            scored = _wait_for(case.by_text[raw])
        case.scored[index] = scored

    def _case_scores(self, planned: range) -> Iterator[tuple[CaseScore, bool]]:
        """Yield the score of each case, and whether its answers could be compared, which workers begin ahead."""
        begun: deque[tuple[_CaseInProgress, CaseAnswers, list[tuple[Scored, int]], Agreement | Future[Agreement]]]
        begun = deque()
        for case in self._cases.values():
            texts = {raw: self._aside.take(place) for raw, place in case.aside.items()}
            times = Counter(scored.raw for scored in case.scored.values() if scored.outcome == SCORED)
            answers = CaseAnswers(self._component.plan)
            for scored in case.scored.values():
                answers.add(scored.raw, texts[scored.raw].canonical if scored.outcome == SCORED else None)
            parsed = [(replace(scored, canonical=None), times[raw]) for raw, scored in texts.items()]
            begun.append((case, answers, parsed, self._scores.begin_agreement(answers)))
            del texts, answers, parsed  # which are of one case what all else is of all cases
            while begun and (len(begun) > _COMPARED_AHEAD or not isinstance(begun[0][-1], Future)):
                yield self._case_score(*begun.popleft(), planned)
        while begun:
            yield self._case_score(*begun.popleft(), planned)

    def _case_score(
        self,
        case: _CaseInProgress,
        answers: CaseAnswers,
        parsed: list[tuple[Scored, int]],
        begun: Agreement | Future[Agreement],
        planned: range,
    ) -> tuple[CaseScore, bool]:
        labelled, agreement = case.case.labelled, _wait_for(begun)
        reproducibility = agreement.metrics
        if reproducibility is None:  # which the model is to blame for
            metrics = self._component.agreement
            reproducibility = {name: float(answers.n) if metric.is_count else 0.0 for name, metric in metrics.items()}
        fields = [(scored.fields, count) for scored, count in parsed]
        outcomes = {**case.failed, **{index: scored.outcome for index, scored in case.scored.items()}}
        checks = [
            CheckedCase(
                check=check,
                scores=tuple(
                    case.scored[index].checks[check.id].score if index in case.scored else None for index in planned
                ),
            )
            for check in case.case.checks
        ]
        checked = {check_path(one.check.id): one for one in checks}
        score = CaseScore(
            case_id=case.case.id,
            labelled=labelled,
            outcomes=tuple(outcomes.get(index, NOT_RUN) for index in planned),
            metrics={
                name: tuple(case.scored[index].metrics[name] if index in case.scored else None for index in planned)
                for name in self._component.metrics
            },
            fields=total_fields(fields) | {path: one.total for path, one in checked.items()},
            reproducibility=reproducibility,
            stability={
                **agreement.stability,
                **{path: one.stability for path, one in checked.items() if one.stability},
            },
            profile=field_profile(answers, agreement.values, flawed_fields(fields) if labelled else None)
            | {path: one.standing for path, one in checked.items()},
            values={**agreement.values, **{path: one.passed for path, one in checked.items()}},
            filled=filled_fields(fields) if labelled else {},
            arrays=agreement.arrays,
            exact=answers.groups[canonical_json(answers.plan.with_numbers(case.case.truth))] if labelled else None,
            contracts=tuple((scored.contract, count) for scored, count in parsed),
            undefined=self._scores.undefined(case.case.id),
            parts=case.case.parts,
            checks=tuple(checks),
        )
        return score, agreement.metrics is not None


def _wait_for(begun: T | Future[T]) -> T:
    return begun.result() if isinstance(begun, Future) else begun


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@contextmanager
def open_scores(
    component: Component, cases: Iterable[Case], calls: int, until: float = math.inf
) -> Iterator[AnswerScorer]:
    """Have the answers to some cases scored, `calls` of them at most, on all cores there are for that.

    What a worker has not begun `until` then, by the monotonic clock, is too costly to score or to compare. Without a
    call, as in a dry run, there are only truths to compare with themselves.
    Processes are forked here: enter it while this one has no other thread and holds no lock. Short texts are scored in
    this process, and so is the letter that answers a question: that takes no longer than to send them away.
    """
    scorer = AnswerScorer(component, cases, until)
    short = frozenset(case.id for case in scorer.cases.values() if scorer.is_short(canonical_json(case.truth)))
    few = not calls and short == scorer.cases.keys()
    if few or (component.output == "choice" and not scorer.may_last) or not hasattr(os, "fork"):
        with closing(scorer):
            yield scorer
        return
    from skill_evaluator.scoring.parallel import open_workers

    with open_workers(scorer, short, calls, until) as scores:
        yield scores
