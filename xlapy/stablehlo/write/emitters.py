"""How each op of the table is written in StableHLO."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from xlapy.hlo.attributes import ComparisonDirection, ComparisonType
from xlapy.hlo.bitcasts import logical_steps
from xlapy.hlo.element_types import S32, ElementType
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.attributes import string_text
from xlapy.stablehlo.constants import dense_text
from xlapy.stablehlo.convert.custom_calls import OWN_TARGETS
from xlapy.stablehlo.convert.elementwise import CHLO_ONLY, OWN
from xlapy.stablehlo.dot_algorithms import ALGORITHMS
from xlapy.stablehlo.types import type_text
from xlapy.stablehlo.write.base import (
    EMITTERS,
    Emitter,
    Request,
    Steps,
    Tree,
    Writer,
    element,
    integers_text,
    leaves,
    list_text,
    regrown,
    unpacked_shapes,
)
from xlapy.stablehlo.write.forms import Attributes
from xlapy.support.errors import InternalError, UnsupportedError

Trees = Sequence[Tree]
emits = EMITTERS.register


# -- element-wise ------------------------------------------------------------------------------------------------------


def _same_op(name: str) -> Emitter:
    def emit(w: Writer, i: Instruction, operands: Trees) -> Tree:
        return w.one(name, i, operands)

    return emit


def _own_op(name: str) -> Emitter:
    target = {"call_target_name": string_text(OWN_TARGETS + OPS[name].python_name)}

    def emit(w: Writer, i: Instruction, operands: Trees) -> Tree:
        return w.one("stablehlo.custom_call", i, operands, target)

    return emit


def _register_rows() -> None:
    for name, spec in OPS.items():
        if name in OWN:
            EMITTERS.add(name, _own_op(name))
        elif spec.has(Trait.ELEMENTWISE) and not (spec.attributes or spec.regions) and name != "copy":
            dialect = "chlo" if name in CHLO_ONLY else "stablehlo"
            EMITTERS.add(name, _same_op(f"{dialect}.{spec.python_name}"))


_register_rows()


@emits("compare")
def compare(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {"comparison_direction": f"#stablehlo<comparison_direction {i.attributes['direction']}>"}
    if i.attributes["type"] is not None:
        attributes["compare_type"] = f"#stablehlo<comparison_type {i.attributes['type']}>"
    return w.one("stablehlo.compare", i, operands, attributes)


@emits("reduce-precision")
def reduce_precision(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.reduce_precision", i, operands, _numbers(i, "exponent_bits", "mantissa_bits", bits=32))


def _numbers(i: Instruction, *names: str, bits: int = 64) -> dict[str, str]:
    """Attributes that are integers of `bits`, under their own names."""
    return {name: f"{i.attributes[name]} : i{bits}" for name in names}


@emits("copy")
def copy(w: Writer, i: Instruction, operands: Trees) -> Tree:
    """Layouts have no spelling in StableHLO, so a copy is its operand."""
    return operands[0]


# -- structure ---------------------------------------------------------------------------------------------------------


@emits("parameter")
def parameter(w: Writer, i: Instruction, operands: Trees) -> Tree:
    raise InternalError(f"{i.name} is not among the parameters of {i.parent.name}")


@emits("constant")
def constant(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return _constants(w, i.attributes["literal"])


def _constants(w: Writer, literal: Literal) -> Tree:
    """One constant for each array of a tuple."""
    if literal.elements is not None:
        return tuple(_constants(w, element) for element in literal.elements)
    shape = literal.shape.without_layout()
    value = {"value": f"{dense_text(literal)} : {type_text(shape)}"}
    return w.simple("stablehlo.constant", [], [], [shape], value)[0]


@emits("tuple")
def tuple_(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return tuple(operands)


@emits("get-tuple-element")
def get_tuple_element(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return element(operands[0], i.attributes["index"])


@emits("after-all")
def after_all(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.after_all" if operands else "stablehlo.create_token", i, operands)


@emits("opt-barrier")
def opt_barrier(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return _barrier(w, operands[0], i.shape)


@emits("add-dependency")
def add_dependency(w: Writer, i: Instruction, operands: Trees) -> Tree:
    """A barrier around value and token, of which the value is used."""
    both = _barrier(w, tuple(operands), Shape.tuple([operand.shape for operand in i.operands]))
    return element(both, 0)


def _barrier(w: Writer, tree: Tree, shape: Shape) -> Tree:
    shapes = [*shape.leaves()]
    return regrown(w.simple("stablehlo.optimization_barrier", leaves(tree), shapes, shapes), shape)


@emits("fusion")
def fusion(w: Writer, i: Instruction, operands: Trees) -> Steps:
    """The instructions of the fused computation, where the fusion stands."""
    root = yield Request(i.called[0], operands)
    return root


# -- data movement -----------------------------------------------------------------------------------------------------


@emits("iota")
def iota(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.iota", i, operands, {"iota_dimension": f"{i.attributes['dimension']} : i64"})


@emits("broadcast")
def broadcast(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {"broadcast_dimensions": integers_text(i.attributes["dimensions"])}
    return w.one("stablehlo.broadcast_in_dim", i, operands, attributes)


@emits("reshape")
def reshape(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.reshape", i, operands)


@emits("bitcast-convert")
def bitcast_convert(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.bitcast_convert", i, operands)


@emits("bitcast")
def bitcast(w: Writer, i: Instruction, operands: Trees) -> Tree:
    """What it means, layouts apart."""
    shape = i.operands[0].shape
    value = w.materialized(operands[0], shape)
    for step in logical_steps(i):
        attributes = {name: integers_text(numbers) for name, numbers in step.attributes.items()}
        name = f"stablehlo.{OPS[step.opcode].python_name}"
        (value,) = w.simple(name, [value], [shape], [step.shape], attributes)
        shape = step.shape
    return value


@emits("transpose")
def transpose(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.transpose", i, operands, {"permutation": integers_text(i.attributes["permutation"])})


@emits("reverse")
def reverse(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.reverse", i, operands, {"dimensions": integers_text(i.attributes["dimensions"])})


@emits("slice")
def slice_(w: Writer, i: Instruction, operands: Trees) -> Tree:
    parts = i.attributes["dimensions"]
    attributes = {
        "start_indices": integers_text([part.start for part in parts]),
        "limit_indices": integers_text([part.limit for part in parts]),
        "strides": integers_text([part.stride for part in parts]),
    }
    return w.one("stablehlo.slice", i, operands, attributes)


@emits("pad")
def pad(w: Writer, i: Instruction, operands: Trees) -> Tree:
    parts = i.attributes["dimensions"]
    attributes = {
        "edge_padding_low": integers_text([part.low for part in parts]),
        "edge_padding_high": integers_text([part.high for part in parts]),
        "interior_padding": integers_text([part.interior for part in parts]),
    }
    return w.one("stablehlo.pad", i, operands, attributes)


@emits("concatenate")
def concatenate(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.concatenate", i, operands, _numbers(i, "dimension"))


@emits("dynamic-slice")
def dynamic_slice(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {"slice_sizes": integers_text(i.attributes["slice_sizes"])}
    return w.one("stablehlo.dynamic_slice", i, operands, attributes)


@emits("dynamic-update-slice")
def dynamic_update_slice(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.dynamic_update_slice", i, operands)


@emits("get-dimension-size", "set-dimension-size")
def dimension_size(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one(f"stablehlo.{i.spec.python_name}", i, operands, _numbers(i, "dimension"))


@emits("gather")
def gather(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {
        "dimension_numbers": _dimension_numbers_text("gather", i),
        "slice_sizes": integers_text(i.attributes["slice_sizes"]),
        "indices_are_sorted": str(i.attributes["indices_are_sorted"]).lower(),
    }
    return w.one("stablehlo.gather", i, operands, attributes)


@emits("scatter")
def scatter(w: Writer, i: Instruction, operands: Trees) -> Steps:
    attributes = {
        "scatter_dimension_numbers": _dimension_numbers_text("scatter", i),
        "indices_are_sorted": str(i.attributes["indices_are_sorted"]).lower(),
        "unique_indices": str(i.attributes["unique_indices"]).lower(),
    }
    return (yield from with_own_arguments(w, "stablehlo.scatter", i, operands, attributes))


def _dimension_numbers_text(name: str, i: Instruction) -> str:
    """`#stablehlo.gather<offset_dims = [1], ..., index_vector_dim = 1>`"""
    numbers = dataclasses.asdict(i.attributes["dimension_numbers"])
    fields = (
        f"{field} = {list_text(value) if isinstance(value, (tuple, list)) else value}"
        for field, value in numbers.items()
    )
    return f"#stablehlo.{name}<{', '.join(fields)}>"


# -- folding and order -------------------------------------------------------------------------------------------------


@emits("sort")
def sort(w: Writer, i: Instruction, operands: Trees) -> Steps:
    attributes = _numbers(i, "dimension") | {"is_stable": str(i.attributes["is_stable"]).lower()}
    return (yield from with_own_arguments(w, "stablehlo.sort", i, operands, attributes))


@emits("topk")
def topk(w: Writer, i: Instruction, operands: Trees) -> Tree | Steps:
    """CHLO's top_k takes the largest elements; the smallest are the first ones in order."""
    if not i.attributes["largest"]:
        return _smallest(w, i, leaves(operands[0]))
    results = unpacked_shapes(i.shape)
    names = w.simple("chlo.top_k", leaves(operands[0]), [i.operands[0].shape], results, _numbers(i, "k"))
    return w.packed(names, i.shape)


