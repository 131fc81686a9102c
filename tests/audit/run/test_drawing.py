"""What an audit asks: a draw by the seed alone, cells in a balanced order, shards that part the calls."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.audit.request import AuditRequest
from skill_evaluator.audit.run.drawing import default_scenarios, draw_questions, new_audit
from skill_evaluator.audit.run.plan import read_audit_manifest, write_manifest
from skill_evaluator.errors import AuditError
from skill_evaluator.runner.schedule import Shard

from tests.audit.manifests import IDS, manifest
from tests.support.audits import SCENARIOS, SECOND, AuditLibrary
from tests.support.library import SKILL

SIZES = st.lists(st.integers(1, 8), min_size=1, max_size=3)


@given(st.permutations(IDS), st.integers(1, 80), st.integers(0, 99))
def test_the_draw_is_by_seed_and_benchmark_alone(names: list[str], questions: int, seed: int) -> None:
    chosen = draw_questions(names, questions, seed, "b")
    assert chosen == draw_questions(IDS, questions, seed, "b")
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(questions, len(IDS))


def test_another_seed_and_another_benchmark_draw_others() -> None:
    assert len({tuple(draw_questions(IDS, 10, seed, name)) for seed in range(5) for name in ("a", "b")}) == 10


@given(SIZES, st.integers(1, 4), st.integers(1, 5))
def test_shards_part_the_calls_and_keep_a_questions_scenarios_together(
    sizes: list[int], scenarios: int, shards: int
) -> None:
    audit = manifest(sizes, scenarios)
    if shards > audit.questions_in_all:
        with pytest.raises(Exception, match="has no case"):
            audit.cells(Shard(shards, shards))
        return
    parts = [audit.cells(Shard(index, shards)) for index in range(1, shards + 1)]
    assert sorted(cell for part in parts for cell in part) == sorted(audit.cells())
    for part in parts:
        questions = {(benchmark, case) for benchmark, _, case in (cell.split("/") for cell in part)}
        assert len(part) == len(questions) * scenarios


@given(SIZES, st.integers(1, 4), st.data())
def test_cut_off_anywhere_all_scenarios_have_met_the_same_questions(
    sizes: list[int], scenarios: int, data: st.DataObject
) -> None:
    cells = list(manifest(sizes, scenarios).cells())
    assert len(set(cells)) == sum(sizes) * scenarios
    begun = cells[: data.draw(st.integers(0, len(cells)))]
    met = [{(cell.split("/")[0], cell.split("/")[2]) for cell in begun if f"/s{s}/" in cell} for s in range(scenarios)]
    assert max(map(len, met)) - min(map(len, met)) <= 1


def test_a_cells_digest_tells_all_that_shapes_its_answers() -> None:
    audit = manifest([2], 2)
    before = audit.cells()
    (one,) = audit.benchmarks
    for changed in ({**one.digests, "prompt": "q"}, {**one.digests, "schema": "t"}):
        other = audit.model_copy(update={"benchmarks": [one.model_copy(update={"digests": changed})]})
        assert not set(other.cells().values()) & set(before.values())
    declared = one.model_copy(update={"digests": {**one.digests, "datasets": "e"}})
    assert audit.model_copy(update={"benchmarks": [declared]}).cells() == before
    other = audit.model_copy(update={"scenarios": {**audit.scenarios, "s1": "sha256:new"}})
    assert [cell for cell, digest in other.cells().items() if digest != before[cell]] == ["b0/s1/q-00", "b0/s1/q-01"]


def test_an_audit_is_drawn_of_labelled_cases_the_same_for_all_models_with_bare_first(tmp_path: Path) -> None:
    library = AuditLibrary(tmp_path)
    library.models(*({"id": name, "provider": "openai"} for name in ("one", "two")))
    library.settings(audit={"benchmarks": {SKILL: {}, SECOND: {"weight": 0.5}}, "questions": 2, "replicates": 3})
    folders = {name: getattr(library.places, name) for name in ("components", "fixtures", "config")}
    audit = new_audit(AuditRequest(**folders, seed=5), keyed=False).manifest
    assert list(audit.scenarios) == list(SCENARIOS)
    assert [(one.name, len(one.cases), one.of, one.unlabelled, one.weight) for one in audit.benchmarks] == [
        (SKILL, 2, 3, 0, 1.0),
        (SECOND, 2, 2, 1, 0.5),
    ]
    assert audit.calls_per_model == 4 * 3 * 3
    write_manifest(tmp_path / "kept", audit)
    assert read_audit_manifest(tmp_path / "kept" / "audit.json") == audit
    library.write(".evaluator/scenarios/anxious.md", "---\nname: anxious\nintent: i\n---\n{{ prompt }}\n")
    assert default_scenarios(library.places) == ("bare", "anxious", "curt", "grand")
    path = tmp_path / "audit.json"
    path.write_text('{"manifest_version": 99}')
    with pytest.raises(AuditError, match="manifest_version 99, this evaluator knows 1; upgrade it"):
        read_audit_manifest(path)
