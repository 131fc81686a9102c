"""Jobs: one a component and model, in shards when there are many calls, never too many, each with its part of a cap."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.ci.matrix import Wanted, capped, entries_of, environment_of, job_words, outputs_of, sharing
from skill_evaluator.ci.plan import Entry, PlannedBaseline, planned_runs
from skill_evaluator.errors import PlanError
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Jobs, Limits, Model
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.runner.prices import InputSize

from tests.ci.test_plan import ENTRY, PLAN
from tests.support.components import component

SIZE = InputSize(likely=500, most=1000)
PRICE = {"input": 1.0, "output": 2.0}


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


def wanted(skill: Component, model: Mapping[str, Any] | str = "m", cases: int = 4, replicates: int = 10) -> Wanted:
    fields = {"id": model} if isinstance(model, str) else model
    made = Model.model_validate({"provider": "openai", "price": PRICE, "params": {"max_output_tokens": 100}, **fields})
    ids = [f"case-{number:03d}" for number in range(cases)]
    return Wanted(
        component=skill,
        model=made,
        kind=PROVIDERS[made.provider],
        cases={case_id: f"sha256:{case_id}" for case_id in ids},
        sizes=dict.fromkeys(ids, SIZE),
        replicates=replicates,
        seed=3,
    )


def test_a_component_on_a_model_is_one_job_that_names_every_call(skill: Component) -> None:
    (entry,) = entries_of([wanted(skill)], Jobs())
    assert (entry.id, entry.shard, entry.calls) == ("receipts@m", None, 40)
    assert (entry.skill_version, entry.provider, entry.seed) == ("1.2.0", "openai", 3)
    assert entry.cost_upper_usd == pytest.approx(40 * (1000 * 1.25 + 100 * 2.0) / 1e6)  # a cache may be written
    assert entry.digests.keys() == {"prompt", "schema", "settings"}


def test_a_baseline_beside_it_adds_half_the_calls_and_cost_and_makes_two_runs(skill: Component) -> None:
    beside = PlannedBaseline(skill_version="1.1.0", commit="c" * 40, digests={"prompt": "old"})
    alone = wanted(skill, cases=4)
    (entry,) = entries_of([replace(alone, beside=beside, sizes_beside=alone.sizes)], Jobs())
    (single,) = entries_of([alone], Jobs())
    assert (entry.calls, entry.cost_upper_usd) == (60, pytest.approx(1.5 * (single.cost_upper_usd or 0.0)))
    new, baseline = planned_runs(PLAN.model_copy(update={"entries": [entry]}))
    assert (new.calls, baseline.calls) == (40, 20)
    run_id = f"{PLAN.invocation}-receipts-m"
    assert [run.manifest.run_id for run in (new, baseline)] == [run_id, f"{run_id}@baseline"]
    assert (new.manifest.beside, baseline.manifest.beside) == (baseline.manifest.run_id, new.manifest.run_id)
    assert (new.manifest.skill_version, baseline.manifest.skill_version) == ("1.2.0", "1.1.0")
    assert (baseline.manifest.digests, baseline.manifest.prompt_commit) == ({"prompt": "old"}, "c" * 40)
    assert (new.manifest.role, baseline.manifest.role) == (None, "baseline")
    (job,) = outputs_of(PLAN.model_copy(update={"entries": [entry]}), ())["legs"]["rest"]["include"]
    assert job["baseline"] == "c" * 40
    assert len(entries_of([replace(alone, beside=beside, sizes_beside=alone.sizes)], Jobs(max_calls=40))) == 2


def test_many_calls_are_cut_into_shards_of_whole_cases(skill: Component) -> None:
    entries = entries_of([wanted(skill, cases=7)], Jobs(max_calls=30))
    assert [entry.id for entry in entries] == ["receipts@m@1of3", "receipts@m@2of3", "receipts@m@3of3"]
    assert [entry.shard for entry in entries] == ["1/3", "2/3", "3/3"]
    assert [len(entry.cases) for entry in entries] == [3, 2, 2]
    assert entries[0].run_id("20240101T000000Z-abc123") == "20240101T000000Z-abc123-receipts-m-1of3"


@given(cases=st.integers(1, 40), replicates=st.integers(1, 50), max_calls=st.integers(1, 500), most=st.integers(1, 60))
def test_the_shards_are_a_partition_of_the_cases(
    skill: Component, cases: int, replicates: int, max_calls: int, most: int
) -> None:
    one = wanted(skill, cases=cases, replicates=replicates)
    entries = entries_of([one], Jobs(max_calls=max_calls, max_jobs=most))
    assert 1 <= len(entries) <= most
    assert sorted(case_id for entry in entries for case_id in entry.cases) == sorted(one.cases)
    assert sum(entry.calls for entry in entries) == cases * replicates
    assert max(len(entry.cases) for entry in entries) - min(len(entry.cases) for entry in entries) <= 1
    assert len({entry.id for entry in entries}) == len(entries)
    if len(entries) < min(cases, most) and math.ceil(cases * replicates / max_calls) <= most:
        assert all(entry.calls <= max_calls + replicates for entry in entries)


def test_beyond_the_limit_models_keep_their_jobs_and_shards_shrink(skill: Component) -> None:
    many = [wanted(skill, f"m{number}", cases=10) for number in range(100)]
    assert len(entries_of(many[:50], Jobs(max_calls=20))) == 250
    entries = entries_of(many, Jobs(max_calls=20))  # 500 if they were cut as they ask for
    assert len(entries) == 200
    assert {entry.model_id for entry in entries} == {one.model.id for one in many}


def test_models_alone_may_be_too_many_and_the_message_says_what_to_narrow(skill: Component) -> None:
    many = [wanted(skill, f"m{number}") for number in range(257)]
    assert len(entries_of(many[:256], Jobs())) == 256
    with pytest.raises(PlanError, match=r"257 jobs, more than the 256 .*; name fewer components or models"):
        entries_of(many, Jobs())


def test_the_matrix_holds_what_a_job_must_know_as_text(skill: Component) -> None:
    entries = capped(entries_of([wanted(skill), wanted(skill, "free/of:charge")], Jobs()), 0.05)
    first, second = outputs_of(PLAN.model_copy(update={"entries": entries}), ["eval-openai"])["legs"]["eval-openai"][
        "include"
    ]
    assert first == {
        "id": "receipts@m",
        "skill": "receipts",
        "model": "m",
        "provider": "openai",
        "shard": "",
        "replicates": "10",
        "seed": "3",
        "environment": "eval-openai",
        "key_variable": "OPENAI_API_KEY",
        "max_cost": "0.025000",
        "limits": "",
        "lock": "requirements-leg-lock.txt",
        "baseline": "",
        "history": "1",
        "transport": "direct",
    }
    assert second["model"] == "free/of:charge"
    assert not set(second["id"]) & set('":<>|*?\\/\r\n')  # what the name of an artifact may not have


def test_environments_with_a_job_of_their_own_have_a_matrix_each_and_the_others_share_one(skill: Component) -> None:
    models = [{"id": provider, "provider": provider} for provider in ("openai", "anthropic", "google")]
    entries = entries_of([wanted(skill, model) for model in models], Jobs())
    outputs = outputs_of(PLAN.model_copy(update={"entries": entries}), ["eval-openai", "eval-unasked"])
    assert {leg: [job["model"] for job in matrix["include"]] for leg, matrix in outputs["legs"].items()} == {
        "eval-openai": ["openai"],
        "rest": ["anthropic", "google"],
    }
    assert outputs["jobs"] == 3


def test_jobs_side_by_side_share_the_limits_of_model_and_provider(skill: Component) -> None:
    limited = {"id": "limited", "limits": {"requests_per_minute": 30, "context_tokens": 9000}}
    other = {"id": "other", "provider": "anthropic"}
    jobs = entries_of([wanted(skill, limited, cases=3), wanted(skill), wanted(skill, other)], Jobs(max_calls=10))
    ceilings = {"openai": Limits(requests_per_minute=140, max_concurrency=3)}
    shared = sharing(jobs, [Model.model_validate({"provider": "openai", **limited})], ceilings)
    assert len(shared) == 11
    of = {job.model_id: job.limits for job in shared}
    assert of == {  # three jobs of `limited`, seven of OpenAI's
        "limited": Limits(requests_per_minute=10, max_concurrency=1),
        "m": Limits(requests_per_minute=20, max_concurrency=1),
        "other": None,
    }
    assert [job_words(job)["limits"] for job in shared[2:4] + shared[-1:]] == [
        '{"max_concurrency":1,"requests_per_minute":10}',
        '{"max_concurrency":1,"requests_per_minute":20}',
        "",
    ]


def test_each_provider_has_an_environment_and_each_key_a_variable(skill: Component) -> None:
    for model, environment, variable in (
        ({"provider": "anthropic"}, "eval-anthropic", "ANTHROPIC_API_KEY"),
        ({"provider": "google"}, "eval-google", "GEMINI_API_KEY"),
        ({"provider": "openai", "api_key_env": "GROQ_API_KEY"}, "eval-groq", "GROQ_API_KEY"),
        ({"provider": "openai", "api_key_env": "MY__Key"}, "eval-my-key", "MY__Key"),
        ({"provider": "openai", "base_url": "http://localhost:8000/v1"}, "eval-no-key", ""),
        ({"provider": "replay", "params": {"file": "answers.jsonl"}}, "eval-replay", ""),
    ):
        one = wanted(skill, {"id": "m", **model})
        (entry,) = entries_of([one], Jobs())
        assert (entry.environment, entry.key_variable) == (environment, variable)
        assert environment_of(one.model, one.kind) == environment


def entry(cost: float | None, name: str = "a") -> Entry:
    return ENTRY.model_copy(update={"id": name, "shard": None, "cost_upper_usd": cost})


@given(costs=st.lists(st.floats(0, 1e4, allow_nan=False), min_size=1, max_size=30), micros=st.integers(0, 10**10))
def test_the_parts_of_a_cap_never_add_up_to_more(costs: list[float], micros: int) -> None:
    parts = [part.max_cost_usd for part in capped([entry(cost) for cost in costs], micros / 1e6)]
    assert sum(round((part or 0.0) * 1e6) for part in parts) <= micros
    for part, cost in zip(parts, costs, strict=True):
        assert part is not None
        assert 0 <= part <= cost + 1e-9


def test_a_cap_above_the_cost_gives_everybody_what_they_can_spend() -> None:
    assert [part.max_cost_usd for part in capped([entry(1.5), entry(0.0), entry(0.5)], 100.0)] == [1.5, 0.0, 0.5]
    assert [part.max_cost_usd for part in capped([entry(1.5), entry(0.5)], 1.0)] == [0.75, 0.25]


def test_without_a_cap_no_job_has_one() -> None:
    assert [part.max_cost_usd for part in capped([entry(1.5), entry(None)], None)] == [None, None]


def test_a_cap_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(PlanError, match="no price is known for 'vendor/m'"):
        capped([entry(1.0), entry(None)], 5.0)
