"""`evaluate --judge ID`: a judge scores the text fields that name a rubric, in a part of the record of its own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.asked_judges import answer, method, written
from tests.support.chat_server import Asked, ChatServer, Reply, killed_at, notice
from tests.support.library import CASES, REPLAY, SKILL, Ended, Library, comparable, journal, read
from tests.support.rubrics import some_criterion

JUDGE_FILE = "judge.jsonl"
JUDGE = {"id": "judge", "provider": "replay", "params": {"file": JUDGE_FILE}, "price": {"input": 1.0, "output": 2.0}}
CALLS = 2 * len(CASES)  # of the evaluation itself


class JudgedLibrary(Library):
    """The field `title` is free text, judged by `.evaluator/rubrics/titles.yaml`; the judge's answers are recorded."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.models(REPLAY, JUDGE)
        self.fields(title={"compare": "text", "rubric": "titles"})
        self.rubric()
        self.judge_says({case: written(4) for case in CASES})

    def fields(self, **fields: Any) -> None:
        self.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"fields": fields}]})

    def rubric(self, **changed: Any) -> None:
        self.write(".evaluator/rubrics/titles.yaml", {"criteria": [some_criterion(**changed)]})

    def judge_says(self, findings: Mapping[str, Any]) -> None:
        self.record_answers(
            {(f"{case}/reference", 0): answer(totals=one) for case, one in findings.items()}, JUDGE_FILE
        )

    def judged(self, *arguments: str) -> Ended:
        return self.evaluate_here("--model", "recorded", "--judge", "judge", *arguments)

    def record(self) -> Any:
        """The newest record."""
        return read(max((self.component / "evals" / "records").iterdir()))


@pytest.fixture
def library(tmp_path: Path) -> JudgedLibrary:
    return JudgedLibrary(tmp_path)


def test_the_record_has_the_judge_s_scores_apart_and_everything_else_as_without_a_judge(library: JudgedLibrary) -> None:
    library.judge_says({"alpha": written(5), "beta": written(3), "gamma": written(9)})
    done = library.judged()
    assert done.code == 0, done.err
    record = library.record()
    judged = record["judged"]
    assert (judged["judge"], judged["planned"], judged["answered"]) == ("judge", 3, 3)
    title = judged["fields"]["title"]
    assert (title["rubric"], title["mean"], title["n"]) == ("titles", 0.75, 2)
    assert title["criteria"]["totals"]["mean"] == 4.0
    assert title["criteria"]["totals"]["unscored"] == {"off_scale": 1}
    assert title["ci95"][0] < 0.75 < title["ci95"][1]
    (row,) = library.rows()
    assert "judged" not in row
    assert "judged by judge" in done.out
    (report,) = library.results.glob("*/report.md")
    assert "| `title` | titles | 0.750 |" in report.read_text()
    (results,) = library.results.glob("*/judged/*/evaluation_results.json")
    assert read(results)["judges"][0]["items"][0]["judgements"][0]["justification"] == "It adds up."
    library.fields(title={"compare": "text"})
    assert library.evaluate_here("--model", "recorded").code == 0
    assert comparable(library.record(), ["judged"]) == comparable(record, ["judged"])
    assert "judged" not in library.record()


def test_the_first_answer_of_a_case_is_judged_and_one_without_the_field_is_left_out_with_its_reason(
    library: JudgedLibrary,
) -> None:
    answers = {(case, index): notice(case) for case in CASES for index in range(2)}
    library.record_answers({**answers, ("alpha", 0): json.dumps({"title": None, "year": 2024}), ("beta", 0): "none"})
    assert library.judged().code == 0
    title = library.record()["judged"]["fields"]["title"]
    assert (title["n"], title["left_out"]) == (1, {"no title in the answer": 1, "unparseable": 1})
    (judging,) = library.results.glob("*/judged/*")
    assert list(read(judging / "judging.json")["questions"]) == ["gamma/reference"]


def test_a_dry_run_counts_the_judge_s_calls_and_what_they_cost_at_most(library: JudgedLibrary) -> None:
    done = library.judged("--dry-run", "--format", "json")
    assert done.code == 0, done.err
    assert [model["calls"] for model in done.json["models"]] == [CALLS]
    judge = done.json["judge"]
    assert (judge["model_id"], judge["calls"]) == ("judge", len(CASES))
    longest = 4 * 4096  # characters of an answer, a token each at worst
    assert judge["cost_upper_usd"] > len(CASES) * (longest * 1.0 + 4096 * 2.0) / 1e6
    assert judge["input_tokens_estimate"] < len(CASES) * 4096
    assert "judge (judge)" in library.judged("--dry-run").out


