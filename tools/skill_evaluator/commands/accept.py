"""`skill-evaluator accept`: make a recorded version the one that later versions are held against. Makes no call."""

import datetime
from collections.abc import Iterable, Sequence

import semver

from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FormatOption,
    OnlyModels,
    Skill,
    argument,
    flag,
    option,
    options,
)
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.records.archive import Acceptance, Archive, RecordedRun, accept_version, versions_accepted
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import runs_of_models, runs_of_versions
from skill_evaluator.reports.acceptance import print_acceptances, print_accepted
from skill_evaluator.repository import author_at
from skill_evaluator.text import listed

EXAMPLES = (
    'skill-evaluator accept <component> --why "dates now come from the parser"',
    'skill-evaluator accept <component> 1.4.0 --model <model> --why "cheaper, and good enough"',
    "skill-evaluator accept <component> --list",
)


@options
class AcceptOptions(ComponentsOption, ConfigOption, FormatOption):
    """The options of `accept`."""

    skill: Skill
    version: str | None = argument("Default: the highest version with a complete record.", None, show_default=False)
    why: str = option("Why it is accepted; needed.", "", metavar="TEXT")
    by: str = option("Who accepts it; default: user.name and user.email of git.", "", metavar="NAME")
    models: OnlyModels = ()
    show: bool = flag("Accept nothing: show what was accepted.", "--list")


def accept(options: AcceptOptions) -> int:
    """Make a recorded version the anchor: the baseline of later ones, with who and why. Makes no call.

    It is kept in `evals/accepted.json`, which is to be committed. Losses of later versions are summed up since then. A
    version that is worse may be accepted.
    """
    component = load_component(options.components, options.skill, load_settings(options.config).limits)
    archive = Archive(component)
    path = component.accepted_path
    if options.show:
        print_acceptances(component.name, archive.accepted, options.format)
        return EXIT_OK
    why, by = " ".join(options.why.split()), " ".join(options.by.split())
    if not why:
        raise LeaderboardError(f"say why it is accepted: skill-evaluator accept {component.name} … --why TEXT")
    entries = runs_of_models(archive.entries, options.models, component.leaderboard_path)
    version, runs = _find_version(entries, options, component.name)
    by = by or author_at(component.folder) or ""
    if not by:
        raise LeaderboardError("git knows no user.name and user.email here; say who accepts it: --by NAME")
    acceptance = Acceptance(
        version=version,
        by=by,
        why=why,
        date=datetime.datetime.now(datetime.UTC).date(),
        run_ids={model_id: [run.run_id for run in of_model] for model_id, of_model in runs.items()},
        models=sorted(set(options.models)) or None,
    )
    records = [archive.record(run) for of_model in runs.values() for run in of_model]
    there = accept_version(path, component.results_dir / ".accepted.lock", component.name, acceptance)
    remarks = [f"commit {path}: later versions are held against {version} from then on"] if there is None else []
    above = _highest_accepted(archive, records)
    if above is not None and semver.Version.parse(above) > semver.Version.parse(version):
        remarks.append(f"versions above {above} are still held against that one, unless its entry in {path} is removed")
    print_accepted(there or acceptance, records, options.format, new=there is None, remarks=remarks)
    return EXIT_OK


def _highest_accepted(archive: Archive, records: Iterable[Record]) -> str | None:
    """Return the highest version that was accepted for any of the records' models."""
    models = {record.model_id for record in records}
    versions = {version for model_id in models for version in versions_accepted(archive.accepted, model_id)}
    return max(versions, key=semver.Version.parse, default=None)


def _find_version(
    entries: Sequence[RecordedRun], options: AcceptOptions, skill: str
) -> tuple[str, dict[str, list[RecordedRun]]]:
    """Return the version to accept, and its complete runs by model; raise LeaderboardError where a model has none.

    A run that `--adaptive` stopped early is no baseline, and nothing to accept.
    """
    runs = runs_of_versions(entry for entry in entries if not entry.adaptive)
    complete = [run for versions in runs.values() for of_version in versions.values() for run in of_version]
    complete.sort(key=lambda run: run.standing)
    if not complete:
        raise LeaderboardError(f"no run of '{skill}' is complete and was asked to the end: there is nothing to accept")
    version = options.version or complete[-1].version
    accepted = {model_id: versions[version] for model_id, versions in sorted(runs.items()) if version in versions}
    lacking = [model_id for model_id in options.models if model_id not in accepted]
    if not accepted or lacking:
        of_model = f" of {', '.join(lacking)}" if lacking else ""
        there = listed(list(dict.fromkeys(run.version for run in reversed(complete))), most=10)
        stopped = any(entry.adaptive and entry.version == version for entry in entries)
        hint = "; --adaptive stopped a run of it early: evaluate it without --adaptive" if stopped else ""
        raise LeaderboardError(f"no complete record{of_model} of '{version}' to accept; there are: {there}{hint}")
    return version, accepted
