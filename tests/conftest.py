"""The option `--live`, without which the tests that call a vendor's real API are skipped."""

import hypothesis
import pytest

hypothesis.settings.register_profile("project", deadline=None)  # a busy machine is not a defect
hypothesis.settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--live", action="store_true", help="also call the vendors' real APIs (needs their keys)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--live"):
        return
    for item in items:
        if item.get_closest_marker("live"):
            item.add_marker(pytest.mark.skip(reason="calls a vendor's real API; say --live"))
