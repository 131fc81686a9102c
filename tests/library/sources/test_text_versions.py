"""Versions side by side: which is current, what came before it, what is filled in, and what is no version."""

import time
from pathlib import Path

import pytest
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.cases import load_cases
from skill_evaluator.library.components import load_component
from skill_evaluator.library.config import DEFAULT_LIMITS
from skill_evaluator.library.sources import formats
from skill_evaluator.library.sources.tree import FileTree, Written
from skill_evaluator.library.versions import component_at

from tests.support.git import GitRepository

TEXT_VERSIONS = formats()["text_versions"]
V1 = """# langfuse: docs-extraction@v1.0.0
SYSTEM:
You extract data.

USER:
Extract all of this {doc_type}:

{text}

For example {"total": 9}
"""


def tree_of(files: dict[str, str]) -> FileTree:
    return FileTree(where=Path("lib"), paths=tuple(sorted(files)), read=files.__getitem__, limits=DEFAULT_LIMITS)


def read(files: dict[str, str], folder: str = "p") -> Written:
    return TEXT_VERSIONS.read(tree_of(files), folder)


def messages(text: str, values: dict[str, str]) -> list[tuple[str, str]]:
    prompt = read({"p/v1.txt": text}).prompt
    return [(message.role, message.text) for message in prompt.filled(values)]


def test_the_highest_version_is_current_and_the_others_follow_newest_first() -> None:
    files = {f"p/{name}": name for name in ("v1.txt", "v1.2.txt", "v1.10.0.md", "2.0.0-rc.1.txt", "README.md", "7.txt")}
    assert [place.key for place in TEXT_VERSIONS.find(tree_of(files))] == ["p"]
    current = read(files)
    assert (current.version, current.path, current.files) == ("2.0.0-rc.1", "p/2.0.0-rc.1.txt", ("p/2.0.0-rc.1.txt",))
    earlier = list(TEXT_VERSIONS.earlier(tree_of(files), "p"))
    assert [(one.version, one.prompt.text) for one in earlier] == [
        ("1.10.0", "v1.10.0.md"),
        ("1.2.0", "v1.2.txt"),
        ("1.0.0", "v1.txt"),
    ]


def test_a_family_is_a_folder_and_release_notes_are_none() -> None:
    paths = (
        "prompts/a/v1.0.0.txt",
        "prompts/a/old/v0.1.0.txt",
        "docs/releases/v1.0.0.md",
        "v2.txt",
        "x/v.txt",
        "x/vim.txt",
    )
    places = TEXT_VERSIONS.find(tree_of(dict.fromkeys(paths, "x")))
    assert [(place.key, place.parts[-1]) for place in places] == [
        ("", "prompt"),
        ("prompts/a", "a"),
        ("prompts/a/old", "old"),
    ]
    assert read(dict.fromkeys(paths, "x"), "prompts/a").version == "1.0.0"
    assert read(dict.fromkeys(paths, "x"), "").version == "2.0.0"


def test_sections_and_placeholders_of_format_strings_are_filled() -> None:
    written = read({"p/v1.0.0.txt": V1})
    assert written.prompt.inputs == ("doc_type", "text")
    assert [(left.what, left.reason) for left in written.left_out] == [
        ("first line of p/v1.0.0.txt", "a comment, which is not sent")
    ]
    assert messages(V1, {"doc_type": "bill", "text": "{doc_type} 9"}) == [
        ("system", "You extract data."),
        ("user", 'Extract all of this bill:\n\n{doc_type} 9\n\nFor example {"total": 9}'),
    ]


@pytest.mark.parametrize(
    ("text", "values", "sent"),
    [
        ("Classify it.", {"document": "D"}, [("system", "Classify it."), ("user", "D")]),
        ("Classify {{ x }} as {y: 1}.", {"x": "X"}, [("user", "Classify X as {y: 1}.")]),
        ('Say {{"a": {x}}}', {"x": "X"}, [("user", 'Say {"a": X}')]),
        ("Fill {\"a\": {{x}}}", {"x": "X"}, [("user", 'Fill {"a": X}')]),
        ("SYSTEM: Be {tone}.", {"tone": "kind", "document": "D"}, [("system", "Be kind."), ("user", "D")]),
        ("USER:\nSum up:", {"document": "D"}, [("user", "Sum up:\n\nD")]),
        ("Talk.\nUSER: hi\n", {"document": "D"}, [("system", "Talk.\nUSER: hi"), ("user", "D")]),
        ("SYSTEM:\nAs in\nUSER: hi\nUSER:\nX {a}", {"a": "A"}, [("system", "As in\nUSER: hi"), ("user", "X A")]),
        ("---\nowner: me\n---\nSay {x}", {"x": "X"}, [("user", "Say X")]),
    ],
)  # fmt: skip
def test_a_text_becomes_messages(text: str, values: dict[str, str], sent: list[tuple[str, str]]) -> None:
    assert messages(text, values) == sent


