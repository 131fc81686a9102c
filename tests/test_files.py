"""File input with errors that locate the problem, and output that is complete or unchanged."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_evaluator import files
from skill_evaluator.errors import ConfigError, FixtureError, StorageError
from skill_evaluator.files import (
    LinesWriter,
    SizeLimit,
    json_text,
    locked,
    parse_json,
    read_bytes,
    read_checked,
    read_json,
    read_lines,
    read_text,
)
from skill_evaluator.library.reading import read_yaml

from tests.support.hostile_files import deep_json, deep_objects
from tests.support.json_values import json_values, quick

TOOLS = Path(files.__file__).parents[1]


def written(folder: Path, content: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


BROKEN: Mapping[str, Sequence[tuple[str, str]]] = {
    "yaml": [
        ("a: [1", "{path}:2:1: broken YAML: did not find expected ',' or ']'"),
        ("a: 1\nb: c: d\n", "{path}:2:5: broken YAML: mapping values are not allowed in this context"),
        ("a:\n\t- b\n", "{path}:2:1: broken YAML: found character that cannot start any token"),
        ("- !!python/object:os.x {}", "{path}:1:3: broken YAML: could not determine a constructor for the tag"),
        ("--- a\n--- b\n", "{path}:2:1: broken YAML: but found another document"),
        ("a: \x00", "{path} is not text: character 4 is a NUL"),
        ("a: 2024-02-30", "{path}: broken YAML: day"),
        ("a: !!int x", "{path}: broken YAML: invalid literal"),
        ("a: !!timestamp x", "{path}: broken YAML:"),
    ],
    "json": [
        ('{"a": 1,}', "{path}:1:9: not JSON: "),
        ('{\n "a": x}', "{path}:2:7: not JSON: Expecting value"),
        ("", "{path}:1:1: not JSON: Expecting value"),
        ("{} {}", "{path}:1:4: not JSON: Extra data"),
        ("[NaN]", "{path}: not JSON: NaN is not a JSON value"),
        ("[" * 100_000, "{path}: not JSON: "),
        ('{"a": -1e999}', "{path}: not JSON: -1e999 is too large for a number"),
        ("9" * 5000, "{path}: not JSON: "),
    ],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_invalid_file_is_refused_with_line_and_column(tmp_path: Path, kind: str) -> None:
    for content, message in BROKEN[kind]:
        path = written(tmp_path, content)
        with pytest.raises(FixtureError) as caught:
            (read_yaml if kind == "yaml" else read_json)(path, FixtureError)
        assert str(caught.value).startswith(message.format(path=path)), content[:99]
        assert "\n" not in str(caught.value)


def test_unreadable_file_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent does not exist"):
        read_text(tmp_path / "absent")
    with pytest.raises(ConfigError, match=r"is not UTF-8 text \(byte 2\); save it as UTF-8"):
        read_text(written(tmp_path, b"ab\xe9"))
    with pytest.raises(ConfigError, match=r"cannot read .*: Is a directory"):
        read_text(tmp_path)
    with pytest.raises(ConfigError, match=r"is not text: character 3 is a NUL; save it as UTF-8"):
        read_text(written(tmp_path, "ab\0c"))
    with pytest.raises(ConfigError, match=r"none\.jsonl does not exist"):
        list(read_lines(tmp_path / "none.jsonl"))


def test_byte_order_mark_and_line_ends_are_normalized(tmp_path: Path) -> None:
    assert read_json(written(tmp_path, b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}
    assert read_text(written(tmp_path, "a\r\nb\rc\n\r\n")) == "a\nb\nc\n\n"
    assert list(read_lines(written(tmp_path, "1\n\n \n2"))) == [(1, 1), (4, 2)]


def test_duplicate_key_is_named_with_the_lines_of_that_key(tmp_path: Path) -> None:
    rows = "".join(f'{{"id": {number}}},\n' for number in range(6))
    with pytest.raises(ConfigError, match=r"repeats the key 'id' \(lines with this key: 2, 3, 4, 5, 6 and 2 more\)"):
        read_json(written(tmp_path, f'[\n{rows}{{"id": 1, "id": 2}}]'))


class Price(files.FrozenModel):
    usd: float = 0.0
    tax: float | None = None


class Entry(files.NestingModel):
    name: str
    price: Price = files.flat_part("price")
    size: int = 1


class Page(files.FrozenModel):
    entries: list[Entry]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"entries": [{"name": "a"}, {}]}, "a required key is missing at entries[1].name in page.yaml"),
        (
            {"entries": [{"name": 5}]},
            "a text is expected, got 5 at entries[0].name in page.yaml (YAML reads this as a number; put it in quotes)",
        ),
        (
            {"entries": [{"name": "a", "usd": []}]},
            "Input should be a valid number at entries[0].usd in page.yaml",
        ),
        ([], "a mapping of keys to values is expected in page.yaml"),
    ],
)
def test_value_of_the_wrong_type_is_refused_with_its_key_path(value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        files.validated(Page, value, Path("page.yaml"))
    assert str(caught.value) == message


def test_keys_of_a_part_stand_in_the_object_of_its_model() -> None:
    value = {"name": "a", "usd": 2.0, "tax": None, "size": 3, "price": "not the part"}
    entry = Entry.model_validate(value)
    assert entry == Entry(name="a", price=Price(usd=2.0), size=3)
    assert json.loads(entry.model_dump_json()) == {"name": "a", "usd": 2.0, "tax": None, "size": 3}
    assert list(entry.model_dump()) == ["name", "usd", "tax", "size"]
    assert entry.model_dump(exclude_defaults=True) == {"name": "a", "usd": 2.0, "size": 3}
    assert Entry.model_validate(entry, from_attributes=True) == entry
    assert Price.view(entry) == entry.price
    schema = Page.model_json_schema()["$defs"]["Entry"]
    assert (list(schema["properties"]), schema["required"]) == (["name", "usd", "tax", "size"], ["name"])


@pytest.mark.parametrize("value", [float("nan"), [float("inf")]])
def test_infinite_number_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json")


@quick
@given(value=json_values)
def test_written_json_is_read_back(folder: Path, value: Any) -> None:
    path = folder / "a.json"
    files.replace_text(path, json_text(value))
    assert read_json(path) == value
    assert path.read_bytes().endswith(b"\n")


def test_replace_text_creates_the_folder_and_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.json"
    files.replace_text(path, "one\n")
    files.replace_text(path, "two\n")
    assert path.read_text() == "two\n"
    assert list(path.parent.iterdir()) == [path]


def test_interrupted_replacement_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    path = written(tmp_path, "old\n")
    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.replace_text(path, "new\n")
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old\n"


def test_replaced_file_has_default_permissions(tmp_path: Path) -> None:
    ordinary = written(tmp_path, "x", "ordinary")
    path = tmp_path / "a.json"
    files.replace_text(path, "x")
    assert path.stat().st_mode == ordinary.stat().st_mode


# What a process does whose files may not grow beyond so many bytes; it prints what it caught.
_LIMITED = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, {tools!r})
from skill_evaluator.errors import StorageError
from skill_evaluator.files import LinesWriter, replace_text
path = Path({path!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
{action}
"""


