"""How lanes fold elements that each of them has for itself: by the computation of a reduce, or, where a processor finds
extrema of integers sooner than those of floats, by integers in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlapy.codegen.ir import KernelBuilder
from xlapy.codegen.kernels.float_order import FloatOrder, finds_integers_sooner
from xlapy.codegen.kernels.folding import only
from xlapy.codegen.regions import emit_region
from xlapy.codegen.registers import Element, register_type
from xlapy.codegen.target import Target
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import sole_operation
from xlapy_runtime.records import Record

Elements = Sequence[Element]


class LaneFold(Record):
    """What each lane does that folds a result of its own: what it begins with, its next state, and the result."""

    start: Callable[[Elements], Elements]
    step: Callable[[Elements, Elements], Elements]
    finish: Callable[[Elements], Elements]


def is_found_in_order(reduce: Instruction, target: Target) -> bool:
    """Whether lanes find what a reduce folds among integers: an extremum of floats."""
    combiner = sole_operation(reduce.called[0])
    if combiner is None or combiner.opcode not in ("maximum", "minimum") or combiner.shape.type.is_complex:
        return False
    type = register_type(combiner.shape.type)
    return type.is_float and finds_integers_sooner(type, target)


def lane_fold(k: KernelBuilder, computation: Computation, *, in_order: bool) -> LaneFold:
    return _in_order(k, computation) if in_order else _by_region(k, computation)


def _by_region(k: KernelBuilder, computation: Computation) -> LaneFold:
    def step(running: Elements, elements: Elements) -> Elements:
        return emit_region(k, computation, [*running, *elements], unrounded=True)

    return LaneFold(lambda inits: inits, step, lambda results: results)


def _in_order(k: KernelBuilder, computation: Computation) -> LaneFold:
    combiner = sole_operation(computation)
    assert combiner is not None
    order = FloatOrder(k, register_type(combiner.shape.type), combiner.opcode == "maximum")

    def step(running: Elements, elements: Elements) -> Elements:
        return [order.extreme(only(running[0]), order.encode(only(elements[0])))]

    return LaneFold(
        lambda inits: [order.encode(only(inits[0]))], step, lambda results: [order.decode(only(results[0]))]
    )
