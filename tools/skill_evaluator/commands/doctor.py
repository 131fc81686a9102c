"""`skill-evaluator doctor`: say which model has a key where, and what stands in the way of runs here and in CI."""

from dataclasses import dataclass

from rich.text import Text

from skill_evaluator.ci.doctor import DoctorReport, examine, is_on_github
from skill_evaluator.ci.legs import secrets_of, stale_workflows
from skill_evaluator.ci.platforms.github_setup import read_setup
from skill_evaluator.commands.options import CONFIG, Config, Form
from skill_evaluator.display.safe_text import code_span, visible
from skill_evaluator.display.sheets import Cell, Sheet, markdown_table, print_result
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError
from skill_evaluator.providers import read_configuration
from skill_evaluator.text import counted

EXAMPLES = ("skill-evaluator doctor", "skill-evaluator doctor --format json")
EXITS = {0: "nothing is wrong in what could be looked at", 4: "something is, and the output says what to do"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """The options of `doctor`."""

    config: Config = CONFIG
    format: Form = "text"


def doctor(options: DoctorOptions) -> int:
    """Say which model has a key where, and what stands in the way of runs here and in CI. Makes no call to a model.

    Keys here are environment variables. Those in CI are secrets, whose names `gh` lists if it is logged in; without it
    the command says that it could not look. No key is shown or checked with its vendor.
    """
    configuration = read_configuration(options.config)
    elsewhere = configuration.settings.fixtures
    fixtures = elsewhere.repository if elsewhere and is_on_github(elsewhere) else None
    secrets = secrets_of(configuration)
    setup, why_unseen = None, ""
    try:
        keyless = any(model.auth == "oidc" for model in configuration.models)
        setup = read_setup(options.config, secrets, fixtures, keyless=keyless)
    except ConfigError as problem:
        why_unseen = str(problem)
    report = examine(configuration, setup, stale_workflows(options.config, secrets).values(), why_unseen)
    print_result(
        options.format,
        json=lambda: report.model_dump(mode="json"),
        markdown=lambda: markdown_table(_sheet(report)) + "".join(f"- {code_span(line)}\n" for line in _lines(report)),
        text=lambda: [_sheet(report), *(Text(visible(line)) for line in _lines(report))],
    )
    return EXIT_INCOMPLETE if report.problems else EXIT_OK


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
    return [f"site in CI: {site[report.site]}", *problems, *unseen, counted(len(report.problems), "problem")]
