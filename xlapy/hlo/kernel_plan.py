"""What one kernel may contain: the contract between fusion, which draws the boxes, and codegen, which fills them.

Everything here is a fact about an instruction or a fused computation; nothing is decided. A fused computation holds
*element ops*: each element of their result is computed by itself, by recursion from the element of the root.

    kLoop   the root is an element op, a tuple of element ops of the same dimensions, or a dynamic-update-slice whose
            operand 0 is a parameter (only the slice is written when the buffers are one). Or a select-and-scatter with
            the padding that it reads, and the part of its result that is kept (`hlo/padded_selections.py`)
    kInput  a reduce, or a reduce-window with a small window or that is a scan (several inputs: variadic), whose initial
            values are scalar parameters or constants. The outputs are its results, or what is made from each of them,
            element by element
    kOutput a chain over the rows of one array: reduces over its last dimensions, all the same ones, and element-wise
            ops on what they make. The outputs are whole arrays, or one value per row, or folds of columns of such
            arrays, part by part (`hlo/column_folds.py`). Or over its columns: the last dimension is not folded then,
            and everything else is the same, but there are no folds of the other dimensions. Where all dimensions are
            folded, as those of a vector, there is one row, whose value is a scalar
            Of both these kinds: a reduce of all that one of them makes, and what is made from each of its results, may
            be the second step of it (`hlo/fold_steps.py`)
    kCustom a dot or convolution of parameters that is a matrix product of the library, and element-wise ops behind it:
            each element of the results is made of the element of the product at the same place. The product is
            computed in the memory of the first result whose elements are as wide, block by block, and what is behind
            it follows while a block is in a cache. Or kernels: a product, a chain over its rows, and a product of
            these rows, which run block of rows by block of rows (`hlo/row_blocks.py`)

Scalars (rank 0) live in registers of the entry function: they enter a kernel as parameters, unless they are constants.

The region of a reduce, map, sort ... is inlined where its kernel applies it, if it is element-wise on scalars. Any
other one, with arrays or control flow, is a *region function*: a small program of its own, that the kernel calls for
each element. Its instructions are scheduled, fused and given memory like those of the entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from xlapy.hlo.attributes import (
    NO_WINDOW_DIMENSION,
    ConvolutionDimensionNumbers,
    FusionKind,
    SliceDimension,
    Window,
    WindowDimension,
)
from xlapy.hlo.element_types import F32, F64
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Dims, Shape
from xlapy.support.records import Record

BLOCKED_TRANSPOSE_BYTES = 32 * 1024  # beyond a first-level cache, strided reads cost more than a blocked copy
PICKED_BYTES, LEAST_BLOCKED = 2, 2048
"""Of elements that no instruction gathers: of so many it takes longer to load each than to copy all in blocks (64 by 64
of bf16, turned and added to others: 2.4 us, not 0.8)."""
INDEXED_AT_RUN_TIME = ("dynamic-slice", "gather")
GENERATORS = ("iota",)
LEAST_ROW = 16  # elements: shorter rows fill no vectors
MOST_ROW_BYTES = 64 * 1024  # of one array in a row kernel: what several sweeps find in a cache, and room on the stack
MOST_LONG_ROW_BYTES = 512 * 1024
"""The same where there are several rows to share out: a second-level cache holds one, or the last one does."""

LEAST_LONG_ROWS = 16
SWEPT_ELEMENTS = 1024  # of the rows that are swept together: enough to hide the end of one fold
LEAST_ROWS = 2  # swept together, unless one of them is longer: the end of a fold always takes a while
MOST_ON_STACK = MOST_ROW_BYTES // (8 * LEAST_ROWS)
"""Elements of a row, of which a stack has room for what is kept of some, in the code of a library."""

LEAST_STRIP = 16  # columns that a kernel takes side by side: a line of a cache at the least
WIDEST_STRIP = 256  # columns: sixteen of the widest vectors
MOST_STRIP_BYTES = 256 * 1024  # of the narrowest strip of one array: a few of these are in a second-level cache
MOST_REREAD_BYTES = 64 * 1024  # of the widest strip of one array that a second sweep finds in a near cache


class KernelLimits(Record):
    """How large one kernel may get. Compile time and register pressure set the numbers, not the program."""

    instructions: int = 1200
    operands: int = 64
    outputs: int = 8
    weight: int = 2000  # sum of the instruction costs: about the machine instructions of the loop body


MOST_JOINED = 8  # elements along a dimension that is folded, each of which may have code of its own

MOST_WORK_PER_ROW = 32  # instructions that are worth writing down for several rows, arrays and numbers included


def is_element_op(instruction: Instruction) -> bool:
    """The instruction may be computed element by element inside a kernel."""
    if not instruction.shape.is_array or not instruction.shape.is_static:
        return False
    if instruction.opcode == "constant":
        return is_kernel_constant(instruction)
    if instruction.opcode == "map":
        return is_scalar_region(instruction.called[0])
    if instruction.opcode == "copy":
        return instruction.shape.minor_to_major == instruction.operands[0].shape.minor_to_major
    if instruction.opcode in INDEXED_AT_RUN_TIME or instruction.opcode in GENERATORS:
        return True
    return is_pointwise(instruction) or Trait.INDEX_MAP in instruction.spec.traits


def is_pointwise(instruction: Instruction) -> bool:
    """Each element of the result is made of the elements of the operands at its own place."""
    if instruction.opcode != "bitcast-convert":
        return Trait.ELEMENTWISE in instruction.spec.traits
    operand = instruction.operands[0].shape
    return (
        operand.type.bits == instruction.shape.type.bits >= 8
        and operand.minor_to_major == instruction.shape.minor_to_major
    )


def is_kernel_constant(instruction: Instruction) -> bool:
    """A constant that is written into the code of a kernel: one value, however often repeated."""
    if instruction.opcode != "constant" or not instruction.shape.is_array:
        return False
    return instruction.shape.is_scalar or instruction.attributes["literal"].is_splat


def is_scalar_region(computation: Computation) -> bool:
    """Everything in `computation` is element-wise on scalars: it can be written inline where it is called."""
    return all(
        instruction.shape.is_scalar
        and (
            instruction.opcode in ("parameter", "constant")
            or (Trait.ELEMENTWISE in instruction.spec.traits and instruction.opcode != "map")
        )
        for instruction in computation
    )


SCALAR_RENAMING = frozenset({"reshape", "broadcast", "transpose", "reverse", "bitcast", "opt-barrier"})
"""Ops that give a scalar another name, if their result is a scalar too."""

_INLINED_STRUCTURE = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


def is_inlinable(region: Computation) -> bool:
    """The region is made of element-wise ops on scalars, tuples and calls of such: kernels hold it in registers."""
    if region.calling:
        return all(map(_is_inlinable, region))
    return region.remembered(is_inlinable, lambda: all(map(_is_inlinable, region)))


def _is_inlinable(instruction: Instruction) -> bool:
    shape = instruction.shape
    if shape.dims or (shape.is_tuple and any(leaf.dims for leaf in shape.leaves())):
        return False
    if instruction.opcode in ("call", "map"):
        return is_inlinable(instruction.called[0])
    if instruction.opcode in SCALAR_RENAMING:
        return all(operand.shape.is_scalar for operand in instruction.operands)
    return instruction.opcode in _INLINED_STRUCTURE or Trait.ELEMENTWISE in instruction.spec.traits


def region_functions(instruction: Instruction) -> tuple[Computation, ...]:
    """The regions that the kernel of an instruction (a fusion included) calls as functions.

    Those of control flow are no regions, and those of a custom call are for its target to run."""
    if not instruction.called:
        return ()
    traits = instruction.spec.traits
    is_foreign = Trait.EFFECT in traits and Trait.COLLECTIVE not in traits
    if Trait.CONTROL in traits or is_foreign:
        return ()
    if instruction.opcode == "fusion":
        found = (function for fused in instruction.called[0].calling for function in region_functions(fused))
    else:
        found = (region for region in instruction.called if not is_inlinable(region))
    return tuple(dict.fromkeys(found))


def sequences(instruction: Instruction) -> tuple[Computation, ...]:
    """The computations that run as sequences of kernels where the instruction runs: control flow, region functions."""
    return instruction.called if Trait.CONTROL in instruction.spec.traits else region_functions(instruction)


def may_share_a_run(instruction: Instruction) -> bool:
    """The kernel computes any part of its result by itself, needs no memory but that of operands and results, and
    writes nothing that it must not write twice: parts of it may run beside parts of other kernels."""
    if region_functions(instruction) or instruction.opcode == "dynamic-update-slice":
        return False
    if instruction.opcode == "fusion":
        is_product = instruction.attributes["kind"] is FusionKind.CUSTOM
        return not is_product and instruction.called[0].root.opcode != "dynamic-update-slice"
    if instruction.opcode == "reduce":
        return True
    return instruction.opcode != "constant" and is_element_op(instruction) and not instruction.shape.is_scalar


def sole_operation(computation: Computation) -> Instruction | None:
    """The one commutative, associative op that a reduction computation consists of, if it does."""
    return None if computation.root.opcode == "tuple" else next(iter(sole_operations(computation)), None)


def sole_operations(computation: Computation) -> tuple[Instruction, ...]:
    """The commutative, associative op for each pair of values that a reduction computation consists of, side by side;
    none if it is anything else."""
    root, parameters = computation.root, computation.parameters
    found = root.operands if root.opcode == "tuple" else (root,)
    if len(parameters) != 2 * len(found):
        return ()
    pairs = zip(parameters, parameters[len(found) :], strict=False)
    return found if all(_combines(op, *pair) for op, pair in zip(found, pairs, strict=True)) else ()


def _combines(root: Instruction, one: Instruction, other: Instruction) -> bool:
    if not (Trait.COMMUTATIVE in root.spec.traits and root.spec.identity is not None):
        return False
    if set(root.operands) != {one, other}:
        return False
    return not root.shape.type.is_complex or root.opcode in ("add", "multiply")


def three_parts(dims: Dims, folded: Sequence[int]) -> tuple[int, int, int] | None:
    """How many elements lie before, in and behind the folded dimensions, row by row; None if these do not lie side by
    side, or there is nothing to fold."""
    folded = [dim for dim in sorted(folded) if dims[dim] > 1]
    if not folded or 0 in dims:
        return None
    first, end = folded[0], folded[-1] + 1
    if any(dims[dim] > 1 and dim not in folded for dim in range(first, end)):
        return None
    return math.prod(dims[:first]), math.prod(dims[first:end]), math.prod(dims[end:])


@dataclass(frozen=True, slots=True)
class RowSpace:
    """The arrays of a row kernel: all of `dims`, of which `folded` are those along a row, or down a column. If all are
    folded, an array is the only row, and scalars are its values per row."""

    dims: tuple[int, ...]
    folded: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that count rows."""
        return tuple(dim for dim in range(len(self.dims)) if dim not in self.folded)

    @property
    def kept_dims(self) -> tuple[int, ...]:
        return tuple(self.dims[dim] for dim in self.kept)

    @property
    def is_columns(self) -> bool:
        """Neighbours in memory belong to different folds."""
        return len(self.dims) - 1 not in self.folded

    @property
    def has_whole_strips(self) -> bool:
        """Strips of columns need not overlap, however wide they are."""
        columns = self.dims[-1]
        return columns % WIDEST_STRIP == 0 or (columns >= LEAST_STRIP and columns & (columns - 1) == 0)

    @property
    def rows(self) -> int:
        return math.prod(self.kept_dims)

    @property
    def row_length(self) -> int:
        return math.prod(self.dims[dim] for dim in self.folded)

    def rows_at_once(self, *, in_place: bool, part: int = 0) -> int:
        """Rows that a kernel takes together. The last ones overlap those before them, but no row that is overwritten
        can be computed twice. If the kernel is called for a `part` of so many rows at a time, they divide that."""
        wanted = SWEPT_ELEMENTS // self.row_length
        if part:
            most = max(wanted, LEAST_ROWS if wanted == 1 else 1)
            return max(rows for rows in range(1, most + 1) if part % rows == 0)
        pairs_up = not in_place or all(size % LEAST_ROWS == 0 for size in self.kept_dims[-1:])
        if wanted == 1 and pairs_up:
            wanted = LEAST_ROWS
        block = max(1, min(wanted, self.rows))
        return 1 if in_place and self.rows % block else block

    def is_full(self, instruction: Instruction) -> bool:
        """The instruction has one value per element."""
        return instruction.shape.dims == self.dims

    def is_per_row(self, instruction: Instruction) -> bool:
        """The instruction has one value per row, in the order of the rows."""
        dims = instruction.shape.dims
        return bool(dims or not self.kept) and dims != self.dims and _wide(dims) == _wide(self.kept_dims)

    def continues(self, instruction: Instruction) -> bool:
        """The instruction, reading values of rows, makes values of the same rows from them, row by row."""
        if not is_row_major(instruction):
            return False
        if instruction.opcode == "reduce":
            return row_space(instruction) == self
        if Trait.ELEMENTWISE in instruction.spec.traits:
            return is_element_op(instruction) and (self.is_full(instruction) or self.is_per_row(instruction))
        if instruction.opcode not in ("broadcast", "reshape") or not self.is_per_row(instruction.operands[0]):
            return False
        if instruction.opcode == "reshape":
            return self.is_per_row(instruction)
        sizes = instruction.operands[0].shape.dims
        places = [dim for dim, size in zip(instruction.attributes["dimensions"], sizes, strict=True) if size != 1]
        if self.is_per_row(instruction):
            return places == sorted(places)
        return self.is_full(instruction) and places == [dim for dim in self.kept if self.dims[dim] != 1]

    def keeps_rows(self, instruction: Instruction) -> bool:
        """Each row of the instruction is made from the same row of all operands that have rows. What has values of
        rows is told by its dimensions, so that one of a square may have any: a broadcast along rows reads them all."""
        if instruction.opcode == "reduce":
            return row_space(instruction) == self
        if Trait.ELEMENTWISE in instruction.spec.traits or self.continues(instruction):
            return True
        if not (self._has_rows(instruction) and all(map(self._has_rows, instruction.operands[:1]))):
            return False
        test = _KEEPS_ROWS.get(instruction.opcode)
        return test is not None and test(instruction.attributes, self.kept)

    def _has_rows(self, instruction: Instruction) -> bool:
        """The dimensions that count rows are where they are in arrays of all elements."""
        dims = instruction.shape.dims
        return all(dim < len(dims) and dims[dim] == self.dims[dim] for dim in self.kept)

    def read_elsewhere(self, members: Sequence[Instruction]) -> set[Instruction]:
        """The values, of `members` of a kernel, operands first, of which a row needs those of other rows as well. They
        cannot be found once for a row and stand for all that reads them."""
        return _read_by(members, lambda user: not self.keeps_rows(user))

    def read_moved(self, members: Sequence[Instruction]) -> set[Instruction]:
        """The same, if the place within the row, or column, counts as well."""

        def moves(user: Instruction) -> bool:
            return not (user.opcode == "reduce" or Trait.ELEMENTWISE in user.spec.traits or self.continues(user))

        return _read_by(members, moves)


