"""Steps of random programs that look elements up, put them in order, slide windows over them, choose or fold them
twice, scan them, and store them in any order of their dimensions.

Like those of `random_programs.py`, their results are exact: sums are of small whole numbers, and what is put in order
has no NaN, whose place would hang on how it is done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.e2e.random_programs import (
    FOLDS,
    INTEGER_FOLDS,
    MAX_DEPTH,
    Generator,
    Program,
    Scope,
    binary_computation,
    random_program,
)
from xlapy.hlo.attributes import (
    ComparisonDirection,
    ComparisonType,
    ConvolutionDimensionNumbers,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    Window,
    WindowDimension,
)
from xlapy.hlo.element_types import (
    BF16,
    C64,
    C128,
    COMPLEX,
    F16,
    F32,
    F64,
    FLOAT,
    INTEGER,
    S8,
    S16,
    S32,
    S64,
    U8,
    U32,
    ElementType,
)
from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.shape import Layout, Shape

MOST_LOOKUPS = 300  # the evaluator takes index vectors of a scatter one by one
MOST_SELECTIONS = 500  # the same of the windows of a select-and-scatter
MOST_SORTED = 2000  # it merges rows of this length in as many steps
LONGEST_WINDOW = 300

INDEX_TYPES = (S32, S32, S32, S64, U32, S8, U8, S16)
SUMMED_TYPES = (F32, F32, F64, BF16, F16, S8, S32, U8, C64, C128)
ORDERED = INTEGER | FLOAT


# -- indices -----------------------------------------------------------------------------------------------------------


def indices(g: Generator, dims: Sequence[int], limit: int) -> Instruction:
    """Numbers between about 0 and `limit`: a constant, rising ones, or some that the program computes."""
    kind = g.choose(INDEX_TYPES)
    shape = Shape.array(kind, dims)
    if g.chance(0.3):
        return g.fitted(g.value(), shape)
    if g.chance(0.3) and dims:
        return g.add("iota", dimension=g.number(0, len(dims) - 1), shape=shape)
    low, high = kind.integer_range
    numbers = g.random.integers(max(low, -2), min(high, limit + 1), dims, endpoint=True)
    numbers = np.sort(numbers, axis=None).reshape(dims) if g.chance(0.2) else numbers
    constant = g.add("constant", literal=Literal(numbers.astype(kind.dtype), shape))
    some = [v for v in g.values if not v.shape.rank and v.shape.type is kind]
    if not some or g.chance(0.5):
        return constant
    moved = g.add("broadcast", g.choose(some), dimensions=(), shape=shape) if dims else g.choose(some)
    return g.add("add", constant, moved)


def index_dims(g: Generator, batching: Sequence[int], count: int) -> tuple[list[int], list[int], int]:
    """Dimensions of an array of vectors of `count` indices: they, which of them are the given ones, and where the
    vectors lie."""
    dims, paired = [*batching], [*range(len(batching))]
    for _ in range(g.choose((0, 1, 1, 2))):
        size = g.choose(g.scope.sizes)
        if math.prod([*dims, size]) <= MOST_LOOKUPS:
            place = g.number(0, len(dims))
            dims.insert(place, size)
            paired = [at + (at >= place) for at in paired]
    if count == 1 and g.chance(0.4):
        return dims, paired, len(dims)
    place = g.number(0, len(dims))
    dims.insert(place, count)
    return dims, [at + (at >= place) for at in paired], place


@dataclass(frozen=True, slots=True)
class Lookups:
    """Which dimensions of an array are batching, dropped, and looked up by indices; and an array of these, of `dims`:
    which of them are `paired` with the batching ones, and where the `vectors` lie."""

    batching: tuple[int, ...]
    dropped: tuple[int, ...]
    mapped: tuple[int, ...]
    dims: list[int]
    paired: tuple[int, ...]
    vectors: int

    @property
    def batch(self) -> list[int]:
        """The dimensions of the array of index vectors."""
        return [size for dim, size in enumerate(self.dims) if dim != self.vectors]


def lookups(g: Generator, shape: Shape) -> Lookups | None:
    order = [int(dim) for dim in g.random.permutation(shape.rank)]
    batching = [dim for dim in order if g.chance(0.15) and shape.dims[dim] <= MOST_LOOKUPS][:1]
    others = [dim for dim in order if dim not in batching]
    dropped = sorted(dim for dim in others if g.chance(0.5))
    mapped = [dim for dim in others if g.chance(0.6)]
    if any(not shape.dims[dim] for dim in batching):
        return None
    dims, paired, vectors = index_dims(g, [shape.dims[dim] for dim in batching], len(mapped))
    return Lookups((*batching,), (*dropped,), (*mapped,), dims, (*paired,), vectors)


def some_places(g: Generator, count: int, rank: int) -> tuple[int, ...]:
    """So many of `rank` dimensions, in order."""
    return tuple(sorted(int(place) for place in g.random.permutation(rank)[:count]))


def gather(g: Generator) -> Instruction | None:
    operand = g.value()
    shape = operand.shape
    found = lookups(g, shape)
    if found is None:
        return None
    gone = {*found.dropped, *found.batching}
    least = 0 if g.chance(0.03) else 1
    sizes = [min(least, size) if dim in gone else g.number(min(1, size), size) for dim, size in enumerate(shape.dims)]
    if math.prod(found.batch) * math.prod(sizes) > g.scope.max_elements:
        return None
    kept = shape.rank - len(gone)
    numbers = GatherDimensionNumbers(
        offset_dims=some_places(g, kept, len(found.batch) + kept),
        collapsed_slice_dims=found.dropped,
        start_index_map=found.mapped,
        index_vector_dim=found.vectors,
        operand_batching_dims=found.batching,
        start_indices_batching_dims=found.paired,
    )
    starts = indices(g, found.dims, max(shape.dims, default=1))
    return g.add("gather", operand, starts, dimension_numbers=numbers, slice_sizes=tuple(sizes))


def scatter(g: Generator) -> Instruction | None:
    """One array or two, with updates that are added, compared, or put in place of what was there."""
    operand = g.value(lambda shape: shape.type not in COMPLEX)
    shape = operand.shape
    found = lookups(g, shape)
    if found is None:
        return None
    kept = [dim for dim in range(shape.rank) if dim not in {*found.dropped, *found.batching}]
    windows = [g.number(min(1, shape.dims[dim]), shape.dims[dim]) for dim in kept]
    batch = found.batch
    if math.prod(batch) > MOST_LOOKUPS or math.prod([*batch, *windows]) > g.scope.max_elements:
        return None
    places = some_places(g, len(windows), len(batch) + len(windows))
    rest, windowed = iter(batch), iter(windows)
    update_dims = [next(windowed if dim in places else rest) for dim in range(len(batch) + len(windows))]
    numbers = ScatterDimensionNumbers(
        update_window_dims=places,
        inserted_window_dims=found.dropped,
        scatter_dims_to_operand_dims=found.mapped,
        index_vector_dim=found.vectors,
        input_batching_dims=found.batching,
        scatter_indices_batching_dims=found.paired,
    )
    starts = indices(g, found.dims, max(shape.dims, default=1))
    operands = [operand]
    if g.chance(0.2):
        operands.append(g.fitted(g.value(), shape.with_type(g.choose((F32, S32, S8)))))
    updates = [g.fitted(g.value(), value.shape.with_dims(update_dims)) for value in operands]
    called = combining([value.shape.type for value in operands], g)
    made = g.add("scatter", *operands, starts, *updates, called=[called], dimension_numbers=numbers)
    return g.unpack(made) if len(operands) > 1 else made


def combining(types: Sequence[ElementType], g: Generator) -> Computation:
    """(T.., T..) -> T..: each element folded with its update, or replaced."""
    computation = Computation("combine")
    before, after = (
        [computation.add("parameter", number=number + len(types) * side, shape=Shape.scalar(kind))
         for number, kind in enumerate(types)]
        for side in range(2)
    )  # fmt: skip
    results = []
    for present, update in zip(before, after, strict=True):
        opcode = g.choose((*FOLDS.get(present.shape.type.kind, INTEGER_FOLDS), ""))
        results.append(computation.add(opcode, [present, update]) if opcode else update)
    computation.set_root(results[0] if len(results) == 1 else computation.add("tuple", results))
    return computation


# -- order -------------------------------------------------------------------------------------------------------------


def sort(g: Generator) -> Instruction:
    """Up to three arrays by one of them or by two, up or down."""
    first = g.value(lambda shape: shape.rank > 0 and shape.type in ORDERED and max(shape.dims) <= MOST_SORTED)
    keys = [g.without_nan(first)]
    if g.chance(0.3):
        keys.append(g.without_nan(g.fitted(g.value(), first.shape.with_type(g.choose((S32, F32, U8, BF16))))))
    others = [g.fitted(g.value(), first.shape.with_type(g.value().shape.type)) for _ in range(g.choose((0, 0, 1, 2)))]
    others += [g.add("iota", dimension=0, shape=first.shape.with_type(S32))] if g.chance(0.3) else []
    operands = [*keys, *others]
    called = comparator(g, [value.shape.type for value in operands], len(keys))
    dimension = g.number(0, first.shape.rank - 1)
    made = g.add("sort", *operands, called=[called], dimension=dimension, is_stable=True)
    return g.unpack(made) if len(operands) > 1 else made


def comparator(g: Generator, types: Sequence[ElementType], keys: int) -> Computation:
    """(T, T, U, U ...) -> pred, by the first `keys` of them: the second one decides where the first ones are equal."""
    computation = Computation("before")
    pairs = [
        [computation.add("parameter", number=2 * number + side, shape=Shape.scalar(kind)) for side in range(2)]
        for number, kind in enumerate(types)
    ]
    root: Instruction | None = None
    for pair in reversed(pairs[:keys]):
        kind = pair[0].shape.type
        total = {"type": ComparisonType.TOTALORDER} if kind in FLOAT and g.chance(0.5) else {}
        if g.chance(0.15):
            pair = [computation.add("negate" if kind in FLOAT else "not", [side]) for side in pair]
        direction = g.choose((ComparisonDirection.LT, ComparisonDirection.GT))
        own = computation.add("compare", pair, direction=direction, **total)
        if root is not None:
            equal = computation.add("compare", pair, direction=ComparisonDirection.EQ, **total)
            own = computation.add("or", [own, computation.add("and", [equal, root])])
        root = own
    assert root is not None
    computation.set_root(root)
    return computation


def topk(g: Generator) -> Instruction:
    value = g.without_nan(g.value(lambda shape: shape.rank > 0 and shape.type in ORDERED))
    return g.unpack(g.add("topk", value, k=g.number(0, value.shape.dims[-1]), largest=g.chance(0.5)))


# -- windows -----------------------------------------------------------------------------------------------------------


def windows_of(g: Generator, dims: Sequence[int], *, dilated: bool) -> Window:
    parts = []
    for size in dims:
        low, high = g.choose(((0, 0), (0, 0), (0, 0), (1, 1), (2, 0), (0, 2), (-1, 1), (1, -1)))
        parts.append(
            WindowDimension(
                g.choose((1, 1, 1, 2, 3, min(max(size, 1), 7))),
                g.choose((1, 1, 2, 3)),
                low,
                high,
                g.choose((1, 1, 1, 2)) if dilated else 1,
                g.choose((1, 1, 1, 2)) if dilated else 1,
            )
        )
    return Window(tuple(parts))


def fits(g: Generator, dims: Sequence[int], window: Window) -> bool:
    positions = [part.positions(size) for part, size in zip(window.dimensions, dims, strict=True)]
    return math.prod(positions) <= g.scope.max_elements


def folded_operand(g: Generator) -> tuple[Instruction, Instruction, str]:
    """An array, an initial value, and an operation that folds them in any order to the same."""
    value = g.value(lambda shape: shape.type.bits >= 16 or shape.type not in FLOAT)
    opcode = g.choose(FOLDS.get(value.shape.type.kind, INTEGER_FOLDS))
    init = g.constant(Shape.scalar(value.shape.type))
    return (g.small(value), g.small(init), opcode) if opcode == "add" else (value, init, opcode)


def reduce_window(g: Generator) -> Instruction | None:
    value, init, opcode = folded_operand(g)
    window = windows_of(g, value.shape.dims, dilated=g.chance(0.5))
    if not fits(g, value.shape.dims, window):
        return None
    called = binary_computation(opcode, value.shape.type)
    return g.add("reduce-window", value, init, called=[called], window=window)


def cumulative(g: Generator) -> Instruction | None:
    """From each element to an end of its dimension."""
    value, init, opcode = folded_operand(g)
    if not value.shape.rank:
        return None
    along = g.number(0, value.shape.rank - 1)
    size = value.shape.dims[along]
    if not 0 < size <= LONGEST_WINDOW:
        return None
    low, high = g.choose(((size - 1, 0), (0, size - 1)))
    parts = [WindowDimension(1)] * value.shape.rank
    parts[along] = WindowDimension(size, 1, low, high)
    called = binary_computation(opcode, value.shape.type)
    return g.add("reduce-window", value, init, called=[called], window=Window(tuple(parts)))


def select_and_scatter(g: Generator) -> Instruction | None:
    operand = g.value(lambda shape: shape.type in ORDERED and shape.type.bits >= 8)
    if operand.shape.type in FLOAT and operand.shape.type.bits < 16:
        return None
    kind, window = operand.shape.type, windows_of(g, operand.shape.dims, dilated=False)
    positions = [part.positions(size) for part, size in zip(window.dimensions, operand.shape.dims, strict=True)]
    if math.prod(positions) > MOST_SELECTIONS:
        return None
    source = g.small(g.fitted(g.value(), operand.shape.with_dims(positions)))
    init = g.small(g.constant(Shape.scalar(kind)))
    select = Computation("select")
    sides = [select.add("parameter", number=number, shape=Shape.scalar(kind)) for number in range(2)]
    direction = g.choose((ComparisonDirection.GE, ComparisonDirection.GT, ComparisonDirection.LE))
    select.set_root(select.add("compare", sides, direction=direction))
    folding = binary_computation(g.choose(("add", "maximum")), kind)
    return g.add("select-and-scatter", operand, source, init, called=[select, folding], window=window)


def convolution(g: Generator) -> Instruction | None:
    """Any dimension numbers, strides, padding, dilations, reversal and groups."""
    spatial = g.choose((0, 1, 1, 2, 2, 3))
    groups, grouping = g.choose((2, 3)), g.choose(("", "", "features", "batch"))
    feature_groups, batch_groups = (groups if grouping == kind else 1 for kind in ("features", "batch"))
    features, outputs = g.choose(g.scope.sizes[:6]), g.choose(g.scope.sizes) * feature_groups * batch_groups
    orders = [[int(dim) for dim in g.random.permutation(spatial + 2)] for _ in range(3)]
    if g.chance(0.4):
        orders = [[0, spatial + 1, *range(1, spatial + 1)], [spatial, spatial + 1, *range(spatial)]] * 2
        orders = [orders[0], orders[1], orders[0]]
    lhs, rhs = [0] * (spatial + 2), [0] * (spatial + 2)
    lhs[orders[0][0]], lhs[orders[0][1]] = g.choose((1, 2, 3)) * batch_groups, features * feature_groups
    rhs[orders[1][0]], rhs[orders[1][1]] = features, outputs
    for image, kernel in zip(orders[0][2:], orders[1][2:], strict=True):
        lhs[image], rhs[kernel] = g.choose((0, 1, 2, 5, 9, 17) if g.chance(0.1) else (2, 5, 9, 17)), g.choose((1, 2, 3))
    window = windows_of(g, [lhs[dim] for dim in orders[0][2:]], dilated=g.chance(0.5))
    parts = [
        WindowDimension(
            rhs[dim], part.stride, part.padding_low, part.padding_high, part.base_dilation, part.window_dilation,
            g.chance(0.2),
        )
        for part, dim in zip(window.dimensions, orders[1][2:], strict=True)
    ]  # fmt: skip
    positions = [part.positions(lhs[dim]) for part, dim in zip(parts, orders[0][2:], strict=True)]
    elements = (math.prod(lhs), math.prod(rhs), math.prod(positions) * outputs * lhs[orders[0][0]])
    if max(elements) > g.scope.max_elements:
        return None
    kind = g.choose(SUMMED_TYPES)
    sides = [g.small(g.fitted(g.value(), Shape.array(kind, dims))) for dims in (lhs, rhs)]
    numbers = ConvolutionDimensionNumbers(
        *(part for first, second, *rest in orders for part in (first, second, tuple(rest)))
    )
    return g.add(
        "convolution",
        *sides,
        window=Window(tuple(parts)),
        dimension_numbers=numbers,
        feature_group_count=feature_groups,
        batch_group_count=batch_groups,
        shape=Shape.array(result_type(g, kind), [0] * len(lhs)),
    )


def product(g: Generator) -> Instruction | None:
    return g.dot(SUMMED_TYPES)


def result_type(g: Generator, kind: ElementType) -> ElementType:
    """Of sums of products: that of the factors, or a wider one."""
    wider = {S8: S32, U8: S32, BF16: F32, F16: F32, F32: F64}
    return wider.get(kind, kind) if g.chance(0.3) else kind


# -- folds -------------------------------------------------------------------------------------------------------------


def largest(g: Generator) -> Instruction | None:
    """The largest or smallest element and its place, as JAX writes it: NaN wins."""
    value = g.value(lambda shape: shape.rank > 0 and shape.type in FLOAT and shape.type.bits >= 8)
    if value.shape.type.name.startswith("f8e8"):
        return None
    along = g.number(0, value.shape.rank - 1)
    index = g.add("iota", dimension=along, shape=value.shape.with_type(S32))
    beats = g.choose((ComparisonDirection.GT, ComparisonDirection.LT))
    called = choosing(value.shape.type, beats, strict=g.chance(0.3))
    init = g.number_constant(-math.inf if beats is ComparisonDirection.GT else math.inf, value.shape.type)
    inits = [g.without_nan(init), g.number_constant(0, S32)]
    made = g.add("reduce", value, index, *inits, called=[called], dimensions=(along,))
    return g.unpack(made)


def choosing(kind: ElementType, beats: ComparisonDirection, *, strict: bool) -> Computation:
    """(T, s32, T, s32) -> (T, s32): of equals the first one, or the last one if `strict`."""
    computation = Computation("choose")
    kinds = (kind, S32, kind, S32)
    a, i, b, j = (computation.add("parameter", number=n, shape=Shape.scalar(t)) for n, t in enumerate(kinds))
    keeps = computation.add(
        "or",
        [
            computation.add("compare", [a, b], direction=beats),
            computation.add("compare", [a, a], direction=ComparisonDirection.NE),
        ],
    )
    tie = [
        computation.add("compare", [a, b], direction=ComparisonDirection.EQ),
        computation.add("compare", [i, j], direction=ComparisonDirection.LT),
    ]
    first = keeps if strict else computation.add("or", [keeps, computation.add("and", tie)])
    results = [computation.add("select", [keeps, a, b]), computation.add("select", [first, i, j])]
    computation.set_root(computation.add("tuple", results))
    return computation


def reduced(g: Generator, value: Instruction, opcode: str, dimensions: Sequence[int]) -> Instruction:
    init = g.number_constant(0, value.shape.type)
    called = binary_computation(opcode, value.shape.type)
    return g.add("reduce", value, init, called=[called], dimensions=tuple(dimensions))


def folded_twice(g: Generator) -> Instruction:
    """A fold, something done to the results, and a fold of these."""
    kind = g.choose((F32, F32, F64, S32, BF16))
    value = g.small(g.value(lambda shape: shape.type is kind and shape.rank > 0))
    opcode = g.choose(("add", "add", "maximum"))
    folded = reduced(g, value, opcode, g.some_dimensions(value.shape) or (value.shape.rank - 1,))
    if g.chance(0.5):
        folded = g.add(g.choose(("negate", "abs", "copy")), folded)
    again = g.some_dimensions(folded.shape) if g.chance(0.3) else range(folded.shape.rank)
    return reduced(g, folded, opcode, again)


def chain(g: Generator) -> Instruction:
    """What a fold says of a row (or column, or block), used for the elements of that; then perhaps once more."""
    value = g.value(lambda shape: shape.rank > 0 and shape.type in (F32, F64, S32, BF16, F16))
    along = g.some_dimensions(value.shape) or (g.number(0, value.shape.rank - 1),)
    kept = tuple(dim for dim in range(value.shape.rank) if dim not in along)
    for _ in range(g.number(1, 3)):
        opcode = g.choose(("add", "maximum"))
        folded = reduced(g, g.small(value) if opcode == "add" else value, opcode, along)
        spread = g.add("broadcast", folded, dimensions=kept, shape=value.shape.without_layout())
        value = g.add(g.choose(("subtract", "add", "maximum", "multiply")), value, spread)
        if g.chance(0.3):
            g.values.append(folded)
    if g.chance(0.4):
        return reduced(g, g.small(value), "add", along)
    return value


def interleave(g: Generator) -> Instruction | None:
    """Several arrays side by side, element by element, or several parts that lie so taken apart."""
    value = g.value(lambda shape: 0 < shape.rank < 4 and shape.size <= g.scope.max_elements // 4)
    if g.chance(0.5):
        parts = [value, *(g.partner(value) for _ in range(g.number(1, 3)))]
        column = value.shape.with_dims([*value.shape.dims, 1])
        joined = g.add(
            "concatenate", *(g.add("reshape", part, shape=column) for part in parts), dimension=value.shape.rank
        )
        dims = [*value.shape.dims[:-1], value.shape.dims[-1] * len(parts)]
        return g.add("reshape", joined, shape=value.shape.with_dims(dims)) if g.chance(0.5) else joined
    count = next((n for n in (2, 3, 4) if not value.shape.dims[-1] % n), 0)
    if not count:
        return None
    dims = [*value.shape.dims[:-1], value.shape.dims[-1] // count, count]
    apart = g.add("reshape", value, shape=value.shape.with_dims(dims))
    last = len(dims) - 1
    return g.add("transpose", apart, permutation=(last, *range(last)))


# -- loops and layouts -------------------------------------------------------------------------------------------------


def scan(g: Generator) -> Instruction | None:
    """A loop that takes a slice in each turn, changes what it carries, and writes a slice."""
    if g.depth >= MAX_DEPTH:
        return None
    rows = g.value(lambda shape: shape.rank > 0 and 0 < shape.dims[0] <= 20)
    turns, row = rows.shape.dims[0], rows.shape.without(0)
    carried = g.value()
    results = g.fitted(g.value(), rows.shape.with_type(g.choose((F32, S32, rows.shape.type))))
    shapes = [Shape.scalar(S32), carried.shape, rows.shape, results.shape]
    inner = Generator(g.random, Computation("body"), g.depth + 1, scope=g.scope)
    state = inner.add("parameter", number=0, shape=Shape.tuple(shapes))
    count, carry, taken, written = (inner.add("get-tuple-element", state, index=index) for index in range(4))
    place = count
    if g.chance(0.3):
        place = inner.add("subtract", inner.number_constant(turns - 1, S32), count)
    starts = [place, *[inner.number_constant(0, S32)] * row.rank]
    part = inner.add("dynamic-slice", taken, *starts, slice_sizes=(1, *row.dims))
    inner.values = [carry, inner.add("reshape", part, shape=row)]
    for _ in range(g.number(1, 5)):
        inner.step()
    result = inner.result(written.shape.without(0))
    update = inner.add("reshape", result, shape=written.shape.with_dim(0, 1))
    written = inner.add("dynamic-update-slice", written, update, *starts)
    following = inner.add("add", count, inner.number_constant(1, S32))
    inner.computation.set_root(inner.add("tuple", following, inner.result(carry.shape), taken, written))
    condition = Generator(g.random, Computation("condition"))
    tested = condition.add("parameter", number=0, shape=Shape.tuple(shapes))
    turn = condition.add("get-tuple-element", tested, index=0)
    limit = condition.number_constant(turns, S32)
    condition.computation.set_root(condition.add("compare", turn, limit, direction=ComparisonDirection.LT))
    start = g.add("tuple", g.number_constant(0, S32), carried, rows, results)
    made = g.add("while", start, called=[condition.computation, inner.computation])
    return g.unpack(made, first=1)


def random_layout(g: Generator, shape: Shape) -> Shape:
    return shape.with_layout(Layout(tuple(int(dim) for dim in g.random.permutation(shape.rank))))


def bitcast(g: Generator) -> Instruction:
    """The bytes of an array in some order, read as another array in some order."""
    value = g.value(lambda shape: shape.rank > 0 and shape.size > 0)
    stored = g.add("copy", value, shape=random_layout(g, value.shape))
    return g.add("bitcast", stored, shape=random_layout(g, value.shape.with_dims(g.factors(value.shape))))


def lay_out(module: HloModule, random: np.random.Generator) -> None:
    """Gives some arrays some order of their dimensions."""
    for computation in module.computations():
        g = Generator(random, computation)
        for instruction in computation:
            movable = instruction.shape.is_array and instruction.shape.rank > 1 and instruction.shape.layout is None
            if movable and not any(user.opcode == "bitcast" for user in instruction.users) and g.chance(0.2):
                computation.set_shape(instruction, random_layout(g, instruction.shape))


STEPS = (
    *(gather, gather, scatter, scatter, sort, sort, topk, reduce_window, cumulative, select_and_scatter, product),
    *(convolution, convolution, largest, folded_twice, chain, chain, interleave, scan, bitcast),
)
SMALL = Scope(steps=STEPS)
LARGE = Scope((1, 2, 3, 4, 8, 17, 33, 64, 100, 129, 256, 500, 1000, 4100, 20_000), 1 << 17, STEPS)


def random_composition(seed: int, steps: int = 25, scope: Scope = SMALL) -> Program:
    """A program of steps of all kinds, with arrays in any layouts."""
    program = random_program(seed, steps, scope)
    lay_out(program.module, np.random.default_rng(seed + 1))
    return program
