"""`skill-evaluator scenarios check`: whether a family of scenarios can carry an audit. Makes no call."""

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
from skill_evaluator.commands.options import (
    AUDITS,
    Audits,
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    argument,
    option,
    options,
    words_of,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_USER_ERROR, AuditError, ConfigError
from skill_evaluator.library.config import Settings, load_settings
from skill_evaluator.library.scenarios import Scenario, family_paths

EXAMPLES = (
    "skill-evaluator scenarios check",
    "skill-evaluator scenarios check legal --format markdown",
    "skill-evaluator scenarios check legal --trial audits/<id>",
)
EXITS = {2: "wrong input, or a family that cannot carry an audit", 4: "not settled: unreviewed, or no trial that tells"}
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
