"""Pinned outputs: a model's outputs in `evals/pinned/*.json`, committed as a baseline for judges."""

from pathlib import Path

from pydantic import Field

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import StrictModel, json_text, read_versioned, replace_text
from skill_evaluator.identifiers import CaseId, ComponentName, Digest, ModelId, RunId, Timestamp, VersionText
from skill_evaluator.library.reading import ConfinedFolder
from skill_evaluator.text import digest

PINNED_VERSION = 1


class PinnedOutput(StrictModel):
    """One output of a model, with the digests of its case and of its text."""

    case: Digest
    digest: Digest
    text: str


class PinnedRun(StrictModel):
    """The run whose outputs are pinned, with its digests of prompt, schema and settings."""

    pinned_version: int = PINNED_VERSION
    skill: ComponentName
    skill_version: VersionText
    model_id: ModelId
    run_id: RunId
    created: Timestamp
    digests: dict[str, Digest]


class PinnedOutputs(PinnedRun):
    """The pinned outputs of one run: the first output of each selected case."""

    outputs: dict[CaseId, PinnedOutput] = Field(min_length=1)


class PinReport(PinnedRun):
    """The JSON output of `judge pin`: the file it wrote, and the cases whose outputs it contains."""

    path: str
    cases: list[CaseId]


def pinned_folder(component: Path) -> Path:
    """Return the folder of a component's pinned outputs."""
    return component / "evals" / "pinned"


def write_pinned(path: Path, pinned: PinnedOutputs) -> None:
    """Write pinned outputs to a file."""
    replace_text(path, json_text(pinned.model_dump(mode="json")))


def read_pinned(component: Path, skill: str) -> dict[str, PinnedOutputs]:
    """Return the pinned outputs of a component by model id. Raise JudgeError if a file is invalid or was edited."""
    root = ConfinedFolder(component, JudgeError)
    pinned: dict[str, PinnedOutputs] = {}
    for path in sorted(pinned_folder(component).glob("*.json")):
        outputs = read_versioned(PinnedOutputs, root.inside(path), "pinned_version", PINNED_VERSION, JudgeError)
        if outputs.skill != skill:
            raise JudgeError(f"{path} holds outputs of '{outputs.skill}', not of '{skill}'; remove it")
        if outputs.model_id in pinned:
            raise JudgeError(f"{path} is a second file with outputs of {outputs.model_id}; remove one")
        edited = [case_id for case_id, output in outputs.outputs.items() if digest(output.text) != output.digest]
        if edited:
            raise JudgeError(f"{path}: the output of case '{edited[0]}' was edited; pin the run again")
        pinned[outputs.model_id] = outputs
    return pinned


def pinned_of_model(component: Path, skill: str, model_id: str) -> PinnedOutputs:
    """Return the pinned outputs of a model.

    If it has none, but exactly one other model has, return those. Otherwise raise JudgeError.
    """
    pinned = read_pinned(component, skill)
    if model_id in pinned:
        return pinned[model_id]
    if len(pinned) == 1:
        return next(iter(pinned.values()))
    hint = f" (only of {', '.join(pinned)})" if pinned else ""
    raise JudgeError(
        f"no outputs of '{skill}' are pinned for {model_id}{hint}: use --baseline RUN, or run `judge pin RUN` first"
    )
