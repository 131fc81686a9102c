"""The ranking of a component's models, the history of its versions, and the version and model to ship."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, combinations
from statistics import fmean

from pydantic import Field

from skill_evaluator.display import WHOLE, arrow
from skill_evaluator.files import FrozenModel, NestingModel, flat_part
from skill_evaluator.library.config import VerdictName
from skill_evaluator.processes import map_in_processes
from skill_evaluator.records.archive import precedence
from skill_evaluator.records.record import Record, Served, is_mixed
from skill_evaluator.stats import ROUNDING, by_key, mean_or_none, rounded, unit_interval
from skill_evaluator.text import counted, listed
from skill_evaluator.verdicts.decide import comparability
from skill_evaluator.verdicts.decide.comparability import Pair
from skill_evaluator.verdicts.decide.comparison import compare_records
from skill_evaluator.verdicts.decide.measuring import field_measures, holm
from skill_evaluator.verdicts.decide.results import Fall, MeasureResult, ModelVerdict, SinceAccepted, per_1000
from skill_evaluator.verdicts.decide.rules import WORST_FIRST, VerdictRules, component_verdict


class Score(FrozenModel):
    """The strict mean over the cases that all models share, with the 95 % confidence interval over cases."""

    strict_mean: float | None
    ci95: tuple[float, float] | None
    n_cases: int


class Contrast(FrozenModel):
    """The comparison of two models by the primary metric. The model `higher` has the higher score.

    `difference` is the score of `lower` minus the score of `higher`. `q` is two-sided, and adjusted over all pairs of
    models (Holm). If `as_good` is true, a drop beyond the tolerance is ruled out. If `significant` is true, `lower` is
    significantly worse than `higher`, and `as_good` is false.
    """

    higher: str
    lower: str
    difference: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    q: float | None = None
    n_cases: int = 0
    as_good: bool = False
    significant: bool = False
    remedy: str | None = None  # way to decide the pair
    fell_most: str = Field(default="", exclude=True)  # field that fell most, and its mean scores


class PromptEffect(FrozenModel):
    """The primary metric of a run with the prompt minus the primary metric of a run without the prompt."""

    difference: float | None
    ci95: tuple[float, float] | None
    q: float | None
    verdict: VerdictName | None


class RankedRun(FrozenModel):
    """The run by which a model is ranked. Its `accuracy` and `reproducibility` include the reruns of the version."""

    skill_version: str
    run_id: str
    timestamp: str
    age_days: int | None
    served_model: Served
    replicates: int
    coverage: float
    accuracy: dict[str, Score]
    reproducibility: dict[str, float | None]
    usd_per_1000_cases: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None


class RankedModel(NestingModel):
    """One model of the ranking, with its scores, cost and age.

    If `like_best` is true, the score does not differ significantly from the score of the best model.
    """

    place: int = 1
    model_id: str
    like_best: bool = True
    run: RankedRun = flat_part("run")
    verdict: VerdictName | None = None  # compares the version with a lower version
    prompt_adds: PromptEffect | None = None
    frontier: bool | None = None  # no other model is as good and as cheap; None: unknown cost


class Advice(FrozenModel):
    """The version and the model to ship, and the reason.

    `version` is None for drafts, which are not shipped. It is "" if no version can be shipped yet. `model_id` is None
    if no single model is best. If several models are best and do not differ significantly, `alike` has their ids.
    """

    version: str | None = None
    model_id: str | None = None
    alike: list[str] = Field(default=[], exclude_if=lambda names: not names)
    reason: str

    @property
    def choice(self) -> str:
        """The version and model to ship, without the reason."""
        model = self.model_id or " or ".join(self.alike)
        if self.version is None:
            return f"best model: {model or 'none'}"
        return f"to ship: {' with '.join(filter(None, [self.version or 'no version yet', model]))}"

    @property
    def sentence(self) -> str:
        """The advice as one sentence: the version and model to ship, and the reason."""
        return f"{self.choice} ({self.reason})"


class ModelRanking(FrozenModel):
    """The models of a component, best first, ranked on the cases that all of them share.

    The q of `pairs` is adjusted over `family` pairs: those of all models of the version, even if not shown. `left_out`
    has the reason why a model is not ranked, by model id. `unmeasured` notes that the version on disk has no complete
    run. `accepted` is the highest accepted version.
    """

    skill: str
    metric: str
    alpha: float
    tolerance: float
    n_cases: int
    models: list[RankedModel]
    pairs: list[Contrast]
    family: int
    advice: Advice
    left_out: dict[str, str] = {}
    unmeasured: str = ""
    accepted: str = Field(default="", exclude_if=lambda version: not version)


def _advise(rows: Sequence[RankedModel], pairs: Sequence[Contrast], tolerance: float) -> Advice:
    if len(rows) < 2:
        return Advice(reason="there is no other model to compare it with" if rows else "no model can be ranked")
    beaten = {pair.lower for pair in pairs if pair.significant}
    best = [row for row in rows if row.model_id not in beaten] or list(rows)
    sound = [row for row in best if row.verdict != "regressed"]
    names = [row.model_id for row in sound]
    if not sound:
        worse = listed([row.model_id for row in best])
        return Advice(reason=f"{worse} regressed against the version before, and no other model is as good")
    if len(best) == 1:
        return Advice(model_id=names[0], reason=_lead_of(names[0], pairs))
    named, merits = _cheapest_model(sound)
    alike = f"{listed(names)} are not shown to differ"
    if named is None:
        return Advice(alike=names, reason=f"{listed(names)} do not differ significantly in score, cost or latency")
    for pair in pairs:
        is_lower = pair.lower == named.model_id and (pair.difference is None or pair.difference < 0.0)
        if is_lower and pair.higher in names and not pair.as_good:
            gap = "" if pair.difference is None else f" ({pair.difference:+.3f})"
            doubt = f"{named.model_id} is {merits}, but may be more than {tolerance:g} worse than {pair.higher}{gap}"
            return Advice(alike=names, reason=f"{alike}; {doubt}; {pair.remedy or 'more cases would decide it'}")
    others = listed([row.model_id for row in best if row.model_id != named.model_id])
    return Advice(model_id=named.model_id, reason=f"not shown to differ from {others}; {merits}")


def _lead_of(name: str, pairs: Iterable[Contrast]) -> str:
    ahead = [pair for pair in pairs if pair.significant and name == pair.higher]
    lead = min((abs(pair.difference or 0.0) for pair in ahead), default=0.0)
    q = max([pair.q or 0.0 for pair in ahead] + [1e-6])
    others, by = listed([pair.lower for pair in ahead], 3), f"{lead:.3f}{' or more' * (len(ahead) > 1)}"
    return f"significantly better than {others}, by {by} (q ≤ {q:.2g})"


def _cheapest_model(rows: Sequence[RankedModel]) -> tuple[RankedModel | None, str]:
    """Return the cheapest model and the reason. The fastest wins a tie. Return (None, "") if no single model wins."""
    if len(rows) == 1:
        return rows[0], "the only model that did not regress"
    reasons = []
    for word, values in (
        ("cheapest", {row.model_id: row.run.usd_per_1000_cases for row in rows}),
        ("quickest", {row.model_id: row.run.latency_p50_s and round(row.run.latency_p50_s, 1) for row in rows}),
    ):
        known_values = [value for row in rows if (value := values[row.model_id]) is not None]
        if len(known_values) < len(rows) or min(known_values) == max(known_values):
            continue
        reasons.append(word)
        rows = [row for row in rows if values[row.model_id] == min(known_values)]
        if len(rows) == 1:
            return rows[0], f"the {' and '.join(reasons)} of them"
    return None, ""


_SHARED = 0.5  # minimum share of the newest run's cases that a model must have answered to be ranked


def rank_models(
    skill: str,
    runs: Sequence[Pair],
    rules: VerdictRules,
    *,
    hidden: Sequence[Pair] = (),
    prompts: Sequence[Pair] = (),
    verdicts: Mapping[str, VerdictName],
) -> ModelRanking:
    """Rank models by the strict mean of the primary metric, on the cases that all models share.

    `runs` has one pair per model, without a baseline. The pairs of `hidden` are not shown, but count in the correction
    for multiple tests. Each pair of `prompts` has a run without the prompt as baseline, and a run with the prompt as
    candidate. `verdicts` has the verdict on each model, by model id.
    """
    comparable, unlike = _comparable(runs, hidden)
    shared = {pair.candidate.model_id: pair for pair in _on_shared_cases(comparable)}
    if not shared:
        unlike |= {pair.candidate.model_id: "no case was answered by all models" for pair in comparable}
    metric, hidden_ids = rules.primary_metric, {pair.candidate.model_id for pair in hidden}
    measured = {name: _measured(pair) for name, pair in shared.items()}
    scores, costs = dict.fromkeys(measured, -1.0), dict.fromkeys(measured, math.inf)  # if they are unknown
    for name, run in measured.items():
        if metric in run.accuracy and (mean := run.accuracy[metric].strict_mean) is not None:
            scores[name] = mean
        if run.usd_per_1000_cases is not None:
            costs[name] = run.usd_per_1000_cases
    family = sorted(measured, key=lambda name: (-scores[name], costs[name], name))
    contrasts = _contrasts([shared[name] for name in family], rules)
    pairs = [pair for pair in contrasts if not {pair.higher, pair.lower} & hidden_ids]
    names = [name for name in family if name not in hidden_ids]
    worse = {pair.lower for pair in pairs if pair.higher == names[0] and pair.significant}
    added = {}
    for pair in prompts:  # one prompt effect per model, each a family of its own
        (result,) = compare_records([pair], rules, fields=False).models
        if primary := _primary(result, metric):
            effect = PromptEffect.view(primary.test, difference=primary.difference, verdict=primary.verdict)
            added[result.model_id] = effect
    rows = []
    for name in names:
        cost, score = costs[name], scores[name]
        others = [other for other in names if (costs[other], scores[other]) != (cost, score)]
        is_beaten = any(costs[other] <= cost and scores[other] >= score for other in others)
        rows.append(
            RankedModel(
                place=1 + sum(scores[other] > score for other in names),
                model_id=name,
                like_best=name not in worse,
                run=measured[name],
                verdict=verdicts.get(name),
                prompt_adds=added.get(name),
                frontier=None if cost == math.inf else not is_beaten,
            )
        )
    return ModelRanking(
        skill=skill,
        metric=metric,
        alpha=rules.alpha,
        tolerance=rules.primary_tolerance,
        n_cases=len(shared[names[0]].candidate.per_case) if names else 0,
        models=rows,
        pairs=pairs,
        family=len(contrasts),
        advice=_advise(rows, pairs, rules.primary_tolerance),
        left_out={name: reason for name, reason in unlike.items() if name not in hidden_ids},
    )


def _measured(pair: Pair) -> RankedRun:
    record = comparability.pooled(pair.candidate, pair.candidate_again)
    agreement = {
        name: [share for case in record.per_case if (share := case.reproducibility.get(name)) is not None]
        for name in comparability.AGREEMENT
    }
    moment = pair.candidate.moment
    return RankedRun.view(
        pair.candidate,
        age_days=None if moment is None else max(0, (datetime.now(UTC) - moment).days),
        accuracy={name: scored for name in record.accuracy if (scored := _score(record, name)) is not None},
        reproducibility={name: rounded(mean_or_none(shares)) for name, shares in agreement.items()},
        usd_per_1000_cases=per_1000(pair.candidate.cost.cost_usd, pair.candidate.outputs),
        latency_p50_s=pair.candidate.cost.latency_s.p50,
        latency_p95_s=pair.candidate.cost.latency_s.p95,
    )


def _comparable(runs: Sequence[Pair], hidden: Sequence[Pair]) -> tuple[list[Pair], dict[str, str]]:
    newest = max(
        (pair.candidate for pair in runs),
        key=lambda run: (not is_mixed(run.served_model), run.timestamp, run.run_id),
        default=None,
    )
    comparable, unlike = [], {}
    for pair in (*runs, *hidden):
        if newest is None or pair.candidate is newest:
            comparable.append(pair)
            continue
        common = comparability.common_part(newest, pair.candidate)
        if common.barriers:
            unlike[pair.candidate.model_id] = f"not measured as {newest.model_id} was: {common.barriers[0]}"
        elif len(common.cases) < _SHARED * len(newest.per_case):
            shared = f"{len(common.cases)} of {counted(len(newest.per_case), 'case')}"
            unlike[pair.candidate.model_id] = f"it answered {shared} of {newest.model_id}"
        else:
            comparable.append(pair)
    return comparable, unlike


def _on_shared_cases(runs: Sequence[Pair]) -> list[Pair]:
    digests = [{(case.case_id, case.digest) for case in pair.candidate.per_case} for pair in runs]
    shared = {case_id for case_id, _ in set.intersection(*digests)} if digests else set()
    if not shared or all(len(shared) == len(cases) for cases in digests):
        return list(runs) if shared else []
    return [comparability.cut_pair(pair, shared) for pair in runs]


def _score(record: Record, metric: str) -> Score | None:
    """Return the score of a record by a metric. Return None if the metric has no value for any output."""
    if all(score is None for case in record.per_case for score in case.replicates.get(metric, ())):
        return None
    scores = [comparability.strict_scores(case, metric) for case in record.per_case]
    means = [sum(case) / len(case) for case in scores if case]
    interval = unit_interval(means)
    return Score(
        strict_mean=rounded(mean_or_none(means)),
        ci95=None if interval is None else (round(interval[0], 6), round(interval[1], 6)),
        n_cases=len(means),
    )


def _contrasts(models: Sequence[Pair], rules: VerdictRules) -> list[Contrast]:
    """Compare every two models by the primary metric. `models` has one run pair per model, the best model first."""
    couples = list(combinations(models, 2))
    pairs = [
        Pair(
            baseline=higher.candidate,
            candidate=lower.candidate,
            baseline_again=higher.candidate_again,
            candidate_again=lower.candidate_again,
        )
        for higher, lower in couples
    ]
    results = compare_records(list(map(comparability.mark_concurrent, pairs)), rules, fields=False).models
    primaries = [_primary(result, rules.primary_metric) for result in results]
    # two-sided, because the scores also select which model is lower
    p_values = [None if primary is None else primary.test.p for primary in primaries]
    q_values = holm([1.0 if p is None else min(1.0, 2 * p) for p in p_values])
    contrasts = []
    for (higher, lower), result, primary, q in zip(couples, results, primaries, q_values, strict=True):
        names = {"higher": higher.candidate.model_id, "lower": lower.candidate.model_id}
        if primary is None:
            contrasts.append(Contrast.model_validate(names))
            continue
        as_good, is_lower = primary.verdict == "unchanged", (primary.difference or 0.0) < -ROUNDING
        contrast = Contrast.view(
            primary.test,
            **names,
            difference=primary.difference,
            q=round(q, 6),
            as_good=as_good,
            significant=is_lower and q <= rules.alpha and not as_good,
            remedy=result.remedy,
            fell_most=_fell_most(higher, lower, rules.primary_tolerance),
        )
        contrasts.append(contrast)
    return contrasts


def _fell_most(higher: Pair, lower: Pair, tolerance: float) -> str:
    """Format the field that fell most, with its mean scores. Return "" if no field fell by more than `tolerance`."""
    before, after = (comparability.pooled(pair.candidate, pair.candidate_again) for pair in (higher, lower))
    falls = [
        (measure.after.mean - measure.before.mean, measure.name, arrow(measure.before.mean, measure.after.mean))
        for measure in field_measures(comparability.common_part(before, after).cases)
    ]
    difference, path, scores = min(falls, default=(0.0, "", ""))
    return f"{path or WHOLE} {scores}" if difference < -tolerance else ""


def _primary(result: ModelVerdict, metric: str) -> MeasureResult | None:
    return next((one for one in result.metrics if (one.metric, one.kind) == (metric, "accuracy")), None)


_MAX_CASES = 3
_FLAKY_RUNS = 3


class Step(FrozenModel):
    """The verdict on a model's version, compared with an earlier version (`before`).

    `falls` has the lost fields and their mean scores before and after. `fell_most` names the field that fell most and
    its scores. `worse_cases` has up to three cases that got worse. If `regressed_since` is true, the version regressed
    only against the accepted version.
    """

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
    regressed_since: bool = Field(default=False, exclude=True)

    @classmethod
    def of(cls, model: ModelVerdict, primary_metric: str) -> "Step":
        """Convert the verdict on a model to the step from the baseline's version to the candidate's version."""
        primary = _primary(model, primary_metric)
        fell = None if model.verdict == "incomparable" else model.fell_most
        return cls.view(
            model,
            before=model.baseline.skill_version if model.baseline else "",
            difference=primary.difference if primary else None,
            ci95=primary.test.ci95 if primary else None,
            q=primary.test.q if primary else None,
            fell_most="" if fell is None else f"{fell.metric or WHOLE} {arrow(fell.baseline, fell.candidate)}",
            worse_cases=model.cases.worse[:_MAX_CASES],
            regressed_since=model.only_since_accepted is not None,
        )


class Point(FrozenModel):
    """One version in a history: its strict mean over `runs` pooled runs. `step` is None if there is no baseline.

    `scored_nothing`: the primary metric is 0 in every case of the newest run.
    """

    version: str
    run_id: str
    timestamp: str
    strict_mean: float | None
    n_cases: int
    step: Step | None = None
    runs: int = 1
    scored_nothing: bool = Field(default=False, exclude=True)

    @classmethod
    def of(cls, pair: Pair, step: Step | None, primary_metric: str) -> "Point":
        """Build the point for the candidate's version. `strict_mean` is the strict mean of the primary metric."""
        newest = pair.candidate
        scores = [
            comparability.strict_scores(case, primary_metric)
            for case in comparability.pooled(newest, pair.candidate_again).per_case
        ]
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
    """A case's field that was flaky in the last three runs. `right` has a text per run, such as `3/4` for 3 of 4."""

    case_id: str
    path: str
    right: list[str]


