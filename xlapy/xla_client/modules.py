"""Programs from one form to another: `_xla.mlir`, and modules from HLO text.

MLIR's binary form and portable artifacts go through jaxlib, where it is installed; text needs nothing.
"""

from __future__ import annotations

from xlapy import stablehlo
from xlapy.api import load
from xlapy.hlo.graph import Computation
from xlapy.hlo.graph import HloModule as Module
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse
from xlapy.stablehlo.bytecode import is_bytecode, portable_artifact, text_of_bytecode
from xlapy.support.errors import ParseError, UnsupportedError
from xlapy.xla_client.computations import XlaComputation
from xlapy.xla_client.hlo import HloModule


def mlir_text(source: str | bytes) -> str:
    """The text of a program that is given as text or in MLIR's binary form."""
    if not isinstance(source, bytes):
        return str(source)
    if is_bytecode(source):
        return text_of_bytecode(source)
    try:
        return source.decode()
    except UnicodeDecodeError:
        raise ParseError("these bytes are neither MLIR's text in UTF-8 nor its binary form") from None


def xla_computation_to_mlir_module(computation: XlaComputation, emit_stable_hlo: bool = True) -> str:
    """StableHLO text of a computation."""
    if not emit_stable_hlo:
        raise UnsupportedError(
            "xlapy writes StableHLO only: MHLO changes with every release of XLA and has no readers outside of it; "
            "leave out emit_stable_hlo=False"
        )
    return stablehlo.to_text(computation.unwrapped().module)


def mlir_module_to_xla_computation(
    mlir_module: str | bytes, use_tuple_args: bool = False, return_tuple: bool = False
) -> XlaComputation:
    """The computation that StableHLO describes. A function of several results returns a tuple anyway.

    With `use_tuple_args` it takes all arguments as one tuple, with `return_tuple` it returns a tuple in any case."""
    module = load(mlir_text(mlir_module))
    if use_tuple_args or return_tuple:
        module = _with_tuples(module, use_tuple_args, return_tuple)
    return XlaComputation(module)


def _with_tuples(module: Module, use_tuple_args: bool, return_tuple: bool) -> Module:
    """The module with an entry that takes its parameters, or returns its result, in a tuple."""
    inner = module.entry
    entry = Computation(inner.name)
    if use_tuple_args:
        whole = Shape.tuple([parameter.shape for parameter in inner.parameters])
        packed = entry.add("parameter", number=0, shape=whole, name="arguments")
        arguments = [entry.add("get-tuple-element", [packed], index=index) for index in range(len(inner.parameters))]
    else:
        arguments = [
            entry.add("parameter", number=number, shape=parameter.shape, name=parameter.name)
            for number, parameter in enumerate(inner.parameters)
        ]
    root = entry.insert(inner, arguments)
    if return_tuple and not root.shape.is_tuple:
        root = entry.add("tuple", [root])
    entry.set_root(root)
    return Module(module.name, entry, module.config)


def serialize_portable_artifact(mlir_module: str | bytes, target: str) -> bytes:
    """StableHLO of the version `target`, which readers of that version and newer ones understand. Needs jaxlib."""
    return portable_artifact(mlir_text(mlir_module), target)


def deserialize_portable_artifact(serialized: bytes) -> str:
    """The text of a portable artifact. Needs jaxlib."""
    if not is_bytecode(serialized):
        raise ParseError("these bytes are no portable artifact: they are not in MLIR's binary form")
    return text_of_bytecode(serialized)


def refine_polymorphic_shapes(
    mlir_module: str | bytes, enable_shape_assertions: bool = True, validate_static_shapes: bool = True
) -> str:
    """The module with static shapes wherever they follow from those of `main`'s parameters: reading one does that."""
    module = load(mlir_text(mlir_module))
    if validate_static_shapes and not all(instruction.shape.is_static for instruction in module.instructions()):
        raise UnsupportedError("some shapes of this module do not follow from those of its parameters")
    return stablehlo.to_text(module)


def hlo_module_from_text(text: str) -> HloModule:
    return HloModule(parse(text))
