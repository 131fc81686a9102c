"""How a command declares its options, once: a frozen dataclass of annotated fields, and a function that takes it.

Here is what makes a command of the two, and the options that several commands share: one wording and one default.
"""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

import typer

from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import EXIT_BUG, EXIT_OK, EXIT_USER_ERROR, ConfigError, SkillEvaluatorError
from skill_evaluator.text import nearest

COMPONENTS = Path("components")
CONFIG = Path(".evaluator")
AUDITS = Path("audits")
JUDGEMENTS = Path("judgements")
_EXITS = {EXIT_OK: "done", EXIT_BUG: "a bug (a traceback)", EXIT_USER_ERROR: "wrong input (one line says what)"}
_Options = TypeVar("_Options")
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


@dataclass_transform(frozen_default=True, kw_only_default=True)
def options(cls: type[_Options]) -> type[_Options]:
    """Make a class of annotated fields the options of a command."""
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


def option(help: str, default: Any = None, *flags: str, **how: Any) -> Any:
    """Declare an option. Its flag is the field's name; `flags` says another or a short one; `...` makes it required.

    What else `typer.Option` takes is in `how`.

    >>> option("Answers per case and model.", 3, "-n").default
    3
    """
    if default is ...:
        default = dataclasses.MISSING
    return dataclasses.field(default=default, metadata={"flags": flags, "how": {"help": help, **how}})


def flag(help: str, *flags: str, **how: Any) -> Any:
    """Declare an option that is off unless its flag is typed."""
    return option(help, False, *flags, **how)


def argument(help: str, default: Any = dataclasses.MISSING, **how: Any) -> Any:
    """Declare a positional argument, which is required if it has no default."""
    return dataclasses.field(default=default, metadata={"how": {"help": help, **how}})


@options
class ComponentsOption:
    """A command that reads components."""

    components: Path = option("Folder of the components.", COMPONENTS, metavar="DIR")


@options
class FixturesOption:
    """A command that reads cases."""

    fixtures: Path | None = option("Folder of <skill>/cases/ (or questions.jsonl); default: fixtures.", metavar="DIR")


@options
class ConfigOption:
    """A command that reads models.yaml or settings.yaml."""

    config: Path = option("Folder of models.yaml and settings.yaml.", CONFIG, metavar="DIR")


@options
class PlatformOption:
    """A command that CI runs, too."""

    platform: Literal["github"] | None = option("Also tell the CI this runs in: outputs, summary, marks on files.")


@options
class FormatOption:
    """A command that prints a result."""

    format: Format = option("How to print the result (on stdout).", "text")


SkipInvalid = Annotated[bool, typer.Option("--skip-invalid", help="Leave out a row that is wrong, with a warning.")]
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
    typer.Option("--max-calls", help="Stop after N calls over all models; retries are free."),
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
Reason = Annotated[str, typer.Option("--reason", help="Reason shown in the job summary.")]
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

    fields = sorted(
        dataclasses.fields(options), key=lambda field: _LAST.index(field.name) if field.name in _LAST else -1
    )
    run.__doc__ = story.__doc__
    run.__annotations__ = {}
    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [_parameter(field, hints[field.name]) for field in fields if _is_typed(field, hints[field.name])]
    )
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    codes = " · ".join(f"{code} {meaning}" for code, meaning in sorted({**_EXITS, **exits}.items()))
    epilog = f"Exit codes: {codes}\n\nExample{'s' * (len(examples) > 1)}: {' · '.join(examples)}"
    application.command(name, epilog=epilog)(run)
    return typer.main.get_command(application)


def _place(field: dataclasses.Field[Any]) -> int:
    return _LAST.index(field.name) if field.name in _LAST else -1


def _is_typed(field: dataclasses.Field[Any], hint: Any) -> bool:
    """Return whether a person types a field; the others are set by commands that call each other."""
    return bool(field.metadata) or get_origin(hint) is Annotated


def _parameter(field: dataclasses.Field[Any], hint: Any) -> Parameter:
    """Return the parameter that Typer reads a field from."""
    if field.metadata:
        kind, declared = hint, _declared(field)
    else:
        kind, declared = get_args(hint)
    if get_origin(kind) is tuple:  # Typer knows lists, where a frozen dataclass has tuples
        kind = list[get_args(kind)[0]]  # type: ignore[misc]
    default = Parameter.empty if field.default is dataclasses.MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])


def _declared(field: dataclasses.Field[Any]) -> Any:
    flags = field.metadata.get("flags")
    if flags is None:
        return typer.Argument(**field.metadata["how"])
    if field.default is not True and not any(flag.startswith("--") for flag in flags):
        flags = (f"--{field.name.replace('_', '-')}", *flags)  # for True, Typer makes --x and --no-x
    return typer.Option(*flags, **field.metadata["how"])


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
