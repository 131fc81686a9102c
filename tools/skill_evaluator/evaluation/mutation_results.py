"""The results of mutation testing, for reports and other programs."""

from typing import Literal

from pydantic import Field

from skill_evaluator.files import FrozenModel

MutantStatus = Literal["killed", "survived", "undecided"]


class Reaction(FrozenModel):
    """A metric, field or case that changed significantly: its mean with the whole prompt, and without the part."""

    name: str
    kind: Literal["metric", "field", "case"]
    before: float
    after: float
    q: float


class MutantResult(FrozenModel):
    """A prompt without one part: what was removed, and whether the cases noticed it."""

    id: str
    line: int = Field(description="of the part in the prompt's file")
    text: str = Field(description="what was removed")
    status: MutantStatus = "undecided"
    reactions: list[Reaction] = []
    reason: str | None = Field(default=None, description="why it is undecided")


class MutationResult(FrozenModel):
    """Whether the cases of a component notice that a part of its prompt is missing."""

    skill: str
    skill_version: str
    model_id: str
    n_cases: int
    replicates: int
    alpha: float
    mutants: list[MutantResult]
    left_out: int = Field(description="parts that were not removed, over --mutants")
    calls: int = Field(description="made by this and earlier runs; of a dry run those that it would make")
    cost_usd: float | None = Field(description="of these calls; of a dry run at most")
    folder: str
    dry_run: bool = False

    def count(self, status: MutantStatus) -> int:
        """Return how many mutants have a status."""
        return sum(mutant.status == status for mutant in self.mutants)

    @property
    def score(self) -> float | None:
        """The mutation score, killed ÷ (killed + survived); None if nothing is decided."""
        decided = self.count("killed") + self.count("survived")
        return self.count("killed") / decided if decided else None
