"""Recorded runs → the `Pair` that a verdict is drawn from: baseline, anchor, and the further runs of each version.

Its own module because it imports numpy only when there is a baseline: most runs of a new component have none.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import semver

from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Policy, Settings
from skill_evaluator.records.archive import Archive, RecordedRun, entry_of
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import asked_beside, last_accepted, next_lower, runs_alike, runs_below
from skill_evaluator.verdicts.comparability import Pair, common_part
from skill_evaluator.verdicts.results import ComparisonResult
from skill_evaluator.verdicts.rewording import rewording_of
from skill_evaluator.verdicts.rules import rules_for

_PROMPT = "prompt"
_AUDITS = "audits"  # beside the folder of components
_SHARED = 0.5  # of the candidate's cases must be in a version that nobody accepted, for it to be the anchor


def verdict_on(
    records: Sequence[Record], component: Component, archive: Archive, settings: Settings, config: Path
) -> ComparisonResult | None:
    """Compare complete runs with the recorded ones of a lower version; None where no model has such a one.

    Of two runs whose calls alternated, the lower version is the baseline and is not judged itself.
    """
    archive.add(records)
    policy = settings.policy
    chosen = [(record, usual_baseline(entry_of(record), archive, policy)) for record in records]
    besides = {lower.run_id for record, lower in chosen if lower is not None and lower.run_id == record.beside}
    pairs = [
        pair_of(record, lower, archive, policy)
        for record, lower in chosen
        if lower is not None and record.run_id not in besides
    ]
    if not pairs:
        return None
    from skill_evaluator.verdicts.comparison import compare_records

    return compare_records(component.name, pairs, rules_for(settings, config, records[0]))


def usual_baseline(candidate: RecordedRun, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that a candidate is compared with unless a person names another; None where there is none.

    It is the lower version that was asked beside the candidate; else the last accepted version, if the policy has that
    as the anchor; else the next lower version.
    """
    beside = asked_beside(archive.entries, candidate)
    return beside or _last_accepted(candidate, archive, policy) or next_lower(archive.entries, candidate)


def pair_of(candidate: Record, baseline: RecordedRun | None, archive: Archive, policy: Policy) -> Pair:
    """Return a candidate and its baseline with all other recorded runs that the verdict rests on.

    Runs of a version are pooled. Two whose calls alternated are compared with each other alone, since no day stands
    between them.
    """
    entry = entry_of(candidate)
    beside = baseline is not None and baseline.run_id == entry.beside
    anchor = _anchor_of(candidate, archive, policy)
    before = None if baseline is None else archive.record(baseline)
    since = None if anchor is None else archive.record(anchor)
    return Pair(
        baseline=before,
        candidate=candidate,
        baseline_again=() if before is None or beside else _again(before, archive),
        candidate_again=() if beside else _again(candidate, archive),
        anchor=since,
        anchor_again=() if since is None else _again(since, archive),
        look=1 if anchor is None else _look(entry, anchor, archive),
        rewording=None if before is None else rewording_of(before, archive, archive.folder.parents[1] / _AUDITS),
    )


def _again(record: Record, archive: Archive) -> tuple[Record, ...]:
    """Return the other complete runs of a version, oldest first: of equal prompt, scorer, schema and settings.

    Runs whose calls alternated with another's are left out: they share a day with those. So are runs that `--adaptive`
    stopped early: their scores are those that it stops at.
    """
    run = entry_of(record)
    if run.scenario is not None:
        return ()
    others = [
        other
        for other in runs_alike(archive.entries, run)
        if other.version == run.version
        and other.run_id != run.run_id
        and other.beside is None
        and not other.adaptive
        and other.is_comparable(run)
        and other.digests.get(_PROMPT) == run.digests.get(_PROMPT)
    ]
    drawn = [record]
    for other in sorted(others, key=lambda other: other.order):
        again = archive.record(other)
        if not any(_may_be_copied(again, earlier) for earlier in drawn):
            drawn.append(again)
    return tuple(drawn[1:])


def _may_be_copied(record: Record, other: Record) -> bool:
    """Return whether two runs of a version can be alike without saying anything of chance.

    Replayed answers are the same every time, and a provider that keeps to seeds repeats itself under an equal one.
    """
    keeps_to_seeds = "seed" not in record.settings.unavailable
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
    start = semver.Version.parse(anchor.version)
    held = {
        run.run_id
        for run in runs_alike(archive.entries, candidate)
        if semver.Version.parse(run.version) > start and run.is_comparable(anchor) and run.order <= candidate.order
    }
    return len(held | {candidate.run_id})
