"""Convert promptfoo's asserts, including `__expected` columns of its CSV, to checks."""

import csv
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from skill_evaluator.checks.declared import check_of
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.reading import as_list, parse_yaml
from skill_evaluator.library.sources.tree import SkippedItem
from skill_evaluator.text import canonical_json, digest

Leave = Callable[[str, str], None]
"""Counts a skipped element by its kind and the reason."""
MAX_TEXT = 4_000_000
PROGRAM = re.compile(r"(?s)exec:.*|.*\.([cm]?[jt]s|py|rb|go|sh|bash|exe|bat|cmd|ps1|pl)(:\w+)?")
VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_TEMPLATE = re.compile(r"(\{\{|\{%|\{#).{0,40}")
_SENT = re.compile(r"\{\{[^{}\n]{1,80}\}\}|!`[^`\n]{1,80}`")
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


def checks_of(
    asserts: Any, texts: Mapping[str, str], load: Callable[[Any], Any], leave: Leave
) -> tuple[list[dict[str, Any]], Any]:
    """Return the checks for a test's asserts and the schema of its last `is-json`, or None; `load` reads files."""
    checks: dict[str, dict[str, Any]] = {}
    digests: dict[str, str] = {}
    schema = None
    for declared in _flat(asserts, leave):
        kind = str(declared.get("type"))
        try:
            check, check_schema = _check(kind, declared, texts, load)
            check_id, content = _id_and_digest(json.dumps(check))
            template = as_text(declared.get("value"))
            # an assert with variables or a metric has the same id in all tests
            shared = declared.get("metric") or (f"{next(iter(check))} {template}" if "{{" in template else "")
            check_id = re.sub(r"\W+", "-", as_text(shared)[:48].lower()).strip("-") or check_id
        except (ValueError, csv.Error, ComponentError) as problem:
            leave(f"{kind} assert", str(problem))
        else:
            for key in {"threshold", "provider"} & declared.keys() if "expect" in check else ():
                leave(f"{kind} {key}", "the judge of settings.yaml answers yes or no")
            conflicting = {name for name in digests if digests[name] != content} if check_id in digests else ()
            name = numbered(check_id, conflicting)
            digests[name], schema = content, check_schema or schema
            checks.setdefault(name, {**check, "id": name})
    return list(checks.values()), schema


def _flat(asserts: Any, leave: Leave) -> Iterator[dict[str, Any]]:
    for declared in as_list(asserts):
        if not isinstance(declared, dict) or "$ref" in declared:
            leave("assert", "it is a reference or not a mapping")
        elif declared.get("type") != "assert-set":
            yield declared
        elif declared.get("threshold") is not None:
            leave("assert-set", "it has a threshold, but checks are scored one by one here")
        else:
            yield from _flat(declared.get("assert"), leave)


def _check(
    kind: str, declared: Mapping[str, Any], texts: Mapping[str, str], loaded: Callable[[Any], Any]
) -> tuple[dict[str, Any], Any]:
    """Return the check of an assert, and its schema or None; raise ValueError if there is no such check."""
    plain = kind.removeprefix("not-")
    name = plain.removeprefix("i") if plain.startswith("icontains") else plain
    if name not in _CHECKS:
        raise ValueError("no check supports it")
    if used := [key for key in ("transform", "rubricPrompt", "config") if key in declared]:
        raise ValueError(f"its {used[0]} has no counterpart here")
    value = loaded(declared.get("value"))
    value = [_rendered(item, texts) for item in value] if isinstance(value, list) else _rendered(value, texts)
    schema = None
    if name.endswith("-json") and value:
        schema = parse_yaml(value, Path("value"), ComponentError) if isinstance(value, str) else value
        if kind != "is-json" or not isinstance(schema, dict):
            raise ValueError("its schema has no counterpart here")
    check = {("not_" if plain != kind else "") + _CHECKS[name]: _argument(name, value)}
    check |= {"ignore_case": True} if name != plain else {}
    return check | ({} if declared.get("weight") is None else {"weight": declared["weight"]}), schema


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


@lru_cache(maxsize=10_000)
def _id_and_digest(check: str) -> tuple[str, str]:
    parsed_check = check_of(json.loads(check))
    return parsed_check.id, parsed_check.digest


def _rendered(value: Any, texts: Mapping[str, str]) -> Any:
    if not isinstance(value, str):
        return value
    if unknown := [name for name in VARIABLE.findall(value) if name not in texts]:
        raise ValueError(f"its test has no value for {unknown[0]}")
    if template := odd_template(value):
        raise ValueError(f"it has {template}, and {{{{name}}}} is the only supported template")
    return filled(value, texts)


def odd_template(text: str) -> str | None:
    """Return the beginning of the first template that is not a plain variable, or None if there is none."""
    match = _TEMPLATE.search(VARIABLE.sub("", text))
    return match and match[0]


def sent_as_written(texts: Iterable[str], filled: Collection[str] = ()) -> Iterator[SkippedItem]:
    """Yield one item per command and per placeholder that is not `filled`."""
    counts = Counter(placeholder for text in texts for placeholder in dict.fromkeys(_SENT.findall(text)))
    for placeholder, count in counts.items():
        if placeholder.strip("{} ") not in filled:
            action = "filling" if placeholder.startswith("{") else "running"
            yield SkippedItem(what=f"{action} {placeholder}", reason="it is sent unchanged", count=count)


def filled(text: str, texts: Mapping[str, str]) -> str:
    """Replace the variables in a text; raise ValueError if the result is too long."""
    names = [name for name in VARIABLE.findall(text) if name in texts]
    if sum(len(texts[name]) for name in names) > MAX_TEXT:
        raise ValueError(f"with its variables it has more than {MAX_TEXT:,} characters")
    return VARIABLE.sub(lambda match: texts.get(match[1], match[0]), text) if names else text


def as_test(cells: Mapping[str, str]) -> dict[str, Any]:
    """Convert a row of promptfoo's CSV to a test: `__expected` columns are asserts, others variables.

    >>> as_test({"text": "Hi", "__expected": "icontains: hello"})["assert"]
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
    if kind == "file" and PROGRAM.fullmatch(cell):
        return {"type": "python or javascript"}
    match = _EXPECTED.fullmatch(cell)
    if match is None:
        return {"type": "equals", "value": cell}
    return {"type": match[1], "value": (match[3] or "").strip(), **({"threshold": match[2]} if match[2] else {})}


def numbered(name: str, existing: Container[str]) -> str:
    """Return the name, with the first free number appended if it already exists."""
    numbers = (f"{name[:70]}-{number}" for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([name], numbers) if candidate not in existing)


def stable_id(text: str, inputs: Any) -> str:
    """Return a case id from the beginning of a text and the digest of the case's inputs.

    >>> stable_id("Sum up the report.", {"document": "Sum up the report."})
    'Sum-up-the-report-6a9357'
    """
    slug = re.sub(r"[^\w+-]+", "-", text)[:40].strip("-") or "case"
    return f"{slug}-{digest(canonical_json(inputs)).removeprefix('sha256:')[:6]}"


def case_name(text: str) -> str:
    """Return a text as a case id, without characters that a file name cannot have."""
    return re.sub(r"[^\w@.+-]+", "-", text)[:100].strip("-.")


def as_text(value: Any) -> str:
    """Return a text unchanged, an empty string for None, and JSON for any other value."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
