"""The dynamic padder: bounded dimensions become static ones, with their run-time sizes as s32 scalars beside them.

    p = f32[<=8] parameter(0)                                  p = f32[8] parameter(0)
    ROOT r = f32[] reduce(p, zero), dimensions={0} ...         n = s32[] parameter(1)
                                                  becomes      m = f32[8] select(iota < n, p, zero)
                                                               ROOT r = f32[] reduce(m, zero), dimensions={0} ...

No op sees padding: where it would, it is masked. Sizes of bounded dimensions of entry parameters become parameters
behind the original ones (`config.size_parameters`), those of the result a tuple beside it: (result, (size, ...)),
`config.size_results`. Inside loops and branches sizes may come and go, but not be carried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Computation, DynamicSize, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape, Signature
from xlapy.passes.base import Pass, program_computations
from xlapy.passes.dynamic import rules
from xlapy.passes.dynamic.padding import RULES, Padding, Path
from xlapy.support.errors import UnsupportedError


@dataclass
class DynamicPadder(Pass):
    name: ClassVar[str] = "dynamic-padder"
    required: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        padded: dict[Computation, Computation] = {}
        for computation in program_computations(module):
            for instruction in computation:
                if any(called in padded for called in instruction.called):
                    computation.set_called(instruction, [padded.get(called, called) for called in instruction.called])
            if any(not i.shape.is_static or i.opcode == "set-dimension-size" for i in computation):
                padded[computation] = _static_copy(module, computation)
        module.entry = padded.get(module.entry, module.entry)
        return bool(padded)


def _static_copy(module: HloModule, computation: Computation) -> Computation:
    padding = Padding(computation.name)
    _add_parameters(module, computation, padding)
    for instruction in computation.post_order():
        if instruction.opcode != "parameter":
            _pad(padding, instruction)
        for predecessor in instruction.control_predecessors:
            padding.computation.add_control_edge(padding.copy(predecessor), padding.copy(instruction))
    padding.computation.set_root(_root(module, computation, padding))
    return padding.computation


def _pad(padding: Padding, instruction: Instruction) -> None:
    is_dynamic = not instruction.shape.is_static or any(padding.is_dynamic(operand) for operand in instruction.operands)
    if not is_dynamic and instruction.opcode not in ("set-dimension-size", "get-dimension-size"):
        padding.enter(instruction, padding.same(instruction))
        return
    rule = RULES.get(instruction.opcode)
    if rule is None and Trait.ELEMENTWISE in instruction.spec.traits:
        rule = rules.elementwise
    if rule is None:
        raise UnsupportedError(f"{instruction.opcode} of an array of dynamic size ({instruction.name})")
    rule(padding, instruction)


def _add_parameters(module: HloModule, computation: Computation, padding: Padding) -> None:
    """Adds the static parameters; those of the entry bring their sizes as further parameters."""
    wanted: list[tuple[Instruction, Path, int]] = []
    leaves = 0
    places: list[DynamicSize] = []
    for parameter in computation.parameters:
        padding.enter(parameter, padding.same(parameter))
        for path, leaf in leaf_paths(parameter.shape):
            for dim in range(leaf.rank):
                if leaf.is_dynamic_dim(dim):
                    wanted.append((parameter, path, dim))
                    places.append(DynamicSize(leaves, dim))
            leaves += 1
    if wanted and computation is not module.entry:
        raise UnsupportedError(f"{computation.name} carries an array of dynamic size through control flow")
    count = len(computation.parameters)
    for place, (parameter, path, dim) in enumerate(wanted):
        size = padding.add("parameter", shape=Shape.scalar(S32), number=count + place)
        known = dict(padding.sizes(parameter))
        known[path, dim] = size
        padding.enter(parameter, padding.copy(parameter), known)
    if computation is module.entry and wanted:
        module.config.size_parameters = tuple(places)
        _extend_entry_layout(module, len(wanted), 0)


def _root(module: HloModule, computation: Computation, padding: Padding) -> Instruction:
    """The static result; with the sizes of its bounded dimensions beside it, if it is the entry's."""
    result = padding.copy(computation.root)
    sizes = padding.sizes(computation.root)
    if not sizes:
        return result
    if computation is not module.entry:
        raise UnsupportedError(f"{computation.name} carries an array of dynamic size through control flow")
    places, values = [], []
    for number, (path, leaf) in enumerate(leaf_paths(computation.root.shape)):
        for dim in range(leaf.rank):
            if (path, dim) in sizes:
                places.append(DynamicSize(number, dim))
                values.append(sizes[path, dim])
    module.config.size_results = tuple(places)
    _extend_entry_layout(module, 0, len(values))
    return padding.add("tuple", [result, padding.add("tuple", values)])


def _extend_entry_layout(module: HloModule, parameters: int, results: int) -> None:
    """Keeps the entry's layouts in step with its signature: static shapes, and sizes where they were added."""
    given = module.config.entry_layout
    if given is None:
        return
    size = Shape.scalar(S32)
    result = given.result.static()
    if results:
        result = Shape.tuple([result, Shape.tuple([size] * results)])
    shapes = tuple(shape.static() for shape in given.parameters)
    module.config.entry_layout = Signature(shapes + (size,) * parameters, result)


def leaf_paths(shape: Shape, path: Path = ()) -> Iterator[tuple[Path, Shape]]:
    """The leaves of a shape with their paths, depth first."""
    if shape.elements is None:
        yield path, shape
    else:
        for index, element in enumerate(shape.parts):
            yield from leaf_paths(element, (*path, index))
