"""All that `judge calibrate` asks in one judging, and its answers → what judges are worth, and files that keep them.

Labelled pairs or outputs, planted pairs and the questions of the probes share one budget. The files are those of `judge
pairwise`, `judge score` and `judge regression`, so that `judge calibrate` measures them again without a call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.files import json_text, replace_blocks, replace_text
from skill_evaluator.judges.asking.criteria import NamedRubric
from skill_evaluator.judges.asking.items import JudgedItem, OutputItem
from skill_evaluator.judges.asking.questions import JudgePrompt, JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, JudgingHead
from skill_evaluator.judges.calibration.against_people import against_people, bias_of
from skill_evaluator.judges.calibration.detection import is_reported, judged_dimensions, measure
from skill_evaluator.judges.calibration.labels import Labels
from skill_evaluator.judges.calibration.planting import PlantedPair, PlantedSet
from skill_evaluator.judges.calibration.probes import Probed, load_probe, probes_of
from skill_evaluator.judges.calibration.results import ANY, BiasResult, JudgeCalibration, JudgedMode, JudgeResult
from skill_evaluator.judges.modes.findings import reduce_regressions
from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    JudgePreferences,
    PairItem,
    PairMatch,
    PairwiseResults,
    make_matches,
    reduce_matches,
    verdicts_of,
    write_verdicts,
)
from skill_evaluator.judges.modes.regression import JudgedPair, RegressionItem, pairs_of, regression_questions
from skill_evaluator.judges.modes.regression_results import (
    JudgeRegressions,
    RegressionResults,
    RulesResult,
    most_careful,
)
from skill_evaluator.judges.modes.scoring import (
    JudgeScores,
    ScoreQuestion,
    reduce_scores,
    score_questions,
    scores_of,
    write_scores,
)
from skill_evaluator.judges.modes.ship_rules import ShipRules, dimensions_of
from skill_evaluator.judges.statistics.bounded import rate
from skill_evaluator.judges.statistics.habits import shift
from skill_evaluator.library.rubrics import Criterion
from skill_evaluator.runner.schedule import Call, Replicate

PLANTED = "planted.jsonl"
REGRESSIONS = "regressions.json"
Values = Mapping[str, Mapping[str, float]]
"""By item and criterion what a judge says of the output that is changed, from 0 (the worst) to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAnswers:
    """What one judge answered, by call."""

    record: JudgeRecord
    answers: Mapping[Call, Replicate]
    declared_strong: bool
    replicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPart:
    """Questions of all modes about some items, and the prompts they are put by; any may be empty."""

    rubric: NamedRubric | None
    matches: Sequence[PairMatch]
    scores: Sequence[ScoreQuestion]
    pairs: Sequence[JudgedPair]
    questions: Sequence[JudgeQuestion]
    prompts: Sequence[JudgePrompt]

    @property
    def items(self) -> dict[str, str]:
        """The digest of each item by its id."""
        return {
            **{match.item.id: match.item.digest for match in self.matches},
            **{score.item.id: score.item.digest for score in self.scores},
            **{pair.id: pair.item.digest for pair in self.pairs},
        }

    @property
    def criteria(self) -> Sequence[Criterion]:
        """The criteria that the rubric asks about."""
        return () if self.rubric is None else self.rubric.criteria

    def preferences(self, judge: JudgeAnswers) -> JudgePreferences:
        """Return what a judge prefers in the pairs."""
        return reduce_matches(self.matches, self.criteria, judge.answers, judge.replicates, judge.record)

    def scores_by(self, judge: JudgeAnswers) -> JudgeScores:
        """Return the scores that a judge gives."""
        methods = {one.id: one.primary_method for one in self.criteria}
        return reduce_scores(self.scores, judge.answers, judge.replicates, judge.record, methods)

    def regressions(self, judge: JudgeAnswers) -> JudgeRegressions:
        """Return what a judge finds in the planted pairs."""
        strong = judge.declared_strong
        return reduce_regressions(
            self.pairs, judge.answers, judge.replicates, ShipRules(), judge.record, declared_strong=strong
        )

    def values(self, mode: JudgedMode, judge: JudgeAnswers) -> Values:
        """Return what a judge says of each item: the share of output 1, the scores, or how the candidate stands."""
        if mode == "pairwise":
            shares = {match.item: match.shares[OVERALL] for match in self.preferences(judge).matches}
            return {name: {OVERALL: share} for name, share in shares.items() if share is not None}
        if mode == "score":
            highest = {criterion.id: criterion.highest for criterion in self.criteria}
            return {
                item.id: {
                    name: (score - 1) / (highest[name] - 1) for name, score in item.scores.items() if score is not None
                }
                for item in self.scores_by(judge).items
            }
        standings = {}
        for pair in self.regressions(judge).pairs:
            dimensions = judged_dimensions(pair)
            better = any(one.verdict == "candidate_better" for one in dimensions.values())
            if dimensions:
                standings[pair.id] = {ANY: 0.0 if is_reported(dimensions, ANY) else 1.0 if better else 0.5}
        return standings


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationQuestions:
    """What judges were asked: `plain` about what is labelled or planted, `changed` about what the probes changed.

    `notes` say what the probes add to the calls.
    """

    labels: Labels
    rubric: NamedRubric | None
    planted: PlantedSet
    probed: Sequence[Probed]
    notes: Sequence[str]
    plain: AskedPart
    changed: AskedPart

    @property
    def questions(self) -> list[JudgeQuestion]:
        """All questions."""
        return [*self.plain.questions, *self.changed.questions]

    @property
    def prompts(self) -> list[JudgePrompt]:
        """The prompts they are put by, each once."""
        return list({prompt.identity.name: prompt for prompt in (*self.plain.prompts, *self.changed.prompts)}.values())


