"""A cascade of `judge pairwise`: a match is settled by its overall winner in both orders."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric
from skill_evaluator.judges.asking.judging import Judging
from skill_evaluator.judges.asking.questions import JudgeQuestion
from skill_evaluator.judges.asking.results import JudgeRecord, Winner, figure, head_of
from skill_evaluator.judges.calibration.files import read_pairs
from skill_evaluator.judges.cascade.kind import GivenLabels
from skill_evaluator.judges.cascade.reducing import PEOPLE, Decided
from skill_evaluator.judges.cascade.results import CascadeMatch, CascadeResult, CascadeResults, CascadeShares
from skill_evaluator.judges.cascade.routing import Key, Standing
from skill_evaluator.judges.modes.pairwise import (
    OVERALL,
    PAIR,
    JudgePreferences,
    MatchResult,
    PairMatch,
    Preferred,
    pairs_among,
)
from skill_evaluator.judges.modes.reduce_pairs import SHARES, reduce_matches
from skill_evaluator.judges.review.doubts import reasons_of_match
from skill_evaluator.judges.review.items import ReviewItem, ReviewReason
from skill_evaluator.judges.review.labelled import WINNERS
from skill_evaluator.judges.review.labels import ReviewAnswer
from skill_evaluator.judges.review.making import paired_item
from skill_evaluator.judges.statistics.bounded import mean_within
from skill_evaluator.runner.schedule import Call, Replicate


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCascade:
    """The matches with their rubric; a key is the id of an item and the names of two outputs."""

    rubric: NamedRubric
    matches: Sequence[PairMatch]

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

    def standings(self, judge: JudgePreferences) -> dict[Key, Standing]:
        """Return the overall winner of each match, in the first replicate."""
        return {(match.item, *match.names): self._standing(match) for match in judge.matches}

    def _standing(self, match: MatchResult) -> Standing:
        overall = next(one for one in match.judgements if one.criterion == OVERALL)
        unsettled: tuple[ReviewReason, ...] = ("unscored",) if overall.winner is None else ("disagreement",)
        return Standing(
            verdict=overall.winner,
            confidence=overall.confidence,
            open=() if overall.agreed else unsettled,
            own=tuple(reasons_of_match([match], self.rubric.criteria)),
        )

    def agree(self, one: Preferred, other: Preferred) -> bool:
        """Return whether it is the same winner."""
        return one == other

    def read_labels(self, path: Path) -> GivenLabels:
        """Read labelled pairs; raise JudgeError where none is of a pair that is judged, apart from held-out ones."""
        there = {match.item.id for match in self.matches if match.of_a_pair}
        pairs = [pair for pair in read_pairs(path).values() if pair.id in there and pair.human is not None]
        labels: dict[Key, Winner | None] = {(pair.id, *PAIR): pair.human for pair in pairs if pair.split != "held_out"}
        if not labels:
            raise JudgeError(f"{path} has no label of a pair that is judged here, apart from held_out ones")
        return GivenLabels(labels=labels, held_out=frozenset((pair.id, *PAIR) for pair in pairs) - labels.keys())

    def label(self, key: Key, answers: Mapping[str, ReviewAnswer]) -> Winner | None:
        """Return the output that people find better overall."""
        return WINNERS[answers[OVERALL].answer] if OVERALL in answers else None

    def review_items(self, judging: str | None = None) -> Mapping[Key, ReviewItem]:
        """Return the matches as people are asked about them."""
        return {
            (match.item.id, *match.names): paired_item(match.item, match.names, self.rubric.criteria, judging)
            for match in self.matches
        }

    def results(
        self,
        judging: Judging,
        judges: Sequence[JudgePreferences],
        shares: CascadeShares,
        decisions: Mapping[Key, Decided],
    ) -> CascadeResults:
        """Return the file of the results."""
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
        cascade = CascadeResult(**dict(shares), wins=figure(mean_within(wins)), matches=matches)
        return CascadeResults(judging=head_of(judging, self.rubric.file), judges=list(judges), cascade=cascade)
