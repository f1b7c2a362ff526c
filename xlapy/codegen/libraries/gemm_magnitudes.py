"""Whether both sides of a product of f32 can be multiplied in planes of bf16 (`gemm_types`), told by their magnitudes.

The matrix unit takes numbers too small to be normal for zeros, and a part of an element is up to 2^23 times smaller
than the element. So no part is lost if the last bit of the smallest element that is not zero is at least 2^-126. Of a
product what is smaller than that may be, by each of the six additions that make it: if it is 2^28 times as large, less
than a 2^-25th of it, which is no more than what its rounding makes of it. Nor may a part or a sum be too large, for an
infinity less another one is not what a product with an infinity is.

All elements are looked at before the product, by all threads. That takes a tenth of the time of a small product, and
less of larger ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xlapy.codegen.ir import F32, I32, I64, PTR, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy.codegen.libraries.gemm_problem import RANGE
from xlapy.codegen.libraries.gemm_record import Record, RecordValue
from xlapy_runtime import records

_LANES = 16
_VECTOR = F32.with_lanes(_LANES)
_BITS = I32.with_lanes(_LANES)

_MANTISSA_BITS = 23
_BIAS = 127
_NO_SIGN = 0x7FFFFFFF

_LEAST_EXPONENT = 1 + _MANTISSA_BITS
"""Biased, of a number whose last bit is a normal number; below, of two numbers together of whose product nothing that
counts is lost."""
_LEAST_OF_BOTH = 2 * _BIAS - 126 + 28

_MOST_EXPONENT = 253
"""Of a finite number that is finite when rounded to bf16; below, of two numbers of whose products 2^31 can be added."""
_MOST_OF_BOTH = 2 * _BIAS + 90

_TASK_ELEMENTS = 1 << 15

_NOTHING = (-1, 0)
"""The least magnitude and the largest one where there is none."""

SEEN_BYTES = len(_NOTHING) * I32.bytes
"""Of what a thread has seen."""

_SIDES = Record(
    **{
        f"{side}_{name}": PTR if name == "place" else I64
        for side in "ab"
        for name in (
            "place",
            "rows",  # in all, of all matrices
            "rows_of_matrix",
            "matrix",  # bytes from one to the next
            "row",
            "length",
            "step",
            "least",  # magnitude that is not zero, less one, as bits; and the largest one
            "most",
        )
    }
)
"""Each side as rows along which elements lie side by side, if there is such a dimension."""

_NAMES = {"a": ("m", "a_row", "a_step"), "b": ("n", "b_column", "b_step")}


def emit_magnitudes(module: Module, prefix: str, attributes: str) -> None:
    """Writes `PREFIX_magnitudes`: looks at a range of rows, those of A first."""
    with KernelBuilder(module, f"{prefix}_magnitudes", RANGE, None, attributes=attributes) as k:
        sides = _SIDES.at(k, k.parameters["problem"])
        begin, end, of_a = k.parameters["begin"], k.parameters["end"], sides["a_rows"]
        _look_at_rows(k, sides, "a", begin, k.smin(end, of_a))
        _look_at_rows(k, sides, "b", k.smax(k.sub(begin, of_a), 0), k.smax(k.sub(end, of_a), 0))


class Side(records.Record):
    """Elements of one side: `rows` of all matrices, `rows_of_matrix` each; `matrix`, `row` and `step` are bytes from
    one to the next, `length` the elements of a row."""

    place: Value
    rows: Value
    rows_of_matrix: Value
    matrix: Value
    row: Value
    length: Value
    step: Value


def fit_planes(k: KernelBuilder, prefix: str, parallel: Value, described: Mapping[str, Side]) -> Value:
    """Whether all elements of both sides fit, "a" and "b"."""
    sides = _SIDES.new(k)
    for side, fields in described.items():
        sides.set(**{f"{side}_{name}": getattr(fields, name) for name in fields.__match_args__})
        sides.set(**{f"{side}_least": (1 << 32) - 1, f"{side}_most": 0})
    count = k.add(sides["a_rows"], sides["b_rows"])
    longest = k.smax(k.smax(sides["a_length"], sides["b_length"]), 1)
    grain = k.smax(k.udiv(k.const(I64, _TASK_ELEMENTS), longest), 1)
    k.call(parallel, [k.function_pointer(f"{prefix}_magnitudes"), sides.place, count, grain])
    a, b = (_Exponents.of(k, sides[f"{side}_least"], sides[f"{side}_most"]) for side in _NAMES)
    return k.and_(k.and_(a.fit(k), b.fit(k)), _fit_together(k, a, b))


class _Exponents(records.Record):
    """Those of the smallest magnitude of a side, and of the largest."""

    least: Value
    most: Value

    @classmethod
    def of(cls, k: KernelBuilder, least: Value, most: Value) -> _Exponents:
        """`least` is a magnitude less one."""
        return cls(_exponent(k, k.add(least, 1)), _exponent(k, most))

    def fit(self, k: KernelBuilder) -> Value:
        """Whether elements are sums of planes."""
        return k.and_(k.compare("ge", self.least, _LEAST_EXPONENT), k.compare("le", self.most, _MOST_EXPONENT))


def _fit_together(k: KernelBuilder, a: _Exponents, b: _Exponents) -> Value:
    """Whether products of such elements can be made in planes."""
    loses_nothing = k.compare("ge", k.add(a.least, b.least), _LEAST_OF_BOTH)
    return k.and_(loses_nothing, k.compare("le", k.add(a.most, b.most), _MOST_OF_BOTH))


class SeenMagnitudes:
    """The magnitudes of what one function splits into planes, in registers until it is through."""

    def __init__(self, k: KernelBuilder) -> None:
        self._k = k
        self._places = [k.alloca(_BITS, align=CACHE_LINE) for _ in range(2)]
        for place, first in zip(self._places, _NOTHING, strict=True):
            k.store(place, k.const(_BITS, first))

    def look_at(self, elements: Value) -> None:
        """Some more elements."""
        k = self._k
        bits = k.bitcast(elements, _BITS) if elements.type.lanes > 1 else k.splat(k.bitcast(elements, I32), _LANES)
        known = [k.load(place, _BITS) for place in self._places]
        for place, value in zip(self._places, _widened(k, known, bits), strict=True):
            k.store(place, value)

    def tell(self, seen: Value) -> None:
        """Adds what was seen to what is at `seen`."""
        k = self._k
        for number, (combine, place) in enumerate(zip((k.umin, k.umax), self._places, strict=True)):
            at = k.gep(seen, number, I32.bytes)
            k.store(at, combine(k.load(at, I32), k.horizontal(combine, k.load(place, _BITS))))


class Seen:
    """Magnitudes that a thread has seen: the least one that is not zero, less one, and the largest one."""

    def __init__(self, k: KernelBuilder) -> None:
        self._k = k
        self.place = k.alloca(I32, 2)
        self.forget()

    def forget(self) -> None:
        """Nothing has been seen."""
        for number, bits in enumerate(_NOTHING):
            self._k.store(self._k.gep(self.place, number, I32.bytes), self._k.const(I32, bits))

    def tell(self, shared: RecordValue) -> None:
        """Adds it to the `least` and `most` of what all threads have seen."""
        k = self._k
        for name, operation, value in zip(("least", "most"), ("umin", "umax"), self._numbers(), strict=True):
            k.atomic_update(operation, shared.address(name), value, "monotonic")

    def fits_beside(self, shared: RecordValue) -> Value:
        """Whether this side, and that of which all threads have told, can be multiplied in planes."""
        k = self._k
        own, other = _Exponents.of(k, *self._numbers()), _Exponents.of(k, shared["least"], shared["most"])
        return k.and_(k.and_(own.fit(k), other.fit(k)), _fit_together(k, own, other))

    def _numbers(self) -> list[Value]:
        k = self._k
        return [k.zext(k.load(k.gep(self.place, number, I32.bytes), I32), I64) for number in range(2)]


def expect_magnitudes(shared: RecordValue) -> None:
    """Nothing of a side has been told yet."""
    shared.set(least=(1 << 32) - 1, most=0)


def are_sums_of_planes(k: KernelBuilder, shared: RecordValue) -> Value:
    """Whether all elements are of which threads have told."""
    return _Exponents.of(k, shared["least"], shared["most"]).fit(k)


def side_of(k: KernelBuilder, problem: RecordValue, side: str) -> Side:
    """A side of a product: what lies in memory as it is."""
    count, across, along = (problem[name] for name in _NAMES[side])
    is_along = k.compare("eq", along, F32.bytes)
    rows, row = k.select(is_along, count, problem["k"]), k.select(is_along, across, along)
    # Matrices that are the same are looked at once.
    matrices = k.select(k.compare("eq", problem[f"{side}_batch"], 0), 1, problem["batches"])
    return Side(
        place=problem[side],
        rows=k.mul(rows, matrices),
        rows_of_matrix=rows,
        matrix=problem[f"{side}_batch"],
        row=row,
        length=k.select(is_along, problem["k"], count),
        step=k.select(is_along, along, across),
    )


def _exponent(k: KernelBuilder, bits: Value) -> Value:
    """That of a magnitude, biased; large if there is no element but zeros."""
    return k.lshr(bits, _MANTISSA_BITS)


def _look_at_rows(k: KernelBuilder, sides: RecordValue, side: str, first: Value, last: Value) -> None:
    """Widens what is known of a side by a range of its rows."""
    length, step = sides[f"{side}_length"], sides[f"{side}_step"]
    is_contiguous = k.compare("eq", step, F32.bytes)
    in_vectors = k.select(is_contiguous, k.and_(length, -_LANES), 0)
    start = [k.const(_BITS, first) for first in _NOTHING]
    with k.if_(k.compare("lt", first, last)):
        with k.loop(first, last, carry=start) as rows:
            matrix = k.udiv(rows.index, sides[f"{side}_rows_of_matrix"])
            row = k.sub(rows.index, k.mul(matrix, sides[f"{side}_rows_of_matrix"]))
            place = k.gep(sides[f"{side}_place"], k.mul(matrix, sides[f"{side}_matrix"]))
            place = k.gep(place, k.mul(row, sides[f"{side}_row"]))
            with k.loop(0, in_vectors, _LANES, carry=rows.values) as vectors:
                vector = k.load(k.gep(place, vectors.index, F32.bytes), _VECTOR)
                vectors.next = _widened(k, vectors.values, k.bitcast(vector, _BITS))
            with k.loop(in_vectors, length, carry=vectors.results) as rest:
                element = k.load(k.gep(place, k.mul(rest.index, step)), F32)
                rest.next = _widened(k, rest.values, k.splat(k.bitcast(element, I32), _LANES))
            rows.next = rest.results
        for name, combine, value in zip(("least", "most"), (k.umin, k.umax), rows.results, strict=True):
            _combine(k, sides, f"{side}_{name}", combine, value)


def _widened(k: KernelBuilder, known: list[Value], bits: Value) -> list[Value]:
    """The least magnitude but zero, less one, so that zero is the largest number there is; and the largest one."""
    magnitude = k.and_(bits, _NO_SIGN)
    return [k.umin(known[0], k.sub(magnitude, 1)), k.umax(known[1], magnitude)]


def _combine(
    k: KernelBuilder, sides: RecordValue, name: str, combine: Callable[[Value, Value], Value], value: Value
) -> None:
    """Makes a field what it is together with all lanes of the value, which other threads may do as well."""
    operation, number = combine.__name__, k.zext(k.horizontal(combine, value), I64)
    k.atomic_update(operation, sides.address(name), number, "monotonic")
