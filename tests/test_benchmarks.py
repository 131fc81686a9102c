"""The table of the benchmarks: what is met, what is missed; and the page has it as it was measured."""

from benchmarks import kept
from benchmarks.__main__ import BENCHMARKS
from benchmarks.kept import Run
from benchmarks.measure import Measured


def run(median: float, commit: str = "c", **of_row: float) -> Run:
    row = Measured(name="ours ÷ theirs", values=(median - 0.1, median, median + 0.1), **of_row)
    return Run(benchmark="engine", time="t", machine="m", commit=commit, rows=(row,))


def test_a_bound_is_met_or_missed_from_either_side_by_the_median() -> None:
    shown = [kept.table([run(1.3, **bound)]).splitlines()[-1] for bound in ({"most": 1.3}, {"most": 1.2}, {"least": 2})]
    assert shown == [
        "| ours ÷ theirs | ≤ 1.3 | 1.30 | 1.20 to 1.40 | met |",
        "| ours ÷ theirs | ≤ 1.2 | 1.30 | 1.20 to 1.40 | **missed** |",
        "| ours ÷ theirs | ≥ 2 | 1.30 | 1.20 to 1.40 | **missed** |",
    ]


def test_a_peer_that_is_not_installed_is_said() -> None:
    row = Measured(name="ours ÷ apted", values=(), least=10, note="pip install apted")
    assert "| skipped; pip install apted |" in kept.table(
        [Run(benchmark="b", time="", machine="", commit="", rows=(row,))]
    )


def test_the_page_has_the_newest_of_what_was_kept() -> None:
    page, history = kept.PAGE.read_text(), kept.read_history()
    assert kept.table(kept.newest(history, BENCHMARKS)) + kept.END in page
