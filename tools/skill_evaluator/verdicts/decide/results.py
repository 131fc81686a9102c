"""The result of a comparison, for reports and other programs; its JSON Schema is generated."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest

from pydantic import Field

from skill_evaluator.display import WHOLE, amount, count, seconds, times
from skill_evaluator.files import FrozenModel, NestingModel, flat_part
from skill_evaluator.identifiers import Tier
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records import record as records
from skill_evaluator.records.record import ANSWERED, SCORED, CaseRecord, Change, Record, Served
from skill_evaluator.records.summaries import MIN_LABELS
from skill_evaluator.stats import unseen_share
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.comparability import CasePairs, Kind, field_scores

_SLACK = 1e-9  # bounds the rounding error if the same shares are summed in another order
_DIGIT = 1e-6  # bounds are rounded outward to this step
_MAX_NAMED = 5
_NO_TRUTH, _NO_CHECK = "no ground truth", "no check that counts"


class Missing(FrozenModel):
    """The missing outputs of a measure, and the lowest (`worst`) and highest (`best`) difference that they allow.

    `n_cases` counts the cases that can have a score. `lost` describes the missing outputs of a case, by case id.
    `baseline_lost` and `candidate_lost` count the missing outputs. `undefined` has the reason why the metric has no
    value, by case id.
    `rests_on` is the share of the cases with a ground truth for which the metric has a value.
    """

    worst: float
    best: float
    n_cases: int
    lost: dict[str, str] = {}
    baseline_lost: int = 0
    candidate_lost: int = 0
    undefined: dict[str, str] = {}
    rests_on: float = 1.0


def bounds_of(cases: CasePairs, name: str, kind: Kind = "accuracy") -> Missing | None:
    """Return the missing outputs of a measure, and its difference in the worst and in the best case.

    In the worst case, each missing output of the candidate scores 0, and each missing output of the baseline scores 1.
    The best case is the reverse (Horowitz and Manski 2000, J. Am. Stat. Assoc. 95:77). Return None if no score is
    missing, and for the agreement of replicates.
    """
    if kind == "reproducibility" or all(_is_complete(case, name, kind) for case in chain.from_iterable(cases)):
        return None
    undefined = _undefined_cases(cases, name) if kind == "accuracy" else {}
    outputs = {old.case_id: (_outputs_of(old, name, kind), _outputs_of(new, name, kind)) for old, new in cases}
    outputs = {case_id: both for case_id, both in outputs.items() if case_id not in undefined and all(both)}
    lost = {case_id: sum(len(_reasons(one)) / len(one) for one in both) for case_id, both in outputs.items()}
    lossy = sorted((case_id for case_id in lost if lost[case_id] > 0.0), key=lambda case_id: (-lost[case_id], case_id))
    if not outputs or not (lossy or undefined):
        return None
    worst = sum(_mean(new, 0.0) - _mean(old, 1.0) for old, new in outputs.values()) / len(outputs)
    best = sum(_mean(new, 1.0) - _mean(old, 0.0) for old, new in outputs.values()) / len(outputs)
    labelled = sum(reason not in (_NO_TRUTH, _NO_CHECK) for reason in undefined.values())
    planned = {old.case_id: (len(old.outcomes), len(new.outcomes)) for old, new in cases}
    return Missing(  # bounds are rounded outward, so a mean summed in any order lies within them
        worst=max(-1.0, round(math.floor((worst - _SLACK) / _DIGIT) * _DIGIT, 6)),
        best=min(1.0, round(math.ceil((best + _SLACK) / _DIGIT) * _DIGIT, 6)),
        n_cases=len(outputs),
        lost={case_id: _lost_words(outputs[case_id], planned[case_id]) for case_id in lossy},
        baseline_lost=sum(len(_reasons(old)) for old, _ in outputs.values()),
        candidate_lost=sum(len(_reasons(new)) for _, new in outputs.values()),
        undefined=undefined,
        rests_on=round(len(outputs) / (len(outputs) + labelled), 6),
    )


def _is_complete(case: CaseRecord, name: str, kind: Kind) -> bool:
    if kind == "field":
        return all(outcome in ANSWERED for outcome in case.outcomes)
    values = case.replicates.get(name, ())
    return len(values) == len(case.outcomes) == case.outcomes.count(SCORED) and None not in values


def _undefined_cases(cases: CasePairs, metric: str) -> dict[str, str]:
    # a record lists, for each case, the metrics that have a value for its ground truth
    if not any(metric in case.accuracy for pair in cases for case in pair):
        return {}
    unlabelled = _NO_CHECK if metric == records.CHECKS_METRIC else _NO_TRUTH
    return {
        old.case_id: unlabelled if old.exact is None and new.exact is None else "the ground truth has no value for it"
        for old, new in cases
        if metric not in old.accuracy and metric not in new.accuracy
    }


def _outputs_of(case: CaseRecord, name: str, kind: Kind) -> list[float | str]:
    """Return a score, or the reason why it is missing, for each output. Return [] if a field is not scored."""
    if kind == "field":
        scores = field_scores(case, name)
        lost = [outcome for outcome in case.outcomes if outcome not in ANSWERED]
        return [] if not scores and SCORED in case.outcomes else [*scores, *lost]
    planned = zip_longest(case.outcomes, case.replicates.get(name, [])[: len(case.outcomes)])
    strict = [(outcome, records.strict_score(outcome, value)) for outcome, value in planned]
    return [("undefined" if outcome == SCORED else outcome) if score is None else score for outcome, score in strict]


def _reasons(outputs: Sequence[float | str]) -> list[str]:
    return [output for output in outputs if isinstance(output, str)]


def _mean(outputs: Sequence[float | str], missing: float) -> float:
    return sum(missing if isinstance(output, str) else output for output in outputs) / len(outputs)


def _lost_words(outputs: Sequence[Sequence[float | str]], planned: Sequence[int]) -> str:
    parts = []
    for version, reasons, total in zip(("baseline", "candidate"), map(_reasons, outputs), planned, strict=True):
        kinds = ", ".join(f"{number} {reason}" for reason, number in sorted(Counter(reasons).items()))
        parts += [f"{version} {len(reasons)} of {total} ({kinds})"] if reasons else []
    return "; ".join(parts)


def missing_reasons(metric: str, missing: Missing, tolerance: float, required_coverage: float) -> Iterator[str]:
    """Yield a sentence on a metric's missing outputs and one on the cases without a value, if there are any."""
    if missing.lost:
        crossing = f": a drop beyond {tolerance:g} is not ruled out" if crosses(missing, tolerance) else ""
        yield (
            f"{metric}: outputs of {len(missing.lost)} of {missing.n_cases} cases are missing, "
            f"{missing.baseline_lost} of the baseline and {missing.candidate_lost} of the candidate; "
            f"whatever they were, the difference is {missing.worst:+.3f} to {missing.best:+.3f}{crossing} "
            f"({_named(missing.lost)})"
        )
    if missing.undefined:
        every = missing.n_cases + len(missing.undefined)
        too_few = ""
        if missing.rests_on < required_coverage:
            too_few = f", fewer than the required {required_coverage:.2f} of those with a ground truth"
        yield f"{metric} has a value in {missing.n_cases} of {every} cases{too_few} ({_named(missing.undefined)})"


