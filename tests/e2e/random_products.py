"""Random products: of matrices of every type that lie either way, of vectors, and in batches, with something before
them and behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.e2e.random_kernels import Array, chance, error_of, pick, whole_numbers
from tests.support.native import record
from tests.support.surroundings import Case
from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.hlo import element_types as et
from xlapy.hlo.attributes import DotDimensionNumbers
from xlapy.hlo.element_types import ElementType

TYPES = (
    *([et.F32] * 5 + [et.F64] * 3 + [et.BF16] * 2 + [et.F16, et.S8, et.S8, et.U8]),
    *(et.S32, et.S16, et.S64, et.U32, et.C64, et.C128, et.F8E4M3FN, et.PRED),
)
WIDER = {et.BF16: et.F32, et.F16: et.F32, et.F8E4M3FN: et.F32, et.F32: et.F64, et.S8: et.S32, et.U8: et.U32}
SIZES = (
    *(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 23, 24, 25, 27, 28, 29, 31, 32, 33, 40, 47, 48, 49),
    *(63, 64, 65, 95, 96, 97, 127, 128, 129, 140, 160, 191, 192, 193, 200, 255, 256, 257, 300, 320, 384, 385, 511, 512),
    *(513, 576, 700, 768),
)
SMALL = 70
MOST = 10_000_000  # steps

FEW = (1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9)
LINES = (2, 4, 7, 8, 9, 15, 16, 17, 32, 40, 64)
BEYOND_LINES = (0, 0, 0, 0, 1, 3, -1)

BEFORE = ("nothing", "nothing", "nothing", "a doubled", "b negated", "a turned", "a cut", "b cut")
BEHIND = ("nothing", "nothing", "nothing", "added", "limited", "turned", "summed")


@dataclass(frozen=True)
class Product:
    """Of `a` and `b`, whose dimensions are `batch`, and what `a_form` and `b_form` say: rows (m) or columns (n) of the
    result, and steps (k)."""

    type: ElementType
    result: ElementType
    batch: tuple[int, ...]
    sizes: dict[str, int]
    a_form: str
    b_form: str
    before: str
    behind: str

    def dims(self, form: str) -> list[int]:
        return [*self.batch, *(self.sizes[name] for name in form)]

    @property
    def result_dims(self) -> list[int]:
        return self.dims((self.a_form + self.b_form).replace("k", ""))

    def parameter_dims(self, name: str, form: str) -> list[int]:
        """One more of what is cut off in front of the last dimension."""
        dims = self.dims(form)
        return [*dims[:-1], dims[-1] + 1] if self.before == f"{name} cut" else dims

    def __call__(self, a: XlaOp, b: XlaOp, c: XlaOp) -> XlaOp:
        a, b, a_form = self._prepared(a, b)
        rank = len(self.batch)
        batch = tuple(range(rank))
        numbers = DotDimensionNumbers((rank + a_form.index("k"),), (rank + self.b_form.index("k"),), batch, batch)
        return self._followed(ops.DotGeneral(a, b, numbers, preferred_element_type=self.result.dtype), c)

    def _prepared(self, a: XlaOp, b: XlaOp) -> tuple[XlaOp, XlaOp, str]:
        rank = len(self.batch)
        if self.before == "a doubled":
            a = ops.Or(a, a) if self.type.kind == "pred" else a + a
        if self.before == "b negated":
            b = ops.Not(b) if self.type.kind == "pred" else ops.Neg(b)
        if self.before == "a cut":
            a = ops.SliceInDim(a, 1, a.shape.dims[-1], 1, a.shape.rank - 1)
        if self.before == "b cut":
            b = ops.SliceInDim(b, 1, b.shape.dims[-1], 1, b.shape.rank - 1)
        if self.before == "a turned" and len(self.a_form) == 2:
            return ops.Transpose(a, (*range(rank), rank + 1, rank)), b, self.a_form[::-1]
        return a, b, self.a_form

    def _followed(self, product: XlaOp, c: XlaOp) -> XlaOp:
        rank = product.shape.rank
        if self.behind == "turned" and rank >= 2:
            return ops.Transpose(product, (*range(rank - 2), rank - 1, rank - 2))
        if self.result.kind == "pred":
            return product
        if self.behind == "added":
            return product + c
        if self.behind == "limited" and not self.result.is_complex:
            return ops.Max(product, c)
        if self.behind == "summed" and rank and not self.result.is_narrow_float:
            return ops.Reduce(product, np.zeros((), self.result.dtype), ops.Add, (rank - 1,))
        return product


def random_product(random: np.random.Generator) -> Case:
    """Of two matrices, or of vectors."""
    element_type = pick(random, TYPES)
    small = [chance(random, 0.5) for _ in range(3)]
    m, n, k = _within_work([_size(random, is_small) for is_small in small])
    batch = () if chance(random, 0.7) else (int(random.integers(1, 5)),)
    batch = batch if m * n * k * math.prod(batch) <= MOST else ()
    a_form, b_form = pick(random, ("mk", "mk", "km")), pick(random, ("kn", "kn", "nk"))
    if m == 1 and chance(random, 0.5):
        a_form = "k"
    if n == 1 and chance(random, 0.5):
        b_form = "k"
    return _case(random, element_type, batch, {"m": m, "n": n, "k": k}, a_form, b_form)


def random_product_of_vectors(random: np.random.Generator) -> Case:
    """Of a few rows, with about as many steps as fill a number of lines of memory."""
    element_type = pick(random, TYPES)
    m, n = pick(random, FEW), pick(random, SIZES[1:])
    steps = 64 // element_type.bytes * pick(random, LINES)
    m, n, k = _within_work([m, n, max(1, steps + pick(random, BEYOND_LINES))])
    a_form = "k" if m == 1 and chance(random, 0.6) else pick(random, ("mk", "mk", "km"))
    return _case(random, element_type, (), {"m": m, "n": n, "k": k}, a_form, pick(random, ("kn", "nk")))


def _case(
    random: np.random.Generator,
    element_type: ElementType,
    batch: tuple[int, ...],
    sizes: dict[str, int],
    a_form: str,
    b_form: str,
) -> Case:
    result = WIDER.get(element_type, element_type) if chance(random, 0.3) else element_type
    if chance(random, 0.3):  # the small side behind
        a_form, b_form, sizes = b_form.replace("n", "m"), a_form.replace("m", "n"), _exchanged(sizes)
    product = Product(element_type, result, batch, sizes, a_form, b_form, pick(random, BEFORE), pick(random, BEHIND))
    arguments: list[Array] = [
        whole_numbers(random, element_type, product.parameter_dims("a", a_form)),
        whole_numbers(random, element_type, product.parameter_dims("b", b_form)),
        whole_numbers(random, result, product.result_dims),
    ]
    error = max(error_of(element_type), error_of(result)) if result.is_narrow_float else 0
    return Case(str(product), record(product, *arguments), arguments, error)


def _exchanged(sizes: dict[str, int]) -> dict[str, int]:
    return {"m": sizes["n"], "n": sizes["m"], "k": sizes["k"]}


def _size(random: np.random.Generator, is_small: bool) -> int:
    size = int(random.integers(1, 600)) if chance(random, 0.3) else pick(random, SIZES)
    return min(size, SMALL) if is_small else size


def _within_work(sizes: Sequence[int]) -> Sequence[int]:
    while math.prod(sizes) > MOST:
        sizes = [max(1, size * 2 // 3) for size in sizes]
    return sizes
