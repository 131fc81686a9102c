"""`judge score`: items and criteria → questions, one an item and method; and the models of its results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, Share
from skill_evaluator.judges.asking.criteria import NamedRubric, criteria_text
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.asking.questions import (
    CONFIDENCE,
    TEXT,
    TEXTS,
    Form,
    JudgePrompt,
    JudgeQuestion,
    form_of,
    form_text,
    load_prompt,
    make_question,
    mark_of,
)
from skill_evaluator.judges.asking.reading import UnscoredReason
from skill_evaluator.judges.asking.results import JudgeRecord, JudgeText, JudgingHead
from skill_evaluator.judges.statistics.bounded import Figure
from skill_evaluator.library.config import JudgePanel
from skill_evaluator.library.rubrics import Criterion, MethodName

PROMPTS: Mapping[MethodName, str] = {"direct_scoring": "direct", "reference_based": "reference"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreQuestion:
    """A question with what it is about."""

    item: OutputItem
    criteria: Sequence[Criterion]
    question: JudgeQuestion

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that the judge is shown."""
        shown = (self.item.output, self.item.reference, self.item.source, self.item.input)
        return tuple(text for text in shown if text)


def score_questions(
    rubric: NamedRubric, items: Sequence[OutputItem], seed: int, *, reference: bool
) -> tuple[list[ScoreQuestion], list[JudgePrompt]]:
    """Return the questions with their prompts; with `reference` every criterion is scored beside a source.

    Raise JudgeError for an item without a source or reference where one is needed.
    """
    by_method: dict[MethodName, list[Criterion]] = {}
    for criterion in rubric.criteria:
        method: MethodName = "reference_based" if reference else criterion.primary_method
        by_method.setdefault(method, []).append(criterion)
    if "reference_based" in by_method:
        _refuse_without_source(items, by_method["reference_based"])
    prompts = {method: load_prompt(PROMPTS[method]) for method in by_method}
    slots = {
        method: {
            "criteria": criteria_text(rubric.rubric, criteria, prompts[method].mitigations, scored=True),
            "form": form_text(score_form(criteria)),
        }
        for method, criteria in by_method.items()
    }
    questions = [
        ScoreQuestion(
            item=item,
            criteria=criteria,
            question=make_question(
                f"{item.id}/{PROMPTS[method]}",
                prompts[method],
                slots[method],
                _texts(item, method),
                score_form(criteria)[0],
                mark_of(seed, item.digest),
            ),
        )
        for item in items
        for method, criteria in by_method.items()
    ]
    return questions, list(prompts.values())


def score_form(criteria: Sequence[Criterion]) -> Form:
    """Return the form of an answer; the order of its keys has the judge argue before it scores."""
    by_criterion = {
        criterion.id: form_of(
            {
                "evidence": TEXTS,
                "justification": TEXT,
                "score": (
                    {"type": "integer", "enum": list(range(1, criterion.highest + 1))},
                    f"a whole number from 1 to {criterion.highest}",
                ),
                "suggestion": TEXT,
                "confidence": CONFIDENCE,
            }
        )
        for criterion in criteria
    }
    return form_of({"criteria": form_of(by_criterion)})


def _texts(item: OutputItem, method: MethodName) -> dict[str, str]:
    texts = {"input": item.input, "output": item.output}
    if method == "reference_based":
        shown_once = "" if item.source == item.input else item.input
        return {**texts, "input": shown_once, "source": item.source, "reference": item.reference}
    return texts


def _refuse_without_source(items: Sequence[OutputItem], criteria: Sequence[Criterion]) -> None:
    bare = next((item for item in items if not item.source and not item.reference), None)
    if bare is not None:
        raise JudgeError(
            f"'{criteria[0].id}' is scored beside a source or a right answer, and item '{bare.id}' has neither; "
            'give it "source" or "reference"'
        )


RESULTS_VERSION = 1


class Judgement(FrozenModel):
    """What a judge wrote on one criterion of an item. Without a score `unscored` says why; it is never read as 1.

    `quotes`: how many pieces of the evidence were found in the texts.
    """

    criterion: Label
    replicate: NonNegativeInt
    evidence: list[JudgeText] = []
    justification: JudgeText = ""
    score: PositiveInt | None = None
    suggestion: JudgeText = ""
    confidence: Share | None = None
    quotes: NonNegativeInt = 0
    unscored: UnscoredReason | None = None
    detail: JudgeText = ""


class ItemSummary(FrozenModel):
    """One item with its scores by criterion.

    `summary` is the weighted mean of the scores from 0 (worst) to 1 (best); null where a criterion has none.
    """

    id: Label
    stratum: Label
    summary: Share | None
    scores: dict[Label, float | None]


class ItemScores(ItemSummary):
    """One item by one judge: the mean scores of its replicates, null without any."""

    judgements: list[Judgement]


class CriterionScores(FrozenModel):
    """One criterion over all items, which are the units of the intervals.

    `score` is on the scale 1 to `highest`, `normalised` from 0 to 1. `counts`: judgements by score. `unsure`: those
    below the criterion's threshold of confidence. `quoted`: share of them with a quote that was found. `length`: how
    scores rise with the length of the output (Spearman). `repeats`: how often two replicates agree.
    """

    criterion: Label
    method: MethodName
    highest: PositiveInt
    weight: PositiveFloat
    score: Figure
    normalised: Figure
    counts: dict[int, NonNegativeInt]
    unscored: dict[UnscoredReason, NonNegativeInt]
    confidence: Figure
    unsure: NonNegativeInt
    quoted: Figure
    length: Figure
    repeats: Figure


class JudgeScores(FrozenModel):
    """One judge; `summary` over the items that have a score on every criterion, and the same by stratum."""

    judge: JudgeRecord
    summary: Figure
    strata: dict[Label, Figure]
    criteria: list[CriterionScores]
    items: list[ItemScores]


class PanelItem(ItemSummary):
    """What all judges together say of an item; `spread`: by criterion, the highest score less the lowest.

    Null where no judge gave a score, and a spread also where only one did.
    """

    spread: dict[Label, float | None]


class PanelCriterion(FrozenModel):
    """One criterion: `disputed` counts the items on which judges are a level of the scale apart, or more.

    `agreement` is Krippendorff's α of the judges, with squared differences of scores.
    """

    criterion: Label
    score: Figure
    normalised: Figure
    disputed: NonNegativeInt
    agreement: Figure


class PanelScores(FrozenModel):
    """Several judges as one; `scores` says how theirs are reduced, `summary` is over items as that of a judge."""

    policy: JudgePanel
    summary: Figure
    criteria: list[PanelCriterion]
    items: list[PanelItem]


class ScoreResults(FrozenModel):
    """The file. `left_out`: by id, why an output could not be judged at all. No figure here is about people.

    `panel` is null for a single judge.
    """

    results_version: int = RESULTS_VERSION
    judging: JudgingHead
    left_out: dict[str, str] = {}
    judges: list[JudgeScores]
    panel: PanelScores | None = None
