"""Recorded answers instead of a model: JSON Lines of `{"case_id", "replicate", "text"}`, one line an answer.

Optional per line: `stop_reason`, `usage`, `served_model`, `request_id`, or `error` (a reason, or the object a journal
writes) for a recorded failure. A run's own `replicates.jsonl` is such a file. Of several lines of one
call the first answer counts, as in a journal.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import NonNegativeInt

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import FrozenModel, read_lines, validated
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import (
    Completion,
    FailureKind,
    Provider,
    ProviderError,
    ProviderKind,
    Request,
    Sampling,
    StopReason,
    Usage,
    first_answers,
    usual_sampling,
)


class _Usage(FrozenModel):
    input_tokens: NonNegativeInt | None = None
    output_tokens: NonNegativeInt | None = None


class _Error(FrozenModel):
    kind: FailureKind = "provider_error"
    reason: str
    message: str = ""
    status: int | None = None


class _ReplayLine(FrozenModel):  # keys a journal adds (latency, attempts, …) are left aside
    case_id: str
    replicate: NonNegativeInt
    text: str | None = None
    stop_reason: StopReason | Literal[""] | None = None
    usage: _Usage | None = None
    served_model: str | None = None
    request_id: str | None = None
    error: _Error | str | None = None


def sampling(model: Model) -> Sampling:
    """Return no settings: the answers are what they were."""
    return usual_sampling(model, refused=("temperature", "top_p", "seed"))


def check(model: Model) -> None:
    """Raise ConfigError unless the entry names its file, and nothing else."""
    extra = model.params.extra
    if set(extra) != {"file"} or not isinstance(extra["file"], str):
        raise ConfigError(f"replay model '{model.id}' in models.yaml needs exactly one param of its own: file: PATH")


class ReplayProvider:
    """Answers each call with its recorded line; a call without one fails with `not_recorded`."""

    def __init__(self, path: Path) -> None:
        lines = []
        for number, value in read_lines(path, torn_lines=True):
            line = validated(_ReplayLine, value, Path(f"{path}:{number}"))
            if line.text is None and line.error is None:
                raise ConfigError(f"{path}:{number}: neither text nor error")
            lines.append(((line.case_id, line.replicate), line))
        self._lines = first_answers(lines, lambda line: line.text is not None)

    async def complete(self, request: Request) -> Completion:
        """Return the recorded answer; raise ProviderError for a recorded failure or an absent line."""
        line = self._lines.get((request.case_id, request.replicate))
        if line is None:
            raise ProviderError("not_recorded", f"no recorded answer for {request.case_id} #{request.replicate}")
        if line.error is not None and line.text is None:
            if isinstance(line.error, str):
                raise ProviderError(line.error)
            raise ProviderError(line.error.reason, line.error.message, kind=line.error.kind, status=line.error.status)
        usage = line.usage or _Usage()
        return Completion(
            text=line.text or "",
            stop_reason=line.stop_reason or "stop",
            usage=Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens),
            served_model=line.served_model,
            request_id=line.request_id,
        )

    async def close(self) -> None:
        """Do nothing: nothing is held."""


def open_provider(model: Model, key: str | None, timeout_s: float) -> Provider:
    """Read the recorded answers into memory; raise ConfigError naming the line that is wrong."""
    file: Any = model.params.extra["file"]
    return ReplayProvider(Path(file))


KIND = ProviderKind(open=open_provider, sampling=sampling, free=True, check=check)
