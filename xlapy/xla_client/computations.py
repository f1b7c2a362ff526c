"""XlaBuilder and XlaComputation with the old interface's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xlapy import builder as xlapy_builder
from xlapy.hlo.drawing import to_dot
from xlapy.hlo.graph import HloModule as Module
from xlapy.hlo.proto import module_from_bytes, module_to_bytes
from xlapy.hlo.shape import Signature
from xlapy.hlo.text import fingerprint
from xlapy.xla_client.hlo import HloModule
from xlapy.xla_client.shapes import ProgramShape, Shape
from xlapy.xla_client.wrapping import Wrapper


class XlaComputation(Wrapper):
    """A finished computation: what XlaBuilder.build returns, or what the bytes of an HloModuleProto hold."""

    __slots__ = ("_computation",)

    def __init__(self, source: bytes | Module) -> None:
        module = source if isinstance(source, Module) else module_from_bytes(source)
        self._computation = xlapy_builder.XlaComputation(module)

    def unwrapped(self) -> xlapy_builder.XlaComputation:
        return self._computation

    @property
    def module(self) -> Module:
        """xlapy's own module: what `xlapy.compile` and `xlapy.evaluate` look for."""
        return self._computation.module

    def name(self) -> str:
        return self._computation.name

    def program_shape(self) -> ProgramShape:
        names = [parameter.name for parameter in self._computation.computation.parameters]
        return program_shape(self._computation.program_shape, names)

    def as_hlo_text(self, print_large_constants: bool = False) -> str:
        return self._computation.as_hlo_text(print_large_constants)

    def as_hlo_module(self) -> HloModule:
        return HloModule(self._computation.module.clone())

    def as_hlo_dot_graph(self) -> str:
        """The graph in DOT."""
        return to_dot(self._computation.module)

    def as_serialized_hlo_module_proto(self) -> bytes:
        """The bytes of an HloModuleProto, which XLA reads, too."""
        return module_to_bytes(self._computation.module)

    def hash(self) -> int:
        """A number that equal computations share, whatever their names; the same in every process."""
        return int(fingerprint(self._computation.module)[:15], 16)

    get_hlo_module = as_hlo_module
    GetHloDotGraph = as_hlo_dot_graph
    GetHloText = as_hlo_text
    GetProgramShape = program_shape
    GetSerializedProto = as_serialized_hlo_module_proto

    def __repr__(self) -> str:
        return repr(self._computation)


def program_shape(signature: Signature, names: Sequence[str] = ()) -> ProgramShape:
    return ProgramShape([Shape(shape) for shape in signature.parameters], Shape(signature.result), names)


class XlaBuilder(Wrapper):
    """Records a computation; the functions of `ops` take it as their first argument."""

    __slots__ = ("_builder",)

    def __init__(self, name: str) -> None:
        self._builder = xlapy_builder.XlaBuilder(name)

    def unwrapped(self) -> xlapy_builder.XlaBuilder:
        return self._builder

    def build(self, root: xlapy_builder.XlaOp | None = None) -> XlaComputation:
        """What `root`, by default the last op, computes."""
        return XlaComputation(self._builder.build(root).module)

    def get_shape(self, op: xlapy_builder.XlaOp) -> Shape:
        return Shape(self._builder.get_shape(op))

    def get_program_shape(self, root: xlapy_builder.XlaOp | None = None) -> ProgramShape:
        return program_shape(self._builder.get_program_shape(root))

    def is_constant(self, op: xlapy_builder.XlaOp) -> bool:
        return self._builder.is_constant(op)

    def set_op_metadata(self, metadata: Any) -> None:
        self._builder.set_op_metadata(metadata)

    def clear_op_metadata(self) -> None:
        self._builder.clear_op_metadata()

    def set_sharding(self, sharding: Any) -> None:
        self._builder.set_sharding(sharding)

    def clear_sharding(self) -> None:
        self._builder.clear_sharding()

    def set_frontend_attributes(self, attributes: Mapping[str, str]) -> None:
        self._builder.set_frontend_attributes(attributes)

    def clear_frontend_attributes(self) -> None:
        self._builder.clear_frontend_attributes()

    def setup_alias(self, output_index: Iterable[int], param_number: int, param_index: Iterable[int]) -> None:
        self._builder.setup_alias(tuple(output_index), param_number, tuple(param_index))

    Build = build
    GetShape = get_shape
    GetProgramShape = get_program_shape
    IsConstant = is_constant

    def __repr__(self) -> str:
        return repr(self._builder)
