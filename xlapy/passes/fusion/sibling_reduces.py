"""Merging of reduces: sums of the same arrays are made in one sweep.

    m = f32[512,1024] multiply(x, y)
    r = f32[1024] reduce(x, zero), dimensions={0}, to_apply=sum
    s = f32[1024] reduce(m, zero), dimensions={0}, to_apply=sum

becomes

    t = (f32[1024], f32[1024]) reduce(x, m, zero, zero), dimensions={0}, to_apply=both
    r = get-tuple-element(t), index=0
    s = get-tuple-element(t), index=1

Statistics of a batch and gradients of biases and scales come in such families. Those that keep the fastest dimension
have lanes that fold a result each, in the order of the elements: so no bit changes. Folds of rows are merged if each is
by one op, and of something that is computed, as the products of some vectors and the same matrix are: the others are
calls of a library. Neither may need the other, and they must read an array in common, which is what is saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.kernel_plan import SHORT_ROW, is_element_op, is_inlinable, sole_operation
from xlapy.hlo.shape import Shape
from xlapy.passes.base import Pass, Record, pinned, program_computations
from xlapy.passes.fusion.cost import memory_bytes

MAX_VISITED = 2000  # instructions between two reduces; beyond, nobody looks whether one needs the other
LEVELS_OF_REDUCE = 32  # each stands at a multiple of so many: few things that are lifted below it lift it, too
MAX_CANDIDATES = 8  # that a reduce is compared with: programs with thousands of alike ones exist
MAX_PRODUCERS = 64  # instructions that are followed from a reduce to the arrays that its kernel would read


@dataclass(slots=True)
class _Group:
    """Reduces that may become one, and the arrays that the kernel of the first one reads."""

    reduces: list[Instruction]
    arrays: dict[Instruction, None]


@dataclass
class SiblingReduces(Pass):
    """`width` is how many reduces one kernel may hold: beyond, their running values leave the registers."""

    name: ClassVar[str] = "merge-reduces"
    ops: ClassVar[Set[str]] = frozenset({"reduce"})

    width: int = 4

    def run(self, module: HloModule) -> bool:
        changed = False
        for computation in program_computations(module):
            changed = self._merge_in(computation) or changed
        return changed

    def _merge_in(self, computation: Computation) -> bool:
        fixed = pinned(computation)
        order = computation.post_order()
        reduces = [instruction for instruction in order if instruction not in fixed and _is_mergeable(instruction)]
        if len(reduces) < 2:
            return False
        levels = _Levels(computation)
        families: dict[object, list[_Group]] = {}
        for reduce in reduces:
            source = reduce.operands[0].shape
            key = (source.dims, source.minor_to_major, reduce.attributes["dimensions"])
            self._place(reduce, families.setdefault(key, []), levels)
        groups = [group.reduces for family in families.values() for group in family if len(group.reduces) > 1]
        merged = [self._merged(computation, group, levels) for group in groups]
        return any(merged)

    def _place(self, reduce: Instruction, family: list[_Group], levels: _Levels) -> None:
        """Puts a reduce into the first group that it fits, or into one of its own."""
        arrays = _arrays_read(reduce)
        for group in family[-MAX_CANDIDATES:]:
            fits = len(group.reduces) < self.width and _share(arrays, group.arrays, reduce)
            if fits and not levels.depend(group.reduces, reduce):
                group.reduces.append(reduce)
                return
        family.append(_Group([reduce], arrays))

    def _merged(self, computation: Computation, group: Sequence[Instruction], levels: _Levels) -> bool:
        """Merges those of a group that do not need each other, in the graph as other groups have left it."""
        chosen = [group[0]]
        for reduce in group[1:]:
            if not levels.depend(chosen, reduce):
                chosen.append(reduce)
        if len(chosen) < 2:
            return False
        names = ", ".join(reduce.name for reduce in chosen[1:])
        self.records.append(Record.of(chosen[0], True, f"reads in one sweep what {names} read as well"))
        levels.enter(_replace(computation, chosen))
        return True


class _Levels:
    """Numbers that grow along every way, by which most ways are known not to exist: nobody below an instruction needs
    it. Between siblings, however large the program, there is next to nothing left to search."""

    def __init__(self, computation: Computation) -> None:
        self._computation = computation
        self._levels: dict[Instruction, int] = {}
        self._has_control_edges = any(instruction.control_predecessors for instruction in computation)
        self._enter_all()

    def _enter_all(self) -> None:
        for instruction in self._computation.post_order():
            self._levels[instruction] = self._above(instruction)

    def enter(self, new: Sequence[Instruction]) -> None:
        """Takes in instructions that the graph has got, and lifts what needs them."""
        if self._has_control_edges:
            self._enter_all()  # nobody knows what comes behind an instruction by a control edge
            return
        for instruction in new:
            self._levels[instruction] = self._above(instruction)
        pending = [user for instruction in new for user in instruction.users]
        while pending:
            instruction = pending.pop()
            level = self._above(instruction)
            if level > self._levels[instruction]:
                self._levels[instruction] = level
                pending += instruction.users

    def _above(self, instruction: Instruction) -> int:
        level = 1 + max((self._levels[source] for source in _sources(instruction)), default=0)
        return level if instruction.opcode != "reduce" else -(-level // LEVELS_OF_REDUCE) * LEVELS_OF_REDUCE

    def depend(self, chosen: Sequence[Instruction], reduce: Instruction) -> bool:
        """A way leads from one of `chosen` to `reduce`, or back; or the way is too long to tell."""
        return any(self._reaches(reduce, earlier) or self._reaches(earlier, reduce) for earlier in chosen)

    def _reaches(self, start: Instruction, goal: Instruction) -> bool:
        """`start` needs `goal`."""
        least = self._levels[goal]
        pending, seen = [start], {start}
        while pending:
            instruction = pending.pop()
            if instruction is goal or len(seen) > MAX_VISITED:
                return True
            for source in _sources(instruction):
                if source not in seen and self._levels[source] >= least:
                    seen.add(source)
                    pending.append(source)
        return False


def _sources(instruction: Instruction) -> tuple[Instruction, ...]:
    return (*instruction.operands, *instruction.control_predecessors)


def _is_mergeable(instruction: Instruction) -> bool:
    """A reduce of one array whose lanes fold a result each, or that folds rows of what its kernel computes."""
    if instruction.opcode != "reduce" or len(instruction.operands) != 2 or not instruction.attributes["dimensions"]:
        return False
    source = instruction.operands[0].shape
    if not source.is_static or not source.size or source.type.is_narrow_float or source.type.is_complex:
        return False
    fastest = source.minor_to_major[0]
    if source.dims[fastest] < SHORT_ROW or not is_inlinable(instruction.called[0]) or not _same_order(instruction):
        return False
    return fastest not in instruction.attributes["dimensions"] or _folds_computed_rows(instruction)


def _folds_computed_rows(reduce: Instruction) -> bool:
    array = reduce.operands[0]
    is_computed = is_element_op(array) and array.opcode != "parameter"
    return is_computed and reduce.shape.size > 1 and sole_operation(reduce.called[0]) is not None


def _same_order(reduce: Instruction) -> bool:
    """The result lies in memory as the source does, so that results of a merged one do, too."""
    source, result = reduce.operands[0].shape, reduce.shape
    left = [dim for dim in range(source.rank) if dim not in reduce.attributes["dimensions"]]
    return [left.index(dim) for dim in source.minor_to_major if dim in left] == [*result.minor_to_major]


def _arrays_read(reduce: Instruction) -> dict[Instruction, None]:
    """The arrays in memory that a kernel reads which computes the elements that are folded."""
    found: dict[Instruction, None] = {}
    pending, seen = [reduce.operands[0]], {reduce.operands[0]}
    while pending and len(seen) < MAX_PRODUCERS:
        value = pending.pop()
        if not is_element_op(value) or value.opcode == "parameter":
            found[value] = None
            continue
        for operand in value.operands:
            if operand not in seen and memory_bytes(operand):
                seen.add(operand)
                pending.append(operand)
    return found


def _share(one: Iterable[Instruction], other: dict[Instruction, None], reduce: Instruction) -> bool:
    """An array with as many elements as what is folded is read by both."""
    size = reduce.operands[0].shape.size
    return any(array in other and array.shape.is_array and array.shape.size >= size for array in one)


def _replace(computation: Computation, reduces: Sequence[Instruction]) -> list[Instruction]:
    """Puts one reduce with several inputs in the place of several; returns it, and what its results are."""
    inputs = [reduce.operands[0] for reduce in reduces]
    inits = [reduce.operands[1] for reduce in reduces]
    merged = computation.add(
        "reduce",
        [*inputs, *inits],
        called=[_side_by_side([reduce.called[0] for reduce in reduces], inputs)],
        shape=Shape.tuple([reduce.shape for reduce in reduces]),
        name=f"{reduces[0].name}.merged",
        metadata=reduces[0].metadata,
        dimensions=reduces[0].attributes["dimensions"],
    )
    new = [merged]
    for index, reduce in enumerate(reduces):
        new.append(computation.add("get-tuple-element", [merged], shape=reduce.shape, index=index, name=reduce.name))
        computation.replace(reduce, new[-1])
    computation.remove(reduces)
    return new


def _side_by_side(regions: Sequence[Computation], inputs: Sequence[Instruction]) -> Computation:
    """What all the regions compute, each from its own pair of parameters."""
    joined = Computation("side_by_side")
    scalars = [Shape.scalar(value.shape.type) for value in inputs]
    parameters = [
        joined.add("parameter", shape=shape, name=f"p{number}", number=number)
        for number, shape in enumerate((*scalars, *scalars))
    ]
    count = len(regions)
    results = [
        joined.insert(region, [parameters[place], parameters[count + place]]) for place, region in enumerate(regions)
    ]
    joined.set_root(joined.add("tuple", results))
    return joined
