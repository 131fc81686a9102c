"""`skill-evaluator scenarios`: have a model draft a family of scenarios; say whether one can carry an audit."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.audit.cube.cube import Cube
from skill_evaluator.audit.cube.tables import read_cube
from skill_evaluator.audit.findings.family import FamilyVerdict, check_family, judge_family, read_family
from skill_evaluator.audit.report.family import print_family
from skill_evaluator.audit.run.gathering import gather
from skill_evaluator.audit.run.materials import Places
from skill_evaluator.audit.run.plan import AUDIT, read_audit_manifest
from skill_evaluator.commands.judge_asking import Asking, ask_judges, judges_of, print_dry_run
from skill_evaluator.commands.judge_options import JudgeAskingOptions
from skill_evaluator.display.options import (
    AUDITS,
    JUDGEMENTS,
    Audits,
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    MaxCost,
    argument,
    flag,
    option,
    options,
    words_of,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_USER_ERROR, AuditError, ConfigError
from skill_evaluator.files import storing
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.asking.reading import text_of
from skill_evaluator.judges.drafting import QUESTION, name_of, read_scenarios, scenarios_question
from skill_evaluator.library.config import Settings, load_settings
from skill_evaluator.library.scenarios import Scenario, family_paths
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
class ScenariosCheckOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption):
    """The options of `scenarios check`."""

    family: str | None = argument(
        "A folder of .evaluator/scenarios; default: those in no folder.", None, metavar="FAMILY"
    )
    trial: Path | None = option(
        "Answers to go by: an audit's folder, or its outcomes.csv; default: the newest that asked them.", metavar="PATH"
    )
    audits: Audits = AUDITS


def scenarios_check(options: ScenariosCheckOptions) -> int:
    """Say whether a family of scenarios can carry an audit, by its texts and a trial's answers. Makes no call."""
    settings = load_settings(options.config)
    paths = family_paths(options.config, options.family)
    if not paths:
        raise ConfigError(
            f"{options.config / 'scenarios'} holds no scenario; write one, or draft some: scenarios draft"
        )
    scenarios, unreadable = read_family(options.config, paths, settings.limits)
    benchmarks = sorted(path.parent.name for path in options.components.glob("*/prompt.md"))
    cube = _trial(options, settings, scenarios)
    check = judge_family(options.family, scenarios, [*unreadable, *check_family(scenarios, benchmarks)], cube)
    print_family(check, options.format)
    if cube is None and check.verdict == "not settled":
        words = ["skill-evaluator", "audit", "run", *words_of(options, "components", "fixtures", "config", "audits")]
        words += ["--scenario", options.family] if options.family else []
        print(f"a small trial, once all are reviewed: {shlex.join([*words, '--questions', '20'])}", file=sys.stderr)
    return _EXIT_OF[check.verdict]


def _trial(options: ScenariosCheckOptions, settings: Settings, scenarios: Sequence[Scenario]) -> Cube | None:
    """Return the answers in these scenarios as they are; None where nobody was asked in two of them."""
    if options.trial is not None and options.trial.is_file():
        cube = read_cube(options.trial, weights={}, missing="questions")
        if cube.outcomes is None:
            raise AuditError(
                f"{options.trial} has scores alone; a trial needs single answers, as outcomes.csv has them"
            )
        asked = [scenario.name for scenario in scenarios if scenario.name in cube.scenarios]
        return _of_two(cube, asked, options.trial)
    if options.trial is not None:
        return _answers(options, settings, scenarios, options.trial)
    for folder in sorted((path.parent for path in options.audits.glob(f"*/{AUDIT}")), reverse=True):
        try:
            if len(_asked(folder, scenarios)) > 1:
                return _answers(options, settings, scenarios, folder)
        except AuditError as problem:  # of an audit that nobody named
            print(f"warning: no trial: {visible(str(problem))}", file=sys.stderr)
    return None


def _asked(folder: Path, scenarios: Sequence[Scenario]) -> list[str]:
    """Return which of these scenarios an audit asked in as they are now."""
    drawn = read_audit_manifest(folder / AUDIT).scenarios
    return [scenario.name for scenario in scenarios if drawn.get(scenario.name) == scenario.digest]


def _answers(options: ScenariosCheckOptions, settings: Settings, scenarios: Sequence[Scenario], folder: Path) -> Cube:
    """Gather the answers of an audit in these scenarios."""
    places = Places(
        components=options.components, fixtures=options.fixtures, config=options.config, limits=settings.limits
    )
    asked = _asked(folder, scenarios)
    gathered = gather([folder], places)
    for remark in gathered.remarks:
        print(f"warning: {visible(remark)}", file=sys.stderr)
    return _of_two(gathered.cube({}, "questions"), asked, folder)


def _of_two(cube: Cube, asked: Sequence[str], where: Path) -> Cube:
    if len(asked) < 2:
        raise AuditError(
            f"{where} asked in fewer than two of these scenarios as they are; make another trial: audit run"
        )
    return cube.within(asked)


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
    _write_family(folder, read_scenarios(text_of(answer), family))
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


def _write_family(folder: Path, texts: dict[str, str]) -> None:
    with storing(folder):
        folder.mkdir(parents=True)  # raises where somebody was faster
        for name, text in texts.items():
            with (folder / f"{name}.md").open("x", encoding="utf-8") as file:
                file.write(text)
