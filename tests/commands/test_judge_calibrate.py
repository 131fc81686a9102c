"""`judge calibrate` without a key: stored verdicts of real judges, and all that can be wrong with the two files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.library import ROOT, Ended, Library

STORED = ROOT / "tests" / "data" / "judging"
TABLE = (STORED / "figures.md").read_text("utf-8").splitlines()[2:]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


def calibrate(library: Library, *arguments: str, items: Path | str = "items.jsonl") -> Ended:
    return library.call("judge", "calibrate", "--labels", str(items), *arguments)


def of_files(library: Library, *arguments: str) -> Ended:
    return calibrate(library, "--verdicts", "verdicts.jsonl", *arguments)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Any:
    done = of_stored(Library(tmp_path_factory.mktemp("stored")), "--format", "json")
    assert done.code == 0, done.err
    jsonschema.validate(done.json, json.loads(schema_text("judge-calibration")))
    return done.json


def of_stored(library: Library, *arguments: str, judges: Sequence[str] = ()) -> Ended:
    """Measure the stored verdicts, of these judges or of all."""
    stored = (STORED / "verdicts.jsonl").read_text("utf-8").splitlines(keepends=True)
    named = [line for line in stored if not judges or json.loads(line)["judge"] in judges]
    library.write("stored.jsonl", "".join(named))
    return calibrate(library, "--verdicts", "stored.jsonl", *arguments, items=STORED / "items.jsonl")


def test_real_judges_have_the_figures_that_are_recomputed_from_their_verdicts(stored: Any) -> None:
    """The table was made from the same verdicts by other code; the last column agrees with what LLMBar published."""
    by_judge = {judge["judge"]: judge["strata"] for judge in stored["judges"]}
    for stratum, judge, n, unparsed, accuracy, *figures in ROWS:
        row = by_judge[judge][stratum]
        assert (str(row["n"]), str(row["unparsed"])) == (n, unparsed)
        assert " / ".join(f"{share:.3f}" for share in row["accuracy"]) == accuracy
        names = ("flip_rate", "picks_first", "kappa_people", "kappa_orders")
        assert [f"{row[name]:.3f}" for name in names] == figures
    assert sum(len(strata) for strata in by_judge.values()) == len(ROWS) == 18


def test_every_figure_has_an_interval_that_holds_it_and_has_a_width(stored: Any) -> None:
    for judge in stored["judges"]:
        for row in judge["strata"].values():
            values = {name: row[name.removesuffix("_ci95")] for name in row if name.endswith("_ci95")}
            pairs = [(values.pop("accuracy_ci95"), row["accuracy_ci95"])]
            assert len(values) == 6
            figures = [(value, row[name]) for name, value in values.items()]
            figures += [both for shares, bounds in pairs for both in zip(shares, bounds, strict=True)]
            for value, (low, high) in figures:
                assert low <= value <= high
                assert high - low > 0.01


def test_the_page_says_in_words_what_each_judge_may_be_used_for_and_agreeing_with_itself_is_no_reason(
    library: Library,
) -> None:
    for form in ("text", "markdown"):
        text = of_stored(library, "--format", form, judges=("LLaMA2", "GPT-4")).out.replace("`", "")
        assert "LLaMA2 on neighbor: not trusted. κ with people -0.39 (-0.50 to -0.27), worse than a coin" in text
        assert "It agrees with itself in 78%." in text
        assert "GPT-4 on natural: trusted." in text
        assert "GPT-4 on neighbor: undecided: about 343 more labels would decide." in text
        assert "Agreeing with itself is no reason for trust." in text


def test_a_higher_bar_does_not_trust_the_best_of_them(library: Library) -> None:
    done = of_stored(library, "--format", "json", "--bar", "0.95", judges=("GPT-4",))
    assert done.json["bar"] == 0.95
    assert not any(row["trusted"] for judge in done.json["judges"] for row in judge["strata"].values())


def pair(number: int, human: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": f"p{number}", "human": human, **more}


def verdict(number: int, order: int, winner: Any, **more: Any) -> dict[str, Any]:
    return {"id": f"p{number}", "judge": "j", "order": order, "winner": winner, **more}


def figures(library: Library, *arguments: str) -> Any:
    """What is measured of the one judge, over all items."""
    return of_files(library, "--format", "json", *arguments).json["judges"][0]["strata"]["all"]


def test_what_was_not_judged_or_in_one_order_only_is_counted_and_said(library: Library) -> None:
    library.lines("items.jsonl", pair(0), pair(1, 2), pair(2, "tie"), pair(3))
    library.lines("verdicts.jsonl", verdict(0, 1, 1), verdict(0, 2, 1), verdict(1, 1, 2), verdict(2, 2, "tie"))
    row = figures(library)
    assert (row["n"], row["incomplete"], row["unjudged"], row["unparsed"]) == (3, 2, 1, 0)
    assert row["accuracy"] == [1, 1]
    assert row["trusted"] is None
    assert "2 pairs with one order only, 1 not judged" in of_files(library).out


def test_verdicts_in_one_order_say_nothing_of_position(library: Library) -> None:
    library.lines("items.jsonl", *(pair(number, 1 + number % 2) for number in range(60)))
    library.lines("verdicts.jsonl", *(verdict(number, 1, 1 + number % 2) for number in range(60)))
    row = figures(library)
    assert row["trusted"] is True
    assert row["accuracy"] == [1, None]
    assert row["flip_rate"] is row["picks_first"] is row["kappa_orders"] is row["lean_ci95"] is None
    assert "agrees with itself" not in of_files(library).out


def test_a_pair_of_different_verdicts_is_a_tie_and_with_an_unparsed_one_not_parsed(library: Library) -> None:
    """κ of the two together is that of three categories against people's."""
    library.lines("items.jsonl", pair(0), pair(1, 2), pair(2), pair(3, 2))
    orders = [(1, 1), (2, 2), (1, 2), (None, 2)]
    library.lines(
        "verdicts.jsonl",
        *(verdict(number, order, both[order - 1]) for number, both in enumerate(orders) for order in (1, 2)),
    )
    row = figures(library)
    assert row["kappa_both"] == pytest.approx((0.5 - 0.25) / (1 - 0.25))
    assert row["unparsed"] == 1
    assert row["confusion"] == {
        "1": {"1": 1, "2": 0, "tie": 0},
        "2": {"1": 0, "2": 1, "tie": 0},
        "tie": {"1": 1, "2": 0, "tie": 0},
        "unparsed": {"1": 0, "2": 1, "tie": 0},
    }
    assert row["flip_rate"] == pytest.approx(1 / 3)  # of the pairs with two parsed verdicts


