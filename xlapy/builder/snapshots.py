"""What `build` hands out: a module of its own, of what is alive among the instructions that a builder has recorded."""

from __future__ import annotations

from xlapy.hlo.graph import Computation, HloModule, Instruction, ModuleConfig
from xlapy.support.naming import Names


def snapshot(recorded: Computation, root: Instruction, name: str, *, alone: bool = False) -> HloModule:
    """A module of what is alive, sharing nothing with `recorded` or with the computations that it calls."""
    entry = _copy_alive(recorded, root, alone=alone)
    module = HloModule(name, entry)
    copies: dict[Computation, Computation] = {}
    taken = Names([entry.name])
    for computation in module.computations()[:-1]:
        copies[computation] = computation.clone(taken.unused(computation.name), computations=copies)
    for instruction in entry:
        if instruction.called:
            entry.set_called(instruction, [copies[called] for called in instruction.called])
    module.config = ModuleConfig()
    return module


def _copy_alive(recorded: Computation, root: Instruction, *, alone: bool) -> Computation:
    """The parameters, the effects, and what these and `root` need, in the order in which they were recorded; `root`
    and what it needs if it comes `alone`."""
    instructions = list(recorded)
    alive = {root} if alone else {root, *recorded.parameters}
    for instruction in reversed(instructions):  # operands are recorded before their users
        if instruction in alive or (instruction.has_effect and not alone):
            alive.add(instruction)
            alive.update(instruction.operands, instruction.control_predecessors)
    entry = Computation(recorded.name)
    copies: dict[Instruction, Instruction] = {}
    for instruction in instructions:
        if instruction in alive:
            copy = entry.add_copy(instruction, [copies[operand] for operand in instruction.operands])
            for predecessor in instruction.control_predecessors:
                entry.add_control_edge(copies[predecessor], copy)
            copies[instruction] = copy
    entry.set_root(copies[root])
    return entry
