"""`skill-evaluator compare --calibrate RUN`: how far can this gate be trusted at the size of this run?"""

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.commands.inputs import Format
from skill_evaluator.commands.verdicts import judge_by
from skill_evaluator.components import load_component
from skill_evaluator.config import load_settings
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.records import Record, read_record
from skill_evaluator.regression.calibration import calibrate as measured
from skill_evaluator.regression.choosing import choose_candidate, read_entries, record_of
from skill_evaluator.reports.calibration_page import print_calibration

TIMES = 1_000
_QUIET_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, typed. `run`: a run id, a version, or a record's file."""

    run: str
    skill: str | None = None
    models: tuple[str, ...] = ()
    components: Path = Path("components")
    config: Path = Path(".evaluator")
    format: Format = "text"


def calibrate(options: Options) -> int:
    """Deal the run's replicates into halves, judge them many times, print how often the gate was right."""
    settings = load_settings(options.config)
    record = _record(options)
    judge = replace(judge_by(settings, options.config, record), waivers=[])
    print_calibration(measured(record, judge, TIMES, settings.seed, _Progress()), options.format)
    return EXIT_OK


def _record(options: Options) -> Record:
    """The run that is named; raises LeaderboardError when it is not one."""
    if options.run.endswith(".json") or Path(options.run).is_file():
        return read_record(Path(options.run))
    if options.skill is None:
        raise LeaderboardError("name the component of the run to calibrate by, or the file of its record")
    component = load_component(options.components, options.skill)
    recorded = read_entries(component.leaderboard_path)
    entries = [one for one in recorded if not options.models or one.model_id in options.models]
    if not entries:
        of = f" of {', '.join(options.models)}" if recorded else ""
        raise LeaderboardError(f"{component.leaderboard_path} holds no run{of} yet; evaluate '{component.name}' first")
    named = [one for one in entries if one.run_id == options.run or (one.version == options.run and one.complete)]
    models = sorted({one.model_id for one in named})
    if len(models) > 1:
        raise LeaderboardError(f"version '{options.run}' was run on {', '.join(models)}; name one with --model")
    fitting = [one for one in entries if one.model_id in models] or entries
    return record_of(choose_candidate(fitting, options.run), component.records_dir)


class _Progress:
    """A line on stderr now and then, if it takes long."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, done: int, of: int) -> None:
        now = time.monotonic()
        if now - self._said >= _QUIET_S:
            self._said = now
            print(f"calibrating: {done:,} of {of:,} comparisons", file=sys.stderr, flush=True)
