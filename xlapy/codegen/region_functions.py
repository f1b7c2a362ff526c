"""Region functions: regions that do more than a kernel can hold in registers, each written like a small program.

What such a region runs (kernels, loops, branches) is emitted as for the entry, by an `EntryEmitter` of its own that
follows the region's own buffer plan. Kernels that apply the region call the function through `regions.emit_region`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xlapy.hlo.buffer_plan import FunctionPlans
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import sequences
from xlapy.hlo.ops import Trait
from xlapy.support.errors import UnsupportedError


@dataclass(slots=True)
class RegionFunctions:
    """The region functions of one program. `write` emits one under a name; it is asked once for each."""

    plans: FunctionPlans
    write: Callable[[Computation, str], None]
    names: dict[Computation, str] = field(default_factory=dict)

    def name(self, region: Computation) -> str:
        """The name of the function of a region, which exists by then."""
        if region not in self.names:
            _check(region, region)
            self.names[region] = f"region.{len(self.names)}"
            self.write(region, self.names[region])
        return self.names[region]


def _check(computation: Computation, region: Computation) -> None:
    """Raises UnsupportedError if anything in the region must run once and in order: kernels run on many threads."""
    for instruction in computation:
        is_allowed = instruction.is_pure or Trait.STRUCTURE in instruction.spec.traits or sequences(instruction)
        if not is_allowed:
            metadata = instruction.metadata
            raise UnsupportedError(
                f"{_kind(instruction)} in {region.name}, which is applied to each element, on several threads: only "
                "operations without effects can be part of such a computation"
            ).add_context(subject=metadata.op_name or instruction.name, where=metadata.location())
        for called in sequences(instruction):
            _check(called, region)


def _kind(instruction: Instruction) -> str:
    """The op, and the one that the user wrote for it."""
    written = instruction.metadata.op_type
    return instruction.opcode if written in ("", instruction.opcode) else f"{written} ({instruction.opcode})"
