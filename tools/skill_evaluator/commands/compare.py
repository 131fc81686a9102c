"""`skill-evaluator compare`: is a version worse than the recorded one, where, and how sure is that?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from skill_evaluator.commands.options import (
    ComponentsOption,
    ConfigOption,
    FormatOption,
    OnlyModels,
    argument,
    component_names,
    flag,
    named_verdicts,
    option,
    options,
    words_of,
)
from skill_evaluator.display.addresses import Site
from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Policy, load_settings
from skill_evaluator.records.archive import Archive, entry_of
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import choose, runs_of_models
from skill_evaluator.reports.comparison import print_comparison
from skill_evaluator.reports.ending import print_ending
from skill_evaluator.runner.journal import answers_in
from skill_evaluator.verdicts.decide.comparability import Pair, as_asked
from skill_evaluator.verdicts.decide.rules import exit_code_of, rules_for
from skill_evaluator.verdicts.history.baselines import models_pair, pair_of, rest_of_family, usual_baseline

EXAMPLES = (
    "skill-evaluator compare <component>",
    "skill-evaluator compare <component> --baseline 1.2.0 --model <model>",
    "skill-evaluator compare old.csv new.csv",
    "skill-evaluator compare <component> --models <model> <model>",
)
EXITS = {3: "regressed", 4: "another model answered; or a verdict that --fail-on names"}


@options
class CompareOptions(ComponentsOption, ConfigOption, FormatOption):
    """The options of `compare`."""

    skill: str | None = argument(
        "The component; or the file of a record, or of another tool's results.", None, autocompletion=component_names
    )
    other: str | None = argument("The file to compare with the first one.", None, metavar="[FILE]", show_default=False)
    baseline: str | None = option(
        "Default: the last accepted version, else the next lower.", metavar="VERSION|RUN|FILE"
    )
    candidate: str | None = option("Default: the newest of the highest version.", metavar="VERSION|RUN|FILE")
    models: OnlyModels = ()
    between: tuple[str, str] | None = option(
        "Compare model B with model A, on the same version.", None, "--models", metavar="A B"
    )
    apart: bool = flag("Results of another tool were measured on different days.")
    fail_on: tuple[str, ...] = option(
        "Verdicts that fail; default: policy of settings.yaml.", (), metavar="VERDICT,..."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The records to compare, one pair a model, and the models that have nothing to judge, with the reason.

    `rest` has the pairs of models that were not named: the models of a version are one family.
    """

    pairs: tuple[Pair, ...]
    rest: tuple[Pair, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


def compare(options: CompareOptions) -> int:
    """Say whether a version is worse than the recorded one, where, and how sure that is; makes no call."""
    settings = load_settings(options.config)
    if options.other is not None:
        if options.baseline or options.candidate or options.between:
            raise LeaderboardError("the two files are what is compared: leave out --baseline, --candidate and --models")
        options = replace(options, skill=None, baseline=options.skill, candidate=options.other)
    fail_on = named_verdicts(options.fail_on)
    component = None if options.skill is None else load_component(options.components, options.skill, settings.limits)
    chosen = _choose_records(options, component, settings.policy)
    pairs = _apart(chosen.pairs) if options.apart else chosen.pairs
    from skill_evaluator.verdicts.decide.comparison import (
        compare_records,  # imports scipy: not for help, nor for an error
    )

    first = pairs[0].candidate
    rules = rules_for(settings, options.config, first)
    result = compare_records(first.skill, pairs, rules, left_out=chosen.left_out, rest=chosen.rest)
    print_comparison(result, options.format, Site(settings.site.address))
    folders = words_of(options, "components", "config")
    print_ending(result, options.format, None if component is None else answers_in(component.results_dir), folders)
    return exit_code_of([result], settings.policy, fail_on)


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
            pair = as_asked(Pair(baseline=met, candidate=judged))
        else:
            pair = pair_of(judged, choice.baseline, archive, policy)
        pairs.append(replace(pair, absent=choice.absent))
    named = [pair for pair, choice in zip(pairs, chosen.choices, strict=True) if not choice.exact]
    rest = rest_of_family(named, archive, policy, options.baseline) if options.models else ()
    return _Chosen(pairs=tuple(pairs), rest=tuple(rest), left_out=chosen.left_out)


def _apart(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Return pairs of what another tool measured as measured on different days; raise LeaderboardError for others."""
    if not all(pair.candidate.is_from_elsewhere for pair in pairs):
        raise LeaderboardError("--apart is of another tool's results; a record says by itself what it was asked beside")
    return tuple(replace(pair, side_by_side=False) for pair in pairs)


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
    from skill_evaluator.exchange.imported import records_in  # brings with it what scores answers

    return records_in(Path(named))


def _only(records: Sequence[Record], named: str | None) -> Record | None:
    if len(records) > 1:
        raise LeaderboardError(f"{named} holds {len(records)} models; compare it with another file, model by model")
    return records[0] if records else None


def _pairs_of_files(baselines: Sequence[Record], candidates: Sequence[Record], options: CompareOptions) -> _Chosen:
    """Return the records of two files to compare: of either its only one, else those of equal models."""
    if len(baselines) == len(candidates) == 1:
        return _Chosen(pairs=(as_asked(Pair(baseline=baselines[0], candidate=candidates[0])),))
    before = {record.model_id: record for record in baselines}
    after = {
        record.model_id: record for record in candidates if not options.models or record.model_id in options.models
    }
    pairs = [
        as_asked(Pair(baseline=before[name], candidate=record)) for name, record in after.items() if name in before
    ]
    if not pairs:
        raise LeaderboardError(f"{options.baseline} and {options.candidate} have no model in common")
    left_out = {name: f"it is not in {options.baseline}" for name in after if name not in before}
    return _Chosen(pairs=tuple(pairs), left_out=left_out)
