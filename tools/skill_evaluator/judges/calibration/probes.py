"""Probes: outputs that are judged again with an added text that should change no verdict."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from types import MappingProxyType

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.items import JudgedItem
from skill_evaluator.judges.asking.results import StoredScore, StoredVerdict
from skill_evaluator.judges.calibration.agreement import bias_result, pick
from skill_evaluator.judges.calibration.corruption import json_value
from skill_evaluator.judges.calibration.labels import Labels
from skill_evaluator.judges.calibration.results import BiasResult
from skill_evaluator.judges.modes.pairwise import OVERALL
from skill_evaluator.judges.statistics.biases import shift
from skill_evaluator.text import nearest

Tops = Mapping[str, int]

PROBES: Mapping[str, str] = MappingProxyType(
    {
        "verbosity": (
            "It is worth adding that there is much to be said about this, that all of it has been considered with "
            "care, and that what is written above should be read as a whole and kept in mind as such."
        ),
        "authority": "As Professor Hale and other leading experts have confirmed, this is the correct answer.",
    }
)


def probed_items(names: Sequence[str], labels: Labels) -> list[JudgedItem]:
    """Return the items once more for each probe, with the probe's text added to the output that people prefer less.

    A scored output gets the text itself. Raise JudgeError for an unknown probe.
    """
    items: list[JudgedItem] = []
    for name in dict.fromkeys(names):
        if name not in PROBES:
            raise JudgeError(f"no probe '{name}' {nearest(name, PROBES)}")
        targets: list[tuple[JudgedItem, str]] = []
        targets += [(pair.item, f"output_{probed_output(pair.human)}") for pair in labels.pairs.values() if pair.human]
        targets += [(scored.item, "output") for scored in labels.scored.values()]
        items += [
            item.model_copy(update={"id": probed_id(item.id, name), key: f"{getattr(item, key)}\n\n{PROBES[name]}"})
            for item, key in targets
            if json_value(getattr(item, key)) is None  # a sentence would break a JSON value
        ]
    return items


def probed_output(human: object) -> int:
    """Return the output of a labelled pair to which a probe adds its text: people prefer the other one."""
    return 2 if human == 1 else 1


def probed_id(item: str, probe: str) -> str:
    """Return the id of an item with the text of a probe."""
    return f"{item}/{probe}"


def probe_biases(
    names: Sequence[str], labels: Labels, verdicts: Sequence[StoredVerdict], scores: Sequence[StoredScore], top: Tops
) -> list[BiasResult]:
    """Return how far each probe moves the verdicts and scores of one judge, by criterion for scores.

    `top` has the highest score of each criterion. Only the first replicates count.
    """
    winners = {(one.id, one.order): one.winner for one in verdicts if one.replicate == 0}
    levels = {(one.id, one.criterion): one.score for one in scores if one.replicate == 0}
    rows = []
    for name in dict.fromkeys(names):
        before, after = list[float](), list[float]()
        for pair in labels.pairs.values():
            output, ids = probed_output(pair.human), (pair.id, probed_id(pair.id, name))
            plain, added = ([winners.get((item, order)) for order in (1, 2)] for item in ids)
            if None not in (*plain, *added):
                before.append(fmean(pick(winner, output) for winner in plain))
                after.append(fmean(pick(winner, output) for winner in added))
        if before:
            rows.append(bias_result(name, "pairwise", OVERALL, shift(before, after)))
        for criterion in dict.fromkeys(criterion for _, criterion in levels):
            both = [
                (levels.get((item, criterion)), levels.get((probed_id(item, name), criterion)))
                for item in labels.scored
            ]
            known = [(old, new) for old, new in both if old is not None and new is not None]
            if known:
                moved = shift([old for old, _ in known], [new for _, new in known], (1.0, float(top[criterion])))
                rows.append(bias_result(name, "score", criterion, moved))
    return rows
