"""Runs vector math on arrays, and measures errors in units of the last place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np

from tests.support.accuracy_cases import Case
from tests.support.irlab import HAS_FMA, NATIVE_FEATURES, Compiled
from xlapy.codegen.ir import I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.math import MATH
from xlapy.codegen.target import host_target

DTYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
VECTOR_LANES = {"f32": 8, "f64": 4}
PLAIN_FEATURES = ",".join(f"-{name}" for name in ("fma", "fma4", "avx512f"))


@functools.cache
def compiled(function: Callable[..., Value], arity: int, kind: str, lanes: int, has_fma: bool) -> Compiled:
    """A loop that applies `function` to arrays of a size that `lanes` divides."""
    host = host_target()
    module = Module.of(host) if has_fma else Module()
    write_loop(module, "f", function, arity, IRType(kind, lanes))
    return Compiled(module.text(), features=NATIVE_FEATURES if has_fma else f"{NATIVE_FEATURES},{PLAIN_FEATURES}")


def write_loop(module: Module, name: str, function: Callable[..., Value], arity: int, type: IRType) -> None:
    """A function of addresses, of the arguments and of the result, and of their size, which the lanes divide."""
    inputs = [f"x{i}" for i in range(arity)]
    with (
        KernelBuilder(module, name, [*((place, PTR) for place in inputs), ("y", PTR), ("n", I64)], None) as k,
        k.loop(0, k.parameters["n"], type.lanes) as loop,
    ):
        values = [k.load(k.gep(k.parameters[place], loop.index, type.bytes), type) for place in inputs]
        k.store(k.gep(k.parameters["y"], loop.index, type.bytes), function(k, *values))


def apply(
    function: str | Callable[..., Value],
    *arrays: np.ndarray,
    lanes: int | None = None,
    has_fma: bool = HAS_FMA,
) -> np.ndarray:
    """`function` of arrays of one dtype, through vectors of the usual width or of `lanes`."""
    kind = "f32" if arrays[0].dtype == np.float32 else "f64"
    lanes = lanes or VECTOR_LANES[kind]
    size = arrays[0].size
    padded = [filled_up(array, lanes) for array in arrays]
    result = np.empty_like(padded[0])
    emit = MATH[function] if isinstance(function, str) else function
    compiled(emit, len(arrays), kind, lanes, has_fma).call("f", *padded, result, result.size)
    return result[:size]


def filled_up(array: np.ndarray, lanes: int) -> np.ndarray:
    """`array` with ones behind it, up to a multiple of `lanes`."""
    return np.concatenate([np.ascontiguousarray(array), np.ones(-array.size % lanes, array.dtype)])


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distances in ulp of the correctly rounded result; infinite where exactly one is NaN or infinite.

    They are found in the type of the exact results, which is wider."""
    dtype = got.dtype
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        unit = np.spacing(np.abs(rounded)).astype(exact.dtype)
        distance = np.abs(got.astype(exact.dtype) - exact) / unit
    special = ~np.isfinite(rounded) | ~np.isfinite(got)
    # An overflow one ulp early is an error of that ulp, not an infinite one.
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(special, np.where(same, 0.0, np.inf), distance).astype(np.float64)


def exact_values(function: Callable[..., object], *arrays: np.ndarray) -> np.ndarray:
    """mpmath's value of each element, to the precision of a long double."""
    with mp.workprec(160):
        return np.array(
            [_as_longdouble(function(*(mp.mpf(float(v)) for v in row))) for row in zip(*arrays, strict=True)],
            np.longdouble,
        )


def _as_longdouble(value: object) -> np.longdouble:
    """Two doubles' worth of an mpmath number, scaled so that subnormals keep their digits."""
    number = mp.mpf(value)  # type: ignore[no-untyped-call]
    if not mp.isfinite(number) or number == 0:
        return np.longdouble(float(number))
    mantissa, exponent = mp.frexp(number)
    high = float(mantissa)
    low = float(mantissa - mp.mpf(high))
    return np.ldexp(np.longdouble(high) + np.longdouble(low), int(exponent))


def stratified(kind: str, count: int, low: float = -np.inf, high: float = np.inf, seed: int = 0) -> np.ndarray:
    """Numbers of [low, high]: all exponents alike, then evenly spread ones, then the neighbours of the ends."""
    dtype = DTYPES[kind]
    random = np.random.default_rng(seed)
    integer = np.dtype(f"i{dtype.itemsize}")
    limits = np.iinfo(integer)
    info = np.finfo(dtype)
    lowest, highest = max(low, float(info.min)), min(high, float(info.max))
    bits = random.integers(limits.min, limits.max, 3 * count, dtype=integer).view(dtype)
    with np.errstate(invalid="ignore"):
        inside = bits[np.isfinite(bits) & (bits >= lowest) & (bits <= highest)][:count]
    moderate_low, moderate_high = max(lowest, -200.0), min(highest, 200.0)
    parts = [inside, random.uniform(moderate_low, moderate_high, count).astype(dtype)]
    signs = [s for s in (-1.0, 1.0) if (lowest < 0 if s < 0 else highest > 0)]
    for sign in signs:
        span = 10.0 ** random.uniform(-6, 2.3, count // 2) * sign
        parts.append(span.astype(dtype))
    result = np.concatenate(parts)
    return result[(result >= lowest) & (result <= highest)]


def sample(case: Case, kind: str, count: int, seed: int = 0) -> list[np.ndarray]:
    """Arguments for a case: all magnitudes, and moderate ones more often; without poles and trivial overflows."""
    x = stratified(kind, count, case.low, case.high, seed)
    if case.arity == 1:
        return [x[x != 0]]
    y = stratified(kind, count, seed=seed + 1)
    size = min(x.size, y.size)
    random = np.random.default_rng(seed + 2)
    x, y = random.permutation(x)[:size], random.permutation(y)[:size]
    if case.name == "power":
        # Half of the exponents such that the result is in range.
        with np.errstate(all="ignore"):
            fitting = random.uniform(-1, 1, size) * {"f32": 88.0, "f64": 708.0}[kind] / np.log(x.astype(np.float64))
        y = np.where(random.random(size) < 0.7, fitting, y).astype(y.dtype)
        with np.errstate(all="ignore"):
            keep = np.abs(np.log(x.astype(np.float64)) * y) < 800
        return [x[keep], y[keep]]
    return [x[y != 0], y[y != 0]]


def check(case: Case, kind: str, inputs: Sequence[np.ndarray], exact: np.ndarray, got: np.ndarray) -> None:
    """Asserts that results are within the case's bounds."""
    bound = case.bound[list(DTYPES).index(kind)]
    if case.floor:
        close = np.abs(got - exact) <= case.floor * np.maximum(1, np.abs(exact))
        with np.errstate(over="ignore"):
            got = np.where(close, exact.astype(got.dtype), got)
    error, where = worst(got, exact, inputs)
    assert error <= bound, f"{case.name} {kind}: {error:.3f} ulp at {where}"


def worst(got: np.ndarray, exact: np.ndarray, inputs: Sequence[np.ndarray]) -> tuple[float, str]:
    """The largest error and where it is."""
    all_errors = errors(got, exact)
    at = int(np.argmax(all_errors))
    where = ", ".join(repr(float(array[at])) for array in inputs)
    return float(all_errors[at]), f"({where}) -> {got[at]!r}, exactly {exact[at]!r}"
