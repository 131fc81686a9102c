"""Make a command line of a function and the frozen dataclass of options that it takes.

No default stands here: a room's request class has its own, `display/options.py` those that commands share, and
`library/config.py` those of settings.yaml.
"""

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from skill_evaluator.display.options import COMMON, COMPONENTS, CONFIG, Declared, FormatOption, declared
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_BUG, EXIT_OK, EXIT_USER_ERROR, ConfigError, SkillEvaluatorError
from skill_evaluator.text import counted, nearest

_EXITS = {EXIT_OK: "success", EXIT_BUG: "internal error", EXIT_USER_ERROR: "invalid input"}
_LAST = ("dry_run", "max_cost", "resume", "review", "batch", "skip_invalid", *COMMON)  # in the help of every command
_VALUES = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}
_RARE, _COMMON = "Rarer options", "Options of most commands"
_RANGE = re.compile(r"(; )?([\d.]+<=)?x[<>=]+[\d.]+|(; )?required")  # the error says it when it matters
_LEFT = 26  # columns of an option and its value


class PlainCommand(TyperCommand):
    """A command whose help is plain text: what people type; with `--all` also what only workflows do."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; what is not in brackets is needed."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options in two columns, and where those are that are left out."""
        sections = dict[str, list[Any]]({"Arguments": [], "Options": [], _RARE: [], _COMMON: []})
        for each in list[Any](self.params):
            section = _COMMON if each.name in COMMON else _RARE if each.hidden else "Options"
            sections["Arguments" if each.param_type_name == "argument" else section].append(each)
        if not (ctx.obj and ctx.obj.get("all")):
            common, rare = sections.pop(_COMMON), sections.pop(_RARE)
        else:
            common, rare = [], []
        for heading, parameters in sections.items():
            if parameters:
                with formatter.section(heading):
                    formatter.write_dl([_row(each, ctx) for each in parameters], col_max=_LEFT)
        further = [f"{', '.join(each.opts[0] for each in common)} (skill-evaluator --help)"] if common else []
        further += [f"{counted(len(rare), 'rarer option')} (--help --all)"] if rare else []
        if further:
            formatter.write_paragraph()
            formatter.write_text(f"Also {' and '.join(further)}.")


def _row(parameter: Any, ctx: Any) -> tuple[str, str]:
    """Return a parameter as it is typed, and what it does."""
    parameter.hidden = False
    name, text = parameter.get_help_record(ctx)
    text = _RANGE.sub("", text).replace("  []", "")
    return (parameter.metavar if parameter.param_type_name == "argument" else name), text


def component_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the components that a shell may complete a word to."""
    from skill_evaluator.library.sources import component_names as names_in
    from skill_evaluator.library.sources import components_of

    config = Path(ctx.params.get("config") or CONFIG)
    try:
        names = names_in(components_of(Path(ctx.params.get("components") or COMPONENTS), config, COMPONENTS))
    except SkillEvaluatorError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def agreed(question: str, *, yes: bool) -> bool:
    """Return whether a person wants it: so it was typed, or is answered on a terminal; elsewhere nobody is asked."""
    return yes or (sys.stdin.isatty() and sys.stdout.isatty() and typer.confirm(question))


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


_COMPLETED = {"components": component_names, "models": model_ids, "runs": run_ids}


def command_of(
    story: Callable[..., int], name: str, examples: Sequence[str], exits: Mapping[int, str] = MappingProxyType({})
) -> Any:
    """Return the command that reads its options into the dataclass that `story` takes, and exits with its code.

    A story that also takes a `form` prints a result. The help ends with the exit codes, those in `exits` and the usual
    ones, and with examples.
    """
    options, prints = get_type_hints(story)["options"], "form" in get_type_hints(story)
    if prints:
        bases = (options, FormatOption)
        options = dataclasses.make_dataclass(options.__name__, (), bases=bases, frozen=True, kw_only=True)
    hints = get_type_hints(options, include_extras=True)

    def run(**values: Any) -> None:
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
        }
        for name in components:
            given[name] = _names_of(given[name], given["components"])
        if given.get("fixtures", given) is None and not given.get("no_cases"):
            from skill_evaluator.library.config import load_settings

            if elsewhere := load_settings(given["config"]).fixtures:
                from skill_evaluator.ci.fixtures import fetched_fixtures

                given["fixtures"], _ = fetched_fixtures(elsewhere)
        if "components" in given:
            from skill_evaluator.library.sources import components_of

            given["components"] = components_of(given["components"], given.get("config", CONFIG), COMPONENTS)
        read = options(**given)
        raise typer.Exit(story(read, read.format) if prints else story(read))

    fields = sorted(
        dataclasses.fields(options), key=lambda field: _LAST.index(field.name) if field.name in _LAST else -1
    )
    typed = [(field, hints[field.name], declared(field, hints[field.name])) for field in fields]
    components = [field.name for field, _, how in typed if how and how.how.get("completes") == "components"]
    run.__doc__ = story.__doc__
    run.__annotations__ = {}
    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [_parameter(field, hint, how) for field, hint, how in typed if how is not None]
    )
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    codes = " · ".join(f"{code} {meaning}" for code, meaning in sorted({**_EXITS, **exits}.items()))
    lines = "\n".join(examples)
    epilog = f"Exit codes: {codes}\n\n\b\nExamples:\n{lines}"
    application.command(name, cls=PlainCommand, epilog=epilog)(run)
    return typer.main.get_command(application)


def _parameter(field: dataclasses.Field[Any], hint: Any, as_declared: Declared) -> Parameter:
    """Return the parameter that Typer reads a field from."""
    kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(kind) is tuple:  # Typer knows lists, where a frozen dataclass has tuples
        kind = list[get_args(kind)[0]]  # type: ignore[misc]
    how = dict(as_declared.how)
    how.setdefault("metavar", field.name.upper() if as_declared.flags is None else _value(kind))
    if "completes" in how:
        how["autocompletion"] = _COMPLETED[how.pop("completes")]
    flags = as_declared.flags
    if flags is not None and field.default is not True and not any(flag.startswith("--") for flag in flags):
        flags = (f"--{field.name.replace('_', '-')}", *flags)  # for True, Typer makes --x and --no-x
    typed = typer.Argument(**how) if flags is None else typer.Option(*flags, **how)
    default = Parameter.empty if field.default is dataclasses.MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, typed])


def _names_of(typed: Any, components: Path) -> Any:
    """Return the names of components whose folders are typed, as a shell completes them, and all else as it is."""
    if not typed:
        return typed
    if isinstance(typed, tuple):
        return tuple(_names_of(each, components) for each in typed)
    path = Path(typed)
    is_folder = os.path.isdir(typed)  # noqa: PTH112 - what no folder can be called is none, too
    return path.name if is_folder and path.parent.resolve() == components.resolve() else typed


def _value(kind: Any) -> str | None:
    """Return what stands for the value of an option in the help: a word for its type, or all values there are."""
    members = [member for member in get_args(kind) if member is not NoneType]
    if get_origin(kind) is Literal:
        return "|".join(map(str, members))
    return _value(members[0]) if members else _VALUES.get(kind)


def named_verdicts(fail_on: Sequence[str]) -> list[str]:
    """Return the verdicts that --fail-on names, apart or with commas between; raise ConfigError for an unknown one."""
    from skill_evaluator.library.config import VerdictName

    names = [name.strip() for part in fail_on for name in part.split(",") if name.strip()]
    for name in names:
        if name not in get_args(VerdictName):
            raise ConfigError(f"unknown verdict '{name}' for --fail-on {nearest(name, get_args(VerdictName))}")
    return names
