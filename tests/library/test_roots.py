"""What leads out of the folder that files are read from, and what only looks like it."""

from pathlib import Path

import pytest
from skill_evaluator.errors import FixtureError
from skill_evaluator.library.reading import Root


def linked(path: Path, target: Path | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def test_a_link_out_is_refused_with_where_it_leads_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    path = linked(tmp_path / "f" / "a" / "document.md", tmp_path / "secret")
    with pytest.raises(FixtureError) as caught:
        Root(tmp_path / "f", FixtureError, follow_links=False).inside(path)
    assert str(caught.value) == (
        f"{path} leads out of {tmp_path / 'f'}, to {(tmp_path / 'secret').resolve()}; "
        "put what it leads to in its place, or allow it in settings.yaml: limits: {follow_links: true}"
    )
    assert Root(tmp_path / "f", FixtureError, follow_links=True).inside(path) == path


def test_every_way_out_is_one(tmp_path: Path) -> None:
    (tmp_path / "f-other").mkdir()
    root = tmp_path / "f"
    ways = ("../../secret", "/proc/self/environ", "../..", "../../f-other/x", "../../none")
    out = [linked(root / "a" / f"x{number}", target) for number, target in enumerate(ways)]
    linked(root / "b", tmp_path)
    linked(root / "c", "a")
    # a link to a link out, a folder that is one, and a link out behind a link that stays inside
    for path in (*out, linked(root / "a" / "x", "../b"), root / "b" / "secret", root / "c" / "x1"):
        with pytest.raises(FixtureError, match="leads out of"):
            Root(root, FixtureError, follow_links=False).inside(path)


def test_a_link_that_stays_inside_is_fine_and_so_is_a_root_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "f" / "a").mkdir(parents=True)
    path = linked(tmp_path / "f" / "b", "a")
    assert Root(tmp_path / "f", FixtureError, follow_links=False).inside(path / "x") == path / "x"
    elsewhere = linked(tmp_path / "other" / "link", tmp_path / "f")
    assert Root(elsewhere, FixtureError, follow_links=False).inside(elsewhere / "a") == elsewhere / "a"


def test_a_root_of_the_current_folder_may_not_be_a_link_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    linked(here / "fixtures", "/")
    (here / "real").mkdir()
    linked(here / "inner", "real")
    monkeypatch.chdir(here)
    with pytest.raises(FixtureError, match=r"^fixtures leads out of the current folder, to /; put"):
        Root(Path("fixtures"), FixtureError, follow_links=False)
    Root(Path("fixtures"), FixtureError, follow_links=True)
    Root(Path("inner"), FixtureError, follow_links=False)
    Root(Path("../here/fixtures"), FixtureError, follow_links=False)  # named by whoever calls


def test_before_the_settings_are_read_no_advice_names_them(tmp_path: Path) -> None:
    path = linked(tmp_path / "c" / "settings.yaml", "/proc/self/environ")
    with pytest.raises(FixtureError, match=r"put what it leads to in its place$"):
        Root(tmp_path / "c", FixtureError).inside(path)
