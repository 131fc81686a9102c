"""Field plans: rules inferred from the schema, and changed by declarations."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from skill_evaluator.comparing.comparison import compare
from skill_evaluator.comparing.field_plan import FieldPlan, FieldRule, plan_fields
from skill_evaluator.errors import ComponentError

STR = {"type": "string"}
PERSON = {"type": "object", "properties": {"name": STR, "age": {"type": "integer"}}}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def plan(schema: Mapping[str, Any] | None, **declared: FieldRule) -> FieldPlan:
    """The plan of a schema; `a__b` declares the path `a[].b`."""
    return plan_fields(schema, {name.replace("__", "[]."): rule for name, rule in declared.items()}, "datasets.json")


def kinds(found: FieldPlan) -> dict[str, str | None]:
    """Per path how it is compared or aligned."""
    return {path: rule.compare for path, rule in found.leaves.items()} | {
        path: rule.align for path, rule in found.arrays.items()
    }


SCHEMAS: Sequence[tuple[Any, Any]] = [
    (obj(a=STR), {"a": "string"}),
    (obj(a={"type": "number"}, b={"type": "integer"}), {"a": "number", "b": "number"}),
    (obj(a={"type": "string", "format": "date"}), {"a": "date"}),
    (obj(a={"type": "string", "format": "date-time"}), {"a": "string"}),
    (obj(a={"enum": ["x", "y"]}), {"a": "category"}),
    (obj(a={"type": "string", "enum": ["x"]}), {"a": "category"}),
    (obj(a={"enum": [1, 2]}), {"a": "exact"}),
    (obj(a={"const": "x"}), {"a": "category"}),
    # nullable, in each of the ways to say it
    (obj(a={"type": ["string", "null"]}), {"a": "string"}),
    (obj(a={"anyOf": [STR, {"type": "null"}]}), {"a": "string"}),
    (obj(a={"enum": ["x", None]}), {"a": "category"}),
    # objects and arrays
    (obj(a=obj(b=obj(c=STR))), {"a.b.c": "string"}),
    (obj(a={"type": "array", "items": STR}), {"a": "set", "a[]": "string"}),
    (obj(a={"type": "array", "items": PERSON}), "people"),
    (obj(a={"type": "array"}), {"a": None}),
    (
        obj(a={"type": "array", "items": {"type": "array", "items": STR}}),
        {"a": "best", "a[]": "set", "a[][]": "string"},
    ),
    ({"type": "array", "items": STR}, {"": "set", "[]": "string"}),
    # parts of a schema put together
    ({"allOf": [obj(a=STR), obj(b={"type": "number"})]}, {"a": "string", "b": "number"}),
    # references
    ({**obj(a={"$ref": "#/$defs/s"}), "$defs": {"s": {"enum": ["x"]}}}, {"a": "category"}),
    ({**obj(a={"$ref": "#/$defs/p~1q"}), "$defs": {"p/q": STR}}, {"a": "string"}),
    ({**obj(a={"type": "array", "items": {"$ref": "#/$defs/p"}}), "$defs": {"p": PERSON}}, "people"),
    # a reference to itself ends
    ({"$ref": "#"}, {}),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, {}),
    # nothing to read
    (None, {}),
    ({}, {}),
]


def test_plan_infers_comparators_and_alignments_from_the_schema() -> None:
    people = {"a": "best", "a[].name": "string", "a[].age": "number"}
    for schema, expected in SCHEMAS:
        assert kinds(plan(schema)) == (people if expected == "people" else expected), schema


class Line(BaseModel):
    price: Decimal


class Invoice(BaseModel):
    total: Decimal | None = None
    lines: list[Line] = []
    taxes: dict[str, Decimal] = {}
    number: str = ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"total": "4.750"}, {"total": 4.75}),
        ({"total": "1E+2", "lines": [{"price": "-0.5"}]}, {"total": 100, "lines": [{"price": -0.5}]}),
        ({"taxes": {"7": "0.30", "é": "1"}}, {"taxes": {"7": 0.3, "é": 1}}),
        ({"total": "12345678901234567890"}, {"total": 12345678901234567890}),
        # texts that JSON would not read as a finite number
        *(({"total": text}, {"total": text}) for text in ("007", "4,75", "4 kg", "NaN", "1e999", "٤", "", "9" * 5_000)),
        # a place that allows no number
        ({"number": "4.750"}, {"number": "4.750"}),
        ({"unknown": "4.750"}, {"unknown": "4.750"}),
    ],
)
def test_numeric_text_is_a_number_where_a_decimal_is_allowed(value: Any, expected: Any) -> None:
    before = repr(value)
    assert plan(Invoice.model_json_schema()).with_numbers(value) == expected
    assert repr(value) == before


@pytest.mark.parametrize(
    ("rule", "texts_are_equal"),
    [
        (FieldRule(), True),
        (FieldRule(tolerance=0.01), True),
        (FieldRule(compare="number"), True),
        (FieldRule(compare="string"), False),
        (FieldRule(compare="exact"), False),
    ],
)
def test_numeric_text_stays_text_where_another_comparator_is_declared(rule: FieldRule, texts_are_equal: bool) -> None:
    found = plan(Invoice.model_json_schema(), total=rule)
    (row,) = compare({"total": "4.75"}, {"total": "4.750"}, found)
    assert (row.outcome == "right") is texts_are_equal


def test_numeric_text_stays_text_where_the_schema_allows_no_number() -> None:
    assert not plan(Invoice.model_json_schema(mode="serialization")).numeric_texts  # there a Decimal is a string


def test_recursive_schema_is_expanded_twice() -> None:
    node = {"name": STR, "children": {"type": "array", "items": {"$ref": "#"}}}
    found = plan({"type": "object", "properties": node})
    names = [path for path in found.leaves if path.endswith("name")]
    assert names == ["name", "children[].name", "children[].children[].name"]


def test_leaves_below_the_expanded_levels_are_compared_by_type() -> None:
    found = plan({"type": "object", "properties": {"name": STR, "child": {"$ref": "#"}}})
    deep = {"child": {"child": {"child": {"child": {"name": "A  B"}}}}}
    same = {"child": {"child": {"child": {"child": {"name": "A B"}}}}}
    (row,) = compare(deep, same, found)
    assert (row.path, row.outcome) == ("child.child.child.child.name", "right")


def test_arrays_below_the_expanded_levels_align_like_those_above() -> None:
    node = obj(name=STR, size={"type": "integer"}, parts={"type": "array", "items": {"$ref": "#"}})
    found = plan(node)
    assert {rule.align for rule in found.arrays.values()} == {"best"}
    deep, other = ({"parts": [{"parts": [{"parts": [{"parts": [{"name": "a", "size": size}]}]}]}]} for size in (1, 2))
    assert [row.outcome for row in compare(deep, other, found)] == ["right", "wrong"]


def test_union_of_text_and_object_is_compared_by_the_value() -> None:
    found = plan(obj(author={"oneOf": [STR, PERSON]}))
    one, other = {"author": {"name": "Ann", "age": 5}}, {"author": {"name": "Ann", "age": 6}}
    assert [(row.path, row.outcome) for row in compare(one, other, found)] == [
        ("author.name", "right"),
        ("author.age", "wrong"),
    ]
    (row,) = compare({"author": "Ann  B"}, {"author": "Ann B"}, found)
    assert (row.path, row.outcome) == ("author", "right")


@pytest.mark.parametrize("items", [{}, {"items": {}}, {"items": True}])
def test_array_of_undeclared_items_aligns_by_its_values(items: Any) -> None:
    found = plan(obj(a={"type": "array", **items}))
    one, other = {"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1, "y": 3}]}
    assert [row.outcome for row in compare(one, other, found)] == ["right", "wrong"]
    assert [row.outcome for row in compare({"a": ["x"]}, {"a": ["y"]}, found)] == ["missing", "extra"]


def test_property_without_a_type_is_compared_as_declared() -> None:
    declared = {"a": FieldRule(align="ordered"), "b": FieldRule(casefold=True), "c": FieldRule(compare="number")}
    assert kinds(plan(obj(a={}, b=True, c={}), **declared)) == {"a": "ordered", "b": "string", "c": "number"}


INVOICE = obj(
    total={"type": ["number", "null"]},
    kind={"enum": ["sale", "refund"]},
    buyer=PERSON,
    lines={"type": "array", "items": obj(sku=STR, price={"type": "number"})},
    tags={"type": "array", "items": STR},
)


def test_declaration_changes_only_its_settings() -> None:
    found = plan(INVOICE, total=FieldRule(tolerance=0.01), lines__sku=FieldRule(casefold=True))
    assert found.leaves["total"] == FieldRule(compare="number", tolerance=0.01)
    assert found.leaves["lines[].sku"] == FieldRule(compare="string", casefold=True)
    assert found.leaves["kind"] == FieldRule(compare="category")
    assert found.declared == {"total", "lines[].sku"}
    assert plan(INVOICE, kind=FieldRule(compare="string")).leaves["kind"].compare == "string"


@pytest.mark.parametrize(
    ("rule", "align"),
    [
        (FieldRule(), "best"),
        (FieldRule(key=("sku",)), "key"),
        (FieldRule(align="key", key=("sku", "price")), "key"),
        (FieldRule(align="ordered"), "ordered"),
        (FieldRule(align="set"), "set"),
    ],
)
def test_declared_alignment_of_an_array(rule: FieldRule, align: str) -> None:
    assert plan(INVOICE, lines=rule).arrays["lines"].align == align


@pytest.mark.parametrize("compare_as", ["ignore", "exact", "text"])
def test_array_or_object_with_a_comparator_is_one_leaf(compare_as: Any) -> None:
    found = plan(INVOICE, lines=FieldRule(compare=compare_as), buyer=FieldRule(compare=compare_as))
    assert found.leaves["lines"].compare == found.leaves["buyer"].compare == compare_as
    assert not [path for path in (*found.leaves, *found.arrays) if path.startswith(("lines[]", "buyer."))]
    assert "lines" not in found.arrays


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"totl": FieldRule()}, "field 'totl' in datasets.json is not in the schema (did you mean 'total'?)"),
        (
            {"lines__prise": FieldRule()},
            "field 'lines[].prise' in datasets.json is not in the schema (did you mean 'lines[].price'?)",
        ),
        (
            {"lines": FieldRule(align="key", key=("skuu",))},
            "fields.lines.key in datasets.json names 'skuu', which the items of 'lines' lack (did you mean 'sku'?)",
        ),
        ({"price": FieldRule()}, "field 'price' in datasets.json is not in the schema (known: lines[].price)"),
        ({"lines": FieldRule(align="key")}, "`align: key` at fields.lines in datasets.json requires `key: [NAME, …]`"),
        # settings that would change nothing
        (
            {"total": FieldRule(casefold=True)},
            "casefold has no effect at fields.total in datasets.json: "
            "number takes from_string, relative_tolerance, tolerance, weight",
        ),
        (
            {"total": FieldRule(compare="date", tolerance=1)},
            "tolerance has no effect at fields.total in datasets.json: date takes formats, tolerance_days, weight",
        ),
        (
            {"kind": FieldRule(align="set")},
            "align has no effect at fields.kind in datasets.json: category takes weight",
        ),
        (
            {"lines": FieldRule(weight=2)},
            "weight has no effect at fields.lines in datasets.json: "
            "an array takes align, and a key with align: key; its items are fields.lines[]",
        ),
        (
            {"buyer": FieldRule(weight=2)},
            "weight has no effect at fields.buyer in datasets.json: "
            "an object is compared by its fields, such as fields.buyer.…, unless it declares compare",
        ),
    ],
)
def test_declaration_without_a_path_or_an_effect_is_rejected(declared: dict[str, FieldRule], message: str) -> None:
    with pytest.raises(ComponentError) as caught:
        plan(INVOICE, **declared)
    assert str(caught.value) == message


def test_ignored_field_may_have_options() -> None:
    rule = FieldRule(compare="ignore", tolerance=0.01, weight=2)
    assert plan(INVOICE, total=rule).leaves["total"] == rule


def test_declared_path_without_a_schema_is_text_by_default() -> None:
    assert kinds(plan(None, a=FieldRule(casefold=True), b=FieldRule(compare="number"))) == {
        "a": "string",
        "b": "number",
    }


def test_invalid_rule_is_rejected() -> None:
    for rule in ({"align": "sorted"}, {"tolerance": -1}, {"threshold": 1.1}, {"weight": -0.5}, {"toleranse": 1}):
        with pytest.raises(ValidationError):
            TypeAdapter(FieldRule).validate_python(rule)


@pytest.mark.parametrize(
    ("rule", "counts", "exact"),
    [
        (FieldRule(compare="string"), True, True),
        (FieldRule(compare="ignore"), False, True),
        (FieldRule(compare="text"), False, True),
        (FieldRule(compare="text", threshold=0.5), True, False),
        (FieldRule(compare="number", tolerance=1), True, False),
        (FieldRule(compare="number", relative_tolerance=1), True, False),
        (FieldRule(compare="date", tolerance_days=1), True, False),
        (FieldRule(compare="number", from_string=True), True, True),
    ],
)
def test_rule_counts_in_f1_and_has_exact_equality(rule: FieldRule, counts: bool, exact: bool) -> None:
    assert (rule.counts, rule.exact_equality) == (counts, exact)


def test_unknown_leaf_is_compared_by_its_type() -> None:
    kinds = [FieldPlan().leaf("new", value).compare for value in ("x", 1, 1.5, True, [], None)]
    assert kinds == ["string", "number", "number", "exact", "exact", "exact"]


def test_unknown_array_aligns_by_its_items() -> None:
    aligned = [FieldPlan().field("new").array_rule(*items).align for items in ([], [1, "x", None], [{}], [1, []])]
    assert aligned == ["set", "set", "best", "best"]


SCORES = obj(scores={"type": "object", "properties": {"total": {"type": "number"}}, "additionalProperties": PERSON})


def test_unnamed_keys_are_separate_fields_unless_a_star_path_is_declared() -> None:
    truth, output = {"scores": {"total": 1, "a": {"age": 1}, "b": {"age": 2}}}, {"scores": {"a": {"age": 1}}}
    assert kinds(plan(SCORES)) == {"scores.total": "number"}
    assert [row.path for row in compare(truth, output, plan(SCORES))] == [
        "scores.total",
        "scores.a.age",
        "scores.b.age",
    ]
    together = plan_fields(SCORES, {"scores.*.age": FieldRule(tolerance=1)}, "datasets.json")
    assert kinds(together) == {"scores.total": "number", "scores.*.name": "string", "scores.*.age": "number"}
    rows = compare(truth, output, together)
    assert [(row.path, row.truth_at, row.outcome) for row in rows] == [
        ("scores.total", ("scores", "total"), "missing"),
        ("scores.*.age", ("scores", "a", "age"), "right"),
        ("scores.*.age", ("scores", "b", "age"), "missing"),
    ]
    assert rows[1].rule.tolerance == 1
    assert [together.field("scores").child(key).path for key in ("total", "a", "*")] == [
        "scores.total",
        "scores.*",
        "scores.*",
    ]


def test_star_path_may_be_ignored_or_hold_arrays() -> None:
    ignored = plan_fields(SCORES, {"scores.*": FieldRule(compare="ignore")}, "datasets.json")
    assert [row.path for row in compare({"scores": {"a": {"x": 1}, "total": 2}}, {}, ignored)] == ["scores.total"]
    lists = obj(by={"additionalProperties": {"type": "array", "items": PERSON}})
    keyed = plan_fields(lists, {"by.*": FieldRule(key=("name",))}, "datasets.json")
    truth = {"by": {"x": [{"name": "A", "age": 1}, {"name": "B", "age": 2}]}}
    output = {"by": {"x": [{"name": "B", "age": 2}, {"name": "A", "age": 3}], "y": [{"name": "A"}]}}
    assert [(row.path, row.outcome) for row in compare(truth, output, keyed)] == [
        ("by.*[].name", "right"),
        ("by.*[].age", "wrong"),
        ("by.*[].name", "right"),
        ("by.*[].age", "right"),
        ("by.*[].name", "extra"),
    ]


def test_named_property_without_a_type_is_not_a_star_path() -> None:
    schema = obj(note={}, scores=obj(note={}, more=obj()))
    schema["properties"]["scores"]["additionalProperties"] = {"type": "number"}
    found = plan_fields(schema, {"scores.*": FieldRule(tolerance=1)}, "datasets.json")
    assert [found.field("scores").child(key).path for key in ("note", "more", "x")] == [
        "scores.note",
        "scores.more",
        "scores.*",
    ]


def test_items_with_schemas_by_position_align_in_order() -> None:
    at = obj(at={"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}]})
    assert kinds(plan(at)) == {"at": "ordered", "at[]": "number"}
    assert kinds(plan(at, at=FieldRule(align="set")))["at"] == "set"


def test_key_may_be_a_dotted_path() -> None:
    schema = obj(lines={"type": "array", "items": obj(id=obj(code=STR), qty={"type": "number"})})
    keyed = plan(schema, lines=FieldRule(key=("id.code",)))
    truth = {"lines": [{"id": {"code": "x"}, "qty": 1}, {"id": {"code": "y"}, "qty": 2}]}
    rows = compare(truth, {"lines": truth["lines"][::-1]}, keyed)
    assert {(row.outcome, row.truth_at == row.output_at) for row in rows} == {("right", False)}


def test_cache_of_fields_is_bounded() -> None:
    found = plan(INVOICE)
    for start in range(0, 12_000, 1000):
        compare({}, {f"k{start + index}": index for index in range(1000)}, found)
    assert len(found._fields) <= 10_000
    assert len(found.field("").children) <= 10_000
    buyer = plan(INVOICE).field("buyer")
    assert buyer.child("name") is buyer.children["name"]
    assert [row.path for row in compare({"lines": [{"sku": "x"}], "new": {"a": 1}}, {}, found)] == [
        "lines[].sku",
        "new.a",
    ]


def test_key_with_a_dot_is_no_nested_path() -> None:
    flat = {
        "properties": {"price": {"type": "number"}, "price.on": {"format": "date", "type": "string"}, "price[]": {}}
    }
    declared = {
        "price": FieldRule(compare="number", tolerance=0.01),
        "price.on": FieldRule(weight=3),
        "price[]": FieldRule(compare="ignore"),
    }
    plan = plan_fields(flat, declared, "datasets.json")
    assert (plan.leaf("price.on").compare, plan.leaf("price.on").weight) == ("date", 3)
    assert plan.leaf("price[]").compare == "ignore"
    nested = {"properties": {"price": {"properties": {"on": {"type": "string"}}}}}
    assert list(plan_fields(nested, {"price": FieldRule(compare="exact")}, "datasets.json").leaves) == ["price"]
