"""Markers of the suite, and what its processes start with. Whatever tests share lives in tests/support."""

import gc
import signal
from collections.abc import Iterator

import pytest

from tests.support.kept_memory import keep_memory
from tests.support.quick_hypothesis import use_quick_hypothesis
from tests.support.terse_workers import TerseWorker
from tests.support.xla_flags import use_quick_xla

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes many seconds; left out unless asked for with `-m slow`")
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(TerseWorker())
    keep_memory()
    gc.disable()  # until all tests are collected: they are some hundred thousand objects, all of which stay
    if "not slow" in config.option.markexpr:  # slow tests have the time to see what XLA's users see
        use_quick_xla()  # before anything imports JAX
        use_quick_hypothesis()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was imported and collected lives as long as the process: Python need not look for garbage in it ever again.
    Nor need it look so often as where memory is short."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000)


@pytest.fixture(scope="module")
def only_new_garbage() -> Iterator[None]:
    """Tests that look for garbage again and again find what they made, and need not look at what all those made that
    were before them in this process: some million objects, which takes a tenth of a second each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
