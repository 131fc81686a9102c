"""`skill-evaluator judge calibrate`: what judges are worth, from people's labels and from outputs that code broke."""

from pathlib import Path

from skill_evaluator.commands.judge_calibrate_asking import CalibrationAskingOptions, ask_for_calibration
from skill_evaluator.commands.options import option, options
from skill_evaluator.errors import EXIT_OK, JudgeError
from skill_evaluator.judges.asking.items import read_items
from skill_evaluator.judges.asking.results import StoredScore, StoredVerdict
from skill_evaluator.judges.calibration.calibrating import calibrate
from skill_evaluator.judges.calibration.files import (
    held_out_part,
    holds_scores,
    judged_by,
    of_split,
    read_pairs,
    read_said,
    read_scored,
)
from skill_evaluator.judges.calibration.judge_results import JudgeCalibration, JudgeResult
from skill_evaluator.judges.calibration.measuring import against_labels, measure
from skill_evaluator.judges.calibration.planting import PlantedPair
from skill_evaluator.judges.calibration.scored import calibrate_scores
from skill_evaluator.judges.modes.regression_results import read_regressions
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import load_rubric
from skill_evaluator.reports.judging import print_judge_calibration

EXAMPLES = (
    "skill-evaluator judge calibrate --items pairs.jsonl --judge <id> --rubric RUBRIC --broken 50 --dry-run",
    "skill-evaluator judge calibrate --items items.jsonl --verdicts verdicts.jsonl",
    "skill-evaluator judge calibrate --planted planted.jsonl --regressions RESULTS --batch RESULTS",
)
EXITS = {4: "incomplete (it prints the command that goes on)"}


@options
class JudgeCalibrateOptions(CalibrationAskingOptions):
    """The options of `judge calibrate` beside those with which it asks."""

    verdicts: Path | None = option(
        "JSON Lines: id, judge, and order and winner, or criterion and score.", metavar="FILE"
    )
    planted: Path | None = option("JSON Lines: pairs with what code broke, and controls.", metavar="FILE")
    regressions: Path | None = option("What `judge regression` said of the planted pairs.", metavar="FILE")
    batch: Path | None = option("What it said of a batch, whose rates are to be corrected.", metavar="FILE")
    labels: Path | None = option("JSON Lines of people's labels on pairs of the batch.", metavar="FILE")


def judge_calibrate(options: JudgeCalibrateOptions) -> int:
    """Say what judges are worth: from verdicts on pairs that people labelled, and on outputs that code broke.

    With --judge it asks; without, it measures what was judged before and makes no call. A judge is trusted where the
    whole 95 % interval of its κ with people is at the bar or above.
    """
    if options.judges:
        _refuse_stored(options)
        return ask_for_calibration(options)
    if options.probes:
        raise JudgeError("--probe asks: name a judge with --judge ID")
    against_people, held_out = _against_people(options)
    calibration = JudgeCalibration(bar=options.bar, judges=[*against_people, *_planted(options)], held_out=held_out)
    if not calibration.judges:
        raise JudgeError(
            "say what is measured: --items FILE, with --judge ID or --verdicts FILE; or --planted and --regressions"
        )
    print_judge_calibration(calibration, options.format)
    return EXIT_OK


def _refuse_stored(options: JudgeCalibrateOptions) -> None:
    for name in ("verdicts", "planted", "regressions", "batch", "labels"):
        if getattr(options, name) is not None:
            raise JudgeError(f"--{name} is for what was judged before, and does not go with --judge")


def _against_people(options: JudgeCalibrateOptions) -> tuple[list[JudgeResult], list[JudgeResult]]:
    """Measure all items, and the held-out ones among them."""
    if options.items is None and options.verdicts is None:
        return [], []
    if options.items is None or options.verdicts is None:
        raise JudgeError("--items FILE and --verdicts FILE go together; or --judge ID asks about the items")
    if holds_scores(options.items):
        scored = read_scored(options.items)
        scores = read_said(options.verdicts, StoredScore, scored, options.items)
        outputs = of_split(scored, options.split)
        rubric = (
            ()
            if options.rubric is None
            else load_rubric(options.rubric, follow_links=load_settings(options.config).limits.follow_links).criteria
        )
        scales = {criterion.id: criterion.highest for criterion in rubric}
        return (
            calibrate_scores(outputs, scores, options.bar, scales),
            calibrate_scores(held_out_part(outputs), scores, options.bar, scales),
        )
    labelled = read_pairs(options.items)
    verdicts = read_said(options.verdicts, StoredVerdict, labelled, options.items)
    pairs = of_split(labelled, options.split)
    return (
        calibrate(judged_by(pairs, verdicts), options.bar),
        calibrate(judged_by(held_out_part(pairs), verdicts), options.bar),
    )


def _planted(options: JudgeCalibrateOptions) -> list[JudgeResult]:
    if options.planted is None or options.regressions is None:
        if options.batch and options.labels and options.planted is options.regressions is None:
            return against_labels(read_regressions(options.batch), options.labels, options.bar)
        if any((options.planted, options.regressions, options.batch, options.labels)):
            raise JudgeError(
                "--planted FILE and --regressions FILE go together, and are needed for --batch without --labels"
            )
        return []
    if options.labels is not None and options.batch is None:
        raise JudgeError("--labels FILE is about pairs of a batch: --batch FILE")
    return measure(
        list(read_items(options.planted, PlantedPair).values()),
        read_regressions(options.regressions),
        options.bar,
        {},
        None if options.batch is None else read_regressions(options.batch),
        options.labels,
    )
