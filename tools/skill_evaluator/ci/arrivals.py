"""What the jobs of a plan left in a folder: run folders and skip notes, none of it believed yet.

An artifact speaks for its own job alone. Links are not followed, and what cannot be read is a sentence, not an end.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.ci.plan import PlannedRun
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import RunError
from skill_evaluator.runner.batch_journal import BATCHES
from skill_evaluator.runner.journal import ANSWERS, MANIFEST, RECORD, Manifest, read_manifest

SKIPPED = ".skipped"  # a file `<job>.skipped` holds why a job did not run
_NOTE_BYTES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedRun:
    """A run folder. `job` is the artifact it lay in, if that is told; without a manifest, `problem` says why."""

    folder: Path
    place: str
    job: str | None
    manifest: Manifest | None
    problem: str = ""

    def claims(self, run: PlannedRun) -> bool:
        """Return whether the folder is to be taken for a planned run, by its place and by one of its two names."""
        if run.manifest.run_id not in (self.folder.name, self.manifest and self.manifest.run_id):
            return False
        if self.job is not None:
            return self.job == run.job
        return self.manifest is None or self.manifest.skill == run.manifest.skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Everything that arrived; `notes` says by job why it did not run."""

    root: Path
    runs: tuple[ArrivedRun, ...]
    notes: dict[str, str]

    def shown(self, sentence: str) -> str:
        """Return a sentence for people, its paths relative to the folder of the artifacts."""
        return visible(sentence.replace(f"{self.root}{os.sep}", ""))


def find_arrivals(root: Path, jobs: Iterable[str]) -> Arrivals:
    """Find what lies below a folder, at any depth."""
    planned = set(jobs)
    runs: list[ArrivedRun] = []
    notes: dict[str, str] = {}
    for name, _, files in sorted(os.walk(root)):
        folder = Path(name)
        job = next((part for part in folder.relative_to(root).parts if part in planned), None)
        if MANIFEST in files:
            runs.append(_read_run(folder, root, job))
        for file in files:
            of_job = file.removesuffix(SKIPPED)
            if of_job != file and of_job in planned and job in (None, of_job) and is_own_file(folder / file):
                notes[of_job] = _read_note(folder / file)
    return Arrivals(root=root, runs=tuple(runs), notes=notes)


def is_own_file(path: Path) -> bool:
    """Return whether a path is a file itself: no link to one, which could be any file of this machine, and no pipe."""
    return path.is_file() and not path.is_symlink()


def _read_run(folder: Path, root: Path, job: str | None) -> ArrivedRun:
    place = visible(str(folder.relative_to(root)))
    try:
        for name in (MANIFEST, ANSWERS, RECORD, BATCHES):
            if os.path.lexists(folder / name) and not is_own_file(folder / name):
                raise RunError(f"{folder / name} is a link, or no file")
        return ArrivedRun(folder=folder, place=place, job=job, manifest=read_manifest(folder))
    except RunError as problem:
        return ArrivedRun(folder=folder, place=place, job=job, manifest=None, problem=str(problem))


def _read_note(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            lines = handle.read(_NOTE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as problem:
        return f"skipped, and the reason cannot be read: {problem.strerror}"
    return visible(lines[0].strip()) if lines and lines[0].strip() else "skipped"
