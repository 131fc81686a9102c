"""What `history` says of a component: versions with their steps. Programs read it, too.

Its own module because it imports nothing numeric: a history that was drawn before is only read.
"""

from statistics import fmean

from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import VerdictName
from skill_evaluator.stats import mean_or_none, rounded
from skill_evaluator.verdicts.comparability import Pair, strict_scores
from skill_evaluator.verdicts.pooling import pooled
from skill_evaluator.verdicts.results import Fall, ModelVerdict, Watch


class Step(FrozenModel):
    """A version's verdict against the recorded version before it, as `compare` draws it.

    `watch` is what became of it since the anchor: of the highest version alone, and no verdict of another knows it.
    """

    before: str
    verdict: VerdictName
    beyond: VerdictName
    difference: float | None
    ci95: tuple[float, float] | None
    q: float | None
    reasons: list[str]
    falls: list[Fall] = []
    watch: Watch | None = None

    @classmethod
    def of(cls, model: ModelVerdict, primary_metric: str) -> "Step":
        """Return the step that a comparison with the version before found."""
        primary = next((result for result in model.metrics if result.metric == primary_metric), None)
        return cls(
            before=model.baseline.skill_version if model.baseline else "",
            verdict=model.verdict,
            beyond=model.beyond,
            difference=primary.difference if primary else None,
            ci95=primary.ci95 if primary else None,
            q=primary.q if primary else None,
            reasons=model.reasons,
            falls=model.falls,
            watch=model.watch,
        )


class Steps(FrozenModel):
    """The steps of the models of one version, a family, by the run id of each candidate."""

    by_run: dict[str, Step]


class Point(FrozenModel):
    """A version: the strict mean of the primary metric over all its runs, and the step that led there.

    `run_id` and `timestamp` are those of its newest complete run, and `runs` counts the runs that are pooled.
    """

    version: str
    run_id: str
    timestamp: str
    strict_mean: float | None
    n_cases: int
    step: Step | None = None
    runs: int = 1

    @classmethod
    def of(cls, pair: Pair, step: Step | None, primary_metric: str) -> "Point":
        """Return the point of a version, the candidate of a pair."""
        newest = pair.candidate
        scores = [strict_scores(case, primary_metric) for case in pooled(newest, pair.candidate_again).per_case]
        means = [fmean(case) for case in scores if case]
        return cls(
            version=newest.skill_version,
            run_id=newest.run_id,
            timestamp=newest.timestamp,
            strict_mean=rounded(mean_or_none(means)),
            n_cases=len(means),
            step=step,
            runs=1 + len(pair.candidate_again),
        )


class ModelHistory(FrozenModel):
    """One model, the lowest version first. `remarks` name what was stopped early and what was passed over."""

    model_id: str
    points: list[Point]
    remarks: list[str]


class History(FrozenModel):
    """The history of a component; `gate` names the question that the verdicts answer.

    `aa_runs` counts the further runs of a version, which are pooled with its newest.
    """

    skill: str
    metric: str
    gate: str
    alpha: float
    models: list[ModelHistory]
    aa_runs: int = 0
