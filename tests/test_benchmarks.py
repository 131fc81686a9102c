"""The table of the benchmarks: what is met, what is missed, what changed; and the page has it as it was measured."""

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


def test_a_median_that_moved_names_the_commit_and_one_of_another_machine_does_not() -> None:
    history = [run(1.5 + at % 3 / 100, f"slow-{at}") for at in range(5)] + [run(1.1, f"fast-{at}") for at in range(5)]
    assert list(kept.changes(history[-1], "ours ÷ theirs", history)) == ["changed at fast-0 from 1.51 to 1.1"]
    elsewhere = Run(benchmark="engine", time="t", machine="another", commit="c", rows=history[0].rows)
    assert list(kept.changes(elsewhere, "ours ÷ theirs", history)) == []


def test_the_page_has_the_newest_of_what_was_kept() -> None:
    page, history = kept.PAGE.read_text(), kept.read_history()
    assert kept.page_with(kept.table(kept.newest(history, BENCHMARKS), history), page) == page
