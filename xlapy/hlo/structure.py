"""What a module is but for names and metadata, as a value that is compared quickly.

`canonical_text` says the same in a form that outlasts the process. This one shares shapes, attributes and literals with
the module, so that comparing what a module was with what it is now mostly compares identities.
"""

from __future__ import annotations

from dataclasses import replace

from xlapy.hlo.graph import Computation, HloModule, Instruction


def structure(module: HloModule) -> object:
    """A value that stays as it is when the module changes, and is equal exactly for modules that differ in names and
    metadata only."""
    order = callees_first(module)
    numbers = {computation: number for number, computation in enumerate(order)}
    config = replace(module.config, extra=dict(module.config.extra))
    return config, [_rows(computation, numbers) for computation in order]


def callees_first(module: HloModule) -> list[Computation]:
    """The computations in an order that follows from the order of instructions alone."""
    order: list[Computation] = []
    done = {module.entry}
    stack = [(module.entry, iter(_called(module.entry)))]
    while stack:
        computation, rest = stack[-1]
        for called in rest:
            if called not in done:
                done.add(called)
                stack.append((called, iter(_called(called))))
                break
        else:
            stack.pop()
            order.append(computation)
    return order


def _called(computation: Computation) -> list[Computation]:
    if not computation.calling:
        return []
    return [called for instruction in computation.post_order() for called in instruction.called]


def _rows(computation: Computation, numbers: dict[Computation, int]) -> object:
    """The root, and what is said of each instruction, with others by their positions."""
    order = computation.post_order()
    places = {instruction: place for place, instruction in enumerate(order)}

    def row(instruction: Instruction) -> tuple[object, ...]:
        attributes, extra = instruction.attributes, instruction.extra
        called, before = instruction.called, instruction.control_predecessors
        return (  # what most instructions lack is not copied
            instruction.spec,
            instruction.shape,
            [places[operand] for operand in instruction.operands],
            dict(attributes) if attributes else None,
            [numbers[computation] for computation in called] if called else None,
            [places[earlier] for earlier in before] if before else None,
            dict(extra) if extra else None,
        )

    return places[computation.root], [row(instruction) for instruction in order]
