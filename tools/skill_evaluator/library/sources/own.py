"""The evaluator's own format: one folder per component, with `prompt.md` and optionally `schema.json`."""

import posixpath
from typing import Any

from skill_evaluator.errors import ComponentError
from skill_evaluator.library.prompts import FrontMatter, Prompt, parse_prompt
from skill_evaluator.library.sources.tree import FileTree, Source, SourceComponent, SourcePlace

PROMPT, SCHEMA = "prompt.md", "schema.json"


def written_own(front: FrontMatter, prompt: Prompt, path: str, schema: Any = None) -> SourceComponent:
    """Build the source component of a prompt.md."""
    return SourceComponent(
        path=path,
        files=(path,),
        version=front.version,
        prompt=prompt,
        output="json" if front.output == "tool_call" else front.output,
        schema=schema,
        program=front.program,
        formerly=front.formerly,
    )


def _find(tree: FileTree) -> list[SourcePlace]:
    folders = (posixpath.split(path) for path in tree.paths if path.count("/") == 1)
    return [SourcePlace(f"{folder}/{PROMPT}", (folder,)) for folder, name in folders if name == PROMPT]


def _read(tree: FileTree, key: str) -> SourceComponent:
    front, prompt = parse_prompt(tree.read(key), tree.where / key, depth=tree.limits.yaml_depth)
    if front.program is not None:  # programs run and watch files in their component's folder
        raise ComponentError(f"{tree.where / key}: a source cannot run a program; use --components {tree.where}")
    schema = posixpath.join(posixpath.dirname(key), SCHEMA)
    return written_own(front, prompt, key, tree.json(schema) if tree.has(schema) else None)


OWN = Source(looks_for="<name>/prompt.md with a version", find=_find, read=_read)
