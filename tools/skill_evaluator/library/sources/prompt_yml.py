"""Convert GitHub Models' `.prompt.yml` to components: messages, tests and evaluators of `gh models eval`.

The specification is `pkg/prompt/prompt.go` and `cmd/eval/eval.go` in github/gh-models.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveInt
from pydantic.alias_generators import to_camel

from skill_evaluator.checks.declared import DeclaredCheck
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import parse_json, validated
from skill_evaluator.library.prompts import DOCUMENT, Prompt, PromptMessage
from skill_evaluator.library.reading import Plain, parse_yaml, yaml_lines
from skill_evaluator.library.sources.asserts import numbered, sent_as_written, stable_id
from skill_evaluator.library.sources.tree import (
    FileTree,
    SkipCollector,
    Source,
    SourceComponent,
    SourcePlace,
    faultless,
)
from skill_evaluator.library.tables import Row
from skill_evaluator.text import listed

_FILE = re.compile(r"(.*?)[._]prompt\.ya?ml", re.DOTALL)  # GitHub's own examples are named sample_prompt.yml
_VARIABLE = re.compile(r"\{\{([^{}\n]{1,200})\}\}")
_NAME = re.compile(r"[^\W\d][\w.-]*")
_BLANK, _MARK = r"[\s\x0b\x85\pZ]", r"[^\s\x0b\x85\pZ]"  # Go's white space, and its complement
_NEVER = r"\A[^\x00-\x{10ffff}]"
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)")
_CONSTANTS = re.compile(
    r"(true|True|TRUE)|(false|False|FALSE)|([+]?\.(?:inf|Inf|INF))|(-\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)"
)
_CONSTANT_TEXTS = ("NaN", "true", "false", "+Inf", "-Inf")
_MAX_CHECKS, _MAX_TEXT = 200_000, 100_000
_KINDS = ("equals", "contains", "startsWith", "endsWith")
_NO_TEXT = "it has no equals, contains, startsWith or endsWith"
_SENTENCE = 'write its question as a sentence, {"expect": …}, among the checks of datasets.json'


class _OfGitHub(BaseModel):
    """A part of the file; unknown keys are kept to be reported."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, defer_build=True)


class _Parameters(_OfGitHub):
    max_completion_tokens: PositiveInt | None = None
    max_tokens: PositiveInt | None = None
    temperature: NonNegativeFloat | None = None
    top_p: NonNegativeFloat | None = None


class _TextRule(_OfGitHub):
    """The expected texts of an output by comparison; the first in this order is used."""

    equals: str | None = None
    contains: str | None = None
    starts_with: str | None = None
    ends_with: str | None = None

    @property
    def texts(self) -> dict[str, str]:
        """The non-empty texts by comparison kind."""
        return {kind: text for kind in _KINDS if (text := self.model_dump(by_alias=True)[kind])}


class _Evaluator(_OfGitHub):
    name: str | None = None
    string: _TextRule | None = None
    llm: Any = None
    uses: str | None = None


class _PromptYml(_OfGitHub):
    name: str | None = None
    description: str | None = None
    model: str | None = None
    model_parameters: _Parameters | None = None
    response_format: Literal["text", "json_object", "json_schema"] | None = None
    json_schema: str | None = None
    messages: tuple[PromptMessage, ...]
    test_data: tuple[dict[str, Any], ...] | None = None
    evaluators: tuple[_Evaluator, ...] | None = None


class _Rule(NamedTuple):
    """A comparison of outputs with a text, which may have variables."""

    id: str
    kind: str
    text: str

    def check(self, values: Mapping[str, str], path: Path) -> dict[str, Any] | None:
        """Return the check for outputs of a test with these values. Return None if every output passes.

        Surrounding white space is ignored, and case too except for `equals`. Raise ComponentError if the filled text is
        too long.
        """
        size = sum(len(values.get(name, "")) for name in _VARIABLE.findall(self.text))
        if size > _MAX_TEXT:
            raise ComponentError(f"evaluator {self.id} in {path} has more than {_MAX_TEXT:,} characters, once filled")
        text = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), self.text)
        if not text and self.kind != "equals":
            return None
        at_start, at_end = self.kind in ("equals", "startsWith"), self.kind in ("equals", "endsWith")
        begins_blank, ends_blank = _is_blank(text[:1]), _is_blank(text[-1:])
        if self.kind == "contains" and not begins_blank and not ends_blank:
            return {"id": self.id, "contains": text, "ignore_case": True}
        before = rf"\A{_BLANK}*" if at_start else f"{_MARK}.*" if begins_blank else ""
        after = rf"{_BLANK}*\z" if at_end else f".*{_MARK}" if ends_blank else ""
        fits = not (begins_blank and at_start) and not (ends_blank and at_end)
        pattern = f"(?s){before}{re.escape(text)}{after}" if fits else _NEVER
        return {"id": self.id, "regex": pattern, "ignore_case": self.kind != "equals"}


