"""What a run scored: of each case its replicates, fields and agreement; of all what the calls used.

Its own module because records, reports and views are made of it, and need not know how it came about.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from skill_evaluator.metrics.agreement.array_lengths import ArrayLengths
from skill_evaluator.metrics.diagnosis.field_profile import FieldValues, Standing
from skill_evaluator.metrics.diagnosis.per_field import FieldTotal, FilledCounts
from skill_evaluator.providers.base import Usage
from skill_evaluator.records.record import ANSWERED, SCORED
from skill_evaluator.records.summaries import FailedCalls
from skill_evaluator.scoring.answers import OutputContract


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseScore:
    """One case: per replicate its outcome and metrics, over its replicates the fields and the agreement.

    `outcomes` and each tuple of `metrics` have one entry per planned replicate; a metric is None where it was not
    measured. `undefined` are the metrics that have no value for this case whatever is answered. `exact` counts the
    answers equal to the truth (None: no truth). `contracts` are those of the distinct parsed texts, each with how often
    it came. `fields` and `filled` are of a labelled case only.
    """

    case_id: str
    labelled: bool
    outcomes: tuple[str, ...]
    metrics: Mapping[str, tuple[float | None, ...]]
    reproducibility: Mapping[str, float | None]
    fields: Mapping[str, FieldTotal] = field(default_factory=dict)
    stability: Mapping[str, float] = field(default_factory=dict)
    profile: Mapping[str, Standing] = field(default_factory=dict)
    values: FieldValues = field(default_factory=dict)
    filled: Mapping[str, FilledCounts] = field(default_factory=dict)
    arrays: Mapping[str, ArrayLengths] = field(default_factory=dict)
    exact: int | None = None
    contracts: tuple[tuple[OutputContract, int], ...] = ()
    undefined: frozenset[str] = frozenset()

    @property
    def answered(self) -> int:
        """The number of replicates that the model answered, however badly."""
        return sum(outcome in ANSWERED for outcome in self.outcomes)

    @property
    def parsed(self) -> int:
        """The number of replicates whose answer was parsed and scored."""
        return self.outcomes.count(SCORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """All cases of one run, and what its calls used. `reasons` counts every failure by its stable word,
    and `faults` says where they are.

    `answers` is the digest of all that was answered, `served` what each of the `usages` says that answered.
    """

    cases: tuple[CaseScore, ...]
    replicates: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[FailedCalls, ...] = ()
    usages: tuple[Usage, ...] = ()
    latencies_s: tuple[float, ...] = ()
    served: tuple[str | None, ...] = ()
    retries: int = 0
    answers: str = ""

    @property
    def planned(self) -> int:
        """The number of planned calls."""
        return len(self.cases) * self.replicates

    @property
    def answered(self) -> int:
        """The number of calls that the model answered."""
        return sum(case.answered for case in self.cases)

    @property
    def failures(self) -> dict[str, int]:
        """The calls that were not scored, by kind; with the scored ones they add up to `planned`."""
        counts = Counter(outcome for case in self.cases for outcome in case.outcomes if outcome != SCORED)
        return dict(sorted(counts.items()))
