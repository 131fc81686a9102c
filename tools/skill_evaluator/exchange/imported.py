"""Import results of other tools as records: JSON of promptfoo and inspect_ai, and tables with one row per output."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb, inf
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from skill_evaluator.errors import LeaderboardError, refuse
from skill_evaluator.files import SizeLimit, read_json, replace_text, validated
from skill_evaluator.identifiers import NAME_RULE, UNNAMED, CaseId, Label, is_component_name, now
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import Settings
from skill_evaluator.library.options import ComponentsOption, ConfigOption, SkipInvalid, argument, option, options
from skill_evaluator.library.prompts import check_semver
from skill_evaluator.library.tables import ENDINGS, ProblemHandler, read_rows, value_at, with_decimal_point
from skill_evaluator.parsing import parse_output
from skill_evaluator.records.archive import append_rows, check_leaderboard, read_entries
from skill_evaluator.records.record import SCORED, SCORED_ELSEWHERE, Record, parse_record
from skill_evaluator.scoring.recording import (
    case_record,
    counts_of,
    latency_of,
    summarize_accuracy,
    summarize_reproducibility,
)
from skill_evaluator.scoring.scorer import Agreement, CaseScore, Scorecard
from skill_evaluator.stats import by_key, rounded, total_or_none
from skill_evaluator.text import canonical_json, digest

_CELL = SizeLimit(max_bytes=16_000_000)
_MAX_ID = 100  # characters
_FAILURE_WITHOUT_OUTPUT = 2  # promptfoo's failureReason if the provider or the grader failed
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # inspect's grades and their values
_SCORE_WORDS = {"": None, "true": 1.0, "false": 0.0, "pass": 1.0, "fail": 0.0}
_COLUMN_NAMES = (("case", "case_id", "id"), ("replicate", "epoch"), ("truth", "expected", "target"))
_NO_ERROR = ("", "0", "0.0", "false")  # cells of the column `error`, in lower case
_AMOUNT_COLUMNS = ("input_tokens", "output_tokens", "cost_usd", "latency_s")
_AGREEMENT = "pairwise_exact_match"
_PROMPT = """---
name: {name}
version: {version}
output: text
---
The prompt of this component is kept elsewhere. Here are the results that were imported from {tool}.
"""


def _as_number(value: Any) -> Any:
    """Convert a text to a number (`pass`, `true`: 1; `fail`, `false`: 0; "": None). Return other values unchanged."""
    if not isinstance(value, str):
        return value
    word = with_decimal_point(value.strip())
    if word.casefold() in _SCORE_WORDS:
        return _SCORE_WORDS[word.casefold()]
    try:
        return float(word)
    except ValueError:
        return value


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else canonical_json(value)


_Number = BeforeValidator(_as_number)
Score = Annotated[float | None, Field(ge=0, le=1, allow_inf_nan=False), _Number]
Amount = Annotated[float | None, Field(ge=0, allow_inf_nan=False), _Number]
Count = Annotated[int | None, Field(ge=0, le=2**53), _Number]


class ImportedOutput(BaseModel):
    """One output of another tool. `case` is the content of the test case, `scores` has the scores by metric."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    case_id: CaseId
    case: Any = None
    model: str | None = None
    replicate: Amount = None
    failed: bool = False  # the provider returned no output
    scores: dict[str, Score] = {}
    output: Annotated[str | None, BeforeValidator(_as_text)] = None
    input_tokens: Count = None
    output_tokens: Count = None
    cost_usd: Amount = None
    latency_s: Amount = None

    @property
    def outcome(self) -> str:
        """The outcome in the record: `provider_error` if the provider returned no output, else `scored`."""
        return "provider_error" if self.failed else SCORED


class ImportedRun(BaseModel):
    """The outputs of a file, or of one model in it. `stopped` is the reason why the run ended early, or None."""

    tool: str
    skill: str | None = None
    version: str | None = None
    model: str | None = None
    timestamp: Label | None = None
    prompt: str | None = None
    primary: str | None = None
    stopped: str | None = None
    outputs: list[ImportedOutput]


