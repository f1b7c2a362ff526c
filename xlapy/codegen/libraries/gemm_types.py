"""What a matrix product does with the elements of each type: how it reads, multiplies, adds and writes them.

    type      in memory    packed                 accumulated
    f32, f64  itself       itself                 itself, by fused multiply-add
    bf16 ...  its bits     f32                    f32, rounded once at the end       (all floats below 32 bits)
    s32, s64  itself       itself                 itself, modulo 2^bits
    s8, u8    8 bits       two of 16 bits in 32   s32                                (32 bits where not x86)
    amx_...   its bits     side by side in 32     s32 or f32, by the processor's matrix unit
    amx_f32   itself       three bf16 (planes)    f32, by the matrix unit, six products for each
    c64, c128 (re, im)     (re, im)               products with re and with im apart, combined at the end

A complex product is a real one in disguise: a row of A counts as two, its real and its imaginary parts; a row of B
and of C holds twice as many reals; and the two accumulators of a complex row are combined when they are stored.

A matrix unit (AMX of Intel's processors) multiplies whole tiles: 16 rows by 64 bytes along K. Products that suit it are
of types of their own there (`UNIT_TYPES`).

An f32 is the sum of three bf16, each the rest of those before it, rounded: three times 8 bits are its 24. Of the nine
products of two such sums the three smallest are left out, a 2^-23th of the whole at most and a 2^-26th on average, so
that six products of the unit make one of f32, as accurate as sums that are rounded at each step. That is exact as long
as no part is too small to be a normal number (`gemm_magnitudes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xlapy.codegen.ir import F32, F64, I8, I16, I32, I64, IRType, KernelBuilder, Value
from xlapy.codegen.narrow_floats import NARROW_FLOATS
from xlapy.codegen.target import Target
from xlapy.support.errors import InternalError
from xlapy_runtime.records import Record


class GemmType(Record):
    """One element type of a matrix product.

    `element` is one real of an operand in memory, `result` one of C; `packed` and `accumulator` are what tiles
    compute with. `pair` elements along K share a packed one, one, two or four; `parts` reals make an element.
    `narrow_float` names the format of floats that are widened to be packed.
    """

    name: str
    element: IRType
    result: IRType
    packed: IRType
    accumulator: IRType
    pair: int = 1
    parts: int = 1
    signed: bool = True
    narrow_float: str = ""
    unit: str = ""
    """The instruction by which the matrix unit multiplies, if that is to do so; and the bf16 as whose sum it takes
    each element, or one for the element as it is."""
    planes: int = 1

    @property
    def is_packed_in_memory(self) -> bool:
        """Whether tiles can read operands where they are."""
        return self.element == self.packed

    @property
    def accumulates_in_result(self) -> bool:
        """Whether partial sums may be kept in C."""
        return self.accumulator == self.result

    @property
    def pair_bits(self) -> int:
        """The logarithm of `pair`."""
        return self.pair.bit_length() - 1

    @property
    def speed(self) -> int:
        """About how many times as many multiplications as of f32 are made in the same time."""
        return max(self.pair * _SPEED_OF_UNIT // len(self.plane_products), 1) if self.unit else self.pair

    @property
    def plane_products(self) -> list[tuple[int, int]]:
        """Which planes of A and of B are multiplied, the least first: each follows one that it shares a side with."""
        return [(2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)] if self.planes == 3 else [(0, 0)]

    @property
    def steps_of_tile(self) -> int:
        """Packed steps, of all planes, for what a tile of the matrix unit holds along K."""
        return UNIT_STEPS * self.planes

    @property
    def plain_name(self) -> str:
        """The type that the processor computes without the unit."""
        return self.name.removeprefix(UNIT_PREFIX)

    def widen(self, k: KernelBuilder, raw: Value) -> Value:
        """Elements as they are in memory to elements of the packed type, one by one (not for pairs)."""
        if self.narrow_float:
            return NARROW_FLOATS[self.narrow_float].widen(k, raw)
        return raw if self.is_packed_in_memory else self._extend(k, raw, self.packed)

    def narrow(self, k: KernelBuilder, sums: Value) -> Value:
        """Accumulated values to what C holds, rounded to nearest, ties to even."""
        return sums if self.accumulates_in_result else NARROW_FLOATS[self.narrow_float].narrow(k, sums)

    def widen_pairs(self, k: KernelBuilder, first: Value, second: Value) -> Value:
        """Bytes of two consecutive k to packed pairs: the first in the low half."""
        lanes = first.type.lanes
        low, high = self._extend(k, first, I16.with_lanes(lanes)), self._extend(k, second, I16.with_lanes(lanes))
        return k.or_(k.zext(low, I32), k.shl(k.zext(high, I32), 16))

    def widen_adjacent(self, k: KernelBuilder, raw: Value) -> Value:
        """Bytes that follow each other along K to half as many packed pairs."""
        lanes = raw.type.lanes
        return k.bitcast(self._extend(k, raw, I16.with_lanes(lanes)), I32.with_lanes(lanes // 2))

    def _extend(self, k: KernelBuilder, raw: Value, type: IRType) -> Value:
        return k.sext(raw, type) if self.signed else k.zext(raw, type)

    def on(self, target: Target) -> GemmType:
        """The type as this machine computes it: without an instruction for pairs, bytes are widened to 32 bits."""
        if not self.unit:
            return self if target.is_x86 else replace(self, pair=1)
        if not self.is_on(target):
            raise InternalError(f"{target.cpu} has no matrix unit for products of {self.name}")
        bytes_of_plane = self.element.bytes if self.planes == 1 else BF16_BYTES
        return replace(self, packed=I32, pair=I32.bytes // bytes_of_plane)

    def is_on(self, target: Target) -> bool:
        """Whether the machine has what this type wants to be multiplied by."""
        return not self.unit or target.has(_FEATURES[self.unit])

    def multiply_add(self, k: KernelBuilder, target: Target, a: Value, b: Value, total: Value) -> Value:
        """total + a * b, lane by lane."""
        if self.pair == 2:
            return _add_pair_products(k, target, a, b, total)
        if self.accumulator.is_float:
            return k.muladd(a, b, total)
        return k.add(total, k.mul(a, b))


def _narrow_float_types() -> Iterator[GemmType]:
    """Products of narrow floats: rounded to their own type, and, under the name "..._f32", left as they are."""
    for name in NARROW_FLOATS:
        element = I16 if name in ("bf16", "f16") else I8
        yield GemmType(name, element, element, F32, F32, narrow_float=name)
        yield GemmType(f"{name}_f32", element, F32, F32, F32, narrow_float=name)


GEMM_TYPES = {
    kind.name: kind
    for kind in (
        GemmType("f32", F32, F32, F32, F32),
        GemmType("f64", F64, F64, F64, F64),
        GemmType("s8", I8, I32, I32, I32, pair=2),
        GemmType("u8", I8, I32, I32, I32, pair=2, signed=False),
        GemmType("s32", I32, I32, I32, I32),
        GemmType("s64", I64, I64, I64, I64),
        GemmType("c64", F32, F32, F32, F32, parts=2),
        GemmType("c128", F64, F64, F64, F64, parts=2),
        *_narrow_float_types(),
    )
}


UNIT_ROWS = 16
"""Of a tile of the matrix unit, and its columns of sums."""

UNIT_ROW_BYTES = 64
"""Of a row of a tile; of A, so many along K."""

UNIT_STEPS = UNIT_ROW_BYTES // I32.bytes
"""Packed steps along K that the unit makes at once."""

_FEATURES = {"tdpbssd": "amx-int8", "tdpbuud": "amx-int8", "tdpbf16ps": "amx-bf16"}
_SPEED_OF_UNIT = 8

UNIT_PREFIX = "amx_"
BF16_BYTES = 2

UNIT_TYPES = {
    f"{UNIT_PREFIX}{name}": replace(GEMM_TYPES[name], name=f"{UNIT_PREFIX}{name}", unit=unit, planes=planes)
    for name, unit, planes in (
        ("s8", "tdpbssd", 1),
        ("u8", "tdpbuud", 1),
        ("bf16", "tdpbf16ps", 1),
        ("bf16_f32", "tdpbf16ps", 1),
        ("f32", "tdpbf16ps", 3),
    )
}
"""Those of products that are left to the matrix unit where there is one."""

LIBRARY_TYPES = GEMM_TYPES | UNIT_TYPES
"""All for which there is a library of products of many rows."""


def unit_name(kind: str, target: Target) -> str | None:
    """The name of the type by which the target's matrix unit computes products of that name, if it does."""
    unit = UNIT_TYPES.get(UNIT_PREFIX + kind)
    return unit.name if unit is not None and unit.is_on(target) else None


def _add_pair_products(k: KernelBuilder, target: Target, a: Value, b: Value, total: Value) -> Value:
    """Adds both products of each pair. Products of bytes do not overflow, so the instructions differ in speed only."""
    lanes = total.type.lanes
    bits = 32 * lanes
    if target.has("avx512vnni") and (bits == 512 or target.has("avx512vl")):
        return _known(k.call(f"llvm.x86.avx512.vpdpwssd.{bits}", [total, a, b], total.type))
    multiply = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}[bits]
    halves = I16.with_lanes(2 * lanes)
    arguments = [k.bitcast(a, halves), k.bitcast(b, halves)]
    return k.add(total, _known(k.call(f"llvm.x86.{multiply}", arguments, total.type)))


def _known(value: Value | None) -> Value:
    assert value is not None
    return value
