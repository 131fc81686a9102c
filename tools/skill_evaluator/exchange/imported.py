"""Results that another tool measured, in its own files → records, which verdicts, histories and rankings take.

What a source does not say is None. What a file holds tells its tool: promptfoo's JSON, an inspect log, else
a table (CSV, TSV or JSON Lines) with one line per output.
"""

import math
import re
import shutil
import sys
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import AliasPath, BaseModel, Field, NonNegativeFloat, NonNegativeInt

from skill_evaluator.display.options import ComponentsOption, ConfigOption, SkipInvalid, argument, option, options
from skill_evaluator.errors import LeaderboardError, refuse
from skill_evaluator.files import SizeLimit, parse_json, read_json, replace_text, validated
from skill_evaluator.identifiers import Label, is_component_name, now
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import SafetyLimits, Settings
from skill_evaluator.library.prompts import check_semver
from skill_evaluator.library.tables import Odd, Rows, read_rows, with_decimal_point
from skill_evaluator.parsing.answer import parse_output
from skill_evaluator.records.archive import read_entries
from skill_evaluator.records.leaderboard import add_records
from skill_evaluator.records.record import ANSWERED, SCORED, SCORED_ELSEWHERE, Record, parse_record
from skill_evaluator.records.summaries import Tokens
from skill_evaluator.scoring import summaries
from skill_evaluator.scoring.answers import CaseScore, Scorecard
from skill_evaluator.scoring.recording import case_record, counts_of
from skill_evaluator.stats import rounded, total_or_none
from skill_evaluator.text import canonical_json, digest