class ModelHistory(FrozenModel):
    """The history of one model: a point per version, lowest first, notes on skipped runs, and flaky fields."""

    model_id: str
    points: list[Point]
    remarks: list[str]
    flaky: list[FlakyValue] = Field(default=[], exclude_if=lambda values: not values)


class History(FrozenModel):
    """The history of a component by model. `accepted` is the highest accepted version.

    `tolerance` is that of the primary `metric`. `unmeasured` notes that the version on disk has no complete run.
    """

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
        """The comparison of the highest version with the version before (`Step`), by model id.

        Models without the highest version are omitted. The step is None if the model has no lower version.
        """
        points = {model.model_id: model.points[-1] for model in self.models}
        return {name: point.step for name, point in points.items() if point.version == self.newest}

    @property
    def newest_verdict(self) -> VerdictName:
        """The worst verdict on the highest version over all models. A model's first version counts as incomparable."""
        steps = self.newest_steps.values()
        return component_verdict("incomparable" if step is None else step.verdict for step in steps)

    @property
    def newest_words(self) -> str:
        """The worst verdict on the highest version as text, such as `regressed against 1.0.0 with gpt-5`.

        If models were also compared with the accepted version, the text has the worst verdict of these comparisons,
        too.
        """
        steps = {name: step for name, step in self.newest_steps.items() if step is not None}
        if not steps:
            return "there is no lower version with the same model"
        verdict = min((step.verdict for step in steps.values()), key=WORST_FIRST.index)
        worst = {name: step for name, step in steps.items() if step.verdict == verdict}
        fell = {name: step for name, step in worst.items() if not step.regressed_since}
        step = next(iter((fell or worst).values()))
        changes = [(name, one.since_accepted) for name, one in steps.items() if one.since_accepted is not None]
        changes.sort(key=lambda change: WORST_FIRST.index(change[1].verdict))
        text = f"{verdict} against {step.before} with {listed(list(fell), 2)}"
        if step.fell_most and step.verdict in ("regressed", "inconclusive"):
            text += f", most in field {step.fell_most}"
        if not changes:
            return text
        since = changes[0][1]
        named = [name for name, one in changes if (one.verdict, one.version) == (since.verdict, since.version)]
        if not fell:
            return f"{since.verdict} since {since.version} with {listed(named, 2)}"
        text += f"; {since.verdict} since {since.version}"
        return f"{text} with {listed(named, 2)}" if len(steps) > 1 else text

    @property
    def to_ship(self) -> str:
        """The version to ship: the highest sound version. If no version is sound, the lowest version.

        An improved version is sound, and so is a version without a baseline. An unchanged version is sound if the
        version before it is sound. An unchanged highest version is always sound, because it was also compared with
        the accepted version. Versions that scored 0 in every case are skipped. If there is no other, return "".
        """
        points = by_key((point.version, point) for model in self.models for point in model.points)
        *_, newest = ordered = sorted(points, key=precedence)
        scored = [version for version in ordered if not all(point.scored_nothing for point in points[version])]
        shipped, sound = next(iter(scored), ""), True
        for version in ordered:
            verdicts = [point.step.verdict for point in points[version] if point.step]
            # without an earlier version to compare with, a version counts as improved
            verdict = component_verdict(verdicts) if verdicts else "improved"
            # only the newest version is compared with the accepted one
            sound = verdict == "improved" or (verdict == "unchanged" and (sound or version == newest))
            sound = sound and version in scored
            shipped = version if sound else shipped
        return shipped