def limited(path: Path, limit: int, action: str) -> str:
    code = _LIMITED.format(tools=str(TOOLS), path=str(path), limit=limit, action=action)
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120).stdout


_REPLACE = """
try:
    replace_text(path, "new" * 1000)
except StorageError as problem:
    print(problem)
"""


def test_failed_replacement_keeps_the_old_file(tmp_path: Path) -> None:
    path = written(tmp_path, "old\n")
    assert limited(path, 100, _REPLACE) == f"cannot write {path}: File too large\n"
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


_APPEND = """
writer = LinesWriter(path)
for index in range(10):
    try:
        writer.append({"index": index, "text": "x" * (30 if index != 6 else 0)})
    except StorageError as problem:
        print(problem)
writer.close()
"""


def test_failed_append_leaves_no_partial_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    complaints = limited(path, 200, _APPEND).splitlines()
    indices = [value["index"] for _, value in read_lines(path)]
    assert indices == [0, 1, 2, 6]  # the short one still fitted, after three refusals
    assert complaints == [f"cannot write {path}: File too large"] * 6
    assert path.read_bytes().endswith(b"\n")


def test_file_in_place_of_a_folder_is_named(tmp_path: Path) -> None:
    written(tmp_path, "", "taken")
    with pytest.raises(StorageError, match=r"cannot write .*taken/a\.json"):
        files.replace_text(tmp_path / "taken" / "a.json", "x")


