"""Long running sums of floats, in two parts: most of the sum, and what has come since.

Each addition to a long sum rounds all of it, so that errors grow with the number of additions. Here what comes is added
to the second part, which is small. Every `STEPS` steps the first part takes it over, and what rounding loses of that is
where the second one starts anew: nothing is lost at all but what it loses within so few steps. A result is the sum of
both, rounded once.
"""

from __future__ import annotations

from collections.abc import Callable

from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.math.common import two_sum
from xlapy.codegen.registers import Element, flatten, from_parts, parts_of, unflatten
from xlapy.codegen.stopping import listening_loop
from xlapy.hlo.element_types import real_part_type
from xlapy.hlo.graph import Instruction

STEPS = 64
"""Few enough for sums of them to be exact but for some units of the last place, and enough to hide what taking over
costs."""


def gains_by_splitting(operation: Instruction | None, steps: int) -> bool:
    """Whether so many steps of a scan are a long sum of floats. Narrow ones are summed up in f32, which is enough."""
    if operation is None or operation.opcode != "add" or steps <= STEPS:
        return False
    part = real_part_type(operation.shape.type)
    return part.is_float and not part.is_narrow_float


def nothing_since(k: KernelBuilder, most: Element) -> Element:
    """The second part at the start; a negative zero, which changes no sum, not even of others."""
    return from_parts([k.const(part.type, -0.0) for part in parts_of(most)])


def taken_over(k: KernelBuilder, most: Element, since: Element) -> tuple[Element, Element]:
    """Both parts after the first one took over the second."""
    pairs = [_settled(k, *parts) for parts in zip(parts_of(most), parts_of(since), strict=True)]
    return from_parts([total for total, _ in pairs]), from_parts([rest for _, rest in pairs])


def _settled(k: KernelBuilder, most: Value, since: Value) -> tuple[Value, Value]:
    total, lost = two_sum(k, most, since)
    counts = k.or_(k.compare("lt", lost, 0.0), k.compare("gt", lost, 0.0))  # neither where the total is not finite
    return total, k.select(counts, lost, -0.0)


def blocks_of(begin: int, end: int) -> int:
    """How often the first part takes over in as many steps."""
    return -(-(end - begin) // STEPS)


def block(k: KernelBuilder, number: Value, begin: int, end: int) -> tuple[Value, Value]:
    """The steps of [begin, end) between two of these times."""
    first = k.add(k.mul(number, STEPS), begin)
    return first, k.smin(k.add(first, STEPS), end)


def summed_in_parts(
    k: KernelBuilder,
    begin: int,
    end: int,
    most: Element,
    since: Element,
    step: Callable[[Value, Element, Element], Element],
) -> tuple[Element, Element]:
    """A loop over [begin, end) whose body gets both parts, and gives what the second one becomes."""
    like = [most, since]
    with listening_loop(k, 0, blocks_of(begin, end), carry=flatten(like), weight=STEPS) as blocks:
        before, rest = unflatten(blocks.values, like)
        with k.loop(*block(k, blocks.index, begin, end), carry=flatten([rest])) as steps:
            (running,) = unflatten(steps.values, [since])
            steps.next = flatten([step(k.opaque(steps.index), before, running)])
        (grown,) = unflatten(steps.results, [since])
        blocks.next = flatten(taken_over(k, before, grown))
    most, since = unflatten(blocks.results, like)
    return most, since
