"""`explain`: the values of one output beside the ground truth, or one field in all outputs."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.chat_server import notice
from tests.support.library import SKILL, Ended, Library, read

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": ["string", "null"]},
        "year": {"type": ["integer", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
PROSE = "I [bold]cannot[/bold]\nread \x1b[31m it"


def answered(library: Library, truth: Any, answers: Sequence[Any]) -> None:
    """Evaluate one case, `alpha`, with these answers (texts as they are)."""
    library.write(f"components/{SKILL}/schema.json", SCHEMA)
    shutil.rmtree(library.root / "fixtures" / SKILL)
    library.case("alpha", truth)
    library.record_answers({("alpha", index): text_of(answer) for index, answer in enumerate(answers)})
    library.evaluate_here("--replicates", str(len(answers)))


def text_of(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


def explain(library: Library, *arguments: str) -> Ended:
    ended = library.call("explain", library.run_folder().name, *arguments)
    assert (ended.code, ended.err) == (0, "")
    return ended


def outputs(library: Library, *arguments: str) -> list[dict[str, Any]]:
    """The distinct outputs of the one case."""
    (case,) = explain(library, *arguments, "--format", "json").json["cases"]
    return list(case["outputs"])


def verdicts(output: Mapping[str, Any]) -> dict[str, str]:
    """The verdict by place."""
    return {field["at"]: field["verdict"] for field in output["fields"]}


def test_case_shows_its_outputs_with_replicates_the_commonest_first(library: Library) -> None:
    right = {"title": "alpha", "year": 2024}
    answered(library, right, ["no idea", right, f"Sure:\n```json\n{json.dumps(right)}\n```", "{}"])
    out = explain(library, "--case", "alpha").out
    assert "case alpha\nreplicate 1-2: scored · schema_valid 1.000 · exact_match 1.000" in out
    assert "replicate 0: unparseable, prose · " in out
    assert re.search(r"^right +year +2024 +2024 +1-2 .*\nmissing +year +2024 +– +3 ", out, re.M)
    (empty,) = (output for output in outputs(library, "--case", "alpha") if output["replicates"] == [3])
    assert verdicts(empty) == {"title": "missing", "year": "missing"}


def test_null_ground_truth_differs_from_an_absent_one(library: Library) -> None:
    answered(library, {"title": "alpha", "year": None}, [{"title": "alpha", "year": 2024, "tags": ["a"]}])
    out = explain(library, "--case", "alpha").out
    assert re.search(r"^extra +year +null +2024 .*\nextra +tags\[→0\] +– +\"a\" ", out, re.M), out
    assert "next: describe year, tags[] more precisely in the prompt" in out


def test_field_is_shown_in_every_case(library: Library) -> None:
    texts = {("alpha", 0): notice("alpha"), ("alpha", 1): notice("alpha", 1), ("beta", 0): notice("beta", 3)}
    library.record_answers({**texts, ("beta", 1): notice("beta", 3), ("gamma", 0): "?", ("gamma", 1): notice("gamma")})
    library.evaluate_here("--replicates", "2")
    out = explain(library, "--field", "year").out
    assert re.search(r"^alpha +right +year .* 0 +number.*\nalpha +wrong +year .* 1 +number", out, re.M), out
    assert re.search(r"^beta +wrong +year .* 0-1 ", out, re.M)
    assert re.search(r"^gamma +unparseable +\(the whole output\) +– +– +0", out, re.M)


def test_unparseable_output_is_shown_as_received(library: Library) -> None:
    answered(library, {"title": "alpha"}, [PROSE, {"title": "alpha", "year": "2024"}])
    ended = explain(library, "--case", "alpha")
    assert "replicate 0: unparseable, prose · " in ended.out
    assert "of replicate 0 as it came (35 characters)\nI [bold]cannot[/bold]\nread \\u001b[31m it\n" in ended.out
    assert '/year: "2024" is not of type' in ended.out
    (data,) = (output for output in outputs(library, "--case", "alpha") if output["replicates"] == [0])
    assert (data["outcome"], data["text"], data["fields"]) == ("unparseable", PROSE, [])


def test_failed_and_missing_calls_are_named(library: Library) -> None:
    line = {"case_id": "alpha", "replicate": 0, "error": {"kind": "timeout", "reason": "read_timeout"}}
    library.write("answers.jsonl", json.dumps(line) + "\n")
    library.evaluate_here("--case", "alpha", "--replicates", "2", "--max-calls", "1")
    out = explain(library, "--case", "alpha").out
    assert "replicate 0: timeout, read_timeout\n" in out
    assert "replicate 1: not_run\n" in out


REFUSED: Mapping[tuple[str, ...], str] = {
    ("--case", "alpa"): "unknown case 'alpa' in {run} (did you mean 'alpha'?)",
    ("--field", "yeer"): "unknown field 'yeer' of 'notice-extraction' for --field (did you mean 'year'?)",
    (): "--case ID or --field PATH is required (the cases of the run: alpha, beta, gamma)",
}


def test_unknown_case_or_field_is_refused_in_one_line(library: Library) -> None:
    library.evaluate_here()
    run = library.run_folder().name
    for arguments, problem in REFUSED.items():
        ended = library.call("explain", run, *arguments)
        assert (ended.code, ended.out, ended.err) == (2, "", f"error: {problem.format(run=run)}\n")


def test_edited_outputs_get_a_warning(library: Library) -> None:
    assert library.evaluate_here().code == 0
    folder = library.run_folder()
    arguments = ("explain", folder.name, "--case", "alpha")
    assert library.call(*arguments).err == ""
    journal = folder / "replicates.jsonl"
    journal.write_text(journal.read_text().replace("2024", "2025", 1))
    place = folder.relative_to(library.root)
    said = f"warning: {place / 'record.json'} was made from other outputs than {place / journal.name} has\n"
    assert library.call(*arguments).err == said


def test_run_is_found_by_folder_or_id(library: Library) -> None:
    library.evaluate_here()
    folder = library.run_folder()
    by_id = explain(library, "--case", "alpha").out
    assert library.call("explain", str(folder.relative_to(library.root)), "--case", "alpha").out == by_id
    missing = library.call("explain", "2026", "--case", "alpha")
    assert missing.code == 2
    assert missing.err.startswith("error: there is no run folder '2026', and no run with this id in components")
    component = library.call("explain", SKILL, "--case", "alpha")
    assert component.err == f"error: '{SKILL}' is a component: name one of its runs (newest first: {folder.name})\n"
    no_run = library.call("explain", "components", "--case", "alpha")
    assert no_run.err == "error: components is not a run folder: it has no manifest.json\n"


def test_newest_version_is_not_claimed_without_a_leaderboard(library: Library) -> None:
    answered(library, {"title": "alpha", "year": 2024}, ["{}"])
    board = library.root / "components" / SKILL / "leaderboard.json"
    assert f"{SKILL} 1.0.0: the newest version\n" in explain(library, "--case", "alpha").out
    board.write_text("{")
    out = explain(library, "--case", "alpha").out
    assert f"\n{SKILL} 1.0.0\n" in out
    assert "the newest" not in out


def test_newest_version_is_named_without_its_record(library: Library) -> None:
    answered(library, {"title": "alpha", "year": 2024}, ["{}"])
    earlier = library.run_folder().name
    board = library.root / "components" / SKILL / "leaderboard.json"
    board.write_text(board.read_text().replace('"1.0.0"', '"1.1.0"').replace(earlier, f"{earlier}-later"))
    assert f"{SKILL} 1.0.0: an earlier version; the newest is 1.1.0\n" in explain(library, "--case", "alpha").out


def test_run_of_a_version_without_order_is_explained(library: Library) -> None:
    answered(library, {"title": "alpha", "year": 2024}, ["{}"])
    manifest = library.run_folder() / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"1.0.0"', '"7"'))
    assert f"\n{SKILL} 7\n" in explain(library, "--case", "alpha").out


def test_draft_is_not_the_newest_version(library: Library) -> None:
    answered(library, {"title": "alpha", "year": 2024}, ["{}"])
    library.evaluate_here("--draft", "--replicates", "1")
    manifests = library.results.glob("*/manifest.json")
    draft = next(path.parent.name for path in manifests if read(path).get("draft"))
    out = library.call("explain", draft, "--case", "alpha").out
    assert f"\n{SKILL} 1.0.0 (draft); the newest recorded version is 1.0.0\n" in out


def test_ending_compares_the_newest_recorded_version(library: Library) -> None:
    answered(library, {"title": "alpha"}, ["no idea", "{}"])
    recorded = explain(library, "--case", "alpha").out
    assert f"{SKILL} 1.0.0: the newest version\n≠ {SKILL} 1.0.0: nothing to compare with yet; " in recorded
    prompt = library.root / "components" / SKILL / "prompt.md"
    prompt.write_text(prompt.read_text().replace("version: 1.0.0", "version: 1.1.0"))
    library.evaluate_here("--draft", "--replicates", "2")
    draft = max(path.name for path in library.results.iterdir() if path.is_dir())
    out = library.call("explain", draft, "--case", "alpha").out
    assert f"{SKILL} 1.1.0 (draft); the newest recorded version is 1.0.0\n≠ {SKILL} 1.0.0: " in out
