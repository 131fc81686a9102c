"""What leads out of the folder that files are read from, and YAML that would end or stall the process, is refused."""

import time
from pathlib import Path
from typing import Any

import pytest
from skill_evaluator.errors import ConfigError, FixtureError
from skill_evaluator.library import reading
from skill_evaluator.library.reading import ConfinedFolder, parse_front_matter, parse_yaml, yaml_lines

from tests.support.hostile_files import deep_yaml, laughing_yaml, merging_yaml


def linked(path: Path, target: Path | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def test_link_out_is_refused_with_its_target(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    path = linked(tmp_path / "f" / "a" / "document.md", tmp_path / "secret")
    with pytest.raises(FixtureError) as caught:
        ConfinedFolder(tmp_path / "f", FixtureError, follow_links=False).inside(path)
    assert str(caught.value) == (
        f"{path} leads out of {tmp_path / 'f'}, to {(tmp_path / 'secret').resolve()}; "
        "replace the link by a copy of the file, or allow it in settings.yaml: limits: {follow_links: true}"
    )
    assert ConfinedFolder(tmp_path / "f", FixtureError, follow_links=True).inside(path) == path


def test_every_path_out_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f-other").mkdir()
    root = tmp_path / "f"
    ways = ("../../secret", "/proc/self/environ", "../..", "../../f-other/x", "../../none")
    out = [linked(root / "a" / f"x{number}", target) for number, target in enumerate(ways)]
    linked(root / "b", tmp_path)
    linked(root / "c", "a")
    # a link to a link out, a folder that is one, and a link out behind a link that stays inside
    for path in (*out, linked(root / "a" / "x", "../b"), root / "b" / "secret", root / "c" / "x1"):
        with pytest.raises(FixtureError, match="leads out of"):
            ConfinedFolder(root, FixtureError, follow_links=False).inside(path)


def test_link_inside_the_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "f" / "a").mkdir(parents=True)
    path = linked(tmp_path / "f" / "b", "a")
    assert ConfinedFolder(tmp_path / "f", FixtureError, follow_links=False).inside(path / "x") == path / "x"
    elsewhere = linked(tmp_path / "other" / "link", tmp_path / "f")
    assert ConfinedFolder(elsewhere, FixtureError, follow_links=False).inside(elsewhere / "a") == elsewhere / "a"


def test_linked_root_of_the_current_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    linked(here / "fixtures", "/")
    (here / "real").mkdir()
    linked(here / "inner", "real")
    monkeypatch.chdir(here)
    with pytest.raises(FixtureError, match=r"^fixtures leads out of the current folder, to /; replace"):
        ConfinedFolder(Path("fixtures"), FixtureError, follow_links=False)
    ConfinedFolder(Path("fixtures"), FixtureError, follow_links=True)
    ConfinedFolder(Path("inner"), FixtureError, follow_links=False)
    ConfinedFolder(Path("../here/fixtures"), FixtureError, follow_links=False)  # named by whoever calls


def test_link_error_names_no_settings_before_they_are_read(tmp_path: Path) -> None:
    path = linked(tmp_path / "c" / "settings.yaml", "/proc/self/environ")
    with pytest.raises(FixtureError, match=r"replace the link by a copy of the file$"):
        ConfinedFolder(tmp_path / "c", FixtureError).inside(path)


WHERE = Path("a.yaml")


def refused(text: str, **options: Any) -> str:
    started = time.process_time()
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, WHERE, **options)
    assert time.process_time() - started < 10
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (deep_yaml(), "a.yaml:1:53"),
        ("- " * 51 + "a", "a.yaml:1:101"),
        ("".join(f"{' ' * level}a:\n" for level in range(60)), "a.yaml:51:51"),
        # levels that only aliases add up to
        ("\n".join(["a0: &a0 [1]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 60))]), "a.yaml:51:6"),
    ],
)
def test_deep_yaml_is_refused_at_its_place(text: str, place: str) -> None:
    says = "nested more than 50 levels deep (limits.yaml_depth in settings.yaml)"
    assert refused(text) == f"{place}: broken YAML: {says}"


def test_maximum_depth_can_be_set() -> None:
    assert "more than 3 levels" in refused("[[[[1]]]]", depth=3)
    assert parse_yaml("[[[1]]]", WHERE, depth=3) == [[[1]]]


@pytest.mark.parametrize("text", [laughing_yaml(), merging_yaml(), "[" + "1, " * 100_001 + "]"])
def test_yaml_of_too_many_values_is_refused(text: str) -> None:
    assert refused(text).endswith("more than 100,000 values, with aliases expanded")


def test_values_are_counted_before_nodes_are_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading._Loader, "get_single_node", lambda loader: pytest.fail("composed"))
    assert "more than 100,000 values" in refused("[" + "1," * 100_001 + "]")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &a [*a]", "a.yaml:1:4: broken YAML: a value contains itself through an alias"),
        ("a: *b", "a.yaml:1:4: broken YAML: found undefined alias"),
        ("a: " + "1:" * 60_000 + "1", "a.yaml:1:4: broken YAML: a number of more than 400 digits"),
        ("a: " + "1:" * 190 + "1.0", "a.yaml: broken YAML: a value contradicts its tag (OverflowError"),
        ("a: !!bool x", "a.yaml: broken YAML: a value contradicts its tag (KeyError('x'))"),
        ("{[a]: 1}", "a.yaml:1:2: broken YAML: found unhashable key"),
    ],
)
def test_yaml_that_the_loader_cannot_read_is_refused(text: str, says: str) -> None:
    assert says in refused(text)


def test_ordinary_yaml_is_read() -> None:
    text = (
        f"usual: &usual {{a: 1}}\nother: {{<<: *usual, b: [*usual, *usual]}}\ntext: '{'9' * 500}'\nid: {'ab12' * 32}\n"
    )
    assert parse_yaml(text, WHERE) == {
        "usual": {"a": 1},
        "other": {"a": 1, "b": [{"a": 1}, {"a": 1}]},
        "text": "9" * 500,
        "id": "ab12" * 32,
    }


def test_front_matter_is_refused_at_the_line_of_its_file() -> None:
    with pytest.raises(ConfigError, match=r"^p\.md:3:53: broken YAML: nested more than 50 levels"):
        parse_front_matter(f"---\nname: a\n{deep_yaml()}---\nDo.\n", Path("p.md"))


@pytest.mark.parametrize("text", [deep_yaml(), laughing_yaml(), "a: &a [*a]"])
def test_lines_of_hostile_yaml_are_not_searched(text: str) -> None:
    assert yaml_lines(text) == {}
