"""The kinds of checks, and declared checks: validate them, build a `Check` with id and digest from each, and run it."""

import ast
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    ValidationError,
    create_model,
    model_validator,
)

from skill_evaluator.errors import RunError, SkillEvaluatorError
from skill_evaluator.files import SizeLimit, StrictModel, first_problem, read_text
from skill_evaluator.identifiers import Share, Tier
from skill_evaluator.parsing import Parsed
from skill_evaluator.processes import Program, run_process
from skill_evaluator.text import canonical_json, digest, matches, nearest, re2_pattern, refuse_constant

_Readable = AfterValidator(lambda pattern: re2_pattern(pattern) and pattern)
_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=100_000), _Readable]

NO_VALUE: Any = object()
"""The absence of a value, in contrast to None for null."""


class Raw(str):
    """The raw text of an output, which may be JSON, in contrast to a text inside a parsed output."""

    __slots__ = ()


def _json_of(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return NO_VALUE


def is_json(text: str, _: object) -> bool:
    """Return whether a text is JSON as a whole, without a fence or words around it."""
    return _json_of(text) is not NO_VALUE


def equals(value: Any, expected: Any) -> bool:
    """Return whether `value` equals `expected`. The number 1 equals 1.0.

    If `expected` is not a text, a `value` of the class `Raw` is first parsed as JSON.
    """
    if isinstance(expected, str):
        return isinstance(value, str) and value == expected
    value = _json_of(value) if isinstance(value, Raw) else value
    return value is not NO_VALUE and canonical_json(value) == canonical_json(expected)


def _refuse_no_pointer(pointer: str) -> str:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"'{pointer}' is not a JSON pointer; write /total, or /lines/0/amount")
    return pointer


Pointer = Annotated[str, AfterValidator(_refuse_no_pointer), Field(max_length=1_000, description="such as /total")]


