"""What LAPACK is called with belongs together: it would write wherever it is told to."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xlapy
from xlapy import ArgumentError, UnsupportedError
from xlapy_runtime.custom_calls import BUILT_IN

LOWER = {"uplo": ord("L")}
VECTORS = {"mode": ord("V")}
SQUARE, THIN = {"mode": ord("A")}, {"mode": ord("S")}
RIGHT = {"side": ord("R"), "uplo": ord("L"), "trans_x": ord("N"), "diag": ord("N")}
EIGEN = {"compute_left": ord("V"), "compute_right": ord("V")}

WRONG: list[tuple[str, str, str, dict[str, Any], str]] = [
    # target       operands                results                        attributes           what is said
    ("sgetrf",     "f4 4 4",               "f4 2 2, i4 4, i4",            {},                  "s32[k]"),
    ("sgetrf",     "f4 4 4",               "f4 4 4, i4 3, i4",            {},                  "s32[3], s32[]"),
    ("sgetrf",     "f4 4 4",               "f4 4 4, i8 4, i4",            {},                  "s64[4]"),
    ("sgetrf",     "f4 4 4",               "f4 4 4, i4 4",                {},                  "f32[4,4], s32[4]"),
    ("sgetrf",     "f4 4 4, f4 4 4",       "f4 4 4, i4 4, i4",            {},                  "f32[4,4], f32[4,4] ->"),
    ("sgetrf",     "f4 2 4 4",             "f4 2 4 4, i4 2 4, i4 3",      {},                  "s32[3]"),
    ("sgetrf",     "f4 4",                 "f4 4, i4 4, i4",              {},                  "called as f32[4] ->"),
    ("sgetrf",     "f4",                   "f4, i4, i4",                  {},                  "called as f32[] ->"),
    ("sgetrf",     "f4 4 4",               "f4 4 4, i4 4, i4",            LOWER,               "attributes none"),
    ("spotrf",     "f4 3 4",               "f4 3 4, i4",                  LOWER,               "t[n,n]"),
    ("spotrf",     "f4 4 4",               "f4 4 4, i4",                  {},                  "is given none"),
    ("spotrf",     "f4 4 4",               "f4 4 4, i4",                  {"uplo": ord("X")},  "76 (L) or 85 (U)"),
    ("spotrf",     "f4 4 4",               "f4 4 4, i4",                  {"uplo": "L"},       "attribute uplo is 'L'"),
    ("ssyevd",     "f4 4 4",               "f4 4 4, f4 3, i4",            LOWER | VECTORS,     "real[n]"),
    ("cheevd",     "c8 4 4",               "c8 4 4, c8 4, i4",            LOWER | VECTORS,     "c64[4], s32[]"),
    ("sgeev",      "f4 4 4",               "f4 4, f4 4, c8 4 4, c8 1 1, i4", EIGEN,            "c64[1,1]"),
    ("sgesdd",     "f4 4 3",               "f4 4 3, f4 3, f4 4 3, f4 3 3, i4", SQUARE,         "u is m"),
    ("sgesdd",     "f4 4 3",               "f4 4 3, f4 3, f4 4 4, f4 3 3, i4", THIN,           "u is m"),
    ("sgesvd",     "f4 4 3",               "f4 4 3, f4 3, f4 4 4, f4 2 3, i4", SQUARE,         "f32[2,3]"),
    ("sorgqr",     "f4 4 4, f4 9",         "f4 4 4",                      {},                  "c is n at most"),
    ("sorgqr",     "f4 3 4, f4 3",         "f4 3 4",                      {},                  "n is m at most"),
    ("sormqr",     "f4 4 3, f4 3, f4 5 4", "f4 5 4", {"left": True, "transpose": False},       "r is m"),
    ("strsm",      "f4 4 4, f4 4 5",       "f4 4 5",                      RIGHT,               "from the right, n"),
    ("sgehrd",     "f4 4 4",               "f4 4 4, f4 3, i4",            {"low": -3, "high": 4}, "rows -3 to 4"),
    ("sgtsv",      "f4 4, f4 4, f4 4, f4 5 1", "f4 4, f4 4, f4 4, f4 5 1, i4", {},             "f32[5,1]"),
]  # fmt: skip


def arrays(text: str) -> list[np.ndarray]:
    parts = [part.split() for part in text.split(",")]
    return [np.ones(tuple(map(int, dims)), dtype) for dtype, *dims in parts]


def test_arrays_and_attributes_that_do_not_belong_together() -> None:
    for target, operands, results, entries, said in WRONG:
        with pytest.raises(ArgumentError, match=f"lapack_{target}_ffi.*{re.escape(said)}"):
            BUILT_IN[f"lapack_{target}_ffi"](arrays(operands), arrays(results), **entries)


def test_arrays_of_another_type() -> None:
    with pytest.raises(UnsupportedError, match="lapack_sgetrf_ffi is for matrices of float32, and is given int16"):
        BUILT_IN["lapack_sgetrf_ffi"](arrays("i2 4 4"), arrays("i2 4 4, i4 4, i4"))


def test_programs_that_give_too_little_room() -> None:
    """The program is as it was after that."""
    for call in ("f32[2,2], s32[90], s32[]", "f32[90,90], s32[3], s32[]"):
        target = 'custom_call_target="lapack_sgetrf_ffi", api_version=API_VERSION_TYPED_FFI'
        text = f"HloModule m\nENTRY main {{ x = f32[90,90] parameter(0)\n ROOT y = ({call}) custom-call(x), {target} }}"
        said = re.escape(f"called as f32[90,90] -> {call}")
        executable = xlapy.compile(text)
        for run in (executable, executable, lambda *given, text=text: xlapy.evaluate(text, *given)):
            with pytest.raises(ArgumentError, match=said):
                run(np.ones((90, 90), np.float32))
