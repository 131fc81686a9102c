"""The workflow of `judge score`, `pairwise` and `regression`.

A panel of judges is called about everything. In a cascade a cheap judge is called about everything, a strong judge
about what the cheap one leaves open, and people judge the rest. The second stage is a judge run in the folder of the
first, so that each resumes by itself.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic

from skill_evaluator.display.options import words_of
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.judges.modes.pairwise import PairwiseResults, write_verdicts
from skill_evaluator.judges.modes.scoring import ScoreResults, write_scores
from skill_evaluator.judges.panel.results import PEOPLE, CascadeDecision, CascadeResult, CascadeStage
from skill_evaluator.judges.prompting.judging import write_papers
from skill_evaluator.judges.prompting.session import JudgeResults, JudgeRunSize, JudgeSession
from skill_evaluator.judges.review.items import ReviewReason, for_people
from skill_evaluator.judges.review.queue import queue_in
from skill_evaluator.judges.workflows.requests import BatchJudgeRequest, JudgedRequest, JudgeRequest
from skill_evaluator.judges.workflows.tasks import JudgeT, Key, ModeTask, OutcomeT, make_task
from skill_evaluator.library.config import load_settings
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted

STRONG = "strong"  # the folder of the second stage of a cascade
_SETTLED: frozenset[ReviewReason] = frozenset({"block", "regression", "stakes"})  # reasons that leave no doubt
_NOT_AGAIN = {"resume", "judge_run", "dry_run", "batch", "format"}  # options that the command to resume leaves out
Drawn = Callable[[Any], str]
"""Draws bias_analysis_report.md from the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The results of a judge run and its folder. `stopped`: why calls were not made; `again`: the command to resume."""

    results: Any
    folder: Path
    code: int
    stopped: Sequence[str] = ()
    again: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledJudges(Generic[JudgeT, OutcomeT]):
    """The judges' parts of the results, and by item the outcomes that count; `first` and `last` are the stages."""

    first: JudgeResults
    last: JudgeResults
    judges: Sequence[JudgeT] = ()
    outcomes: Mapping[Key, Sequence[OutcomeT]] = field(default_factory=dict)
    cascade: CascadeResult | None = None