def test_appended_lines_are_read_back_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.jsonl"
    for _ in range(2):  # the second writer goes on behind the first
        writer = LinesWriter(path)
        writer.append({"a": "é\n"})
        writer.append(None)
        writer.close()
    assert list(read_lines(path)) == [(1, {"a": "é\n"}), (2, None), (3, {"a": "é\n"}), (4, None)]


@pytest.mark.parametrize("torn", [b'{"a": 1', b'{"a": "\xc3', b"\xff\xfe", b'{"a": 1}'])
def test_torn_last_line_is_terminated_before_the_next(tmp_path: Path, torn: bytes) -> None:
    path = written(tmp_path, b'"first"\n' + torn)
    writer = LinesWriter(path)
    writer.append("next")
    writer.close()
    values = [value for _, value in read_lines(path, torn_lines=True)]
    assert values == ["first", *([{"a": 1}] if torn == b'{"a": 1}' else []), "next"]


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\U0001f600", '\u2028\x00\x1b\\"', "\\ud800"])
def test_any_text_is_read_back_from_a_line(tmp_path: Path, text: str) -> None:
    writer = LinesWriter(tmp_path / "a.jsonl")
    writer.append({text: text})
    writer.close()
    assert list(read_lines(writer.path)) == [(1, {text: text})]


def test_read_checked_names_an_invalid_line(tmp_path: Path) -> None:
    path = written(tmp_path, '{"name": "a"}\n\n{"name": "b"}\n{"name": 5}')
    lines = read_checked(path, Entry.model_validate, FixtureError)
    assert [next(lines), next(lines)] == [(1, Entry(name="a")), (3, Entry(name="b"))]
    with pytest.raises(FixtureError, match=r"file:4: a text is expected, got 5 at name$"):
        next(lines)


def test_held_lock_is_an_error_after_waiting(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with (
        locked(path),
        pytest.raises(StorageError, match=r"a\.lock has been locked by another process"),
        locked(path, 0.05),
    ):
        pass
    with locked(path, 0.05):
        pass


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_pipe_and_device_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for read in (read_text, read_bytes, read_json, lambda path: list(read_lines(path, torn_lines=True))):
        with pytest.raises(
            ConfigError, match=r"cannot read .*file: it is a device, a pipe or a socket; put a file there"
        ):
            read(path)


def test_file_over_its_limit_is_refused_with_size_and_setting(tmp_path: Path) -> None:
    path, limit = written(tmp_path, "é" * 600), SizeLimit(max_bytes=1199, setting="limits.document_bytes")
    with pytest.raises(FixtureError) as caught:
        read_text(path, FixtureError, limit)
    says = "has 1,200 bytes; at most 1,199 are read (limits.document_bytes in settings.yaml)"
    assert str(caught.value) == f"{path} {says}"
    assert len(read_text(path, FixtureError, SizeLimit(max_bytes=1200))) == 600


def test_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as handle:
        handle.truncate(10**11)  # it has holes
    for read in (read_text, read_json, lambda path: list(read_lines(path))):
        with pytest.raises(ConfigError, match=r"at most 64,000,000 are read"):
            read(path)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="requires Linux")
