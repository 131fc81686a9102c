"""Drawing an audit: the cases depend on the seed alone, and the cells are in a balanced order."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator.audit.manifest import (
    default_scenarios,
    draw_audit,
    draw_questions,
    read_audit_manifest,
    size_warnings,
)
from skill_evaluator.audit.request import AuditRunRequest
from skill_evaluator.errors import AuditError

from tests.audit.audit_library import SCENARIOS, SECOND, AuditLibrary
from tests.audit.cubes import IDS, manifest
from tests.support.library import SKILL

SIZES = st.lists(st.integers(1, 8), min_size=1, max_size=3)


@given(st.permutations(IDS), st.integers(1, 80), st.integers(0, 99))
def test_draw_depends_on_seed_and_benchmark_alone(names: list[str], questions: int, seed: int) -> None:
    chosen = draw_questions(names, questions, seed, "b")
    assert chosen == draw_questions(IDS, questions, seed, "b")
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(questions, len(IDS))


def test_other_seeds_and_benchmarks_draw_other_questions() -> None:
    assert len({tuple(draw_questions(IDS, 10, seed, name)) for seed in range(5) for name in ("a", "b")}) == 10


@given(SIZES, st.integers(1, 4), st.data())
def test_scenarios_have_the_same_questions_wherever_calls_stop(
    sizes: list[int], scenarios: int, data: st.DataObject
) -> None:
    cells = list(manifest(sizes, scenarios).cells())
    assert len(set(cells)) == sum(sizes) * scenarios
    begun = cells[: data.draw(st.integers(0, len(cells)))]
    met = [{(cell.split("/")[0], cell.split("/")[2]) for cell in begun if f"/s{s}/" in cell} for s in range(scenarios)]
    assert max(map(len, met)) - min(map(len, met)) <= 1


def test_cell_digest_covers_all_inputs_but_declarations() -> None:
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


def test_size_below_its_minimum_has_a_warning() -> None:
    assert size_warnings(4, 6, {"quiz": 50}, 2) == []
    for size in ((3, 6, {"quiz": 50}, 2), (4, 5, {"quiz": 50}, 2), (4, 6, {"quiz": 49}, 2), (4, 6, {"quiz": 50}, 1)):
        assert len(size_warnings(*size)) == 1


def test_audit_draws_labelled_cases_and_puts_bare_first(tmp_path: Path) -> None:
    library = AuditLibrary(tmp_path)
    library.models(*({"id": name, "provider": "openai"} for name in ("one", "two")))
    library.settings(audit={"benchmarks": {SKILL: {}, SECOND: {"weight": 0.5}}, "questions": 2, "replicates": 3})
    folders = {name: getattr(library.places, name) for name in ("components", "fixtures", "config")}
    audit = draw_audit(AuditRunRequest(**folders, seed=5, dry_run=True)).manifest
    assert list(audit.scenarios) == list(SCENARIOS)
    drawn = [(one.name, len(one.cases), one.of, one.unlabelled, one.weight) for one in audit.benchmarks]
    assert drawn == [(SKILL, 2, 3, 0, 1.0), (SECOND, 2, 2, 1, 0.5)]
    assert audit.calls_per_model == 4 * 3 * 3
    library.write("audit.json", audit.model_dump(mode="json"))
    assert read_audit_manifest(tmp_path / "audit.json") == audit
    library.write(".evaluator/scenarios/anxious.md", "---\nname: anxious\nintent: i\n---\n{{ prompt }}\n")
    assert default_scenarios(library.places) == ("bare", "anxious", "curt", "grand")
    path = tmp_path / "audit.json"
    path.write_text('{"manifest_version": 99}')
    with pytest.raises(AuditError, match="manifest_version 99, but this evaluator knows 1; upgrade skill-evaluator"):
        read_audit_manifest(path)