def test_length_and_confidence_are_measured_where_they_are_given(library: Library) -> None:
    rng = np.random.default_rng(8)
    humans = rng.integers(1, 3, 80).tolist()
    longer = [1 + number % 2 for number in range(80)]
    texts = [{"output_1": "word " * (3 - long), "output_2": "word " * long} for long in longer]
    library.lines("items.jsonl", *(pair(number, humans[number], **texts[number]) for number in range(80)))
    library.lines(
        "verdicts.jsonl",
        *(verdict(number, order, longer[number], confidence=0.9) for number in range(80) for order in (1, 2)),
    )
    row = figures(library)
    share = np.mean([human == long for human, long in zip(humans, longer, strict=True)])
    assert row["length"]["value"] == pytest.approx(1 - share)
    assert row["confidence"]["labels"]["overconfidence"]["value"] == pytest.approx(0.9 - share)
    assert row["confidence"]["labels"]["follows"] is False
    out = of_files(library).out
    assert "points more often than people do" in out
    assert "Its confidence tells nothing" in out


def test_labels_of_one_kind_leave_a_judge_undecided_and_what_has_none_is_counted(library: Library) -> None:
    library.lines("items.jsonl", *map(pair, range(5)))
    library.lines("verdicts.jsonl", *(verdict(number, order, 1) for number in range(7) for order in (1, 2)))
    done = of_files(library)
    assert "undecided: labels and verdicts are all of one kind" in done.out
    assert "2 items of verdicts.jsonl without a label in items.jsonl: left aside" in done.err


def test_replicates_show_the_judges_own_noise_apart_from_its_flips(library: Library) -> None:
    """Of 40 pairs 20 flip with the order; of the 20 that were asked again, 5 are answered otherwise.

    Both orders of a pair are one unit: what is asked again in order 2 as well makes the interval no narrower.
    """
    library.lines("items.jsonl", *(pair(number, 1 + number % 2) for number in range(40)))
    first = [verdict(number, 1, 1, replicate=0) for number in range(40)]
    again = [verdict(number, 1, 2 if number < 5 else 1, replicate=1) for number in range(20)]
    swapped = [verdict(number, 2, 1 + number % 2) for number in range(40)]
    library.lines("verdicts.jsonl", *again, *first, *swapped)
    row = figures(library)
    assert (row["n"], row["flip_rate"], row["accuracy"]) == (40, 0.5, [0.5, 1.0])  # the first replicate counts
    assert (row["noise"]["value"], row["noise"]["n"]) == (0.25, 20)
    assert row["flips_beyond_noise"]["value"] == 0.25
    assert row["flips_beyond_noise"]["ci95"][0] < 0.25 < row["flips_beyond_noise"]["ci95"][1]
    assert "Asked the same again it says something else in 25%." in of_files(library).out
    both = [verdict(number, 2, 1 + (number + (number < 5)) % 2, replicate=1) for number in range(20)]
    library.lines("verdicts.jsonl", *again, *first, *swapped, *both)
    assert figures(library)["noise"] == row["noise"]


