"""A judge run in `judgements/<id>/`: judging.json for resuming it, the judges' journals, records and results."""

import datetime
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt

from skill_evaluator import __version__
from skill_evaluator.display import code_block
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, EXIT_REGRESSED, JudgeError
from skill_evaluator.files import FrozenModel, StrictModel, json_text, read_versioned, replace_text
from skill_evaluator.identifiers import CaseId, Digest, Label, ModelId, ReplicateCount, RunId, Share, Timestamp
from skill_evaluator.judges.prompting.questions import PromptIdentity, digest_of, load_prompt
from skill_evaluator.judges.prompting.reading import Unscored, UnscoredReason, commonest_failure, text_of
from skill_evaluator.judges.workflows.requests import BatchJudgeRequest, JudgeRequest
from skill_evaluator.library.config import Model, Price, select_models
from skill_evaluator.library.options import words_of
from skill_evaluator.providers import read_configuration, refuse_unbatched
from skill_evaluator.providers.base import Failure, Request
from skill_evaluator.runner import journal, prices
from skill_evaluator.runner.engine import make_calls
from skill_evaluator.runner.schedule import Budget, Call, Replicate, refuse_amounts
from skill_evaluator.runner.session import Session, Watch, no_progress, with_keys
from skill_evaluator.stats import rounded, total_or_none
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
_MAX_EXAMPLE = 400  # characters
_OMITTED_OPTIONS = {"resume", "judge_run", "dry_run", "batch", "format"}  # absent in the command that resumes a run


def _refuse_booleans(value: object) -> object:
    if isinstance(value, bool):  # True equals 1 in Python
        raise ValueError("expected 1 or 2, not a boolean")
    return value


def _without_surrogates(text: object) -> object:
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text


Winner = Annotated[Literal[1, 2, "tie"], BeforeValidator(_refuse_booleans)]
Order = Annotated[Literal[1, 2], BeforeValidator(_refuse_booleans)]
ORDERS: tuple[Order, Order] = (1, 2)  # the number of the output that is shown first
Index = Annotated[int, Field(ge=0, strict=True)]
Level = Annotated[int, Field(ge=1, le=10, strict=True)]
JudgeText = Annotated[str, BeforeValidator(_without_surrogates)]
"""A text of a judge. JSON can contain half of a surrogate pair, which UTF-8 files cannot, so it is escaped."""


class StoredVerdict(StrictModel):
    """A line of verdicts.jsonl: a judge's verdict on a pair in one order, mapped back to the outputs."""

    id: Label = Field(min_length=1, description="the id of the item")
    judge: Label = Field(min_length=1)
    order: Order = Field(description="1: output 1 was shown first; 2: output 2 was")
    winner: Winner | None = Field(description="the preferred output, or tie; null: the judge's verdict does not count")
    replicate: Index = Field(default=0, description="0; further outputs for the same request: 1, 2, and so on")
    confidence: Share | None = None
    criteria: dict[Label, Winner | None] = Field(default={}, description="the winner (or null) by criterion")
    text: str | None = Field(default=None, description="the text of the judge's output")


class StoredScore(StrictModel):
    """A line of scores.jsonl: a judge's score of an output on one criterion."""

    id: Label = Field(min_length=1, description="the id of the item")
    judge: Label = Field(min_length=1)
    criterion: Label = Field(min_length=1)
    score: Level | None = Field(description="null: the output could not be parsed")
    replicate: Index = Field(default=0, description="0; further outputs for the same request: 1, 2, and so on")
    confidence: Share | None = None


StoredLine = StoredVerdict | StoredScore


class JudgeRecord(FrozenModel):
    """A judge's calls; unknown amounts are null. `hit_rate`: cached share of input; `stopped`: why calls ended."""

    model_id: ModelId
    provider: Label
    settings: Digest
    served_models: list[Label]
    planned: NonNegativeInt
    answered: NonNegativeInt
    input_tokens: NonNegativeInt | None
    output_tokens: NonNegativeInt | None
    cost_usd: float | None
    hit_rate: Share | None = Field(default=None, exclude_if=lambda rate: rate is None)
    stopped: Label | None = None


