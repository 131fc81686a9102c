"""`judge score`: make a question for each item and method, read the scores, and compute their figures."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from skill_evaluator.errors import JudgeError
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Label, Share
from skill_evaluator.judges.judge_run import JudgeCalls, JudgeText, StoredScore
from skill_evaluator.judges.modes.results import JudgeFigures, Judgement, ModeResults
from skill_evaluator.judges.prompting.criteria import NamedRubric, criteria_text
from skill_evaluator.judges.prompting.questions import Form, OutputItem, load_prompt, mark_of
from skill_evaluator.judges.prompting.reading import Unscored, UnscoredReason, read_criteria, read_judgement
from skill_evaluator.judges.statistics import Estimate, mean_within, repeatability, spearman
from skill_evaluator.library.rubrics import Criterion, MethodName
from skill_evaluator.providers.base import Request
from skill_evaluator.stats import by_key, mean_or_none, rounded

PROMPTS: Mapping[MethodName, str] = {"direct_scoring": "direct", "reference_based": "reference"}


def score_questions(rubric: NamedRubric, items: Sequence[OutputItem], seed: int) -> list[Request]:
    """Return a question for each method and item, grouped by method, so that vendors can cache the instructions.

    Raise JudgeError if a criterion is reference-based and an item has neither source nor reference.
    """
    by_method = by_key((one.primary_method, one) for one in rubric.criteria)
    unsourced_id = next((item.id for item in items if not item.source and not item.reference), None)
    if unsourced_id is not None and "reference_based" in by_method:
        raise JudgeError(
            f"criterion '{by_method['reference_based'][0].id}' requires a source or a reference: add \"source\" or "
            f"\"reference\" to item '{unsourced_id}'"
        )
    questions = []
    for method, criteria in by_method.items():
        prompt, form = load_prompt(PROMPTS[method]), score_form(criteria)
        instructions = {"criteria": criteria_text(rubric.rubric, criteria, prompt.mitigations, scored=True)}
        for item in items:
            texts = {"input": item.input, "output": item.output, "source": item.source, "reference": item.reference}
            if method == "reference_based" and item.source == item.input:
                texts["input"] = ""  # the source already shows it
            case_id, mark = f"{item.id}/{PROMPTS[method]}", mark_of(seed, item.digest)
            questions.append(prompt.question(case_id, instructions, texts, form, mark))
    return questions


def prompts_of(criteria: Sequence[Criterion]) -> list[str]:
    """Return the names of the prompts that judge these criteria."""
    return list(dict.fromkeys(PROMPTS[criterion.primary_method] for criterion in criteria))


def score_form(criteria: Sequence[Criterion]) -> Form:
    """Return the form of a judge's output: evidence, justification, score, suggestion and confidence by criterion."""
    by_criterion = {}
    for criterion in criteria:
        schema = {"type": "integer", "enum": list(range(1, criterion.highest + 1))}
        by_criterion[criterion.id] = Form.object_of(
            {
                "evidence": Form.list_of(Form.text()),
                "justification": Form.text(),
                "score": Form(schema, f"a whole number from 1 to {criterion.highest}"),
                "suggestion": Form.text(),
                "confidence": Form.confidence(),
            }
        )
    return Form.object_of({"criteria": Form.object_of(by_criterion)})


class ScoreJudgement(Judgement):
    """A judge's score of an item on one criterion; `score` is null if it does not count."""

    criterion: Label
    replicate: NonNegativeInt
    score: PositiveInt | None = None
    suggestion: JudgeText = ""


class ItemScores(FrozenModel):
    """The mean scores of an item by criterion; `summary` is their weighted mean from 0 (worst) to 1 (best)."""

    id: Label
    stratum: Label
    summary: Share | None
    scores: dict[Label, float | None]
    judgements: list[ScoreJudgement]


class CriterionScores(FrozenModel):
    """A judge's figures on one criterion. Estimates are over items, counts are of judgements.

    `score` is the mean score, from 1 to `highest`. `unsure` counts the judgements below the criterion's confidence
    threshold. `quoted` is the share of judgements with a quotation. `length` is the correlation of score and output
    length. `repeats` is the share of pairs of replicates with equal scores.
    """

    criterion: Label
    method: MethodName
    highest: PositiveInt
    weight: PositiveFloat
    score: Estimate
    counts: dict[int, NonNegativeInt]
    unscored: dict[UnscoredReason, NonNegativeInt]
    confidence: Estimate
    unsure: NonNegativeInt
    quoted: Estimate
    length: Estimate
    repeats: Estimate


class JudgeScores(JudgeFigures):
    """One judge's scores. `summary`: the mean of the items scored on every criterion; `strata`: the same by stratum."""

    summary: Estimate
    strata: dict[Label, Estimate]
    criteria: list[CriterionScores]
    items: list[ItemScores]


class ScoreResults(ModeResults):
    """The results of `judge score`."""

    judges: list[JudgeScores]


