"""What a promptfoo configuration says is read as promptfoo itself reads it, and what is not read has a name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.config import DEFAULT_LIMITS
from skill_evaluator.library.sources import SOURCES, promptfoo
from skill_evaluator.library.sources.tree import FileTree, SourceComponent

from tests.library.sources import skipped_parts
from tests.support.hostile_files import deep_yaml, laughing_yaml

SOURCE = SOURCES["promptfoo"]
CONFIG = "promptfooconfig.yaml"
KEY = "sk-proj-Zq8vN3xT7mK2pL5w"


def tree_of(files: Mapping[str, str]) -> FileTree:
    return FileTree(where=Path("lib"), paths=tuple(sorted(files)), read=files.__getitem__, limits=DEFAULT_LIMITS)


def read(config: Any, number: int = 1, **files: str) -> SourceComponent:
    named = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    text = config if isinstance(config, str) else json.dumps(config)
    return SOURCE.read(tree_of({CONFIG: text, **named}), f"{CONFIG}#{number}")


def config(**keys: Any) -> dict[str, Any]:
    return {"prompts": ["Say {{word}}"], "providers": ["openai:gpt-5"], "tests": [{"vars": {"word": "hi"}}], **keys}


def checks_of(*asserts: Any, **test: Any) -> list[dict[str, Any]]:
    written = read(config(tests=[{"vars": {"word": "hi"}, "assert": list(asserts), **test}]))
    return [{key: value for key, value in check.items() if key != "id"} for check in written.cases.rows[0][2]["checks"]]


def left_out(written: SourceComponent) -> dict[str, tuple[int, str]]:
    return {kind: (count, reason) for kind, count, reason in map(skipped_parts, written.left_out)}


# What promptfoo 0.121.20 sends by its echo provider, written down by hand: defaults, lists, files, CSV.
ORACLE = {
    CONFIG: """
prompts:
  - "Say {{word}} in {{lang}}: {{doc}}"
  - file://p/several.txt
providers: [openai:gpt-4o-mini]
defaultTest:
  options: {prefix: "PRE ", suffix: " SUF"}
  vars: {lang: French, doc: "file://p/doc.txt"}
  assert:
    - {type: contains, value: "{{word}}"}
tests:
  - vars: {word: [a, b], doc: "x {{lang}} y"}
  - description: third
    vars: {word: 3.0, lang: null}
  - file.csv
  - file://tests.yaml
