"""The recording front end: `XlaBuilder` records, `XlaOp` names a recorded value, `XlaComputation` is what was built.

The op functions live here by family and are collected, in the spelling of xla_client, in `xlapy.ops`. Every one of them
is a method of `XlaOp` or `XlaBuilder` too.
"""

from xlapy.builder.builder import XlaBuilder, XlaComputation
from xlapy.builder.computation_builder import ComputationBuilder
from xlapy.builder.methods import attach_methods
from xlapy.builder.op import XlaOp
from xlapy.builder.places import pass_over

attach_methods()

__all__ = ["ComputationBuilder", "XlaBuilder", "XlaComputation", "XlaOp", "pass_over"]
