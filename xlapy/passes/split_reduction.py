"""Splitting of large folds with few results, so that all cores can share them.

    p = f32[8388608] parameter(0)
    ROOT r = f32[] reduce(p, zero), dimensions={0}, to_apply=add

becomes

    s = f32[64,131072] reshape(p)
    t = f32[64] reduce(s, identity), dimensions={1}, to_apply=add
    ROOT r = f32[] reduce(t, zero), dimensions={0}, to_apply=add

Folds of everything in an array whose rows were folded before, as for the mean of a loss, are split, too: row by row
first. Then a kernel over rows makes one number of each, and the array is never stored.

Folds of rows stay whole that are made into new rows: a kernel takes all of it row by row, if there are enough rows to
hand out. So do those of more than a few columns that are made into new columns.

Folds of the columns of what no cache holds are of whole rows, some parts of them, and not of narrow blocks of columns:
memory streams one long piece behind the other. Several short rows count as one long row.

    p = f32[32768,1024] parameter(0)
    ROOT r = f32[1024] reduce(p, zero), dimensions={0}, to_apply=add

becomes

    s = f32[16,512,4,1024] reshape(p)
    t = f32[16,4,1024] reduce(s, identity), dimensions={1}, to_apply=add
    ROOT r = f32[1024] reduce(t, zero), dimensions={0,1}, to_apply=add

A few columns of less are folded as wide rows of several rows each: else each row waits for the one before it.

    p = f32[8192,3] parameter(0)
    ROOT r = f32[3] reduce(p, zero), dimensions={0}, to_apply=add

becomes

    s = f32[256,96] reshape(p)
    t = f32[96] reduce(s, identity), dimensions={0}, to_apply=add
    ROOT r = f32[3] reduce(f32[32,3] reshape(t), zero), dimensions={0}, to_apply=add

Only for commutative, associative ops, one for each array, whose order of folding is free; and for the place of the
largest element, or the smallest, whose parts are folded from the same initial values, as these may take part again. The
split depends on the shape alone, so the result is the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo import element_types as et
from xlapy.hlo.choices import choice_of, chooses_in_parts
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_of
from xlapy.hlo.kernel_plan import RowSpace, is_element_op, is_row_major, row_space, sole_operations, three_parts
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Dims
from xlapy.passes.base import ComputationPass, needed_by, pinned, replace_all
from xlapy.passes.fusion.rows import returns_to_elements

LEAST_BYTES = 1 << 20  # of the operand: some tens of microseconds of reading
FEW_ROWS = 32  # results of rows: with more, there is enough to hand out already
FEW_COLUMNS = 256  # results of columns, of which a task folds many side by side
MEMORY_BYTES = 32 << 20  # of an array that is likely to be in no cache
MEMORY_PARTS = (16, *range(15, 7, -1), *range(17, 33))  # of the rows of such an array, the best first
SHORT_ROW_BYTES = 512  # that registers hold, so that memory is read from end to end anyway
LONG_ROW_BYTES = 16 << 10  # that a kernel folds side by side, and memory streams well
LEAST_ROWS_OF_PART = 16  # long ones, beside which one of results is little
FEW_COLUMN_BYTES = 64  # of a row that registers hold so little of that each row waits for the one before
WIDE_ROW_BYTES = 512  # of one that keeps them busy
LEAST_NARROW_BYTES = 8 << 10  # of an array of such rows, to fold which takes a microsecond

LEAST_FOLDED = 16  # elements of each partial fold, in all dimensions: with fewer, what is stored is no longer small
PARTS = range(128, 15, -1)  # how many partial folds there may be, the best first
LONG_BYTES = 8 << 20  # of a row that gives more: tasks read several side by side, and there are as many tasks as before
LONG_PARTS = (*range(512, PARTS.start, -1), *PARTS)
LEAST_CHOSEN_FROM = 1 << 10  # elements: it takes as long as some hundred of them to tell where the best of all lanes is
LEAST_ROWS = PARTS.stop  # of a chain over rows, to hand out
MOST_FOLLOWED = 64  # instructions on the way back to what folded rows before


@dataclass
class SplitReduction(ComputationPass):
    name: ClassVar[str] = "split-reduction"
    ops: ClassVar[Set[str]] = frozenset({"reduce"})

    def run_on(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        replacements = {
            instruction: split
            for instruction in computation.post_order()
            if instruction not in fixed and _is_splittable(instruction) and (split := _split(instruction)) is not None
        }
        replace_all(computation, replacements)
        return computation.remove(replacements)


def _is_splittable(instruction: Instruction) -> bool:
    if instruction.opcode != "reduce":
        return False
    if chooses_in_parts(instruction):
        return True
    if _rounds(instruction) and not _is_of_extrema(instruction):
        return False  # partial folds would be rounded
    return _identities(instruction) is not None


def _identities(reduce: Instruction) -> list[Literal] | None:
    """What changes nothing under each of the ops of which its computation consists, if it consists of such."""
    found = [identity_of(op) for op in sole_operations(reduce.called[0])]
    known = [literal for literal in found if literal is not None]
    return known if known and len(known) == len(found) else None


def _rounds(reduce: Instruction) -> bool:
    return any(result.type.is_narrow_float for result in reduce.shape.leaves())


def _is_of_extrema(reduce: Instruction) -> bool:
    return all(combiner.opcode in ("maximum", "minimum") for combiner in sole_operations(reduce.called[0]))


def _split(reduce: Instruction) -> Instruction | None:
    """The same fold in two steps; None if one is better, or there are no good parts."""
    if len(reduce.operands) > 2:
        return _in_parts(reduce) if _is_worth_it(reduce) else None
    rows = _rows_before(reduce)
    if rows is not None:
        return _in_two_steps(reduce, [reduce.operands[0]], reduce.attributes["dimensions"], rows.folded)
    if _is_of_memory(reduce) and (whole := _in_parts_of_rows(reduce)) is not None:
        return whole
    if not _is_worth_it(reduce):
        return _in_wide_rows(reduce) if _is_read_by_columns(reduce) else None
    return None if _is_of_row_chain(reduce) else _in_parts(reduce)


def _is_of_row_chain(reduce: Instruction) -> bool:
    """A kernel may fold the rows that also makes something else from them, or from what it folded before."""
    space = row_space(reduce)
    if space is None or space.is_columns or space.rows < LEAST_ROWS:
        return False
    return returns_to_elements(reduce, space) or _folded_before(reduce.operands[0]) == space


def _rows_before(reduce: Instruction) -> RowSpace | None:
    """The rows, folded by a reduce before, of the array of which this one folds all rows together."""
    array = reduce.operands[0]
    space = _folded_before(array)
    if space is None or space.is_columns or space.dims != array.shape.dims:
        return None
    return space if {*space.folded} < {*reduce.attributes["dimensions"]} else None


def _folded_before(array: Instruction) -> RowSpace | None:
    """The rows or columns of which an array is made that a reduce has folded."""
    pending, seen = [array], {array}
    while pending and len(seen) < MOST_FOLLOWED:
        value = pending.pop()
        space = row_space(value) if value.opcode == "reduce" else None
        if space is not None and space.kept:
            return space
        if Trait.ELEMENTWISE in value.spec.traits or value.opcode in ("broadcast", "reshape"):
            new = [operand for operand in value.operands if operand not in seen]
            seen.update(new)
            pending += new
    return None


def _is_worth_it(reduce: Instruction) -> bool:
    array, results = reduce.operands[0].shape, reduce.shape.leaves()[0].size
    is_large = array.bytes >= LEAST_BYTES and array.size >= LEAST_FOLDED * PARTS.start * results
    if array.rank - 1 in reduce.attributes["dimensions"]:
        return is_large and results <= FEW_ROWS
    return is_large and results <= FEW_COLUMNS


def _is_of_memory(reduce: Instruction) -> bool:
    return _stored(reduce.operands[0]).shape.bytes >= MEMORY_BYTES and _is_read_by_columns(reduce)


def _is_read_by_columns(reduce: Instruction) -> bool:
    """Columns are folded of an array that is read from memory as it is, or but for a float's width. (For another one
    that is made first, the kernel of the parts would have to be compiled, which takes ten times as long.)"""
    array, space = _stored(reduce.operands[0]), row_space(reduce)
    is_read = is_row_major(array) and not is_element_op(array)
    is_kept = reduce.operands[0].shape.rank - 1 not in reduce.attributes["dimensions"]
    return is_read and is_kept and (space is None or not returns_to_elements(reduce, space))


def _stored(array: Instruction) -> Instruction:
    """What is read of an array: its elements in other dimensions, or as narrow floats, which are made wider."""
    while array.opcode == "reshape" or _is_widening(array):
        (array,) = array.operands
    return array


def _is_widening(array: Instruction) -> bool:
    is_wide = array.opcode == "convert" and array.shape.type is et.F32
    return is_wide and array.operands[0].shape.type in (et.BF16, et.F16)


def _in_parts_of_rows(reduce: Instruction) -> Instruction | None:
    whole = three_parts(reduce.operands[0].shape.dims, reduce.attributes["dimensions"])
    if whole is None:
        return None
    groups, length, columns = whole
    parts = next((n for n in MEMORY_PARTS if length % n == 0 and length >= n * LEAST_ROWS_OF_PART), None)
    row_bytes = columns * reduce.shape.type.bytes
    if parts is None or groups >= MEMORY_PARTS[0] or row_bytes <= SHORT_ROW_BYTES:
        return None
    together = _rows_together(length // parts, row_bytes)
    counted = (groups,) if groups > 1 else ()
    rows = (parts, length // parts // together, *((together,) if together > 1 else ()))
    cut = _under_other_dims(reduce, (*counted, *rows, columns))
    first = len(counted)
    return _in_two_steps(reduce, [cut], (*range(first, first + len(rows)),), (first + 1,))


def _under_other_dims(reduce: Instruction, dims: Dims) -> Instruction:
    """What is folded with other dimensions, as those of what is read for it."""
    array, folded = _stored(reduce.operands[0]), reduce.operands[0].shape
    cut = reduce.parent.add("reshape", [array], shape=array.shape.with_dims(dims), metadata=reduce.metadata)
    if array.shape.type is not folded.type:
        cut = reduce.parent.add("convert", [cut], shape=folded.with_dims(dims), metadata=reduce.metadata)
    return cut


def _in_wide_rows(reduce: Instruction) -> Instruction | None:
    """The fold of a few columns in two steps: of wide rows, each of which is several, and of what these come to."""
    whole = three_parts(reduce.operands[0].shape.dims, reduce.attributes["dimensions"])
    if whole is None:
        return None
    groups, length, columns = whole
    row_bytes = columns * reduce.operands[0].shape.type.bytes
    is_narrow = row_bytes < FEW_COLUMN_BYTES + (not _is_of_extrema(reduce))  # extrema of vectors hardly wait
    if columns == 1 or not is_narrow or length * row_bytes < LEAST_NARROW_BYTES:
        return None
    most = min(WIDE_ROW_BYTES // row_bytes, length // LEAST_ROWS_OF_PART)
    together = next((count for count in range(most, 1, -1) if length % count == 0), 1)
    if together * row_bytes < FEW_COLUMN_BYTES:
        return None
    computation, region = reduce.parent, reduce.called[0]
    counted = (groups,) if groups > 1 else ()
    folded = len(counted)
    cut = _under_other_dims(reduce, (*counted, length // together, together * columns))
    wide = computation.add(
        "reduce", [cut, *_starts(reduce)], called=[region], dimensions=(folded,), metadata=reduce.metadata
    )
    apart = wide.shape.with_dims((*counted, together, columns))
    parts = computation.add("reshape", [wide], shape=apart, metadata=reduce.metadata)
    operands = [parts, reduce.operands[1]]
    few = computation.add("reduce", operands, called=[region], dimensions=(folded,), metadata=reduce.metadata)
    return few if few.shape == reduce.shape else computation.add("reshape", [few], shape=reduce.shape)


def _rows_together(rows: int, row_bytes: int) -> int:
    """How many short rows make one long row."""
    together = 1
    while (
        2 * together * row_bytes <= LONG_ROW_BYTES
        and rows % (2 * together) == 0
        and rows >= 2 * together * LEAST_ROWS_OF_PART
    ):
        together *= 2
    return together


def _in_parts(reduce: Instruction) -> Instruction | None:
    arrays, _ = reduce.grouped_operands()
    dims = arrays[0].shape.dims
    folded: tuple[int, ...] = tuple(sorted(reduce.attributes["dimensions"]))
    first, size = folded[0], dims[folded[0]]
    if len(folded) == 1 or size < PARTS.stop:
        is_of_rows = folded[-1] == len(dims) - 1
        is_long = is_of_rows and arrays[0].shape.bytes >= LONG_BYTES * reduce.shape.leaves()[0].size
        least = LEAST_CHOSEN_FROM if is_of_rows and chooses_in_parts(reduce) else 1
        numbers = LONG_PARTS if is_long else PARTS
        parts = next((count for count in numbers if size % count == 0 and size >= least * count), None)
        if parts is None:
            return None
        dims = (*dims[:first], parts, size // parts, *dims[first + 1 :])
        arrays = tuple(
            reduce.parent.add("reshape", [array], shape=array.shape.with_dims(dims), metadata=reduce.metadata)
            for array in arrays
        )
        folded = (first, first + 1, *(dim + 1 for dim in folded[1:]))
    return _in_two_steps(reduce, arrays, folded, folded[1:])


def _in_two_steps(reduce: Instruction, arrays: Sequence[Instruction], folded: Dims, first: Dims) -> Instruction:
    """The fold of the dimensions `folded` of `arrays`: of the `first` ones, then of the others."""
    computation, dims, region = reduce.parent, arrays[0].shape.dims, _region(reduce)
    _, initial = reduce.grouped_operands()
    partial = computation.add(
        "reduce", [*arrays, *_starts(reduce)], called=[region], dimensions=first, metadata=reduce.metadata
    )
    left = [dim for dim in range(len(dims)) if dim not in first]
    whole = computation.add(
        "reduce",
        [*(computation.unpacked(partial) if partial.shape.is_tuple else [partial]), *initial],
        called=[region],
        dimensions=tuple(left.index(dim) for dim in left if dim in folded),
        metadata=reduce.metadata,
    )
    return whole if whole.shape == reduce.shape else computation.add("reshape", [whole], shape=reduce.shape)


def _starts(reduce: Instruction) -> Sequence[Instruction]:
    """What partial folds begin with."""
    literals = _identities(reduce)
    if literals is None:
        initial: Sequence[Instruction] = reduce.grouped_operands()[1]
        return initial
    return [reduce.parent.add("constant", literal=literal) for literal in literals]


def _region(reduce: Instruction) -> Computation:
    """What both steps fold by. If nobody asks for the element that is chosen, any of equal ones will do, such as that
    at the place which is: then that is the only place for lanes to remember."""
    region, choice = reduce.called[0], choice_of(reduce)
    if choice is None or reduce.is_root or any(user.opcode != "get-tuple-element" for user in reduce.users):
        return region
    place = 1 - choice.key
    chosen = region.root.operands[place]
    if chosen.opcode != "select" or any(user.attributes["index"] != place for user in reduce.users):
        return region
    own = region.clone()
    condition, *sides = own.root.operands[place].operands
    if any(side.opcode != "parameter" for side in sides):
        return region
    keys = [own.parameters[side.attributes["number"] - place + choice.key] for side in sides]
    results = [*own.root.operands]
    results[choice.key] = own.add("select", [condition, *keys])
    own.replace(own.root, own.add("tuple", results))
    alive = needed_by([own.root, *own.parameters])
    own.remove([instruction for instruction in own if instruction not in alive])
    return own
