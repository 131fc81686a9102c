"""`lint` names the cases that cannot be trusted, from what is recorded and the answers that are still here."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.library import CASES, SKILL, Library


def test_lint_names_the_value_on_which_models_agree_and_what_to_do(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.models(*({"id": name, "provider": "replay", "params": {"file": "answers.jsonl"}} for name in ("m", "n")))
    library.settings(replicates=5)
    title: Mapping[tuple[str, int], str] = {
        (case, index): f'{{"title": "{case}", "year": {1999 if case == "alpha" else 2024}}}'
        for case in CASES
        for index in range(5)
    }
    library.record_answers(title, "answers.jsonl")
    assert library.evaluate_here().code == 0
    line = "case 'alpha': good models contradict its truth: year (models agree on 1999, not on 2024)"
    assert line in " ".join(library.call("lint", SKILL).out.split())
    for journal in library.results.glob("*/replicates.jsonl"):
        journal.unlink()
    assert "year (nobody is right here)" in " ".join(library.call("lint", SKILL).out.split())


def test_lint_names_cases_that_never_told_versions_apart_or_are_flaky_at_all_of_them(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.models(*({"id": name, "provider": "replay", "params": {"file": "answers.jsonl"}} for name in ("m", "n")))
    library.settings(replicates=2)
    answers = {
        (case, index): "{}" if (case, index) == ("beta", 1) else f'{{"title": "{case}", "year": 2024}}'
        for case in CASES
        for index in range(2)
    }
    library.record_answers(answers, "answers.jsonl")
    for version in ("1.0.0", "1.1.0"):
        library.write(
            f"components/{SKILL}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\nExtract {version}.\n"
        )
        assert library.evaluate_here().code in (0, 4)
        shown = " ".join(library.call("lint", SKILL).out.split())
        assert ("never told 4 versions and models apart: alpha, gamma" in shown) is (version == "1.1.0")
    assert "flaky at every version, so they tell nothing: beta" in shown
