"""`skill-evaluator score`: score a saved run again, with today's metrics and declarations, without a call."""

from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.commands.inputs import Format
from skill_evaluator.components import load_component
from skill_evaluator.config import load_models, load_settings
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, RunError
from skill_evaluator.fixtures import cases_folder, load_cases
from skill_evaluator.providers.base import Failure
from skill_evaluator.providers.kinds import kinds_of
from skill_evaluator.recording import Origin, build_record, describe_settings
from skill_evaluator.records import write_record
from skill_evaluator.reports.evaluation import Finished, print_finished, write_report
from skill_evaluator.runner.journal import RECORD, outcomes, read_manifest
from skill_evaluator.runner.plan import plan_calls
from skill_evaluator.runner.prices import price_of
from skill_evaluator.runner.runs import resumed_run
from skill_evaluator.scoring import Scorer
from skill_evaluator.versions import commit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, typed."""

    run: Path
    components: Path = Path("components")
    fixtures: Path | None = None
    config: Path = Path(".evaluator")
    format: Format = "text"


def score(options: Options) -> int:
    """Score one run folder; rewrites its record.json and report.md, touches no leaderboard. Returns the exit code."""
    manifest = read_manifest(options.run)
    models, settings = load_models(options.config), load_settings(options.config)
    kinds = kinds_of(models, str(options.config / "models.yaml"))
    component = load_component(options.components, manifest.skill)
    cases = {case.id: case for case in load_cases(component, options.fixtures)}
    run = resumed_run(options.run, component, cases, {model.id: model for model in models})
    scorer = Scorer(component, [cases[case_id] for case_id in manifest.cases], manifest.replicates)
    found = outcomes(options.run)
    planned = plan_calls(tuple(manifest.cases), manifest.replicates)
    for call in planned:
        if call in found:
            scorer.add(found[call])
    if not found:
        raise RunError(f"{options.run} holds no answer yet")
    kind = kinds[run.model.provider]
    record = build_record(
        manifest,
        component,
        scorer.scorecard(),
        Origin(
            prompt_commit=commit_of(component.folder / "prompt.md"),
            dataset_commit=commit_of(cases_folder(component, options.fixtures)),
        ),
        describe_settings(run.model, kind.sampling(run.model), settings),
        price_of(run.model, kind),
        settings.required_coverage,
        None
        if len(found) == len(planned)
        else Failure(kind="not_run", reason="unfinished", message="calls are missing"),
    )
    finished = Finished(record=record, record_path=options.run / RECORD, folder=options.run)
    write_record(finished.record_path, record)
    write_report(finished, component)
    print_finished([finished], component, options.format)
    return EXIT_OK if record.complete else EXIT_INCOMPLETE
