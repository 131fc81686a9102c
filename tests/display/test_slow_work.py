"""Notices about slow work: work of more than two seconds prints its progress, quick work prints nothing."""

import time

import pytest
from skill_evaluator import display
from skill_evaluator.display import notice_when_slow, with_progress


def test_progress_is_printed_after_two_four_and_eight_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(display.time, "monotonic", lambda: next(clock))
    assert list(with_progress("abcdefghij", 10, "pages")) == list("abcdefghij")
    assert capsys.readouterr() == (
        "",
        "pages: 2 of 10, 0:08 left\npages: 4 of 10, 0:06 left\npages: 8 of 10, 0:02 left\n",
    )


def test_quick_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(with_progress([1, 2], 2, "pages")) == [1, 2]
    with notice_when_slow("loading"):
        pass
    assert capsys.readouterr() == ("", "")


def test_slow_work_prints_its_notice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(display, "_SLOW_S", 0.01)
    with notice_when_slow("loading"):
        time.sleep(0.2)
        assert capsys.readouterr() == ("", "loading\n")