def _read_by(members: Sequence[Instruction], moves: Callable[[Instruction], bool]) -> set[Instruction]:
    """The members, operands first, that are read by what moves elements, or on the way to it."""
    found: set[Instruction] = set()
    for user in reversed(members):
        if user in found or moves(user):
            found.update(user.operands)
    return found


def _counts_rows_first(kept: Dims) -> bool:
    return kept == (*range(len(kept)),)


def _pads_no_rows(attributes: Mapping[str, Any], kept: Dims) -> bool:
    edges = [attributes["dimensions"][dim] for dim in kept]
    return not any(edge.low or edge.high or edge.interior for edge in edges)


_KEEPS_ROWS: Mapping[str, Callable[[Mapping[str, Any], Dims], bool]] = MappingProxyType(
    {
        "reverse": lambda attributes, kept: {*kept}.isdisjoint(attributes["dimensions"]),
        "concatenate": lambda attributes, kept: attributes["dimension"] not in kept,
        "slice": lambda attributes, kept: all(attributes["dimensions"][dim].stride == 1 for dim in kept),
        "pad": _pads_no_rows,
        "transpose": lambda attributes, kept: all(attributes["permutation"][dim] == dim for dim in kept),
        "broadcast": lambda attributes, kept: (
            _counts_rows_first(kept) and tuple(attributes["dimensions"][: len(kept)]) == kept
        ),
        "reshape": lambda attributes, kept: _counts_rows_first(kept),
    }
)
"""Of what has the dimensions that count rows where its operand has them: whether its rows are those of the operand."""


