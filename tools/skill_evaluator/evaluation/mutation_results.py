"""What a mutation run found, as reports and other programs get it: frozen models without a decision in them."""

from typing import Literal

from pydantic import Field

from skill_evaluator.files import FrozenModel

LEAST_REPLICATES = 2  # one answer a case says nothing of chance
MutantStatus = Literal["killed", "survived", "undecided"]


class Reaction(FrozenModel):
    """A metric, field or case that moved beyond chance: its mean with the undamaged prompt, and with the mutant.

    `fields` says of a case which fields moved, as right of n.
    """

    name: str
    kind: Literal["metric", "field", "case"]
    before: float
    after: float
    q: float
    fields: dict[str, str] = {}


class MutantResult(FrozenModel):
    """One mutant and what became of it.

    `moved` counts the cases whose score moved at all. `better`: what reacted scored higher without what was damaged.
    `advice` says what kind of case would catch a survivor, `reason` why a mutant is undecided.
    """

    id: str
    operator: str
    line: int | None
    text: str
    diff: list[str]
    status: MutantStatus
    reactions: list[Reaction] = []
    better: bool = False
    moved: int = 0
    replicates: int = 0
    advice: str | None = None
    reason: str | None = None

    @property
    def cases(self) -> list[str]:
        """The cases that reacted."""
        return [reaction.name for reaction in self.reactions if reaction.kind == "case"]


class MutationResult(FrozenModel):
    """Would these cases notice? `score` is killed ÷ (killed + survived).

    `control` names the cases whose score one of three edits that mean nothing moved: the noise that a mutant must
    exceed. `silent` are the cases that reacted to no mutant that was decided. `left_out` counts mutants that were not
    asked, by why.
    """

    skill: str
    skill_version: str
    model_id: str
    n_cases: int
    replicates: int
    alpha: float
    mutants: list[MutantResult]
    control: list[str] = []
    silent: list[str] = []
    left_out: dict[str, int] = {}
    calls: int = Field(description="of this run and those it continued")
    saved_calls: int = Field(description="not made, because a mutant was killed before")
    cost_usd: float | None
    folder: str

    def count(self, status: MutantStatus) -> int:
        """Return how many mutants have a status."""
        return sum(mutant.status == status for mutant in self.mutants)

    @property
    def score(self) -> float | None:
        """The mutation score; None while nothing is decided."""
        decided = self.count("killed") + self.count("survived")
        return self.count("killed") / decided if decided else None


class MutationEstimate(FrozenModel):
    """What asking the mutants would take: at most, and at least, if each is killed at the first look."""

    skill: str
    model_id: str
    key: str
    n_cases: int
    replicates: int
    mutants: list[MutantResult]
    left_out: dict[str, int]
    most_calls: int
    least_calls: int
    cost_upper_usd: float | None