def _as_go_writes(value: Any) -> str:
    """Format a value of a test as Go's `%v` does.

    >>> [_as_go_writes(Plain(text)) for text in ("1.50", "010", "no", "2026-1-2")]
    ['1.5', '8', 'no', '2026-01-02 00:00:00 +0000 UTC']
    >>> _as_go_writes({"b": [Plain("TRUE"), None], "a": "1.50"})
    'map[a:1.50 b:[true <nil>]]'
    """
    if value is None:
        return "<nil>"
    if isinstance(value, list):
        return f"[{' '.join(map(_as_go_writes, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_as_go_writes(value[name])}' for name in sorted(value, key=str))}]"
    if not isinstance(value, Plain):
        return str(value)
    if constant := _CONSTANTS.fullmatch(value):
        return _CONSTANT_TEXTS[constant.lastindex or 0]
    if match := _DATE.fullmatch(value):
        with suppress(ValueError):  # example: 2026-02-30 stays a text
            return f"{date(*map(int, match.groups()))} 00:00:00 +0000 UTC"
    digits = value.replace("_", "") if value[:1] in "+-0123456789" else value
    if _INTEGER.fullmatch(digits):
        octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
        if -(2**63) <= (integer := int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)) < 2**64:
            return str(integer)
    if _NUMBER.fullmatch(digits) and abs(fraction := float(digits)) < math.inf:
        number = Decimal(repr(fraction)).normalize()
        if fraction == 0 or 1e-4 <= abs(fraction) < 1e6:
            return f"{number:f}"
        mantissa, _, exponent = f"{number:e}".partition("e")
        return f"{mantissa}e{int(exponent):+03}"
    return str(value)


def _is_blank(mark: str) -> bool:
    return mark.isspace() and not "\x1c" <= mark <= "\x1f"


def _find(tree: FileTree) -> list[SourcePlace]:
    locations = []
    for path in tree.paths:
        *folders, name = path.split("/")
        if match := _FILE.fullmatch(name):
            locations.append(SourcePlace(path, (*folders, match[1] or "prompt")))
    return locations


def _read(tree: FileTree, path: str) -> SourceComponent:
    location, text = tree.where / path, tree.read(path)
    raw = parse_yaml(text, location, ComponentError, depth=tree.limits.yaml_depth, as_written=True)
    file = validated(_PromptYml, raw, location, ComponentError)
    tests = [{name: _as_go_writes(value) for name, value in test.items()} for test in file.test_data or ()]
    prompt = _prompt(file, {name for test in tests for name in test}, location)
    rules = _rules(file.evaluators or ())
    if len(tests) * len(rules) > _MAX_CHECKS:
        raise ComponentError(f"{location} has {len(tests):,} tests of {len(rules):,} evaluators; split the file")
    of_tests = [rule for rule in rules if "{{" in rule.text]
    lines = yaml_lines(text) if tests else {}
    rows: list[tuple[str, int, Row]] = []
    unfilled: list[str] = []
    ids: set[str] = set()
    for number, test in enumerate(tests, 1):
        inputs = {name: test[name] for name in prompt.inputs if name in test}
        if len(inputs) < len(prompt.inputs) or not inputs.get(DOCUMENT, "x").strip():
            unfilled.append(str(number))
            continue
        checks = [check for rule in of_tests if (check := rule.check(test, location))]
        case_id = numbered(_case_id(test, inputs), ids)
        ids.add(case_id)
        rows.append((case_id, lines.get(("testData", str(number - 1)), 1), {"inputs": inputs, "checks": checks}))
    used = {*prompt.inputs, "id", "name", *(name for rule in rules for name in _VARIABLE.findall(rule.text))}
    of_all = [check for rule in rules if "{{" not in rule.text and (check := rule.check({}, location))]
    return SourceComponent(
        path=path,
        files=(path,),
        prompt=prompt,
        output="json" if file.response_format in ("json_object", "json_schema") else "text",
        schema=_schema(file, location),
        checks=tuple(validated(DeclaredCheck, check, location, ComponentError) for check in of_all),
        rows=tuple(rows),
        rows_name="testData",
        left_out=(
            *_left_out(file, tests, used, unfilled).left_out(),
            *sent_as_written((message.text for message in prompt.messages), prompt.inputs),
        ),
        hints=_hints(file),
    )


