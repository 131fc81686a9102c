"""A check as people write it → `Check`: what is checked, under which id and with which digest."""

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import ConfigDict, Field, PositiveFloat, StringConstraints, ValidationError, create_model, model_validator

from skill_evaluator.checks import CHECKS, Kind
from skill_evaluator.checks.values import NOTHING, Pointer, Raw, value_at
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.files import SizeLimit, StrictModel, first_problem, read_text
from skill_evaluator.identifiers import Tier
from skill_evaluator.parsing import Parsed
from skill_evaluator.text import canonical_json, digest, nearest

CheckId = Annotated[str, StringConstraints(pattern=r"^\w[\w-]*$", max_length=80)]
_LONGEST = 48  # characters of an id that is made of a text
_SOURCE = SizeLimit(max_bytes=1_000_000)


class _OneCheck(StrictModel):
    """What all checks have: the kinds come as fields, of which exactly one is set."""

    model_config = ConfigDict(coerce_numbers_to_str=True)
    ignore_case: bool = Field(default=False, description="whether A and a are the same")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, value: Any) -> Any:
        keys = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = [key for key in value if key not in keys] if isinstance(value, Mapping) else []
        if unknown:
            raise ValueError(f"unknown check '{unknown[0]}' {nearest(str(unknown[0]), keys)}")
        return value

    @model_validator(mode="after")
    def _refuse_several(self) -> Self:
        kinds = self._kinds()
        if len(kinds) > 1 or (not kinds and "at" not in type(self).model_fields):
            several = f"has {' and '.join(kinds)}; write a check for each" if kinds else "says nothing to check"
            raise ValueError(f"one check {several}")
        return self

    def _kinds(self) -> list[str]:
        return [name for name in _KINDS if name in self.model_fields_set]

    @property
    def kind(self) -> str:
        """The kind that is set; empty of a place that only has to be there."""
        return next(iter(self._kinds()), "")


def _fields(kinds: Mapping[str, Kind]) -> dict[str, Any]:
    twins = {f"not_{name}": kind for name, kind in kinds.items() if kind.negatable}
    return {name: (kind.argument, Field(default=None)) for name, kind in {**kinds, **twins}.items()}


_IN_PLACES = {name: kind for name, kind in CHECKS.items() if kind.in_places}
_AtPlace: Any = create_model("CheckAtPlace", __base__=_OneCheck, at=(Pointer, ...), **_fields(_IN_PLACES))


class _Weighed(_OneCheck):
    id: CheckId | None = Field(default=None, description="its name in reports; made from its text where it has none")
    weight: PositiveFloat = Field(default=1.0, le=1e6, description="its share in the metric checks")
    tier: Tier | None = Field(default=None, description="how much it weighs in the verdict; advisory without one")


if TYPE_CHECKING:
    DeclaredCheck = _Weighed
else:
    DeclaredCheck = create_model(
        "DeclaredCheck",
        __base__=_Weighed,
        __doc__="One check: exactly one kind, and perhaps its id, weight and tier.",
        **_fields(CHECKS),
        json_at=(_AtPlace, Field(default=None, alias="json", description='such as {"at": "/total", "equals": 9}')),
    )
