"""judging.json: what judges are asked. Items, criteria, prompts and judges, each with its digest.

A judging lies in `judgements/<id>/`: this file, one run a judge in `runs/`, its results, and papers for people.
Resuming and results go by it.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from skill_evaluator import __version__
from skill_evaluator.display.safe_text import code_block
from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, json_text, read_versioned, replace_text
from skill_evaluator.identifiers import CaseId, Digest, Label, ModelId, ReplicateCount, RunId, Timestamp
from skill_evaluator.judges.asking.questions import JudgePrompt, JudgeQuestion, PromptIdentity
from skill_evaluator.library.config import Model
from skill_evaluator.runner.journal import MANIFEST, TOLD_LATER, Manifest, Transport, read_manifest
from skill_evaluator.runner.runs import Run, new_invocation, run_id_of, settings_digest
from skill_evaluator.text import listed, nearest

JUDGING = "judging.json"
RUNS = "runs"  # beside it: one folder a judge
JUDGING_VERSION = 1
JudgeMode = Literal["score", "pairwise", "regression", "calibrate", "rubric", "scenarios"]
_SHAPING = ("mode", "rubric", "criteria", "prompts", "seed", "replicates")
_CHANGES_NAMED = 3


class Judging(FrozenModel):
    """The file judging.json. `rubric`: the digest of what is looked for; `criteria`: their ids, or the dimensions.

    `questions`: by id, a digest of all that a judge reads; empty if all outputs are identical. `judges`: by id, a
    digest of the model's settings. `skill`: the component whose outputs are judged; null for items of a file.
    `source`: the file or the run.
    """

    judging_version: int = JUDGING_VERSION
    id: RunId
    created: Timestamp
    mode: JudgeMode
    skill: Label | None = Field(default=None, exclude_if=lambda skill: skill is None)
    source: str | None = Field(default=None, exclude_if=lambda source: source is None)
    rubric: Digest
    criteria: list[Label] = Field(min_length=1)
    prompts: list[PromptIdentity] = Field(min_length=1)
    judges: dict[ModelId, Digest] = Field(min_length=1)
    items: dict[CaseId, Digest] = Field(min_length=1)
    questions: dict[CaseId, Digest]
    seed: int
    replicates: ReplicateCount
    transport: Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")
    evaluator_version: Label

    def changes_since(self, earlier: "Judging") -> list[str]:
        """Name what differs from an earlier judging, down to the item."""
        here, there = self.model_dump(), earlier.model_dump()
        changed = [name for name in _SHAPING if here[name] != there[name]]
        for name in ("judges", "items"):
            ids = {**here[name], **there[name]}
            changed += [f"{name[:-1]} '{key}'" for key in ids if here[name].get(key) != there[name].get(key)]
        return changed or ([] if here["questions"] == there["questions"] else ["how the questions are put"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What a mode asks: its questions, and what they were made from. `items`: by id, a digest of the texts.

    `paper` is the rubric, or what stands in its place, as it is kept beside the results; `rubric` is its digest.
    `notes` are sentences for the dry run, `warnings` for every run.
    """

    mode: JudgeMode
    rubric: str
    criteria: Sequence[str]
    prompts: Sequence[JudgePrompt]
    items: Mapping[str, str]
    questions: Sequence[JudgeQuestion]
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    paper: Mapping[str, Any] = field(default_factory=dict)
    skill: str | None = None
    source: str | None = None

    def judging(self, models: Sequence[Model], *, seed: int, replicates: int = 1, **how: Any) -> Judging:
        """Return what these models are to be asked, as a judging; `how` are fields of it that have a default.

        Raise JudgeError where two questions would have the same id.
        """
        now = datetime.datetime.now(datetime.UTC)
        digests = {question.case_id: question.digest for question in self.questions}
        if len(digests) < len(self.questions):
            ids = [question.case_id for question in self.questions]
            twice = next(case_id for case_id in ids if ids.count(case_id) > 1)
            raise JudgeError(f"two questions would have the id '{twice}'; rename the items")
        return Judging(
            id=new_invocation(now),
            created=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            mode=self.mode,
            skill=self.skill,
            source=self.source,
            rubric=self.rubric,
            criteria=list(self.criteria),
            prompts=[prompt.identity for prompt in self.prompts],
            judges={model.id: settings_digest(model) for model in models},
            items=dict(self.items),
            questions=digests,
            seed=seed,
            replicates=replicates,
            evaluator_version=__version__,
            **how,
        )


