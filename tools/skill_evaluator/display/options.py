"""The options of a command: a frozen dataclass with one `option("help", default)` per line.

Each package declares the options of its use cases, and cyclopts parses the command line into them. Options that several
commands share are declared here, with one help text and one default.
"""

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

from cyclopts import Parameter
from cyclopts.validators import Number

from skill_evaluator.display.safe_text import visible
from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import ConfigError, SkillEvaluatorError

COMPONENTS = Path("components")
CONFIG = Path(".evaluator")
AUDITS = Path("audits")
JUDGEMENTS = Path("judgements")
FOLDERS = ("components", "fixtures", "config")
LATEST = "latest"  # stands for the id of the newest unfinished run
SECTIONS = ARGUMENTS, OPTIONS, RARE, COMMON = "Arguments", "Options", "Rarer options", "Options of most commands"
PlatformName = Literal["github"]
_VALUES = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}
_Options = TypeVar("_Options")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def options(cls: type[_Options]) -> type[_Options]:
    """Make a class the options of a command; a field without `option` or `argument` is not on the command line."""
    for name, hint in cls.__annotations__.items():
        metadata = getattr(cls.__dict__.get(name), "metadata", {})
        if not hasattr(hint, "__metadata__"):  # plain types only; `Annotated` has its own converter
            cls.__annotations__[name] = Annotated[hint, metadata.get("parameter", Parameter(parse=False))]
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


def option(
    help: str, default: Any = None, *flags: str, min: float | None = None, max: float | None = None, **keywords: Any
) -> Any:
    """Declare a field as an option. It is required if `default` is `...`. If `min` is set, a number is at least `min`.

    `max` requires `min`. Short `flags` are added to the flag of the field's name, long ones replace it. `keywords` go
    to `cyclopts.Parameter`.
    """
    if any(flag.startswith("--") for flag in flags):
        keywords["name"] = flags
    else:
        keywords["alias"] = flags
    if min is not None:
        keywords["validator"] = Number(gte=min, lte=max)
    parameter = Parameter(help=help, **{"group": OPTIONS, **keywords})
    return dataclasses.field(
        default=dataclasses.MISSING if default is ... else default, metadata={"parameter": parameter}
    )


def flag(help: str, *flags: str) -> Any:
    """Declare an option that is off unless its flag is typed."""
    return option(help, False, *flags)


def rare(help: str, default: Any = None, *flags: str, **keywords: Any) -> Any:
    """Declare an option for workflows, which only `--help --all` shows."""
    return option(help, default, *flags, group=RARE, **keywords)


def on_platform(effect: str) -> Any:
    """Declare the option for the CI platform that runs the command; `effect` is what the command then does as well."""
    return rare(f"On GitHub Actions: also {effect}.")


def argument(help: str, default: Any = dataclasses.MISSING, metavar: str | None = None) -> Any:
    """Declare a positional argument, which is required if it has no default."""
    parameter = Parameter(help=help, name=metavar, metavar=metavar, group=ARGUMENTS)
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

    format: Format = option("Format of the result.", "text", metavar="text|json|markdown", group=COMMON)


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
Concurrency = Annotated[int | None, _shared("Calls at once per model; default 8, private networks ≤ 256.", group=RARE)]
Batch = Annotated[bool, _shared("Use batch APIs: half the price, outputs within a day.")]
Audits = Annotated[Path, _shared("Folder of audits.", metavar="DIR", group=RARE)]
Judgements = Annotated[Path, _shared("Folder of judge runs.", metavar="DIR", group=RARE)]
SKILL = "The component, by name or folder."
SKILLS = "Components, by name or folder; default: all."


@options
class LimitsOption:
    """The limits of a command that calls models."""

    concurrency: Concurrency = None
    max_cost: MaxCost = None
    max_calls: MaxCalls = None


def declared(kind: type) -> Iterator[tuple[dataclasses.Field[Any], Any, Any]]:
    """Yield the field, the cyclopts parameter and the type of each command-line option of an options class."""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        hint, parameter = get_args(hints[field.name])
        if parameter.parse is not False:
            yield field, parameter, hint


