"""The variances of a record → how many cases and replicates would show a given drop, and what they would cost.

Its own module because it looks ahead: nothing here is a verdict. What stands between two runs beside their answers is
that of the comparison (`noise`), which depends on how they are made (`Premises`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Literal

from skill_evaluator.files import FrozenModel
from skill_evaluator.records.record import ANSWERED, Record
from skill_evaluator.stats import mean_or_none, rounded
from skill_evaluator.verdicts.comparability import Scores, arms_of, common_part, measures
from skill_evaluator.verdicts.drops import (
    Premises,
    Spread,
    drop_beyond,
    drop_on_fixtures,
    fewest,
    least_drop,
    spread_of,
)
from skill_evaluator.verdicts.effects import ALPHA, NO_EXTRA, POWER, Extra
from skill_evaluator.verdicts.noise import (
    RUN_DEGREES,
    RUN_SHARE,
    RunEffect,
    Runs,
    noise_of,
    run_effect,
    samples,
)
from skill_evaluator.verdicts.pooling import pooled

PlannedDesign = Literal["recorded", "recorded, A/A", "interleaved"]
REPLICATES = (1, 2, 3, 5, 10, 20)
_TOO_FEW_CASES = "its record has fewer than two cases with a score: nothing can be told from it"
_ONE_REPLICATE = "its record has one replicate a case: evaluate with --replicates 2 or more to know how answers vary"


class Choice(FrozenModel):
    """A number of replicates, and the fewest cases with which they show the drop beyond these fixtures.

    `calls` and `cost_usd` are those of one run of these cases. `present_fixtures` and `present_beyond` are the smallest
    drops that the present cases show, on themselves and beyond them. None: it cannot be told, or no number suffices.
    """

    replicates: int
    cases: int | None
    calls: int | None
    cost_usd: float | None
    present_fixtures: float | None
    present_beyond: float | None


class DesignChoice(FrozenModel):
    """A way to make the two runs, and what it takes with the record's own replicates.

    `runs` of the baseline's version are held against one of the candidate's. `hidden` is the smallest drop that is seen
    however many cases and replicates there are: the effect of a run as a whole hides what is smaller.
    `one_draw`: the answers of a case count as one draw, so that these cases and cases beyond them are one question.
    """

    design: PlannedDesign
    runs: int
    one_draw: bool
    hidden: float
    replicates_needed: int | None
    cases: int | None
    present_fixtures: float | None
    present_beyond: float | None


class Sizing(FrozenModel):
    """The choices for one model. With `replicates_needed` the present cases show the drop on themselves.

    `between_cases` and `between_replicates` are standard deviations, and so is `between_runs`, of a whole run; of its
    estimate `aa_runs` were used. `replicates_needed` and `choices` are of the `design` that the next run will have.
    """

    model_id: str
    run_id: str
    skill_version: str
    metric: str
    strict_mean: float | None
    cases: int
    replicates: int
    between_cases: float | None
    between_replicates: float | None
    between_runs: float | None
    aa_runs: int
    cost_per_call_usd: float | None
    design: PlannedDesign
    replicates_needed: int | None
    designs: list[DesignChoice]
    choices: list[Choice]
    remarks: list[str]


class SizingPlan(FrozenModel):
    """The designs that show a drop of `detect` with this power at this level, for every model of a component."""

    skill: str
    detect: float
    power: float = POWER
    alpha: float = ALPHA
    models: list[Sizing]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """A version's newest run of a model with its A/A runs: the primary metric of each case, in all and in each of them.

    `runs` holds them against the newest, as if that were another version; None where nothing was scored.
    """

    newest: Record
    scores: tuple[Scores, ...] = ()
    runs: Runs | None = None

    @classmethod
    def of(cls, newest: Record, again: Sequence[Record]) -> "_Recorded":
        """Read the scores."""
        cases = common_part(pooled(newest, again), newest).cases
        for figure in measures(cases, [newest.primary_metric]):
            arms = arms_of(figure, (newest, *again), (newest,))
            return cls(newest=newest, scores=figure.before, runs=Runs.of(*arms))
        return cls(newest=newest)

    def premises(self, run: RunEffect) -> dict[PlannedDesign, Premises]:
        """Return what each design leaves between two runs.

        Without A/A runs nothing tells what the answers of a case have in common, unless the provider samples them. A/A
        runs that are yet to be made are taken to show that it is nothing.
        """
        assert self.runs is not None  # noqa: S101  (a spread has scores)
        unit, count = self.runs.unit, len(self.scores)
        unknown = NO_EXTRA if samples(self.newest) else None
        stated = Extra(variance=(RUN_SHARE * unit) ** 2, degrees=RUN_DEGREES)
        repeated = Premises(runs=2, run=stated)
        if len(self.runs.before) > 1:
            noise, weight = noise_of(self.runs, run, independent=samples(self.newest)), self.runs.weight
            by_case = noise.case_run
            repeated = Premises(
                runs=len(self.runs.before),
                run=Extra(variance=noise.run.variance / weight, degrees=noise.run.degrees),
                case_run=by_case and Extra(variance=by_case.variance / weight * count, degrees=by_case.degrees),
            )
        return {
            "recorded": Premises(run=stated, case_run=unknown),
            "recorded, A/A": repeated,
            "interleaved": Premises(case_run=unknown),
        }


def sizings_of(versions: Sequence[Sequence[Record]], detect: float, *, interleaved: bool = False) -> list[Sizing]:
    """Return the choices for each model, from the runs of a version (the newest first).

    The effect of a run is learned from all models, as a comparison does. `interleaved`: both versions will be asked in
    one run.
    """
    recorded = [_Recorded.of(newest, again) for newest, *again in versions]
    run = run_effect([one.runs for one in recorded if one.runs is not None])
    return [_sizing(one, run, detect, interleaved=interleaved) for one in recorded]


def _sizing(recorded: _Recorded, run: RunEffect, detect: float, *, interleaved: bool) -> Sizing:
    record, scores = recorded.newest, recorded.scores
    spread = spread_of(scores)
    answered = sum(outcome in ANSWERED for case in record.per_case for outcome in case.outcomes)
    per_call = None if record.cost_usd is None or not answered else record.cost_usd / answered
    premises = {} if spread is None else recorded.premises(run)
    repeated = recorded.runs is not None and len(recorded.runs.before) > 1
    design: PlannedDesign = "interleaved" if interleaved else "recorded, A/A" if repeated else "recorded"
    designs, choices = [], []
    if spread is not None:
        designs = [_design(name, one, spread, record.replicates, detect) for name, one in premises.items()]
        choices = [_choice(replicates, premises[design], spread, per_call, detect) for replicates in REPLICATES]
    needed = [one.replicates_needed for one in designs if one.design == design]
    return Sizing(
        model_id=record.model_id,
        run_id=record.run_id,
        skill_version=record.skill_version,
        metric=record.primary_metric,
        strict_mean=rounded(mean_or_none([fmean(case) for case in scores])),
        cases=len(scores),
        replicates=record.replicates,
        between_cases=None if spread is None else round(math.sqrt(spread.between), 6),
        between_replicates=None if spread is None else round(math.sqrt(spread.noise), 6),
        between_runs=None if spread is None else round(math.sqrt(premises["recorded, A/A"].run.variance), 6),
        aa_runs=run.runs,
        cost_per_call_usd=per_call,
        design=design,
        replicates_needed=needed[0] if needed else None,
        designs=designs,
        choices=choices,
        remarks=[_TOO_FEW_CASES] if len(scores) < 2 else [_ONE_REPLICATE] if spread is None else [],
    )


def _design(design: PlannedDesign, premises: Premises, spread: Spread, replicates: int, detect: float) -> DesignChoice:
    return DesignChoice(
        design=design,
        runs=premises.runs,
        one_draw=premises.case_run is None,
        hidden=round(least_drop(premises.between_runs), 6),
        replicates_needed=fewest(detect, partial(drop_on_fixtures, spread, premises=premises)),
        cases=fewest(detect, partial(drop_beyond, spread, replicates=replicates, premises=premises)),
        present_fixtures=rounded(drop_on_fixtures(spread, replicates, premises)),
        present_beyond=rounded(drop_beyond(spread, len(spread.within), replicates, premises)),
    )


def _choice(replicates: int, premises: Premises, spread: Spread, per_call: float | None, detect: float) -> Choice:
    cases = fewest(detect, partial(drop_beyond, spread, replicates=replicates, premises=premises))
    return Choice(
        replicates=replicates,
        cases=cases,
        calls=None if cases is None else cases * replicates,
        cost_usd=None if cases is None or per_call is None else round(cases * replicates * per_call, 6),
        present_fixtures=rounded(drop_on_fixtures(spread, replicates, premises)),
        present_beyond=rounded(drop_beyond(spread, len(spread.within), replicates, premises)),
    )
