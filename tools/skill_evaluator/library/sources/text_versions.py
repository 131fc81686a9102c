"""Texts whose versions lie side by side, `prompts/<family>/v1.2.0.txt` → components: the highest version is current."""

import posixpath
import re
from itertools import pairwise
from pathlib import Path

import semver

from skill_evaluator.errors import ComponentError
from skill_evaluator.library.messages import DOCUMENT, Message, Placeholders, Prompt, messages_under, without_code
from skill_evaluator.library.reading import parse_front_matter
from skill_evaluator.library.sources.tree import FileTree, LeftOut, Source, SourcePlace, Written, faultless, semver_of
from skill_evaluator.text import listed

_FILE = re.compile(r"(v\d.*|\d+\.\d+\.\d+.*)\.(?:txt|md)", re.DOTALL)
_NOTES = {"changelog", "changelogs", "news", "release-notes", "release_notes", "releases"}
_COMMENT = re.compile(r"# ?[\w-]+: ?\S+@v?\d[\w.+-]*[ \t]*(?:\n|$)")  # such as: # langfuse: extraction@v1.0.0
_BRACES = re.compile(r"\{\{\s*([^\W\d][\w.-]*)\s*\}\}")
_SINGLE = re.compile(r"\{\{|\}\}|\{([^\W\d]\w*)\}")
_ALONE = re.compile(r"^(SYSTEM|USER|ASSISTANT):[ \t]*$", re.MULTILINE)
_IN_LINE = re.compile(r"^(SYSTEM|USER|ASSISTANT):[ \t]*", re.MULTILINE)


def _version(path: str) -> str | None:
    """Return the version that a file's name is, as semver, or None."""
    match = _FILE.fullmatch(posixpath.basename(path))
    return semver_of(match[1]) if match and match[1].isprintable() else None


def _find(tree: FileTree) -> list[SourcePlace]:
    folders = sorted({posixpath.dirname(path) for path in tree.paths if _version(path)})
    parts = {folder: tuple(folder.split("/")) if folder else ("prompt",) for folder in folders}
    return [SourcePlace(folder, parts[folder]) for folder in folders if not _NOTES.intersection(parts[folder])]


def _paths(tree: FileTree, folder: str) -> tuple[list[tuple[semver.Version, str]], list[str]]:
    """Return the versions in a folder, the highest first, and the names that look like one; raise ComponentError."""
    versions, broken = [], []
    for path in tree.below(folder):
        name = posixpath.basename(path)
        if posixpath.dirname(path) == folder and _FILE.fullmatch(name):
            if version := _version(path):
                versions.append((semver.Version.parse(version), path))
            else:
                broken.append(name)
    versions.sort(reverse=True)
    for (higher, path), (lower, twin) in pairwise(versions):
        if higher == lower:
            raise ComponentError(f"{tree.where / path} and {posixpath.basename(twin)} are both {higher}; keep one")
    if not versions:
        raise ComponentError(f"{tree.where / folder} holds no version, such as v1.0.0.txt")
    return versions, broken


def _read(tree: FileTree, folder: str) -> Written:
    versions, broken = _paths(tree, folder)
    odd = LeftOut(what=f"file {listed(broken)}", reason="no version; write v1.2.0", count=len(broken))
    return _written(tree, *versions[0], [odd] if broken else [])


def _written(tree: FileTree, version: semver.Version, path: str, left_out: list[LeftOut]) -> Written:
    where, text = tree.where / path, tree.read(path)
    if text.startswith("---\n"):
        text = parse_front_matter(text, where, ComponentError, depth=tree.limits.yaml_depth)[1]
        left_out = [*left_out, LeftOut(what=f"front matter of {path}", reason="it is not sent")]
    elif comment := _COMMENT.match(text):
        text = text[comment.end() :]
        left_out = [*left_out, LeftOut(what=f"first line of {path}", reason="a comment, which is not sent")]
    if not text.strip():
        raise ComponentError(f"{where} is empty; write the prompt, or delete the file")
    prompt = faultless(_prompt(text.strip(), where), where)
    return Written(path=path, files=(path,), prompt=prompt, version=str(version), left_out=tuple(left_out))


def _prompt(text: str, where: Path) -> Prompt:
    """Return the messages of a text; all of it is one without SYSTEM: or USER: in its first line."""
    braces = dict.fromkeys(match[1] for match in _BRACES.finditer(text))
    single = dict.fromkeys(match[1] for match in _SINGLE.finditer(text) if match[1])
    if braces and single:
        both = f"{{{{{next(iter(braces))}}}}} and {{{next(iter(single))}}}"
        raise ComponentError(f"{where} has {both}, so it is not clear which are filled; use one form in all of it")
    inputs = tuple(braces or single) or (DOCUMENT,)
    placeholders: Placeholders = "single" if single else "braces"
    if not _IN_LINE.match(text):
        message = Message("user" if braces or single else "system", (text,))
        return Prompt(messages=(message,), inputs=inputs, placeholders=placeholders)
    pattern = _ALONE if _ALONE.match(text) else _IN_LINE
    messages = messages_under(list(pattern.finditer(without_code(text))), text)
    if messages[-1].role != "user" and DOCUMENT not in inputs:
        inputs = (*inputs, DOCUMENT)  # it is what the user says
    return Prompt(messages=messages, inputs=inputs, placeholders=placeholders)


TEXT_VERSIONS = Source(
    looks_for="folders of v1.2.0.txt, v1.3.0.txt and so on (or .md)",
    find=_find,
    read=_read,
    earlier=lambda tree, folder: (_written(tree, *each, []) for each in _paths(tree, folder)[0][1:]),
)
