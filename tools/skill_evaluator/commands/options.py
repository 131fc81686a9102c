"""How a command declares its options, once: a frozen dataclass of annotated fields, and a function that takes it.

Here is what makes a command of the two, and the options that several commands share: one wording and one default.
"""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import EXIT_BUG, EXIT_OK, EXIT_USER_ERROR, ConfigError, RunError, SkillEvaluatorError
from skill_evaluator.text import nearest

COMPONENTS = Path("components")
CONFIG = Path(".evaluator")
AUDITS = Path("audits")
JUDGEMENTS = Path("judgements")
_EXITS = {EXIT_OK: "done", EXIT_BUG: "a bug (a traceback)", EXIT_USER_ERROR: "wrong input (one line says what)"}
_LAST = ("components", "fixtures", "config", "platform", "format")  # in the help of every command


def component_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the components that a shell may complete a word to."""
    folders = sorted(path.parent.name for path in Path(ctx.params.get("components") or COMPONENTS).glob("*/prompt.md"))
    return [name for name in folders if name.startswith(incomplete)]


def leave_out(problem: SkillEvaluatorError) -> None:
    """Warn of a row that is wrong, as `--skip-invalid` has it."""
    print(f"warning: {visible(str(problem))}; left out", file=sys.stderr)


def model_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the models that a shell may complete a word to; none of a models.yaml that cannot be read."""
    from skill_evaluator.library.config import load_models

    try:
        models = load_models(Path(ctx.params.get("config") or CONFIG))
    except SkillEvaluatorError:
        return []
    return [model.id for model in models if model.id.startswith(incomplete)]


def run_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the runs that a shell may complete a word to, the newest first."""
    folders = Path(ctx.params.get("components") or COMPONENTS).glob(
        f"{ctx.params.get('skill') or '*'}/evals/results/*/"
    )
    return sorted((path.name for path in folders if path.name.startswith(incomplete)), reverse=True)


Components = Annotated[Path, typer.Option("--components", metavar="DIR", help="Folder of the components.")]
Fixtures = Annotated[
    Path | None,
    typer.Option("--fixtures", metavar="DIR", help="Folder of <skill>/cases/ (or questions.jsonl); default: fixtures."),
]
Config = Annotated[Path, typer.Option("--config", metavar="DIR", help="Folder of models.yaml and settings.yaml.")]
SkipInvalid = Annotated[bool, typer.Option("--skip-invalid", help="Leave out a row that is wrong, with a warning.")]
OnPlatform = Annotated[
    Literal["github"] | None,
    typer.Option("--platform", help="Also tell the CI this runs in: outputs, summary, marks on files."),
]
Form = Annotated[Format, typer.Option("--format", help="How to print the result (on stdout).")]

Skill = Annotated[
    str,
    typer.Argument(help="The component: a folder name under --components.", autocompletion=component_names),
]
Names = Annotated[
    tuple[str, ...],
    typer.Argument(
        metavar="component", help="Folder names under --components; default: all.", autocompletion=component_names
    ),
]
OnlyModels = Annotated[
    tuple[str, ...],
    typer.Option(
        "--model", "-m", metavar="ID", help="Only this model of models.yaml; repeatable.", autocompletion=model_ids
    ),
]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", metavar="USD", help="Spend at most this, all models together.")
]
MaxCalls = Annotated[
    int | None,
    typer.Option("--max-calls", help="Make at most so many calls (retries not counted), all models together."),
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Calls in flight per model; default 8.")]
Batch = Annotated[
    bool,
    typer.Option("--batch", help="Ask by the vendors' batch APIs: half the price, answers within a day; waits."),
]
SubmitOnly = Annotated[
    bool,
    typer.Option("--submit-only", help="With --batch: do not wait; collect --batches takes the answers later."),
]
Reason = Annotated[str, typer.Option("--reason", help="Why this is started, for the summary.")]
Legs = Annotated[
    str,
    typer.Option(
        "--legs", metavar="ENVIRONMENTS", help="With --platform: those that the workflow has jobs of their own for."
    ),
]
Audits = Annotated[Path, typer.Option("--audits", metavar="DIR", help="Where audits are kept.")]
Judgements = Annotated[Path, typer.Option("--judgements", metavar="DIR", help="Where judgings are kept.")]


def command_of(
    story: Callable[[Any], int], name: str, examples: Sequence[str], exits: Mapping[int, str] = MappingProxyType({})
) -> Any:
    """Return the command that reads its options into the dataclass that `story` takes, and exits with its code.

    Its help ends with the exit codes, those in `exits` and the usual ones, and with examples.
    """
    options = get_type_hints(story)["options"]
    hints = get_type_hints(options, include_extras=True)

    def run(**values: Any) -> None:
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        if given.get("fixtures", given) is None:
            from skill_evaluator.ci.fixtures import fetched_fixtures
            from skill_evaluator.library.config import load_settings

            if elsewhere := load_settings(given["config"]).fixtures:
                given["fixtures"], _ = fetched_fixtures(elsewhere)
        raise typer.Exit(story(options(**given)))

    parameters = []
    for field in sorted(dataclasses.fields(options), key=lambda field: field.name in _LAST):
        if get_origin(hints[field.name]) is not Annotated:
            continue  # another command gives it
        kind, declared = get_args(hints[field.name])
        if get_origin(kind) is tuple:  # Typer knows lists, where a frozen dataclass has tuples
            kind = list[get_args(kind)[0]]  # type: ignore[misc]
        default = Parameter.empty if field.default is dataclasses.MISSING else field.default
        parameters.append(
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])
        )
    run.__doc__ = story.__doc__
    run.__annotations__ = {}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    codes = " · ".join(f"{code} {meaning}" for code, meaning in sorted({**_EXITS, **exits}.items()))
    epilog = f"Exit codes: {codes}\n\nExample{'s' * (len(examples) > 1)}: {' · '.join(examples)}"
    application.command(name, epilog=epilog)(run)
    return typer.main.get_command(application)


def named_verdicts(fail_on: Sequence[str]) -> list[str]:
    """Return the verdicts that --fail-on names, apart or with commas between; raise ConfigError for an unknown one."""
    from skill_evaluator.library.config import VerdictName

    names = [name.strip() for part in fail_on for name in part.split(",") if name.strip()]
    for name in names:
        if name not in get_args(VerdictName):
            raise ConfigError(f"unknown verdict '{name}' for --fail-on {nearest(name, get_args(VerdictName))}")
    return names


def words_of(options: Any, *names: str) -> list[str]:
    """Return the flags that give these options again, without those that have their default."""
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    values = {name: getattr(options, name) for name in names}
    return [
        word
        for name, value in values.items()
        if value != defaults[name]
        for word in (f"--{name.replace('_', '-')}", *([] if value is True else [str(value)]))
    ]


def refuse_submit_only(*, submit_only: bool, batch: bool, resume: str | None) -> None:
    """Raise RunError where nothing would be submitted."""
    if submit_only and not (batch or resume):
        raise RunError("--submit-only leaves batches with the vendor: give it with --batch, or with --resume")