CELL = SizeLimit(most=16_000_000)
_CASE = ("case", "case_id", "id")
_REPLICATE = ("replicate", "epoch")
_TRUTH = ("truth", "expected", "target")
_MODEL, _OUTPUT, _ERROR, _SCORES = "model", "output", "error", "scores"
_FIGURES = ("cost_usd", "latency_s", "input_tokens", "output_tokens")
_WORDS = {"true": 1.0, "false": 0.0, "pass": 1.0, "fail": 0.0}
_TABLES = (".csv", ".tsv", ".jsonl")
_LONGEST_ID = 100
_FAILED = 2  # promptfoo's failureReason: no answer came, or none could be judged
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # inspect's scores in letters, with the values that it gives them
_MOST_OF_A_LOG = 256_000_000
_ZSTD = 93  # the method in a ZIP
_AGREEMENT = "pairwise_exact_match"
_NO_NAME = re.compile(r"[^A-Za-z0-9._@:/-]+")
_NO_VERSION = re.compile(r"[^A-Za-z0-9.+-]+")
_UNNAMED = "unnamed"
_PROMPT = """---
name: {name}
version: {version}
output: text
---
The prompt of this component is kept elsewhere. Here are the results that were imported from {tool}.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignAnswer:
    """One answer: what it scored, or that the provider failed (`outcome`); `case` is all that is known of its case."""

    case_id: str
    case: Any = None
    outcome: str = SCORED
    scores: Mapping[str, float | None]
    output: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """All answers of one model to one prompt, by case, each case's in the order of its replicates.

    `primary` is the metric that the source puts first, if it names one; `stopped` says why the run ended early.
    """

    tool: str
    skill: str | None = None
    version: str | None = None
    model: str | None = None
    timestamp: str | None = None
    prompt: str | None = None
    primary: str | None = None
    stopped: str | None = None
    answers: Sequence[ForeignAnswer]

    @property
    def by_case(self) -> dict[str, list[ForeignAnswer]]:
        """The answers to each case."""
        cases = defaultdict(list)
        for answer in self.answers:
            cases[answer.case_id].append(answer)
        return dict(cases)

    @property
    def metrics(self) -> list[str]:
        """The metrics of all answers, the primary one first, else in their order."""
        names = dict.fromkeys(name for answer in self.answers for name in answer.scores)
        return sorted(names, key=lambda name: name != self.primary)


def read_results(path: Path, odd: Odd = refuse) -> list[ForeignRun]:
    """Read the runs in a file of another tool, by what it holds; raise LeaderboardError."""
    if path.suffix in _TABLES:
        return _table_runs(read_rows(path, CELL, odd), path, odd)
    value = _read_log(path) if path.suffix == ".eval" else read_json(path, LeaderboardError)
    if isinstance(value, dict) and "eval" in value:
        return [_inspect_run(validated(_InspectLog, value, path, LeaderboardError), path)]
    if isinstance(value, dict) and isinstance(value.get("results"), dict):
        return _promptfoo_runs(validated(_Promptfoo, value, path, LeaderboardError), path)
    raise LeaderboardError(
        f"{path} holds no results in a known format: a record, promptfoo's JSON, inspect's .eval or .json, "
        "or a table (.csv, .tsv, .jsonl)"
    )


def _at(place: str, default: Any = None) -> Any:
    """Declare a field that stands at a dotted place in the file."""
    return Field(default, validation_alias=AliasPath(*place.split(".")))


class _Titled(BaseModel):
    id: str | None = None
    label: str | None = None
    raw: str | None = None


class _Result(BaseModel):
    """One result of promptfoo."""

    provider: _Titled
    prompt_at: NonNegativeInt = _at("promptIdx", ...)
    variables: dict[str, Any] = _at("vars", {})
    description: str | None = _at("testCase.description")
    assertions: Any = _at("testCase.assert")
    output: Any = _at("response.output")
    input_tokens: NonNegativeInt | None = _at("response.tokenUsage.prompt")
    output_tokens: NonNegativeInt | None = _at("response.tokenUsage.completion")
    score: float | None = None
    named_scores: dict[str, float | None] = _at("namedScores", {})
    cost: NonNegativeFloat | None = None
    latency_ms: NonNegativeFloat | None = _at("latencyMs")
    failure: int | None = _at("failureReason")


class _Promptfoo(BaseModel):
    timestamp: Label | None = _at("results.timestamp")
    prompts: list[_Titled] = _at("results.prompts", ...)
    results: list[_Result] = _at("results.results", ...)


def _promptfoo_runs(file: _Promptfoo, path: Path) -> list[ForeignRun]:
    """Return a run for each provider; raise LeaderboardError where the file has several prompts, or no result."""
    templates = {at: prompt.raw for at, prompt in enumerate(file.prompts)}  # one a prompt and provider
    prompts = list(dict.fromkeys(templates.get(result.prompt_at) for result in file.results))
    if len(prompts) != 1:
        several = (
            f"results of {len(prompts)} prompts, and one is compared with one: give promptfoo eval --filter-prompts"
        )
        raise LeaderboardError(f"{path} holds {several if prompts else 'no result'}")
    runs = defaultdict(list)
    tests = Counter(name for name, _ in {(each.description, canonical_json(each.variables)) for each in file.results})
    for at, result in enumerate(file.results):
        answer = _promptfoo_answer(result, f"{path}, results[{at}]", named=tests[result.description] == 1)
        runs[result.provider.label or result.provider.id].append(answer)
    said = {"tool": "promptfoo", "timestamp": file.timestamp, "prompt": prompts[0] or None}
    return [ForeignRun(model=model, answers=answers, **said) for model, answers in runs.items()]  # type: ignore[arg-type]


def _promptfoo_answer(result: _Result, where: str, *, named: bool) -> ForeignAnswer:
    failed = result.failure == _FAILED
    scores = {name: score_of(value, f"{where}.namedScores.{name}") for name, value in result.named_scores.items()}
    return ForeignAnswer(
        case_id=_promptfoo_case(result, named=named),
        case={"vars": result.variables, "assert": result.assertions},
        outcome="provider_error" if failed else SCORED,
        scores={} if failed else {"score": score_of(result.score, f"{where}.score"), **scores},
        output=None if result.output is None else _text(result.output),
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        cost_usd=result.cost or None,  # promptfoo writes 0 where it knows no price
        latency_s=None if result.latency_ms is None else result.latency_ms / 1000,
    )


def _promptfoo_case(result: _Result, *, named: bool) -> str:
    """Return a test's description, or its variables; a long one is abbreviated and told apart by its digest."""
    name = (named and result.description) or ", ".join(f"{key}={_text(each)}" for key, each in result.variables.items())
    if 0 < len(name) <= _LONGEST_ID and name.isprintable():
        return name
    mark = digest(canonical_json(result.variables)).removeprefix("sha256:")[:8]
    return f"{''.join(filter(str.isprintable, name))[:_LONGEST_ID]}… {mark}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


