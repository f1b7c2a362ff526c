"""Kernels that draw random bits."""

from __future__ import annotations

from collections.abc import Sequence

from xlapy.codegen.arrays import Array
from xlapy.codegen.ir import KernelBuilder, Value
from xlapy.codegen.kernels.makers.base import KERNELS, Kernel, Situation
from xlapy.codegen.kernels.random import emit_bits, plan_bits
from xlapy.hlo.graph import Instruction


@KERNELS.register("rng-bit-generator")
def _bits(instruction: Instruction, situation: Situation) -> Kernel:
    plan = plan_bits(instruction, situation.target)

    def body(k: KernelBuilder, arrays: Sequence[Array], outputs: Sequence[Array], begin: Value, end: Value) -> None:
        emit_bits(k, plan, arrays[0], outputs, begin, end)

    return Kernel(plan.units, plan.bytes_per_unit, body, least_units=plan.lanes)
