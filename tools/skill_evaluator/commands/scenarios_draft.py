"""`skill-evaluator scenarios draft`: have a model draft a family of scenarios, which people then make their own."""

import sys
from pathlib import Path

from skill_evaluator.audit.findings.family import check_family, judge_family, read_family
from skill_evaluator.audit.report.family import print_family
from skill_evaluator.commands.judge_asking import Asking, ask_judges, judges_of, print_dry_run
from skill_evaluator.commands.judge_options import JudgeAskingOptions
from skill_evaluator.commands.options import JUDGEMENTS, ConfigOption, FormatOption, MaxCost, flag, option, options
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError
from skill_evaluator.files import storing
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.asking.reading import text_of
from skill_evaluator.judges.drafting.scenarios import QUESTION, name_of, read_scenarios, scenarios_question
from skill_evaluator.runner.schedule import Call
from skill_evaluator.text import counted, digest

EXAMPLES = (
    'skill-evaluator scenarios draft --task "legal document analysis" --model <id> --dry-run',
    'skill-evaluator scenarios draft --task "legal document analysis" --model <id> --family legal --max-cost 0.50',
)
EXITS = {2: "wrong input, or an answer that holds no family (nothing is written)", 4: "no answer"}


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
    family, folder = _new_family(options)
    asked_with = JudgeAskingOptions(
        judges=(options.model,),
        seed=options.seed,
        max_cost=options.max_cost,
        dry_run=options.dry_run,
        out=JUDGEMENTS,
        config=options.config,
        format=options.format,
    )
    configuration, models = judges_of(asked_with)
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
        return print_dry_run(asking, configuration, models, asked_with)
    (part,) = ask_judges(asking, configuration, models, asked_with).runs
    answer = part.answers.get(Call(QUESTION, 0))
    if answer is None or not answer.answered:
        failure = part.stopped or (None if answer is None else answer.failure)
        why = "it was not asked" if failure is None else f"{failure.reason}: {failure.message}"
        print(f"{options.model} gave no answer: {why}", file=sys.stderr)
        return EXIT_INCOMPLETE
    _write(folder, read_scenarios(text_of(answer), family))
    paths = sorted(folder.glob("*.md"))
    scenarios, unreadable = read_family(options.config, paths, configuration.settings.limits)
    print_family(judge_family(family, scenarios, [*unreadable, *check_family(scenarios, [])], None), options.format)
    print(f"{counted(len(paths), 'scenario')} written to {folder}, all unreviewed", file=sys.stderr)
    return EXIT_OK


def _new_family(options: ScenariosDraftOptions) -> tuple[str, Path]:
    """Return the name of the family and its folder; raise ConfigError where it is there already."""
    if not options.task.strip():
        raise ConfigError("--task says in a few words what the scenarios are for")
    family = options.family or name_of(options.task)
    if not is_component_name(family):
        raise ConfigError(f"--family '{family}' is no name: letters, digits, '.', '_' and '-', such as legal")
    folder = options.config / "scenarios" / family
    if folder.exists():
        raise ConfigError(f"{folder} is there already; a draft overwrites nothing: give another --family")
    return family, folder


def _write(folder: Path, texts: dict[str, str]) -> None:
    with storing(folder):
        folder.mkdir(parents=True)  # raises where somebody was faster
        for name, text in texts.items():
            with (folder / f"{name}.md").open("x", encoding="utf-8") as file:
                file.write(text)
