"""Stories of a rise in tokens and cost, and of unstable cases that decide no verdict."""

import json
from collections import Counter
from typing import Any

from tests.journeys.conftest import PROMPT, Call, Folder, Reply, Vendor, truth
from tests.support.vendor_dialects import Answer

THINK = f"{PROMPT} Think first."
SHOPS = ("Acme", "Bell", "Crow", "Dove")


def thinking(call: Call) -> Reply:
    """Answer correctly. A prompt with `Think` gets 12,000 output tokens."""
    length = len(call.document)
    tokens = 12_000 + length if "Think" in call.prompt else 50 + length
    return Answer(text=truth(call.document), usage=(50, tokens), served_model=call.model)


def gate(folder: Folder, **policy: Any) -> None:
    settings = json.loads((folder.root / ".evaluator/settings.yaml").read_text())
    folder.write(".evaluator/settings.yaml", json.dumps({**settings, "policy": policy}))


def test_rise_in_cost_is_reported_and_fails_with_a_policy(folder: Folder, vendor: Vendor) -> None:
    vendor.reply = thinking
    folder.component("receipts", SHOPS)
    folder.commit()
    assert folder.here("evaluate", "receipts").code == 0
    folder.prompt("receipts", "1.1.0", THINK)
    done = folder.here("evaluate", "receipts")
    assert done.code == 0
    words = "output tokens 58 → 12,008 a call (× 207), cost $0.0013 → $0.19 a run (× 145)"
    assert f"nothing lost\n{words}" in done.out
    assert "= receipts 1.1.0: unchanged against 1.0.0" in done.out

    gate(folder, metrics={"cost_usd": {"tier": "critical", "tolerance": 0.5}})
    compared = folder.here("compare", "receipts")
    assert compared.code == 3
    assert "receipts 1.1.0: regressed against 1.0.0" in compared.out
    assert "lost: cost $0.0013 → $0.19 a run" in compared.out
    assert folder.here(*folder.next_step(compared)).code == 0
    gate(folder, metrics={"cost_us": {"tier": "critical"}})
    assert "'cost_us' does not exist (did you mean 'cost_usd'?)" in folder.here("lint", "receipts").err


def test_flaky_case_is_reported_and_decides_nothing_once_declared(folder: Folder, vendor: Vendor) -> None:
    asked = Counter[tuple[str, str]]()

    def reply(call: Call) -> Reply:
        right = json.loads(truth(call.document))
        asked[call.document, call.prompt] += 1
        is_wrong = "Acme" in call.document and asked[call.document, call.prompt] % 2
        return json.dumps({**right, "total": -1.0} if is_wrong else right)

    vendor.reply = reply
    folder.component("receipts", SHOPS)
    folder.commit()
    assert folder.here("evaluate", "receipts", "--replicates", "4").code == 0
    gate(folder, tolerance=0.2)
    for version in ("1.1.0", "1.2.0"):
        folder.commit()
        folder.prompt("receipts", version, f"{PROMPT} Version {version}.")
        assert "unchanged" in folder.here("evaluate", "receipts", "--replicates", "4").out
    history = folder.here("history", "receipts").out
    assert "flaky with m: total of case acme, right in " in history
    assert "`policy.components.receipts.unstable_cases` in settings.yaml" in history

    reason = {"reason": "the total is torn off", "until": "2999-12-31"}
    gate(folder, tolerance=0.2, components={"receipts": {"unstable_cases": {"acme": reason}}})
    assert folder.here("lint", "receipts").code == 0
    compared = folder.here("compare", "receipts").out
    assert "1 case left out: acme (" in compared
    assert "unstable until 2999-12-31: the total is torn off" in compared
    assert "unchanged against 1.1.0 on these 3 cases" in compared
    assert "flaky with" not in folder.here("history", "receipts").out