def row_space(reduce: Instruction) -> RowSpace | None:
    """The rows or columns that a reduce folds, if a row kernel may hold it."""
    if len(reduce.operands) != 2 or sole_operation(reduce.called[0]) is None:
        return None
    array = reduce.operands[0]
    if not array.shape.is_static or not array.shape.size or not (is_row_major(array) and is_row_major(reduce)):
        return None
    space = RowSpace(array.shape.dims, tuple(sorted(reduce.attributes["dimensions"])))
    if not space.folded:
        return None
    is_suitable = _are_columns if space.is_columns else _are_rows
    return space if is_suitable(space, array.shape) else None


def _are_rows(space: RowSpace, shape: Shape) -> bool:
    """Each fold lies in one piece that a cache holds."""
    is_last = space.kept == tuple(range(len(space.kept)))
    return is_last and shape.dims[-1] >= LEAST_ROW and space.row_length * shape.type.bytes <= most_row_bytes(space.rows)


def most_row_bytes(rows: int) -> int:
    """Of each of so many rows in one kernel."""
    return MOST_ROW_BYTES if rows < LEAST_LONG_ROWS else MOST_LONG_ROW_BYTES


def _are_columns(space: RowSpace, shape: Shape) -> bool:
    """A cache holds what a strip of neighbouring folds has."""
    strip = space.row_length * LEAST_STRIP * shape.type.bytes
    return (
        shape.dims[-1] >= LEAST_STRIP
        and space.row_length > 1
        and strip <= MOST_STRIP_BYTES
        and (not shape.type.is_complex)
    )