def _smallest(w: Writer, i: Instruction, operands: Sequence[str]) -> Steps:
    """Elements and their positions sorted together, and the first k of both."""
    shape = i.operands[0].shape.without_layout()
    last = shape.rank - 1
    shapes = [shape, shape.with_type(S32)]
    positions = w.simple("stablehlo.iota", [], [], shapes[1:], {"iota_dimension": f"{last} : i64"})
    attributes = {"dimension": f"{last} : i64", "is_stable": "true"}
    in_order = [(_ascending(shape.type), None)]
    names = yield from w.with_regions("stablehlo.sort", [*operands, *positions], shapes, shapes, in_order, attributes)
    limits = {
        "start_indices": integers_text([0] * shape.rank),
        "limit_indices": integers_text([*shape.dims[:last], i.attributes["k"]]),
        "strides": integers_text([1] * shape.rank),
    }
    return tuple(
        w.simple("stablehlo.slice", [name], [whole], [part.without_layout()], limits)[0]
        for name, whole, part in zip(names, shapes, i.shape.parts, strict=True)
    )


def _ascending(element_type: ElementType) -> Computation:
    """Whether the first of two elements, each with its position, comes first; floats in total order."""
    order = Computation("ascending")
    types = (element_type, element_type, S32, S32)
    scalars = [order.add("parameter", number=n, shape=Shape.scalar(each)) for n, each in enumerate(types)]
    total = ComparisonType.TOTALORDER if element_type.is_float else None
    order.set_root(order.add("compare", scalars[:2], direction=ComparisonDirection.LT, type=total))
    return order


