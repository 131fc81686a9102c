"""`judge score`: outputs one by one, by the criteria of a rubric, beside a source if need be."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric, Voices, choose_criteria, strict_criteria
from skill_evaluator.judges.asking.items import OutputItem, items_of_run, read_items
from skill_evaluator.judges.asking.judging import Asking, Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, head_of
from skill_evaluator.judges.asking.story import Bench
from skill_evaluator.judges.calibration.labels import Labels
from skill_evaluator.judges.modes.scoring import (
    ItemScores,
    JudgeScores,
    ScoreQuestion,
    ScoreResults,
    reduce_scores,
    score_questions,
    weighted_summary,
    write_scores,
)
from skill_evaluator.judges.panel.cascade import (
    PEOPLE,
    CascadeScore,
    CascadeShares,
    Decided,
    Key,
    ScoreCascade,
    ScoreCascadeResults,
    Standing,
)
from skill_evaluator.judges.panel.panel import reduce_panel_scores
from skill_evaluator.judges.people.items import ReviewItem, ReviewReason, reasons_of_scores, scored_item
from skill_evaluator.judges.people.queue import ReviewAnswer
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.judges.stories.requests import ScoreRequest
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.rubrics import MethodName, load_rubric
from skill_evaluator.runner.journal import outcomes, read_component_manifest
from skill_evaluator.runner.schedule import Call, Replicate

_NEAR = 0.25  # of a scale: scores this near agree. Of 1-3 they are the same, of 1-5 a level apart, of 1-10 two
Scores = Mapping[str, float]


def read_scoring(request: ScoreRequest, bench: Bench, *, cascade: bool) -> "ScoreBatch":
    """Return what is to be scored; raise JudgeError, RunError, ComponentError or FixtureError for what cannot be."""
    settings = bench.configuration.settings
    rubric = choose_criteria(
        str(request.rubric),
        load_rubric(request.rubric, follow_links=settings.limits.follow_links),
        request.criteria,
        ("direct_scoring", "reference_based"),
    )
    items, left_out, skill = _read_items(request, rubric, settings.limits)
    writers = {item.id: (item.model,) for item in items.values()}
    voices = bench.voices(writers, strict_criteria(rubric))
    questions, prompts = score_questions(rubric, list(items.values()), request.seed, reference=request.reference)
    return ScoreBatch(
        asking=Asking(
            mode="score",
            rubric=rubric.rubric.digest,
            criteria=[criterion.id for criterion in rubric.criteria],
            prompts=prompts,
            items={item.id: item.digest for item in items.values()},
            questions=[asked.question for asked in questions],
            warnings=voices.check_families(cascade=cascade),
            paper=rubric.paper,
            skill=skill,
        ),
        rubric=rubric,
        items=items,
        asked=questions,
        methods={one.id: "reference_based" if request.reference else one.primary_method for one in rubric.criteria},
        left_out=left_out,
        voices=voices,
    )


def _read_items(
    request: ScoreRequest, rubric: NamedRubric, limits: SafetyLimits
) -> tuple[Mapping[str, OutputItem], Mapping[str, str], str | None]:
    """Return the items by id, why the answers of other cases cannot be judged, and the component of a run."""
    if (request.items is None) == (request.run is None):
        raise JudgeError("say what is judged: --items FILE, or --run DIR for the answers of a component's run")
    if request.items is not None:
        return read_items(request.items, OutputItem), {}, None
    folder = request.run or Path()
    manifest = read_component_manifest(folder)
    component = load_component(request.components, manifest.skill, limits, request.fixtures)
    cases = [case for case in load_cases(component, request.fixtures) if case.id in manifest.cases]
    changed = [case.id for case in cases if not case.was(manifest.cases[case.id])]
    if changed or len(cases) < len(manifest.cases):
        gone = changed or sorted(manifest.cases.keys() - {case.id for case in cases})
        raise JudgeError(f"case '{gone[0]}' changed since {folder} was run; check out its commit")
    items, left_out = items_of_run(
        component, cases, outcomes(folder), manifest.model_id, request.field or rubric.field_of(component.name)
    )
    if not items:
        raise JudgeError(f"no answer of {folder} can be judged: {next(iter(left_out.values()))}")
    return items, left_out, component.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBatch:
    """The outputs with their rubric; a key is the id of an item. `left_out`: why other outputs cannot be judged."""

    asking: Asking
    rubric: NamedRubric
    items: Mapping[str, OutputItem]
    asked: Sequence[ScoreQuestion]
    methods: Mapping[str, MethodName]
    left_out: Mapping[str, str]
    voices: Voices
    cascade_remarks: Sequence[str] = ()

    @property
    def questions(self) -> Mapping[Key, Sequence[JudgeQuestion]]:
        """What is asked, by output."""
        return {(name,): [one.question for one in self.asked if one.item.id == name] for name in self.items}

    def reduce(
        self, keys: Collection[Key], answers: Mapping[Call, Replicate], replicates: int, judge: JudgeRecord
    ) -> JudgeScores:
        """Return what one judge says of these outputs."""
        mine = [one for one in self.asked if (one.item.id,) in keys]
        return reduce_scores(mine, answers, replicates, judge, self.methods)

    def outcomes(self, judge: JudgeScores) -> dict[Key, ItemScores]:
        """Return the scores of each output."""
        return {(item.id,): item for item in judge.items}

    def reasons(self, said: Sequence[ItemScores]) -> list[ReviewReason]:
        """Return why what judges say of one output is left to people."""
        return reasons_of_scores(said, self.rubric.criteria)

    def standing(self, outcome: ItemScores) -> Standing:
        """Return the scores of an output, with the confidence of the criterion that the judge is least sure of."""
        scores = {name: score for name, score in outcome.scores.items() if score is not None}
        sure = [
            [one.confidence for one in outcome.judgements if one.criterion == name and one.confidence is not None]
            for name in outcome.scores
        ]
        reasons = self.reasons([outcome])
        return Standing(
            verdict=scores if len(scores) == len(outcome.scores) else None,
            confidence=min((fmean(given) for given in sure if given), default=None),
            open=tuple(reason for reason in reasons if reason != "low_confidence"),
            own=tuple(reasons),
        )

    def agree(self, one: Scores, other: Scores) -> bool:
        """Return whether the scores of each criterion are no further apart than a quarter of its scale."""
        return all(
            abs(one[criterion.id] - other[criterion.id]) <= _NEAR * (criterion.highest - 1) + 1e-9
            for criterion in self.rubric.criteria
        )

    def labels_in(self, labels: Labels) -> dict[Key, Scores]:
        """Return what people scored, of several their mean; raise JudgeError where no output has each criterion."""
        scored: dict[Key, Scores] = {
            (name,): {criterion: fmean(scores) for criterion, scores in item.scores.items()}
            for name, item in labels.scored.items()
            if name in self.items
            and item.split != "held_out"
            and all(criterion.id in item.scores for criterion in self.rubric.criteria)
        }
        if not scored:
            raise JudgeError(
                f"{labels.path} has no score by every criterion of an output judged here, apart from held_out ones"
            )
        return scored

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> Scores | None:
        """Return the scores that people agree on, if they do by every criterion."""
        if not all(criterion.id in answers for criterion in self.rubric.criteria):
            return None
        return {criterion.id: int(answers[criterion.id].answer) for criterion in self.rubric.criteria}

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the outputs as people are asked about them."""
        return {(name,): scored_item(item, self.rubric.criteria, judging) for name, item in self.items.items()}

    def results(self, judging: Judging, judges: Sequence[JudgeScores]) -> ScoreResults:
        """Return the file of the results; several judges are a panel."""
        together = len(judges) > 1
        return ScoreResults(
            judging=head_of(judging, self.rubric.file),
            left_out=dict(self.left_out),
            judges=list(judges),
            panel=reduce_panel_scores(judges, self.rubric.criteria, self.voices) if together else None,
        )

    def cascaded(
        self, judging: Judging, judges: Sequence[JudgeScores], shares: CascadeShares, decisions: Mapping[Key, Decided]
    ) -> ScoreCascadeResults:
        """Return the file of the results of a cascade."""
        items = []
        for (name,), one in decisions.items():
            scores = one.standing.verdict if one.by != PEOPLE else None
            items.append(
                CascadeScore(
                    item=name,
                    by=one.by,
                    scores=scores,
                    summary=None if scores is None else weighted_summary(scores, self.rubric.criteria),
                    confidence=None if scores is None else one.standing.confidence,
                    reasons=list(one.reasons),
                )
            )
        summary = mean_within([item.summary for item in items if item.summary is not None])
        return ScoreCascadeResults(
            judging=head_of(judging, self.rubric.file),
            left_out=dict(self.left_out),
            judges=list(judges),
            cascade=ScoreCascade(**dict(shares), summary=summary, items=items),
        )

    def write(self, folder: Path, results: ScoreResults) -> None:
        """Write the scores, which say with people's scores what the judges are worth."""
        write_scores(folder, results.judges)
