"""The option `--live`, without which the tests that call a vendor's real API are skipped; Hypothesis's two profiles."""

import os

import hypothesis
import pytest

# No deadline: a busy machine is not a defect. CI tries the same examples every time, so that a change is blamed only
# for what it broke; everywhere else they are random, and new ones are tried with every run.
hypothesis.settings.register_profile("random", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "random")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--live", action="store_true", help="also call the vendors' real APIs (needs their keys)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--live"):
        return
    for item in items:
        if item.get_closest_marker("live"):
            item.add_marker(pytest.mark.skip(reason="calls a vendor's real API; say --live"))
