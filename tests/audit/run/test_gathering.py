"""Gathering: every answer is scored once and lands in its place; what does not belong is refused by name."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from skill_evaluator.audit.run.gathering import gather
from skill_evaluator.audit.run.plan import read_audit_manifest
from skill_evaluator.errors import AuditError

from tests.support.audits import CELLS, QUESTIONS, SCENARIOS, SECOND, AuditLibrary, missing
from tests.support.chat_server import Asked, Reply, chat_server, notice
from tests.support.library import REPLAY, SKILL

GOOD, WRONG, BROKEN = notice("alpha"), notice("alpha", 1999), "no JSON at all"


def priced(root: Path) -> AuditLibrary:
    library = AuditLibrary(root)
    library.models({**REPLAY, "price": {"input": 1.0, "output": 1.0}})
    return library


@pytest.fixture
def library(tmp_path: Path) -> AuditLibrary:
    """Everything is right, but for what a test records over it."""
    return priced(tmp_path)


@pytest.fixture(scope="module")
def audited_once(tmp_path_factory: pytest.TempPathFactory) -> AuditLibrary:
    """An audit in which everything is right."""
    library = priced(tmp_path_factory.mktemp("audited"))
    answer(library)
    library.audit()
    return library


@pytest.fixture
def audited(audited_once: AuditLibrary, tmp_path: Path) -> AuditLibrary:
    return audited_once.copy(tmp_path)


def run_of(library: AuditLibrary) -> Path:
    """Return the folder of its one run."""
    (run,) = (library.audit_folder() / "runs").iterdir()
    return run


def lines(**other: dict[str, object]) -> list[dict[str, object]]:
    """A line for every call, right unless told otherwise by `<cell>#<replicate>`."""
    usage = {"usage": {"input_tokens": 10, "output_tokens": 5}}
    made = []
    for cell in CELLS:
        for replicate in range(2):
            text = notice(cell.rpartition("/")[2])
            line = {"case_id": cell, "replicate": replicate, **usage, "text": text}
            made.append({**line, **other.get(f"{cell}#{replicate}", {})})
    return made


def answer(library: AuditLibrary, **other: dict[str, object]) -> None:
    library.write("answers.jsonl", "".join(json.dumps(line) + "\n" for line in lines(**other)))


def test_every_answer_lands_in_its_place_with_what_became_of_it(library: AuditLibrary) -> None:
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
    gathered = gather([library.audit_folder()], library.places)
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
    assert tally.model_cost.usd_per_call == pytest.approx(15 / 1e6)
    assert missing(gathered) == {"recorded": 0}


def test_artifacts_at_any_depth_join_and_what_came_twice_counts_once(library: AuditLibrary) -> None:
    answer(library)
    library.audit("--shard", "1/2")
    library.call("audit", "run", "--resume", "--shard", "2/2")
    artifacts = library.root / "artifacts"
    for run in (library.audit_folder() / "runs").iterdir():
        for copy in ("a", "b"):
            shutil.copytree(run, artifacts / run.name / copy / "deep" / run.name)
    shutil.copy(library.audit_folder() / "audit.json", artifacts)
    gathered = gather([artifacts], library.places)
    assert gathered.tallies["recorded"].outcomes == {"scored": 30}
    assert gathered.tallies["recorded"].planned == 30
    assert missing(gathered) == {"recorded": 0}
    both = gather([artifacts, library.audit_folder()], library.places)
    for name, one in gathered.outcomes.items():
        np.testing.assert_array_equal(one.scores, both.outcomes[name].scores)


def test_what_does_not_belong_is_refused_and_named(audited: AuditLibrary) -> None:
    run = run_of(audited)
    right = (run / "manifest.json").read_text()
    other_asked = "was not run on what audit.json of the audit"
    for wrong, said in (
        (right.replace('"audit": "2', '"audit": "1'), "is a run of the audit 1"),
        (json.dumps({**json.loads(right), "audit": None, "skill": "invoices"}), "of 'invoices', not of the audit"),
        (right.replace("sha256:", "sha256:0", 1), other_asked),
        (right.replace("/curt/", "/rude/", 1), other_asked),
        (right.replace('"recorded"', '"other"', 1), other_asked),
    ):
        assert wrong != right
        (run / "manifest.json").write_text(wrong)
        with pytest.raises(AuditError) as refused:
            gather([audited.audit_folder()], audited.places)
        assert said in str(refused.value)
        assert str(run) in str(refused.value)


def test_of_the_artifacts_of_a_plan_one_that_differs_in_any_field_is_left_out_and_the_others_count(
    audited: AuditLibrary,
) -> None:
    run, artifacts = run_of(audited), audited.root / "artifacts"
    shutil.copytree(run, artifacts / "good" / run.name)
    manifest = shutil.copytree(run, artifacts / "bad" / run.name) / "manifest.json"
    right = json.loads(manifest.read_text())
    planned = read_audit_manifest(audited.audit_folder() / "audit.json")
    for changed, words in (
        ({"created": "9999-01-01T00:00:00Z"}, "created"),
        ({"skill_version": "9"}, "skill_version"),
        ({"selection": ["x"]}, "selection"),
        ({"scenario": "rude"}, "scenario"),
        ({"seed": 9}, "seed"),
        ({"shard": "9/3"}, "9/3"),
        ({"run_id": "../x"}, "run_id"),
        ({"cases": 5}, "cases"),
    ):
        manifest.write_text(json.dumps({**right, **changed}))
        gathered = gather([artifacts], audited.places, planned)
        assert (gathered.tallies["recorded"].answered, missing(gathered)) == (30, {"recorded": 0}), words
        assert any(remark.startswith("left out: ") and words in remark for remark in gathered.remarks), words


def test_a_wrong_line_and_a_link_of_an_audit_s_run_are_remarks(audited: AuditLibrary) -> None:
    library = audited
    journal = run_of(library) / "replicates.jsonl"
    first, *others = journal.read_text().splitlines()
    stranger = json.dumps({"case_id": "a/b/c", "replicate": 0, "text": "t"})
    journal.write_text("\n".join([json.dumps({**json.loads(first), "text": 5}), *others, stranger]) + "\n")
    gathered = gather([library.audit_folder()], library.places)
    assert gathered.tallies["recorded"].answered == 29
    assert "replicates.jsonl:1 is left out, it is not a journal line" in gathered.remarks[-2]
    assert "1 answer left out, of calls that were not planned" in gathered.remarks[-1]
    planned = read_audit_manifest(library.audit_folder() / "audit.json")
    journal.rename(library.root / "elsewhere")
    journal.symlink_to(library.root / "elsewhere")
    assert gather([library.audit_folder()], library.places, planned).tallies["recorded"].answered == 0


def test_another_audit_beside_it_a_folder_of_none_and_a_changed_case_are_refused(audited: AuditLibrary) -> None:
    library = audited
    library.audit()
    first, second = sorted(library.audits.iterdir())
    with pytest.raises(AuditError, match=rf"{second.name} is of the audit {second.name}, or asks otherwise than"):
        gather([first, second], library.places)
    with pytest.raises(AuditError, match="holds no audit"):
        gather([library.root / "fixtures"], library.places)
    library.case("beta", {"title": "other", "year": 1})
    with pytest.raises(AuditError, match=f"case 'beta' of '{SKILL}' changed since the audit {first.name} began"):
        gather([first], library.places)


def test_other_declarations_are_said_and_a_prompt_that_went_on_is_not(audited: AuditLibrary) -> None:
    library = audited
    library.write(f"components/{SECOND}/prompt.md", f"---\nname: {SECOND}\nversion: 2.0.0\n---\nAnother.\n")
    assert gather([library.audit_folder()], library.places).remarks == ()
    library.write(
        f"components/{SECOND}/evals/datasets.json", {"datasets": [{"fields": {"title": {"compare": "ignore"}}}]}
    )
    (remark,) = gather([library.audit_folder()], library.places).remarks
    assert remark == f"'{SECOND}' compares answers otherwise than when the audit began"


def test_an_error_that_another_artifact_made_up_for_is_none(library: AuditLibrary) -> None:
    def refusing(asked: Asked) -> Reply:
        return Reply(status=500) if asked.case_id == "eta" else Reply(text=notice(asked.case_id))

    with chat_server() as server:
        library.served_by(server.url)
        server.reply = refusing
        library.audit()
        shutil.copytree(library.audit_folder(), library.root / "first")
        server.reply = lambda asked: Reply(text=notice(asked.case_id))
        library.call("audit", "run", "--resume")
    gathered = gather([library.root / "first", library.audit_folder()], library.places)
    assert gathered.tallies["served"].outcomes == {"scored": 30}
