"""What the machine says about itself and about processes."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.connection import Connection

import numpy as np
import pytest

from benchmarks.machine import peak_growth, take_own_pages

MEGABYTES = 64


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_memory_that_is_given_back_counts() -> None:
    def use() -> None:
        np.ones(MEGABYTES << 20, np.int8)

    for _ in range(2):
        growth = peak_growth(use)
        if growth is None:
            pytest.skip("this system keeps the figures to itself")
        assert (MEGABYTES - 1) << 20 <= growth <= (MEGABYTES + 16) << 20  # counted in batches of pages
    assert (peak_growth(lambda: None) or 0) < MEGABYTES << 18


PAGE_BYTES = 4096


def _write_everywhere(memory: np.ndarray, answer: Connection, is_own: bool) -> None:
    resource = pytest.importorskip("resource")
    if is_own:
        take_own_pages()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    memory[::PAGE_BYTES] += 1
    answer.send(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
def test_a_forked_process_that_owns_its_pages_copies_none() -> None:
    memory = np.ones(16 << 20, np.int8)
    context = multiprocessing.get_context("fork")
    faults = {}
    for is_own in (False, True):
        ours, theirs = context.Pipe()
        process = context.Process(target=_write_everywhere, args=(memory, theirs, is_own))
        process.start()
        faults[is_own] = ours.recv()
        process.join()
    if faults[False] < 8:
        pytest.skip("pages are so large here that there is nothing to tell")
    assert faults[True] < faults[False] / 4
