"""Recorded runs → the `Pair` that a verdict is drawn from: baseline, anchor, and the further runs of each version.

Its own module because it imports numpy only when there is a baseline: most runs of a new component have none.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Policy, Settings
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.records.archive import Archive, RecordedRun, entry_of, precedence
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import (
    before_edit,
    choose,
    last_accepted,
    next_lower,
    passed_over,
    runs_alike,
    runs_below,
    runs_of_versions,
    same_series,
    versions_patched_to,
)
from skill_evaluator.verdicts.comparability import Pair, as_asked, common_part, served_change
from skill_evaluator.verdicts.pooling import cut_to
from skill_evaluator.verdicts.ranking_results import ModelRanking
from skill_evaluator.verdicts.results import ComparisonResult
from skill_evaluator.verdicts.rewording import rewording_of
from skill_evaluator.verdicts.rules import rules_for

_PROMPT = "prompt"
AUDITS = "audits"  # beside the folder of components
_HALF = "the baseline that was asked beside it is not complete, so it is judged against a recorded run"
_SHARED = 0.5  # of the candidate's cases must be in a version that nobody accepted, for it to be the anchor


def verdict_on(
    records: Sequence[Record],
    component: Component,
    archive: Archive,
    settings: Settings,
    config: Path,
    partial: Container[str] = (),
) -> ComparisonResult | None:
    """Compare complete runs with the recorded ones of a lower version; None where no model has such a one.

    A baseline that was asked beside another run is not judged itself. Of a run with the schema alone, the version's own
    run is judged: what does its prompt add? The runs in `partial` were asked some of the cases: they are held against
    the same cases of the recorded ones.
    """
    archive.add(records)
    policy = settings.policy
    chosen = [
        (record, usual_baseline(entry, archive, policy))
        for record in records
        if record.scenario != SCHEMA_ALONE and not (entry := entry_of(record)).is_baseline
    ]
    pairs = [pair_of(record, lower, archive, policy) for record, lower in chosen if lower is not None]
    rest = rest_of_family([pair for pair in pairs if pair.candidate.run_id not in partial], archive, policy)
    pairs = [_of_asked_cases(pair) if pair.candidate.run_id in partial else pair for pair in pairs]
    alone = [prompt_pair(record, archive) for record in records if record.scenario == SCHEMA_ALONE]
    pairs += [pair for pair in alone if pair is not None]
    if not pairs:
        return None
    from skill_evaluator.verdicts.comparison import compare_records

    return compare_records(component.name, pairs, rules_for(settings, config, records[0]), rest=rest)


def ranking_of(
    records: Sequence[Record],
    component: Component,
    archive: Archive,
    settings: Settings,
    config: Path,
    verdict: ComparisonResult | None = None,
    left_out: Mapping[str, str] | None = None,
) -> ModelRanking:
    """Rank complete runs, one a model; `verdict` is on each against a lower version, `left_out` says who has none."""
    from skill_evaluator.verdicts.ranking import rank_models

    archive.add(records)
    family = [*records, *_rest_of_version(records, archive)]
    pairs = [pair_of(record, None, archive, settings.policy, anchored=False) for record in family]
    prompts = [pair for record in records if (pair := prompt_pair(record, archive)) is not None]
    judged = {} if verdict is None else {model.model_id: model.verdict for model in verdict.models}
    rules = rules_for(settings, config, records[0])
    runs, rest = pairs[: len(records)], pairs[len(records) :]
    return rank_models(
        component.name, runs, rules, rest=rest, prompts=prompts, verdicts=judged, left_out=left_out or {}
    )


def _rest_of_version(records: Sequence[Record], archive: Archive) -> list[Record]:
    """Return the newest runs of the versions shown of all other models."""
    models, rest = {record.model_id for record in records}, []
    for version in _versions_of_families(records, archive):
        for choice in choose(archive.entries, version, None).choices:
            if choice.candidate.model_id not in models:
                with suppress(LeaderboardError):
                    rest.append(archive.record(choice.candidate))
    return rest


def _versions_of_families(records: Iterable[Record], archive: Archive) -> list[str]:
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
        baseline=first,
        candidate=second,
        baseline_again=_again(first, archive),
        candidate_again=_again(second, archive),
    )
    pooled, alone = as_asked(pair), as_asked(replace(pair, baseline_again=(), candidate_again=()))
    return alone if alone.side_by_side and not pooled.side_by_side else pooled


def prompt_pair(record: Record, archive: Archive) -> Pair | None:
    """Return the newest run with the schema alone, and the newest with the prompt: one is given, the other looked up.

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
    """Return a run of a recorded version with the earlier ones of its series; None where there is none.

    The earlier runs are A/A runs: they were tested themselves. Runs of a version that was PATCHed since are among them
    where the prompt stayed the same.
    """
    older = _again(record, archive, patched=True)
    return Pair(baseline=older[-1], candidate=record, baseline_again=older[:-1], any_served=True) if older else None


