"""Loops in blocks: a loop that counts becomes a loop over blocks of its steps, around a loop over the steps of a block.

    while (i < 64) { i + 1, f(s) }     becomes     while (done < 64) { while (step < 16) { i + 1, f(s) }  done + 16 }

Between the two there is room for what is made once for all steps of a block. If the blocks are not all full, the last
one has fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.element_types import S64
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Shape
from xlapy.passes.loop_invariants import replace_loop, unchanged_elements
from xlapy.support.records import Record

COUNT = Shape.scalar(S64)

MOST_ROWS = 128
"""Of a step's product that shares one with other steps: with more, it is as quick alone."""

BLOCK_ROWS = 256
"""Of the product of a block of steps, about: with more, products are hardly quicker."""

LITTLE_BYTES = 1 << 19
"""Kept of all steps: less is no burden on caches."""

MOST_BYTES = 32 << 20
"""Kept of a block, or of all steps at once."""


def can_be_cut(loop: Instruction) -> bool:
    """Condition and body look at elements of the state only, never at all of it; and no effect needs a place."""
    is_plain = not any(computation.has_effect or [*computation.held] for computation in loop.called)
    states = [parameter for computation in loop.called for parameter in computation.parameters]
    return is_plain and all(user.opcode == "get-tuple-element" for state in states for user in state.users)


class Share(Record):
    """What a block has for its steps: `make` adds it to the loop over blocks, where it is given copies of `needed` and
    the number of steps that are done; `use` takes the place of `value` in the body, where it is given what was made
    and copies of the operands of `value`."""

    value: Instruction
    needed: tuple[Instruction, ...]  # elements of the state that never change
    make: Callable[[Sequence[Instruction], Instruction], list[Instruction]]
    use: Callable[[Sequence[Instruction], Sequence[Instruction]], Instruction]


def cut_into_blocks(loop: Instruction, trips: int, length: int, shares: Sequence[Share]) -> None:
    """Replaces a loop that runs `trips` times by one over blocks of `length` steps."""
    computation, (init,) = loop.parent, loop.operands
    done = computation.add("constant", literal=Literal(0, COUNT))
    state = computation.add("tuple", [*init.operands, done])
    condition = counting(loop.called[0].name, state.shape, trips)
    body = _over_blocks(loop, state.shape, trips, length, shares)
    blocks = computation.add("while", [state], called=[condition, body], name=loop.name, metadata=loop.metadata)
    replace_loop(loop, blocks)


def counting(name: str, state: Shape, limit: int | None) -> Computation:
    """A condition: whether the last element of the state is below a limit, the one before it if that is not known."""
    condition = Computation(name)
    parameter = condition.add("parameter", shape=state, name="state", number=0)
    last = len(state.parts) - 1
    done = condition.add("get-tuple-element", [parameter], index=last)
    if limit is None:
        end = condition.add("get-tuple-element", [parameter], index=last - 1)
    else:
        end = condition.add("constant", literal=Literal(limit, COUNT))
    condition.set_root(condition.add("compare", [done, end], direction=ComparisonDirection.LT))
    return condition


def _over_blocks(loop: Instruction, state: Shape, trips: int, length: int, shares: Sequence[Share]) -> Computation:
    """The body of the loop over blocks."""
    name = loop.called[1].name
    outer = Computation(name)
    parameter = outer.add("parameter", shape=state, name="state", number=0)
    *elements, done = outer.unpacked(parameter)
    made = [share.make([elements[_index_of(value)] for value in share.needed], done) for share in shares]
    size = outer.add("constant", literal=Literal(length, COUNT))
    step = outer.add("constant", literal=Literal(0, COUNT))
    is_even = trips % length == 0
    end = [] if is_even else [outer.add("minimum", [size, _rest(outer, trips, done)])]
    given = [*elements, *(value for values in made for value in values), *end, step]
    inner = outer.add("tuple", given)
    condition = counting(f"{loop.called[0].name}.block", inner.shape, length if is_even else None)
    body = _over_steps(loop, inner.shape, [len(values) for values in made], shares)
    steps = outer.add("while", [inner], called=[condition, body], name=loop.name, metadata=loop.metadata)
    unchanged = unchanged_elements(loop)
    results = [
        element if index in unchanged else outer.add("get-tuple-element", [steps], index=index)
        for index, element in enumerate(elements)
    ]
    outer.set_root(outer.add("tuple", [*results, outer.add("add", [done, size])]))
    return outer


def _index_of(element: Instruction) -> int:
    index: int = element.attributes["index"]
    return index


def _rest(outer: Computation, trips: int, done: Instruction) -> Instruction:
    return outer.add("subtract", [outer.add("constant", literal=Literal(trips, COUNT)), done])


def _over_steps(loop: Instruction, state: Shape, sizes: Sequence[int], shares: Sequence[Share]) -> Computation:
    """A copy of the loop's body that uses what the block has, of each share so many arrays, and counts its steps."""
    body = loop.called[1]
    (old_state,) = body.parameters
    inner = Computation(f"{body.name}.block")
    parameter = inner.add("parameter", shape=state, name=old_state.name, number=0)
    own = inner.unpacked(parameter)
    copies: dict[Instruction, Instruction] = {old_state: parameter}
    place = len(old_state.shape.parts)
    made: dict[Instruction, tuple[Share, list[Instruction]]] = {}
    for share, size in zip(shares, sizes, strict=True):
        made[share.value] = share, own[place : place + size]
        place += size
    for instruction in body.post_order():
        if instruction is old_state:
            continue
        operands = [copies[operand] for operand in instruction.operands]
        if old_state in instruction.operands:
            copies[instruction] = own[_index_of(instruction)]
        elif instruction in made:
            share, values = made[instruction]
            copies[instruction] = share.use(values, operands)
        else:
            copies[instruction] = inner.add_copy(instruction, operands)
    one = inner.add("constant", literal=Literal(1, COUNT))
    results = [copies[operand] for operand in body.root.operands]
    handed_on = own[len(results) : -1]
    unused = copies[body.root]
    inner.set_root(inner.add("tuple", [*results, *handed_on, inner.add("add", [own[-1], one])]))
    inner.remove([unused])
    return inner
