"""HLO text to a module.

Two steps. Reading (`reader`) turns the text into records, one per instruction; building, here, adds the records to
computations, callees first, since a caller's shape rule needs the signatures of what it calls.

    HloModule axpy
    ENTRY main {
      x = f32[4] parameter(0)
      two = f32[] constant(2)
      ROOT y = f32[4] multiply(x, f32[4] broadcast(two), dimensions={})
    }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from xlapy.hlo.graph import Computation, HloModule, Instruction
from xlapy.hlo.ops import OpSpec
from xlapy.hlo.shape import Shape
from xlapy.hlo.text.reader import Reader
from xlapy.hlo.text.records import ComputationRecord, InstructionRecord, ModuleRecord
from xlapy.support.collection import paused_collection
from xlapy.support.errors import ParseError, ShapeError, XlaError
from xlapy.support.naming import Names
from xlapy.support.ordering import CycleError, post_order
from xlapy.support.source import Source, suggestion


def parse(text: str, *, name: str = "", check: bool = True) -> HloModule:
    """The module that `text` describes. `name` says where the text came from, for error messages.

    Raises ParseError for text that is no module and ShapeError for an instruction that breaks its op's rules, both with
    line, column and caret. With `check=False` the stated shapes are believed and the rules not run, where possible."""
    source = Source(text, name)
    with paused_collection():
        try:
            return _Builder(source, Reader(source).module(), check).module()
        except ParseError as error:
            if text.lstrip().startswith(("module @", "module {", "func.func ")):
                error.message += "; if this is StableHLO, xlapy.stablehlo.parse reads it"
            raise


class _Builder:
    """Records to a graph."""

    def __init__(self, source: Source, records: ModuleRecord, check: bool) -> None:
        self._source = source
        self._records = records
        self._check = check
        self._finished: dict[str, Computation] = {}
        self._free = Names(records.computations)

    def module(self) -> HloModule:
        for record in self._callees_first():
            self._finished[record.name] = self._computation(record)
        return HloModule(self._records.name, self._finished[self._records.entry.name], self._records.config)

    def _callees_first(self) -> list[ComputationRecord]:
        """Every computation behind those that it calls."""
        computations = self._records.computations
        try:
            names = post_order(computations, lambda name: (callee for callee, _ in self._calls(computations[name])))
        except CycleError as cycle:
            calls = self._calls(computations[cycle.source])
            offset = next(offset for callee, offset in calls if callee == cycle.target)
            raise self._source.error(f"computation {cycle.target!r} calls itself", offset) from None
        return [computations[name] for name in names]

    def _calls(self, record: ComputationRecord) -> Iterator[tuple[str, int]]:
        """The names of the computations that one calls, and where; all of them are there."""
        computations = self._records.computations
        for instruction in record.instructions:
            for name, offset in instruction.called:
                if name not in computations:
                    message = f"there is no computation {name!r}{suggestion(name, computations)}"
                    if not name:
                        message = f"{instruction.spec.name} calls a computation that is not given"
                    raise self._source.error(message, offset)
                yield name, offset

    def _computation(self, record: ComputationRecord) -> Computation:
        computation = Computation(record.name)
        names: dict[str, Instruction] = {}
        built: dict[int, Instruction] = {}
        numbers: set[int] = set()
        free = Names(instruction.name for instruction in record.instructions)
        for item in record.instructions:
            if item.name in names:
                raise self._source.error(f"{item.name!r} is defined twice in {record.name}", item.offset)
            item_name = item.name or free.unused(item.spec.name)
            instruction = self._instruction(computation, item, item_name, names, built)
            built[id(item)] = names[item_name] = instruction
            if instruction.opcode == "parameter":
                number = instruction.attributes["number"]
                if number in numbers:
                    raise self._source.error(f"a second parameter({number}) in {record.name}", item.offset)
                numbers.add(number)
        assert record.root is not None
        computation.set_root(built[id(record.root)])
        self._check_parameters(record, computation)
        return computation

    def _instruction(
        self,
        computation: Computation,
        item: InstructionRecord,
        name: str,
        names: dict[str, Instruction],
        built: dict[int, Instruction],
    ) -> Instruction:
        operands = []
        for position, reference in enumerate(item.operands):
            operand = names.get(reference) if isinstance(reference, str) else built[id(reference)]
            if operand is None:
                near = suggestion(str(reference), names)
                message = f"there is no instruction {str(reference)!r} before this one{near}"
                raise self._source.error(message, item.operand_offsets[position])
            stated = item.operand_shapes[position]
            if stated is not None and not stated.matches(operand.shape):
                message = f"{operand.name} is {operand.shape}, not {stated}"
                raise self._source.error(message, item.operand_offsets[position])
            operands.append(operand)
        if item.is_update and len(operands) == 1:
            return operands[0]
        called = [self._finished[callee] for callee, _ in item.called]
        if item.wraps is not None:
            called = [self._wrapped(item, item.wraps, operands, called)]
            item.attributes = {}
        shape, attributes = self._typed(item, operands, called)
        instruction = computation.add_unchecked(item.spec, shape, operands, attributes, called, name, item.metadata)
        instruction.extra = item.extra
        for predecessor, offset in item.predecessors:
            if predecessor not in names:
                message = f"there is no instruction {predecessor!r} before this one{suggestion(predecessor, names)}"
                raise self._source.error(message, offset)
            computation.add_control_edge(names[predecessor], instruction)
        return instruction

    def _wrapped(
        self, item: InstructionRecord, spec: OpSpec, operands: list[Instruction], called: list[Computation]
    ) -> Computation:
        """The computation of an async-start that is written with the name of the op that is all of it."""
        if item.shape is None or not item.shape.is_tuple or len(item.shape.parts) < 2:
            raise self._source.error(f"the shape of {spec.name}-start is not ((operands), result)", item.offset)
        computation = Computation(self._free.unused(f"wrapped_{spec.name.replace('-', '_')}"))
        parameters = [
            computation.add("parameter", number=number, shape=operand.shape) for number, operand in enumerate(operands)
        ]
        inner = replace(item, spec=spec, shape=item.shape.parts[1])
        shape, attributes = self._typed(inner, parameters, called)
        root = computation.add_unchecked(spec, shape, parameters, attributes, called, metadata=item.metadata)
        root.extra, item.extra = item.extra, {}
        computation.set_root(root)
        return computation

    def _typed(
        self, item: InstructionRecord, operands: list[Instruction], called: list[Computation]
    ) -> tuple[Shape, dict[str, Any]]:
        """The shape, checked against the rule of the op, and the attributes with defaults."""
        spec = item.spec
        try:
            attributes = spec.complete_attributes(item.attributes)
            if item.shape is not None and not self._check:
                spec.group(operands)
                return item.shape, attributes
            signatures = [computation.signature for computation in called]
            inferred = spec.infer([operand.shape for operand in operands], attributes, signatures, item.shape)
            if item.shape is None:
                return inferred, attributes
            if item.shape != inferred and not item.shape.matches(inferred):
                raise ShapeError(f"{spec.name}.result-shape", f"{item.shape} is stated, but the result is {inferred}")
            return item.shape, attributes
        except XlaError as error:
            error.add_context(subject=spec.name, where=self._source.where(item.offset))
            raise

    def _check_parameters(self, record: ComputationRecord, computation: Computation) -> None:
        count = len(computation.parameters)
        for position, parameter in enumerate(computation.parameters):
            if parameter.attributes["number"] != position:
                message = f"{record.name} has {count} parameters, but none is parameter({position})"
                raise self._source.error(message, record.offset)
        if record.signature is not None and not record.signature.matches(computation.signature):
            message = f"{record.name} has type {computation.signature}, not {record.signature}"
            raise self._source.error(message, record.offset)


__all__ = ["parse"]