def crosses(missing: Missing, tolerance: float) -> bool:
    """Return whether the missing outputs may hide a drop beyond the tolerance."""
    return bool(missing.lost) and missing.worst < -tolerance - 2 * _DIGIT


def _named(cases: Mapping[str, str]) -> str:
    named = [f"{case_id}: {words}" for case_id, words in list(cases.items())[:_MAX_NAMED]]
    more = len(cases) - _MAX_NAMED
    return " · ".join(named) + (f" · and {more} more" if more > 0 else "")


Fall = tuple[str, str]  # the path of a lost field, which may contain text of an output, and its drop as text


class MeasureTest(FrozenModel):
    """The test of a measure's difference."""

    ci95: tuple[float, float] | None
    p: float | None  # one-sided, in the direction of the difference
    q: float | None  # `p`, adjusted for multiple tests
    n: int = 0  # number of cases, or of outputs if each is an independent draw
    n_cases: int
    detectable_drop: float | None  # drop that the test detects with 80 % power


class StabilityCounts(FrozenModel):
    """The number of cases by stability of a field, in the baseline and in the candidate. None for other measures."""

    profile_before: dict[str, int] | None = None
    profile_after: dict[str, int] | None = None


class MeasureResult(NestingModel):
    """The result of one metric or field. Agreement of replicates is not tested: p, q and verdict are None."""

    metric: str
    kind: str
    tier: Tier
    tolerance: float
    baseline: float | None
    candidate: float | None
    difference: float | None  # candidate − baseline
    test: MeasureTest = flat_part("test")
    verdict: VerdictName | None
    harmed: bool = False  # a field fell significantly and by more than `policy.harm`
    missing: Missing | None = None
    stability: StabilityCounts = flat_part("stability")


