"""The record of a judge, and the lines of stored verdicts and scores."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt

from skill_evaluator.files import FrozenModel, StrictModel
from skill_evaluator.identifiers import Digest, Label, ModelId, Share
from skill_evaluator.judges.prompting.reading import UnscoredReason
from skill_evaluator.library.config import Price
from skill_evaluator.runner.journal import Run
from skill_evaluator.runner.prices import call_cost, hit_rate
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import rounded, total_or_none


def _refuse_booleans(value: object) -> object:
    if isinstance(value, bool):  # True equals 1 in Python
        raise ValueError("expected 1 or 2, not a boolean")
    return value


def _without_surrogates(text: object) -> object:
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text


Winner = Annotated[Literal[1, 2, "tie"], BeforeValidator(_refuse_booleans)]
Order = Annotated[Literal[1, 2], BeforeValidator(_refuse_booleans)]
ORDERS: tuple[Order, Order] = (1, 2)  # the number of the output that is shown first
Index = Annotated[int, Field(ge=0, strict=True)]
Level = Annotated[int, Field(ge=1, le=10, strict=True)]
JudgeText = Annotated[str, BeforeValidator(_without_surrogates)]
"""A text of a judge. JSON can contain half of a surrogate pair, which UTF-8 files cannot, so it is escaped."""
_MAX_EXAMPLE = 400  # characters


class StoredVerdict(StrictModel):
    """A line of verdicts.jsonl: a judge's verdict on a pair in one order, mapped back to the outputs."""

    id: Label = Field(min_length=1, description="that of the item")
    judge: Label = Field(min_length=1)
    order: Order = Field(description="1: output 1 was shown first; 2: output 2 was")
    winner: Winner | None = Field(description="the preferred output, or tie; null: the answer could not be parsed")
    replicate: Index = Field(default=0, description="further answers to the same request: 1, 2, and so on")
    confidence: Share | None = None
    criteria: dict[Label, Winner | None] = Field(default={}, description="the winner by each criterion")
    text: str | None = Field(default=None, description="the answer as it was given")


class StoredScore(StrictModel):
    """A line of scores.jsonl: a judge's score of an output on one criterion."""

    id: Label = Field(min_length=1, description="that of the item")
    judge: Label = Field(min_length=1)
    criterion: Label = Field(min_length=1)
    score: Level | None = Field(description="null: the answer could not be parsed")
    replicate: Index = Field(default=0, description="further answers to the same request: 1, 2, and so on")
    confidence: Share | None = None


StoredLine = StoredVerdict | StoredScore


class JudgeRecord(FrozenModel):
    """A judge and its calls; amounts are null if unknown. `hit_rate`: the share of cached input tokens."""

    model_id: ModelId
    provider: Label
    settings: Digest
    served_models: list[Label]
    planned: NonNegativeInt
    answered: NonNegativeInt
    input_tokens: NonNegativeInt | None
    output_tokens: NonNegativeInt | None
    cost_usd: float | None
    hit_rate: Share | None = Field(default=None, exclude_if=lambda rate: rate is None)
    stopped: Label | None = None


class NoUsableOutput(FrozenModel):
    """The reasons why no output of a judge counts, each with its count, and the beginning of one output."""

    unscored: dict[UnscoredReason, NonNegativeInt]
    example: JudgeText = ""


def no_usable_output(
    unscored: Mapping[UnscoredReason, int], expected: int, texts: Iterable[str]
) -> NoUsableOutput | None:
    """Describe why no output counts, with an example. Return None if one counts or none was expected."""
    if sum(unscored.values()) < expected or not expected:
        return None
    return NoUsableOutput(unscored=dict(unscored), example=next(iter(texts), "")[:_MAX_EXAMPLE])


def texts_of(answers: Iterable[Replicate]) -> Iterator[str]:
    """Yield the text of each completed call."""
    return (replicate.completion.text for replicate in answers if replicate.completion is not None)


def record_of(run: Run, answers: Mapping[Call, Replicate], price: Price | None, stopped: str | None) -> JudgeRecord:
    """Return the record of a judge, with the amounts of all its calls."""
    completions = [replicate.completion for replicate in answers.values() if replicate.completion is not None]
    usage = [completion.usage for completion in completions]
    inputs = total_or_none(one.input_tokens for one in usage)
    outputs = total_or_none(one.output_tokens for one in usage)
    return JudgeRecord(
        model_id=run.model.id,
        provider=run.model.provider,
        settings=run.manifest.digests["settings"],
        served_models=sorted({completion.served_model for completion in completions if completion.served_model}),
        planned=run.manifest.calls,
        answered=len(completions),
        input_tokens=None if inputs is None else int(inputs),
        output_tokens=None if outputs is None else int(outputs),
        cost_usd=rounded(total_or_none(call_cost(run.model, price, replicate) for replicate in answers.values())),
        hit_rate=hit_rate(usage),
        stopped=stopped,
    )
