"""Gathering: every output is scored into its cell; runs that do not belong to the audit are refused."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from skill_evaluator.audit.calls import gather
from skill_evaluator.errors import AuditError

from tests.audit.audit_library import CELLS, QUESTIONS, SCENARIOS, SECOND, AuditLibrary
from tests.support.chat_server import notice
from tests.support.library import REPLAY, SKILL

GOOD, WRONG, BROKEN = notice("alpha"), notice("alpha", 1999), "no JSON at all"


@pytest.fixture
def library(tmp_path: Path) -> AuditLibrary:
    library = AuditLibrary(tmp_path)
    library.models({**REPLAY, "price": {"input": 1.0, "output": 1.0}})
    return library


@pytest.fixture
def audited(library: AuditLibrary) -> AuditLibrary:
    """An audit in which everything is right."""
    answer(library)
    library.audit()
    return library


def run_of(library: AuditLibrary) -> Path:
    """Return the folder of its one run."""
    (run,) = (library.audit_folder() / "runs").iterdir()
    return run


def answer(library: AuditLibrary, **other: dict[str, object]) -> None:
    """Write a right answer for every call, unless told otherwise by `<cell>#<replicate>`."""
    lines = []
    for cell, replicate in product(CELLS, range(2)):
        line = {"case_id": cell, "replicate": replicate, "text": notice(cell.rpartition("/")[2])}
        usage = {"input_tokens": 10, "output_tokens": 5}
        lines.append({**line, "usage": usage, **other.get(f"{cell}#{replicate}", {})})
    library.lines("answers.jsonl", *lines)


def test_every_output_is_scored_into_its_cell_and_counted(library: AuditLibrary) -> None:
    answer(
        library,
        **{
            f"{SKILL}/curt/alpha#0": {"text": WRONG},
            f"{SKILL}/curt/alpha#1": {"text": BROKEN},
            f"{SECOND}/grand/eta#0": {"stop_reason": "length"},
            f"{SECOND}/grand/eta#1": {"stop_reason": "refusal"},
            f"{SECOND}/bare/delta#1": {"text": None, "error": "server_error"},
        },
    )
    library.audit()
    gathered = gather(library.audit_folder(), library.places)
    cube = gathered.cube({}, "questions")
    assert (cube.models, cube.scenarios, cube.weights.tolist()) == (("recorded",), SCENARIOS, [0.5, 0.5])
    first, second = gathered.outcomes[SKILL], gathered.outcomes[SECOND]
    assert (first.questions, second.questions) == (QUESTIONS[SKILL], QUESTIONS[SECOND])
    assert first.scores.dtype == np.float32
    expected = np.ones((1, 3, 3, 2))
    expected[0, 1, 0] = (0.5, 0.0)
    np.testing.assert_array_equal(first.scores, expected)
    expected = np.ones((1, 3, 2, 2))
    expected[0, 2, 1] = 0.0
    expected[0, 0, 0, 1] = np.nan
    np.testing.assert_array_equal(second.scores, expected)
    tally = gathered.tallies["recorded"]
    assert (tally.planned, tally.answered, tally.unmade) == (30, 29, 0)
    assert tally.failures == {"provider_error": 1, "refused": 1, "truncated": 1, "unparseable": 1}
    assert tally.cost_usd == pytest.approx(29 * 15 / 1e6)
    assert tally.usd_per_output == pytest.approx(15 / 1e6)


def test_run_of_another_audit_or_with_other_inputs_is_refused(audited: AuditLibrary) -> None:
    run = run_of(audited)
    right = (run / "manifest.json").read_text()
    other_inputs = "does not match audit.json"
    for wrong, said in (
        (right.replace('"audit": "2', '"audit": "1'), "is a run of the audit 1"),
        (json.dumps({**json.loads(right), "audit": None, "skill": "invoices"}), "of 'invoices', not of the audit"),
        (right.replace("sha256:", "sha256:0", 1), other_inputs),
        (right.replace("/curt/", "/rude/", 1), other_inputs),
        (right.replace('"recorded"', '"other"', 1), other_inputs),
    ):
        assert wrong != right
        (run / "manifest.json").write_text(wrong)
        with pytest.raises(AuditError) as refused:
            gather(audited.audit_folder(), audited.places)
        assert said in str(refused.value)
        assert str(run) in str(refused.value)


def test_unreadable_and_unplanned_journal_lines_are_remarked(audited: AuditLibrary) -> None:
    journal = run_of(audited) / "replicates.jsonl"
    first, *others = journal.read_text().splitlines()
    stranger = json.dumps({"case_id": "a/b/c", "replicate": 0, "text": "t"})
    journal.write_text("\n".join([json.dumps({**json.loads(first), "text": 5}), *others, stranger]) + "\n")
    gathered = gather(audited.audit_folder(), audited.places)
    assert gathered.tallies["recorded"].answered == 29
    assert "replicates.jsonl:1 is skipped, it is not a journal line" in gathered.remarks[-2]
    assert "ignored 1 line of calls that were not planned" in gathered.remarks[-1]


def test_folder_without_an_audit_and_changed_case_are_refused(audited: AuditLibrary) -> None:
    library, folder = audited, audited.audit_folder()
    with pytest.raises(AuditError, match=r"is not an audit: it has no audit\.json"):
        gather(library.root / "fixtures", library.places)
    library.case("beta", {"title": "other", "year": 1})
    with pytest.raises(
        AuditError, match=f"case 'beta' of benchmark '{SKILL}' changed since the audit {folder.name} began"
    ):
        gather(folder, library.places)


def test_changed_declarations_are_remarked_a_changed_prompt_is_not(audited: AuditLibrary) -> None:
    library = audited
    library.write(f"components/{SECOND}/prompt.md", f"---\nname: {SECOND}\nversion: 2.0.0\n---\nAnother.\n")
    assert gather(library.audit_folder(), library.places).remarks == ()
    library.write(
        f"components/{SECOND}/evals/datasets.json", {"datasets": [{"fields": {"title": {"compare": "ignore"}}}]}
    )
    (remark,) = gather(library.audit_folder(), library.places).remarks
    assert remark == f"the declarations of benchmark '{SECOND}' changed since the audit began"
