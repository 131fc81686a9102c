"""What a manifest says of its run beside the calls: the looks at it so far, and what was to be kept of it.

Its own module because the manifest and those who write these parts of it share them.
"""

from typing import Annotated

from pydantic import Field, PositiveInt

from skill_evaluator.files import StrictModel
from skill_evaluator.identifiers import RunId
from skill_evaluator.library.config import VerdictName


class Looks(StrictModel):
    """The looks at an adaptive run so far: after how many replicates, and against which run of a lower version.

    The last look may have settled the verdict: `enough` replicates are then asked in all, the last ones unseen by it.
    """

    after: tuple[PositiveInt, ...]
    against: RunId
    verdict: VerdictName | None = None
    enough: PositiveInt | None = None


class Kept(StrictModel):
    """What was to be kept of a run in batches by the command that began it; `collect --batches` keeps to it.

    `leaderboard`: whether it is recorded; `max_cost_usd`: the cap of all.
    """

    leaderboard: bool = True
    max_cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
