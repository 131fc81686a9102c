"""Recorded answers, in JSON Lines of `{"case_id", "replicate", "text"}`: a run's own journal, or a model's stand-in.

Optional per line: `stop_reason`, `usage`, `served_model`, `request_id`, or `error` (a reason, or the object a journal
writes) for a recorded failure, whose text is absent or blank. A run's own `replicates.jsonl` is such a file. Of several
lines of one call the first answer counts, as in a journal.
"""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from skill_evaluator.errors import ConfigError, RunError
from skill_evaluator.files import FrozenModel, read_placed_lines, validated
from skill_evaluator.identifiers import CaseId
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.base import (
    MOST_TOKENS,
    Completion,
    Failure,
    FailureKind,
    HttpStatus,
    Provider,
    ProviderError,
    ProviderKind,
    Reason,
    Request,
    StopReason,
    Usage,
    first_answers,
    usual_sampling,
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
    """A call with its answer or its error; an error beside a blank text is the outcome.

    Nothing vouches for a file of answers, so that each line passes this strict model before anything else sees it.
    """

    case_id: CaseId
    replicate: NonNegativeInt
    text: str | None = None
    stop_reason: StopReason | Literal[""] | None = None
    usage: _Usage | None = None
    served_model: _Shown | None = None
    request_id: _Shown | None = None
    fingerprint: _Shown | None = None
    reasoning: str = ""
    tool_call: str = ""
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
            reasoning=self.reasoning,
            tool_call=self.tool_call,
        )


def line_at(path: Path, place: int) -> AnswerLine:
    """Read a line again whose place is known, so that the text need not be held; raise RunError if it is gone."""
    try:
        with path.open("rb") as handle:
            handle.seek(place)
            return AnswerLine.model_validate(json.loads(handle.readline().decode("utf-8-sig")))
    except (OSError, ValueError) as problem:
        raise RunError(f"{path} was changed while it was read: {problem}") from None


def check(model: Model) -> None:
    """Raise ConfigError unless the entry names its file, and nothing else."""
    extra = model.params.extra
    if set(extra) != {"file"} or not isinstance(extra["file"], str):
        raise ConfigError(f"replay model '{model.id}' in models.yaml needs exactly one param: file: PATH")


class ReplayProvider:
    """Answers each call with its recorded line; a call without one fails with `not_recorded`."""

    def __init__(self, path: Path) -> None:
        lines = []
        for number, place, value in read_placed_lines(path, ConfigError, torn_lines=True):
            line = validated(AnswerLine, value, Path(f"{path}:{number}"))
            lines.append(((line.case_id, line.replicate), (line.failure is None, place)))
        self._path = path
        self._places = first_answers(lines, lambda line: line[0])  # the answers stay in the file: there may be many

    async def complete(self, request: Request) -> Completion:
        """Return the recorded answer; raise ProviderError for a recorded failure or an absent line."""
        recorded = self._places.get((request.case_id, request.replicate))
        if recorded is None:
            raise ProviderError("not_recorded", f"no recorded answer for {request.case_id} #{request.replicate}")
        line = line_at(self._path, recorded[1])
        if line.failure is not None:
            failure = line.failure
            raise ProviderError(failure.reason, failure.message, kind=failure.kind, status=failure.status)
        return line.completion or Completion(text="")

    async def close(self) -> None:
        """Do nothing: nothing is held."""


def open_provider(model: Model, key: str | None, settings: Settings) -> Provider:
    """Read the recorded answers into memory; raise ConfigError naming the line that is wrong."""
    file: Any = model.params.extra["file"]
    return ReplayProvider(Path(file))


sampling = partial(usual_sampling, refused=("temperature", "top_p", "seed"))  # the answers are what they were
KIND = ProviderKind(
    open=open_provider, sampling=sampling, free=True, check=check, accepts=lambda model: ("pdf", "image")
)
