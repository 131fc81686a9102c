"""The site: static HTML pages of all recorded results, and the folder that they are written to."""

import sys
from pathlib import Path

from skill_evaluator.display import abridged, visible
from skill_evaluator.errors import SkillEvaluatorError, StorageError
from skill_evaluator.files import replace_text, storing
from skill_evaluator.identifiers import is_file_name
from skill_evaluator.text import digest

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
_MARKER = ".skill-evaluator-site"
_REMOVABLE = frozenset(  # the folders and the optional page of a site; an earlier build may have written more files
    ("assets", "audits", "cases", "compare", "components", "files", "judges", "runs", "verdicts", "calibration.html")
)
MAX_TEXT = 300  # characters of a name or a sentence; the records have the whole
_MAX_FILE_NAME = 200  # bytes
_MAX_PROBLEM = 1_000  # characters of a problem on stderr


class SiteFolder:
    """The folder that one build of the site writes.

    `written` is the number of new or changed files, `removed` the number of removed files. `problems` maps each part of
    the library that could not be read to its error.
    """

    def __init__(self, folder: Path) -> None:
        """Use a new or empty folder, or the folder of an earlier build. Raise StorageError for any other."""
        self._folder = folder
        self._names = {_MARKER}
        self.written = self.removed = 0
        self.problems: dict[str, Exception] = {}
        if (folder / _MARKER).exists():
            return
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise StorageError(f"{folder} is neither an empty folder nor a site; name another folder with --out DIR")
        replace_text(folder / _MARKER, "")

    def note(self, name: str, problem: Exception) -> None:
        """Record the error of a part of the library that cannot be read, and print the error to stderr."""
        self.problems[name] = problem
        print(f"{abridged(visible(name))}: {abridged(visible(str(problem)), _MAX_PROBLEM)}", file=sys.stderr)

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file unless it exists with the same content. Raise StorageError if it cannot be written."""
        self._names.add(name)
        path = self._folder / name
        content = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
        with storing(path):
            if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
                return
        replace_text(path, content)
        self.written += 1

    def finish(self) -> None:
        """Remove the files of earlier builds that this build did not write. Raise StorageError if that fails."""
        for path in self._folder.rglob("*"):  # does not follow symbolic links
            name = path.relative_to(self._folder)
            if name.parts[0] in _REMOVABLE and path.is_file() and name.as_posix() not in self._names:
                with storing(path):
                    path.unlink()
                self.removed += 1


def refuse_page_name(name: str, error: type[SkillEvaluatorError]) -> None:
    """Raise `error` if the name of a folder cannot be the name of a page."""
    if not is_file_name(name) or len(name.encode()) > _MAX_FILE_NAME:
        raise error(f"rename its folder with letters, digits and '@._+-' only, in at most {_MAX_FILE_NAME} bytes")


def cut_name(text: str, limit: int = MAX_TEXT) -> str:
    """Cut a text after `limit` characters and append its length and a digest. Return a shorter text unchanged."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text):,} characters, {digest(text).partition(':')[2][:8]})"
