"""`skill-evaluator score`: score a saved run again, with today's metrics and declarations, without a call."""

import sys
from pathlib import Path
from threading import Thread

from skill_evaluator.display.addresses import Site
from skill_evaluator.display.options import (
    ComponentsOption,
    ConfigOption,
    FixturesOption,
    FormatOption,
    argument,
    options,
)
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK, RunError
from skill_evaluator.evaluation.adaptive import with_looks
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.scenarios import apply_scenario
from skill_evaluator.providers import read_configuration
from skill_evaluator.records.record import write_record
from skill_evaluator.reports.evaluation import print_finished, write_report
from skill_evaluator.runner.journal import RECORD, outcomes, read_component_manifest
from skill_evaluator.runner.runs import changes_since, saved_run
from skill_evaluator.runner.schedule import schedule_calls
from skill_evaluator.scoring.parallel import open_scores
from skill_evaluator.scoring.recording import Finished, Recorder, origin_of
from skill_evaluator.scoring.scorer import Scorer
from skill_evaluator.stats import load_quantiles

EXAMPLES = ("skill-evaluator score components/<component>/evals/results/<run-id>",)


@options
class ScoreOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption):
    """The options of `score`."""

    run: Path = argument("A run folder (it holds manifest.json and replicates.jsonl).")


def score(options: ScoreOptions) -> int:
    """Score a saved run again without a call; rewrites its record.json and report.md, touches no leaderboard."""
    configuration = read_configuration(options.config)
    manifest = read_component_manifest(options.run)
    component = apply_scenario(
        load_component(options.components, manifest.skill, configuration.settings.limits, options.fixtures),
        options.config,
        manifest.scenario,
    )
    cases = {case.id: case for case in load_cases(component, options.fixtures)}
    run = saved_run(options.run, component, {model.id: model for model in configuration.models})
    gone = [case_id for case_id in run.manifest.cases if case_id not in cases]
    if gone:
        raise RunError(f"{run.folder} cannot be scored: case '{gone[0]}' is no longer among the fixtures")
    changed = changes_since(run, component, cases)
    if run.manifest.role is not None:  # it asked an earlier prompt, on purpose
        changed = [name for name in changed if name != "prompt"]
    if changed:
        print(f"warning: changed since these answers were given: {visible(', '.join(changed))}", file=sys.stderr)
    journal = outcomes(run.folder)
    planned = schedule_calls(tuple(run.manifest.cases), run.manifest.asked)
    made = [call for call in planned if call in journal]
    if not made:
        raise RunError(f"{run.folder} holds no answer yet")
    mine = [cases[case_id] for case_id in run.manifest.cases]
    with open_scores(component, mine, len(made)) as scores:
        Thread(target=load_quantiles).start()  # while the workers score
        scorer = Scorer(component, mine, run.manifest.asked, scores)
        scorer.add_all(journal[call] for call in made)
        scorecard = scorer.scorecard()
    origin = origin_of(component, options.fixtures)
    recorder = Recorder(component=component, settings=configuration.settings, kinds=configuration.kinds, origin=origin)
    stopped = None if len(made) == len(planned) else "unfinished: calls are missing"
    record = recorder.record(run.model, run.manifest, scorecard, stopped=stopped)
    record = with_looks(record, run.manifest)
    finished = Finished(record=record, record_path=options.run / RECORD, folder=options.run)
    write_record(finished.record_path, record)
    write_report(finished, site=Site(configuration.settings.site.address))
    print_finished([finished], component, options.format)
    return EXIT_OK if record.complete else EXIT_INCOMPLETE
