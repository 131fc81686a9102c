"""The workflow of `judge score`, `pairwise` and `regression`: the size of a judge run, or its results.

A panel of judges is called about everything. In a cascade a cheap judge is called about everything, a strong judge
about what the cheap one leaves open, and people about the rest; its second stage is a judge run in the folder of the
first, so that each resumes by itself.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skill_evaluator.display.options import typed
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.judges.asking.judging import Asking, write_papers
from skill_evaluator.judges.asking.options import BatchJudgingRequest, JudgingRequest
from skill_evaluator.judges.asking.story import AskedJudging, Bench, JudgeRun, JudgingSize
from skill_evaluator.judges.panel.results import PEOPLE, CascadeDecision, CascadeResult, CascadeStage
from skill_evaluator.judges.review.items import Doubts, ReviewReason, for_people
from skill_evaluator.judges.review.queue import queue_in
from skill_evaluator.judges.stories.batches import (
    JudgeT,
    JudgeTask,
    Key,
    OutcomeT,
    ResultsT,
    pair_task,
    read_regression,
    score_task,
)
from skill_evaluator.judges.stories.requests import JudgedRequest, PairwiseRequest, ScoreRequest
from skill_evaluator.library.config import load_settings
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted

STRONG = "strong"  # the folder of the second stage
_SETTLED: frozenset[ReviewReason] = frozenset({"block", "regression", "stakes"})  # reasons that leave no doubt
_NOT_AGAIN = ("resume", "dry_run", "batch", "format")  # options that the command to resume leaves out
Drawn = Callable[[Any], str]
"""Draws bias_analysis_report.md from the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The results of a judge run and its folder. `stopped`: why calls were not made; `again`: the command to resume."""

    results: Any
    folder: Path
    code: int
    remarks: Sequence[str] = ()
    stopped: Sequence[str] = ()
    again: Sequence[str] = ()


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the two judges of a cascade, from the option or the settings. Return None if --judge names others."""
    if request.cascade is None:
        return None if request.judges else load_settings(request.config).policy.judge.cascade
    names = tuple(name.strip() for name in request.cascade.split(","))
    if request.judges or len(set(names)) != 2 or not all(names):
        raise JudgeError("--cascade names two judges, the cheap one first, and replaces --judge")
    return names


