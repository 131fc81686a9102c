"""The jobs of a plan: runs and shards, shared jobs, and the shares of the cost cap and of the rate limits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.checks import check_of
from skill_evaluator.ci.plan import PlannedBaseline, PlannedJob, PlannedRun, environment_of, outputs_of
from skill_evaluator.ci.planning import PlannedEvaluation, affordable, capped, packed, shards_of, whole_run, with_limits
from skill_evaluator.errors import PlanError
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Jobs, Limits, Model, Settings
from skill_evaluator.providers import PROVIDERS, Configuration
from skill_evaluator.runner.journal import RunSize, plan_run
from skill_evaluator.runner.prices import InputSize
from skill_evaluator.runner.schedule import IN_FLIGHT

from tests.ci.test_plan import ENTRY, PLAN
from tests.support.components import component

CASE = Case(
    id="case",
    inputs={"document": "A notice."},
    truth=None,
    labelled=False,
    meta={},
    parts={"document": "sha256:case"},
)
SIZE = InputSize(likely=500, maximum=1000)
PRICE = {"input": 1.0, "output": 2.0}


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


def wanted(
    skill: Component, model: Mapping[str, Any] | str = "m", cases: int = 4, replicates: int = 10
) -> PlannedEvaluation:
    fields = {"id": model} if isinstance(model, str) else model
    made = Model.model_validate({"provider": "openai", "price": PRICE, "params": {"max_output_tokens": 100}, **fields})
    each = [replace(CASE, id=f"case-{number:03d}") for number in range(cases)]
    size = RunSize(replicates=replicates, seed=3)
    calls = plan_run(skill, each, made, PROVIDERS[made.provider], size, dict.fromkeys((case.id for case in each), SIZE))
    return PlannedEvaluation(
        run=whole_run(calls, skill, made, PROVIDERS[made.provider]),
        model=made,
        kinds=PROVIDERS,
        cases={case.id: case for case in each},
        sizes=dict.fromkeys(calls.cases, SIZE),
    )


def interleaved(alone: PlannedEvaluation, baseline: PlannedBaseline) -> PlannedEvaluation:
    run = alone.run.model_copy(update={"baseline": baseline})
    return replace(alone, run=run, baseline_sizes=alone.sizes)


def test_component_on_a_model_is_one_job(skill: Component) -> None:
    (entry,) = shards_of([wanted(skill)], Jobs())
    assert (entry.id, entry.shard, entry.calls) == ("receipts@m", None, 40)
    assert (entry.skill_version, entry.provider, entry.seed) == ("1.2.0", "openai", 3)
    assert entry.cost_upper_usd == pytest.approx(40 * (1000 * 1.25 + 100 * 2.0) / 1e6)  # a cache may be written
    assert entry.digests.keys() == {"prompt", "schema", "settings"}


def test_interleaved_baseline_adds_half_the_calls_and_cost(skill: Component) -> None:
    beside = PlannedBaseline(skill_version="1.1.0", commit="c" * 40, digests={"prompt": "old"})
    alone = wanted(skill, cases=4)
    (entry,) = shards_of([interleaved(alone, beside)], Jobs())
    (single,) = shards_of([alone], Jobs())
    assert (entry.calls, entry.cost_upper_usd) == (60, pytest.approx(1.5 * (single.cost_upper_usd or 0.0)))
    plan = PLAN.model_copy(update={"runs": [entry], "jobs": plan_of([entry], Jobs())})
    (_, new), (_, baseline) = plan.manifests()
    assert (new.calls, baseline.calls) == (40, 20)
    run_id = f"{PLAN.invocation}-receipts-m"
    assert [manifest.run_id for manifest in (new, baseline)] == [run_id, f"{run_id}@baseline"]
    assert (new.beside, baseline.beside) == (baseline.run_id, new.run_id)
    assert (new.skill_version, baseline.skill_version) == ("1.2.0", "1.1.0")
    assert (baseline.digests, baseline.prompt_commit) == ({"prompt": "old"}, "c" * 40)
    assert (new.role, baseline.role) == (None, "baseline")
    assert len(shards_of([interleaved(alone, beside)], Jobs(max_calls=40))) == 2


def test_many_calls_are_split_into_shards_of_whole_cases(skill: Component) -> None:
    entries = shards_of([wanted(skill, cases=7)], Jobs(max_calls=30))
    assert [entry.id for entry in entries] == ["receipts@m@1of3", "receipts@m@2of3", "receipts@m@3of3"]
    assert [entry.shard for entry in entries] == ["1/3", "2/3", "3/3"]
    assert [len(entry.cases) for entry in entries] == [3, 2, 2]
    assert entries[0].run_id("20240101T000000Z-abc123") == "20240101T000000Z-abc123-receipts-m-1of3"


@given(cases=st.integers(1, 40), replicates=st.integers(1, 50), max_calls=st.integers(1, 500))
def test_shards_partition_the_cases(skill: Component, cases: int, replicates: int, max_calls: int) -> None:
    one = wanted(skill, cases=cases, replicates=replicates)
    entries = shards_of([one], Jobs(max_calls=max_calls))
    assert sorted(case_id for entry in entries for case_id in entry.cases) == sorted(one.cases)
    assert sum(entry.calls for entry in entries) == cases * replicates
    assert max(len(entry.cases) for entry in entries) - min(len(entry.cases) for entry in entries) <= 1
    assert len({entry.id for entry in entries}) == len(entries)
    if len(entries) < cases:
        assert all(entry.calls <= max_calls + replicates for entry in entries)


def plan_of(runs: Sequence[PlannedRun], jobs: Jobs, minutes: float = 1.0) -> list[PlannedJob]:
    return packed(runs, dict.fromkeys((run.id for run in runs), minutes), jobs)


def test_each_run_has_its_own_job_up_to_max_jobs(skill: Component) -> None:
    runs = shards_of([wanted(skill, f"m{number}") for number in range(60)], Jobs())
    assert [(job.id, job.runs) for job in plan_of(runs, Jobs())] == [(run.id, [run.id]) for run in runs]


def grid(skill: Component, components: int = 30, models: int = 10, **how: Any) -> list[PlannedRun]:
    """Runs of many components on many models of two providers."""
    named = [replace(skill, name=f"c{number}") for number in range(components)]
    providers = ("openai", "anthropic")
    ids = [{"id": f"m{number}", "provider": providers[number % 2]} for number in range(models)]
    return shards_of([wanted(component, model, **how) for component in named for model in ids], Jobs())


def test_300_runs_share_60_jobs_of_one_model_each(skill: Component) -> None:
    runs = grid(skill)
    jobs = plan_of(runs, Jobs())
    of = {run.id: run for run in runs}
    assert len(jobs) == 60
    assert sorted(run_id for job in jobs for run_id in job.runs) == sorted(of)
    assert all(len({of[run_id].model_id for run_id in job.runs}) == 1 for job in jobs)
    assert {len(job.runs) for job in jobs} <= {4, 5, 6, 8}
    assert len({job.id for job in jobs}) == 60


def test_runs_of_different_models_share_a_job_only_with_the_same_key(skill: Component) -> None:
    jobs = plan_of(grid(skill, components=1), Jobs(max_jobs=4))
    assert {job.id for job in jobs} == {f"eval-{name}@{part}of2" for name in ("anthropic", "openai") for part in (1, 2)}
    assert {(job.environment, *job.keys) for job in jobs} == {
        ("eval-openai", "OPENAI_API_KEY"),
        ("eval-anthropic", "ANTHROPIC_API_KEY"),
    }


@pytest.mark.parametrize(("how", "minutes"), [({"cases": 60}, 1.0), ({}, 200.0)])
def test_jobs_stay_below_max_calls_and_300_minutes(skill: Component, how: dict[str, int], minutes: float) -> None:
    runs = grid(skill, components=2, **how)  # of 600 calls each, or of 200 minutes
    assert len(plan_of(runs, Jobs(max_jobs=1), minutes)) == 20


def test_longest_run_of_a_job_comes_first(skill: Component) -> None:
    runs = grid(skill, components=3, models=1)
    (job,) = packed(runs, {run.id: float(number) for number, run in enumerate(runs)}, Jobs(max_jobs=1))
    assert job.runs == [run.id for run in reversed(runs)]


def test_more_jobs_than_github_accepts_are_refused(skill: Component) -> None:
    runs = grid(skill, cases=60)
    with pytest.raises(PlanError, match=r"300 runs make 300 jobs of at most 1,000 calls.* raise jobs\.max_calls"):
        plan_of(runs, Jobs())


def test_github_accepts_256_jobs(skill: Component) -> None:
    runs = grid(skill, components=26, cases=60)[:257]  # 600 calls each, so no two runs share a job
    assert len(plan_of(runs[:256], Jobs())) == 256
    with pytest.raises(PlanError, match="257 runs make 257 jobs"):
        plan_of(runs, Jobs())


@pytest.mark.parametrize(
    ("max_calls", "minutes", "count"), [(80, 1.0, 1), (79, 1.0, 2), (80, 150.0, 1), (80, 150.5, 2)]
)
def test_two_runs_share_a_job_up_to_both_limits(skill: Component, max_calls: int, minutes: float, count: int) -> None:
    runs = grid(skill, components=2, models=1)  # 40 calls each
    assert len(plan_of(runs, Jobs(max_jobs=1, max_calls=max_calls), minutes)) == count


def test_matrix_has_the_keys_and_runs_of_each_job(skill: Component) -> None:
    judge = wanted(skill, {"id": "j", "provider": "google"}).model
    runs = shards_of([replace(wanted(skill), judge=judge), wanted(skill, "free/of:charge")], Jobs())
    plan = PLAN.model_copy(update={"runs": runs, "jobs": plan_of(runs, Jobs())})
    first, second = outputs_of(plan)["matrix"]["include"]
    assert first == {
        "id": "receipts@m",
        "environment": "eval-openai",
        "keys": ["OPENAI_API_KEY", "GEMINI_API_KEY"],
        "runs": "receipts@m receipts m",
    }
    assert second["runs"].split(" ")[1:] == ["receipts", "free/of:charge"]
    assert not set(second["id"]) & set('":<>|*?\\/\r\n')  # what the name of an artifact may not have
    assert (outputs_of(plan)["jobs"], outputs_of(plan)["faults"]) == (2, 1)


def test_concurrent_jobs_share_the_limits_of_model_and_provider(skill: Component) -> None:
    limited = {"id": "limited", "limits": {"requests_per_minute": 30, "context_tokens": 9000}}
    other = {"id": "other", "provider": "anthropic"}
    small = Jobs(max_calls=10)
    runs = shards_of([wanted(skill, limited, cases=3), wanted(skill), wanted(skill, other)], small)
    models = tuple(wanted(skill, model).model for model in (limited, "m", other))
    settings = Settings(ceilings={"openai": Limits(requests_per_minute=140, max_concurrency=3)})
    configuration = Configuration(models=models, kinds=PROVIDERS, keys={}, settings=settings)
    shared = with_limits(runs, plan_of(runs, small), configuration)
    assert len(shared) == 11
    assert {run.model_id: run.limits for run in shared} == {  # three jobs of `limited`, seven of OpenAI's
        "limited": {"limited": Limits(requests_per_minute=10, max_concurrency=1)},
        "m": {"m": Limits(requests_per_minute=20, max_concurrency=1)},
        "other": {},
    }


def test_each_provider_has_an_environment_and_each_key_a_variable(skill: Component) -> None:
    for model, environment, variable in (
        ({"provider": "anthropic"}, "eval-anthropic", "ANTHROPIC_API_KEY"),
        ({"provider": "google"}, "eval-google", "GEMINI_API_KEY"),
        ({"provider": "openai", "api_key_env": "GROQ_API_KEY"}, "eval-groq", "GROQ_API_KEY"),
        ({"provider": "openai", "api_key_env": "MY__Key"}, "eval-my-key", "MY__Key"),
        ({"provider": "openai", "base_url": "http://localhost:8000/v1"}, "eval-no-key", ""),
        ({"provider": "replay", "params": {"file": "answers.jsonl"}}, "eval-replay", ""),
        ({"provider": "anthropic", "auth": "oidc"}, "eval-anthropic", ""),
    ):
        one = wanted(skill, {"id": "m", **model})
        (entry,) = shards_of([one], Jobs())
        assert (entry.environment, entry.key_variable) == (environment, variable)
        assert environment_of(one.model, one.kind) == environment


@pytest.mark.parametrize(
    ("model", "minutes"),
    [
        ({"limits": {"max_concurrency": 2}}, 5.0),
        ({"limits": {"max_concurrency": 2, "requests_per_minute": 6}}, 10.0),
        ({"limits": {"max_concurrency": 2, "requests_per_minute": 600}}, 5.0),
        ({}, 60 * 10 / 60 / IN_FLIGHT),
        ({"provider": "local", "params": {}}, 10.0),
    ],
)
def test_duration_is_that_of_slow_calls_or_of_the_rate_limit(
    skill: Component, model: dict[str, Any], minutes: float
) -> None:
    assert wanted(skill, {"id": "m", **model}).minutes(60) == pytest.approx(minutes)


@pytest.mark.parametrize(("share", "asked"), [(0.99, 2), (1.0, 0), (1.49, 0), (1.5, 2)])
def test_baselines_are_dropped_if_the_cap_is_too_low_for_them(skill: Component, share: float, asked: int) -> None:
    beside = PlannedBaseline(skill_version="1.1.0", commit="c" * 40, digests={})
    work = [interleaved(wanted(skill, name), beside) for name in ("m", "n")]
    alone = sum(run.cost_upper_usd or 0.0 for run in shards_of([wanted(skill, "m"), wanted(skill, "n")], Jobs()))
    kept = affordable(work, alone * share + 1e-9)
    assert sum(each.run.baseline is not None for each in kept) == asked
    assert affordable(work, None) == work


def test_judge_adds_its_calls_cost_and_limits_to_a_run(skill: Component) -> None:
    judge = wanted(skill, {"id": "j", "limits": {"requests_per_minute": 30}})
    checked = replace(CASE, checks=(check_of({"expect": "It names a total.", "id": "total"}),))
    one = wanted(skill, cases=2, replicates=3)
    one = replace(one, cases=dict.fromkeys(one.cases, checked), judge=judge.model)
    (run,) = shards_of([one], Jobs())
    (alone,) = shards_of([replace(one, judge=None)], Jobs())
    assert run.judge is not None
    assert (run.judge.model_id, run.judge.key_variable, run.judge.calls >= 6) == ("j", "OPENAI_API_KEY", True)
    assert (run.cost_upper_usd or 0.0) > (alone.cost_upper_usd or 0.0)
    assert run.all_calls == run.calls + run.judge.calls
    configuration = Configuration(models=(one.model, judge.model), kinds=PROVIDERS, keys={}, settings=Settings())
    (limited,) = with_limits([run], plan_of([run], Jobs()), configuration)
    assert limited.limits == {"j": Limits(requests_per_minute=30)}


def entry(cost: float | None, name: str = "a") -> PlannedRun:
    return ENTRY.model_copy(update={"id": name, "shard": None, "cost_upper_usd": cost})


@given(costs=st.lists(st.floats(0, 1e4, allow_nan=False), min_size=1, max_size=30), micros=st.integers(0, 10**10))
def test_shares_of_a_cap_never_exceed_it(costs: list[float], micros: int) -> None:
    parts = [part.max_cost_usd for part in capped([entry(cost) for cost in costs], micros / 1e6)]
    assert sum(round((part or 0.0) * 1e6) for part in parts) <= micros
    for part, cost in zip(parts, costs, strict=True):
        assert part is not None
        assert 0 <= part <= cost + 1e-9


def test_cap_is_shared_in_proportion_to_the_cost() -> None:
    assert [part.max_cost_usd for part in capped([entry(1.5), entry(0.0), entry(0.5)], 100.0)] == [1.5, 0.0, 0.5]
    assert [part.max_cost_usd for part in capped([entry(1.5), entry(0.5)], 1.0)] == [0.75, 0.25]


def test_cap_is_refused_without_a_price() -> None:
    with pytest.raises(PlanError, match="the price of model 'vendor/m' is unknown"):
        capped([entry(1.0), entry(None)], 5.0)
    assert [part.max_cost_usd for part in capped([entry(1.5), entry(None)], None)] == [None, None]
