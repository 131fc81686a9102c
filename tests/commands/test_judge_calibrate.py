"""`judge calibrate` on stored verdicts of real judges, and invalid files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.library import ROOT, Ended, Library

STORED = ROOT / "tests" / "data" / "judging"
TABLE = (STORED / "figures.md").read_text("utf-8").splitlines()[2:]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


def calibrate(library: Library, *arguments: str, labels: Path | str = "items.jsonl") -> Ended:
    return library.call("judge", "calibrate", "--labels", str(labels), *arguments)


def of_files(library: Library, *arguments: str) -> Ended:
    return calibrate(library, "--verdicts", "verdicts.jsonl", *arguments)


def of_stored(library: Library, *arguments: str, judges: Sequence[str] = ()) -> Ended:
    """Measure the stored verdicts of these judges, or of all."""
    stored = (STORED / "verdicts.jsonl").read_text("utf-8").splitlines(keepends=True)
    named = [line for line in stored if not judges or json.loads(line)["judge"] in judges]
    library.write("stored.jsonl", "".join(named))
    return calibrate(library, "--verdicts", "stored.jsonl", *arguments, labels=STORED / "items.jsonl")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Any:
    done = of_stored(Library(tmp_path_factory.mktemp("stored")), "--format", "json")
    assert done.code == 0, done.err
    jsonschema.validate(done.json, json.loads(schema_text("judge-calibration")))
    return done.json


def test_real_judges_have_the_figures_of_other_code(stored: Any) -> None:
    """The table was made from the same verdicts; accuracy and flips agree with what LLMBar published."""
    by_judge = {judge["judge"]: judge["agreement"][0]["strata"] for judge in stored["judges"]}
    for stratum, judge, n, unparsed, accuracy, flips, first, kappa in ROWS:
        row = by_judge[judge][stratum]
        position = row["position"]
        assert (str(row["n"]), f"{row['trust']['kappa']['value']:.3f}") == (n, kappa)
        assert row["unusable"] <= int(unparsed)
        assert " / ".join(f"{one['value']:.3f}" for one in position["agreement"]) == accuracy
        assert [f"{position[name]['value']:.3f}" for name in ("flips", "first")] == [flips, first]
    assert sum(len(strata) for strata in by_judge.values()) == len(ROWS) == 18


def test_report_has_six_lines_and_a_decision_for_each_judge(library: Library) -> None:
    lines = of_stored(library, judges=("LLaMA2", "GPT-4")).out.splitlines()
    assert lines[1] == "GPT-4, pairs  trusted"
    assert [line[:13].strip() for line in lines[2:8]] == [
        *("labels", "agreement", "κ", "TPR · TNR", "order flips", "confidence")
    ]
    assert lines[9].startswith("by stratum: natural trusted, κ 0.864 (0.732–0.933); neighbor undecided")
    assert sum(line.startswith("LLaMA2") for line in lines) == 1
    (title,) = [line for line in lines if line.startswith("LLaMA2, pairs")]
    assert title.startswith("LLaMA2, pairs  not trusted: κ misses the bar by at least 0.")
    assert "The labelled items must be a random sample" in lines[-6]
    assert "more labels would decide" in of_stored(library, "--bar", "0.7", judges=("GPT-4",)).out


def pair(number: int, human: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": f"p{number}", "human": human, **more}


def verdict(number: int, order: int, winner: Any, **more: Any) -> dict[str, Any]:
    return {"id": f"p{number}", "judge": "j", "order": order, "winner": winner, **more}


def test_items_without_a_label_are_skipped_and_counted(library: Library) -> None:
    library.lines("items.jsonl", *map(pair, range(5)))
    library.lines("verdicts.jsonl", *(verdict(number, order, 1) for number in range(7) for order in (1, 2)))
    done = of_files(library)
    assert "undecided: all labels or all verdicts are the same" in done.out
    assert "2 items of verdicts.jsonl without a label in items.jsonl skipped" in done.err


ITEM, VERDICT = json.dumps(pair(0)), json.dumps(verdict(0, 1, 1))
SCORED, SCORE = '{"id": "s", "scores": {"clear": 3}}', '{"id": "s", "judge": "j", "criterion": "clear", "score": 3}'


@pytest.mark.parametrize(
    ("items", "verdicts", "problem"),
    [
        (f"{ITEM}\n{ITEM}", VERDICT, "items.jsonl:2: id 'p0' repeats line 1"),
        ('{"id": "p0", "human": 3}', VERDICT, "items.jsonl:1: Input should be 1, 2 or 'tie', got 3 at human"),
        (
            ITEM,
            f"\n{VERDICT}\n{VERDICT}",
            "verdicts.jsonl:3: id 'p0', judge 'j', order '1', replicate '0' repeats line 2",
        ),
        (
            ITEM,
            json.dumps(verdict(1, 1, 1)),
            "items.jsonl has no label for the items of verdicts.jsonl, such as 'p1' (line 1, key human or criteria)",
        ),
        ('{"id": "s", "scores": {"clear": 11}}', SCORE, "got 11 at scores.clear[0]"),
    ],
)
def test_invalid_line_is_refused_with_its_place(library: Library, items: str, verdicts: str, problem: str) -> None:
    library.write("items.jsonl", items)
    library.write("verdicts.jsonl", verdicts)
    assert of_files(library).refuses(problem)


def test_missing_option_is_named(library: Library) -> None:
    library.lines("items.jsonl", pair(0))
    assert calibrate(library).refuses("--labels FILE requires --judge ID, --verdicts FILE or --batch FILE")
    assert calibrate(library, "--probe", "verbosity").refuses("--probe and --corrupt require --judge ID")