def read_results(path: Path, on_problem: ProblemHandler = refuse) -> list[ImportedRun]:
    """Return one run per model from a file of another tool. Raise LeaderboardError if it has no valid result."""
    if path.suffix in ENDINGS:
        run = ImportedRun(tool="table", outputs=_table_outputs(path, on_problem))
    elif path.suffix == ".eval":
        raise LeaderboardError(f"{path} is an archive; run: inspect log dump {path} > {path.with_suffix('.json')}")
    else:
        value = read_json(path, LeaderboardError)
        if value_at(value, "eval") is not None:
            members = _inspect_run(value, path)
        elif value_at(value, "results.results") is not None:
            members = _promptfoo_run(value, path)
        else:
            formats = "a record, promptfoo's JSON, inspect's JSON, or a table (.csv, .tsv, .jsonl)"
            raise LeaderboardError(f"{path} has no results in a known format: {formats}")
        run = validated(ImportedRun, members, path, LeaderboardError)
    calls = Counter((each.model, each.case_id, each.replicate) for each in run.outputs if each.replicate is not None)
    for (_, case_id, replicate), count in calls.items():
        if count > 1:
            raise LeaderboardError(f"{path}: replicate {replicate:g} of case '{case_id}' occurs more than once")
    if not run.outputs:
        raise LeaderboardError(f"{path} contains no readable result")
    runs: dict[str | None, list[ImportedOutput]] = {output.model: [] for output in run.outputs}
    for output in sorted(run.outputs, key=lambda output: output.replicate or 0):
        runs[output.model].append(output)
    return [run.model_copy(update={"model": model, "outputs": outputs}) for model, outputs in runs.items()]


def _objects(value: Any, keys: str, path: Path) -> list[Mapping[str, Any]]:
    objects = value_at(value, keys)
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        raise LeaderboardError(f"expected a list of objects at {keys} in {path}")
    return objects


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _promptfoo_run(value: Any, path: Path) -> dict[str, Any]:
    results = _objects(value, "results.results", path)
    prompts = [each.get("raw") for each in _objects(value, "results.prompts", path)]
    if any(prompt != prompts[0] for prompt in prompts):
        raise LeaderboardError(f"{path} has results of several prompts; run promptfoo eval with --filter-prompts")
    tests = {(_description(each), canonical_json(each.get("vars"))) for each in results}
    counts = Counter(description for description, _ in tests)
    return {
        "tool": "promptfoo",
        "timestamp": value_at(value, "results.timestamp"),
        "prompt": (prompts[0] if prompts else None) or None,
        "outputs": [_promptfoo_output(each, is_unique=counts[_description(each)] == 1) for each in results],
    }


def _description(result: Mapping[str, Any]) -> str:
    return _as_text(value_at(result, "testCase.description")) or ""


def _in_seconds(milliseconds: Any) -> Any:
    number = _as_number(milliseconds)
    try:
        return number / 1000
    except (OverflowError, TypeError):  # None, or a value that ImportedOutput refuses
        return number


def _promptfoo_output(result: Mapping[str, Any], *, is_unique: bool) -> dict[str, Any]:
    """Return the fields of an ImportedOutput. The case id is the description if that is unique, else the variables."""
    failed = result.get("failureReason") == _FAILURE_WITHOUT_OUTPUT
    variables = _object(result.get("vars"))
    variables_text = ", ".join(f"{key}={_as_text(each)}" for key, each in variables.items())
    name = (is_unique and _description(result)) or variables_text
    if not 0 < len(name) <= _MAX_ID or not name.isprintable():
        mark = digest(canonical_json(variables)).removeprefix("sha256:")[:8]
        name = f"{''.join(filter(str.isprintable, name))[:_MAX_ID]}… {mark}"
    return {
        "case_id": name,
        "case": {"vars": variables, "assert": value_at(result, "testCase.assert")},
        "model": value_at(result, "provider.label") or value_at(result, "provider.id"),
        "failed": failed,
        "scores": {} if failed else {"score": result.get("score"), **_object(result.get("namedScores"))},
        "output": value_at(result, "response.output"),
        "input_tokens": value_at(result, "response.tokenUsage.prompt"),
        "output_tokens": value_at(result, "response.tokenUsage.completion"),
        "cost_usd": result.get("cost") or None,  # promptfoo writes 0 for an unknown price
        "latency_s": _in_seconds(result.get("latencyMs")),
    }


def _inspect_run(log: Any, path: Path) -> dict[str, Any]:
    version, status = value_at(log, "eval.task_version"), value_at(log, "status") or "success"
    return {
        "tool": "inspect",
        "skill": str(value_at(log, "eval.task") or "").rpartition("/")[2] or None,
        "version": f"{version}.0.0" if isinstance(version, int) else version,
        "timestamp": value_at(log, "eval.created"),
        "primary": value_at(log, "results.headline.score"),
        "stopped": None if status == "success" else f"status '{status}' in inspect's log",
        "outputs": [_inspect_output(sample, value_at(log, "eval.model")) for sample in _objects(log, "samples", path)],
    }


