"""The Fourier transform library against scipy: every kind and length, on every instruction set, within its memory."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.fft

from tests.support.guarded_memory import GuardedRoom
from tests.support.shared_cache import shared_cache
from tests.support.targets import lesser_targets
from xlapy.codegen.fourier_transforms import FourierPass, passes_of
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.kernels.loop import power_of_two_below
from xlapy.codegen.libraries.fft import FFT_LIBRARIES
from xlapy.codegen.libraries.fft_record import FETCHED_LINES, PASS_NUMBERS, STEP_NUMBERS
from xlapy.codegen.pool import POOL
from xlapy.codegen.target import host_target
from xlapy.hlo.attributes import FftType
from xlapy.hlo.shape import Shape
from xlapy_runtime import threads
from xlapy_runtime.linking import LinkedCode, link

Array = np.ndarray[Any, Any]

RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 6)
TRANSFORMS: dict[FftType, Callable[..., Any]] = {
    FftType.FFT: scipy.fft.fftn,
    FftType.IFFT: scipy.fft.ifftn,
    FftType.RFFT: scipy.fft.rfftn,
    FftType.IRFFT: scipy.fft.irfftn,
}
WORST_ERROR = 6  # units of the last place of the largest element
TARGETS = {"host": host_target(), **lesser_targets()}
ROOM = 3 << 20


@functools.cache
def linked(kind: str, target: str) -> LinkedCode:
    threads.install(POOL.objects(host_target(), shared_cache()))
    library = FFT_LIBRARIES[kind]
    return link(library.objects(TARGETS[target], shared_cache()), {}, library.exports)


@functools.cache
def rooms() -> dict[str, GuardedRoom]:
    return {name: GuardedRoom(ROOM) for name in ("operand", "result", "shared", "memory")}


def random_operand(kind: FftType, shape: tuple[int, ...], *, double: bool) -> Array:
    generator = np.random.default_rng(shape[-1])
    if kind is FftType.RFFT:
        return generator.normal(size=shape).astype(np.float64 if double else np.float32)
    if kind is FftType.IRFFT:
        shape = (*shape[:-1], shape[-1] // 2 + 1)
    values = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    return values.astype(np.complex128 if double else np.complex64)


def transform(
    kind: FftType, operand: Array, lengths: Sequence[int], target: str = "host", *, num_threads: int = 1, at_end: bool
) -> Array:
    """Runs the passes in memory that ends the process if more than it is touched, and that holds nothing useful."""
    dims = [*operand.shape[: -len(lengths)], *lengths]
    if kind is FftType.RFFT:
        dims[-1] = dims[-1] // 2 + 1
    double = operand.dtype.itemsize == (8 if kind is FftType.RFFT else 16)
    real, pairs = (np.float64, np.complex128) if double else (np.float32, np.complex64)
    result = np.full(dims, np.nan, real if kind is FftType.IRFFT else pairs)
    passes = passes_of(kind, tuple(lengths), Shape.of(operand), Shape.of(result), TARGETS[target])
    memory = np.full(max(each.memory_bytes for each in passes) // real().nbytes, np.nan, real)
    arrays = {"operand": operand, "result": result, "shared": operand * np.nan, "memory": memory}
    arrays = {name: rooms()[name].array(array, at_end=at_end) for name, array in arrays.items()}
    for each in passes:
        run_pass(each, arrays, linked(each.kind, target), num_threads)
    assert arrays["operand"].tobytes() == operand.tobytes()
    return arrays["result"]


def run_pass(each: FourierPass, arrays: dict[str, Array], code: LinkedCode, num_threads: int) -> None:
    tables = each.composed()
    sides = [arrays[side.array].ctypes.data for side in (each.operand, each.result)]
    places = [*sides, arrays["memory"].ctypes.data, *(table.ctypes.data for table in tables)]
    RUN(code.address(f"fft_{each.kind}_run"))(threads.parallel_address(num_threads), *places)


def check(kind: FftType, shape: tuple[int, ...], count: int, target: str, *, double: bool, at_end: bool) -> None:
    operand = random_operand(kind, shape, double=double)
    lengths = shape[len(shape) - count :]
    found = transform(kind, operand, lengths, target, at_end=at_end)
    wide = operand.astype(np.complex128 if np.iscomplexobj(operand) else np.float64)
    expected = TRANSFORMS[kind](wide, s=lengths, axes=range(-count, 0))
    error = np.abs(found - expected).max() / np.abs(expected).max() / np.finfo(found.dtype).eps
    assert error <= WORST_ERROR, (kind, shape, count, double, error)


BATCHES = (1, 3, 16, 37)
LENGTHS = (
    *range(1, 34),
    36,
    40,
    49,
    60,
    64,
    77,
    96,
    97,
    100,
    114,
    121,
    127,
    128,
    153,
    169,
    240,
    256,
    257,
    289,
    300,
    343,
    361,
    392,
    437,
    512,
    1000,
)
SHAPES = ((2, 12, 1), (5, 6, 3), (33, 20, 7), (2, 13, 70), (4, 4, 8), (3, 19, 34), (2, 100, 3), (2, 97, 5), (3, 1, 4))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", TRANSFORMS)
def test_lengths(kind: FftType, target: str) -> None:
    """Batches that fill vectors and others; both sides of the memory are watched in turns."""
    for number, length in enumerate(LENGTHS):
        double = bool(number & 1) ^ kind.value.startswith("I")
        check(kind, (BATCHES[number % len(BATCHES)], length), 1, target, double=double, at_end=number % 3 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRANSFORMS)
def test_all_lengths(kind: FftType) -> None:
    for length in range(1, 520):
        for batch in (1, 40):
            check(kind, (batch, length), 1, "host", double=bool(length & 1) ^ (batch > 1), at_end=length % 3 == 0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", TRANSFORMS)
def test_dimensions(kind: FftType, target: str) -> None:
    for number, shape in enumerate(SHAPES):
        for count in (2, 3):
            check(kind, shape, count, target, double=number % 2 == count % 2, at_end=number % 2 == 0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(512, 40), (1024, 29), (100, 70)])
def test_units_leave_the_columns_beside_them_alone(shape: tuple[int, int], target: str) -> None:
    """What is left of a vector when columns are cut into units."""
    for double in (False, True):
        check(FftType.FFT, shape, 2, target, double=double, at_end=double)


def test_threads_do_not_change_a_bit() -> None:
    for kind, shape, count in (
        (FftType.FFT, (300, 256), 2),
        (FftType.RFFT, (64, 2000), 1),
        (FftType.IRFFT, (20, 33, 90), 3),
        (FftType.IFFT, (5000, 12), 1),
        (FftType.FFT, (30, 1009), 1),
        (FftType.FFT, (12, 8192), 1),
        (FftType.FFT, (700, 90), 2),
    ):
        operand = random_operand(kind, shape, double=False)
        lengths = shape[len(shape) - count :]
        alone = transform(kind, operand, lengths, at_end=True).tobytes()
        for num_threads in (2, 3, 8):
            shared = transform(kind, operand, lengths, num_threads=num_threads, at_end=True)
            assert shared.tobytes() == alone


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_stored_past_the_caches_has_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, target: str, *, double: bool
) -> None:
    """The rows of half a spectrum begin anywhere in a line."""
    for kind, shape in itertools.product(TRANSFORMS, [(3, 512), (11, 1000), (9, 1024), (2, 4096)]):
        operand, found = random_operand(kind, shape, double=double), set()
        for streams, at_end in itertools.product([False, True], repeat=2):
            monkeypatch.setattr(FourierPass, "streams", streams)
            found.add(transform(kind, operand, shape[1:], target, at_end=at_end).tobytes())
        assert len(found) == 1, (kind, shape)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_rounds_have_the_same_bits(monkeypatch: pytest.MonkeyPatch, target: str, *, double: bool) -> None:
    """Rows and columns for which the first-level cache is too small, in parts and stage by stage."""
    whole = FourierPass.block.fget
    assert whole is not None
    for kind, shape, count in (
        (FftType.FFT, (2, 16384), 1),
        (FftType.RFFT, (1, 15000), 1),
        (FftType.FFT, (1, 4099), 1),
        (FftType.IFFT, (3, 3125), 1),
        (FftType.FFT, (1000, 37), 2),
        (FftType.IRFFT, (1024, 60), 2),
    ):
        operand, found = random_operand(kind, shape, double=double), set()
        lengths = shape[len(shape) - count :]
        for without, at_end in itertools.product([False, True], repeat=2):
            with monkeypatch.context() as patch:
                if without:
                    patch.setattr(FourierPass, "block", property(lambda each: replace(whole(each), near=0)))
                found.add(transform(kind, operand, lengths, target, at_end=at_end).tobytes())
        assert len(found) == 1, (kind, shape)


def fetched_by_steps(shape: tuple[int, int]) -> tuple[int, list[dict[str, int]]]:
    """How many units ahead a pass of complex numbers fetches, and the numbers of its steps."""
    (each,) = passes_of(FftType.FFT, shape[-1:], *[Shape.of(np.empty(shape, np.complex64))] * 2, host_target())
    numbers = each.composed()[1].tolist()
    rest = numbers[len(PASS_NUMBERS) :]
    steps = [rest[begin : begin + len(STEP_NUMBERS)] for begin in range(0, len(rest), len(STEP_NUMBERS))]
    named = [dict(zip(STEP_NUMBERS, step, strict=True)) for step in steps]
    return numbers[PASS_NUMBERS.index("ahead")], named


def test_vectors_fetch_the_next_of_long_rows() -> None:
    """Those of all stages together the whole row, each a piece of its own."""
    length = power_of_two_below(host_target().l1_bytes // 8)
    ahead, steps = fetched_by_steps((host_target().l2_bytes // length, length))
    assert ahead == 1
    assert all(0 < step["fetched_bytes"] <= FETCHED_LINES * CACHE_LINE for step in steps)
    begins = [step["fetched"] for step in steps]
    assert begins[0] == 0 and begins == sorted(set(begins)) and begins[-1] < 8 * length


@pytest.mark.parametrize("shape", [(2, 4096), (20000, 64)])
def test_vectors_fetch_nothing_of_what_a_cache_holds_and_of_short_rows(shape: tuple[int, int]) -> None:
    _, steps = fetched_by_steps(shape)
    assert not any(step["fetched_bytes"] for step in steps)
