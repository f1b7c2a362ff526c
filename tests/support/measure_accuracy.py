"""Writes docs/accuracy.md.

python -m tests.support.measure_accuracy > docs/accuracy.md
"""

from __future__ import annotations

import numpy as np

from tests.support.accuracy import apply, errors, exact_values, sample
from tests.support.accuracy_cases import CASES, Case

PRECISE_COUNT = 1500
QUICK_COUNT = {"f32": 400_000, "f64": 100_000}

INTRODUCTION = """\
# Accuracy of the math functions

Largest errors found, in units of the last place (ulp) of the correctly rounded result, over arguments of all
magnitudes: each cell is the worst of a comparison with 50 digits and, where numpy or scipy has the function in a wider
type, of a much larger one with that. "Without fma" is the code for processors that cannot multiply and add in one
instruction.

Subnormal numbers are kept, angles of any size are reduced exactly, and signed zeros, infinities and NaNs follow
IEEE 754. A lane of a vector and a scalar give the same bits.

Written by `python -m tests.support.measure_accuracy`.

| function | f32 | f32 without fma | f64 | f64 without fma |
|---|---|---|---|---|"""

REMARKS = """\

Functions marked * have zeros that are not exact numbers. Close to those their error is absolute: at most {floors}
times the larger of 1 and the result; the numbers in the table are for results of at least 1.

- `igamma`, `igammac`: absolute error below 2e-13 (f64), relative error below 1e-10 for results that do not underflow.
- `igamma_grad_a`, `random_gamma_grad`: relative error below 1e-11 (f64).
- `regularized_incomplete_beta`: relative error below 1e-10 (f64) where neither it nor 1 minus it underflows.
- `zeta`: relative error below 1e-13, `polygamma`: below 1e-12 (f64). The f32 forms
  of all of these are the f64 ones, rounded.
- `floor`, `ceil`, `round_nearest_afz`, `round_nearest_even`, `sign`, `next_after` and `remainder` are exact.
- Complex functions: errors relative to the absolute value of the result, in units of half an ulp of 1: at most 12, for
  `power` 64 times the size of its exponent."""


def largest_error(case: Case, kind: str, has_fma: bool) -> float:
    largest = 0.0
    inputs = sample(case, kind, PRECISE_COUNT)
    comparisons = [(inputs, exact_values(case.exact, *inputs))]
    reference = case.wider(kind)
    if reference is not None:
        many = sample(case, kind, QUICK_COUNT[kind], seed=1)
        wider = np.float64 if kind == "f32" else np.longdouble
        with np.errstate(all="ignore"):
            comparisons.append((many, reference(*(array.astype(wider) for array in many))))
    for arguments, exact in comparisons:
        found = errors(apply(case.name, *arguments, has_fma=has_fma), exact)
        if case.floor:
            found = found[np.abs(exact) >= 1]
        largest = max(largest, float(found.max()))
    return largest


def main() -> None:
    print(INTRODUCTION)
    for name, case in sorted(CASES.items()):
        cells = [f"{largest_error(case, kind, fma):.2f}" for kind in ("f32", "f64") for fma in (True, False)]
        print(f"| `{name}`{' *' if case.floor else ''} | {' | '.join(cells)} |")
    print(REMARKS.format(floors=" and ".join(f"{c.floor} (`{n}`)" for n, c in CASES.items() if c.floor)))


if __name__ == "__main__":
    main()
