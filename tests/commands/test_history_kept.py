"""What `history` keeps beside the records changes how long it takes, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator import Library as PromptLibrary
from skill_evaluator.commands.history import HistoryOptions, history

from tests.support.library import SKILL, Library, read
from tests.support.records import a_run, keep

KEPT = Path("components", SKILL, "evals", "results", ".history.json")
RECORDS = Path("components", SKILL, "evals", "records")


def scores(level: float) -> dict[str, list[float]]:
    return {f"c{at}": [level, level - 0.1 * (at % 3), level] for at in range(6)}


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library(tmp_path)
    for model_id in ("m", "n"):
        keep(library, *(a_run(f"1.{at}.0", at + 1, scores(0.9 - 0.1 * at), model_id=model_id) for at in range(4)))
    monkeypatch.chdir(library.root)
    return library


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run `history` as JSON; return exit code and output."""

    def run(**options: Any) -> tuple[int, str]:
        capsys.readouterr()
        return history(HistoryOptions(skill=SKILL, format="json", **options)), capsys.readouterr().out

    return run


def test_a_second_look_is_the_same_and_draws_nothing(library: Library, shown: Callable[..., tuple[int, str]]) -> None:
    first = shown(fail_on=("regressed",))
    written = KEPT.read_bytes(), KEPT.stat().st_mtime_ns
    assert (first[0], len(read(KEPT)["verdicts"])) == (3, 1 + 3)  # the history, and the steps of both models together
    assert shown(fail_on=("regressed",)) == first
    assert (KEPT.read_bytes(), KEPT.stat().st_mtime_ns) == written


def test_after_a_further_run_only_its_step_is_drawn(library: Library, shown: Callable[..., tuple[int, str]]) -> None:
    shown()
    before = read(KEPT)["verdicts"]
    keep(library, a_run("1.4.0", 20, scores(0.5)))
    after, out = read_after(shown)
    assert after.items() >= before.items()
    # the history, the new step, and that of the former highest: it has no anchor now
    assert len(after) - len(before) <= 3
    KEPT.unlink()
    assert read_after(shown)[1] == out


def test_where_the_site_is_published_draws_nothing_anew(
    library: Library, shown: Callable[..., tuple[int, str]]
) -> None:
    shown()
    before = KEPT.stat().st_mtime_ns
    library.settings(site={"address": "https://example.com"})
    shown()
    assert KEPT.stat().st_mtime_ns == before


def read_after(shown: Callable[..., tuple[int, str]]) -> tuple[dict[str, Any], str]:
    _, out = shown()
    return read(KEPT)["verdicts"], out


def edit_a_record(library: Library) -> None:
    path = sorted(RECORDS.iterdir())[2]
    record = read(path)
    record["per_case"][0]["replicates"]["field_level_f1"] = [0.0, 0.0, 0.0]
    path.write_text(json.dumps(record))


def add_a_run(library: Library) -> None:
    keep(library, a_run("1.2.0", 9, scores(0.2), seed=9))


def change_the_policy(library: Library) -> None:
    library.settings(policy={"tolerance": 0.5, "anchor": "previous"})


def waive(library: Library) -> None:
    waiver = {"component": SKILL, "metric": "field_level_f1", "reason": "known", "expires": "2999-01-01"}
    library.write(".evaluator/waivers/one.yaml", waiver)


@pytest.mark.parametrize("change", [edit_a_record, add_a_run, change_the_policy, waive])
def test_what_is_kept_is_never_of_other_inputs(
    library: Library, shown: Callable[..., tuple[int, str]], change: Callable[[Library], None]
) -> None:
    before = shown()
    change(library)
    with_kept = shown()
    assert with_kept != before
    KEPT.unlink()
    assert shown() == with_kept


def test_a_damaged_file_is_drawn_anew(library: Library, shown: Callable[..., tuple[int, str]]) -> None:
    first = shown()
    written = KEPT.read_text()
    other_shape = json.dumps({"verdicts": {key: {"models": 1} for key in read(KEPT)["verdicts"]}})
    for content in ("", "{", "[]", '{"verdicts": 1}', '{"verdicts": [1]}', "\0", "{}", other_shape):
        KEPT.write_text(content)
        assert shown() == first, content
        if content is not other_shape:
            assert KEPT.read_text() == written, content


def test_a_history_and_a_ranking_are_kept_though_parts_of_them_are_not_known(library: Library) -> None:
    drawn = PromptLibrary().recorded(SKILL).standing()
    assert drawn is not None
    assert drawn.ranking.models[0].prompt_adds is None
    written = KEPT.read_bytes(), KEPT.stat().st_mtime_ns
    again = PromptLibrary().recorded(SKILL).standing()
    assert again == drawn
    assert (KEPT.read_bytes(), KEPT.stat().st_mtime_ns) == written  # which it is not where one was drawn anew


def test_what_was_not_used_for_longest_goes_first_from_a_full_file(
    library: Library, shown: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown()
    *steps, whole = read(KEPT)["verdicts"]
    keep(library, a_run("1.4.0", 20, scores(0.5)))
    monkeypatch.setattr("skill_evaluator.verdicts.history.cache._MOST", 1_500 + KEPT.stat().st_size)
    shown()
    left = read(KEPT)["verdicts"]
    assert whole not in left  # the history as it was before, which nothing asks for any more
    assert len(left.keys() & set(steps)) >= 2
    assert KEPT.stat().st_size < 2_000 + len(json.dumps(left))


def test_models_apart_and_together_are_kept_side_by_side(
    library: Library, shown: Callable[..., tuple[int, str]]
) -> None:
    apart, together = shown(models=("m",)), shown()
    assert (shown(models=("m",)), shown()) == (apart, together)
    KEPT.unlink()
    assert (shown(), shown(models=("m",))) == (together, apart)
