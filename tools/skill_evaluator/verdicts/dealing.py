"""The answers of one version → pairs of records in which nothing differs but chance, and what was planted.

Its own module because it makes records up: `calibration` only counts what the gate says of them.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.records.record import ANSWERED, SCORED, CaseRecord, FieldCount, Record
from skill_evaluator.verdicts.comparability import Pair, arms_of, common_part, measures
from skill_evaluator.verdicts.noise import RunEffect, Runs, run_effect
from skill_evaluator.verdicts.pooling import pooled

LEAST_REPLICATES = 4
Halves = tuple[list[int], list[int]]
"""The places of the replicates that each half of a case has."""


class Dealer(Protocol):
    """Deals a version's answers to a baseline and a candidate, whose scores are lowered by `drop`."""

    def deal(self, drop: float) -> Pair:
        """Return the records, without agreement, which is a figure of pairs of answers."""


class HalvesDealer:
    """Deals the answered replicates of every case of one run into two equal halves.

    With `copies`, either half of a case is one answer of it, again and again: so it would be if a case's answers were
    one draw.
    """

    def __init__(self, record: Record, dice: random.Random, *, copies: bool = False) -> None:
        """Take the cases with enough answers; raise LeaderboardError if there are none."""
        self.cases = [case for case in record.per_case if len(_answered(case)) >= LEAST_REPLICATES]
        if not self.cases:
            raise LeaderboardError(
                f"run '{record.run_id}' has {record.replicates} replicates a case; calibration deals those that were "
                f"answered into two halves and needs at least {LEAST_REPLICATES}"
            )
        self._record, self._dice, self._copies = record, dice, copies
        self._mover = _Mover.of(self.cases, dice)
        self.replicates = min(len(_answered(case)) // 2 for case in self.cases)

    def deal(self, drop: float) -> Pair:
        """Return two records of half as many replicates."""
        before, after = [], []
        for case in self.cases:
            halves = self._halves(case)
            counts = {path: self._deal_field(case, count, halves) for path, count in case.fields.items()}
            first, second = (
                _part(case, half, {path: pair[at] for path, pair in counts.items()}) for at, half in enumerate(halves)
            )
            before.append(first)
            after.append(self._mover.moved(second, dict.fromkeys(case.replicates, -drop), {}, -drop))
        return Pair(baseline=_record_of(self._record, before), candidate=_record_of(self._record, after))

    def _halves(self, case: CaseRecord) -> Halves:
        places = _answered(case)
        self._dice.shuffle(places)
        half = len(places) // 2
        if self._copies:
            return [places[0]] * half, [places[1]] * half
        return places[:half], places[half : 2 * half]

    def _deal_field(self, case: CaseRecord, count: FieldCount, halves: Halves) -> tuple[FieldCount, FieldCount]:
        """Return right of n of either half. A record does not say which answers were right, so they are drawn."""
        answers = max(1, min(count.n, case.outcomes.count(SCORED)))
        size = count.n / answers  # an array has several items in an answer
        marks = [at < round(count.right / size) for at in range(answers)] if size else []
        self._dice.shuffle(marks)
        counts = []
        for half in halves:
            scored = min(sum(case.outcomes[at] == SCORED for at in half), len(marks))
            dealt = marks[:1] * scored if self._copies else marks[:scored]
            marks = marks[1:] if self._copies else marks[scored:]
            counts.append(FieldCount(right=round(sum(dealt) * size), n=round(len(dealt) * size)))
        return counts[0], counts[1]


class RunsDealer:
    """Deals whole runs of a version, case by case: one to the candidate, all others to the baseline.

    So what the answers of a case have in common within a run stays together. What all cases of a run have in common is
    dealt apart; each run is therefore moved by a draw of its own, with the standard deviation of a run (`day`).
    """

    def __init__(self, runs: Sequence[Record], metric: str, dice: random.Random) -> None:
        """Take the cases that every run answered; raise LeaderboardError if there are none."""
        by_key = [{(case.case_id, case.digest): case for case in run.per_case if _answered(case)} for run in runs]
        keys = [key for key in by_key[0] if all(key in cases for cases in by_key)]
        if not keys:
            raise LeaderboardError(f"the runs of version {runs[0].skill_version} have no answered case in common")
        self._runs, self._dice = runs, dice
        self._by_case = [[cases[key] for cases in by_key] for key in keys]
        self.cases = [cases[0] for cases in self._by_case]
        self.replicates = min(len(_answered(case)) for cases in self._by_case for case in cases)
        self._mover = _Mover.of([case for cases in self._by_case for case in cases], dice)
        self._units = _units_of(runs)
        self.run, unit = _effect_of(runs, metric)
        self.day = self.run.share * unit

    def deal(self, drop: float) -> Pair:
        """Return the records of as many runs as there are."""
        dealt = [self._dice.sample(cases, len(cases)) for cases in self._by_case]
        first, *others = (
            self._run(at, [cases[at] for cases in dealt], drop if at == 0 else 0.0) for at in range(len(self._runs))
        )
        return Pair(baseline=others[0], baseline_again=tuple(others[1:]), candidate=first)

    def _run(self, at: int, cases: Sequence[CaseRecord], drop: float) -> Record:
        day = self.run.share * self._dice.gauss()
        scores = {name: day * unit - drop for (kind, name), unit in self._units.items() if kind == "accuracy"}
        fields = {name: day * unit - drop for (kind, name), unit in self._units.items() if kind == "field"}
        moved = [
            self._mover.moved(
                case.model_copy(update={"reproducibility": {}}),
                scores,
                fields,
                -drop,
            )
            for case in cases
        ]
        return _record_of(self._runs[at], moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mover:
    """Raises or lowers scores; `means` are those of each metric, and `rates` the metrics of 0 and 1."""

    means: Mapping[str, float]
    rates: frozenset[str]
    dice: random.Random

    @classmethod
    def of(cls, cases: Sequence[CaseRecord], dice: random.Random) -> "_Mover":
        """Read the metrics of all cases."""
        measured: dict[str, list[float]] = {}
        for case in cases:
            for name, scores in case.replicates.items():
                measured.setdefault(name, []).extend(score for score in scores if score is not None)
        return cls(
            means={name: sum(scores) / len(scores) for name, scores in measured.items() if scores},
            rates=frozenset(name for name, scores in measured.items() if set(scores) <= {0.0, 1.0}),
            dice=dice,
        )

    def moved(
        self, case: CaseRecord, scores: Mapping[str, float], fields: Mapping[str, float], otherwise: float
    ) -> CaseRecord:
        """Return a case with each metric and field moved by its own amount, `otherwise` by the general one."""
        return case.model_copy(
            update={
                "replicates": {
                    name: [self._score(name, score, scores.get(name, otherwise)) for score in values]
                    for name, values in case.replicates.items()
                },
                "fields": {
                    path: self._field(count, fields.get(path, otherwise)) for path, count in case.fields.items()
                },
            }
        )

    def _score(self, name: str, score: float | None, by: float) -> float | None:
        """Return a score that was moved. In a rate, some successes turn into failures instead, or the reverse.

        A score falls to 0 at least. It rises in proportion to what it lacks of 1.
        """
        if score is None or not by:
            return score
        mean = self.means[name]
        if name not in self.rates:
            return max(0.0, score + by) if by < 0 else min(1.0, score + by * (1 - score) / max(by, 1 - mean))
        if by < 0:
            return 0.0 if self.dice.random() * mean < -by else score
        return 1.0 if self.dice.random() * (1 - mean) < by else score

    def _field(self, count: FieldCount, by: float) -> FieldCount:
        """Return a count in which some of the right ones turned wrong, or the reverse."""
        turned = count.right if by < 0 else count.n - count.right
        if not by or not turned:
            return count
        chance = abs(by) * count.n / turned
        changed = sum(self.dice.random() < chance for _ in range(turned))
        return FieldCount(right=count.right - changed if by < 0 else count.right + changed, n=count.n)


def _units_of(runs: Sequence[Record]) -> dict[tuple[str, str], float]:
    """Return the standard deviation of one answer within its case, of every metric and field."""
    newest, *again = runs
    figures = measures(common_part(pooled(newest, again), newest).cases, newest.accuracy)
    return {(one.kind, one.name): Runs.of(*arms_of(one, runs, runs[:1])).unit for one in figures}


def _effect_of(runs: Sequence[Record], metric: str) -> tuple[RunEffect, float]:
    """Return the effect of a run in the primary metric, and the standard deviation of one answer."""
    newest, *again = runs
    cases = common_part(pooled(newest, again), newest).cases
    measured = [
        Runs.of(*arms_of(figure, runs, runs[:1])) for figure in measures(cases, [metric]) if figure.name == metric
    ]
    return run_effect(measured), measured[0].unit if measured else 0.0


def _part(case: CaseRecord, places: list[int], fields: Mapping[str, FieldCount]) -> CaseRecord:
    """Return a case with the replicates at these places alone."""
    return case.model_copy(
        update={
            "outcomes": [case.outcomes[at] for at in places],
            "replicates": {name: [values[at] for at in places] for name, values in case.replicates.items() if values},
            "fields": dict(fields),
            "reproducibility": {},
        }
    )


def _record_of(record: Record, cases: Sequence[CaseRecord]) -> Record:
    return record.model_copy(
        update={"per_case": list(cases), "coverage": 1.0, "replicates": max(len(case.outcomes) for case in cases)}
    )


def _answered(case: CaseRecord) -> list[int]:
    """Return the places of the replicates that brought an answer."""
    return [at for at, outcome in enumerate(case.outcomes) if outcome in ANSWERED]