def keeps_much(computation: Computation) -> bool:
    """Whether a stack may have no room for what a fused computation of row kind keeps from one fold to the next."""
    space = row_space(_first_fold(computation))
    return space is not None and (space.is_columns or space.row_length > MOST_ON_STACK)


def column_space(computation: Computation) -> RowSpace | None:
    """The columns that a fused computation of row kind folds, if it is a chain over such."""
    space = row_space(_first_fold(computation))
    return space if space is not None and space.is_columns else None


def _first_fold(computation: Computation) -> Instruction:
    return next(instruction for instruction in computation.post_order() if instruction.opcode == "reduce")


def _wide(dims: Sequence[int]) -> list[int]:
    return [size for size in dims if size != 1]


def is_blocked_transpose(instruction: Instruction) -> bool:
    """A transpose for which memory order matters: large, and another dimension becomes the fastest one. Narrow elements
    need not be many, unless they lie in short rows, of which columns are shifted out."""
    if instruction.opcode != "transpose":
        return False
    source = instruction.operands[0].shape
    moved = [dim for dim in instruction.attributes["permutation"] if source.dims[dim] != 1]
    if not moved or moved[-1] == max(moved):
        return False
    is_narrow = source.type.bytes <= PICKED_BYTES and source.dims[max(moved)] >= SHORT_ROW
    return source.bytes > BLOCKED_TRANSPOSE_BYTES or (is_narrow and source.size >= LEAST_BLOCKED)


