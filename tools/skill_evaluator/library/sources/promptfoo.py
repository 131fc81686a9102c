"""Convert promptfoo's configurations: a prompt becomes a component, a test a case, an assert a check."""

import csv
import itertools
import json
import math
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from skill_evaluator.checks import check_of
from skill_evaluator.errors import ComponentError, FixtureError
from skill_evaluator.files import SURROGATE, parse_json, validated
from skill_evaluator.library.prompts import DOCUMENT, Prompt, PromptMessage
from skill_evaluator.library.reading import as_list, json_value, parse_yaml, yaml_lines
from skill_evaluator.library.sources.tree import (
    FileTree,
    SkipCollector,
    Source,
    SourceComponent,
    as_text,
    faultless,
    stable_id,
    unique_name,
)
from skill_evaluator.library.tables import CaseRows, read_cells
from skill_evaluator.text import listed

_MAX_TESTS, _MAX_TEXT = 20_000, 200_000_000
_TEXTS, _STRUCTURES = (".txt", ".md", ".j2"), (".json", ".yaml", ".yml")
_SERVICE = re.compile(r"(?!file:)[\w-]+://")
_NO_TEXT = re.compile(r"(?i).*\.(pdf|png|jpe?g|webp|gif|mp3|wav|mp4)")
_MODEL = re.compile(
    r"(ai21|alibaba|anthropic|aimlapi|azure|azureopenai|bedrock|cerebras|cohere|databricks|deepseek|fireworks|github|"
    r"google|groq|huggingface|hyperbolic|litellm|llamafile|localai|mistral|nvidia|ollama|openai|openrouter|perplexity|"
    r"replicate|togetherai|vertex|voyage|watsonx|xai):"
    r"(?!(agents?|assistants?|chatkit|claude-agent-sdk|codex[\w-]*|embeddings?|image|knowledge-base|moderation|realtime|"
    r"speech|transcription|video)(:|$))((chat|completion|converse|deployment|messages|responses|text|text-generation):)?"
    r"(?P<model>.+)"
)
_PARAMETERS = {"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_output_tokens"}
_PARAMETERS |= {"maxOutputTokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_SILENT = re.compile(  # keys that affect neither calls nor checks
    r"\$schema|assertionTemplates|author|commandLineOptions|defaultTest|description|env|metadata|outputPath|prompts|"
    r"providers|sharing|tags|targets|tests|writeLatestResults"
)
_SILENT_IN_TESTS = re.compile(r"vars|assert|options|description|metadata|options\.(disableVar\w+|[ps]\w+fix|provider)")
_CHANGING_KEYS = ("postprocess", "transform", "transformVars", "providerOutput", "prompts", "provider", "providers")
_NOTHING = "it has no counterpart here"
_MAX_VALUE_CHARS = 4_000_000
_PROGRAM = re.compile(r"(?s)exec:.*|.*\.([cm]?[jt]s|py|rb|go|sh|bash|exe|bat|cmd|ps1|pl)(:\w+)?")
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_TEMPLATE = re.compile(r"(\{\{|\{%|\{#).{0,40}")
_CHECKS = {"contains-json": "json", "llm-rubric": "expect", "model-graded-closedqa": "expect"}
_CHECKS |= {name: name.replace("-", "_") for name in ("contains", "contains-any", "contains-all", "starts-with")}
_CHECKS |= {name: name.replace("-", "_") for name in ("equals", "regex", "is-json")}
_OTHERS = (
    "icontains|icontains-any|icontains-all|answer-relevance|bleu|classifier|contains-html|contains-sql|contains-xml|"
    "context-faithfulness|context-recall|context-relevance|conversation-relevance|cost|factuality|finish-reason|g-eval|"
    "gleu|guardrails|is-html|is-refusal|is-sql|is-valid-function-call|is-valid-openai-function-call|"
    "is-valid-openai-tools-call|is-xml|javascript|latency|levenshtein|meteor|model-graded-factuality|moderation|"
    "perplexity|perplexity-score|pi|python|rouge-n|ruby|search-rubric|similar|tool-call-f1|webhook|word-count"
)
_EXPECTED = re.compile(rf"(?s)((?:not-)?(?:{'|'.join(_CHECKS)}|{_OTHERS}))(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?")
_ALIASES = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}


