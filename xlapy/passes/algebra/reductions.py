"""Laws of reduce."""

from __future__ import annotations

from math import prod

from xlapy.hlo.attributes import PaddingDimension, SliceDimension, Window, WindowDimension
from xlapy.hlo.cost import arithmetic_cost
from xlapy.hlo.element_types import F32, F64
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.identities import identity_literal
from xlapy.hlo.kernel_plan import sole_operation
from xlapy.hlo.ops import Trait
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.hlo.reshape_groups import pairs_of_wide
from xlapy.hlo.shape import Dims
from xlapy.passes import new
from xlapy.passes.algebra.conditions import is_integral
from xlapy.passes.algebra.groups import common_groups, split_by
from xlapy.passes.algebra.shapes import MOST_AROUND, before_reshape, undone
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS, Exactness

x, y, z, d, p = variables("x y z d p")


@LAWS.law(P.reduce(x, y, dimensions=d))
def reduce_empty(root: Instruction, x: Instruction, y: Instruction) -> Value | None:
    """reduce(x) without elements -> broadcast(initial value)"""
    return new.repeated(y, root.shape.dims) if not x.shape.size and root.shape.size else None


@LAWS.law(P.reduce(P.transpose(x, permutation=p), y, dimensions=d), exactness=Exactness.FREE)
def reduce_of_transpose(root: Instruction, x: Instruction, y: Instruction, p: Dims, d: Dims) -> Value | None:
    """reduce(transpose(x)) -> reduce(x), where the dimensions that are left keep their order

    A sum of floats is then of another order."""
    left = [p[dim] for dim in range(len(p)) if dim not in d]
    if left != sorted(left):
        return None
    return new.like(root, [x, y], dimensions=tuple(sorted(p[dim] for dim in d)))


@LAWS.law(P.reduce(P.reshape(x), y, dimensions=d))
def reduce_of_expanded(root: Instruction, x: Instruction, y: Instruction, d: Dims) -> Value | None:
    """reduce(reshape(x)) -> reshape(reduce(x)), where the reshape only adds or drops dimensions of size 1"""
    pairs = pairs_of_wide(x.shape.dims, root.operands[0].shape.dims)
    if pairs is None or not x.shape.size:
        return None
    dims = tuple(dim for dim, dim_after in pairs if dim_after in d)
    if not dims:
        return None
    return new.reshaped(new.like(root, [x, y], dimensions=dims), root.shape.dims)


@LAWS.law(P.reduce(x, y, dimensions=d))
def reduce_of_one(root: Instruction, x: Instruction, y: Instruction, d: Dims) -> Value | None:
    """reduce(x) of single elements -> f(initial value, x)"""
    operation = sole_operation(root.called[0])
    if operation is None or any(x.shape.dims[dim] != 1 for dim in d) or not x.shape.size:
        return None
    return new.op(operation.opcode, [new.repeated(y, root.shape.dims), new.reshaped(x, root.shape.dims)])


MOST_FEW = 4  # elements of a row that are written out
MOST_CHOSEN = 8
"""The same where the largest or the smallest is found: to fold lanes with NaNs in mind takes long. (Not where that is
folded again, by several vectors: so much code takes three times as long to compile.)"""
LEAST_FEW_FOLDS = 64  # that are worth it
LEAST_BESIDE = 16  # rows side by side, where others are folded as well: vectors of them
MOST_BEHIND = 16  # instructions that are looked at


