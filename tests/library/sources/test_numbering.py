"""Version numbers of prompts whose format has none."""

import json
from pathlib import Path

import pytest
from skill_evaluator.library.sources import numbered, recorded_in

A, B, C = (f"sha256:{letter * 64}" for letter in "abc")


def row(version: str, prompt: str, schema: str = A) -> tuple[str, dict[str, str]]:
    """One recorded run, its digests abbreviated as a leaderboard has them."""
    return version, {"prompt": prompt[7:23], "schema": schema[7:23]}


FIRST, SECOND = row("0.1.0+aaaaaaaa", A), row("0.2.0+bbbbbbbb", B)


@pytest.mark.parametrize(
    ("prompt", "recorded", "version"),
    [
        (A, [], "0.1.0+aaaaaaaa"),
        (B, [SECOND, FIRST], "0.2.0+bbbbbbbb"),
        (A, [SECOND, FIRST], "0.1.0+aaaaaaaa"),  # reverted
        (C, [SECOND, FIRST], "0.3.0+cccccccc"),
        (A, [row("0.1.0+aaaaaaaa", A, B)], "0.2.0+aaaaaaaa"),  # another schema
        (B, [row("1.4.2", A)], "1.5.0+bbbbbbbb"),  # its version was declared, and no longer is
        (B, [row("newest", A), ("1.0.0", {})], "1.1.0+bbbbbbbb"),
    ],
)
def test_number_is_that_of_the_record_or_the_next_minor(
    prompt: str, recorded: list[tuple[str, dict[str, str]]], version: str
) -> None:
    assert numbered({"prompt": prompt, "schema": A}, recorded) == version


def test_unrecorded_baseline_is_numbered_below_the_candidate() -> None:
    assert numbered({"prompt": C, "schema": A}, [SECOND, FIRST], below="0.3.0+dddddddd") == "0.2.1+cccccccc"
    assert numbered({"prompt": C, "schema": A}, [], below="0.1.0+dddddddd") == "0.0.1+cccccccc"


def test_leaderboard_that_is_missing_or_broken_records_nothing(tmp_path: Path) -> None:
    board = tmp_path / "leaderboard.json"
    assert list(recorded_in(board)) == []
    board.write_text("<<<<<<< HEAD")
    assert list(recorded_in(board)) == []
    board.write_text(json.dumps({"runs": [{"skill_version": "1.0.0"}]}))
    assert list(recorded_in(board)) == [("1.0.0", {})]
