"""Calling the judges of a task: a panel about everything, or a cascade.

In a cascade a cheap judge judges everything, a strong judge what the cheap one leaves open, and people the rest. Its
second stage is a judge run in the folder of the first, so that each resumes by itself.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.story import AskedJudging, Bench
from skill_evaluator.judges.panel.results import PEOPLE, CascadeDecision, CascadeResult, CascadeStage
from skill_evaluator.judges.review.items import ReviewReason
from skill_evaluator.judges.stories.batches import JudgeT, JudgeTask, Key, OutcomeT
from skill_evaluator.judges.stories.requests import BatchJudgingRequest, JudgedRequest
from skill_evaluator.library.config import load_settings
from skill_evaluator.stats import by_key

STRONG = "strong"  # the folder of the second stage
_SETTLED: frozenset[ReviewReason] = frozenset({"block", "regression", "stakes"})  # reasons that leave no doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledJudges(Generic[JudgeT, OutcomeT]):
    """The judges' parts of the results, and the outcomes that count by item or match.

    `first` and `last` are the stages of a cascade, equal for a panel.
    """

    first: AskedJudging
    last: AskedJudging
    judges: Sequence[JudgeT] = ()
    outcomes: Mapping[Key, Sequence[OutcomeT]] = field(default_factory=dict)
    cascade: CascadeResult | None = None


def call_panel(task: JudgeTask[JudgeT, OutcomeT], bench: Bench) -> CalledJudges[JudgeT, OutcomeT]:
    """Call one judge or several about everything."""
    asked = bench.ask(task.asking)
    judges = _reduce(task, asked, task.questions)
    outcomes = by_key(outcome for judge in judges for outcome in task.outcomes(judge).items())
    return CalledJudges(first=asked, last=asked, judges=judges, outcomes=outcomes)


def _reduce(task: JudgeTask[JudgeT, OutcomeT], asked: AskedJudging, keys: Collection[Key]) -> list[JudgeT]:
    return [task.reduce(keys, run.answers, asked.record_of(run)) for run in asked.runs]


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the two judges of a cascade, from the option or the settings. Return None if --judge names others."""
    if request.cascade is None:
        return None if request.judges else load_settings(request.config).policy.judge.cascade
    names = tuple(name.strip() for name in request.cascade.split(","))
    if request.judges or len(set(names)) != 2 or not all(names):
        raise JudgeError("--cascade names two judges, the cheap one first, and replaces --judge")
    return names


def call_cascade(task: JudgeTask[JudgeT, OutcomeT], bench: Bench) -> CalledJudges[JudgeT, OutcomeT]:
    """Call the cheap judge about everything, and the strong one about what the cheap one leaves open.

    There are no results before the cheap judge has judged everything.
    """
    cheap, strong = bench.models
    first = last = replace(bench, models=[cheap]).ask(task.asking)
    if not first.complete:
        print(f"{strong.id} is called once {cheap.id} has judged everything", file=sys.stderr)
        return CalledJudges(first=first, last=first)
    judges = _reduce(task, first, task.questions)
    outcomes = dict(task.outcomes(judges[0]))
    further = [key for key, outcome in outcomes.items() if task.questions[key] and not _is_settled(task, outcome)]
    if further:
        last = _call_strong(task, bench, first, further)
        judges += _reduce(task, last, further)
        outcomes.update(*(task.outcomes(judge) for judge in judges[1:]))
    decisions = [_decide(task, key, outcomes[key], strong.id if key in further else cheap.id) for key in outcomes]
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


def _is_settled(task: JudgeTask[JudgeT, OutcomeT], outcome: OutcomeT) -> bool:
    """Return whether a judge is sure enough, says the same in both orders, and gave an output that counts."""
    return set(task.reasons([outcome])) <= _SETTLED


def _call_strong(
    task: JudgeTask[JudgeT, OutcomeT], bench: Bench, first: AskedJudging, keys: Sequence[Key]
) -> AskedJudging:
    """Call the strong judge about these keys, with what the first stage left of the budget."""
    names = {key[0] for key in keys}
    asking = replace(
        task.asking,
        items={name: digest for name, digest in task.asking.items.items() if name in names},
        questions=[question for key in keys for question in task.questions[key]],
        warnings=(),
    )
    request = bench.request
    if isinstance(request, BatchJudgingRequest):  # --resume need not repeat --batch
        request = replace(request, batch=first.judging.transport == "batch")
    stage = replace(bench, models=bench.models[1:], request=request)
    return stage.ask(asking, inside=first.folder / STRONG, budget=first.session.budget)


def _decide(task: JudgeTask[JudgeT, OutcomeT], key: Key, outcome: OutcomeT, judge_id: str) -> CascadeDecision:
    settled, verdict = _is_settled(task, outcome), task.verdict(outcome)
    if not settled:  # of a regression the decision stands, but nothing ships
        verdict = "review_required" if verdict == "ship" else verdict if isinstance(verdict, str) else None
    return CascadeDecision(
        item=key[0],
        names=key[1:],
        by=judge_id if settled else PEOPLE,
        verdict=verdict,
        reasons=list(task.reasons([outcome])),
    )
