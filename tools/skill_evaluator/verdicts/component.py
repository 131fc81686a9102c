"""The recorded runs of a component: baselines, verdicts, history, ranking, comparisons and drift.

Drift is a change of the model between runs of the same prompt. Scores also vary from day to day, so only two changes
count as drift: a measure that collapsed, and a change of the primary metric that is larger than the daily variation.
"""

import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, groupby

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Settings, VerdictName
from skill_evaluator.library.scenarios import SCHEMA_ALONE
from skill_evaluator.records import selection
from skill_evaluator.records.archive import Archive, RecordedRun, entry_of, precedence
from skill_evaluator.records.record import Record, unusable_text
from skill_evaluator.records.summaries import Drift
from skill_evaluator.stats import stdev_or_none, t_quantile
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide import comparability
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records  # imports scipy
from skill_evaluator.verdicts.decide.measuring import Compared, Measure, measure_pair
from skill_evaluator.verdicts.decide.results import ComparisonResult, MeasureResult, ModelVerdict
from skill_evaluator.verdicts.decide.rules import VerdictRules, has_collapsed, rules_for
from skill_evaluator.verdicts.shipping import Advice, History, ModelRanking, history_of, rank_models, shipping_advice

_ALPHA_OF_DRIFT = 0.025  # rate of false drift reports
_MIN_SHARED = 0.5  # minimum share of the candidate's cases that a run must have to be the anchor


Named = str | Record | None  # a version or a run id, a record, or None for the default
_NEWEST = 5  # number of versions that are compared by default
_MAX_MODELS = 8  # maximum number of models whose pairs are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentStatus:
    """The newest records, the history, the ranking and the comparisons of a component.

    `newest` has the newest record of each model's highest version, by model id. `versions` compares each of the five
    highest versions with its baselines. `pairs` compares every two of the first eight models, in the order of their
    ids. Two models without a common version are not compared.
    """

    newest: Mapping[str, Record]
    history: History
    ranking: ModelRanking
    versions: Mapping[str, ComparisonResult]
    pairs: Sequence[ComparisonResult]


def pairs_of_files(
    old: Sequence[Record], new: Sequence[Record], models: Sequence[str], files: Sequence[str]
) -> tuple[list[Pair], dict[str, str]]:
    """Pair the records of two files by model id. Also return the reason why a model is skipped, by model id.

    `models` selects the models to compare (empty: all). If each file has a single record, these two are always paired.
    Raise LeaderboardError if there is no pair.
    """
    before = {record.model_id: record for record in old}
    after = {record.model_id: record for record in new if not models or record.model_id in models}
    if len(old) == len(new) == 1:
        before, after = {new[0].model_id: old[0]}, {new[0].model_id: new[0]}
    both = [Pair(baseline=before[name], candidate=record) for name, record in after.items() if name in before]
    if not both:
        names = f"none of the models {', '.join(models)}" if models else "no model"
        raise LeaderboardError(f"{names} is in both {files[0]} and {files[1]}")
    left_out = {name: f"it is not in {files[0]}" for name in after if name not in before}
    return list(map(comparability.mark_concurrent, both)), left_out


