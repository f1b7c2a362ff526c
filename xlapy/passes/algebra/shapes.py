"""Laws of data movement with static indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.hlo.attributes import PaddingDimension, SliceDimension
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import joins_columns
from xlapy.hlo.ops import Trait
from xlapy.hlo.patterns import P, number_of, variables
from xlapy.hlo.reshape_groups import Group, reshape_groups
from xlapy.hlo.shape import Dims, Shape
from xlapy.passes import new
from xlapy.passes.fusion.cost import CHEAP, operation_cost
from xlapy.passes.new import Value
from xlapy.passes.rewrite import LAWS

x, y, p, q, xs, d, s, t = variables("x y p q xs d s t")


@LAWS.law(P.constant())
def splat_constant(root: Instruction) -> Value | None:
    """constant of one repeated value -> broadcast(scalar constant)"""
    if not root.shape.is_array or root.shape.is_scalar:
        return None
    literal = root.attributes["literal"]
    return new.filled(literal.scalar(), root.shape) if literal.is_splat else None


@LAWS.law(P.broadcast(x, dimensions=d))
def broadcast_nothing(root: Instruction, x: Instruction, d: Dims) -> Value | None:
    """broadcast(x) that only adds dimensions of size 1 -> reshape(x), or x"""
    adds_nothing = list(d) == sorted(d) and x.shape.size == root.shape.size
    return new.reshaped(x, root.shape.dims) if adds_nothing and (x.shape.rank or root.shape.is_scalar) else None


@LAWS.law(P.broadcast(P.broadcast(x, dimensions=p), dimensions=q))
def merge_broadcasts(root: Instruction, x: Instruction, p: Dims, q: Dims) -> Value:
    """broadcast(broadcast(x, p), q) -> broadcast(x, q∘p)"""
    return new.broadcast(x, shape=root.shape, dimensions=tuple(q[dim] for dim in p))


@LAWS.law(P.reshape(x))
def reshape_to_same(root: Instruction, x: Instruction) -> Value | None:
    """reshape(x) to its own dimensions -> x"""
    return x if x.shape.dims == root.shape.dims else None


@LAWS.law(P.reshape(P.reshape(x)))
def merge_reshapes(root: Instruction, x: Instruction) -> Value | None:
    """reshape(reshape(x)) -> reshape(x), unless the outer one makes a column of what is joined"""
    return new.reshaped(x, root.shape.dims) if not _makes_column(root) else None


def _makes_column(reshape: Instruction) -> bool:
    """Whatever it is made of has an index for each row: a kernel that joins columns computes it so."""
    dims = reshape.shape.dims
    return dims[-1:] == (1,) and dims[:-1] == reshape.operands[0].shape.dims and any(map(joins_columns, reshape.users))


@LAWS.law(P.transpose(x, permutation=p))
def transpose_nothing(root: Instruction, x: Instruction, p: Dims) -> Value | None:
    """transpose(x) that moves no dimension, or only those of size 1 -> reshape(x), or x"""
    large = [dim for dim in p if x.shape.dims[dim] != 1]
    return new.reshaped(x, root.shape.dims) if large == sorted(large) else None


@LAWS.law(P.transpose(P.transpose(x, permutation=p), permutation=q))
def merge_transposes(x: Instruction, p: Dims, q: Dims) -> Value:
    """transpose(transpose(x, p), q) -> transpose(x, p∘q)"""
    return new.transpose(x, permutation=tuple(p[dim] for dim in q))


@LAWS.law(P.transpose(P.reshape(P.transpose(x, permutation=p)), permutation=q))
def merge_transposes_around_reshape(root: Instruction, x: Instruction, p: Dims, q: Dims) -> Value | None:
    """transpose(reshape(transpose(x, p)), q) -> reshape(transpose(x, ...)), where q keeps together what p brought
    together"""
    reshaped = root.operands[0]
    if not reshaped.shape.is_static or not reshaped.shape.size:
        return None
    runs = {
        group.after[0]: group for group in reshape_groups(reshaped.operands[0].shape, reshaped.shape) if group.after
    }
    order: list[int] = []
    place = 0
    while place < len(q):
        run = runs.get(q[place])
        if run is None or q[place : place + len(run.after)] != run.after:
            return None
        order += (p[dim] for dim in run.before)
        place += len(run.after)
    return new.reshaped(new.transpose(x, permutation=tuple(order)), root.shape.dims) if len(order) == len(p) else None


@LAWS.law(P.transpose(P.broadcast(x, dimensions=d), permutation=p))
def transpose_of_broadcast(root: Instruction, x: Instruction, d: Dims, p: Dims) -> Value:
    """transpose(broadcast(x, d), p) -> broadcast(x, p⁻¹∘d)"""
    return new.broadcast(x, shape=root.shape, dimensions=tuple(p.index(dim) for dim in d))


@LAWS.law(P.slice(x))
def slice_everything(root: Instruction, x: Instruction) -> Value | None:
    """slice(x) that takes everything -> x"""
    return x if x.shape.dims == root.shape.dims else None


@LAWS.law(P.slice(P.slice(x, dimensions=s), dimensions=t))
def merge_slices(x: Instruction, s: tuple[SliceDimension, ...], t: tuple[SliceDimension, ...]) -> Value:
    """slice(slice(x)) -> slice(x)"""
    return new.slice(x, dimensions=tuple(_composed(*pair) for pair in zip(s, t, strict=True)))


def _composed(first: SliceDimension, then: SliceDimension) -> SliceDimension:
    count = -(-(then.limit - then.start) // then.stride)
    if not count:
        return SliceDimension(0, 0)
    start, stride = first.start + then.start * first.stride, first.stride * then.stride
    return SliceDimension(start, start + (count - 1) * stride + 1, stride)


@LAWS.law(P.slice(x.where(P.concatenate(xs.rest, dimension=d)), dimensions=s))
def slice_of_concatenate(x: Instruction, d: int, s: tuple[SliceDimension, ...]) -> Value | None:
    """slice(concatenate(..., x, ...)) -> slice(x), where it lies within x, of the innermost one that is nested"""
    part, inner = x, s[d]
    while part.opcode == "concatenate" and part.attributes["dimension"] == d:
        found = _part_around(part.operands, d, inner)
        if found is None:
            break
        part, inner = found
    return None if part is x else new.slice(part, dimensions=(*s[:d], inner, *s[d + 1 :]))


MOST_ELEMENTS = 4  # of a vector that is taken apart


@LAWS.law(P.reshape(P.slice(x, dimensions=s)))
def element_of_vector(root: Instruction, x: Instruction, s: tuple[SliceDimension, ...]) -> Value | None:
    """reshape(slice(f(a, b))) -> f(reshape(slice(a)), reshape(slice(b))), of one of a few elements, if the others too
    are needed one by one

    The state of a system is such a vector, put together and taken apart at each step, and its elements are in registers
    if they are scalars. Functions are better computed of all elements at once."""
    if root.shape.rank or not 1 < x.shape.size <= MOST_ELEMENTS or x.is_root or x.called:
        return None
    if Trait.ELEMENTWISE not in x.spec.traits or operation_cost(x) > CHEAP or not all(map(_is_one_element, x.users)):
        return None

    def own(value: Instruction) -> Value:
        return new.reshaped(new.slice(value, dimensions=s), ()) if value.shape.dims == x.shape.dims else value

    result = root.shape if x.spec.takes_result else None
    return new.op(x.opcode, [own(operand) for operand in x.operands], shape=result, **x.attributes)


def _is_one_element(user: Instruction) -> bool:
    """The user is an element, or nobody's any more."""
    if user.opcode != "slice":
        return not (user.users or user.is_root)
    return not user.is_root and all(each.opcode == "reshape" and not each.shape.rank for each in user.users)


