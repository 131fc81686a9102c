"""What holds for every test: its layer, Hypothesis's profiles, and an environment that is no machine's own.

The folders in UNIT start no process and no server; their tests run first. A mark in SLOW keeps a test out of the quick
run. `--live` also calls the vendors' real APIs; `--no-skips` counts a skipped test as failed.
"""

import gc
import json
import os
import re
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

HERE = Path(__file__).parent
UNIT = ("comparing", "evaluation", "judges", "metrics", "parsing", "records", "reports", "verdicts")
SLOW = {"local_model", "act", "browser", "node", "faults", "pages", "simulation", "unchanged"}

# What somebody's shell has set must not change what a test says: a key, a proxy, a language, a width, a time zone.
_OF_A_MACHINE = re.compile(
    r"(?i:.*_(KEY|TOKEN|BASE_URL|PROXY))|(ANTHROPIC|AWS|AZURE|GIT|GITHUB|GOOGLE|LC|OPENAI)_.*"
    r"|.*COLOR|COLUMNS|LINES|LANG(UAGE)?|TTY_.*|TZ"
)
_NOBODYS = {"LANG": "C.UTF-8", "TZ": "UTC", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

# No deadline: a busy machine is not a defect. CI tries the same examples every time, so that a change is blamed only
# for what it broke; everywhere else they are random. A weekly job tries more of them.
_SAME = os.environ.get("CI") == "true"
hypothesis.settings.register_profile("quick", deadline=None, max_examples=25, derandomize=_SAME, print_blob=_SAME)
hypothesis.settings.register_profile("weekly", deadline=None, max_examples=150, print_blob=True)
hypothesis.settings.load_profile("quick")

# No test can see whether the disk has what was written: only that costs, thousands of times.
os.fsync = lambda _: None

# What is imported and collected lives as long as the process: no walk over it frees anything.
gc.disable()

_running: list[str] = []  # the unit test that runs now


def _cache_charts() -> None:
    """Draw charts of equal specifications once per session: one takes a tenth of a second, and sites repeat them."""
    try:
        import vl_convert
    except ImportError:
        return
    draw, drawn = vl_convert.vegalite_to_svg, dict[str, str]()

    def cached(spec: Any, **options: Any) -> str:
        key = json.dumps([spec, options], sort_keys=True)
        if key not in drawn:
            drawn[key] = draw(spec, **options)
        return drawn[key]

    vl_convert.vegalite_to_svg = cached


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--live", action="store_true", help="also call the vendors' real APIs (needs their keys)")
    parser.addoption("--no-skips", action="store_true", help="count a skipped test as failed: every tool is installed")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--live"):
        for name in filter(_OF_A_MACHINE.fullmatch, list(os.environ)):
            del os.environ[name]
        os.environ.update(_NOBODYS)
        time.tzset()
    sys.addaudithook(_refuse_in_unit_tests)
    _cache_charts()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks & SLOW:
            item.add_marker(pytest.mark.slow)
        elif item.path.relative_to(HERE).parts[0] in UNIT and not marks & {"process", "newest"}:
            item.add_marker(pytest.mark.unit)
        if "live" in marks and not config.getoption("--live"):
            item.add_marker(pytest.mark.skip(reason="calls a vendor's real API; say --live"))
    items.sort(key=lambda item: item.get_closest_marker("unit") is None)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.collect()  # what is left over is told of; pytest then looks five times more
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    _running[:] = [item.nodeid] if item.get_closest_marker("unit") else []
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.config.getoption("--no-skips"):
        report.outcome, report.longrepr = "failed", f"skipped, though every tool is installed: {report.longrepr}"
    return report


def _refuse_in_unit_tests(event: str, _: tuple[Any, ...]) -> None:
    """Hold the layers apart: what needs a process or a server stands in another folder, or has the mark `process`."""
    if _running and event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "socket.bind"):
        raise AssertionError(f"{_running[0]} is a unit test and calls {event}; mark it `process`")
