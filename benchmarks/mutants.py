"""How often `mutate` kills a mutant that changes nothing, and one that loses a field in some cases.

`python benchmarks/mutants.py [--trials N]` prints Markdown; seeded. The model repeats itself: 85 % of the fields of 14
cases are right in every answer, the others wrong. Any edit moves one field of a share of the cases: another one in each
case, or one that the edit moves in all of them, or the same of every edit. The whole prompt is no edit. A mutant is
such an edit, and may lose one field in some cases besides.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from skill_evaluator.evaluation.mutation import decide_mutant, mutants_of
from skill_evaluator.library.prompts import Prompt
from worlds import Answers, World, answer, probabilities, rate, record_of, rules_of

MUTANT, _ = mutants_of(Prompt.of("Read.\n\n- Trim it."))
CONTROLS = 3
MOVES = ("a field of each case", "a field of the edit", "a field of all edits")
SHARES = (0.02, 0.05, 0.1)
LOST = (0, 1, 2, 3)
COLUMNS = (
    "an edit moves",
    "in",
    "answers",
    *(f"loses a field in {cases} of 14" if cases else "harmless" for cases in LOST),
)


def edited(answers: Answers, share: float, moves: str, rng: np.random.Generator) -> Answers:
    """Return what an edit makes of the answers."""
    cases, _, fields = answers.shape
    field = {MOVES[0]: rng.integers(fields, size=cases), MOVES[1]: rng.integers(fields), MOVES[2]: 0}[moves]
    flipped = np.zeros((cases, fields), bool)
    flipped[np.arange(cases), field] = rng.random(cases) < share
    return np.asarray(answers ^ flipped[:, None, :])


def killed(world: World, share: float, moves: str, lost: int, rng: np.random.Generator) -> bool:
    """Return whether a mutant is called killed that loses a field in so many cases."""
    answers = answer(world, probabilities(world, rng), rng)
    edits = [edited(answers, share, moves, rng) for _ in range(CONTROLS + 1)]
    field = int(answers[:, 0].sum(axis=0).argmax())
    held = np.flatnonzero(answers[:, 0, field])[:lost]
    edits[-1][held, :, field] = False
    records = [record_of(world, own, "1.0.0", run) for run, own in enumerate([answers, *edits])]
    return decide_mutant(MUTANT, records[:-1], records[-1], rules_of()).status == "killed"


def row_of(numbered: tuple[int, tuple[str, float, int]], trials: int) -> list[str]:
    """Return how often mutants are killed in one world."""
    number, (moves, share, replicates) = numbered
    world, rng = World(cases=14, replicates=replicates, kind="fixed"), np.random.default_rng([20_263, number])
    rates = [rate([killed(world, share, moves, lost, rng) for _ in range(trials)], trials) for lost in LOST]
    return [moves, f"{share:.0%} of cases", str(replicates), *rates]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    trials = parser.parse_args(arguments).trials
    worlds = [(moves, share, count) for moves in MOVES for share in SHARES for count in (2, 5)]
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    with Pool(2) as pool:
        for row in pool.imap(partial(row_of, trials=trials), enumerate(worlds)):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
