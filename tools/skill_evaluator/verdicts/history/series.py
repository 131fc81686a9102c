"""The history of a component: each recorded version compared with the one before, and with the anchor.

Pairs of records and the rules come in, frozen models go out; their JSON Schema is generated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean

from pydantic import Field

from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.archive import precedence
from skill_evaluator.stats import by_key, mean_or_none, rounded
from skill_evaluator.verdicts.decide.comparability import Measure, Pair, pooled, strict_scores
from skill_evaluator.verdicts.decide.results import Fall, ModelVerdict, Watch, joined_falls
from skill_evaluator.verdicts.decide.rules import VerdictRules, component_verdict

_MOST_CASES = 3


class Step(FrozenModel):
    """A version's verdict against the recorded version before it, as `compare` draws it.

    `worse_cases` broke, or else scored less in every answer; at most three. `watch` is what became of it since the
    anchor: of the highest version alone, and no verdict of any other knows it.
    """

    before: str
    verdict: VerdictName
    beyond: VerdictName
    difference: float | None
    ci95: tuple[float, float] | None
    q: float | None
    reasons: list[str]
    falls: list[Fall] = []
    worse_cases: list[str] = Field(default=[], exclude_if=lambda names: not names)
    watch: Watch | None = None

    @property
    def why(self) -> str:
        """The fields that fell, else the first reason."""
        return joined_falls(self.falls) or next(iter(self.reasons), "")

    @classmethod
    def of(cls, model: ModelVerdict, primary_metric: str) -> "Step":
        """Return the step that a comparison with the version before found."""
        primary = next((result for result in model.metrics if result.metric == primary_metric), None)
        return cls.view(
            model,
            before=model.baseline.skill_version if model.baseline else "",
            difference=primary.difference if primary else None,
            ci95=primary.ci95 if primary else None,
            q=primary.q if primary else None,
            worse_cases=([one.case_id for one in model.cases.broke] or model.cases.every_answer_worse)[:_MOST_CASES],
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
        return cls.view(
            newest,
            version=newest.skill_version,
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
    tolerance: float
    models: list[ModelHistory]
    aa_runs: int = 0

    @property
    def newest_verdict(self) -> VerdictName:
        """The verdict on the highest version that any model has; incomparable where it is a model's first."""
        newest = [model.points[-1] for model in self.models]
        highest = max((point.version for point in newest), key=precedence)
        steps = [point.step for point in newest if point.version == highest]
        return component_verdict("incomparable" if step is None else step.verdict for step in steps)

    @property
    def to_ship(self) -> str:
        """The highest version that is shown to be no worse than those before it; the lowest where none is."""
        verdicts: dict[str, list[VerdictName]] = {}
        for point in chain.from_iterable(model.points for model in self.models):
            verdicts.setdefault(point.version, []).extend([point.step.verdict] if point.step else [])
        *_, newest = ordered = sorted(verdicts, key=precedence)
        shipped, sound = ordered[0], True
        for version in ordered:
            verdict = component_verdict(verdicts[version]) if verdicts[version] else "improved"  # on nothing
            # of the newest alone it is known what became of it since the anchor
            sound = verdict == "improved" or (verdict == "unchanged" and (sound or version == newest))
            shipped = version if sound else shipped
        return shipped


Draw = Callable[[Sequence[Pair]], Steps]


def history_of(
    skill: str,
    by_model: Mapping[str, Sequence[Pair]],
    rules: VerdictRules,
    steps_of: Callable[[Sequence[Sequence[Pair]], Draw], Iterable[Steps]] = lambda families, draw: map(draw, families),
) -> History:
    """Return the history of a component.

    Each version of a model is the candidate of a pair, lowest first, and the baseline is the version that it is judged
    against: None for the lowest. `steps_of` may return steps that were drawn before.
    """
    from skill_evaluator.verdicts.decide.comparison import compare_records

    judged = [pair for pair in chain.from_iterable(by_model.values()) if pair.baseline is not None]
    families = by_key((pair.candidate.skill_version, pair) for pair in judged)  # one family, as in `compare`

    def drawn(pairs: Sequence[Pair]) -> Steps:
        models = compare_records(skill, pairs, rules).models
        return Steps(by_run={model.candidate.run_id: Step.of(model, rules.primary_metric) for model in models})

    steps: dict[str, Step] = {}
    for of_family in steps_of(list(families.values()), drawn):
        steps |= of_family.by_run
    models = [
        ModelHistory(
            model_id=model_id,
            points=[Point.of(pair, steps.get(pair.candidate.run_id), rules.primary_metric) for pair in versions],
            remarks=_remarks(versions),
        )
        for model_id, versions in by_model.items()
    ]
    primary = Measure(name=rules.primary_metric, kind="accuracy", case_ids=(), before=(), after=())
    return History(
        skill=skill,
        metric=rules.primary_metric,
        gate=rules.policy.gate,
        alpha=rules.alpha,
        tolerance=rules.tolerance(primary),
        models=models,
        aa_runs=sum(len(pair.candidate_again) for pair in chain.from_iterable(by_model.values())),
    )


def _remarks(versions: Sequence[Pair]) -> list[str]:
    """Return which versions of a model were stopped early, and which records were passed over."""
    stopped = ", ".join(pair.candidate.skill_version for pair in versions if pair.candidate.saved_calls)
    early = [f"stopped early by --adaptive, at a mean too high or too low: {stopped}"] if stopped else []
    return [*early, *dict.fromkeys(words for pair in versions for words in pair.passed_over)]