@pytest.mark.parametrize("limit", [("--max-calls", str(CALLS + 1)), ("--max-cost", "0.015")])
def test_the_budget_is_of_the_judge_s_calls_too_and_what_stopped_goes_on_by_resume(
    library: JudgedLibrary, limit: tuple[str, str]
) -> None:
    stopped = library.judged(*limit)
    assert stopped.code == 4
    assert "INCOMPLETE: coverage 1.00, stopped by the judge judge: " + limit[0][2:].replace("-", "_") in stopped.out
    assert library.rows() == []
    done = library.call(*stopped.to_go_on())
    assert done.code == 0, done.err
    assert library.record()["judged"]["answered"] == len(CASES)
    assert read(library.run_folder() / "record.json") == library.record()


def test_killed_while_it_judges_beside_the_truth_and_resumed_it_asks_nothing_twice(
    library: JudgedLibrary, server: ChatServer
) -> None:
    def reply(asked: Asked) -> Reply:
        judges = asked.body["model"] == "judge-1"
        beside = [
            f"<judged_{name}" in asked.body["messages"][-1]["content"] for name in ("output", "reference", "source")
        ]
        assert all(beside) if judges else not any(beside)
        return Reply(text=answer(totals=written(4)) if judges else notice(asked.case_id))

    models = ({"id": name, "provider": "openai", "api_id": f"{name}-1"} for name in ("recorded", "judge"))
    library.models(*({**model, "base_url": server.url} for model in models))
    server.reply = reply
    with killed_at(server, CALLS + 3, library.root / "components"):
        assert library.judged("--concurrency", "1").code == 0
    assert library.rows() == []
    server.forget()
    done = library.judged("--resume")
    assert done.code == 0, done.err
    assert server.requests == 1
    (run,) = library.results.glob("*/judged/*/runs/*")
    made = [(line["case_id"], line["replicate"]) for folder in (library.run_folder(), run) for line in journal(folder)]
    assert len(made) == len(set(made)) == CALLS + len(CASES)
    assert library.record()["judged"]["fields"]["title"]["mean"] == 0.75


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "title by the judge judge (no verdict rests on it): 0.750 → 1.000, cases: 3 → 3"),
        (
            {"description": "Whether the title is that of the notice"},
            "title by the judge judge (no verdict rests on it): 1.000; before it was judged with another rubric",
        ),
    ],
)
def test_two_versions_judged_alike_are_shown_side_by_side_and_others_are_not(
    library: JudgedLibrary, changed: Mapping[str, Any], words: str
) -> None:
    assert library.judged().code == 0
    prompt = library.component / "prompt.md"
    prompt.write_text(prompt.read_text().replace("1.0.0", "1.1.0"))
    library.rubric(**changed)
    library.judge_says({case: written(5) for case in CASES})
    done = library.judged("--format", "json")
    assert done.code == 0, done.err
    (model,) = done.json["comparison"]["models"]
    assert words in model["reasons"]
    assert "judged" not in {measure["metric"] for measure in (*model["metrics"], *model["fields"])}


@pytest.mark.parametrize(
    ("field", "rubric", "problem"),
    [
        ({"compare": "text"}, {}, '--judge has nothing to judge: no field with compare: text has a "rubric"'),
        ({"compare": "text", "rubric": "title"}, {}, "no rubric 'title' in .evaluator/rubrics at fields.title"),
        ({"compare": "string", "rubric": "titles"}, {}, "rubric does nothing at fields.title"),
        ({"compare": "text", "rubric": "titles"}, {"method": method("pairwise_comparison")}, "pairwise_comparison"),
        (
            {"compare": "text", "rubric": "titles"},
            {"applies_to": {"component": SKILL, "field": "year"}},
            "is for the field 'year', not for 'title'",
        ),
        (
            {"compare": "text", "rubric": "titles"},
            {"method": method("direct_scoring", "different_model_family")},
            "name another judge",
        ),
    ],
)
def test_what_cannot_be_judged_is_said_in_one_line_before_any_call(
    library: JudgedLibrary, field: Mapping[str, Any], rubric: Mapping[str, Any], problem: str
) -> None:
    library.models(REPLAY, {**JUDGE, "id": "recorded-judge"})
    library.fields(title=field)
    library.rubric(**rubric)
    done = library.evaluate_here("--model", "recorded", "--judge", "recorded-judge")
    assert done.refuses(problem)
    assert not library.results.exists()


def test_a_judge_without_its_key_is_refused_before_any_call(library: JudgedLibrary) -> None:
    library.models(REPLAY, {"id": "judge", "provider": "anthropic"})
    assert library.judged().refuses("the judge judge cannot be asked: ANTHROPIC_API_KEY is not set")
    assert not library.results.exists()
