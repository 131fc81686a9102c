"""Which recorded runs a run is compared with: its baseline, the accepted version, and the other runs of both."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.config import Policy
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.records.archive import Archive, RecordedRun, entry_of
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
from skill_evaluator.verdicts.decide.comparability import Pair, as_asked, common_part, served_change

_PROMPT = "prompt"
_HALF = "the baseline that was asked beside it is not complete, so it is judged against a recorded run"
_SHARED = 0.5  # of the candidate's cases must be in a version that nobody accepted, for it to be the anchor


def models_pair(
    entries: Iterable[RecordedRun], names: tuple[str, str], archive: Archive, version: str | None = None
) -> Pair | None:
    """Return the runs of two models of the highest version that both have, or of `version`; None if there is none.

    If the newest two are of one invocation and other runs are not, they are compared alone.
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
    """Pair the newest run with the schema alone with the newest with the prompt; `record` is one of the two.

    Return None if the version and model has no other run of this kind.
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
    """Pair a run of a recorded version with the earlier ones of its series; None if there is none.

    Earlier runs of PATCH versions with the same prompt are among them.
    """
    older = _again(record, archive, patched=True)
    return Pair(baseline=older[-1], candidate=record, baseline_again=older[:-1], any_served=True) if older else None


def rest_of_family(shown: Iterable[Pair], archive: Archive, policy: Policy, baseline: str | None = None) -> list[Pair]:
    """Pair the runs of all other models of the versions shown with their baselines, by default the usual ones.

    The models of a version are one family, whichever of them are shown.
    """
    usual, pairs = partial(usual_baseline, archive=archive, policy=policy), []
    for record, lower in other_models([pair.candidate for pair in shown], archive, baseline, usual):
        with suppress(LeaderboardError):  # its record cannot be read
            pairs += [] if lower is None else [pair_of(record, lower, archive, policy)]
    return pairs


def other_models(
    records: Sequence[Record],
    archive: Archive,
    baseline: str | None = None,
    usual: Callable[[RecordedRun], RecordedRun | None] | None = None,
) -> Iterator[tuple[Record, RecordedRun | None]]:
    """Yield the newest runs of all other models of the versions of `records`, each with its baseline.

    A draft, an edited prompt and a run under a scenario have no family.
    """
    models = {record.model_id for record in records}
    recorded = {entry.run_id for entry in archive.entries if entry.scenario is None and not entry.edited}
    of_family = (record for record in records if record.run_id in recorded and not record.draft)
    for version in sorted({record.skill_version for record in of_family}):
        for choice in choose(archive.entries, version, baseline, usual=usual).choices:
            if choice.candidate.model_id not in models:
                with suppress(LeaderboardError):  # its record cannot be read
                    yield archive.record(choice.candidate), choice.baseline


def pair_of(
    candidate: Record, baseline: RecordedRun | None, archive: Archive, policy: Policy, *, anchored: bool = True
) -> Pair:
    """Pair a candidate and its baseline with all other recorded runs that the verdict rests on.

    Runs of a version are pooled, but for drafts and interleaved runs. An interleaved baseline of the accepted version
    is the anchor. Without `anchored` there is no anchor.
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
        passed_over=tuple(skipped),
    )
    return as_asked(pair)


def _again(record: Record, archive: Archive, *, patched: bool = False) -> tuple[Record, ...]:
    """Return the other complete runs of a version, oldest first: of equal prompt, scorer, schema and settings.

    A run in which the model had moved (`drift`) begins a series of its own. With `patched`, runs of the versions count
    that this one is a PATCH of, whichever model answered them.
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
    """Return whether two runs can be alike without chance: replayed, or with an equal seed that the provider keeps."""
    keeps_to_seeds = record.settings is not None and "seed" not in record.settings.unavailable
    return record.provider == "replay" or (keeps_to_seeds and record.seed == other.seed)


def _anchor_of(candidate: Record, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that losses are summed up since: of the last accepted version, or of the oldest comparable one.

    Comparable are the versions below without a gap, if they share enough unchanged cases with the candidate.
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