def on_different_days(pairs: Sequence[Pair]) -> list[Pair]:
    """Mark pairs of imported results as not interleaved. Raise LeaderboardError if a candidate is not imported."""
    if not all(pair.candidate.is_from_elsewhere for pair in pairs):
        raise LeaderboardError("--different-days is only for results of another tool; omit it: records have dates")
    return [replace(pair, side_by_side=False) for pair in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpread:
    """Strict means of the primary metric by run id (`scores`), and their standard deviation (`sigma`) or None."""

    model_id: str
    version: str
    metric: str
    scores: dict[str, float]
    sigma: float | None


@dataclass(frozen=True, kw_only=True)
class RecordedComponent:
    """A component with its recorded runs and the settings of its verdicts.

    Verdicts, rankings and advice use only the runs in `archive`. `with_records` returns a component with more runs.
    """

    component: Component
    archive: Archive
    settings: Settings

    def with_records(self, records: Iterable[Record]) -> "RecordedComponent":
        """Return the component with these records among its runs. The records need not be saved."""
        return replace(self, archive=self.archive.with_records(records))

    def runs(self, models: Sequence[str] = ()) -> list[RecordedRun]:
        """Return the runs of these models (default: all). Raise LeaderboardError if no run or model is found."""
        path = self.component.leaderboard_path
        if not self.archive.entries:
            raise LeaderboardError(f"{path} holds no run yet; evaluate '{self.component.name}' first")
        return selection.runs_of_models(self.archive.entries, models, path)

    def status(self) -> ComponentStatus | None:
        """Return the newest records, history, ranking and comparisons. Return None if no run is complete."""
        by_model = selection.runs_of_versions(self.archive.entries)
        if not by_model:
            return None
        history, ranking = self.with_advice(self.archive.entries)
        newest = {model_id: list(versions.values())[-1][-1] for model_id, versions in sorted(by_model.items())}
        every = {version for versions in by_model.values() for version in versions}
        pairs = map(self._pair_of_models, combinations(sorted(by_model)[:_MAX_MODELS], 2))
        return ComponentStatus(
            newest={model_id: self.archive.record(run) for model_id, run in newest.items()},
            history=history,
            ranking=ranking,
            versions={
                version: self.compare(*self.choose_runs(None, version))
                for version in sorted(every, key=precedence, reverse=True)[:_NEWEST]
            },
            pairs=[self.compare([pair]) for pair in pairs if pair is not None],
        )

    def unmeasured(self, shown: Iterable[str]) -> str:
        """Return a note that the version on disk has no complete run and a lower version is shown instead.

        The note names the highest of `shown`. Return "" if the version on disk is measured, or if `shown` is empty.
        """
        version, shown = self.component.version, sorted(shown, key=precedence)
        recorded = selection.runs_of_versions(self.archive.entries).values()
        if not shown or any(version in of_model for of_model in recorded):
            return ""
        return f"{version} on disk is not measured; this is {shown[-1]}"

    def _why_incomplete(self, run: RecordedRun) -> str:
        record, version = self.archive.record(run), self.component.version
        reason = unusable_text(record) or f"{record.scored} of {record.planned} outputs are scored"
        on_disk = "" if version == run.version else f"; {version} on disk is not measured"
        return f"no run is complete; {run.version}: {reason}{on_disk}"

    def _refuse_incomplete(self, runs: Sequence[RecordedRun]) -> None:
        if not selection.runs_of_versions(runs):
            raise LeaderboardError(f"{self.component.name} with {runs[0].model_id}: {self._why_incomplete(runs[0])}")

    def with_advice(
        self, runs: Sequence[RecordedRun], ranking: ModelRanking | None = None
    ) -> tuple[History, ModelRanking]:
        """Return the history of the runs and a ranking of models, both with shipping advice.

        By default the models of the highest version are ranked. Raise LeaderboardError if no run is complete.
        """
        self._refuse_incomplete(runs)
        shipped = ranking = ranking or self.ranking(runs)
        history, versions = self.history(runs), {model.run.skill_version for model in ranking.models}
        if history.to_ship not in {"", *versions}:
            of_version, _ = selection.choose_candidates(runs, history.to_ship)
            shipped = self.ranking_of(list(map(self.archive.record, of_version)))
        unmeasured = self.unmeasured(versions or {history.newest})
        advice = shipping_advice(history, shipped)
        update = {"advice": advice, "unmeasured": unmeasured, "accepted": self.accepted_version}
        return history.model_copy(update=update), ranking.model_copy(update=update)

    @property
    def accepted_version(self) -> str:
        """The highest accepted version; "" if none was accepted."""
        return max((acceptance.version for acceptance in self.archive.accepted), key=precedence, default="")

    @property
    def newest_version(self) -> str:
        """The highest version with a complete run that is not a draft; "" if there is none."""
        by_model = selection.runs_of_versions(entry for entry in self.archive.entries if not entry.draft)
        return max((version for versions in by_model.values() for version in versions), key=precedence, default="")

    def ship_words(self) -> str:
        """Return the advice on the version and model to ship as text. Ignore drafts."""
        entries, newest = [entry for entry in self.archive.entries if not entry.draft], self.newest_version
        if not newest:
            return Advice(version="", reason="no run is complete").sentence
        # if the newest version is shipped, lower versions need no verdict
        history, ranking = self.with_advice([entry for entry in entries if entry.version == newest])
        if history.newest_verdict not in ("improved", "unchanged") or history.to_ship != newest:
            ranking = self.with_advice(entries)[1]
        return ranking.advice.sentence

    def history(self, entries: Sequence[RecordedRun]) -> History:
        """Return the history of each model's versions. At least one of the runs must be complete.

        Each version is compared with its interleaved baseline, or else with the next lower version. A model's highest
        version has a second comparison, with the accepted version or else with the lowest comparable one. The policy
        can exclude this second comparison.
        """
        archive = self.archive
        by_model = {
            model_id: [
                self.pair_of(
                    archive.record(run),
                    archive.interleaved_baseline(run) or selection.next_lower_version(archive.entries, run),
                    anchored=run is newest[-1],
                )
                for run in newest
            ]
            for model_id, newest in sorted(selection.newest_of_versions(entries).items())
        }
        latest = max((pairs[-1].candidate for pairs in by_model.values()), key=lambda record: record.timestamp)
        return history_of(self.component.name, by_model, rules_for(self.settings, latest))

    def ranking(self, entries: Sequence[RecordedRun], version: str | None = None) -> ModelRanking:
        """Rank the models of a version. By default it is the highest with a complete run.

        If no run is complete, the ranking is empty. Raise LeaderboardError if a named version has no complete run.
        """
        if version is None and not selection.newest_of_versions(entries):
            newest = {entry.model_id: entry for entry in reversed(entries)}
            return self.ranking_of([], None, {model_id: self._why_incomplete(newest[model_id]) for model_id in newest})
        runs, left_out = selection.choose_candidates(entries, version)
        records = list(map(self.archive.record, runs))
        return self.ranking_of(records, self.verdict_on(records), left_out)

    def choose_runs(
        self, baseline: Named, candidate: Named, models: Sequence[str] = ()
    ) -> tuple[list[Pair], list[Pair], dict[str, str]]:
        """Return (pairs, hidden, left_out), the arguments of `compare`. There is one pair per model.

        `baseline` and `candidate` are a version, a run id or a record. If `candidate` is None, the highest version is
        used. If `baseline` is None, each candidate has its default baseline. `hidden` has the pairs of models that are
        not in `models`. `left_out` has the reason why a model has no candidate, by model id. Raise LeaderboardError if
        no run matches.
        """
        archive = self.archive
        if isinstance(candidate, str) and (draft := archive.draft(candidate)) is not None:
            candidate = draft
        record, lower_record = (named if isinstance(named, Record) else None for named in (candidate, baseline))
        path = self.component.leaderboard_path
        runs = self.runs(models) if record is None else selection.runs_of_models(archive.entries, models, path)
        if candidate is None:
            self._refuse_incomplete(runs)
        names = [entry_of(named) if isinstance(named, Record) else named for named in (candidate, baseline)]
        choices, left_out = selection.choose(runs, *names)
        is_run_named = any(selection.find_run(runs, name) for name in names)  # then its runs are not pooled
        pairs, family = [], []
        for run, named_baseline in choices:
            judged = record or archive.record(run)
            lower = self._default_baseline(run) if baseline is None else named_baseline
            if is_run_named:
                before = lower_record or (archive.record(lower) if lower else None)
                pair = comparability.mark_concurrent(Pair(baseline=before, candidate=judged))
            else:
                pair = self.pair_of(judged, lower)
                family.append(pair.candidate)
            absent = f"there is no complete record of {baseline}" if isinstance(baseline, str) else pair.absent
            pairs.append(replace(pair, absent=absent))
        version = baseline if isinstance(baseline, str) else None
        hidden = self._hidden_pairs(family, version) if models else []
        return pairs, hidden, left_out

    def pair_of_models(self, names: tuple[str, str], version: str | None) -> Pair:
        """Pair the runs of two models of a version (default: their highest common version).

        Raise LeaderboardError if a model is unknown, or if the two do not both have a complete run of the version.
        """
        self.runs(names)  # raises LeaderboardError for an unknown model
        pair = self._pair_of_models(names, version)
        if pair is None:
            of_version = "the same version" if version is None else f"version {version}"
            text = f"{names[0]} and {names[1]} do not both have a complete run of {of_version}"
            raise LeaderboardError(f"{text}; evaluate '{self.component.name}' with both models")
        return pair

    def compare(
        self, pairs: Sequence[Pair], hidden: Sequence[Pair] = (), left_out: Mapping[str, str] | None = None
    ) -> ComparisonResult:
        """Compare pairs by `compare_records` under the policy of the settings."""
        result = compare_records(pairs, rules_for(self.settings, pairs[0].candidate), left_out, hidden)
        return result.model_copy(update={"accepted": self.accepted_version})

    def _pair_of_models(self, names: tuple[str, str], version: str | None = None) -> Pair | None:
        archive, versions = self.archive, selection.runs_of_versions(self.archive.entries)
        runs_of_first, runs_of_second = (versions.get(name, {}) for name in names)
        both = [each for each in runs_of_first if each in runs_of_second and version in (None, each)]
        if not both:
            return None
        first, second = (archive.record(runs[both[-1]][-1]) for runs in (runs_of_first, runs_of_second))
        alone = comparability.mark_concurrent(Pair(baseline=first, candidate=second))
        again = self._again(first), self._again(second)
        pooled = comparability.mark_concurrent(replace(alone, baseline_again=again[0], candidate_again=again[1]))
        return alone if alone.side_by_side and not pooled.side_by_side else pooled

    def verdict_on(
        self, records: Sequence[Record], partial: Container[str] = (), *, asked_again: bool = False
    ) -> ComparisonResult | None:
        """Compare complete runs with their default baselines. Return None if no run has a baseline.

        `partial` has the ids of runs of only some cases. Such a run is compared on these cases. If `asked_again` is
        true, the records are reruns of failed cases, and a run without a baseline is *incomparable*.
        """
        chosen = [
            (record, self._default_baseline(entry_of(record)))
            for record in records
            if record.scenario != SCHEMA_ALONE and not record.is_baseline
        ]
        if asked_again:
            pairs = [self.pair_of(record, lower, anchored=False) for record, lower in chosen]
            return self.compare(pairs).model_copy(update={"asked_again": True})
        pairs = [self.pair_of(record, lower) for record, lower in chosen if lower is not None]
        hidden = self._hidden_pairs([pair.candidate for pair in pairs if pair.candidate.run_id not in partial])
        pairs = [_of_asked_cases(pair) if pair.candidate.run_id in partial else pair for pair in pairs]
        pairs += self._prompt_pairs([record for record in records if record.scenario == SCHEMA_ALONE])
        return self.compare(pairs, hidden) if pairs else None

    def _default_baseline(self, run: RecordedRun) -> RecordedRun | None:
        return selection.default_baseline(run, self.archive, self.settings.policy)

    def pair_of(self, candidate: Record, baseline: RecordedRun | None, *, anchored: bool = True) -> Pair:
        """Build the pair of a candidate and its baseline, with other runs of both versions to pool.

        The pair also has an anchor: a run of the accepted version, or else a run of the lowest comparable version. If
        `anchored` is false, or if the policy excludes anchors, the pair has no anchor.
        """
        archive, entry = self.archive, entry_of(candidate)
        skipped = list(selection.skipped_run_notes(archive.entries, entry, baseline))
        if candidate.beside is not None and archive.interleaved_baseline(entry) is None:
            skipped.insert(0, "its interleaved baseline is not complete, so it is compared with a recorded run")
        beside = baseline is not None and baseline.run_id == entry.beside
        anchor = self._anchor_of(candidate) if anchored else None
        if beside and baseline and anchor and baseline.version == anchor.version:
            anchor = baseline
        before = None if baseline is None else archive.record(baseline)
        since = None if anchor is None else archive.record(anchor)
        pair = Pair(
            baseline=before,
            candidate=candidate,
            baseline_again=() if before is None or beside else self._again(before),
            candidate_again=() if beside or candidate.draft else self._again(candidate),
            anchor=since,
            anchor_again=() if since is None else self._again(since),
            skipped_notes=tuple(skipped),
        )
        return comparability.mark_concurrent(pair)

    def _anchor_of(self, candidate: Record) -> RecordedRun | None:
        archive, policy, entry = self.archive, self.settings.policy, entry_of(candidate)
        if policy.anchor == "previous" or entry.scenario is not None:
            return None
        accepted = selection.last_accepted(entry, archive, policy)
        if accepted is not None:
            return accepted
        stretch = []
        for _, runs in groupby(selection.lower_version_runs(archive.entries, entry), key=lambda run: run.version):
            newest = next((run for run in runs if run.is_comparable(entry)), None)
            if newest is None:
                break
            stretch.append(newest)
        enough = _MIN_SHARED * len(candidate.per_case)
        lowest_first = ((run, comparability.common_part(archive.record(run), candidate)) for run in reversed(stretch))
        return next((run for run, common in lowest_first if len(common.cases) >= enough), None)

    def _again(self, record: Record) -> tuple[Record, ...]:
        """Return the other runs that can be pooled with a record, oldest first. Return () if it has a scenario."""
        if record.scenario is not None:
            return ()
        series = self._runs_of_series(record, {record.skill_version})
        return _independent_runs(record, [run for run in series if comparability.served_change(record, run) is None])

    def _runs_of_series(self, record: Record, versions: set[str]) -> list[Record]:
        archive, run = self.archive, entry_of(record)
        others = [
            archive.record(other)
            for other in selection.runs_like(archive.runs_of(run.model_id), run)
            if other.version in versions
            and other.run_id != run.run_id
            and not other.draft
            and other.is_comparable(run)
            and other.digests.get("prompt") == run.digests.get("prompt")
        ]
        return selection.same_series(record, others)

    def _hidden_pairs(self, shown: Sequence[Record], baseline: str | None = None) -> list[Pair]:
        """Pair the runs of models not in `shown` with the version `baseline`, or else with their default baselines."""
        pairs = []
        for record in self._other_models(shown):
            run = entry_of(record)
            if baseline is None:
                lower = self._default_baseline(run)
            else:
                lower = selection.run_of_version(self.archive.entries, run, baseline)
            with suppress(LeaderboardError):  # a record may be unreadable
                pairs += [] if lower is None else [self.pair_of(record, lower)]
        return pairs

    def _other_models(self, records: Sequence[Record]) -> Iterator[Record]:
        """Yield other models' newest runs of the versions in `records`. Skip unreadable records."""
        entries, models = self.archive.entries, {record.model_id for record in records}
        recorded = {entry.run_id for entry in entries if entry.scenario is None and not entry.edited}
        of_family = (record for record in records if record.run_id in recorded and not record.draft)
        for version in sorted({record.skill_version for record in of_family}):
            for run in selection.choose_candidates(entries, version)[0]:
                if run.model_id not in models:
                    with suppress(LeaderboardError):
                        yield self.archive.record(run)

    def _prompt_pairs(self, records: Sequence[Record]) -> list[Pair]:
        """Pair runs without the prompt (baselines) with runs with the prompt, of the same version and model."""
        archive, pairs = self.archive, []
        for record in records:
            scenario = None if record.scenario == SCHEMA_ALONE else SCHEMA_ALONE
            runs = (run for run in archive.entries if run.complete and not run.edited and run.scenario == scenario)
            same = (run for run in runs if (run.version, run.model_id) == (record.skill_version, record.model_id))
            if (entry := next(same, None)) is not None:
                alone, whole = (record, archive.record(entry)) if scenario is None else (archive.record(entry), record)
                pairs.append(Pair(baseline=alone, candidate=whole, candidate_again=self._again(whole)))
        return pairs

    def drift_pair(self, record: Record) -> Pair | None:
        """Pair a run with earlier runs of the same prompt. Return None if there are none, or if it has a scenario."""
        if record.scenario is not None:
            return None
        versions = selection.versions_patched_to(self.archive.entries, record.skill_version)
        older = _independent_runs(record, self._runs_of_series(record, versions))
        return Pair(baseline=older[-1], candidate=record, baseline_again=older[:-1], any_served=True) if older else None

    def drift_of(self, records: Sequence[Record]) -> ComparisonResult | None:
        """Compare runs with earlier runs of the same prompt. Return None if there are no earlier runs."""
        pairs = [pair for record in records if (pair := self.drift_pair(record)) is not None]
        return drifted(pairs, rules_for(self.settings, records[0])) if pairs else None

    def with_drift(self, records: Sequence[Record], is_rerun: Sequence[bool]) -> list[Record]:
        """Return the records with `drift` set (None if untested). Print a warning for each model that drifted."""
        reruns = [record for record, rerun in zip(records, is_rerun, strict=True) if rerun and record.complete]
        drifts = drifts_in(self.with_records(reruns).drift_of(reruns)) if reruns else {}
        for record in reruns:
            if record.run_id in drifts and (moved := drifts[record.run_id].moved):
                message = f"{record.model_id} drifted with an unchanged prompt: {listed(moved)}"
                print(f"warning: {message}; this run begins a new series", file=sys.stderr)
        return [record.model_copy(update={"drift": drifts.get(record.run_id)}) for record in records]

    def spreads_of(self, records: Iterable[Record]) -> list[RunSpread]:
        """Return the scores of all runs and their standard deviation, for the version of each model's last record."""
        spreads = []
        for record in {record.model_id: record for record in records}.values():
            runs = (*self._runs_of_series(record, {record.skill_version}), record)
            means = {run.run_id: run.accuracy[run.primary_metric].strict_mean for run in runs}
            scores = {run_id: mean for run_id, mean in means.items() if mean is not None}
            spread = RunSpread(
                model_id=record.model_id,
                version=record.skill_version,
                metric=record.primary_metric,
                scores=scores,
                sigma=stdev_or_none(list(scores.values())),
            )
            spreads.append(spread)
        return spreads

    def ranking_of(
        self,
        records: Sequence[Record],
        verdict: ComparisonResult | None = None,
        left_out: Mapping[str, str] | None = None,
    ) -> ModelRanking:
        """Rank complete runs, one per model. `left_out` has the reason why a model has no run, by model id."""
        family = [*records, *self._other_models(records)]
        pairs = [self.pair_of(record, None, anchored=False) for record in family]
        ranking = rank_models(
            self.component.name,
            pairs[: len(records)],
            rules_for(self.settings, records[0] if records else self.archive.record(self.archive.entries[0])),
            hidden=pairs[len(records) :],
            prompts=self._prompt_pairs(records),
            verdicts={} if verdict is None else {model.model_id: model.verdict for model in verdict.models},
        )
        return ranking.model_copy(update={"left_out": {**(left_out or {}), **ranking.left_out}})


def _independent_runs(record: Record, runs: Iterable[Record]) -> tuple[Record, ...]:
    """Return the runs with outputs of their own, not copies of the record's outputs or of another run's.

    Outputs may be copies if a run is replayed, or if two runs have the same seed and the model honours seeds.
    """
    drawn, seeds = list[Record](), {record.seed}
    for run in runs:
        keeps_to_seeds = run.settings is not None and "seed" not in run.settings.unavailable
        if run.provider != "replay" and not (keeps_to_seeds and run.seed in seeds):
            drawn.append(run)
            seeds.add(run.seed)
    return tuple(drawn)


def _of_asked_cases(pair: Pair) -> Pair:
    case_ids = {case.case_id for case in pair.candidate.per_case}
    everything = {case.case_id for record in (pair.baseline, pair.candidate) if record for case in record.per_case}
    note = f"only {len(case_ids)} of {len(everything)} cases were run"
    return replace(comparability.cut_pair(pair, case_ids), skipped_notes=(note, *pair.skipped_notes))


def drifts_in(result: ComparisonResult | None) -> dict[str, Drift]:
    """Return the drift of each model in a comparison of reruns, by id of the new run. Return {} for None."""
    drifts = {}
    for model in [] if result is None else result.models:
        if model.baseline is not None:
            drifts[model.candidate.run_id] = Drift(since=model.baseline.run_id, moved=model.moved)
    return drifts


def drifted(pairs: Sequence[Pair], rules: VerdictRules) -> ComparisonResult:
    """Compare runs with earlier runs of their prompt. A change that may be variation between days is *inconclusive*."""
    pairs = [comparability.without_unstable(pair, rules.unstable_cases, rules.primary_metric) for pair in pairs]
    result = compare_records(pairs, rules)
    compared = zip(result.models, map(measure_pair, pairs), strict=True)
    models = [_only_drift(model, measured, rules.primary_metric) for model, measured in compared]
    return result.model_copy(update={"models": models})


def _only_drift(model: ModelVerdict, compared: Compared, primary_metric: str) -> ModelVerdict:
    drift: dict[tuple[str, str], VerdictName] = {}
    for measure in compared.measured:
        if measure.name == primary_metric and _is_beyond_a_day(measure):
            has_risen = measure.after.mean > measure.before.mean
            drift[measure.kind, measure.name] = "improved" if has_risen else "regressed"
        elif measure.kind != "reproducibility" and has_collapsed(measure, models=1):
            drift[measure.kind, measure.name] = "regressed"

    def with_drift_verdict(result: MeasureResult) -> MeasureResult:
        verdict = drift.get((result.kind, result.metric))
        if verdict is None and (result.harmed or result.verdict in ("regressed", "improved")):
            return result.model_copy(update={"verdict": "inconclusive", "harmed": False})
        return result if verdict is None else result.model_copy(update={"verdict": verdict})

    update: dict[str, object] = {
        "metrics": list(map(with_drift_verdict, model.metrics)),
        "fields": list(map(with_drift_verdict, model.fields)),
    }
    if model.verdict == "regressed" and not (drift or model.lost_cases):
        runs = counted(model.baseline_runs, "earlier run")
        reason = f"{runs}: this may be the usual variation between days"
        update |= {"verdict": "inconclusive", "reasons": [*model.reasons, reason]}
    return model.model_copy(update=update)


def _is_beyond_a_day(measure: Measure) -> bool:
    """Return whether a difference is larger than usual between days: its 97.5 % confidence interval excludes 0."""
    effect = measure.effect_if(is_sampled=False)
    if effect is None:
        return False
    half_width = float(t_quantile(len(measure.before.means) - 1, 1 - _ALPHA_OF_DRIFT / 2)) * effect.error
    return bool(abs(effect.difference) > half_width)
