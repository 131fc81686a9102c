"""`judge calibrate --judge ID`: asks judges about labelled pairs and about planted ones, and measures the answers.

One judging holds both kinds of questions, so that one budget and one `--resume` are for all of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skill_evaluator.commands.judge_asking import AskedJudging, Asking, ask_judges, judges_of, print_dry_run
from skill_evaluator.commands.judge_options import JudgeAskingOptions
from skill_evaluator.commands.options import option, options, words_of
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import choose_criteria, families_of
from skill_evaluator.judges.asking.judging import write_papers
from skill_evaluator.judges.asking.results import head_of
from skill_evaluator.judges.calibration.answers import JudgeAnswers, measured_answers
from skill_evaluator.judges.calibration.files import (
    LabelledPair,
    ScoredItem,
    Split,
    holds_scores,
    of_split,
    read_pairs,
    read_scored,
)
from skill_evaluator.judges.calibration.planting import GoodOutput, plant
from skill_evaluator.judges.calibration.probes import PROBE_NAMES, refuse_unknown
from skill_evaluator.judges.calibration.questions import CalibrationQuestions, calibration_questions
from skill_evaluator.judges.statistics.agreement import BAR
from skill_evaluator.library.config import load_settings
from skill_evaluator.library.rubrics import MethodName, load_rubric
from skill_evaluator.reports.judging import calibration_page, print_judge_calibration
from skill_evaluator.text import canonical_json, counted, digest

CONTROLS_PER_BROKEN = 2  # specificity needs the larger sample: most pairs of a batch hold no regression


@options
class CalibrationAskingOptions(JudgeAskingOptions):
    """The options of `judge calibrate` when it asks."""

    items: Path | None = option("JSON Lines: id, stratum, human (1, 2 or tie); texts or not.", metavar="FILE")
    rubric: Path | None = option("With --judge: the rubric by which pairs are compared.", metavar="FILE")
    broken: int = option("With --judge: plant so many broken outputs, and controls.", 0, metavar="N", min=0)
    probes: tuple[str, ...] = option(
        f"With --judge: ask again with a change; {', '.join(PROBE_NAMES)}; repeatable.", (), "--probe", metavar="NAME"
    )
    split: Split | None = option("Only the items of this split; default: all, whatever their split.")
    bar: float = option("The κ with people, or informedness, of a trusted judge.", BAR, min=0.0, max=0.99)


def ask_for_calibration(options: CalibrationAskingOptions) -> int:
    """Ask, measure and print; return the exit code, 4 where the judging is incomplete."""
    configuration, models = judges_of(options)
    asked = _questions(options)
    dimensions = {one.name: one.question for pair in asked.plain.pairs for one in pair.dimensions}
    paper = {"rubric": None if asked.rubric is None else asked.rubric.paper, "dimensions": dimensions}
    criteria = [] if asked.rubric is None else [one.id for one in asked.rubric.criteria]
    asking = Asking(
        mode="calibrate",
        rubric=digest(canonical_json(paper)),
        criteria=[*criteria, *dimensions],
        prompts=asked.prompts,
        items={**asked.plain.items, **asked.changed.items},
        questions=asked.questions,
        notes=_notes(asked),
    )
    if options.dry_run:
        return print_dry_run(asking, configuration, models, options)
    return _measure(asked, ask_judges(asking, configuration, models, options), asking, paper, options)


def _notes(asked: CalibrationQuestions) -> list[str]:
    """Return how the calls come about, in sentences."""
    planted = asked.planted
    controls = sum(pair.is_control for pair in planted.pairs)
    parts = (
        counted(len(asked.plain.matches), "labelled pair"),
        counted(len(planted.pairs) - controls, "broken output"),
        counted(controls, "control"),
    )
    return [
        *([f"{counted(len(asked.scored), 'scored output')}: each is asked about by itself"] if asked.scored else []),
        *([f"{', '.join(parts)}: each is asked in both orders"] if not asked.scored else []),
        *(
            f"{name}: no place in {counted(sum(reasons.values()), 'output')}"
            for name, reasons in planted.without_place.items()
        ),
        *asked.probes.notes,
    ]


def _questions(options: CalibrationAskingOptions) -> CalibrationQuestions:
    if options.items is None:
        raise JudgeError("say which items people labelled: --items FILE")
    if options.rubric is None and not options.broken:
        raise JudgeError("say what is asked: --rubric FILE about the labelled items, --broken N about planted ones")
    refuse_unknown(options.probes)
    labelled: Mapping[str, LabelledPair] = {}
    scored: Mapping[str, ScoredItem] = {}
    methods: tuple[MethodName, ...] = ("pairwise_comparison",)
    if holds_scores(options.items):
        scored, methods = _scored(options.items, options), ("direct_scoring", "reference_based")
    else:
        labelled = _labelled(options.items, options)
    planted = plant(_good_outputs(labelled), options.broken, CONTROLS_PER_BROKEN * options.broken, options.seed)
    if options.broken and not planted.pairs:
        raise JudgeError(f"no output of {options.items} can be broken: give its items the input that they answer")
    rubric = None
    if options.rubric is not None:
        loaded = load_rubric(options.rubric, follow_links=load_settings(options.config).limits.follow_links)
        by_people = dict.fromkeys(name for item in scored.values() for name in item.scores)
        wanted = [criterion.id for criterion in loaded.criteria if criterion.id in by_people]
        if scored and not wanted:
            raise JudgeError(
                f"people scored {options.items} by {', '.join(by_people)}, and {options.rubric} has no such criterion"
            )
        rubric = choose_criteria(str(options.rubric), loaded, wanted, methods)
    return calibration_questions(rubric, labelled, scored, planted, options.probes, options.seed)


def _scored(items: Path, options: CalibrationAskingOptions) -> Mapping[str, ScoredItem]:
    if options.broken or options.rubric is None:
        raise JudgeError(f"{items} has scores of people: they go with --rubric FILE, and --broken N with pairs")
    scored = of_split(read_scored(items), options.split)
    bare = next((item.id for item in scored.values() if not item.output), None)
    if bare is not None:
        raise JudgeError(f"item '{bare}' of {items} has no text, and a judge must read its output")
    return scored


def _labelled(items: Path, options: CalibrationAskingOptions) -> Mapping[str, LabelledPair]:
    labelled = of_split(read_pairs(items), options.split)
    bare = next((pair.id for pair in labelled.values() if not pair.output_1 or not pair.output_2), None)
    if bare is not None:
        raise JudgeError(f"item '{bare}' of {items} has no texts, and a judge must read output_1 and output_2")
    return labelled


def _good_outputs(labelled: Mapping[str, LabelledPair]) -> list[GoodOutput]:
    """Return the output of each pair that people prefer, where the pair has an input."""
    return [
        GoodOutput(id=pair.id, stratum=pair.stratum, input=pair.input, output=pair.preferred)
        for pair in labelled.values()
        if pair.input and pair.preferred
    ]


def _measure(
    questions: CalibrationQuestions,
    asked: AskedJudging,
    asking: Asking,
    paper: Mapping[str, Any],
    options: CalibrationAskingOptions,
) -> int:
    judges = [
        JudgeAnswers(
            record=asked.record_of(part),
            answers=part.answers,
            declared_strong=part.run.model.judge == "strong",
        )
        for part in asked.runs
    ]
    head = head_of(asked.judging, "dimensions" if questions.rubric is None else questions.rubric.file)
    measured = measured_answers(questions, judges, head, options.bar, families_of(asked.configuration.models))
    page = f"# What the judge is worth\n\n{calibration_page(measured.calibration)}"
    write_papers(asked.folder, paper, questions.prompts, asking.systems, measured.calibration, page)
    measured.write(asked.folder)
    print_judge_calibration(measured.calibration, options.format)
    words = ["skill-evaluator", "judge", "calibrate"]
    for flag, values in (("--judge", options.judges), ("--probe", options.probes)):
        words += [word for name in values for word in (flag, name)]
    names = ("items", "rubric", "broken", "split", "bar", "replicates", "seed", "max_cost", "max_calls")
    return asked.close(words + words_of(options, *names, "concurrency", "out", "config"))
