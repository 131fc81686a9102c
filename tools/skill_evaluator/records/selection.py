"""Select the recorded runs of a component to compare, and accept versions."""

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import semver

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Policy
from skill_evaluator.library.versions import Bump, bump
from skill_evaluator.records.archive import (
    Acceptance,
    Archive,
    RecordedRun,
    accept_version,
    order,
    precedence,
    versions_accepted,
)
from skill_evaluator.records.record import Record
from skill_evaluator.repository import author_at
from skill_evaluator.text import listed, nearest


def choose(
    entries: Sequence[RecordedRun], candidate: str | RecordedRun | None, baseline: str | RecordedRun | None
) -> tuple[list[tuple[RecordedRun, RecordedRun | None]], dict[str, str]]:
    """Return pairs (candidate, baseline), and by model id the reason why a model has no candidate.

    `candidate` and `baseline` are a version, a run id, a run or None. The baseline of a pair is None if `baseline` is
    None, or if it is a version of which the candidate's model has no run. Raise LeaderboardError if there is no
    candidate, or no run of the version `baseline`.
    """
    candidates, left_out = choose_candidates(entries, candidate)
    named_run = find_run(entries, baseline)
    if named_run is not None and not isinstance(candidate, RecordedRun):
        runs_of_model = [run for run in candidates if run.model_id == named_run.model_id]
        if runs_of_model:
            candidates, left_out = runs_of_model, {}
    if baseline is None or named_run is not None:
        return [(run, named_run) for run in candidates], left_out
    choices = [(run, run_of_version(entries, run, str(baseline))) for run in candidates]
    if all(lower is None for _, lower in choices):
        raise _no_such_run([entry for run in candidates for entry in runs_like(entries, run)], str(baseline))
    return choices, left_out


def choose_candidates(
    entries: Sequence[RecordedRun], name: str | RecordedRun | None
) -> tuple[list[RecordedRun], dict[str, str]]:
    """Return one candidate per model, and by model id the reason why a model has none.

    `name` is a version, a run id, a run, or None for the highest version. The candidates of a version are its newest
    complete runs. A run under a scenario is chosen only by its id. Raise LeaderboardError if there is no candidate.
    """
    named = find_run(entries, name)
    if named is not None:
        return [named], {}
    measuring = [entry for entry in entries if entry.complete and not entry.edited and entry.scenario is None]
    if name is None:
        highest = max(measuring, key=lambda entry: entry.version_order, default=None)
        if highest is None:
            raise LeaderboardError(
                "there is no complete run without a scenario to compare; run `skill-evaluator evaluate` first"
            )
        version = highest.version
    else:
        version = str(name)
    newest: dict[str, RecordedRun] = {}
    for entry in measuring:
        if entry.version == version:
            newest.setdefault(entry.model_id, entry)
    if not newest:
        raise _no_such_run(measuring, version)
    models = dict.fromkeys(entry.model_id for entry in entries)
    absent = {model_id: f"no complete run of {version}" for model_id in models if model_id not in newest}
    return list(newest.values()), absent


def run_of_version(entries: Sequence[RecordedRun], candidate: RecordedRun, version: str) -> RecordedRun | None:
    """Return a version's newest run that is comparable with a candidate. If none is, return its newest run or None."""
    return _best_baseline((entry for entry in runs_like(entries, candidate) if entry.version == version), candidate)


def runs_of_versions(entries: Iterable[RecordedRun]) -> dict[str, dict[str, list[RecordedRun]]]:
    """Return complete, unedited runs without scenario by model id and version, lowest version and oldest run first."""
    runs: dict[str, dict[str, list[RecordedRun]]] = {}
    for entry in sorted(entries, key=lambda entry: entry.version_order):
        if entry.complete and not entry.edited and entry.scenario is None:
            runs.setdefault(entry.model_id, {}).setdefault(entry.version, []).append(entry)
    return runs


def newest_of_versions(entries: Iterable[RecordedRun]) -> dict[str, list[RecordedRun]]:
    """Return, by model id, the newest complete and unedited run of each version, lowest version first."""
    runs = runs_of_versions(entries)
    return {model_id: [of_version[-1] for of_version in versions.values()] for model_id, versions in runs.items()}


def next_lower_version(entries: Sequence[RecordedRun], candidate: RecordedRun) -> RecordedRun | None:
    """Return the run of the next lower version, as `run_of_version` chooses it. Return None if there is none."""
    lower = lower_version_runs(entries, candidate)
    return run_of_version(lower, candidate, lower[0].version) if lower else None


