"""What functions compute only if some lane needs it, in libraries: programs call it instead of each having a copy.

A cosine of f32 is 25 instructions for angles that are usual, and 150 for all others; LLVM would compile these again for
every cosine of every program. Operands and results pass through memory, which makes no difference to what is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.ir import I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.ir_memory import CACHE_LINE
from xlapy_runtime.records import Record

LANES_PER_STEP = 16
"""Lanes that are computed together, of functions that are rarely called."""


class RareFunction(Record):
    """A function from vectors to vectors, lane by lane, that is compiled once for all programs."""

    symbol: str
    library: str
    compute: Callable[..., Sequence[Value]]
    operands: tuple[IRType, ...]
    results: tuple[IRType, ...]
    lanes_per_step: int = LANES_PER_STEP  # of which operands and results have room for a multiple

    def call(self, k: KernelBuilder, *operands: Value) -> list[Value]:
        """The results for operands of any number of lanes.

        Slots that want to be aligned make LLVM align the frame, so that what it keeps there crosses no lines either."""
        self._require(k.module)
        lanes = operands[0].type.lanes
        room = -(-lanes // self.lanes_per_step) * self.lanes_per_step
        slots = [k.alloca(type.with_lanes(room), align=CACHE_LINE) for type in (*self.operands, *self.results)]
        for slot, operand in zip(slots, operands, strict=False):
            _fill(k, slot, operand, room)
        k.call(self.symbol, [*slots, k.const(I64, lanes)])
        places = zip(slots[len(operands) :], self.results, strict=True)
        return [k.load(slot, type.with_lanes(lanes)) for slot, type in places]

    def _require(self, module: Module) -> None:
        """Makes the function known to a module, which has a copy of its own if it is linked with no libraries."""
        if module.libraries is not None:
            module.libraries.add(self.library)
        elif not module.defines(self.symbol):
            self.define(module, linkage="internal")

    def define(self, module: Module, linkage: str = "", attributes: str = "") -> None:
        """Writes the function. It is given addresses, and how many lanes there are."""
        types = (*self.operands, *self.results)
        parameters = [*((f"p{number}", PTR) for number in range(len(types))), ("lanes", I64)]
        attributes = f"noinline nounwind {attributes}".rstrip()
        with (
            KernelBuilder(module, self.symbol, parameters, None, linkage, attributes) as k,
            k.loop(0, k.parameters["lanes"], self.lanes_per_step) as loop,
        ):
            places = [k.gep(k.parameters[f"p{number}"], loop.index, type.bytes) for number, type in enumerate(types)]
            loaded = [
                k.load(place, type.with_lanes(self.lanes_per_step))
                for place, type in zip(places, self.operands, strict=False)
            ]
            for place, value in zip(places[len(loaded) :], self.compute(k, *loaded), strict=True):
                k.store(place, value)


def _fill(k: KernelBuilder, slot: Value, operand: Value, room: int) -> None:
    """Stores the operand, again and again: nothing shall be rarer where it has no lanes.

    Not as one longer vector, if that can be helped: LLVM would keep the operand in a long register all the time."""
    lanes = operand.type.lanes
    if lanes > 1 and room % lanes == 0:
        for first in range(0, room, lanes):
            k.store(k.gep(slot, first, operand.type.element.bytes), operand)
        return
    repeated = [lane % lanes for lane in range(room)]
    k.store(slot, k.shuffle(operand, None, repeated) if lanes > 1 else k.splat(operand, room))
