"""`skill-evaluator judge calibrate`: what judges are worth, from people's labels and from outputs that code broke.

With --judge it asks: one judging holds the labelled and the planted items, so that one budget and one `--resume` are
for all of them. Without, it measures what was judged before.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skill_evaluator.display.options import FormatOption, option, options
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric, choose_criteria, families_of
from skill_evaluator.judges.asking.items import read_items
from skill_evaluator.judges.asking.judging import Asking, write_papers
from skill_evaluator.judges.asking.options import JudgingRequest
from skill_evaluator.judges.asking.results import head_of
from skill_evaluator.judges.asking.story import AskedJudging, Bench
from skill_evaluator.judges.calibration.against_people import against_people
from skill_evaluator.judges.calibration.asking import (
    CalibrationQuestions,
    JudgeAnswers,
    calibration_questions,
    measured_answers,
)
from skill_evaluator.judges.calibration.detection import against_labels, measure
from skill_evaluator.judges.calibration.labels import Labels, Split, read_labels, read_verdicts
from skill_evaluator.judges.calibration.planting import GoodOutput, PlantedPair, plant
from skill_evaluator.judges.calibration.probes import PROBE_NAMES, load_probe
from skill_evaluator.judges.calibration.results import JudgeCalibration, JudgeResult
from skill_evaluator.judges.modes.regression_results import read_regressions
from skill_evaluator.judges.statistics.agreement import BAR
from skill_evaluator.judges.stories.judging import Judged, again_of
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import MethodName, Rubric, load_rubric
from skill_evaluator.reports.judge_calibration import calibration_page, print_judge_calibration
from skill_evaluator.reports.judge_results import print_judged
from skill_evaluator.reports.live import watch
from skill_evaluator.text import canonical_json, counted, digest

EXAMPLES = (
    "skill-evaluator judge calibrate --labels pairs.jsonl --judge <id> --rubric RUBRIC --broken 50 --dry-run",
    "skill-evaluator judge calibrate --labels items.jsonl --verdicts verdicts.jsonl",
    "skill-evaluator judge calibrate --planted planted.jsonl --regressions RESULTS --batch RESULTS",
)
EXITS = {4: "incomplete (it prints the command that goes on)"}
_CONTROLS_PER_BROKEN = 2  # specificity needs the larger sample: most pairs of a batch hold no regression


@options
class JudgeCalibrateOptions(JudgingRequest, FormatOption):
    """The options of `judge calibrate`."""

    labels: Path | None = option("JSON Lines of people's labels: pairs, scores, regressions.", metavar="FILE")
    rubric: Path | None = option("With --judge: the rubric by which pairs are compared.", metavar="FILE")
    broken: int = option("With --judge: plant N broken outputs, and controls.", 0, metavar="N", min=0)
    probes: tuple[str, ...] = option(
        f"With --judge: ask again with a change; {', '.join(PROBE_NAMES)}; repeatable.", (), "--probe", metavar="NAME"
    )
    split: Split | None = option("Only the items of this split; default: all, whatever their split.")
    bar: float = option("The κ with people, or informedness, of a trusted judge.", BAR, min=0.0, max=0.99)
    verdicts: Path | None = option(
        "JSON Lines: id, judge, and order and winner, or criterion and score.", metavar="FILE"
    )
    planted: Path | None = option("JSON Lines: pairs with what code broke, and controls.", metavar="FILE")
    regressions: Path | None = option("What `judge regression` said of the planted pairs.", metavar="FILE")
    batch: Path | None = option("What it said of a batch, whose rates are to be corrected.", metavar="FILE")


def judge_calibrate(options: JudgeCalibrateOptions) -> int:
    """Say what judges are worth: from verdicts on pairs that people labelled, and on outputs that code broke.

    With --judge it asks; without, it measures what was judged before and makes no call. A judge is trusted where the
    whole 95 % interval of its κ with people is at the bar or above.
    """
    if options.judges:
        return _ask(options)
    if options.probes:
        raise JudgeError("--probe asks: name a judge with --judge ID")
    labels = None if options.labels is None else read_labels(options.labels)
    calibration = JudgeCalibration(bar=options.bar, judges=_measured(options, labels))
    if options.verdicts is not None:
        if labels is None:
            raise JudgeError("--verdicts FILE needs the labels that it is held against: --labels FILE")
        said = read_verdicts(options.verdicts, labels)
        scales = _scales(options)
        labels = labels.of_split(options.split)
        people = against_people(labels, *said, options.bar, scales)
        held_out = against_people(labels.held_out, *said, options.bar, scales)
        calibration = JudgeCalibration(bar=options.bar, judges=[*people, *calibration.judges], held_out=held_out)
    if not calibration.judges:
        raise JudgeError(
            "say what is measured: --labels FILE, with --judge ID, --verdicts FILE or --batch FILE; or --planted and "
            "--regressions"
        )
    print_judge_calibration(calibration, options.format)
    return EXIT_OK


def _rubric(options: JudgeCalibrateOptions) -> Rubric | None:
    if options.rubric is None:
        return None
    return load_rubric(options.rubric, follow_links=load_settings(options.config).limits.follow_links)


def _scales(options: JudgeCalibrateOptions) -> dict[str, int]:
    rubric = _rubric(options)
    return {} if rubric is None else {criterion.id: criterion.highest for criterion in rubric.criteria}


def _measured(options: JudgeCalibrateOptions, labels: Labels | None) -> list[JudgeResult]:
    """Measure what was said of planted pairs and of a batch."""
    if (options.planted is None) != (options.regressions is None):
        raise JudgeError("--planted FILE and --regressions FILE go together")
    if options.planted is not None and options.regressions is not None:
        planted = list(read_items(options.planted, PlantedPair).values())
        batch = None if options.batch is None else read_regressions(options.batch)
        return measure(planted, read_regressions(options.regressions), options.bar, {}, batch, labels)
    if options.batch is None:
        return []
    if labels is None or not labels.regressions:
        raise JudgeError("--batch FILE needs --planted and --regressions, or --labels FILE with labels of regressions")
    return against_labels(read_regressions(options.batch), labels, options.bar)


def _ask(options: JudgeCalibrateOptions) -> int:
    """Ask, measure and print; return the exit code, 4 where the judging is incomplete."""
    for name in ("verdicts", "planted", "regressions", "batch"):
        if getattr(options, name) is not None:
            raise JudgeError(f"--{name} is for what was judged before, and does not go with --judge")
    bench = Bench.of(options, watch)
    asked = _questions(options)
    dimensions = {one.name: one.question for pair in asked.plain.pairs for one in pair.dimensions}
    paper = {"rubric": None if asked.rubric is None else asked.rubric.paper, "dimensions": dimensions}
    asking = Asking(
        mode="calibrate",
        rubric=digest(canonical_json(paper)),
        criteria=[*(one.id for one in asked.plain.criteria), *dimensions],
        prompts=asked.prompts,
        items={**asked.plain.items, **asked.changed.items},
        questions=asked.questions,
        notes=_notes(asked),
    )
    if options.dry_run:
        return print_judged(bench.size(asking), options.format)
    return _measure(asked, bench.ask(asking), asking, paper, options)


def _notes(asked: CalibrationQuestions) -> list[str]:
    """Return how the calls come about, in sentences."""
    planted = asked.planted
    controls = sum(pair.is_control for pair in planted.pairs)
    how = (
        f"{counted(len(asked.plain.matches), 'labelled pair')}, "
        f"{counted(len(planted.pairs) - controls, 'broken output')}, {counted(controls, 'control')}: each is asked in "
        "both orders"
    )
    if asked.plain.scores:
        how = f"{counted(len(asked.labels.scored), 'scored output')}: each is asked about by itself"
    return [
        how,
        *(
            f"{name}: no place in {counted(sum(reasons.values()), 'output')}"
            for name, reasons in planted.without_place.items()
        ),
        *asked.notes,
    ]


def _questions(options: JudgeCalibrateOptions) -> CalibrationQuestions:
    if options.labels is None:
        raise JudgeError("say which items people labelled: --labels FILE")
    if options.rubric is None and not options.broken:
        raise JudgeError("say what is asked: --rubric FILE about the labelled items, --broken N about planted ones")
    for name in options.probes:
        load_probe(name)
    labels = read_labels(options.labels).of_split(options.split)
    rubric = _rubric(options)
    if _is_about_scores(labels, rubric):
        labels = replace(labels, pairs={})
        if options.broken or rubric is None:
            raise JudgeError(
                f"{options.labels} has scores of people: they go with --rubric FILE, and --broken N with pairs"
            )
        _refuse_bare([(name, item.output) for name, item in labels.scored.items()], options.labels)
    else:
        labels = replace(labels, scored={})
        outputs = [(name, text) for name, pair in labels.pairs.items() for text in (pair.output_1, pair.output_2)]
        _refuse_bare(outputs, options.labels)
    good = [
        GoodOutput(id=pair.id, stratum=pair.stratum, input=pair.input, output=pair.preferred)
        for pair in labels.pairs.values()
        if pair.input and pair.preferred
    ]
    planted = plant(good, options.broken, _CONTROLS_PER_BROKEN * options.broken, options.seed)
    if options.broken and not planted.pairs:
        raise JudgeError(f"no output of {options.labels} can be broken: give its items the input that they answer")
    chosen = None if rubric is None else _criteria(rubric, labels, options)
    return calibration_questions(chosen, labels, planted, options.probes, options.seed)


def _is_about_scores(labels: Labels, rubric: Rubric | None) -> bool:
    """Return whether outputs are scored: where people did nothing else, or the rubric compares nothing."""
    if not labels.scored or not labels.pairs:
        return bool(labels.scored)
    methods = {criterion.primary_method for criterion in rubric.criteria} if rubric is not None else set()
    return bool(methods) and "pairwise_comparison" not in methods


def _refuse_bare(outputs: list[tuple[str, str | None]], file: Path) -> None:
    for name, output in outputs:
        if not output:
            raise JudgeError(f"item '{name}' of {file} has no texts, and a judge must read its outputs")


def _criteria(rubric: Rubric, labels: Labels, options: JudgeCalibrateOptions) -> NamedRubric:
    """Return the criteria that judges are asked by: of scored outputs those by which people scored."""
    by_people = dict.fromkeys(name for item in labels.scored.values() for name in item.scores)
    wanted = [criterion.id for criterion in rubric.criteria if criterion.id in by_people]
    if labels.scored and not wanted:
        names = ", ".join(by_people)
        raise JudgeError(f"people scored {options.labels} by {names}, and {options.rubric} has no such criterion")
    methods: tuple[MethodName, ...] = ("pairwise_comparison",)
    if labels.scored:
        methods = ("direct_scoring", "reference_based")
    return choose_criteria(str(options.rubric), rubric, wanted, methods)


def _measure(
    questions: CalibrationQuestions,
    asked: AskedJudging,
    asking: Asking,
    paper: Mapping[str, Any],
    options: JudgeCalibrateOptions,
) -> int:
    head = head_of(asked.judging, "dimensions" if questions.rubric is None else questions.rubric.file)
    judges = [
        JudgeAnswers(
            record=asked.record_of(part),
            answers=part.answers,
            declared_strong=part.run.model.judge == "strong",
            replicates=head.replicates,
        )
        for part in asked.runs
    ]
    measured = measured_answers(questions, judges, head, options.bar, families_of(asked.session.configuration.models))
    page = calibration_page(measured.calibration).markdown()
    write_papers(asked.folder, paper, asking, measured.calibration, page)
    measured.write(asked.folder)
    print_judge_calibration(measured.calibration, options.format)
    again = [] if asked.complete else again_of(options, asked)
    code = EXIT_OK if asked.complete else EXIT_INCOMPLETE
    return print_judged(
        Judged(results=None, folder=asked.folder, code=code, stopped=asked.stopped, again=again), options.format
    )
