"""What scripts reach for below xla_client itself: `_xla.mlir`, `_xla.hlo_module_from_text`, passes on modules."""

from __future__ import annotations

from xlapy.passes.base import Pass
from xlapy.passes.dce import Dce
from xlapy.passes.flatten_call_graph import FlattenCallGraph as FlattenCallGraphPass
from xlapy.passes.inlining import CallInlining
from xlapy.passes.tuple_simplification import TupleSimplification
from xlapy.xla_client import modules as mlir
from xlapy.xla_client import ops
from xlapy.xla_client.client import Client, Device
from xlapy.xla_client.computations import XlaBuilder, XlaComputation
from xlapy.xla_client.hlo import HloComputation, HloInstruction, HloModule, HloPrintOptions, hlo_module_to_dot_graph
from xlapy.xla_client.executables import LoadedExecutable
from xlapy.xla_client.modules import hlo_module_from_text
from xlapy.xla_client.ops import XlaOp
from xlapy.xla_client.options import CompileOptions, DeviceAssignment
from xlapy.xla_client.protos import OpSharding
from xlapy.xla_client.shapes import Layout, ProgramShape, Shape
from xlapy.xla_client.types import FftType, PrimitiveType


def hlo_module_cost_analysis(client: Client, module: HloModule) -> dict[str, float]:
    """Operations and bytes of one run."""
    return client.hlo_module_cost_analysis(module)


class _ModulePass:
    """A pass of xlapy, run on a module by itself."""

    def __init__(self, one: Pass) -> None:
        self._pass = one

    @property
    def name(self) -> str:
        return self._pass.name

    def run(self, module: HloModule) -> bool:
        """Changes the module in place; returns whether anything changed."""
        return self._pass.run(module.unwrapped())


class HloDCE(_ModulePass):
    def __init__(self) -> None:
        super().__init__(Dce())


class CallInliner(_ModulePass):
    def __init__(self) -> None:
        super().__init__(CallInlining())


class FlattenCallGraph(_ModulePass):
    def __init__(self) -> None:
        super().__init__(FlattenCallGraphPass())


class TupleSimplifier(_ModulePass):
    def __init__(self) -> None:
        super().__init__(TupleSimplification())


__all__ = [
    "CallInliner",
    "Client",
    "CompileOptions",
    "Device",
    "DeviceAssignment",
    "FftType",
    "FlattenCallGraph",
    "HloDCE",
    "HloModule",
    "HloPrintOptions",
    "Layout",
    "LoadedExecutable",
    "OpSharding",
    "PrimitiveType",
    "ProgramShape",
    "Shape",
    "TupleSimplifier",
    "XlaBuilder",
    "XlaComputation",
    "XlaOp",
    "hlo_module_cost_analysis",
    "hlo_module_from_text",
    "mlir",
    "ops",
]
