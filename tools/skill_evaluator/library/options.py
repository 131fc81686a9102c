"""The options of commands: a frozen dataclass per command with one `option("help", default)` per line.

Each package declares the options of its use cases. cyclopts parses the command line into them and prints their help.
Options that several commands share are declared here, with one help text and one default.
"""

import dataclasses
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_origin, get_type_hints

from cyclopts import App, Parameter, Token, exceptions
from cyclopts.help import DefaultFormatter, HelpPanel
from cyclopts.validators import Number
from pydantic import TypeAdapter, ValidationError

from skill_evaluator.display.pages import Format
from skill_evaluator.errors import EXIT_BUG, EXIT_OK, EXIT_USER_ERROR, ConfigError
from skill_evaluator.files import first_problem

COMPONENTS = Path("components")
CONFIG = Path(".evaluator")
AUDITS = Path("audits")
JUDGEMENTS = Path("judgements")
FOLDERS = ("components", "fixtures", "config")
LATEST = "latest"  # stands for the id of the newest unfinished run
ARGUMENTS, OPTIONS, RARE, COMMON = "Arguments", "Options", "Rarer options", "Options of most commands"
PlatformName = Literal["github"]
_EXITS = {EXIT_OK: "success", EXIT_BUG: "internal error", EXIT_USER_ERROR: "invalid input"}
_Options = TypeVar("_Options")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def options(cls: type[_Options]) -> type[_Options]:
    """Make a class the options of a command; a field without `option` or `argument` is not on the command line."""
    for name, hint in cls.__annotations__.items():
        metadata = getattr(cls.__dict__.get(name), "metadata", {})
        if not hasattr(hint, "__metadata__"):  # plain types only; `Annotated` has its own parameter
            hint = Annotated[hint, metadata.get("parameter", Parameter(parse=False))]
        if hint.__origin__ in (int, int | None):
            hint = Annotated[hint, Parameter(converter=_whole_number)]
        cls.__annotations__[name] = hint
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


def _whole_number(_: type, tokens: Sequence[Token]) -> int:
    try:
        return int(tokens[0].value)  # cyclopts would round 1.5 to 2
    except ValueError:
        raise exceptions.CoercionError(token=tokens[0], target_type=int) from None


def _option(help: str, *flags: str, min: float | None = None, max: float | None = None, **keywords: Any) -> Parameter:
    if (min, max) != (None, None):
        keywords["validator"] = Number(gte=min, lte=max)
    keywords["name" if any(flag.startswith("--") for flag in flags) else "alias"] = flags
    return Parameter(help=help, **{"negative": (), "group": OPTIONS, "show_default": _shown_default, **keywords})


def _shown_default(value: Any) -> str | None:
    return None if value in (None, True, False, (), "") else str(value)


def option(help: str, default: Any = None, *flags: str, **keywords: Any) -> Any:
    """Declare a field as an option. It is required if `default` is `...`. A number must be from `min` to `max`.

    Short `flags` are added to the flag of the field's name, long ones replace it. `keywords` go to `Parameter`.
    """
    default = dataclasses.MISSING if default is ... else default
    return dataclasses.field(default=default, metadata={"parameter": _option(help, *flags, **keywords)})


def flag(help: str, *flags: str) -> Any:
    """Declare an option that is off unless its flag is typed."""
    return option(help, False, *flags)


def argument(help: str, default: Any = dataclasses.MISSING, metavar: str | None = None) -> Any:
    """Declare a positional argument, which is required if it has no default."""
    parameter = _option(help, group=ARGUMENTS, name=metavar)
    return dataclasses.field(default=default, kw_only=False, metadata={"parameter": parameter})


@options
class ComponentsOption:
    components: Path = option("Folder of the components.", COMPONENTS, metavar="DIR", group=COMMON)


@options
class FixturesOption:
    fixtures: Path | None = option("Folder of the test cases; default: fixtures.", metavar="DIR", group=COMMON)


@options
class ConfigOption:
    config: Path = option("Configuration folder.", CONFIG, metavar="DIR", group=COMMON)


@options
class FormatOption:
    format: Format = option("Format of the result.", "text", group=COMMON)


@options
class RecordOptions(FormatOption, ConfigOption, ComponentsOption):
    """The options of a command that reads components and their records, and prints a result."""


@options
class LibraryOptions(FormatOption, ConfigOption, FixturesOption, ComponentsOption):
    """The options of a command that reads a whole library, and prints a result."""


rare = partial(option, group=RARE)  # declares an option that only `--help --all` explains
SkipInvalid = Annotated[bool, _option("Skip invalid rows with a warning.")]
OnlyModels = Annotated[tuple[str, ...], _option("Only this model, by id; repeatable.", "--model", "-m", metavar="ID")]
Cases = Annotated[tuple[str, ...], _option("Only cases whose id matches; repeatable.", "--case", metavar="GLOB")]
Full = Annotated[bool, _option("Print all rows and details (JSON always has them).")]
MaxCost = Annotated[float | None, _option("Maximum cost of all calls together, in USD.", metavar="USD")]
MaxCalls = Annotated[int | None, _option("Maximum number of calls; retries do not count.", group=RARE)]
Concurrency = Annotated[int | None, _option("Calls at once per model; default: 8, on private hosts 256.", group=RARE)]
Batch = Annotated[bool, _option("Use batch APIs: half the price, outputs within a day.")]
Audits = Annotated[Path, _option("Folder of audits.", metavar="DIR", group=RARE)]
Judgements = Annotated[Path, _option("Folder of judge runs.", metavar="DIR", group=RARE)]
SKILL = "The component, by name or folder."
SKILLS = "Components, by name or folder; default: all."