_KINDS = tuple(name for name in DeclaredCheck.model_fields if name not in _Weighed.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check, ready to be asked. `words` is how people wrote it.

    `at` is the place in the parsed answer that it looks at, None for the raw text; without a `kind` something has to be
    there. `source` is the file of a python check. The digest is of all that decides whether an answer passes.
    """

    id: str
    kind: str
    argument: Any
    negated: bool
    ignore_case: bool
    at: str | None
    weight: float
    tier: Tier | None
    words: str
    digest: str
    source: str | None = None


def read_checks(
    declared: Iterable[DeclaredCheck],
    folder: Path,
    where: Path,
    error: type[SkillEvaluatorError],
    inside: Callable[[Path], Path],
    before: Iterable[Check] = (),
) -> tuple[Check, ...]:
    """Return the checks that `where` declares, behind those `before` them; raise `error`.

    Files of python checks lie below `folder`, and are only parsed; `inside` refuses a path that leads out.
    """
    checks = {check.id: check for check in before}
    for one in declared:
        check = _read_check(one, folder, where, error, inside)
        if check.id in checks:
            raise error(f"two checks have the id '{check.id}' in {where}; give one of them another `id`")
        checks[check.id] = check
    return tuple(checks.values())


def check_of(declared: Mapping[str, Any]) -> Check:
    """Return the check that a mapping declares; raise ValueError with one line."""
    try:
        [check] = read_checks([DeclaredCheck.model_validate(declared)], Path(), Path(), SkillEvaluatorError, Path)
    except ValidationError as problem:
        raise ValueError(first_problem(problem)) from None
    return check


def _read_check(
    declared: DeclaredCheck, folder: Path, where: Path, error: type[SkillEvaluatorError], inside: Callable[[Path], Path]
) -> Check:
    name, at, source = declared.kind, None, None
    argument: Any = getattr(declared, name)
    ignore_case = declared.ignore_case
    if name == "json_at":
        at, name = argument.at, argument.kind
        ignore_case = ignore_case or argument.ignore_case
        argument = getattr(argument, name) if name else None
    words = (f"json {at} " if at is not None else "") + _spelt(name or "is there", argument)
    made = _made_id(words)
    if name == "python":
        file, _, made = argument.rpartition(":")
        source = _read_function(made, inside(folder / file), where, error)
    kind, negated = name.removeprefix("not_"), name.startswith("not_")
    content = [kind, negated, at, ignore_case, argument, source]
    return Check(
        id=declared.id or made,
        kind=kind,
        argument=argument,
        negated=negated,
        ignore_case=ignore_case,
        at=at,
        weight=declared.weight,
        tier=declared.tier,
        words=words,
        digest=digest(canonical_json(content)),
        source=source,
    )


def _spelt(name: str, argument: Any) -> str:
    plain = argument if isinstance(argument, str) else canonical_json(argument)
    return name if argument in (None, True) else f"{name} {plain}"


def _made_id(words: str) -> str:
    """Return an id that says what a check says, with a few digits where something of it is lost.

    >>> _made_id("not_contains I'm sorry"), _made_id("contains $")
    ('not_contains-i-m-sorry', 'contains-df56e1')
    """
    slug = re.sub(r"\W+", "-", words.lower()).strip("-")
    name = slug[:_LONGEST].rstrip("-")
    whole = len(slug) <= _LONGEST and "-" in slug
    return name if whole or " " not in words else f"{name}-{digest(words).removeprefix('sha256:')[:6]}"


def _read_function(name: str, path: Path, where: Path, error: type[SkillEvaluatorError]) -> str:
    """Return the source of a file that has the function; nothing of it is run."""
    try:
        source = read_text(path, error, _SOURCE)
    except error as problem:
        raise error(f"{problem}; a check in {where} needs it") from None
    try:
        functions = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise error(f"{path} is no Python: {problem}; a check in {where} needs it") from None
    if name not in functions:
        raise error(f"no function '{name}' in {path} {nearest(name, functions)}, which the check in {where} names")
    return source


def passes(check: Check, text: str, parsed: Parsed) -> bool | None:
    """Return whether an answer passes a check; None of a python check and of a sentence for a judge.

    `parsed` is the answer as JSON. A check of a place fails where the answer is no JSON or has nothing there, also a
    `not_…`.
    """
    value: Any = Raw(text)
    if check.at is not None:
        value = value_at(parsed.value, check.at) if parsed.found else NOTHING
        if value is NOTHING or not check.kind:
            return value is not NOTHING
    kind, argument = CHECKS[check.kind], check.argument
    if kind.passes is None:
        return None
    if not kind.of_value and not isinstance(value, str):
        value = canonical_json(value)
    if check.ignore_case and check.kind == "regex":
        argument = f"(?i){argument}"
    elif check.ignore_case:
        value, argument = Raw(value.lower()) if isinstance(value, Raw) else _lowered(value), _lowered(argument)
    return kind.passes(value, argument) != check.negated


def _lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lowered(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_lowered(item) for item in value]
    return value.lower() if isinstance(value, str) else value