def _part_around(
    parts: Sequence[Instruction], dimension: int, wanted: SliceDimension
) -> tuple[Instruction, SliceDimension] | None:
    """The part that the wanted positions of a concatenation lie in, and where."""
    begin = 0
    for part in parts:
        end = begin + part.shape.dims[dimension]
        if begin <= wanted.start and wanted.limit <= end:
            return part, SliceDimension(wanted.start - begin, wanted.limit - begin, wanted.stride)
        begin = end
    return None


@LAWS.law(P.pad(x, q, dimensions=p))
def pad_nothing(x: Instruction, p: tuple[PaddingDimension, ...]) -> Value | None:
    """pad(x) by nothing -> x"""
    return x if all(padding == PaddingDimension() for padding in p) else None


@LAWS.law(P.pad(x, q, dimensions=p))
def pad_inward(x: Instruction, p: tuple[PaddingDimension, ...]) -> Value | None:
    """pad(x) that only removes elements at the edges -> slice(x)"""
    if any(padding.low > 0 or padding.high > 0 or padding.interior for padding in p):
        return None
    sizes = zip(p, x.shape.dims, strict=True)
    return new.slice(x, dimensions=tuple(SliceDimension(-padding.low, size + padding.high) for padding, size in sizes))


@LAWS.law(P.reverse(x, dimensions=d))
def reverse_nothing(x: Instruction, d: Dims) -> Value | None:
    """reverse(x) -> x without its dimensions of size 1; x itself when none is left"""
    moving = tuple(dim for dim in d if x.shape.dims[dim] != 1)
    if not moving:
        return x
    return new.reverse(x, dimensions=moving) if moving != d else None


