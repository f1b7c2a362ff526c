"""Matrix products and convolutions, which libraries compute, and what is fused with them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from xlapy.codegen.context import CONTEXT_PARALLEL
from xlapy.codegen.entry.base import HANDLERS, Entry, Step
from xlapy.codegen.entry.kernels import write_kernel
from xlapy.codegen.entry.signals import look_at_signals
from xlapy.codegen.frame import Frame
from xlapy.codegen.ir import I64, PTR, Value
from xlapy.codegen.kernel_calls import table_of
from xlapy.codegen.kernels.epilogue import EPILOGUE_PARAMETERS
from xlapy.codegen.libraries.gemm import kind_on, product_function
from xlapy.codegen.libraries.gemm_problem import SIZES
from xlapy.codegen.libraries.gemm_windows import WINDOW_NUMBERS
from xlapy.codegen.libraries.spread import SPREAD_SIZES
from xlapy.codegen.packed_constants import PackedSide, packed_side
from xlapy.codegen.row_blocks import write_row_blocks
from xlapy.codegen.slice_copies import address_of_array
from xlapy.hlo.buffer_plan import Home, Location
from xlapy.hlo.graph import Instruction
from xlapy.hlo.kernel_plan import fused_product, fusion_roots, product_leaf
from xlapy.hlo.matrix_products import MatrixProduct, library_product
from xlapy.hlo.row_blocks import RowBlocks, fused_row_blocks
from xlapy.hlo.spread_products import SpreadProduct, spread_product


@HANDLERS.register("dot", "convolution")
def _product(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    """Calls of the matrix product library; what it is not for has a kernel like any other op."""
    spread = spread_product(instruction)
    if spread is not None:
        _spread_call(entry, frame, instruction, spread)
        return
    call = library_product(instruction)
    if call is None:
        write_kernel(entry, frame, instruction)
        return
    sides = call.sides(instruction)
    packed = packed_side(entry.plan, entry.kernels.target, call, sides)
    arrays = _sides(entry, frame, sides, packed)
    _product_call(entry, frame, instruction, packed.call if packed else call, [*arrays, frame.array(instruction)])


@HANDLERS.register("fusion")
def _fusion(entry: Entry, frame: Frame, instruction: Instruction) -> None:
    """A matrix product takes what is behind it along, or is one of several kernels; any other fusion is one kernel."""
    blocks = fused_row_blocks(instruction.called[0])
    if blocks is not None:
        _row_blocks(entry, frame, instruction, blocks)
        return
    product = fused_product(instruction)
    call = library_product(product) if product is not None else None
    if product is None or call is None:
        write_kernel(entry, frame, instruction)
        return
    k = frame.k
    parameters = call.sides(product)
    sides = [instruction.operands[parameter.attributes["number"]] for parameter in parameters]
    packed = packed_side(entry.plan, entry.kernels.target, call, sides)
    unread = parameters[packed.side] if packed and parameters[packed.side].sole_user is product else None
    operands = [
        k.const(PTR, 0) if parameter is unread else frame.array(operand)
        for parameter, operand in zip(instruction.called[0].parameters, instruction.operands, strict=True)
    ]
    results = [frame.array(instruction, leaf) for leaf in range(len(fusion_roots(instruction.called[0])))]
    pointers = table_of(k, [*operands, *results])
    runs_once = instruction.parent is entry.runs_once
    epilogue, work = entry.kernels.epilogue(instruction, runs_once=runs_once)
    k.module.declare(epilogue, None, [type for _, type in EPILOGUE_PARAMETERS])
    leaf = product_leaf(instruction.called[0], product)
    assert leaf is not None
    call = packed.call if packed else call
    call = replace(call, sizes={**call.sizes, "epilogue_work": work})
    behind = k.function_pointer(epilogue), pointers
    _product_call(entry, frame, instruction, call, [*_sides(entry, frame, sides, packed), results[leaf]], *behind)
    entry.steps[instruction] += (Step(epilogue),)


def _sides(entry: Entry, frame: Frame, sides: Sequence[Instruction], packed: PackedSide | None) -> list[Value]:
    """Where the two sides of a product are, one of which may be packed."""
    if packed is None:
        return [address_of_array(frame, side) for side in sides]
    (number,) = entry.kernels.tables_for(packed.constant, lambda: [packed.constant])
    strips = frame.pointer(Location(Home.CONSTANT, number))
    return [strips if side == packed.side else address_of_array(frame, value) for side, value in enumerate(sides)]


def _row_blocks(entry: Entry, frame: Frame, instruction: Instruction, blocks: RowBlocks) -> None:
    """Calls a function that runs several kernels for a range of blocks of rows, through the pool."""
    k = frame.k
    runs_once = instruction.parent is entry.runs_once
    function, libraries = write_row_blocks(entry.kernels, instruction, blocks, runs_once=runs_once)
    entry.libraries |= libraries
    entry.steps[instruction] = (Step(function, blocks.units, blocks.grain),)
    parallel = frame.context_word(CONTEXT_PARALLEL)
    arrays = [frame.array(value) for value in (*instruction.operands, instruction)]
    k.module.declare(function, None, [PTR, I64, I64])
    sizes = [k.const(I64, size) for size in (blocks.units, blocks.grain)]
    k.call(parallel, [k.function_pointer(function), table_of(k, [*arrays, parallel]), *sizes])
    look_at_signals(frame)


def _product_call(
    entry: Entry,
    frame: Frame,
    instruction: Instruction,
    call: MatrixProduct,
    arrays: Sequence[Value],
    epilogue: Value | None = None,
    epilogue_arguments: Value | None = None,
) -> None:
    """Multiplies the first two arrays into the third one."""
    k = frame.k
    kind = kind_on(call.kind, entry.kernels.target, call.sizes, call.windows, is_precise=call.is_precise)
    if call.windows is None:
        library, function = product_function(kind, call.sizes)
    else:
        library = function = f"gemm_{kind}_windows"
    entry.libraries.add(library)
    entry.steps[instruction] = (Step(function),)
    nothing = k.const(PTR, 0)
    sizes = k.table(I64, [call.sizes.get(name, 0) for name in SIZES])
    numbers = [sizes, epilogue or nothing, epilogue_arguments or nothing]
    if call.windows is not None:
        numbers.append(k.table(I64, [call.windows.get(name, 0) for name in WINDOW_NUMBERS]))
    parallel = frame.context_word(CONTEXT_PARALLEL)
    with ExitStack() as loops:
        for repetition in call.repetitions:
            index = loops.enter_context(k.loop(0, repetition.count)).index
            arrays = [k.gep(array, index, step) for array, step in zip(arrays, repetition.strides, strict=True)]
        k.call(function, [parallel, *arrays, *numbers])
    look_at_signals(frame)


def _spread_call(entry: Entry, frame: Frame, instruction: Instruction, call: SpreadProduct) -> None:
    """A convolution whose products are spread over the result."""
    k, library = frame.k, f"spread_{call.kind}"
    entry.libraries.add(library)
    function = f"{library}_run"
    entry.steps[instruction] = (Step(function),)
    arrays = [frame.array(value) for value in (*instruction.operands, instruction)]
    sizes = k.table(I64, [call.sizes[name] for name in SPREAD_SIZES])
    k.call(function, [frame.context_word(CONTEXT_PARALLEL), *arrays, sizes])
    look_at_signals(frame)
