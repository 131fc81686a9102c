"""Convert skills: a SKILL.md with evals becomes a component; all descriptions become the component `routing`."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from skill_evaluator.checks import CHECKS, check_of
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.prompts import Message, Prompt
from skill_evaluator.library.reading import as_list, parse_front_matter
from skill_evaluator.library.sources.tree import (
    FileTree,
    SkipCollector,
    Source,
    SourceComponent,
    case_name,
    semver_of,
    sent_as_written,
    skipped,
    stable_id,
    unique_name,
)
from skill_evaluator.library.tables import CaseRows, TableRow
from skill_evaluator.repository import within
from skill_evaluator.text import listed

ROUTING = "routing"
_SKILL, _EVALS = "SKILL.md", "evals.json"
_EVAL_FOLDERS = ("evals", "misc/evals", "tests")  # folders of <skill>/evals.json in a parent folder
_OF_EVALS = {"eval", "evals", "test", "tests"}
_NO_RESOURCE = re.compile(r"(.*/)?\.|SKILL\.md$|(evals/)?evals\.json$|(?i:(license|readme|changelog)[^/]*$)")
_LISTS = ("evals", "cases", "eval_cases", "test_cases", "tests", "queries")
_PROMPTS = ("prompt", "query", "input", "user_prompt", "task")
_SENTENCES = ("expectations", "assertions", "checks", "expect", "expected_behavior", "criteria")
_CALLED = ("expected_skill", "expect_skill", "should_trigger")
_NEEDS = {"live_only": "it needs a live system", "setup": "it needs a setup"}
_KIND = re.compile(r"(not_)?(i(?=contains))?(\w*)")
_OTHER_NAMES = {"includes": "contains", "exact_match": "equals", "matches": "regex"}
_OTHER_NAMES |= dict.fromkeys(("", "llm", "llm_rubric", "llm_judge", "judge", "rubric", "semantic", "manual"), "expect")
_WORDS = ("text", "description", "expectation", "assertion", "criterion", "rubric", "check", "value")
_ARGUMENTS = ("value", "values", "pattern", "expected", "substring", "text")
_NAME = re.compile(r"[^\W\d_]+(?:[_-][^\W\d_]+)+")  # a descriptive name rather than a number
_MAX_NAME = 100  # maximum characters of a name
_QUESTION = """Choose the skill that the request calls for, by what the skills say of themselves. Answer with JSON \
alone: {"skill": "<name>"}, or {"skill": null} if it calls for none of them.
"""


def _find(tree: FileTree) -> dict[str, tuple[str, ...]]:
    skills = _skills_in(tree)
    name_parts = {path: PurePosixPath(path).parts[:-1] or (_name_at_root(tree),) for path in skills}
    has_queries = skills and any(map(_asks_for_skill, tree.paths))
    return {**name_parts, ROUTING: (ROUTING,)} if has_queries else name_parts


def _unused_evals(tree: FileTree) -> Iterator[str]:
    used = {path for skill in _skills_in(tree) for path in _eval_files(tree, skill)}
    unused = [ascii(path) for path in tree.paths if posixpath.basename(path) == _EVALS and path not in used]
    if unused:
        advice = f"move them into evals/ beside their {_SKILL}, or into a folder with the skill's name"
        reason = f"no {_SKILL} belongs to these evals; {advice} ({listed(unused)})"
        yield skipped("file", reason, len(unused))


def _skills_in(tree: FileTree) -> list[str]:
    return [path for path in tree.paths if posixpath.basename(path) == _SKILL]


def _asks_for_skill(path: str) -> bool:
    folder, name = posixpath.split(path)
    of_evals = name.startswith(("trigger-eval", "trigger_eval")) or not _OF_EVALS.isdisjoint(folder.split("/"))
    return of_evals and "trigger" in name and name.endswith((".json", ".yaml", ".yml"))


def _name_at_root(tree: FileTree) -> str:
    with suppress(ComponentError):
        return str(_skill(tree, _SKILL)[0].get("name") or "skill")[:_MAX_NAME]
    return "skill"


def _read(tree: FileTree, key: str) -> SourceComponent:
    if key == ROUTING:
        return _read_routing(tree)
    front, body = _skill(tree, key)
    if not body.strip():
        raise ComponentError(f"{tree.where / key} has no prompt below its front matter")
    tools = front.get("allowed-tools") or front.get("allowed_tools")
    cases = _Cases(reason=f"its skill uses tools: {' '.join(str(tools).split())[:_MAX_NAME]}" if tools else "")
    evals = list(dict.fromkeys(_eval_files(tree, key)))
    for path in evals:
        for number, row in enumerate(_rows_in(tree.json(path), tree.where / path), 1):
            cases.add_eval(number, row, tree, posixpath.dirname(key))
    evals_path = next(iter(evals), within(posixpath.dirname(key), f"evals/{_EVALS}"))
    sent = (body, *(row["document"] for _, _, row in cases.rows))
    return SourceComponent(
        path=key,
        files=(key,),
        prompt=Prompt(messages=(Message("system", (body.strip(),)),), placeholders="literal"),
        version=_version(tree, key, front),
        output="text",
        cases=CaseRows(path=Path(evals_path), rows=cases.rows, name="evals"),
        left_out=(*cases.skipped.left_out(), *sent_as_written(sent), *_not_sent(tree, posixpath.dirname(key))),
    )


def _skill(tree: FileTree, path: str) -> tuple[dict[str, Any], str]:
    return parse_front_matter(tree.read(path), tree.where / path, ComponentError, depth=tree.limits.yaml_depth)


def _version(tree: FileTree, path: str, front: Mapping[str, Any]) -> str | None:
    metadata = front.get("metadata")
    version = front.get("version") or (metadata.get("version") if isinstance(metadata, dict) else None)
    if isinstance(version, float):  # YAML reads 1.10 as 1.1
        written = re.findall(r"(?m)^[ \t]*version:[ \t]*(\d+\.\d+)", tree.read(path))
        version = next((text for text in written if float(text) == version), version)
    return semver_of(str(version))


def _eval_files(tree: FileTree, skill: str) -> Iterator[str]:
    """Yield the paths of a skill's eval files: those in its folder, and those in parent folders that name the skill."""
    folder = posixpath.dirname(skill)
    yield from filter(tree.has, (within(folder, f"evals/{_EVALS}"), within(folder, _EVALS)))
    name = posixpath.basename(folder)
    for parent in map(str, PurePosixPath(folder).parents if folder else ()):
        yield from filter(tree.has, (within(parent, f"{pattern}/{name}/{_EVALS}") for pattern in _EVAL_FOLDERS))
        shared = within(parent, f"evals/{_EVALS}")
        if tree.has(shared) and not tree.has(within(parent, _SKILL)) and _skill_name(tree, shared) == name:
            yield shared


