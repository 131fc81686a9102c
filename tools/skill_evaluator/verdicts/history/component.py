"""What is known of a component: verdicts on its runs, its history, the ranking of its models, and comparisons."""

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

from skill_evaluator.errors import LeaderboardError, RunError
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Settings
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.records.archive import Archive, RecordedRun, entry_of, precedence
from skill_evaluator.records.faults import unusable_words
from skill_evaluator.records.record import Record
from skill_evaluator.records.selection import (
    choose,
    newest_of_versions,
    next_lower,
    runs_of_models,
    runs_of_versions,
    usual_baseline,
)
from skill_evaluator.runner.journal import MANIFEST, is_unfinished, read_component_manifest
from skill_evaluator.text import version_words
from skill_evaluator.verdicts.decide.comparability import Pair, as_asked, cut_to
from skill_evaluator.verdicts.decide.comparison import compare_records  # imports scipy
from skill_evaluator.verdicts.decide.results import ComparisonResult, Comparisons
from skill_evaluator.verdicts.decide.rules import VerdictRules, rules_for
from skill_evaluator.verdicts.history.baselines import models_pair, other_models, pair_of, prompt_pair, rest_of_family
from skill_evaluator.verdicts.history.series import History, history_of, shipping_advice
from skill_evaluator.verdicts.planning.advice import ModelRanking
from skill_evaluator.verdicts.planning.ranking import rank_models

_NEWEST = 5  # versions that are compared without being asked
_MOST_MODELS = 8  # whose pairs are


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentStanding:
    """A component with at least one complete run: the newest record of each model, its history and its ranking."""

    newest: Mapping[str, Record]
    history: History
    ranking: ModelRanking


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The records to compare, one pair a model, and the models without records to compare, with the reason.

    `rest` has the pairs of models that were not named, but belong to the family.
    """

    pairs: Sequence[Pair]
    rest: Sequence[Pair] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def apart(self) -> "Chosen":
        """Take results of another tool as measured on different days; raise LeaderboardError for records of ours."""
        if not all(pair.candidate.is_from_elsewhere for pair in self.pairs):
            raise LeaderboardError("--apart is for another tool's results; a record already says what ran beside it")
        return replace(self, pairs=[replace(pair, side_by_side=False) for pair in self.pairs])

    def judged(self, settings: Settings) -> ComparisonResult:
        """Compare what was chosen, under today's rules."""

        first = self.pairs[0].candidate
        return compare_records(first.skill, self.pairs, rules_for(settings, first), self.left_out, rest=self.rest)


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


