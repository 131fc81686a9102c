"""Stories of output schemas that a vendor refuses, of their strict form, and of outputs by tool call."""

import json

from tests.journeys.conftest import SCHEMA, Call, Folder, Vendor, truth
from tests.support.vendor_dialects import Answer

BY_PYDANTIC = {  # with an optional key of a type without null, and objects that are open
    "$defs": {"Tax": {"type": "object", "properties": {"rate": {"type": "number"}}, "required": ["rate"]}},
    "type": "object",
    "properties": {
        **SCHEMA["properties"],  # type: ignore[dict-item]
        "cashier": {"type": "string", "default": "nobody"},
        "tax": {"anyOf": [{"$ref": "#/$defs/Tax"}, {"type": "null"}], "default": None},
    },
    "required": ["shop", "total"],
}


def test_schema_that_a_vendor_refuses_is_sent_in_its_strict_form(folder: Folder, vendor: Vendor) -> None:
    folder.component("receipts")
    folder.write("components/receipts/schema.json", json.dumps(BY_PYDANTIC))
    folder.models(vendor.model("m"), {"id": "gpt-5", "provider": "openai"})
    lint, dry = folder.here("lint"), folder.here("evaluate", "receipts", "--dry-run")
    assert (lint.code, dry.code) == (2, 2), lint.err + dry.err
    for shown in (lint.out, dry.out):
        assert "problem: refused by gpt-5: components/receipts/schema.json at #, #/$defs/Tax: additional" in shown
        assert "at #/properties/cashier, #/properties/tax: an optional key; require it and allow null, or set " in shown
    assert "valid" not in dry.out
    every = folder.here("evaluate", "--dry-run")
    assert (every.code, "problem: refused by gpt-5: " in every.err) == (2, True), every.err

    def reply(call: Call) -> str:
        return json.dumps({**json.loads(truth(call.document)), "cashier": None, "tax": None})

    vendor.reply = reply
    folder.models(vendor.model("m"))
    as_it_is = folder.here("evaluate", "receipts")
    folder.models({**vendor.model("m"), "structured_output": "json_schema_strict"})
    strict = folder.here("evaluate", "receipts", "--dry-run")
    assert (as_it_is.code, strict.code, "valid" in strict.out) == (0, 0, True), as_it_is.err + strict.out
    assert folder.here("evaluate", "receipts").code == 0
    after, before = folder.rows("receipts")
    valid = [row["accuracy"]["schema_valid"]["strict_mean"] for row in (before, after)]
    assert valid == [0.0, 1.0]  # the null that the strict form asked for counts as absent
    assert [body["response_format"]["json_schema"]["schema"] for body in vendor.bodies][:: len(vendor.bodies) - 1] == [
        BY_PYDANTIC,
        {
            **BY_PYDANTIC,
            "$defs": {"Tax": {**BY_PYDANTIC["$defs"]["Tax"], "additionalProperties": False}},  # type: ignore[index]
            "properties": {
                **SCHEMA["properties"],  # type: ignore[dict-item]
                "cashier": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "tax": {"anyOf": [{"$ref": "#/$defs/Tax"}, {"type": "null"}]},
            },
            "required": ["shop", "total", "cashier", "tax"],
            "additionalProperties": False,
        },
    ]
    records = [f"components/receipts/evals/records/{row['run_id']}.json" for row in (before, after)]
    compared = folder.here("compare", "--baseline", records[0], "--candidate", records[1])
    assert "the model's settings changed: structured_output" in compared.out + compared.err


def test_dictionary_with_free_keys_is_reported_and_never_sent(folder: Folder, vendor: Vendor) -> None:
    folder.component("receipts")
    tags = {"type": "object", "additionalProperties": {"type": "string"}}
    open_schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "tags": tags}}  # type: ignore[dict-item]
    folder.write("components/receipts/schema.json", json.dumps(open_schema))
    folder.models({**vendor.model("m"), "structured_output": "json_schema_strict"})
    dry, done = folder.here("evaluate", "receipts", "--dry-run"), folder.here("evaluate", "receipts")
    assert (dry.code, "schema.json at #/properties/tags: a dictionary with free keys; name its" in dry.out) == (2, True)
    assert (done.code, vendor.bodies) == (4, [])
    assert (
        "schema_refused: openai refuses the output schema at #/properties/tags: a dictionary with free keys" in done.out
    )


def test_arguments_of_a_tool_call_are_the_output(folder: Folder, vendor: Vendor) -> None:
    folder.component("receipts")
    assert folder.here("evaluate", "receipts").code == 0
    folder.commit()
    folder.prompt("receipts", "1.1.0", front="output: tool_call\n")
    done = folder.here("evaluate", "receipts")
    assert (done.code, "receipts 1.1.0: unchanged" in done.out) == (0, True), done.out + done.err
    assert folder.rows("receipts")[0]["accuracy"]["exact_match"]["strict_mean"] == 1.0
    functions = [body["tools"][0]["function"] for body in vendor.bodies if "tools" in body]
    parameters = {key: value for key, value in SCHEMA.items() if key != "$schema"}
    assert functions == [{"name": "receipts", "parameters": parameters}] * 6

    vendor.reply = lambda call: Answer(text="The receipt is of Acme.")
    folder.prompt("receipts", "1.2.0", "Return shop and total.", front="output: tool_call\n")
    unusable = folder.here("evaluate", "receipts", "--recorded-baseline")
    assert unusable.code == 4
    assert "0 of 6 outputs are JSON: 6 × no_tool_call; see what 'm' wrote with `explain`" in unusable.out
    explained = folder.here("explain", folder.rows("receipts")[0]["run_id"], "--case", "acme")
    assert "no_tool_call" in explained.out, explained.err
    assert "The receipt is of Acme." in explained.out
