"""Where the scores of a run come from: worker processes under limits, or this one where nothing can take long.

Its own module because every command that scores answers begins with it, before it does anything else of its own.
"""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

from skill_evaluator.comparing.sides import arrays_in, pairs_by_best
from skill_evaluator.comparing.similarity import load_model
from skill_evaluator.errors import FixtureError
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.base import CaseAnswers
from skill_evaluator.scoring.answers import TOO_COSTLY, Agreement, AnswerScorer, Scored, agreement_of, unparseable
from skill_evaluator.scoring.workers import Workers
from skill_evaluator.text import canonical_json

_LITTLE = 10**8  # pairs × characters²: ten answers of 1.5 kB take about 10 ms
_SHORT = 2_000  # characters × schemas that one value is held against
_MANY = 10  # items, which scipy probably pairs; fewer are often all equal, or few enough to be tried in all orders


@contextmanager
def open_scores(component: Component, cases: Iterable[Case], calls: int) -> Iterator[AnswerScorer]:
    """Have the answers to some cases scored, `calls` of them at most, on all cores there are for that.

    Without a call, as in a dry run, there are only truths to compare with themselves.
    Processes are forked here: enter it while this one has no other thread and holds no lock. Short texts are scored in
    this process, and so is the letter that answers a question: that takes no longer than to send them away.
    """
    scorer = AnswerScorer(component, cases)
    short = frozenset(case.id for case in scorer.cases.values() if _is_short(canonical_json(case.truth), component))
    few = not calls and short == scorer.cases.keys()
    if few or component.output == "choice" or not hasattr(os, "fork"):
        yield scorer
        return

    def work(what: str, *arguments: Any) -> object:
        tasks: Mapping[str, Callable[..., object]] = {
            "score": scorer.score,
            "undefined": scorer.undefined,
            "agreement": lambda *counted: scorer.begin_agreement(CaseAnswers(component.plan, *counted)),
        }
        return tasks[what](*arguments)

    arrays = (array for case in scorer.cases.values() for array in arrays_in(case.truth, component.plan))
    if calls and any(len(items) >= _MANY and pairs_by_best(field.array_rule(*items), field) for field, items in arrays):
        import scipy.optimize  # noqa: F401 - once here, and not once in every worker
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    prepare = load_model if component.plan.embeds else None
    with Workers(work, component.limits, min(cores, max(calls, len(scorer.cases), 1)), prepare) as workers:
        yield _WorkerScores(scorer, short, workers)


def _is_short(text: str, component: Component) -> bool:
    """Return whether not even the worst that the schema can do with such a text takes a tenth of a second."""
    return not component.plan.embeds and len(text) * component.contract.effort <= _SHORT


class _WorkerScores(AnswerScorer):
    """Scores that workers work out; what goes over a limit there is too costly to score."""

    def __init__(self, scorer: AnswerScorer, short: Container[str], workers: Workers) -> None:
        super().__init__(scorer.component, scorer.cases.values())
        self._short = short  # the cases whose truth is
        self._workers = workers
        self._begun: dict[str, Future[frozenset[str]]] = {
            case.id: workers.submit(("undefined", case.id), partial(self._refuse_truth, case.id))
            for case in self.cases.values()
            if case.labelled and case.id not in self._short
        }

    def begin(self, case_id: str, text: str) -> Scored | Future[Scored]:
        if case_id in self._short and _is_short(text, self.component):
            return self.score(case_id, text)
        return self._workers.submit(("score", case_id, text), lambda: unparseable(self.component, problem=TOO_COSTLY))

    def undefined(self, case_id: str) -> frozenset[str]:
        begun = self._begun.get(case_id)
        return super().undefined(case_id) if begun is None else begun.result()

    def begin_agreement(self, answers: CaseAnswers) -> Agreement | Future[Agreement]:
        longest = max(map(len, answers.groups), default=0)
        if len(answers.groups) < 2 or answers.pairs * longest**2 <= _LITTLE:
            return super().begin_agreement(answers)
        task = ("agreement", answers.groups, answers.raw, answers.n)
        return self._workers.submit(task, lambda: agreement_of(answers, None), times=answers.n)

    def _refuse_truth(self, case_id: str) -> NoReturn:
        limits = self.component.limits
        raise FixtureError(
            f"case '{case_id}' of '{self.component.name}': its ground truth is too costly to score, it takes more than "
            f"{limits.score_seconds:g} s or {limits.score_megabytes:,} MB; make it smaller, align its arrays by key in "
            "evals/datasets.json, or raise limits.score_seconds or score_megabytes in settings.yaml"
        )
