"""`judge calibrate --judge`: labelled items, corrupted outputs and probes are judged in one judge run."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skill_evaluator.api.schemas import schema_text

from tests.support.asked_judges import ITEMS, QUOTE, RUBRIC, JudgingLibrary, compared, method
from tests.support.asked_judges import answer as said
from tests.support.chat_server import Asked, Reply, chat_server
from tests.support.judged import answer
from tests.support.library import Ended

HALLS = [
    {
        "id": f"hall-{n}",
        "human": 1 + n % 2,
        "input": "Describe the hall in bullet points.",
        f"output_{1 + n % 2}": f"- {QUOTE}\n- It opened in {1950 + n}.\n- It is {30 + n} metres long.",
        f"output_{2 - n % 2}": f"- It is hall {n}.\n- Nobody knows its age.",
    }
    for n in range(12)
]
TEXT = re.compile(r"<judged_(\w+) \w+>\n(.*?)\n</judged_\1 ", re.DOTALL)
FILES = {"evaluation_rubric.json", "evaluation_prompt.md", "evaluation_results.json", "bias_analysis_report.md"}
Judge = Callable[[Mapping[str, str]], str]


@pytest.fixture
def library(tmp_path: Path) -> JudgingLibrary:
    library = JudgingLibrary(tmp_path)
    scored = {"id": "tone", "name": "Tone"}  # a criterion of another method is not judged here
    library.rubric({"method": method("pairwise_comparison"), "type": "subjective"}, scored)
    library.items(*HALLS)
    return library


def careful(texts: Mapping[str, str]) -> str:
    """Prefer the right output, and find every number that changed."""
    if "candidate" not in texts:
        return said(totals=compared("first" if QUOTE in texts["first_output"] else "second"))
    before, after = (sorted(re.findall(r"\d+", texts[name])) for name in ("baseline", "candidate"))
    finding = "same" if before == after else ("worse", "high", texts["baseline"], texts["candidate"])
    return json.dumps(answer({"factuality": finding, "completeness": "same", "format_adherence": "same"}))


def gullible(texts: Mapping[str, str]) -> str:
    """Prefer the right output unless an expert supports the other one."""
    supported = ["Hale" in texts[name] for name in ("first_output", "second_output")]
    first = supported[0] if supported[0] != supported[1] else QUOTE in texts["first_output"]
    return said(totals=compared("first" if first else "second"))


def call(library: JudgingLibrary, *arguments: str) -> Ended:
    return library.call("judge", "calibrate", "--labels", ITEMS, "--judge", "served", *arguments)


def calibrate(library: JudgingLibrary, judge: Judge, *arguments: str) -> Ended:
    with chat_server() as server:
        server.reply = lambda asked: Reply(text=judge(shown(asked)))
        library.served_by(server.url)
        return call(library, *arguments)


def shown(asked: Asked) -> Mapping[str, str]:
    return dict(TEXT.findall(asked.body["messages"][1]["content"]))


def calibrated(library: JudgingLibrary, judge: Judge, *arguments: str) -> Any:
    done = calibrate(library, judge, *arguments, "--format", "json")
    assert done.code == 0, done.err
    jsonschema.validate(done.json, json.loads(schema_text("judge-calibration")))
    (result,) = done.json["judges"]
    return result


def test_labelled_pairs_and_corrupted_outputs_share_a_run(library: JudgingLibrary) -> None:
    done = calibrate(library, careful, "--rubric", RUBRIC, "--corrupt", "8")
    assert done.code == 0, done.err
    folder = library.judging()
    assert {path.name for path in folder.iterdir()} >= {*FILES, "verdicts.jsonl", "corrupted.jsonl"}
    (judge,) = json.loads((folder / "evaluation_results.json").read_text(encoding="utf-8"))["judges"]
    (row,) = judge["agreement"]
    assert (row["n"], row["agreement"]["value"], row["trust"]["trusted"]) == (12, 1.0, None)
    assert judge["detection"]["kinds"]["fact_changed"]["value"] == 1.0
    assert judge["record"]["answered"] == 24 + 2 * 20
    assert re.search(r"served, detected: 0\.\d+ \(.*\) of corruptions \(fact_changed 2 of 2, part_removed", done.out)
    assert "served, false alarms: 0.000 (0.000–0.2" in done.out


def test_probes_are_measured_and_their_verdicts_are_not_stored(library: JudgingLibrary) -> None:
    judge = calibrated(library, gullible, "--rubric", RUBRIC, "--probe", "verbosity", "--probe", "authority")
    assert judge["agreement"][0]["agreement"]["value"] == 1.0
    shifts = {bias["bias"]: (bias["shift"]["value"], bias["present"]) for bias in judge["biases"]}
    assert shifts["verbosity"] == (0.0, False)
    assert shifts["authority"] == (1.0, True)
    page = (library.judging() / "bias_analysis_report.md").read_text(encoding="utf-8")
    assert "`served`, authority: the added text moves the verdict by 1.000" in page
    stored = ("--labels", ITEMS, "--verdicts", str(library.judging() / "verdicts.jsonl"))
    again = library.call("judge", "calibrate", *stored, "--format", "json")
    assert again.json["judges"][0]["agreement"] == judge["agreement"]
    assert "skipped" not in again.err, "verdicts on probed items are not stored"


def test_judge_that_writes_prose_gets_no_figures_and_exit_4(library: JudgingLibrary) -> None:
    done = calibrate(library, lambda texts: "Both are fine.", "--rubric", RUBRIC, "--corrupt", "2")
    assert done.code == 4, done.err
    assert "served: no usable output: 24 not_json; for example: Both are fine." in done.out
    assert "how sure: no output of a judge is usable\n" in done.out
    assert "κ" not in done.out


SCORED = {"id": "s", "scores": {"tone": 2}, "output": QUOTE}
BARE = {"id": "p", "human": 1}


@pytest.mark.parametrize(
    ("item", "arguments", "message"),
    [
        (HALLS[0], (), "--judge requires --rubric FILE or --corrupt N"),
        (HALLS[0], ("--rubric", RUBRIC, "--verdicts", "v.jsonl"), "cannot be combined with --judge"),
        (HALLS[0], ("--rubric", RUBRIC, "--probe", "injection"), "no probe 'injection' (known: authority, verbosity)"),
        (BARE, ("--rubric", RUBRIC, "--probe", "authority"), "item 'p' lacks a text that --judge requires: "),
        (SCORED, ("--rubric", RUBRIC), "rubric.yaml has no criterion for the scores in items.jsonl (tone)"),
        (
            SCORED,
            ("--corrupt", "2"),
            "no output of items.jsonl can be corrupted; --corrupt requires pairs with `human` and",
        ),
    ],
)
def test_invalid_options_are_refused_before_a_call(
    library: JudgingLibrary, item: dict[str, Any], arguments: tuple[str, ...], message: str
) -> None:
    library.rubric({"method": method("direct_scoring" if item is SCORED else "pairwise_comparison")})
    library.items(item)
    library.served_by("http://127.0.0.1:9/v1")
    assert call(library, *arguments).refuses(message)


def test_batch_is_compared_with_labels_of_regressions(library: JudgingLibrary) -> None:
    same = json.dumps(answer(dict.fromkeys(("factuality", "completeness", "format_adherence"), "same")))
    pairs = [
        {"id": f"p{n}", "prompt": "p", "baseline_output": f"a {n}", "candidate_output": f"b {n}"} for n in range(4)
    ]
    library.lines("pairs.jsonl", *pairs)
    library.record_answers({(f"p{n}/{order}", 0): same for n in range(4) for order in (1, 2)})
    done = library.call("judge", "regression", "--items", "pairs.jsonl", "--judge", "recorded", "--format", "json")
    assert done.code == 0, done.err
    found = [{"human": "candidate_worse", "impact": "high"}, {"human": "same"}]
    library.lines(ITEMS, *({"id": f"p{n}", "dimension": "factuality", **found[n % 2]} for n in range(4)))
    results = str(Path(done.json["folder"]) / "evaluation_results.json")
    text = library.call("judge", "calibrate", "--labels", ITEMS, "--batch", results).out
    assert "recorded, regressions" in text
    assert re.search(r"people: high +2 +0 +0 +0", text)
    assert "warning: 4 pairs; rates from fewer than 100 pairs are uncertain" in text
