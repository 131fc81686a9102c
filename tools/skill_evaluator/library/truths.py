"""Where the ground truths of a component are, and what they tell of its answers: JSON or text, and what is prose.

Its own module because a component is read with it, before its cases are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import FieldPlan
from skill_evaluator.comparing.schema_paths import schema_places
from skill_evaluator.errors import ComponentError, FixtureError
from skill_evaluator.files import read_json, read_text
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.roots import Root
from skill_evaluator.parsing import Output
from skill_evaluator.stats import quantile
from skill_evaluator.text import nearest_path

DOCUMENTS = ("document.md", "document.txt", "document.json", "input.md", "input.txt", "input.json")
TRUTHS = ("ground_truth.json", "expected.json", "expected.md")
_LONGEST_NAME = 60  # characters: a text whose median is longer says something, and can say it in other words
_NO_PROSE = ("enum", "const", "pattern", "format")
_OF_TEXTS = {"threshold", "weight", "rubric"}  # what may be declared of a field without saying how it is compared


def places_of(component: Path, fixtures: str, fixtures_dir: Path | None, name: str) -> list[Path]:
    """Return where a component's `cases` or `questions.jsonl` may be, the best place first.

    Without `fixtures_dir` that is `fixtures/<name>/`, then the component's own `evals/`.
    """
    own = [component / "evals" / name] if fixtures_dir is None else []
    return [(fixtures_dir or Path("fixtures")) / fixtures / name, *own]


def root_of(component: Path, fixtures_dir: Path | None, place: Path, limits: SafetyLimits) -> Root:
    """Return the folder that cases found in a place must lie in: that of all fixtures, or of all components."""
    folder = component.parent if place.is_relative_to(component) else fixtures_dir or Path("fixtures")
    return Root(folder, FixtureError, follow_links=limits.follow_links)


def output_of_truths(places: Sequence[Path]) -> Output:
    """Return what the names of the ground truths say: text where all are expected.md, else JSON."""
    cases = next((place for place in places if place.is_dir()), None)
    names = {path.name for path in cases.glob("*/*")} & set(TRUTHS) if cases else set()
    return "text" if names == {"expected.md"} else "json"


def read_truths(
    component: Path, places: Sequence[Path], fixtures_dir: Path | None, output: Output, limits: SafetyLimits
) -> Iterator[Any]:
    """Yield the ground truths that can be read; what is wrong with the others is said where cases are read."""
    place = next((place for place in places if place.is_dir()), None)
    if place is None or output == "choice":
        return
    limit = limits.size_of("document_bytes")
    for case in sorted(place.iterdir()):
        path = next((case / name for name in TRUTHS if (case / name).is_file()), None)
        if path is None or case.name.startswith("."):
            continue
        with suppress(FixtureError):
            root_of(component, fixtures_dir, place, limits).inside(path)
            is_text = output == "text" and path.suffix == ".md"
            yield read_text(path, FixtureError, limit).strip() if is_text else read_json(path, FixtureError, limit)


def find_texts(
    schema: Mapping[str, Any] | None, declared: Mapping[str, FieldRule], truths: Iterable[Any]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median length, by path, of fields of which the schema asks nothing but to be a text, and of prose.

    Of these a field is prose if the median of its ground truths is over 60 characters, and nothing declares how it is
    compared.
    """
    told = {path for path, rule in declared.items() if rule.compare is not None or rule.options.keys() - _OF_TEXTS}
    places = schema_places(schema or {})
    plain = {
        path
        for path, place in places.items()
        if place.kind == "string" and not any(key in node for node in place.nodes for key in _NO_PROSE)
    }
    stars = {path: FieldRule() for path in declared.keys() & plain if "*" in path}
    plan = FieldPlan(leaves=stars, named=frozenset(places))
    lengths: dict[str, list[int]] = {path: [] for path in plain if "*" not in path}
    for truth in truths:
        for field, value in plan.walk(truth):
            if isinstance(value, str) and (schema is None or field.path in plain):
                lengths.setdefault(field.path, []).append(len(value))
    medians = {path: quantile(of_path, 0.5) or 0.0 for path, of_path in lengths.items()}
    return medians, {path: long for path, long in medians.items() if long > _LONGEST_NAME and path not in told}


def refuse_unknown_paths(paths: Iterable[str], output: Output, truths: Sequence[Any], where: Path) -> None:
    """Raise ComponentError for a declared path that answers without a schema cannot have; a `*` may be any."""
    if output == "json" and not truths:
        return
    known = {part.path for truth in truths for part, _ in FieldPlan().walk(truth)} if output == "json" else {""}
    for path in paths:
        if path not in known and "*" not in path:
            reason = (
                f"no ground truth has it {nearest_path(path, known)}"
                if output == "json"
                else (f'the answer is one {output}, and the path of the whole answer is ""')
            )
            raise ComponentError(f"field '{path}' in {where} does not exist: {reason}")
