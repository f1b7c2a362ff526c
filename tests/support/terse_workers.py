"""What workers of the suite tell the process that has them: once for each test, not six times.

Its begin and its end, and that it was prepared and cleaned up after, nobody is shown; sent and read for seventeen
thousand tests that takes as long as some of these together."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol


class TerseWorker:
    """A plugin for them: what a test came to, and whatever else did not go well."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True
