"""Components: what is read, and for everything wrong one line that names file and place."""

from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ComponentError
from skill_evaluator.library.components import load_component
from skill_evaluator.text import canonical_json, digest

from tests.support.components import NAME, SCHEMA, component, write_component


def refused(root: Path, **parts: Any) -> str:
    """The message a component is refused with."""
    folder = write_component(root, **parts)
    with pytest.raises(ComponentError) as caught:
        load_component(folder.parent, folder.name)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(str(folder), "<component>")


def test_component_is_read_as_written(tmp_path: Path) -> None:
    loaded = component(tmp_path)
    assert (loaded.name, loaded.version, loaded.output) == (NAME, "1.2.0", "json")
    assert loaded.prompt.text == "Read the receipt."
    scoring = loaded.scoring
    assert list(scoring.metrics) == ["schema_valid", "exact_match", "field_level_f1", "jaccard", "tree_similarity"]
    assert (scoring.primary_metric, loaded.files.cases.fixtures) == ("field_level_f1", NAME)
    assert loaded.contract.conforms({"shop": "A", "total": 9})
    assert loaded.contract.errors({"shop": 5, "total": 9}) == ['/shop: 5 is not of types "null", "string"']
    assert loaded.leaderboard_path == loaded.files.folder / "leaderboard.json"
    assert loaded.records_dir == loaded.files.folder / "evals" / "records"
    assert loaded.results_dir == loaded.files.folder / "evals" / "results"


def front(*lines: str) -> str:
    return "\n".join(["---", *lines, "---", "Read."])


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("Read the receipt.", "<component>/prompt.md:1: no front matter; write keys such as `name` at the top"),
        (front("name: receipts"), "no version in the front matter of <component>/prompt.md; add a line such as"),
        (front("version: 1.10"), "YAML reads `version: 1.10` in <component>/prompt.md as the number 1.1; write 1.10.0"),
        (front("version: '1.2'"), "version '1.2' in <component>/prompt.md is not semver; write MAJOR.MINOR.PATCH"),
        (
            front("version: 1.0.0", "owner: me", "Ouput: text"),
            "unknown key 'Ouput' in the front matter of <component>/prompt.md (did you mean 'output'?)",
        ),
        (front("version: 2024-01-01"), 'a text is expected, got "2024-01-01" at version in'),
        (front("name: receipts", "version: 1.0.0", "output: xml"), "unknown value 'xml' at output in"),
        (front("name: other", "version: 1.0.0"), "name 'other' in <component>/prompt.md is not the folder's name"),
        (
            front("name: receipts", "version: 1.0.0", "formerly: [receipts]"),
            "`formerly` in <component>/prompt.md names the folder 'receipts'",
        ),
        # the line is the file's, the --- above counted
        (front("name: receipts", "version: 'x"), "<component>/prompt.md:3:12: broken YAML: "),
        (front("version: 1.0.0", "day: 2024-02-30"), "<component>/prompt.md: broken YAML: day"),
        ("---\nversion: 1.0.0\n---\n \n", "<component>/prompt.md has no prompt: its body, or its '## Prompt' section"),
        (b"---\nversion: 1.0.0\n---\n\xe9", "<component>/prompt.md is not UTF-8 text (byte 23); save it as UTF-8"),
    ],
)
def test_invalid_prompt_is_refused(tmp_path: Path, prompt: str | bytes, message: str) -> None:
    assert refused(tmp_path, prompt=prompt).startswith(message)


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ("Read.\n", "Read."),
        ("# Title\n\nAbout.\n\n## Prompt\n\nRead.\n", "Read."),
        ("# Title\n\n## Prompt\nRead.\n\n### How\n\nWell.\n\n## Notes\n\nNot this.\n", "Read.\n\n### How\n\nWell."),
        ("## Prompt\nRead.\n## Prompt\nNot this.\n", "Read."),
        ("## Prompts\nAll of it.\n", "## Prompts\nAll of it."),
    ],
)
def test_prompt_is_the_body_or_its_section(tmp_path: Path, body: str, prompt: str) -> None:
    text = f"---\nname: {NAME}\nversion: 1.0.0\n---\n{body}"
    assert component(tmp_path / "unix", prompt=text).prompt.text == prompt
    windows = component(tmp_path / "windows", prompt=b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert windows.prompt.text == prompt
    assert windows.digests == component(tmp_path / "unix", prompt=text).digests


@pytest.mark.parametrize(
    "text", ["{{document}}", "{{ user.name }}", "a {document}.", "${document}", "Do.\nUSER: it", "SYSTEM:"]
)
def test_unfilled_placeholder_is_refused_unless_literal(tmp_path: Path, text: str) -> None:
    prompt = front(f"name: {NAME}", "version: 1.0.0") + f"\n{text}\n"
    assert "prompt.md:" in (said := refused(tmp_path / "a", prompt=prompt))
    assert "these placeholders would be sent unfilled: " in said
    literal = prompt.replace("version:", "placeholders: literal\nversion:")
    folder = write_component(tmp_path / "b", prompt=literal)
    assert text.strip() in load_component(folder.parent, folder.name).prompt.text


@pytest.mark.parametrize(
    "text",
    [
        'Answer {"a": 1}, {}, {"a": {"b": {}}} or {\n  "total": 1\n}',
        "Write `{{name}}`, ``{x}`` and `${HOME}`.",
        "```json\n{shop}\n{{x}}\n```\nand\n~~~\nUSER: {y}\n~~~",
        "````\n```\n{x}\n```\n{y}\n````",
        "  ```\n  {x} that does not end",
        r"GET /users/{id}, x^{n}, x_{i}, \frac{a}{b}, {a b}, {1}, {a: b}, $5, {{#if x}}, 'USER': or User: it",
    ],
)
def test_code_and_json_are_no_placeholders(tmp_path: Path, text: str) -> None:
    folder = write_component(tmp_path, prompt=front(f"name: {NAME}", "version: 1.0.0") + f"\n{text}\n")
    assert load_component(folder.parent, folder.name).prompt.text.endswith(text)


def test_prompt_digest_covers_what_is_sent(tmp_path: Path) -> None:
    body = "# Title\n{}\n## Prompt\nRead.\n"
    text = f"---\nname: {NAME}\nversion: {{}}\n---\n{body}"
    first = component(tmp_path, prompt=text.format("1.0.0", "About."))
    other = component(tmp_path, prompt=text.format("1.0.1", "About it."))
    assert first.digests["prompt"] == other.digests["prompt"] == digest("Read.")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{,", "<component>/schema.json:1:2: not JSON: "),
        ([], "<component>/schema.json is not a JSON Schema: an object is expected"),
        ({"type": "objekt"}, "unknown type 'objekt' at type in <component>/schema.json (did you mean 'object'?)"),
        (
            {"properties": {"a": {"minimum": "1"}}},
            "<component>/schema.json is not a valid JSON Schema at /properties/a/min",
        ),
        ({"$ref": "#/$defs/none"}, "<component>/schema.json is not a valid JSON Schema at /: "),
        # nothing outside the file is ever fetched
        (
            {"properties": {"a": {"$ref": "https://example.com/a.json"}}},
            "<component>/schema.json refers to 'https://example.com/a.json'; only references inside of it (#/...) and",
        ),
        ({"$dynamicRef": "other.json#a"}, "<component>/schema.json: $dynamicRef is not supported here"),
        (
            {"$ref": "#/$defs/examples", "$defs": {"examples": {"$ref": "http://a.test/b"}}},
            "<component>/schema.json refers to 'http://a.test/b'",
        ),
        # drafts
        (
            {"$schema": "https://example.com/s"},
            "<component>/schema.json names an unknown draft in $schema: https://exa",
        ),
    ],
)
def test_invalid_schema_is_refused(tmp_path: Path, schema: Any, message: str) -> None:
    assert refused(tmp_path, schema=schema).startswith(message)


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"const": {"$ref": "https://example.com/a.json"}},  # data, not a reference
    ],
)
def test_valid_schema_is_accepted(tmp_path: Path, schema: Any) -> None:
    assert component(tmp_path, schema=schema).contract.schema == schema