""",
    "p/several.txt": "First {{ word }}\n---\nSecond {{word}}\n{{doc}}\n",
    "p/doc.txt": 'doc line "quoted"\nnext\n\n',
    "file.csv": "word,lang,__expected,__expected2\n"
    'w1,,"contains-any: a, b",note: hi\nw2,Dutch,icontains: Hello,equals: w\n',
    "tests.yaml": "- vars: {word: y1, obj: {k: v}}\n  options: {disableVarExpansion: true}\n",
}
DOC = 'doc line "quoted"\nnext'
SENT = [
    "PRE Say a in French: x French y SUF",
    "PRE Say b in French: x French y SUF",
    f"PRE Say 3 in : {DOC} SUF",
    f"PRE Say w1 in : {DOC} SUF",
    f"PRE Say w2 in Dutch: {DOC} SUF",
    f"PRE Say y1 in French: {DOC} SUF",
]


def test_messages_equal_those_of_promptfoo() -> None:
    tree = tree_of(ORACLE)
    assert list(SOURCE.find(tree)) == [f"{CONFIG}#{number}" for number in (1, 2, 3)]
    written = SOURCE.read(tree, f"{CONFIG}#1")
    assert [written.prompt.filled(row["inputs"])[0].text for _, _, row in written.cases.rows] == SENT
    second = SOURCE.read(tree, f"{CONFIG}#3")
    assert second.prompt.filled(second.cases.rows[0][2]["inputs"])[0].text == "PRE Second a\nx French y SUF"
    assert second.path == "p/several.txt"
    assert second.files == (CONFIG, "p/several.txt")
    assert not written.left_out


def test_columns_called_expected_are_asserts() -> None:
    rows = {
        row["inputs"]["word"]: row["checks"] for _, _, row in SOURCE.read(tree_of(ORACLE), f"{CONFIG}#1").cases.rows
    }
    assert [check["id"] for check in rows["w1"]] == ["contains-word", "expected", "expected2"]
    assert rows["w1"][2]["equals"] == "note: hi"
    assert {"contains": "Hello", "ignore_case": True, "id": "expected"} in rows["w2"]


def test_shared_assert_is_one_line_of_a_report() -> None:
    tests = [{"vars": {"word": word, "day": f"on {word}"}} for word in ("Mon", "Tue")]
    shared = [{"type": "contains", "value": "{{day}}"}, {"type": "equals", "value": "{{word}}", "metric": "Is right"}]
    rows = read(config(tests=tests, defaultTest={"assert": shared})).cases.rows
    assert [[check["id"] for check in row["checks"]] for _, _, row in rows] == [["contains-day", "is-right"]] * 2
    assert [row["checks"][0]["contains"] for _, _, row in rows] == ["on Mon", "on Tue"]


def test_case_id_stays_when_a_test_is_inserted_before() -> None:
    tests = [{"vars": {"word": "one"}}, {"vars": {"word": "two"}}, {"vars": {"word": "x"}, "description": "the last"}]
    before = [case_id for case_id, _, _ in read(config(tests=tests)).cases.rows]
    first = {"vars": {"word": "new", "lang": "en"}}
    after = [case_id for case_id, _, _ in read(config(tests=[first, *tests])).cases.rows]
    assert before == after[1:]
    assert before[0].startswith("one-")
    assert before[2] == "the-last"


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("yes", "yes"),
        ("true", "true"),
        ("2024-01-02", "2024-01-02"),
        ("007", "7"),
        ("1.50", "1.5"),
        ("3.0", "3"),
        ("~", ""),
        ("{a: [1, no]}", '{"a":[1,"no"]}'),
    ],
)
def test_values_are_read_as_javascript_reads_yaml(written: str, sent: str) -> None:
    [(_, _, row)] = read(f"prompts: ['Say {{{{word}}}}']\ntests:\n- vars: {{word: {written}, other: x}}\n").cases.rows
    assert row["inputs"]["word"] == sent


def test_csv_with_repeated_columns_is_refused() -> None:
    written = read(config(tests="t.csv"), t_csv="word,lang\na,b\nc\n")
    assert [row["inputs"] for _, _, row in written.cases.rows] == [{"word": "a", "lang": "b"}]
    assert left_out(written).keys() == {"row of a CSV"}
    with pytest.raises(ComponentError, match=r"t\.csv:1: every column needs a unique name"):
        read(config(tests="t.csv"), t_csv="word,word\na,b\n")


def test_list_of_messages_is_read() -> None:
    talk = [
        {"role": "developer", "content": "Be {{tone}}."},
        {"role": "user", "content": [{"type": "text", "text": "{{q}}"}]},
    ]
    tests = [{"vars": {"tone": "kind", "q": "Why?"}}]
    in_json = read(config(prompts=["file://talk.json"], tests=tests), talk_json=json.dumps(talk))
    in_yaml = read(config(prompts=[{"id": "talk.yaml", "label": "talk"}], tests=tests), talk_yaml=json.dumps(talk))
    inline = read(config(prompts=[json.dumps({"messages": talk})], tests=tests))
    for written in (in_json, in_yaml, inline):
        assert [(message.role, message.text) for message in written.prompt.messages] == [
            ("system", "Be {{tone}}."),
            ("user", "{{q}}"),
        ]
        assert written.prompt.inputs == ("tone", "q")


@pytest.mark.parametrize(
    ("declared", "check"),
    [
        ({"type": "contains", "value": "{{word}}!"}, {"contains": "hi!"}),
        ({"type": "not-icontains-all", "value": ["A", "b"]}, {"not_contains_all": ["A", "b"], "ignore_case": True}),
        ({"type": "contains-any", "value": 'foo, "a, b"'}, {"contains_any": ["foo", "a, b"]}),
        ({"type": "equals", "value": {"a": 1}}, {"equals": {"a": 1}}),
        ({"type": "starts-with", "value": "x", "weight": 2}, {"starts_with": "x", "weight": 2}),
        ({"type": "contains-json"}, {"json": {"at": ""}}),
        ({"type": "llm-rubric", "value": "It greets {{word}}."}, {"expect": "It greets hi."}),
        ({"type": "assert-set", "assert": [{"type": "is-json"}]}, {"is_json": True}),
    ],
)
def test_assert_becomes_a_check(declared: dict[str, Any], check: dict[str, Any]) -> None:
    assert checks_of(declared) == [check]


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ({"type": "javascript", "value": "output.length"}, "Skill Evaluator has no such check"),
        ({"type": "regex", "value": "(?=a)"}, "RE2 rejects"),
        ({"type": "contains", "value": "file://make.py"}, "a program"),
        ({"type": "contains", "value": "{{ word | upper }}"}, "{{ word | upper }}"),
        ({"type": "contains", "value": "{{other}}"}, "no value for other"),
        ({"type": "not-llm-rubric", "value": "rude"}, "unknown key 'not_expect' in a check"),
        ({"type": "contains", "value": "x", "transform": "output.trim()"}, "transform"),
        ({"type": "contains-json", "value": {"type": "object"}}, "schema"),
    ],
)
def test_unsupported_assert_is_named(declared: dict[str, Any], reason: str) -> None:
    tests = [{"vars": {"word": word}, "assert": [declared, {"type": "contains", "value": "y"}]} for word in "ab"]
    written = read(config(tests=tests))
    assert [len(row["checks"]) for _, _, row in written.cases.rows] == [1, 1]
    count, why = left_out(written)[f"{declared['type']} assert"]
    assert count == 2
    assert reason in why


def test_equal_asserts_count_once() -> None:
    asserts = [{"type": "contains", "value": value} for value in ("a b", "A b", "a b")]
    [(_, _, row)] = read(config(tests=[{"vars": {"word": "x"}, "assert": asserts}])).cases.rows
    assert row["checks"] == [{"contains": "a b", "id": "contains-a-b"}, {"contains": "A b", "id": "contains-a-b-2"}]


def test_schema_shared_by_all_tests_is_the_output_schema() -> None:
    shared = {"type": "is-json", "value": {"type": "object", "required": ["a"]}}
    written = read(config(defaultTest={"assert": [shared]}))
    assert written.schema == shared["value"]
    assert written.output == "json"
    other = {"vars": {"word": "x"}, "assert": [{"type": "is-json"}]}
    written = read(config(tests=[other, {**other, "assert": [shared]}]))
    assert written.schema is None
    assert left_out(written)["is-json schema"][0] == 1


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"prompts": ["file://prompts.py:ask"]}, "it is made by a program or a service: file://prompts.py:ask"),
        ({"prompts": ["exec:./ask.sh"]}, "exec:./ask.sh"),
        ({"prompts": ["file://absent.txt"]}, "absent.txt"),
        ({"prompts": ["file://../../etc/passwd.txt"]}, "not a file below lib"),
        ({"prompts": ["Say {% if word %}{{word}}{% endif %}"]}, "{% if word %}"),
        ({"prompts": ["Say {{env.SECRET}} {{word}}"]}, "{{env.SECRET}}"),
        ({"prompts": ["Say {word}"], "tests": [{"vars": {"word": "a"}}, {"vars": {"word": "b"}}]}, "uses no variable"),
        ({"prompts": ["Say {{wrod}}"]}, "some lack a value for wrod"),
        ({"prompts": ['{"contents": []}']}, "not a list of messages"),
        ({"prompts": ['[{"role": "tool", "content": "x"}]']}, "role"),
        ({"prompts": []}, "a prompt must be a text"),
        ({"providers": ["exec:python ask.py"]}, "calls exec:…, which is not a plain model"),
        ({"providers": ["openai:assistant:abc"]}, "openai:assistant:abc"),
        ({"defaultTest": [1]}, "defaultTest"),
    ],
)
def test_unsupported_prompt_is_refused_by_name(keys: dict[str, Any], reason: str) -> None:
    with pytest.raises(ComponentError) as problem:
        read(config(**keys))
    assert reason in str(problem.value)


def test_configuration_that_is_a_program_is_refused() -> None:
    tree = tree_of({"evals/promptfooconfig.js": "module.exports = {}", "evals/other-promptfoo.yaml": "prompts: [x]"})
    [(key, parts)] = SOURCE.find(tree).items()
    assert parts == ("evals", "evals")
    with pytest.raises(ComponentError, match="is a program"):
        SOURCE.read(tree, key)


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ({"options": {"transform": "output.x"}}, "transform"),
        ({"provider": "openai:gpt-5"}, "provider"),
        ({"vars": {"word": "file://scan.png"}}, "a variable names a file that is not a text"),
        ({"vars": {}}, "word"),
        ({"vars": ["a"]}, "`vars` of the test or of defaultTest is not a mapping"),
        (
            {"vars": {"word": [str(number) for number in range(200)], "x": [str(number) for number in range(200)]}},
            "20,000",
        ),
    ],
)
def test_test_with_its_own_provider_is_skipped(test: dict[str, Any], reason: str) -> None:
    written = read(config(tests=[{"vars": {"word": "hi"}}, {"vars": {"word": "x"}, **test}]))
    assert len(written.cases.rows) == 1
    [(count, why)] = left_out(written).values()
    assert count == 1
    assert reason in why


def test_other_keys_are_named() -> None:
    written = read(
        config(
            passRateThreshold=0.9,
            tests=[{"vars": {"word": "hi"}, "threshold": 0.5}, 7],
            providers=["exec:x", {"id": "openai:chat:gpt-5", "config": {"tools": [], "temperature": 0, "top_p": "x"}}],
        )
    )
    assert set(left_out(written)) == {
        "key passRateThreshold",
        "test threshold",
        "entry of tests",
        "provider exec:…",
        "tools of providers[1]",
    }
    assert written.hints == {"model": "openai/gpt-5", "temperature": 0}


def test_keys_in_plain_text_are_not_copied() -> None:
    provider = {"id": "openai:gpt-5", "config": {"apiKey": KEY, "headers": {"Authorization": KEY}, "max_tokens": 5}}
    written = read(config(providers=[provider], env={"OPENAI_API_KEY": KEY}))
    assert left_out(written).keys() == {"headers of providers[0]"}
    assert KEY[:6] not in repr(written)


def test_skipped_tests_count_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promptfoo, "_MAX_TESTS", 3)
    skipped = {"vars": {"word": "x"}, "provider": "openai:gpt-5"}
    with pytest.raises(ComponentError, match="more than 3 cases"):
        read(config(tests=[{"vars": {"word": "hi"}}, *[skipped] * 3]))


def test_circular_test_files_are_refused() -> None:
    written = read(config(tests="file://a.yaml"), a_yaml="- file://a.yaml\n- vars: {word: x}\n")
    assert len(written.cases.rows) == 1
    assert left_out(written)["entry of tests"][0] == 1
    with pytest.raises(ComponentError, match="not a mapping"):
        read("file://promptfooconfig.yaml")


@pytest.mark.parametrize("text", [laughing_yaml(), deep_yaml(), "prompts: [", "[]"])
def test_hostile_configuration_is_one_line(text: str) -> None:
    for path in (CONFIG, "t.yaml"):
        files = {CONFIG: json.dumps(config(tests="t.yaml")), path: text}
        with pytest.raises(ComponentError) as problem:
            SOURCE.read(tree_of(files), next(iter(SOURCE.find(tree_of(files)))))
        assert "\n" not in str(problem.value)
        if not text.strip() or text[0] in "[-":
            break