class NoUsableOutput(FrozenModel):
    """The reasons why no verdict of a judge counts, each with its number of verdicts. `example`: start of an output."""

    unscored: dict[UnscoredReason, NonNegativeInt]
    example: JudgeText = ""


def no_usable_output(unscored: Sequence[UnscoredReason | None], texts: Iterable[str]) -> NoUsableOutput | None:
    """Return the reasons and the start of an output if all verdicts of a judge are unusable. Return None otherwise.

    `unscored` has an entry for each verdict: the reason, or None.
    """
    reasons = [reason for reason in unscored if reason is not None]
    if not reasons or len(reasons) < len(unscored):
        return None
    return NoUsableOutput(unscored=Counter(reasons), example=next(iter(texts), "")[:_MAX_EXAMPLE])


def texts_of(answers: Iterable[Replicate]) -> Iterator[str]:
    """Yield the text of each completed call."""
    return (replicate.completion.text for replicate in answers if replicate.completion is not None)


def record_of(
    model: Model, manifest: journal.Manifest, answers: Iterable[Replicate], price: Price | None, stopped: str | None
) -> JudgeRecord:
    """Return the record of a judge: tokens and cost of all its calls; `stopped` is the reason for missing calls."""
    completions = [replicate.completion for replicate in answers if replicate.completion is not None]
    usage = [completion.usage for completion in completions]
    inputs = total_or_none(one.input_tokens for one in usage)
    outputs = total_or_none(one.output_tokens for one in usage)
    cost = total_or_none(prices.call_cost(model, price, replicate) for replicate in answers)
    return JudgeRecord(
        model_id=model.id,
        provider=model.provider,
        settings=manifest.digests["settings"],
        served_models=sorted({completion.served_model for completion in completions if completion.served_model}),
        planned=manifest.calls,
        answered=len(completions),
        input_tokens=None if inputs is None else int(inputs),
        output_tokens=None if outputs is None else int(outputs),
        cost_usd=rounded(cost),
        hit_rate=prices.hit_rate(usage),
        stopped=stopped,
    )


