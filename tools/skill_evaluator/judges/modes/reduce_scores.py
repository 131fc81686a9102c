"""Answers of one judge → judgements → scores of items → summaries with intervals, in which the item is the unit.

Every criterion is read by itself: a score off its scale costs no other. A score without evidence and justification is
none.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from skill_evaluator.files import replace_blocks
from skill_evaluator.judges.asking.reading import Unscored, is_number, read_criteria, read_grounds, text_of
from skill_evaluator.judges.asking.results import JudgeRecord, StoredScore
from skill_evaluator.judges.modes.scoring import CriterionScores, ItemScores, Judgement, JudgeScores, ScoreQuestion
from skill_evaluator.judges.statistics.agreement import spearman
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.judges.statistics.habits import repeatability
from skill_evaluator.library.rubrics import Criterion, MethodName
from skill_evaluator.runner.schedule import Call, Replicate
from skill_evaluator.stats import mean_or_none, rounded

SCORES = "scores.jsonl"


def read_scores(
    answer: str | Unscored, criteria: Sequence[Criterion], texts: Sequence[str], replicate: int = 0
) -> list[Judgement]:
    """Return what an answer says of each criterion; `texts` are those that the judge was shown."""
    written = read_criteria(answer, [criterion.id for criterion in criteria], texts)
    judgements = []
    for criterion in criteria:
        read = _read(written[criterion.id], criterion, texts)
        said = {"unscored": read.reason, "detail": read.detail} if isinstance(read, Unscored) else read
        judgements.append(Judgement(criterion=criterion.id, replicate=replicate, **said))
    return judgements


def _read(
    written: Mapping[str, Any] | Unscored, criterion: Criterion, texts: Sequence[str]
) -> dict[str, Any] | Unscored:
    if isinstance(written, Unscored):
        return written
    score, suggestion = written.get("score"), written.get("suggestion")
    if not is_number(score) or score not in range(1, criterion.highest + 1):
        detail = f"score {score!r} is not on the scale 1 to {criterion.highest}"
        return Unscored(reason="off_scale", detail=detail[:200])
    grounds = read_grounds(written, "score", ["evidence"], criterion, texts)
    if isinstance(grounds, Unscored):
        return grounds
    return {**grounds, "score": int(score), "suggestion": suggestion.strip() if isinstance(suggestion, str) else ""}


def reduce_scores(
    questions: Sequence[ScoreQuestion],
    answers: Mapping[Call, Replicate],
    replicates: int,
    judge: JudgeRecord,
    methods: Mapping[str, MethodName],
) -> JudgeScores:
    """Read and sum up what one judge answered; `methods`: by criterion, how it was scored."""
    judgements: dict[str, list[Judgement]] = defaultdict(list)
    for asked in questions:
        for replicate in range(replicates):
            answer = text_of(answers.get(Call(asked.question.case_id, replicate)))
            judgements[asked.item.id] += read_scores(answer, asked.criteria, asked.texts, replicate)
    criteria = list({one.id: one for asked in questions for one in asked.criteria}.values())
    outputs = {asked.item.id: asked.item for asked in questions}
    items = [_item(item.id, item.stratum, judgements[item.id], criteria) for item in outputs.values()]
    lengths = {item.id: len(item.output) for item in outputs.values()}
    strata = dict.fromkeys(item.stratum for item in items)
    return JudgeScores(
        judge=judge,
        summary=mean_within(_summaries(items)),
        strata={name: mean_within(_summaries([item for item in items if item.stratum == name])) for name in strata},
        criteria=[_criterion(criterion, methods[criterion.id], items, lengths) for criterion in criteria],
        items=items,
    )


def _item(name: str, stratum: str, judgements: Sequence[Judgement], criteria: Sequence[Criterion]) -> ItemScores:
    scores = {
        criterion.id: mean_or_none(
            [one.score for one in judgements if one.criterion == criterion.id and one.score is not None]
        )
        for criterion in criteria
    }
    return ItemScores(
        id=name,
        stratum=stratum,
        summary=weighted_summary(scores, criteria),
        scores={criterion: rounded(score) for criterion, score in scores.items()},
        judgements=list(judgements),
    )


def weighted_summary(scores: Mapping[str, float | None], criteria: Sequence[Criterion]) -> float | None:
    """Return the mean of scores from 0 to 1 by the weights of their criteria; None where a criterion has none."""
    shares = []
    for criterion in criteria:
        score = scores[criterion.id]
        if score is None:
            return None
        shares.append((criterion.weight, (score - 1) / (criterion.highest - 1)))
    total = sum(weight for weight, _ in shares)
    return rounded(min(1.0, sum(weight * share for weight, share in shares) / total))


def _summaries(items: Sequence[ItemScores]) -> list[float]:
    return [item.summary for item in items if item.summary is not None]


def _criterion(
    criterion: Criterion, method: MethodName, items: Sequence[ItemScores], lengths: Mapping[str, int]
) -> CriterionScores:
    scored = [(item.id, score) for item in items if (score := item.scores[criterion.id]) is not None]
    values = [score for _, score in scored]
    mine = {item.id: [one for one in item.judgements if one.criterion == criterion.id] for item in items}
    judgements = [one for given in mine.values() for one in given]
    sure = {name: [one.confidence for one in given if one.confidence is not None] for name, given in mine.items()}
    quoted = {name: [one.quotes > 0 for one in given if one.score is not None] for name, given in mine.items()}
    return CriterionScores(
        criterion=criterion.id,
        method=method,
        highest=criterion.highest,
        weight=criterion.weight,
        score=mean_within(values, 1.0, float(criterion.highest)),
        normalised=mean_within([(value - 1) / (criterion.highest - 1) for value in values]),
        counts=dict(sorted(Counter(one.score for one in judgements if one.score is not None).items())),
        unscored=dict(Counter(one.unscored for one in judgements if one.unscored is not None)),
        confidence=mean_within([fmean(given) for given in sure.values() if given]),
        unsure=sum(share < criterion.confidence_threshold for given in sure.values() for share in given),
        quoted=mean_within([fmean(given) for given in quoted.values() if given]),
        length=spearman([lengths[name] for name, _ in scored], values),
        repeats=repeatability([[one.score for one in given] for given in mine.values()]),
    )


def scores_of(judge: JudgeScores) -> Iterator[StoredScore]:
    """Yield the score of every answer by each criterion, in the form that `judge calibrate` reads."""
    for item in judge.items:
        for one in item.judgements:
            if one.unscored != "not_answered":  # nothing was said, which is no score
                yield StoredScore(
                    id=item.id,
                    judge=judge.judge.model_id,
                    criterion=one.criterion,
                    score=one.score,
                    replicate=one.replicate,
                    confidence=one.confidence,
                )


def write_scores(folder: Path, judges: Iterable[JudgeScores]) -> None:
    """Write scores.jsonl, which says with people's scores what the judges are worth; raise StorageError."""
    scores = (score for judge in judges for score in scores_of(judge))
    replace_blocks(folder / SCORES, (f"{score.model_dump_json()}\n" for score in scores))
