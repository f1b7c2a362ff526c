"""Markers of the suite. Whatever tests share lives in tests/support."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes many seconds; left out unless asked for with `-m slow`")
