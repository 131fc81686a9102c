"""Which recorded runs a run is held against: its baseline, its anchor, the other runs of both, and its rewordings.

A record in, a `Pair` out. Chosen from everything that is recorded of a component; nothing is compared here.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import fmean, variance

from skill_evaluator.errors import AuditError, LeaderboardError
from skill_evaluator.files import FrozenModel, read_json, validated
from skill_evaluator.library.config import Policy
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.records.archive import Archive, RecordedRun, entry_of, precedence
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import (
    choose,
    last_accepted,
    passed_over,
    runs_alike,
    runs_below,
    runs_of_versions,
    same_series,
    usual_baseline,
    versions_patched_to,
)
from skill_evaluator.stats import by_key
from skill_evaluator.verdicts.decide.comparability import (
    Pair,
    Rewording,
    Scores,
    as_asked,
    common_part,
    is_measured_alike,
    served_change,
    strict_scores,
)

_PROMPT = "prompt"
AUDITS = "audits"  # beside the folder of components
_HALF = "the baseline that was asked beside it is not complete, so it is judged against a recorded run"
_SHARED = 0.5  # of the candidate's cases must be in a version that nobody accepted, for it to be the anchor


def versions_of_families(records: Iterable[Record], archive: Archive) -> list[str]:
    """Return the versions of runs; a draft, an edited prompt and a run under a scenario have no family."""
    entries = {entry.run_id for entry in archive.entries if entry.scenario is None and not entry.edited}
    return sorted({record.skill_version for record in records if record.run_id in entries and not record.draft})


def models_pair(
    entries: Iterable[RecordedRun], names: tuple[str, str], archive: Archive, version: str | None = None
) -> Pair | None:
    """Return the runs of two models of the highest version that both have, or of the one named, each with all its runs.

    Two of one invocation are compared alone where others are not. None where they have no complete run of one version.
    """
    versions = runs_of_versions(entries)
    runs_of_first, runs_of_second = (versions.get(name, {}) for name in names)
    both = [each for each in runs_of_first if each in runs_of_second and version in (None, each)]
    if not both:
        return None
    first, second = (archive.record(runs[both[-1]][-1]) for runs in (runs_of_first, runs_of_second))
    pair = Pair(
        baseline=first, candidate=second, baseline_again=_again(first, archive), candidate_again=_again(second, archive)
    )
    pooled, alone = as_asked(pair), as_asked(replace(pair, baseline_again=(), candidate_again=()))
    return alone if alone.side_by_side and not pooled.side_by_side else pooled


def prompt_pair(record: Record, archive: Archive) -> Pair | None:
    """Return the newest run with the schema alone, and the newest with the prompt; `record` is one of the two.

    None where the same version and model has no such other run.
    """
    other = None if record.scenario == SCHEMA_ALONE else SCHEMA_ALONE
    runs = (run for run in archive.entries if run.complete and not run.edited and run.scenario == other)
    same = (run for run in runs if (run.version, run.model_id) == (record.skill_version, record.model_id))
    entry = next(same, None)
    if entry is None:
        return None
    alone, whole = (record, archive.record(entry)) if other is None else (archive.record(entry), record)
    return Pair(baseline=alone, candidate=whole, candidate_again=_again(whole, archive))


def drift_pair(record: Record, archive: Archive) -> Pair | None:
    """Return a run of a recorded version with the earlier ones of its series; None without any.

    The earlier runs are A/A runs: they were tested themselves. Runs of a version that was PATCHed since are among them
    where the prompt stayed the same.
    """
    older = _again(record, archive, patched=True)
    return Pair(baseline=older[-1], candidate=record, baseline_again=older[:-1], any_served=True) if older else None


def rest_of_family(shown: Iterable[Pair], archive: Archive, policy: Policy, baseline: str | None = None) -> list[Pair]:
    """Return the pairs of all other models that have a run of the versions shown, and a baseline or that named.

    The models of a version are one family, whichever of them are shown. One whose record cannot be read is left out.
    """
    records = [pair.candidate for pair in shown]
    models, rest = {record.model_id for record in records}, []
    for version in versions_of_families(records, archive):
        chosen = choose(archive.entries, version, baseline, usual=lambda run: usual_baseline(run, archive, policy))
        for choice in chosen.choices:
            if choice.baseline is not None and choice.candidate.model_id not in models:
                with suppress(LeaderboardError):
                    rest.append(pair_of(archive.record(choice.candidate), choice.baseline, archive, policy))
    return rest


def pair_of(
    candidate: Record, baseline: RecordedRun | None, archive: Archive, policy: Policy, *, anchored: bool = True
) -> Pair:
    """Return a candidate and its baseline with all other recorded runs that the verdict rests on.

    Runs of a version are pooled, a draft with none. Two whose calls alternated are compared with each other alone,
    since no day stands between them. A baseline of the anchor's version is then the anchor, whose runs are all pooled.
    Unless it is `anchored`, the candidate is held against no anchor.
    """
    entry = entry_of(candidate)
    skipped = list(passed_over(archive.entries, entry, baseline))
    if candidate.beside is not None and archive.baseline_beside(entry) is None:
        skipped.insert(0, _HALF)
    beside = baseline is not None and baseline.run_id == entry.beside
    anchor = _anchor_of(candidate, archive, policy) if anchored else None
    if beside and baseline and anchor and baseline.version == anchor.version:
        anchor = baseline
    before = None if baseline is None else archive.record(baseline)
    since = None if anchor is None else archive.record(anchor)
    pair = Pair(
        baseline=before,
        candidate=candidate,
        baseline_again=() if before is None or beside else _again(before, archive),
        candidate_again=() if beside or candidate.draft else _again(candidate, archive),
        anchor=since,
        anchor_again=() if since is None else _again(since, archive),
        look=1 if anchor is None else _look(entry, anchor, archive),
        passed_over=tuple(skipped),
        rewording=None if before is None else rewording_of(before, archive, archive.folder.parents[1] / AUDITS),
    )
    return as_asked(pair)


def _again(record: Record, archive: Archive, *, patched: bool = False) -> tuple[Record, ...]:
    """Return the other complete runs of a version, oldest first: of equal prompt, scorer, schema and settings.

    Baselines that were asked beside a candidate are among them. A run in which the model had moved (`drift`) begins a
    series of its own: runs before it are pooled with none after it. With `patched` runs of the versions count that this
    one is a PATCH of, and whichever model answered them; without, those that the same one answered.
    """
    run = entry_of(record)
    if run.scenario is not None:
        return ()
    versions = versions_patched_to(archive.entries, run.version) if patched else {run.version}
    others = [
        archive.record(other)
        for other in runs_alike(archive.runs_of(run.model_id), run)
        if other.version in versions
        and other.run_id != run.run_id
        and other.is_comparable(run)
        and other.digests.get(_PROMPT) == run.digests.get(_PROMPT)
    ]
    drawn = [record]
    alike = [again for again in same_series(record, others) if patched or served_change(record, again) is None]
    for again in alike:
        if not any(_may_be_copied(again, earlier) for earlier in drawn):
            drawn.append(again)
    return tuple(drawn[1:])


def _may_be_copied(record: Record, other: Record) -> bool:
    """Return whether two runs of a version can be alike without saying anything of chance.

    Replayed answers are the same every time, and a provider that keeps to seeds repeats itself under an equal one.
    """
    keeps_to_seeds = record.settings is not None and "seed" not in record.settings.unavailable
    return record.provider == "replay" or (keeps_to_seeds and record.seed == other.seed)


def _anchor_of(candidate: Record, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that losses are summed up since: of the last accepted version, or of the oldest comparable one.

    Without an acceptance the versions below are gone through from the highest until one was measured otherwise. Of
    those before, the lowest counts that shares enough unchanged cases with the candidate.
    """
    entry = entry_of(candidate)
    if policy.anchor == "previous" or entry.scenario is not None:
        return None
    accepted = last_accepted(entry, archive, policy)
    if accepted is not None:
        return accepted
    stretch = []
    for _, runs in groupby(runs_below(archive.entries, entry), key=lambda run: run.version):
        newest = next((run for run in runs if run.is_comparable(entry)), None)
        if newest is None:
            break
        stretch.append(newest)
    enough = _SHARED * len(candidate.per_case)
    lowest_first = ((run, common_part(archive.record(run), candidate)) for run in reversed(stretch))
    return next((run for run, common in lowest_first if len(common.cases) >= enough), None)


