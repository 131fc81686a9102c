"""Cases that a model drafted: which are unreviewed, and what accepting one changes."""

from collections.abc import Sequence
from pathlib import Path

from skill_evaluator.errors import FixtureError, NotEvaluatedError
from skill_evaluator.files import json_text, replace_text, storing
from skill_evaluator.library.cases import Case, case_folders, find_cases, read_cases
from skill_evaluator.library.components import METAS, Component


def unreviewed_cases(
    component: Component, fixtures: Path | None, patterns: Sequence[str] = ()
) -> list[tuple[Case, Path]]:
    """Return the unreviewed cases that match a pattern, each with its folder, or with the file that it is a row of."""
    try:
        cases = [case for case in read_cases(component, fixtures, patterns) if case.unreviewed]
    except NotEvaluatedError:
        return []
    sources = find_cases(component, fixtures)
    folders = {folder.name: folder for source in sources for folder in case_folders(source)}
    return [(case, folders.get(case.id, sources[-1])) for case in cases]


def accept_cases(component: Component, fixtures: Path | None, patterns: Sequence[str]) -> list[str]:
    """Remove the mark of the unreviewed cases that match a pattern, and return their ids.

    Raise FixtureError if a case is invalid or a row of a file.
    """
    accepted = unreviewed_cases(component, fixtures, patterns)
    for case, place in accepted:
        if not place.is_dir():
            raise FixtureError(f"case '{case.id}' is a row of {place}: remove its key unreviewed there")
    for case, place in accepted:
        path = next(place / name for name in METAS if (place / name).is_file())
        meta = {name: value for name, value in case.meta.items() if name != "unreviewed"}
        with storing(path):
            if not meta:
                path.unlink()
            else:
                replace_text(path.with_name(METAS[0]), json_text(meta))
    return [case.id for case, _ in accepted]