class _Score(BaseModel):
    value: Any


class _Sample(BaseModel):
    """One sample of inspect."""

    id: str | int
    epoch: int
    question: Any = _at("input")
    target: Any = None
    output: str | None = _at("output.completion")
    input_tokens: NonNegativeInt | None = _at("output.usage.input_tokens")
    output_tokens: NonNegativeInt | None = _at("output.usage.output_tokens")
    seconds: NonNegativeFloat | None = _at("output.time")
    scores: dict[str, _Score] | None = None
    error: Any = None


class _InspectLog(BaseModel):
    status: str = "success"
    task: str = _at("eval.task", ...)
    version: int | str | None = _at("eval.task_version")
    model: str = _at("eval.model", ...)
    created: Label = _at("eval.created", ...)
    headline: str | None = _at("results.headline.score")
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
        raise LeaderboardError(f"{path} is not the log of a finished inspect run: {problem}") from None
    return {**(header if isinstance(header, dict) else {}), "samples": samples}


def _member(log: zipfile.ZipFile, name: str) -> bytes:
    """Return a file of an archive; raise BadZipFile where it is damaged.

    What is packed with zstd, as inspect packs, is taken as it stands and unpacked here: zipfile does so from Python
    3.14 on.
    """
    info = log.getinfo(name)
    if info.compress_type != _ZSTD or sys.version_info >= (3, 14):
        return log.read(info)
    try:
        import zstandard
    except ImportError:
        raise LeaderboardError(f"{log.filename} needs a library: pip install 'skill-evaluator[inspect]'") from None
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
    places = Counter(f"sample {sample.id} epoch {sample.epoch}" for sample in log.samples)
    if twice := [place for place, count in places.items() if count > 1]:
        raise LeaderboardError(f"{path}: {twice[0]} is there twice")
    return ForeignRun(
        tool="inspect",
        skill=log.task.rpartition("/")[2],
        version=f"{log.version}.0.0" if isinstance(log.version, int) else log.version,
        model=log.model,
        timestamp=log.created,
        primary=log.headline,
        stopped=None if log.status == "success" else f"status '{log.status}' in inspect's log",
        answers=[
            _inspect_answer(sample, f"{path}, sample {sample.id} epoch {sample.epoch}")
            for sample in sorted(log.samples, key=lambda sample: sample.epoch)
        ],
    )


def _inspect_answer(sample: _Sample, where: str) -> ForeignAnswer:
    failed = sample.error is not None
    scores: dict[str, float | None] = {}
    for name, score in ({} if failed else sample.scores or {}).items():
        parts: Mapping[str, Any] = score.value if isinstance(score.value, dict) else {"": score.value}
        for part, value in parts.items():
            letter = _LETTERS.get(value, value) if isinstance(value, str) else value
            scores[f"{name}/{part}" if part else name] = score_of(letter, f"{where}, score {name}")
    return ForeignAnswer(
        case_id=str(sample.id),
        case={"input": sample.question, "target": sample.target},
        outcome="provider_error" if failed else SCORED,
        scores=scores,
        output=sample.output,
        input_tokens=sample.input_tokens,
        output_tokens=sample.output_tokens,
        latency_s=sample.seconds,
    )