def judge(request: JudgedRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgingSize:
    """Read the outputs, call the judges and return the results; for a dry run return the size."""
    pair = cascade_judges(request)
    bench = Bench.of(request, watch, pair)
    run = judge_batch if pair is None else judge_cascade
    if isinstance(request, ScoreRequest):
        return run(score_task(request, bench), bench, drawn)
    if isinstance(request, PairwiseRequest):
        return run(pair_task(request, bench), bench, drawn)
    return run(read_regression(request, bench), bench, drawn)


def judge_batch(task: JudgeTask[JudgeT, OutcomeT, ResultsT], bench: Bench, drawn: Drawn) -> Judged | JudgingSize:
    """Call one judge or several about everything; write the results and queue what a person is to look at."""
    if bench.request.dry_run:
        return bench.size(task.asking)
    asked = bench.ask(task.asking)
    judges = [_reduce(task, asked, run, task.questions) for run in asked.runs]
    results = task.results(asked.judging, judges, None)
    _write(task, asked, results, drawn)
    if bench.request.review and not asked.complete:
        print("nothing is queued for review until the judge run is complete", file=sys.stderr)
    elif bench.request.review:
        outcomes = by_key(outcome for judge in judges for outcome in task.outcomes(judge).items())
        items = task.review_items(asked.judging.id)
        _queue([(item, task.reasons(outcomes.get(key, []))) for key, item in items.items()], asked, bench)
    return _judged(asked, asked, bench, results)


def judge_cascade(task: JudgeTask[JudgeT, OutcomeT, ResultsT], bench: Bench, drawn: Drawn) -> Judged | JudgingSize:
    """Call the cheap judge about everything and the strong one about what is open; queue the rest for people."""
    cheap, strong = bench.models
    if bench.request.dry_run:
        note = f"at most: {strong.id} is called only about what {cheap.id} leaves open"
        return bench.size(replace(task.asking, notes=[*task.asking.notes, note]))
    first = last = replace(bench, models=[cheap]).ask(task.asking)
    if not first.complete:
        print(f"{strong.id} is called once {cheap.id} has judged everything", file=sys.stderr)
        return _judged(first, first, bench, None)
    judges = [_reduce(task, first, first.runs[0], task.questions)]
    outcomes = dict(task.outcomes(judges[0]))
    further = [key for key, outcome in outcomes.items() if task.questions[key] and not _settled(task, outcome)]
    if further:
        request = bench.request
        if isinstance(request, BatchJudgingRequest):  # --resume need not repeat --batch
            request = replace(request, batch=first.judging.transport == "batch")
        stage = replace(bench, models=[strong], request=request)
        last = stage.ask(_part(task, further), inside=first.folder / STRONG, budget=first.session.budget)
        judges += [_reduce(task, last, run, further) for run in last.runs]
        outcomes |= {key: outcome for judge in judges[1:] for key, outcome in task.outcomes(judge).items()}
    decisions = {key: _decide(task, key, outcomes[key], strong.id if key in further else cheap.id) for key in outcomes}
    results = task.results(first.judging, judges, _cascade(cheap.id, strong.id, decisions, further))
    _write(task, first, results, drawn)
    if last.complete:
        items = task.review_items(first.judging.id)
        _queue([(items[key], task.reasons([outcome])) for key, outcome in outcomes.items()], first, bench)
    return _judged(first, last, bench, results)


def _reduce(
    task: JudgeTask[JudgeT, OutcomeT, ResultsT], asked: AskedJudging, run: JudgeRun, keys: Collection[Key]
) -> JudgeT:
    return task.reduce(keys, run.answers, asked.record_of(run))


def _settled(task: JudgeTask[JudgeT, OutcomeT, ResultsT], outcome: OutcomeT) -> bool:
    """Return whether a judge leaves no doubt: sure enough, the same in both orders, and with an answer that counts."""
    return set(task.reasons([outcome])) <= _SETTLED


def _part(task: JudgeTask[JudgeT, OutcomeT, ResultsT], keys: Collection[Key]) -> Asking:
    """Return the questions about some keys."""
    items = {key[0] for key in keys}
    return replace(
        task.asking,
        items={name: digest for name, digest in task.asking.items.items() if name in items},
        questions=[question for key in keys for question in task.questions[key]],
        warnings=(),
    )


def _decide(task: JudgeTask[JudgeT, OutcomeT, ResultsT], key: Key, outcome: OutcomeT, judge_id: str) -> CascadeDecision:
    settled = _settled(task, outcome)
    return CascadeDecision(
        item=key[0],
        names=key[1:],
        by=judge_id if settled else PEOPLE,
        verdict=task.verdict(outcome, settled),
        reasons=list(task.reasons([outcome])),
    )


def _cascade(
    cheap: str, strong: str, decisions: Mapping[Key, CascadeDecision], further: Collection[Key]
) -> CascadeResult:
    decided = [decision.by for decision in decisions.values()]
    return CascadeResult(
        stages=(
            CascadeStage(judge=cheap, asked=len(decisions), decided=decided.count(cheap)),
            CascadeStage(judge=strong, asked=len(further), decided=decided.count(strong)),
        ),
        people=decided.count(PEOPLE),
        decisions=list(decisions.values()),
    )


def _write(task: JudgeTask[JudgeT, OutcomeT, ResultsT], asked: AskedJudging, results: ResultsT, drawn: Drawn) -> None:
    """Write the files of a judge run beside its journals."""
    write_papers(asked.folder, task.asking, results, drawn(results))
    task.write(asked.folder, results)


def _queue(doubts: Doubts, asked: AskedJudging, bench: Bench) -> None:
    """Queue what is in doubt and, with --review, a sample of the rest."""
    request = bench.request
    people = for_people(doubts, request.review_sample if request.review else 0, asked.judging.seed)
    if people or request.review:
        queue = queue_in(request.config)
        print(f"{counted(len(queue.add(people)), 'item')} queued for review in {queue.folder}", file=sys.stderr)


def _judged(first: AskedJudging, last: AskedJudging, bench: Bench, results: ResultsT | None) -> Judged:
    """Return the results, with the command to resume if the last stage is not complete."""
    code = EXIT_OK if results is None else results.exit_code
    if not last.complete and code != EXIT_REGRESSED:
        code = EXIT_INCOMPLETE
    again = [] if last.complete else again_of(bench.request, first, last.stopped)
    return Judged(results=results, folder=first.folder, code=code, stopped=last.stopped, again=again)


def again_of(request: JudgingRequest, asked: AskedJudging, stopped: Sequence[str]) -> list[str]:
    """Return the command to resume a judge run; if the cost limit stopped it, with a limit twice as high."""
    if request.max_cost is not None and any("stopped: max_cost" in sentence for sentence in stopped):
        request = replace(request, max_cost=2 * request.max_cost)
    words = typed(request, *_NOT_AGAIN)
    return ["skill-evaluator", "judge", asked.judging.mode, *words, "--resume", str(asked.folder)]
