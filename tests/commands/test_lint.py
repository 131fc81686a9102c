"""`lint`: the comparison of every field, the problems of every component, and hints."""

from collections.abc import Mapping
from typing import Any

from skill_evaluator.verdicts.sizing import can_show

from tests.support.library import ROOT, SKILL, Library

ORDER: Mapping[str, Any] = {
    "type": "object",
    "$defs": {"amount": {"type": ["number", "null"]}},
    "properties": {
        "number": {"type": "string"},
        "kind": {"enum": ["sale", "refund"]},
        "due": {"type": ["string", "null"], "format": "date"},
        "paid": {"type": "boolean"},
        "total": {"$ref": "#/$defs/amount"},
        "note": {"type": "string"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"code": {"type": "string"}, "count": {"type": "integer"}}},
        },
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}


def order(index: int, **changed: Any) -> dict[str, Any]:
    lines = [{"code": f"A{index}", "count": 1}, {"code": f"B{index}", "count": 1}]
    whole = {"number": f"{index}07", "kind": "sale", "due": "2024-01-02", "paid": True, "total": 9.5, "note": "n"}
    return {**whole, "lines": lines, "tags": ["x"], **changed}


def describe(library: Library, fields: Mapping[str, Any], schema: Any = ORDER, *truths: Any) -> None:
    """Give the library's component a schema, field declarations, and three truths."""
    library.write(f"components/{SKILL}/schema.json", schema)
    library.write(f"components/{SKILL}/evals/datasets.json", {"datasets": [{"id": "all", "fields": fields}]})
    for index, case_id in enumerate(("alpha", "beta", "gamma")):
        library.case(case_id, truths[index] if truths else order(index))


