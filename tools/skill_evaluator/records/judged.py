"""What a judge says of a run's free text, as its record keeps it: apart from the metrics, and in no verdict."""

from collections.abc import Iterator

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from skill_evaluator.display import number
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Digest, Label, ModelId, Share


class JudgedCriterion(FrozenModel):
    """One criterion over the cases with a score: their mean on the scale from 1 to `highest`.

    `unscored` counts the judge's answers that gave none, by reason.
    """

    mean: float | None
    ci95: tuple[float, float] | None
    n: NonNegativeInt
    highest: PositiveInt
    unscored: dict[Label, NonNegativeInt] = {}


class JudgedField(FrozenModel):
    """One field. `mean` is of its criteria by their weights, from 0 (worst) to 1, over the `n` cases with every score.

    Each case is judged by its first answer, beside its document and its truth. `left_out` counts the cases whose answer
    could not be judged, by reason. `prompt` and `rubric_digest` are of what the judge was told.
    """

    rubric: Label
    rubric_digest: Digest
    prompt: Digest
    mean: Share | None
    ci95: tuple[float, float] | None
    n: NonNegativeInt
    criteria: dict[Label, JudgedCriterion]
    left_out: dict[Label, NonNegativeInt] = {}


class JudgedFields(FrozenModel):
    """The judge of a run, with the digest of its settings, and its scores by path of a field.

    `planned` calls of it are in no count of the run, nor is its cost, which is null if unknown.
    """

    judge: ModelId
    settings: Digest
    served_models: list[Label]
    planned: NonNegativeInt
    answered: NonNegativeInt
    cost_usd: NonNegativeFloat | None
    hit_rate: Share | None = Field(default=None, exclude_if=lambda rate: rate is None)
    fields: dict[str, JudgedField]


def judged_changes(before: JudgedFields | None, after: JudgedFields | None) -> Iterator[str]:
    """Yield for each field that two runs had judged how its mean moved, or why the two means cannot be compared.

    They can where judge, settings, rubric and prompt are the same.
    """
    if before is None or after is None:
        return
    for path, new in after.fields.items():
        old = before.fields.get(path)
        if old is None:
            continue
        parts = {
            "judge": before.judge == after.judge,
            "settings": before.settings == after.settings,
            "rubric": old.rubric_digest == new.rubric_digest,
            "prompt": old.prompt == new.prompt,
        }
        other = [name for name, same in parts.items() if not same]
        what = f"{path or 'the answer'} by the judge {after.judge} (no verdict rests on it)"
        if other:
            yield f"{what}: {number(new.mean)}; before it was judged with another {' and '.join(other)}"
        else:
            yield f"{what}: {number(old.mean)} → {number(new.mean)}, cases: {old.n} → {new.n}"