def score_of(value: Any, where: str) -> float | None:
    """Return a score from 0 to 1; None for what was not measured; raise LeaderboardError for anything else."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    number = _number(value)
    if number is None or not 0.0 <= number <= 1.0:
        shown = f"{repr(value)[:60]} at {where}"
        raise LeaderboardError(f"{shown} is not a score from 0 to 1; leave it empty if nothing was measured")
    return number


def _number(value: Any) -> float | None:
    """Return a number, also with a decimal comma, true and pass as 1; None for anything else."""
    if isinstance(value, str):
        word = with_decimal_point(value.strip().casefold())
        try:
            return _WORDS[word] if word in _WORDS else float(word)
        except ValueError:
            return None
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return math.inf


def _table_runs(rows: Rows, path: Path, odd: Odd) -> list[ForeignRun]:
    """Return the runs of a table; a column of numbers from 0 to 1 is a score, and an odd cell in it an error."""
    columns = dict.fromkeys(name for _, row in rows for name in row)
    case_column = next((name for name in _CASE if name in columns), None)
    if case_column is None:
        raise LeaderboardError(f"{path} has no column 'case'; its columns are {', '.join(columns)}")
    named = [each for each in rows if each[1].get(case_column) not in (None, "")] or rows
    columns = dict.fromkeys(name for _, row in named for name in row)
    truth = next((name for name in _TRUTH if name in columns), None)
    others = {case_column, truth, *_REPLICATE, _MODEL, _OUTPUT, _ERROR, _SCORES, *_FIGURES}
    metrics = [name for name in columns if name not in others and _holds_scores(name, named)]
    exact = _OUTPUT in columns and truth is not None
    if not metrics and not exact and _SCORES not in columns:
        raise LeaderboardError(
            f"{path} has nothing to compare: it needs a column of scores from 0 to 1, or 'output' and 'truth'"
        )
    replicate = next((name for name in _REPLICATE if name in columns), None)
    taken: Counter[tuple[str | None, str, str]] = Counter()
    runs: dict[str | None, list[tuple[float, ForeignAnswer]]] = defaultdict(list)
    for line, row in rows:
        try:
            where = f"{path}:{line}"
            case_id, model = str(row.get(case_column)), row.get(_MODEL) or None
            number = str(row.get(replicate) or "") if replicate else ""
            if row.get(case_column) in (None, ""):
                raise LeaderboardError(f"{where} names no case")
            if isinstance(model, list | dict):
                raise LeaderboardError(f"{where}: 'model' must be a text")
            scores = {name: score_of(row.get(name), f"{where}, {name}") for name in metrics}
            nested = row.get(_SCORES) or {}
            if not isinstance(nested, dict):
                raise LeaderboardError(f"{where}: 'scores' must be an object of scores by metric")
            scores |= {str(name): score_of(value, f"{where}, scores.{name}") for name, value in nested.items()}
            output = row.get(_OUTPUT)
            failed = bool(row.get(_ERROR))
            if exact and not failed:
                right = row.get(truth or "")
                same = isinstance(right, str) and right == output  # else as JSON, or as text without outer space
                scores["exact_match"] = float(same or _value(right) == _value(output))
            answer = ForeignAnswer(
                case_id=case_id,
                case=None if truth is None else row.get(truth),
                outcome="provider_error" if failed else SCORED,
                scores={} if failed else scores,
                output=None if output is None else _text(output),
                **{name: _figure(row.get(name), f"{where}, {name}", whole="tokens" in name) for name in _FIGURES},  # type: ignore[arg-type]
            )
            taken[model, case_id, number] += 1  # a row that is left out takes no replicate from the next
            if replicate and taken[model, case_id, number] > 1:
                raise LeaderboardError(f"{where}: replicate {number} of {case_id} is there twice")
            place = _number(number)
            runs[model if model is None else str(model)].append((0.0 if place is None else place, answer))
        except LeaderboardError as problem:
            odd(problem)
    return [
        ForeignRun(tool="table", model=model, answers=[answer for _, answer in sorted(found, key=lambda one: one[0])])
        for model, found in runs.items()
    ]


def _holds_scores(column: str, rows: Rows) -> bool:
    """Return whether half of a column's cells are numbers from 0 to 1 and no cell is outside, but for nan, inf."""
    numbers = [_number(value) for _, row in rows if (value := row.get(column)) not in (None, "")]
    finite = [number for number in numbers if number is not None and math.isfinite(number)]
    return bool(finite) and 2 * len(finite) >= len(numbers) and min(finite) >= 0.0 and max(finite) <= 1.0


