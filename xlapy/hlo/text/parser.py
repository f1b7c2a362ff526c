"""HLO text to a module.

Two steps. Reading turns the text into records, one per instruction, knowing only the op table; building then adds the
records to computations, callees first, since a caller's shape rule needs the signatures of what it calls.

    HloModule axpy
    ENTRY main {
      x = f32[4] parameter(0)
      two = f32[] constant(2)
      ROOT y = f32[4] multiply(x, f32[4] broadcast(two), dimensions={})
    }
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, replace
from typing import Any

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.graph import (
    NO_METADATA,
    BufferDonor,
    Computation,
    HloModule,
    InputOutputAlias,
    Instruction,
    ModuleConfig,
)
from xlapy.hlo.ops import OPS, OpSpec
from xlapy.hlo.shape import MAX_NESTING, Shape, Signature
from xlapy.hlo.text.attributes import LITERAL, OpText, op_text, read_alias, read_donor, read_list, read_metadata
from xlapy.hlo.text.lexer import NAME, SPACE, Lexer
from xlapy.hlo.text.literals import read_literal
from xlapy.hlo.text.shapes import ShapeReader
from xlapy.hlo.text.stack_frames import StackFrames, read_stack_frames
from xlapy.support.collection import paused_collection
from xlapy.support.errors import ShapeError, XlaError
from xlapy.support.naming import Names
from xlapy.support.source import Source, suggestion


def parse(text: str, *, name: str = "", check: bool = True) -> HloModule:
    """The module that `text` describes. `name` says where the text came from, for error messages.

    Raises ParseError for text that is no module and ShapeError for an instruction that breaks its op's rules, both with
    line, column and caret. With `check=False` the stated shapes are believed and the rules not run, where possible."""
    source = Source(text, name)
    with paused_collection():
        return _Builder(source, _Reader(source).module(), check).module()


# -- records: what the text says -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Instruction:
    """One instruction as read. Operands are names, or the records of nested expressions."""

    offset: int
    name: str
    spec: OpSpec
    shape: Shape | None
    operands: list[str | _Instruction] = field(default_factory=list)
    operand_shapes: list[Shape | None] = field(default_factory=list)
    operand_offsets: list[int] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    called: list[tuple[str, int]] = field(default_factory=list)
    predecessors: list[tuple[str, int]] = field(default_factory=list)
    metadata: OpMetadata = NO_METADATA
    extra: dict[str, str] = field(default_factory=dict)
    wraps: OpSpec | None = None  # the op that an async-start was written with: `custom-call-start(...)`
    is_update: bool = False  # `custom-call-update(...)`: another name of its operand

    @property
    def text(self) -> OpText:
        """How its attributes are spelled."""
        return op_text(self.wraps or self.spec)


@dataclass(slots=True)
class _Computation:
    offset: int
    name: str
    is_entry: bool
    signature: Signature | None
    instructions: list[_Instruction] = field(default_factory=list)
    root: _Instruction | None = None


@dataclass(slots=True)
class _Module:
    name: str
    config: ModuleConfig
    computations: dict[str, _Computation]
    entry: _Computation


# -- reading -------------------------------------------------------------------------------------------------------

_MODULE = re.compile(rf"HloModule{SPACE}({NAME}|\"[^\"\n]*\"){SPACE}")
_HEADING = re.compile(rf"(ENTRY\s{SPACE})?%?({NAME}){SPACE}(?=[{{(])")
_ASSIGNMENT = re.compile(rf"(ROOT\s{SPACE})?%?({NAME}){SPACE}={SPACE}")
_OPCODE = re.compile(rf"([a-z][a-z0-9\-]*+){SPACE}\({SPACE}")
_OPERAND = re.compile(rf"%?({NAME}){SPACE}(?=[,)])")
_NESTED = re.compile(rf"[a-z][a-z0-9\-]*+{SPACE}\(")
_KEY_AHEAD = re.compile(rf"[A-Za-z_][A-Za-z0-9_\-]*+{SPACE}=")

_KEPT = frozenset(
    {
        "sharding",
        "frontend_attributes",
        "backend_config",
        "statistics",
        "parameter_replication",
        "origin",
        "result_accuracy",
        "outer_dimension_partitions",
        "schedule_group",
        "execution_thread",
        "async_execution_thread",
        "async_execution_group",
        "window",
        "dim_labels",
        "feature_group_count",
        "batch_group_count",
        "padding_type",
        "literal",
        "schedule",
        "custom_call_schedule",
        "cross_program_prefetch_index",
        "lhs_sparsity",
        "rhs_sparsity",
        "sparsity",
        "delta_accuracy",
        "is_unordered",
        "unique_id",
    }
)
"""Attributes that real programs carry and no op here looks at: kept as text."""


class _Reader:
    """Text to records."""

    def __init__(self, source: Source) -> None:
        self.lexer = Lexer(source)
        self.shapes = ShapeReader(self.lexer)
        self.frames = StackFrames()

    def module(self) -> _Module:
        lexer = self.lexer
        config = ModuleConfig()
        heading = lexer.take(_MODULE)
        if heading is not None:
            while lexer.accept(","):
                self._module_attribute(config)
            self.frames = read_stack_frames(lexer)
        elif lexer.at("HloModule"):
            raise lexer.error("expected the name of the module behind HloModule")
        computations: dict[str, _Computation] = {}
        entry: _Computation | None = None
        while not lexer.at_end:
            computation = self._computation()
            if computation.name in computations:
                raise lexer.error(f"computation {computation.name!r} is defined twice", computation.offset)
            computations[computation.name] = computation
            if computation.is_entry:
                if entry is not None:
                    raise lexer.error("a second ENTRY computation", computation.offset)
                entry = computation
        if not computations:
            lexer.expected("HloModule or a computation" if heading is None else "a computation")
        entry = entry or list(computations.values())[-1]
        name = heading[1].strip('"') if heading is not None else f"module_{entry.name}"
        return _Module(name, config, computations, entry)

    def _module_attribute(self, config: ModuleConfig) -> None:
        lexer = self.lexer
        key = lexer.key()
        if key == "replica_count":
            config.num_replicas = self._count()
        elif key == "num_partitions":
            config.num_partitions = self._count()
        elif key == "is_scheduled":
            config.is_scheduled = self._flag()
        elif key == "input_output_alias":
            config.aliases = tuple(read_list(lexer, _read_input_output_alias))
        elif key == "buffer_donor":
            config.donors = tuple(BufferDonor(*donor) for donor in read_list(lexer, read_donor))
        elif key == "entry_computation_layout":
            lexer.expect("{")
            config.entry_layout = self.shapes.signature()
            lexer.expect("}", " after the entry computation's layout")
        else:
            config.extra[key] = lexer.verbatim()

    def _count(self) -> int:
        start = self.lexer.position
        count = self.lexer.integer()
        if count < 1:
            raise self.lexer.error(f"{count} is not a number of processes", start)
        return count

    def _flag(self) -> bool:
        if self.lexer.accept("true"):
            return True
        self.lexer.expect("false", " or 'true'")
        return False

    def _computation(self) -> _Computation:
        lexer = self.lexer
        offset = lexer.position
        heading = lexer.take(_HEADING)
        if heading is None:
            lexer.expected("a computation: [ENTRY] name [(parameters) -> shape] {")
        signature = self.shapes.signature() if lexer.at("(") else None
        computation = _Computation(offset, heading[2], heading[1] is not None, signature)
        lexer.expect("{", " before the instructions")
        while not lexer.accept("}"):
            self._instruction(computation)
        while lexer.accept(","):
            lexer.key()
            lexer.verbatim()
        if not computation.instructions:
            raise lexer.error(f"computation {computation.name!r} has no instructions", offset)
        computation.root = computation.root or computation.instructions[-1]
        return computation

    def _instruction(self, computation: _Computation) -> None:
        lexer = self.lexer
        offset = lexer.position
        assignment = lexer.take(_ASSIGNMENT)
        if assignment is None:
            lexer.expected("an instruction (name = shape opcode(operands)) or '}'")
        record = self._expression(computation, offset, assignment[2])
        if assignment[1] is not None:
            if computation.root is not None:
                raise lexer.error("a second ROOT instruction", offset)
            computation.root = record

    def _expression(self, computation: _Computation, offset: int, name: str) -> _Instruction:
        """`shape opcode(operands), attributes`, with the nested expressions put before it, without recursion."""
        lexer = self.lexer
        unfinished = [self._opening(offset, name)]
        while True:
            record = unfinished[-1]
            nested = self._operands(record)
            if nested:
                if len(unfinished) > MAX_NESTING:
                    raise lexer.error(f"operands are nested more than {MAX_NESTING} deep")
                unfinished.append(self._opening(lexer.position, ""))
                continue
            unfinished.pop()
            computation.instructions.append(record)
            if not unfinished:
                self._attributes(record)
                return record
            parent = unfinished[-1]
            parent.operands.append(record)
            parent.operand_shapes.append(None)
            parent.operand_offsets.append(record.offset)
            self._nested_attributes(record)

    def _opening(self, offset: int, name: str) -> _Instruction:
        """`shape opcode(`, and what stands between the parentheses if those are not operands."""
        lexer = self.lexer
        shape = self.shapes.optional()
        start = lexer.position
        match = lexer.take(_OPCODE)
        if match is None:
            lexer.expected("an operation: opcode(operands)" if shape else "a shape, or an operation: opcode(operands)")
        wrapped, step = _wrapped_op(match[1])
        spec = OPS.get(match[1]) or (OPS[f"async-{step}"] if wrapped is not None else None)
        if spec is None:
            raise lexer.error(f"there is no operation {match[1]!r}{suggestion(match[1], OPS)}", start)
        record = _Instruction(offset, name, spec, shape)
        record.wraps, record.is_update = (wrapped if step == "start" else None), step == "update"
        inner = record.text.inner
        if inner is not None:
            if inner.codec is LITERAL:
                if shape is None:
                    raise lexer.error("the shape of a constant must be written before it", start)
                record.attributes[inner.attribute] = read_literal(lexer, shape)
            else:
                record.attributes[inner.attribute] = inner.codec.read(lexer)
        return record

    def _operands(self, record: _Instruction) -> bool:
        """Reads operands up to `)`; stops before a nested expression, and says so."""
        lexer = self.lexer
        while not lexer.accept(")"):
            if record.operands:
                lexer.expect(",", " or ')' after an operand")
            start = lexer.position
            match = lexer.take(_OPERAND)
            shape = None
            if match is None:
                shape = self.shapes.optional()
                if _NESTED.match(lexer.text, lexer.position):
                    lexer.position = start
                    return True
                match = lexer.take(_OPERAND)
                if match is None:
                    lexer.reference("an operand")
                    lexer.expected("',' or ')' after an operand")
            record.operands.append(match[1])
            record.operand_shapes.append(shape)
            record.operand_offsets.append(start)
        return False

    def _nested_attributes(self, record: _Instruction) -> None:
        """Attributes of a nested expression: those of its keys that follow directly."""
        lexer = self.lexer
        table = record.text
        while lexer.at(","):
            before = lexer.position
            lexer.accept(",")
            match = _KEY_AHEAD.match(lexer.text, lexer.position)
            if match is None:
                lexer.position = before
                break
            self._attribute(record, table)
        self._complete(record, table)

    def _attributes(self, record: _Instruction) -> None:
        lexer = self.lexer
        table = record.text
        while lexer.accept(","):
            self._attribute(record, table)
        self._complete(record, table)

    def _attribute(self, record: _Instruction, table: OpText) -> None:
        lexer = self.lexer
        start = lexer.position
        key = lexer.key()
        text_field = table.fields.get(key)
        if text_field is not None:
            value = text_field.codec.read(lexer)
            if text_field.field:
                record.attributes.setdefault(text_field.attribute, {})[text_field.field] = value
            else:
                record.attributes[text_field.attribute] = value
        elif key in table.regions:
            self._called(record, table.regions[key])
        elif key == "metadata":
            record.metadata = self.frames.resolve(read_metadata(lexer))
        elif key == "control-predecessors":
            record.predecessors = [*read_list(lexer, _read_reference)]
        elif key in _KEPT:
            record.extra[key] = lexer.verbatim()
        else:
            known = [*table.keys, "metadata", "control-predecessors", *_KEPT]
            keys = ", ".join(table.keys) or "none of its own"
            message = f"{record.spec.name} has no attribute {key!r}{suggestion(key, known)} (it has: {keys})"
            raise lexer.error(message, start)

    def _called(self, record: _Instruction, position: int | None) -> None:
        if position is None:
            if self.lexer.at("{"):
                record.called = [*read_list(self.lexer, _read_reference)]
                return
            position = 0
        record.called += [("", record.offset)] * (position + 1 - len(record.called))
        record.called[position] = _read_reference(self.lexer)

    def _complete(self, record: _Instruction, table: OpText) -> None:
        """Puts attributes together that the text spells as several."""
        for attribute, kind in table.composed.items():
            parts = record.attributes.get(attribute, {})
            missing = [
                text_field.key
                for text_field in table.fields.values()
                if text_field.attribute == attribute and text_field.field not in parts and text_field.default is MISSING
            ]
            if missing:
                raise self.lexer.error(f"{record.spec.name} needs the attribute {missing[0]!r}", record.offset)
            record.attributes[attribute] = kind(**parts)


def _wrapped_op(opcode: str) -> tuple[OpSpec | None, str]:
    """The op whose asynchronous form `opcode` is by its name, as XLA writes wrappers, and the step; if no row of the
    table has that name."""
    name, _, step = opcode.rpartition("-")
    if opcode in OPS or step not in ("start", "update", "done"):
        return None, ""
    return OPS.get(name), step


def _read_reference(lexer: Lexer) -> tuple[str, int]:
    start = lexer.position
    return lexer.reference(), start


def _read_input_output_alias(lexer: Lexer) -> InputOutputAlias:
    output_index, parameter, parameter_index, kind = read_alias(lexer)
    return InputOutputAlias(output_index, parameter, parameter_index, kind in ("must-alias", "must_alias"))


# -- building ------------------------------------------------------------------------------------------------------


class _Builder:
    """Records to a graph."""

    def __init__(self, source: Source, records: _Module, check: bool) -> None:
        self._source = source
        self._records = records
        self._check = check
        self._finished: dict[str, Computation] = {}
        self._free = Names(records.computations)

    def module(self) -> HloModule:
        for record in self._callees_first():
            self._finished[record.name] = self._computation(record)
        return HloModule(self._records.name, self._finished[self._records.entry.name], self._records.config)

    def _callees_first(self) -> list[_Computation]:
        """Every computation behind those that it calls."""
        order: list[_Computation] = []
        done: set[str] = set()
        for start in self._records.computations.values():
            if start.name in done:
                continue
            stack = [(start, self._callees(start))]
            active = {start.name}
            while stack:
                record, rest = stack[-1]
                for callee, offset in rest:
                    if callee.name in active:
                        raise self._source.error(f"computation {callee.name!r} calls itself", offset)
                    if callee.name not in done:
                        stack.append((callee, self._callees(callee)))
                        active.add(callee.name)
                        break
                else:
                    stack.pop()
                    active.discard(record.name)
                    done.add(record.name)
                    order.append(record)
        return order

    def _callees(self, record: _Computation) -> Iterator[tuple[_Computation, int]]:
        computations = self._records.computations
        for instruction in record.instructions:
            for name, offset in instruction.called:
                if name not in computations:
                    message = f"there is no computation {name!r}{suggestion(name, computations)}"
                    if not name:
                        message = f"{instruction.spec.name} calls a computation that is not given"
                    raise self._source.error(message, offset)
                yield computations[name], offset

    def _computation(self, record: _Computation) -> Computation:
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
        item: _Instruction,
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
        self, item: _Instruction, spec: OpSpec, operands: list[Instruction], called: list[Computation]
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
        self, item: _Instruction, operands: list[Instruction], called: list[Computation]
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

    def _check_parameters(self, record: _Computation, computation: Computation) -> None:
        count = len(computation.parameters)
        for position, parameter in enumerate(computation.parameters):
            if parameter.attributes["number"] != position:
                message = f"{record.name} has {count} parameters, but none is parameter({position})"
                raise self._source.error(message, record.offset)
        if record.signature is not None and not record.signature.matches(computation.signature):
            message = f"{record.name} has type {computation.signature}, not {record.signature}"
            raise self._source.error(message, record.offset)


__all__ = ["parse"]
