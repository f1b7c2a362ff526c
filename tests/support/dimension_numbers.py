"""Random gathers and scatters: dimension numbers of every kind, and shapes that they fit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xlapy.hlo.attributes import GatherDimensionNumbers, ScatterDimensionNumbers


@dataclasses.dataclass(frozen=True)
class Windows:
    """Slices of `sizes` of an operand, one for each index vector, and how they lie in the array of all of them."""

    operand: tuple[int, ...]
    indices: tuple[int, ...]
    sizes: tuple[int, ...]
    window_dims: tuple[int, ...]
    all_windows: tuple[int, ...]
    gather: GatherDimensionNumbers

    @property
    def scatter(self) -> ScatterDimensionNumbers:
        """The same windows, written."""
        g = self.gather
        return ScatterDimensionNumbers(
            g.offset_dims,
            g.collapsed_slice_dims,
            g.start_index_map,
            g.index_vector_dim,
            g.operand_batching_dims,
            g.start_indices_batching_dims,
        )

    def random_indices(self, random: np.random.Generator, dtype: Any) -> np.ndarray[Any, Any]:
        """Most of them inside, some beyond either end."""
        low = -2 if np.dtype(dtype).kind == "i" else 0
        return random.integers(low, max(self.operand, default=1) + 2, self.indices).astype(dtype)


@st.composite
def windows(draw: st.DrawFn) -> Windows:
    rank = draw(st.integers(0, 4))
    operand = tuple(draw(st.integers(1, 5)) for _ in range(rank))
    roles = [draw(st.sampled_from(("window", "window", "collapsed", "batching"))) for _ in range(rank)]
    collapsed = tuple(dim for dim in range(rank) if roles[dim] == "collapsed")
    batching = tuple(dim for dim in range(rank) if roles[dim] == "batching")
    sizes = tuple(
        draw(st.integers(1, size)) if role == "window" else 1 for size, role in zip(operand, roles, strict=True)
    )
    mapped = [dim for dim in range(rank) if dim not in batching and draw(st.booleans())]
    start_index_map = tuple(draw(st.permutations(mapped)))
    free = [draw(st.integers(1, 4)) for _ in range(draw(st.integers(0, 2)))]
    batch = list(enumerate([None] * len(free) + list(batching)))
    shuffled = draw(st.permutations(batch))
    batch_sizes = [free[number] if dim is None else operand[dim] for number, dim in shuffled]
    places = {dim: place for place, (_, dim) in enumerate(shuffled) if dim is not None}
    index_vector_dim = draw(st.integers(0, len(batch_sizes)))
    implicit = len(start_index_map) == 1 and index_vector_dim == len(batch_sizes) and draw(st.booleans())
    indices = list(batch_sizes)
    if not implicit:
        indices.insert(index_vector_dim, len(start_index_map))
    axes = tuple(places[dim] + (places[dim] >= index_vector_dim) for dim in batching)
    window_rank = rank - len(collapsed) - len(batching)
    total = len(batch_sizes) + window_rank
    window_dims = tuple(sorted(draw(st.permutations(range(total)))[:window_rank]))
    kept = iter([size for dim, size in enumerate(sizes) if roles[dim] == "window"])
    rest = iter(batch_sizes)
    all_windows = tuple(next(kept) if dim in window_dims else next(rest) for dim in range(total))
    numbers = GatherDimensionNumbers(window_dims, collapsed, start_index_map, index_vector_dim, batching, axes)
    return Windows(operand, tuple(indices), sizes, window_dims, all_windows, numbers)
