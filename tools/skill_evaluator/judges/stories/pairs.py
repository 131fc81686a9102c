"""`judge pairwise`: which of two outputs is better, in both orders; or which of several is best."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric, Voices, choose_criteria, strict_criteria
from skill_evaluator.judges.asking.items import read_items
from skill_evaluator.judges.asking.judging import Asking, Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, Winner, head_of
from skill_evaluator.judges.asking.story import Bench
from skill_evaluator.judges.calibration.labels import Labels
from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    PAIR,
    SHARES,
    JudgePreferences,
    MatchResult,
    PairItem,
    PairMatch,
    PairwiseResults,
    Preferred,
    make_matches,
    pairs_among,
    reduce_matches,
    write_verdicts,
)
from skill_evaluator.judges.panel.cascade import (
    PEOPLE,
    CascadeMatch,
    CascadeResult,
    CascadeResults,
    CascadeShares,
    Decided,
    Key,
    Standing,
)
from skill_evaluator.judges.panel.panel import reduce_panel_pairs
from skill_evaluator.judges.people.items import ReviewItem, ReviewReason, paired_item, reasons_of_match
from skill_evaluator.judges.people.labelled import WINNERS
from skill_evaluator.judges.people.queue import ReviewAnswer
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.judges.stories.requests import PairwiseRequest
from skill_evaluator.library.rubrics import load_rubric
from skill_evaluator.runner.schedule import Call, Replicate


def read_comparison(request: PairwiseRequest, bench: Bench, *, cascade: bool) -> "PairBatch":
    """Return what is to be compared; raise JudgeError for what cannot be."""
    rubric = choose_criteria(
        str(request.rubric),
        load_rubric(request.rubric, follow_links=bench.configuration.settings.limits.follow_links),
        request.criteria,
        ("pairwise_comparison",),
    )
    items = list(read_items(request.items, PairItem).values())
    strict = strict_criteria(rubric)
    voices = bench.voices({item.id: item.writers for item in items}, [*strict, OVERALL] if strict else ())
    matches, prompt = make_matches(rubric, items, request.seed, request.opponents)
    return PairBatch(
        asking=Asking(
            mode="pairwise",
            rubric=rubric.rubric.digest,
            criteria=[criterion.id for criterion in rubric.criteria],
            prompts=[prompt],
            items={item.id: item.digest for item in items},
            questions=[question for match in matches for question in match.questions],
            notes=["every pair is asked in both orders"],
            warnings=voices.check_families(cascade=cascade),
            paper=rubric.paper,
        ),
        rubric=rubric,
        matches=matches,
        voices=voices,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairBatch:
    """The matches with their rubric; a key is the id of an item and the names of two outputs."""

    asking: Asking
    rubric: NamedRubric
    matches: Sequence[PairMatch]
    voices: Voices
    cascade_remarks: Sequence[str] = ()

    @property
    def questions(self) -> Mapping[Key, Sequence[JudgeQuestion]]:
        """What is asked, by match."""
        return {(match.item.id, *match.names): match.questions for match in self.matches}

    def reduce(
        self, keys: Collection[Key], answers: Mapping[Call, Replicate], replicates: int, judge: JudgeRecord
    ) -> JudgePreferences:
        """Return what one judge says of these matches."""
        mine = [match for match in self.matches if (match.item.id, *match.names) in keys]
        return reduce_matches(mine, self.rubric.criteria, answers, replicates, judge)

    def outcomes(self, judge: JudgePreferences) -> dict[Key, MatchResult]:
        """Return the verdict on each match."""
        return {(match.item, *match.names): match for match in judge.matches}

    def reasons(self, said: Sequence[MatchResult]) -> list[ReviewReason]:
        """Return why what judges say of one match is left to people."""
        return reasons_of_match(said, self.rubric.criteria)

    def standing(self, outcome: MatchResult) -> Standing:
        """Return the overall winner of a match, in the first replicate."""
        overall = next(one for one in outcome.judgements if one.criterion == OVERALL)
        unsettled: tuple[ReviewReason, ...] = ("unscored",) if overall.winner is None else ("disagreement",)
        return Standing(
            verdict=overall.winner,
            confidence=overall.confidence,
            open=() if overall.agreed else unsettled,
            own=tuple(self.reasons([outcome])),
        )

    def agree(self, one: Preferred, other: Preferred) -> bool:
        """Return whether it is the same winner."""
        return one == other

    def labels_in(self, labels: Labels) -> dict[Key, Winner]:
        """Return the preferred outputs; raise JudgeError where no pair is judged here, apart from held-out ones."""
        there = {match.item.id for match in self.matches if match.of_a_pair}
        preferred: dict[Key, Winner] = {
            (name, *PAIR): pair.human
            for name, pair in labels.pairs.items()
            if name in there and pair.human is not None and pair.split != "held_out"
        }
        if not preferred:
            raise JudgeError(f"{labels.path} has no label of a pair that is judged here, apart from held_out ones")
        return preferred

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> Winner | None:
        """Return the output that people find better overall."""
        return WINNERS[answers[OVERALL].answer] if OVERALL in answers else None

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the matches as people are asked about them."""
        return {
            (match.item.id, *match.names): paired_item(match.item, match.names, self.rubric.criteria, judging)
            for match in self.matches
        }

    def results(self, judging: Judging, judges: Sequence[JudgePreferences]) -> PairwiseResults:
        """Return the file of the results; several judges are a panel."""
        return PairwiseResults(
            judging=head_of(judging, self.rubric.file),
            judges=list(judges),
            panel=reduce_panel_pairs(judges, self.voices) if len(judges) > 1 else None,
        )

    def cascaded(
        self,
        judging: Judging,
        judges: Sequence[JudgePreferences],
        shares: CascadeShares,
        decisions: Mapping[Key, Decided],
    ) -> CascadeResults:
        """Return the file of the results of a cascade."""
        matches = []
        for (item, left, right), one in decisions.items():
            settled = one.by != PEOPLE
            matches.append(
                CascadeMatch(
                    item=item,
                    names=(left, right),
                    by=one.by,
                    winner=one.standing.verdict if settled else None,
                    confidence=one.standing.confidence if settled else None,
                    reasons=list(one.reasons),
                )
            )
        wins = [SHARES[match.winner] for match in pairs_among(matches) if match.winner is not None]
        cascade = CascadeResult(**dict(shares), wins=mean_within(wins), matches=matches)
        return CascadeResults(judging=head_of(judging, self.rubric.file), judges=list(judges), cascade=cascade)

    def write(self, folder: Path, results: PairwiseResults) -> None:
        """Write the verdicts of every answer about an item with two outputs."""
        write_verdicts(folder, results)
