"""Records in memory: what a driver tells the kernels that the thread pool runs for it."""

from __future__ import annotations

from xlapy.codegen.ir import I8, IRType, KernelBuilder, Value

_FIELD_BYTES = 8


class Record:
    """A layout of named fields of eight bytes each."""

    def __init__(self, **fields: IRType) -> None:
        self._types = fields
        self._offsets = {name: index * _FIELD_BYTES for index, name in enumerate(fields)}
        self.size = len(fields) * _FIELD_BYTES

    def new(self, k: KernelBuilder) -> RecordValue:
        """A record in the stack frame, its fields not yet set."""
        return self.at(k, k.alloca(I8, self.size, align=64))

    def at(self, k: KernelBuilder, place: Value) -> RecordValue:
        return RecordValue(k, self, place)

    def type_of(self, name: str) -> IRType:
        return self._types[name]

    def offset_of(self, name: str) -> int:
        return self._offsets[name]


class RecordValue:
    """One record in memory, read and written by field."""

    def __init__(self, k: KernelBuilder, record: Record, place: Value) -> None:
        self._k = k
        self._record = record
        self.place = place

    def __getitem__(self, name: str) -> Value:
        return self._k.load(self.address(name), self._record.type_of(name))

    def __setitem__(self, name: str, value: Value | int) -> None:
        if not isinstance(value, Value):
            value = self._k.const(self._record.type_of(name), value)
        self._k.store(self.address(name), value)

    def set(self, **fields: Value | int) -> None:
        for name, value in fields.items():
            self[name] = value

    def copy(self) -> RecordValue:
        """Another record in the stack frame with the same contents."""
        other = self._record.new(self._k)
        self._k.memcpy(other.place, self.place, self._record.size)
        return other

    def address(self, name: str) -> Value:
        """Where a field is."""
        return self._k.gep(self.place, self._record.offset_of(name))
