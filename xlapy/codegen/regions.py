"""Scalar computations applied in kernels: the regions of reduce, map, scatter ..., on any number of lanes.

A region of element-wise ops on scalars is inlined. Any other is a function (see `kernel_plan.region_functions`), which
the kernel calls for one lane after the other, with its arguments and results in memory:

    i32 region(ptr context, ptr parameters, ptr results)

That is the signature of an entry, and the function is written like one. Its context is a copy of the caller's, in which
the arena is memory of this task's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.context import CONTEXT_ARENA, CONTEXT_CALLS, CONTEXT_WORDS
from xlapy.codegen.elements import emit_element
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I32, I64, PTR, KernelBuilder, Value
from xlapy.codegen.registers import Element, constant_element, lanes_of, memory_type
from xlapy.codegen.stopping import look_between_calls
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.kernel_plan import SCALAR_RENAMING
from xlapy.hlo.shape import Shape


def emit_region(
    k: KernelBuilder, computation: Computation, arguments: Sequence[Element], *, unrounded: bool = False
) -> list[Element]:
    """The results of a scalar computation for `arguments`; several if its root is a tuple.

    `unrounded` keeps narrow floats in f32 throughout, as accumulation wants it; functions round all the same."""
    function = k.functions.get(computation)
    if function is not None:
        return _call(k, function, computation, arguments)
    values: dict[Instruction, list[Element]] = {}
    for parameter, argument in zip(computation.parameters, arguments, strict=True):
        values[parameter] = [argument]
    for instruction in computation.post_order():
        if instruction not in values:
            operands = [values[operand] for operand in instruction.operands]
            values[instruction] = _emit(k, instruction, operands, unrounded)
    return values[computation.root]


def _emit(
    k: KernelBuilder, instruction: Instruction, operands: Sequence[list[Element]], unrounded: bool
) -> list[Element]:
    match instruction.opcode:
        case "constant":
            literal = instruction.attributes["literal"]
            return [constant_element(k, literal.shape.type, literal.scalar())]
        case "tuple":
            return [element for operand in operands for element in operand]
        case "get-tuple-element":
            return [operands[0][instruction.attributes["index"]]]
        case "call" | "map":
            arguments = [operand[0] for operand in operands]
            return emit_region(k, instruction.called[0], arguments, unrounded=unrounded)
    if instruction.opcode in SCALAR_RENAMING:
        return operands[0]
    return [emit_element(k, instruction, [operand[0] for operand in operands], unrounded=unrounded)]


def _call(k: KernelBuilder, function: str, region: Computation, arguments: Sequence[Element]) -> list[Element]:
    """Calls a region function for each lane. The lanes of an argument lie in memory one after the other."""
    lanes = max((lanes_of(argument) for argument in arguments), default=1)
    ix = Indexing(k, lanes)
    all_lanes = Index((lanes,), None, ix.along_lanes(k.const(I64, 0)))
    parameters = [_slots(k, parameter.shape, lanes) for parameter in region.parameters]
    results = [_slots(k, leaf, lanes) for leaf in region.root.shape.leaves()]
    for slots, argument in zip(parameters, arguments, strict=True):
        slots.store(ix, all_lanes, argument)
    if lanes == 1:
        _call_for_lane(k, function, parameters, results, k.const(I64, 0))
    else:
        with k.loop(0, lanes) as loop:
            _call_for_lane(k, function, parameters, results, loop.index)
    look_between_calls(k, k.gep(k.parameters["region_context"], CONTEXT_CALLS, I64.bytes), lanes)
    return [slots.load(ix, all_lanes) for slots in results]


def region_context(k: KernelBuilder, arena: Value | None) -> Value:
    """The context of the region functions that a kernel calls: the kernel's own, with a count of their calls, and with
    another arena if they use one."""
    own = k.alloca(I64, CONTEXT_WORDS)
    k.memcpy(own, k.parameters["context"], CONTEXT_WORDS * I64.bytes)
    k.store(k.gep(own, CONTEXT_CALLS, I64.bytes), k.const(I64, 0))
    if arena is not None:
        k.store(k.gep(own, CONTEXT_ARENA, I64.bytes), arena)
    return own


def _slots(k: KernelBuilder, shape: Shape, lanes: int) -> Array:
    """Memory for one scalar per lane."""
    parts = 2 if shape.type.is_complex else 1
    memory = k.alloca(memory_type(shape.type), parts * lanes)
    return Array(memory, Shape.array(shape.type, (lanes,)), read_only=False)


def _call_for_lane(
    k: KernelBuilder, function: str, parameters: Sequence[Array], results: Sequence[Array], lane: Value
) -> None:
    """One call. Its status only repeats what the flag in the context says, at which the caller of the kernel looks."""
    tables = []
    for arrays in (parameters, results):
        table = k.alloca(PTR, max(1, len(arrays)))
        for number, array in enumerate(arrays):
            k.store(k.gep(table, number, PTR.bytes), k.gep(array.pointer, lane, array.shape.type.bytes))
        tables.append(table)
    k.call(function, [k.parameters["region_context"], *tables], I32)
