"""A record, with the outputs of its run where they are at hand → an `ExportedRun`, for the files of other tools.

What is not at hand is None: a record alone has no texts, and a document that changed since is not the one answered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from skill_evaluator.library.cases import Case
from skill_evaluator.providers.base import Completion
from skill_evaluator.records.record import ANSWERED, SCORED, Record
from skill_evaluator.records.strict import strict_by_replicate
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.text import canonical_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedAnswer:
    """One planned call. `scores` are what it counts with, the primary metric first; `unmeasured` of them are only that.

    An answer that could not be read counts 0 by metrics that measured nothing.
    """

    case_id: str
    case_digest: str
    replicate: int
    outcome: str
    scores: Mapping[str, float]
    unmeasured: tuple[str, ...]
    document: str | None = None
    truth: str | None = None
    completion: Completion | None = None
    latency_s: float | None = None
    message: str = ""

    @property
    def failed(self) -> bool:
        """Whether the model did not answer, so that there is nothing to score."""
        return self.outcome not in ANSWERED


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRun:
    """A record, and what is at hand of its run: the prompt, the cases as they were asked, and what became of calls."""

    record: Record
    prompt: str | None = None
    cases: Mapping[str, Case] = field(default_factory=dict)
    calls: Mapping[Call, Replicate] = field(default_factory=dict)

    def answers(self) -> Iterator[ExportedAnswer]:
        """Yield each planned call, the cases in the record's order."""
        metric = self.record.primary_metric
        metrics = [metric, *(name for name in self.record.accuracy if name != metric)]
        for case in self.record.per_case:
            strict = {name: strict_by_replicate(case, name) for name in metrics}
            asked = self.cases.get(case.case_id)
            if asked is not None and asked.digest != case.digest:
                asked = None
            for index, outcome in enumerate(case.outcomes):
                scores = {name: values[index] for name, values in strict.items() if index < len(values)}
                counting = {name: score for name, score in scores.items() if score is not None}
                made = self.calls.get(Call(case.case_id, index))
                failure = made.failure if made else None
                yield ExportedAnswer(
                    case_id=case.case_id,
                    case_digest=case.digest,
                    replicate=index,
                    outcome=outcome,
                    scores=counting,
                    unmeasured=tuple(
                        name for name in counting if outcome != SCORED and case.replicates[name][index] is None
                    ),
                    document=asked.document if asked else None,
                    truth=_text(asked.truth) if asked and asked.labelled else None,
                    completion=made.completion if made else None,
                    latency_s=made.latency_s if made else None,
                    message=failure.message if failure else "",
                )


def _text(truth: object) -> str:
    return truth if isinstance(truth, str) else canonical_json(truth)
