"""Replay outputs recorded in JSON Lines of `{"case_id", "replicate", "text"}`, such as a run's `replicates.jsonl`."""

from functools import partial
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import FrozenModel, read_lines, validated
from skill_evaluator.identifiers import CaseId
from skill_evaluator.library.config import Model
from skill_evaluator.providers import base


class AnswerLine(FrozenModel):
    """One call with its output or its error. The error is a reason or a `Failure`."""

    model_config = ConfigDict(strict=True)

    case_id: CaseId
    replicate: NonNegativeInt
    text: str | None = None
    stop_reason: base.StopReason | Literal[""] | None = None
    usage: base.Usage | None = None
    served_model: base.Identifier = None
    request_id: base.Identifier = None
    fingerprint: base.Identifier = None
    reasoning: base.SideText = ""
    tool_call: base.SideText = ""
    error: base.Failure | base.Reason | None = None
    latency_s: NonNegativeFloat | None = 0.0
    attempts: PositiveInt = 1

    @model_validator(mode="after")
    def _require_text_or_error(self) -> Self:
        if self.text is None and self.error is None:
            raise ValueError("`text` or `error` is required")
        return self

    @property
    def failure(self) -> base.Failure | None:
        """The error of the call, or None if it has an output: an error beside a text that is not blank is ignored."""
        if self.error is None or (self.text or "").strip():
            return None
        return base.Failure(reason=self.error) if isinstance(self.error, str) else self.error

    @property
    def completion(self) -> base.Completion | None:
        """The output, or None if the call failed."""
        if self.failure is not None:
            return None
        return base.Completion(
            text=self.text or "",
            stop_reason=self.stop_reason or "stop",
            usage=self.usage or base.Usage(),
            served_model=self.served_model,
            request_id=self.request_id,
            fingerprint=self.fingerprint,
            reasoning=self.reasoning,
            tool_call=self.tool_call,
        )


def check(model: Model) -> None:
    """Raise ConfigError unless the model has one param: `file`, a text."""
    extra = model.params.extra
    if set(extra) != {"file"} or not isinstance(extra["file"], str):
        raise ConfigError(f"replay model '{model.id}' in models.yaml must have `params: {{file: PATH}}` only")


class ReplayProvider:
    """The provider of recorded outputs. It skips lines that are not JSON. Invalid keys in a line raise ConfigError."""

    def __init__(self, path: Path) -> None:
        self._lines: dict[tuple[str, int], AnswerLine] = {}
        for number, value in read_lines(path, ConfigError, torn_lines=True):
            line = validated(AnswerLine, value, Path(f"{path}:{number}"))
            call = line.case_id, line.replicate
            if call not in self._lines or self._lines[call].failure is not None:  # the first output counts
                self._lines[call] = line

    async def complete(self, request: base.Request) -> base.Completion:
        """Return the recorded output of a call. Raise ProviderError if the call is not recorded or failed."""
        line = self._lines.get((request.case_id, request.replicate))
        if line is None:
            raise base.ProviderError("not_recorded", f"no recorded output for {request.case_id} #{request.replicate}")
        if (failure := line.failure) is not None:
            raise base.ProviderError(failure.reason, failure.message, kind=failure.kind, status=failure.status)
        return line.completion or base.Completion(text="")

    async def close(self) -> None:
        """Do nothing, since there is nothing to release."""


sampling = partial(base.usual_sampling, refused=("temperature", "top_p", "seed"))  # recorded outputs do not change
KIND = base.ProviderKind(
    open=lambda model, key, settings: ReplayProvider(Path(str(model.params.extra["file"]))),
    sampling=sampling,
    free=True,
    check=check,
    accepts=lambda model: ("pdf", "image"),
)
