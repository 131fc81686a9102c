"""What one judge says of matches, outputs or pairs → those it settles, by a threshold from labels or by its own.

What is labelled is split in two by the seed: one half chooses the threshold of the cheap judge, the other half that of
the strong one among what is left. So each choice rests on labels that nothing before it has seen, and at δ/2 each both
hold at once with confidence 1 − δ.
"""

import hashlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evaluator.judges.review.items import ReviewReason
from skill_evaluator.judges.statistics.threshold import threshold_for
from skill_evaluator.library.config import JudgeCascade

Key = tuple[str, ...]
"""What is judged: the id of an item, and of a match the names of the two outputs."""
Labels = Mapping[Key, Any]
Agree = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a judge says of one thing, and why that is left to somebody else.

    `open`: the reasons that stand however sure the judge is; `own`: all reasons by the criteria's own thresholds.
    `besides`: why a person is to look at it even if a judge settles it.
    """

    verdict: Any
    confidence: float | None
    open: tuple[ReviewReason, ...]
    own: tuple[ReviewReason, ...]
    besides: tuple[ReviewReason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """One judge's standings and why they are left open: no reason is settled.

    `threshold` was chosen on so many `labels`; it is None without any, and where none could be shown to be safe.
    """

    standings: Mapping[Key, Standing]
    reasons: Mapping[Key, tuple[ReviewReason, ...]]
    threshold: float | None
    labels: int

    @property
    def settled(self) -> list[Key]:
        """What needs nobody else."""
        return [key for key, reasons in self.reasons.items() if not reasons]


def route(standings: Mapping[Key, Standing], labels: Labels | None, agree: Agree, policy: JudgeCascade) -> Routing:
    """Return what a judge settles; `labels` are None where nobody labelled anything."""
    if labels is None:
        own = {key: one.own for key, one in standings.items()}
        return Routing(standings=standings, reasons=own, threshold=None, labels=0)
    labelled = [(one, labels[key]) for key, one in standings.items() if key in labels and not one.open]
    chosen = threshold_for(
        [one.confidence or 0.0 for one, _ in labelled],
        [agree(one.verdict, human) for one, human in labelled],
        alpha=policy.alpha,
        delta=policy.delta / 2,
    )
    lowest = math.inf if chosen is None else chosen.at_least - 1e-9
    unsure: tuple[ReviewReason, ...] = ("low_confidence",)
    return Routing(
        standings=standings,
        reasons={
            key: one.open or (() if (one.confidence or 0.0) >= lowest else unsure) for key, one in standings.items()
        },
        threshold=None if chosen is None else chosen.at_least,
        labels=len(labelled),
    )


def fewest_labels(policy: JudgeCascade) -> int:
    """Return how many labels it takes at least until both judges can have a threshold.

    >>> fewest_labels(JudgeCascade(alpha=0.1, delta=0.1))
    58
    """
    return 2 * math.ceil(math.log(policy.delta / 2) / math.log(1 - policy.alpha))


def halves(labels: Labels, seed: int) -> tuple[Labels, Labels]:
    """Split labels in two by chance, for the cheap judge and the strong one."""
    ranked = sorted(labels, key=lambda key: hashlib.sha256(f"{seed}/{key}".encode()).hexdigest())
    first = set(ranked[::2])
    return {key: labels[key] for key in ranked if key in first}, {
        key: labels[key] for key in ranked if key not in first
    }


def audited(settled: Sequence[Key], share: float, seed: int) -> set[Key]:
    """Draw about a share of what is settled, each by itself, so that who is drawn does not depend on the others."""
    return {key for key in settled if random.Random(f"{seed}/audit/{key}").random() < share}  # noqa: S311 (no secret)
