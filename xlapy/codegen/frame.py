"""One native function of the entry while it is written: where values are, in registers or in memory.

Arrays live where the buffer plan says. Scalars live in registers for as long as control stays in the function; those
that a kernel, the runtime or another function reads are also stored, once, where they are defined.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from xlapy.codegen.arrays import Array
from xlapy.codegen.context import CONTEXT_ARENA, CONTEXT_CANCELLED, CONTEXT_CONSTANTS
from xlapy.codegen.indexing import Index, Indexing
from xlapy.codegen.ir import I32, PTR, KernelBuilder, Module, Value
from xlapy.codegen.registers import Element
from xlapy.hlo.buffer_plan import BufferPlan, Home, Location
from xlapy.hlo.graph import Instruction
from xlapy.hlo.leaves import leaf_shape, origin_of_leaf
from xlapy_runtime.calling import Status

ENTRY_PARAMETERS = [("context", PTR), ("parameters", PTR), ("results", PTR)]

Leaf = tuple[Instruction, int]
"""An instruction and the number of a leaf of its shape."""


class Frame:
    """A function `i32 name(context, parameters, results)`. `stored` are the scalar leaves that memory must hold too.
    It adds to `read_constants` the numbers of those that it reads. `is_optimized` says whether LLVM works on it."""

    def __init__(
        self,
        module: Module,
        name: str,
        plan: BufferPlan,
        pointers: Mapping[Home, Mapping[int, int]],
        stored: frozenset[Leaf],
        linkage: str,
        attributes: str,
        read_constants: set[int],
        *,
        is_optimized: bool,
    ) -> None:
        self.k = KernelBuilder(module, name, ENTRY_PARAMETERS, I32, linkage, attributes, calls_scalars=not is_optimized)
        self.name = name
        self.plan = plan
        self._pointers = pointers
        self._stored = stored
        self._read_constants = read_constants
        self._scalars: ChainMap[Leaf, Element] = ChainMap()

    def context_word(self, word: int) -> Value:
        return self._word("context", word)

    def _word(self, table: str, number: int) -> Value:
        k = self.k
        return k.load(k.gep(k.parameters[table], number, 8), PTR, hoistable=True)

    def pointer(self, location: Location) -> Value:
        """The address of a location."""
        block = self._block(location)
        return self.k.gep(block, location.start) if location.start else block

    def _block(self, location: Location) -> Value:
        """The address of what the location is, or is a part of."""
        k = self.k
        match location.home:
            case Home.PARAMETER:
                return self._word("parameters", self._pointers[Home.PARAMETER][location.index])
            case Home.RESULT:
                return self._word("results", self._pointers[Home.RESULT][location.index])
            case Home.CONSTANT:
                self._read_constants.add(location.index)
                return k.load(k.gep(self.context_word(CONTEXT_CONSTANTS), location.index, 8), PTR, hoistable=True)
            case Home.ARENA:
                return k.gep(self.context_word(CONTEXT_ARENA), location.index)

    def array(self, instruction: Instruction, leaf: int = 0) -> Value:
        """The address of an array leaf, or of the memory of a scalar that is stored."""
        return self.pointer(self.plan.location(instruction, leaf))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Registers defined inside are forgotten afterwards: control may come by another way."""
        self._scalars = self._scalars.new_child()
        yield
        self._scalars = self._scalars.parents

    def define(self, instruction: Instruction, leaf: int, element: Element) -> None:
        """A scalar leaf is in registers from now on."""
        self._scalars[instruction, leaf] = element

    def bind(self, instruction: Instruction, leaf: int, element: Element) -> None:
        """A scalar leaf is in registers from now on, and stored if memory must hold it."""
        self.define(instruction, leaf, element)
        if (instruction, leaf) in self._stored:
            self._store(instruction, leaf, element)

    def _store(self, instruction: Instruction, leaf: int, element: Element) -> None:
        shape = leaf_shape(instruction.shape, leaf)
        Array(self.array(instruction, leaf), shape, read_only=False).store(Indexing(self.k, 1), Index((), ()), element)

    def scalar(self, instruction: Instruction, leaf: int = 0) -> Element:
        """A scalar leaf in registers, loaded if it is not there yet."""
        origin = origin_of_leaf(instruction, leaf)
        shape = leaf_shape(instruction.shape, leaf)
        # An array of one element may be read under several element types.
        key = origin if leaf_shape(origin[0].shape, origin[1]).is_scalar else (instruction, leaf)
        element = self._scalars.get(key)
        if element is None:
            array = Array(self.array(*origin), shape, read_only=False)
            element = self._scalars[key] = array.load(Indexing(self.k, 1), Index((), ()))
        return element

    def fail_if(self, status: Value) -> None:
        """Returns `status` unless it is 0."""
        k = self.k
        with k.if_(k.compare("ne", status, 0)):
            k.ret(status)

    def stop_if_cancelled(self) -> None:
        """Returns if the run was stopped: what the kernel or loop that has just run computed is no result."""
        k = self.k
        flag = k.load(self.context_word(CONTEXT_CANCELLED), I32, volatile=True)
        with k.if_(k.compare("ne", flag, 0)):
            k.ret(k.const(I32, Status.CANCELLED))

    def finish(self) -> None:
        self.k.ret(self.k.const(I32, Status.OK))
        self.k.finish()