class JudgeRunFields(FrozenModel):
    """The fields of a judge run that its results repeat. `rubric`: the digest of the rubric.

    `skill`: the component whose outputs are judged; null for items from a file. `source`: the file or the run.
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
    transport: journal.Transport = Field(default="direct", exclude_if=lambda transport: transport == "direct")


class JudgeRunHead(JudgeRunFields):
    """The head of a results file: the judge run, the file of its rubric and the number of items."""

    rubric_file: str
    items: NonNegativeInt


class JudgeRun(JudgeRunFields):
    """A judge run, as in judging.json.

    `criteria` has the ids of criteria or dimensions. The digests are of the settings of each model in `judges`, of the
    texts of each of the `items`, and of the prompt of each of the `questions`. In a regression run, an item with two
    identical outputs has no question.
    """

    judging_version: int = JUDGING_VERSION
    criteria: list[Label] = Field(min_length=1)
    judges: dict[ModelId, Digest] = Field(min_length=1)
    items: dict[CaseId, Digest] = Field(min_length=1)
    questions: dict[CaseId, Digest]
    evaluator_version: Label

    def changes_since(self, earlier: "JudgeRun") -> list[str]:
        """Return the names of changed fields, judges and items. If only questions changed, return one text for them."""
        current, previous = self.model_dump(), earlier.model_dump()
        changed = [name for name in _COMPARED_FIELDS if current[name] != previous[name]]
        for name in ("judges", "items"):
            ids = {**current[name], **previous[name]}
            changed += [f"{name[:-1]} '{key}'" for key in ids if current[name].get(key) != previous[name].get(key)]
        return changed or ([] if current["questions"] == previous["questions"] else ["the texts of the questions"])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask:
    """The questions of a judge run, and the details that its files contain.

    `rubric` is the content of evaluation_rubric.json. `prompts` are names of judge prompts, such as `direct`. `items`
    has the digest of an item's texts by item id. `source` is the file or run with the judged outputs. A dry run prints
    `notes`, and every run prints `warnings`.
    """

    mode: JudgeMode
    rubric_digest: str
    criteria: Sequence[str]
    prompts: Sequence[str]
    items: Mapping[str, str]
    questions: Sequence[Request]
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    rubric: Mapping[str, Any] = field(default_factory=dict)
    rubric_file: str = "dimensions"
    skill: str | None = None
    source: str | None = None


def find_judge_run(reference: str, out: Path, mode: JudgeMode) -> Path:
    """Find a judge run by folder, id or `latest` (newest of `mode`); return its folder. Raise JudgeError if absent."""
    if (Path(reference) / JUDGING).is_file():
        return Path(reference)
    ids = sorted(path.parent.name for path in out.glob(f"*/{JUDGING}"))
    newest = (name for name in reversed(ids) if read_judge_run(out / name).mode == mode)
    judging_id = next(newest, reference) if reference == "latest" else reference
    if judging_id not in ids:
        if reference == "latest":
            raise JudgeError(f"{out} contains no run of `judge {mode}`")
        raise JudgeError(f"no judge run '{judging_id}' in {out} {nearest(judging_id, ids)}")
    return out / judging_id


def resumed_judge_run(planned: JudgeRun, reference: str, out: Path) -> tuple[JudgeRun, Path]:
    """Return the judge run to resume and its folder. Raise JudgeError if it is not found or does not fit `planned`."""
    folder = find_judge_run(reference, out, planned.mode)
    earlier = read_judge_run(folder)
    if changes := planned.changes_since(earlier):
        names = listed(changes, _MAX_CHANGES_NAMED)
        raise JudgeError(f"cannot resume {folder}: changed since it began: {names}; start a new judge run")
    if planned.transport == "batch" and earlier.transport != "batch":
        raise JudgeError(f"{folder} was started without --batch; resume it without --batch")
    return earlier, folder


def read_judge_run(folder: Path) -> JudgeRun:
    """Read the judging.json of a folder. Raise JudgeError if it is missing, invalid or of a newer version."""
    return read_versioned(JudgeRun, folder / JUDGING, "judging_version", JUDGING_VERSION, JudgeError)


def write_judge_run(folder: Path, judging: JudgeRun) -> None:
    """Write the judging.json of a folder. Raise StorageError if that fails."""
    replace_text(folder / JUDGING, json_text(judging.model_dump(mode="json")))


def runs_of_judges(judging: JudgeRun, models: Sequence[Model], folder: Path) -> list[journal.Run]:
    """Return the run of each judge, with its manifest and its folder, in the order of `models`."""
    prompts = {prompt.name: prompt.digest for prompt in judging.prompts}
    runs = []
    for model in models:
        manifest = journal.Manifest.view(
            judging,
            run_id=journal.run_id_of(judging.id, "", model.id),
            skill="judge",
            skill_version=str(JUDGING_VERSION),
            model_id=model.id,
            provider=model.provider,
            judging=judging.id,
            cases=judging.questions,
            digests={"settings": judging.judges[model.id], "rubric": judging.rubric, **prompts},
        )
        runs.append(journal.Run(model=model, manifest=manifest, folder=folder / RUNS / manifest.run_id))
    return runs


def write_results(folder: Path, task: JudgeTask, results: FrozenModel) -> None:
    """Write the rubric, the prompt and the results of a judge run into its folder. Raise StorageError if that fails."""
    parts, prompts = ["# Prompt of the judge\n"], [load_prompt(name) for name in task.prompts]
    for identity in (prompt.identity for prompt in prompts):
        parts.append(f"Prompt `{identity.name}` {identity.version}, `{identity.digest}`.\n")
    for system in dict.fromkeys(question.system for question in task.questions):
        parts.append(f"## Instructions, the same for every item\n\n{code_block(system)}\n")
    for prompt in prompts:
        parts.append(f"## Template for the texts of an item: {prompt.identity.name}\n\n{code_block(prompt.texts)}\n")
    replace_text(folder / RUBRIC, json_text(task.rubric))
    replace_text(folder / PROMPT, "\n".join(parts))
    replace_text(folder / RESULTS, json_text(results.model_dump(mode="json")))


def write_lines(path: Path, lines: Iterable[FrozenModel]) -> None:
    """Write a JSON Lines file. Raise StorageError if that fails."""
    replace_text(path, "".join(f"{line.model_dump_json()}\n" for line in lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRunSize:
    """The size of a judge run: an estimate for each judge, and notes on the calls."""

    judging: JudgeRun
    judges: Sequence[prices.ModelEstimate]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCalls:
    """One judge of a judge run, with the outcome of each call. If `failure` is not None, it ended the calls early."""

    model: Model
    replicates: int
    outcomes: Mapping[Call, Replicate]
    record: JudgeRecord
    failure: Failure | None

    def output(self, question_id: str, replicate: int) -> str | Unscored:
        """Return the text of the judge's output for a question, or the reason why it is missing."""
        return text_of(self.outcomes.get(Call(question_id, replicate)))

    def unusable(self, unscored: Sequence[UnscoredReason | None]) -> NoUsableOutput | None:
        """Return the reasons and the start of an output if all verdicts are unusable (see `no_usable_output`)."""
        return no_usable_output(unscored, texts_of(self.outcomes.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A judge run after its calls: its folder, its head, the calls of each judge that has a key, and the results.

    `judging`: None for stored verdicts. `results`: None if not computed. `reasons` explain calls without an output.
    `again`: the command that resumes an incomplete judge run, else empty. It is incomplete if a judge lacks its
    key, stopped, or answered too few calls.
    """

    folder: Path
    judging: JudgeRunHead | None = None
    calls: Sequence[JudgeCalls] = ()
    results: Any = None
    reasons: Sequence[str] = ()
    again: Sequence[str] = ()

    @property
    def code(self) -> int:
        """The exit code of the results, but 4 if the judge run is incomplete and nothing regressed."""
        code = EXIT_OK if self.results is None else self.results.exit_code
        return EXIT_INCOMPLETE if self.again and code != EXIT_REGRESSED else code


def resume_command(request: JudgeRequest, mode: JudgeMode, folder: Path, reasons: Sequence[str]) -> list[str]:
    """Return the words of the command that resumes a judge run; a `--max-cost` that stopped the run is doubled."""
    if request.max_cost is not None and any("stopped: max_cost" in sentence for sentence in reasons):
        request = replace(request, max_cost=2 * request.max_cost)
    options = words_of(request, *(request.__dataclass_fields__.keys() - _OMITTED_OPTIONS))
    return ["skill-evaluator", "judge", mode, *options, "--judge-run", str(folder)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSession(Session):
    """The session that calls the judges of a command (`models`), with the options of the command."""

    request: JudgeRequest
    models: Sequence[Model]
    cascade: bool = False  # the second judge is called only for items on which the first is in doubt

    @classmethod
    def of(
        cls, request: JudgeRequest, watch: Watch | None = None, cascade: tuple[str, ...] | None = None
    ) -> "JudgeSession":
        """Return the session of a request; `cascade` replaces its judges. Raise ConfigError or JudgeError."""
        counts = {"--replicates": request.replicates, "--concurrency": request.concurrency}
        refuse_amounts(counts, request.max_calls, request.max_cost)
        if request.dry_run and request.resumed is not None:
            raise JudgeError("--dry-run cannot be combined with --resume or --judge-run")
        configuration = read_configuration(request.config)
        judge_ids = cascade or request.judges
        if not judge_ids:
            ids = ", ".join(model.id for model in configuration.models)
            raise JudgeError(f"no judge: name one of models.yaml with --judge ID, such as {ids}")
        models = select_models(configuration.models, judge_ids)
        judge_session = cls(
            request=request,
            models=models,
            cascade=cascade is not None,
            configuration=configuration,
            watch=watch or no_progress,
            budget=Budget(request.max_cost, request.max_calls),
            concurrency=request.concurrency,
        )
        if judge_session.transport == "batch":
            refuse_unbatched(models)
        if request.max_cost is not None:
            prices.refuse_unpriced(models, configuration.kinds)
        for model in models:
            if model.profile != "deterministic":
                print(f"warning: the judge {model.id} has profile: {model.profile}; its verdicts vary", file=sys.stderr)
        return judge_session

    @property
    def transport(self) -> journal.Transport:
        """`batch` if a batch API makes the calls, else `direct`."""
        return "batch" if isinstance(self.request, BatchJudgeRequest) and self.request.batch else "direct"

    def planned(self, task: JudgeTask) -> JudgeRun:
        """Return a new judge run of the task, not yet written. Raise JudgeError if two questions have the same id."""
        questions: dict[str, str] = {}
        for question in task.questions:
            if question.case_id in questions:
                raise JudgeError(f"two questions have the id '{question.case_id}'; rename the items")
            questions[question.case_id] = digest_of(question)
        created = datetime.datetime.now(datetime.UTC)
        return JudgeRun.view(
            task,
            rubric=task.rubric_digest,
            id=journal.new_invocation(created),
            created=f"{created:%Y-%m-%dT%H:%M:%SZ}",
            prompts=[load_prompt(name).identity for name in task.prompts],
            judges={model.id: journal.settings_digest(model) for model in self.models},
            questions=questions,
            seed=self.request.seed,
            replicates=self.request.replicates,
            transport=self.transport,
            evaluator_version=__version__,
        )

    def size(self, task: JudgeTask) -> JudgeRunSize:
        """Estimate the size of a judge run. This requires no key, makes no call and writes nothing."""
        for warning in task.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        sizes, batch = {one.case_id: prices.size_of(one) for one in task.questions}, self.transport == "batch"
        judges = []
        for model in self.models:
            kind = self.configuration.kinds[model.provider]
            amounts = prices.estimate(sizes, model, kind, self.request.replicates, batch=batch)
            judges.append(prices.ModelEstimate.of(model, kind, self.configuration.keys, amounts))
        notes = list(task.notes)
        if self.cascade:
            notes.append(f"at most: {self.models[-1].id} is called only if {self.models[0].id} is in doubt")
        if batch:
            notes.append(prices.COST_OF_BATCHES)
        return JudgeRunSize(judging=self.planned(task), judges=judges, notes=notes)

    def begin(self, task: JudgeTask, stage_folder: Path | None = None) -> tuple[JudgeRun, Path, list[Model]]:
        """Start or resume a judge run, or a cascade's second stage in `stage_folder`.

        Return the run, its folder, and the models of the session that have a key.
        """
        judging = self.planned(task)
        folder, resumed = stage_folder or self.request.out / judging.id, self.request.resumed
        if stage_folder is not None:
            resumed = str(stage_folder) if (stage_folder / JUDGING).exists() else None
        if resumed is not None:
            judging, folder = resumed_judge_run(judging, resumed, self.request.out)
        models = list(with_keys(self.models, self.configuration).values())
        journal.check_writable(folder / RUNS, "--out DIR")
        if resumed is None:
            write_judge_run(folder, judging)
        return judging, folder, models

    def ask(self, task: JudgeTask, stage_folder: Path | None = None) -> Judged:
        """Start or resume a judge run and make its missing calls. Return the judge run; its `results` are None."""
        for warning in task.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        judging, folder, models = self.begin(task, stage_folder)
        runs = runs_of_judges(judging, models, folder)
        requests = {question.case_id: question for question in task.questions}
        failures = make_calls(self, [(run, requests) for run in runs])
        calls = []
        for run in runs:
            outcomes, failure = journal.outcomes(run.folder), failures[run.manifest.run_id]
            price = prices.price_of(run.model, self.configuration.kinds[run.model.provider])
            record = record_of(run.model, run.manifest, outcomes.values(), price, failure.reason if failure else None)
            replicates = judging.replicates
            calls.append(
                JudgeCalls(model=run.model, replicates=replicates, outcomes=outcomes, record=record, failure=failure)
            )
        share = self.configuration.settings.required_coverage
        complete = len(calls) == len(judging.judges) and all(
            one.failure is None and one.record.answered >= share * one.record.planned for one in calls
        )
        reasons = [f"{one.model.id} stopped: {one.failure}" for one in calls if one.failure]
        failed = [(one.model.id, commonest_failure(one.outcomes.values())) for one in calls]
        reasons += [f"{name} failed: {failure}" for name, failure in failed if failure]
        again = [] if complete else resume_command(self.request, judging.mode, folder, reasons)
        head = JudgeRunHead.view(judging, rubric_file=task.rubric_file, items=len(judging.items))
        return Judged(folder=folder, judging=head, calls=calls, reasons=reasons, again=again)
