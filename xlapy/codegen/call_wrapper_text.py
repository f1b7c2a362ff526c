"""What the text of the call wrapper is made of: reading fields of records, and walking tables of them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

from xlapy_runtime.calling import ParameterRecord, ResultRecord, TableRecord
from xlapy_runtime.object_layouts import ArrayFields, DtypeFields
from xlapy_runtime.result_blocks import BlockClass, BlockHeader, BlockPool

_TYPES: Mapping[type, str] = {
    ctypes.c_void_p: "ptr",
    ctypes.c_int64: "i64",
    ctypes.c_int: "i32",
}


def _fields(record: type[ctypes.Structure]) -> Mapping[str, str]:
    """The fields of a record and their types, those of records in it in their place."""
    found: dict[str, str] = {}
    for name, kind in (field[:2] for field in record._fields_):
        found |= _fields(kind) if issubclass(kind, ctypes.Structure) else {name: _TYPES[kind]}
    return found


_RECORDS = {
    "Array": _fields(ArrayFields),
    "Dtype": _fields(DtypeFields),
    "Parameter": _fields(ParameterRecord),
    "Result": _fields(ResultRecord),
    "Table": _fields(TableRecord),
    "Block": _fields(BlockHeader),
    "BlockClass": _fields(BlockClass),
    "BlockPool": _fields(BlockPool),
}


def load(name: str, record: str, field: str, base: str, index: str = "0") -> str:
    """Loads `%name` from a field of the record at `base`, or of a later one in a table; `%name_field` is its place."""
    return f"{place(name, record, field, base, index)}\n  %{name} = load {_RECORDS[record][field]}, ptr %{name}_field"


def store(value: str, record: str, field: str, base: str) -> str:
    """Stores a value to a field of the record at `base`, whose place is `%FIELD_field` then."""
    return f"{place(field, record, field, base)}\n  store {_RECORDS[record][field]} {value}, ptr %{field}_field"


def place(name: str, record: str, field: str, base: str, index: str = "0") -> str:
    """Names the place of a field `%name_field`."""
    return f"%{name}_field = getelementptr %{record}, ptr {base}, i64 {index}, i32 {[*_RECORDS[record]].index(field)}"


def item(name: str, type: str, table: str, index: str) -> str:
    """Loads `%name` from a table."""
    place = f"getelementptr {type}, ptr {table}, i64 {index}"
    return f"%{name}_field = {place}\n  %{name} = load {type}, ptr %{name}_field"


def each(limit: str, *, body: str, latch: str, done: str, before: str = "0") -> str:
    """A loop over `%index` below a limit, up to where the block `body` begins. `latch` leads to the next round."""
    return f"""br label %next
next:
  %index = phi i64 [ 0, %{before} ], [ %next_index, %{latch} ]
  %is_done = icmp eq i64 %index, {limit}
  br i1 %is_done, label %{done}, label %{body}
{body}:"""


def each_result(*, fresh: str, latch: str) -> str:
    """A loop over the results, up to the `%argument` that is to become one; those of none are for the block `fresh`."""
    return f"""{load("count", "Table", "result_count", "%table")}
  {load("results", "Table", "results", "%table")}
  {each("%count", body="look", latch=latch, done="yes")}
  %result = getelementptr %Result, ptr %results, i64 %index
  {load("donor", "Result", "donor", "%result")}
  %is_fresh = icmp slt i64 %donor, 0
  br i1 %is_fresh, label %{fresh}, label %donated
donated:
  {item("argument", "ptr", "%arguments", "%donor")}"""


NEXT = """%next_index = add nuw i64 %index, 1
  br label %next"""
"""The end of a round of `each`."""

STRUCTURES = "\n".join(f"%{name} = type {{ {', '.join(fields.values())} }}" for name, fields in _RECORDS.items())
