"""`cases import` of tables and exported JSON, and `cases fetch` from another repository."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from skill_evaluator.library.case_table import inferred_schema
from skill_evaluator.library.contract import Contract

from tests.support.git import GitRepository, bare_copy, git
from tests.support.json_values import json_values
from tests.support.library import SKILL, Ended, Library, read

CASES = f"fixtures/{SKILL}/cases"
FIELDS = ("--input", "text", "--truth", "title=headline", "--truth", "year")


def imported(library: Library, name: str, content: str, *arguments: str) -> Ended:
    library.write(name, content)
    return library.call("cases", "import", name, *(arguments or FIELDS))


TABLES = (("new.csv", '\ufefftext;"year";headline\r\nA day, of 2024;2024,0;A day\r\ntwo;;x\r\n', FIELDS),)


def test_import_writes_cases_that_evaluate_accepts(tmp_path: Path) -> None:
    for number, (name, content, arguments) in enumerate(TABLES):
        library = Library(tmp_path / str(number))
        before = library.tree()
        dry = imported(library, name, content, *arguments)
        assert (dry.code, dry.err) == (0, ""), content
        assert dry.out.startswith(f"2 cases of {SKILL}, 2 with ground truth, in {CASES}:\n  new-1: document.md, ground")
        assert dry.out.endswith("nothing was written; --yes writes them\n")
        assert library.tree().keys() == before.keys() | {name}
        assert imported(library, name, content, *arguments, "--yes").out.endswith("written\n")
        folder = library.root / CASES
        assert read(folder / "new-1" / "ground_truth.json") == {"title": "A day", "year": 2024}, content
        assert read(folder / "new-2" / "ground_truth.json")["year"] is None, content
        assert library.call("evaluate", SKILL, "--case", "new-*", "--dry-run").code == 0, content
        again = imported(library, name, content, *arguments, "--yes")
        assert again.refuses(f"{CASES}/new-1 exists already; choose other ids with --id COLUMN, or import only")
        assert again.err.endswith("the new rows with --new\n"), content


def test_import_adds_new_rows_of_a_grown_table(library: Library) -> None:
    rows = [f'"text {number}\n",t,{number}' for number in range(1, 11)]
    for count, new, known in ((2, 2, 0), (3, 1, 2), (10, 7, 3), (10, 0, 10)):  # ten rows have longer numbers
        table = "\n".join(["text,headline,year", *rows[:count]])
        done = imported(library, "n.csv", table, *FIELDS, "--new", "--yes")
        assert done.out.startswith(f"{new} case"), done.err
        assert (f"left out: {known} rows: it is a case already\n" in done.out) is (known > 0)
        assert len(list((library.root / CASES).glob("n-*"))) == count
    table = '{"n": "n-2", "text": "changed"}\n{"n": "b", "text": "b"}\n'
    done = imported(library, "t.jsonl", table, "--input", "text", "--id", "n", "--new")
    assert "1 case of" in done.out
    assert "  b: document.md" in done.out


ROW = "text,headline,year\n"


def test_import_skips_invalid_rows_on_request(library: Library) -> None:
    content = '{"_meta": {"v": 1}}\n{"text": "a", "truth": {"title": "t", "year": 1}}\n7\n{"text": " "}\n'
    arguments = ("--input", "text", "--truth", "truth", "--yes")
    assert imported(library, "t.jsonl", content, *arguments).refuses("t.jsonl:3: not an object")
    done = imported(library, "t.jsonl", content, *arguments, "--skip-invalid")
    assert (done.code, [line.split(": ")[:2] for line in done.err.splitlines()]) == (
        0,
        [["warning", f"t.jsonl:{line}"] for line in (3, 1, 4)],
    )
    assert [path.name for path in (library.root / CASES).glob("t-*")] == ["t-2"]


def test_import_writes_no_case_when_one_cannot_be_written(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rename = library.tree().keys(), Path.rename

    def full(path: Path, target: Path) -> Path:
        if target.name == "t-3":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", full)
    rows = ROW + "".join(f"text {at},headline,2024\n" for at in range(5))
    refused = imported(library, "t.csv", rows, *FIELDS, "--yes")
    assert (refused.code, refused.err) == (2, f"error: cannot write {CASES}: No space left on device\n")
    assert library.tree().keys() == before | {"t.csv"}


WRONG = (
    ("t.xlsx", "", FIELDS, "t.xlsx is not a table; its name must end in .csv, .tsv, .jsonl or .json"),
    ("t.csv", ROW, FIELDS, "t.csv has no rows"),
    ("t.csv", "txt,headline,year\na,b,1\n", FIELDS, "no column 'text' in t.csv (did you mean 'txt'?)"),
    ("t.csv", ROW + "a,b,1\n", ("--input", "text", "--truth", "titel=headline"), "did you mean 'title'?"),
    (
        "t.csv",
        ROW + "a,b,1\na,b,MMXX\n",
        FIELDS,
        "t.csv:3: 'year', column 'year', is not valid JSON: 'MMXX'; write 9.5",
    ),
    ("t.csv", ROW + "a,b,1\n", (*FIELDS, "--skill", "notices"), "unknown component 'notices'"),
)


def test_import_refuses_an_invalid_table_in_one_line(library: Library) -> None:
    before = library.tree().keys() | {"t.csv", "t.xlsx"}
    for name, content, arguments, words in WRONG:
        assert imported(library, name, content, *arguments, "--yes").refuses(words), words
    assert library.tree().keys() == before


def test_import_refuses_questions_and_requires_a_component(library: Library) -> None:
    library.write("components/quiz/prompt.md", "---\nversion: 1.0.0\noutput: choice\n---\nAnswer.\n")
    row = json.dumps({"text": "a"})
    assert (
        "there are 2 components in components; name one with --skill NAME"
        in imported(library, "t.jsonl", row, "--input", "text").err
    )
    empty = imported(library, "t.jsonl", row, "--input", "text", "--components", "empty")
    assert "there are 0 components in empty; `skill-evaluator init` creates one" in empty.err
    refused = imported(library, "t.jsonl", row, "--input", "text", "--skill", "quiz")
    assert "component 'quiz' has multiple-choice questions: add lines to questions.jsonl" in refused.err


def test_import_fills_inputs_from_columns(library: Library) -> None:
    front = f"name: {SKILL}\nversion: 1.0.0\ninputs: [question, context]\nmessages: sections"
    prompt = f"---\n{front}\n---\n## User\n\n{{{{question}}}} {{{{context}}}}\n"
    library.write(f"components/{SKILL}/prompt.md", prompt)
    truths = ("--truth", "title", "--truth", "year", "--yes")
    row = "{},context,title,year\nWho?,Far away,T,2024\n"
    assert imported(library, "a.csv", row.format("question"), *truths).code == 0
    refused = imported(library, "b.csv", row.format("asked"), *truths)
    assert refused.refuses("no column 'question' in b.csv")
    assert "--input NAME=COLUMN" in refused.err
    assert imported(library, "b.csv", row.format("asked"), "--input", "question=asked", *truths).code == 0
    for case_id in ("a-1", "b-1"):
        inputs = json.loads((library.root / f"fixtures/{SKILL}/cases/{case_id}/inputs.json").read_text())
        assert inputs == {"question": "Who?", "context": "Far away"}


SUPPORT = "support"
PROMPT = "---\nname: support\nversion: 1.0.0\n---\nAnswer the question.\n"
ITEMS = [
    {"id": "a", "input": {"text": "Why?"}, "expectedOutput": {"why": "so", "n": 1}, "status": "ACTIVE"},
    {"id": "b", "input": {"text": "Who?"}, "expectedOutput": {"why": None}},
]
PATHS = ("--input", "input.text", "--truth", "expectedOutput", "--id", "id")


@pytest.fixture
def bare(tmp_path: Path) -> Library:
    library = Library.__new__(Library)
    library.stand_in(tmp_path)
    library.write(f"components/{SUPPORT}/prompt.md", PROMPT)
    return library


def imported_json(library: Library, items: Any, *arguments: str, name: str = "items.json") -> Ended:
    library.write(name, json.dumps(items))
    return library.call("cases", "import", name, "--yes", *arguments)


def files_of(library: Library, case_id: str) -> dict[str, Any]:
    folder = library.root / f"fixtures/{SUPPORT}/cases" / case_id
    return {
        path.name: read(path) if path.suffix == ".json" else path.read_text("utf-8")
        for path in sorted(folder.iterdir())
    }


def test_json_list_is_imported_with_paths_and_inferred_schema(bare: Library) -> None:
    done = imported_json(bare, ITEMS, *PATHS)
    assert done.code == 0, done.err
    assert "2 cases of support, 2 with ground truth" in done.out
    assert files_of(bare, "a") == {"document.md": "Why?", "ground_truth.json": {"why": "so", "n": 1}}
    schema = read(bare.root / f"components/{SUPPORT}/schema.json")
    assert schema["description"].startswith("Inferred from 2 ground truths of items.json")
    assert schema["properties"]["why"] == {"type": ["null", "string"]}
    assert schema["required"] == ["why"]
    assert bare.call("lint").code == 0


def test_schema_written_before_the_confirmation_is_kept(bare: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def confirm(*_: Any, **__: Any) -> bool:
        bare.write(f"components/{SUPPORT}/schema.json", "{}")
        return True

    monkeypatch.setattr("skill_evaluator.commands.cases.agreed", confirm)
    bare.write("items.json", json.dumps(ITEMS))
    assert bare.call("cases", "import", "items.json", *PATHS).out.endswith("written\n")
    assert (bare.root / f"components/{SUPPORT}/schema.json").read_text("utf-8") == "{}"


def test_text_truths_are_imported_without_schema(bare: Library) -> None:
    item = {"inputs": {"question": "Why?"}, "outputs": {"answer": "So."}}
    paths = ("--input", "inputs.question", "--truth", "outputs.answer")
    done = imported_json(bare, item, *paths, name="x.jsonl")
    assert done.code == 0, done.err
    assert files_of(bare, "x-1") == {"document.md": "Why?", "expected.md": "So.\n"}
    assert not (bare.root / f"components/{SUPPORT}/schema.json").exists()
    assert bare.call("lint").code == 0


@given(truths=st.lists(json_values, min_size=1, max_size=4))
def test_inferred_schema_fits_every_truth(truths: list[Any]) -> None:
    assume("\\ud" not in json.dumps(truths))  # a schema with half of a surrogate pair is refused
    contract = Contract(json.loads(inferred_schema(truths, Path("x.json"))), "schema.json")
    assert not [truth for truth in truths if contract.errors(truth)]


class Elsewhere:
    """A library whose cases are in a repository beside it: `origin` is its bare copy, `data` the clone of a person."""

    def __init__(self, root: Path) -> None:
        self.library = Library(root / "library")
        self.data = GitRepository(root / "data")
        (self.library.root / "fixtures" / SKILL).rename(self.data.root / SKILL)
        self.first = self.data.commit()
        self.origin = root / "origin.git"
        self.address = bare_copy(self.data.root, self.origin)
        self.cache = root / "cache"
        self.declare()

    def declare(self, **changed: str) -> None:
        self.library.settings(fixtures={"repository": self.address, **changed})

    def change(self) -> str:
        """Push a change of a document; return its commit."""
        self.data.write(f"{SKILL}/cases/alpha/document.md", "alpha is the title of another notice of 2024.\n")
        commit = self.data.commit()
        self.data.git("push", "-q", "origin", "main")
        return commit

    def call(self, *arguments: str, **env: str) -> Ended:
        return self.library.call(*arguments, env={"XDG_CACHE_HOME": str(self.cache), **env})


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path)


def test_run_uses_and_records_the_newest_fixtures_commit(elsewhere: Elsewhere) -> None:
    assert elsewhere.call("evaluate", SKILL).code == 0
    second = elsewhere.change()
    assert elsewhere.call("evaluate", SKILL).code == 0
    assert [row["dataset_commit"] for row in elsewhere.library.rows()] == [second, elsewhere.first]
    newer, older = elsewhere.library.records()
    digests = [{case["case_id"]: case["digest"] for case in record["per_case"]} for record in (newer, older)]
    assert {case_id for case_id in digests[0] if digests[0][case_id] != digests[1][case_id]} == {"alpha"}


def test_offline_command_uses_the_last_fetched_fixtures(elsewhere: Elsewhere) -> None:
    fetched = elsewhere.call("cases", "fetch")
    assert (fetched.code, fetched.err) == (0, "")
    elsewhere.origin.rename(elsewhere.origin.with_name("gone"))
    ended = elsewhere.call("lint", SKILL)
    assert ended.code == 0
    (line,) = ended.err.splitlines()
    assert line.startswith(f"warning: the fixtures in {elsewhere.address} are those of {elsewhere.first[:12]}, fetched")


def test_incomplete_fixtures_checkout_is_restored(elsewhere: Elsewhere) -> None:
    elsewhere.call("cases", "fetch")
    (checkout,) = elsewhere.cache.glob(f"skill-evaluator/fixtures/*/{elsewhere.first}")
    git(checkout, "worktree", "move", ".", f"{checkout}.part")  # as a killed process leaves it
    (checkout.with_name(f"{checkout.name}.part") / SKILL / "cases" / "alpha" / "document.md").unlink()
    assert elsewhere.call("lint", SKILL).code == 0
    assert (checkout / SKILL / "cases" / "alpha" / "document.md").is_file()


@pytest.mark.parametrize("pin", ["ref", "variable"])
def test_pinned_fixtures_commit_is_fetched_once(elsewhere: Elsewhere, pin: str) -> None:
    env = {"FIXTURES_COMMIT": elsewhere.first} if pin == "variable" else {}
    if pin == "ref":
        elsewhere.declare(ref=elsewhere.first)
    elsewhere.change()
    assert elsewhere.first in elsewhere.call("cases", "fetch", **env).out
    elsewhere.origin.rename(elsewhere.origin.with_name("gone"))
    ended = elsewhere.call("evaluate", SKILL, **env)
    assert (ended.code, "warning" in ended.err) == (0, False)
    assert elsewhere.library.rows()[0]["dataset_commit"] == elsewhere.first


def test_unavailable_fixtures_are_refused_in_one_line(elsewhere: Elsewhere) -> None:
    (elsewhere.data.root / "out").symlink_to("/tmp")
    elsewhere.data.commit()
    elsewhere.data.git("push", "-q", "origin", "main")
    refused: tuple[tuple[dict[str, str], str], ...] = (
        ({"ref": "mian"}, "couldn't find remote ref mian; see `fixtures` in settings.yaml and your access"),
        ({"path": "../data"}, "'../data' must be relative to the root of that repository, without .. at fixtures.path"),
        ({"path": "out"}, "leads out of"),
        ({"repository": "ext::sh -c touch% pwned"}, "at fixtures.repository"),
    )
    for declared, why in refused:
        elsewhere.declare(**declared)
        assert elsewhere.call("lint").refuses(why), declared
    assert not list(elsewhere.library.root.rglob("pwned"))


def test_lint_without_cases_checks_versions_and_records(elsewhere: Elsewhere) -> None:
    assert elsewhere.call("evaluate", SKILL).code == 0
    elsewhere.library.call("init", "--adopt", "--yes")
    git(elsewhere.library.root, "init", "-q", "-b", "main")
    git(elsewhere.library.root, "add", "-A")
    git(elsewhere.library.root, "commit", "-q", "-m", "recorded")
    elsewhere.declare(repository="./nowhere")
    assert elsewhere.call("lint").code == 2
    ended = elsewhere.call("lint", "--no-cases", "--base", "HEAD")
    assert (ended.code, ended.err) == (0, "")
    assert "hint: its contract and cases are not checked (--no-cases)" in ended.out
    prompt, (record,) = elsewhere.library.component / "prompt.md", elsewhere.library.component.glob("evals/records/*")
    prompt.write_text(f"{prompt.read_text()}Be brief.\n")
    record.write_text(record.read_text().replace('"cost_usd"', '"cost"'))
    problems = elsewhere.call("lint", "--no-cases", "--base", "HEAD", "--format", "json").json["components"][0][
        "problems"
    ]
    assert any("the prompt changed but the version did not" in problem for problem in problems)
    assert any(record.name in problem for problem in problems)


def test_fixtures_repository_may_be_a_folder_beside_the_library(elsewhere: Elsewhere) -> None:
    (elsewhere.data.root / "sets").mkdir()
    elsewhere.data.git("mv", SKILL, "sets")
    commit = elsewhere.data.commit()
    elsewhere.declare(repository="../data", path="sets")
    assert "3 cases" in elsewhere.call("lint", SKILL).out
    assert commit in elsewhere.call("cases", "fetch").out
    elsewhere.declare(repository="./nowhere")
    assert elsewhere.call("lint", "--fixtures", str(elsewhere.data.root / "sets")).code == 0


def test_fixtures_token_is_sent_only_to_the_server_of_the_jobs(elsewhere: Elsewhere) -> None:
    brought: list[tuple[str, str | None]] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            brought.append((self.path, self.headers["Authorization"]))
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    env = {"FIXTURES_TOKEN": "the-read-token", "GITHUB_SERVER_URL": url}
    for repository in ("octo/data-sets", f"{url}/octo/data-sets"):
        elsewhere.declare(repository=repository)
        ended = elsewhere.call("cases", "fetch", **env)
        assert ended.code == 2
        assert "the secret FIXTURES_TOKEN" in ended.err
        assert "the-read-token" not in ended.err
    server.shutdown()
    server.server_close()
    login = base64.b64encode(b"x-access-token:the-read-token").decode()
    path = "/octo/data-sets/info/refs?service=git-upload-pack"
    assert brought == [(path, f"Basic {login}"), (path, None)]
