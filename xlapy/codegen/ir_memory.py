"""Loads, stores and addresses.

Addresses are byte offsets from a pointer. An access may name an alias scope: accesses of one function that name
different scopes never touch the same memory, and LLVM is told so.
"""

from __future__ import annotations

from functools import partial

from xlapy.codegen.ir_arithmetic import Arithmetic
from xlapy.codegen.ir_types import I1, I8, I32, I64, PTR, IRType, Operand, Value
from xlapy_runtime.errors import InternalError

CACHE_LINE = 64

_NEAREST = 4  # less the level of the cache, as LLVM counts
_DATA = 1


class Memory(Arithmetic):
    """Access to memory, from plain loads to atomics."""

    _alias_nodes: dict[str, tuple[int, int]]

    def gep(self, pointer: Value, index: Operand, element_bytes: int = 1) -> Value:
        """`pointer` moved by `index` elements; a vector of indices gives a vector of pointers."""
        if isinstance(index, int):  # most are numbers, of which there is nothing to take apart
            return self._place_at(pointer, self.const(I64, index * element_bytes))
        index = self._as_index(index)
        if not self.joins_offsets:
            return self._new_place(pointer, index, element_bytes)
        key = (pointer.text, index.text, element_bytes, self._scope.barrier)
        made = self._moves.get(key)
        if made is None or not self._is_open(made.scope):
            made = self._moves[key] = self._new_place(pointer, index, element_bytes)
        return made

    def _new_place(self, pointer: Value, index: Value, element_bytes: int) -> Value:
        if self.hoists_addresses and index.type is I64:
            outer, index = self._split(index)
            if outer is not None:
                pointer = self.gep(pointer, outer, element_bytes)
            offset = self._offset(index, element_bytes)
        else:
            offset = self.mul(index, element_bytes)
        return self._place_at(pointer, offset)

    def _place_at(self, pointer: Value, offset: Value) -> Value:
        if offset.constant == 0 and offset.type.lanes == 1:
            return pointer
        if self.joins_offsets and offset.type.lanes == pointer.type.lanes == 1:
            return self._displaced(pointer, offset)
        return self._moved(pointer, offset)

    def _offset(self, index: Value, factor: int) -> Value:
        """`index` times `factor`. A multiple of a loop's index that no address has room for grows with the index."""
        base, distance = self._offsets.get(index.text, (index, 0))
        counted, times = base, factor
        if base.text in self._terms:
            operation, counted, by = self._terms[base.text]
            times = factor * int(by.constant or 0) if operation == "mul" else 1
        multiples = counted.scope.multiples
        if times in self.module.index_scales or not multiples or counted.text != multiples[1].text:
            return self.mul(index, factor)
        if times not in multiples:
            multiples[times] = self._named(I64, counted.scope)
        return self.add(multiples[times], distance * factor)

    def _displaced(self, pointer: Value, offset: Value) -> Value:
        """`pointer` moved by an offset, of which what is constant comes last."""
        start, before = self._offsets.get(pointer.text, (pointer, 0))
        if offset.constant is not None:
            distance = before + int(offset.constant)
        else:
            base, more = self._offsets.get(offset.text, (offset, 0))
            start, distance = self._moved(start, base), before + more
        if not distance:
            return start
        place = self._moved(start, self.const(I64, distance))
        self._offsets[place.text] = (start, distance)
        return place

    def _moved(self, pointer: Value, offset: Value) -> Value:
        type = PTR.with_lanes(offset.type.lanes)
        text = f"getelementptr i8, {pointer.type.text} {pointer.text}, {offset.type.text} {offset.text}"
        return self._pure(type, text, pointer, offset)

    def address(self, pointer: Value) -> Value:
        """The pointer as a number."""
        return self._pure(I64, f"ptrtoint ptr {pointer.text} to i64", pointer)

    def load(
        self,
        pointer: Value,
        type: IRType,
        align: int | None = None,
        alias: str | None = None,
        *,
        invariant: bool = False,
        hoistable: bool = False,
        volatile: bool = False,
    ) -> Value:
        """Loads `type`; `align` is that of one element unless given.

        An `invariant` load reads memory that nothing writes while the function runs, so equal ones are shared. One
        that is `hoistable` besides may run even where control never comes: its address is always good."""
        qualifier = "volatile " if volatile else ""
        text = f"load {qualifier}{type.text}, ptr {pointer.text}, align {align or type.bytes}"
        text += self._alias_metadata(alias)
        if invariant or hoistable:
            text += f", !invariant.load !{self.module.metadata('!{}')}"
            return self._pure(type, text, pointer) if hoistable else self._pinned(type, text, pointer)
        return self._result(type, text)

    def load_apart(self, pointer: Value, type: IRType) -> Value:
        """Loads what may be stored there again, if a select or an extremum leaves it as it is."""
        return self.apart(self.load(pointer, type))

    def apart(self, loaded: Value) -> Value:
        """What was loaded, without LLVM knowing where.

        Of a select that is stored where one side was loaded, LLVM makes a masked store of the other lanes, which takes
        some 20 cycles where masks are not registers of their own (AVX2 on a Zen 3). It does not see through this."""
        return self._result(loaded.type, f"freeze {loaded.type.text} {loaded.text}")

    def prefetch(self, pointer: Value, bytes: int, *, level: int = 1, for_writing: bool = False) -> None:
        """Starts to fetch the cache lines from `pointer` on into a level of the caches. Bad addresses do no harm."""
        self.module.declare("llvm.prefetch.p0", None, [PTR, I32, I32, I32])
        hints = f"i32 {int(for_writing)}, i32 {_NEAREST - level}, i32 {_DATA}"
        for offset in range(0, bytes, CACHE_LINE):
            place = self.gep(pointer, offset)
            self._shared_effect(f"call void @llvm.prefetch.p0(ptr {place.text}, {hints})", place)

    def store(
        self,
        pointer: Value,
        value: Value,
        align: int | None = None,
        alias: str | None = None,
        *,
        nontemporal: bool = False,
        volatile: bool = False,
    ) -> None:
        """Stores `value`. `nontemporal` bypasses the caches and wants the alignment of the whole vector."""
        qualifier = "volatile " if volatile else ""
        text = f"store {qualifier}{value.type.text} {value.text}, ptr {pointer.text}, align {align or value.type.bytes}"
        if nontemporal:
            text += f", !nontemporal !{self.module.metadata('!{i32 1}')}"
        self._effect(text + self._alias_metadata(alias))

    def first_lanes(self, count: Value, lanes: int) -> Value:
        """The mask of the first `count` of so many lanes."""
        mask = self.compare("lt", self.lane_numbers(I32.with_lanes(lanes)), self.splat(self.trunc(count, I32), lanes))
        self._first_lanes[mask.text] = count
        return mask

    def selects_any(self, mask: Value) -> Value:
        """Whether a mask, or a condition, selects anything."""
        count = self._first_lanes.get(mask.text)
        return self.horizontal(self.or_, mask) if count is None else self.compare("gt", count, 0)

    def _is_branched(self, mask: Value, *, is_masked: bool) -> bool:
        """Whether LLVM makes a branch for each lane that a mask may select, which takes it ten times as long as to read
        something else instead: if there is nothing that `is_masked`, and the mask is not known."""
        return not is_masked and mask.type.lanes > 1 and mask.text.startswith("%")

    def _by_way_of_stack(self, type: IRType, mask: Value) -> Value | None:
        """How many first lanes the mask selects, if they had better be copied: of lanes that no instruction masks, LLVM
        makes a branch each, which takes it ten times as long as all the rest."""
        return None if self.has_masks or type.bits >= I32.bits else self._first_lanes.get(mask.text)

    def masked_load(
        self,
        pointer: Value,
        type: IRType,
        mask: Value,
        otherwise: Operand = 0,
        align: int | None = None,
        alias: str | None = None,
        *,
        hoistable: bool = False,
    ) -> Value:
        """Loads the lanes that `mask` selects and touches no others, which become `otherwise`.

        One that is `hoistable` reads memory that nothing writes while the function runs, so equal ones are shared."""
        fallback = self._value(otherwise, type)
        count = self._by_way_of_stack(type, mask)
        if count is not None:
            size = self.mul(count, type.bytes)
            copied = partial(self._copied, pointer, type, size, fallback)
            key = f"the first lanes of {type.text} at {pointer.text}, of {size.text} bytes, or {fallback.text}"
            return self._written_once(key, copied, pointer, size, fallback) if hoistable else copied()
        if fallback.constant is not None and self._is_branched(mask, is_masked=type.bits >= I32.bits or self.has_masks):
            return self.gather(pointer, self.lane_numbers(I64.with_lanes(type.lanes)), type, mask, otherwise, alias)
        symbol = f"llvm.masked.load.{type.suffix}.p0"
        self.module.declare(symbol, type, [PTR, I32, mask.type, type])
        text = (
            f"call {type.text} @{symbol}(ptr {pointer.text}, i32 {align or type.bytes}, "
            f"{mask.type.text} {mask.text}, {type.text} {fallback.text})"
        )
        text += self._alias_metadata(alias)
        loaded = self._pure(type, text, pointer, mask, fallback) if hoistable else self._result(type, text)
        self._filled[loaded.text] = mask.text, fallback.text
        return loaded

    def _copied(self, pointer: Value, type: IRType, size: Value, fallback: Value) -> Value:
        """A vector, of which so many bytes are loaded."""
        room = self.alloca(type)
        self.store(room, fallback)
        self.memcpy(room, pointer, size)
        return self.load(room, type)

    def masked_store(
        self, pointer: Value, value: Value, mask: Value, align: int | None = None, alias: str | None = None
    ) -> None:
        """Stores the lanes that `mask` selects and touches no others."""
        count = self._by_way_of_stack(value.type, mask)
        if count is not None:
            room = self.alloca(value.type)
            self.store(room, value)
            self.memcpy(pointer, room, self.mul(count, value.type.bytes))
            return
        symbol = f"llvm.masked.store.{value.type.suffix}.p0"
        self.module.declare(symbol, None, [value.type, PTR, I32, mask.type])
        text = (
            f"call void @{symbol}({value.type.text} {value.text}, ptr {pointer.text}, "
            f"i32 {align or value.type.bytes}, {mask.type.text} {mask.text})"
        )
        self._effect(text + self._alias_metadata(alias))

    def gather(
        self,
        pointer: Value,
        indices: Value,
        type: IRType,
        mask: Value | None = None,
        otherwise: Operand = 0,
        alias: str | None = None,
        *,
        element_bytes: int | None = None,
    ) -> Value:
        """Loads element `indices[lane]` into each lane; lanes outside `mask` become `otherwise`, a scalar, and read
        nothing of the array. Indices of 32 bits are not negative, and neither are their distances in bytes."""
        type = type.with_lanes(indices.type.lanes)
        if self._is_gathered_singly(type, indices) and (mask is None or mask.constant == 1):
            return self._gathered_singly(pointer, self.mul(indices, element_bytes or type.bytes), type, alias)
        addresses = self.gep(pointer, indices, element_bytes or type.bytes)
        if type.lanes == 1:
            return self._load_if(addresses, type, mask, otherwise, alias)
        if mask is not None and self._is_branched(mask, is_masked=self.has_masks and type.bits >= I32.bits):
            addresses = self.select(mask, addresses, self._slot(type.element, otherwise))
            mask = None
        mask = mask or self.const(I1.with_lanes(type.lanes), 1)
        fallback = self._value(otherwise, type)
        symbol = f"llvm.masked.gather.{type.suffix}.{addresses.type.suffix}"
        self.module.declare(symbol, type, [addresses.type, I32, mask.type, type])
        text = (
            f"call {type.text} @{symbol}({addresses.type.text} {addresses.text}, i32 {type.bytes}, "
            f"{mask.type.text} {mask.text}, {type.text} {fallback.text})"
        )
        return self._result(type, text + self._alias_metadata(alias))

    def _is_gathered_singly(self, type: IRType, indices: Value) -> bool:
        """Whether lanes are loaded one by one, from places that are not known."""
        has_instruction = self.module.has_gather and type.bits >= I32.bits
        return type.lanes > 1 and not has_instruction and indices.text.startswith("%")

    def _gathered_singly(self, pointer: Value, distances: Value, type: IRType, alias: str | None) -> Value:
        """What lies so many bytes behind the pointer. LLVM would add the pointer to each lane in 64 bits, and take that
        out of the vector, which is twice the work if distances have 32."""
        gathered = self.const(type, 0)
        for lane in range(type.lanes):
            place = self._moved(pointer, self.zext(self.extract(distances, lane), I64))
            gathered = self.insert(gathered, self.load(place, type.element, alias=alias), lane)
        return gathered

    def _load_if(
        self, pointer: Value, type: IRType, mask: Value | None, otherwise: Operand, alias: str | None
    ) -> Value:
        """A gather of one lane: without the mask's permission it reads a slot of its own."""
        if mask is None or mask.constant == 1:
            return self.load(pointer, type, alias=alias)
        return self.load(self.select(mask, pointer, self._slot(type, otherwise)), type)

    def _slot(self, type: IRType, content: Operand) -> Value:
        """Where something is to be read that there is no other place for."""
        slot = self.alloca(type)
        self.store(slot, self._value(content, type))
        return slot

    def scatter(
        self,
        pointer: Value,
        indices: Value,
        value: Value,
        mask: Value | None = None,
        alias: str | None = None,
        *,
        element_bytes: int | None = None,
    ) -> None:
        """Stores each lane to element `indices[lane]`, in order of lanes."""
        addresses = self.gep(pointer, indices, element_bytes or value.type.bytes)
        if value.type.lanes == 1:
            if mask is not None and mask.constant != 1:
                addresses = self.select(mask, addresses, self.alloca(value.type))
                alias = None
            self.store(addresses, value, alias=alias)
            return
        mask = mask or self.const(I1.with_lanes(value.type.lanes), 1)
        symbol = f"llvm.masked.scatter.{value.type.suffix}.{addresses.type.suffix}"
        self.module.declare(symbol, None, [value.type, addresses.type, I32, mask.type])
        text = (
            f"call void @{symbol}({value.type.text} {value.text}, {addresses.type.text} {addresses.text}, "
            f"i32 {value.type.bytes}, {mask.type.text} {mask.text})"
        )
        self._effect(text + self._alias_metadata(alias))

    def alloca(self, type: IRType, count: int = 1, align: int | None = None) -> Value:
        """Room for `count` values of `type` in the stack frame, the same room each time control comes by."""
        self._names += 1
        name = f"%v{self._names}"
        number = f", i64 {count}" if count != 1 else ""
        self._entry_lines.append(f"  {name} = alloca {type.text}{number}, align {align or type.bytes}")
        return Value(PTR, name, None, self._function_scope)

    def memcpy(self, target: Value, source: Value, size: Operand) -> None:
        """Copies `size` bytes between places that do not overlap."""
        self._copy("memcpy", target, source, size)

    def memmove(self, target: Value, source: Value, size: Operand) -> None:
        self._copy("memmove", target, source, size)

    def _copy(self, name: str, target: Value, source: Value, size: Operand) -> None:
        size = self._as_index(size)
        symbol = f"llvm.{name}.p0.p0.i64"
        self.module.declare(symbol, None, [PTR, PTR, I64, I1])
        self._effect(f"call void @{symbol}(ptr {target.text}, ptr {source.text}, i64 {size.text}, i1 false)")

    def memset(self, target: Value, byte: Operand, size: Operand) -> None:
        byte = self._value(byte, I8)
        size = self._as_index(size)
        symbol = "llvm.memset.p0.i64"
        self.module.declare(symbol, None, [PTR, I8, I64, I1])
        self._effect(f"call void @{symbol}(ptr {target.text}, i8 {byte.text}, i64 {size.text}, i1 false)")

    # Atomics

    def atomic_load(self, pointer: Value, type: IRType, ordering: str = "acquire") -> Value:
        return self._result(type, f"load atomic {type.text}, ptr {pointer.text} {ordering}, align {type.bytes}")

    def atomic_store(self, pointer: Value, value: Value, ordering: str = "release") -> None:
        self._effect(
            f"store atomic {value.type.text} {value.text}, ptr {pointer.text} {ordering}, align {value.type.bytes}"
        )

    def atomic_update(self, operation: str, pointer: Value, value: Value, ordering: str = "seq_cst") -> Value:
        """Combines what is at `pointer` with `value` (add, sub, and, or, xchg ...); the old value."""
        return self._result(
            value.type, f"atomicrmw {operation} ptr {pointer.text}, {value.type.text} {value.text} {ordering}"
        )

    def compare_exchange(self, pointer: Value, expected: Value, desired: Value) -> tuple[Value, Value]:
        """Stores `desired` if `expected` is there; the old value, and whether it was stored."""
        kind = expected.type.text
        pair = self._result(
            expected.type,
            f"cmpxchg ptr {pointer.text}, {kind} {expected.text}, {kind} {desired.text} seq_cst seq_cst",
        )
        old = self._result(expected.type, f"extractvalue {{ {kind}, i1 }} {pair.text}, 0")
        return old, self._result(I1, f"extractvalue {{ {kind}, i1 }} {pair.text}, 1")

    def fence(self, ordering: str = "seq_cst") -> None:
        self._effect(f"fence {ordering}")

    # Alias scopes

    def _alias_metadata(self, alias: str | None) -> str:
        """What an access of scope `alias` carries: its own scope, and all the others as not aliasing."""
        if alias is None:
            return ""
        nodes = self._alias_nodes.get(alias)
        if nodes is None:
            nodes = self._alias_nodes[alias] = (self.module.reserve_metadata(), self.module.reserve_metadata())
        return _alias_text(nodes)

    def _without_alias_nodes(self, text: str) -> str:
        """The same with the names of scopes in place of the numbers of their nodes, which each function has others."""
        for alias, nodes in self._alias_nodes.items():
            text = text.replace(_alias_text(nodes), f", alias {alias}")
        return text

    def _release_alias_nodes(self) -> None:
        for nodes in self._alias_nodes.values():
            for node in nodes:
                self.module.release_metadata(node)

    def _define_alias_scopes(self, function: str) -> None:
        """Writes the lists that the accesses refer to, now that all scopes of the function are known."""
        if not self._alias_nodes:
            return
        module = self.module
        domain = module.metadata(f'distinct !{{!"{function}"}}')
        scopes = {
            alias: module.metadata(f'distinct !{{!"{function}.{alias}", !{domain}}}') for alias in self._alias_nodes
        }
        for alias, (own, others) in self._alias_nodes.items():
            module.define_metadata(own, f"!{{!{scopes[alias]}}}")
            rest = ", ".join(f"!{node}" for name, node in scopes.items() if name != alias)
            module.define_metadata(others, f"!{{{rest}}}")

    def require_pointer(self, value: Value) -> Value:
        if value.type.kind != "ptr":
            raise InternalError(f"{value.text} is {value.type.text}, not a pointer")
        return value


def _alias_text(nodes: tuple[int, int]) -> str:
    return f", !alias.scope !{nodes[0]}, !noalias !{nodes[1]}"