def _figure(value: Any, where: str, *, whole: bool) -> float | None:
    """Return a count or an amount of at least 0; None if it is absent."""
    if value is None or value == "":
        return None
    number = _number(value)
    if number is None or not 0.0 <= number < math.inf or (whole and number != int(number)):
        raise LeaderboardError(f"{repr(value)[:60]} at {where} is not a number of 0 or more")
    return int(number) if whole else number


def _value(content: Any) -> str:
    if not isinstance(content, str):
        return canonical_json(content)
    parsed = parse_output(content, "json")
    return canonical_json(parsed.value) if parsed.found == "whole" else canonical_json(content.strip())


@options
class ImportRequest(ComponentsOption, ConfigOption):
    """Which results to import, and what they are of: the options of `records import`."""

    file: Path = argument("promptfoo's .json, inspect's .eval or .json, .csv, .tsv, .jsonl.", metavar="FILE")
    skill: str | None = option("The component; default: the source's task.", metavar="NAME")
    version: str | None = option("Version that was measured; default: as the source says.", metavar="VERSION")
    model: str | None = option("The model, if the source does not name it.", None, "-m", metavar="ID")
    skip_invalid: SkipInvalid = False


def import_results(request: ImportRequest, settings: Settings, odd: Odd = refuse) -> list[tuple[Record, Path, bool]]:
    """Make records of another tool's results, one a model; return each with its file, and whether that is new.

    Raise LeaderboardError if nothing can be read, or the file does not name what was measured.
    """
    records = []
    for run in read_results(request.file, odd):
        skill, version = request.skill or run.skill, request.version or run.version
        lacking = {"--skill NAME": skill, "--version VERSION": version, "--model ID": request.model or run.model}
        unsaid = [flag for flag, value in lacking.items() if value is None]
        if unsaid or skill is None or version is None:
            raise LeaderboardError(f"{request.file} does not say it; give {' and '.join(unsaid)}")
        check_semver(version, request.file)
        if not is_component_name(skill):
            raise LeaderboardError(f"'{skill}' cannot be the name of a component; give --skill NAME")
        coverage, at = settings.required_coverage, now()
        records.append(
            record_of(run, skill=skill, version=version, model=request.model, timestamp=at, required_coverage=coverage)
        )
    if not records:
        raise LeaderboardError(f"{request.file} holds no row that can be read")
    files = _record_imported(records, request.components, settings.limits)
    return [(record, *files[record.run_id]) for record in records]


def record_of(
    run: ForeignRun,
    *,
    skill: str | None = None,
    version: str | None = None,
    model: str | None = None,
    timestamp: str = "",
    required_coverage: float = 0.9,
) -> Record:
    """Return the record of a run that was made elsewhere. `skill` and `version` go before what the source says."""
    cases, metrics = run.by_case, run.metrics
    if not metrics:
        raise LeaderboardError(f"what {run.tool} wrote of {run.model or 'a model'} holds no score")
    replicates = max(map(len, cases.values()))
    scores = [_case_score(case_id, answers, metrics, replicates) for case_id, answers in cases.items()]
    scorecard = Scorecard(cases=tuple(scores), replicates=replicates)
    said = [[answer.case_id, answer.case, answer.outcome, dict(answer.scores), answer.output] for answer in run.answers]
    content = digest(canonical_json([run.tool, run.model, said]))
    model_id = _NO_NAME.sub("-", run.model or model or _UNNAMED).lstrip(":@/._-") or _UNNAMED
    latencies = [answer.latency_s for answer in run.answers if answer.latency_s is not None]
    read, written = (
        total_or_none(getattr(answer, name) for answer in run.answers) for name in ("input_tokens", "output_tokens")
    )
    return Record(
        run_id=f"{run.tool}-{content.removeprefix('sha256:')[:12]}-{re.sub('[:/]', '_', model_id)[:60]}",
        timestamp=run.timestamp or timestamp,
        skill=skill or (run.skill if run.skill and is_component_name(run.skill) else "results"),
        skill_version=version or run.version or "0.0.0",
        prompt_commit=None,
        dataset_commit=None,
        model_id=model_id,
        served_model=None,
        provider=run.tool,
        seed=None,
        shard=None,
        **counts_of(scorecard, latencies, required_coverage, run.stopped),
        primary_metric=metrics[0],
        accuracy=summaries.accuracy(scorecard, metrics),
        reproducibility=summaries.case_means(scorecard, [_AGREEMENT]),
        per_field={},
        retries=None,
        tokens=Tokens(input=None if read is None else int(read), output=None if written is None else int(written)),
        cost_usd=rounded(total_or_none(answer.cost_usd for answer in run.answers)),
        settings=None,
        digests={} if run.prompt is None else {"prompt": digest(run.prompt)},
        scorer_version=SCORED_ELSEWHERE,
        per_case=[
            case_record(case, digest(canonical_json([case.case_id, answers[0].case])))
            for case, answers in zip(scores, cases.values(), strict=True)
        ],
    )


