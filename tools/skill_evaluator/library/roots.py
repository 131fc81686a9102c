"""The folders that the files of a library are read from: a link that leads out of them is refused.

Its own module because components, cases and configuration obey the same rule. A document is sent to a model, so a link
in its place could hand over any file of the machine.
"""

import os
from pathlib import Path

from pydantic import Field, field_validator

from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.files import StrictModel


class Root:
    """A folder, and the rule that its files lie in it when all links are followed.

    A folder that is named by a relative path must itself lie in the current one. `follow_links` says whether links out
    are allowed, None that settings.yaml, which would say so, is not read yet.
    """

    def __init__(self, folder: Path, error: type[SkillEvaluatorError], *, follow_links: bool | None = None) -> None:
        self._folder = folder
        self._real = os.path.realpath(folder)
        self._error = error
        self._follow_links = follow_links
        self._inside = {folder}
        if not folder.is_absolute() and ".." not in folder.parts:
            self._refuse(folder, "the current folder", os.path.realpath(Path.cwd()))

    def inside(self, path: Path) -> Path:
        """Return a path in the folder; raise the root's error where it leads out of it."""
        if path not in self._inside:
            self.inside(path.parent)
            if path.is_symlink():
                self._refuse(path, str(self._folder), self._real)
            self._inside.add(path)
        return path

    def _refuse(self, path: Path, folder: str, real_folder: str) -> None:
        if self._follow_links:
            return
        real = os.path.realpath(path)
        if os.path.commonpath((real, real_folder)) != real_folder:
            advice = (
                "" if self._follow_links is None else ", or allow it in settings.yaml: limits: {follow_links: true}"
            )
            raise self._error(f"{path} leads out of {folder}, to {real}; put what it leads to in its place{advice}")


class FixturesElsewhere(StrictModel):
    """The repository that holds the cases, where this one does not; a commit as `ref` is asked for only once."""

    repository: str = Field(
        pattern=r"^([A-Za-z0-9][\w.-]*/[\w.-]+|\w[\w.-]*@[\w.-]+:[^\s]+|[a-z]+://[^\s]+|[./].*)$",
        description="owner/name on GitHub, the address of another repository, or its folder (which begins with . or /)",
    )
    ref: str = Field(default="main", pattern=r"^[A-Za-z0-9][\w./+-]*$", description="a branch, a tag or a whole commit")
    path: str = Field(default=".", description="the folder in it that holds what `fixtures/` would")

    @field_validator("path")
    @classmethod
    def _is_inside(cls, path: str) -> str:
        if path.startswith("/") or ".." in Path(path).parts:
            raise ValueError(f"'{path}' is no folder inside that repository")
        return path