def turns_reversed(transpose: Instruction, operand: Instruction) -> bool:
    """The copy in blocks may take the elements of a reverse from where they were before, block by block."""
    if operand.opcode != "reverse" or operand.operands[0].opcode in ("constant", "broadcast"):
        return False
    moved = [dim for dim in transpose.attributes["permutation"] if operand.shape.dims[dim] != 1]
    return moved[-1] not in operand.attributes["dimensions"]


def joins_columns(instruction: Instruction) -> bool:
    """A concatenation of a few arrays, each of which becomes a column of the last dimension: a kernel computes them all
    at once, and joins them in registers."""
    if instruction.opcode != "concatenate" or not 2 <= len(instruction.operands) <= MOST_COLUMNS:
        return False
    dims = instruction.shape.dims
    return (
        len(dims) > 1
        and instruction.attributes["dimension"] == len(dims) - 1
        and not instruction.shape.type.is_complex
        and is_row_major(instruction)
        and all(column_of(operand) is not None for operand in instruction.operands)
    )


def column_of(operand: Instruction) -> Instruction | None:
    """What is reshaped to one column; None if nothing is, or a number that is the same everywhere."""
    dims, column = operand.shape.dims, operand
    while column.opcode == "reshape" and is_row_major(column):
        column = column.operands[0]
        if column.shape.dims == dims[:-1]:
            is_column = dims[-1] == 1 and is_row_major(column) and not is_kernel_constant(column)
            return column if is_column else None
    return None