def shipping_advice(history: History, ranking: ModelRanking) -> Advice:
    """Return the version to ship, and the best or only model of that version in `ranking`."""
    shipped, best = history.to_ship, ranking.advice
    reason = f"{history.newest}: " * (history.newest != shipped) + history.newest_words
    if not shipped or (history.newest != shipped and not any(history.newest_steps.values())):
        reason = f"{history.metric} is 0 in every case of {history.newest}"
    if not shipped or not ranking.models or ranking.models[0].run.skill_version != shipped:
        return Advice(version=shipped, reason=reason)
    if len(ranking.models) == 1:
        return Advice(version=shipped, model_id=ranking.models[0].model_id, reason=reason)
    runs = [point.runs for model in history.models for point in model.points if point.version == shipped]
    basis = f"over all runs of {shipped}, " if history.newest != shipped or max(runs) > 1 else ""
    of_model = basis + (f"{best.model_id} is {best.reason}" if best.model_id else best.reason)
    return Advice(version=shipped, model_id=best.model_id, alike=best.alike, reason=f"{reason}; {of_model}")


def _unchanged_runs(versions: Sequence[Pair], steps: Mapping[str, Step]) -> list[Record]:
    """Return the runs of the last version that is not *unchanged* and of all later versions, oldest first."""
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
    """Return the fields of unchanged cases that were flaky in each of the last three runs. Return [] for fewer runs."""
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
    """Build the history from each model's pairs, one per version, lowest first. A pair may lack a baseline."""
    judged = [pair for pair in chain.from_iterable(by_model.values()) if pair.baseline is not None]
    # all models of a version are one family, as in `compare`
    families = by_key((pair.candidate.skill_version, pair) for pair in judged)

    def compared(pairs: Sequence[Pair]) -> list[ModelVerdict]:
        return compare_records(pairs, rules).models

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
