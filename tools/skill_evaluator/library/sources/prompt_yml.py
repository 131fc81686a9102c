"""Convert GitHub Models' `.prompt.yml` (pkg/prompt/prompt.go in github/gh-models) to components."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveInt
from pydantic.alias_generators import to_camel

from skill_evaluator.checks import DeclaredCheck
from skill_evaluator.errors import ComponentError
from skill_evaluator.files import parse_json, validated
from skill_evaluator.library.prompts import DOCUMENT, Prompt, PromptMessage
from skill_evaluator.library.reading import json_value, parse_yaml, yaml_lines
from skill_evaluator.library.sources.tree import (
    FileTree,
    SkipCollector,
    Source,
    SourceComponent,
    as_text,
    case_name,
    faultless,
    sent_as_written,
    stable_id,
    unique_name,
)
from skill_evaluator.library.tables import CaseRows, TableRow
from skill_evaluator.text import listed

_FILE = re.compile(r"(.*?)[._]prompt\.ya?ml", re.DOTALL)  # GitHub's own examples are named sample_prompt.yml
_VARIABLE = re.compile(r"\{\{([^{}\n]{1,200})\}\}")
_NAME = re.compile(r"[^\W\d][\w.-]*")
_BLANKS = r"[\s\x0b\x85\pZ]*"  # white space of Unicode, in RE2
_MAX_CHECKS, _MAX_TEXT = 200_000, 100_000
_KINDS = ("equals", "contains", "startsWith", "endsWith")
_NO_TEXT = "it has no equals, contains, startsWith or endsWith"
_SENTENCE = 'write its question as a sentence, {"expect": …}, among the checks of datasets.json'


class _OfGitHub(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, defer_build=True)


class _Parameters(_OfGitHub):
    max_completion_tokens: PositiveInt | None = None
    max_tokens: PositiveInt | None = None
    temperature: NonNegativeFloat | None = None
    top_p: NonNegativeFloat | None = None


class _TextRule(_OfGitHub):
    """The text that an output must equal, contain, start with or end with. Only the first field that is set is used."""

    equals: str | None = None
    contains: str | None = None
    starts_with: str | None = None
    ends_with: str | None = None

    @property
    def texts(self) -> dict[str, str]:
        return {kind: text for kind in _KINDS if (text := self.model_dump(by_alias=True)[kind])}


class _Evaluator(_OfGitHub):
    name: str | None = None
    string: _TextRule | None = None
    llm: Any = None
    uses: str | None = None

    @property
    def fault(self) -> str:
        """The reason why this evaluator, or a part of it, is ignored. If nothing is ignored, the reason is ""."""
        if self.string is None:
            return f"a model grades it; {_SENTENCE}" if self.llm is not None or self.uses else _NO_TEXT
        kind, *ignored = [*self.string.texts, *(self.string.model_extra or ())] or [""]
        if kind not in _KINDS:
            return _NO_TEXT
        return f"only {kind} has an effect, not {listed(ignored)}" if ignored else ""


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
    id: str
    kind: str
    text: str

    def check(self, values: Mapping[str, str], path: Path) -> dict[str, Any] | None:
        """Return the check for a test with these `values` of variables. Return None if every output would pass."""
        size = sum(len(values.get(name, "")) for name in _VARIABLE.findall(self.text))
        if size > _MAX_TEXT:
            raise ComponentError(f"{path}: the values for evaluator {self.id} have more than {_MAX_TEXT:,} characters")
        text = _VARIABLE.sub(lambda match: values.get(match[1], match[0]), self.text).strip()
        if self.kind == "equals":
            return {"id": self.id, "regex": rf"(?s)\A{_BLANKS}{re.escape(text)}{_BLANKS}\z", "ignore_case": False}
        if not text:
            return None
        if self.kind == "contains":
            return {"id": self.id, "contains": text, "ignore_case": True}
        pattern = rf"\A{_BLANKS}{re.escape(text)}" if self.kind == "startsWith" else rf"{re.escape(text)}{_BLANKS}\z"
        return {"id": self.id, "regex": f"(?s){pattern}", "ignore_case": True}


def _find(tree: FileTree) -> dict[str, tuple[str, ...]]:
    name_parts = {}
    for path in tree.paths:
        *folders, name = path.split("/")
        if match := _FILE.fullmatch(name):
            name_parts[path] = (*folders, match[1] or "prompt")
    return name_parts


def _read(tree: FileTree, path: str) -> SourceComponent:
    location, text = tree.where / path, tree.read(path)
    raw = parse_yaml(text, location, ComponentError, depth=tree.limits.yaml_depth, as_written=True)
    file = validated(_PromptYml, raw, location, ComponentError)
    tests = [{name: as_text(json_value(value)) for name, value in test.items()} for test in file.test_data or ()]
    prompt = _prompt(file, {name for test in tests for name in test}, location)
    rules = _rules(file.evaluators or ())
    if len(tests) * len(rules) > _MAX_CHECKS:
        raise ComponentError(f"{location} has {len(tests):,} tests × {len(rules):,} evaluators; split the file")
    test_rules = [rule for rule in rules if "{{" in rule.text]
    lines = yaml_lines(text) if tests else {}
    rows: list[tuple[str, int, TableRow]] = []
    unfilled: list[str] = []
    ids: set[str] = set()
    for number, test in enumerate(tests, 1):
        inputs = {name: test[name] for name in prompt.inputs if name in test}
        if len(inputs) < len(prompt.inputs) or not inputs.get(DOCUMENT, "x").strip():
            unfilled.append(str(number))
            continue
        checks = [check for rule in test_rules if (check := rule.check(test, location))]
        case_id = unique_name(_case_id(test, inputs), ids)
        ids.add(case_id)
        rows.append((case_id, lines.get(("testData", str(number - 1)), 1), {"inputs": inputs, "checks": checks}))
    used = {*prompt.inputs, "id", "name", *(name for rule in rules for name in _VARIABLE.findall(rule.text))}
    common_checks = [check for rule in rules if "{{" not in rule.text and (check := rule.check({}, location))]
    return SourceComponent(
        path=path,
        files=(path,),
        prompt=prompt,
        output="json" if file.response_format in ("json_object", "json_schema") else "text",
        schema=_schema(file, location),
        checks=tuple(validated(DeclaredCheck, check, location, ComponentError) for check in common_checks),
        cases=CaseRows(path=Path(path), rows=rows, name="testData"),
        left_out=(
            *_left_out(file, tests, used, unfilled).left_out(),
            *sent_as_written((message.text for message in prompt.messages), prompt.inputs),
        ),
        hints=_hints(file),
    )


def _case_id(test: Mapping[str, str], inputs: Mapping[str, str]) -> str:
    name = next((test[key] for key in ("id", "name") if key not in inputs and test.get(key, "").strip()), "")
    return case_name(name) or stable_id(next(filter(None, reversed([*inputs.values()])), ""), inputs)


def _prompt(file: _PromptYml, columns: Collection[str], path: Path) -> Prompt:
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
        raise ComponentError(f"jsonSchema in {path} is not the JSON text of an object with `name` and `schema`")
    return dict(written["schema"])


def _hints(file: _PromptYml) -> dict[str, Any]:
    params = file.model_parameters or _Parameters()
    max_tokens = params.max_completion_tokens or params.max_tokens
    sampling = {"temperature": params.temperature, "top_p": params.top_p}
    hints = {"model": file.model, "max_output_tokens": max_tokens, **sampling}
    return {name: value for name, value in hints.items() if value is not None}


def _rules(evaluators: Iterable[_Evaluator]) -> list[_Rule]:
    rules: dict[str, _Rule] = {}
    for evaluator in evaluators:
        if evaluator.string is not None and (texts := evaluator.string.texts):
            kind, text = next(iter(texts.items()))
            name = unique_name(re.sub(r"\W+", "-", evaluator.name or f"{kind} {text}").strip("-")[:60] or kind, rules)
            rules[name] = _Rule(name, kind, text)
    return list(rules.values())


def _left_out(
    file: _PromptYml, tests: Sequence[Mapping[str, str]], used: Collection[str], unfilled: Sequence[str]
) -> SkipCollector:
    names = SkipCollector()
    parameters = file.model_parameters and file.model_parameters.model_extra
    names["key", "gh models eval has no such key"] = [*(file.model_extra or ()), *(parameters or ())]
    if file.json_schema is not None and file.response_format != "json_schema":
        names["key", "responseFormat is not json_schema"] = ["jsonSchema"]
    columns = dict.fromkeys(name for test in tests for name in test if name not in used)
    names["column", "no message and no evaluator with a text names it"] = list(columns)
    names["test", "it has no value for a variable of the messages, which would be sent unfilled"] = list(unfilled)
    for number, evaluator in enumerate(file.evaluators or (), 1):
        if evaluator.fault:
            names["evaluator", evaluator.fault].append(evaluator.name or str(number))
    return names


PROMPT_YML = Source(looks_for="*.prompt.yml and *_prompt.yml (or .yaml) of GitHub Models", find=_find, read=_read)
