"""The story of a judging: its size, or what judges say of a batch, alone, as a panel, or as a cascade.

In a cascade a cheap judge is asked about everything, a strong one about what that leaves open, and people about the
rest. Its two stages are two judgings, the second one in the folder of the first, so that each resumes by itself.
"""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skill_evaluator.display.options import typed
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.judges.asking.judging import JUDGING, Asking, read_judging, write_papers
from skill_evaluator.judges.asking.options import JudgingRequest
from skill_evaluator.judges.asking.story import AskedJudging, Bench, JudgeRun, JudgingSize
from skill_evaluator.judges.calibration.labels import read_labels
from skill_evaluator.judges.panel.cascade import (
    JudgedBatch,
    Key,
    Standing,
    audited,
    cascade_labels,
    decisions_of,
    fewest_labels,
    labelled_stage,
    own_stage,
    shares_of,
)
from skill_evaluator.judges.people.items import Doubts, for_people
from skill_evaluator.judges.people.queue import queue_in
from skill_evaluator.judges.stories.batches import read_comparison, read_regression, read_scoring
from skill_evaluator.judges.stories.requests import JudgedRequest, PairwiseRequest, RegressionRequest, ScoreRequest
from skill_evaluator.library.config import load_settings
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import by_key
from skill_evaluator.text import counted

STRONG = "strong"  # the folder of the second stage
_BOTH = 2
_NOT_AGAIN = ("resume", "dry_run", "batch", "format")  # of what was typed
_PLANNED = ("judges", "seed", "replicates")  # what a plan says
Drawn = Callable[[Any], str]
"""Results of judges → the page that says what may be wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of a judging, and where the rest lies. `stopped`: why calls were left unmade; `again`: how to go on."""

    results: Any
    folder: Path
    code: int
    remarks: Sequence[str] = ()
    stopped: Sequence[str] = ()
    again: Sequence[str] = ()


def cascade_judges(request: JudgedRequest) -> tuple[str, ...] | None:
    """Return the two judges of a cascade, from the option or the settings; None where --judge names others."""
    if request.cascade is not None:
        names = tuple(name.strip() for name in request.cascade.split(","))
        if request.judges or len(set(names)) != _BOTH or not all(names):
            raise JudgeError("--cascade names two judges, the cheap one first, and replaces --judge")
        return names
    chosen = None if request.judges else load_settings(request.config).policy.judge.cascade.judges
    if request.labels is not None and chosen is None:
        raise JudgeError("--labels chooses the threshold of a cascade: name it with --cascade CHEAP,STRONG")
    return chosen


def judge(request: JudgedRequest, watch: Watch | None, drawn: Drawn) -> Judged | JudgingSize:
    """Read what is judged, ask the judges and say what comes of it; of a dry run, what that would take."""
    pair = cascade_judges(request)
    bench = Bench.of(request, watch, pair)
    batch: JudgedBatch
    match request:
        case ScoreRequest():
            batch = read_scoring(request, bench, cascade=pair is not None)
        case PairwiseRequest():
            batch = read_comparison(request, bench, cascade=pair is not None)
        case RegressionRequest():
            batch = read_regression(request, bench, cascade=pair is not None)
    return judge_batch(batch, bench, drawn) if pair is None else judge_cascade(batch, bench, request, drawn)


def judge_batch(batch: JudgedBatch, bench: Bench, drawn: Drawn) -> Judged | JudgingSize:
    """Ask one judge or several about everything; write what they say and queue what a person is to look at."""
    if bench.request.dry_run:
        return bench.size(batch.asking)
    asked = bench.ask(batch.asking)
    judges = [_said(part, asked, batch, batch.questions.keys()) for part in asked.runs]
    results = batch.results(asked.judging, judges)
    _write(batch, asked, results, drawn)
    if bench.request.review and not asked.complete:
        print("nothing is queued for people until the judging is complete", file=sys.stderr)
    elif bench.request.review:
        _queue(_doubts(batch, asked, judges), bench.request.review_sample, asked, bench)
    return _judged(asked, asked, bench, results)