@emits("dot")
def dot(w: Writer, i: Instruction, operands: Trees) -> Tree:
    numbers = i.attributes["dimension_numbers"]
    attributes = {
        "dot_dimension_numbers": (
            f"#stablehlo.dot<lhs_batching_dimensions = {list_text(numbers.lhs_batch)}, "
            f"rhs_batching_dimensions = {list_text(numbers.rhs_batch)}, "
            f"lhs_contracting_dimensions = {list_text(numbers.lhs_contracting)}, "
            f"rhs_contracting_dimensions = {list_text(numbers.rhs_contracting)}>"
        ),
        **precision_attribute(i),
        **_algorithm(i),
    }
    return w.one("stablehlo.dot_general", i, operands, attributes)


def _algorithm(i: Instruction) -> Attributes:
    """How the products are to be computed, unless that is left open."""
    name = i.attributes["algorithm"]
    if not name:
        return {}
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        raise UnsupportedError(f"{i.name}: the algorithm {name} has no StableHLO spelling")
    return {"algorithm": algorithm.text()}


def precision_attribute(i: Instruction) -> Attributes:
    """The precision of each operand, unless it is the default."""
    words = ", ".join(f"#stablehlo<precision {precision.name}>" for precision in i.attributes["operand_precision"])
    return {"precision_config": f"[{words}]"} if words else {}


@emits("reduce", "map")
def fold(w: Writer, i: Instruction, operands: Trees) -> Steps:
    attributes = {"dimensions": integers_text(i.attributes["dimensions"])}
    return (yield from with_own_arguments(w, f"stablehlo.{i.opcode}", i, operands, attributes))


def with_own_arguments(w: Writer, name: str, i: Instruction, operands: Trees, attributes: Attributes) -> Steps:
    """An operation on arrays, whose regions have arguments of their own."""
    names = yield from w.with_regions(
        name,
        [leaf for operand in operands for leaf in leaves(operand)],
        [operand.shape for operand in i.operands],
        unpacked_shapes(i.shape),
        [(computation, None) for computation in i.called],
        attributes,
    )
    return w.packed(names, i.shape)


# -- linear algebra ----------------------------------------------------------------------------------------------------