def linted(library: Library, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = library.call("lint", "--format", "json", *arguments).json["components"][0]
    return found


def test_every_field_is_shown_with_its_comparison(library: Library) -> None:
    describe(library, {"number": {"weight": 2}, "lines": {"align": "key", "key": ["code"]}})
    fields = linted(library)["fields"]
    assert [(field["path"], field.get("compare") or field["align"], field["why"]) for field in fields] == [
        ("number", "string", "schema (declared: weight)"),
        ("kind", "category", "schema"),
        ("due", "date", "schema"),
        ("paid", "exact", "schema"),
        ("total", "number", "schema"),
        ("note", "string", "schema"),
        ("lines", "key", "declared"),
        ("lines[].code", "string", "schema"),
        ("lines[].count", "number", "schema"),
        ("tags", "set", "array of scalars"),
        ("tags[]", "string", "schema"),
    ]


def test_invalid_component_hides_no_other(library: Library) -> None:
    library.write("components/broken/prompt.md", "no front matter")
    library.write("components/halfway/schema.json", {})
    ended = library.call("lint")
    assert ended.code == 2
    assert ended.err == "error: 2 problems in 2 of 3 components\n"
    problems = [line for line in ended.out.splitlines() if line.startswith("problem: ")]
    assert problems[0].startswith("problem: components/broken/prompt.md:1: no front matter")
    assert "'halfway'" in problems[1]
    assert "year   number" in ended.out


def test_invalid_case_is_named_with_its_file(library: Library) -> None:
    library.case("alpha", {"title": "alpha"})
    library.case("beta[1]", {"title": "beta", "year": "2024"})
    (library.root / "fixtures" / SKILL / "cases" / "gamma" / "document.md").unlink()
    ended = library.call("lint", SKILL, "--format", "json")
    assert ended.code == 2
    (found,) = ended.json["components"]
    assert (found["cases"], found["labelled"]) == (1, 1)
    folder = f"fixtures/{SKILL}/cases"
    first, second, third = found["problems"]
    assert first.startswith(f"{folder}/alpha/ground_truth.json fails components/{SKILL}/schema.json at")
    assert second.startswith(f"{folder}/beta[1]/ground_truth.json fails components/{SKILL}/schema.json at /year")
    assert third == f"case 'gamma' has no document: {folder}/gamma/document.md is missing"


def test_lint_is_refused_without_a_component(library: Library) -> None:
    for folder, problem in (("fixtures", "holds no component; add fixtures/<name>/"), ("none", "is not a folder; run")):
        assert library.call("lint", "--components", folder).refuses(f"{folder} {problem}")


def hinted(library: Library) -> list[str]:
    """The hints, but for what three cases can show."""
    return [hint for hint in linted(library)["hints"] if hint != can_show(3)]


def test_hint_says_what_few_cases_can_detect(library: Library) -> None:
    describe(library, {"lines": {"align": "ordered"}})
    assert linted(library)["hints"] == [can_show(3)]
    for index in range(3, 8):
        library.case(f"more-{index}", order(index))
    assert linted(library)["hints"] == []
    assert library.call("lint").out.endswith("\nno problem in 1 component\n")
    for path in library.root.glob(f"fixtures/{SKILL}/cases/*/ground_truth.json"):
        path.unlink()
    assert linted(library)["hints"][-1].endswith("not measured: no case has a ground truth or a check")


def test_hint_names_texts_that_are_dates_or_amounts(library: Library) -> None:
    for values, hint in (
        (("2024-01-02", "2023-12-31", "2024-02-29"), '"compare": "date"'),
        (("31/01/2024", "01/02/2024", "5/3/2024"), '"compare": "date", "formats": ["%d/%m/%Y"]'),
        (("9.50", "1,234.00", "RM 3.10"), '"compare": "number", "from_string": true'),
        (("47.041", "12.345", "10.001"), None),
    ):
        truths = [order(index, note=value) for index, value in enumerate(values)]
        describe(library, {"lines": {"align": "ordered"}}, ORDER, *truths)
        hints = hinted(library)
        assert len(hints) == (hint is not None), values
        if hint is not None:
            assert hints[0].startswith("'note' is a "), values
            assert hints[0].endswith(f'declare {hint} at fields."note" in evals/datasets.json'), values


def test_shipped_components_have_no_problem_and_no_hint(library: Library) -> None:
    arguments = [f"--{folder}={ROOT / folder}" for folder in ("components", "fixtures")]
    ended = library.call("lint", "--format", "json", *arguments)
    assert (ended.code, ended.err) == (0, "")
    found = ended.json["components"]
    assert len(found) == 7
    assert all(one["fields"] and one["labelled"] and not one["problems"] and not one["hints"] for one in found)


def test_unstable_cases_are_linted_for_their_names_and_dates(library: Library) -> None:
    library.settings(policy={"components": {"s": {"unstable_cases": {"a": {"reason": "a torn scan"}}}}})
    absent = "a required key is missing at policy.components.s.unstable_cases.a.until in "
    assert absent in library.call("lint").err
    unstable = {
        "alpah": {"reason": "a torn scan", "until": "2999-01-01"},
        "alpha": {"reason": "a torn scan", "until": "2020-01-31"},
    }
    own = {"unstable_cases": unstable, "critical_cases": ["alpha"]}
    library.settings(policy={"components": {SKILL: own}})
    linted = library.call("lint")
    where = f"policy.components.{SKILL}"
    assert linted.code == 2
    for words in (
        f"{where}.unstable_cases: 'alpah' does not exist (did you mean 'alpha'?)",
        f"{where}.unstable_cases: 'alpha' was unstable until 2020-01-31; extend the date or delete it",
        f"{where}: 'alpha' is in critical_cases and in unstable_cases; delete one of them",
    ):
        assert words in linted.out + linted.err


def test_unknown_names_in_the_policy_are_problems(library: Library) -> None:
    own = {"critical_cases": ["alpah"], "fields": {"titel": {"tier": "critical"}}, "metrics": {"exact_mach": {}}}
    library.settings(policy={"components": {SKILL: own, "notice-extracton": {}}, "judge": {"trusted": ["recordde"]}})
    linted = library.call("lint")
    meant = {"alpah": "alpha", "titel": "title", "notice-extracton": SKILL, "recordde": "recorded"}
    for wrong, right in (meant | {"exact_mach": "exact_match"}).items():
        assert f"'{wrong}' does not exist (did you mean '{right}'?)" in linted.out + linted.err
    assert linted.code == 2
