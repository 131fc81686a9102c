"""The workflow of `judge score`, `pairwise` and `regression`: the size of a judge run, or its results."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skill_evaluator.display.options import typed
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED
from skill_evaluator.judges.asking.judging import write_papers
from skill_evaluator.judges.asking.story import AskedJudging, Bench, JudgingSize
from skill_evaluator.judges.modes.pairwise import PairwiseResults, write_verdicts
from skill_evaluator.judges.modes.scoring import ScoreResults, write_scores
from skill_evaluator.judges.review.items import for_people
from skill_evaluator.judges.review.queue import queue_in
from skill_evaluator.judges.stories.batches import JudgedResults, JudgeT, JudgeTask, OutcomeT, make_task
from skill_evaluator.judges.stories.calling import CalledJudges, call_cascade, call_panel, cascade_judges
from skill_evaluator.judges.stories.requests import JudgedRequest, JudgingRequest
from skill_evaluator.runner.session import Watch
from skill_evaluator.text import counted

_NOT_AGAIN = ("resume", "dry_run", "batch", "format")  # options that the command to resume leaves out
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


def judge(request: JudgedRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgingSize:
    """Read the items, make the questions, call the judges, decide as a panel or a cascade, save, queue for review.

    Return the size of a dry run.
    """
    judges = cascade_judges(request)
    bench = Bench.of(request, watch, judges)
    task = make_task(request, bench)
    if request.dry_run:
        notes = [] if judges is None else ["at most: {1} is called only about what {0} leaves open".format(*judges)]
        return bench.size(replace(task.asking, notes=[*task.asking.notes, *notes]))
    called = call_panel(task, bench) if judges is None else call_cascade(task, bench)
    first, last, results = called.first, called.last, None
    if called.judges:
        results = task.results(first.judging, called.judges, called.cascade)
        _save(task, first.folder, results, drawn(results))
    if request.review and not last.complete:
        print("nothing is queued for review until the judge run is complete", file=sys.stderr)
    elif last.complete and (request.review or called.cascade is not None):
        _queue(task, called, request)
    code = EXIT_OK if results is None else results.exit_code
    if not last.complete and code != EXIT_REGRESSED:
        code = EXIT_INCOMPLETE
    again = [] if last.complete else again_of(request, first, last.stopped)
    return Judged(results=results, folder=first.folder, code=code, stopped=last.stopped, again=again)


def _save(task: JudgeTask[JudgeT, OutcomeT], folder: Path, results: JudgedResults, bias: str) -> None:
    write_papers(folder, task.asking, results, bias)
    if isinstance(results, ScoreResults):
        write_scores(folder, results.judges)
    elif isinstance(results, PairwiseResults):
        write_verdicts(folder, results)


def _queue(task: JudgeTask[JudgeT, OutcomeT], called: CalledJudges[JudgeT, OutcomeT], request: JudgedRequest) -> None:
    """Queue the items in doubt and, with --review, a sample of the others."""
    judging = called.first.judging
    doubts = [(task.review_item(key, judging.id), task.reasons(called.outcomes.get(key, []))) for key in task.questions]
    people = for_people(doubts, request.review_sample if request.review else 0, judging.seed)
    if people or request.review:
        queue = queue_in(request.config)
        print(f"{counted(len(queue.add(people)), 'item')} queued for review in {queue.folder}", file=sys.stderr)


def again_of(request: JudgingRequest, asked: AskedJudging, stopped: Sequence[str]) -> list[str]:
    """Return the command to resume a judge run; if the cost limit stopped it, with a limit twice as high."""
    if request.max_cost is not None and any("stopped: max_cost" in sentence for sentence in stopped):
        request = replace(request, max_cost=2 * request.max_cost)
    words = typed(request, *_NOT_AGAIN)
    return ["skill-evaluator", "judge", asked.judging.mode, *words, "--resume", str(asked.folder)]