def value_at(value: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer (RFC 6901). Return NO_VALUE if it does not exist.

    >>> value_at({"lines": [{"a/b": 7}]}, "/lines/0/a~1b")
    7
    """
    for escaped in pointer.split("/")[1:]:
        step = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step in map(str, range(len(value))):
            value = value[int(step)]
        else:
            return NO_VALUE
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    """One kind of check: the type of its argument, and a pure function `passes(output, argument)`."""

    argument: Any
    passes: Callable[[Any, Any], bool] | None = None  # None: the kind needs a process or a judge
    accepts_json: bool = False  # `passes` gets a JSON value or a `Raw` text; otherwise only texts
    negatable: bool = True  # there is also a kind `not_…`
    accepts_pointer: bool = True  # the check may apply to the value at a JSON pointer


_Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
_Texts = Annotated[tuple[_Text, ...], Field(min_length=1, max_length=1_000)]
_Values = Annotated[tuple[Any, ...], Field(min_length=1, max_length=1_000)]
_File = StringConstraints(max_length=300, pattern=r"^(\w[\w.-]*/)*\w[\w.-]*\.py:[A-Za-z_]\w*$")
_Function = Annotated[str, _File, Field(description="a function of a file: checks.py:total_is_sum")]
_Sentence = Annotated[_Text, Field(description="a sentence that a judge answers with yes or no")]

CHECKS: Mapping[str, CheckKind] = {
    "contains": CheckKind(argument=_Text, passes=lambda text, part: part in text),
    "contains_any": CheckKind(argument=_Texts, passes=lambda text, parts: any(part in text for part in parts)),
    "contains_all": CheckKind(argument=_Texts, passes=lambda text, parts: all(part in text for part in parts)),
    "equals": CheckKind(argument=Any, passes=equals, accepts_json=True),
    "one_of": CheckKind(
        argument=_Values, passes=lambda value, values: any(equals(value, each) for each in values), accepts_json=True
    ),
    "starts_with": CheckKind(argument=_Text, passes=str.startswith),
    "ends_with": CheckKind(argument=_Text, passes=str.endswith),
    "regex": CheckKind(argument=_Pattern, passes=matches),
    "is_json": CheckKind(argument=Literal[True], passes=is_json, accepts_pointer=False),
    "max_words": CheckKind(
        argument=PositiveInt, passes=lambda text, limit: len(text.split()) <= limit, negatable=False
    ),
    "python": CheckKind(argument=_Function, negatable=False, accepts_pointer=False),
    "expect": CheckKind(argument=_Sentence, negatable=False, accepts_pointer=False),
}

CheckId = Annotated[str, StringConstraints(pattern=r"^\w[\w-]*$", max_length=80)]
_MAX_ID = 48  # characters of an id derived from a check's text
_SOURCE = SizeLimit(max_bytes=1_000_000)
CHILD = partial(
    Program,
    argv=[sys.executable, "-I", str(Path(__file__).with_name("function.py"))],
    seconds=10.0,
    output_bytes=10_000,
    memory_bytes=1_000_000_000,
)


class _OneCheck(StrictModel):
    """The base class of declared checks."""

    model_config = ConfigDict(coerce_numbers_to_str=True)
    ignore_case: bool = Field(default=False, description="whether A and a are the same")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, value: Any) -> Any:
        keys = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = [key for key in value if key not in keys] if isinstance(value, Mapping) else []
        if unknown:
            raise ValueError(f"unknown key '{unknown[0]}' in a check {nearest(str(unknown[0]), keys)}")
        return value

    @model_validator(mode="after")
    def _refuse_several(self) -> Self:
        kinds = self._kinds()
        if len(kinds) > 1 or (not kinds and "at" not in type(self).model_fields):
            several = f"has several kinds ({', '.join(kinds)}); write one check for each kind"
            raise ValueError(f"a check {several if kinds else 'has no kind, such as contains'}")
        return self

    def _kinds(self) -> list[str]:
        return [name for name in _KINDS if name in self.model_fields_set]

    @property
    def kind(self) -> str:
        """The name of the declared kind. It is "" if the value at a JSON pointer only has to exist."""
        return next(iter(self._kinds()), "")


def _fields(kinds: Mapping[str, CheckKind]) -> dict[str, Any]:
    twins = {f"not_{name}": kind for name, kind in kinds.items() if kind.negatable}
    return {name: (kind.argument, Field(default=None)) for name, kind in {**kinds, **twins}.items()}


_KINDS_AT_POINTER = {name: kind for name, kind in CHECKS.items() if kind.accepts_pointer}
_PointerCheck: Any = create_model("CheckAtPlace", __base__=_OneCheck, at=(Pointer, ...), **_fields(_KINDS_AT_POINTER))


class _WeightedCheck(_OneCheck):
    id: CheckId | None = Field(default=None, description="its name in reports; default: derived from its text")
    weight: PositiveFloat = Field(default=1.0, le=1e6, description="its share in the metric checks")
    tier: Tier | None = Field(default=None, description="its tier in the verdict; default: advisory")


if TYPE_CHECKING:
    DeclaredCheck = _WeightedCheck
else:
    DeclaredCheck = create_model(
        "DeclaredCheck",
        __base__=_WeightedCheck,
        __doc__="One check: exactly one kind, with optional id, weight and tier.",
        **_fields(CHECKS),
        json_at=(_PointerCheck, Field(default=None, alias="json", description='such as {"at": "/total", "equals": 9}')),
    )
_KINDS = tuple(name for name in DeclaredCheck.model_fields if name not in _WeightedCheck.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check, ready to run. `text` is its declaration as text, `source` the code of a python check.

    `pointer` is the JSON pointer to its value in the parsed output, or None for the raw text. If `kind` is "", a value
    must exist at the pointer. The digest covers everything that decides whether an output passes.
    """

    id: str
    kind: str
    argument: Any
    negated: bool
    ignore_case: bool
    pointer: str | None
    weight: float
    tier: Tier | None
    text: str
    digest: str
    source: str | None = None


def read_checks(
    declared: Iterable[DeclaredCheck],
    folder: Path,
    where: Path,
    error: type[SkillEvaluatorError],
    inside: Callable[[Path], Path],
    earlier: Iterable[Check] = (),
) -> tuple[Check, ...]:
    """Return the `earlier` checks, followed by the declared checks.

    A python check names a file in `folder`. The file is parsed, but not run. Raise `error` if a check is invalid or if
    two checks have the same id. The message names the file `where`, which declares the checks.
    """
    checks = {check.id: check for check in earlier}
    for declaration in declared:
        check = _read_check(declaration, folder, where, error, inside)
        if check.id in checks:
            raise error(f"two checks have the id '{check.id}' in {where}; change the `id` of one of them")
        checks[check.id] = check
    return tuple(checks.values())


def check_of(declared: Mapping[str, Any]) -> Check:
    """Build a check. Raise ValueError if the declaration is invalid, SkillEvaluatorError if its Python file is."""
    try:
        [check] = read_checks([DeclaredCheck.model_validate(declared)], Path(), Path(), SkillEvaluatorError, Path)
    except ValidationError as problem:
        raise ValueError(first_problem(problem)) from None
    return check


def _read_check(
    declared: DeclaredCheck, folder: Path, where: Path, error: type[SkillEvaluatorError], inside: Callable[[Path], Path]
) -> Check:
    name, pointer, source = declared.kind, None, None
    argument: Any = getattr(declared, name)
    ignore_case = declared.ignore_case
    if name == "json_at":
        pointer, name = argument.at, argument.kind
        ignore_case = ignore_case or argument.ignore_case
        argument = getattr(argument, name) if name else None
    argument_text = argument if isinstance(argument, str) else canonical_json(argument)
    text = (f"json {pointer} " if pointer is not None else "") + (name or "is there")
    text += "" if argument in (None, True) else f" {argument_text}"
    derived_id = _derived_id(text)
    if name == "python":
        file, _, derived_id = argument.rpartition(":")
        source = _read_function(derived_id, inside(folder / file), where, error)
    kind, negated = name.removeprefix("not_"), name.startswith("not_")
    content = [kind, negated, pointer, ignore_case, argument, source]
    return Check(
        id=declared.id or derived_id,
        kind=kind,
        argument=argument,
        negated=negated,
        ignore_case=ignore_case,
        pointer=pointer,
        weight=declared.weight,
        tier=declared.tier,
        text=text,
        digest=digest(canonical_json(content)),
        source=source,
    )


def _derived_id(text: str) -> str:
    """Derive an id from a check's text. Add a short digest if the id would be too long or lose the whole argument.

    >>> _derived_id("not_contains I'm sorry"), _derived_id("contains $")
    ('not_contains-i-m-sorry', 'contains-df56e1')
    """
    slug = re.sub(r"\W+", "-", text.lower()).strip("-")
    name = slug[:_MAX_ID].rstrip("-")
    is_complete = len(slug) <= _MAX_ID and "-" in slug
    return name if is_complete or " " not in text else f"{name}-{digest(text).removeprefix('sha256:')[:6]}"


def _read_function(name: str, path: Path, where: Path, error: type[SkillEvaluatorError]) -> str:
    try:
        source = read_text(path, error, _SOURCE)
    except error as problem:
        raise error(f"{problem}; a check in {where} requires the file") from None
    try:
        functions = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise error(f"{path} is not valid Python: {problem}; a check in {where} requires the file") from None
    if name not in functions:
        raise error(f"no function '{name}' in {path}, required by a check in {where} {nearest(name, functions)}")
    return source


def passes(check: Check, text: str, parsed: Parsed) -> bool | None:
    """Return whether an output passes a check. Return None if the check needs a process or a judge.

    `parsed` is the output as JSON. If it has no value at the check's pointer, even a `not_…` check fails.
    """
    value: Any = Raw(text)
    if check.pointer is not None:
        value = value_at(parsed.value, check.pointer) if parsed.form else NO_VALUE
        if value is NO_VALUE or not check.kind:
            return value is not NO_VALUE
    kind, argument = CHECKS[check.kind], check.argument
    if kind.passes is None:
        return None
    if not kind.accepts_json and not isinstance(value, str):
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


class FunctionScore(StrictModel):
    """The score from 0 to 1 that a check's function returned for an output, and its reason."""

    score: Share
    reason: str = ""


def call_function(check: Check, text: str, context: dict[str, Any]) -> FunctionScore:
    """Return the score of an output by a check's function. It is 0 if the function fails or reaches a limit.

    `context` has `answer` (the parsed output), `inputs` and `truth`. Raise RunError if the process cannot be started.
    """
    name = check.argument.rpartition(":")[2]
    task = {"source": check.source, "function": name, "text": text, "context": context}
    process = run_process(CHILD(folder=Path(tempfile.gettempdir())), json.dumps(task).encode())
    if process.reason == "absent":
        raise RunError(f"the check {check.id} cannot be run: {process.problem}")
    try:
        return FunctionScore.model_validate_json(process.stdout)
    except ValidationError:
        return FunctionScore(score=0.0, reason=process.problem or "the process wrote no valid score")
