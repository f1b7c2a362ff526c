"""Modules that are imported when they are first asked for, by several threads, and forks meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.forks import works_in_a_child
from xlapy_runtime import late as late_imports
from xlapy_runtime.late import late

SLOW_MODULE = """
import time
time.sleep(0.2)
answer = 42
"""


@pytest.fixture
def slow_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that takes a while to import."""
    name = f"slow_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SLOW_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_threads_import_a_module_once(slow_module: str) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(late(slow_module).answer)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [42] * 4
    assert not late_imports._importing


INTERRUPTED_MODULE = """
import signal
signal.raise_signal(signal.SIGINT)
answer = 42
"""


def test_an_interruption_waits_for_the_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module has entered somewhere by then would be in the way of its next import."""
    (tmp_path / "interrupted_module.py").write_text(INTERRUPTED_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        late("interrupted_module")
    assert signal.getsignal(signal.SIGINT) is before
    assert sys.modules["interrupted_module"].answer == 42


def test_an_import_that_fails_is_over() -> None:
    with pytest.raises(ImportError):
        late("no_such_module_anywhere")
    assert not late_imports._importing


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_imports_what_another_thread_was_importing(slow_module: str) -> None:
    """The module's lock, held in the parent by a thread that the child does not have, was held in it for ever."""
    thread = threading.Thread(target=late, args=(slow_module,))
    thread.start()
    while slow_module not in sys.modules:
        time.sleep(0.001)

    def imports() -> None:
        assert late(slow_module).answer == 42

    assert works_in_a_child(imports)
    thread.join()


def test_a_fork_waits_whatever_signal_handlers_raise(slow_module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 1:
            raise KeyboardInterrupt
        time.sleep(seconds)

    thread = threading.Thread(target=late, args=(slow_module,))
    thread.start()
    while slow_module not in sys.modules:
        time.sleep(0.001)
    monkeypatch.setattr(late_imports, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        late_imports.wait_for_imports()
    assert len(naps) > 1 and not late_imports.others_import()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_loses_patience_with_an_import(slow_module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may wait for what the thread that forks holds. The child has forgotten of it."""
    monkeypatch.setattr(late_imports, "_PATIENCE_SECONDS", 0.01)
    thread = threading.Thread(target=late, args=(slow_module,))
    thread.start()
    while slow_module not in sys.modules:
        time.sleep(0.001)

    def has_forgotten() -> None:
        assert not late_imports.others_import()

    assert works_in_a_child(has_forgotten)
    assert late_imports.others_import()
    thread.join()