def help_of(kind: type) -> dict[str, list[tuple[str, str]]]:
    """Return the help rows of an options class by section. A row is the option and its text with the default."""
    rows = {section: list[tuple[str, str]]() for section in SECTIONS}
    for field, parameter, hint in declared(kind):
        value = parameter.metavar or (_value(hint) if field.kw_only else field.name.upper())
        if field.kw_only:
            value = ", ".join([*flags_of(field, parameter), *parameter.alias]) + f" {value}" * bool(value)
        elif field.default is not dataclasses.MISSING:
            value = f"[{value}]"
        default = field.default in (dataclasses.MISSING, None, True, False, (), "") or f" [default: {field.default}]"
        rows[str(parameter.group[0])].append((value, f"{parameter.help}{'' if default is True else default}"))
    return rows


def flags_of(field: dataclasses.Field[Any], parameter: Any) -> tuple[str, ...]:
    """Return the flags of an option, then its negative flags. Short aliases are not included."""
    return (*(parameter.name or (f"--{field.name.replace('_', '-')}",)), *(parameter.negative or ()))


def _value(hint: Any) -> str:
    members = [member for member in get_args(hint) if member is not NoneType]
    if get_origin(hint) is Literal:
        return "|".join(map(str, members))
    return _value(members[0]) if members else _VALUES.get(hint, "")


def words_of(options: Any, *names: str) -> list[str]:
    """Return the options `names` (default: the folders) as command-line arguments, except those with default values."""
    arguments, parts = list[str](), list[str]()
    for field, parameter, _ in declared(type(options)):
        value = getattr(options, field.name)
        if field.name not in (names or FOLDERS) or value == field.default:
            continue
        values = value if isinstance(value, tuple) else (value,)
        if field.kw_only:
            flag = flags_of(field, parameter)[0]
            parts += [word for item in values for word in (flag, *([] if item is True else [str(item)]))]
        else:
            arguments += map(str, values)
    return arguments + parts


def folders_of(options: Any) -> dict[str, Any]:
    """Return the options of a command that name the library's folders, as keyword arguments of `Library`."""
    return {name: getattr(options, name) for name in FOLDERS if hasattr(options, name)}


def keywords_of(options: Any, request: type, *left_out: str) -> dict[str, Any]:
    """Return the values of the fields of `request` by name, without folders, `format`, `platform` and `left_out`."""
    names = (field.name for field in dataclasses.fields(request))
    return {name: getattr(options, name) for name in names if name not in (*FOLDERS, "format", "platform", *left_out)}


def request_of(kind: type[_Options], arguments: Mapping[str, Any]) -> _Options:
    """Make options of class `kind` from the arguments of a method of `Library`, with the folders of `self`.

    A single value may stand for several. Arguments that are no options are ignored. Raise ConfigError for a value of a
    different type.
    """
    hints, library = get_type_hints(kind), arguments.get("self")
    folders = {name: getattr(library, name) for name in FOLDERS if library}
    values = {name: value for name, value in {**folders, **arguments}.items() if name in hints}
    return kind(**{name: _converted(name, hints[name], value) for name, value in values.items()})


def _converted(name: str, hint: Any, value: Any) -> Any:
    from pydantic import TypeAdapter, ValidationError

    if get_origin(hint) is tuple:
        values = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
        value = tuple(str(each) if isinstance(each, Path) else each for each in values)
    elif isinstance(value, Path):
        value = str(value)
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as problem:
        from skill_evaluator.files import first_problem

        raise ConfigError(f"argument '{name}': {first_problem(problem)}") from None


def agreed(question: str, *, yes: bool) -> bool:
    """Return True if `yes`, or if the user answers y on a terminal. Otherwise return False."""
    if yes or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return yes
    print(f"{question} [y/N]: ", end="", flush=True)
    return input().strip().lower() in ("y", "yes")


def leave_out(problem: SkillEvaluatorError) -> None:
    """Print a warning that an invalid row is left out because of `problem`."""
    print(f"warning: {visible(str(problem))}; left out", file=sys.stderr)
