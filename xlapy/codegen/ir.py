"""LLVM IR as text: modules, and the builder that emitters write kernels with.

    module = Module(has_fma=True)
    with KernelBuilder(module, "twice", [("x", PTR), ("n", I64)], None) as k:
        x, n = k.parameters["x"], k.parameters["n"]
        with k.loop(0, n) as loop:
            element = k.gep(x, loop.index, 4)
            k.store(element, k.mul(k.load(element, F32), 2.0))
    text = module.text()

Equal calls give equal text. Text costs a thirtieth of building `llvmlite.ir` objects; the builder folds constants,
shares equal operations and hoists invariants, so that LLVM needs no passes for code written with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from types import TracebackType
from typing import TYPE_CHECKING, Self

from xlapy.codegen.ir_control import Control, Loop
from xlapy.codegen.ir_emitter import TABLE_ALIGNMENT
from xlapy.codegen.ir_types import (
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    PTR,
    IRType,
    Number,
    Operand,
    Scope,
    Value,
    scalar_literals,
)
from xlapy_runtime.errors import InternalError

if TYPE_CHECKING:
    from xlapy.codegen.math.outlined import OutlinedFunction
    from xlapy.codegen.target import Target

__all__ = [
    "F32",
    "F64",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "NO_SCALES",
    "PTR",
    "X86_SCALES",
    "IRType",
    "KernelBuilder",
    "Loop",
    "Module",
    "Number",
    "Operand",
    "Scope",
    "Value",
]


NO_SCALES = frozenset({1})
X86_SCALES = frozenset({1, 2, 4, 8})

LEAST_PART = 5_000
"""Characters of functions, 2 to 5 ms of work for LLVM, of which half a millisecond would come with every module."""


class Module:
    """A unit of compilation: declarations, constant tables, functions and metadata, in the order of their making.

    `has_fma` says whether the target multiplies and adds in one instruction, `has_f16c` whether it converts f16,
    `has_scalef` whether it multiplies by powers of two, `has_permute` whether lanes choose among those of others,
    `has_short_permute` whether 8 lanes of 32 bits do, `has_range` whether an instruction finds extrema of floats that
    are no NaNs, `has_pair_products` whether one adds two products of halves to a number, `has_maximum` whether one
    finds those of any floats, `divides_slowly` whether a division takes longer than several products, `has_estimates`
    whether quotients are estimated, `has_masks` whether masks have registers of their own, `has_gather` whether one
    instruction loads lanes from anywhere, and faster than one load for each. Vectors that repeat a float and have up to
    `read_constant_bytes` are read from memory by operations. `index_scales` are the factors of an index that an address
    has room for, whatever is there. `libraries` are the names of those whose functions it calls; a module that has none
    to call (None) has a copy of its own of all it needs. `outlined` are functions that it calls, which are compiled by
    themselves and linked with it. If it `contracts`, sums of elements take in products as they are before they are
    rounded; if it `keeps_excess`, narrow floats are rounded where they are stored or converted, and not behind each
    operation.
    """

    @classmethod
    def of(cls, target: Target) -> Module:
        """A module that makes use of what the target has."""
        return cls(
            has_fma=target.has_fma,
            has_f16c=target.has_f16c,
            has_scalef=target.has_scalef,
            has_permute=target.has_permute,
            has_short_permute=target.has_short_permute,
            has_range=target.has_range,
            has_pair_products=target.has_pair_products,
            has_maximum=not target.is_x86,
            divides_slowly=target.divides_slowly,
            has_estimates=target.has_estimates,
            has_masks=target.is_avx512,
            has_gather=target.has_gather,
            read_constant_bytes=target.read_constant_bytes,
            index_scales=X86_SCALES if target.is_x86 else NO_SCALES,
        )

    @classmethod
    def of_program(cls, target: Target, *, contracts: bool = False, keeps_excess: bool = False) -> Module:
        """A module of a program: it is linked with libraries. It contracts if it may and the target has an instruction
        for that."""
        module = cls.of(target)
        module.libraries = set()
        module.outlined = {}
        module.contracts = contracts and target.has_fma
        module.keeps_excess = keeps_excess
        return module

    def __init__(
        self,
        *,
        has_fma: bool = False,
        has_f16c: bool = False,
        has_scalef: bool = False,
        has_permute: bool = False,
        has_short_permute: bool = False,
        has_range: bool = False,
        has_pair_products: bool = False,
        has_maximum: bool = False,
        divides_slowly: bool = False,
        has_estimates: bool = False,
        has_masks: bool = False,
        has_gather: bool = False,
        read_constant_bytes: int = 0,
        index_scales: Set[int] = NO_SCALES,
    ) -> None:
        self.libraries: set[str] | None = None
        self.outlined: dict[str, OutlinedFunction] | None = None
        self.contracts = False
        self.keeps_excess = False
        self.has_fma = has_fma
        self.has_f16c = has_f16c
        self.has_scalef = has_scalef
        self.has_permute = has_permute
        self.has_short_permute = has_short_permute
        self.has_range = has_range
        self.has_pair_products = has_pair_products
        self.has_maximum = has_maximum
        self.divides_slowly = divides_slowly
        self.has_estimates = has_estimates
        self.has_masks = has_masks
        self.has_gather = has_gather
        self.read_constant_bytes = read_constant_bytes
        self.index_scales = index_scales
        self._declarations: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self._tables: dict[str, str] = {}
        self._metadata: list[str] = []
        self._metadata_numbers: dict[str, int] = {}
        self._unused_metadata: list[int] = []
        self._shared: dict[str, str] = {}  # names of functions, by what they do

    def declare(self, name: str, returns: IRType | None, parameters: Sequence[IRType], attributes: str = "") -> None:
        """Makes an outer function or an intrinsic known; once is enough, and again does no harm."""
        if name not in self._declarations:
            types = ", ".join(type.text for type in parameters)
            result = "void" if returns is None else returns.text
            self._declarations[name] = f"declare {result} @{name}({types})" + (f" {attributes}" if attributes else "")

    def declare_data(self, name: str) -> None:
        """Makes data of another module known."""
        self._declarations[name] = f"@{name} = external constant i8"

    def define(self, name: str, text: str) -> None:
        if name in self._functions:
            raise InternalError(f"function {name} is defined twice")
        self._functions[name] = text

    def adopt(self, other: Module) -> None:
        """Defines the functions of a module that has nothing else, as that does."""
        if other._tables or other._metadata:
            raise InternalError("a module with tables or metadata is no part of another one")
        for name, text in other._functions.items():
            self.define(name, text)
        for name, text in other._declarations.items():
            self._declarations.setdefault(name, text)

    def share(self, name: str, code: str) -> str:
        """The name of the first function with this code: one that is there, or the one that is to be defined."""
        return self._shared.setdefault(code, name)

    def defines(self, name: str) -> bool:
        return name in self._functions

    def table(self, type: IRType, numbers: Sequence[Number]) -> str:
        """The name of a constant array of scalars, 64-byte aligned; equal arrays are one."""
        between = f", {type.text} "
        spelled = between.join(scalar_literals(type, numbers))
        elements = f"{type.text} {spelled}" if spelled else ""
        return self._table(f"[{len(numbers)} x {type.text}] [{elements}]")

    def vector(self, type: IRType, text: str) -> str:
        """The name of a constant vector in memory, given as a literal; equal ones are one."""
        return self._table(f"{type.text} {text}")

    def _table(self, contents: str) -> str:
        return self._tables.setdefault(contents, f"table.{len(self._tables)}")

    def metadata(self, contents: str) -> int:
        """The number of the metadata node with these contents; equal nodes are one, distinct ones included."""
        number = self._metadata_numbers.get(contents)
        if number is None:
            number = self._metadata_numbers[contents] = self.reserve_metadata()
            self._metadata[number] = contents
        return number

    def reserve_metadata(self) -> int:
        """The number of a node whose contents `define_metadata` will give."""
        if self._unused_metadata:
            return self._unused_metadata.pop()
        self._metadata.append("!{}")
        return len(self._metadata) - 1

    def release_metadata(self, number: int) -> None:
        """A reserved node will not be used."""
        self._unused_metadata.append(number)

    def define_metadata(self, number: int, contents: str) -> None:
        self._metadata[number] = contents

    def text(self) -> str:
        """The whole module. Triple and data layout are the compiler's to set."""
        return self._text(self._functions, {*self._tables.values(), *self._declarations})

    def parts(self, most: int, least: int = LEAST_PART) -> list[str]:
        """The module as up to `most` modules of similar size, which can be compiled side by side and linked.

        Beside the one with the largest function they have at least about `least` characters, and there are no more of
        them than that one takes as long as. What only the module can see stays in one part, with all that refers to
        it."""
        sizes = [*map(len, self._functions.values())]
        largest = max(sizes, default=1)
        others = sum(sizes) - largest
        count = min(most, 1 + others // least, 1 + -(-others // largest))
        if count < 2:
            return [self.text()]
        parts: list[dict[str, str]] = [{} for _ in range(count)]
        own = {name for name, text in self._functions.items() if _OWN.match(text)}
        for name, text in self._functions.items():
            if name in own or not own.isdisjoint(_REFERENCE.findall(text)):
                parts[0][name] = text
        filled = [sum(map(len, part.values())) for part in parts]
        for name, text in sorted(self._functions.items(), key=lambda function: -len(function[1])):
            if name not in parts[0]:
                number = filled.index(min(filled))
                parts[number][name] = text
                filled[number] += len(text)
        return [self._part(part) for part in parts if part]

    def _part(self, functions: dict[str, str]) -> str:
        """A module of these functions, with what they refer to."""
        references = {name for text in functions.values() for name in _REFERENCE.findall(text)}
        outside = [self._functions[name] for name in self._functions if name in references and name not in functions]
        return "\n".join([*map(_declaration, outside), self._text(functions, references - self._functions.keys())])

    def _text(self, functions: Mapping[str, str], references: Set[str]) -> str:
        """The functions, and of the tables and the declarations what they refer to."""
        parts = [
            f"@{name} = private unnamed_addr constant {contents}, align {TABLE_ALIGNMENT}"
            for contents, name in self._tables.items()
            if name in references
        ]
        parts += [text for name, text in self._declarations.items() if name in references and name not in functions]
        parts += functions.values()
        parts += [f"!{number} = {contents}" for number, contents in enumerate(self._metadata)]
        return "\n".join(parts) + "\n"


_MASKED = re.compile(r"and <(?:4 x i32|2 x i64)> [^\n]*splat \(i(?:32|64) (-?\d+)\)")
_LEFT = re.compile(r"shl <4 x i32> [^\n]*splat \(i32 16\)|trunc <4 x i32> [^\n]* to <4 x i16>")
_RIGHT = re.compile(r"lshr <4 x i32> [^\n]*splat \(i32 16\)|zext <4 x i16> [^\n]* to <4 x i32>")
_HALF = 0xFFFF


def _makes_llvm_abort(text: str) -> bool:
    """Whether code must not be in a function that LLVM shall not try hard for (`optnone`). There, LLVM 20 takes a mask
    of whole halves of 32 bits, in a vector of 16 bytes, for a choice between its numbers of 16 bits and zero, with a
    number that is too large for one, and aborts. Shifts and conversions there and back are such masks, too, and floats
    are made of unsigned numbers by them."""
    if "uitofp <4 x i32>" in text or any(_is_of_halves(int(mask)) for mask in _MASKED.findall(text)):
        return True
    return _LEFT.search(text) is not None and _RIGHT.search(text) is not None


def _is_of_halves(mask: int) -> bool:
    return all(mask >> place & _HALF in (0, _HALF) for place in range(0, I64.bits, 16))


_LOOKED_UP = 16
_REGISTER_BITS = 512
_SHORT_PERMUTES = {True: "llvm.x86.avx2.permps", False: "llvm.x86.avx2.permd"}
_PERMUTES = {(True, 32): "ps", (True, 64): "pd", (False, 32): "d", (False, 64): "q"}
"""What LLVM calls the permutation of floats (or integers) of so many bits."""

_OWN = re.compile(r"define internal|@[\w.]+ = internal")
_REFERENCE = re.compile(r"@([\w.]+)")
_PARAMETER = re.compile(r" %[\w.]+")


def _declaration(text: str) -> str:
    """What makes the function, or the data, of this text known to another module."""
    if text.startswith("@"):
        return f"{text.partition(' ')[0]} = external constant i8"
    head = text[: text.index(") ") + 1]
    return _PARAMETER.sub("", head).replace("define", "declare", 1)


class KernelBuilder(Control):
    """Writes one function into a module; `parameters` are its values by name, `functions` the names of functions that
    emitters find by what they compute. `leave` writes how to end it early, if that may be (see `stopping`). If it
    `is_shared`, it is not written if the module has the same function already, whose `name` it has at the end.

    Used as a context, it is finished at the end; a function without results then needs no `ret`.
    """

    def __init__(
        self,
        module: Module,
        name: str,
        parameters: Sequence[tuple[str, IRType]],
        returns: IRType | None,
        linkage: str = "",
        attributes: str = "nounwind",
        parameter_attributes: Mapping[str, str] | None = None,
        *,
        hoists_constants: bool = False,
        is_quick: bool = False,
        calls_functions: bool = False,
        calls_scalars: bool = False,
        joins_offsets: bool = False,
        hoists_addresses: bool = False,
        is_shared: bool = False,
    ) -> None:
        super().__init__(
            module,
            hoists_constants=hoists_constants,
            is_quick=is_quick,
            calls_functions=calls_functions,
            calls_scalars=calls_scalars,
            joins_offsets=joins_offsets,
            hoists_addresses=hoists_addresses,
        )
        self.name = name
        self.returns = returns
        self.parameters = {
            parameter: Value(type, f"%{parameter}", None, self._function_scope) for parameter, type in parameters
        }
        self.functions: Mapping[Hashable, str] = {}
        self.leave: Callable[[], None] | None = None
        self._alias_nodes = {}
        extra = parameter_attributes or {}
        declared = ", ".join(
            f"{type.text} {extra[parameter]} %{parameter}" if parameter in extra else f"{type.text} %{parameter}"
            for parameter, type in parameters
        )
        self._is_shared = is_shared
        self._kind = " ".join(filter(None, ("define", linkage, "void" if returns is None else returns.text)))
        self._signature = f"({declared}) {attributes}".rstrip()

    def table(self, type: IRType, numbers: Sequence[Number]) -> Value:
        """A pointer to a constant array of scalars."""
        return Value(PTR, f"@{self.module.table(type, numbers)}", None, self._function_scope)

    def lookup(self, type: IRType, numbers: Sequence[Number], index: Value) -> Value:
        """In each lane one of 16 numbers, which the lowest four bits of an integer of their width choose."""
        if len(numbers) != _LOOKED_UP:
            raise InternalError(f"a look-up among {len(numbers)} numbers")
        if self.module.has_permute and index.type.lanes > 1:
            return self._permuted(type, numbers, index)
        if self.module.has_short_permute and type.bits == I32.bits and index.type.lanes > 1:
            return self._permuted_halves(type, numbers, index)
        return self.gather(self.table(type.element, numbers), self.and_(index, _LOOKED_UP - 1), type.element)

    def _permuted(self, type: IRType, numbers: Sequence[Number], index: Value) -> Value:
        """The look-up in one or two registers, for a register of indices at a time."""
        whole = type.with_lanes(_REGISTER_BITS // type.bits)
        registers = [
            self.const_vector(whole, numbers[first : first + whole.lanes])
            for first in range(0, _LOOKED_UP, whole.lanes)
        ]
        found = self._by_registers(index, whole.lanes, lambda part: self._permuted_register(registers, part))
        return self.shuffle(found, None, range(index.type.lanes))

    def _permuted_halves(self, type: IRType, numbers: Sequence[Number], index: Value) -> Value:
        """The same where a register has half as many numbers: from two, and the fourth bit of an index chooses."""
        whole = type.with_lanes(_LOOKED_UP // 2)
        low, high = self.const_vector(whole, numbers[: whole.lanes]), self.const_vector(whole, numbers[whole.lanes :])

        def of_register(part: Value) -> Value:
            is_high = self.compare("lt", self.shl(part, I32.bits - _LOOKED_UP.bit_length() + 1), 0)
            return self.select(is_high, self._short_permuted(high, part), self._short_permuted(low, part))

        return self.shuffle(self._by_registers(index, whole.lanes, of_register), None, range(index.type.lanes))

    def _short_permuted(self, numbers: Value, index: Value) -> Value:
        """Of a register of 32 bytes, the lane that the lowest three bits of each index tell."""
        symbol = _SHORT_PERMUTES[numbers.type.is_float]
        self.module.declare(symbol, numbers.type, [numbers.type, index.type])
        arguments = f"{numbers.type.text} {numbers.text}, {index.type.text} {index.text}"
        return self._pure(numbers.type, f"call {numbers.type.text} @{symbol}({arguments})", numbers, index)

    def _side_by_side(self, a: Value, b: Value) -> Value:
        """The lanes of both; a shuffle wants its operands equally long."""
        longer = self.shuffle(b, None, [lane if lane < b.type.lanes else -1 for lane in range(a.type.lanes)])
        return self.shuffle(a, longer, range(a.type.lanes + b.type.lanes))

    def picked_from(self, registers: Sequence[Value], index: Value) -> Value:
        """For each lane of `index`, the element with that number among those of some whole registers side by side, of
        32 or 64 bits each if `module.has_permute`, and of 32 bits if `module.has_short_permute`."""
        picked = self._by_registers(index, registers[0].type.lanes, lambda part: self._picked_register(registers, part))
        return self.shuffle(picked, None, range(index.type.lanes))

    def _by_registers(self, index: Value, whole: int, look_up: Callable[[Value], Value]) -> Value:
        """What is found for a register of `whole` indices at a time, side by side: for the lanes of `index`, and as
        many more as fill a register."""
        lanes, found = index.type.lanes, None
        for first in range(0, lanes, whole):
            chosen = [lane if lane < lanes else -1 for lane in range(first, first + whole)]
            part = look_up(self.shuffle(index, None, chosen))
            found = part if found is None else self._side_by_side(found, part)
        assert found is not None
        return found

    def _picked_register(self, registers: Sequence[Value], index: Value) -> Value:
        """The same for as many indices as there are elements in a register."""
        lanes = registers[0].type.lanes
        picked: Value | None = None
        for first in range(0, len(registers), 2 if self.module.has_permute else 1):
            if self.module.has_permute:
                part = self._permuted_pair(registers[first], index, registers[min(first + 1, len(registers) - 1)])
            else:
                part = self._short_permuted(registers[first], index)
            is_of_these = self.compare("ge", index, first * lanes)
            picked = part if picked is None else self.select(is_of_these, part, picked)
        assert picked is not None
        return picked

    def _permuted_pair(self, low: Value, index: Value, high: Value) -> Value:
        """Of two registers, the elements that the lowest bits of each index tell."""
        name = _PERMUTES[low.type.is_float, low.type.bits]
        symbol = f"llvm.x86.avx512.vpermi2var.{name}.{_REGISTER_BITS}"
        self.module.declare(symbol, low.type, [low.type, index.type, low.type])
        operands = (low, index, high)
        arguments = ", ".join(f"{operand.type.text} {operand.text}" for operand in operands)
        return self._pure(low.type, f"call {low.type.text} @{symbol}({arguments})", *operands)

    def _permuted_register(self, registers: Sequence[Value], index: Value) -> Value:
        type = registers[0].type
        if len(registers) == 1:
            name, operands = "permvar.sf", [*registers, index]
        else:
            name, operands = "vpermi2var.pd", [registers[0], index, registers[1]]
        symbol = f"llvm.x86.avx512.{name}.{_REGISTER_BITS}"
        self.module.declare(symbol, type, [operand.type for operand in operands])
        arguments = ", ".join(f"{operand.type.text} {operand.text}" for operand in operands)
        return self._pure(type, f"call {type.text} @{symbol}({arguments})", *operands)

    def function_pointer(self, name: str) -> Value:
        """The address of a function of this module, or of one declared to it."""
        return Value(PTR, f"@{name}", None, self._function_scope)

    @property
    def is_empty(self) -> bool:
        """Nothing has been written yet."""
        return not any(self._chunks) and not any(self._last_chunks)

    def finish(self) -> None:
        """Ends the function and adds it to the module."""
        if len(self._scopes) != 1:
            raise InternalError(f"{self.name}: a loop or branch is still open")
        if not self._terminated:
            if self.returns is not None:
                raise InternalError(f"{self.name}: control reaches the end without a value to return")
            self.ret()
        text = self._body_text()
        signature = self._signature
        if "optnone " in signature and _makes_llvm_abort(text):
            signature = signature.replace("optnone ", "")
        body = f"{signature} {{\nentry:\n{text}\n}}"
        if self._is_shared:
            own, self.name = self.name, self.module.share(self.name, self._without_alias_nodes(f"{self._kind}{body}"))
            if self.name != own:
                self._release_alias_nodes()
                return
        self._define_alias_scopes(self.name)
        self.module.define(self.name, f"{self._kind} @{self.name}{body}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
