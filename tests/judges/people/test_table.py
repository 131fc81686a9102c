"""Labels as CSV and back: nothing changes on the way, and what is wrong is named with its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.people.queue import labels_table, read_labels_table

from tests.support.reviews import NOON, change, label, pair, queue_of, scored

ITEMS = {item.id: item for item in (pair(), change(), scored())}
HEAD = "item,reviewer,at,question,answer,impact,note"
LINE = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs")), min_size=1, max_size=9)


def read(folder: Path, text: str) -> list[object]:
    path = folder / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return list(read_labels_table(path, ITEMS, NOON))


@given(
    reviewer=LINE, note=LINE | st.sampled_from(["=1+1", "'=x", 'a,b;"c"', "two\nlines", "@x", "-1", "'", " x ", "\tx"])
)
def test_labels_come_back_as_they_went(reviewer: str, note: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not reviewer.isprintable():
        return
    labels = [
        label(pair(), reviewer, overall="tie", note=note),
        label(change(), reviewer, factuality="candidate_worse high", tone="same"),
        label(scored(), reviewer, tone="3"),
    ]
    assert read(tmp_path_factory.mktemp("csv"), labels_table(ITEMS, labels)) == labels


def test_a_spreadsheet_computes_nothing_and_may_write_semicolons_and_leave_the_time_out(tmp_path: Path) -> None:
    table = labels_table(ITEMS, [label(pair(), "=HYPERLINK(1)", overall="1", note="+1")])
    assert "'=HYPERLINK(1)" in table
    assert "'+1" in table
    text = f"\ufeffitem;reviewer;question;answer\r\n{pair().id};ada;overall;1\r\n;;;\r\n"
    assert read(tmp_path, text) == [label(pair(), overall="1")]


def test_importing_again_changes_nothing_whatever_was_labelled_meanwhile(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, *ITEMS.values())
    first = label(pair(), overall="1")
    queue.label([first])
    table = labels_table(ITEMS, [first])
    queue.label([label(pair(), at="2026-03-05T08:00:00Z", overall="2")])
    path = tmp_path / "labels.csv"
    path.write_text(table)
    assert queue.label(read_labels_table(path, ITEMS, NOON)) == []


def test_what_is_wrong_is_named_with_its_line(tmp_path: Path) -> None:
    for text, problem in (
        ("", ":1: the column item is missing"),
        ("item,reviewer,question", ":1: the column answer is missing"),
        (f"{HEAD},impcat", ":1: unknown column 'impcat' (did you mean 'impact'?"),
        (f"{HEAD},note", ":1: the column note is there twice"),
        (f"{HEAD}\n{pair().id},ada,,overall,1", ":2: 5 cells where the head has 7"),
        (f"{HEAD}\n{pair().id},ada,,overall,,,", ":2: the column answer is empty"),
        (f'{HEAD}\n{pair().id},ada,,overall,1,,"two\nlines"\nx,ben,,overall,1,,', ":4: "),
        (f"{HEAD}\n{pair().id},ada,yesterday,overall,1,,", ":2: "),
        (f"{HEAD}\n{pair().id},ada,,overall,3,,", ":2: '3' is no answer"),
        (f"{HEAD}\n{'0' * 20},ada,,overall,1,,", ":2: the queue has no item"),
        (f"{HEAD}\n{change().id},ada,,tone,same,,", "no answer to factuality"),
        (f'{HEAD}\n{pair().id},ada,,overall,1,,"open', ":2: not CSV"),
    ):
        with pytest.raises(JudgeError) as refused:
            read(tmp_path, text)
        assert f"labels.csv{problem}" in str(refused.value) or problem in str(refused.value), text
