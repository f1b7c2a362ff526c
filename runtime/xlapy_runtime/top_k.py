"""`TopK`: what XLA calls on CPUs for the largest elements of each row. Its optimized programs name it.

    (f32[4,3], s32[4,3]) custom-call(f32[4,8] x), custom_call_target="TopK"

The order is total: -NaN, -inf ... -0, +0 ... +inf, NaN; of equal elements the first ones win.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlapy_runtime.custom_calls import BUILT_IN, Filling
from xlapy_runtime.errors import UnsupportedError

Array = np.ndarray[Any, Any]


def _fill(operands: Sequence[Array], results: Sequence[Array], **entries: Any) -> None:
    """`results` are the elements and their places, as many as the results have columns."""
    if len(operands) != 1 or len(results) != 2:
        raise UnsupportedError(f"TopK takes one array, and gives two: here are {len(operands)} and {len(results)}")
    rows = operands[0]
    count = results[0].shape[-1]
    places = np.argsort(~_ordered_bits(rows), axis=-1, kind="stable")[..., :count]
    np.copyto(results[0], np.take_along_axis(rows, places, -1))
    np.copyto(results[1], places, casting="same_kind")


def _ordered_bits(floats: Array) -> Array:
    """Integers that are in order as the floats are."""
    if floats.dtype.kind != "f" and floats.dtype.name != "bfloat16":
        raise UnsupportedError(f"TopK is for floats, and is given {floats.dtype}")
    bits = np.ascontiguousarray(floats).view(f"i{floats.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


BUILT_IN.register("TopK", Filling(_fill))
