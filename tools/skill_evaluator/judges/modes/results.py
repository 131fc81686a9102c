"""The parts that the results of `judge score`, `pairwise` and `regression` have in common."""

from collections.abc import Sequence

from pydantic import NonNegativeInt

from skill_evaluator.errors import EXIT_INCOMPLETE, EXIT_OK
from skill_evaluator.files import FrozenModel
from skill_evaluator.identifiers import Share
from skill_evaluator.judges.panel.results import CascadeResult, PanelResult
from skill_evaluator.judges.prompting.reading import UnscoredReason
from skill_evaluator.judges.prompting.results import JudgeRecord, JudgeRunHead, JudgeText, NoUsableOutput
from skill_evaluator.judges.statistics.bounded import rate

RESULTS_VERSION = 1
NOTHING = rate(0, 0)  # of results before a figure was added


class Judgement(FrozenModel):
    """A judge's verdict with its grounds. If it does not count `unscored` says why.

    `quotes`: how many pieces of the evidence were found in the texts.
    """

    evidence: list[JudgeText] = []
    justification: JudgeText = ""
    confidence: Share | None = None
    quotes: NonNegativeInt = 0
    unscored: UnscoredReason | None = None
    detail: JudgeText = ""


class JudgeFigures(FrozenModel):
    """The part of one judge. `unusable` says why it has no figures."""

    judge: JudgeRecord
    unusable: NoUsableOutput | None = None


class ModeResults(FrozenModel):
    """The file of results. `left_out`: by id, the reason why an output or pair could not be judged.

    `panel` is null for a single judge. No figure here is about people.
    """

    results_version: int = RESULTS_VERSION
    judging: JudgeRunHead
    left_out: dict[str, str] = {}
    judges: Sequence[JudgeFigures]
    panel: PanelResult | None = None
    cascade: CascadeResult | None = None

    @property
    def exit_code(self) -> int:
        """4 if a judge is unusable, else 0."""
        return EXIT_INCOMPLETE if any(judge.unusable for judge in self.judges) else EXIT_OK
