"""Agreement of stored verdicts and scores with human labels, and the biases of scripted judges."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.calibration.agreement import label_results, probe_biases
from skill_evaluator.judges.calibration.labels import LabelledPair, Labels, ScoredItem
from skill_evaluator.judges.calibration.results import BiasResult, JudgeResult, LabelAgreement
from skill_evaluator.judges.judge_run import StoredScore, StoredVerdict

RNG = np.random.default_rng(7)
PEOPLE = RNG.integers(1, 6, 80).tolist()
KEEN = [score if chance > 0.1 else 3 for score, chance in zip(PEOPLE, RNG.random(80), strict=True)]
TIMID = [3 if chance > 0.4 else score for score, chance in zip(PEOPLE, RNG.random(80), strict=True)]
HALF = [1 + n % 2 for n in range(60)]


def labels_of(kind: type[LabelledPair | ScoredItem], **columns: Sequence[Any]) -> Labels:
    """Return labels with ids p0, p1, … from columns of values."""
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    return Labels(
        path=Path("labels.jsonl"), lines=[kind.model_validate({"id": f"p{n}", **row}) for n, row in enumerate(rows)]
    )


def verdict(n: int, order: int, winner: Any, **more: Any) -> StoredVerdict:
    return StoredVerdict.model_validate({"id": f"p{n}", "judge": "j", "order": order, "winner": winner, **more})


def result_of(humans: Sequence[Any], verdicts: Iterable[StoredVerdict], **columns: Sequence[Any]) -> JudgeResult:
    labels = labels_of(LabelledPair, human=humans, **columns)
    (result,) = label_results(labels, list(verdicts))
    return result


def bias_of(result: JudgeResult, name: str) -> BiasResult:
    return next(bias for bias in result.biases if bias.bias == name)


def test_verdict_of_a_pair_is_a_tie_if_the_orders_differ() -> None:
    orders = [(1, 1), (2, 2), (1, 2), (None, 2)]
    verdicts = [verdict(n, order, both[order - 1]) for n, both in enumerate(orders) for order in (1, 2)]
    (row,) = result_of([1, 2, 1, 2], verdicts).agreement
    assert (row.n, row.unusable, row.agreement.value) == (4, 1, 0.5)
    assert row.trust.kappa.value == pytest.approx((0.5 - 0.25) / (1 - 0.25))
    assert (row.accuracy.sensitivity.value, row.accuracy.specificity.value) == (0.5, 0.5)
    assert row.position is not None
    assert (row.position.flips.value, row.position.flips.n) == (pytest.approx(1 / 3), 3)
    assert [figure.value for figure in row.position.agreement] == [0.75, 0.75]


def test_criteria_have_labels_of_their_own() -> None:
    verdicts = [verdict(n, order, 1, criteria={"tone": human}) for n, human in enumerate(HALF) for order in (1, 2)]
    rows = result_of(HALF, verdicts, criteria=[{"tone": human} for human in HALF]).agreement
    assert [(row.criterion, row.trust.trusted) for row in rows] == [("overall", False), ("tone", True)]


def test_scripted_length_bias_is_found() -> None:
    humans = RNG.integers(1, 3, 60).tolist()
    verdicts = [verdict(n, order, longer, confidence=0.9) for n, longer in enumerate(HALF) for order in (1, 2)]
    texts = {f"output_{side}": ["word " * (1 + (longer == side)) for longer in HALF] for side in (1, 2)}
    result = result_of(humans, verdicts, **texts)
    length = bias_of(result, "length")
    assert (length.shift.value, length.present) == (pytest.approx(1 - np.mean(np.equal(humans, HALF))), True)
    confidence = result.agreement[0].confidence
    assert confidence is not None
    assert (confidence.right, confidence.wrong) == (pytest.approx(0.9), pytest.approx(0.9))


def test_scripted_self_preference_is_found_in_pairs_and_scores() -> None:
    verdicts = [verdict(n, order, 1, judge="gpt-4") for n in range(60) for order in (1, 2)]
    result = result_of(HALF, verdicts, model_1=["gpt-5"] * 60, model_2=["claude-5"] * 60)
    assert (bias_of(result, "self_preference").shift.value, bias_of(result, "self_preference").present) == (0.5, True)
    writers = ["gpt-5" if n % 2 else "claude-5" for n in range(80)]
    people = [min(score, 4) for score in PEOPLE]
    given = [score + (writer == "gpt-5") for score, writer in zip(people, writers, strict=True)]
    result = score_result(people, given, "gpt-5-mini", model=writers)
    assert (bias_of(result, "self_preference").shift.value, bias_of(result, "self_preference").present) == (0.25, True)


def test_scripted_noise_is_found_apart_from_flips() -> None:
    """Of 40 pairs 20 flip with the order. Of the 20 that were judged again, 5 have another verdict."""
    first = [verdict(n, 1, 1) for n in range(40)] + [verdict(n, 2, 1 + n % 2) for n in range(40)]
    again = [verdict(n, 1, 2 if n < 5 else 1, replicate=1) for n in range(20)]
    result = result_of(HALF[:40], [*again, *first])
    noise = bias_of(result, "noise")
    assert (noise.shift.value, noise.shift.n, noise.present) == (0.25, 20, True)
    assert result.agreement[0].position is not None
    assert result.agreement[0].position.flips.value == 0.5, "the first replicate counts"


def test_judge_without_a_usable_verdict_has_reason_and_example() -> None:
    result = result_of(HALF[:4], [verdict(n, order, None, text="Well. " * 99) for n in range(4) for order in (1, 2)])
    assert (result.agreement, result.biases) == ([], [])
    assert result.unusable is not None
    assert (result.unusable.unscored, result.unusable.example) == ({"wrong_format": 8}, ("Well. " * 99)[:400])
    unpaired = [verdict(n, order, None if order == 2 else 1) for n in range(4) for order in (1, 2)]
    result = result_of(HALF[:4], unpaired)
    assert (result.agreement, result.unusable and result.unusable.unscored) == ([], {"wrong_format": 4})


def score_result(people: Sequence[Any], scores: Sequence[int | None], judge: str = "j", **more: Any) -> JudgeResult:
    labels = labels_of(ScoredItem, scores=[{"clear": score} for score in people], **more)
    given = [StoredScore(id=f"p{n}", judge=judge, criterion="clear", score=score) for n, score in enumerate(scores)]
    (result,) = label_results(labels, given)
    return result


def score_row(people: Sequence[Any], scores: Sequence[int | None]) -> LabelAgreement:
    return score_result(people, scores).agreement[0]


@pytest.mark.parametrize(("scores", "trusted"), [(KEEN, True), (TIMID, False)])
def test_scores_have_the_figures_of_other_libraries(scores: list[int], trusted: bool) -> None:
    from scipy.stats import spearmanr
    from sklearn.metrics import cohen_kappa_score, recall_score

    row = score_row(PEOPLE, scores)
    assert row.trust.trusted is trusted
    assert row.trust.kappa.value == pytest.approx(cohen_kappa_score(scores, PEOPLE, weights="linear"))
    assert row.correlation is not None
    assert row.correlation.value == pytest.approx(spearmanr(scores, PEOPLE).statistic)
    assert row.agreement.value == np.mean(np.equal(scores, PEOPLE))
    high, judged = np.array(PEOPLE) > 3, np.array(scores) > 3
    assert row.accuracy.sensitivity.value == pytest.approx(recall_score(high, judged))
    assert row.accuracy.specificity.value == pytest.approx(recall_score(~high, ~judged))


def test_each_person_who_scored_an_item_counts_alike() -> None:
    from sklearn.metrics import cohen_kappa_score

    others = [score if n % 3 else 3 for n, score in enumerate(PEOPLE)]
    row = score_row(list(zip(PEOPLE, others, strict=True)), KEEN)
    twice = cohen_kappa_score(KEEN + KEEN, PEOPLE + others, weights="linear")
    assert (row.trust.kappa.value, row.trust.kappa.n) == (pytest.approx(twice), 80)


def test_scores_that_do_not_count_are_left_out_and_counted() -> None:
    row = score_row(PEOPLE[:20], [*KEEN[:18], None])
    assert (row.labels, row.n, row.unusable) == (20, 18, 1)


@pytest.mark.parametrize(
    ("label", "score", "source"), [(5, 3, r"a label in labels\.jsonl"), (3, 5, "a stored verdict of j")]
)
def test_score_above_the_scale_of_the_rubric_is_refused(label: int, score: int, source: str) -> None:
    labels = labels_of(ScoredItem, scores=[{"clear": label}])
    given = [StoredScore(id="p0", judge="j", criterion="clear", score=score)]
    with pytest.raises(JudgeError, match=f"{source} has the score 5 on criterion 'clear'; the rubric's highest is 3"):
        label_results(labels, given, scales={"clear": 3})


def test_probe_ignores_scores_on_a_criterion_that_is_not_judged() -> None:
    labels = labels_of(ScoredItem, scores=[{"tone": 2, "style": 3}], output=["A hall."])
    fields = {"judge": "j", "criterion": "tone"}
    verdicts = [StoredScore(id=name, score=score, **fields) for name, score in (("p0", 3), ("p0/verbosity", 5))]
    (bias,) = probe_biases(["verbosity"], labels, verdicts, {"tone": 5})
    assert (bias.criterion, bias.shift.value) == ("tone", 0.5)