class AmountTest(FrozenModel):
    """The test of the change of an amount (tokens, cost or latency)."""

    ci95: tuple[float, float] | None = None
    q: float | None = None
    n_cases: int = 0


class AmountResult(NestingModel):
    """The change of output tokens, cost (USD) or latency (seconds) per output.

    `baseline` and `candidate` are means over cases. `change` is the relative increase of the geometric mean. For
    example, 1.5 means 2.5 times as much.
    """

    amount: str
    tier: Tier
    tolerance: float
    baseline: float | None = None
    candidate: float | None = None
    change: float | None = None
    test: AmountTest = flat_part("test")
    moved: bool = False  # the change is significant and larger than the tolerance
    rose_most: str = ""  # id of the case with the largest increase
    verdict: VerdictName | None = None  # None: advisory
    unmeasured: str = ""  # reason why there are no figures

    @property
    def name(self) -> str:
        """The amount in words: output tokens, cost or latency."""
        return {"output_tokens": "output tokens", "cost_usd": "cost", "latency_s": "latency"}[self.amount]

    def change_text(self, calls: int = 1) -> str:
        """Format the change, such as `cost $0.10 → $0.20 a run (× 2)`. A run has `calls` calls."""
        before, after = self.baseline or 0.0, self.candidate or 0.0
        ratio = times(after / before) if before else "–"
        if self.amount == "output_tokens":
            return f"{self.name} {count(before)} → {count(after)} a call ({ratio})"
        if self.amount == "latency_s":
            return f"{self.name} {seconds(before)} → {seconds(after)} a call ({ratio})"
        return f"{self.name} ${amount(before * calls)} → ${amount(after * calls)} a run ({ratio})"


class CaseChange(FrozenModel):
    """A case whose mean primary metric changed by more than the tolerance.

    `fields` has the numbers of right values of each changed field, by path. For example, `2/5 → 4/5` means that 2 of 5
    values were right in the baseline, and 4 of 5 in the candidate.
    """

    case_id: str
    before: float
    after: float
    fields: dict[str, str] = {}


class CaseTurn(FrozenModel):
    """The pass status of a case before and after, as text such as `passes always` or `flaky (7 of 10)`."""

    case_id: str
    before: str
    after: str


class Cases(FrozenModel):
    """The cases that fell significantly (`broke`), rose significantly (`fixed`) or were skipped (`left_out`).

    `left_out` has the reason why a case was skipped, by case id. `within_noise` counts the cases whose change is beyond
    the tolerance but not significant. If each output of such a case scored less than any output before, the case is in
    `every_answer_worse`. `turned` has the cases whose pass status changed. `unreliable` has the cases that were flaky
    before.
    """

    broke: list[CaseChange] = []
    fixed: list[CaseChange] = []
    left_out: dict[str, str] = {}
    within_noise: int = 0
    every_answer_worse: list[str] = []
    turned: list[CaseTurn] = Field(default=[], exclude_if=lambda turned: not turned)
    unreliable: list[CaseTurn] = Field(default=[], exclude_if=lambda turned: not turned)

    @property
    def worse(self) -> list[str]:
        """The ids of the cases that broke. If none did, the ids of the cases in `every_answer_worse`."""
        return [case.case_id for case in self.broke] or self.every_answer_worse


class SinceAccepted(FrozenModel):
    """The change of the critical measure that fell most since `version`, whose run is `run_id`.

    `version` is the accepted version, or else the lowest comparable version.
    """

    version: str
    run_id: str
    metric: str
    difference: float
    ci95: tuple[float, float]
    q: float
    verdict: VerdictName


class RunCalls(FrozenModel):
    """The planned calls of a run, and their outputs and failures. `coverage` is the completion."""

    coverage: float
    planned: int
    outputs: int
    replicates: int
    failures: dict[str, int]


