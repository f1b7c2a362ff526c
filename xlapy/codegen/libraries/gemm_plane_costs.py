"""Which products of f32, which convolutions and gradients of kernels, take less time in planes (`gemm_types`)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from xlapy.codegen.libraries.gemm_pieces import LEAST_STEPS, MOST_PIECES
from xlapy.codegen.libraries.gemm_plane_gradient import FEW_IMAGES, LEAST_PIECES, MOST_SUMS
from xlapy.codegen.libraries.gemm_types import UNIT_ROWS, UNIT_STEPS
from xlapy.codegen.libraries.gemm_unit_columns import BYTES_IN_PLANES, MOST_OF_ALL_COLUMNS, MUCH_LARGER
from xlapy.codegen.libraries.gemm_unit_regions import FEATURES_OF_LINE
from xlapy.hlo.matrix_products import SPACES

_TIME_OF_MULTIPLICATIONS = {"plain": 1 / 75, "planes": 1 / 150}
_TIME_OF_ELEMENT = 0.4
_TIME_OF_KERNEL = {"all": 0.9, "own": 0.2}
"""In nanoseconds: of each multiplication; of each element of the array, to be looked at and split; and of the kernel,
all of which is split first, or by each thread its own part (Sapphire Rapids, windows of 1 by 1 to 5 by 5, 32 to 1280
features: what is said to take less time takes 0.3 to 0.97)."""

_TIME_OF_SUMS = {"unit": 0.15, "piece": 0.2, "result": 0.3}
"""In nanoseconds, of each element: for it to come and go in a unit, and to be added up and turned round (Sapphire
Rapids, windows of 3 by 3 and 5 by 5, 32 to 512 features)."""


_LEAST_SIDE = 112
_LEAST_STEPS = 64
_LEAST_WORK = 1 << 20
"""Rows and columns of a square product in planes, steps along K, and multiplications of one or a batch."""

_TIME_OF_PRODUCT = {"plain": 1 / 95, "planes": 1 / 180}
_TIME_OF_SPLIT = 0.15
"""In nanoseconds: of each multiplication of a product, and of each element that is split (Sapphire Rapids, one core:
128 by 64 by 128, and 128 by 128, take 0.75 of the time of multiply-adds in planes, 192 by 64 by 192 0.6, 256 by 256
0.56, 136 by 136 0.95, 64 by 768 by 768 0.7, eight of 512 by 64 by 512 0.5, of 512 by 512 by 64 0.9; 64 by 64 as long.
Two cores: 128 by 128 as long, 192 by 64 by 192 0.5, 256 by 256 0.55)."""


def suit_planes(sizes: Mapping[str, int]) -> bool:
    """Whether a product takes less time in planes, all tiles whole. Both sides are to have elements side by side."""
    m, n, depth, batches = (sizes[name] for name in ("m", "n", "k", "batches"))
    is_close = 1 in (sizes["a_row"], sizes["a_step"]) and 1 in (sizes["b_step"], sizes["b_column"])
    is_wide = m * n >= _LEAST_SIDE // 2 * (m + n)
    is_large = is_wide and depth >= _LEAST_STEPS and batches * m * n * depth >= _LEAST_WORK
    whole = _whole_tiles(m) * _whole_tiles(n) * _whole_tiles(depth)
    planes = whole * _TIME_OF_PRODUCT["planes"] + (m + n) * depth * _TIME_OF_SPLIT
    is_faster = planes < m * n * depth * _TIME_OF_PRODUCT["plain"]
    return is_close and is_large and is_faster and not sizes.get("accumulate", 0)


def suit_plane_regions(sizes: Mapping[str, int], windows: Mapping[str, int], cache_bytes: int) -> bool:
    """Whether a convolution takes less time in planes, all tiles whole, with a second-level cache of this size."""
    is_regular = windows["is_regular"] and not windows["follows_rows"] and not windows["has_few"]
    if not is_regular:
        return False
    features = windows["step_count3"]
    lines = -(-features // FEATURES_OF_LINE)
    m, n, depth = (sizes[name] for name in "mnk")
    rows, positions = windows["row_count2"], windows["row_count3"]
    whole = m // (rows * positions) * _whole_tiles(rows * _pitch_of_positions(windows, row="row", place="step"))
    whole_depth = depth // features * lines * FEATURES_OF_LINE
    regions = _pixels_of(windows) * lines * FEATURES_OF_LINE * BYTES_IN_PLANES
    least = regions if regions <= cache_bytes else MUCH_LARGER * cache_bytes
    is_own = whole_depth * _whole_tiles(n) * BYTES_IN_PLANES > least and n > MOST_OF_ALL_COLUMNS
    elements = _pixels_of(windows) * features * _TIME_OF_ELEMENT
    elements += depth * n * _TIME_OF_KERNEL["own" if is_own else "all"]
    planes = whole * _whole_tiles(n) * whole_depth * _TIME_OF_MULTIPLICATIONS["planes"] + elements
    return planes < _time_of_multiply_adds(sizes)


def suit_plane_gradient(sizes: Mapping[str, int], windows: Mapping[str, int]) -> bool:
    """Whether the gradient of a kernel takes less time in planes, all tiles whole."""
    is_gradient = windows["is_gradient"] and windows["follows_rows"] and sizes["batches"] == 1
    if not is_gradient or windows["row_count3"] % FEATURES_OF_LINE:
        return False
    m, n, depth = (sizes[name] for name in "mnk")
    images, rows = windows["step_count0"] * windows["step_count1"], windows["step_count2"]
    most = images if images >= FEW_IMAGES else depth // LEAST_STEPS
    pieces = max(min(MOST_SUMS // (m * n), MOST_PIECES, most), LEAST_PIECES)
    pitch = _pitch_of_positions(windows, row="step", place="row")
    units = max(images, pieces)
    steps = units * _whole_tiles(rows * images * pitch // units)
    elements = _pixels_of(windows) * windows["row_count3"] + depth * n
    sums = units * _TIME_OF_SUMS["unit"] + pieces * _TIME_OF_SUMS["piece"] + _TIME_OF_SUMS["result"]
    planes = steps * m * _whole_tiles(n) * _TIME_OF_MULTIPLICATIONS["planes"]
    planes += elements * _TIME_OF_ELEMENT + m * n * sums
    return planes < _time_of_multiply_adds(sizes)


def _time_of_multiply_adds(sizes: Mapping[str, int]) -> float:
    """In nanoseconds, of the same by the processor: its vectors are whole, too."""
    m, n, depth = (sizes[name] for name in "mnk")
    return m * -(-n // UNIT_STEPS) * UNIT_STEPS * depth * _TIME_OF_MULTIPLICATIONS["plain"]


def _pitch_of_positions(windows: Mapping[str, int], row: str, place: str) -> int:
    """From one row of positions to the next, those between them included; `row` and `place` are whose digits say where
    these are."""
    reach = abs(windows.get(f"{place}_move2_2", 0)) * (windows[f"{place}_count2"] - 1)
    return windows[f"{row}_count3"] + reach // max(windows.get(f"{row}_move2_3", 0), 1)


def _pixels_of(windows: Mapping[str, int]) -> int:
    """Of the array, all images together."""
    images = windows["row_count0"] if windows["is_regular"] else windows["step_count0"]
    return images * math.prod(windows[f"size{space}"] for space in range(SPACES))


def _whole_tiles(count: int) -> int:
    """Rows or columns of whole tiles."""
    side = 2 * UNIT_ROWS
    return -(-count // side) * side
