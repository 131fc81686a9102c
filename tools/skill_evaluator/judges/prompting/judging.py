"""A judge run in `judgements/<id>/`: judging.json for resuming it, the judges' journals, results and reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt

from skill_evaluator.display.safe_text import code_block
from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel, json_text, read_versioned, replace_text
from skill_evaluator.identifiers import CaseId, Digest, Label, ModelId, ReplicateCount, RunId, Timestamp
from skill_evaluator.judges.prompting.questions import JudgePrompt, JudgeQuestion, PromptIdentity
from skill_evaluator.library.config import Model
from skill_evaluator.runner.journal import Manifest, Run, Transport, run_id_of
from skill_evaluator.text import listed, nearest

JUDGING = "judging.json"
RUNS = "runs"  # one folder per judge
RUBRIC = "evaluation_rubric.json"
PROMPT = "evaluation_prompt.md"
RESULTS = "evaluation_results.json"
BIAS = "bias_analysis_report.md"
JUDGING_VERSION = 1
JudgeMode = Literal["score", "pairwise", "regression", "calibrate", "rubric", "scenarios", "cases"]
_COMPARED_FIELDS = ("mode", "rubric", "criteria", "prompts", "seed", "replicates")
_MAX_CHANGES_NAMED = 3


class JudgeRunFields(FrozenModel):
    """The fields of a judge run that its results repeat. `rubric`: the digest of the rubric.

    `skill`: the component whose outputs are judged; null for items from a file. `source`: the file or the run. Judge
    runs are comparable if rubric, prompts and the judge's settings are equal.
    """

    id: RunId
    created: Timestamp
    mode: JudgeMode
    skill: Label | None = Field(default=None, exclude_if=lambda skill: skill is None)
    source: str | None = Field(default=None, exclude_if=lambda source: source is None)
    rubric: Digest
    prompts: list[PromptIdentity] = Field(min_length=1)
    seed: int
    replicates: ReplicateCount
    transport: Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")


class JudgeRunHead(JudgeRunFields):
    """The head of a results file: the judge run, the file of its rubric and the number of items."""

    rubric_file: str
    items: NonNegativeInt


class JudgeRun(JudgeRunFields):
    """The file judging.json. `criteria`: ids of criteria or dimensions; `items`: digest of the texts by id.

    `questions`: digest of the judge's input by id; empty if all outputs are identical. `judges`: digest of the model's
    settings by id.
    """

    judging_version: int = JUDGING_VERSION
    criteria: list[Label] = Field(min_length=1)
    judges: dict[ModelId, Digest] = Field(min_length=1)
    items: dict[CaseId, Digest] = Field(min_length=1)
    questions: dict[CaseId, Digest]
    evaluator_version: Label

    def head(self, rubric_file: str) -> JudgeRunHead:
        """Return the head of the results file."""
        return JudgeRunHead.view(self, rubric_file=rubric_file, items=len(self.items))

    def changes_since(self, earlier: "JudgeRun") -> list[str]:
        """List the differences from an earlier judge run, with the id of each changed judge and item."""
        current, previous = self.model_dump(), earlier.model_dump()
        changed = [name for name in _COMPARED_FIELDS if current[name] != previous[name]]
        for name in ("judges", "items"):
            ids = {**current[name], **previous[name]}
            changed += [f"{name[:-1]} '{key}'" for key in ids if current[name].get(key) != previous[name].get(key)]
        return changed or ([] if current["questions"] == previous["questions"] else ["the texts of the questions"])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask:
    """The questions of a mode and their inputs. `items`: digest of the texts by id; `rubric`: digest of the rubric.

    `paper` is the content of evaluation_rubric.json. A dry run prints `notes`, every run prints `warnings`.
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


def find_judge_run(reference: str, out: Path, mode: JudgeMode) -> Path:
    """Find the folder of a judge run by its folder, its id, or `latest` for the newest of this mode.

    Raise JudgeError if there is none.
    """
    if (Path(reference) / JUDGING).is_file():
        return Path(reference)
    ids = sorted(path.parent.name for path in out.glob(f"*/{JUDGING}"))
    newest = (name for name in reversed(ids) if read_judge_run(out / name).mode == mode)
    judging_id = next(newest, reference) if reference == "latest" else reference
    if judging_id not in ids:
        raise JudgeError(f"no judge run '{judging_id}' in {out} {nearest(judging_id, ids)}")
    return out / judging_id


def resumed_judge_run(planned: JudgeRun, reference: str, out: Path) -> tuple[JudgeRun, Path]:
    """Return the judge run to resume and its folder. Raise JudgeError if its inputs differ from the planned run."""
    folder = find_judge_run(reference, out, planned.mode)
    earlier = read_judge_run(folder)
    if changes := planned.changes_since(earlier):
        names = listed(changes, _MAX_CHANGES_NAMED)
        raise JudgeError(f"cannot resume {folder}: changed since it began: {names}; start a new judge run")
    if planned.transport == "batch" and earlier.transport != "batch":
        raise JudgeError(f"cannot resume {folder} with --batch: it was started without it")
    return earlier, folder


def read_judge_run(folder: Path) -> JudgeRun:
    """Read the judging.json of a folder; raise JudgeError if it is broken or of a newer version."""
    return read_versioned(JudgeRun, folder / JUDGING, "judging_version", JUDGING_VERSION, JudgeError)


def write_judge_run(folder: Path, judging: JudgeRun) -> None:
    """Write the judging.json of a folder; raise StorageError."""
    replace_text(folder / JUDGING, json_text(judging.model_dump(mode="json")))


def judge_runs(judging: JudgeRun, models: Sequence[Model], folder: Path) -> list[Run]:
    """Return the run of each judge."""
    prompts = {prompt.name: prompt.digest for prompt in judging.prompts}
    runs = []
    for model in models:
        manifest = Manifest.view(
            judging,
            run_id=run_id_of(judging.id, "", model.id),
            skill="judge",
            skill_version=str(JUDGING_VERSION),
            model_id=model.id,
            provider=model.provider,
            judging=judging.id,
            cases=judging.questions,
            digests={"settings": judging.judges[model.id], "rubric": judging.rubric, **prompts},
        )
        runs.append(Run(model=model, manifest=manifest, folder=folder / RUNS / manifest.run_id))
    return runs


def write_papers(folder: Path, task: JudgeTask, results: FrozenModel, bias: str) -> None:
    """Write the rubric, the prompt, the results and the report on biases; raise StorageError."""
    replace_text(folder / RUBRIC, json_text(task.paper))
    replace_text(folder / PROMPT, _prompt_page(task))
    replace_text(folder / RESULTS, json_text(results.model_dump(mode="json")))
    replace_text(folder / BIAS, bias)


def _prompt_page(task: JudgeTask) -> str:
    parts = ["# Prompt of the judge\n"]
    for prompt in task.prompts:
        identity = prompt.identity
        parts.append(f"Prompt `{identity.name}` {identity.version}, `{identity.digest}`.\n")
    for system in dict.fromkeys(question.system for question in task.questions):
        parts.append(f"## Instructions, the same for every item\n\n{code_block(system)}\n")
    for prompt in task.prompts:
        parts.append(f"## Template for the texts of an item: {prompt.identity.name}\n\n{code_block(prompt.texts)}\n")
    return "\n".join(parts)