def _inspect_output(sample: Mapping[str, Any], model: Any) -> dict[str, Any]:
    failed = sample.get("error") is not None
    scores: dict[str, Any] = {}
    for name, score in () if failed else _object(sample.get("scores")).items():
        value = value_at(score, "value")
        parts = {f"{name}/{part}": each for part, each in value.items()} if isinstance(value, dict) else {name: value}
        scores |= {part: _GRADES.get(each, each) if isinstance(each, str) else each for part, each in parts.items()}
    return {
        "case_id": sample.get("id"),
        "case": {"input": sample.get("input"), "target": sample.get("target")},
        "model": model,
        "replicate": sample.get("epoch"),
        "failed": failed,
        "scores": scores,
        "output": value_at(sample, "output.completion"),
        "input_tokens": value_at(sample, "output.usage.input_tokens"),
        "output_tokens": value_at(sample, "output.usage.output_tokens"),
        "latency_s": value_at(sample, "output.time"),
    }


def _table_outputs(path: Path, on_problem: ProblemHandler) -> list[ImportedOutput]:
    rows = read_rows(path, _CELL, on_problem)
    columns = dict.fromkeys(name for _, row in rows for name in row)
    case, replicate, truth = (next((name for name in names if name in columns), names[0]) for names in _COLUMN_NAMES)
    if case not in columns:
        raise LeaderboardError(f"{path} has no column 'case'; its columns are {', '.join(columns)}")
    columns_of = {"case_id": case, "replicate": replicate, "case": truth}
    columns_of |= {name: name for name in ("model", "output", "error", "scores", *_AMOUNT_COLUMNS)}
    cases = [row for _, row in rows if row.get(case) not in (None, "")] or [row for _, row in rows]
    metrics = [
        name for name in columns if name not in columns_of.values() and _are_scores([row.get(name) for row in cases])
    ]
    is_compared = "output" in columns and truth in columns
    if not metrics and not is_compared and "scores" not in columns:
        raise LeaderboardError(f"{path} has no column of scores from 0 to 1, and no columns 'output' and 'truth'")
    outputs = []
    for line, row in rows:
        fields: dict[str, Any] = {name: row.get(column) for name, column in columns_of.items()}
        nested = fields["scores"] or {}
        scores = {name: row.get(name) for name in metrics} | nested if isinstance(nested, dict) else nested
        if is_compared and isinstance(scores, dict):
            expected, output = fields["case"], fields["output"]
            is_same_text = isinstance(expected, str) and expected == output
            scores["exact_match"] = float(is_same_text or _canonical_value(expected) == _canonical_value(output))
        failed = str(fields["error"] or "").strip().casefold() not in _NO_ERROR
        fields |= {"model": fields["model"] or None, "failed": failed, "scores": {} if failed else scores}
        try:
            outputs.append(validated(ImportedOutput, fields, Path(f"{path}:{line}"), LeaderboardError))
        except LeaderboardError as problem:
            on_problem(problem)
    return outputs


def _are_scores(cells: Sequence[Any]) -> bool:
    filled = [number for cell in cells if (number := _as_number(cell)) is not None]
    numbers = [each for each in filled if isinstance(each, int | float) and abs(each) < inf]
    return 0 < len(filled) <= 2 * len(numbers) and all(0 <= number <= 1 for number in numbers)


def _canonical_value(content: Any) -> str:
    if not isinstance(content, str):
        return canonical_json(content)
    parsed = parse_output(content, "json")
    return canonical_json(parsed.value) if parsed.form == "whole" else canonical_json(content.strip())


@options
class ImportRequest(ComponentsOption, ConfigOption):
    """The options of `records import`."""

    file: Path = argument("Results: .json of promptfoo or inspect, or a table (.csv, .tsv, .jsonl).")
    skill: str | None = option("Component of the records; default: the name in the file.", metavar="NAME")
    version: str | None = option("Version of the prompt; default: the version in the file.", metavar="VERSION")
    model: str | None = option("Model of the results, if the file does not name it.", None, "-m", metavar="ID")
    skip_invalid: SkipInvalid = False


def import_results(
    request: ImportRequest, settings: Settings, on_problem: ProblemHandler = refuse
) -> list[tuple[Record, Path, bool]]:
    """Record another tool's results. Return (record, its path, whether the record is new) for each model.

    If the component does not exist, create it. The component, the version and the model must be in the file or in the
    request. Raise LeaderboardError if one of the three is missing, or if the results are invalid.
    """
    records = []
    for run in read_results(request.file, on_problem):
        skill, version, model = request.skill or run.skill, request.version or run.version, run.model or request.model
        options = {"--skill NAME": skill, "--version VERSION": version, "--model ID": model}
        if unknown := [option for option, value in options.items() if value is None]:
            raise LeaderboardError(f"pass {' and '.join(unknown)}, which {request.file} does not have")
        check_semver(str(version), request.file)
        if not is_component_name(str(skill)):
            raise LeaderboardError(f"'{skill}' cannot be a component's name ({NAME_RULE}); pass another --skill NAME")
        identity = {"skill": skill, "version": version, "model": model, "timestamp": run.timestamp or now()}
        records.append(record_of(run.model_copy(update=identity), settings.required_coverage))
    record = records[0]
    prompt = request.components / record.skill / "prompt.md"
    if not prompt.exists():
        replace_text(prompt, _PROMPT.format(name=record.skill, version=record.skill_version, tool=record.provider))
    component = load_component(request.components, record.skill, settings.limits)
    check_leaderboard(component)
    known_runs = {entry.run_id for entry in read_entries(component.leaderboard_path)}
    imported = [
        (record, component.records_dir / f"{record.run_id}.json", record.run_id not in known_runs) for record in records
    ]
    if new := {path: record for record, path, is_new in imported if is_new}:
        rows = [record.row() for record in new.values()]
        append_rows(component.leaderboard_path, component.name, rows, new)
    return imported


