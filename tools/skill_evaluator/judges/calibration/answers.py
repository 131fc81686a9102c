"""What judges answered about labelled, scored and planted items → what they are worth, and the files that keep it.

The files are those of `judge pairwise` and `judge regression`, so that `judge calibrate` measures them again, without a
call, or corrects a batch with them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from skill_evaluator.files import json_text, replace_blocks, replace_text
from skill_evaluator.judges.asking.results import JudgeRecord, JudgingHead
from skill_evaluator.judges.calibration.biases import JudgedMode
from skill_evaluator.judges.calibration.calibrating import calibrate
from skill_evaluator.judges.calibration.files import held_out_part, judged_by
from skill_evaluator.judges.calibration.judge_results import JudgeCalibration, JudgeResult
from skill_evaluator.judges.calibration.measuring import measure
from skill_evaluator.judges.calibration.planting import PlantedSet
from skill_evaluator.judges.calibration.probes import (
    Values,
    levels_of,
    measure_probes,
    shares_of,
    standings_of,
)
from skill_evaluator.judges.calibration.questions import AskedPart, CalibrationQuestions
from skill_evaluator.judges.calibration.scored import calibrate_scores
from skill_evaluator.judges.modes.pairwise import JudgePreferences, PairwiseResults
from skill_evaluator.judges.modes.reduce_pairs import reduce_matches, verdicts_of, write_verdicts
from skill_evaluator.judges.modes.reduce_regressions import reduce_regressions
from skill_evaluator.judges.modes.reduce_scores import reduce_scores, scores_of, write_scores
from skill_evaluator.judges.modes.regression import JudgedPair
from skill_evaluator.judges.modes.regression_results import (
    JudgeRegressions,
    RegressionResults,
    RulesResult,
    most_careful,
)
from skill_evaluator.judges.modes.scoring import JudgeScores
from skill_evaluator.judges.modes.ship_rules import ShipRules, dimensions_of
from skill_evaluator.runner.schedule import Call, Replicate

PLANTED = "planted.jsonl"
REGRESSIONS = "regressions.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAnswers:
    """What one judge answered, by call."""

    record: JudgeRecord
    answers: Mapping[Call, Replicate]
    declared_strong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAnswers:
    """The answers as the other modes have them, and what the judges are worth by them."""

    preferences: PairwiseResults
    scores: Sequence[JudgeScores]
    regressions: RegressionResults
    planted: PlantedSet
    calibration: JudgeCalibration

    def write(self, folder: Path) -> None:
        """Write verdicts, scores, planted pairs and what was said of them, as far as asked; raise StorageError."""
        if self.preferences.judges:
            write_verdicts(folder, self.preferences)
        if self.scores:
            write_scores(folder, self.scores)
        if self.planted.pairs:
            replace_blocks(folder / PLANTED, (f"{pair.model_dump_json()}\n" for pair in self.planted.pairs))
            replace_text(folder / REGRESSIONS, json_text(self.regressions.model_dump(mode="json")))


def measured_answers(
    asked: CalibrationQuestions,
    judges: Sequence[JudgeAnswers],
    head: JudgingHead,
    bar: float,
    families: Mapping[str, str],
) -> MeasuredAnswers:
    """Read all answers and measure every judge; `bar` is that of trust, `families` those of models.yaml by id."""
    plain, planted = asked.plain, asked.planted
    preferences = [_preferences(asked, plain, judge, head) for judge in judges if plain.matches]
    scores = [_scores(asked, plain, judge, head) for judge in judges if plain.scores]
    regressions = _results([_regressions(plain.pairs, judge, judge.answers, head) for judge in judges], head)
    verdicts = [verdict for judged in preferences for verdict in verdicts_of(judged)]
    scored = [score for judged in scores for score in scores_of(judged)]
    scales = {} if asked.rubric is None else {one.id: one.highest for one in asked.rubric.criteria}
    held_out = [
        *calibrate(judged_by(held_out_part(asked.labelled), verdicts), bar, families),
        *calibrate_scores(held_out_part(asked.scored), scored, bar, scales, families),
    ]
    parts = [
        *calibrate(judged_by(asked.labelled, verdicts), bar, families),
        *calibrate_scores(asked.scored, scored, bar, scales, families),
        *(measure(planted.pairs, regressions, bar, planted.without_place) if planted.pairs else []),
    ]
    results = []
    for judge in judges:
        name = judge.record.model_id
        merged = JudgeResult(judge=name, record=judge.record)
        for part in (part for part in parts if part.judge == name):
            merged = merged.model_copy(update={key: getattr(part, key) for key in part.model_fields_set - {"judge"}})
        probed = measure_probes(asked.probes.probed, partial(_said, asked, judge, head))
        results.append(merged.model_copy(update={"biases": [*merged.biases, *probed]}))
    return MeasuredAnswers(
        preferences=PairwiseResults(judging=head, judges=preferences),
        scores=scores,
        regressions=regressions,
        planted=planted,
        calibration=JudgeCalibration(bar=bar, judging=head, judges=results, held_out=held_out),
    )


def _said(
    asked: CalibrationQuestions, judge: JudgeAnswers, head: JudgingHead, mode: JudgedMode
) -> tuple[Values, Values]:
    """Return what a judge says without the change of a probe, and with it."""
    plain, changed = asked.plain, asked.changed
    if mode == "pairwise":
        without, with_it = (shares_of(_preferences(asked, part, judge, head)) for part in (plain, changed))
    elif mode == "score":
        without, with_it = (levels_of(_scores(asked, part, judge, head)) for part in (plain, changed))
    else:
        without, with_it = (
            standings_of(_regressions(part.pairs, judge, judge.answers, head)) for part in (plain, changed)
        )
    return without, with_it


def _preferences(
    asked: CalibrationQuestions, part: AskedPart, judge: JudgeAnswers, head: JudgingHead
) -> JudgePreferences:
    criteria = () if asked.rubric is None else asked.rubric.criteria
    return reduce_matches(part.matches, criteria, judge.answers, head.replicates, judge.record)


def _scores(asked: CalibrationQuestions, part: AskedPart, judge: JudgeAnswers, head: JudgingHead) -> JudgeScores:
    methods = {} if asked.rubric is None else {one.id: one.primary_method for one in asked.rubric.criteria}
    return reduce_scores(part.scores, judge.answers, head.replicates, judge.record, methods)


def _regressions(
    pairs: Sequence[JudgedPair], judge: JudgeAnswers, answers: Mapping[Call, Replicate], head: JudgingHead
) -> JudgeRegressions:
    return reduce_regressions(
        pairs, answers, head.replicates, ShipRules(), judge.record, declared_strong=judge.declared_strong
    )


def _results(judges: Sequence[JudgeRegressions], head: JudgingHead) -> RegressionResults:
    rules = ShipRules()
    return RegressionResults(
        judging=head,
        rules=RulesResult(
            one_low=rules.one_low,
            high_stakes=rules.high_stakes,
            blocking=[dimension.name for dimension in dimensions_of() if dimension.blocking],
        ),
        ship_decision=most_careful([judge.ship_decision for judge in judges]),
        judges=list(judges),
    )
