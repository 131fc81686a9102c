"""plan.json: what is written is read back, and what is broken or newer is refused."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.ci.plan import (
    Decisions,
    Event,
    OnModels,
    Plan,
    PlannedBaseline,
    PlannedJob,
    PlannedRun,
    planned_request,
    read_plan,
)
from skill_evaluator.errors import PlanError
from skill_evaluator.evaluation.runs import EvaluationRequest, PlannedValues
from skill_evaluator.files import json_text
from skill_evaluator.library.config import Limits
from skill_evaluator.library.versions import Problem

ENTRY = PlannedRun(
    id="a@m@1of2",
    skill="a",
    skill_version="1.1.0",
    model_id="vendor/m",
    provider="openai",
    environment="eval-openai",
    key_variable="OPENAI_API_KEY",
    shard="1/2",
    replicates=3,
    seed=7,
    cases={"one": "sha256:1", "two": "sha256:2"},
    digests={"prompt": "sha256:3"},
    cost_upper_usd=0.5,
)
PLAN = Plan(
    invocation="20240101T000000Z-abc123",
    created="2024-01-01T00:00:00Z",
    event=Event(trigger="push", base=None, head="f" * 40),
    runs=[ENTRY, ENTRY.model_copy(update={"id": "a@m@2of2", "shard": "2/2", "cases": {"three": "sha256:4"}})],
    jobs=[
        PlannedJob(id=name, runs=[name], environment="eval-openai", keys=["OPENAI_API_KEY"])
        for name in ("a@m@1of2", "a@m@2of2")
    ],
    decisions=Decisions(
        chosen=[OnModels(skill="a", models=["vendor/m"], reason="MINOR 1.0.0 → 1.1.0")],
        skipped=[OnModels(skill="b", models=["vendor/m"], reason="PATCH")],
        faults=[Problem(file="components/c/prompt.md", line=2, message="no")],
    ),
)


def written(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(value if isinstance(value, str) else json_text(value))
    return path


def test_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"plan\.json does not exist"):
        read_plan(tmp_path / "plan.json")
    assert read_plan(written(tmp_path, {**PLAN.model_dump(mode="json"), "key_of_a_later_version": 1})) == PLAN


def test_empty_keys_are_left_out_of_a_plan() -> None:
    optional = {"draft", "retiring"}
    assert not optional & PLAN.model_dump(mode="json").keys()
    told = PLAN.model_copy(update={"draft": True, "retiring": ["m is switched off on 2026-12-31"]})
    assert optional <= told.model_dump(mode="json").keys()
    of_run = {"not_applicable", "limits"}
    assert not of_run & ENTRY.model_dump(mode="json").keys()
    limited = ENTRY.model_copy(update={"not_applicable": {"three": "too long"}, "limits": {"m": Limits()}})
    assert of_run <= limited.model_dump(mode="json").keys()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{", "not JSON"),
        ("[]", "a mapping of keys to values is expected"),
        ({"plan_version": 2}, "plan_version 2, but this evaluator knows 1; upgrade skill-evaluator"),
        ({**PLAN.model_dump(mode="json"), "runs": [{"id": "a"}]}, "a required key is missing at runs"),
    ],
)
def test_broken_or_newer_plan_is_refused(tmp_path: Path, value: Any, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        read_plan(written(tmp_path, value))


def test_request_of_a_planned_run_has_its_settings_and_resumes_it(tmp_path: Path) -> None:
    beside = PlannedBaseline(skill_version="1.0.0", commit="c" * 40, digests={})
    limited = {"max_cost_usd": 0.25, "limits": {"m": Limits(requests_per_minute=3)}}
    for baseline in (None, beside):
        run = ENTRY.model_copy(update={**limited, "baseline": baseline})
        plan = PLAN.model_copy(update={"runs": [run]})
        found = planned_request(EvaluationRequest(skill="a", results=tmp_path), plan, run.id)
        assert (found.skill, found.models, found.replicates, found.seed, found.shard) == (
            "a",
            ("vendor/m",),
            3,
            7,
            "1/2",
        )
        commit = None if baseline is None else baseline.commit
        planned = PlannedValues(invocation=PLAN.invocation, baseline_commit=commit, limits=run.limits)
        assert (found.planned, found.max_cost, found.resumed) == (planned, 0.25, None)
        assert found.with_baseline == (baseline is not None)
    folder = tmp_path / ENTRY.run_id(PLAN.invocation)
    folder.mkdir()
    (folder / "manifest.json").touch()
    assert planned_request(EvaluationRequest(skill="a", results=tmp_path), PLAN, ENTRY.id).resumed == str(folder)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"skill": "b"}, "is component 'a' on model vendor/m: omit the component and --model, or name these"),
        ({"models": ("n",)}, "is component 'a' on model vendor/m: omit the component and --model, or name these"),
        ({"results": None}, "--planned requires --results DIR"),
    ],
)
def test_request_that_contradicts_its_planned_run_is_refused(
    tmp_path: Path, request_: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        planned_request(EvaluationRequest(**{"skill": "a", "results": tmp_path, **request_}), PLAN, ENTRY.id)
