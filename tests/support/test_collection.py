"""The garbage collector rests while text is read, and is afterwards as it was."""

from __future__ import annotations

import gc
import threading

import pytest

from xlapy import stablehlo
from xlapy.support.collection import paused_collection
from xlapy.support.errors import ParseError


def test_nested_pauses_end_together() -> None:
    assert gc.isenabled()
    with paused_collection():
        with paused_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    try:
        with paused_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_errors_end_a_pause() -> None:
    with pytest.raises(ParseError):
        stablehlo.parse("func.func @main(")
    assert gc.isenabled()


def test_threads_share_a_pause() -> None:
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        with paused_collection():
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=other)
    with paused_collection():
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    done.set()
    thread.join()
    assert gc.isenabled()