class RunCost(FrozenModel):
    """The tokens, cost and latency of a run."""

    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    hit_rate: float | None = Field(default=None, exclude_if=lambda rate: rate is None)
    latency_p50_s: float | None
    latency_p95_s: float | None


class RunSummary(NestingModel):
    """The outputs, failures, tokens, cost and latency of a run."""

    run_id: str
    skill_version: str
    served_model: Served
    calls: RunCalls = flat_part("calls")
    cost: RunCost = flat_part("cost")
    draft: bool = False
    scenario: str | None = Field(default=None, exclude_if=lambda scenario: scenario is None)
    model_id: str | None = Field(default=None, exclude_if=lambda model_id: model_id is None)
    unusable: str | None = Field(default=None, exclude_if=lambda text: text is None)

    @classmethod
    def of(cls, record: Record, beside: Record | None = None) -> "RunSummary":
        """Summarise a recorded run. The summary has a model id only if `beside`, the other run, is of another model."""
        tokens, latency = record.cost.tokens, record.cost.latency_s
        return cls.view(
            record,
            calls=RunCalls.view(record),
            cost=RunCost.view(
                record.cost,
                input_tokens=tokens.input,
                output_tokens=tokens.output,
                hit_rate=tokens.hit_rate,
                latency_p50_s=latency.p50,
                latency_p95_s=latency.p95,
            ),
            unusable=records.unusable_text(record),
            model_id=None if beside is None or beside.model_id == record.model_id else record.model_id,
        )

    @property
    def title(self) -> str:
        """The version of the run, with draft, scenario and model in brackets if it has them."""
        marks = [mark for mark in ("draft" * self.draft, self.scenario, self.model_id) if mark]
        return f"{self.skill_version} ({', '.join(marks)})" if marks else self.skill_version


def calibration_words(judge: str) -> str:
    """Format the advice to calibrate a judge (a model id) with human labels, or to trust it without labels."""
    calibrate = f"skill-evaluator judge calibrate --labels labels.jsonl --judge {shlex.quote(judge)}"
    return (
        f"label {MIN_LABELS} outputs in labels.jsonl, run `{calibrate} --format json > .evaluator/calibration.json` "
        "and set `policy.judge.calibration: calibration.json` in settings.yaml, "
        f"or trust it without labels: `policy.judge.trusted: [{judge}]`"
    )


def less_repeatable(results: Iterable[MeasureResult]) -> str:
    """Format the drop of the first agreement metric that fell significantly. Return "" if none fell."""
    fell = (
        one for one in results if one.kind == "reproducibility" and one.test.ci95 is not None and one.test.ci95[1] < 0.0
    )
    return next((f"less repeatable: {one.metric} {one.baseline:.3f} → {one.candidate:.3f}" for one in fell), "")


def new_cases_words(cases: int) -> str:
    """Format how many of 100 new cases may get worse if none of `cases` did, at 95 % confidence. Return "" for 0."""
    return f"of 100 new cases, up to {round(100 * unseen_share(cases))} may still be worse" if cases else ""


def per_1000(amount: float | None, n: int) -> float | None:
    """Scale an amount for `n` outputs or calls to 1,000. Return None if the amount is unknown, or if `n` is 0."""
    return None if amount is None or not n else round(1000 * amount / n, 6)


def joined_falls(falls: list[Fall]) -> str:
    """Format lost fields and their drops as one text."""
    return listed([f"{path or WHOLE} {words}" for path, words in falls])


