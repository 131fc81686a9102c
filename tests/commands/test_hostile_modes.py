"""Servers that speak bad HTTP, of every vendor, against a real process: each fault costs the call that met it."""

import shutil
import time
from collections.abc import Iterator

import pytest

from tests.support.chat_server import notice
from tests.support.library import REPLAY, SKILL, Library, journal, read
from tests.support.raw_server import MODES, RawServer, raw_server, spellings
from tests.support.vendor_dialects import DIALECTS, address_of

KEY = "lab-Secret-0123456789/abcdef+ghijklm"
TIMEOUT_S = 1
KEPT = {
    "right",
    "echo",
    "large-header",
    "many-headers",
    "header-of-odd-bytes",
    "utf-7",
    "charset-odd",
    "byte-order-mark",
}
MAY_BE_KEPT = {"utf-16"}  # which JSON on the network is not; one SDK reads it
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}


@pytest.fixture
def raw() -> Iterator[RawServer]:
    with raw_server() as server:
        yield server


def of_modes(library: Library, vendor: str, url: str) -> dict[str, str]:
    """Have a case for each mode, asked of the vendor's API at an address, and of a recorded model; returns the keys."""
    shutil.rmtree(library.root / "fixtures")
    for mode in MODES:
        folder = f"fixtures/{SKILL}/cases/{mode}"
        library.write(f"{folder}/document.md", f"mode-{mode} is what this asks for.\n")
        library.write(f"{folder}/ground_truth.json", {"title": "RIGHT", "year": 2024})
    library.record_answers({(mode, 0): notice("RIGHT") for mode in MODES})
    dialect = DIALECTS[vendor]
    served = {"id": "served", "provider": dialect.provider, "base_url": address_of(url, vendor)}
    if dialect.provider == "openai":
        served |= {"api_key_env": "OPENAI_API_KEY", "transport": "sdk" if vendor.endswith("-sdk") else "direct"}
    library.models(served, REPLAY)
    retry = {"attempts": 2, "first_wait_s": 0.01, "max_wait_s": 0.02, "max_retry_after_s": 1}
    library.settings(replicates=1, concurrency=16, timeout_s=TIMEOUT_S, retry=retry)
    return {KEYS[dialect.provider]: KEY}


@pytest.mark.parametrize(
    "vendor",
    [
        "openai-compatible",
        *(pytest.param(name, marks=pytest.mark.faults) for name in ("openai-compatible-sdk", "anthropic", "google")),
    ],
)
def test_bad_http_costs_the_call_that_met_it_and_no_other(vendor: str, library: Library, raw: RawServer) -> None:
    env = of_modes(library, vendor, raw.url)
    began = time.monotonic()
    done, megabytes = library.measured(env=env)
    printed = done.out + done.err
    assert done.code == 4, printed
    assert "Traceback" not in printed
    assert time.monotonic() - began < 20
    assert megabytes < 500
    assert raw.asked.keys() == MODES.keys()

    folders = {
        read(folder / "manifest.json")["model_id"]: folder for folder in library.results.iterdir() if folder.is_dir()
    }
    lines = {line["case_id"]: line for line in journal(folders["served"])}
    assert lines.keys() == MODES.keys()
    assert {mode for mode, line in lines.items() if line.get("text")} - MAY_BE_KEPT == KEPT
    assert len(journal(folders["recorded"])) == len(MODES)
    assert [row["model_id"] for row in library.rows()] == ["recorded"]

    places = {name: content for name, content in library.tree().items() if content is not None}
    for spelling in spellings(KEY):
        piece = spelling[4:-4].encode()
        assert [name for name, content in {**places, "printed": printed.encode()}.items() if piece in content] == []