def test_confidence_of_a_judge_that_was_never_wrong_is_not_called_worthless(library: Library) -> None:
    library.lines("items.jsonl", *(pair(number, 1 + number % 2) for number in range(20)))
    verdicts = (verdict(number, order, 1 + number % 2, confidence=0.9) for number in range(20) for order in (1, 2))
    library.lines("verdicts.jsonl", *verdicts)
    assert "Its confidence" not in of_files(library).out


def test_a_split_is_measured_by_itself(library: Library) -> None:
    splits = ["development", "held_out"]
    library.lines("items.jsonl", *(pair(number, split=splits[number % 2]) for number in range(4)))
    library.lines(
        "verdicts.jsonl", *(verdict(number, order, 1 + number % 2) for number in range(4) for order in (1, 2))
    )
    for split, right in zip(splits, [1, 0], strict=True):
        row = figures(library, "--split", split)
        assert (row["n"], row["unjudged"], row["accuracy"]) == (2, 0, [right, right])
    library.lines("items.jsonl", *map(pair, range(4)))
    assert "error: no item is in the split held_out" in of_files(library, "--split", "held_out").err


ITEM, VERDICT = json.dumps(pair(0)), json.dumps(verdict(0, 1, 1))


@pytest.mark.parametrize(
    ("items", "verdicts", "problem"),
    [
        ("", VERDICT, "items.jsonl is empty; it needs a JSON object on each line"),
        (ITEM, "", "verdicts.jsonl is empty"),
        (f"{ITEM}\n{{", VERDICT, "items.jsonl:2: not JSON"),
        (f"{ITEM}\n{ITEM}", VERDICT, "items.jsonl:2: the id 'p0' is on line 1 already"),
        ('{"id": "p0"}', VERDICT, "items.jsonl:1: human is needed"),
        ('{"id": "p0", "human": 3}', VERDICT, "items.jsonl:1: Input should be 1, 2 or 'tie', got 3 at human"),
        ('{"id": "p0", "human": 1, "label": 1}', VERDICT, "items.jsonl:1: unknown key at label"),
        ('{"id": "p0\\u001b[31m", "human": 1}', VERDICT, "holds a character that does not print"),
        ("[1]", VERDICT, "items.jsonl:1: a mapping of keys to values is expected"),
        (ITEM, f"\n{VERDICT}\n{VERDICT}", "verdicts.jsonl:3: replicate 0 of j on 'p0' in order 1 is on line 2 already"),
        (ITEM, json.dumps(verdict(1, 1, 1)), "verdicts.jsonl:1: id 'p1' is no item of items.jsonl"),
        (ITEM, json.dumps(verdict(0, 3, 1)), "verdicts.jsonl:1: Input should be 1 or 2, got 3 at order"),
        (ITEM, json.dumps(verdict(0, 1, True)), "verdicts.jsonl:1: 1 or 2 is expected, and no boolean at winner"),
        (ITEM, json.dumps({**pair(0), "judge": "j", "order": 1}), "verdicts.jsonl:1: "),
        (ITEM, json.dumps(verdict(0, 1, 1, confidence=7)), "at confidence"),
        (ITEM, json.dumps(verdict(0, 1, 1, replicate=-1)), "at replicate"),
    ],
)
def test_a_wrong_line_is_one_line_of_error_with_its_place(
    library: Library, items: str, verdicts: str, problem: str
) -> None:
    library.write("items.jsonl", items)
    library.write("verdicts.jsonl", verdicts)
    assert of_files(library).refuses(problem)


def test_a_missing_file_is_named(library: Library) -> None:
    assert of_files(library).refuses("items.jsonl does not exist")


def test_names_from_the_files_are_shown_and_no_mark_up(library: Library) -> None:
    library.lines("items.jsonl", pair(0, stratum="a|b"))
    library.lines("verdicts.jsonl", verdict(0, 1, 1, judge="<b>j</b>"))
    out = of_files(library, "--format", "markdown").out
    assert "`<b>j</b>`" in out
    assert "a\\|b" in out
