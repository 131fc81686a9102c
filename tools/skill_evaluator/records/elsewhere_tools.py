"""promptfoo's JSON output and inspect's logs → `ForeignRun`s. Either passes a model of the keys that are read here."""

import sys
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, NonNegativeFloat, NonNegativeInt

from skill_evaluator.errors import LeaderboardError, refuse
from skill_evaluator.files import parse_json, read_json, validated
from skill_evaluator.identifiers import Digest
from skill_evaluator.library.case_table import Odd
from skill_evaluator.records.elsewhere import ForeignAnswer, ForeignRun, runs_of_table, score_of
from skill_evaluator.records.record import ANSWERED, SCORED
from skill_evaluator.text import canonical_json, digest

_TABLES = (".csv", ".tsv", ".jsonl")
_LONGEST_ID = 100
_ERROR = 2  # promptfoo's failureReason: no answer came, or none could be judged
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # inspect's scores in letters, with the values that it gives them
_MOST_OF_A_LOG = 256_000_000
_ZSTD = 93  # the method in a ZIP


def read_results(path: Path, odd: Odd = refuse) -> list[ForeignRun]:
    """Read the runs in a file of another tool, by what it holds; raise LeaderboardError."""
    if path.suffix in _TABLES:
        return runs_of_table(path, odd)
    value = _read_log(path) if path.suffix == ".eval" else read_json(path, LeaderboardError)
    if isinstance(value, dict) and "samples" in value and "eval" in value:
        return [_inspect_run(validated(_InspectLog, value, path, LeaderboardError), path)]
    if isinstance(value, dict) and isinstance(value.get("results"), dict):
        return _promptfoo_runs(validated(_Promptfoo, value, path, LeaderboardError), path)
    raise LeaderboardError(
        f"{path} holds no results that are read: a record, promptfoo's JSON, inspect's .eval or .json, "
        "lm-eval's samples, or a table (.csv, .tsv, .jsonl)"
    )


class _Ours(BaseModel):
    """What `export` adds for which another tool has no place: of an answer, or of a run."""

    outcome: str = Field(default=SCORED, pattern="^[a-z_]{1,40}$")
    case_digest: Digest | None = None
    unmeasured: list[str] = []
    skill: str | None = None
    skill_version: str | None = None
    primary_metric: str | None = None

    def measured(self, scores: Mapping[str, float | None]) -> dict[str, float | None]:
        """Return the scores without those that an answer only counts with."""
        return {name: None if name in self.unmeasured else score for name, score in scores.items()}


class _Metadata(BaseModel):
    skill_evaluator: _Ours | None = None


class _TokenUsage(BaseModel):
    prompt: NonNegativeInt | None = None
    completion: NonNegativeInt | None = None


class _Response(BaseModel):
    output: Any = None
    usage: _TokenUsage | None = Field(default=None, alias="tokenUsage")


class _Titled(BaseModel):
    id: str | None = None
    label: str | None = None
    raw: str | None = None


class _Test(BaseModel):
    description: str | None = None
    assertions: Any = Field(default=None, alias="assert")


class _Result(BaseModel):
    provider: _Titled
    prompt_at: NonNegativeInt = Field(alias="promptIdx")
    variables: dict[str, Any] = Field(default={}, alias="vars")
    test: _Test = Field(default=_Test(), alias="testCase")
    response: _Response | None = None
    score: float | None = None
    named_scores: dict[str, float | None] = Field(default={}, alias="namedScores")
    cost: NonNegativeFloat | None = None
    latency_ms: NonNegativeFloat | None = Field(default=None, alias="latencyMs")
    failure: int | None = Field(default=None, alias="failureReason")
    metadata: _Metadata | None = None


class _Results(BaseModel):
    timestamp: str | None = None
    prompts: list[_Titled]
    results: list[_Result]


class _Config(BaseModel):
    metadata: _Metadata | None = None


class _Promptfoo(BaseModel):
    results: _Results
    config: _Config | None = None


def _promptfoo_runs(file: _Promptfoo, path: Path) -> list[ForeignRun]:
    """Return a run for each provider; raise LeaderboardError where the file has several prompts, or no result."""
    results = file.results.results
    templates = {at: prompt.raw for at, prompt in enumerate(file.results.prompts)}  # one a prompt and provider
    prompts = list(dict.fromkeys(templates.get(result.prompt_at) for result in results))
    if len(prompts) != 1:
        raise LeaderboardError(
            f"{path} holds results of {len(prompts)} prompts, and one is compared with one: give promptfoo eval "
            "--filter-prompts"
        )
    runs = defaultdict(list)
    for at, result in enumerate(results):
        runs[result.provider.label or result.provider.id].append(_promptfoo_answer(result, f"{path}, results[{at}]"))
    ours = (file.config and file.config.metadata and file.config.metadata.skill_evaluator) or _Ours()
    return [
        ForeignRun(
            tool="promptfoo",
            skill=ours.skill,
            version=ours.skill_version,
            model=model,
            timestamp=file.results.timestamp,
            prompt=prompts[0] or None,
            primary=ours.primary_metric,
            answers=answers,
        )
        for model, answers in runs.items()
    ]


