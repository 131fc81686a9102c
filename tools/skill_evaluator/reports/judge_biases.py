"""What a judge's scores are worth beside people's, and what moves verdicts that ought not to → tables and sentences."""

from collections.abc import Iterator

from skill_evaluator.display import number
from skill_evaluator.display.sheets import Cell, Sheet
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.calibration.results import BiasResult, JudgeCalibration, ScoreResult
from skill_evaluator.reports.judge_figures import TRUST_STYLES, TRUSTED, share, trust_sentence
from skill_evaluator.text import counted

_FIGURES = ("n", "right", "κ linear", "κ quadratic", "α", "α of people", "ρ", "higher", "middle", "spread")
_PRESENT = {True: "there", False: "none to speak of", None: "undecided"}
_PRESENT_STYLES = {True: "red", False: "green", None: "yellow"}
_RULE = (
    "Trust in scores goes by κ with people, weighted by how far two scores are apart (linearly): trusted if its whole "
    "95 % interval is at {bar:.2f} or above, not trusted if all of it is below."
)
_CAUSES = {
    "self_preference": "its own family as the writer",
    "verbosity": "padding that adds nothing",
    "authority": "an authority that nothing stands behind",
    "injection": "an order to the judge in the text",
}


def score_pieces(calibration: JudgeCalibration) -> Iterator[Sheet | str]:
    """Yield a table of the judges' scores beside people's, and a sentence on each criterion and stratum."""
    rows = [
        (criterion, stratum, judge.judge, figures)
        for judge in calibration.judges
        for criterion, strata in judge.scores.items()
        for stratum, figures in strata.items()
    ]
    if not rows:
        return
    yield Sheet(
        columns=("criterion", "stratum", "judge", *_FIGURES, ""),
        rows=[
            [
                *(Cell(name, code=True) for name in names),
                Cell(str(figures.n)),
                *(Cell(number(figure.value)) for figure in _figures(figures)),
                Cell(TRUSTED[figures.trusted], style=TRUST_STYLES[figures.trusted]),
            ]
            for *names, figures in rows
        ],
        numbers=frozenset(_FIGURES),
    )
    yield _RULE.format(bar=calibration.bar)
    for criterion, stratum, judge, figures in rows:
        yield f"{judge}, {criterion} on {stratum}: {_sentence(figures, calibration.bar)}"


def _figures(figures: ScoreResult) -> tuple[FigureResult, ...]:
    return (
        figures.right,
        figures.kappa_linear,
        figures.kappa_quadratic,
        figures.alpha,
        figures.people_alpha,
        figures.spearman,
        figures.higher,
        figures.middle,
        figures.spread,
    )


def _sentence(figures: ScoreResult, bar: float) -> str:
    """Say what the judge's scores may be used for, and what is wrong with them beyond chance."""
    name = "Weighted κ with people"
    parts = [trust_sentence(figures.trusted, figures.kappa_linear, figures.more_labels, bar, name)]
    if figures.people_alpha.value is not None:
        parts.append(f"People agree with each other by α {share(figures.people_alpha)}")
    if _off(figures.higher, 0.0):
        way = "higher" if (figures.higher.value or 0.0) > 0 else "lower"
        parts.append(f"It scores {abs(figures.higher.value or 0.0):.0%} of the scale {way} than people")
    if _off(figures.spread, 1.0) and (figures.spread.value or 0.0) < 1.0:
        parts.append(f"Its scores spread {number(figures.spread.value)} times as widely as a person's")
    if _off(figures.middle, 0.0) and (figures.middle.value or 0.0) > 0.0:
        parts.append("It keeps to the middle of the scale more than people do")
    if figures.length is not None and _off(figures.length, 0.0):
        way = "longer" if (figures.length.value or 0.0) > 0 else "shorter"
        parts.append(f"It favours {way} outputs beyond people (ρ {share(figures.length)})")
    if figures.noise is not None and figures.noise.value is not None:
        parts.append(f"Asked the same again it gives another score in {figures.noise.value:.0%}")
    if figures.confidence is not None and figures.confidence.follows is False:
        parts.append("Its confidence tells nothing")
    if figures.unscored or figures.unjudged:
        parts.append(f"{figures.unscored} without a score that counts, {figures.unjudged} not judged")
    return ". ".join(parts) + "."


def _off(figure: FigureResult, usual: float) -> bool:
    """Say whether a figure is off its usual value beyond chance."""
    return figure.ci95 is not None and not figure.ci95[0] <= usual <= figure.ci95[1]


def bias_pieces(calibration: JudgeCalibration) -> Iterator[Sheet | str]:
    """Yield one table of all biases of all judges, and a sentence on each."""
    rows = [(judge.judge, bias) for judge in calibration.judges for bias in judge.biases]
    if not rows:
        return
    yield Sheet(
        columns=("judge", "bias", "way", "in", "by", "items", "moved", "shift", ""),
        rows=[
            [
                Cell(judge, code=True),
                Cell(bias.bias, code=True),
                Cell(bias.way or "all"),
                Cell(bias.mode),
                Cell(bias.criterion, code=True),
                Cell(str(bias.items)),
                Cell("–" if bias.moved is None else share(bias.moved)),
                Cell(share(bias.shift)),
                Cell(_PRESENT[bias.present], style=_PRESENT_STYLES[bias.present]),
            ]
            for judge, bias in rows
        ],
        numbers=frozenset({"items", "moved", "shift"}),
    )
    yield from (f"{judge}, {bias.criterion}: {_bias_sentence(bias)}" for judge, bias in rows if not bias.way)


def _bias_sentence(bias: BiasResult) -> str:
    cause, shift = _CAUSES[bias.bias], share(bias.shift)
    moved = "" if bias.moved is None else f" Of {bias.items} verdicts {bias.moved.value or 0.0:.0%} are others with it."
    lost = f" {counted(bias.lost, 'answer')} with it did not count." if bias.lost else ""
    if bias.present is None:
        return f"whether {cause} moves its verdicts is open: by {shift} of the scale.{moved}{lost}"
    if not bias.present:
        return f"{cause} moves its verdicts by less than 0.1 of the scale.{moved}{lost}"
    return f"{cause} moves its verdicts by {shift} of the scale, beyond chance.{moved}{lost}"
