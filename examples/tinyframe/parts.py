"""Parts of tensors: slices, rows chosen by number, tensors joined and reversed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from examples.tinyframe.backend import indexing, windows
from examples.tinyframe.tensor import Tensor, maximum, minimum


def part(x: Tensor, dimension: int, start: int, stop: int) -> Tensor:
    """The elements from `start` to `stop` along `dimension`."""
    place, size = dimension % x.rank, x.dims[dimension]
    handle = indexing.part(x.handle, place, start, stop)
    return Tensor(x.recorder, handle, (x,), lambda g: (_padded(g, place, start, size - stop),))


def _padded(x: Tensor, dimension: int, before: int, behind: int) -> Tensor:
    """Zeros around `x`."""
    handle = indexing.pad_with_zeros(x.handle, dimension, before, behind)
    stop = before + x.dims[dimension]
    return Tensor(x.recorder, handle, (x,), lambda g: (part(g, dimension, before, stop),))


def split(x: Tensor, dimension: int, count: int) -> list[Tensor]:
    """`count` parts of equal size."""
    size, rest = divmod(x.dims[dimension], count)
    if rest:
        raise ValueError(f"dimension {dimension} of {x} does not come apart in {count}")
    return [part(x, dimension, number * size, (number + 1) * size) for number in range(count)]


def concatenate(tensors: Sequence[Tensor], dimension: int) -> Tensor:
    """The tensors one behind the other along `dimension`."""
    first = tensors[0]
    place = dimension % first.rank
    handle = indexing.concatenate([tensor.handle for tensor in tensors], place)
    stops = [*itertools.accumulate((tensor.dims[place] for tensor in tensors), initial=0)]
    return Tensor(
        first.recorder,
        handle,
        tensors,
        lambda g: tuple(part(g, place, start, stop) for start, stop in itertools.pairwise(stops)),
    )


def reverse(x: Tensor, *dimensions: int) -> Tensor:
    handle = windows.reverse(x.handle, dimensions)
    return Tensor(x.recorder, handle, (x,), lambda g: (reverse(g, *dimensions),))


def take_rows(table: Tensor, numbers: Tensor) -> Tensor:
    """The rows of a matrix that `numbers` say, in their dims. A number outside counts as the nearest row's."""
    inside = minimum(maximum(numbers, 0), table.dims[0] - 1)
    handle = indexing.take_rows(table.handle, inside.handle)
    return Tensor(table.recorder, handle, (table,), lambda g: (_rows_added(g, inside, table),))


def _rows_added(rows: Tensor, numbers: Tensor, like: Tensor) -> Tensor:
    """A matrix of the dims of `like` that is zero but for `rows`, each added to the row of its number."""
    handle = indexing.add_rows(numbers.handle, rows.handle, like.dims)
    return Tensor(rows.recorder, handle, (rows,), lambda g: (take_rows(g, numbers),))
