"""The history of a component: each recorded version compared with the version before and the accepted version."""

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean

from pydantic import Field

from skill_evaluator.display import WHOLE, arrow
from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import Record
from skill_evaluator.scoring.parallel import map_in_processes
from skill_evaluator.stats import by_key, mean_or_none, rounded
from skill_evaluator.text import version_words
from skill_evaluator.verdicts.decide.comparability import Pair, pooled, strict_scores
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.results import Fall, ModelVerdict, SinceAccepted, joined_falls
from skill_evaluator.verdicts.decide.rules import WORST_FIRST, VerdictRules, component_verdict
from skill_evaluator.verdicts.planning.ranking import Advice, ModelRanking

_MAX_CASES = 3
_FLAKY_RUNS = 3


class Step(FrozenModel):
    """A version's verdict against the recorded version before it, as `compare` gives it; `fell_most` names a field."""

    before: str
    verdict: VerdictName
    difference: float | None
    ci95: tuple[float, float] | None
    q: float | None
    reasons: list[str]
    falls: list[Fall] = []
    worse_cases: list[str] = Field(default=[], exclude_if=lambda names: not names)
    fell_most: str = Field(default="", exclude_if=lambda text: not text)
    since_accepted: SinceAccepted | None = None

    @property
    def why(self) -> str:
        """The lost fields or, if there are none, the first reason; "" without a reason."""
        return joined_falls(self.falls) or next(iter(self.reasons), "")

    @classmethod
    def of(cls, model: ModelVerdict, primary_metric: str) -> "Step":
        """Build the step from the verdict on a model against the version before."""
        primary = next((result for result in model.metrics if result.metric == primary_metric), None)
        fell = None if model.verdict == "incomparable" else model.fell_most
        return cls.view(
            model,
            before=model.baseline.skill_version if model.baseline else "",
            difference=primary.difference if primary else None,
            ci95=primary.ci95 if primary else None,
            q=primary.q if primary else None,
            fell_most="" if fell is None else f"{fell.metric or WHOLE} {arrow(fell.baseline, fell.candidate)}",
            worse_cases=model.cases.worse[:_MAX_CASES],
        )


class Point(FrozenModel):
    """A version: the strict mean of the primary metric over its `runs`, and the step, None for the first version."""

    version: str
    run_id: str
    timestamp: str
    strict_mean: float | None
    n_cases: int
    step: Step | None = None
    runs: int = 1

    @classmethod
    def of(cls, pair: Pair, step: Step | None, primary_metric: str) -> "Point":
        """Build the point of the candidate's version."""
        newest = pair.candidate
        scores = [strict_scores(case, primary_metric) for case in pooled(newest, pair.candidate_again).per_case]
        means = [fmean(case) for case in scores if case]
        return cls.view(
            newest,
            version=newest.skill_version,
            strict_mean=rounded(mean_or_none(means)),
            n_cases=len(means),
            step=step,
            runs=1 + len(pair.candidate_again),
        )


class FlakyValue(FrozenModel):
    """A field of a case that was flaky in each of the last runs; `right` has `right/n` of each run, oldest first."""

    case_id: str
    path: str
    right: list[str]


class ModelHistory(FrozenModel):
    """The history of one model, lowest version first, and the fields that vary in the runs of unchanged versions."""

    model_id: str
    points: list[Point]
    remarks: list[str]
    flaky: list[FlakyValue] = Field(default=[], exclude_if=lambda values: not values)


class History(FrozenModel):
    """The history of a component. `accepted` is the highest accepted version."""

    skill: str
    metric: str
    alpha: float
    tolerance: float
    models: list[ModelHistory]
    advice: Advice | None = None
    unmeasured: str = ""
    accepted: str = Field(default="", exclude_if=lambda version: not version)

    @property
    def newest(self) -> str:
        """The highest version that any model has."""
        return max((model.points[-1].version for model in self.models), key=precedence)

    @property
    def newest_steps(self) -> dict[str, Step | None]:
        """The step to the highest version by model id; None if it is the model's first version."""
        points = {model.model_id: model.points[-1] for model in self.models}
        return {name: point.step for name, point in points.items() if point.version == self.newest}

    @property
    def newest_verdict(self) -> VerdictName:
        """The worst verdict on the highest version; incomparable if it is the first version of a model."""
        steps = self.newest_steps.values()
        return component_verdict("incomparable" if step is None else step.verdict for step in steps)

    @property
    def newest_words(self) -> str:
        """The worst verdict on the highest version with its models, and the verdict since the accepted version."""
        steps = {name: step for name, step in self.newest_steps.items() if step is not None}
        if not steps:
            return "there is no lower version to judge it against"
        verdict = min((step.verdict for step in steps.values()), key=WORST_FIRST.index)
        worst = {name: step for name, step in steps.items() if step.verdict == verdict}
        step, on = next(iter(worst.values())), ", ".join([*list(worst)[:2], *["…"] * (len(worst) > 2)])
        changes = [(name, one.since_accepted) for name, one in steps.items() if one.since_accepted is not None]
        changes.sort(key=lambda change: WORST_FIRST.index(change[1].verdict))
        text = f"{verdict} against {version_words(step.before)} on {on}"
        if step.fell_most and step.verdict in ("regressed", "inconclusive"):
            text += f", most in field {step.fell_most}"
        if not changes:
            return text
        name, since = changes[0]
        text += f"; {since.verdict} since {version_words(since.version)}"
        return f"{text} on {name}" if len(steps) > 1 else text

    @property
    def to_ship(self) -> str:
        """The highest version that improved on the one before it, or is unchanged since such a version or the first.

        For the highest version, unchanged is enough. Without such a version it is the lowest version.
        """
        verdicts: dict[str, list[VerdictName]] = {}
        for point in chain.from_iterable(model.points for model in self.models):
            verdicts.setdefault(point.version, []).extend([point.step.verdict] if point.step else [])
        *_, newest = ordered = sorted(verdicts, key=precedence)
        shipped, sound = ordered[0], True
        for version in ordered:
            # without an earlier version to compare with, a version counts as improved
            verdict = component_verdict(verdicts[version]) if verdicts[version] else "improved"
            # only the newest version is compared with the accepted one
            sound = verdict == "improved" or (verdict == "unchanged" and (sound or version == newest))
            shipped = version if sound else shipped
        return shipped


