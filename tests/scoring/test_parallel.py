"""Scores of workers equal those of this process; outputs above a limit are too costly to score."""

import json
import os
import random
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import FixtureError, LeaderboardError, SkillEvaluatorError
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.processes import map_in_processes
from skill_evaluator.scoring.scorer import RunScorer, Scorecard, Scored, TextScorer, open_scorer

from tests.support.components import FAILED, NOT_RUN, REFUSED, TRUNCATED, case, component, replicate
from tests.support.odd_texts import HOSTILE

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "shop": {"type": "string"},
        "kind": {"enum": ["sale", "refund"]},
        "total": {"type": "number"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
    "required": ["shop", "total"],
    "additionalProperties": False,
}
TRUTH = {"shop": "Ä & Co", "kind": "sale", "total": 9.5, "items": [{"name": f"n{number}"} for number in range(12)]}


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)


@pytest.fixture
def skill(tmp_path: Path) -> Component:
    return component(tmp_path, schema=SCHEMA, datasets={"id": "d", "fields": {"shop": {"compare": "text"}}})


def _answers(truth: dict[str, Any], count: int) -> list[str]:
    """Return right, wrong and hostile outputs, and failures; some are equal."""
    dice = random.Random(1)
    changed = (
        {"shop": "A"}, {"kind": "gift"}, {"total": "9"}, {"extra": 1}, {"items": [{"name": "n3"}] * 3},
        {"items": TRUTH["items"][::-1]}, {"items": [{"name": f"m{number}"} for number in range(9)]},
    )  # fmt: skip
    made = [json.dumps({**truth, **change}) for change in changed]
    return dice.choices([json.dumps(truth), *made, *HOSTILE, FAILED, NOT_RUN, REFUSED, TRUNCATED], k=count)


def _scorecard(scores: TextScorer, texts: list[str]) -> Scorecard:
    cases = list(scores.cases.values())
    replicates = len(texts) // len(cases)
    scorer = RunScorer(scores, scores.cases, replicates)
    for place, text in enumerate(texts):
        made = replicate(cases[place % len(cases)].id, place // len(cases), text)
        if made is not None:
            scorer.add(made)
    return scorer.scorecard()


@pytest.mark.parametrize("shop", ["Ä & Co", "words " * 500], ids=["short", "long"])
def test_workers_return_the_same_scorecard(skill: Component, shop: str) -> None:
    truth = {**TRUTH, "shop": shop}
    cases = [case("a", truth), case("b", {"shop": shop, "total": 1}), case("c", None, labelled=False)]
    texts = _answers(truth, 150)
    here = _scorecard(TextScorer(skill, cases), texts)
    with open_scorer(skill, cases, len(texts)) as scores:
        there = _scorecard(scores, texts)
    assert scores._workers is not None
    assert repr(there) == repr(here)  # the order, too


def test_only_long_texts_are_sent_to_workers(skill: Component) -> None:
    with open_scorer(skill, [case("a", TRUTH)], 10) as scores:
        assert isinstance(scores.begin("a", "{}"), Scored)
        long = scores.begin("a", json.dumps({"shop": "x" * 5_000}))
        assert isinstance(long, Future)
        assert long.result().outcome == "scored"


def test_equal_texts_are_sent_to_a_worker_once(skill: Component) -> None:
    cases, text = [case("a", TRUTH)], json.dumps({"shop": "x" * 5_000})
    with open_scorer(skill, cases, 10) as scores:
        scorer = RunScorer(scores, scores.cases, 2)
        for call in filter(None, (replicate("a", index, text) for index in range(2))):
            scorer.add(call)
        first, second = scorer.by_replicate("a").values()
        assert first is second


def test_choice_is_scored_in_this_process(tmp_path: Path) -> None:
    prompt = "---\nname: receipts\nversion: 1.0.0\noutput: choice\n---\nChoose.\n"
    quiz = component(tmp_path, prompt=prompt, schema=None)
    with open_scorer(quiz, [], 10) as scores:
        assert scores._workers is None


@pytest.mark.parametrize(
    ("answer", "limits"),
    [
        pytest.param({"items": [{"name": str(n)} for n in range(40)]}, {"answer_leaves": 30}, id="leaves"),
        pytest.param({"items": [{"name": str(n)} for n in range(6_000)]}, {"score_seconds": 0.3}, id="seconds"),
    ],
)  # fmt: skip
def test_output_above_a_limit_is_too_costly_to_score(
    skill: Component, answer: dict[str, Any], limits: dict[str, Any]
) -> None:
    truth = {"shop": "A", "total": 1, "items": [{"name": f"x{number}"} for number in range(15)]}
    cases = [case("a", truth)]
    answers = [json.dumps({**truth, **answer}), json.dumps(truth)]
    limited = replace(skill, limits=SafetyLimits(**limits))
    with open_scorer(limited, cases, 2) as scores:
        card = _scorecard(scores, answers)
    assert card.reasons == {"too_costly_to_score": 1}
    assert card.failures == {"unparseable": 1}
    (scored,) = card.cases
    assert scored.outcomes == ("unparseable", "scored")
    assert scored.metrics["schema_valid"] == (0.0, 1.0)
    assert scored.metrics["field_level_f1"] == (None, 1.0)
    assert scored.agreement.metrics["pairwise_exact_match"] == 0.0


def test_schema_errors_of_one_output_are_limited(skill: Component) -> None:
    wrong = json.dumps({**TRUTH, "items": [{"name": number} for number in range(50)]})
    extra = json.dumps({**TRUTH, **{f"key{number}": 1 for number in range(50)}})
    scorer = TextScorer(replace(skill, limits=SafetyLimits(schema_errors=7)), [case("a", TRUTH)])
    assert [len(scorer.score("a", text).contract.errors) for text in (wrong, extra)] == [7, 7]


def test_truth_above_a_limit_is_an_error_with_the_case_id(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "number"}}}}
    fields = {"items[]": {"compare": "number", "tolerance": 0.5}}  # which item meets which hangs on all of them
    skill = component(tmp_path, schema=schema, datasets={"id": "d", "fields": fields})
    cases = [case("fine", {"items": [1]}), case("huge", {"items": [number / 7 for number in range(2_500)]})]
    with open_scorer(replace(skill, limits=SafetyLimits(score_seconds=0.2)), cases, 2) as scores:
        scores.undefined("fine")
        with pytest.raises(FixtureError, match=r"^case 'huge' of 'receipts': .* too costly to score.*more than 0\.2 s"):
            scores.undefined("huge")


