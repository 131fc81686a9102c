"""Good outputs → pairs of which code knows what a regression judge must find: broken outputs, and controls.

Each way to break an output is used as often as every other one, as far as the outputs offer a place for it; what they
do not offer is counted. The same outputs and the same seed give the same pairs.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from pydantic import Field

from skill_evaluator.judges.asking.items import JudgedItem, JudgedText
from skill_evaluator.judges.calibration.breaking import DAMAGES, NoPlaceError, break_output
from skill_evaluator.judges.calibration.rewording import REWORDINGS, reword_output
from skill_evaluator.judges.modes.ship_rules import Impact

SAME_TEXT, REPLICATE = "same_text", "replicate"
CONTROLS = (SAME_TEXT, REPLICATE, *REWORDINGS)


class GoodOutput(JudgedItem):
    """An output to be broken; `replicate_output` is another answer to the same request, where there is one."""

    input: JudgedText = Field(min_length=1)
    output: JudgedText = Field(min_length=1)
    replicate_output: JudgedText = ""


class PlantedPair(JudgedItem):
    """A pair for `judge regression` with what code knows of it; of a control `dimension` and `impact` are null.

    `planted` is a way to break an output, or a kind of control. `source` is the item that the baseline is of.
    """

    input: JudgedText = Field(min_length=1)
    baseline_output: JudgedText
    candidate_output: JudgedText
    source: str
    planted: str
    dimension: str | None = None
    impact: Impact | None = None

    @property
    def is_control(self) -> bool:
        """Whether there is nothing to find."""
        return self.dimension is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedSet:
    """`pairs` to be judged. `without_place`: by way, how many outputs were tried and offered no place, by reason."""

    pairs: tuple[PlantedPair, ...]
    without_place: Mapping[str, Mapping[str, int]]


def plant(outputs: Sequence[GoodOutput], broken: int, controls: int, seed: int) -> PlantedSet:
    """Return up to so many broken pairs and controls, in turns by dimension and way, spread over the outputs."""
    refused: dict[str, Counter[str]] = {}
    ways: dict[str, list[Iterator[PlantedPair]]] = {}
    for damage in DAMAGES.values():
        ways.setdefault(damage.dimension, []).append(_planted(damage.name, _broken, outputs, seed, refused))
    written = (_planted(name, _control, outputs, seed, refused) for name in CONTROLS)
    pairs = [
        *islice(_in_turns(_in_turns(mine) for mine in ways.values()), broken),
        *islice(_in_turns(written), controls),
    ]
    return PlantedSet(pairs=tuple(pairs), without_place={name: dict(counts) for name, counts in refused.items()})


def _in_turns(sources: Iterable[Iterator[PlantedPair]]) -> Iterator[PlantedPair]:
    """Yield from each source in turns until all are empty."""
    waiting = deque(sources)
    while waiting:
        source = waiting.popleft()
        pair = next(source, None)
        if pair is not None:
            yield pair
            waiting.append(source)


def _planted(
    name: str,
    make: Callable[[str, GoodOutput, Random], PlantedPair],
    outputs: Sequence[GoodOutput],
    seed: int,
    refused: dict[str, Counter[str]],
) -> Iterator[PlantedPair]:
    """Yield the pairs of one way, from every output that has a place for it."""
    for output in Random(f"{seed}/{name}").sample(list(outputs), len(outputs)):  # noqa: S311 (no secret)
        chance = Random(f"{seed}/{name}/{output.id}")  # noqa: S311
        try:
            yield make(name, output, chance)
        except NoPlaceError as problem:
            refused.setdefault(name, Counter())[str(problem)] += 1


def _broken(name: str, item: GoodOutput, chance: Random) -> PlantedPair:
    broken = break_output(name, item.input, item.output, chance)
    return _pair(name, item, broken.text, DAMAGES[name].dimension, broken.impact)


def _control(name: str, item: GoodOutput, chance: Random) -> PlantedPair:
    if name == SAME_TEXT:
        return _pair(name, item, item.output)
    if name != REPLICATE:
        return _pair(name, item, reword_output(name, item.input, item.output, chance))
    if not item.replicate_output:
        raise NoPlaceError("it has no replicate_output")
    return _pair(name, item, item.replicate_output)


def _pair(
    name: str, item: GoodOutput, candidate: str, dimension: str | None = None, impact: Impact | None = None
) -> PlantedPair:
    return PlantedPair(
        id=f"{item.id}/{name}",
        stratum=item.stratum,
        input=item.input,
        baseline_output=item.output,
        candidate_output=candidate,
        source=item.id,
        planted=name,
        dimension=dimension,
        impact=impact,
    )
