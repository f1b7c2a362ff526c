"""The garbage collector rests while text is read, and is afterwards as it was."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from tests.support.forks import works_in_a_child
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_does_not_wait_for_the_threads_of_its_parent() -> None:
    """It never collected anything, if another thread compiled when it was forked."""
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        with paused_collection():
            inside.set()
            done.wait(10)

    def collects() -> None:
        assert gc.isenabled()
        with paused_collection():
            assert not gc.isenabled()
        assert gc.isenabled()

    def pauses() -> None:
        assert not gc.isenabled()

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    does_collect = works_in_a_child(collects)
    with paused_collection():
        does_pause = works_in_a_child(pauses)
    done.set()
    thread.join()
    assert does_collect and does_pause
    assert gc.isenabled()
