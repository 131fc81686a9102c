"""What judges are asked to be calibrated: what people labelled or scored, what code planted, and probes of all that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skill_evaluator.judges.asking.criteria import NamedRubric
from skill_evaluator.judges.asking.items import OutputItem
from skill_evaluator.judges.asking.questions import JudgePrompt, JudgeQuestion
from skill_evaluator.judges.calibration.files import LabelledPair, ScoredItem
from skill_evaluator.judges.calibration.planting import PlantedPair, PlantedSet
from skill_evaluator.judges.calibration.probes import Probes, probes_of
from skill_evaluator.judges.modes.pairwise import PairItem, PairMatch, make_matches
from skill_evaluator.judges.modes.regression import JudgedPair, RegressionItem, pairs_of, regression_questions
from skill_evaluator.judges.modes.scoring import ScoreQuestion, score_questions
from skill_evaluator.judges.modes.ship_rules import ShipRules


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPart:
    """Questions of all modes about some items, and the prompts they are put by; any may be empty."""

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
            **{pair.id: pair.digest for pair in self.pairs},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationQuestions:
    """What judges were asked: `plain` about what is labelled, scored or planted, `changed` what the probes changed."""

    labelled: Mapping[str, LabelledPair]
    scored: Mapping[str, ScoredItem]
    rubric: NamedRubric | None
    planted: PlantedSet
    probes: Probes
    plain: AskedPart
    changed: AskedPart
    questions: Sequence[JudgeQuestion]
    prompts: Sequence[JudgePrompt]


def calibration_questions(
    rubric: NamedRubric | None,
    labelled: Mapping[str, LabelledPair],
    scored: Mapping[str, ScoredItem],
    planted: PlantedSet,
    probes: Sequence[str],
    seed: int,
) -> CalibrationQuestions:
    """Return all questions: by the rubric about pairs or outputs, about planted pairs, and those of the probes.

    Raise JudgeError for an item without what the rubric needs, and for a probe that nothing here can be tried with.
    """
    pairs = (
        [PairItem.model_validate(pair.model_dump(exclude_none=True)) for pair in labelled.values()] if rubric else []
    )
    outputs = [OutputItem.model_validate(item.model_dump(exclude_none=True)) for item in scored.values()]
    chosen = probes_of(
        probes, seed, rubric=rubric, labelled=list(labelled.values()), scored=outputs, planted=planted.pairs
    )
    plain = _part(rubric, pairs, outputs, planted.pairs, seed)
    changed = _part(rubric, chosen.pairs, chosen.outputs, chosen.planted, seed)
    prompts = [*plain.prompts, *changed.prompts]
    return CalibrationQuestions(
        labelled=labelled,
        scored=scored,
        rubric=rubric,
        planted=planted,
        probes=chosen,
        plain=plain,
        changed=changed,
        questions=[*plain.questions, *changed.questions],
        prompts=list({prompt.identity.name: prompt for prompt in prompts}.values()),
    )


def _part(
    rubric: NamedRubric | None,
    pairs: Sequence[PairItem],
    outputs: Sequence[OutputItem],
    planted: Sequence[PlantedPair],
    seed: int,
) -> AskedPart:
    questions: list[JudgeQuestion] = []
    prompts: list[JudgePrompt] = []
    matches, scores = list[PairMatch](), list[ScoreQuestion]()
    if rubric is not None and pairs:
        matches, prompt = make_matches(rubric, pairs, seed)
        prompts.append(prompt)
        questions += [question for match in matches for question in match.questions]
    if rubric is not None and outputs:
        scores, used = score_questions(rubric, outputs, seed, reference=False)
        prompts += used
        questions += [score.question for score in scores]
    lines = {pair.id: RegressionItem.model_validate(pair.model_dump()) for pair in planted}
    judged = pairs_of(lines, (), "default", ())
    if judged:
        asked, prompt = regression_questions(judged, ShipRules(), seed)
        prompts.append(prompt)
        questions += asked
    return AskedPart(matches=matches, scores=scores, pairs=judged, questions=questions, prompts=prompts)