def _skill_name(tree: FileTree, path: str) -> Any:
    content = None
    with suppress(ComponentError):  # the file does not belong to a skill
        content = tree.json(path)
    return content.get("skill_name") if isinstance(content, dict) else None


def _rows_in(content: Any, path: Path) -> list[Any]:
    if isinstance(content, dict):
        content = next((content[name] for name in _LISTS if isinstance(content.get(name), list)), None)
    if not isinstance(content, list):
        raise ComponentError(f'{path} has no list of evals; write {{"evals": [{{"prompt": …}}]}}')
    return content


def _not_sent(tree: FileTree, folder: str) -> Iterator[str]:
    start = len(within(folder, ""))
    paths = [PurePosixPath(path[start:]) for path in tree.below(folder)]
    nested = {path.parent for path in paths if path.name == _SKILL} - {PurePosixPath()}
    own_paths = (str(path) for path in paths if nested.isdisjoint(path.parents))
    resources = [path for path in own_paths if not _NO_RESOURCE.match(path) and not _asks_for_skill(path)]
    if resources:
        reason = f"only {_SKILL} is sent, not the files beside it, such as {resources[0]!a}"
        yield skipped("file", reason, len(resources))


@dataclass(slots=True, kw_only=True)
class _Cases:
    reason: str = ""
    rows: list[tuple[str, int, TableRow]] = field(default_factory=list)
    skipped: SkipCollector = field(default_factory=SkipCollector)
    ids: Counter[str] = field(default_factory=Counter)

    def add_eval(self, number: int, row: Any, tree: FileTree, folder: str) -> None:
        prompt = _first(row, _PROMPTS)
        case_id = self.id_of(row, prompt, number)
        try:
            if reason := self.reason or _skip_reason(row, prompt):
                raise ValueError(reason)
            prompt += "".join(self._attached(row, tree, folder))
        except ValueError as problem:
            self.skipped["eval", str(problem)].append(case_id)
            return
        checks = list(self._checks(row, case_id))
        if not checks and isinstance(row.get("expected_output"), str) and row["expected_output"].strip():
            checks = [{"expect": f"The answer is as expected: {' '.join(row['expected_output'].split())}"}]
        for name in sorted(map(str, row.keys() - {*_PROMPTS, *_SENTENCES, "files"})):
            if isinstance(row.get(name), dict | list) and row[name]:
                self.skipped["key", f"{name[:_MAX_NAME]!a} has no effect"].append(case_id)
        self.add(case_id, number, {"document": prompt, "expected_output": row.get("expected_output"), "checks": checks})

    def id_of(self, row: Any, prompt: Any, number: int, start: str = "") -> str:
        if own_id := _case_id(row, ""):
            return start + own_id
        return unique_name(start + (stable_id(prompt, prompt) if isinstance(prompt, str) else str(number)), self.ids)

    def add(self, case_id: str, number: int, row: TableRow) -> None:
        self.ids[case_id] += 1
        if self.ids[case_id] > 1:
            self.skipped["eval", "an earlier eval has its id"].append(case_id)
        else:
            self.rows.append((case_id, number, row))

    def _attached(self, row: Mapping[str, Any], tree: FileTree, folder: str) -> Iterator[str]:
        for name in as_list(row.get("files")):
            path = posixpath.normpath(within(folder, name)) if isinstance(name, str) else ""
            if not (path.startswith(within(folder, "")) and tree.has(path)):
                raise ValueError("it names a file that is not in the folder of the skill")
            try:
                yield f"\n\n{name}:\n{tree.read(path)}"
            except ComponentError:
                self.skipped["file", "an eval names it, and it is too large or not text"].append(name)

    def _checks(self, row: Mapping[str, Any], case_id: str) -> Iterator[Mapping[str, Any]]:
        ids: set[str] = set()
        for item in chain.from_iterable(as_list(row.get(name)) for name in _SENTENCES):
            try:
                check = _check(item)
                check_id = check_of(check).id
                if check_id in ids:
                    raise ValueError("an earlier check has its id")
            except ValueError as problem:
                self.skipped["check", str(problem)].append(case_id)
            else:
                ids.add(check_id)
                yield check


