"""`skill-evaluator judge rubric`: have a model draft a rubric, which a person then reads and makes their own."""

import sys
from pathlib import Path

from skill_evaluator.checking.rubrics import lint_rubrics
from skill_evaluator.display.options import (
    COMPONENTS,
    JUDGEMENTS,
    ConfigOption,
    FormatOption,
    MaxCost,
    flag,
    option,
    options,
)
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, JudgeError
from skill_evaluator.files import storing
from skill_evaluator.judges.asking.judging import Asking
from skill_evaluator.judges.asking.options import JudgingRequest
from skill_evaluator.judges.asking.reading import text_of
from skill_evaluator.judges.asking.story import Bench
from skill_evaluator.judges.drafting import QUESTION, draft_question, draft_text, read_draft
from skill_evaluator.reports.judge_results import print_judged
from skill_evaluator.reports.lint import print_rubric_lint
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.schedule import Call
from skill_evaluator.text import digest

EXAMPLES = (
    'skill-evaluator judge rubric --draft "Is the tone considerate?" --judge <id> --out tone.yaml --dry-run',
    'skill-evaluator judge rubric --draft "Is the tone considerate?" --judge <id> --out .evaluator/rubrics/tone.yaml',
)
EXITS = {2: "wrong input, or an answer that holds no rubric (nothing is written)", 4: "no answer"}


@options
class JudgeRubricOptions(ConfigOption, FormatOption):
    """The options of `judge rubric`."""

    draft: str = option("What should be judged, in a sentence or two.", ..., metavar="TEXT")
    judge: str = option("The model of models.yaml that drafts.", ..., "-j", metavar="ID")
    out: Path = option("The new file, .yaml; its name is the id.", ..., metavar="FILE")
    seed: int = option("Seed of the call.", 0)
    max_cost: MaxCost = None
    dry_run: bool = flag("Make no call, print the cost at most.")


def judge_rubric(options: JudgeRubricOptions) -> int:
    """Have a model draft a rubric, marked unreviewed until a person has read it; overwrites nothing."""
    if options.out.exists():
        raise JudgeError(f"{options.out} is there already; a draft overwrites nothing: name another file")
    if options.out.suffix not in (".yaml", ".yml") or not options.draft.strip():
        raise JudgeError("--draft says what should be judged, and --out FILE ends in .yaml")
    request = JudgingRequest(
        judges=(options.judge,),
        seed=options.seed,
        max_cost=options.max_cost,
        dry_run=options.dry_run,
        out=JUDGEMENTS,
        config=options.config,
    )
    bench = Bench.of(request, watch)
    question, prompt = draft_question(options.draft, options.seed)
    wish = digest(options.draft)
    asking = Asking(
        mode="rubric",
        rubric=wish,
        criteria=[options.out.stem],
        prompts=[prompt],
        items={QUESTION: wish},
        questions=[question],
    )
    if options.dry_run:
        return print_judged(bench.size(asking), options.format)
    (part,) = bench.ask(asking).runs
    answer = part.answers.get(Call(QUESTION, 0))
    if answer is None or not answer.answered:
        failure = part.stopped or (None if answer is None else answer.failure)
        why = "it was not asked" if failure is None else f"{failure.reason}: {failure.message}"
        print(f"{options.judge} gave no answer: {why}", file=sys.stderr)
        return EXIT_INCOMPLETE
    text = draft_text(read_draft(text_of(answer), options.out.stem))
    with storing(options.out):
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("x", encoding="utf-8") as file:  # x: nothing is overwritten, whoever was faster
            file.write(text)
    print_rubric_lint(
        lint_rubrics([options.out], COMPONENTS, None, bench.configuration.settings.limits), options.format
    )
    return EXIT_OK
