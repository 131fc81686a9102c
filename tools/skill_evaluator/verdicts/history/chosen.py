"""Which recorded runs `compare` judges, and against which: versions, runs or records that are named, or two models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.config import Settings
from skill_evaluator.records.archive import entry_of
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import choose, runs_of_models
from skill_evaluator.verdicts.decide.comparability import Pair, as_asked
from skill_evaluator.verdicts.decide.results import ComparisonResult
from skill_evaluator.verdicts.decide.rules import rules_for
from skill_evaluator.verdicts.history.baselines import models_pair, pair_of, rest_of_family, usual_baseline
from skill_evaluator.verdicts.history.component import RecordedComponent


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The records to compare, one pair a model, and the models that have nothing to judge, with the reason.

    `rest` has the pairs of models that were not named: the models of a version are one family.
    """

    pairs: Sequence[Pair]
    rest: Sequence[Pair] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def apart(self) -> "Chosen":
        """Take results of another tool as measured on different days; raise LeaderboardError for records of ours."""
        if not all(pair.candidate.is_from_elsewhere for pair in self.pairs):
            told = "--apart is of another tool's results; a record says by itself what it was asked beside"
            raise LeaderboardError(told)
        return replace(self, pairs=[replace(pair, side_by_side=False) for pair in self.pairs])

    def judged(self, settings: Settings, config: Path) -> ComparisonResult:
        """Compare what was chosen, under today's rules."""
        from skill_evaluator.verdicts.decide.comparison import compare_records  # imports scipy

        first = self.pairs[0].candidate
        rules = rules_for(settings, config, first)
        return compare_records(first.skill, self.pairs, rules, left_out=self.left_out, rest=self.rest)


def chosen_runs(
    recorded: RecordedComponent,
    baseline: str | Record | None,
    candidate: str | Record | None,
    models: Sequence[str] = (),
) -> Chosen:
    """Choose the runs to compare, one pair a model; raise LeaderboardError when there is nothing to judge.

    `baseline` and `candidate` name a version, a run or a draft, or are records. Named runs and records are compared as
    they are; of versions, all runs count.
    """
    archive, policy = recorded.archive, recorded.settings.policy
    if isinstance(candidate, str) and (draft := archive.draft(candidate)) is not None:
        beside = None if draft.beside is None else archive.draft(draft.beside)
        archive.add([] if beside is None else [beside])
        candidate = draft
    named = candidate if isinstance(candidate, Record) else None
    chosen = choose(
        runs_of_models(archive.entries, models, recorded.component.leaderboard_path)
        if named
        else recorded.runs(models),
        entry_of(candidate) if isinstance(candidate, Record) else candidate,
        entry_of(baseline) if isinstance(baseline, Record) else baseline,
        usual=lambda run: usual_baseline(run, archive, policy),
    )
    pairs = []
    for choice in chosen.choices:
        judged = named or archive.record(choice.candidate)
        if choice.exact:
            met = archive.record(choice.baseline) if choice.baseline and not isinstance(baseline, Record) else None
            pair = as_asked(Pair(baseline=baseline if isinstance(baseline, Record) else met, candidate=judged))
        else:
            pair = pair_of(judged, choice.baseline, archive, policy)
        pairs.append(replace(pair, absent=choice.absent))
    family = [pair for pair, choice in zip(pairs, chosen.choices, strict=True) if not choice.exact]
    version = baseline if isinstance(baseline, str) else None
    rest = rest_of_family(family, archive, policy, version) if models else ()
    return Chosen(pairs=pairs, rest=rest, left_out=chosen.left_out)


def chosen_models(recorded: RecordedComponent, names: tuple[str, str], version: str | None) -> Chosen:
    """Choose the runs of two models of a version, by default of the highest that both have."""
    runs = runs_of_models(recorded.archive.entries, names, recorded.component.leaderboard_path)
    pair = models_pair(runs, names, recorded.archive, version)
    if pair is None:
        of, name = "" if version is None else f" of {version}", recorded.component.name
        raise LeaderboardError(f"{' and '.join(names)} have no complete run{of} of one version of '{name}'")
    return Chosen(pairs=[pair])


def chosen_of_files(
    baselines: Sequence[Record], candidates: Sequence[Record], models: Sequence[str], files: tuple[str, str]
) -> Chosen:
    """Choose the records of two files to compare: of either its only one, else those of equal models."""
    if len(baselines) == len(candidates) == 1:
        return Chosen(pairs=[as_asked(Pair(baseline=baselines[0], candidate=candidates[0]))])
    before = {record.model_id: record for record in baselines}
    after = {record.model_id: record for record in candidates if not models or record.model_id in models}
    pairs = [as_asked(Pair(baseline=before[name], candidate=one)) for name, one in after.items() if name in before]
    if not pairs:
        raise LeaderboardError(f"{files[0]} and {files[1]} have no model in common")
    return Chosen(pairs=pairs, left_out={name: f"it is not in {files[0]}" for name in after if name not in before})
