"""Whatever is wrong with what a user gives: exit code 2, one line that names the place, and nothing written."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.library import REPLAY, SKILL, Library

_COMPONENT = f"components/{SKILL}"


@dataclass(frozen=True, slots=True)
class Bad:
    """What is put wrong, on which command line, and what the one line must say."""

    what: str
    says: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    spoil: Callable[[Library], object] = lambda library: None
    skill: str = SKILL


def _writes(path: str, content: object) -> Callable[[Library], object]:
    return lambda library: library.write(path, content)


def _renames(path: str) -> Callable[[Library], object]:
    return lambda library: (library.root / path).rename(library.root / "elsewhere")


def _models(*entries: object) -> Callable[[Library], object]:
    return _writes(".evaluator/models.yaml", {"models": entries})


_REPLAY = {"provider": "replay"}
TABLE = [
    # components
    Bad(
        "an unknown component", ("'notice-extractoin'", "did you mean 'notice-extraction'?"), skill="notice-extractoin"
    ),
    # fixtures
    Bad("no fixtures", (f"fixtures/{SKILL}/cases", "--fixtures"), spoil=_renames("fixtures")),
    # configuration
    Bad(
        "an unknown provider",
        ("'antropic'", "models[2].provider", ".evaluator/models.yaml", "did you mean 'anthropic'?"),
        spoil=_models(REPLAY, {**REPLAY, "id": "b"}, {"id": "c", "provider": "antropic"}),
    ),
    Bad("a replay model without its file", ("'recorded'", "file: PATH"), spoil=_models({"id": "recorded", **_REPLAY})),
    # options
    Bad("no replicates", ("--replicates", "0"), ("--replicates", "0")),
    Bad("more replicates than memory", ("--replicates", "at most 10,000"), ("--replicates", "1000000000")),
    Bad("fewer than no calls", ("--max-calls", "-1"), ("--max-calls", "-1")),
    Bad("an amount that is no number", ("--max-cost", "nan"), ("--max-cost", "nan")),
    Bad("a shard without a case", ("4/4", "3"), ("--shard", "4/4")),
    Bad("a run nobody knows", ("'20260101T000000Z-abcdef'",), ("--run", "20260101T000000Z-abcdef")),
    # what is there already, and where to write
    Bad(
        "a broken leaderboard",
        (f"{_COMPONENT}/leaderboard.json:1:",),
        spoil=_writes(f"{_COMPONENT}/leaderboard.json", '{"skill": "notice-extraction", "runs": ['),
    ),
    Bad(
        "a results folder under a file",  # which even root cannot write to
        (f"{_COMPONENT}/prompt.md/runs", "--results"),
        ("--results", f"{_COMPONENT}/prompt.md/runs"),
    ),
]


def test_bad_input_is_refused_in_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    for bad in TABLE:
        library = Library(tmp_path / bad.what)
        bad.spoil(library)
        before = library.tree()
        refused = library.call("evaluate", bad.skill, *bad.arguments)
        assert refused.err.startswith("error: "), bad.what
        for words in bad.says:
            assert refused.refuses(words), (bad.what, words)
        assert library.tree() == before, bad.what


def test_unreadable_recording_is_refused_before_a_run_begins(library: Library) -> None:
    whole = '{"case_id": "alpha", "replicate": 0, "text": "x"}\n'
    (library.root / "answers.jsonl").unlink()
    for content, words in (
        (None, "answers.jsonl does not exist"),
        ('{"case_id": "alpha"}\n', "answers.jsonl:1"),
        (whole + '{"case_id": "alpha", "replicate": 1}\n', "answers.jsonl:2"),
    ):
        if content is not None:
            library.write("answers.jsonl", content)
        refused = library.evaluate_here()
        assert refused.code == 2, words
        assert refused.err.startswith("error: "), words
        assert words in refused.err
        assert not list(library.results.glob("*/*")), words


def test_unknown_option_is_refused_with_the_way_to_help(library: Library) -> None:
    refused = library.evaluate_here("--replicants", "3")
    assert refused.code == 2
    assert "--replicants" in refused.err
    assert "-h" in refused.err