def test_file_that_reports_no_size_is_read_up_to_the_limit() -> None:
    assert read_bytes(Path("/proc/self/stat")).endswith(b"\n")
    with pytest.raises(ConfigError, match=r"has 4 bytes; at most 3 are read"):
        read_bytes(Path("/proc/self/stat"), limit=SizeLimit(max_bytes=3))


def test_json_with_too_many_values_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not JSON: it has more than 4,000,000 commas; split the file"):
        read_json(written(tmp_path, f"[{'[],' * 4_000_001}[]]"))


@pytest.mark.parametrize("text", [deep_json(), deep_json(201), deep_objects(), f'[1, "{{", {deep_objects(200)}]'])
def test_json_with_too_many_levels_is_refused(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    for read in (read_json, lambda path: list(read_lines(path))):
        with pytest.raises(ConfigError, match=r"not JSON: it is nested more than 200 levels deep$"):
            read(path)
    assert list(read_lines(path, torn_lines=True)) == []
    assert read_json(written(tmp_path, deep_json(200))) is not None
    assert read_json(written(tmp_path, json.dumps(["[" * 500]))) == ["[" * 500]


def test_line_over_the_limit_is_refused_with_its_number(tmp_path: Path) -> None:
    path = written(tmp_path, f'{{"a": 1}}\n["{"x" * 100}"]\n')
    limit = SizeLimit(max_bytes=50, setting="limits.document_bytes")
    for torn in (False, True):
        with pytest.raises(FixtureError, match=r"file:2: the line has more than 50 bytes; .*\(limits\.document_bytes"):
            list(read_lines(path, FixtureError, torn_lines=torn, limit=limit))


@pytest.mark.parametrize("line", ["[NaN]", "[1e999]", "\ufeff\ufeff{}", "{}\0", '["\ud800"]'])
def test_line_of_invalid_json_is_refused_with_its_number(line: str, tmp_path: Path) -> None:
    path = written(tmp_path, b"1\n" + line.encode("utf-8", "surrogatepass") + b"\n2\n")
    with pytest.raises(ConfigError, match=r"file:2: not JSON: "):
        list(read_lines(path))
    if "N" not in line and "e999" not in line:  # these are not torn: whoever reads them says what is wrong
        assert list(read_lines(path, torn_lines=True)) == [(1, 1), (3, 2)]


def test_invalid_file_name_is_refused(tmp_path: Path) -> None:
    for name in ("a\0b", "\ud800"):
        with pytest.raises(ConfigError, match=r"no file can have that name|does not exist"):
            read_text(tmp_path / name)
    with pytest.raises(ConfigError, match=r"File name too long"):
        read_text(tmp_path / ("a" * 300))


def _strictly(text: str) -> object:
    """What Python's own parser makes of a text, without keys that come twice, infinite numbers and NaN."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("twice")
        return dict(pairs)

    def refuse(name: str) -> object:
        raise ValueError(name)

    value = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    return refuse("infinite") if "inf" in repr(value) else value


_ODD = st.sampled_from(
    ("1e999", "-1E400", "1e-400", "-0", "-0.0", "NaN", "01", "1.", "9" * 400, '":"', '"\\u00e9"', '"\\ud800"', '": "')
)
_JSON_TEXTS = st.recursive(
    _ODD | st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers().map(str),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(st.sampled_from(('"a":', '"b" :', '"é"\n:', '"::":', '":":')), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(key + value for key, value in pairs) + "}"
        )
    ),
    max_leaves=8,
)


@given(_JSON_TEXTS)
def test_parse_json_agrees_with_pythons_parser(text: str) -> None:
    try:
        expected = repr(_strictly(text))
    except ValueError:
        expected = None
    try:
        found = repr(parse_json(text, Path("f.json")))
    except ConfigError:
        found = None
    assert found == expected