@emits("cholesky")
def cholesky(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return w.one("stablehlo.cholesky", i, operands, _flags(i, "lower"))


@emits("eigh", "svd")
def own_flag(w: Writer, i: Instruction, operands: Trees) -> Tree:
    ((name, text),) = _flags(i, *i.attributes).items()
    return _own_parts(w, i, operands, {"backend_config": f"{{{name} = {text}}}", "api_version": "4 : i32"})


@emits("householder-product")
def householder_product(w: Writer, i: Instruction, operands: Trees) -> Tree:
    target = {"call_target_name": string_text(OWN_TARGETS + i.spec.python_name)}
    return w.one("stablehlo.custom_call", i, operands, target)


@emits("lu", "qr-decomposition")
def own_factors(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return _own_parts(w, i, operands, {})


def _own_parts(w: Writer, i: Instruction, operands: Trees, others: Mapping[str, str]) -> Tree:
    """An op of xlapy that has several results."""
    attributes = {"call_target_name": string_text(OWN_TARGETS + i.spec.python_name), **others}
    shapes = [i.operands[0].shape.without_layout()]
    return w.packed(
        w.simple("stablehlo.custom_call", leaves(operands[0]), shapes, unpacked_shapes(i.shape), attributes), i.shape
    )


@emits("triangular-solve")
def triangular_solve(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = _flags(i, "left_side", "lower", "unit_diagonal")
    attributes["transpose_a"] = f"#stablehlo<transpose {i.attributes['transpose_a']}>"
    return w.one("stablehlo.triangular_solve", i, operands, attributes)


def _flags(i: Instruction, *names: str) -> dict[str, str]:
    """Attributes that are true or false, under their own names."""
    return {name: str(i.attributes[name]).lower() for name in names}


@emits("fft")
def fft(w: Writer, i: Instruction, operands: Trees) -> Tree:
    attributes = {
        "fft_type": f"#stablehlo<fft_type {i.attributes['fft_type']}>",
        "fft_length": integers_text(i.attributes["fft_length"]),
    }
    return w.one("stablehlo.fft", i, operands, attributes)


# -- control flow ------------------------------------------------------------------------------------------------------


@emits("call")
def call(w: Writer, i: Instruction, operands: Trees) -> Tree:
    shapes = [operand.shape for operand in i.operands]
    values = [w.materialized(tree, shape) for tree, shape in zip(operands, shapes, strict=True)]
    name, attributes = "func.call", {"callee": w.function(i.called[0])}
    composite = _COMPOSITE.fullmatch(i.extra.get("frontend_attributes", "")) if i.attributes["is_composite"] else None
    if composite is not None:
        name = "stablehlo.composite"
        attributes = {
            "name": composite["name"],
            "composite_attributes": composite["attributes"],
            "decomposition": w.function(i.called[0]),
            "version": f"{composite['version']} : i32",
        }
    return w.packed(w.simple(name, values, shapes, unpacked_shapes(i.shape), attributes), i.shape)


@emits("async-start")
def async_start(w: Writer, i: Instruction, operands: Trees) -> Tree:
    """StableHLO has no asynchronous calls: it is made where it begins. Contexts, which nobody reads, are nothing."""
    shapes = [operand.shape for operand in i.operands]
    values = [w.materialized(tree, shape) for tree, shape in zip(operands, shapes, strict=True)]
    result = i.shape.parts[1]
    made = w.simple("func.call", values, shapes, unpacked_shapes(result), {"callee": w.function(i.called[0])})
    return tuple(operands), w.packed(made, result), *(() for _ in i.shape.parts[2:])


@emits("async-update")
def async_update(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return operands[0]


@emits("async-done")
def async_done(w: Writer, i: Instruction, operands: Trees) -> Tree:
    return element(operands[0], 1)


_COMPOSITE = re.compile(
    r'\{composite\.attributes=(?P<attributes>\{.*\}),composite\.name=(?P<name>".*"),'
    r'composite\.version="(?P<version>[0-9]+)"\}',
    re.DOTALL,
)
"""How a call remembers the composite that it was."""


@emits("while")
def while_(w: Writer, i: Instruction, operands: Trees) -> Steps:
    """All leaves of the state are values of the loop."""
    shapes = [*i.shape.leaves()]
    condition, body = i.called
    regions = [(condition, None), (body, None)]
    names = yield from w.with_regions("stablehlo.while", leaves(operands[0]), shapes, shapes, regions)
    return regrown(names, i.shape)


@emits("conditional")
def conditional(w: Writer, i: Instruction, operands: Trees) -> Steps:
    """The branches use the operands where they are."""
    selector = i.operands[0].shape
    regions = [(branch, [operand]) for branch, operand in zip(i.called, operands[1:], strict=True)]
    names = yield from w.with_regions(
        "stablehlo.case" if selector.type.is_integer else "stablehlo.if",
        leaves(operands[0]),
        [selector],
        [*i.shape.leaves()],
        regions,
    )
    return regrown(names, i.shape)
