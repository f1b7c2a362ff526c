"""Random chains over the rows, or the columns, or all of arrays whose dimensions are often equal: of values that
are dear to compute, read where they are and moved elsewhere, with values of rows and of columns, and folds in between.

Folds are maxima, so that results are exact.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from xlapy.hlo.shape import Dims

SIDES = (16, 17, 24, 31, 32)
TYPES = ("f32", "f32", "f64", "bf16", "s32")
MOST_OF_THREE = 17
"""The longest side of an array of three dimensions."""


class Chain:
    """The text of the program of a seed, and the shapes of its parameters."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.type = self.random.choice(TYPES)
        self.dims = self._dims()
        rank = len(self.dims)
        rows = [*itertools.combinations(range(rank), max(rank - 1, 1)), (rank - 1,), (rank - 1,)]
        self.folded = self.random.choice([*rows, (*range(rank),)])
        self.kept = [dim for dim in range(rank) if dim not in self.folded]
        self.lines: list[str] = []
        self.parameters: list[Dims] = [self.dims, *((size,) for size in self.dims)]
        self.vectors = {size: [f"p{number}"] for number, size in enumerate(self.dims, 1)}
        self.text = self._program()

    def _dims(self) -> Dims:
        side = self.random.choice(SIDES)
        dims = [side] * self.random.choice((1, 2, 2, 2, 3, 3))
        if self.random.random() < 0.3:
            dims[0] = self.random.choice((3, 16, 20))
        return tuple(min(size, MOST_OF_THREE) if len(dims) == 3 else size for size in dims)

    def _program(self) -> str:
        value = self._with_vector("p0") if self.random.random() < 0.6 else "p0"
        values = [self._dear(value, self.dims) if self.random.random() < 0.7 else value]
        for _ in range(self.random.randint(1, 2)):
            values.append(self._moved(self.random.choice(values)))
        for _ in range(self.random.randint(1, 3)):
            folded = self._folded(self.random.choice(values))
            made = self._add(self.dims, f"subtract({self.random.choice(values)}, {folded})")
            if self.random.random() < 0.6:
                made = self._add(self.dims, f"add({made}, {self.random.choice(values)})")
            if self.random.random() < 0.3:
                made = self._with_vector(self._dear(made, self.dims))
            values.append(made)
        given = (f"p{number} = {self._shape(dims)} parameter({number})" for number, dims in enumerate(self.parameters))
        scalar = f"{self.type}[]"
        lowest = "constant(-2147483648)" if self.type == "s32" else "constant(-inf)"
        return "\n".join(
            [
                f"max {{ a = {scalar} parameter(0)  b = {scalar} parameter(1)  ROOT c = {scalar} maximum(a, b) }}",
                "ENTRY main {",
                *given,
                f"low = {scalar} {lowest}",
                f"one = {scalar} constant(1)",
                *self.lines,
                f"ROOT result = {self._shape(self.dims)} copy({values[-1]})",
                "}",
            ]
        )

    def _shape(self, dims: Sequence[int]) -> str:
        return f"{self.type}[{','.join(map(str, dims))}]"

    def _add(self, dims: Sequence[int], op: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {self._shape(dims)} {op}")
        return name

    def _broadcast(self, value: str, dims: Sequence[int], places: Sequence[int]) -> str:
        return self._add(dims, f"broadcast({value}), dimensions={{{','.join(map(str, places))}}}")

    def _dear(self, value: str, dims: Sequence[int]) -> str:
        """Takes long to compute."""
        largest = self._add(dims, f"maximum({self._add(dims, f'abs({value})')}, {self._broadcast('one', dims, ())})")
        return self._add(dims, f"divide({self.random.choice([value, largest])}, {largest})")

    def _with_vector(self, value: str) -> str:
        """With something of each place along one dimension."""
        dim = self.random.randrange(len(self.dims))
        vectors = self.vectors[self.dims[dim]]
        vector = self.random.choice(vectors)
        if self.random.random() < 0.7:
            vector = self._dear(vector, [self.dims[dim]])
            vectors.append(vector)
        return self._add(self.dims, f"add({value}, {self._broadcast(vector, self.dims, [dim])})")

    def _folded(self, value: str) -> str:
        """The maxima of rows, or what is made from them, for all elements."""
        dims = [self.dims[dim] for dim in self.kept]
        folded = self._add(
            dims, f"reduce({value}, low), dimensions={{{','.join(map(str, self.folded))}}}, to_apply=max"
        )
        if self.random.random() < 0.3:
            folded = self._dear(folded, dims)
        if len(dims) == 1 and self.random.random() < 0.5:
            folded = self._add(dims, f"add({folded}, {self.random.choice(self.vectors[dims[0]])})")
        return self._broadcast(folded, self.dims, self.kept)

    def _moved(self, value: str) -> str:
        """The same elements elsewhere: reversed, transposed, or rolled around."""
        dim = self.random.randrange(len(self.dims))
        way = self.random.choice(("reverse", "transpose", "roll"))
        if way == "reverse":
            return self._add(self.dims, f"reverse({value}), dimensions={{{dim}}}")
        if way == "transpose":
            orders = itertools.permutations(range(len(self.dims)))
            order = self.random.choice([o for o in orders if tuple(self.dims[place] for place in o) == self.dims])
            return self._add(self.dims, f"transpose({value}), dimensions={{{','.join(map(str, order))}}}")
        cut = self.random.randint(1, self.dims[dim] - 1)
        parts = [self._cut(value, dim, cut, self.dims[dim]), self._cut(value, dim, 0, cut)]
        return self._add(self.dims, f"concatenate({', '.join(parts)}), dimensions={{{dim}}}")

    def _cut(self, value: str, dim: int, start: int, end: int) -> str:
        ranges = [(start, end) if place == dim else (0, size) for place, size in enumerate(self.dims)]
        bounds = ", ".join(f"[{low}:{high}]" for low, high in ranges)
        return self._add([high - low for low, high in ranges], f"slice({value}), slice={{{bounds}}}")
