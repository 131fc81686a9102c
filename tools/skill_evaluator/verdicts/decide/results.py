"""The result of a comparison, as reports and other programs get it; its JSON Schema is generated."""

import shlex
from collections.abc import Iterable

from pydantic import Field

from skill_evaluator.display import WHOLE
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Tier
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.faults import unusable_words
from skill_evaluator.records.record import Record
from skill_evaluator.records.served import Change, Served, served_text
from skill_evaluator.records.summaries import FEWEST_LABELS
from skill_evaluator.stats import unseen_share
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.missing_outputs import Missing

Fall = tuple[str, str]
"""A lost field, whose path may be text of an answer, and the words of how far it fell."""


class MeasureResult(FrozenModel):
    """One metric or field, candidate minus baseline.

    `p` is one-sided, in the direction of the difference, and `q` adjusted over the family. `ci95` excludes 0 if
    p ≤ 0.025. `n` counts cases, or outputs if each is a draw of its own. A drop of `detectable_drop` in this measure
    alone would have been significant with 80 % power; None: no drop would. `harmed`: the field lost more than
    `policy.harm`, significantly. The agreement of replicates is not tested: it has no q, and its verdict is None.
    """

    metric: str
    kind: str
    tier: Tier
    tolerance: float
    baseline: float | None
    candidate: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    p: float | None
    q: float | None
    n: int = 0
    n_cases: int
    detectable_drop: float | None
    verdict: VerdictName | None
    harmed: bool = False
    missing: Missing | None = None
    profile_before: dict[str, int] | None = None
    profile_after: dict[str, int] | None = None


class CaseChange(FrozenModel):
    """A case whose primary metric moved beyond the tolerance: its mean before and after, and the fields that moved."""

    case_id: str
    before: float
    after: float
    fields: dict[str, str] = {}


class CaseTurn(FrozenModel):
    """How often the answers to a case passed it before and after, in words: `passes always`, `flaky (7 of 10)`."""

    case_id: str
    before: str
    after: str


class Cases(FrozenModel):
    """The cases that broke and those that were fixed beyond chance, the largest change first; those left out, and why.

    `within_noise` counts the others that moved beyond the tolerance; `every_answer_worse` names those of them whose
    every output scored less than any before. If there are checks, `turned` has the cases that pass otherwise than
    before, those that fell first, and `unreliable` those that were flaky.
    """

    broke: list[CaseChange]
    fixed: list[CaseChange]
    left_out: dict[str, str]
    within_noise: int = 0
    every_answer_worse: list[str] = []
    turned: list[CaseTurn] = Field(default=[], exclude_if=lambda turned: not turned)
    unreliable: list[CaseTurn] = Field(default=[], exclude_if=lambda turned: not turned)


class SinceAccepted(FrozenModel):
    """The change of the critical measures since the accepted version; `metric` fell furthest."""

    version: str
    run_id: str
    metric: str
    difference: float
    ci95: tuple[float, float]
    q: float
    verdict: VerdictName


class RunSummary(FrozenModel):
    """How a run went, and what all its calls took; `model_id` only if the run beside it has another model."""

    run_id: str
    skill_version: str
    served_model: Served
    coverage: float
    planned: int
    outputs: int
    replicates: int
    failures: dict[str, int]
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    hit_rate: float | None = Field(default=None, exclude_if=lambda rate: rate is None)
    latency_p50_s: float | None
    latency_p95_s: float | None
    draft: bool = False
    scenario: str | None = Field(default=None, exclude_if=lambda scenario: scenario is None)
    model_id: str | None = Field(default=None, exclude_if=lambda model_id: model_id is None)
    unusable: str | None = Field(default=None, exclude_if=lambda words: words is None)

    @classmethod
    def of(cls, record: Record, beside: Record | None = None) -> "RunSummary":
        """Return the summary of a recorded run."""
        return cls.view(
            record,
            input_tokens=record.tokens.input,
            output_tokens=record.tokens.output,
            hit_rate=record.tokens.hit_rate,
            latency_p50_s=record.latency_s.p50,
            latency_p95_s=record.latency_s.p95,
            unusable=unusable_words(record),
            model_id=None if beside is None or beside.model_id == record.model_id else record.model_id,
        )

    @property
    def title(self) -> str:
        """Its version, and what sets it apart from the run beside it."""
        marks = [mark for mark in ("draft" * self.draft, self.scenario, self.model_id) if mark]
        return f"{self.skill_version} ({', '.join(marks)})" if marks else self.skill_version


