"""Kernels of every family where faults show that others do not: beside heavy work, in loops, on several numbers of
threads, of arguments that lie anywhere, where nobody may write to them or read beside them.

`pytest -m slow tests/e2e/test_surroundings.py` runs many, for every instruction set that this machine has and for
caches of all sizes. A case that ever failed is kept with the tests of its kernel.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from tests.e2e.random_convolutions import (
    random_convolution,
    random_convolution_in_groups,
    random_gradient_of_images,
    random_gradient_of_kernel,
)
from tests.e2e.random_folds import random_fold, random_fold_in_two_steps
from tests.e2e.random_kernels import pick
from tests.e2e.random_moves import random_moves
from tests.e2e.random_orders import (
    random_elementwise,
    random_running_fold,
    random_sort,
    random_spectrum,
    random_table,
)
from tests.e2e.random_products import random_product, random_product_of_vectors
from tests.e2e.random_programs import random_program
from tests.e2e.random_structures import LARGE, SMALL
from tests.support import random_windows
from tests.support.close_results import TOLERANCES
from tests.support.surroundings import SURROUNDINGS, Case, check_cases
from tests.support.targets import lesser_targets
from xlapy.codegen.target import Target, host_target


def random_window(random: np.random.Generator) -> Case:
    """Windows that are folded, running ones, and choices in them that are scattered."""
    program = random_windows.RandomProgram(random)
    pick(random, (random_windows.add_window, random_windows.add_selection, random_windows.add_scan))(program)
    types = {argument.dtype.name for argument in program.arguments}
    return Case(
        f"windows of {types}",
        program.finished().module,
        program.arguments,
        max(TOLERANCES.get(name, 0) for name in types),
    )


def random_composition(random: np.random.Generator) -> Case:
    seed = int(random.integers(1 << 30))
    steps, scope = pick(random, ((15, SMALL), (15, SMALL), (10, LARGE)))
    program = random_program(seed, steps, scope)
    return Case(f"composition {seed} of {steps} steps", program.module, program.arguments)


FAMILIES: dict[str, tuple[int, Callable[[np.random.Generator], Case]]] = {
    "folds": (10, random_fold),
    "folds in two steps": (6, random_fold_in_two_steps),
    "products": (8, random_product),
    "products of vectors": (8, random_product_of_vectors),
    "convolutions": (4, random_convolution),
    "gradients of kernels": (4, random_gradient_of_kernel),
    "gradients of images": (4, random_gradient_of_images),
    "convolutions in groups": (6, random_convolution_in_groups),
    "moves": (8, random_moves),
    "elementwise": (6, random_elementwise),
    "windows": (4, random_window),
    "running folds": (4, random_running_fold),
    "sorts": (4, random_sort),
    "tables": (4, random_table),
    "spectra": (3, random_spectrum),
    "compositions": (1, random_composition),
}
"""How many cases one program has, and what makes one."""

SEEDS_PER_TEST = 10


def check(family: str, surrounding: str, seed: int, target: Target | None = None) -> None:
    count, make = FAMILIES[family]
    random = np.random.default_rng((seed, zlib.crc32(f"{family} {surrounding}".encode())))
    check_cases([make(random) for _ in range(count)], SURROUNDINGS[surrounding], random, target)


ALONE_TOO = ("folds", "products of vectors")
"""Families that read arrays in other ways where they begin elsewhere."""

SOME = [(f, s) for f, s in itertools.product(FAMILIES, SURROUNDINGS) if s != "alone" or f in ALONE_TOO]
"""Most other tests run kernels alone."""


@pytest.mark.parametrize(("family", "surrounding"), SOME)
def test_some(family: str, surrounding: str) -> None:
    check(family, surrounding, seed=0)


TARGETS = [host_target(), *lesser_targets().values()]


def with_tiny_caches(target: Target) -> Target:
    """A machine whose caches hold next to nothing, as if arrays were large."""
    return dataclasses.replace(target, l1_bytes=1 << 12, l2_bytes=1 << 14, l3_bytes=1 << 16)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 201, SEEDS_PER_TEST))
@pytest.mark.parametrize("surrounding", SURROUNDINGS)
@pytest.mark.parametrize("family", FAMILIES)
def test_many(family: str, surrounding: str, first: int) -> None:
    """Every seed for another machine."""
    machines = [*TARGETS, with_tiny_caches(TARGETS[0])]
    for seed in range(first, first + SEEDS_PER_TEST):
        check(family, surrounding, seed, machines[seed % len(machines)])