MOST_COLUMNS = 4  # registers hold a vector of each, and what it is made of


SHORT_ROW = 8  # elements; lanes along a shorter dimension are mostly idle


PLANE_KERNELS, PLANE_STRIDES = (3, 5, 7), (1, 2)
LEAST_PLANES = 16  # channels, which are shared out
LEAST_PLANE_ROW, LEAST_PLANE = 12, 64  # positions: most of a vector in a row, and several rows


def is_gradient_of_planes(convolution: Instruction) -> bool:
    """It is the gradient of a depthwise kernel, of channels whose positions are neighbours in both arrays. A library
    reads these as they lie."""
    numbers: ConvolutionDimensionNumbers = convolution.attributes["dimension_numbers"]
    window: Sequence[WindowDimension] = convolution.attributes["window"].dimensions
    source, slopes, kernel = (value.shape for value in (*convolution.operands, convolution))
    channels = kernel.dims[numbers.output_feature]
    is_depthwise = convolution.attributes["batch_group_count"] == channels == source.dims[numbers.input_batch]
    if not is_depthwise or channels < LEAST_PLANES or len(window) != 2:
        return False
    if not source.type is slopes.type is kernel.type or kernel.type not in (F32, F64):
        return False
    if (source.minor_to_major[0], slopes.minor_to_major[0]) != (numbers.input_spatial[-1], numbers.kernel_spatial[-1]):
        return False
    if any(part.base_dilation > 1 or part.reversal or part.stride > 1 for part in window):
        return False
    height, width = (kernel.dims[dim] for dim in numbers.output_spatial)
    rows, positions = window
    moves = rows.window_dilation in PLANE_STRIDES and positions.window_dilation == 1
    is_large = positions.size >= LEAST_PLANE_ROW and rows.size * positions.size >= LEAST_PLANE
    return height == width and width in PLANE_KERNELS and moves and is_large


