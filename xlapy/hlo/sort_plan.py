"""How a sort runs, as data: what its comparator asks for, and the memory it needs beside its results.

A comparator that compares one operand only is recognised. Its elements become integer *keys* that have the same order,
and what is sorted are *records* of a key and either the element of the one other operand or the position in the row.
Any other comparator sorts positions.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.element_types import ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.support.records import Record

MAX_UNITS = 64  # parts of a sort that may run at once, each with scratch memory of its own
ALIGNMENT = 64

GROUP_BYTES = 64  # of the records that are compared by one operation
MAX_LANES = 16
NETWORK_LENGTH = {1: 256, 2: 256, 4: 2048, 8: 1024}
"""The longest rows for which a network beats sorting by digits, by bytes of a record: its work grows as n log(n)^2."""


class Payload(enum.Enum):
    """What a record carries besides the key."""

    NOTHING = "nothing"
    ELEMENT = "element"  # of the one other operand
    POSITION = "position"


class SortKey(Record):
    """The elements of one operand in ascending or descending order.

    `merges_zeros`: -0 equals 0. `merges_nans`: NaNs are equal and come last (first, if descending)."""

    operand: int
    descending: bool = False
    merges_zeros: bool = False
    merges_nans: bool = False


class SortPlan(Record):
    """`rows` rows of `length` elements, `stride` elements apart, of which the first `kept` are results.

    Neighbouring rows of a group of `stride` begin next to each other."""

    length: int
    stride: int
    rows: int
    kept: int
    key: SortKey | None
    payload: Payload
    record_bytes: int
    lanes: int = 1  # rows that are sorted side by side, by a network; their records are single words
    candidates: int = 0  # the room for records from which the few to be kept are selected, if they are

    @property
    def has_small_numbers(self) -> bool:
        """Positions in a row, and how many elements it has, fit 32 bits."""
        return self.length <= MOST_POSITIONS

    @property
    def has_signed_numbers(self) -> bool:
        """Positions in a row fit numbers of s32, which those that topk returns are."""
        return self.length <= MOST_POSITIONS // 2

    @property
    def has_positions(self) -> bool:
        """Records say which element they are of."""
        return self.key is None or self.payload is Payload.POSITION

    @property
    def groups(self) -> int:
        """Groups of `lanes` rows; the last one may overlap the one before it."""
        return -(-self.rows // self.lanes)

    @property
    def units(self) -> int:
        """Parts that are independent of each other."""
        return min(self.groups, MAX_UNITS)

    @property
    def scratch_bytes(self) -> int:
        """Memory for the records of one row, or of what is selected from it, twice, or of the rows of a group."""
        copies = 2 if self.lanes == 1 else self.lanes
        return -(-copies * (self.candidates or self.length) * self.record_bytes // ALIGNMENT) * ALIGNMENT


def plan_sort(instruction: Instruction) -> SortPlan:
    """The plan of a sort or topk."""
    operands = instruction.operands
    shape = operands[0].shape
    if instruction.opcode == "topk":
        dimension, kept = shape.rank - 1, instruction.attributes["k"]
        key: SortKey | None = SortKey(0, descending=instruction.attributes["largest"])
        payload = Payload.POSITION
    else:
        dimension = instruction.attributes["dimension"]
        kept = shape.dims[dimension]
        key = recognise(instruction.called[0])
        payload = _payload(operands, key)
    length = shape.dims[dimension]
    stride = math.prod(shape.dims[dimension + 1 :])
    rows = shape.size // length if length else 0
    side_by_side = Payload.NOTHING if payload is Payload.NOTHING else Payload.POSITION  # networks are not stable
    lanes = _lanes(length, rows, key, _record_bytes(operands, key, side_by_side))
    if instruction.opcode == "topk" and _is_little_of(length, kept):
        lanes = 1
    payload = payload if lanes == 1 else side_by_side
    plan = SortPlan(length, stride, rows, kept, key, payload, _record_bytes(operands, key, payload), lanes)
    return replace(plan, candidates=_candidates(plan)) if instruction.opcode == "topk" else plan


MOST_POSITIONS = 1 << 32  # in a row, that records have room for
SELECTION_LANES = 16
LEAST_CANDIDATES = 128
LEAST_SELECTED = 64
ROW_PER_KEPT = 24  # elements of a row, for each that is kept, to look for those rather than to sort several rows
FEW_CANDIDATES = 64  # where no more are kept than there are lanes, which find a threshold first


def _is_little_of(length: int, kept: int) -> bool:
    """Whether it is quicker to look for those to be kept than to sort rows side by side."""
    return 0 < kept <= SELECTION_LANES and length >= max(LEAST_SELECTED, ROW_PER_KEPT * kept)


def _candidates(plan: SortPlan) -> int:
    """The room for a selection: several times what is kept, so that it is seldom full; 0 if it is no small part."""
    is_selected = plan.lanes == plan.stride == 1 and plan.record_bytes == 8 and plan.kept > 0
    if _is_little_of(plan.length, plan.kept):
        return max(4 * plan.kept, FEW_CANDIDATES) if is_selected else 0
    room = max(4 * plan.kept, LEAST_CANDIDATES)
    return room if is_selected and 8 * room <= plan.length else 0


def _lanes(length: int, rows: int, key: SortKey | None, record_bytes: int) -> int:
    """How many rows to sort side by side: several if they are short, and records are words that vectors compare."""
    lanes = lanes_of(record_bytes)
    worth_it = key is not None and length <= NETWORK_LENGTH.get(record_bytes, 0) and rows >= lanes
    return lanes if worth_it else 1


def lanes_of(record_bytes: int) -> int:
    """The records that are compared by one operation."""
    return min(MAX_LANES, GROUP_BYTES // record_bytes)


def _payload(operands: tuple[Instruction, ...], key: SortKey | None) -> Payload:
    if key is None or len(operands) > 2:
        return Payload.POSITION
    if len(operands) == 1:
        return Payload.NOTHING
    other = operands[1 - key.operand].shape.type
    return Payload.ELEMENT if other.bytes <= 8 else Payload.POSITION


def _record_bytes(operands: tuple[Instruction, ...], key: SortKey | None, payload: Payload) -> int:
    """A key alone is as wide as its element; with something else, each gets half of the record."""
    if key is None:
        return 4
    width = operands[key.operand].shape.type.bytes
    if payload is Payload.NOTHING:
        return width
    other = operands[1 - key.operand].shape.type.bytes if payload is Payload.ELEMENT else 4
    return 16 if max(width, other) == 8 else 8


def scratch_bytes(instruction: Instruction) -> int:
    """The memory that the kernel of an instruction needs beside its operands and results."""
    if instruction.opcode not in ("sort", "topk"):
        return 0
    plan = plan_sort(instruction)
    return 0 if fits_stack(plan) else plan.units * plan.scratch_bytes


STACK_BYTES = 32 * 1024


def fits_stack(plan: SortPlan) -> bool:
    """The records of a row are few enough for the stack of any thread."""
    return plan.scratch_bytes <= STACK_BYTES


# -- comparators -------------------------------------------------------------------------------------------------------


def recognise(comparator: Computation) -> SortKey | None:
    """The key that a comparator compares, if it compares the elements of one operand and nothing else."""
    return _key_of(comparator.root)


def _key_of(root: Instruction) -> SortKey | None:
    if root.opcode != "compare":
        return None
    sides = [_canonical(operand) for operand in root.operands]
    first, second = sides
    if first is None or second is None or (first.zeros, first.nans) != (second.zeros, second.nans):
        return None
    direction = root.attributes["direction"]
    if first.parameter == second.parameter + 1:
        first, second = second, first
        direction = direction.swapped()
    if first.parameter % 2 or second.parameter != first.parameter + 1:
        return None
    if direction not in (ComparisonDirection.LT, ComparisonDirection.GT):
        return None
    element_type = root.operands[0].shape.type
    if not has_key(element_type):
        return None
    is_total = root.attributes["type"] is ComparisonType.TOTALORDER
    return SortKey(
        first.parameter // 2,
        descending=direction is ComparisonDirection.GT,
        merges_zeros=element_type.is_float and (first.zeros or not is_total),
        merges_nans=first.nans,
    )


MOST_KEYS = 16
"""Each of several keys moves all operands once more: with twenty keys of 32 bits, one sort that compares them all is as
quick, and its program is shorter."""


def first_of_several(root: Instruction) -> tuple[Instruction, Instruction] | None:
    """What compares the first key, and what decides between equals, in a comparator that compares a few keys."""
    steps: list[tuple[Instruction, Instruction]] = []
    while _key_of(root) is None:
        step = _first_key(root)
        if step is None or len(steps) + 2 > MOST_KEYS:
            return None
        steps.append(step)
        root = step[1]
    return steps[0] if steps else None


def _first_key(root: Instruction) -> tuple[Instruction, Instruction] | None:
    """The same, whatever decides between equals."""
    for equal, less, rest in _decisions(root):
        if _key_of(less) is not None and _says_equal(equal, less):
            return less, rest
    return None


def _decisions(root: Instruction) -> Iterator[tuple[Instruction, Instruction, Instruction]]:
    """What may be `equal`, `less` and `rest` in `less or (equal and rest)` and in `select(equal, rest, less)`."""
    if root.opcode == "select":
        equal, rest, less = root.operands
        yield equal, less, rest
    if root.opcode == "or":
        for less, both in permutations(root.operands):
            if both.opcode == "and":
                yield from ((equal, less, rest) for equal, rest in permutations(both.operands))


def _says_equal(equal: Instruction, less: Instruction) -> bool:
    """Whether `equal` holds exactly if neither element is less than the other."""
    if equal.opcode != "compare" or equal.attributes["direction"] is not ComparisonDirection.EQ:
        return False
    kinds = {compare.attributes["type"] for compare in (equal, less)}
    is_total = not less.operands[0].shape.type.is_float or kinds == {ComparisonType.TOTALORDER}
    sides = [{_canonical(operand) for operand in compare.operands} for compare in (equal, less)]
    return is_total and sides[0] == sides[1]


def has_key(element_type: ElementType) -> bool:
    """Integers with the order of the elements are a few bit operations away: all but complex numbers, and floats that
    have no sign or use the bits of -0 for NaN."""
    return not element_type.is_complex and not element_type.name.endswith(("fnuz", "fnu"))


class _Canonical(Record):
    """A parameter of a comparator, perhaps with zeros and NaNs replaced by one of each."""

    parameter: int
    zeros: bool = False
    nans: bool = False


_MOST_REPLACED = 2
"""Zeros and NaNs: what stands around more than two choices is no plain parameter, and each looks at three values."""


def _canonical(value: Instruction, most: int = _MOST_REPLACED) -> _Canonical | None:
    """`x`, `select(x == 0, 0, x)`, `select(x != x, NaN, x)`, or both around each other."""
    if value.opcode == "parameter":
        return _Canonical(value.attributes["number"])
    if not most or value.opcode != "select":
        return None
    condition, constant, rest = value.operands
    if condition.opcode != "compare" or constant.opcode != "constant":
        return None
    inner = _canonical(rest, most - 1)
    tested = [_canonical(operand, most - 1) for operand in condition.operands]
    if inner is None or tested[0] is None or tested[0].parameter != inner.parameter:
        return None
    number = constant.attributes["literal"].scalar()
    is_test_of_itself = tested[1] is not None and tested[1].parameter == inner.parameter
    direction = condition.attributes["direction"]
    if direction is ComparisonDirection.NE and is_test_of_itself and _is_plain_nan(number, value.shape.type):
        return _Canonical(inner.parameter, inner.zeros, True)
    if direction is ComparisonDirection.EQ and _is_zero(condition.operands[1]) and _is_positive_zero(number):
        return _Canonical(inner.parameter, True, inner.nans)
    return None


def _is_zero(value: Instruction) -> bool:
    return value.opcode == "constant" and bool(value.attributes["literal"].scalar() == 0)


def _is_positive_zero(number: complex) -> bool:
    return number == 0 and math.copysign(1, float(number.real)) > 0


def _is_plain_nan(number: complex, element_type: ElementType) -> bool:
    """A NaN without a sign, in a type whose NaNs are the codes beyond infinity."""
    value = float(number.real)
    has_infinity = element_type.bits >= 16 or element_type.name == "f8e5m2"
    return math.isnan(value) and math.copysign(1, value) > 0 and has_infinity