def _of_asked_cases(pair: Pair) -> Pair:
    """Return a pair with all records cut to the cases that the candidate was asked."""
    mine = {case.case_id for case in pair.candidate.per_case}

    def cut(record: Record) -> Record:
        return cut_to(record, mine)

    everything = {case.case_id for record in (pair.baseline, pair.candidate) if record for case in record.per_case}
    return replace(
        pair,
        baseline=pair.baseline and cut(pair.baseline),
        anchor=pair.anchor and cut(pair.anchor),
        baseline_again=tuple(map(cut, pair.baseline_again)),
        candidate_again=tuple(map(cut, pair.candidate_again)),
        anchor_again=tuple(map(cut, pair.anchor_again)),
        passed_over=(f"only {len(mine)} of {len(everything)} cases were asked", *pair.passed_over),
    )


def rest_of_family(shown: Iterable[Pair], archive: Archive, policy: Policy, baseline: str | None = None) -> list[Pair]:
    """Return the pairs of all other models that have a run of the versions shown, and a baseline or that named.

    The models of a version are one family, whichever of them are shown. One whose record cannot be read is left out.
    """
    records = [pair.candidate for pair in shown]
    models, rest = {record.model_id for record in records}, []
    for version in _versions_of_families(records, archive):
        chosen = choose(archive.entries, version, baseline, usual=lambda run: usual_baseline(run, archive, policy))
        for choice in chosen.choices:
            if choice.baseline is not None and choice.candidate.model_id not in models:
                with suppress(LeaderboardError):
                    rest.append(pair_of(archive.record(choice.candidate), choice.baseline, archive, policy))
    return rest


def usual_baseline(candidate: RecordedRun, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that a candidate is compared with unless a person names another; None where there is none.

    It is the version that was asked beside the candidate; else, of an edited prompt, its version before the edit; else
    the last accepted version, if the policy has that as the anchor; else the next lower version.
    """
    nearest = archive.baseline_beside(candidate) or before_edit(archive.entries, candidate)
    return nearest or _last_accepted(candidate, archive, policy) or next_lower(archive.entries, candidate)


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

    Baselines that were asked beside another run are among them. Runs that `--adaptive` stopped early are not: their
    scores are those that it stops at. A run in which the model had moved (`drift`) begins a series of its own: runs
    before it are pooled with none after it. With `patched` runs of the versions count that this one is a PATCH of, and
    whichever model answered them; without, those that the same one answered.
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
        and not other.adaptive
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
    accepted = _last_accepted(entry, archive, policy)
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


def _last_accepted(candidate: RecordedRun, archive: Archive, policy: Policy) -> RecordedRun | None:
    if policy.anchor == "previous" or candidate.scenario is not None:
        return None
    return last_accepted(archive.entries, candidate, archive.accepted)


def _look(candidate: RecordedRun, anchor: RecordedRun, archive: Archive) -> int:
    """Return how many runs were held against the anchor, up to and including the candidate: versions and re-runs."""
    start = precedence(anchor.version)
    held = {
        run.run_id
        for run in runs_alike(archive.entries, candidate)
        if precedence(run.version) > start and run.is_comparable(anchor) and run.order <= candidate.order
    }
    return len(held | {candidate.run_id})
