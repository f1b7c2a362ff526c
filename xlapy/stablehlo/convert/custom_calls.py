"""Custom calls: those that are ops of ours by another name, those that mean nothing here, and all others.

What JAX lowers for CPUs to LAPACK's `potrf` and BLAS's `trsm` are our own cholesky and triangular-solve. So are our lu,
qr-decomposition and householder-product for small matrices, and eigh and svd where there are many of these. Markers of
shardings, layouts and memories are their operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlapy.hlo.attributes import (
    ComparisonDirection,
    CustomCallApiVersion,
    OutputOperandAlias,
    SliceDimension,
    Transpose,
)
from xlapy.hlo.element_types import F32, F64, FLOAT, INTEGER, S32, U32, U64
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS
from xlapy.hlo.regions import binary_region
from xlapy.hlo.rotations import MOST_ROWS
from xlapy.hlo.shape import Layout, Shape, shape_of_results
from xlapy.hlo.sort_plan import recognise
from xlapy.hlo.specialize import DYNAMIC
from xlapy.hlo.text.backend_config import quoted
from xlapy.stablehlo.attributes import attribute_text
from xlapy.stablehlo.convert.base import Body, attribute, converts, fields, integers
from xlapy.stablehlo.convert.deferred import defer
from xlapy.stablehlo.tree import Attributes, Operation, Symbol
from xlapy.support.errors import ParseError
from xlapy.support.registry import Registry

API_VERSIONS = dict(enumerate(CustomCallApiVersion, start=1))
"""By the number in the text."""

IDENTITY_TARGETS = frozenset(
    {
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "LayoutConstraint",
        "annotate_device_placement",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.PropagationBarrier",
    }
)
"""Custom calls that only say where, or how, an array is to be kept."""

SILENT_TARGETS = frozenset({"xla.sdy.ShardingGroup"})
"""Custom calls without results that only speak to a partitioner."""

OWN_TARGETS = "xlapy."
"""Begins the target of a custom call that stands for an op of ours, which StableHLO does not have."""

TYPED_CONFIGURATION = "mhlo.backend_config"
"""Where JAX writes the attributes of a typed call, beside an empty `backend_config`."""

Conversion = Callable[[Body, Operation, Sequence[Instruction], Mapping[str, Any]], Instruction | None]
"""From operands and configuration of a custom call to what computes the same; None if it is to stay."""

KNOWN: Registry[Conversion] = Registry("custom calls that are ops")


@converts("stablehlo.custom_call")
def custom_call(body: Body, operation: Operation) -> Instruction:
    target = attribute(operation, "call_target_name", str)
    operands = body.operands(operation)
    results = operation.result_types
    if target in IDENTITY_TARGETS and len(operands) == 1 and results == (operands[0].shape.without_layout(),):
        return operands[0]
    if target in SILENT_TARGETS and not results:
        return body.tuple(())
    if target.startswith(OWN_TARGETS):
        return _own_op(body, operation, target, operands)
    if target in DYNAMIC:
        called = _called_computations(body, operation)
        return defer(body, target, operation, _own_attributes(operation), operands, called)
    config = operation.attributes.get(TYPED_CONFIGURATION) or operation.attributes.get("backend_config")
    if target in KNOWN:
        known = KNOWN[target](body, operation, operands, config if isinstance(config, dict) else {})
        if known is not None:
            return known
    call = body.add(
        "custom-call",
        *operands,
        called=_called_computations(body, operation),
        shape=shape_of_results(_laid_out(operation, "result_layouts", results)),
        target=target,
        has_side_effect=attribute(operation, "has_side_effect", bool, False),
        api_version=_api_version(operation),
        operand_layout_constraints=_demands(operation, [operand.shape for operand in operands]),
        output_to_operand_aliasing=_aliases(operation),
    )
    if config:
        call.extra["backend_config"] = quoted(config) if isinstance(config, str) else attribute_text(config)
    return call


_COMMON = frozenset(
    (
        "api_version",
        "backend_config",
        "call_target_name",
        "called_computations",
        "has_side_effect",
        "operand_layouts",
        "output_operand_aliases",
        "result_layouts",
        TYPED_CONFIGURATION,
    )
)
"""Attributes that custom calls have, whatever their target."""


def _own_attributes(operation: Operation) -> Attributes:
    """The attributes that only this target has."""
    return {name: value for name, value in operation.attributes.items() if name not in _COMMON}


def _own_op(body: Body, operation: Operation, target: str, operands: Sequence[Instruction]) -> Instruction:
    """The op that is named behind `xlapy.`, with its attributes in `backend_config`."""
    name = target.removeprefix(OWN_TARGETS).replace("_", "-")
    if name not in OPS:
        raise ParseError(f"{operation.name}: xlapy has no op {name!r}")
    given = Operation(f"{operation.name} (backend_config)", operation.place)
    given.attributes = attribute(operation, "backend_config", dict, {})
    for key, parameter in OPS[name].attributes.items():
        if key in given.attributes:
            if parameter.type not in _PLAIN:
                raise ParseError(f"{operation.name}: `{key}` of {name} cannot be given in a backend_config")
            attribute(given, key, parameter.type)
    return body.add(name, *operands, **given.attributes)


_PLAIN = (bool, int, str)
"""Types of attributes that `backend_config` has as they are."""


def _api_version(operation: Operation) -> CustomCallApiVersion:
    version = attribute(operation, "api_version", int, 1)
    if version not in API_VERSIONS:
        raise ParseError(f"{operation.name} has no api_version {version}; there are 1 to {len(API_VERSIONS)}")
    is_typed = isinstance(operation.attributes.get(TYPED_CONFIGURATION), dict)
    return CustomCallApiVersion.TYPED_FFI if is_typed else API_VERSIONS[version]


# -- layouts -----------------------------------------------------------------------------------------------------------


def _laid_out(operation: Operation, name: str, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """The shapes in the layouts of the attribute `name`, each minor to major; as they are if it is absent."""
    layouts = operation.attributes.get(name)
    plain = tuple(shape.without_layout() for shape in shapes)
    if layouts is None:
        return plain
    if not isinstance(layouts, tuple) or len(layouts) != len(shapes):
        raise ParseError(f"{operation.name}: `{name}` lists {len(shapes)} layouts, one for each")
    return tuple(_with_layout(operation, name, shape, order) for shape, order in zip(plain, layouts, strict=True))


def _with_layout(operation: Operation, name: str, shape: Shape, order: Any) -> Shape:
    written = order.array.reshape(-1).tolist() if isinstance(order, Literal) else None
    rank = shape.rank if shape.is_array else 0
    if written is None or sorted(written) != list(range(rank)):
        raise ParseError(f"{operation.name}: `{name}` gives {shape} a layout that is no order of its dimensions")
    layout = Layout(tuple(written))
    return shape if layout.is_row_major else shape.with_layout(layout)


def _demands(operation: Operation, shapes: Sequence[Shape]) -> tuple[Shape, ...] | None:
    """The layouts that the operands must have; None if all are row-major, as arrays are anyway."""
    demanded = _laid_out(operation, "operand_layouts", shapes)
    return demanded if any(shape.layout for shape in demanded if shape.is_array) else None


# -- ops by another name -----------------------------------------------------------------------------------------------


def _lapack_names(routine: str) -> list[str]:
    return [f"lapack_{prefix}{routine}_ffi" for prefix in "sdcz"]


@KNOWN.register(*_lapack_names("potrf"))
def potrf(body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]) -> Instruction:
    """(factor, info). The triangle that LAPACK leaves as it was is zero. Where there is no factor, it is NaN from its
    first element on, and `info`, the number of the minor that is not positive, stands in the low bits of that."""
    _check_operands(operation, operands, 1)
    (a,) = operands
    factor = body.add("cholesky", a, lower=_flag(config, "uplo", "LU"))
    batch, rows = a.shape.dims[:-2], a.shape.dims[-1]
    if not rows:
        return body.tuple([factor, body.full(0, Shape.array(S32, batch))])
    first = _leading(body, factor, (*batch, 1, 1))
    first = body.add("reshape", first, shape=a.shape.without_layout().with_dims(batch))
    if first.shape.type.is_complex:
        first = body.add("real", first)
    bits = body.add("bitcast-convert", first, shape=first.shape.with_type(_BITS[first.shape.type]))
    number = body.add("and", bits, body.full(_MOST_ROWS, bits.shape))
    is_nan = body.add("compare", first, first, direction=ComparisonDirection.NE)
    number = body.add("select", is_nan, number, body.full(0, bits.shape))
    return body.tuple([factor, body.add("convert", number, shape=number.shape.with_type(S32))])


_BITS = {F32: U32, F64: U64}
_MOST_ROWS = (1 << 22) - 1  # all bits that a NaN of 32 bits has for a number


@KNOWN.register(*_lapack_names("getrf"))
def getrf(
    body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]
) -> Instruction | None:
    """(factors, pivots, info) of matrices that are a block at most: LAPACK is faster with larger ones.

    Pivots are numbers from 1, and `info` is that of the first zero on the diagonal, or 0."""
    _check_operands(operation, operands, 1)
    (a,) = operands
    *batch, rows, columns = a.shape.dims
    if not a.shape.is_static or not 0 < min(rows, columns) <= max(rows, columns) <= _LARGEST_BLOCK:
        return None
    found = body.add("lu", a)
    factors, pivots = (body.add("get-tuple-element", found, index=index) for index in range(2))
    numbers = body.add("add", pivots, body.full(1, pivots.shape))
    return body.tuple([factors, numbers, _first_zero(body, factors, tuple(batch), min(rows, columns))])


_LARGEST_BLOCK = 64


@KNOWN.register(*_lapack_names("geqrf"))
def geqrf(
    body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]
) -> Instruction | None:
    """(what is packed, factors) of matrices that are a block at most."""
    _check_operands(operation, operands, 1)
    (a,) = operands
    if not a.shape.is_static or max(a.shape.dims[-2:]) > _LARGEST_BLOCK:
        return None
    return body.add("qr-decomposition", a)


@KNOWN.register("lapack_sorgqr_ffi", "lapack_dorgqr_ffi", "lapack_cungqr_ffi", "lapack_zungqr_ffi")
def orgqr(
    body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]
) -> Instruction | None:
    _check_operands(operation, operands, 2)
    a, taus = operands
    if not a.shape.is_static or max(a.shape.dims[-2:]) > _LARGEST_BLOCK:
        return None
    return body.add("householder-product", a, taus)


@KNOWN.register("lapack_ssyevd_ffi", "lapack_dsyevd_ffi")
def syevd(
    body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]
) -> Instruction | None:
    """(vectors, values, info) of many small matrices. LAPACK is faster with larger ones, and few stay with it, too: it
    chooses other signs for the vectors. Nothing ever fails."""
    _check_operands(operation, operands, 1)
    (a,) = operands
    if not _are_many_and_small(a.shape):
        return None
    found = body.add("eigh", a, lower=_flag(config, "uplo", "LU"))
    parts = [body.add("get-tuple-element", found, index=index) for index in range(2)]
    return body.tuple([*parts, body.full(0, Shape.array(S32, a.shape.dims[:-2]))])


@KNOWN.register("lapack_sgesdd_ffi", "lapack_dgesdd_ffi")
def gesdd(
    body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]
) -> Instruction | None:
    """(what is left of the operand, values, u, vt, info), of many small matrices as `syevd`. Without vectors, their
    places are zero."""
    _check_operands(operation, operands, 1)
    (a,) = operands
    if not _are_many_and_small(a.shape):
        return None
    is_full = _choice(config, "mode", {ord("A"): True, ord("S"): False, ord("N"): None})
    found = body.add("svd", a, full_matrices=bool(is_full))
    u, values, vt = (body.add("get-tuple-element", found, index=index) for index in range(3))
    if is_full is None:
        u, vt = (body.full(0, shape.without_layout()) for shape in operation.result_types[2:4])
    return body.tuple([a, values, u, vt, body.full(0, Shape.array(S32, a.shape.dims[:-2]))])


def _are_many_and_small(matrices: Shape) -> bool:
    *batch, rows, columns = matrices.dims
    return matrices.is_static and max(rows, columns) <= MOST_ROWS and math.prod(batch) >= _MANY


_MANY = 32


def _first_zero(body: Body, factors: Instruction, batch: tuple[int, ...], size: int) -> Instruction:
    """The number, from 1, of the first zero on the diagonal, or 0."""
    places = Shape.array(S32, factors.shape.dims)
    row, column = (body.add("iota", shape=places, dimension=len(batch) + minor) for minor in range(2))
    is_diagonal = body.add("compare", row, column, direction=ComparisonDirection.EQ)
    is_zero = body.add("compare", factors, body.full(0, factors.shape), direction=ComparisonDirection.EQ)
    is_found = body.add("and", is_diagonal, is_zero)
    none = size + 1
    numbers = body.add("select", is_found, body.add("add", row, body.full(1, places)), body.full(none, places))
    found = Shape.array(S32, batch)
    minimum, minor = binary_region("minimum", S32), (len(batch), len(batch) + 1)
    first = body.add("reduce", numbers, body.constant(none, S32), called=[minimum], dimensions=minor)
    is_regular = body.add("compare", first, body.full(none, found), direction=ComparisonDirection.EQ)
    info = body.add("select", is_regular, body.full(0, found), first)
    return body.add("clamp", body.full(0, found), info, body.full(size, found))


@KNOWN.register(*_lapack_names("trsm"))
def trsm(body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]) -> Instruction:
    """op(a) x = b; older versions of JAX give a factor of b as a third operand."""
    _check_operands(operation, operands, 2, 3)
    a, b, *factor = operands
    if factor:
        b = body.add("multiply", b, body.splat(factor[0], b.shape.without_layout()))
    transposes = {ord("N"): Transpose.NO_TRANSPOSE, ord("T"): Transpose.TRANSPOSE, ord("C"): Transpose.ADJOINT}
    return body.add(
        "triangular-solve",
        a,
        b,
        left_side=_flag(config, "side", "LR"),
        lower=_flag(config, "uplo", "LU"),
        unit_diagonal=_flag(config, "diag", "UN"),
        transpose_a=_choice(config, "trans_x", transposes),
    )


def _check_operands(operation: Operation, operands: Sequence[Instruction], *counts: int) -> None:
    """Raises ParseError if there are none of these counts, or the first one is no batch of matrices."""
    target = operation.attributes["call_target_name"]
    if len(operands) not in counts:
        expected = " or ".join(map(str, counts))
        raise ParseError(f"{operation.name} @{target} has {len(operands)} operands; it takes {expected}")
    shape = operands[0].shape
    if not shape.is_array or shape.rank < 2:
        raise ParseError(f"{operation.name} @{target} is for matrices, and is given {shape}")


def _flag(config: Mapping[str, Any], name: str, letters: str) -> bool:
    """Whether an entry, the code of one of two letters, is the first."""
    yes, no = map(ord, letters)
    return bool(_choice(config, name, {yes: True, no: False}))


def _choice(config: Mapping[str, Any], name: str, values: Mapping[int, Any]) -> Any:
    code = config.get(name)
    if not isinstance(code, int) or code not in values:
        letters = ", ".join(f"{code} ({chr(code)})" for code in values)
        raise ParseError(f"`{name}` in the backend_config is {code}, but it must be one of {letters}")
    return values[code]


@KNOWN.register("mhlo.topk")
def topk(body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]) -> Instruction:
    """The spelling of artifacts that were written before CHLO had the op."""
    given = fields(operation, "mhlo.attributes")
    return body.add("topk", *operands, k=attribute(given, "k", int), largest=attribute(given, "largest", bool, True))


@KNOWN.register("ApproxTopK")
def approximate_topk(
    body: Body, operation: Operation, operands: Sequence[Instruction], config: Mapping[str, Any]
) -> Instruction:
    """The first of each row by the called comparison: exactly those, which is better than was asked for. Where these
    are the largest or smallest elements with their positions, only they are put in order, and -0 is less than 0.

    The operands are arrays of keys and values, then what absent elements would be."""
    if len(operands) % 2:
        raise ParseError(f"{operation.name} @ApproxTopK has {len(operands)} operands; it takes pairs")
    arrays = operands[: len(operands) // 2]
    dimension = config.get("reduction_dim")
    rank = arrays[0].shape.rank if arrays else 0
    if not isinstance(dimension, int) or not -rank <= dimension < rank:
        raise ParseError(f"ApproxTopK: `reduction_dim` is {dimension}, for arrays of {rank} dimensions")
    dimension %= rank
    called = _called_computations(body, operation)
    largest = _takes_largest(arrays, called[0], dimension)
    if largest is not None and all(len(stated.dims) == rank for stated in operation.result_types):
        return body.pack(_best(body, arrays[0], dimension, operation.result_types[0].dims[dimension], largest))
    ordered = body.add("sort", *arrays, called=called, dimension=dimension, is_stable=True)
    parts = []
    for index, stated in enumerate(operation.result_types):
        part = ordered if len(arrays) == 1 else body.add("get-tuple-element", ordered, index=index)
        parts.append(_leading(body, part, stated.dims))
    return body.pack(parts)


def _takes_largest(arrays: Sequence[Instruction], comparator: Computation, dimension: int) -> bool | None:
    """Whether what a comparator puts first are the largest elements of the first array, or the smallest, beside their
    positions in the second one; None if it is neither, or sizes are not known."""
    if len(arrays) != 2 or not all(array.shape.is_static for array in arrays):
        return None
    keys, positions = arrays
    are_positions = positions.opcode == "iota" and positions.attributes["dimension"] == dimension
    if not are_positions or positions.shape.type is not S32 or keys.shape.type not in INTEGER | FLOAT:
        return None
    key = recognise(comparator)
    return key.descending if key is not None and key.operand == 0 and not key.merges_nans else None


def _best(body: Body, array: Instruction, dimension: int, count: int, largest: bool) -> list[Instruction]:
    """The `count` largest or smallest elements along a dimension, best first, and their positions."""
    exchanged = [*range(array.shape.rank)]
    exchanged[dimension], exchanged[-1] = exchanged[-1], exchanged[dimension]
    is_last = dimension == array.shape.rank - 1
    rows = array if is_last else body.add("transpose", array, permutation=(*exchanged,))
    found = body.add("topk", rows, k=count, largest=largest)
    parts = [body.add("get-tuple-element", found, index=index) for index in range(2)]
    return parts if is_last else [body.add("transpose", part, permutation=(*exchanged,)) for part in parts]


def _leading(body: Body, array: Instruction, sizes: Sequence[int]) -> Instruction:
    """The first elements along each dimension."""
    return body.add("slice", array, dimensions=tuple(SliceDimension(0, size) for size in sizes))


# -- attributes of all others ------------------------------------------------------------------------------------------


def _called_computations(body: Body, operation: Operation) -> list[Computation]:
    symbols = operation.attributes.get("called_computations", ())
    if not isinstance(symbols, tuple) or not all(isinstance(symbol, Symbol) for symbol in symbols):
        raise ParseError(f"{operation.name}: called_computations lists symbols, like [@f]")
    return [body.functions[symbol.name] for symbol in symbols]


def _aliases(operation: Operation) -> tuple[OutputOperandAlias, ...]:
    listed = operation.attributes.get("output_operand_aliases", ())
    if not isinstance(listed, tuple) or not all(isinstance(written, dict) for written in listed):
        raise ParseError(
            f"{operation.name}: output_operand_aliases lists aliases, like [#stablehlo.output_operand_alias<...>]"
        )
    aliases = []
    for written in listed:
        alias = Operation(f"{operation.name} (output_operand_aliases)", operation.place)
        alias.attributes = written
        aliases.append(
            OutputOperandAlias(
                integers(alias, "output_tuple_indices", ()),
                attribute(alias, "operand_index", int),
                integers(alias, "operand_tuple_indices", ()),
            )
        )
    return tuple(aliases)
