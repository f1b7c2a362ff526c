"""Writes docs/accuracy.md.

python -m tests.support.measure_accuracy > docs/accuracy.md
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks import machine
from tests.support.accuracy import apply, errors, exact_values, sample
from tests.support.accuracy_cases import CASES, Case
from tests.support.measure_speed import ELEMENTS, LARGEST, libm_time, our_time, xla_function, xla_time

PRECISE_COUNT = 600
QUICK_COUNT = {"f32": 560_000, "f64": 56_000}
KINDS = ("f32", "f64")

Comparison = tuple[list[np.ndarray], np.ndarray]
"""Arguments, and the exact results."""

INTRODUCTION = """\
# Accuracy and speed of the math functions

## Errors

Largest errors found, in units of the last place (ulp) of the correctly rounded result, over arguments of all
magnitudes: each cell is the worst of a comparison with 50 digits and, where numpy or scipy has the function in a wider
type, of a much larger one with that. "Without fma" is the code for processors that cannot multiply and add in one
instruction. XLA is measured on the same arguments, but for those where argument or result is subnormal, which it
flushes to zero; ∞ is a result that is infinite or NaN where the right one is not, or the other way round.

Subnormal numbers are kept, angles of any size are reduced exactly, and signed zeros, infinities and NaNs follow
IEEE 754. A lane of a vector and a scalar give the same bits. With `CompileOptions(flush_subnormals=True)` subnormal
results are zeros; no other result of these functions changes.

Written by `python -m tests.support.measure_accuracy`.

| function | f32 | without fma | XLA | f64 | without fma | XLA |
|---|---|---|---|---|---|---|"""

REMARKS = """\

Functions marked * have zeros that are not exact numbers. Close to those their error is absolute: at most
{floors} times the larger of 1 and the result; the numbers in the table are for results of at least 1.

- `igamma`, `igammac`: absolute error below 2e-13 (f64), relative error below 1e-10 for results that do not underflow.
- `igamma_grad_a`, `random_gamma_grad`: relative error below 1e-11 (f64).
- `regularized_incomplete_beta`: relative error below 1e-10 (f64) where neither it nor 1 minus it underflows.
- `zeta`: relative error below 1e-13, `polygamma`: below 1e-12 (f64).
- The f32 forms of all of these are the f64 ones, rounded, but for those of `zeta` and `polygamma`, which add up fewer
  terms and are within 0.6 ulp.
- `floor`, `ceil`, `round_nearest_afz`, `round_nearest_even`, `sign`, `next_after` and `remainder` are exact.
- `erf`, `erfc`, `exp`, `log`, `logistic` and `tanh` of bf16 take shorter polynomials; these and the other elementary
  functions of bf16 are within 0.51 ulp. Those of other narrow types are the f32 ones, rounded.
- `rsqrt`, and quotients within `erfc`, `log` and `tanh` of f64 and `tanh` of bf16, begin with what an instruction of
  AVX-512 estimates: `rsqrt` is within 1.05 ulp there (f64: 1 ulp). Last bits may differ where estimates do, between
  processors of two makers. Quotients and roots that programs ask for are correctly rounded everywhere.
- With AVX-512 `exp`, `log`, `log1p` and `logistic` take numbers from tables: they are within 1.15, 1.1, 1.3 and 1.6 ulp
  there.
- `log1p` of an f32 from 0 to 1 is a polynomial: within 1.5 ulp, without fma 1.8. Where a kernel computes that argument
  too, as e to the power of -|x| or by a logistic function, nothing else is computed; the bits are the same.
- Complex functions: errors relative to the absolute value of the result, in units of half an ulp of 1: at most 12, for
  `power` 64 times the size of its exponent."""

SPEED = """
## Speed

Nanoseconds per element on one core, for {elements} arguments at most {largest:g} from zero: the function alone, in
a loop over an array that fits a cache, less what a call for a few elements takes. libm is the C library, called once
for each element from a compiled loop; XLA is a jitted function. f32 functions that err by at most half an ulp compute
in f64. The quickest of several runs on {processor}.

| function | f32 | libm | XLA | f64 | libm | XLA |
|---|---|---|---|---|---|---|"""


def comparisons(case: Case, kind: str) -> list[Comparison]:
    """A few arguments with many digits, and many with a wider type where there is one."""
    inputs = sample(case, kind, PRECISE_COUNT)
    found = [(inputs, exact_values(case.exact, *inputs))]
    reference = case.wider(kind)
    if reference is not None:
        many = sample(case, kind, QUICK_COUNT[kind], seed=1)
        wider = np.float64 if kind == "f32" else np.longdouble
        with np.errstate(all="ignore"):
            found.append((many, reference(*(array.astype(wider) for array in many))))
    return found


def largest_error(case: Case, function: Callable[..., Any], compared: list[Comparison]) -> float:
    largest = 0.0
    for arguments, exact in compared:
        found = errors(np.asarray(function(*arguments)), exact)
        if case.floor:
            found = found[np.abs(exact) >= 1]
        largest = max(largest, float(found.max(initial=0)))
    return largest


def without_subnormals(compared: list[Comparison], kind: str) -> list[Comparison]:
    tiny = np.finfo(np.float32 if kind == "f32" else np.float64).tiny
    kept = []
    for arguments, exact in compared:
        normal = np.logical_and.reduce([(np.abs(array) >= tiny) | (array == 0) for array in (*arguments, exact)])
        kept.append(([array[normal] for array in arguments], exact[normal]))
    return kept


def error_cells(case: Case, kind: str) -> list[str]:
    compared = comparisons(case, kind)
    ours = [
        largest_error(case, lambda *a, fma=fma: apply(case.name, *a, has_fma=fma), compared) for fma in (True, False)
    ]
    xla = largest_error(case, xla_function(case.name), without_subnormals(compared, kind))
    return [_number(error) for error in (*ours, xla)]


def time_cells(case: Case, kind: str) -> list[str]:
    return [_number(time) for time in (our_time(case, kind), libm_time(case, kind), xla_time(case, kind))]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if np.isinf(value):
        return "∞"
    return f"{value:.2f}" if value < 1000 else f"{value:.0e}"


def main() -> None:
    machine.pin(min(os.sched_getaffinity(0)))
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    print(INTRODUCTION)
    for name, case in sorted(CASES.items()):
        cells = [cell for kind in KINDS for cell in error_cells(case, kind)]
        print(f"| `{name}`{' *' if case.floor else ''} | {' | '.join(cells)} |")
    print(REMARKS.format(floors=" and ".join(f"{c.floor} (`{n}`)" for n, c in CASES.items() if c.floor)))
    print(SPEED.format(elements=ELEMENTS, largest=LARGEST, processor=machine.describe()["processor"]))
    for name, case in sorted(CASES.items()):
        print(f"| `{name}` | {' | '.join(cell for kind in KINDS for cell in time_cells(case, kind))} |")


if __name__ == "__main__":
    main()