@LAWS.law(P.reverse(P.reverse(x, dimensions=p), dimensions=q))
def reverse_twice(x: Instruction, p: Dims, q: Dims) -> Value:
    """reverse(reverse(x, p), q) -> reverse(x, p xor q)"""
    return new.reverse(x, dimensions=tuple(sorted(set(p) ^ set(q))))


@LAWS.law(P.reverse(P.transpose(x, permutation=p), dimensions=d))
def reverse_of_transpose(x: Instruction, p: Dims, d: Dims) -> Value:
    """reverse(transpose(x, p), d) -> transpose(reverse(x, p∘d), p)"""
    return new.transpose(new.reverse(x, dimensions=tuple(sorted(p[dim] for dim in d))), permutation=p)


@LAWS.law(P.reverse(P.reshape(P.transpose(x)), dimensions=d))
def reverse_of_reshaped_transpose(root: Instruction, d: Dims) -> Value | None:
    """reverse(reshape(transpose(x)), d) -> reshape(reverse(transpose(x))), if the reshape keeps what is reversed"""
    transpose = root.operands[0].operands[0]
    kept = _kept(transpose.shape, root.shape, d)
    return new.reshaped(new.reverse(transpose, dimensions=kept), root.shape.dims) if kept else None


def _kept(before: Shape, after: Shape, dims: Dims) -> Dims:
    """Which dimensions of `before` a reshape makes `dims` of `after`, each out of one; none if it does not."""
    if not before.is_static or not before.size:
        return ()
    places = {group.after[0]: group.before[0] for group in reshape_groups(before, after) if _is_kept(group)}
    return tuple(places[dim] for dim in dims) if {*dims} <= places.keys() else ()


def _is_kept(group: Group) -> bool:
    return len(group.before) == len(group.after) == 1


@LAWS.law(P.concatenate(x, dimension=d))
def concatenate_one(x: Instruction) -> Value:
    """concatenate(x) -> x"""
    return x


@LAWS.law(P.concatenate(xs.rest, dimension=d))
def concatenate_empty(xs: tuple[Instruction, ...], d: int) -> Value | None:
    """concatenate(..., x, ...) -> concatenate(..., ...), where x is empty along the dimension"""
    kept = [part for part in xs if part.shape.dims[d]]
    return new.op("concatenate", kept, dimension=d) if kept and len(kept) < len(xs) else None