def default_baseline(candidate: RecordedRun, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the run that a candidate is compared with by default, or None if there is none.

    In this order: the interleaved baseline; for an edited prompt or a draft, the recorded run of the same version; the
    highest accepted lower version, if the policy uses accepted versions; the next lower version.
    """
    recorded = [
        run
        for run in runs_like(archive.entries, candidate)
        if run.version == candidate.version and not run.draft
        if candidate.draft or (None not in (run.prompt, candidate.prompt) and run.prompt != candidate.prompt)
    ]
    return (
        archive.interleaved_baseline(candidate)
        or _best_baseline(recorded, candidate)
        or last_accepted(candidate, archive, policy)
        or next_lower_version(archive.entries, candidate)
    )


def last_accepted(candidate: RecordedRun, archive: Archive, policy: Policy) -> RecordedRun | None:
    """Return the newest comparable run of the highest accepted version below the candidate's.

    Skip versions without a comparable run. Return None if no version has one, if the policy's `anchor` is `previous`,
    or if the candidate ran under a scenario.
    """
    if policy.anchor == "previous" or candidate.scenario is not None:
        return None
    versions = versions_accepted(archive.accepted, candidate.model_id)
    lower = (entry for entry in lower_version_runs(archive.entries, candidate) if entry.version in versions)
    return next((entry for entry in lower if entry.is_comparable(candidate)), None)


def lower_version_runs(entries: Sequence[RecordedRun], candidate: RecordedRun) -> list[RecordedRun]:
    """Return the complete runs of lower versions with a candidate's model and scenario, highest and newest first.

    Skip edited prompts. Return [] if the candidate's version is not semver.
    """
    if not semver.Version.is_valid(candidate.version):
        return []
    version = precedence(candidate.version)
    lower = [entry for entry in runs_like(entries, candidate) if precedence(entry.version) < version]
    return sorted(lower, key=lambda entry: entry.version_order, reverse=True)


def runs_of_models(entries: Sequence[RecordedRun], model_ids: Sequence[str], path: Path) -> list[RecordedRun]:
    """Return the runs of these models, or all if none is named. Raise LeaderboardError for a model without runs."""
    models, model_ids = {entry.model_id for entry in entries}, [model_ids] if isinstance(model_ids, str) else model_ids
    for model_id in model_ids:
        if model_id not in models:
            raise LeaderboardError(f"no run of model '{model_id}' in {path} {nearest(model_id, models)}")
    return [entry for entry in entries if not model_ids or entry.model_id in model_ids]


def find_run(entries: Sequence[RecordedRun], name: str | RecordedRun | None) -> RecordedRun | None:
    """Return the run with this id, or `name` itself if it is a run. Return None if there is no such run."""
    if isinstance(name, RecordedRun):
        return name
    return next((entry for entry in entries if entry.run_id == name), None)


def runs_like(entries: Sequence[RecordedRun], candidate: RecordedRun) -> list[RecordedRun]:
    """Return the complete runs with a candidate's model and scenario. Skip runs with an edited prompt."""
    return [run for run in entries if not run.edited and _matches(run, candidate)]


def skipped_run_notes(
    entries: Sequence[RecordedRun], candidate: RecordedRun, baseline: RecordedRun | None
) -> Iterator[str]:
    """Yield a note for each run with an edited prompt whose version lies between those of baseline and candidate."""
    lowest = None if baseline is None else precedence(baseline.version)
    for entry in entries:
        if not entry.edited or entry.run_id == candidate.run_id or not _matches(entry, candidate):
            continue
        version = precedence(entry.version)
        if (lowest is None or lowest <= version) and version <= precedence(candidate.version):
            role = " as a baseline" if entry.version != candidate.version else ""
            yield f"run {entry.run_id} is skipped{role}: its prompt is not that of {entry.version}'s first run"


def _matches(entry: RecordedRun, candidate: RecordedRun) -> bool:
    return entry.complete and (entry.model_id, entry.scenario) == (candidate.model_id, candidate.scenario)


def _best_baseline(runs: Iterable[RecordedRun], candidate: RecordedRun) -> RecordedRun | None:
    """Return the newest comparable run, else the newest run, else None."""
    return max(runs, key=lambda run: (run.is_comparable(candidate), order(run)), default=None)


def _no_such_run(runs: Sequence[RecordedRun], name: str) -> LeaderboardError:
    names = dict.fromkeys([*(run.version for run in runs), *(run.run_id for run in runs)])
    models = sorted({run.model_id for run in runs})
    of_model = f" of '{models[0]}'" if len(models) == 1 else ""
    return LeaderboardError(f"no complete run{of_model} of version or id '{name}' {nearest(name, names)}")


def versions_patched_to(entries: Iterable[RecordedRun], version: str) -> set[str]:
    """Return the version, and the recorded lower versions that differ only by a patch, such as 1.2.0 for 1.2.1."""
    return {version} | {entry.version for entry in entries if bump(entry.version, version) is Bump.PATCH}


def same_series(record: Record, records: Iterable[Record]) -> list[Record]:
    """Return the records with no drift between them and `record`, oldest first and without `record` itself."""
    runs = sorted([record, *records], key=lambda run: (run.timestamp, run.run_id))
    moves = [run for run in runs if run.drift is not None and run.drift.moved]
    series = {run.run_id: sum(move in runs[: index + 1] for move in moves) for index, run in enumerate(runs)}
    return [run for run in runs if run is not record and series[run.run_id] == series[record.run_id]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An acceptance and its records. `new`: it did not exist before. `above`: a higher accepted version, or None."""

    acceptance: Acceptance
    new: bool
    records: Sequence[Record]
    above: str | None
    path: Path


def accept(
    component: Component, archive: Archive, version: str | None, *, reason: str, by: str, models: Sequence[str]
) -> Accepted:
    """Accept a recorded version, by default the highest, as the baseline of later versions.

    If `by` is empty, git's author accepts it. If `models` is empty, it is accepted for all models. Raise
    LeaderboardError if the version has no complete run, or none of a named model, or if reason or author is empty.
    """
    name = component.name
    reason, by = " ".join(reason.split()), " ".join(by.split())
    if not reason:
        raise LeaderboardError(f"a reason is required: skill-evaluator accept {name} --reason TEXT")
    entries = runs_of_models(archive.entries, models, component.leaderboard_path)
    version, runs = _to_accept(entries, version, models, name)
    by = by or author_at(component.files.folder) or ""
    if not by:
        raise LeaderboardError("git has no user.name and user.email here; name who accepts the version: --by NAME")
    acceptance = Acceptance(
        version=version,
        by=by,
        why=reason,
        date=datetime.datetime.now(datetime.UTC).date(),
        run_ids={model_id: [run.run_id for run in of_model] for model_id, of_model in runs.items()},
        models=sorted(set(models)) or None,
    )
    records = [archive.record(run) for of_model in runs.values() for run in of_model]
    lock = component.results_dir / ".accepted.lock"
    existing = accept_version(component.accepted_path, lock, name, acceptance)
    versions = {accepted for model_id in runs for accepted in versions_accepted(archive.accepted, model_id)}
    higher = max(versions, key=precedence, default=version)
    return Accepted(
        acceptance=existing or acceptance,
        new=existing is None,
        records=records,
        above=higher if precedence(higher) > precedence(version) else None,
        path=component.accepted_path,
    )


def _to_accept(
    entries: Sequence[RecordedRun], version: str | None, models: Sequence[str], skill: str
) -> tuple[str, dict[str, list[RecordedRun]]]:
    runs = runs_of_versions(entries)
    complete = [run for versions in runs.values() for of_version in versions.values() for run in of_version]
    complete.sort(key=lambda run: run.version_order)
    unusable = [run for run in entries if run.usable is not None and version in (None, run.version)]
    hint = "".join(f"; {run.usable:.0%} of the outputs of {run.run_id} could be read" for run in unusable[:1])
    if not complete:
        raise LeaderboardError(f"no run of '{skill}' is complete: there is nothing to accept{hint}")
    version = version or complete[-1].version
    accepted = {model_id: versions[version] for model_id, versions in sorted(runs.items()) if version in versions}
    missing = [model_id for model_id in models if model_id not in accepted]
    if not accepted or missing:
        of_model = f" with {', '.join(missing)}" if missing else ""
        versions_text = listed(list(dict.fromkeys(run.version for run in reversed(complete))), max_names=10)
        raise LeaderboardError(
            f"no complete run of '{version}'{of_model} to accept; versions with a complete run: {versions_text}{hint}"
        )
    return version, accepted