class ModelVerdict(FrozenModel):
    """The verdict on one model and the reasons for the verdict.

    `lost_fields` and `lost_cases` fell by more than `policy.harm`. `baseline_runs` and `candidate_runs` count the
    pooled runs of each version.
    """

    model_id: str
    verdict: VerdictName
    coverage: float
    metrics: list[MeasureResult]
    fields: list[MeasureResult]
    amounts: list[AmountResult] = Field(default=[], exclude_if=lambda amounts: not amounts)
    cases: Cases
    lost_fields: list[str] = []
    lost_cases: list[str] = []
    since_accepted: SinceAccepted | None = None
    baseline_runs: int = 1
    candidate_runs: int = 1
    baseline: RunSummary | None
    candidate: RunSummary
    reasons: list[str]
    falls: list[Fall] = []
    remedy: str | None = None  # way to decide an inconclusive verdict
    served: Change | None = Field(default=None, exclude_if=lambda change: change is None)  # change of the model
    unproved_judge: str | None = Field(default=None, exclude_if=lambda judge: judge is None)  # a model id

    @property
    def n_cases(self) -> int:
        """The largest number of cases of a critical metric, or of any metric if none is critical. 0 without metrics."""
        critical = [one.test.n_cases for one in self.metrics if one.tier == "critical"]
        return max(critical or [one.test.n_cases for one in self.metrics], default=0)

    @property
    def fell_most(self) -> MeasureResult | None:
        """The field whose mean fell most, among those that fell by more than their tolerance. None if no field did."""
        fell = [one for one in self.fields if one.difference is not None and one.difference < -one.tolerance]
        return min(fell, key=lambda field: field.difference or 0.0, default=None)

    @property
    def only_since_accepted(self) -> SinceAccepted | None:
        """The change since the accepted version if it alone makes the verdict *regressed*; otherwise None."""
        decided = any(one.verdict == "regressed" or one.harmed for one in (*self.metrics, *self.fields))
        decided = decided or any(one.verdict == "regressed" for one in self.amounts)
        since = self.since_accepted
        if self.verdict != "regressed" or decided or self.lost_cases or since is None or since.verdict != "regressed":
            return None
        return since

    @property
    def worse_cases(self) -> list[str]:
        """The ids of the lost cases, the cases that broke, and `every_answer_worse`, in this order. Ids can repeat."""
        return [*self.lost_cases, *(case.case_id for case in self.cases.broke), *self.cases.every_answer_worse]

    @property
    def has_loss_to_see(self) -> bool:
        """Whether the model regressed, or is inconclusive and a case got worse."""
        return self.verdict == "regressed" or (self.verdict == "inconclusive" and bool(self.worse_cases))

    @property
    def amount_words(self) -> str:
        """The amounts (output tokens, cost, latency) that moved, before and after, as text. "" if none did."""
        return ", ".join(one.change_text(self.candidate.calls.planned) for one in self.amounts if one.moved)

    @property
    def moved(self) -> list[str]:
        """The significant changes of metrics and fields, and a change of the served model, as texts.

        If no metric or field explains a regression, the list has the amounts or the cases that do.
        """
        moved = [
            f"{one.metric} {one.baseline:.3f} → {one.candidate:.3f}"
            for one in (*self.metrics, *self.fields)
            if one.harmed or (one.tier != "advisory" and one.verdict in ("regressed", "improved"))
        ]
        if not moved and self.verdict == "regressed":
            moved = [
                one.change_text(self.candidate.calls.planned) for one in self.amounts if one.verdict == "regressed"
            ]
            moved = moved or [f"cases that fell: {', '.join(self.lost_cases)}"]
        if self.served == "model":
            served = [records.served_text(run.served_model) for run in (self.baseline, self.candidate) if run]
            moved.append(f"served model {served[0]} → {served[-1]}")
        return moved


class ComparisonResult(FrozenModel):
    """The comparison of a component's models with their baselines. `verdict` is the worst verdict of its models.

    `left_out` has the reason why a model has no run to compare, by model id. `asked_again`: only failed cases were run
    again. `unmeasured` notes that the version on disk has no complete run. `ship` names the version and the model to
    ship, `accepted` the highest accepted version.
    """

    skill: str
    verdict: VerdictName
    alpha: float
    family: str
    models: list[ModelVerdict]
    left_out: dict[str, str] = {}
    asked_again: bool = Field(default=False, exclude_if=lambda again: not again)
    unmeasured: str = ""
    ship: str = Field(default="", exclude_if=lambda text: not text)
    accepted: str = Field(default="", exclude_if=lambda version: not version)

    @property
    def n_cases(self) -> int | None:
        """The number of cases, if it is the same for every model that has cases. Otherwise None."""
        counts = {model.n_cases for model in self.models} - {0}
        return counts.pop() if len(counts) == 1 else None

    def on_run(self, run_id: str | None) -> ModelVerdict | None:
        """Return the verdict on the model with this run. Return None if the run is not a candidate."""
        return next((model for model in self.models if model.candidate.run_id == run_id), None)