@LAWS.law(P.concatenate(xs.rest, dimension=d))
def concatenate_nested(root: Instruction, xs: tuple[Instruction, ...], d: int) -> Value | None:
    """concatenate(x, concatenate(y, z)) -> concatenate(x, y, z), where nothing else uses the inner one

    The outermost one takes in all parts at once: thousands may be nested, where a program joins one array at a time."""
    if _is_part_of_another(root, d):
        return None
    parts: list[Instruction] = []
    waiting = [*reversed(xs)]
    while waiting:
        part = waiting.pop()
        if part.opcode == "concatenate" and _is_part_of_another(part, d):
            waiting.extend(reversed(part.operands))
        else:
            parts.append(part)
    return new.op("concatenate", parts, dimension=d) if len(parts) > len(xs) else None


def _is_part_of_another(concatenate: Instruction, dimension: int) -> bool:
    """Its only user joins it with others along the same dimension, and does so once: parts that are joined with
    themselves again and again would be as many as there are elements."""
    around = concatenate.sole_user
    if around is None or around.opcode != "concatenate":
        return False
    is_along = {around.attributes["dimension"], concatenate.attributes["dimension"]} == {dimension}
    return is_along and around.operands.count(concatenate) == 1


@LAWS.law(P.get_dimension_size(x, dimension=d))
def size_of_static_dimension(root: Instruction, x: Instruction, d: int) -> Value:
    """get-dimension-size(x) -> constant"""
    return new.number(x.shape.dims[d], like=root)


@LAWS.law(P.reshape(y))
def reshape_around_elementwise(root: Instruction, y: Instruction) -> Value | None:
    """reshape(f(reshape(x), number)) -> f(x, number), where x has the dimensions of the result; also of several f"""
    return undone(y, root.shape.dims, before_reshape)


def before_reshape(value: Instruction) -> Value | None:
    """What a reshape is one of."""
    return value.operands[0] if value.opcode == "reshape" else None


@LAWS.law(P.transpose(y, permutation=p))
def transpose_around_elementwise(root: Instruction, y: Instruction, p: Dims) -> Value | None:
    """transpose(f(transpose(x, p⁻¹), number), p) -> f(x, number); also of several f"""
    return untransposed(y, tuple(p.index(dim) for dim in range(len(p))))


MOST_AROUND = 8  # element-wise instructions in a row, between two movements


def untransposed(value: Instruction, permutation: Dims) -> Value | None:
    """f(x, y) if `value` is f(transpose(x), broadcast(y)): what is repeated may be so in another order."""
    dims = [0] * len(permutation)
    for dim, place in enumerate(permutation):
        dims[place] = value.shape.dims[dim]

    def before(operand: Instruction) -> Value | None:
        if operand.opcode == "transpose" and operand.attributes["permutation"] == permutation:
            return operand.operands[0]
        return None

    def repeated(operand: Instruction) -> Value | None:
        if operand.opcode != "broadcast":
            return None
        places = tuple(permutation[dim] for dim in operand.attributes["dimensions"])
        if places != tuple(sorted(places)):
            return None
        return new.broadcast(operand.operands[0], shape=operand.shape.with_dims(dims), dimensions=places)

    return undone(value, tuple(dims), before, repeated)


def undone(
    value: Instruction,
    dims: Dims,
    before: Callable[[Instruction], Value | None],
    alike: Callable[[Instruction], Value | None] = lambda _: None,
    most: int = MOST_AROUND,
) -> Value | None:
    """An element-wise instruction on what its operands were `before` a movement, which have these dimensions; or on
    what is `alike`, besides others."""
    if not most or Trait.ELEMENTWISE not in value.spec.traits or value.sole_user is None or value.called:
        return None
    operands: list[Value] = []
    moved = False
    for operand in value.operands:
        number = number_of(operand)
        if operand.shape.is_scalar:
            operands.append(operand)
        elif number is not None:
            operands.append(new.filled(number, operand.shape.with_dims(dims)))
        elif (same := alike(operand)) is not None:
            operands.append(same)
        else:
            own = before(operand)
            if own is None or own.shape.dims != dims:
                own = undone(operand, dims, before, alike, most - 1)
            if own is None:
                return None
            operands.append(own)
            moved = True
    shape = value.shape.with_dims(dims) if value.spec.takes_result else None
    return new.op(value.opcode, operands, shape=shape, **value.attributes) if moved else None
