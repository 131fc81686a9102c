"""A judge's verdicts in the form that `judge calibrate` reads: it says what they are worth, from people's labels."""

from collections.abc import Iterator
from pathlib import Path

from skill_evaluator.files import replace_blocks
from skill_evaluator.judges.calibration.files import StoredVerdict
from skill_evaluator.judges.pairwise.matches import ORDERS, PAIR
from skill_evaluator.judges.pairwise.results import OVERALL, JudgePreferences, PairJudgement, PairwiseResults

VERDICTS = "verdicts.jsonl"


def write_verdicts(folder: Path, results: PairwiseResults) -> None:
    """Write the verdicts of every answer about an item with two outputs; raise StorageError."""
    verdicts = (verdict for judge in results.judges for verdict in verdicts_of(judge))
    replace_blocks(folder / VERDICTS, (f"{verdict.model_dump_json(exclude_none=False)}\n" for verdict in verdicts))


def verdicts_of(judge: JudgePreferences) -> Iterator[StoredVerdict]:
    """Yield the verdict of every answer about an item with two outputs: overall, and by each criterion."""
    for match in judge.matches:
        by_replicate: dict[int, dict[str, PairJudgement]] = {}
        for judgement in match.judgements if match.names == PAIR else []:
            by_replicate.setdefault(judgement.replicate, {})[judgement.criterion] = judgement
        for replicate, judgements in by_replicate.items():
            overall = judgements.pop(OVERALL)
            for place, said in enumerate(overall.orders):
                if said.unscored != "not_answered":  # nothing was said, which is no verdict
                    yield StoredVerdict(
                        id=match.item,
                        judge=judge.judge.model_id,
                        order=ORDERS[place],
                        winner=said.winner,
                        confidence=said.confidence,
                        replicate=replicate,
                        criteria={name: one.orders[place].winner for name, one in judgements.items()},
                    )