@options
class LimitsOption:
    concurrency: Concurrency = None
    max_cost: MaxCost = None
    max_calls: MaxCalls = None


def app_of(command: Callable[[Any], int]) -> App:
    """Return the app that parses the options of a command."""
    kind = get_type_hints(command)["options"]
    return App(default_command=kind, help="", usage="", help_flags=(), version_flags=(), help_format="plaintext")


def parse(name: str, command: Callable[[Any], int], arguments: Sequence[str]) -> Any:
    """Parse a command's arguments into its options. Raise ConfigError if an argument is wrong or missing."""
    try:
        return app_of(command)(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except exceptions.CycloptsError as problem:
        raise ConfigError(f"{_message(problem)}; see skill-evaluator {name} --help") from None


def _message(problem: exceptions.CycloptsError) -> str:
    if isinstance(problem, exceptions.UnusedCliTokensError):
        return f"unexpected argument '{(problem.unused_tokens or [''])[0]}'"
    if isinstance(problem, exceptions.MissingArgumentError) and problem.argument and not problem.keyword:
        name = problem.argument.name
        return f"missing option {name}" if problem.argument.index is None else f"missing {name[2:].upper()}"
    if isinstance(problem, exceptions.UnknownOptionError):
        option = problem.token.keyword
        if any(option in argument.names for argument in problem.argument_collection):
            return f"options after -- are not read; write {option} before it"
    problem.verbose = False
    text, _, name = str(problem).rstrip(".").partition(". Did you mean ")
    return text[:1].lower() + text[1:] + (f" (did you mean {name})" if name else "")


def print_help(name: str, command: Callable[[Any], int], *, whole: bool) -> None:
    """Print the help of the command `name`. Without `whole`, do not explain rare options."""
    app = app_of(command)
    usage = f"Usage: skill-evaluator {name} [OPTIONS]"
    for argument in app.assemble_argument_collection():
        if argument.index is not None:
            label = argument.name[2:].upper() + "..." * argument.token_count()[1]
            usage += f" {label}" if argument.required else f" [{label}]"
    # cyclopts would join the lines of a docstring and break them behind a space
    paragraphs = [textwrap.fill(part, 80) for part in cleandoc(str(command.__doc__)).split("\n\n")]
    print(usage, *paragraphs, sep="\n\n", end="\n\n")
    app.help_formatter = partial(_print_panel, whole=whole)
    app.help_print([])
    module = sys.modules[command.__module__]
    exits = _EXITS | getattr(module, "EXITS", {}).get(command.__name__, {})
    codes = " · ".join(f"{code} {meaning}" for code, meaning in exits.items())
    print(f"\n{textwrap.fill(f'Exit codes: {codes}', 80)}\n")
    print("Examples:", *module.EXAMPLES[command.__name__], sep="\n  ")


def _print_panel(console: Any, layout: Any, panel: HelpPanel, *, whole: bool) -> None:
    # omit the --name of a positional argument, which works but is not documented
    panel.entries = [each.copy(positive_names=()) if each.positional_label else each for each in panel.entries]
    if whole or panel.title != RARE:
        DefaultFormatter()(console, layout, panel)
    else:
        names = ", ".join(entry.positive_names[0] for entry in panel.entries)
        print(f"\n{textwrap.fill(f'{RARE} (--help --all): {names}', 80)}")


def words_of(options: Any, *names: str) -> list[str]:
    """Return the options `names` as command-line arguments, positional ones first.

    Without names, return those in `FOLDERS`: components, fixtures and config. Options with default values are omitted.
    """
    parts = list[str]()
    for argument in App(default_command=type(options)).assemble_argument_collection():
        field = argument.field_info
        value = getattr(options, field.name)
        if field.name in (names or FOLDERS) and value != field.default:
            label = [argument.name] if argument.index is None else []
            for item in value if isinstance(value, tuple) else (value,):
                parts += label if item is True else [*label, str(item)]
    return parts


def request_of(kind: type[_Options], arguments: Mapping[str, Any]) -> _Options:
    """Build a request of class `kind` from the `locals()` of a `Library` method.

    Arguments that are not fields of `kind` are ignored. If a field is a tuple, a single value becomes a tuple with
    this value. The folders are those of `self`, the library. Raise ConfigError for a value of the wrong type.
    """
    hints, library = get_type_hints(kind), arguments.get("self")
    folders = {name: getattr(library, name) for name in FOLDERS if library}
    options = {name: value for name, value in {**folders, **arguments}.items() if name in hints}
    for name, value in options.items():
        if get_origin(hints[name]) is tuple:
            values = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
            value = tuple(str(each) if isinstance(each, Path) else each for each in values)
        elif isinstance(value, Path):
            value = str(value)
        try:
            options[name] = TypeAdapter(hints[name]).validate_python(value)
        except ValidationError as problem:
            raise ConfigError(f"argument '{name}': {first_problem(problem)}") from None
    return kind(**options)
