"""Where the complex numbers of a transform lie in memory, and how a vector of them is read and written.

A transform works on a block: rows are the positions along the transformed dimension, columns are transforms that are
computed together. The lanes of a vector run along the columns, or along the rows where a block has one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from xlapy.codegen.ir import I64, IRType, KernelBuilder, Operand, Value
from xlapy.codegen.kernels.butterflies import scaled
from xlapy.codegen.registers import Pair


@dataclass(frozen=True, slots=True)
class Place:
    """The first lane of a vector: its row and its column."""

    row: Operand
    column: Operand
    lanes: int


class View(Protocol):
    """A block of complex numbers."""

    def load(self, k: KernelBuilder, place: Place) -> Pair: ...

    def store(self, k: KernelBuilder, place: Place, value: Pair) -> None: ...


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers in memory: `parts` is 2 for complex ones, whose parts are neighbours, 1 for real ones."""

    pointer: Value
    type: IRType
    parts: int
    row_pitch: int
    column_pitch: int
    lanes_along_rows: bool

    def load(self, k: KernelBuilder, place: Place) -> Pair:
        real, *imag = self._load_parts(k, place)
        return Pair(real, imag[0] if imag else k.const(real.type, 0.0))

    def store(self, k: KernelBuilder, place: Place, value: Pair) -> None:
        parts = (value.re, value.im)[: self.parts]
        width, lanes = self.type.bytes, place.lanes
        pointer = k.gep(self.pointer, self._position(k, place), width * self.parts)
        parts = tuple(k.splat(part, lanes) for part in parts)
        if lanes == 1:
            for number, part in enumerate(parts):
                k.store(k.gep(pointer, number, width), part)
        elif self._step != 1:
            for number, part in enumerate(parts):
                k.scatter(k.gep(pointer, number, width), self._strides(k, lanes), part, element_bytes=width)
        elif len(parts) == 1:
            k.store(pointer, parts[0])
        else:
            order = [lane + lanes * part for lane in range(lanes) for part in range(2)]
            k.store(pointer, k.shuffle(parts[0], parts[1], order))

    def _load_parts(self, k: KernelBuilder, place: Place) -> list[Value]:
        width, lanes = self.type.bytes, place.lanes
        pointer = k.gep(self.pointer, self._position(k, place), width * self.parts)
        if lanes == 1:
            return [k.load(k.gep(pointer, part, width), self.type) for part in range(self.parts)]
        if self._step != 1:
            strides = self._strides(k, lanes)
            return [k.gather(k.gep(pointer, part, width), strides, self.type) for part in range(self.parts)]
        whole = k.load(pointer, self.type.with_lanes(lanes * self.parts))
        if self.parts == 1:
            return [whole]
        return [k.shuffle(whole, None, range(part, 2 * lanes, 2)) for part in range(2)]

    @property
    def _step(self) -> int:
        return self.row_pitch if self.lanes_along_rows else self.column_pitch

    def _strides(self, k: KernelBuilder, lanes: int) -> Value:
        return k.mul(k.lane_numbers(I64.with_lanes(lanes)), self._step * self.parts)

    def _position(self, k: KernelBuilder, place: Place) -> Value:
        row = k.mul(place.row, k.const(I64, self.row_pitch))
        return k.add(row, k.mul(place.column, k.const(I64, self.column_pitch)))


@dataclass(frozen=True, slots=True)
class Planes:
    """Scratch memory: all real parts, then all imaginary ones, each row after row of `width`."""

    real: Value
    imag: Value
    type: IRType
    width: int

    def load(self, k: KernelBuilder, place: Place) -> Pair:
        type = self.type.with_lanes(place.lanes)
        return Pair(k.load(self._at(k, self.real, place), type), k.load(self._at(k, self.imag, place), type))

    def store(self, k: KernelBuilder, place: Place, value: Pair) -> None:
        k.store(self._at(k, self.real, place), k.splat(value.re, place.lanes))
        k.store(self._at(k, self.imag, place), k.splat(value.im, place.lanes))

    def _at(self, k: KernelBuilder, plane: Value, place: Place) -> Value:
        position = k.add(k.mul(place.row, k.const(I64, self.width)), place.column)
        return k.gep(plane, position, self.type.bytes)


@dataclass(frozen=True, slots=True)
class Inverted:
    """The view of an inverse transform: real and imaginary parts exchanged, results multiplied by `scale`."""

    view: View
    scale: float = 1.0

    def load(self, k: KernelBuilder, place: Place) -> Pair:
        value = self.view.load(k, place)
        return Pair(value.im, value.re)

    def store(self, k: KernelBuilder, place: Place, value: Pair) -> None:
        self.view.store(k, place, scaled(k, Pair(value.im, value.re), self.scale))