def test_schema_digest_ignores_key_order(tmp_path: Path) -> None:
    turned = dict(reversed(SCHEMA.items()))
    assert component(tmp_path, schema=turned).digests["schema"] == digest(canonical_json(SCHEMA))


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ({"metrics": ["exact_mach"]}, "unknown metric 'exact_mach' in <component>/evals/datasets.json (did you mean"),
        (
            {"metrics": ["exact_match"], "primary_metric": "jaccard"},
            "primary_metric 'jaccard' is not among the metrics of <component>/evals/datasets.json (known: exact_match)",
        ),
        (
            {"fields": {"total": {"weight": 1e308}}},
            "Input should be less than or equal to 1000000, got 1e+308 at datasets[0].fields",
        ),
        (
            {"fields": {"totl": {}}},
            "field 'totl' in <component>/evals/datasets.json is not in the schema (did you mean",
        ),
        (
            {"fields": {"total": {"compare": "numbr"}}},
            "unknown comparator 'numbr' (did you mean 'number'?) at datasets[0].fields.total.compare",
        ),
        ({"fields": {"total": {"tolerence": 1}}}, "unknown key at datasets[0].fields.total.tolerence"),
    ],
)
def test_invalid_declaration_is_refused(tmp_path: Path, datasets: Any, message: str) -> None:
    assert refused(tmp_path, datasets=datasets).startswith(message)


def test_declaration_changes_metrics_and_fields(tmp_path: Path) -> None:
    fields = {"shop": {"casefold": True}, "items": {"align": "ordered"}}
    loaded = component(
        tmp_path, datasets={"metrics": ["exact_match", "jaccard"], "fixtures": "shared", "fields": fields}
    )
    assert list(loaded.scoring.metrics) == ["exact_match", "jaccard"]
    assert (loaded.scoring.primary_metric, loaded.files.cases.fixtures) == ("exact_match", "shared")
    assert loaded.scoring.plan.leaves["shop"].casefold
    assert loaded.scoring.plan.arrays["items"].align == "ordered"
    assert loaded.digests["datasets"] != component(tmp_path / "other").digests["datasets"]


def test_component_folder_without_a_prompt_is_refused(tmp_path: Path) -> None:
    folder = write_component(tmp_path)
    (folder / "prompt.md").unlink()
    with pytest.raises(ComponentError, match=rf"'receipts' has no prompt: {folder / 'prompt.md'} does not exist"):
        load_component(folder.parent, "receipts")


def test_invalid_component_name_is_refused(tmp_path: Path) -> None:
    components = write_component(tmp_path).parent
    rule = "cannot be a component's name (at most 100 of A-Z, a-z, 0-9, '.', '_', '-'; the first a letter or digit)"
    for name, message in {
        "receipt": "unknown component 'receipt' in <components> (did you mean 'receipts'?)",
        "zzz": "unknown component 'zzz' in <components> (known: receipts)",
        "receipts\n": f"'receipts ' {rule}",
        **{wrong: f"'{wrong}' {rule}" for wrong in ("../receipts", "..", "receipts/", "/etc", "")},
    }.items():
        with pytest.raises(ComponentError) as caught:
            load_component(components, name)
        assert str(caught.value).replace(str(components), "<components>") == message
