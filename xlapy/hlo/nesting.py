"""How deep loops, branches and the computations of reduces nest. Passes and code generation follow them by recursion,
so there is a bound, far beyond any program and well within what Python allows."""

from __future__ import annotations

from xlapy.hlo.graph import Computation, HloModule
from xlapy.support.errors import UnsupportedError

MOST_NESTED = 100


def check_nesting(module: HloModule) -> None:
    """Raises UnsupportedError, naming the instruction, where computations nest too deep. Calls do not count: what they
    call takes their place."""
    depths: dict[Computation, int] = {}
    for computation in module.computations():
        deepest = 0
        for instruction in computation:
            for called in instruction.called:
                deepest = max(deepest, depths[called] + (instruction.opcode != "call"))
            if deepest > MOST_NESTED:
                error = UnsupportedError(f"computations nest more than {MOST_NESTED} deep in it")
                place = instruction.metadata.location() or f"{instruction.name} in {computation.name}"
                raise error.add_context(subject=instruction.name, where=place)
        depths[computation] = deepest
