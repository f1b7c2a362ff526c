"""Small native programs for the tests: the code generator's role, played by a few lines of LLVM IR.

A program is a list of steps. `Call(site, buffers)` calls the runtime; buffers are written "p0" (parameter slot 0),
"r1" (result slot 1) or "a64" (byte 64 of the arena). Raw IR is accepted as a body, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

from tests.support.shared_cache import shared_cache
from xlapy.codegen.rendezvous import RENDEZVOUS
from xlapy.codegen.target import host_target
from xlapy_runtime import rendezvous
from xlapy_runtime.executable import ProgramExecutable
from xlapy_runtime.program import ArraySpec, Program, RuntimeCall, Tree

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

_serial = itertools.count()


def spec(dtype: type | np.dtype, *dims: int, dynamic: tuple[bool, ...] = ()) -> ArraySpec:
    return ArraySpec(np.dtype(dtype), dims, dynamic)


F32_4 = spec(np.float32, 4)


class Linked:
    """IR text as loaded code."""

    def __init__(self, text: str) -> None:
        module = llvm.parse_assembly(text)
        module.verify()
        self._engine = llvm.create_mcjit_compiler(
            module, llvm.Target.from_default_triple().create_target_machine(opt=1)
        )
        self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        return self._engine.get_function_address(symbol)


@dataclass(frozen=True)
class Call:
    site: int
    buffers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Copy:
    """memcpy of `nbytes` from one buffer to another."""

    target: str
    source: str
    nbytes: int


def _pointer(name: str, where: str) -> list[str]:
    """IR that puts the address of a buffer into `name`."""
    table = {"p": "%parameters", "r": "%results"}
    if where[0] == "a":
        return [
            f"{name}.s = getelementptr i64, ptr %context, i64 1",
            f"{name}.a = load ptr, ptr {name}.s",
            f"{name} = getelementptr i8, ptr {name}.a, i64 {where[1:]}",
        ]
    return [f"{name}.s = getelementptr ptr, ptr {table[where[0]]}, i64 {where[1:]}", f"{name} = load ptr, ptr {name}.s"]


def steps(body: Iterable[Call | Copy]) -> str:
    """The IR of a straight sequence of steps; a failing call returns its status."""
    lines = []
    for number, step in enumerate(body):
        name = f"%s{number}"
        if isinstance(step, Copy):
            lines += _pointer(f"{name}.t", step.target) + _pointer(f"{name}.f", step.source)
            lines.append(f"call void @llvm.memcpy.p0.p0.i64(ptr {name}.t, ptr {name}.f, i64 {step.nbytes}, i1 false)")
            continue
        lines.append(f"{name}.table = alloca ptr, i64 {max(len(step.buffers), 1)}")
        for index, where in enumerate(step.buffers):
            lines += _pointer(f"{name}.b{index}", where)
            lines.append(f"{name}.i{index} = getelementptr ptr, ptr {name}.table, i64 {index}")
            lines.append(f"store ptr {name}.b{index}, ptr {name}.i{index}")
        lines += [
            f"{name}.f = load ptr, ptr %context",
            f"{name}.status = call i32 {name}.f(ptr %context, i32 {step.site}, ptr {name}.table)",
            f"{name}.bad = icmp ne i32 {name}.status, 0",
            f"br i1 {name}.bad, label %failed{number}, label %next{number}",
            f"failed{number}:",
            f"ret i32 {name}.status",
            f"next{number}:",
        ]
    return "\n".join([*lines, "ret i32 0"])


SPIN = """
  br label %loop
loop:
  %i = phi i64 [0, %0], [%j, %loop], [%j, %ask]
  %j = add i64 %i, 1
  %now = and i64 %j, 1048575
  %due = icmp eq i64 %now, 0
  br i1 %due, label %ask, label %loop
ask:
  %slot = getelementptr ptr, ptr %context, i64 4
  %poll = load ptr, ptr %slot
  %stop = call i32 %poll(ptr %context)
  %go = icmp eq i32 %stop, 0
  br i1 %go, label %loop, label %end
end:
  ret i32 2
"""
"""A loop without end that polls."""


def combine(symbol: str, kind: str, operation: str) -> str:
    """IR of a combine kernel for elements of an LLVM type; `xlapy_runtime.collectives` says how it is called."""
    return f"""
define ptr @{symbol}.array(ptr %table, i64 %number) {{
  %place = getelementptr ptr, ptr %table, i64 %number
  %array = load ptr, ptr %place
  ret ptr %array
}}
define i32 @{symbol}(ptr %table, i64 %sources, i64 %begin, i64 %end) {{
  br label %head
head:
  %i = phi i64 [%begin, %0], [%n, %store]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %first = call ptr @{symbol}.array(ptr %table, i64 1)
  %pf = getelementptr {kind}, ptr %first, i64 %i
  %f = load {kind}, ptr %pf, align 1
  br label %fold
fold:
  %s = phi i64 [1, %body], [%s1, %add]
  %sum = phi {kind} [%f, %body], [%z, %add]
  %s1 = add i64 %s, 1
  %again = icmp slt i64 %s, %sources
  br i1 %again, label %add, label %store
add:
  %source = call ptr @{symbol}.array(ptr %table, i64 %s1)
  %py = getelementptr {kind}, ptr %source, i64 %i
  %y = load {kind}, ptr %py, align 1
  %z = {operation} {kind} %sum, %y
  br label %fold
store:
  %number = add i64 %sources, 1
  %target = call ptr @{symbol}.array(ptr %table, i64 %number)
  %pt = getelementptr {kind}, ptr %target, i64 %i
  store {kind} %sum, ptr %pt, align 1
  %n = add i64 %i, 1
  br label %head
exit:
  ret i32 0
}}
"""


def executable(
    body: str | Sequence[Call | Copy],
    *,
    parameters: Sequence[Tree] = (),
    result: Tree = (),
    calls: Sequence[RuntimeCall] = (),
    kernels: str = "",
    options: dict[str, object] | None = None,
    **fields: object,
) -> ProgramExecutable:
    """An executable whose entry is `body`. `options` go to the executable, other keywords to the program."""
    entry = f"entry{next(_serial)}"
    code = body if isinstance(body, str) else steps(body)
    text = (
        f"{kernels}\ndeclare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        f"define i32 @{entry}(ptr %context, ptr %parameters, ptr %results) {{\n{code}\n}}\n"
    )
    rendezvous.NATIVE.install(RENDEZVOUS.objects(host_target(), shared_cache()))
    program = Program("test", (), entry, tuple(parameters), result, runtime_calls=tuple(calls), **fields)  # type: ignore[arg-type]
    return ProgramExecutable(program, Linked(text), **(options or {}))  # type: ignore[arg-type]