def find_judging(wanted: str, place: Path, mode: JudgeMode) -> Path:
    """Return the folder of a judge run: a folder, an id in `place`, or `latest`, the newest of this mode.

    Raise JudgeError if it does not exist.
    """
    if (Path(wanted) / JUDGING).is_file():
        return Path(wanted)
    ids = sorted(path.parent.name for path in place.glob(f"*/{JUDGING}"))
    newest = (name for name in reversed(ids) if read_judging(place / name).mode == mode)
    judging_id = next(newest, wanted) if wanted == "latest" else wanted
    if judging_id not in ids:
        raise JudgeError(f"no judge run '{judging_id}' in {place} {nearest(judging_id, ids)}")
    return place / judging_id


def taken_up(planned: Judging, wanted: str, place: Path) -> tuple[Judging, Path]:
    """Return the judge run that `--resume` names, with its folder.

    Raise JudgeError if it does not exist, or differs from what is planned now.
    """
    folder = find_judging(wanted, place, planned.mode)
    earlier = read_judging(folder)
    changes = planned.changes_since(earlier)
    if changes:
        raise JudgeError(
            f"cannot resume {folder}: changed since it began: {listed(changes, _CHANGES_NAMED)}; start a new judging"
        )
    if planned.transport == "batch" and earlier.transport != "batch":
        raise JudgeError(f"cannot resume {folder} with --batch: it was begun without it")
    return earlier, folder


def read_judging(folder: Path) -> Judging:
    """Read what a judging in a folder asks; raise JudgeError when it is broken or of a newer version."""
    return read_versioned(Judging, folder / JUDGING, "judging_version", JUDGING_VERSION, JudgeError)


def write_judging(folder: Path, judging: Judging) -> None:
    """Write what is asked into the folder of a judging; raise StorageError."""
    replace_text(folder / JUDGING, json_text(judging.model_dump(mode="json")))


def judge_runs(judging: Judging, models: Sequence[Model], folder: Path) -> list[Run]:
    """Return the run of each judge, begun or new; raise JudgeError where one was begun with other questions."""
    runs = []
    for model in models:
        planned = judge_manifest(judging, model)
        place = folder / RUNS / planned.run_id
        if (place / MANIFEST).exists() and read_manifest(place).model_copy(update=dict.fromkeys(TOLD_LATER)) != planned:
            raise JudgeError(f"{place} was begun with other questions than {folder / JUDGING} says; start a new one")
        runs.append(Run(model=model, manifest=planned, folder=place))
    return runs


def judge_manifest(judging: Judging, model: Model) -> Manifest:
    """Return what one judge's run of a judging is to ask."""
    return Manifest.view(
        judging,
        run_id=run_id_of(judging.id, "", model.id),
        skill="judge",
        skill_version=str(JUDGING_VERSION),
        model_id=model.id,
        provider=model.provider,
        judging=judging.id,
        cases=judging.questions,
        digests={
            "settings": judging.judges[model.id],
            "rubric": judging.rubric,
            **{prompt.name: prompt.digest for prompt in judging.prompts},
        },
    )


RUBRIC = "evaluation_rubric.json"
PROMPT = "evaluation_prompt.md"
RESULTS = "evaluation_results.json"
BIAS = "bias_analysis_report.md"


def write_papers(folder: Path, asking: Asking, results: FrozenModel, bias: str) -> None:
    """Write all four; raise StorageError."""
    replace_text(folder / RUBRIC, json_text(asking.paper))
    replace_text(folder / PROMPT, _prompt_page(asking))
    replace_text(folder / RESULTS, json_text(results.model_dump(mode="json")))
    replace_text(folder / BIAS, bias)


def _prompt_page(asking: Asking) -> str:
    parts = ["# What the judge was told\n"]
    for prompt in asking.prompts:
        parts.append(f"Prompt `{prompt.identity.name}` {prompt.identity.version}, `{prompt.identity.digest}`.\n")
    systems = dict.fromkeys(question.system for question in asking.questions)
    parts += [f"## Instructions, the same for every item\n\n{code_block(system)}\n" for system in systems]
    for prompt in asking.prompts:
        parts.append(f"## Where the texts of an item go: {prompt.identity.name}\n\n{code_block(prompt.texts)}\n")
    return "\n".join(parts)
