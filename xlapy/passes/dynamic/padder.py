"""The dynamic padder: bounded dimensions become static ones, with their run-time sizes as s32 scalars beside them.

    p = f32[<=8] parameter(0)                                  p = f32[8] parameter(0)
    ROOT r = f32[] reduce(p, zero), dimensions={0} ...         n = s32[] parameter(1)
                                                  becomes      m = f32[8] select(iota < n, p, identity)
                                                               ROOT r = f32[] reduce(m, zero), dimensions={0} ...

No op sees padding: where it would, it is masked. Sizes of bounded dimensions of entry parameters become parameters
behind the original ones (`config.size_parameters`), those of the result a tuple beside it: (result, (size, ...)),
`config.size_results`. Control flow takes and gives them behind the values: see `control_flow_rules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.element_types import S32
from xlapy.hlo.graph import Computation, DynamicSize, HloModule, Instruction
from xlapy.hlo.ops import Trait
from xlapy.hlo.shape import Shape, Signature
from xlapy.passes.base import Pass, program_computations
from xlapy.passes.dynamic.control_flow_rules import enter_packed, packed, packed_shape
from xlapy.passes.dynamic.padding import RULES, Copies, Padding, Place, bounded_places, leaf_paths
from xlapy.passes.dynamic.structure_rules import elementwise
from xlapy.support.errors import InternalError, UnsupportedError


@dataclass
class DynamicPadder(Pass):
    name: ClassVar[str] = "dynamic-padder"
    required: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Callees first. One that is called for results with different bounds has a copy for each."""
        computations = program_computations(module)
        wanted = _wanted_results(computations)
        copies: dict[tuple[Computation, Shape], Computation] = {}
        touched: set[Computation] = set()
        for computation in computations:
            if not _is_touched(computation, wanted[computation], touched):
                continue
            touched.add(computation)
            if computation is module.entry:
                module.entry = _static_entry(module, copies)
                continue
            for result in wanted[computation]:
                copies[computation, result] = _static_copy(computation, result, copies)
        return bool(touched)


def _wanted_results(computations: list[Computation]) -> dict[Computation, list[Shape]]:
    """The shapes that callers give the results of each computation, without layouts.

    A conditional makes a dimension bounded where that is so in any branch; all others take results as they are."""
    wanted: dict[Computation, dict[Shape, None]] = {computation: {} for computation in computations}
    for computation in computations:
        for instruction in computation:
            if Trait.CONTROL in instruction.spec.traits:
                joins = instruction.opcode == "conditional"
                for called in instruction.called:
                    wanted[called].setdefault(instruction.shape if joins else called.root.shape)
    return {computation: list(shapes) for computation, shapes in wanted.items()}


def _is_touched(computation: Computation, wanted: list[Shape], touched: set[Computation]) -> bool:
    return any(not shape.is_static for shape in wanted) or any(
        not instruction.shape.is_static
        or instruction.opcode == "set-dimension-size"
        or not touched.isdisjoint(instruction.called)
        for instruction in computation
    )


def _static_copy(computation: Computation, result: Shape, copies: Copies) -> Computation:
    """A called computation for arrays with sizes behind them; its result stands for a value of shape `result`."""
    padding = Padding(computation.name, copies)
    for number, parameter in enumerate(computation.parameters):
        shape = packed_shape(parameter.shape)
        value = padding.add("parameter", shape=shape, number=number, name=parameter.name, metadata=parameter.metadata)
        enter_packed(padding, parameter, value, parameter.shape)
    _pad_all(padding, computation)
    padding.computation.set_root(packed(padding, computation.root, result))
    return padding.computation


def _static_entry(module: HloModule, copies: Copies) -> Computation:
    padding = Padding(module.entry.name, copies)
    _add_entry_parameters(module, padding)
    _pad_all(padding, module.entry)
    padding.computation.set_root(_entry_root(module, padding))
    return padding.computation


def _pad_all(padding: Padding, computation: Computation) -> None:
    for instruction in computation.post_order():
        if instruction.opcode != "parameter":
            _pad(padding, instruction)
        for predecessor in instruction.control_predecessors:
            padding.computation.add_control_edge(padding.anchor(predecessor), padding.anchor(instruction))


def _pad(padding: Padding, instruction: Instruction) -> None:
    is_dynamic = not instruction.shape.is_static or any(padding.is_dynamic(operand) for operand in instruction.operands)
    is_about_sizes = instruction.opcode in ("set-dimension-size", "get-dimension-size")
    if not is_dynamic and not is_about_sizes and not padding.calls_copies(instruction):
        padding.enter(instruction, padding.same(instruction))
        return
    rule = RULES.get(instruction.opcode)
    if rule is None and Trait.ELEMENTWISE in instruction.spec.traits:
        rule = elementwise
    if rule is None:
        raise UnsupportedError(f"{instruction.opcode} of an array of dynamic size ({instruction.name})")
    rule(padding, instruction)
    bounded = {place for place, _ in bounded_places(instruction.shape)}
    if not bounded.issuperset(padding.sizes(instruction)):
        raise InternalError(f"{instruction} has run-time sizes that its shape does not show")


def _add_entry_parameters(module: HloModule, padding: Padding) -> None:
    """Adds the static parameters; their sizes become further ones."""
    wanted: list[tuple[Instruction, Place]] = []
    places: list[DynamicSize] = []
    leaf = 0
    for parameter in module.entry.parameters:
        padding.enter(parameter, padding.same(parameter))
        wanted += [(parameter, place) for place, _ in bounded_places(parameter.shape)]
        places += _numbered(parameter.shape, leaf)
        leaf += sum(1 for _ in leaf_paths(parameter.shape))
    count = len(module.entry.parameters)
    for number, (parameter, size_place) in enumerate(wanted):
        size = padding.add("parameter", shape=Shape.scalar(S32), number=count + number)
        known = {**padding.sizes(parameter), size_place: size}
        padding.enter(parameter, padding.copy(parameter), known)
    module.config.size_parameters = tuple(places)
    _extend_entry_layout(module, len(wanted), 0)


def _entry_root(module: HloModule, padding: Padding) -> Instruction:
    """The static result, with the sizes of its bounded dimensions beside it."""
    root = module.entry.root
    places, known = bounded_places(root.shape), padding.sizes(root)
    if not places:
        return padding.copy(root)
    values = [known.get(place) or padding.number(bound) for place, bound in places]
    module.config.size_results = tuple(_numbered(root.shape, 0))
    _extend_entry_layout(module, 0, len(values))
    return padding.add("tuple", [padding.copy(root), padding.add("tuple", values)])


def _numbered(shape: Shape, first: int) -> list[DynamicSize]:
    """Where a shape has bounded dimensions, its arrays being numbered from `first` on."""
    return [
        DynamicSize(number, dim)
        for number, (_, leaf) in enumerate(leaf_paths(shape), start=first)
        for dim in range(leaf.rank)
        if leaf.is_dynamic_dim(dim)
    ]


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