@dataclass(frozen=True, kw_only=True)
class RecordedComponent:
    """A component with its recorded runs, and with the settings by which they are judged."""

    component: Component
    archive: Archive
    settings: Settings

    def rules(self, candidate: Record) -> VerdictRules:
        """Return the rules for a candidate, as they stand today."""
        return rules_for(self.settings, candidate)

    def runs(self, models: Sequence[str] = ()) -> list[RecordedRun]:
        """Return the recorded runs of these models, or of all; raise LeaderboardError without any."""
        where = self.component.leaderboard_path
        if not self.archive.entries:
            raise LeaderboardError(f"{where} holds no run yet; evaluate '{self.component.name}' first")
        return runs_of_models(self.archive.entries, models, where)

    def standing(self) -> ComponentStanding | None:
        """Return what is known of the component; None where no run is complete."""
        newest = newest_of_versions(self.archive.entries)
        if not newest:
            return None
        history, ranking = self.advised(self.archive.entries)
        return ComponentStanding(
            newest={model_id: self.archive.record(runs[-1]) for model_id, runs in sorted(newest.items())},
            history=history,
            ranking=ranking,
        )

    def unmeasured(self, shown: Iterable[str]) -> str:
        """Say that the version on disk has no complete run, and the highest version shown; "" if it has one."""
        version, shown = self.component.version, sorted(shown, key=precedence)
        if not shown or any(version in of_model for of_model in runs_of_versions(self.archive.entries).values()):
            return ""
        return f"{version_words(version)} on disk is not measured; this is {version_words(shown[-1])}"

    def _why_incomplete(self, run: RecordedRun) -> str:
        """Say that no run of a model is complete, and what the newest lacks."""
        record, version = self.archive.record(run), self.component.version
        why = unusable_words(record) or f"{record.scored} of {record.planned} outputs are scored"
        on_disk = "" if version == run.version else f"; {version_words(version)} on disk is not measured"
        return f"no run is complete; {version_words(run.version)}: {why}{on_disk}"

    def refuse_incomplete(self, runs: Sequence[RecordedRun]) -> None:
        """Raise LeaderboardError if no run of a version is complete, with what the newest lacks."""
        if not runs_of_versions(runs):
            raise LeaderboardError(f"{self.component.name} on {runs[0].model_id}: {self._why_incomplete(runs[0])}")

    def advised(self, runs: Sequence[RecordedRun], ranking: ModelRanking | None = None) -> tuple[History, ModelRanking]:
        """Return the history of some runs and their ranking, by default of the highest version; both advise alike."""
        self.refuse_incomplete(runs)
        shipped = ranking = ranking or self.ranking(runs)
        history, versions = self.history(runs), {model.skill_version for model in ranking.models}
        if history.to_ship not in versions:
            choices = choose(runs, history.to_ship, None).choices
            shipped = self.ranking_of([self.archive.record(choice.candidate) for choice in choices])
        update = {
            "advice": shipping_advice(history, shipped),
            "unmeasured": self.unmeasured(versions or {history.newest}),
        }
        return history.model_copy(update=update), ranking.model_copy(update=update)

    def ship_words(self) -> str:
        """Return which version and model to ship by all records. Return "" if no run is complete."""
        entries = self.archive.entries
        return self.advised(entries)[1].advice.words if runs_of_versions(entries) else ""

    def history(self, entries: Sequence[RecordedRun]) -> History:
        """Judge each version beside the one before; only a model's highest is also held against the anchor."""
        archive, policy = self.archive, self.settings.policy
        by_model = {
            model_id: [
                pair_of(
                    archive.record(run),
                    archive.baseline_beside(run) or next_lower(archive.entries, run),
                    archive,
                    policy,
                    anchored=run is newest[-1],
                )
                for run in newest
            ]
            for model_id, newest in sorted(newest_of_versions(entries).items())
        }
        latest = max((pairs[-1].candidate for pairs in by_model.values()), key=lambda record: record.timestamp)
        return history_of(self.component.name, by_model, self.rules(latest))

    def ranking(self, entries: Sequence[RecordedRun], version: str | None = None) -> ModelRanking:
        """Rank the models of a version, by default of the highest, each with its verdict against a lower version.

        The ranking is empty if no run is complete.
        """
        if version is None and not newest_of_versions(entries):
            newest = {entry.model_id: entry for entry in reversed(entries)}
            return self.ranking_of([], None, {model_id: self._why_incomplete(newest[model_id]) for model_id in newest})
        chosen = choose(entries, version, None)
        records = [self.archive.record(choice.candidate) for choice in chosen.choices]
        return self.ranking_of(records, self.verdict_on(records), chosen.left_out)

    def chosen(
        self, baseline: str | Record | None, candidate: str | Record | None, models: Sequence[str] = ()
    ) -> Chosen:
        """Choose the runs to compare, one pair a model; raise LeaderboardError if there is nothing to judge.

        `baseline` and `candidate` are versions, of which all runs count, or runs, drafts or records, which are compared
        as they are.
        """
        archive, policy = self.archive, self.settings.policy
        if isinstance(candidate, str) and (draft := archive.draft(candidate)) is not None:
            beside = None if draft.beside is None else archive.draft(draft.beside)
            archive.add([] if beside is None else [beside])
            candidate = draft
        record, lower = (one if isinstance(one, Record) else None for one in (candidate, baseline))
        where = self.component.leaderboard_path
        runs = self.runs(models) if record is None else runs_of_models(archive.entries, models, where)
        if candidate is None:
            self.refuse_incomplete(runs)
        choices = choose(
            runs,
            entry_of(candidate) if isinstance(candidate, Record) else candidate,
            entry_of(baseline) if isinstance(baseline, Record) else baseline,
            usual=lambda run: usual_baseline(run, archive, policy),
        )
        pairs, family = [], []
        for choice in choices.choices:
            judged, absent = record or archive.record(choice.candidate), choice.absent
            if choice.baseline is None and (incomplete := self.incomplete_below(choice.candidate)):
                absent = f"{absent} ({incomplete})"
            if choice.exact:
                met = lower or (archive.record(choice.baseline) if choice.baseline else None)
                pairs.append(replace(as_asked(Pair(baseline=met, candidate=judged)), absent=absent))
            else:
                pairs.append(replace(pair_of(judged, choice.baseline, archive, policy), absent=absent))
                family.append(pairs[-1])
        version = baseline if isinstance(baseline, str) else None
        rest = rest_of_family(family, archive, policy, version) if models else ()
        return Chosen(pairs=pairs, rest=rest, left_out=choices.left_out)

    def incomplete_below(self, candidate: RecordedRun) -> str:
        """Name the newest incomplete run of a lower version and its date, or return an empty string."""
        of, entries = (candidate.model_id, candidate.scenario), self.archive.entries
        runs = [(run.timestamp, run.version, (run.model_id, run.scenario)) for run in entries if not run.complete]
        for path in self.component.results_dir.glob(f"*/{MANIFEST}"):
            with suppress(RunError):
                run = read_component_manifest(path.parent)
                if run.whole and run.role is None and not run.draft and is_unfinished(path.parent):
                    runs.append((run.created, run.skill_version, (run.model_id, run.scenario)))
        below = precedence(candidate.version)
        lower = [(moment, version) for moment, version, alike in runs if alike == of and precedence(version) < below]
        moment, version = max(lower, default=("", ""))
        return f"{version_words(version)} of {moment[:10]}: incomplete" if lower else ""

    def chosen_models(self, names: tuple[str, str], version: str | None) -> Chosen:
        """Choose the runs of two models of a version, by default of the highest that both have."""
        pair = models_pair(self.runs(names), names, self.archive, version)
        if pair is None:
            of, name = "" if version is None else f" of {version}", self.component.name
            raise LeaderboardError(f"{' and '.join(names)} have no complete run{of} of one version of '{name}'")
        return Chosen(pairs=[pair])

    def comparisons(self) -> Comparisons:
        """Compare the newest versions as `compare --candidate` does, and pairs of models as `--models` does."""
        entries = self.archive.entries
        by_model = runs_of_versions(entries)
        every = {version for versions in by_model.values() for version in versions}
        newest = sorted(every, key=precedence, reverse=True)[:_NEWEST]
        versions = {version: self.chosen(None, version).judged(self.settings) for version in newest}
        names = combinations(sorted(by_model)[:_MOST_MODELS], 2)
        beside = (models_pair(entries, pair, self.archive) for pair in names)
        models = [Chosen(pairs=[pair]).judged(self.settings) for pair in beside if pair is not None]
        return Comparisons(versions=versions, models=models)

    def verdict_on(
        self, records: Sequence[Record], partial: Container[str] = (), *, asked_again: bool = False
    ) -> ComparisonResult | None:
        """Compare complete runs with the recorded ones of a lower version; None if no model has one.

        An interleaved baseline is not judged itself. A run with the schema alone is the baseline of the version's own
        run. The runs in `partial` have some of the cases, and the recorded ones are cut to them. Of cases that were
        `asked_again`, because they failed, only these runs count.
        """
        archive, policy = self.archive, self.settings.policy
        archive.add(records)
        chosen = [
            (record, usual_baseline(entry, archive, policy))
            for record in records
            if record.scenario != SCHEMA_ALONE and not (entry := entry_of(record)).is_baseline
        ]
        if asked_again:
            pairs = [pair_of(record, lower, archive, policy, anchored=False) for record, lower in chosen]
            return Chosen(pairs=pairs).judged(self.settings).model_copy(update={"asked_again": True})
        pairs = [pair_of(record, lower, archive, policy) for record, lower in chosen if lower is not None]
        rest = rest_of_family([pair for pair in pairs if pair.candidate.run_id not in partial], archive, policy)
        pairs = [_of_asked_cases(pair) if pair.candidate.run_id in partial else pair for pair in pairs]
        alone = [prompt_pair(record, archive) for record in records if record.scenario == SCHEMA_ALONE]
        pairs += [pair for pair in alone if pair is not None]
        return Chosen(pairs=pairs, rest=rest).judged(self.settings) if pairs else None

    def ranking_of(
        self,
        records: Sequence[Record],
        verdict: ComparisonResult | None = None,
        left_out: Mapping[str, str] | None = None,
    ) -> ModelRanking:
        """Rank complete runs, one a model; `verdict` is on each of them, `left_out` says which models have none."""

        archive = self.archive
        archive.add(records)
        family = [*records, *(record for record, _ in other_models(records, archive))]
        pairs = [pair_of(record, None, archive, self.settings.policy, anchored=False) for record in family]
        return rank_models(
            self.component.name,
            pairs[: len(records)],
            self.rules(records[0] if records else archive.record(archive.entries[0])),
            rest=pairs[len(records) :],
            prompts=[pair for record in records if (pair := prompt_pair(record, archive)) is not None],
            verdicts={} if verdict is None else {model.model_id: model.verdict for model in verdict.models},
            left_out=left_out or {},
        )


def _of_asked_cases(pair: Pair) -> Pair:
    """Return a pair with all records cut to the cases of the candidate."""
    own = {case.case_id for case in pair.candidate.per_case}
    cut = partial(cut_to, case_ids=own)
    everything = {case.case_id for record in (pair.baseline, pair.candidate) if record for case in record.per_case}
    return replace(
        pair,
        baseline=pair.baseline and cut(pair.baseline),
        anchor=pair.anchor and cut(pair.anchor),
        baseline_again=tuple(map(cut, pair.baseline_again)),
        candidate_again=tuple(map(cut, pair.candidate_again)),
        anchor_again=tuple(map(cut, pair.anchor_again)),
        passed_over=(f"only {len(own)} of {len(everything)} cases were asked", *pair.passed_over),
    )
