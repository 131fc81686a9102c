"""How far the changes of `history` can be trusted, by simulation: `python benchmarks/histories.py [--quick]`.

A history of made-up records goes through the very search. False alarms: the share of histories in which nothing was
made worse or better, and a change is reported. Power: a fall at one version, found there within one version. p-values
rest on 500 draws instead of 2,000.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pool
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from skill_evaluator.records.record import SCORED, CaseRecord, Record
from skill_evaluator.verdicts import change_points
from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.history import search_changes
from skill_evaluator.verdicts.history_results import Change
from skill_evaluator.verdicts.stretches import effect_of_runs
from worlds import Answers, Floats, World, answer, latent, probabilities, rate, record_of, rules_of, spread

WORLDS = {
    "independent": World(),
    "independent, known to be sampled": World(sampled=True),
    "share 60 %": World(share=0.6),
    "share 90 %": World(share=0.9),
    "14 × 10, each version rewords 20 % of the one before": World(cases=14, replicates=10, share=0.95, reworded=0.2),
    "14 × 10, each version is reworded altogether": World(cases=14, replicates=10, share=0.95, reworded=1.0),
    "day 0.2": World(day=0.2),
    "day 0.3": World(day=0.3),
}
COLUMNS = ("world", "gate", "versions", "runs of each", "fall", "histories", "any change, %", "found, %", "others, %")
MODEL, METRIC = "m", "field_level_f1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A history to make up, so many times: `fall` is the drop at seven twelfths of the versions."""

    world: str
    gate: str = "robust"
    versions: int = 12
    runs: int = 1
    fall: float = 0.0
    times: int = 200

    @property
    def at(self) -> int:
        """The place of the first version that fell."""
        return self.versions * 7 // 12


def record_of_run(template: Record, answers: Answers, at: int) -> Record:
    """Return the record of a run with what a search reads of its cases."""
    cases = [
        CaseRecord.model_construct(
            case_id=f"c{place:03}",
            digest="d",
            outcomes=[SCORED] * len(own),
            replicates={METRIC: own.mean(axis=1).tolist()},
            fields={},
            reproducibility={},
        )
        for place, own in enumerate(answers)
    ]
    return template.model_copy(update={"skill_version": f"1.{at}.0", "per_case": cases})


def some_history(setting: Setting, rng: np.random.Generator) -> list[Pair]:
    """Return the versions of one model, each the candidate of a pair."""
    world = WORLDS[setting.world]
    p = probabilities(world, rng)
    fallen = spread(p, setting.fall)
    wording: Floats | None = None
    template = record_of(replace(world, cases=0), np.zeros((0, 1, 1), dtype=bool), "1.0.0", model=MODEL, saved_calls=0)
    versions = []
    for at in range(setting.versions):
        if world.reworded is not None:
            drawn = latent(rng, (world.cases, 1, world.fields))
            again = rng.random(drawn.shape) < world.reworded
            wording = drawn if wording is None else np.where(again, drawn, wording)
        records = [
            record_of_run(template, answer(world, p if at < setting.at else fallen, rng, wording, day), at)
            for day in world.day * rng.standard_normal(setting.runs)
        ]
        versions.append(Pair(baseline=None, candidate=records[-1], candidate_again=tuple(records[:-1])))
    return versions


def changes_in(setting: Setting, rng: np.random.Generator) -> list[Change]:
    """Return the changes that are reported of one history."""
    versions = some_history(setting, rng)
    return search_changes({MODEL: versions}, effect_of_runs(versions, METRIC), rules_of(setting.gate))[MODEL].changes


def row(numbered: tuple[int, Setting]) -> list[str]:
    """Make up the histories of a setting and count."""
    number, setting = numbered
    change_points._DRAWS = 500
    rng = np.random.default_rng([20_261, number])
    named = [[change.version for change in changes_in(setting, rng)] for _ in range(setting.times)]
    near = {f"1.{at}.0" for at in range(setting.at - 1, setting.at + 2)} if setting.fall else set()
    found = [any(version in near for version in versions) for versions in named]
    others = [any(version not in near for version in versions) for versions in named]
    return [
        setting.world,
        setting.gate,
        str(setting.versions),
        str(setting.runs),
        f"{setting.fall:g}",
        str(setting.times),
        rate([bool(versions) for versions in named], setting.times),
        rate(found, setting.times) if setting.fall else "",
        rate(others, setting.times),
    ]


def settings(quick: bool) -> Iterator[Setting]:
    """Yield the null histories, then the falls."""
    times = 40 if quick else 400
    for versions in (12,) if quick else (12, 20, 5):
        yield from (Setting(world=world, versions=versions, times=times) for world in WORLDS)
    for fall in (0.1,) if quick else (0.1, 0.05):
        yield from (Setting(world=world, fall=fall, times=times // 2) for world in WORLDS)
    if not quick:
        yield from (Setting(world=world, runs=2, times=times // 2) for world in WORLDS)
        for gate in ("fixtures", "generalises"):
            yield from (Setting(world=world, gate=gate, times=times // 2) for world in WORLDS)


def history_rows(quick: bool) -> Iterator[Sequence[str]]:
    """Yield the rows of the table; two processes."""
    with Pool(2) as pool:
        yield from pool.imap(row, enumerate(settings(quick)))


def main(quick: bool) -> None:
    """Print the table."""
    begun = time.perf_counter()
    print(f"\n## Changes in histories\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for cells in history_rows(quick):
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n{time.perf_counter() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few histories of few settings")
    main(parser.parse_args().quick)
