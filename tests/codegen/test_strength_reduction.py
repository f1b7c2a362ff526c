"""LLVM looks for better addresses in loops for those that want it, and for no others, whoever else is at work."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from tests.support.forks import works_in_a_child
from xlapy.codegen.jit import emit_assembly, emit_object
from xlapy.codegen.strength_reduction import strength_reduction
from xlapy.codegen.target import host_target, reference_target
from xlapy.support.side_by_side import side_by_side

DIAGONAL = """define void @diagonal(ptr %p, ptr %q, i64 %n, i64 %stride) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, %stride
  %from = getelementptr i8, ptr %p, i64 %offset
  %x = load float, ptr %from, align 4
  %to = getelementptr i8, ptr %q, i64 %offset
  store float %x, ptr %to, align 4
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}
"""
"""A loop whose products LLVM makes sums, if it looks."""


@pytest.mark.parametrize("is_wanted", [True, False])
def test_products_in_loops_become_sums_for_those_that_want_it(is_wanted: bool) -> None:
    assembly = emit_assembly(DIAGONAL, reference_target("avx2"), reduces_strength=is_wanted)
    assert ("imul" in assembly) is not is_wanted


def test_what_llvm_shall_not_optimize_does_not_wait_for_the_switch() -> None:
    """It would be the same: LLVM looks for nothing there."""
    untouched = DIAGONAL.replace("i64 %stride)", "i64 %stride) noinline optnone ")
    with strength_reduction(on=True):
        assert emit_object(untouched, host_target(), reduces_strength=False)
        one_of_two = f"{untouched}{DIAGONAL.replace('@diagonal', '@other')}"
        thread = threading.Thread(
            target=emit_object, args=(one_of_two, host_target()), kwargs={"reduces_strength": False}
        )
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join()


def test_emissions_of_both_kinds_at_once_come_out_as_alone() -> None:
    emissions = [partial(emit_object, DIAGONAL, host_target(), reduces_strength=i % 3 == 0) for i in range(24)]
    assert side_by_side(emissions, 6) == [emit() for emit in emissions]


def test_an_emission_waits_for_those_of_the_other_kind_and_not_for_its_own() -> None:
    order: list[str] = []

    def other() -> None:
        with strength_reduction(on=True):
            order.append("other")

    with strength_reduction(on=False):
        thread = threading.Thread(target=other)
        thread.start()
        with strength_reduction(on=False):
            order.append("own")
        thread.join(0.05)
        assert thread.is_alive()
    thread.join(10)
    assert order == ["own", "other"]


def test_what_fails_does_not_keep_others_waiting() -> None:
    with pytest.raises(KeyboardInterrupt), strength_reduction(on=False):
        raise KeyboardInterrupt
    with strength_reduction(on=True):
        pass


def test_a_child_does_not_wait_for_what_its_parent_emits() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def emits() -> None:
        with strength_reduction(on=False):
            begun.set()
            may_end.wait(30)

    thread = threading.Thread(target=emits)
    thread.start()
    begun.wait()
    try:
        assert works_in_a_child(lambda: emit_object(DIAGONAL, host_target()))
    finally:
        may_end.set()
        thread.join()
