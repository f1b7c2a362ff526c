"""Writes a module as StableHLO text, in the generic or the pretty form.

Tuples of HLO are taken apart wherever StableHLO has several values instead: a value is a `Tree`, an SSA name or a tuple
of trees. Computations that an operation calls become its regions, and fusions vanish. Neither recurses: whoever needs a
computation written yields it, and `_run` keeps the waiting writers on a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.graph import NO_METADATA, Computation, HloModule, Instruction, ModuleConfig
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape
from xlapy.stablehlo.attributes import ALIASING_OUTPUT, BUFFER_DONOR, string_text, symbol_text
from xlapy.stablehlo.types import type_text
from xlapy.stablehlo.write.forms import (
    NO_ATTRIBUTES,
    Attributes,
    Line,
    bare,
    dictionary,
    generic_text,
    pretty_text,
    result_types,
    signature,
)
from xlapy.support.records import Record
from xlapy.support.registry import Registry

Tree: TypeAlias = "str | tuple[Tree, ...]"


class Request(Record):
    """Write the instructions of `computation`, its parameters being `arguments`; answered by the tree of its root."""

    computation: Computation
    arguments: Sequence[Tree]


Steps: TypeAlias = Generator[Request, Tree, Tree]
Emitter = Callable[["Writer", Instruction, Sequence[Tree]], "Tree | Steps"]

EMITTERS: Registry[Emitter] = Registry("StableHLO text", OPS)
"""How an instruction is written: gets the trees of its operands, returns that of its result."""

MAX_INDENT = 80
"""Deeper regions are indented no further: text grows with the program, not with its square."""


@dataclass(slots=True)
class _Frame:
    """A computation being written, for `waiting`, the steps that asked for it, on behalf of `instruction`."""

    computation: Computation
    rest: Iterator[Instruction]
    trees: dict[Instruction, Tree]
    waiting: Steps | None
    instruction: Instruction | None


class Writer:
    """The text of a module as it grows."""

    def __init__(self, *, pretty: bool = False) -> None:
        self.lines: list[str] = []
        self._pretty = pretty
        self._form = pretty_text if pretty else generic_text
        self.functions: dict[Computation, str] = {}
        self._pending: list[Computation] = []
        self._count = 0
        self._indent = "  "
        self._location = ""
        self._config = ModuleConfig()

    # -- modules and functions -------------------------------------------------------------------------------------

    def module(self, module: HloModule) -> str:
        config = self._config = module.config
        self.lines.append(
            f"module @{symbol_text(module.name)} attributes {{mhlo.num_partitions = {config.num_partitions} : i32, "
            f"mhlo.num_replicas = {config.num_replicas} : i32}} {{"
        )
        self.functions[module.entry] = "main"
        self._pending.append(module.entry)
        for computation in self._pending:
            self._function(computation, "public" if computation is module.entry else "private")
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"

    def process_count(self, of_partitions: bool) -> int:
        """How many replicas, or partitions, the module runs as."""
        return self._config.num_partitions if of_partitions else self._config.num_replicas

    def function(self, computation: Computation) -> str:
        """The symbol of a computation, which will be written as a function."""
        name = self.functions.get(computation)
        if name is None:
            taken = set(self.functions.values())
            name, count = computation.name, 0
            while name in taken:
                count += 1
                name = f"{computation.name}_{count}"
            self.functions[computation] = name
            self._pending.append(computation)
        return "@" + symbol_text(name)

    def _function(self, computation: Computation, visibility: str) -> None:
        self._count = 0
        names = [self.fresh() for _ in computation.parameters]
        shapes = [parameter.shape for parameter in computation.parameters]
        stated = self._argument_attributes(len(names)) if visibility == "public" else [""] * len(names)
        arguments = ", ".join(
            f"{name}: {type_text(shape)}{attributes}"
            for name, shape, attributes in zip(names, shapes, stated, strict=True)
        )
        results = unpacked_shapes(computation.root.shape)
        types = ", ".join(map(type_text, results))
        symbol = symbol_text(self.functions[computation])
        self.lines.append(f"  func.func {visibility} @{symbol}({arguments}) -> ({types}) {{")
        self._indent = "    "
        self._location = ""
        trees = [self.exploded(name, shape) for name, shape in zip(names, shapes, strict=True)]
        root = self._run(computation, trees)
        self._location = ""
        self.simple("func.return", self.unpacked(root, computation.root.shape), results, ())
        self.lines.append("  }")

    def _argument_attributes(self, count: int) -> list[str]:
        """For each argument of the entry, what it says of its memory; parts of tuples cannot say it."""
        stated = [""] * count
        for donor in self._config.donors:
            if not donor.parameter_index:
                stated[donor.parameter] = f" {{{BUFFER_DONOR} = true}}"
        for alias in self._config.aliases:
            if len(alias.output_index) <= 1 and not alias.parameter_index:
                stated[alias.parameter] = f" {{{ALIASING_OUTPUT} = {sum(alias.output_index)} : i32}}"
        return stated

    def _run(self, computation: Computation, arguments: Sequence[Tree]) -> Tree:
        """Writes the instructions of a computation, and of all that they ask for; returns the tree of the root."""
        stack = [_frame(computation, arguments, None, None)]
        while True:
            frame = stack[-1]
            instruction = next(frame.rest, None)
            if instruction is not None:
                if instruction in frame.trees:
                    continue
                operands = [frame.trees[operand] for operand in instruction.operands]
                self._location = location_text(instruction.metadata)
                emitted = EMITTERS[instruction.opcode](self, instruction, operands)
                if not isinstance(emitted, Generator):
                    frame.trees[instruction] = emitted
                    continue
                request = next(emitted)
                stack.append(_frame(request.computation, request.arguments, emitted, instruction))
                continue
            tree = frame.trees[frame.computation.root]
            stack.pop()
            if frame.waiting is None or frame.instruction is None:
                return tree
            self._location = location_text(frame.instruction.metadata)
            try:
                request = frame.waiting.send(tree)
            except StopIteration as finished:
                stack[-1].trees[frame.instruction] = finished.value
            else:
                stack.append(_frame(request.computation, request.arguments, frame.waiting, frame.instruction))

    # -- operations ------------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        name = f"%{self._count}"
        self._count += 1
        return name

    def simple(
        self,
        name: str,
        operands: Sequence[str],
        operand_shapes: Sequence[Shape],
        results: Sequence[Shape],
        attributes: Attributes = NO_ATTRIBUTES,
    ) -> list[str]:
        """Writes one operation without regions; returns the names of its results."""
        names = [self.fresh() for _ in results]
        head = f"{', '.join(names)} = " if names else ""
        line = Line(name, operands, operand_shapes, results, dict(attributes))
        self.lines.append(f"{self._indent}{head}{self._form(line)}{self._location}")
        return names

    def one(
        self,
        name: str,
        instruction: Instruction,
        operands: Sequence[Tree],
        attributes: Attributes = NO_ATTRIBUTES,
    ) -> Tree:
        """Writes the operation `name` with the operands and the result of an instruction."""
        shapes = [operand.shape for operand in instruction.operands]
        leaves = [self.materialized(tree, shape) for tree, shape in zip(operands, shapes, strict=True)]
        (result,) = self.simple(name, leaves, shapes, [instruction.shape], attributes)
        return result

    def with_regions(
        self,
        name: str,
        operands: Sequence[str],
        operand_shapes: Sequence[Shape],
        results: Sequence[Shape],
        regions: Sequence[tuple[Computation, Sequence[Tree] | None]],
        attributes: Attributes = NO_ATTRIBUTES,
    ) -> Generator[Request, Tree, list[str]]:
        """Writes an operation with regions, whose parameters are the given values or else arguments of their own."""
        if self._pretty and name in _PRETTY_REGIONS:
            return (yield from _PRETTY_REGIONS[name](self, operands, operand_shapes, results, regions, attributes))
        location = self._location
        names = [self.fresh() for _ in results]
        head = f"{', '.join(names)} = " if names else ""
        indent = self._indent
        self.lines.append(f'{indent}{head}"{name}"({", ".join(operands)}) ({{')
        for number, (computation, given) in enumerate(regions):
            if number:
                self.lines.append(f"{indent}}}, {{")
            arguments = given
            if given is None:
                arguments, declared = self._region_arguments(computation)
                if declared:
                    self.lines.append(f"{indent}^bb0({', '.join(declared)}):")
            yield from self._region(computation, arguments or (), indent)
        self.lines.append(f"{indent}}}){dictionary(attributes)}{signature(operand_shapes, results)}{location}")
        return names

    def _region(
        self, computation: Computation, arguments: Sequence[Tree], indent: str
    ) -> Generator[Request, Tree, None]:
        """Writes what stands in a region, and the return of its result, tuples taken apart."""
        self._indent = (indent + "  ")[:MAX_INDENT]
        root = yield Request(computation, arguments)
        self._location = ""
        self.simple("stablehlo.return", leaves(root), [*computation.root.shape.leaves()], ())
        self._indent = indent

    def _region_arguments(self, computation: Computation) -> tuple[list[Tree], list[str]]:
        """Fresh arguments for the parameters of a computation, tuples taken apart; and how they are declared."""
        declared: list[str] = []
        trees = []
        for parameter in computation.parameters:
            names = [self.fresh() for _ in parameter.shape.leaves()]
            declared += [
                f"{name}: {type_text(leaf)}" for name, leaf in zip(names, parameter.shape.leaves(), strict=True)
            ]
            trees.append(regrown(names, parameter.shape))
        return trees, declared

    def _pretty_while(
        self,
        operands: Sequence[str],
        operand_shapes: Sequence[Shape],
        results: Sequence[Shape],
        regions: Sequence[tuple[Computation, Sequence[Tree] | None]],
        attributes: Attributes,
    ) -> Generator[Request, Tree, list[str]]:
        """`while(%state = %init, ...) : types cond { ... } do { ... }`"""
        indent, location = self._indent, self._location
        names = [self.fresh() for _ in results]
        state = [self.fresh() for _ in operands]
        pairs = ", ".join(f"{name} = {init}" for name, init in zip(state, operands, strict=True))
        types = f" : {', '.join(map(type_text, operand_shapes))}" if operands else ""
        self.lines.append(f"{indent}{', '.join(names)}{' = ' if names else ''}stablehlo.while({pairs}){types}")
        for word, (computation, _) in zip(("cond", "} do"), regions, strict=True):
            self.lines.append(f"{indent}{word} {{")
            (parameter,) = computation.parameters
            yield from self._region(computation, [regrown(state, parameter.shape)], indent)
        self.lines.append(f"{indent}}}{location}")
        return names

    def _pretty_reduce(
        self,
        operands: Sequence[str],
        operand_shapes: Sequence[Shape],
        results: Sequence[Shape],
        regions: Sequence[tuple[Computation, Sequence[Tree] | None]],
        attributes: Attributes,
    ) -> Generator[Request, Tree, list[str]]:
        """`reduce(%a init: %b) across dimensions = [0] : types reducer(%x: T, %y: T) { ... }`"""
        indent, location = self._indent, self._location
        names = [self.fresh() for _ in results]
        count = len(operands) // 2
        pairs = ", ".join(f"({operands[n]} init: {operands[count + n]})" for n in range(count))
        types = f"({', '.join(map(type_text, operand_shapes))}) -> {result_types(results)}"
        self.lines.append(
            f"{indent}{', '.join(names)} = stablehlo.reduce{pairs} across dimensions = "
            f"{bare(attributes['dimensions'])} : {types}"
        )
        computation = regions[0][0]
        arguments, declared = self._region_arguments(computation)
        reducer = " ".join(f"({declared[n]}, {declared[count + n]})" for n in range(count))
        self.lines.append(f"{indent} reducer{reducer}  {{")
        yield from self._region(computation, arguments, indent)
        self.lines.append(f"{indent}}}{location}")
        return names

    # -- trees -----------------------------------------------------------------------------------------------------

    def exploded(self, name: str, shape: Shape) -> Tree:
        """The tree of one SSA value, which may be a tuple."""
        if not shape.is_tuple:
            return name
        trees = []
        for index, part in enumerate(shape.parts):
            attributes = {"index": f"{index} : i32"}
            (element,) = self.simple("stablehlo.get_tuple_element", [name], [shape], [part], attributes)
            trees.append(self.exploded(element, part))
        return tuple(trees)

    def materialized(self, tree: Tree, shape: Shape) -> str:
        """One SSA value for a tree."""
        if isinstance(tree, str):
            return tree
        parts = [self.materialized(part, part_shape) for part, part_shape in zip(tree, shape.parts, strict=True)]
        (whole,) = self.simple("stablehlo.tuple", parts, shape.parts, [shape])
        return whole

    def unpacked(self, tree: Tree, shape: Shape) -> list[str]:
        """The SSA values for what the reader will pack again: the elements of a tuple, or the one value."""
        if isinstance(tree, str) or len(tree) == 1:
            return [self.materialized(tree, shape)]
        return [self.materialized(part, part_shape) for part, part_shape in zip(tree, shape.parts, strict=True)]

    def packed(self, names: Sequence[str], shape: Shape) -> Tree:
        """The tree of a result of `shape` that was written as `unpacked_shapes(shape)`."""
        shapes = unpacked_shapes(shape)
        trees = [self.exploded(name, part) for name, part in zip(names, shapes, strict=True)]
        return trees[0] if shapes == [shape] else tuple(trees)


def _frame(
    computation: Computation, arguments: Sequence[Tree], waiting: Steps | None, instruction: Instruction | None
) -> _Frame:
    trees = dict(zip(computation.parameters, arguments, strict=True))
    return _Frame(computation, iter(computation.post_order()), trees, waiting, instruction)


def unpacked_shapes(shape: Shape) -> list[Shape]:
    """The types of the several values that stand for a tuple; a tuple of one is not taken apart."""
    return [*shape.parts] if shape.is_tuple and len(shape.parts) != 1 else [shape]


def element(tree: Tree, index: int) -> Tree:
    """Element `index` of a tuple."""
    assert not isinstance(tree, str), f"{tree} stands for a tuple, but was not taken apart"
    return tree[index]


def leaves(tree: Tree) -> list[str]:
    """The names in a tree, depth first."""
    if isinstance(tree, str):
        return [tree]
    return [name for part in tree for name in leaves(part)]


def regrown(names: Sequence[str], shape: Shape) -> Tree:
    """The tree of `shape` whose leaves are `names`."""
    rest = iter(names)

    def grow(part: Shape) -> Tree:
        return tuple(grow(inner) for inner in part.parts) if part.is_tuple else next(rest)

    return grow(shape)


def location_text(metadata: OpMetadata) -> str:
    """`loc("name"("file":3:1))`, as far as known."""
    if metadata is NO_METADATA or not (metadata.op_name or metadata.source_file):
        return ""
    place = f"{string_text(metadata.source_file)}:{metadata.source_line}:1" if metadata.source_file else ""
    name = string_text(metadata.op_name) if metadata.op_name else ""
    return f" loc({name}({place}))" if name and place else f" loc({name or place})"


def integers_text(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def list_text(values: Sequence[int]) -> str:
    return f"[{', '.join(map(str, values))}]"


_PRETTY_REGIONS = {"stablehlo.while": Writer._pretty_while, "stablehlo.reduce": Writer._pretty_reduce}
"""Operations with regions that the pretty form does not write like the generic one."""
