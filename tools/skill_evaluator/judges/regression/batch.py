"""What one regression judging asks about and how it is decided, from items and policy; then its results, from answers.

Its own module because the command that asks and CI, which reads the answers again, must make the same of both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skill_evaluator.judges.asking.judging import Judging, draw_judging
from skill_evaluator.judges.asking.prompts import JudgePrompt
from skill_evaluator.judges.asking.question import JudgeQuestion
from skill_evaluator.judges.asking.results import head_of
from skill_evaluator.judges.regression.pairs import JudgedPair, RegressionItem, pairs_of
from skill_evaluator.judges.regression.questions import regression_questions
from skill_evaluator.judges.regression.results import (
    JudgeRegressions,
    PanelRegressions,
    RegressionResults,
    RulesResult,
    most_careful,
)
from skill_evaluator.judges.regression.rules import ShipRules
from skill_evaluator.judges.regression.run_outputs import NOT_APPLICABLE
from skill_evaluator.library.config import Model, Policy
from skill_evaluator.text import canonical_json, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedOutputs:
    """What is compared: items, and of a component its name and the two runs. `left_out`: by case, why it is not."""

    items: Mapping[str, RegressionItem]
    left_out: Mapping[str, str] = field(default_factory=dict)
    skill: str | None = None
    baseline: str | None = None
    candidate: str | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionBatch:
    """Pairs with their questions, and the rules by which is decided. `paper`: both in short, in place of a rubric."""

    compared: ComparedOutputs
    pairs: Sequence[JudgedPair]
    rules: ShipRules
    prompt: JudgePrompt
    questions: Sequence[JudgeQuestion]
    paper: Mapping[str, Any]

    @property
    def rubric(self) -> str:
        """The digest of what is looked for."""
        return digest(canonical_json(self.paper))

    @property
    def items(self) -> dict[str, str]:
        """A digest of the texts of each pair, by its id."""
        return {pair.id: pair.digest for pair in self.pairs}

    def judging(self, judging_id: str, created: str, model: Model, seed: int) -> Judging:
        """Return the judging in which one judge is asked every question once."""
        return draw_judging(
            "regression",
            skill=self.compared.skill,
            judging_id=judging_id,
            created=created,
            rubric=self.rubric,
            criteria=list(self.paper["dimensions"]),
            prompts=[self.prompt.identity],
            models=[model],
            items=self.items,
            questions=self.questions,
            seed=seed,
            replicates=1,
        )

    def results(
        self, judging: Judging, judges: Sequence[JudgeRegressions], panel: PanelRegressions | None = None
    ) -> RegressionResults:
        """Return the results of all judges, and what follows: what their panel says, or else the one judge."""
        blocking = [name for name, dimension in self.paper["dimensions"].items() if dimension["blocking"]]
        decisions = [judge.ship_decision for judge in judges] if panel is None else [panel.ship_decision]
        unseen = [None] if set(self.compared.left_out.values()) - {NOT_APPLICABLE} else []
        return RegressionResults(
            judging=head_of(judging, "dimensions"),
            rules=RulesResult(one_low=self.rules.one_low, high_stakes=self.rules.high_stakes, blocking=blocking),
            baseline=self.compared.baseline,
            candidate=self.compared.candidate,
            left_out=dict(self.compared.left_out),
            ship_decision=most_careful([*decisions, *unseen]),
            judges=list(judges),
            panel=panel,
        )


def batch_of(
    compared: ComparedOutputs,
    policy: Policy,
    seed: int,
    *,
    dimensions: Sequence[str] = (),
    preset: str = "default",
    blocking: Sequence[str] = (),
) -> RegressionBatch:
    """Return what is asked about these items under a policy; raise ConfigError or JudgeError for what cannot be."""
    own = policy.components.get(compared.skill or "")
    rules = ShipRules(one_low=policy.judge.one_low, high_stakes=own is not None and own.stakes == "high")
    pairs = pairs_of(compared.items, dimensions, preset, (*policy.judge.blocking, *blocking))
    questions, prompt = regression_questions(pairs, rules, seed)
    asked = {dimension.name: dimension for pair in pairs for dimension in pair.dimensions}
    paper = {
        "dimensions": {
            name: {"question": dimension.question, "blocking": dimension.blocking} for name, dimension in asked.items()
        },
        "one_low": rules.one_low,
        "high_stakes": rules.high_stakes,
    }
    return RegressionBatch(compared=compared, pairs=pairs, rules=rules, prompt=prompt, questions=questions, paper=paper)
