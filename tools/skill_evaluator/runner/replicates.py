"""One planned call and what became of it: the value that the journal keeps and scoring reads."""

from dataclasses import dataclass

from skill_evaluator.providers.base import Completion, Failure


@dataclass(frozen=True, slots=True)
class Call:
    """One (case, replicate): asked once, answered once, counted once."""

    case_id: str
    replicate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """A call that was made: its completion, or the error it ended with. `latency_s` is that of the last attempt."""

    call: Call
    completion: Completion | None = None
    error: Failure | None = None
    latency_s: float = 0.0
    attempts: int = 1

    @property
    def answered(self) -> bool:
        """Whether the model said anything, however useless: such a call is never asked again."""
        return self.completion is not None

    @property
    def failure(self) -> Failure | None:
        """Why there is nothing to parse: the error, or an answer that was refused or cut off."""
        if self.completion is None:
            return self.error
        if self.completion.stop_reason == "length":
            return Failure(kind="truncated", reason="output_limit", message="the answer reached the output limit")
        if self.completion.stop_reason == "refusal":
            return Failure(kind="refused", reason="refusal", message=self.completion.text[:200])
        return None
