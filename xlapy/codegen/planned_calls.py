"""Planned calls as native code: what programs go through to LAPACK without Python.

    planned_call(context, site, buffers)     the plan that the context has for the site, if it has one; else Python
    run_plan(plan, context)                  step by step: copies, zeros, functions for each problem of a batch ...

    for i in 0 ... count - 1: function(pointers[0] + i * steps[0], ..., pointers[11] + i * steps[11])

Everything that LAPACK takes is a pointer. A call from Python costs microseconds, as much as the factor of a small
matrix, and the GIL; from here it costs next to nothing.
"""

from __future__ import annotations

import ctypes
from functools import partial

from xlapy.codegen.context import CONTEXT_LOOK, CONTEXT_SITES
from xlapy.codegen.ir import F32, F64, I8, I32, I64, PTR, IRType, KernelBuilder, Module, Value
from xlapy.codegen.libraries import Library
from xlapy.codegen.native_fields import get, is_null, not_zero, word
from xlapy.codegen.target import Target
from xlapy_runtime.calling import Status
from xlapy_runtime.planned_calls import (
    CALL_SYMBOL,
    POINTER_COUNTS,
    PROBLEMS_PER_LOOP,
    RUN_SYMBOL,
    SYMBOLS,
    PlanRecord,
    StepKind,
    StepRecord,
)


def emit_planned_calls(target: Target) -> Module:
    module = Module(has_fma=target.has_fma)
    for count in POINTER_COUNTS:
        _emit_loop(module, count)
    _emit_call(module)
    _emit_run(module)
    _emit_planned_call(module)
    return module


PLANNED_CALLS = Library("planned_calls", SYMBOLS, emit_planned_calls)

_CALL_STEP = "call_step"


def _loop_symbol(num_pointers: int) -> str:
    return f"call_each_{num_pointers}"


def _emit_loop(module: Module, num_pointers: int) -> None:
    """Calls for problems [begin, end), with a table of pointers and steps."""
    parameters = [("function", PTR), ("begin", I64), ("end", I64), ("table", PTR)]
    with KernelBuilder(module, _loop_symbol(num_pointers), parameters, None, "internal") as k:
        table = k.parameters["table"]
        pointers = [word(k, table, slot, PTR) for slot in range(num_pointers)]
        steps = [word(k, table, num_pointers + slot) for slot in range(num_pointers)]
        with k.loop(k.parameters["begin"], k.parameters["end"]) as each:
            arguments = [k.gep(p, k.mul(each.index, step)) for p, step in zip(pointers, steps, strict=True)]
            k.call(k.parameters["function"], arguments)


def _emit_call(module: Module) -> None:
    """Fills in the pointers of a step, and makes its calls; a status if the run is to stop."""
    parameters = [("step", PTR), ("addresses", PTR), ("context", PTR)]
    with KernelBuilder(module, _CALL_STEP, parameters, I32, "internal") as k:
        step, addresses, context = k.parameters.values()
        table, size, count = (get(k, step, StepRecord, name) for name in ("table", "size", "count"))
        moving = k.gep(table, size, 2 * I64.bytes)
        with k.loop(0, get(k, step, StepRecord, "moving")) as each:
            position, place, offset = (word(k, moving, k.add(k.mul(each.index, 3), part)) for part in range(3))
            k.store(k.gep(table, position, I64.bytes), k.gep(word(k, addresses, place, PTR), offset))
        with k.loop(0, count, PROBLEMS_PER_LOOP) as part:
            arguments = [
                get(k, step, StepRecord, "function"),
                part.index,
                k.smin(k.add(part.index, PROBLEMS_PER_LOOP), count),
                table,
            ]
            k.switch(
                size,
                {number: partial(k.call, _loop_symbol(number), arguments) for number in POINTER_COUNTS},
                lambda: None,
            )
            with k.if_(k.not_(is_null(k, context))):
                status = k.call_value(word(k, context, CONTEXT_LOOK, PTR), [context], I32)
                with k.if_(not_zero(k, status)):
                    k.ret(status)
        k.ret(k.const(I32, Status.OK))


