"""HLO as protocol buffers, in both directions: XLA's own messages, driven by the op table."""

from xlapy.hlo.proto.reader import module_from_bytes
from xlapy.hlo.proto.shapes import shape_from_proto, shape_to_proto, signature_from_proto, signature_to_proto
from xlapy.hlo.proto.shardings import sharding_from_text, sharding_to_text
from xlapy.hlo.proto.writer import module_to_bytes

__all__ = [
    "module_from_bytes",
    "module_to_bytes",
    "shape_from_proto",
    "shape_to_proto",
    "sharding_from_text",
    "sharding_to_text",
    "signature_from_proto",
    "signature_to_proto",
]