def _first(row: Any, keys: tuple[str, ...]) -> Any:
    """Return the first value of `keys` in `row` that is not None or "". Return None if there is no such value."""
    values = (row[key] for key in keys if row.get(key) not in (None, "")) if isinstance(row, dict) else ()
    return next(iter(values), None)


def _case_id(row: Any, default: str) -> str:
    value = _first(row, ("id", "name"))
    text = value if isinstance(value, str) else str(value) if isinstance(value, int) and abs(value) < 1e18 else ""
    return case_name(text) or default


def _skip_reason(row: Any, prompt: Any) -> str:
    if not isinstance(row, dict):
        return "it is not an object"
    if "should_trigger" in row:
        return "it tests which skill is triggered; use a file such as trigger-eval.json"
    reasons = [reason for name, reason in _NEEDS.items() if row.get(name)]
    if not isinstance(prompt, str) or not prompt.strip():
        reasons.append("it has no text as prompt")
    return "; ".join(reasons)


def _check(item: Any) -> dict[str, Any]:
    item = {"text": item} if isinstance(item, str) else item
    if not isinstance(item, dict):
        raise ValueError("it is neither a text nor an object")
    if "command" in item or "script" in item:
        raise ValueError("it runs a command")
    written = str(item.get("type") or "").lower().replace("-", "_")
    parts = _KIND.fullmatch(written)
    kind = _OTHER_NAMES.get(parts[3], parts[3]) if parts else ""
    if not parts or kind not in CHECKS or kind == "python":
        raise ValueError(f"there is no check of type {written[:_MAX_NAME]!a}")
    argument = True if kind == "is_json" else _first(item, _WORDS if kind == "expect" else _ARGUMENTS)
    if argument is None:
        raise ValueError("it has no text to check")
    if kind == "expect" and isinstance(argument, str):
        argument = " ".join(argument.split())  # judge prompts list one expectation per line
    names = [item[key] for key in ("id", "name") if isinstance(item.get(key), str)]
    check_id = next(filter(_NAME.match, (re.sub(r"\W+", "-", name)[:60].strip("-") for name in names)), None)
    return {
        f"{parts[1] or ''}{kind}": argument,
        **({"ignore_case": True} if parts[2] else {}),
        **({"id": check_id} if check_id else {}),
    }


def _read_routing(tree: FileTree) -> SourceComponent:
    cases = _Cases()
    described = _descriptions(tree, cases)
    counts = Counter(name for name, _ in set(described.values()))  # copies of a skill are the same choice
    names = {folder: name if counts[name] == 1 else folder or name for folder, (name, _) in described.items()}
    choices = {names[folder]: description for folder, (_, description) in described.items()}
    text = "\n".join([_QUESTION, *(f"- {name}: {description}" for name, description in choices.items())])
    limit, size = tree.limits.size_of("prompt_bytes"), len(text.encode())
    files = list(filter(_asks_for_skill, tree.paths))
    if not names or not files:
        raise ComponentError(f"{tree.where} has no {'query files' if names else 'SKILL.md with a description'}")
    if size > limit.max_bytes:
        raise ComponentError(f"the descriptions of the skills in {tree.where} have {size:,} bytes; {limit}")
    by_base = {(posixpath.basename(folder), name) for folder, name in names.items()}
    bases = Counter(base for base, _ in by_base)
    skill_of_name = {base: name for base, name in by_base if bases[base] == 1} | {name: name for name in choices}
    for path in files:
        try:
            content = tree.json(path) if path.endswith(".json") else tree.yaml(path)
            rows = _rows_in(content, tree.where / path)
        except ComponentError as problem:
            cases.skipped["file", str(problem)].append(ascii(path))
        else:
            skill_name = content.get("skill_name") if isinstance(content, dict) else None
            _add_queries(cases, path, rows, _owner(path, skill_name, names, skill_of_name), skill_of_name)
    choice = {"skill": {"type": ["string", "null"], "enum": [*sorted(choices), None]}}
    return SourceComponent(
        path=files[0],
        files=tuple(within(folder, _SKILL) for folder in names),
        prompt=Prompt(messages=(Message("system", (text,)),), placeholders="literal"),
        output="json",
        schema={"type": "object", "properties": choice, "required": ["skill"], "additionalProperties": False},
        cases=CaseRows(path=Path(files[0]), rows=cases.rows),
        left_out=tuple(cases.skipped.left_out()),
    )


