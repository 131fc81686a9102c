"""New runs: folders that cannot meet, and digests of what shapes the answers and of nothing else."""

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.runner.runs import Run, input_digests, is_invocation, new_invocation, new_runs
from skill_evaluator.runner.schedule import Shard

from tests.support.components import case, component

MODEL: dict[str, Any] = {"id": "m", "provider": "openai"}


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


def planned(skill: Component, *model_ids: str, **more: Any) -> list[Run]:
    models = [Model(id=model_id, provider="replay") for model_id in model_ids]
    cases = [case("a"), case("b"), case("c")]
    return new_runs(skill, cases, models, Path("results"), PROVIDERS, replicates=2, seed=0, **more)


def test_models_of_one_invocation_share_the_beginning_of_their_run_ids(skill: Component) -> None:
    runs = planned(skill, "m1", "m2")
    assert [run.folder for run in runs] == [Path("results", run.manifest.run_id) for run in runs]
    assert [run.manifest.run_id.split("-", 2)[2] for run in runs] == [f"{skill.name}-m1", f"{skill.name}-m2"]
    assert len({run.manifest.run_id.rsplit("-", 1)[0] for run in runs}) == 1
    assert planned(skill, "m1")[0].manifest.run_id != runs[0].manifest.run_id


def test_runs_that_begin_in_one_second_sort_by_time() -> None:
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    names = [new_invocation(begin + datetime.timedelta(milliseconds=passed)) for passed in range(1000)]
    assert names == sorted(set(names))
    assert all(is_invocation(name) for name in names)


def test_ids_that_no_folder_can_have_stay_apart(skill: Component) -> None:
    runs = planned(skill, "org/m", "org:m", "org-m", "org@m")
    assert len({run.folder.name for run in runs}) == 4
    assert all(run.folder.parent == Path("results") for run in runs)
    assert runs[2].folder.name.endswith("-org-m")


def test_shards_of_one_invocation_have_folders_and_cases_of_their_own(skill: Component) -> None:
    parts = [planned(skill, "m", shard=Shard(index, 2))[0] for index in (1, 2)]
    assert [part.folder.name[-4:] for part in parts] == ["1of2", "2of2"]
    assert sorted(case_id for part in parts for case_id in part.manifest.cases) == ["a", "b", "c"]
    assert [part.manifest.whole for part in (*parts, *planned(skill, "m"))] == [False, False, True]


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({}, True),
        ({"price": {"input": 1, "output": 1}}, True),
        ({"limits": {"max_concurrency": 1}}, True),
        ({"api_key_env": "OTHER_KEY"}, True),
        ({"retires": "2027-01-01"}, True),
        ({"params": {"temperature": 0.5}}, False),
        ({"params": {"thinking": {"budget": 9}}}, False),
        ({"profile": "sampled"}, False),
        ({"api_id": "n"}, False),
        ({"base_url": "http://localhost:1/v1"}, False),
        ({"structured_output": "none"}, False),
    ],
)
def test_settings_are_told_apart_by_what_shapes_an_answer(
    skill: Component, changed: dict[str, Any], same: bool
) -> None:
    before = input_digests(skill, Model.model_validate(MODEL))
    after = input_digests(skill, Model.model_validate({**MODEL, **changed}))
    assert (after == before) is same


def test_settings_are_told_apart_where_a_provider_came_to_give_other_answers(
    skill: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(id="m", provider="replay")
    before = input_digests(skill, model)
    monkeypatch.setitem(PROVIDERS, "replay", replace(PROVIDERS["replay"], revision=2))  # type: ignore[arg-type]
    assert input_digests(skill, model)["settings"] != before["settings"]
