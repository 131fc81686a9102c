"""`skill-evaluator doctor`: say which model has a key where, and what stands in the way of runs here and in CI."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rich.text import Text

from skill_evaluator.ci.doctor import DoctorReport, examine, is_on_github, probe
from skill_evaluator.ci.legs import secrets_of, stale_workflows
from skill_evaluator.ci.platforms.github_setup import read_setup
from skill_evaluator.display import cost_words
from skill_evaluator.display.options import COMPONENTS, ConfigOption, FormatOption, option, options
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Sheet, markdown_table, print_result
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError, GitError, SkillEvaluatorError
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import retiring, select_models
from skill_evaluator.library.scaffolding import IGNORED
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.repository import Repository
from skill_evaluator.runner.session import with_keys
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.planning.sizing import FEW_CASES, can_show

EXAMPLES = ("skill-evaluator doctor", "skill-evaluator doctor --format json")
EXITS = {0: "nothing is wrong in what could be looked at", 4: "something is, and the output says what to do"}


@options
class DoctorOptions(ConfigOption, FormatOption):
    """The options of `doctor`."""

    probe: str | None = option("Ask whether answers depend on load.", metavar="MODEL")


def doctor(options: DoctorOptions) -> int:
    """Say which model has a key where, and what stands in the way of runs here and in CI; only --probe makes calls.

    Keys here are environment variables. Those in CI are secrets, whose names `gh` lists if it is logged in; without it
    the command says that it could not look. No key is shown or checked with its vendor.
    """
    configuration = read_configuration(options.config)
    if options.probe is not None:
        return _probe(configuration, options, options.probe)
    elsewhere = configuration.settings.fixtures
    fixtures = elsewhere.repository if elsewhere and is_on_github(elsewhere) else None
    secrets = secrets_of(configuration)
    setup, why_unseen = None, ""
    try:
        keyless = any(model.auth == "oidc" for model in configuration.models)
        setup = read_setup(options.config, secrets, fixtures, keyless=keyless)
    except ConfigError as problem:
        why_unseen = str(problem)
    further = [*stale_workflows(options.config, secrets).values(), *_published()]
    report = examine(configuration, setup, further, why_unseen)
    report = report.model_copy(update={"few": tuple(_few(COMPONENTS)), "retiring": retiring(configuration.models)})
    print_result(
        options.format,
        json=lambda: report.model_dump(mode="json"),
        markdown=lambda: markdown_table(_sheet(report)) + "".join(f"- {code_span(line)}\n" for line in _lines(report)),
        text=lambda: [_sheet(report), *(Text(visible(line)) for line in _lines(report))],
    )
    return EXIT_INCOMPLETE if report.problems else EXIT_OK


def _probe(read: Configuration, options: DoctorOptions, model_id: str) -> int:
    (model,) = with_keys(select_models(read.models, (model_id,)), read).values()
    told = asyncio.run(probe(model, read))
    calls = f"{model.id}: {told['answered']} of {told['calls']} calls answered, cost {cost_words(told['cost_usd'])}"
    print_result(
        options.format,
        json=lambda: told,
        markdown=lambda: f"- {code_span(calls)}\n- {code_span(told['verdict'])}\n",
        text=lambda: map(visible, (calls, told["verdict"])),
    )
    return EXIT_OK if told["answered"] == told["calls"] else EXIT_INCOMPLETE


def _published() -> Iterator[str]:
    """Yield that git would add answers, plans or pages of this folder, if it is in a repository."""
    with suppress(GitError):
        repository = Repository(Path())
        if kept := [line for line in IGNORED if not repository.ignores(Path(line.strip("/").replace("*", "x"), "x"))]:
            yield f"git add would publish {listed(kept)}: `skill-evaluator init --adopt` adds that to .gitignore"


def _few(components: Path) -> Iterator[str]:
    """Yield of each component with few cases what these can show; what cannot be read is for `lint` to say."""
    for path in sorted(components.glob("*/prompt.md")):
        try:
            cases = load_cases(load_component(components, path.parent.name), None)
        except SkillEvaluatorError:
            continue
        labelled = sum(case.labelled for case in cases)
        if 0 < labelled < FEW_CASES:
            yield f"{path.parent.name}: {can_show(labelled)}"


def _sheet(report: DoctorReport) -> Sheet:
    here = {"not_needed": "not needed", "set": "set", "in_ci_only": "none, in CI only"}
    in_ci = {
        "not_needed": "not needed",
        "environment": "{0}: set",
        "repository": "repository: {1} set",
        "identity": "identity of {0}",
        "missing": "none in {0}, no {1}",
        "unknown": "not looked at",
    }
    rows = [
        (
            Cell(key.id, code=True),
            Cell(here.get(key.here) or f"{' or '.join(key.variables)} not set"),
            Cell(in_ci[key.in_ci].format(key.environment, " or ".join(key.variables))),
        )
        for key in report.models
    ]
    return Sheet(columns=("model", "key here", "key in CI"), rows=rows, whole=frozenset({"model"}))


def _lines(report: DoctorReport) -> list[str]:
    site = {"artifact": "an artifact of each run", "published": "published on Pages", "unknown": "not looked at"}
    problems = [f"problem: {line}" for line in report.problems]
    unseen = [f"not looked at: {line}" for line in report.unseen]
    return [
        f"site in CI: {site[report.site]}",
        *report.few,
        *report.retiring,
        *problems,
        *unseen,
        counted(len(report.problems), "problem"),
    ]
