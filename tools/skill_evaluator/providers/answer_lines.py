"""One line of a file of answers: a run's own journal, another machine's, or one that `replay` is to answer from.

Its own module because nothing vouches for such a file: each line passes this strict model before anything else sees it.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from skill_evaluator.errors import RunError
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import CaseId
from skill_evaluator.providers.base import (
    MOST_TOKENS,
    Completion,
    Failure,
    FailureKind,
    HttpStatus,
    Reason,
    StopReason,
    Usage,
)

_LONGEST = 500  # characters of what is only shown: a server's name of the model or the request, a message


def _cut(text: Any) -> Any:
    return text[:_LONGEST] if isinstance(text, str) else text


_TokenCount = Annotated[int, Field(ge=0, lt=MOST_TOKENS)]
_Shown = Annotated[str, BeforeValidator(_cut)]


class _Part(FrozenModel):
    """A part of a line, of these types and no other; keys of a later version are left aside."""

    model_config = ConfigDict(strict=True)


class _Usage(_Part):
    input_tokens: _TokenCount | None = None
    output_tokens: _TokenCount | None = None
    cache_read_tokens: _TokenCount | None = None
    cache_write_tokens: _TokenCount | None = None
    cache_write_1h_tokens: _TokenCount | None = None
    batch: bool | None = None


class _Error(_Part):
    kind: FailureKind = "provider_error"
    reason: Reason
    message: _Shown = ""
    status: HttpStatus | None = None


class AnswerLine(_Part):
    """A call with its answer or its error; an error beside a blank text is the outcome."""

    case_id: CaseId
    replicate: NonNegativeInt
    text: str | None = None
    stop_reason: StopReason | Literal[""] | None = None
    usage: _Usage | None = None
    served_model: _Shown | None = None
    request_id: _Shown | None = None
    fingerprint: _Shown | None = None
    error: _Error | Reason | None = None
    latency_s: NonNegativeFloat | None = 0.0
    attempts: PositiveInt = 1

    @model_validator(mode="after")
    def _refuse_neither(self) -> Self:
        if self.text is None and self.error is None:
            raise ValueError("neither text nor error")
        return self

    @property
    def failure(self) -> Failure | None:
        """The error, unless there is a text beside it."""
        if self.error is None or (self.text or "").strip():
            return None
        error = _Error(reason=self.error) if isinstance(self.error, str) else self.error
        return Failure(kind=error.kind, reason=error.reason, message=error.message, status=error.status)

    @property
    def completion(self) -> Completion | None:
        """The answer, unless the call failed."""
        if self.failure is not None:
            return None
        usage = Usage() if self.usage is None else Usage(**self.usage.model_dump())
        return Completion(
            text=self.text or "",
            stop_reason=self.stop_reason or "stop",
            usage=usage,
            served_model=self.served_model,
            request_id=self.request_id,
            fingerprint=self.fingerprint,
        )


def line_at(path: Path, place: int) -> AnswerLine:
    """Read a line again whose place is known, so that the text need not be held; raise RunError if it is gone."""
    try:
        with path.open("rb") as handle:
            handle.seek(place)
            return AnswerLine.model_validate(json.loads(handle.readline().decode("utf-8-sig")))
    except (OSError, ValueError) as problem:
        raise RunError(f"{path} was changed while it was read: {problem}") from None