def shipping_advice(history: History, ranking: ModelRanking) -> Advice:
    """Return the version to ship, and the best model if `ranking` ranks that version."""
    shipped, best = history.to_ship, ranking.advice
    reason = f"{version_words(history.newest)}: " * (history.newest != shipped) + history.newest_words
    if len(ranking.models) < 2 or ranking.models[0].skill_version != shipped:
        return Advice(version=shipped, reason=reason)
    runs = [point.runs for model in history.models for point in model.points if point.version == shipped]
    pooled = f"over all runs of {version_words(shipped)}, " if history.newest != shipped or max(runs) > 1 else ""
    of_model = pooled + (f"{best.model_id} is {best.reason}" if best.model_id else best.reason)
    return Advice(version=shipped, model_id=best.model_id, alike=best.alike, reason=f"{reason}; {of_model}")


def _unchanged_runs(versions: Sequence[Pair], steps: Mapping[str, Step]) -> list[Record]:
    """Return the runs of the highest version and of the lower versions up to the last change, oldest first."""
    runs = dict[str, Record]()
    for pair in reversed(versions):
        runs |= {run.run_id: run for run in (pair.candidate, *pair.candidate_again)}
        step = steps.get(pair.candidate.run_id)
        if step is None or step.verdict != "unchanged":
            break
        if pair.baseline is not None:
            runs[pair.baseline.run_id] = pair.baseline
    return sorted(runs.values(), key=lambda run: (run.timestamp, run.run_id))


def flaky_values(runs: Sequence[Record]) -> list[FlakyValue]:
    """Return the fields of unchanged cases that were flaky in each of the last three runs."""
    by_run = [
        {
            (case.question, path): f"{count.right}/{count.n}"
            for case in run.per_case
            for path, count in case.fields.items()
            if case.profile.get(path) == "flaky"
        }
        for run in runs[-_FLAKY_RUNS:]
    ]
    shared = [key for key in by_run[-1] if all(key in flaky for flaky in by_run)]
    return [
        FlakyValue(case_id=question[0], path=path, right=[flaky[question, path] for flaky in by_run])
        for question, path in shared
        if len(by_run) == _FLAKY_RUNS
    ]


def history_of(skill: str, by_model: Mapping[str, Sequence[Pair]], rules: VerdictRules) -> History:
    """Build the history from each model's pairs, one per version, lowest first. The first pair has no baseline."""
    judged = [pair for pair in chain.from_iterable(by_model.values()) if pair.baseline is not None]
    # all models of a version are one family, as in `compare`
    families = by_key((pair.candidate.skill_version, pair) for pair in judged)

    def compared(pairs: Sequence[Pair]) -> list[ModelVerdict]:
        return compare_records(skill, pairs, rules).models

    steps = {
        model.candidate.run_id: Step.of(model, rules.primary_metric)
        for model in chain.from_iterable(map_in_processes(compared, list(families.values()), "versions"))
    }
    models = [
        ModelHistory(
            model_id=model_id,
            points=[Point.of(pair, steps.get(pair.candidate.run_id), rules.primary_metric) for pair in versions],
            remarks=list(dict.fromkeys(words for pair in versions for words in pair.skipped_notes)),
            flaky=[
                value
                for value in flaky_values(_unchanged_runs(versions, steps))
                if value.case_id not in rules.unstable_cases
            ],
        )
        for model_id, versions in by_model.items()
    ]
    metric, tolerance = rules.primary_metric, rules.primary_tolerance
    return History(skill=skill, metric=metric, alpha=rules.alpha, tolerance=tolerance, models=models)
