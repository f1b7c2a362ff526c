"""XlaBuilder, XlaComputation and HloModule with the old interface's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xlapy import builder as xlapy_builder
from xlapy.hlo.graph import HloModule as Module
from xlapy.hlo.shape import Signature
from xlapy.hlo.text import fingerprint, parse, to_text
from xlapy.support.errors import ParseError, UnsupportedError
from xlapy.xla_client.shapes import ProgramShape, Shape
from xlapy.xla_client.wrapping import Wrapper


class HloPrintOptions:
    """What the text of a module contains. xlapy has a short form and a long one, which adds metadata."""

    def __init__(self) -> None:
        self.print_large_constants = False
        self.print_metadata = True
        self.include_layout_in_shapes = True

    @staticmethod
    def short_parsable() -> HloPrintOptions:
        """The short form, with all constants, so that it can be read back."""
        options = HloPrintOptions()
        options.print_large_constants = True
        options.print_metadata = False
        return options

    canonical = short_parsable
    fingerprint = short_parsable


class HloModule(Wrapper):
    """A module. Its serialized form is its HLO text in UTF-8, which only xlapy takes for one."""

    __slots__ = ("_module",)

    def __init__(self, module: Module) -> None:
        self._module = module

    def unwrapped(self) -> Module:
        return self._module

    @property
    def name(self) -> str:
        return self._module.name

    def to_string(self, options: HloPrintOptions | None = None) -> str:
        chosen = options or HloPrintOptions()
        return to_text(
            self._module,
            long=chosen.print_metadata,
            layouts=chosen.include_layout_in_shapes,
            large_constants=chosen.print_large_constants,
        )

    def computations(self) -> list[Any]:
        return self._module.computations()

    def as_serialized_hlo_module_proto(self) -> bytes:
        return to_text(self._module).encode()

    @staticmethod
    def from_serialized_hlo_module_proto(serialized: bytes) -> HloModule:
        return HloModule(module_of_bytes(serialized))

    def __repr__(self) -> str:
        return self.to_string()


def module_of_bytes(serialized: bytes) -> Module:
    """The module of which this is the serialized form; a true protocol buffer is not read."""
    try:
        return parse(serialized.decode())
    except (UnicodeDecodeError, ParseError):
        raise UnsupportedError(
            "xlapy reads no HLO protocol buffers, only what its own as_serialized_hlo_module_proto() returned; "
            "give it HLO text, through _xla.hlo_module_from_text"
        ) from None


class XlaComputation(Wrapper):
    """A finished computation: what XlaBuilder.build returns, or one that was serialized by this class."""

    __slots__ = ("_computation",)

    def __init__(self, source: bytes | Module) -> None:
        module = source if isinstance(source, Module) else module_of_bytes(source)
        self._computation = xlapy_builder.XlaComputation(module)

    def unwrapped(self) -> xlapy_builder.XlaComputation:
        return self._computation

    def name(self) -> str:
        return self._computation.name

    def program_shape(self) -> ProgramShape:
        names = [parameter.name for parameter in self._computation.computation.parameters]
        return program_shape(self._computation.program_shape, names)

    def as_hlo_text(self, print_large_constants: bool = False) -> str:
        return self._computation.as_hlo_text(print_large_constants)

    def as_hlo_module(self) -> HloModule:
        return HloModule(self._computation.module.clone())

    def as_serialized_hlo_module_proto(self) -> bytes:
        return self.as_hlo_module().as_serialized_hlo_module_proto()

    def hash(self) -> int:
        """A number that equal computations share, whatever their names; the same in every process."""
        return int(fingerprint(self._computation.module)[:15], 16)

    get_hlo_module = as_hlo_module
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
