"""The options of commands: a frozen dataclass per command with one `option("help", default)` per line.

Each package declares the options of its use cases, and cyclopts parses the command line into them. Options that several
commands share are declared here, with one help text and one default.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_origin, get_type_hints

from cyclopts import App, CoercionError, Parameter, Token
from cyclopts.validators import Number
from pydantic import TypeAdapter, ValidationError

from skill_evaluator.display.pages import Format
from skill_evaluator.errors import ConfigError
from skill_evaluator.files import first_problem

COMPONENTS = Path("components")
CONFIG = Path(".evaluator")
AUDITS = Path("audits")
JUDGEMENTS = Path("judgements")
FOLDERS = ("components", "fixtures", "config")
LATEST = "latest"  # stands for the id of the newest unfinished run
ARGUMENTS, OPTIONS, RARE, COMMON = "Arguments", "Options", "Rarer options", "Options of most commands"
PlatformName = Literal["github"]
_HIDDEN_DEFAULTS = (..., None, True, False, (), "", dataclasses.MISSING)
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
        raise CoercionError(token=tokens[0], target_type=int) from None


def option(
    help: str, default: Any = None, *flags: str, min: float | None = None, max: float | None = None, **keywords: Any
) -> Any:
    """Declare a field as an option. It is required if `default` is `...`. A number must be from `min` to `max`.

    `max` has no effect without `min`. Short `flags` are added to the flag of the field's name, long ones replace it.
    `keywords` go to `cyclopts.Parameter`.
    """
    if any(flag.startswith("--") for flag in flags):
        keywords["name"] = flags
    else:
        keywords["alias"] = flags
    if min is not None:
        keywords["validator"] = Number(gte=min, lte=max)
    shows_default = default not in _HIDDEN_DEFAULTS
    parameter = Parameter(help=help, show_default=shows_default, **{"negative": (), "group": OPTIONS, **keywords})
    return dataclasses.field(
        default=dataclasses.MISSING if default is ... else default, metadata={"parameter": parameter}
    )


def flag(help: str, *flags: str) -> Any:
    """Declare an option that is off unless its flag is typed."""
    return option(help, False, *flags)


def rare(help: str, default: Any = None, *flags: str, **keywords: Any) -> Any:
    """Declare an option that only `--help --all` shows, such as an option for workflows."""
    return option(help, default, *flags, group=RARE, **keywords)


def argument(help: str, default: Any = dataclasses.MISSING, metavar: str | None = None) -> Any:
    """Declare a positional argument, which is required if it has no default."""
    shown = default not in _HIDDEN_DEFAULTS
    parameter = Parameter(help=help, name=metavar, negative=(), group=ARGUMENTS, show_default=shown)
    return dataclasses.field(default=default, kw_only=False, metadata={"parameter": parameter})


@options
class ComponentsOption:
    """The option for the folder of the components."""

    components: Path = option("Folder of the components.", COMPONENTS, metavar="DIR", group=COMMON)


@options
class FixturesOption:
    """The option for the folder of the cases."""

    fixtures: Path | None = option("Folder of the test cases; default: fixtures.", metavar="DIR", group=COMMON)


@options
class ConfigOption:
    """The option for the folder of models.yaml and settings.yaml."""

    config: Path = option("Configuration folder.", CONFIG, metavar="DIR", group=COMMON)


@options
class FormatOption:
    """The option for the format of a printed result."""

    format: Format = option("Format of the result.", "text", group=COMMON)


@options
class RecordOptions(FormatOption, ConfigOption, ComponentsOption):
    """The options of a command that reads components and their records, and prints a result."""


@options
class LibraryOptions(FormatOption, ConfigOption, FixturesOption, ComponentsOption):
    """The options of a command that reads a whole library, and prints a result."""


def _shared(help: str, *flags: str, **keywords: Any) -> Any:
    return option(help, None, *flags, **keywords).metadata["parameter"]


SkipInvalid = Annotated[bool, _shared("Skip invalid rows with a warning.")]
OnlyModels = Annotated[tuple[str, ...], _shared("Only this model, by id; repeatable.", "--model", "-m", metavar="ID")]
Cases = Annotated[tuple[str, ...], _shared("Only cases whose id matches; repeatable.", "--case", metavar="GLOB")]
Full = Annotated[bool, _shared("Print all rows and details (JSON always has them).")]
MaxCost = Annotated[float | None, _shared("Maximum cost of all calls together, in USD.", metavar="USD")]
MaxCalls = Annotated[int | None, _shared("Maximum number of calls; retries do not count.", group=RARE)]
Concurrency = Annotated[int | None, _shared("Calls at once per model; default: 8, on private hosts 256.", group=RARE)]
Batch = Annotated[bool, _shared("Use batch APIs: half the price, outputs within a day.")]
Audits = Annotated[Path, _shared("Folder of audits; default: audits.", metavar="DIR", group=RARE)]
Judgements = Annotated[Path, _shared("Folder of judge runs; default: judgements.", metavar="DIR", group=RARE)]
SKILL = "The component, by name or folder."
SKILLS = "Components, by name or folder; default: all."


@options
class LimitsOption:
    """The limits of a command that calls models."""

    concurrency: Concurrency = None
    max_cost: MaxCost = None
    max_calls: MaxCalls = None


def words_of(options: Any, *names: str) -> list[str]:
    """Return the options `names` as command-line arguments, positional ones first.

    Without names, return those in `FOLDERS`: components, fixtures and config. Options with default values are omitted.
    """
    arguments, parts = list[str](), list[str]()
    for argument in App(default_command=type(options)).assemble_argument_collection():
        field = argument.field_info
        value = getattr(options, field.name)
        if field.name not in (names or FOLDERS) or value == field.default:
            continue
        values = value if isinstance(value, tuple) else (value,)
        if argument.index is None:
            parts += [word for item in values for word in (argument.name, *([] if item is True else [str(item)]))]
        else:
            arguments += map(str, values)
    return arguments + parts


def request_of(kind: type[_Options], arguments: Mapping[str, Any]) -> _Options:
    """Build a request of class `kind` from the `locals()` of a `Library` method.

    Arguments that are not fields of `kind` are ignored. If a field is a tuple, a single value becomes a tuple with
    this value. The folders are those of `self`, the library. Raise ConfigError for a value of the wrong type.
    """
    hints, library = get_type_hints(kind), arguments.get("self")
    folders = {name: getattr(library, name) for name in FOLDERS if library}
    options = {}
    for name, value in {**folders, **arguments}.items():
        if name not in hints:
            continue
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