def _emit_run(module: Module) -> None:
    with KernelBuilder(module, RUN_SYMBOL, [("plan", PTR), ("context", PTR)], I32) as k:
        plan, context = k.parameters.values()
        addresses, steps = (get(k, plan, PlanRecord, name) for name in ("addresses", "steps"))
        with k.loop(0, get(k, plan, PlanRecord, "count")) as each:
            step = k.gep(steps, each.index, ctypes.sizeof(StepRecord))

            def call(step: Value = step) -> None:
                status = k.call_value(_CALL_STEP, [step, addresses, context], I32)
                with k.if_(not_zero(k, status)):
                    k.ret(status)

            kinds = {kind: partial(write, k, step, addresses) for kind, write in _STEPS.items()}
            k.switch(get(k, step, StepRecord, "kind"), kinds, call)
        k.ret(k.const(I32, Status.OK))


def _copy(k: KernelBuilder, step: Value, addresses: Value) -> None:
    target, source = _place(k, step, addresses, "target"), _place(k, step, addresses, "source")
    target_step, source_step, size = (get(k, step, StepRecord, name) for name in ("target_step", "source_step", "size"))
    with k.loop(0, get(k, step, StepRecord, "count")) as piece:
        k.memmove(k.gep(target, k.mul(piece.index, target_step)), k.gep(source, k.mul(piece.index, source_step)), size)


def _clear(k: KernelBuilder, step: Value, addresses: Value) -> None:
    k.memset(_place(k, step, addresses, "target"), 0, get(k, step, StepRecord, "size"))


def _keep_finite(k: KernelBuilder, step: Value, addresses: Value) -> None:
    """The exponents of infinities and NaNs have all bits set."""
    target, source, third = (_place(k, step, addresses, name) for name in ("target", "source", "third"))
    size, float_bytes = (get(k, step, StepRecord, name) for name in ("size", "float_bytes"))
    total = k.mul(size, float_bytes)
    with k.loop(0, get(k, step, StepRecord, "count")) as piece:
        start = k.mul(piece.index, total)
        floats = k.gep(source, start)
        (others,) = k.switch(
            float_bytes,
            {F32.bytes: partial(_not_finite, k, floats, size, F32)},
            partial(_not_finite, k, floats, size, F64),
        )
        is_finite = k.compare("eq", others, 0)
        k.store(k.gep(third, piece.index), k.zext(is_finite, I8))
        k.if_else(
            is_finite,
            partial(k.memmove, k.gep(target, start), floats, total),
            partial(k.memset, k.gep(target, start), 0, total),
        )


def _not_finite(k: KernelBuilder, floats: Value, size: Value, type: IRType) -> Value:
    """Not 0 if one of the floats is an infinity or a NaN."""
    integer = I32 if type is F32 else I64
    exponent = k.const(integer, _EXPONENTS[type])
    lanes = _FINITE_BYTES // integer.bytes
    whole = k.and_(size, -lanes)

    def found(place: Value, lanes: int, former: Value) -> Value:
        bits = k.load(k.gep(floats, place, integer.bytes), integer.with_lanes(lanes))
        all_set = k.splat(exponent, lanes) if lanes > 1 else exponent
        is_other = k.compare("eq", k.and_(bits, all_set), all_set)
        return k.or_(former, k.zext(is_other, integer))

    with k.loop(0, whole, lanes, carry=[k.const(integer.with_lanes(lanes), 0)]) as vectors:
        vectors.next = [found(vectors.index, lanes, vectors.values[0])]
    total = k.extract(vectors.results[0], 0)
    for lane in range(1, lanes):
        total = k.or_(total, k.extract(vectors.results[0], lane))
    with k.loop(whole, size, carry=[total]) as rest:
        rest.next = [found(rest.index, 1, rest.values[0])]
    return rest.results[0] if integer is I64 else k.zext(rest.results[0], I64)


