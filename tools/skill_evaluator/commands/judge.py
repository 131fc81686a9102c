"""`skill-evaluator judge score`, `pairwise`, `regression`, `calibrate`, `rubric`, `lint` and `pin`."""

import sys
from pathlib import Path

from skill_evaluator.api import library_of
from skill_evaluator.api.judging import run_judges
from skill_evaluator.ci.platforms import PLATFORMS
from skill_evaluator.errors import EXIT_OK, EXIT_USER_ERROR
from skill_evaluator.judges.workflows import drafting, requests
from skill_evaluator.library import options as cli
from skill_evaluator.reports.judge_results import print_judge_run_size, print_judged, print_pinned
from skill_evaluator.reports.lint import print_rubric_lint
from skill_evaluator.reports.live import watch
from skill_evaluator.text import counted

EXAMPLES = {
    "judge_score": (
        "skill-evaluator judge score RUBRIC --items summaries.jsonl --judge <model>",
        "skill-evaluator judge score RUBRIC --run RUN --judge <model> --dry-run",
        "skill-evaluator judge score RUBRIC --run RUN --judge <model> --batch",
    ),
    "judge_pairwise": ("skill-evaluator judge pairwise RUBRIC --items pairs.jsonl --judge <id>",),
    "judge_regression": (
        "skill-evaluator judge regression --items pairs.jsonl --judge <id> --dry-run",
        "skill-evaluator judge regression --candidate RUN --baseline RUN --judge <id>",
        "skill-evaluator judge regression --items b.jsonl --judge <id> --against <id>",
    ),
    "judge_calibrate": (
        "skill-evaluator judge calibrate --labels items.jsonl --verdicts verdicts.jsonl",
        "skill-evaluator judge calibrate --labels FILE --judge <id> --rubric RUBRIC",
        "skill-evaluator judge calibrate --labels labels.jsonl --batch RESULTS",
    ),
    "judge_rubric": ('skill-evaluator judge rubric --draft "Kind?" --judge <id> --out kind.yaml',),
    "judge_lint": ("skill-evaluator judge lint", "skill-evaluator judge lint .evaluator/rubrics/support-reply.yaml"),
    "judge_pin": (
        "skill-evaluator judge pin components/<component>/evals/results/<run-id>",
        "skill-evaluator judge pin <run-id> --case 'clean-*'",
    ),
}
_INCOMPLETE = {4: "incomplete (it prints the command to resume), or a judge without a usable output"}
EXITS = {
    "judge_score": _INCOMPLETE,
    "judge_pairwise": _INCOMPLETE,
    "judge_regression": {
        3: "the decision is block, an alert, or a rate of regressions that rose",
        4: "review required, incomplete, or a judge without a usable output",
    },
    "judge_calibrate": _INCOMPLETE,
    "judge_rubric": {2: "invalid input, or an output without a rubric", 4: "no output"},
    "judge_lint": {2: "invalid input, or an error in a rubric"},
}


def _judge(options: requests.JudgedRequest | requests.CalibrateRequest) -> int:
    components = getattr(options, "components", cli.COMPONENTS)
    return print_judged(run_judges(options, watch), options.format, components, cli.words_of(options))


def judge_score(options: requests.ScoreRequest) -> int:
    """Score outputs by a rubric.

    A judge gives evidence, a justification, a score, a suggestion and its confidence for each criterion.
    """
    return _judge(options)


def judge_pairwise(options: requests.PairwiseRequest) -> int:
    """Compare outputs by a rubric, in both orders.

    A verdict that changes with the order is a tie.
    """
    return _judge(options)


def judge_regression(options: requests.RegressionRequest) -> int:
    """Decide whether new outputs are worse and may ship.

    A judge compares them with the outputs in use, in both orders. Code decides by fixed rules: ship, review or block.
    """
    return _judge(options)


def judge_calibrate(options: requests.CalibrateRequest) -> int:
    """Measure how well judges agree with human labels.

    Labels must be of items drawn at random. Without --judge, the results of --verdicts or --batch are read and no call
    is made. A judge is trusted if the whole 95 % interval of its κ with people is at --bar or above. --corrupt N also
    measures how many known defects a judge finds.
    """
    return _judge(options)


def judge_rubric(options: requests.RubricDraftRequest) -> int:
    """Have a model draft a rubric, marked as unreviewed."""
    size = drafting.draft_rubric(options, watch)
    if size is not None:
        return print_judge_run_size(size, options.format)
    print_rubric_lint(library_of(options).judge.lint([options.out]), options.format)
    return EXIT_OK


@cli.options
class JudgeLintOptions(cli.FormatOption, cli.ConfigOption):
    files: tuple[Path, ...] = cli.argument("Rubrics; default: all of .evaluator/rubrics.", (), "FILE")
    platform: cli.PlatformName | None = cli.rare("On GitHub Actions: also annotate the rubrics with remarks.")


def judge_lint(options: JudgeLintOptions) -> int:
    """Check rubrics: their levels, characteristics, edge cases and methods."""
    linted = library_of(options).judge.lint(options.files)
    print_rubric_lint(linted, options.format)
    if options.platform is not None:
        for rubric in linted.rubrics:
            for remark in rubric.remarks:
                PLATFORMS[options.platform].annotate(remark.severity, remark.message, rubric.file, remark.line)
    if not linted.errors:
        return EXIT_OK
    print(f"error: {counted(linted.errors, 'error')} in {counted(len(linted.rubrics), 'rubric')}", file=sys.stderr)
    return EXIT_USER_ERROR


@cli.options
class JudgePinOptions(cli.LibraryOptions):
    run: str = cli.argument("A run folder, or the id of a run in evals/results.")
    cases: tuple[str, ...] = cli.option(
        "Pin only outputs of cases whose id matches; repeatable.", (), "--case", metavar="GLOB"
    )


def judge_pin(options: JudgePinOptions) -> int:
    """Pin a run's outputs as baseline of `judge regression`.

    The first output of each case goes to components/<name>/evals/pinned/ and replaces the pinned outputs of the same
    model. Makes no call.
    """
    print_pinned(library_of(options).judge.pin(options.run, options.cases), options.format)
    return EXIT_OK
