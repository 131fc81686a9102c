"""The ranking of models as other programs get it, and what follows from it: groups, the frontier, and which to ship.

Nothing here compares; `ranking` does.
"""

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_lowercase

from skill_evaluator.files import FrozenModel
from skill_evaluator.library.config import VerdictName
from skill_evaluator.records.served import Served
from skill_evaluator.text import listed, version_words
from skill_evaluator.verdicts.decide.results import Scope


class Score(FrozenModel):
    """The strict mean over the cases that all models share, and its 95 % interval with the case as unit."""

    strict_mean: float | None
    ci95: tuple[float, float] | None
    n_cases: int


class Dominance(FrozenModel):
    """A cheaper model that is at least as good on every metric.

    `shown`: on each of them a lead of the dearer model beyond the tolerance is excluded with 95 % confidence. Else the
    figures are so, and no more is known.
    """

    by: str
    shown: bool


class Contrast(FrozenModel):
    """Two models on the same cases by the primary metric: the lower one's score minus the higher one's.

    `q` is adjusted over the family. They are told apart where the lower one is worse beyond chance, and a drop larger
    than the tolerated one is not excluded; or it is better on cases that only these two have.
    """

    higher: str
    lower: str
    difference: float | None
    ci95: tuple[float, float] | None
    p: float | None
    q: float | None
    n_cases: int
    detectable_drop: float | None
    verdict: VerdictName
    told_apart: bool


class RankedModel(FrozenModel):
    """One model: what it scored, what it costs, how old that is, and which others are better or as good.

    `place`: models of equal score share it. `groups`: two models with no group in common are told apart. `verdict` is
    on its version against a lower one, `prompt_adds` against its run with the schema alone. `frontier`: no other model
    is both as good and as cheap; None where its cost is not known.
    """

    place: int
    model_id: str
    groups: list[str]
    skill_version: str
    run_id: str
    timestamp: str
    age_days: int | None
    served_model: Served
    replicates: int
    coverage: float
    accuracy: dict[str, Score]
    reproducibility: dict[str, float | None]
    usd_per_1000_cases: float | None
    latency_p50_s: float | None
    latency_p95_s: float | None
    verdict: VerdictName | None
    prompt_adds: Scope | None
    frontier: bool | None
    dominated_by: list[Dominance]


class Advice(FrozenModel):
    """The version and the model to ship, and why; None if none is named. Drafts have a best model, and no version."""

    version: str | None = None
    model_id: str | None = None
    reason: str

    @property
    def words(self) -> str:
        """The advice as every report, comment and page gives it."""
        best = f"best model: {self.model_id or 'none is named'}"
        shipped = " with ".join(filter(None, [version_words(self.version or ""), self.model_id]))
        return f"{f'to ship: {shipped}' if self.version else best} ({self.reason})"


class ModelRanking(FrozenModel):
    """The models of a component, best first, on the cases that all of them answered.

    q of the `pairs` is over `family` pairs: those of all models of the version, shown or not. `left_out`: models that
    are not ranked, and why. `unmeasured` says that the version on disk has no complete run.
    """

    skill: str
    metric: str
    gate: str
    alpha: float
    tolerance: float
    n_cases: int
    models: list[RankedModel]
    groups: dict[str, list[str]]
    pairs: list[Contrast]
    family: int
    advice: Advice
    left_out: dict[str, str] = {}
    unmeasured: str = ""


Point = tuple[float | None, float]
"""What a model costs, and its score."""


def alike(names: Sequence[str], apart: Iterable[frozenset[str]]) -> list[list[str]]:
    """Return the largest sets of models of which no two are told apart, the best models' first.

    Two models that are not told apart are in one set together (Piepho 2004, doi:10.1198/1061860043515: insert, absorb).
    """
    groups = [frozenset(names)] if names else []
    for two in apart:
        split = {part for group in groups for part in ([group - {one} for one in two] if two <= group else [group])}
        groups = [group for group in split if not any(group < other for other in split)]
    places = sorted(sorted(map(names.index, group)) for group in groups)
    return [[names[place] for place in group] for group in places]


def letters() -> Iterator[str]:
    """Yield a, b, …, z, a2, b2, …"""
    yield from ascii_lowercase
    yield from (f"{letter}{lap}" for lap in range(2, 1000) for letter in ascii_lowercase)


def on_frontier(model: Point, models: Iterable[Point]) -> bool | None:
    """Return whether no other model is as good and as cheap, and better or cheaper; None without its cost."""
    cost, score = model
    if cost is None:
        return None
    others = ((other, of_other) for other, of_other in models if other is not None and (other, of_other) != model)
    return not any(other <= cost and of_other >= score for other, of_other in others)


def advise(rows: Sequence[RankedModel], pairs: Sequence[Contrast]) -> Advice:
    """Return the best model, as far as anything shows it.

    No other is shown to be better than it. Where that holds of several, the cheapest of them is named, or the quickest.
    A model that regressed is never named.
    """
    if len(rows) < 2:
        return Advice(reason="there is no other model to hold it against" if rows else "no model can be ranked")
    beaten = {pair.higher if pair.verdict == "improved" else pair.lower for pair in pairs if pair.told_apart}
    best = [row for row in rows if row.model_id not in beaten] or list(rows)
    sound = [row for row in best if row.verdict != "regressed"]
    if not sound:
        worse = listed([row.model_id for row in best])
        return Advice(reason=f"{worse} regressed against the version before, and no other is as good")
    if len(best) == 1:
        (name,) = (row.model_id for row in best)
        ahead = [pair for pair in pairs if pair.told_apart and name in (pair.higher, pair.lower)]
        others = listed([pair.lower if pair.higher == name else pair.higher for pair in ahead], 3)
        lead = min((abs(pair.difference or 0.0) for pair in ahead), default=0.0)
        by = f"{lead:.3f}{' or more' * (len(ahead) > 1)}"
        sure = f"q ≤ {max([pair.q or 0.0 for pair in ahead] + [1e-6]):.2g}"
        return Advice(model_id=name, reason=f"better beyond chance than {others}, by {by} ({sure})")
    named, merits = _thriftiest(sound)
    if named is None:
        names = listed([row.model_id for row in sound])
        return Advice(reason=f"{names} are not shown to differ, and neither cost nor time tells which to take")
    rest = [row.model_id for row in best if row.model_id != named.model_id]
    drops = [pair.detectable_drop for pair in pairs if {pair.higher, pair.lower} <= {named.model_id, *rest}]
    reach = max((drop for drop in drops if drop is not None), default=None)
    seen = "" if reach is None else f"; a gap of {reach:.3f} would have shown 4 times in 5"
    return Advice(model_id=named.model_id, reason=f"not shown to differ from {listed(rest)}; {merits}{seen}")


def _thriftiest(rows: Sequence[RankedModel]) -> tuple[RankedModel | None, str]:
    """Return the row that is cheapest, of equally cheap ones the quickest, and in words why it; None where none is."""
    if len(rows) == 1:
        return rows[0], "the only one of them that did not regress"
    words = []
    for word, values in (
        ("cheapest", {row.model_id: row.usd_per_1000_cases for row in rows}),
        ("quickest", {row.model_id: row.latency_p50_s and round(row.latency_p50_s, 1) for row in rows}),
    ):
        known = [value for row in rows if (value := values[row.model_id]) is not None]
        if len(known) < len(rows) or min(known) == max(known):
            continue
        words.append(word)
        rows = [row for row in rows if values[row.model_id] == min(known)]
        if len(rows) == 1:
            return rows[0], f"the {' and '.join(words)} of them"
    return None, ""
