"""Between which two numbers the elements of integers lie, as far as that is plain.

Ranges begin at constants, iotas, the counters of loops and what is converted from fewer bits, and go through arithmetic
that does not wrap, and into loops that never change what they are given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import product

from xlapy.hlo.attributes import ComparisonDirection
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.loop_counter import counted_range, loop_counters, state_index
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.patterns import number_of
from xlapy.support.registry import Registry

Range = tuple[int, int]
Ranges = dict[Instruction, Range]


def ranges_by_computation(module: HloModule) -> Iterator[tuple[Computation, Ranges]]:
    """What is known in each computation, those who call others first.

    The caller may rewrite a computation before it asks for the next one: what bodies of loops get is known by then."""
    computations = module.computations()[::-1]
    callers = Counter(called for each in computations for instruction in each for called in instruction.called)
    states: dict[Computation, dict[int, Range]] = {}
    for computation in computations:
        known = value_ranges(computation, states.get(computation, {}))
        for loop in computation:
            if loop.opcode == "while" and callers[loop.called[1]] == 1:
                states[loop.called[1]] = _state_ranges(loop, known)
        yield computation, known


def _state_ranges(loop: Instruction, known: Ranges) -> dict[int, Range]:
    """Of the state that the body of a loop sees: what never changes, and what counts."""
    (init,), body = loop.operands, loop.called[1]
    found: dict[int, Range] = {}
    if init.opcode == "tuple" and body.root.opcode == "tuple":
        for index, (start, following) in enumerate(zip(init.operands, body.root.operands, strict=True)):
            if start in known and state_index(following, body) == index:
                found[index] = known[start]
    counted = counted_range(loop, lambda end: known.get(end) or _of_number(end))
    if counted is not None:
        found[counted[0]] = counted[1]
    found.update((counter.index, counter.values) for counter in loop_counters(loop))
    return found


def _of_number(value: Instruction) -> Range | None:
    number = number_of(value)
    return None if number is None else (int(number), int(number))


def value_ranges(computation: Computation, state: Mapping[int, Range]) -> Ranges:
    """The ranges of what is known in `computation`; `state` has those of elements of its state."""
    known: Ranges = {}
    for instruction in computation.post_order():
        found = _range_of(instruction, known, computation, state)
        if found is not None and instruction.shape.type.holds(*found):
            known[instruction] = found
    return known


def _range_of(
    instruction: Instruction, known: Ranges, computation: Computation, state: Mapping[int, Range]
) -> Range | None:
    if not instruction.shape.is_array or not (instruction.shape.type.is_integer or _is_pred(instruction)):
        return None
    index = state_index(instruction, computation) if instruction.opcode == "get-tuple-element" else None
    if index is not None:
        return state.get(index)
    if instruction.opcode == "constant":
        return _of_number(instruction)
    rule = RULES.get(instruction.opcode)
    if rule is not None:
        return rule(instruction, known)
    if Trait.INDEX_MAP in instruction.spec.traits and len(instruction.operands) == 1:
        (operand,) = instruction.operands  # of the same type, unless a bitcast takes several numbers for one
        return known.get(operand) if operand.shape.type is instruction.shape.type else None
    return None


def _is_pred(instruction: Instruction) -> bool:
    return instruction.shape.type.kind == "pred"


Rule = Callable[[Instruction, Ranges], "Range | None"]
RULES: Registry[Rule] = Registry("ranges", OPS)


def _of_all(combine: Callable[..., Range]) -> Rule:
    """A rule for an op all of whose operands must be known."""

    def rule(instruction: Instruction, known: Ranges) -> Range | None:
        ranges = [known.get(operand) for operand in instruction.operands]
        found = [one for one in ranges if one is not None]
        return combine(*found) if len(found) == len(ranges) else None

    return rule


def _hull(*ranges: Range) -> Range:
    return min(one[0] for one in ranges), max(one[1] for one in ranges)


def _products(one: Range, other: Range) -> Range:
    corners = [a * b for a, b in product(one, other)]
    return min(corners), max(corners)


RULES.register("add")(_of_all(lambda a, b: (a[0] + b[0], a[1] + b[1])))
RULES.register("subtract")(_of_all(lambda a, b: (a[0] - b[1], a[1] - b[0])))
RULES.register("multiply")(_of_all(_products))
RULES.register("negate")(_of_all(lambda a: (-a[1], -a[0])))
RULES.register("concatenate")(_of_all(_hull))
RULES.register("abs")(_of_all(lambda a: (max(a[0], -a[1], 0), max(-a[0], a[1]))))


@RULES.register("convert")
def _convert(instruction: Instruction, known: Ranges) -> Range | None:
    """What the operand is known to be, or what it can be, if that is less than the result has room for."""
    (operand,), type = instruction.operands, instruction.operands[0].shape.type
    if operand in known:
        return known[operand]
    if type.kind == "pred":
        return 0, 1
    return type.integer_range if type.is_integer and type.bits < instruction.shape.type.bits else None


@RULES.register("divide")
def _divide(instruction: Instruction, known: Ranges) -> Range | None:
    """Toward zero, by one number that is positive."""
    value, divisor = (known.get(operand) for operand in instruction.operands)
    if value is None or divisor is None or divisor[0] != divisor[1] or divisor[0] < 1:
        return None
    low, high = (abs(number) // divisor[0] * (1 if number > 0 else -1) for number in value)
    return low, high


@RULES.register("shift-left")
def _shift_left(instruction: Instruction, known: Ranges) -> Range | None:
    shifted = _shifted(instruction, known)
    return None if shifted is None else (shifted[0][0] << shifted[1], shifted[0][1] << shifted[1])


@RULES.register("shift-right-arithmetic")
def _shift_right_arithmetic(instruction: Instruction, known: Ranges) -> Range | None:
    shifted = _shifted(instruction, known)
    if shifted is None or not instruction.shape.type.is_signed:
        return None
    return shifted[0][0] >> shifted[1], shifted[0][1] >> shifted[1]


@RULES.register("shift-right-logical")
def _shift_right_logical(instruction: Instruction, known: Ranges) -> Range | None:
    """The sign is a bit like others."""
    shifted = _shifted(instruction, known)
    if shifted is None or shifted[0][0] < 0:
        return None
    return shifted[0][0] >> shifted[1], shifted[0][1] >> shifted[1]


def _shifted(instruction: Instruction, known: Ranges) -> tuple[Range, int] | None:
    """What is shifted, and by how many bits, if that is one number and leaves some."""
    value, amount = (known.get(operand) for operand in instruction.operands)
    if value is None or amount is None or amount[0] != amount[1]:
        return None
    return (value, amount[0]) if 0 <= amount[0] < instruction.shape.type.bits else None


@RULES.register("and")
def _and(instruction: Instruction, known: Ranges) -> Range | None:
    """No more than what is not negative, whatever the other one is."""
    if not instruction.shape.type.is_integer:
        return None
    ranges = [known.get(operand) for operand in instruction.operands]
    limits = [one[1] for one in ranges if one is not None and one[0] >= 0]
    return (0, min(limits)) if limits else None


@RULES.register("or", "xor")
def _or(instruction: Instruction, known: Ranges) -> Range | None:
    """No bit that neither has, of numbers that are not negative."""
    ranges = [known.get(operand) for operand in instruction.operands]
    if not instruction.shape.type.is_integer or any(one is None or one[0] < 0 for one in ranges):
        return None
    return 0, (1 << max(one[1] for one in ranges if one is not None).bit_length()) - 1


@RULES.register("maximum")
def _maximum(instruction: Instruction, known: Ranges) -> Range | None:
    return _bound_by(instruction, known, max)


@RULES.register("minimum")
def _minimum(instruction: Instruction, known: Ranges) -> Range | None:
    return _bound_by(instruction, known, min)


def _bound_by(instruction: Instruction, known: Ranges, outer: Callable[[int, int], int]) -> Range | None:
    """An operand that is not known may be any number of the type: the other one is a bound."""
    ranges = [known.get(operand) for operand in instruction.operands]
    if not instruction.shape.type.is_integer or ranges == [None, None]:
        return None
    one, other = (found or instruction.shape.type.integer_range for found in ranges)
    return outer(one[0], other[0]), outer(one[1], other[1])


@RULES.register("clamp")
def _clamp(instruction: Instruction, known: Ranges) -> Range | None:
    """Between the bounds, whatever it is that is clamped."""
    low, value, high = (known.get(operand) for operand in instruction.operands)
    if low is None or high is None or low[1] > high[0]:
        return None
    if value is None:
        return low[0], high[1]
    smallest, largest = (min(max(value[end], low[end]), high[end]) for end in range(2))
    return smallest, largest


@RULES.register("remainder")
def _remainder(instruction: Instruction, known: Ranges) -> Range | None:
    value, divisor = (known.get(operand) for operand in instruction.operands)
    if value is None or divisor is None or value[0] < 0 or divisor[0] < 1:
        return None
    return 0, min(value[1], divisor[1] - 1)


@RULES.register("select")
def _select(instruction: Instruction, known: Ranges) -> Range | None:
    chosen, one, other = (known.get(operand) for operand in instruction.operands)
    if chosen is not None and chosen[0] == chosen[1]:
        return one if chosen[0] else other
    return _hull(one, other) if one and other else None


@RULES.register("iota")
def _iota(instruction: Instruction, known: Ranges) -> Range | None:
    size = instruction.shape.dims[instruction.attributes["dimension"]]
    return (0, size - 1) if size else None


@RULES.register("gather", "sort")
def _from_elsewhere(instruction: Instruction, known: Ranges) -> Range | None:
    """Elements of the first operand, in another order or only some."""
    return known.get(instruction.operands[0])


@RULES.register("get-tuple-element")
def _part(instruction: Instruction, known: Ranges) -> Range | None:
    """Pivots and permutations are numbers of rows, places of largest elements those along a row; what is sorted is what
    it was before, and so are largest elements."""
    (source,), index = instruction.operands, instruction.attributes["index"]
    if source.opcode == "sort" or (source.opcode == "topk" and index == 0):
        return known.get(source.operands[index])
    if source.opcode == "lu":
        rows = source.shape.parts[2].dims[-1]
    elif source.opcode == "topk":
        rows = source.operands[0].shape.dims[-1]
    else:
        return None
    return (0, rows - 1) if rows else None


@RULES.register("compare")
def _compare(instruction: Instruction, known: Ranges) -> Range | None:
    """1 where it is always true, 0 where it never is."""
    one, other = (known.get(operand) for operand in instruction.operands)
    if one is None or other is None:
        return None
    always = _ALWAYS[instruction.attributes["direction"]](one, other)
    never = _ALWAYS[instruction.attributes["direction"].inverted()](one, other)
    return (int(always), int(always)) if always or never else None


_ALWAYS: dict[ComparisonDirection, Callable[[Range, Range], bool]] = {
    ComparisonDirection.LT: lambda a, b: a[1] < b[0],
    ComparisonDirection.LE: lambda a, b: a[1] <= b[0],
    ComparisonDirection.GT: lambda a, b: a[0] > b[1],
    ComparisonDirection.GE: lambda a, b: a[0] >= b[1],
    ComparisonDirection.EQ: lambda a, b: a[0] == a[1] == b[0] == b[1],
    ComparisonDirection.NE: lambda a, b: a[1] < b[0] or a[0] > b[1],
}
