"""`review serve` as a process, and Debian's Chromium to open it with."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")


@contextmanager
def review_page(root: Path, *arguments: str) -> Iterator[str]:
    """Serve the queue of a library; gives the address that it prints."""
    command = [sys.executable, "-m", "skill_evaluator", "review", "serve", *arguments]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield next(word for word in line.split() if word.startswith("http://"))
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0


@contextmanager
def chromium() -> Iterator[Any]:
    """Open a browser without windows. Skips without Chromium, but not in CI."""
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Chromium is needed for the tests of the review page, and CI must not skip them")
        pytest.skip("Chromium is needed for the tests of the review page (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])  # root has no sandbox
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module", name="browser")
def a_browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser
