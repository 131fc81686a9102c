"""What another tool measured → a record, which verdicts, histories and rankings take. What it did not say is None."""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from skill_evaluator.display.options import ComponentsOption, ConfigOption, SkipInvalid, argument, option, options
from skill_evaluator.errors import LeaderboardError, refuse
from skill_evaluator.exchange.foreign import ForeignAnswer, ForeignRun, read_results
from skill_evaluator.files import read_json, replace_text
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.library.case_table import Odd
from skill_evaluator.library.components import check_semver, load_component
from skill_evaluator.library.config import SafetyLimits, Settings
from skill_evaluator.records.archive import read_entries
from skill_evaluator.records.leaderboard import add_records
from skill_evaluator.records.record import ANSWERED, SCORED, SCORED_ELSEWHERE, Record, parse_record
from skill_evaluator.records.summaries import Tokens
from skill_evaluator.scoring import summaries
from skill_evaluator.scoring.answers import CaseScore, Scorecard
from skill_evaluator.scoring.recording import case_record, counts_of
from skill_evaluator.stats import rounded, total_or_none
from skill_evaluator.text import canonical_json, digest

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


@options
class ImportRequest(ComponentsOption, ConfigOption):
    """Which results to import, and what they are of: the options of `records import`."""

    file: Path = argument(
        "promptfoo's .json, inspect's .eval or .json, lm-eval's samples, .csv, .tsv, .jsonl.", metavar="FILE"
    )
    skill: str | None = option("The component; default: the source's task.", metavar="NAME")
    version: str | None = option("What was measured; default: as the source says.", metavar="VERSION")
    model: str | None = option("The model, where the source names none.", None, "-m", metavar="ID")
    skip_invalid: SkipInvalid = False


def import_results(request: ImportRequest, settings: Settings, odd: Odd = refuse) -> list[tuple[Record, Path, bool]]:
    """Make records of another tool's results, one a model; return each with its file, and whether that is new.

    Raise LeaderboardError where nothing can be read, or what was measured is not said.
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
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        coverage = settings.required_coverage
        records.append(
            record_of(run, skill=skill, version=version, model=request.model, timestamp=now, required_coverage=coverage)
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
    """Return the record of a run that was made elsewhere; what is named here goes before what the source says."""
    cases, metrics = run.by_case, run.metrics
    replicates = max(map(len, cases.values()))
    scores = [_case_score(case_id, answers, metrics, replicates) for case_id, answers in cases.items()]
    scorecard = Scorecard(cases=tuple(scores), replicates=replicates)
    said = [[answer.case_id, answer.case, answer.outcome, dict(answer.scores), answer.output] for answer in run.answers]
    content = digest(canonical_json([run.tool, run.model, said]))
    model_id = _NO_NAME.sub("-", model or run.model or _UNNAMED).lstrip(":@/._-") or _UNNAMED
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
        **counts_of(scorecard, latencies, required_coverage),
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