@LAWS.law(P.reduce(x, y, dimensions=d), exactness=Exactness.FREE)
def reduce_of_few(root: Instruction, x: Instruction, y: Instruction, d: Dims) -> Value | None:
    """reduce(x) of rows of a few elements -> f(initial value, f(f(x[..., 0], x[..., 1]), x[..., 2]))

    Vectors go along the rows, and what is made from the result is fused. Rows are not computed for each of their
    elements again, so these must be little work. The largest element of rows that are needed again as a whole is mostly
    the shift of a softmax, which has kernels of its own. Others are folded, or read column by column, as colors are.
    What is folded besides, but for the dimension next to the last, is folded then, as in blocks of an image."""
    operation, dims, last = sole_operation(root.called[0]), x.shape.dims, x.shape.rank - 1
    if operation is None or last not in d or last - 1 in d:
        return None
    chooses = operation.opcode in ("maximum", "minimum")
    if root.shape.type.is_narrow_float and not chooses:
        return None
    most = MOST_CHOSEN if chooses and all(user.opcode != "reduce" for user in root.users) else MOST_FEW
    if not 1 < dims[last] <= most or (len(d) > 1 and dims[last - 1] < LEAST_BESIDE):
        return None
    if root.shape.size < LEAST_FEW_FOLDS or not _is_little_work(x):
        return None
    if operation.opcode == "maximum" and x.sole_user is None and not _is_read_by_columns(x):
        return None
    whole = [SliceDimension(0, size) for size in dims[:-1]]
    parts = [new.slice(x, dimensions=(*whole, SliceDimension(n, n + 1))) for n in range(dims[-1])]
    total, *others = (new.reshaped(part, dims[:-1]) for part in parts)
    for part in others:
        total = new.op(operation.opcode, [total, part])
    if len(d) > 1:
        return new.like(root, [total, y], dimensions=tuple(dim for dim in d if dim != last))
    return new.op(operation.opcode, [new.repeated(y, root.shape.dims), total])


LEAST_CHANNELS = 8  # elements side by side that fill a vector
MOST_PLACES_OF_FEW = 16
"""Elements of a piece, where there are fewer channels: lanes lie across pieces, and each element of these is picked out
of others."""


@LAWS.law(P.reduce(P.reshape(x), y, dimensions=d), exactness=Exactness.FREE)
def reduce_of_cut(root: Instruction, x: Instruction, y: Instruction, d: Dims) -> Value | None:
    """reduce(reshape(x)) -> reduce-window(x), where the reshape cuts two dimensions of images, channels last, and what
    is cut off is folded

    As pooling is written with reshapes: for windows there is a library. What is computed anyway is folded by its own
    kernel."""
    operation, cut = sole_operation(root.called[0]), root.operands[0].shape
    if operation is None or x.shape.rank != root.shape.rank or x.shape.rank != IMAGE_RANK or len(d) != CUT_DIMENSIONS:
        return None
    if root.shape.type not in (F32, F64) or not x.shape.size:
        return None
    if x.shape.dims[-1] < LEAST_CHANNELS and prod(cut.dims[dim] for dim in d) > MOST_PLACES_OF_FEW:
        return None
    if Trait.ELEMENTWISE in x.spec.traits:
        return None
    joined, sizes = [], []
    for dim, size in enumerate(cut.dims):
        if dim not in d:
            joined.append(size)
            sizes.append(1)
        elif dim - 1 in d or not joined:
            return None
        else:
            joined[-1] *= size
            sizes[-1] = size
    if tuple(joined) != x.shape.dims or sizes[-1] > 1 or sum(size > 1 for size in sizes) != CUT_DIMENSIONS:
        return None
    window = Window(tuple(WindowDimension(size, size) for size in sizes))
    return new.op("reduce-window", [x, y], called=root.called, window=window)


IMAGE_RANK, CUT_DIMENSIONS = 4, 2
"""Images have a number, rows, columns and channels; rows and columns are cut."""


def _is_little_work(value: Instruction) -> bool:
    """Whether a value is in memory, or made by a few cheap instructions from such, as nobody else needs it."""
    pending, seen = [value], 0
    while pending:
        instruction = pending.pop()
        seen += 1
        is_element_wise = Trait.ELEMENTWISE in instruction.spec.traits
        if seen > MOST_BEHIND or (is_element_wise and arithmetic_cost(instruction).transcendentals):
            return False
        if (
            is_element_wise
            and instruction.sole_user is None
            and not (instruction is value and _is_read_by_columns(value))
        ):
            return False
        pending += instruction.operands if is_element_wise else ()
    return True


