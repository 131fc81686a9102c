"""Counters of one model while it runs: what a progress line shows. No drawing here."""

import time
from dataclasses import dataclass, field

from skill_evaluator.runner.replicates import Replicate


@dataclass(slots=True, kw_only=True)
class Progress:
    """Calls and tokens so far; `answered_before` were found in the journal of a resumed run."""

    model_id: str
    planned: int
    answered_before: int = 0
    answered: int = 0
    failed: int = 0
    retried: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    begun: float = field(default_factory=time.monotonic)

    def note(self, replicate: Replicate, cost_usd: float | None) -> None:
        """Count one outcome; a cost of None (unknown) makes the sum unknown."""
        if replicate.completion is None:
            self.failed += 1
            return
        self.answered += 1
        self.input_tokens += replicate.completion.usage.input_tokens or 0
        self.output_tokens += replicate.completion.usage.output_tokens or 0
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd

    @property
    def done(self) -> int:
        """Calls that are over, those of earlier attempts at this run included."""
        return self.answered_before + self.answered + self.failed

    @property
    def seconds_left(self) -> float | None:
        """Time left at the pace so far; None before the first outcome."""
        finished = self.answered + self.failed
        if not finished:
            return None
        return (time.monotonic() - self.begun) / finished * (self.planned - self.done)