def _look(candidate: RecordedRun, anchor: RecordedRun, archive: Archive) -> int:
    """Return how many runs were held against the anchor, up to and including the candidate: versions and re-runs."""
    start = precedence(anchor.version)
    held = {
        run.run_id
        for run in runs_alike(archive.entries, candidate)
        if precedence(run.version) > start and run.is_comparable(anchor) and run.order <= candidate.order
    }
    return len(held | {candidate.run_id})


AUDIT_RESULT = "report.json"
_REWORDED = ("prompt", "schema", "contract", "datasets", "settings")  # a run under a scenario shares them
_FEWEST = 2  # scenarios that can differ
_MOST_ADDED = 9.0  # beyond, the estimate is so near to nothing that its root says little
_PER_CENT = 100.0


def rewording_of(baseline: Record, archive: Archive, audits: Path) -> Rewording | None:
    """Return what rewordings do to the baseline's model; None where nothing was measured.

    Of the baseline's own runs under scenarios and an audit of the component, the one with more scenarios counts; the
    own runs where both have as many.
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
    return [record for record in named if is_measured_alike(record, baseline, *_REWORDED)]


def neutral_sigma(baseline: Record, under_scenarios: Iterable[Record]) -> Rewording | None:
    """Return the standard deviation over scenarios of the primary metric's mean, less what replicates explain.

    The cases are those that all the runs and the baseline have
    unchanged. Runs of one scenario are pooled. None for fewer than two scenarios, or without a common case.

    The variance that replicates explain is that of a case's mean, by the scatter of its replicates. What is left is
    multiplied by what the root of an estimate lacks on average, as the audit does.
    """
    by_scenario = by_key((f"{one.scenario}\n{one.digests.get('scenario')}", one) for one in under_scenarios)
    tables = [_pooled_scores(records, baseline.primary_metric) for _, records in sorted(by_scenario.items())]
    digests = {case.question for case in baseline.per_case}
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


def _pooled_scores(records: Sequence[Record], metric: str) -> dict[tuple[str, ...], Scores]:
    """Return the strict scores of one scenario's runs, by case and its digest; cases without a score are left out."""
    pooled: dict[tuple[str, ...], Scores] = {}
    for record in records:
        for case in record.per_case:
            scores = strict_scores(case, metric)
            if scores:
                key = case.question
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
    benchmarks: dict[str, _AuditedSpread] = {}


class _AuditFile(FrozenModel):
    """The keys of an audit's report.json that are read here; spreads are in per cent."""

    scenarios: list[str]
    models: list[_AuditedModel]


def audited_sigma(audits: Path, baseline: Record) -> Rewording | None:
    """Return the fluctuation of the baseline's model in the newest audit of its component; None without any.

    The noise of scenario × question is in it. Raise AuditError for a broken file.
    """
    for path in sorted(audits.glob(f"*/{AUDIT_RESULT}"), reverse=True):
        audit = validated(_AuditFile, read_json(path, AuditError), path, AuditError)
        model = next((model for model in audit.models if model.model == baseline.model_id), None)
        if model is not None and (own := model.benchmarks.get(baseline.skill)) is not None:
            return Rewording(
                sigma=own.fluctuation / _PER_CENT,
                n=len(audit.scenarios),
                source=f"the audit {path.parent.name} ({len(audit.scenarios)} scenarios)",
            )
    return None
