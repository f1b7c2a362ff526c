"""LLVM IR text to object code, assembly, or optimized IR.

Emitters write plain IR without a target; the triple and the data layout are put in front here. What LLVM refuses is a
bug in an emitter, so it is an `InternalError` that quotes the line.

Nothing is kept between two emissions but the target machines: each module lives in an LLVM context of its own, so that
types and constants of thousands of programs do not pile up in a shared one.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import llvmlite.binding as llvm
from llvmlite.binding import ffi

import xlapy_runtime.llvm_lock  # noqa: F401
from xlapy.codegen.strength_reduction import strength_reduction
from xlapy.codegen.target import Target
from xlapy_runtime.errors import InternalError

Optimization = Literal["none", "light", "full"]
"""How much LLVM reworks the IR before it selects instructions.

none: nothing; for IR that the emitter has already folded, shared and hoisted.
light: inlines what must be inlined, turns stack slots into values and tidies up; for code written with allocas.
full: LLVM's O2 pipeline; for scalar code that LLVM should vectorize and unroll itself.
"""

_HEADER_LINES = 1


def emit_object(
    ir_text: str,
    target: Target,
    *,
    optimization: Optimization = "none",
    codegen_level: int = 1,
    reduces_strength: bool = True,
) -> bytes:
    """Position-independent object code of the module `ir_text`.

    `codegen_level` is LLVM's effort at instruction selection and register allocation. 0 keeps values in registers only
    inside a basic block: for glue, and for straight-line loop bodies if they must compile fast (80 vector operations:
    0.9 ms a kernel against 2.2 at level 1, run time within 4 %). 1 is for kernels; 2 and 3 compile 10 % longer and
    were not faster on element-wise ones. If it `reduces_strength`, LLVM looks for better addresses in loops (above 0).
    """
    with _emission(ir_text, target, optimization, codegen_level, reduces_strength) as (machine, module):
        return _object_code(machine, module)


def emit_assembly(
    ir_text: str,
    target: Target,
    *,
    optimization: Optimization = "none",
    codegen_level: int = 1,
    reduces_strength: bool = True,
) -> str:
    """The same code as `emit_object` makes, to read."""
    with _emission(ir_text, target, optimization, codegen_level, reduces_strength) as (machine, module):
        return str(machine.emit_assembly(module))


@contextmanager
def _emission(
    ir_text: str, target: Target, optimization: Optimization, codegen_level: int, reduces_strength: bool
) -> Iterator[tuple[llvm.TargetMachine, llvm.ModuleRef]]:
    """A code generator and an optimized module for it; LLVM's switch stands as the emission wants it."""
    with (
        _backend(target, codegen_level) as backend,
        _optimized_module(ir_text, backend, optimization) as module,
        strength_reduction(on=reduces_strength) if codegen_level and _is_optimized(ir_text) else nullcontext(),
    ):
        yield backend.machine, module


def _is_optimized(ir_text: str) -> bool:
    """Whether a function in it is worked on by LLVM's passes (above level 0), so that it matters which there are."""
    return ir_text.count("\ndefine ") + ir_text.startswith("define ") > ir_text.count(_UNTOUCHED)


_UNTOUCHED = " optnone "
"""The attribute of functions that are left as they are written."""


@dataclass(frozen=True)
class _Backend:
    """LLVM's code generator for a target, and what a module for it begins with."""

    machine: llvm.TargetMachine
    header: str


@contextmanager
def _backend(target: Target, codegen_level: int) -> Iterator[_Backend]:
    """A code generator that no other thread uses meanwhile; one that nobody uses, if there is one."""
    idle = _IDLE.setdefault((target, codegen_level), [])
    try:
        backend = idle.pop()
    except IndexError:
        backend = _new_backend(target, codegen_level)
    try:
        yield backend
    finally:
        idle.append(backend)


_IDLE: dict[tuple[Target, int], list[_Backend]] = {}


def _new_backend(target: Target, codegen_level: int) -> _Backend:
    if target.triple == llvm.get_process_triple():
        _initialize_native()
    else:
        _initialize_all()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=codegen_level, reloc="pic", codemodel="small", jit=True
    )
    header = f'target datalayout = "{machine.target_data}" target triple = "{target.triple}"\n'
    assert header.count("\n") == _HEADER_LINES
    return _Backend(machine, header)


@functools.cache
def _initialize_native() -> None:
    """Registers this machine's code generator with LLVM, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


@functools.cache
def _initialize_all() -> None:
    """Registers every code generator of the llvmlite at hand, once: for emission for other machines."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _object_code(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    """As `machine.emit_object` does, but other threads may use LLVM at the same time.

    llvmlite locks all of LLVM for each call, for the sake of modules that share a context; ours do not, and no two
    threads have the same machine."""
    message = ctypes.c_char_p()
    buffer = _emit_to_memory()(machine, module, True, ctypes.byref(message))
    if not buffer:
        raise InternalError(f"LLVM cannot emit code: {(message.value or b'').decode(errors='replace')}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@functools.cache
def _emit_to_memory() -> Any:
    locked = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    library = ctypes.CDLL(ffi.lib._name, handle=ffi.lib._handle)
    function = library.LLVMPY_TargetMachineEmitToMemory
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def _optimized_module(ir_text: str, backend: _Backend, optimization: Optimization) -> llvm.ModuleRef:
    module = _parse(ir_text, backend)
    if optimization != "none":
        _optimize(module, backend.machine, optimization)
    return module


def _parse(ir_text: str, backend: _Backend) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(backend.header + ir_text, llvm.create_context())
    except RuntimeError as error:
        raise InternalError(_parse_message(str(error), ir_text)) from None
    try:
        module.verify()
    except RuntimeError as error:
        module.close()
        raise InternalError(f"LLVM's verifier refuses emitted IR: {error}") from None
    return module


def _parse_message(llvm_message: str, ir_text: str) -> str:
    """LLVM's complaint with the line it means, numbered as the emitter wrote it, and its neighbours."""
    found = re.search(r":(\d+):(\d+): error: ([^\n]*)", llvm_message)
    if not found:
        return f"LLVM cannot parse emitted IR: {llvm_message}"
    number, column, complaint = int(found[1]) - _HEADER_LINES, int(found[2]), found[3]
    lines = ir_text.splitlines()
    quoted = []
    for nearby in range(max(1, number - 2), min(len(lines), number + 1) + 1):
        quoted.append(f"{nearby:6} | {lines[nearby - 1]}")
        if nearby == number:
            quoted.append(f"{'':6} | {' ' * (column - 1)}^")
    return "\n  ".join([f"LLVM cannot parse emitted IR, line {number}: {complaint}", *quoted])


def _optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, optimization: Optimization) -> None:
    with (
        llvm.create_pipeline_tuning_options(speed_level=2) as tuning,
        llvm.create_pass_builder(machine, tuning) as builder,
    ):
        passes = builder.getModulePassManager() if optimization == "full" else _light_passes()
        with passes:
            passes.run(module, builder)


def _light_passes() -> llvm.ModulePassManager:
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    return passes
