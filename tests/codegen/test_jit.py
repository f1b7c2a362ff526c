"""IR text becomes code; what LLVM refuses becomes an InternalError that quotes the line."""

from __future__ import annotations

import os
import threading
import time
from functools import partial

import pytest
from llvmlite.binding import ffi

from tests.support.forks import works_in_a_child
from tests.support.fresh import printed_by
from xlapy.codegen.jit import Optimization, emit_assembly, emit_object
from xlapy.codegen.object_cache import compiler_version
from xlapy.codegen.target import host_target, reference_target
from xlapy.support.side_by_side import side_by_side
from xlapy_runtime.errors import InternalError
from xlapy_runtime.records import replaced

ADD_ONE = """define i32 @add_one(i32 %a) nounwind {
  %slot = alloca i32
  store i32 %a, ptr %slot
  %b = load i32, ptr %slot
  %c = add i32 %b, 1
  ret i32 %c
}
"""

MULTIPLY_ADD = """declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
define void @multiply_add(ptr %p) {
  %x = load <8 x float>, ptr %p, align 4
  %y = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %x, <8 x float> %x)
  store <8 x float> %y, ptr %p, align 4
  ret void
}
"""


@pytest.mark.parametrize("optimization", ["none", "light", "full"])
@pytest.mark.parametrize("codegen_level", [0, 1, 2, 3])
def test_every_level_makes_object_code(optimization: Optimization, codegen_level: int) -> None:
    code = emit_object(ADD_ONE, host_target(), optimization=optimization, codegen_level=codegen_level)
    assert b"add_one" in code


def test_emission_is_deterministic() -> None:
    assert emit_object(ADD_ONE, host_target()) == emit_object(ADD_ONE, host_target())


def test_no_passes_leave_the_ir_alone_and_light_ones_clear_stack_slots() -> None:
    """A value that is stored and loaded again takes a word of memory, unless somebody sees what becomes of it."""
    in_memory = ["(%rsp)" in assembly_of(optimization) for optimization in ("none", "light", "full")]
    assert in_memory == [True, False, False]


def assembly_of(optimization: Optimization) -> str:
    target = reference_target("sse2")
    return emit_assembly(ADD_ONE, target, optimization=optimization, codegen_level=0)


@pytest.mark.parametrize(
    ("name", "instruction"), [("sse2", "fmaf"), ("avx2", "vfmadd"), ("avx512", "vfmadd"), ("neon", "fmla")]
)
def test_code_for_other_machines_uses_their_instructions(name: str, instruction: str) -> None:
    assert instruction in emit_assembly(MULTIPLY_ADD, reference_target(name))


def test_narrow_vectors_stay_narrow_on_avx512() -> None:
    text = """define void @add(ptr %p, ptr %q) ATTRIBUTES {
  %x = load <16 x float>, ptr %p, align 4
  %y = load <16 x float>, ptr %q, align 4
  %z = fadd <16 x float> %x, %y
  store <16 x float> %z, ptr %p, align 4
  ret void
}
"""
    wide = reference_target("avx512")
    narrow = replaced(wide, vector_bytes=32)
    assert "zmm" in emit_assembly(text.replace("ATTRIBUTES", wide.function_attributes), wide)
    assert "zmm" not in emit_assembly(text.replace("ATTRIBUTES", narrow.function_attributes), narrow)


def test_a_parse_error_quotes_the_emitters_own_line() -> None:
    broken = ADD_ONE.replace("add i32 %b", "add i64 %b")
    with pytest.raises(InternalError) as caught:
        emit_object(broken, host_target())
    message = str(caught.value)
    assert "line 5" in message
    assert "%c = add i64 %b, 1" in message
    assert "but expected 'i64'" in message


def test_what_the_verifier_refuses_is_reported() -> None:
    broken = """define i32 @f(i1 %c) {
  br i1 %c, label %a, label %b
a:
  %x = add i32 1, 2
  br label %b
b:
  ret i32 %x
}
"""
    with pytest.raises(InternalError, match="does not dominate"):
        emit_object(broken, host_target())


def test_threads_may_emit_at_once() -> None:
    expected = emit_object(ADD_ONE, host_target())
    results: list[bytes] = []

    def work() -> None:
        results.extend(emit_object(ADD_ONE, host_target()) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 80


def test_the_compiler_names_its_version() -> None:
    assert "LLVM" in compiler_version()


def test_threads_compile_at_the_same_time() -> None:
    """The same code as one after the other, from code generators of which no two threads have the same."""
    texts = [ADD_ONE.replace("i32 %b, 1", f"i32 %b, {number}") for number in range(40)]
    expected = [emit_object(text, host_target()) for text in texts]
    assert side_by_side([partial(emit_object, text, host_target()) for text in texts], 8) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_child_compiles_that_was_forked_while_another_thread_used_llvm() -> None:
    """The lock around LLVM, held in the parent by a thread that the child does not have, was held in it for ever."""
    is_inside = threading.Event()

    def use_llvm() -> None:
        with ffi.lib._lock:
            is_inside.set()
            time.sleep(0.1)

    thread = threading.Thread(target=use_llvm)
    thread.start()
    is_inside.wait()
    has_worked = works_in_a_child(lambda: emit_object(ADD_ONE, host_target()))
    thread.join()
    assert has_worked
    emit_object(ADD_ONE, host_target())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_signal_handler_that_raises_during_a_fork_does_not_leave_llvm_locked() -> None:
    """What it raises ended a function of Python, before this had released the lock. The signal comes while there is no
    such function, so that its handler runs as soon as there is one."""
    script = """
        import ctypes, functools, os, signal, sys, threading

        def interrupt(*_):
            raise KeyboardInterrupt

        sys.unraisablehook = lambda _: None
        signal.signal(signal.SIGUSR1, interrupt)
        raised = functools.partial(getattr(ctypes.CDLL(None), "raise"), signal.SIGUSR1.value)
        os.register_at_fork(after_in_parent=raised)
        import xlapy_runtime.llvm_lock
        from llvmlite.binding import ffi
        try:
            child = os.fork()
            if not child:
                os._exit(0)
            for _ in range(1000):
                pass
        except KeyboardInterrupt:
            print("interrupted")
        took_it = []

        def take():
            took_it.append(ffi.lib._lock._lock.acquire(timeout=5))

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        print(took_it)
    """
    assert printed_by(script).split("\n")[-1] == "[True]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_waits_for_llvm_whatever_signal_handlers_raise() -> None:
    script = """
        import os, signal, sys, threading, time
        from xlapy.codegen.jit import emit_object
        from xlapy.codegen.target import host_target
        from llvmlite.binding import ffi
        from tests.support.forks import works_in_a_child

        def interrupt(*_):
            raise KeyboardInterrupt

        reported = set()
        sys.unraisablehook = lambda report: reported.add(report.exc_type)
        signal.signal(signal.SIGUSR1, interrupt)
        is_inside, forks = threading.Event(), threading.Event()
        os.register_at_fork(before=forks.set)

        def use_llvm():
            with ffi.lib._lock:
                is_inside.set()
                forks.wait()
                for _ in range(3):
                    time.sleep(0.1)
                    os.kill(os.getpid(), signal.SIGUSR1)
                time.sleep(0.1)

        thread = threading.Thread(target=use_llvm)
        thread.start()
        is_inside.wait()
        print(works_in_a_child(lambda: emit_object("define void @f() { ret void }", host_target())), reported)
        thread.join()
    """
    assert printed_by(script) == "True {<class 'KeyboardInterrupt'>}"