def _promptfoo_answer(result: _Result, where: str) -> ForeignAnswer:
    failed = result.failure == _ERROR
    response = result.response or _Response()
    usage = response.usage or _TokenUsage()
    ours = (result.metadata and result.metadata.skill_evaluator) or _Ours()
    scores = {name: score_of(value, f"{where}.namedScores.{name}") for name, value in result.named_scores.items()}
    if ours.case_digest is None:  # else the score is that of a metric which is named, too
        scores = {"score": score_of(result.score, f"{where}.score"), **scores}
    case = ours.case_digest or {"vars": result.variables, "assert": result.test.assertions}
    return ForeignAnswer(
        case_id=_promptfoo_case(result),
        case=case,
        outcome=_outcome(ours, failed=failed),
        scores={} if failed else ours.measured(scores),
        output=None if response.output is None else _text(response.output),
        input_tokens=usage.prompt,
        output_tokens=usage.completion,
        cost_usd=result.cost or None,  # promptfoo writes 0 where it knows no price
        latency_s=None if result.latency_ms is None else result.latency_ms / 1000,
    )


def _outcome(ours: _Ours, *, failed: bool) -> str:
    """Return what became of a call: what was exported, unless it is no failure where the tool has one."""
    return ours.outcome if failed == (ours.outcome not in ANSWERED) else "provider_error" if failed else SCORED


def _promptfoo_case(result: _Result) -> str:
    """Return a test's description, or its variables; a long one is abbreviated and told apart by its digest."""
    name = result.test.description or ", ".join(f"{key}={_text(value)}" for key, value in result.variables.items())
    if 0 < len(name) <= _LONGEST_ID and name.isprintable():
        return name
    mark = digest(canonical_json(result.variables)).removeprefix("sha256:")[:8]
    return f"{''.join(filter(str.isprintable, name))[:_LONGEST_ID]}… {mark}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


class _SampleUsage(BaseModel):
    input_tokens: NonNegativeInt | None = None
    output_tokens: NonNegativeInt | None = None


class _Output(BaseModel):
    completion: str | None = None
    usage: _SampleUsage | None = None
    time: NonNegativeFloat | None = None


class _Score(BaseModel):
    value: Any


class _Sample(BaseModel):
    id: str | int
    epoch: int
    question: Any = Field(default=None, alias="input")
    target: Any = None
    output: _Output = _Output()
    scores: dict[str, _Score] | None = None
    error: Any = None
    metadata: _Metadata | None = None


class _Eval(BaseModel):
    task: str
    task_version: int | str | None = None
    model: str
    created: str


class _Headline(BaseModel):
    score: str | None = None


class _RunResults(BaseModel):
    headline: _Headline | None = None


class _InspectLog(BaseModel):
    eval: _Eval
    results: _RunResults | None = None
    samples: list[_Sample]


def _read_log(path: Path) -> dict[str, Any]:
    """Read inspect's .eval, which is a ZIP of JSON files; raise LeaderboardError."""
    try:
        with zipfile.ZipFile(path) as log:
            names = ["header.json", *(name for name in log.namelist() if name.startswith("samples/"))]
            if sum(log.getinfo(name).file_size for name in names) > _MOST_OF_A_LOG:
                raise LeaderboardError(f"{path} unpacks to more than {_MOST_OF_A_LOG:,} bytes")
            header, *samples = (
                parse_json(_member(log, name).decode("utf-8", "replace"), path / name, LeaderboardError)
                for name in names
            )
    except (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as problem:
        raise LeaderboardError(f"{path} is no log of a finished inspect run: {problem}") from None
    return {**(header if isinstance(header, dict) else {}), "samples": samples}


def _member(log: zipfile.ZipFile, name: str) -> bytes:
    """Return a file of an archive; raise BadZipFile where it is damaged.

    What is packed with zstd, as inspect packs, is taken as it stands and unpacked here: zipfile does so from Python
    3.14 on.
    """
    info = log.getinfo(name)
    if info.compress_type != _ZSTD or sys.version_info >= (3, 14):
        return log.read(info)
    import zstandard

    packed = copy(info)
    packed.compress_type, packed.file_size, packed.CRC = zipfile.ZIP_STORED, info.compress_size, None  # type: ignore[assignment]
    try:
        with log.open(packed) as raw:
            content = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True).read(info.file_size)
    except zstandard.ZstdError as problem:
        raise zipfile.BadZipFile(f"{name}: {problem}") from None
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{name} is damaged")
    return content


def _inspect_run(log: _InspectLog, path: Path) -> ForeignRun:
    version = log.eval.task_version
    return ForeignRun(
        tool="inspect",
        skill=log.eval.task.rpartition("/")[2],
        version=f"{version}.0.0" if isinstance(version, int) else version,
        model=log.eval.model,
        timestamp=log.eval.created,
        primary=log.results.headline.score if log.results and log.results.headline else None,
        answers=[
            _inspect_answer(sample, f"{path}, sample {sample.id} epoch {sample.epoch}")
            for sample in sorted(log.samples, key=lambda sample: sample.epoch)
        ],
    )


def _inspect_answer(sample: _Sample, where: str) -> ForeignAnswer:
    failed = sample.error is not None
    usage = sample.output.usage or _SampleUsage()
    ours = (sample.metadata and sample.metadata.skill_evaluator) or _Ours()
    scores: dict[str, float | None] = {}
    for name, score in ({} if failed else sample.scores or {}).items():
        parts: Mapping[str, Any] = score.value if isinstance(score.value, dict) else {"": score.value}
        for part, value in parts.items():
            letter = _LETTERS.get(value, value) if isinstance(value, str) else value
            scores[f"{name}/{part}" if part else name] = score_of(letter, f"{where}, score {name}")
    return ForeignAnswer(
        case_id=str(sample.id),
        case=ours.case_digest or {"input": sample.question, "target": sample.target},
        outcome=_outcome(ours, failed=failed),
        scores=ours.measured(scores),
        output=sample.output.completion,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        latency_s=sample.output.time,
    )
