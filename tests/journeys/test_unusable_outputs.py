"""Stories of a version without a readable output, and of reasoning text before the JSON."""

import json

from tests.journeys.conftest import PROMPT, Call, Folder, Vendor, truth, usual


def test_version_without_a_readable_output_is_no_baseline(folder: Folder, vendor: Vendor) -> None:
    folder.component("receipts")
    vendor.reply = lambda call: "I am sorry, the receipt is hard to read."
    unusable = folder.run("evaluate", "receipts")
    assert unusable.code == 4, unusable.err
    assert unusable.out.splitlines()[-3].startswith("0 of 6 outputs are JSON: ")
    (row,) = folder.rows("receipts")
    assert (row["complete"], row["usable"]) == (False, 0)
    assert folder.here("accept", "receipts", "1.0.0", "--reason", "it is paid for").code == 2
    folder.prompt("receipts", "1.1.0", f"{PROMPT} Write JSON alone.")
    for command in ("compare", "history", "leaderboard"):
        done = folder.here(command, "receipts")
        assert "1.0.0: 0 of 6 outputs are JSON: " in (shown := done.out + done.err), shown
        assert ("1.1.0 on disk is not measured" in shown, "to ship: 1.0.0" in shown) == (True, False), shown

    vendor.reply = usual
    usable = folder.here("evaluate", "receipts")
    assert usable.code == 0, usable.err
    assert [row["complete"] for row in folder.rows("receipts")] == [True, False]
    ranked, built = folder.here("leaderboard"), folder.here("site", "build")
    assert (ranked.code, built.code) == (0, 0), ranked.err + built.err
    assert "of 1 model on the same 3 cases" in ranked.out


def test_reasoning_text_is_removed_before_an_output_is_scored(folder: Folder, vendor: Vendor) -> None:
    """The reasoning text has JSON with a wrong total."""

    def reply(call: Call) -> str:
        thought = json.dumps({**json.loads(truth(call.document)), "total": -1.0})
        reasons = "Think first" in call.prompt
        return f"<think>\nPerhaps {thought}?\n</think>\n\n{truth(call.document)}" if reasons else truth(call.document)

    vendor.reply = reply
    folder.component("receipts")
    assert folder.here("evaluate", "receipts").code == 0
    folder.prompt("receipts", "1.1.0", f"{PROMPT} Think first.")
    done = folder.here("evaluate", "receipts")
    assert done.code == 0, done.out
    assert folder.rows("receipts")[0]["accuracy"]["exact_match"]["strict_mean"] == 1.0
    explained = folder.here("explain", folder.rows("receipts")[0]["run_id"], "--case", "acme")
    assert (explained.code, "Perhaps" in explained.out) == (0, True), explained.err