SCORES = "scores.jsonl"


def read_scores(
    answer: str | Unscored, criteria: Sequence[Criterion], texts: Sequence[str], replicate: int = 0
) -> list[ScoreJudgement]:
    """Return the judgement on each criterion from a judge's output; `texts` were shown to the judge."""
    written = read_criteria(answer, [criterion.id for criterion in criteria], texts)
    judgements = []
    for criterion in criteria:
        scale = range(1, criterion.highest + 1)
        fields = read_judgement(written[criterion.id], "score", scale, ["evidence"], criterion, texts)
        judgements.append(ScoreJudgement(**{**fields, "criterion": criterion.id, "replicate": replicate}))
    return judgements


def reduce_scores(outputs: Sequence[OutputItem], calls: JudgeCalls, criteria: Sequence[Criterion]) -> JudgeScores:
    """Read one judge's scores of the outputs, and compute the figures of each criterion."""
    by_method = by_key((criterion.primary_method, criterion) for criterion in criteria)
    criteria = [criterion for group in by_method.values() for criterion in group]
    items = []
    for output in outputs:
        judgements = list[ScoreJudgement]()
        texts = [text for text in (output.output, output.reference, output.source, output.input) if text]
        for method, of_method in by_method.items():
            for replicate in range(calls.replicates):
                answer = calls.output(f"{output.id}/{PROMPTS[method]}", replicate)
                judgements += read_scores(answer, of_method, texts, replicate)
        items.append(_item(output, judgements, criteria))
    all_judgements = [one for item in items for one in item.judgements]
    unusable = calls.unusable([one.unscored for one in all_judgements])
    lengths = [len(output.output) for output in outputs]
    by_stratum = by_key((item.stratum, item.summary) for item in items if item.summary is not None)
    return JudgeScores(
        judge=calls.record,
        strata={name: mean_within(summaries) for name, summaries in by_stratum.items()},
        summary=mean_within([item.summary for item in items if item.summary is not None]),
        criteria=[] if unusable else [_criterion(criterion, items, lengths) for criterion in criteria],
        unusable=unusable,
        items=items,
    )


def _item(item: OutputItem, judgements: Sequence[ScoreJudgement], criteria: Collection[Criterion]) -> ItemScores:
    scores_by_criterion = by_key((one.criterion, one.score) for one in judgements if one.score is not None)
    scores = {criterion.id: mean_or_none(scores_by_criterion.get(criterion.id, [])) for criterion in criteria}
    return ItemScores(
        id=item.id,
        stratum=item.stratum,
        summary=weighted_summary(scores, criteria),
        scores={criterion: rounded(score) for criterion, score in scores.items()},
        judgements=list(judgements),
    )


def weighted_summary(scores: Mapping[str, float | None], criteria: Collection[Criterion]) -> float | None:
    """Return the weighted mean of the scores, from 0 to 1. Return None if a criterion has no score."""
    shares = []
    for criterion in criteria:
        score = scores[criterion.id]
        if score is None:
            return None
        shares.append(criterion.weight * (score - 1) / (criterion.highest - 1))
    return rounded(min(1.0, sum(shares) / sum(criterion.weight for criterion in criteria)))


def _criterion(criterion: Criterion, items: Sequence[ItemScores], lengths: Sequence[int]) -> CriterionScores:
    by_item = [[one for one in item.judgements if one.criterion == criterion.id] for item in items]
    judgements = [one for group in by_item for one in group]
    scored = [group for each in by_item if (group := [one for one in each if one.score is not None])]
    sizes = [size for size, item in zip(lengths, items, strict=True) if item.scores[criterion.id] is not None]
    values = [score for item in items if (score := item.scores[criterion.id]) is not None]
    return CriterionScores(
        criterion=criterion.id,
        method=criterion.primary_method,
        highest=criterion.highest,
        weight=criterion.weight,
        score=mean_within(values, 1.0, float(criterion.highest)),
        counts=dict(sorted(Counter(one.score for one in judgements if one.score is not None).items())),
        unscored=dict(Counter(one.unscored for one in judgements if one.unscored is not None)),
        confidence=mean_within([fmean(one.confidence or 0.0 for one in group) for group in scored]),
        unsure=sum((one.confidence or 0.0) < criterion.confidence_threshold for group in scored for one in group),
        quoted=mean_within([fmean(one.quotes > 0 for one in group) for group in scored]),
        length=spearman(sizes, values),
        repeats=repeatability([[one.score for one in group] for group in by_item]),
    )


def scores_of(judge: JudgeScores) -> Iterator[StoredScore]:
    """Yield the lines of scores.jsonl, one per output, criterion and replicate. Skip unanswered calls."""
    for item in judge.items:
        for judgement in item.judgements:
            if judgement.unscored != "not_answered":
                yield StoredScore.view(judgement, id=item.id, judge=judge.judge.model_id)
