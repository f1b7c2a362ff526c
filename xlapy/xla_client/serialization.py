"""Executables as bytes: the program that was compiled and its options, to be compiled again where they are read.

    magic (16 bytes) | SHA-256 of the rest (32 bytes) | an ExecutableProto

Code is not among the bytes, so that they can be read on another machine; where the same program was compiled before,
the cache on disk has its code. Custom call targets go by their names, and have to be registered again.
"""

from __future__ import annotations

import hashlib

from xlapy.api import Source, load
from xlapy.hlo.graph import HloModule
from xlapy.hlo.proto import module_from_bytes, module_to_bytes
from xlapy.hlo.proto.options import ExecutableProto
from xlapy.support.errors import ParseError
from xlapy.support.protobuf import decode, encode
from xlapy.xla_client.options import CompileOptions

MAGIC = b"xlapy executable"
FORMAT = 1
_DIGEST_BYTES = 32


def executable_to_bytes(source: Source, options: CompileOptions) -> bytes:
    module = load(source)
    config = module.config
    content = encode(
        ExecutableProto(FORMAT, module_to_bytes(module), config.num_replicas, config.num_partitions, options.to_proto())
    )
    return MAGIC + hashlib.sha256(content).digest() + content


def executable_from_bytes(serialized: bytes) -> tuple[HloModule, CompileOptions]:
    """The program and its options; raises ParseError for bytes that are not those of an executable, or damaged."""
    start = len(MAGIC) + _DIGEST_BYTES
    if not serialized.startswith(MAGIC) or len(serialized) < start:
        raise ParseError("these bytes are not an executable that xlapy's serialize_executable returned")
    content = serialized[start:]
    if hashlib.sha256(content).digest() != serialized[len(MAGIC) : start]:
        raise ParseError("a serialized executable was damaged: its checksum is another")
    proto = decode(ExecutableProto, content)
    if proto.format != FORMAT or proto.options is None:
        raise ParseError(f"a serialized executable of format {proto.format}; this version of xlapy reads {FORMAT}")
    module = module_from_bytes(proto.module)
    module.config.num_replicas = max(proto.num_replicas, 1)
    module.config.num_partitions = max(proto.num_partitions, 1)
    return module, CompileOptions.from_proto(proto.options)