def _record_imported(records: Sequence[Record], components: Path, limits: SafetyLimits) -> dict[str, tuple[Path, bool]]:
    """Add records to their component; return by run the file, and whether it is new. Write all files or none.

    A component that is not there is laid out with a prompt.md that says where its results come from.
    """
    first = records[0]
    folder = components / first.skill
    with ExitStack() as undo:
        if not (folder / "prompt.md").exists():
            undo.callback(shutil.rmtree, folder, ignore_errors=True) if not folder.exists() else None
            undo.callback((folder / "prompt.md").unlink, missing_ok=True)
            text = _PROMPT.format(name=first.skill, version=first.skill_version, tool=first.provider)
            replace_text(folder / "prompt.md", text)
        component = load_component(components, first.skill, limits)
        there = {entry.run_id for entry in read_entries(component.leaderboard_path)}
        paths = {record.run_id: component.records_dir / f"{record.run_id}.json" for record in records}
        new = {paths[record.run_id]: record for record in records if record.run_id not in there}
        for path in new:
            undo.callback(path.unlink, missing_ok=True)
        if new:
            add_records(component.leaderboard_path, new)
        undo.pop_all()
    return {run_id: (path, path in new) for run_id, path in paths.items()}


def records_in(path: Path) -> list[Record]:
    """Read a record, or what another tool measured: one a model, whose version is the file's name."""
    value = read_json(path, LeaderboardError) if path.suffix == ".json" else None
    if isinstance(value, dict) and "run_id" in value:
        return [parse_record(value, path)]
    version = _NO_VERSION.sub("-", path.stem).lstrip(".+-") or "0"
    return [record_of(run, version=version) for run in read_results(path)]


def _case_score(case_id: str, answers: Sequence[ForeignAnswer], metrics: Sequence[str], replicates: int) -> CaseScore:
    """Return one case: a replicate that it lacks was not run; a metric that scored no answer is undefined for it."""
    lacking = replicates - len(answers)
    scored = [answer.scores for answer in answers if answer.outcome == SCORED]
    return CaseScore(
        case_id=case_id,
        labelled=True,
        outcomes=(*(answer.outcome for answer in answers), *["not_run"] * lacking),
        metrics={name: (*(answer.scores.get(name) for answer in answers), *[None] * lacking) for name in metrics},
        reproducibility={_AGREEMENT: _agreement(answers)},
        undefined=frozenset(name for name in metrics if scored and all(scores.get(name) is None for scores in scored)),
    )


def _agreement(answers: Sequence[ForeignAnswer]) -> float | None:
    """Return the share of pairs of answers whose texts are equal; None for fewer than two texts."""
    outputs = (answer.output for answer in answers if answer.outcome in ANSWERED)
    texts = Counter(output.strip() for output in outputs if output is not None)
    n = texts.total()
    return sum(count * (count - 1) for count in texts.values()) / (n * (n - 1)) if n > 1 else None
