"""The cascade of `judge score`, `pairwise` and `regression`: a cheap judge for all, a strong one for the rest, people.

Two stages are two judgings, the second one in the folder of the first, so that each resumes by itself.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skill_evaluator.commands.judge_asking import AskedJudging, Asking, ask_judges, print_dry_run
from skill_evaluator.commands.judge_options import BatchAskingOptions
from skill_evaluator.errors import EXIT_REGRESSED, JudgeError
from skill_evaluator.judges.asking.judging import JUDGING, planned_questions
from skill_evaluator.judges.calibration.labels import read_labels
from skill_evaluator.judges.panel.cascade import (
    audited,
    decisions_of,
    fewest_labels,
    labelled_stage,
    own_stage,
    shares_of,
)
from skill_evaluator.judges.people.items import for_people
from skill_evaluator.judges.people.queue import queue_in
from skill_evaluator.library.config import Model, load_settings
from skill_evaluator.providers import Configuration
from skill_evaluator.text import counted

if TYPE_CHECKING:
    from skill_evaluator.judges.panel.cascade import CascadeKind, Key

STRONG = "strong"  # the folder of the second stage
_BOTH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """What both judges may be asked; `labels` is a file in which people labelled some of it.

    `show` writes and prints the results, and returns the exit code.
    """

    asking: Asking
    kind: "CascadeKind"
    labels: Path | None
    show: Callable[[AskedJudging, Any], int]
    again: Sequence[str]


def cascade_judges(
    cascade: str | None, judges: Sequence[str], labels: Path | None, config: Path
) -> tuple[str, ...] | None:
    """Return the two judges of a cascade, from the option or the settings; None where --judge names others."""
    if cascade is not None:
        names = tuple(name.strip() for name in cascade.split(","))
        if judges or len(set(names)) != _BOTH or not all(names):
            raise JudgeError("--cascade names two judges, the cheap one first, and stands instead of --judge")
        return names
    chosen = None if judges else load_settings(config).policy.judge.cascade.judges
    if labels is not None and chosen is None:
        raise JudgeError("--labels chooses the threshold of a cascade: name it with --cascade CHEAP,STRONG")
    return chosen


def run_cascade(
    cascade: Cascade, options: BatchAskingOptions, configuration: Configuration, models: Sequence[Model]
) -> int:
    """Ask the cheap judge about everything and the strong one about the rest; queue what is left open for people."""
    from skill_evaluator.judges.panel.cascade import cascade_labels

    cheap_model, strong_model = models
    kind = cascade.kind
    given = None if cascade.labels is None else read_labels(cascade.labels)
    labels = cascade_labels(kind, given, queue_in(options.config))
    if options.dry_run:
        note = f"at most: {strong_model.id} is asked only what {cheap_model.id} leaves open, and the audited share"
        asking = replace(cascade.asking, notes=[*cascade.asking.notes, note])
        return print_dry_run(asking, configuration, models, options)
    first = ask_judges(cascade.asking, configuration, [cheap_model], options, further=[strong_model])
    if not first.complete:
        print(f"{strong_model.id} is asked once {cheap_model.id} has answered", file=sys.stderr)
        return first.close(cascade.again)

    policy, seed = configuration.settings.policy.judge.cascade, first.judging.seed
    counting = labels.counting(fewest_labels(policy))
    said = [_said(first, kind, kind.questions.keys())]
    standings = kind.standings(said[0])
    if counting is None:
        cheap = own_stage(cheap_model.id, standings)
    else:
        cheap = labelled_stage(cheap_model.id, standings, counting, kind.agree, policy)
    drawn = audited(cheap.settled, policy.audit, seed)
    passed_on = standings.keys() - set(cheap.settled)
    folder = first.folder / STRONG
    further = _further(kind, passed_on | drawn, folder)
    second, seen = None, {}
    if further:
        asking = _part(cascade.asking, {key: kind.questions[key] for key in further})
        alike = replace(options, batch=first.judging.transport == "batch")  # --resume need not say it again
        second = ask_judges(asking, configuration, [strong_model], alike, folder, first.budget)
        said.append(_said(second, kind, further))
        seen = kind.standings(said[1])
    strong = own_stage(strong_model.id, {key: one for key, one in seen.items() if key in passed_on})
    decisions = decisions_of(cheap, strong)
    shares = shares_of(
        (cheap, strong),
        decisions,
        {key: one for key, one in seen.items() if key in drawn},
        kind.agree,
        policy,
        reviewed=len(labels.reviewed),
        guaranteed=counting is not None,
    )
    results = kind.results(first.judging, said, shares, decisions)
    code = cascade.show(first, results)
    if second is not None and not second.complete:
        incomplete = replace(second, folder=first.folder).close(cascade.again)
        return code if code == EXIT_REGRESSED else incomplete
    reasons = {key: one.reasons for key, one in decisions.items()}
    _leave_to_people(kind, reasons, {*(labels.given or ()), *labels.reviewed}, first, options)
    return code


def _said(asked: AskedJudging, kind: "CascadeKind", keys: "Collection[Key]") -> Any:
    (part,) = asked.runs
    return kind.reduce(keys, part.answers, asked.judging.replicates, asked.record_of(part))


def _further(kind: "CascadeKind", wanted: "set[Key]", folder: Path) -> "list[Key]":
    """Return what the strong judge is asked: what it was asked when it began, if it did."""
    if (folder / JUDGING).exists():
        begun = planned_questions(folder)
        return [key for key, questions in kind.questions.items() if questions[0].case_id in begun]
    return [key for key in kind.questions if key in wanted]


def _part(asking: Asking, questions: "Mapping[Key, Sequence[Any]]") -> Asking:
    items = {key[0] for key in questions}
    return replace(
        asking,
        items={name: digest for name, digest in asking.items.items() if name in items},
        questions=[question for asked in questions.values() for question in asked],
        warnings=(),
    )


def _leave_to_people(
    kind: "CascadeKind",
    reasons: "Mapping[Key, Sequence[Any]]",
    labelled: "Collection[Key]",
    first: AskedJudging,
    options: BatchAskingOptions,
) -> None:
    """Queue what a person is to look at, but not what people labelled; with --review a sample of all, too."""
    items = kind.review_items(first.judging.id)
    doubts = [(items[key], () if key in labelled else given) for key, given in reasons.items()]
    people = for_people(doubts, options.review_sample if options.review else 0, first.judging.seed)
    if people:
        queue = queue_in(options.config)
        print(f"{counted(len(queue.add(people)), 'item')} queued for people in {queue.folder}", file=sys.stderr)
