"""How the options of a command are declared: a frozen dataclass, an `option("help", default)` a line.

It stands on the ground so that a room declares what its own story takes; `commands` makes a command line of it. Here
are also the options that several commands share: one wording and one default.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

from skill_evaluator.display.sheets import Format
from skill_evaluator.errors import ConfigError
from skill_evaluator.text import nearest

COMPONENTS = Path("components")
CONFIG = Path(".evaluator")
AUDITS = Path("audits")
JUDGEMENTS = Path("judgements")
FOLDERS = ("components", "fixtures", "config")  # of a library
COMMON = (*FOLDERS, "format")  # explained once, for all commands that have them
PlatformName = Literal["github"]
_Options = TypeVar("_Options")


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """How an option or an argument is typed: its flags (None: an argument), and what else `typer` takes, by name.

    Its `completes` names what a shell may complete a word to: "components", "models" or "runs".
    """

    flags: tuple[str, ...] | None
    how: Mapping[str, Any]


@dataclass_transform(frozen_default=True, kw_only_default=True)
def options(cls: type[_Options]) -> type[_Options]:
    """Make a class of annotated fields the options of a command."""
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


def option(help: str, default: Any = None, *flags: str, **how: Any) -> Any:
    """Declare an option. Its flag is the field's name; `flags` sets a different or short one; `...` makes it required.

    Put into `how` what else `typer.Option` takes.

    >>> option("Calls per case and model.", 3, "-n").default
    3
    """
    if default is ...:
        default = dataclasses.MISSING
    return dataclasses.field(default=default, metadata={"declared": Declared(flags, {"help": help, **how})})


def flag(help: str, *flags: str, **how: Any) -> Any:
    """Declare an option that is off unless its flag is typed."""
    return option(help, False, *flags, **how)


def rare(help: str, default: Any = None, *flags: str, **how: Any) -> Any:
    """Declare an option that workflows type and people hardly ever: only `--help --all` shows it."""
    return option(help, default, *flags, hidden=True, **how)


def argument(help: str, default: Any = dataclasses.MISSING, **how: Any) -> Any:
    """Declare a positional argument, which is required if it has no default."""
    return dataclasses.field(default=default, metadata={"declared": Declared(None, {"help": help, **how})})


@options
class ComponentsOption:
    """A command that reads components."""

    components: Path = option(
        "Folder of the components; default: components.", COMPONENTS, metavar="DIR", show_default=False
    )


@options
class FixturesOption:
    """A command that reads cases."""

    fixtures: Path | None = option("Folder of their cases; default: fixtures.", metavar="DIR")


@options
class ConfigOption:
    """A command that reads models.yaml or settings.yaml."""

    config: Path = option(
        "With models.yaml and settings.yaml; default: .evaluator.", CONFIG, metavar="DIR", show_default=False
    )


@options
class PlatformOption:
    """A command that CI runs, too."""

    platform: PlatformName | None = rare("Also tell the CI this runs in: outputs, summary, marks on files.")


@options
class FormatOption:
    """A command that prints a result."""

    format: Format = option(
        "text, json or markdown, on stdout; default: text.", "text", metavar="FORM", show_default=False
    )


def shared(help: str, *flags: str, **how: Any) -> Declared:
    """Declare an option that several classes have, as `Annotated[tuple[str, ...], shared("Only these cases.")]`."""
    return Declared(flags, {"help": help, **how})


def _named(help: str, metavar: str = "COMPONENT") -> Declared:
    """Declare a positional argument that names components."""
    return Declared(None, {"help": help, "metavar": metavar, "completes": "components"})


SkipInvalid = Annotated[bool, shared("Leave out a row that is wrong, with a warning.")]
Skill = Annotated[str, _named("The component, by name or folder.")]
OneOrMore = Annotated[
    str, _named("The component, by name, folder or pattern; default: all that are ready.", "[COMPONENT]")
]
Names = Annotated[tuple[str, ...], _named("Components, by name or folder; default: all.")]
OnlyModels = Annotated[
    tuple[str, ...],
    shared("Only this model of models.yaml; repeatable.", "--model", "-m", metavar="ID", completes="models"),
]
Cases = Annotated[tuple[str, ...], shared("Only these cases; repeatable.", "--case", metavar="GLOB")]
Full = Annotated[bool, shared("Fold and shorten nothing; JSON never does.")]
MaxCost = Annotated[float | None, shared("Spend at most this, all models together.", metavar="USD")]
MaxCalls = Annotated[int | None, shared("Stop after N calls over all models; retries are free.", hidden=True)]
Concurrency = Annotated[int | None, shared("Calls in flight per model; default 8 or 256.", hidden=True)]
Batch = Annotated[bool, shared("Ask by the vendors' batch APIs: half the price, answers within a day; waits.")]
Reason = Annotated[str, shared("Reason shown in the job summary.", hidden=True)]
Audits = Annotated[Path, shared("Where audits are kept.", metavar="DIR", hidden=True)]
Judgements = Annotated[Path, shared("Where judgings are kept.", metavar="DIR", hidden=True)]


def declared(field: dataclasses.Field[Any], hint: Any) -> Declared | None:
    """Return how a field is typed; None if only the program sets it."""
    return field.metadata.get("declared") or (get_args(hint)[1] if get_origin(hint) is Annotated else None)


def typed(options: Any, *left_out: str) -> list[str]:
    """Return the arguments and flags that give these options again, but what has its default or is `left_out`."""
    return words_of(options, *(field.name for field in dataclasses.fields(options) if field.name not in left_out))


def words_of(options: Any, *names: str) -> list[str]:
    """Return the words that give options again (all of the library, unless named), without those at their default."""
    hints = get_type_hints(type(options), include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(options)}
    arguments, words = list[str](), list[str]()
    for field in (fields[name] for name in names or FOLDERS if name in fields):
        how, value = declared(field, hints[field.name]), getattr(options, field.name)
        if how is None or value == field.default:
            continue
        values = value if isinstance(value, tuple) else (value,)
        if how.flags is None:
            arguments += map(str, values)
            continue
        long = [flag for flag in how.flags if flag.startswith("--")] or [f"--{field.name.replace('_', '-')}"]
        words += [word for one in values for word in (long[0], *([] if one is True else [str(one)]))]
    return arguments + words


def folders_of(options: Any) -> dict[str, Any]:
    """Return the folders of the library that the options of a command name, as `Library` takes them."""
    return {name: getattr(options, name) for name in FOLDERS if hasattr(options, name)}


def keywords_of(options: Any, request: type, *left_out: str) -> dict[str, Any]:
    """Return the options of a request as keyword arguments of a method of `Library`, without those `left_out`."""
    names = (field.name for field in dataclasses.fields(request))
    return {name: getattr(options, name) for name in names if name not in (*COMMON, "platform", *left_out)}


def request_of(kind: type[_Options], library: Any = None, /, **given: Any) -> _Options:
    """Make the options of a command from a program: a text may stand for a path, one name or a list for several.

    Its folders are those of the library. Raise ConfigError for an option that is unknown or of a different type.

    >>> request_of(ComponentsOption, components="prompts").components.name
    'prompts'
    """
    hints = get_type_hints(kind)
    for name in given.keys() - hints:
        raise ConfigError(f"there is no option '{name}' {nearest(name, hints)}")
    places = {name: getattr(library, name) for name in FOLDERS if library and name in hints}
    return kind(**{name: _fitting(name, hints[name], value) for name, value in (places | given).items()})


def _fitting(name: str, hint: Any, value: Any) -> Any:
    """Return a value as an option of this type has it; raise ConfigError."""
    members = get_args(hint)
    if get_origin(hint) is tuple:
        values = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
        return tuple(_fitting(name, members[0], one) for one in values)
    kinds = members if NoneType in members else (hint,)
    choices = [choice for kind in kinds for choice in get_args(kind)]
    if isinstance(value, (str, Path)) and (Path in kinds or str in kinds):
        return Path(value) if Path in kinds else str(value)
    allowed = value in choices or (value is None and NoneType in kinds)
    if not (allowed if choices else isinstance(value, (*kinds, int) if float in kinds else kinds)):
        names = [str(getattr(each, "__name__", each)) for each in choices or kinds]
        raise ConfigError(f"'{name}' takes {' or '.join(names)}, not {value!r}")
    return value


@options
class LimitsOption:
    """A command that asks models."""

    concurrency: Concurrency = None
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
