"""How often the intervals of judges' figures hold the truth: `python benchmarks/judging.py [--seeds 2000]`; Markdown.

The worlds are those of `simulated_judges`. The first table has a row for each estimator, the second one for each design
of a corrected rate: the least and the mean coverage over true rates from 0 to 1 and over sensitivities and
specificities from 0.6 to 1. The third has a row for each judge of sentences, by how often it errs each way: 100 labels,
200 answers, by the share of them of which a sentence holds. The standard error of 2,000 seeds is 0.5 points. About
three minutes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from simulated_judges import Design, Reader, corrected, coverage, worlds

SIZES = (50, 100, 200)
DESIGNS = (
    Design(pairs=50, positives=50, negatives=50),
    Design(pairs=100, positives=50, negatives=100),
    Design(pairs=100, positives=100, negatives=100),
    Design(pairs=300, positives=100, negatives=100),
    Design(pairs=1000, positives=200, negatives=200),
)
RATES = (0.0, 0.05, 0.2, 0.5, 1.0)
HOLDING = (0.3, 0.5, 0.7, 0.8, 0.9)
QUALITIES = (0.6, 0.8, 0.95, 1.0)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2_000)
    seeds = parser.parse_args().seeds
    write(["what is estimated", "truth", *(f"{size} pairs" for size in SIZES)], estimators(seeds))
    write(["pairs", "positives", "negatives", "least", "mean"], corrections(seeds))
    write(["errs each way", *(f"holds of {share:.0%}" for share in HOLDING)], sentences(seeds))


def write(columns: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    """Print a Markdown table, row by row."""
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
    print()


def estimators(seeds: int) -> Iterator[Sequence[str]]:
    """Yield a row for each estimator: its truth and its coverage by the number of pairs, over 97 % in italics."""
    by_size = [worlds(size) for size in SIZES]
    for name, (_, truth) in by_size[0].items():
        held = [coverage(*of_size[name], seeds) for of_size in by_size]
        yield [name, f"{truth:.3f}", *(f"_{share:.1%}_" if share > 0.97 else f"{share:.1%}" for share in held)]


def corrections(seeds: int) -> Iterator[Sequence[str]]:
    """Yield a row for each design of a corrected rate."""
    for design in DESIGNS:
        held = [
            coverage(partial(corrected, design, rate, sensitivity, specificity), rate, seeds)
            for rate, sensitivity, specificity in product(RATES, QUALITIES, QUALITIES)
        ]
        counts = (design.pairs, design.positives, design.negatives)
        yield [*map(str, counts), f"{min(held):.1%}", f"{fmean(held):.1%}"]


def sentences(seeds: int) -> Iterator[Sequence[str]]:
    """Yield a row for each judge of sentences: how often the corrected share holds the truth."""
    for error in (0.05, 0.1, 0.2):
        held = [coverage(partial(Reader(error=error).corrected, share), share, seeds) for share in HOLDING]
        yield [f"{error:.0%}", *(f"{share:.1%}" for share in held)]


if __name__ == "__main__":
    main()
