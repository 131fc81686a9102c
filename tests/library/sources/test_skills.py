"""Skills are read in place: what each SKILL.md and its evals say, and what of them is left out and why."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.sources import SOURCES
from skill_evaluator.library.sources.skills import ROUTING
from skill_evaluator.library.sources.tree import FileTree, SourceComponent, semver_of

from tests.library.sources import skipped_parts

SKILLS = SOURCES["skills"]
PDF = "---\nname: pdf\ndescription: Reads PDFs.\n---\n# PDFs\n\nSay what stands in them.\n"
XLSX = "---\nname: xlsx\ndescription: Reads sheets.\n---\nRead the sheet.\n"


def tree_of(files: Mapping[str, Any]) -> FileTree:
    texts = {path: content if isinstance(content, str) else json.dumps(content) for path, content in files.items()}
    return FileTree(where=Path("lib"), paths=tuple(sorted(texts)), read=texts.__getitem__, limits=SafetyLimits())


def read_with(evals: Any, skill: str = PDF) -> SourceComponent:
    return SKILLS.read(tree_of({"pdf/SKILL.md": skill, "pdf/evals/evals.json": evals}), "pdf/SKILL.md")


def told(written: SourceComponent) -> dict[str, int]:
    return {f"{kind}: {reason}": count for kind, count, reason in map(skipped_parts, written.left_out)}


def checks_in(written: SourceComponent) -> list[list[Mapping[str, Any]]]:
    return [list(row["checks"]) for _, _, row in written.cases.rows]


def queries_of(files: Mapping[str, Any]) -> SourceComponent:
    return SKILLS.read(tree_of(files), ROUTING)


def test_skill_is_named_by_its_folder() -> None:
    places = SKILLS.find(tree_of({"SKILL.md": PDF, "plugins/a/skills/xlsx/SKILL.md": XLSX, "readme.md": ""}))
    assert places == {
        "SKILL.md": ("pdf",),
        "plugins/a/skills/xlsx/SKILL.md": ("plugins", "a", "skills", "xlsx"),
    }


def test_skill_body_is_the_system_prompt() -> None:
    written = read_with([{"prompt": "Sum up {{FIXTURE}}."}], PDF.replace("what", "{{what}} !`date`"))
    assert written.prompt.filled({"document": "a.pdf"})[0].text == "# PDFs\n\nSay {{what}} !`date` stands in them."
    assert told(written) == {
        "filling {{what}}: it is sent unchanged": 1,
        "running !`date`: it is sent unchanged": 1,
        "filling {{FIXTURE}}: it is sent unchanged": 1,
    }
    assert written.prompt.filled({"document": "a.pdf"})[1].text == "a.pdf"
    assert (written.path, written.files, written.output) == ("pdf/SKILL.md", ("pdf/SKILL.md",), "text")


@pytest.mark.parametrize(
    ("front", "version"),
    [
        ("version: 1.2.0", "1.2.0"),
        ("version: 1.10", "1.10.0"),
        ('version: "2"', "2.0.0"),
        ("metadata:\n  version: v1.0", "1.0.0"),
        ("needs:\n  version: 3.2\nversion: 1.10", "1.10.0"),
        ("version: [1]", None),
        ("license: MIT", None),
    ],
)
def test_skill_version_is_read_from_the_front_matter(front: str, version: str | None) -> None:
    assert read_with([], f"---\nname: pdf\n{front}\n---\nRead.\n").version == version


@pytest.mark.parametrize("text", ["9" * 5000, "1." + "9" * 200, "", "1.0.0.0", "ⅷ", "1.0\n1"])
def test_invalid_version_is_none(text: str) -> None:
    assert semver_of(text) is None


def test_eval_is_a_case_and_expectation_a_sentence() -> None:
    written = read_with(
        {
            "skill_name": "pdf",
            "evals": [
                {
                    "id": 1,
                    "prompt": "What is a.pdf?",
                    "expected_output": "A bill.",
                    "files": [],
                    "expectations": ["It is\n a bill."],
                },
                {"id": "two", "prompt": "And b.pdf?", "assertions": [{"id": "a1", "text": "It is a letter."}]},
                {"prompt": "c.pdf?", "expected_output": "An advert."},
            ],
        }
    )
    assert [(case_id, line) for case_id, line, _ in written.cases.rows] == [("1", 1), ("two", 2), ("c-pdf-9faffa", 3)]
    assert written.cases.rows[0][2]["document"] == "What is a.pdf?"
    assert written.cases.rows[0][2]["expected_output"] == "A bill."
    assert checks_in(written) == [
        [{"expect": "It is a bill."}],
        [{"expect": "It is a letter."}],
        [{"expect": "The answer is as expected: An advert."}],
    ]
    assert written.left_out == ()


@pytest.mark.parametrize("wrapper", [lambda e: e, lambda e: {"cases": e, "note": "x"}, lambda e: {"tests": e}])
def test_evals_may_be_a_list_or_under_a_key(wrapper: Any) -> None:
    assert checks_in(read_with(wrapper([{"query": "Read it.", "expected_behavior": ["It is read."]}]))) == [
        [{"expect": "It is read."}]
    ]


@pytest.mark.parametrize(
    ("said", "check"),
    [
        ({"type": "contains", "text": "has it", "value": "Done"}, {"contains": "Done"}),
        ({"type": "not_icontains", "value": "done"}, {"not_contains": "done", "ignore_case": True}),
        ({"type": "regex", "pattern": "a+"}, {"regex": "a+"}),
        ({"type": "is-json"}, {"is_json": True}),
        ({"type": "llm-rubric", "rubric": "It is kind."}, {"expect": "It is kind."}),
        (
            {"name": "names-a-page", "description": "It names a page."},
            {"expect": "It names a page.", "id": "names-a-page"},
        ),
        ({"name": "check-1", "description": "It names a page."}, {"expect": "It names a page."}),
    ],
)
def test_typed_expectation_is_a_check(said: Any, check: Any) -> None:
    assert checks_in(read_with([{"prompt": "Go.", "assertions": [said]}])) == [[check]]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"type": "command", "value": "pytest"}, "there is no check of type 'command'"),
        ({"command": "pytest", "description": "Tests pass."}, "it runs a command"),
        ({"type": "regex", "value": "(?=a)"}, "RE2"),
        ({"type": "equals"}, "it has no text to check"),
        (7, "it is neither a text nor an object"),
        ("", "it has no text to check"),
        ({"type": "not-llm-rubric", "value": "It is kind."}, "unknown key 'not_expect' in a check"),
    ],
)
def test_unsupported_expectation_is_skipped_with_the_reason(said: Any, reason: str) -> None:
    written = read_with([{"id": 1, "prompt": "Go.", "expectations": [said, "It went."]}])
    assert checks_in(written) == [[{"expect": "It went."}]]
    (left,) = written.left_out
    assert left.startswith("left out: check: ")
    assert reason in left
    assert left.endswith("(#1)")


def test_eval_that_needs_more_than_a_text_is_skipped() -> None:
    written = read_with(
        [
            {"id": 1, "prompt": "Read it.", "files": ["a.pdf"]},
            {"id": 2, "prompt": "Read it.", "files": ["b.pdf"]},
            {"id": 3, "prompt": "Ask the cluster.", "live_only": True},
            {"id": 4, "prompt": ["Go."]},
            {"id": 5, "query": "Go.", "should_trigger": True},
            {"id": 6, "prompt": "Go.", "expectations": ["It went."], "tags": ["x"], "category": "y"},
            {"id": 6, "prompt": "Go."},
            "Go.",
        ]
    )
    assert [case_id for case_id, _, _ in written.cases.rows] == ["6"]
    assert told(written) == {
        "eval: it names a file that is not in the folder of the skill (#1, #2)": 2,
        "eval: it needs a live system (#3)": 1,
        "eval: it has no text as prompt (#4)": 1,
        "eval: it tests which skill is triggered; use a file such as trigger-eval.json (#5)": 1,
        "key: 'tags' has no effect (#6)": 1,
        "eval: an earlier eval has its id (#6)": 1,
        "eval: it is not an object (#8)": 1,
    }


def test_files_named_by_an_eval_are_sent_with_it() -> None:
    def read(path: str) -> str:
        if path.endswith(".xlsx"):
            raise ComponentError("not UTF-8")
        return texts.read(path)

    named = [["references/a.md", "b.xlsx"], ["../other.md"], ["references/none.md"]]
    evals = [{"prompt": f"Use {number}.", "files": files} for number, files in enumerate(named)]
    beside = {"pdf/references/a.md": "Long.", "pdf/b.xlsx": "", "other.md": "x"}
    texts = tree_of({"pdf/SKILL.md": PDF, "pdf/evals/evals.json": evals, **beside})
    written = SKILLS.read(replace(texts, read=read), "pdf/SKILL.md")
    assert [row["document"] for _, _, row in written.cases.rows] == ["Use 0.\n\nreferences/a.md:\nLong."]
    counts = told(written)
    assert counts["file: an eval names it, and it is too large or not text (b.xlsx)"] == 1
    assert sum(n for why, n in counts.items() if "a file that is not in the folder of the skill" in why) == 2


def test_evals_of_a_skill_with_tools_are_skipped() -> None:
    skill = PDF.replace("name: pdf", "name: pdf\nallowed-tools: [Bash, Read]")
    written = read_with([{"id": 1, "prompt": "Go."}], skill)
    assert not written.cases.rows
    assert told(written) == {"eval: its skill uses tools: ['Bash', 'Read'] (#1)": 1}


def test_files_beside_a_skill_are_counted_and_not_sent() -> None:
    files = [
        "LICENSE.txt",
        "forms.md",
        "references/a.md",
        "scripts/x.py",
        "evals/evals.json",
        ".git/x",
        "sub/SKILL.md",
        "sub/y.md",
    ]
    written = SKILLS.read(
        tree_of({"SKILL.md": PDF, **dict.fromkeys(files, "[]"), "evals/other.json": "[]"}), "SKILL.md"
    )
    assert told(written) == {"file: only SKILL.md is sent, not the files beside it, such as 'evals/other.json'": 4}


def test_evals_of_a_skill_are_found_in_every_layout() -> None:
    evals = [{"prompt": "Go.", "expectations": ["It went."]}]
    for files in (
        {"skills/pdf/evals/evals.json": evals},
        {"skills/pdf/evals.json": evals},
        {"evals/pdf/evals.json": evals},
        {"skills/evals/pdf/evals.json": evals},
        {"misc/evals/pdf/evals.json": {"skill_name": "xlsx", "evals": evals}},
        {"evals/evals.json": {"skill_name": "pdf", "evals": evals}},
    ):
        tree = tree_of({"skills/pdf/SKILL.md": PDF, "skills/xlsx/SKILL.md": XLSX, **files})
        assert len(SKILLS.read(tree, "skills/pdf/SKILL.md").cases.rows) == 1, files
        assert not SKILLS.read(tree, "skills/xlsx/SKILL.md").cases.rows
        assert not list(SKILLS.lost(tree))


def test_evals_without_a_skill_are_reported() -> None:
    tree = tree_of({"pdf/SKILL.md": PDF, "evals/evals.json": {"skill_name": "liar", "evals": []}, "x/evals.json": "{"})
    assert list(SKILLS.find(tree)) == ["pdf/SKILL.md"]
    (lost,) = SKILLS.lost(tree)
    assert lost.startswith("left out: file (2): no SKILL.md belongs to these evals")
    assert lost.endswith("('evals/evals.json', 'x/evals.json')")
    assert not list(SKILLS.lost(tree_of({"pdf/SKILL.md": PDF, "pdf/evals/evals.json": []})))


@pytest.mark.parametrize(
    ("skill", "evals", "problem"),
    [
        ("no front matter", [], "no front matter"),
        ("---\nname: pdf\n---\n \n", [], "has no prompt"),
        (
            "---\na: &a [x, x]\nb: &b [*a, *a]\n"
            + "".join(f"c{n}: &c{n} [*b, *b]\n" for n in range(3))
            + "d: [" * 60
            + "\n---\nx",
            [],
            "levels deep",
        ),
        (PDF, "{", "not JSON"),
        (PDF, {"evals": {}}, "no list of evals"),
    ],
)
def test_unreadable_skill_is_refused_with_the_reason(skill: str, evals: Any, problem: str) -> None:
    with pytest.raises(ComponentError, match=problem):
        read_with(evals, skill)


def test_query_expects_its_skill_another_or_none() -> None:
    files = {"pdf/SKILL.md": PDF, "xlsx/SKILL.md": XLSX}
    queries = [
        {"id": 1, "query": "Read a.pdf.", "should_trigger": True},
        {"id": 2, "query": "Add these up.", "should_trigger": False},
        {"id": 3, "query": "Open b.xlsx.", "should_trigger": False, "expected_skill": "xlsx"},
        {"id": 4, "query": "Hello!", "should_trigger": False, "expected_skill": None},
        {"id": 5, "query": "Open c.", "should_trigger": True, "expected_skill": "docx"},
        {"id": 6, "query": "Open d.", "should_trigger": "yes"},
        {"query": " ", "should_trigger": True},
        {"query": "Open e.", "should_trigger": 1},
    ]
    written = queries_of({**files, "pdf/evals/trigger_eval.json": queries})
    assert [(case_id, row["document"]) for case_id, _, row in written.cases.rows] == [
        ("pdf-1", "Read a.pdf."),
        ("pdf-2", "Add these up."),
        ("pdf-3", "Open b.xlsx."),
        ("pdf-4", "Hello!"),
    ]
    assert [row["checks"][0]["json"] for _, _, row in written.cases.rows] == [
        {"at": "/skill", "equals": "pdf"},
        {"at": "/skill", "not_equals": "pdf"},
        {"at": "/skill", "equals": "xlsx"},
        {"at": "/skill", "equals": None},
    ]
    assert told(written) == {
        "trigger eval: its skill is not among the choices, or two skills have its name (pdf-5, pdf-6)": 2,
        "trigger eval: it has no text as query (pdf-case-521093)": 1,
        "trigger eval: its should_trigger is neither true nor false (pdf-Open-e-9a01d7)": 1,
    }


def test_choices_are_the_skills_with_their_descriptions() -> None:
    written = queries_of({"pdf/SKILL.md": PDF, "xlsx/SKILL.md": XLSX, "evals/triggers.yaml": "- {query: a}"})
    assert written.prompt.system.endswith("\n- pdf: Reads PDFs.\n- xlsx: Reads sheets.")
    assert written.output == "json"
    assert written.schema is not None
    assert written.schema["properties"]["skill"]["enum"] == ["pdf", "xlsx", None]
    assert (written.path, written.files) == ("evals/triggers.yaml", ("pdf/SKILL.md", "xlsx/SKILL.md"))


def test_skills_of_one_name_are_named_by_folder() -> None:
    other = PDF.replace("Reads PDFs.", "Writes PDFs.")
    files = {"a/pdf/SKILL.md": PDF, "b/pdf/SKILL.md": other, "c/xlsx/SKILL.md": XLSX, "d/xlsx/SKILL.md": XLSX}
    queries = [{"query": "Go.", "should_trigger": True}]
    written = queries_of({**files, "b/pdf/evals/trigger-eval.json": queries, "d/xlsx/evals/trigger-eval.json": queries})
    assert written.schema is not None
    assert written.schema["properties"]["skill"]["enum"] == ["a/pdf", "b/pdf", "xlsx", None]
    assert [row["checks"][0]["json"]["equals"] for _, _, row in written.cases.rows] == ["b/pdf", "xlsx"]


def test_queries_about_all_skills_name_theirs() -> None:
    files = {"pdf/SKILL.md": PDF, "xlsx/SKILL.md": XLSX}
    rows = [
        {"query": "A.", "should_trigger": "pdf"},
        {"query": "B.", "should_trigger": None},
        {"query": "C.", "should_trigger": False},
    ]
    written = queries_of({**files, "evals/trigger-eval.json": rows})
    assert [row["checks"][0]["json"]["equals"] for _, _, row in written.cases.rows] == ["pdf", None, None]
    nobody = queries_of({**files, "evals/trigger-eval.json": [{"query": "A.", "should_trigger": True}]})
    reason = "should_trigger requires the name of a skill, in the test or in its file"
    assert told(nobody) == {f"trigger eval: {reason} (trigger-eval-A-c846dd)": 1}


def test_two_files_of_queries_are_both_read() -> None:
    queries = [{"query": "Go.", "should_trigger": True}]
    files = {"SKILL.md": PDF, "evals/trigger-eval.json": queries, "evals/trigger-eval-fuzzy.json": queries}
    assert [case_id for case_id, _, _ in queries_of(files).cases.rows] == ["pdf-Go-57ba0c", "pdf-Go-57ba0c-2"]


def test_unusable_skill_and_broken_file_are_not_in_the_routing() -> None:
    written = queries_of(
        {
            "a/SKILL.md": "none",
            "b/SKILL.md": "---\nname: b\n---\nx",
            "n\nl/SKILL.md": PDF.replace("name: pdf", 'name: "p\\nq"'),
            "s/SKILL.md": XLSX,
            "pdf/evals/trigger-eval.json": "{",
            "s/evals/trigger-eval.json": [{"query": "x", "should_trigger": True}],
        }
    )
    assert [skipped_parts(left)[0] for left in written.left_out] == ["skill", "skill", "skill", "file"]
    assert [left.rpartition("(")[2] for left in written.left_out] == [
        "'a')",
        "'b')",
        r"'n\nl')",
        "'pdf/evals/trigger-eval.json')",
    ]
    assert written.prompt.digest
    assert len(written.cases.rows) == 1


def test_too_long_descriptions_are_one_error() -> None:
    long = PDF.replace("Reads PDFs.", "x" * 600_000)
    with pytest.raises(ComponentError, match=r"limits\.prompt_bytes"):
        queries_of({"a/SKILL.md": long, "b/SKILL.md": long.replace("pdf", "b"), "evals/trigger-eval.json": "[]"})
