"""`policy.judge` in settings.yaml: what a judge's verdicts lead to, and how several judges are reduced to one."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveFloat

from skill_evaluator.files import StrictModel
from skill_evaluator.identifiers import ModelId, Share


class JudgePanel(StrictModel):
    """How several judges are reduced to one verdict; see docs/judging.md. A judge without a weight has 1.

    `same_family` is about criteria with `different_model_family`: a judge of the family that wrote an output is
    refused, has half its weight, or counts in full.
    """

    scores: Literal["mean", "median"] = Field(default="mean", description="of scores; of verdicts it is the majority")
    weights: dict[ModelId, PositiveFloat] = {}
    same_family: Literal["refuse", "half", "allow"] = "refuse"


class JudgeCascade(StrictModel):
    """A cheap judge first, then a strong one for what it leaves open, then people; see docs/judging.md.

    `alpha` and `delta` are for thresholds that labels choose: with confidence 1 − δ at least 1 − α of what the judges
    settle agrees with people.
    """

    judges: tuple[ModelId, ModelId] | None = Field(default=None, description="the cheap one, then the strong one")
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.1
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.1
    audit: Share = Field(default=0.05, description="what part of the cheap judge's verdicts the strong one checks")


class ComponentJudge(StrictModel):
    """The model that CI has compare new outputs of a component with those that are pinned, and what it is asked about.

    A name alone is a model that is asked about the usual dimensions.
    """

    model: ModelId
    preset: Literal["default", "chat", "code", "checklist"] = "default"
    dimensions: tuple[str, ...] = Field(default=(), description="instead of those of a preset")


def _with_usual_dimensions(judge: Any) -> Any:
    return {"model": judge} if isinstance(judge, str) else judge


DeclaredJudge = Annotated[
    ComponentJudge, BeforeValidator(_with_usual_dimensions, json_schema_input_type=ModelId | ComponentJudge)
]


class JudgePolicy(StrictModel):
    """What regressions that a judge finds lead to, beyond the fixed rules, and how several judges are reduced."""

    one_low: Literal["review_required", "ship"] = Field(
        default="review_required", description="what a single regression of low impact leads to"
    )
    blocking: tuple[str, ...] = Field(default=(), description="dimensions in which any regression blocks, besides")
    panel: JudgePanel = JudgePanel()
    cascade: JudgeCascade = JudgeCascade()
    alert_above: Share | dict[str, Share] | None = Field(
        default=None,
        description="the share of regressions in each dimension, or by its name, above which a batch alerts",
    )
    calibration: str | None = Field(
        default=None, description="the results of `judge calibrate` that reported shares are corrected by: a file here"
    )

    def allowed(self, dimensions: Iterable[str]) -> Mapping[str, float]:
        """Return the share of regressions above which a batch alerts: by these dimensions, or by those it names."""
        if isinstance(self.alert_above, float | int):
            return dict.fromkeys(dimensions, self.alert_above)
        return self.alert_above or {}
