"""What a worker of the suite tells of a test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import terse_workers
from tests.support.terse_workers import TerseWorker


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ({"setup": "passed", "call": "passed", "teardown": "passed"}, ["call"]),
        ({"setup": "passed", "call": "failed", "teardown": "passed"}, ["call"]),
        ({"setup": "passed", "call": "skipped", "teardown": "failed"}, ["call", "teardown"]),
        ({"setup": "skipped", "teardown": "passed"}, ["setup"]),
        ({"setup": "failed", "teardown": "failed"}, ["setup", "teardown"]),
    ],
)
def test_only_what_is_shown_is_told(outcomes: dict[str, str], told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def protocol(item: Any, *, log: bool, nextitem: Any) -> list[Any]:
        assert not log
        return [SimpleNamespace(when=when, passed=outcome == "passed") for when, outcome in outcomes.items()]

    found: list[str] = []
    hooks = SimpleNamespace(pytest_runtest_logreport=lambda report: found.append(report.when))
    monkeypatch.setattr(terse_workers, "runtestprotocol", protocol)
    item: Any = SimpleNamespace(ihook=hooks)
    assert TerseWorker().pytest_runtest_protocol(item, None)
    assert found == told
