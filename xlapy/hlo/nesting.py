"""How deep loops, branches and the computations of reduces nest, and how often they are repeated. Passes and code
generation follow them by recursion, and copy what is called from several places, so there are bounds, far beyond any
program and well within what Python allows."""

from __future__ import annotations

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.support.errors import UnsupportedError

MOST_NESTED = 100
MOST_COPIES = 1 << 20
"""Instructions of copies. Computations that call two others each, thirty deep, would have a thousand times as many."""


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
                raise _refused(instruction, f"computations nest more than {MOST_NESTED} deep in it")
        depths[computation] = deepest


def check_copies(module: HloModule) -> None:
    """Raises UnsupportedError, naming the instruction, where computations are called from so many places that their
    copies are too large together: each place has memory and kernels of its own."""
    room = module.instruction_count + MOST_COPIES
    sizes: dict[Computation, int] = {}  # with all that they run
    for computation in module.computations():
        size = len(computation)
        for instruction in computation:
            if Trait.CONTROL in instruction.spec.traits:
                size += sum(sizes[called] for called in dict.fromkeys(instruction.called))
            if size > room:
                reason = f"copies of what it calls, and others call too, have more than {MOST_COPIES:,} instructions"
                raise _refused(instruction, reason)
        sizes[computation] = size


def _refused(instruction: Instruction, reason: str) -> UnsupportedError:
    place = instruction.metadata.location() or f"{instruction.name} in {instruction.parent.name}"
    error = UnsupportedError(reason)
    error.add_context(subject=instruction.name, where=place)
    return error