class _WrittenPrompt(NamedTuple):
    """A prompt with the path of its file and its unused keys (`others`), or the problem if it cannot be read."""

    label: str
    text: str
    path: str
    problem: str = ""
    others: tuple[str, ...] = ()


class _CaseRow(NamedTuple):
    path: str
    line: int
    description: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Configuration:
    tree: FileTree
    path: str
    content: Mapping[str, Any]
    unused: SkipCollector = field(default_factory=SkipCollector)

    def leave(self, element: str, reason: str) -> None:
        self.unused[_line(element), _line(reason)].append("")

    def _files_named(self, reference: str) -> list[str]:
        if _PROGRAM.fullmatch(reference) or _SERVICE.match(reference):
            raise ValueError(f"it is made by a program or a service: {_line(reference)}")
        name = reference.removeprefix("file://")
        if not re.search(r"[*?\[]", name):
            return [self.tree.beside(self.path, name)]
        pattern = posixpath.normpath(posixpath.join(posixpath.dirname(self.path), name))
        paths = [path for path in self.tree.paths if fnmatchcase(path, pattern)]
        if not paths:
            raise ComponentError(f"no file matches {_line(name)}, referenced in {self.tree.where / self.path}")
        return paths

    def _content(self, path: str) -> Any:
        text = self.tree.read(path)
        return _parsed(path, text, self.tree.where / path) if path.endswith(_STRUCTURES) else text.strip()

    def prompts(self) -> list[_WrittenPrompt]:
        prompts: list[_WrittenPrompt] = []
        for item in as_list(self.content.get("prompts")) or [None]:
            entry = item if isinstance(item, dict) else {"raw": item}
            raw, label = entry.get("raw") or entry.get("id"), _line(entry.get("label") or "")
            try:
                if not isinstance(raw, str):
                    raise ComponentError("a prompt must be a text or the name of a text file")
                others = tuple(sorted(entry.keys() - {"raw", "id", "label", "display"}))
                prompts += [prompt._replace(others=others) for prompt in self._written(raw, label)]
            except (ComponentError, ValueError) as problem:
                where = self.tree.where / self.path
                prompts.append(_WrittenPrompt(label, "", self.path, f"prompt {len(prompts) + 1} of {where}: {problem}"))
        return prompts

    def _written(self, raw: str, label: str) -> Iterator[_WrittenPrompt]:
        is_name = raw.startswith("file:") or raw.endswith((*_TEXTS, *_STRUCTURES)) or ("/" in raw and " " not in raw)
        if "\n" in raw or not (is_name or _PROGRAM.fullmatch(raw)):
            yield _WrittenPrompt(label, raw, self.path)
            return
        for path in self._files_named(raw):
            if not path.endswith((*_TEXTS, *_STRUCTURES)):
                raise ComponentError(
                    f"{path} is not a file of prompts; its name must end in .txt, .md, .j2, .json, .yaml or .yml"
                )
            text = self.tree.read(path)
            if path.endswith((".yaml", ".yml")):
                text = as_text(_parsed(path, text, self.tree.where / path))
            parts = re.split(r"(?m)^[ \t]*---[ \t]*$", text) if path.endswith(".txt") else [text]
            texts = [part.strip() for part in parts if part.strip()]
            if not texts:
                raise ComponentError(f"{path} is empty")
            stem = label or posixpath.basename(path).partition(".")[0]
            for number, part in enumerate(texts, 1):
                name = "" if stem in ("prompt", "prompts") else f"{stem}-{number}" if len(texts) > 1 else stem
                yield _WrittenPrompt(name, part, path)

    def rows(self, inputs: Collection[str], default: Mapping[str, Any]) -> tuple[list[_CaseRow], Any]:
        """Return the cases of all tests, and their common schema or None. Raise ComponentError for too many cases."""
        location, size = self.tree.where / self.path, 0
        too_many = ComponentError(f"{location} gives more than {_MAX_TESTS:,} cases or too much text; split it")
        rows: list[_CaseRow] = []
        schemas: list[Any] = []
        missing: set[str] = set()
        for number, (path, line, test) in enumerate(self._tests()):
            if number == _MAX_TESTS:
                raise too_many
            try:
                merged = _merged(default, test)
                self._refuse_changes(merged, _mapping(test.get("options")), _mapping(default.get("options")))
                for texts in self._variables(merged):
                    values = {name: text for name, text in texts.items() if text.strip() or name != DOCUMENT}
                    if missing_here := [name for name in inputs if name not in values]:
                        missing.update(missing_here)
                        raise ValueError(f"it has no value for {listed(missing_here)}, which the prompt uses")
                    checks, schema = self._checks_of(merged["assert"], texts)
                    size += sum(map(len, values.values())) + len(as_text(checks))
                    description = _line(merged.get("description") or "")
                    rows.append(_CaseRow(path, line, description, {"inputs": values, "checks": checks}))
                    schemas.append(schema)
                    if len(rows) > _MAX_TESTS or size > _MAX_TEXT:
                        raise too_many
            except ValueError as problem:
                self.leave("test", str(problem))
        if missing and not rows and self.content.get("tests"):
            names = listed(sorted(missing))
            raise ComponentError(
                f"no test in {location} can be used: some lack a value for {names}, which the prompt uses"
            )
        if not inputs and sum(bool(row.values["inputs"]) for row in rows) > 1:
            names = listed([f"{{{{{name}}}}}" for name in rows[0].values["inputs"]])
            raise ComponentError(f"the prompt uses no variable of the tests, such as {names}: all calls would be equal")
        if len({as_text(schema) for schema in schemas}) == 1:
            return rows, schemas[0]
        for _ in filter(None, schemas):
            self.leave("is-json schema", "the tests do not share one")
        return rows, None

    def _checks_of(self, asserts: Any, texts: Mapping[str, str]) -> tuple[list[dict[str, Any]], Any]:
        """Return the checks of a test's asserts, and the last schema in its `is-json` asserts, or None."""
        checks: dict[str, dict[str, Any]] = {}
        digests: dict[str, str] = {}
        schema = None
        for declared in self._flat(asserts):
            kind = str(declared.get("type"))
            try:
                check, check_schema = self._check(kind, declared, texts)
                valid = check_of(check)
                template = as_text(declared.get("value"))
                # an assert with variables or a metric has the same id in all tests
                shared = declared.get("metric") or (f"{next(iter(check))} {template}" if "{{" in template else "")
                check_id = re.sub(r"\W+", "-", as_text(shared)[:48].lower()).strip("-") or valid.id
            except (ValueError, csv.Error, ComponentError) as problem:
                self.leave(f"{kind} assert", str(problem))
            else:
                for key in {"threshold", "provider"} & declared.keys() if "expect" in check else ():
                    self.leave(f"{kind} {key}", "the judge of settings.yaml answers yes or no")
                conflicting = {name for name in digests if digests[name] != valid.digest} if check_id in digests else ()
                name = unique_name(check_id, conflicting)
                digests[name], schema = valid.digest, check_schema or schema
                checks.setdefault(name, {**check, "id": name})
        return list(checks.values()), schema

    def _flat(self, asserts: Any) -> Iterator[dict[str, Any]]:
        for declared in as_list(asserts):
            if not isinstance(declared, dict) or "$ref" in declared:
                self.leave("assert", "it is a reference or not a mapping")
            elif declared.get("type") != "assert-set":
                yield declared
            elif declared.get("threshold") is not None:
                self.leave("assert-set", "it has a threshold, but checks are scored one by one here")
            else:
                yield from self._flat(declared.get("assert"))

    def _check(self, kind: str, declared: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[dict[str, Any], Any]:
        plain = kind.removeprefix("not-")
        name = plain.removeprefix("i") if plain.startswith("icontains") else plain
        if name not in _CHECKS:
            raise ValueError("Skill Evaluator has no such check")
        if used := [key for key in ("transform", "rubricPrompt", "config") if key in declared]:
            raise ValueError(f"its `{used[0]}` has no counterpart here")
        value = declared.get("value")
        if isinstance(value, str) and value.startswith("file://"):
            value = self._content(self._files_named(value)[0])
        value = [_rendered(item, texts) for item in value] if isinstance(value, list) else _rendered(value, texts)
        schema = None
        if name.endswith("-json") and value:
            schema = parse_yaml(value, Path("value"), ComponentError) if isinstance(value, str) else value
            if kind != "is-json" or not isinstance(schema, dict):
                raise ValueError("its schema has no counterpart here")
        check = {("not_" if plain != kind else "") + _CHECKS[name]: _argument(name, value)}
        check |= {"ignore_case": True} if name != plain else {}
        return check | ({} if declared.get("weight") is None else {"weight": declared["weight"]}), schema

    def _tests(self) -> Iterator[tuple[str, int, dict[str, Any]]]:
        lines = _lines_once(self.tree.read(self.path))
        for number, item in enumerate(as_list(self.content.get("tests")) or [{}]):
            if isinstance(item, str) and (_PROGRAM.fullmatch(item) or _SERVICE.match(item)):
                self.leave("entry of tests", f"they are made by a program or a service: {item}")
            elif isinstance(item, str):
                for path in self._files_named(item):
                    yield from self._tests_in(path)
            elif isinstance(item, dict) and not {"path", "$ref"} & item.keys():
                yield self.path, lines.get(("tests", str(number)), 1), item
            else:
                self.leave("entry of tests", "it is neither a test nor a file of tests")

    def _tests_in(self, path: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
        text, location = self.tree.read(path), self.tree.where / path
        tests: list[tuple[int, Any]]
        if path.endswith(".csv"):
            try:
                rows = read_cells(text, location, _MAX_VALUE_CHARS, lambda row: self.leave("row of a CSV", str(row)))
                tests = [(line, _as_test(row)) for line, row in rows]
            except FixtureError as problem:
                raise ComponentError(str(problem)) from None
        elif path.endswith(".jsonl"):
            lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
            tests = [(number, _parsed(path, line, location)) for number, line in lines]
        elif path.endswith(_STRUCTURES):
            lines_of_items, content = yaml_lines(text), _parsed(path, text, location)
            tests = [(lines_of_items.get((str(index),), 1), item) for index, item in enumerate(as_list(content))]
        else:
            raise ComponentError(
                f"{location} is not a file of tests; its name must end in .yaml, .yml, .json, .jsonl or .csv"
            )
        for line, test in tests:
            if isinstance(test, dict):
                yield path, line, test
            else:
                self.leave("entry of tests", "a file of tests has an element that is not a test")

    def _refuse_changes(self, test: Mapping[str, Any], options: Mapping[str, Any], default: Mapping[str, Any]) -> None:
        """Raise ValueError if a test has a key that changes the prompt or the output, such as `transform`."""
        for name in ("prefix", "suffix"):
            if options.get(name) and options[name] != default.get(name):
                raise ValueError(f"its `options.{name}` changes the prompt or the output; set it in defaultTest")
        for key in _CHANGING_KEYS:
            if test.get(key) or (key != "provider" and test["options"].get(key)):
                raise ValueError(f"its `{key}`, which changes the prompt or the output, is not supported")
        for key in [*test, *(f"options.{name}" for name in test["options"])]:
            if not _SILENT_IN_TESTS.fullmatch(key):
                self.leave(f"test {key}", _NOTHING)

    def _variables(self, test: Mapping[str, Any]) -> Iterator[dict[str, str]]:
        splits = test["options"].get("disableVarExpansion") is not True
        choices = []
        for value in test["vars"].values():
            if isinstance(value, str) and value.startswith("file://"):
                if _NO_TEXT.fullmatch(value):
                    raise ValueError(f"a variable names a file that is not a text: {value}")
                choices.append([as_text(self._content(path)) for path in self._files_named(value)])
            else:
                several = splits and isinstance(value, list) and value and isinstance(value[0], str)
                choices.append([as_text(item) for item in (value if several else [value])])
        if math.prod(map(len, choices)) > _MAX_TESTS:
            raise ValueError(f"its lists of values give more than {_MAX_TESTS:,} cases")
        for values in itertools.product(*choices):
            texts = {name: text.removesuffix("\n") for name, text in zip(test["vars"], values, strict=True)}
            yield {name: _filled(text, texts) for name, text in texts.items()}

    def models(self) -> dict[str, Any]:
        """Return the first plain model in `providers` and its parameters, or {} if there are no providers."""
        hints: dict[str, Any] = {}
        refused = []
        for number, entry in enumerate(as_list(self.content.get("providers", self.content.get("targets")))):
            provider = entry if isinstance(entry, dict) else {"id": entry}
            if len(provider) == 1 and "id" not in provider:
                [(name, settings)] = provider.items()
                provider = {"id": name, **_mapping(settings)}
            name = _line(provider.get("id"))
            if not (match := _MODEL.fullmatch(name)) or _PROGRAM.fullmatch(name):
                refused.append(name if name.startswith(("file:", "openai:")) else f"{name.partition(':')[0]}:…")
                continue
            config = _mapping(provider.get("config"))
            for key in [*config.keys() - _PARAMETERS.keys(), *provider.keys() - {"id", "label", "config"}]:
                if not re.match("(?i)api|env", key):
                    self.leave(f"{key} of providers[{number}]", "the settings of models are in models.yaml")
            numbers = {key: config[name] for name, key in _PARAMETERS.items() if type(config.get(name)) in (int, float)}
            hints = hints or {"model": f"{match[1]}/{match['model']}", **numbers}
        if refused and not hints:
            text = f"{self.tree.where / self.path} calls {listed(refused)}, which is not a plain model"
            raise ComponentError(f"{text}; to test a program, set `program` in a prompt.md")
        for name in refused:
            self.leave(f"provider {name}", "it is not a plain model")
        return hints


def _merged(shared: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    if not all(isinstance(part.get("vars") or {}, dict) for part in (shared, test)):
        raise ValueError("`vars` of the test or of defaultTest is not a mapping")
    return {
        **shared,
        **test,
        "vars": {**_mapping(shared.get("vars")), **_mapping(test.get("vars"))},
        "assert": [*as_list(shared.get("assert")), *as_list(test.get("assert"))],
        "options": {**_mapping(shared.get("options")), **_mapping(test.get("options"))},
    }


def _find(tree: FileTree) -> dict[str, tuple[str, ...]]:
    name_parts = {}
    for path in tree.paths:
        *folders, name = path.split("/")
        if not re.fullmatch(r"promptfooconfig\.(ya?ml|json|[cm]?[jt]s)", name):
            continue
        try:
            labels = [prompt.label for prompt in _configuration(tree, path).prompts()]
        except ComponentError:
            labels = [""]  # reading it reports the problem
        for number, label in enumerate(labels, 1):
            unnamed = (folders or ["promptfoo"])[-1] + (f"-{number}" if len(labels) > 1 else "")
            name_parts[f"{path}#{number}"] = (*folders, label or unnamed)
    return name_parts


def _read(tree: FileTree, key: str) -> SourceComponent:
    path, _, number = key.rpartition("#")
    configuration = _configuration(tree, path)
    written = configuration.prompts()[int(number) - 1]
    if written.problem:
        raise ComponentError(written.problem)
    hints = configuration.models()
    default = configuration.content.get("defaultTest") or {}
    if not isinstance(default, dict):
        raise ComponentError(f"defaultTest in {tree.where / path} is not a mapping")
    options = _mapping(default.get("options"))
    text = f"{as_text(options.get('prefix'))}{written.text}{as_text(options.get('suffix'))}"
    prompt = _prompt(text, tree.where / written.path)
    rows, schema = configuration.rows(prompt.inputs, default)
    for name in written.others:
        configuration.leave(f"key {name} of the prompt", "the settings of models are in models.yaml")
    for name in configuration.content:
        if not _SILENT.fullmatch(name):
            configuration.leave(f"key {name}", _NOTHING)
    files = {row.path for row in rows}
    cases = CaseRows(
        path=Path(min(files) if len(files) == 1 else path),
        rows=[(case_id, row.line if len(files) == 1 else 1, row.values) for case_id, row in _with_ids(rows)],
        name="tests",
    )
    return SourceComponent(
        path=written.path,
        files=tuple(dict.fromkeys([path, written.path])),
        prompt=prompt,
        output="text" if schema is None else "json",
        schema=schema,
        cases=cases,
        left_out=tuple(configuration.unused.left_out()),
        hints=hints,
    )


def _configuration(tree: FileTree, path: str) -> _Configuration:
    if not path.endswith(_STRUCTURES):
        raise ComponentError(f"{tree.where / path} is a program; write promptfooconfig.yaml, .yml or .json")
    content = _parsed_once(path, tree.read(path), tree.where / path)
    if not isinstance(content, dict):
        raise ComponentError(f"{tree.where / path} is not a mapping of keys to values")
    return _Configuration(tree=tree, path=path, content=content)


def _prompt(text: str, path: Path) -> Prompt:
    if template := _odd_template(text):
        raise ComponentError(f"{path} has {_line(template)}: {{{{name}}}} is the only supported template")
    content: Any = [{"role": "user", "content": text}]
    if text.lstrip().startswith("- role:"):
        content = _parsed(".yaml", text, path)
    elif re.match(r"\s*(\[\s*\{|\{\s*\")", text):
        content = _parsed(".json", text, path)
    content = content["messages"] if isinstance(content, dict) and content.keys() == {"messages"} else content
    if not isinstance(content, list):
        raise ComponentError(f"{path} has JSON or YAML that is not a list of messages")
    messages = []
    for item in content:
        item = dict(item) if isinstance(item, dict) else {}
        parts = item.get("content")
        if isinstance(parts, list) and all({"type", "text"} <= _mapping(part).keys() for part in parts):
            item["content"] = "".join(as_text(part["text"]) for part in parts)
        item["role"] = "system" if item.get("role") == "developer" else item.get("role")
        messages.append(validated(PromptMessage, item, path, ComponentError).message)
    names = dict.fromkeys(name for message in messages for name in _VARIABLE.findall(message.text))
    return faultless(Prompt(messages=tuple(messages), inputs=tuple(names)), path)


def _with_ids(rows: Sequence[_CaseRow]) -> Iterator[tuple[str, _CaseRow]]:
    times = Counter(row.description for row in rows)
    used: set[str] = set()
    for row in rows:
        values = row.values["inputs"]
        text = row.description or next((text[:100] for text in reversed(values.values()) if text), "")
        name = stable_id(text, values)
        if row.description and times[row.description] == 1:
            name = name[:-7]  # removes the digest
        name = unique_name(name, used)
        used.add(name)
        yield name, row


def _parsed(name: str, text: str, path: Path) -> Any:
    is_json = name.endswith((".json", ".jsonl"))
    parse = parse_json if is_json else partial(parse_yaml, as_written=True)
    value = json_value(parse(text, path, ComponentError))
    if "\\u" in text and re.search(r"[\ud800-\udfff]", json.dumps(value, ensure_ascii=False)):
        raise ComponentError(f"{path}: {SURROGATE}")
    return value


# one configuration is read once per prompt
_parsed_once, _lines_once = lru_cache(maxsize=4)(_parsed), lru_cache(maxsize=4)(yaml_lines)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _line(value: Any) -> str:
    return "".join(mark if mark.isprintable() else " " for mark in str(value)[:200])


def _argument(name: str, value: Any) -> Any:
    if name.endswith("-json"):
        return {"at": ""} if name == "contains-json" else True
    if name in ("contains-any", "contains-all"):
        cells = next(csv.reader([as_text(value).replace("\n", " ")], skipinitialspace=True), [])
        items = value if isinstance(value, list) else [cell.strip() for cell in cells if cell.strip()]
        return [as_text(item) for item in items]
    if name == "equals" and isinstance(value, dict | list):
        return value
    if value is None or isinstance(value, dict | list) or (_CHECKS[name] == "expect" and not isinstance(value, str)):
        raise ValueError("its value is not text")
    return as_text(value)


def _rendered(value: Any, texts: Mapping[str, str]) -> Any:
    if not isinstance(value, str):
        return value
    if unknown := [name for name in _VARIABLE.findall(value) if name not in texts]:
        raise ValueError(f"its test has no value for {unknown[0]}")
    if template := _odd_template(value):
        raise ValueError(f"it has {template}, and {{{{name}}}} is the only supported template")
    return _filled(value, texts)


def _odd_template(text: str) -> str | None:
    """Return the beginning of the first Nunjucks template other than `{{name}}`. Return None if there is none."""
    match = _TEMPLATE.search(_VARIABLE.sub("", text))
    return match and match[0]


def _filled(text: str, texts: Mapping[str, str]) -> str:
    names = [name for name in _VARIABLE.findall(text) if name in texts]
    if sum(len(texts[name]) for name in names) > _MAX_VALUE_CHARS:
        raise ValueError(f"with its variables it has more than {_MAX_VALUE_CHARS:,} characters")
    return _VARIABLE.sub(lambda match: texts.get(match[1], match[0]), text) if names else text


def _as_test(cells: Mapping[str, str]) -> dict[str, Any]:
    """Convert a row of promptfoo's CSV to a test. `__expected` columns are asserts, other `__` columns are settings.

    >>> _as_test({"text": "Hi", "__expected": "icontains: hello"})["assert"]
    [{'type': 'icontains', 'value': 'hello', 'metric': 'expected'}]
    """
    test: dict[str, Any] = {"vars": {}, "assert": [], "options": {}}
    for name, cell in cells.items():
        if not name.startswith("__"):
            test["vars"][name] = cell
        elif name.startswith("__expected") and cell.strip():
            test["assert"].append({**_expected(cell), "metric": cells.get("__metric") or name[2:]})
        elif name in ("__prefix", "__suffix"):
            test["options"][name[2:]] = cell
        elif cell.strip() and name != "__metric":
            test[name[2:]] = cell
    return test


def _expected(cell: str) -> dict[str, Any]:
    kind, colon, value = cell.partition(":")
    if colon and kind in _ALIASES:
        return {"type": _ALIASES[kind], "value": value.strip()}
    if kind == "file" and _PROGRAM.fullmatch(cell):
        return {"type": "python or javascript"}
    match = _EXPECTED.fullmatch(cell)
    if match is None:
        return {"type": "equals", "value": cell}
    return {"type": match[1], "value": (match[3] or "").strip(), **({"threshold": match[2]} if match[2] else {})}


PROMPTFOO = Source(looks_for="promptfooconfig.yaml, .yml or .json", find=_find, read=_read)
