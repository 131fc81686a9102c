"""Servers that speak bad HTTP: each fault costs the call that met it.

One vendor's model is asked by a real process, in all modes there are; quickly, another's by this one in those that end.
"""

import shutil
import time

import pytest

from tests.support.chat_server import notice
from tests.support.library import REPLAY, SKILL, Ended, Library, journal, read
from tests.support.raw_server import MODES, RawServer, raw_server, spellings
from tests.support.vendor_dialects import DIALECTS, address_of

KEY = "lab-Secret-0123456789/abcdef+ghijklm"
TIMEOUT_S = 1
KEPT = {
    "right",
    "echo",
    "large-header",
    "packed-oddly",
    "header-of-odd-bytes",
    "utf-7",
    "charset-odd",
    "byte-order-mark",
    "utf-16",
}
WITHOUT_END = ("endless", "chunks-endless", "drip", "gzip-bomb", "error-for-ever")  # and what takes as long to unpack
QUICK = {name: mode for name, mode in MODES.items() if not name.startswith(WITHOUT_END)}
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}


def of_modes(library: Library, vendor: str, raw: RawServer) -> dict[str, str]:
    """Have a case for each mode, asked of the vendor's API at a server, and of a recorded model; returns the keys."""
    shutil.rmtree(library.root / "fixtures")
    for mode in raw.modes:
        folder = f"fixtures/{SKILL}/cases/{mode}"
        library.write(f"{folder}/document.md", f"mode-{mode} is what this asks for.\n")
        library.write(f"{folder}/ground_truth.json", {"title": "RIGHT", "year": 2024})
    library.record_answers({(mode, 0): notice("RIGHT") for mode in raw.modes})
    dialect = DIALECTS[vendor]
    served = {"id": "served", "provider": dialect.provider, "base_url": address_of(raw.url, vendor)}
    if dialect.provider == "openai":
        served["api_key_env"] = "OPENAI_API_KEY"
    library.models(served, REPLAY)
    retry = {"attempts": 5, "first_wait_s": 0.01, "max_wait_s": 0.02, "max_retry_after_s": 1}
    library.settings(replicates=1, concurrency=16, timeout_s=TIMEOUT_S, retry=retry)
    return {KEYS[dialect.provider]: KEY}


def test_bad_http_costs_the_call_that_met_it_and_no_other(library: Library) -> None:
    with raw_server(QUICK) as raw:
        env = of_modes(library, "openai-compatible", raw)
        hold(library, raw, library.evaluate_here(env=env))


@pytest.mark.faults
def test_nor_does_what_has_no_end_cost_another_call_time_or_memory(library: Library) -> None:
    with raw_server() as raw:
        env = of_modes(library, "google", raw)
        began = time.monotonic()
        done, megabytes = library.measured(env=env)
        assert time.monotonic() - began < 40
        assert megabytes < 500
        hold(library, raw, done)


def hold(library: Library, raw: RawServer, done: Ended) -> None:
    """Hold what an evaluation left to what the server's modes may cost it."""
    printed = done.out + done.err
    assert done.code == 4, printed
    assert "Traceback" not in printed
    assert raw.asked.keys() == raw.modes.keys()

    folders = {
        read(folder / "manifest.json")["model_id"]: folder for folder in library.results.iterdir() if folder.is_dir()
    }
    lines = {line["case_id"]: line for line in journal(folders["served"])}
    assert lines.keys() == raw.modes.keys()
    assert {mode for mode, line in lines.items() if line.get("text")} == KEPT
    assert len(journal(folders["recorded"])) == len(raw.modes)
    assert [row["model_id"] for row in library.rows()] == ["recorded"]

    places = {name: content for name, content in library.tree().items() if content is not None}
    for spelling in spellings(KEY):
        piece = spelling[4:-4].encode()
        assert [name for name, content in {**places, "printed": printed.encode()}.items() if piece in content] == []
