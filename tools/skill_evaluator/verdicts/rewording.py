"""What a neutral rewording does to a model: how far its score moves between scenarios around one and the same prompt.

Records of the baseline under scenarios, or a committed audit, in; one standard deviation out. A drop that is no larger
than this is what another wording would have done as well.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, variance

from skill_evaluator.errors import AuditError
from skill_evaluator.files import FrozenModel, read_json, validated
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record
from skill_evaluator.verdicts.comparability import Rewording, Scores, strict_scores

AUDIT_RESULT = "report.json"
_FEWEST = 2  # scenarios that can differ
_MOST_ADDED = 9.0  # beyond, the estimate is so near to nothing that its root says little
_PER_CENT = 100.0


def rewording_of(baseline: Record, archive: Archive, audits: Path) -> Rewording | None:
    """Return what rewordings do to the baseline's model; None where nothing was measured.

    Of the baseline's own runs under scenarios and a committed audit, the one with more scenarios counts; the own runs
    where both have as many.
    """
    own = neutral_sigma(baseline, scenario_runs(archive, baseline))
    audited = audited_sigma(audits, baseline)
    if own is None or audited is None:
        return own or audited
    return own if own.n >= audited.n else audited


def scenario_runs(archive: Archive, baseline: Record) -> list[Record]:
    """Return the complete runs of a baseline's version and model under scenarios that can be held against it."""
    named = [
        archive.record(entry)
        for entry in archive.entries
        if entry.complete
        and entry.scenario is not None
        and (entry.model_id, entry.version) == (baseline.model_id, baseline.skill_version)
    ]
    return [record for record in named if _is_reworded(record, baseline)]


def _is_reworded(record: Record, baseline: Record) -> bool:
    """Return whether a run differs from the baseline by nothing but its scenario."""
    alike = ("prompt", "schema", "contract", "datasets", "settings")
    return record.scorer_version == baseline.scorer_version and all(
        record.digests.get(name) == baseline.digests.get(name) for name in alike
    )


def neutral_sigma(baseline: Record, under_scenarios: Iterable[Record], metric: str | None = None) -> Rewording | None:
    """Return the standard deviation over scenarios of a metric's strict mean, less what replicates explain.

    The metric is the baseline's primary one by default, and the cases are those that all the runs and the baseline have
    unchanged. Runs of one scenario are pooled. None for fewer than two scenarios, or without a common case.

    The variance that replicates explain is that of a case's mean, by the scatter of its replicates. What is left is
    multiplied by what the root of an estimate lacks on average, as the audit does.
    """
    metric = metric or baseline.primary_metric
    by_scenario: dict[str, list[Record]] = {}
    for record in under_scenarios:
        by_scenario.setdefault(f"{record.scenario}\n{record.digests.get('scenario')}", []).append(record)
    tables = [_pooled_scores(records, metric) for _, records in sorted(by_scenario.items())]
    digests = {(case.case_id, case.digest) for case in baseline.per_case}
    common = sorted(digests.intersection(*tables)) if len(tables) >= _FEWEST else []
    if not common:
        return None
    means = [fmean(fmean(table[key]) for key in common) for table in tables]
    explained = fmean(_variance_of_mean([table[key] for key in common]) for table in tables)
    return Rewording(
        sigma=_without_noise(variance(means), explained, len(means) - 1),
        n=len(means),
        source=f"{len(means)} scenarios around {baseline.skill_version}",
    )


def _pooled_scores(records: Sequence[Record], metric: str) -> dict[tuple[str, str], Scores]:
    """Return the strict scores of one scenario's runs, by case and its digest; cases without a score are left out."""
    pooled: dict[tuple[str, str], Scores] = {}
    for record in records:
        for case in record.per_case:
            scores = strict_scores(case, metric)
            if scores:
                key = case.case_id, case.digest
                pooled[key] = (*pooled.get(key, ()), *scores)
    return pooled


def _variance_of_mean(cases: Sequence[Scores]) -> float:
    """Return the variance of a mean over cases that replicates explain; 0 where no case has two replicates.

    A case with one replicate is taken to vary as the others do.
    """
    within = [variance(scores) for scores in cases if len(scores) > 1]
    if not within:
        return 0.0
    usual = fmean(within)
    of_means = [(variance(scores) if len(scores) > 1 else usual) / len(scores) for scores in cases]
    return sum(of_means) / len(cases) ** 2


def _without_noise(seen: float, explained: float, degrees: int) -> float:
    """Return √(seen − explained), times 1 + (seen ÷ (seen − explained))² ÷ 4ν, which its root lacks on average.

    0 where noise alone explains what was seen. The correction is the audit's, at most 1 + 9 ÷ 4ν.
    """
    left = seen - explained
    if left <= 0.0:
        return 0.0
    return math.sqrt(left) * (1.0 + min((seen / left) ** 2, _MOST_ADDED) / (4.0 * degrees))


class _AuditedSpread(FrozenModel):
    fluctuation: float


class _AuditedModel(FrozenModel):
    model: str
    fluctuation: float
    corrected: float | None = None
    benchmarks: dict[str, _AuditedSpread] = {}


class _AuditFile(FrozenModel):
    """The keys of an audit's report.json that are read here; spreads are in per cent."""

    scenarios: list[str]
    models: list[_AuditedModel]


def audited_sigma(audits: Path, baseline: Record) -> Rewording | None:
    """Return the fluctuation of the baseline's model in the newest audit below a folder that has it; None without.

    The component's own fluctuation counts where it was a benchmark of the audit (scenario × question noise is in it),
    else the model's over all benchmarks, corrected for noise where the audit could. Raise AuditError for a broken file.
    """
    for path in sorted(audits.glob(f"*/{AUDIT_RESULT}"), reverse=True):
        audit = validated(_AuditFile, read_json(path, AuditError), path, AuditError)
        model = next((model for model in audit.models if model.model == baseline.model_id), None)
        if model is None:
            continue
        own = model.benchmarks.get(baseline.skill)
        corrected = model.fluctuation if model.corrected is None else model.corrected
        points = corrected if own is None else own.fluctuation
        of = " on other benchmarks" if own is None else ""
        return Rewording(
            sigma=points / _PER_CENT,
            n=len(audit.scenarios),
            source=f"the audit {path.parent.name}{of} ({len(audit.scenarios)} scenarios)",
        )
    return None
