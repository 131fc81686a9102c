"""`skill-evaluator compare`: is a version worse than the recorded one, where, and how sure is that?

`skill-evaluator compare --calibrate RUN`: how far can this gate be trusted at the size of this run?
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from skill_evaluator.commands.options import (
    COMPONENTS,
    CONFIG,
    Components,
    Config,
    Form,
    OnlyModels,
    component_names,
    named_verdicts,
)
from skill_evaluator.display.addresses import Site
from skill_evaluator.errors import EXIT_OK, LeaderboardError
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Policy, Settings, load_settings
from skill_evaluator.records.archive import Archive, entry_of
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import choose, choose_candidate, runs_of_models
from skill_evaluator.reports.comparison import print_comparison
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.recorded import models_pair, pair_of, usual_baseline
from skill_evaluator.verdicts.rules import exit_code, rules_for

EXAMPLES = (
    "skill-evaluator compare <component>",
    "skill-evaluator compare <component> --baseline 1.2.0 --model <model>",
    "skill-evaluator compare old.csv new.csv",
    "skill-evaluator compare <component> --models <model> <model>",
    "skill-evaluator compare <component> --calibrate 1.2.0 --model <model>",
)
EXITS = {3: "regressed", 4: "inconclusive or incomparable, if --fail-on names it"}
TIMES = 1_000
_QUIET_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The options of `compare`."""

    skill: Annotated[
        str | None,
        typer.Argument(
            help="The component; or the file of a record, or of another tool's results.", autocompletion=component_names
        ),
    ] = None
    other: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The file to compare with the first one.", show_default=False)
    ] = None
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="VERSION|RUN|FILE", help="Default: the last accepted version, else the next lower."
        ),
    ] = None
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="VERSION|RUN|FILE", help="Default: the newest of the highest version."),
    ] = None
    models: OnlyModels = ()
    between: Annotated[
        tuple[str, str] | None,
        typer.Option("--models", metavar="A B", help="Compare model B with model A, on the same version."),
    ] = None
    fail_on: Annotated[
        tuple[str, ...],
        typer.Option("--fail-on", metavar="VERDICT,...", help="Verdicts that fail; default: policy of settings.yaml."),
    ] = ()
    calibrate: Annotated[
        str | None,
        typer.Option(
            "--calibrate",
            metavar="RUN|VERSION|FILE",
            help="Compare nothing: measure false alarms and power of this gate on one version's answers, dealt anew.",
        ),
    ] = None
    components: Components = COMPONENTS
    config: Config = CONFIG
    format: Form = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The records to compare, one pair a model, and the models that have nothing to judge, with the reason."""

    pairs: tuple[Pair, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def compare(options: CompareOptions) -> int:
    """Say whether a version is worse than the recorded one, where, and how sure that is; makes no call."""
    settings = load_settings(options.config)
    if options.other is not None:
        options = replace(options, skill=None, baseline=options.skill, candidate=options.other)
    if options.calibrate is not None:  # how often the gate is right on random halves of the run's replicates
        from skill_evaluator.reports.sensitivity import print_calibration
        from skill_evaluator.verdicts.calibration import calibrate

        record, again = _find_runs(options, options.calibrate, settings)
        rules = rules_for(settings, options.config, record)
        print_calibration(calibrate(record, rules, TIMES, settings.seed, _Progress(), again), options.format)
        return EXIT_OK
    fail_on = named_verdicts(options.fail_on)
    component = None if options.skill is None else load_component(options.components, options.skill, settings.limits)
    chosen = _choose_records(options, component, settings.policy)
    from skill_evaluator.verdicts.comparison import compare_records  # imports scipy: not for help, nor for an error

    first = chosen.pairs[0].candidate
    rules = rules_for(settings, options.config, first)
    result = compare_records(first.skill, chosen.pairs, rules, left_out=chosen.left_out)
    print_comparison(result, options.format, Site(settings.site.address))
    return exit_code(result.verdict, fail_on or settings.policy.fail_on)


def _choose_records(options: CompareOptions, component: Component | None, policy: Policy) -> _Chosen:
    """Choose the records to compare, one pair a model; raise LeaderboardError when there is nothing to judge.

    Named runs and files are compared as they are; of versions, all runs count.
    """
    candidates, baselines = _read_file(options.candidate), _read_file(options.baseline)
    if candidates and baselines:
        return _pairs_of_files(baselines, candidates, options)
    candidate, baseline = _only(candidates, options.candidate), _only(baselines, options.baseline)
    if component is None:
        raise LeaderboardError("name a component, or two record files with --baseline and --candidate")
    archive = Archive(component)
    if candidate is None and options.candidate is not None:
        candidate = archive.draft(options.candidate)
        beside = None if candidate is None or candidate.beside is None else archive.draft(candidate.beside)
        archive.add([] if beside is None else [beside])
    if not archive.entries and candidate is None:
        raise LeaderboardError(f"{component.leaderboard_path} holds no run yet; evaluate '{component.name}' first")
    if options.between is not None:
        return _Chosen(pairs=(_pair_of_models(archive, options, options.between, component),))
    chosen = choose(
        runs_of_models(archive.entries, options.models, component.leaderboard_path),
        options.candidate if candidate is None else entry_of(candidate),
        options.baseline if baseline is None else entry_of(baseline),
        usual=lambda run: usual_baseline(run, archive, policy),
    )
    pairs = []
    for choice in chosen.choices:
        judged = candidate or archive.record(choice.candidate)
        if choice.exact:
            met = baseline or (archive.record(choice.baseline) if choice.baseline else None)
            pair = Pair(baseline=met, candidate=judged)
        else:
            pair = pair_of(judged, choice.baseline, archive, policy)
        pairs.append(replace(pair, absent=choice.absent))
    return _Chosen(pairs=tuple(pairs), left_out=chosen.left_out)


def _pair_of_models(archive: Archive, options: CompareOptions, names: tuple[str, str], component: Component) -> Pair:
    """Return the runs of two models of the highest version that both have, or of the one named."""
    if options.baseline is not None or names[0] == names[1]:
        raise LeaderboardError("--models names two models of one version, which --candidate may name; no --baseline")
    runs = runs_of_models(archive.entries, names, component.leaderboard_path)
    pair = models_pair(runs, names, archive, options.candidate)
    if pair is None:
        of = "" if options.candidate is None else f" of {options.candidate}"
        raise LeaderboardError(f"{' and '.join(names)} have no complete run{of} of one version of '{component.name}'")
    return pair


def _read_file(named: str | None) -> list[Record]:
    """Read the records if a file is named."""
    if named is None or not (named.endswith((".json", ".jsonl", ".csv", ".tsv", ".eval")) or Path(named).is_file()):
        return []
    from skill_evaluator.scoring.imported import records_in  # brings with it what scores answers

    return records_in(Path(named))


def _only(records: Sequence[Record], named: str | None) -> Record | None:
    if len(records) > 1:
        raise LeaderboardError(f"{named} holds {len(records)} models; compare it with another file, model by model")
    return records[0] if records else None


def _pairs_of_files(baselines: Sequence[Record], candidates: Sequence[Record], options: CompareOptions) -> _Chosen:
    """Return the records of two files to compare: of either its only one, else those of equal models."""
    if len(baselines) == len(candidates) == 1:
        return _Chosen(pairs=(Pair(baseline=baselines[0], candidate=candidates[0]),))
    before = {record.model_id: record for record in baselines}
    after = {
        record.model_id: record for record in candidates if not options.models or record.model_id in options.models
    }
    pairs = [Pair(baseline=before[name], candidate=record) for name, record in after.items() if name in before]
    if not pairs:
        raise LeaderboardError(f"{options.baseline} and {options.candidate} have no model in common")
    left_out = {name: f"it is not in {options.baseline}" for name in after if name not in before}
    return _Chosen(pairs=tuple(pairs), left_out=left_out)


def _find_runs(options: CompareOptions, run: str, settings: Settings) -> tuple[Record, tuple[Record, ...]]:
    """Find the record of one run by its file, id or version, and its A/A runs; raise LeaderboardError.

    A file is taken as it is; of a recorded version, all runs count.
    """
    record = _only(_read_file(run), run)
    if record is not None:
        return record, ()
    if options.skill is None:
        raise LeaderboardError("name the component of the run to calibrate by, or the file of its record")
    component = load_component(options.components, options.skill, settings.limits)
    archive = Archive(component)
    recorded = archive.entries
    entries = [entry for entry in recorded if not options.models or entry.model_id in options.models]
    if not entries:
        of = f" of {', '.join(options.models)}" if recorded else ""
        raise LeaderboardError(f"{component.leaderboard_path} holds no run{of} yet; evaluate '{component.name}' first")
    named = [entry for entry in entries if entry.run_id == run or (entry.version == run and entry.complete)]
    models = sorted({entry.model_id for entry in named})
    if len(models) > 1:
        raise LeaderboardError(f"version '{run}' was run on {', '.join(models)}; name one with --model")
    fitting = [entry for entry in entries if entry.model_id in models] or entries
    chosen = archive.record(choose_candidate(fitting, run))
    return chosen, pair_of(chosen, None, archive, settings.policy).candidate_again


class _Progress:
    """Prints a line on stderr now and then, if it takes long."""

    def __init__(self) -> None:
        self._printed = time.monotonic()

    def __call__(self, done: int, of: int) -> None:
        now = time.monotonic()
        if now - self._printed >= _QUIET_S:
            self._printed = now
            print(f"calibrating: {done:,} of {of:,} comparisons", file=sys.stderr, flush=True)