def has_features_in_lanes(convolution: Instruction) -> bool:
    """The kernel of a convolution computes neighbouring output features together, so that it wants them last in the
    right operand.

    Else it computes neighbours along the fastest dimension of the result, or of both operands."""
    if is_gradient_of_planes(convolution):
        return False
    shape: Shape = convolution.shape
    feature: int = convolution.attributes["dimension_numbers"].output_feature
    inner = next((dim for dim in shape.minor_to_major if shape.dims[dim] > 1), feature)
    return inner == feature or shape.dims[inner] < SHORT_ROW <= shape.dims[feature]


def is_row_major(instruction: Instruction) -> bool:
    """The array is laid out with its last dimension fastest."""
    layout = instruction.shape.layout
    return layout is None or layout.is_row_major


def fusion_roots(computation: Computation) -> tuple[Instruction, ...]:
    """The outputs of a fused computation: the elements of a tuple root, or the root itself."""
    root = computation.root
    return root.operands if root.opcode == "tuple" else (root,)


FOLDS = ("reduce", "reduce-window")
FOLDING_KINDS = (FusionKind.INPUT, FusionKind.OUTPUT)


def fold_of(computation: Computation) -> Instruction:
    """The fold in a kernel that has one."""
    return next(instruction for instruction in computation if instruction.opcode in FOLDS)


def fold_values(fold: Instruction) -> list[Instruction]:
    """The arrays that a fold makes: itself, or the elements of its tuple that are used."""
    return [fold] if fold.shape.is_array else [*fold.users]


SMALL_WINDOW = 8  # elements in each dimension: a larger one may be a scan, or mean too much to compute again


def has_small_window(fold: Instruction) -> bool:
    """A kernel may compute the elements that the reduce-window folds, once for each place of each window."""
    return all(part.size < SMALL_WINDOW for part in fold.attributes["window"].dimensions)


def is_cumulative(fold: Instruction) -> bool:
    """The window reaches from each element to an end of one dimension: a scan along it."""
    dims = fold.operands[0].shape.dims
    windows: Window = fold.attributes["window"]
    wide = [(part, dim) for part, dim in zip(windows.dimensions, dims, strict=True) if part != NO_WINDOW_DIMENSION]
    if len(wide) != 1:
        return False
    part, dim = wide[0]
    reaching = part.size - 1
    ends = (WindowDimension(part.size, padding_low=reaching), WindowDimension(part.size, padding_high=reaching))
    return part in ends and part.size >= dim


def looks_once(fold: Instruction) -> bool:
    """The reduce-window is a scan whose kernel looks at each element once, vector by vector: by one op, and it begins
    with what changes nothing."""
    init = fold.operands[-1]
    if len(fold.operands) != 2 or not is_cumulative(fold) or not is_kernel_constant(init):
        return False
    identity = identity_literal(fold.called[0])
    return identity is not None and bool(init.attributes["literal"].scalar() == identity.scalar())


def continues_fold(instruction: Instruction, size: int) -> bool:
    """The instruction makes each of `size` elements from those at the same place."""
    if not is_element_op(instruction) or instruction.shape.size != size or instruction.shape.is_scalar:
        return False
    return instruction.opcode == "reshape" or is_pointwise(instruction)


def holds_kernels(computation: Computation) -> bool:
    """What is fused are kernels, which run one after the other for each block of rows."""
    return any(instruction.opcode == "fusion" for instruction in computation)


def fused_product(fusion: Instruction) -> Instruction | None:
    """The dot or convolution inside of a fusion that is computed by the library, if it is one of that kind."""
    if fusion.attributes["kind"] is not FusionKind.CUSTOM or holds_kernels(fusion.called[0]):
        return None
    return next(instruction for instruction in fusion.called[0] if instruction.opcode in PRODUCTS)