def _is_read_by_columns(rows: Instruction) -> bool:
    """All that rows are needed for is a fold of each, or single elements."""
    last = rows.shape.rank - 1
    return not rows.is_root and all(
        (user.opcode == "reduce" and user.attributes["dimensions"] == (last,))
        or (user.opcode == "slice" and user.shape.dims[last] == 1)
        for user in rows.users
    )


@LAWS.law(P.reduce(P.reshape(x), y, dimensions=d), exactness=Exactness.FREE)
def reduce_of_reshape(root: Instruction, x: Instruction, y: Instruction, d: Dims) -> Value | None:
    """reduce(reshape(x)) -> reshape(reduce(x)), where what is folded was whole dimensions of x"""
    if sole_operation(root.called[0]) is None:
        return None
    dims = _dims_before(root, x, d)
    return new.reshaped(new.like(root, [x, y], dimensions=dims), root.shape.dims) if dims else None


@LAWS.law(P.reduce(x, y, dimensions=d), exactness=Exactness.FREE)
def reduce_of_elementwise_of_reshapes(root: Instruction, x: Instruction, y: Instruction, d: Dims) -> Value | None:
    """reduce(f(reshape(x), reshape(z))) -> reshape(reduce(f(x, z))), where what is folded was whole dimensions of x

    Products of arrays that are flattened before are such: their kernel would compute the places of a stencil anew for
    each element."""
    source = _reshaped_in(x)
    if source is None or sole_operation(root.called[0]) is None:
        return None
    dims = _dims_before(root, source, d)
    if dims is None or pairs_of_wide(source.shape.dims, x.shape.dims) is not None:
        return None
    value = undone(x, source.shape.dims, before_reshape)
    return new.reshaped(new.like(root, [value, y], dimensions=dims), root.shape.dims) if value is not None else None


def _reshaped_in(value: Instruction, most: int = MOST_AROUND) -> Instruction | None:
    """What is reshaped in front of an element-wise instruction, or of others in front of that, if there is any."""
    if not most or Trait.ELEMENTWISE not in value.spec.traits or value.sole_user is None:
        return None
    for operand in value.operands:
        found = operand.operands[0] if operand.opcode == "reshape" else _reshaped_in(operand, most - 1)
        if found is not None:
            return found
    return None


def _dims_before(reduce: Instruction, x: Instruction, folded: Dims) -> Dims | None:
    """The dimensions that x had where these are folded of its reshape, if they are whole ones."""
    groups = common_groups(reduce.operands[0].shape, x.shape)
    parts = split_by(groups, folded) if groups is not None else None
    if not parts or not parts[0]:
        return None
    return tuple(sorted(dim for group in parts[0] for dim in group.after))


@LAWS.law(P.reduce(P.broadcast(x, dimensions=p), y, dimensions=d))
def reduce_of_repeated(root: Instruction, x: Instruction, y: Instruction, p: Dims, d: Dims) -> Value | None:
    """reduce(broadcast(x)) -> broadcast(reduce(x)), for max, min, and, or: repetition changes nothing"""
    operation = sole_operation(root.called[0])
    if operation is None or operation.opcode not in IDEMPOTENT or not root.operands[0].shape.size:
        return None
    return _reduced_before(root, x, y, p, d)


IDEMPOTENT = frozenset({"maximum", "minimum", "and", "or"})


@LAWS.law(P.reduce(P.broadcast(x, dimensions=p), P.number(0), dimensions=d), exactness=Exactness.FREE)
def sum_of_repeated(root: Instruction, x: Instruction, p: Dims, d: Dims) -> Value | None:
    """sum(broadcast(x)) -> broadcast(sum(x)) * number of repetitions, where the type holds that number

    Not of narrow floats, where a sum is rounded before it is multiplied, unless each sum is of one element."""
    operation = sole_operation(root.called[0])
    if operation is None or operation.opcode != "add" or not root.operands[0].shape.size or root.shape.type.is_complex:
        return None
    if root.shape.type.is_narrow_float and {*p} & {*d}:
        return None
    count = prod(root.operands[0].shape.dims[dim] for dim in d if dim not in p)
    spread = _reduced_before(root, x, root.operands[1], p, d)
    if spread is None or not root.shape.type.holds(count, count):
        return None
    return new.multiply(spread, new.number(count, like=root))


