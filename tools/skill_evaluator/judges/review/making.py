"""What a judge is asked about → an item for people, who are asked the same; or a file of pairs, before any judge is."""

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from pydantic import ValidationError

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import first_problem, read_lines
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.modes.pairwise import OVERALL, PAIR, PairItem
from skill_evaluator.judges.modes.regression import JudgedPair, RegressionItem, pairs_of
from skill_evaluator.judges.review.items import ReviewItem, ReviewQuestion, ReviewReason, review_item
from skill_evaluator.library.rubrics import Criterion

_NO_DOUBT: tuple[ReviewReason, ...] = ("random",)


def scored_item(item: OutputItem, criteria: Sequence[Criterion], judging: str | None = None) -> ReviewItem:
    """Return the question what an output scores by each criterion, beside its source where that is not the input."""
    questions = [
        ReviewQuestion(
            name=criterion.id,
            text=f"{criterion.name}: {criterion.description}",
            levels={
                score: f"{level.label}: {level.description}" if (level := criterion.rubric.get(score)) else ""
                for score in range(1, criterion.highest + 1)
            },
        )
        for criterion in criteria
    ]
    beside = [text for text in (item.reference, item.source) if text and text != item.input]
    return review_item(
        "score",
        item.id,
        [item.output],
        questions,
        _NO_DOUBT,
        document=item.input,
        reference="\n\n".join(beside),
        judging=judging,
        stratum=item.stratum,
    )


def paired_item(
    item: PairItem, names: tuple[str, str], criteria: Sequence[Criterion] = (), judging: str | None = None
) -> ReviewItem:
    """Return the question which of two outputs is better: by each of several criteria, and overall.

    An item with more than two outputs has their places after its id, as their names may be those of models.
    """
    texts = [f"{criterion.name}: {criterion.description}" for criterion in criteria]
    questions = [ReviewQuestion(name=criterion.id, text=text) for criterion, text in zip(criteria, texts, strict=True)]
    overall = ReviewQuestion(name=OVERALL, text=texts[0] if len(texts) == 1 else "Which output is better?")
    places = [list(item.texts).index(name) + 1 for name in names]
    return review_item(
        "pairwise",
        item.id if tuple(item.texts) == PAIR else f"{item.id}/{places[0]}-{places[1]}",
        [item.texts[name] for name in names],
        [*(questions if len(questions) > 1 else []), overall],
        _NO_DOUBT,
        document=item.input,
        judging=judging,
        stratum=item.stratum,
    )


def regression_item(pair: JudgedPair, judging: str | None = None) -> ReviewItem:
    """Return the question whether the candidate is worse than the baseline, for each dimension."""
    return review_item(
        "regression",
        pair.id,
        [pair.outputs.baseline, pair.outputs.candidate],
        [ReviewQuestion(name=dimension.name, text=dimension.question) for dimension in pair.dimensions],
        _NO_DOUBT,
        document=pair.outputs.prompt,
        judging=judging,
        stratum=pair.stratum,
    )


def items_from(path: Path, dimensions: Sequence[str], preset: str) -> list[ReviewItem]:
    """Read a file as `judge pairwise` and `judge regression` read it, each line as its keys say.

    Raise JudgeError with file and line of what is wrong, and ConfigError for wrong dimensions.
    """
    items: list[ReviewItem] = []
    for number, value in read_lines(path, JudgeError):
        try:
            if isinstance(value, Mapping) and "baseline_output" in value:
                change = RegressionItem.model_validate(value)
                items += [regression_item(pair) for pair in pairs_of({change.id: change}, dimensions, preset, ())]
            else:
                outputs = PairItem.model_validate(value)
                items += [paired_item(outputs, names) for names in combinations(outputs.texts, 2)]
        except ValidationError as problem:
            raise JudgeError(f"{path}:{number}: {first_problem(problem)}") from None
    if not items:
        raise JudgeError(f"{path} is empty; it needs a JSON object on each line")
    return items


def sampled(items: Sequence[ReviewItem], count: int | None, seed: int) -> list[ReviewItem]:
    """Return so many items by chance, in their order; all without a count."""
    if count is None or count >= len(items):
        return list(items)
    chosen = sorted(random.Random(seed).sample(range(len(items)), count))  # noqa: S311 (no secret)
    return [items[place] for place in chosen]
