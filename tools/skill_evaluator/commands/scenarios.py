"""`skill-evaluator scenarios`: have a model draft a family of scenarios; say whether one can carry an audit."""

import sys

from skill_evaluator.api import Library
from skill_evaluator.audit.findings.family import FamilyVerdict, check_draft
from skill_evaluator.audit.report.family import print_family
from skill_evaluator.audit.request import ScenariosCheckRequest
from skill_evaluator.display.options import JUDGEMENTS, ConfigOption, FormatOption, MaxCost, flag, option, options
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_USER_ERROR, ConfigError
from skill_evaluator.judges.asking.judging import Asking
from skill_evaluator.judges.asking.options import JudgingRequest
from skill_evaluator.judges.asking.reading import text_of
from skill_evaluator.judges.asking.story import Bench
from skill_evaluator.judges.drafting import QUESTION, name_of, read_scenarios, scenarios_question
from skill_evaluator.library.scenarios import new_family, write_family
from skill_evaluator.reports.judge_results import print_judged
from skill_evaluator.reports.live import watch
from skill_evaluator.runner.schedule import Call
from skill_evaluator.text import counted, digest

EXAMPLES = {
    "scenarios_check": (
        "skill-evaluator scenarios check",
        "skill-evaluator scenarios check legal --format markdown",
        "skill-evaluator scenarios check legal --trial audits/<id>",
    ),
    "scenarios_draft": (
        'skill-evaluator scenarios draft --task "legal document analysis" --model <id> --dry-run',
        'skill-evaluator scenarios draft --task "legal document analysis" --model <id> --family legal --max-cost 0.50',
    ),
}
EXITS = {
    "scenarios_check": {
        2: "wrong input, or a family that cannot carry an audit",
        4: "not settled: unreviewed, or no trial that tells",
    },
    "scenarios_draft": {2: "wrong input, or an answer that holds no family (nothing is written)", 4: "no answer"},
}
_EXIT_OF: dict[FamilyVerdict, int] = {
    "can carry an audit": EXIT_OK,
    "cannot carry an audit": EXIT_USER_ERROR,
    "not settled": EXIT_INCOMPLETE,
}


@options
class ScenariosCheckOptions(ScenariosCheckRequest, FormatOption):
    """The options of `scenarios check`."""


def scenarios_check(options: ScenariosCheckOptions) -> int:
    """Say whether a family of scenarios can carry an audit, by its texts and a trial's answers. Makes no call."""
    check = Library.at(options).check_scenarios(options)
    print_family(check, options.format, options)
    return _EXIT_OF[check.verdict]


@options
class ScenariosDraftOptions(ConfigOption, FormatOption):
    """The options of `scenarios draft`."""

    task: str = option("The domain, in a few words.", ..., metavar="TEXT")
    model: str = option("The model of models.yaml that drafts.", ..., "-m", metavar="ID")
    family: str | None = option("The new folder of .evaluator/scenarios; default: from --task.", metavar="NAME")
    seed: int = option("Seed of the call.", 0)
    max_cost: MaxCost = None
    dry_run: bool = flag("Make no call, print the cost at most.")


def scenarios_draft(options: ScenariosDraftOptions) -> int:
    """Have a model draft system-prompt templates for a domain, marked unreviewed; overwrites nothing."""
    if not options.task.strip():
        raise ConfigError("--task says in a few words what the scenarios are for")
    family = options.family or name_of(options.task)
    folder = new_family(options.config, family)
    request = JudgingRequest(
        judges=(options.model,),
        seed=options.seed,
        max_cost=options.max_cost,
        dry_run=options.dry_run,
        out=JUDGEMENTS,
        config=options.config,
    )
    bench = Bench.of(request, watch)
    question, prompt = scenarios_question(options.task, options.seed)
    domain = digest(options.task)
    asking = Asking(
        mode="scenarios",
        rubric=domain,
        criteria=[family],
        prompts=[prompt],
        items={QUESTION: domain},
        questions=[question],
    )
    if options.dry_run:
        return print_judged(bench.size(asking), options.format)
    (part,) = bench.ask(asking).runs
    answer = part.answers.get(Call(QUESTION, 0))
    if answer is None or not answer.answered:
        failure = part.stopped or (None if answer is None else answer.failure)
        why = "it was not asked" if failure is None else f"{failure.reason}: {failure.message}"
        print(f"{options.model} gave no answer: {why}", file=sys.stderr)
        return EXIT_INCOMPLETE
    texts = read_scenarios(text_of(answer), family)
    write_family(folder, texts)
    print_family(check_draft(family, options.config, bench.configuration.settings.limits), options.format)
    print(f"{counted(len(texts), 'scenario')} written to {folder}, all unreviewed", file=sys.stderr)
    return EXIT_OK