def _reduced_before(root: Instruction, x: Instruction, init: Instruction, places: Dims, folded: Dims) -> Value | None:
    """The reduce of what was broadcast, broadcast to where the reduce of the whole is; None where nothing repeats."""
    if not set(folded) - set(places):
        return None
    left = [dim for dim in range(root.operands[0].shape.rank) if dim not in folded]
    inner = tuple(place for place, dim in enumerate(places) if dim in folded)
    reduced: Value = new.like(root, [x, init], dimensions=inner)
    kept = tuple(left.index(dim) for dim in places if dim not in folded)
    if root.shape.is_scalar:
        return reduced
    return new.broadcast(reduced, shape=root.shape, dimensions=kept)


@LAWS.law(P.reduce(P.only(P.reduce(x, z, dimensions=p)), y, dimensions=d))
def reduce_of_reduce(
    root: Instruction, x: Instruction, y: Instruction, z: Instruction, p: Dims, d: Dims
) -> Value | None:
    """reduce(reduce(x)) -> reduce(x), for integers, max, min, and, or: their order does not show"""
    operation = sole_operation(root.called[0])
    free = operation is not None and (operation.opcode in IDEMPOTENT or is_integral(root))
    return _merged(root, x, y, z, p, d) if free else None


@LAWS.law(P.reduce(P.only(P.reduce(x, z, dimensions=p)), y, dimensions=d), exactness=Exactness.FREE)
def sum_of_sums(root: Instruction, x: Instruction, y: Instruction, z: Instruction, p: Dims, d: Dims) -> Value | None:
    """sum(sum(x)) -> sum(x), and so for products: for floats in another order

    Not of narrow floats, where the inner sum is rounded."""
    is_narrow = root.shape.type.is_narrow_float
    return None if is_narrow else _merged(root, x, y, z, p, d)


def _merged(
    root: Instruction, x: Instruction, init: Instruction, inner_init: Instruction, inner: Dims, outer: Dims
) -> Value | None:
    """One reduce over the dimensions of both, if they do the same and the inner one starts from nothing."""
    one, other = sole_operation(root.called[0]), sole_operation(root.operands[0].called[0])
    if one is None or other is None or one.opcode != other.opcode:
        return None
    if not changes_nothing(inner_init, root.operands[0].called[0], init):
        return None
    left = [dim for dim in range(x.shape.rank) if dim not in inner]
    dims = tuple(sorted((*inner, *(left[dim] for dim in outer))))
    return new.like(root, [x, init], dimensions=dims)


@LAWS.law(P.reduce(P.pad(x, z, dimensions=p), y, dimensions=d), exactness=Exactness.FREE)
def reduce_of_padded(
    root: Instruction, x: Instruction, y: Instruction, z: Instruction, p: tuple[PaddingDimension, ...], d: Dims
) -> Value | None:
    """reduce(pad(x, identity)) -> reduce(x), where only dimensions are padded that are folded"""
    if not x.shape.size or not changes_nothing(z, root.called[0], y):
        return None
    padded = [dim for dim, padding in enumerate(p) if padding != PaddingDimension()]
    grows = all(p[dim].low >= 0 and p[dim].high >= 0 for dim in padded)
    return new.like(root, [x, y], dimensions=d) if grows and set(padded) <= set(d) else None


def changes_nothing(value: Instruction, region: Computation, init: Instruction) -> bool:
    """A reduction that starts from `init` is the same without `value` among its elements.

    0.0 turns a sum of nothing but -0.0 into 0.0, which shows only where the sum starts from -0.0 too."""
    identity, number = identity_literal(region), number_of(value)
    if identity is None or number is None:
        return False
    neutral = identity.scalar()
    if number.tobytes() == neutral.tobytes():
        return True
    start = number_of(init)
    return bool(number == neutral == 0) and start is not None and start.tobytes() != neutral.tobytes()