def judge_cascade(batch: JudgedBatch, bench: Bench, request: JudgedRequest, drawn: Drawn) -> Judged | JudgingSize:
    """Ask the cheap judge about everything and the strong one about the rest; queue what is left open for people."""
    cheap_model, strong_model = bench.models
    policy = bench.configuration.settings.policy.judge.cascade
    given = None if request.labels is None else read_labels(request.labels)
    labels = cascade_labels(batch, given, queue_in(request.config))
    if request.dry_run:
        note = f"at most: {strong_model.id} is asked only what {cheap_model.id} leaves open, and the audited share"
        return bench.size(replace(batch.asking, notes=[*batch.asking.notes, note]))
    first = replace(bench, models=[cheap_model]).ask(batch.asking)
    if not first.complete:
        print(f"{strong_model.id} is asked once {cheap_model.id} has answered", file=sys.stderr)
        return _judged(first, first, bench)

    counting = labels.counting(fewest_labels(policy))
    judges = [_said(first.runs[0], first, batch, batch.questions.keys())]
    standings = _standings(batch, judges[0])
    if counting is None:
        cheap = own_stage(cheap_model.id, standings)
    else:
        cheap = labelled_stage(cheap_model.id, standings, counting, batch.agree, policy)
    drawn_by_chance = audited(cheap.settled, policy.audit, first.judging.seed)
    passed_on = standings.keys() - set(cheap.settled)
    folder = first.folder / STRONG
    further = _further(batch, passed_on | drawn_by_chance, folder)
    last, seen = first, dict[Key, Standing]()
    if further:
        alike = replace(request, batch=first.judging.transport == "batch")  # --resume need not say it again
        stage = replace(bench, models=[strong_model], request=alike)
        last = stage.ask(_part(batch, further), inside=folder, budget=first.session.budget)
        judges.append(_said(last.runs[0], last, batch, further))
        seen = _standings(batch, judges[1])
    strong = own_stage(strong_model.id, {key: one for key, one in seen.items() if key in passed_on})
    decisions = decisions_of(cheap, strong)
    shares = shares_of(
        (cheap, strong),
        decisions,
        {key: one for key, one in seen.items() if key in drawn_by_chance},
        batch.agree,
        policy,
        reviewed=len(labels.reviewed),
        guaranteed=counting is not None,
    )
    results = batch.cascaded(first.judging, judges, shares, decisions)
    _write(batch, first, results, drawn)
    if last.complete:
        items, labelled = batch.review_items(first.judging.id), {*(labels.given or ()), *labels.reviewed}
        doubts = [(items[key], () if key in labelled else one.reasons) for key, one in decisions.items()]
        _queue(doubts, request.review_sample if request.review else 0, first, bench)
    return _judged(first, last, bench, results, batch.cascade_remarks)


def _said(part: JudgeRun, asked: AskedJudging, batch: JudgedBatch, keys: Collection[Key]) -> Any:
    """Return what one judge says of these, as the mode's results have it."""
    return batch.reduce(keys, part.answers, asked.judging.replicates, asked.record_of(part))


def _standings(batch: JudgedBatch, judge: Any) -> dict[Key, Standing]:
    return {key: batch.standing(said) for key, said in batch.outcomes(judge).items()}


def _further(batch: JudgedBatch, wanted: set[Key], folder: Path) -> list[Key]:
    """Return what the strong judge is asked: what it was asked when it began, if it did."""
    if (folder / JUDGING).exists():
        begun = read_judging(folder).questions
        return [key for key, questions in batch.questions.items() if questions[0].case_id in begun]
    return [key for key in batch.questions if key in wanted]


def _part(batch: JudgedBatch, keys: Collection[Key]) -> Asking:
    items = {key[0] for key in keys}
    return replace(
        batch.asking,
        items={name: digest for name, digest in batch.asking.items.items() if name in items},
        questions=[question for key in keys for question in batch.questions[key]],
        warnings=(),
    )


def _write(batch: JudgedBatch, asked: AskedJudging, results: Any, drawn: Drawn) -> None:
    """Write what a judging leaves beside its journals."""
    write_papers(asked.folder, batch.asking, results, drawn(results))
    batch.write(asked.folder, results)


def _doubts(batch: JudgedBatch, asked: AskedJudging, judges: Sequence[Any]) -> Doubts:
    said = by_key(outcome for judge in judges for outcome in batch.outcomes(judge).items())
    return [(item, batch.reasons(said.get(key, []))) for key, item in batch.review_items(asked.judging.id).items()]


def _queue(doubts: Doubts, sample: int, asked: AskedJudging, bench: Bench) -> None:
    """Queue what is in doubt, and a sample of all."""
    people = for_people(doubts, sample, asked.judging.seed)
    if people or bench.request.review:
        queue = queue_in(bench.request.config)
        print(f"{counted(len(queue.add(people)), 'item')} queued for people in {queue.folder}", file=sys.stderr)


def _judged(
    first: AskedJudging, last: AskedJudging, bench: Bench, results: Any = None, remarks: Sequence[str] = ()
) -> Judged:
    """Return what came of it, with how to go on where the stage that was asked last is not complete."""
    code = getattr(results, "exit_code", EXIT_OK)
    criteria = [one for judge in getattr(results, "judges", ()) for one in getattr(judge, "criteria", ())]
    mute = bool(criteria) and not any(one.counts for one in criteria)  # no answer counts
    if (mute or not last.complete) and code != EXIT_REGRESSED:
        code = EXIT_INCOMPLETE
    again = [] if last.complete else again_of(bench.request, first, last.stopped)
    return Judged(results=results, folder=first.folder, code=code, remarks=remarks, stopped=last.stopped, again=again)


def again_of(request: JudgingRequest, asked: AskedJudging, stopped: Sequence[str]) -> list[str]:
    """Return the command that goes on with a judging: where the cap on the cost stopped it, under one twice as high."""
    if request.max_cost is not None and any("stopped: max_cost" in sentence for sentence in stopped):
        request = replace(request, max_cost=2 * request.max_cost)
    said = typed(request, *_NOT_AGAIN, *(_PLANNED if getattr(request, "planned", None) else ()))
    return ["skill-evaluator", "judge", asked.judging.mode, *said, "--resume", str(asked.folder)]