def _descriptions(tree: FileTree, cases: _Cases) -> dict[str, tuple[str, str]]:
    """Return (name, description) of each skill by folder. Note invalid skills in `cases.skipped` instead."""
    described: dict[str, tuple[str, str]] = {}
    for path in _skills_in(tree):
        folder = posixpath.dirname(path)
        try:
            front, _ = _skill(tree, path)
            description = " ".join(str(front.get("description") or "").split())
            name = front.get("name")
            name = name if isinstance(name, str) and name.isprintable() and 0 < len(name) <= _MAX_NAME else folder
            if not description or not name.isprintable():
                raise ComponentError(f"{path!a} has no description or no printable name of at most 100 characters")
            described[folder] = name, description
        except ComponentError as problem:
            cases.skipped["skill", f"it cannot be chosen: {problem}"].append(ascii(folder))
    return described


def _owner(path: str, skill_name: Any, names: Mapping[str, str], skill_of_name: Mapping[str, str]) -> str | None:
    """Return the skill that a file such as trigger-eval.json tests. Return None if the skill is unknown."""
    folders = [str(folder) for folder in PurePosixPath(path).parents][:-1]
    owners = [names[folder] for folder in folders if folder in names]
    names_of_file = (posixpath.basename(posixpath.dirname(path)), skill_name)
    owners += [skill_of_name[name] for name in names_of_file if isinstance(name, str) and name in skill_of_name]
    owners += [names[""]] if "" in names else []
    if not owners and len(set(names.values())) == 1:
        owners = list(names.values())
    return owners[0] if owners else None


def _add_queries(cases: _Cases, path: str, rows: list[Any], owner: str | None, names: Mapping[str, str]) -> None:
    """Add a case for each row of a file such as trigger-eval.json. `owner` is the skill that the file tests."""
    of_all = owner is None and any(isinstance(_first(row, _CALLED), str) for row in rows)
    stem = PurePosixPath(path).stem
    start = _case_id({"id": owner}, stem)
    for number, row in enumerate(rows, 1):
        query = _first(row, _PROMPTS)
        case_id = cases.id_of(row, query, number, f"{start}-")
        if cases.ids[case_id]:  # several files concern the same skill
            case_id = f"{start}-{stem}-{case_id.removeprefix(f'{start}-')}"
        try:
            if not isinstance(query, str) or not query.strip():
                raise ValueError("it has no text as query")
            check = _expected_skill(row, owner, names, of_all=of_all)
        except ValueError as problem:
            cases.skipped["trigger eval", str(problem)].append(case_id)
        else:
            cases.add(case_id, number, {"document": query, "checks": [{"json": {"at": "/skill", **check}}]})


def _expected_skill(row: TableRow, owner: str | None, names: Mapping[str, str], *, of_all: bool) -> dict[str, Any]:
    """Return the check of an output against the skill that `row` expects. Raise ValueError if that skill is unknown.

    `owner` is the skill that the file tests. If `of_all`, a row that names no skill expects null.
    """
    fires, skill = row.get("should_trigger"), _first(row, _CALLED)
    if isinstance(skill, str):
        if skill not in names:
            raise ValueError("its skill is not among the choices, or two skills have its name")
        return {"equals": names[skill]}
    if fires is not True and (of_all or any(name in row and row[name] is None for name in _CALLED)):
        return {"equals": None}
    if not isinstance(fires, bool):
        raise ValueError("its should_trigger is neither true nor false")
    if owner is None:
        raise ValueError("should_trigger requires the name of a skill, in the test or in its file")
    return {"equals" if fires else "not_equals": owner}


SKILLS = Source(
    looks_for="SKILL.md, with evals/evals.json and evals/trigger-eval.json", find=_find, read=_read, lost=_unused_evals
)
