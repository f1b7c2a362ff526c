"""Access to the records that the runtime lays out in memory, field by field."""

from __future__ import annotations

import ctypes

from xlapy.codegen.ir import I32, I64, PTR, IRType, KernelBuilder, Operand, Value

_TYPES: dict[type, IRType] = {ctypes.c_void_p: PTR, ctypes.c_int64: I64, ctypes.c_int32: I32}

Record = type[ctypes.Structure]


def place(k: KernelBuilder, base: Value, record: Record, name: str) -> Value:
    """The address of a field."""
    return k.gep(base, getattr(record, name).offset)


def get(k: KernelBuilder, base: Value, record: Record, name: str) -> Value:
    return k.load(place(k, base, record, name), _type(record, name))


def put(k: KernelBuilder, base: Value, record: Record, name: str, value: Operand) -> None:
    type = _type(record, name)
    k.store(place(k, base, record, name), value if isinstance(value, Value) else k.const(type, value))


def increase(k: KernelBuilder, base: Value, record: Record, name: str, by: Operand = 1) -> Value:
    """Adds to a field; the new value."""
    value = k.add(get(k, base, record, name), by)
    put(k, base, record, name, value)
    return value


def word(k: KernelBuilder, base: Value, number: Operand, type: IRType = I64) -> Value:
    """A word of a table."""
    return k.load(k.gep(base, number, I64.bytes), type)


def is_null(k: KernelBuilder, pointer: Value) -> Value:
    return k.compare("eq", pointer, k.const(PTR, 0))


def is_zero(k: KernelBuilder, value: Value) -> Value:
    return k.compare("eq", value, 0)


def not_zero(k: KernelBuilder, value: Value) -> Value:
    return k.compare("ne", value, 0)


def _type(record: Record, name: str) -> IRType:
    return _TYPES[dict(field[:2] for field in record._fields_)[name]]
