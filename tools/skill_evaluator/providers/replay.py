"""Recorded answers instead of a model: JSON Lines of `{"case_id", "replicate", "text"}`, one line an answer.

Optional per line: `stop_reason`, `usage`, `served_model`, `request_id`, or `error` (a reason, or the object a journal
writes) for a recorded failure, whose text is absent or blank. A run's own `replicates.jsonl` is such a file. Of several
lines of one call the first answer counts, as in a journal.
"""

from functools import partial
from pathlib import Path
from typing import Any

from skill_evaluator.errors import ConfigError
from skill_evaluator.files import read_placed_lines, validated
from skill_evaluator.library.config import Model, Settings
from skill_evaluator.providers.answer_lines import AnswerLine, line_at
from skill_evaluator.providers.base import (
    Completion,
    Provider,
    ProviderError,
    ProviderKind,
    Request,
    first_answers,
    usual_sampling,
)


def check(model: Model) -> None:
    """Raise ConfigError unless the entry names its file, and nothing else."""
    extra = model.params.extra
    if set(extra) != {"file"} or not isinstance(extra["file"], str):
        raise ConfigError(f"replay model '{model.id}' in models.yaml needs exactly one param of its own: file: PATH")


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
KIND = ProviderKind(open=open_provider, sampling=sampling, free=True, check=check)