def product_leaf(computation: Computation, product: Instruction) -> int | None:
    """The number of the result in whose memory a fused product is computed."""
    widths = [root.shape.type.bytes for root in fusion_roots(computation)]
    return widths.index(product.shape.type.bytes) if product.shape.type.bytes in widths else None


PRODUCTS = frozenset({"dot", "convolution"})


def is_element_by_element(user: Instruction, size: int) -> bool:
    """Element by element in memory, what `user` makes comes from what it reads of arrays of the same size."""
    keeps = user.opcode == "reshape" or (Trait.ELEMENTWISE in user.spec.traits and not user.called)
    return keeps and user.shape.size == size and is_row_major(user)


def has_same_places(operand: Instruction, result: Instruction) -> bool:
    """Elements with the same index have the same address, if both arrays begin at the same one; dimensions of one
    element do not count."""
    one, other = operand.shape, result.shape
    if not (one.is_array and other.is_array and one.type.bytes == other.type.bytes):
        return False
    if one.dims == other.dims:
        return one.minor_to_major == other.minor_to_major
    return _wide(one.dims) == _wide(other.dims) and is_row_major(operand) and is_row_major(result)


def keeps_places(reshape: Instruction) -> bool:
    """The instruction only adds or drops dimensions of one element."""
    return reshape.opcode == "reshape" and has_same_places(reshape.operands[0], reshape)


def is_read_at_own_index(parameter: Instruction, *, rows: bool) -> bool:
    """Whether every way from the parameter to the root is element-wise, or, in a kernel over `rows`, ends in a
    reduce."""
    pending, seen = [parameter], {parameter}
    while pending:
        value = pending.pop()
        for user in value.users:
            if user in seen or user.opcode == "tuple" or (rows and user.opcode == "reduce"):
                continue
            if not (keeps_places(user) or (is_pointwise(user) and user.shape.dims == value.shape.dims)):
                return False
            seen.add(user)
            pending.append(user)
    return True


def rereads(update_slice: Instruction, source: Instruction, members: Container[Instruction] | None = None) -> bool:
    """`source` is the slice that a dynamic-update-slice writes, as it was, and each element of the update is made of
    that same element alone: the kernel may read it from the memory that it writes to.

    Users that are no `members` of the kernel make no difference; None are all members."""
    update = update_slice.operands[1]
    is_same_place = (
        source.opcode in _STARTS
        and source.operands[0] is update_slice.operands[0]
        and source.shape.dims == update.shape.dims
        and _STARTS[source.opcode](source, update_slice)
    )
    if not is_same_place or not is_row_major(source):
        return False
    pending, seen = [source], {source}
    while pending:
        for user in pending.pop().users:
            if user is update_slice or (members is not None and user not in members):
                continue
            if not is_element_by_element(user, update.shape.size):
                return False
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return True


def _starts_where_known(source: Instruction, update_slice: Instruction) -> bool:
    """A slice, each element of which is one behind the other."""
    parts: tuple[SliceDimension, ...] = source.attributes["dimensions"]
    starts = update_slice.operands[2:]
    return all(
        part.stride == 1 and is_kernel_constant(start) and int(start.attributes["literal"].scalar()) == part.start
        for part, start in zip(parts, starts, strict=True)
    )


def _starts_where_it_does(source: Instruction, update_slice: Instruction) -> bool:
    return all(map(_is_same_index, source.operands[1:], update_slice.operands[2:]))


_STARTS: Mapping[str, Callable[[Instruction, Instruction], bool]] = MappingProxyType(
    {"dynamic-slice": _starts_where_it_does, "slice": _starts_where_known}
)
"""Whether a slice of what is updated begins where the update does."""


def _is_same_index(one: Instruction, other: Instruction) -> bool:
    if one is other:
        return True
    both = is_kernel_constant(one) and is_kernel_constant(other)
    return both and bool(one.attributes["literal"].scalar() == other.attributes["literal"].scalar())