def calibration_questions(
    rubric: NamedRubric | None, labels: Labels, planted: PlantedSet, probes: Sequence[str], seed: int
) -> CalibrationQuestions:
    """Return all questions: by the rubric about pairs or outputs, about planted pairs, and those of the probes.

    Raise JudgeError for an item without what the rubric needs, and for a probe that nothing here can be tried with.
    """
    probed, notes = probes_of(probes, seed, rubric, labels, planted.pairs)
    items: list[JudgedItem] = [*planted.pairs]
    if rubric is not None:
        items += [one.item for one in labels.pairs.values()]
        items += [one.item for one in labels.scored.values()]
    return CalibrationQuestions(
        labels=labels,
        rubric=rubric,
        planted=planted,
        probed=probed,
        notes=notes,
        plain=_part(rubric, items, seed),
        changed=_part(rubric, [one.changed for one in probed], seed),
    )


def _part(rubric: NamedRubric | None, items: Sequence[JudgedItem], seed: int) -> AskedPart:
    questions: list[JudgeQuestion] = []
    prompts: list[JudgePrompt] = []
    matches, scores = list[PairMatch](), list[ScoreQuestion]()
    pairs = [item for item in items if isinstance(item, PairItem)]
    outputs = [item for item in items if isinstance(item, OutputItem)]
    if rubric is not None and pairs:
        matches, prompt = make_matches(rubric, pairs, seed)
        prompts.append(prompt)
        questions += [question for match in matches for question in match.questions]
    if rubric is not None and outputs:
        scores, used = score_questions(rubric, outputs, seed, reference=False)
        prompts += used
        questions += [score.question for score in scores]
    planted = [RegressionItem.model_validate(item.model_dump()) for item in items if isinstance(item, PlantedPair)]
    judged = pairs_of({item.id: item for item in planted}, (), "default", ())
    if judged:
        asked, prompt = regression_questions(judged, ShipRules(), seed)
        prompts.append(prompt)
        questions += asked
    return AskedPart(rubric=rubric, matches=matches, scores=scores, pairs=judged, questions=questions, prompts=prompts)


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
    plain, planted, held_out = asked.plain, asked.planted, asked.labels.held_out
    preferences = [plain.preferences(judge) for judge in judges if plain.matches]
    scores = [plain.scores_by(judge) for judge in judges if plain.scores]
    regressions = _results([plain.regressions(judge) for judge in judges], head)
    verdicts = [verdict for judged in preferences for verdict in verdicts_of(judged)]
    scored = [score for judged in scores for score in scores_of(judged)]
    scales = {one.id: one.highest for one in plain.criteria}
    parts = [
        *against_people(asked.labels, verdicts, scored, bar, scales, families),
        *(measure(planted.pairs, regressions, bar, planted.without_place) if planted.pairs else []),
    ]
    results = []
    for judge in judges:
        name = judge.record.model_id
        merged = JudgeResult(judge=name, record=judge.record)
        for part in (part for part in parts if part.judge == name):
            merged = merged.model_copy(update={key: getattr(part, key) for key in part.model_fields_set - {"judge"}})
        results.append(merged.model_copy(update={"biases": [*merged.biases, *_measure_probes(asked, judge)]}))
    return MeasuredAnswers(
        preferences=PairwiseResults(judging=head, judges=preferences),
        scores=scores,
        regressions=regressions,
        planted=planted,
        calibration=JudgeCalibration(
            bar=bar,
            judging=head,
            judges=results,
            held_out=against_people(held_out, verdicts, scored, bar, scales, families),
        ),
    )


def _measure_probes(asked: CalibrationQuestions, judge: JudgeAnswers) -> list[BiasResult]:
    """Return a row for each probe, mode and criterion, and one for each of its ways."""
    rows = []
    for bias, mode in dict.fromkeys((one.bias, one.mode) for one in asked.probed):
        mine = [one for one in asked.probed if (one.bias, one.mode) == (bias, mode)]
        plain, changed = asked.plain.values(mode, judge), asked.changed.values(mode, judge)
        for criterion in dict.fromkeys(name for said in plain.values() for name in said):
            rows += _rows(mine, bias, mode, criterion, plain, changed)
    return rows


def _rows(
    mine: Sequence[Probed], bias: str, mode: JudgedMode, criterion: str, plain: Values, changed: Values
) -> list[BiasResult]:
    both: dict[str, list[tuple[float, float]]] = {way: [] for way in load_probe(bias).ways}
    lost = 0
    for one in mine:
        before, after = plain.get(one.plain, {}).get(criterion), changed.get(one.changed.id, {}).get(criterion)
        if before is not None and after is not None:
            both[one.way].append((before, after) if one.side == 1 else (1.0 - before, 1.0 - after))
        lost += before is not None and after is None
    everything = [said for given in both.values() for said in given]
    ways = both.items() if sum(map(bool, both.values())) > 1 else ()
    return [
        bias_of(
            bias,
            mode,
            criterion,
            shift([before for before, _ in given], [after for _, after in given]),
            rate(sum(before != after for before, after in given), len(given)),
            way=way,
        ).model_copy(update={"lost": 0 if way else lost})
        for way, given in (("", everything), *ways)
        if given
    ]


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