def test_outputs_too_costly_to_compare_have_no_agreement(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "number"}}}}
    fields = {"items[]": {"compare": "number", "tolerance": 0.5}}  # which item meets which hangs on all of them
    skill = component(tmp_path, schema=schema, datasets={"id": "d", "fields": fields})
    limited = replace(skill, limits=SafetyLimits(score_seconds=0.1))
    cases = [case("a", labelled=False), case("b", {"items": [1]})]
    costly = [json.dumps({"items": [number / divisor for number in range(2_500)]}) for divisor in (7, 8, 9, 11)]
    texts = [text for answer in costly for text in (answer, '{"items": [1]}')]
    with open_scorer(limited, cases, len(texts)) as scores:
        card = _scorecard(scores, texts)
    first, second = card.cases
    assert first.outcomes == second.outcomes == ("scored",) * 4
    assert first.agreement.metrics["pairwise_field_f1"] == 0.0
    assert first.agreement.metrics["distinct_outputs"] == 4.0
    assert second.agreement.metrics["pairwise_field_f1"] == 1.0
    assert card.reasons == {"too_costly_to_compare": 1}


def test_map_in_processes_keeps_the_order() -> None:
    done = list(map_in_processes(lambda item: (item, os.getpid()), range(40)))
    assert [item for item, _ in done] == list(range(40))
    assert os.getpid() not in {process for _, process in done} or os.cpu_count() == 1
    assert list(map_in_processes(lambda item: os.getpid(), range(4))) == [os.getpid()] * 4


def test_map_in_processes_raises_the_error_of_an_item() -> None:
    def work(item: int) -> int:
        if item == 20:
            raise LeaderboardError("the twentieth cannot be read")
        return item

    with pytest.raises(LeaderboardError, match="the twentieth"):
        list(map_in_processes(work, range(40)))


ADDED = """
import sys
from skill_evaluator.comparing.field_plan import Comparator
from skill_evaluator.metrics.accuracy import Metric
def gives(value): return Metric(score=lambda comparison: value)
def endless(comparison):
    while True: pass
whole, two, bare = gives(True), gives(2.0), len
raises, leaves, hangs = Metric(score=lambda c: 1 / 0), Metric(score=lambda c: sys.exit(3)), Metric(score=endless)
differs = Comparator(canonical=lambda value, rule: 1 / 0)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that adds metrics and a comparator."""
    about = tmp_path / "package" / "added-1.dist-info" / "entry_points.txt"
    about.parent.mkdir(parents=True)
    names = ("whole", "two", "bare", "raises", "leaves", "hangs")
    lines = "\n".join(f"{name} = added:{name}" for name in names)
    about.write_text(f"[skill_evaluator.metrics]\n{lines}\n[skill_evaluator.comparators]\ndiffers = added:differs\n")
    (about.parent.parent / "added.py").write_text(ADDED)
    monkeypatch.syspath_prepend(about.parent.parent)


def _score_by(root: Path, dataset: dict[str, Any]) -> Scorecard:
    skill = component(root, schema=SCHEMA, datasets={"id": "d", **dataset}, limits=SafetyLimits(score_seconds=0.3))
    cases = [case("a", {"shop": "A"})]
    with open_scorer(skill, cases, 1) as scores:
        return _scorecard(scores, ['{"shop": "B"}'])


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("two", "case 'a': metric 'two' returned 2.0, which is neither None nor a number from 0 to 1"),
        ("raises", "case 'a': metric 'raises' failed: ZeroDivisionError('division by zero') (line 9 of "),
        ("leaves", "case 'a': metric 'leaves' failed: SystemExit(3) (line 9 of "),
        ("bare", "'bare' of skill_evaluator.metrics is a builtin_function_or_method; a Metric is expected"),
        ("hangs", "case 'a' of 'receipts': its ground truth is too costly to score"),
        ("differs", "case 'a': comparator 'differs' failed: ZeroDivisionError("),
    ],
)
def test_failing_plugin_is_named_with_its_case(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(SkillEvaluatorError) as caught:
        _score_by(tmp_path, {"fields": {"shop": {"compare": name}}} if name == "differs" else {"metrics": [name]})
    assert str(caught.value).startswith(problem)


@pytest.mark.usefixtures("package")
def test_metric_of_a_package_is_scored(tmp_path: Path) -> None:
    assert _score_by(tmp_path, {"metrics": ["whole"]}).cases[0].metrics == {"whole": (1.0,)}
