"""New runs: their ids, digests, requests and seeds."""

import datetime
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.library.components import Component
from skill_evaluator.library.config import Model
from skill_evaluator.library.prompts import Message, dialogue
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.providers.base import Request
from skill_evaluator.runner import journal
from skill_evaluator.runner.journal import Run, RunSize, changes_since, input_digests, new_invocation, new_runs
from skill_evaluator.runner.prices import size_of
from skill_evaluator.runner.schedule import Shard, build_request, replicate_seed

from tests.support.components import SCHEMA, case, component
from tests.support.json_values import quick

MODEL: dict[str, Any] = {"id": "m", "provider": "openai"}


@pytest.fixture(scope="module")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Component:
    return component(tmp_path_factory.mktemp("library"))


def planned(skill: Component, *model_ids: str, **more: Any) -> list[Run]:
    models = [Model(id=model_id, provider="replay") for model_id in model_ids]
    cases = [case("a"), case("b"), case("c")]
    return new_runs(skill, cases, models, Path("results"), PROVIDERS, RunSize(replicates=2, seed=0, **more))


def test_run_ids_of_one_invocation_share_their_prefix(skill: Component) -> None:
    runs = planned(skill, "m1", "m2")
    assert [run.folder for run in runs] == [Path("results", run.manifest.run_id) for run in runs]
    assert [run.manifest.run_id.split("-", 2)[2] for run in runs] == [f"{skill.name}-m1", f"{skill.name}-m2"]
    assert len({run.manifest.run_id.rsplit("-", 1)[0] for run in runs}) == 1
    assert planned(skill, "m1")[0].manifest.run_id != runs[0].manifest.run_id


def test_runs_that_begin_in_one_second_sort_by_time() -> None:
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    names = [new_invocation(begin + datetime.timedelta(milliseconds=passed)) for passed in range(1000)]
    assert names == sorted(set(names))
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{6}", name) for name in names)


def test_run_ids_of_hostile_model_names_differ(skill: Component) -> None:
    runs = planned(skill, "org/m", "org:m", "org-m", "org@m")
    assert len({run.folder.name for run in runs}) == 4
    assert all(run.folder.parent == Path("results") for run in runs)
    assert runs[2].folder.name.endswith("-org-m")


def test_shards_have_their_own_folders_and_cases(skill: Component) -> None:
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
def test_settings_digest_depends_on_what_shapes_an_output(
    skill: Component, changed: dict[str, Any], same: bool
) -> None:
    before = input_digests(skill, Model.model_validate(MODEL))
    after = input_digests(skill, Model.model_validate({**MODEL, **changed}))
    assert (after == before) is same


def test_changed_inputs_of_a_run_are_named(skill: Component) -> None:
    (run,) = planned(skill, "m")
    cases = {name: case(name) for name in "abc"}
    other_schema = replace(skill, digests={**skill.digests, "schema": "sha256:0"})
    other_model = replace(run, model=Model(id="m", provider="replay", profile="sampled"))
    assert changes_since(run, skill, cases) == []
    assert changes_since(run, other_schema, cases) == ["schema"]
    assert changes_since(other_model, skill, cases) == ["settings"]
    assert changes_since(run, skill, {**cases, "b": replace(cases["b"], parts={"document": "sha256:1"})}) == [
        "case 'b'"
    ]
    assert changes_since(run, skill, {"a": cases["a"], "b": cases["b"]}) == ["case 'c'"]


def test_settings_digest_changes_with_the_provider_revision(skill: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model(id="m", provider="replay")
    before = input_digests(skill, model)
    monkeypatch.setitem(journal._REVISIONS, "replay", 2)
    assert input_digests(skill, model)["settings"] != before["settings"]


SEEDS = [1547857389, 1351065849, 2017599904]  # of seed 7, case-1: a change would make no two runs comparable


def test_request_has_prompt_document_and_schema(skill: Component) -> None:
    assert build_request(skill, case("a")) == Request(
        case_id="a",
        messages=dialogue("Read the receipt.", "receipt a"),
        constant=len("Read the receipt."),
        schema=SCHEMA,
        schema_name="receipts",
        inputs={"document": "receipt a"},
    )


def test_document_is_sent_verbatim(tmp_path: Path) -> None:
    skill = component(
        tmp_path, prompt="---\nversion: 1.0.0\nplaceholders: literal\n---\nUse {document} and $x and {{ y }}.\n"
    )
    assert build_request(skill, case("a")).system == "Use {document} and $x and {{ y }}."
    assert build_request(skill, case("a")).dialogue == (Message("user", ("receipt a",)),)


def test_schema_name_is_valid_for_every_vendor(tmp_path: Path) -> None:
    skill = component(tmp_path, name="notes.v2", prompt="---\nversion: 1.0.0\n---\nRead.\n")
    assert build_request(skill, case("a")).schema_name == "notes-v2"


def test_text_component_sends_no_schema(tmp_path: Path) -> None:
    skill = component(tmp_path, prompt="---\nversion: 1.0.0\noutput: text\n---\nSay.\n", schema=None)
    assert build_request(skill, case("a")).schema is None


def test_seeds_are_stable_between_releases() -> None:
    assert [replicate_seed(7, "case-1", index) for index in range(3)] == SEEDS


@quick
@given(seed=st.integers(), case_id=st.text("ab/0", max_size=3), replicate=st.integers(0, 10**6))
def test_seed_has_31_bits_and_depends_on_its_call_alone(seed: int, case_id: str, replicate: int) -> None:
    found = replicate_seed(seed, case_id, replicate)
    assert 0 <= found < 2**31
    assert found == replicate_seed(seed, case_id, replicate)


@pytest.mark.parametrize(
    ("text", "estimate", "most"),
    [
        ("", 16, 512),
        ("abcdefgh", 18, 520),
        ("é" * 4, 18, 520),  # bytes, not letters
    ],
)
def test_input_tokens_by_the_bytes_of_the_texts(text: str, estimate: int, most: int) -> None:
    size = size_of(Request(case_id="a", messages=dialogue("", text)))
    assert (size.likely, size.maximum) == (estimate, most)


def test_schema_counts_as_input(skill: Component) -> None:
    asked = size_of(build_request(skill, case("a")))
    assert asked.maximum > asked.likely > len("Read the receipt.receipt a") // 4 + 16