def judge(request: JudgedRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgeRunSize:
    """Read the items, make the questions, call the judges, decide as a panel or a cascade, save, queue for review.

    Return the size of a dry run.
    """
    judges = cascade_judges(request)
    session = JudgeSession.of(request, watch, judges)
    mode = make_task(request, session)
    if request.dry_run:
        notes = [] if judges is None else ["at most: {1} is called only about what {0} leaves open".format(*judges)]
        return session.size(replace(mode.task, notes=[*mode.task.notes, *notes]))
    called = call_panel(mode, session) if judges is None else call_cascade(mode, session)
    first, last, results = called.first, called.last, None
    if called.judges:
        results = mode.results(first.judging, called.judges, called.cascade)
        write_papers(first.folder, mode.task, results, drawn(results))
        if isinstance(results, ScoreResults):
            write_scores(first.folder, results.judges)
        elif isinstance(results, PairwiseResults):
            write_verdicts(first.folder, results)
    if request.review and not last.complete:
        print("nothing is queued for review until the judge run is complete", file=sys.stderr)
    elif last.complete and (request.review or called.cascade is not None):
        _queue(mode, called, request)
    code = EXIT_OK if results is None else results.exit_code
    if not last.complete and code != EXIT_REGRESSED:
        code = EXIT_INCOMPLETE
    again = [] if last.complete else again_of(request, first, last.stopped)
    return Judged(results=results, folder=first.folder, code=code, stopped=last.stopped, again=again)


def _queue(mode: ModeTask[JudgeT, OutcomeT], called: CalledJudges[JudgeT, OutcomeT], request: JudgedRequest) -> None:
    """Queue the items in doubt and, with --review, a sample of the others."""
    judging = called.first.judging
    doubts = [(mode.review_item(key, judging.id), mode.reasons(called.outcomes.get(key, []))) for key in mode.questions]
    people = for_people(doubts, request.review_sample if request.review else 0, judging.seed)
    if people or request.review:
        queue = queue_in(request.config)
        print(f"{counted(len(queue.add(people)), 'item')} queued for review in {queue.folder}", file=sys.stderr)


def again_of(request: JudgeRequest, asked: JudgeResults, stopped: Sequence[str]) -> list[str]:
    """Return the command to resume a judge run; if the cost limit stopped it, with a limit twice as high."""
    if request.max_cost is not None and any("stopped: max_cost" in sentence for sentence in stopped):
        request = replace(request, max_cost=2 * request.max_cost)
    words = words_of(request, *(request.__dataclass_fields__.keys() - _NOT_AGAIN))
    return ["skill-evaluator", "judge", asked.judging.mode, *words, "--judge-run", str(asked.folder)]


def call_panel(mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession) -> CalledJudges[JudgeT, OutcomeT]:
    """Call one judge or several about everything."""
    asked = session.ask(mode.task)
    judges = _reduce(mode, asked, mode.questions)
    outcomes = by_key(outcome for judge in judges for outcome in mode.outcomes(judge).items())
    return CalledJudges(first=asked, last=asked, judges=judges, outcomes=outcomes)


def _reduce(mode: ModeTask[JudgeT, OutcomeT], asked: JudgeResults, keys: Collection[Key]) -> list[JudgeT]:
    return [mode.reduce(keys, run.answers, asked.record_of(run)) for run in asked.runs]


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the two judges of a cascade, from the option or the settings. Return None if --judge names others."""
    if request.cascade is None:
        return None if request.judges else load_settings(request.config).policy.judge.cascade
    names = tuple(name.strip() for name in request.cascade.split(","))
    if request.judges or len(set(names)) != 2 or not all(names):
        raise JudgeError("--cascade names two judges, the cheap one first, and replaces --judge")
    return names


def call_cascade(mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession) -> CalledJudges[JudgeT, OutcomeT]:
    """Call the cheap judge about everything, and the strong one about what the cheap one leaves open.

    There are no results before the cheap judge has judged everything.
    """
    cheap, strong = session.models
    first = last = replace(session, models=[cheap]).ask(mode.task)
    if not first.complete:
        print(f"{strong.id} is called once {cheap.id} has judged everything", file=sys.stderr)
        return CalledJudges(first=first, last=first)
    judges = _reduce(mode, first, mode.questions)
    outcomes = dict(mode.outcomes(judges[0]))
    further = [key for key, outcome in outcomes.items() if mode.questions[key] and not _is_settled(mode, outcome)]
    if further:
        last = _call_strong(mode, session, first, further)
        judges += _reduce(mode, last, further)
        outcomes.update(*(mode.outcomes(judge) for judge in judges[1:]))
    decisions = [_decide(mode, key, outcomes[key], strong.id if key in further else cheap.id) for key in outcomes]
    decided = [decision.by for decision in decisions]
    stages = (
        CascadeStage(judge=cheap.id, asked=len(decisions), decided=decided.count(cheap.id)),
        CascadeStage(judge=strong.id, asked=len(further), decided=decided.count(strong.id)),
    )
    return CalledJudges(
        first=first,
        last=last,
        judges=judges,
        outcomes={key: [outcome] for key, outcome in outcomes.items()},
        cascade=CascadeResult(stages=stages, people=decided.count(PEOPLE), decisions=decisions),
    )


def _is_settled(mode: ModeTask[JudgeT, OutcomeT], outcome: OutcomeT) -> bool:
    """Return whether a judge is sure enough, says the same in both orders, and gave an output that counts."""
    return set(mode.reasons([outcome])) <= _SETTLED


def _call_strong(
    mode: ModeTask[JudgeT, OutcomeT], session: JudgeSession, first: JudgeResults, keys: Sequence[Key]
) -> JudgeResults:
    """Call the strong judge about these keys, with what the first stage left of the budget."""
    names = {key[0] for key in keys}
    task = replace(
        mode.task,
        items={name: digest for name, digest in mode.task.items.items() if name in names},
        questions=[question for key in keys for question in mode.questions[key]],
        warnings=(),
    )
    request = session.request
    if isinstance(request, BatchJudgeRequest):  # --resume need not repeat --batch
        request = replace(request, batch=first.judging.transport == "batch")
    stage = replace(session, models=session.models[1:], request=request)
    return stage.ask(task, inside=first.folder / STRONG, budget=first.session.budget)


def _decide(mode: ModeTask[JudgeT, OutcomeT], key: Key, outcome: OutcomeT, judge_id: str) -> CascadeDecision:
    settled, verdict = _is_settled(mode, outcome), mode.verdict(outcome)
    reasons: list[str] = list(mode.reasons([outcome]))
    if not settled:  # of a regression the decision stands, but nothing ships
        verdict = "review_required" if verdict == "ship" else verdict if isinstance(verdict, str) else None
    by = judge_id if settled else PEOPLE
    return CascadeDecision(item=key[0], names=key[1:], by=by, verdict=verdict, reasons=reasons)