_EXPONENTS = {F32: 0x7F800000, F64: 0x7FF0000000000000}
_FINITE_BYTES = 32
"""That are looked at together."""


def _report_others(k: KernelBuilder, step: Value, addresses: Value) -> None:
    flags, target = _place(k, step, addresses, "source"), _place(k, step, addresses, "target")
    number = k.trunc(get(k, step, StepRecord, "size"), I32)
    with k.loop(0, get(k, step, StepRecord, "count")) as each:
        is_other = k.compare("eq", k.load(k.gep(flags, each.index), I8), 0)
        place = k.gep(target, each.index, I32.bytes)
        k.store(place, k.select(is_other, number, k.load(place, I32)))


def _unpack(k: KernelBuilder, step: Value, addresses: Value) -> None:
    k.switch(
        get(k, step, StepRecord, "float_bytes"),
        {F32.bytes: partial(_unpack_floats, k, step, addresses, F32)},
        partial(_unpack_floats, k, step, addresses, F64),
    )


def _unpack_floats(k: KernelBuilder, step: Value, addresses: Value, type: IRType) -> None:
    target, source, third = (_place(k, step, addresses, name) for name in ("target", "source", "third"))
    size = get(k, step, StepRecord, "size")
    zero = k.const(type, 0.0)
    with k.loop(0, get(k, step, StepRecord, "count")) as each, k.loop(0, size) as columns:
        column, first = columns.index, k.mul(each.index, size)
        sign = k.load(k.gep(third, k.add(first, column), type.bytes), type)
        begins, ends = k.compare("gt", sign, zero), k.compare("lt", sign, zero)
        before = k.select(k.compare("eq", column, 0), k.sub(size, 1), k.sub(column, 1))
        behind = k.add(column, 1)
        behind = k.select(k.compare("eq", behind, size), k.const(I64, 0), behind)
        places = k.select(ends, before, column), k.select(begins, behind, column)
        real, imaginary = (k.gep(source, k.mul(k.add(first, place), size), type.bytes) for place in places)
        vector = k.gep(target, k.mul(k.add(first, column), size), 2 * type.bytes)
        with k.loop(0, size) as rows:
            part = k.load(k.gep(imaginary, rows.index, type.bytes), type)
            place = k.gep(vector, rows.index, 2 * type.bytes)
            k.store(place, k.load(k.gep(real, rows.index, type.bytes), type))
            part = k.select(begins, part, k.select(ends, k.neg(part), zero))
            k.store(k.gep(place, 1, type.bytes), part)


_STEPS = {
    StepKind.COPY: _copy,
    StepKind.CLEAR: _clear,
    StepKind.KEEP_FINITE: _keep_finite,
    StepKind.REPORT_OTHERS: _report_others,
    StepKind.UNPACK: _unpack,
}


def _place(k: KernelBuilder, step: Value, addresses: Value, name: str) -> Value:
    array = word(k, addresses, get(k, step, StepRecord, name), PTR)
    return k.gep(array, get(k, step, StepRecord, f"{name}_offset"))


def _emit_planned_call(module: Module) -> None:
    """The word in front of the plans of a context is the function of Python's."""
    with KernelBuilder(module, CALL_SYMBOL, [("context", PTR), ("site", I32), ("buffers", PTR)], I32) as k:
        context, site, buffers = k.parameters.values()
        sites = word(k, context, CONTEXT_SITES, PTR)
        plan = word(k, sites, k.add(k.sext(site, I64), 1), PTR)
        with k.if_(is_null(k, plan)):
            k.ret(k.call_value(k.load(sites, PTR), [context, site, buffers], I32))
        addresses = get(k, plan, PlanRecord, "addresses")
        with k.loop(0, get(k, plan, PlanRecord, "given")) as each:
            k.store(k.gep(addresses, each.index, I64.bytes), word(k, buffers, each.index))
        k.ret(k.call_value(RUN_SYMBOL, [plan, context], I32))
