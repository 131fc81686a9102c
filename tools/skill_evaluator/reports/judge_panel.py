"""What several judges say as one → sentences: the panel's figures, and how far its judges agree."""

from collections.abc import Collection, Iterator

from skill_evaluator.display import number
from skill_evaluator.judges.asking.results import FigureResult
from skill_evaluator.judges.modes.pairwise import PanelPreferences
from skill_evaluator.judges.modes.regression_results import PanelRegressions
from skill_evaluator.judges.modes.scoring import PanelScores
from skill_evaluator.text import counted


def panel_of_scores(panel: PanelScores | None) -> Iterator[str]:
    """Yield the panel's score of each criterion and of all."""
    if panel is None:
        return
    for criterion in panel.criteria:
        agree = _agreement(criterion.disputed, "item", criterion.agreement)
        yield f"panel ({panel.policy.scores}), {criterion.criterion}: {_within(criterion.score)}; {agree}"
    yield f"panel, all criteria from 0 to 1: {_within(panel.summary)}"


def panel_of_pairs(panel: PanelPreferences | None, shown: Collection[str]) -> Iterator[str]:
    """Yield what the majority prefers, by the criteria that are shown."""
    for criterion in () if panel is None else panel.criteria:
        if criterion.criterion in shown:
            counts = criterion.counts
            won = f"1 better {counts.get('1', 0)}, 2 better {counts.get('2', 0)}, ties {counts.get('tie', 0)}"
            agree = _agreement(criterion.disputed, "comparison", criterion.agreement)
            yield f"panel (majority), {criterion.criterion}: {won}; {agree}"


def panel_of_regressions(panel: PanelRegressions | None) -> Iterator[str]:
    """Yield in how many pairs the majority finds each dimension worse."""
    for dimension in () if panel is None else panel.dimensions:
        agree = _agreement(dimension.disputed, "pair", dimension.agreement)
        yield f"panel (majority), {dimension.dimension}: worse in {_within(dimension.worse)}; {agree}"


def pairs_of_panel(panel: PanelRegressions | None) -> Iterator[str]:
    """Yield the pairs that do not ship by all judges together, and why."""
    for pair in () if panel is None else panel.pairs:
        if pair.ship_decision != "ship":
            yield f"panel, {pair.id}: {pair.ship_decision or 'no decision'}: {'; '.join(pair.reasons)}"


def _agreement(disputed: int, noun: str, alpha: FigureResult) -> str:
    return f"judges differ on {counted(disputed, noun)}, α {_within(alpha)}"


def _within(figure: FigureResult) -> str:
    if figure.ci95 is None:
        return number(figure.value)
    low, high = figure.ci95
    return f"{number(figure.value)} ({number(low)}–{number(high)})"