def _case_id(test: Mapping[str, str], inputs: Mapping[str, str]) -> str:
    """Return a case id from the `id` or `name` of a test, else from its input."""
    name = next((test[key] for key in ("id", "name") if key not in inputs and test.get(key, "").strip()), "")
    return re.sub(r"[^\w@.+-]+", "-", name)[:100].strip("-.") or stable_id(
        next(filter(None, reversed([*inputs.values()])), ""), inputs
    )


def _prompt(file: _PromptYml, columns: Collection[str], path: Path) -> Prompt:
    """Return the messages; each `{{…}}` with a name or a column of the tests is an input."""
    messages = tuple(message.message for message in file.messages)
    if not messages or messages[-1].role != "user":
        raise ComponentError(f"{path}: messages: the last message must be from the user")
    names = dict.fromkeys(name.strip() for message in messages for name in _VARIABLE.findall(message.text))
    inputs = tuple(name for name in names if name in columns or _NAME.fullmatch(name))
    return faultless(Prompt(messages=messages, inputs=inputs), path)


def _schema(file: _PromptYml, path: Path) -> Mapping[str, Any] | None:
    if file.response_format != "json_schema":
        return None
    written = parse_json(file.json_schema or "null", path / "jsonSchema", ComponentError)
    if not isinstance(written, dict) or "name" not in written or not isinstance(written.get("schema"), dict):
        raise ComponentError(f"jsonSchema in {path} is not the JSON text of an object with name and schema")
    return dict(written["schema"])


def _hints(file: _PromptYml) -> dict[str, Any]:
    params = file.model_parameters or _Parameters()
    max_tokens = params.max_completion_tokens or params.max_tokens
    hints = {
        "model": file.model,
        "max_output_tokens": max_tokens,
        "temperature": params.temperature,
        "top_p": params.top_p,
    }
    return {name: value for name, value in hints.items() if value is not None}


def _rules(evaluators: Iterable[_Evaluator]) -> list[_Rule]:
    rules: dict[str, _Rule] = {}
    for evaluator in evaluators:
        if evaluator.string is not None and (texts := evaluator.string.texts):
            kind, text = next(iter(texts.items()))
            name = numbered(re.sub(r"\W+", "-", evaluator.name or f"{kind} {text}").strip("-")[:60] or kind, rules)
            rules[name] = _Rule(name, kind, text)
    return list(rules.values())


def _left_out(
    file: _PromptYml, tests: Sequence[Mapping[str, str]], used: Collection[str], unfilled: Sequence[str]
) -> SkipCollector:
    """Collect the unused parts of the file: keys, columns of the tests, tests and evaluators."""
    names = SkipCollector()
    parameters = file.model_parameters and file.model_parameters.model_extra
    names["key", "gh models eval has no such key"] = [*(file.model_extra or ()), *(parameters or ())]
    if file.json_schema is not None and file.response_format != "json_schema":
        names["key", "responseFormat is not json_schema"] = ["jsonSchema"]
    columns = dict.fromkeys(name for test in tests for name in test if name not in used)
    names["column", "no message and no evaluator with a text names it"] = list(columns)
    names["test", "it has no value for a variable of the messages, which would be sent unfilled"] = list(unfilled)
    for number, evaluator in enumerate(file.evaluators or (), 1):
        reason = ""
        if evaluator.string is not None:
            counts, *ignored = [*evaluator.string.texts, *(evaluator.string.model_extra or ())] or [""]
            if ignored or not counts:
                reason = f"{counts} alone counts, not {listed(ignored)} beside it" if counts in _KINDS else _NO_TEXT
        elif evaluator.llm is not None:
            reason = f"a judge prompt with its own choices; {_SENTENCE}"
        else:
            reason = f"{evaluator.uses} is graded by a model; {_SENTENCE}" if evaluator.uses else _NO_TEXT
        if reason:
            names["evaluator", reason].append(evaluator.name or str(number))
    return names


PROMPT_YML = Source(looks_for="*.prompt.yml and *_prompt.yml (or .yaml) of GitHub Models", find=_find, read=_read)