def record_of(run: ImportedRun, required_coverage: float = 0.9) -> Record:
    """Return the record of another tool's run. Raise LeaderboardError if it has no score."""
    outputs = run.outputs
    cases = by_key((output.case_id, output) for output in outputs)
    names = dict.fromkeys(name for output in outputs for name in output.scores)
    metrics = sorted(names, key=lambda name: name != run.primary)
    if not metrics:
        raise LeaderboardError(f"the results of {run.tool} for {run.model or 'a model'} have no score; add a scorer")
    replicates = max(map(len, cases.values()))
    scores = [_case_score(case_id, each, metrics, replicates) for case_id, each in cases.items()]
    scorecard = Scorecard(cases=tuple(scores), replicates=replicates)
    contents = [[each.case_id, each.case, each.outcome, each.scores, each.output] for each in outputs]
    content = digest(canonical_json([run.tool, run.model, contents])).removeprefix("sha256:")[:12]
    model_id = re.sub("[^A-Za-z0-9._@:/-]+", "-", run.model or "").lstrip(":@/._-") or UNNAMED
    latencies = [each.latency_s for each in outputs if each.latency_s is not None]
    values = dict(
        run_id=f"{run.tool}-{content}-{re.sub('[:/]', '_', model_id)[:60]}",
        timestamp=run.timestamp or "",
        skill=run.skill if run.skill and is_component_name(run.skill) else "results",
        skill_version=run.version or "0.0.0",
        prompt_commit=None,
        dataset_commit=None,
        model_id=model_id,
        served_model=None,
        provider=run.tool,
        seed=None,
        shard=None,
        **counts_of(scorecard, required_coverage, run.stopped),
        primary_metric=metrics[0],
        accuracy=summarize_accuracy(scorecard, metrics),
        reproducibility=summarize_reproducibility(scorecard, [_AGREEMENT]),
        per_field={},
        retries=None,
        tokens={
            "input": total_or_none(each.input_tokens for each in outputs),
            "output": total_or_none(each.output_tokens for each in outputs),
        },
        cost_usd=rounded(total_or_none(each.cost_usd for each in outputs)),
        latency_s=latency_of(latencies),
        settings=None,
        digests={} if run.prompt is None else {"prompt": digest(run.prompt)},
        scorer_version=SCORED_ELSEWHERE,
        per_case=[
            case_record(case, digest(canonical_json([case.case_id, each[0].case])))
            for case, each in zip(scores, cases.values(), strict=True)
        ],
    )
    return validated(Record, values, Path(f"results of {run.tool}"), LeaderboardError)


def records_in(path: Path) -> list[Record]:
    """Return the record in a record file. From a file with another tool's results, return one record per model."""
    value = read_json(path, LeaderboardError) if path.suffix == ".json" else None
    if isinstance(value, dict) and "run_id" in value:
        return [parse_record(value, path)]
    version = re.sub("[^A-Za-z0-9.+-]+", "-", path.stem).lstrip(".+-") or "0"
    return [record_of(run.model_copy(update={"version": version})) for run in read_results(path)]


def _case_score(case_id: str, outputs: Sequence[ImportedOutput], metrics: Sequence[str], replicates: int) -> CaseScore:
    n_missing = replicates - len(outputs)
    scored = [output.scores for output in outputs if not output.failed]
    texts = Counter(each.output.strip() for each in outputs if not each.failed and each.output is not None)
    pairs, equal_pairs = comb(texts.total(), 2), sum(comb(count, 2) for count in texts.values())
    return CaseScore(
        case_id=case_id,
        labelled=True,
        outcomes=(*(output.outcome for output in outputs), *["not_run"] * n_missing),
        metrics={name: (*(output.scores.get(name) for output in outputs), *[None] * n_missing) for name in metrics},
        agreement=Agreement(metrics={_AGREEMENT: equal_pairs / pairs if pairs else None}),
        undefined=frozenset(name for name in metrics if scored and all(scores.get(name) is None for scores in scored)),
    )