WRONG = {
    "the same number twice": ({"p/v1.txt": "a", "p/v1.0.0.md": "b"}, "v1.0.0.md are both 1.0.0; keep one"),
    "an empty file": ({"p/v1.txt": "a", "p/v2.txt": " \n"}, "lib/p/v2.txt is empty"),
    "a comment alone": ({"p/v2.txt": "# langfuse: a@v2\n"}, "lib/p/v2.txt is empty"),
    "two kinds of placeholders": ({"p/v1.txt": "{{a}} and {b}"}, "has {{a}} and {b}"),
    "no version": ({"p/vx.txt": "a"}, "holds no version"),
    "a user twice": ({"p/v1.txt": "USER:\na\nUSER:\nb"}, "take turns"),
    "an empty section": ({"p/v1.txt": "SYSTEM:\nUSER:\nb"}, "one is empty"),
    "a document for the system": ({"p/v1.txt": "SYSTEM:\n{document}\nUSER:\nb"}, "in the system message alone"),
    "a name with a newline": ({"p/v1\n.txt": "a"}, "holds no version"),
    "turns": ({"p/v1.txt": "{turns}"}, "rename the variable"),
    "front matter that is broken": ({"p/v1.txt": "---\na: [\n---\nb"}, "broken YAML"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_folder_that_cannot_be_read_is_one_line_of_error(wrong: str) -> None:
    files, advice = WRONG[wrong]
    with pytest.raises(ComponentError) as caught:
        read(files)
    assert advice in str(caught.value)
    assert "lib/p" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_earlier_version_that_is_empty_is_named_when_it_is_needed() -> None:
    files = {"p/v1.txt": "", "p/v2.txt": "b"}
    assert read(files).version == "2.0.0"
    with pytest.raises(ComponentError, match=r"lib/p/v1\.txt is empty"):
        list(TEXT_VERSIONS.earlier(tree_of(files), "p"))


def test_a_name_that_is_nearly_a_version_is_left_out_by_name() -> None:
    names = ("v1.txt", "v01.txt", "v1.2.3.4.txt", "v1 copy.txt", "v1_b\nv2.txt")
    (left,) = read({f"p/{name}": "a" for name in names}).left_out
    assert left.count == 4
    assert str(left) == "left out: file v01.txt, v1 copy.txt, v1.2.3.4.txt, v1_b v2.txt (4): no version; write v1.2.0"


def test_many_folders_and_versions_are_found_and_read_at_once() -> None:
    files = {f"p{number % 100}/v1.{number}.0.txt": "x" for number in range(10_000)}
    start = time.process_time()
    tree = tree_of(files)
    places = TEXT_VERSIONS.find(tree)
    assert [TEXT_VERSIONS.read(tree, place.key).version for place in places][:1] == ["1.9900.0"]
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    "text", ["{{" * 200_000, "{{ " * 150_000, "{{a" * 130_000, "{" * 400_000, "{{" + " " * 400_000]
)
@pytest.mark.parametrize("end", ["", "{a}", "{{a}}"])
def test_a_text_of_braces_takes_no_long_time(text: str, end: str) -> None:
    start = time.process_time()
    assert len(read({"p/v1.txt": text + end}).prompt.inputs) == 1
    assert time.process_time() - start < 3


def test_a_text_of_many_variables_is_refused() -> None:
    with pytest.raises(ComponentError, match="at most 200 are filled"):
        read({"p/v1.txt": "".join(f"{{a{number}}}" for number in range(90_000))})


def test_the_sibling_file_is_the_baseline_at_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = GitRepository(tmp_path)
    monkeypatch.chdir(git.root)
    git.write(".evaluator/settings.yaml", "sources: [{kind: text_versions, root: prompts}]\n")
    git.write("prompts/sum/v1.0.0.txt", "Sum up {text}")
    git.write("prompts/sum/v1.1.0.txt", "Sum up in a line: {text}")
    git.write("fixtures/sum/cases.jsonl", '{"id": "a", "inputs": {"text": "A"}}\n')
    commit = git.commit()
    component = load_component(Path(".evaluator/components"), "sum")
    assert [case.inputs for case in load_cases(component, None)] == [{"text": "A"}]
    earlier, _ = component_at(component, commit)
    assert (component.version, earlier.version) == ("1.1.0", "1.0.0")
    assert earlier.prompt.text == "## User\n\nSum up {text}"