def calibration_words(judge: str) -> str:
    """Say how a judge gets calibrated, or trusted without labels."""
    calibrate = f"skill-evaluator judge calibrate --labels labels.jsonl --judge {shlex.quote(judge)}"
    return (
        f"label {FEWEST_LABELS} outputs in labels.jsonl, run `{calibrate} --format json > .evaluator/calibration.json` "
        "and set `policy.judge.calibration: calibration.json` in settings.yaml, "
        f"or trust it without labels: `policy.judge.trusted: [{judge}]`"
    )


def less_repeatable(results: Iterable[MeasureResult]) -> str:
    """Name the agreement of replicates that fell, or return "" if none has a confidence interval below 0."""
    fell = (one for one in results if one.kind == "reproducibility" and one.ci95 is not None and one.ci95[1] < 0.0)
    return next((f"less repeatable: {one.metric} {one.baseline:.3f} → {one.candidate:.3f}" for one in fell), "")


def new_cases_words(cases: int) -> str:
    """Return how many of 100 new cases may fail though none of these did, with 95 % confidence; "" for no case."""
    return f"up to {round(100 * unseen_share(cases))} of 100 new cases may fail" if cases else ""


def per_1000(amount: float | None, n: int) -> float | None:
    """Return a total over n outputs or calls, such as USD, per 1,000 of them; None if it is unknown or n is 0."""
    return None if amount is None or not n else round(1000 * amount / n, 6)


def joined_falls(falls: list[Fall]) -> str:
    """Return the end of the reason that names lost fields."""
    return listed([f"{path or WHOLE} {words}" for path, words in falls])


class ModelVerdict(FrozenModel):
    """One model: its verdict and the reasons.

    `lost_fields` and `lost_cases` fell by more than `policy.harm`. `remedy` is what would decide an inconclusive
    verdict; None if only a look at its cases would. `served`: what differs in what answered. `unproved_judge` decided
    checks that the verdict rests on, and is not calibrated.
    """

    model_id: str
    verdict: VerdictName
    coverage: float
    metrics: list[MeasureResult]
    fields: list[MeasureResult]
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
    remedy: str | None = None
    served: Change | None = Field(default=None, exclude_if=lambda change: change is None)
    unproved_judge: str | None = Field(default=None, exclude_if=lambda judge: judge is None)

    @property
    def n_cases(self) -> int:
        """The number of cases that the verdict rests on."""
        critical = [one.n_cases for one in self.metrics if one.tier == "critical"]
        return max(critical or [one.n_cases for one in self.metrics], default=0)

    @property
    def fell_most(self) -> MeasureResult | None:
        """The field whose mean fell furthest beyond its tolerance. None if no field did."""
        fell = [one for one in self.fields if one.difference is not None and one.difference < -one.tolerance]
        return min(fell, key=lambda one: one.difference or 0.0, default=None)

    @property
    def moved(self) -> list[str]:
        """The critical and supporting measures that moved beyond chance, and the fields and cases that were lost."""
        moved = [
            f"{one.metric} {one.baseline:.3f} → {one.candidate:.3f}"
            for one in (*self.metrics, *self.fields)
            if one.harmed or (one.tier != "advisory" and one.verdict in ("regressed", "improved"))
        ]
        if not moved and self.verdict == "regressed":
            moved = [f"cases that fell: {', '.join(self.lost_cases)}"]
        if self.served == "model":
            served = [served_text(run.served_model) for run in (self.baseline, self.candidate) if run]
            moved.append(f"served model {served[0]} → {served[-1]}")
        return moved


class ComparisonResult(FrozenModel):
    """A component: the verdict is that on its worst model.

    `left_out`: models without a run to compare, and why. `asked_again`: only cases that had failed were run, with both
    versions. `unmeasured` says that the version on disk has no complete run, `ship` which version and model to ship.
    """

    skill: str
    verdict: VerdictName
    alpha: float
    family: str
    models: list[ModelVerdict]
    left_out: dict[str, str] = {}
    asked_again: bool = Field(default=False, exclude_if=lambda again: not again)
    unmeasured: str = ""
    ship: str = Field(default="", exclude_if=lambda words: not words)

    @property
    def n_cases(self) -> int | None:
        """The number of cases that the verdict rests on; None if it differs by model or is unknown."""
        counts = {model.n_cases for model in self.models} - {0}
        return counts.pop() if len(counts) == 1 else None

    def on_run(self, run_id: str | None) -> ModelVerdict | None:
        """Return the verdict on a run, if it is among the candidates."""
        return next((model for model in self.models if model.candidate.run_id == run_id), None)


class Comparisons(FrozenModel):
    """The comparisons that the site shows: of the newest versions, the newest first, and of pairs of models."""

    versions: dict[str, ComparisonResult]
    models: list[ComparisonResult]
