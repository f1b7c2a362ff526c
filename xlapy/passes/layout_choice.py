"""The choice of layouts, by cost, over the whole program.

    c = f32[4,28,28,64] convolution(x, k) ...                      c = f32[4,28,28,64] convolution(x, k) ...
    t = f32[4,64,28,28] transpose(c), dimensions={0,3,1,2}
    r = f32[4,64,28,28] tanh(t)                          becomes   r = f32[4,28,28,64] tanh(c)
    u = f32[4,28,28,64] transpose(r), dimensions={0,2,3,1}
    ROOT d = f32[4,28,28,64] convolution(u, k) ...                 ROOT d = f32[4,28,28,64] convolution(r, k) ...

Arrays stay row-major; what changes is which dimension is which. Entry parameters and results are what callers see and
keep their orders, so that copies stand there at most. What may lie in which order is said in `layouts/followers.py` and
`layouts/forms.py`, what that costs there and in `layouts/prices.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.passes.base import Pass, Record, program_computations
from xlapy.passes.layouts.choice import improve
from xlapy.passes.layouts.followers import wants_rows
from xlapy.passes.layouts.forms import wants_matrices, wants_neighbours
from xlapy.passes.layouts.prices import Prices
from xlapy.passes.layouts.rebuild import rebuild
from xlapy.passes.layouts.regions import find_regions, has_entry_layouts


@dataclass
class LayoutChoice(Pass):
    name: ClassVar[str] = "choose-layouts"

    keep_entry_layouts: bool = True
    least_bytes: int = 8 * 1024  # of a transpose that is worth a thought; smaller ones hide in other kernels

    def run(self, module: HloModule) -> bool:
        if not self._has_choice(module):
            return False
        named = [_name_results(computation) for computation in program_computations(module)]
        program = find_regions(module, self.keep_entry_layouts)
        prices = Prices(program)
        gains = improve(prices)
        for region, gain in gains.items():
            first = region.members[0]
            order = ",".join(map(str, region.order))
            saved = f": {gain:,.0f} bytes need not be moved" if gain else ""
            reason = f"{len(region.members)} arrays lie in the order {{{order}}}{saved}"
            self.records.append(Record.of(first, True, reason))
        put_in_order = [op for op in prices.ops.values() if _wants_order(op.instruction) and op.is_reordered()]
        for op in put_in_order:
            self.records.append(Record.of(op.instruction, True, "operands are put in the order of matrices"))
        if gains or put_in_order:
            rebuild(prices)
        return bool(gains or put_in_order or any(named))

    def _has_choice(self, module: HloModule) -> bool:
        """Something moves elements for the sake of an order, or would like another one as much as that, or callers have
        another one; else all is row-major and best so."""
        return (self.keep_entry_layouts and has_entry_layouts(module)) or any(
            (instruction.opcode == "transpose" and instruction.shape.bytes >= self.least_bytes)
            or wants_rows(instruction)
            or _wants_order(instruction)
            for computation in program_computations(module)
            for instruction in computation
        )


def _wants_order(instruction: Instruction) -> bool:
    return wants_matrices(instruction) or wants_neighbours(instruction)


def _name_results(computation: Computation) -> bool:
    """Makes a root that sorts several arrays a tuple of its results, each of which is an array that may be copied."""
    sort = computation.root
    if not wants_rows(sort) or not sort.shape.is_tuple:
        return False
    results = [
        computation.add("get-tuple-element", [sort], index=number, metadata=sort.metadata)
        for number in range(len(sort.operands))
    ]
    computation.set_root(computation.add("tuple", results, metadata=sort.metadata))
    return True
