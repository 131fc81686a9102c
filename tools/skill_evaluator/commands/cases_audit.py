"""`skill-evaluator cases audit`: what does each case tell of the versions and models that are recorded? No call."""

from skill_evaluator.commands.options import ComponentsOption, ConfigOption, FormatOption, OnlyModels, Skill, options
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import load_settings
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import runs_of_models
from skill_evaluator.reports.case_audit import print_case_audit

EXAMPLES = ("skill-evaluator cases audit <component>",)


@options
class CasesAuditOptions(ComponentsOption, ConfigOption, FormatOption):
    """The options of `cases audit`."""

    skill: Skill
    models: OnlyModels = ()


def cases_audit(options: CasesAuditOptions) -> int:
    """Say which cases never told two versions or models apart, and which disagree with the rest. Makes no call."""
    from skill_evaluator.evaluation.discrimination import audit_cases  # imports scipy: not for help

    settings = load_settings(options.config)
    component = load_component(options.components, options.skill, settings.limits)
    archive = Archive(component)
    entries = [
        entry
        for entry in runs_of_models(archive.entries, options.models, component.leaderboard_path)
        if entry.complete and entry.scenario is None and not entry.edited
    ]
    runs: dict[str, list[Record]] = {}
    for entry in sorted(entries, key=lambda entry: entry.standing):
        runs.setdefault(f"{entry.version} {entry.model_id}", []).append(archive.record(entry))
    if len(runs) < 2:
        raise LeaderboardError(
            f"{component.leaderboard_path} holds complete runs of {len(runs)} version and model; two are needed"
        )
    newest = archive.record(max(entries, key=lambda entry: entry.order))
    own = settings.policy.components.get(component.name)
    tolerance = settings.policy.tolerance if own is None or own.tolerance is None else own.tolerance
    print_case_audit(audit_cases(component.name, newest.primary_metric, runs, newest, tolerance), options.format)
    return EXIT_OK
