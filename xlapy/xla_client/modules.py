"""Programs from one form to another: `_xla.mlir`, and modules from HLO text."""

from __future__ import annotations

from xlapy import stablehlo
from xlapy.api import load
from xlapy.hlo.text import parse
from xlapy.support.errors import UnsupportedError
from xlapy.xla_client.computations import HloModule, XlaComputation

BYTECODE = b"ML\xefR"
"""How MLIR's binary form begins."""


def mlir_text(source: str | bytes) -> str:
    """The text of a program; raises UnsupportedError for MLIR's binary form."""
    if isinstance(source, bytes):
        if source.startswith(BYTECODE):
            raise UnsupportedError("xlapy reads no MLIR bytecode; give it the text of the module, str(module)")
        return source.decode()
    return str(source)


def xla_computation_to_mlir_module(computation: XlaComputation, emit_stable_hlo: bool = True) -> str:
    """StableHLO text of a computation."""
    if not emit_stable_hlo:
        raise UnsupportedError("xlapy writes StableHLO only, not MHLO: leave out emit_stable_hlo=False")
    return stablehlo.to_text(computation.unwrapped().module)


def mlir_module_to_xla_computation(
    mlir_module: str | bytes, use_tuple_args: bool = False, return_tuple: bool = False
) -> XlaComputation:
    """The computation that StableHLO text describes. A function of several results returns a tuple anyway."""
    if use_tuple_args or return_tuple:
        raise UnsupportedError(
            "use_tuple_args and return_tuple: executables take and return the leaves of tuples, so neither is needed"
        )
    return XlaComputation(load(mlir_text(mlir_module)))


def serialize_portable_artifact(mlir_module: str | bytes, target: str) -> bytes:
    raise UnsupportedError("xlapy writes no portable artifacts; the module's text serves as one")


def deserialize_portable_artifact(serialized: bytes) -> str:
    raise UnsupportedError("xlapy reads no portable artifacts; give it the module's text")


def hlo_module_from_text(text: str) -> HloModule:
    return HloModule(parse(text))
