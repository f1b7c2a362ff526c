"""HLO text to records, knowing nothing but the op table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING
from typing import Any

from xlapy.hlo.graph import BufferDonor, InputOutputAlias, ModuleConfig
from xlapy.hlo.ops import OPS, OpSpec
from xlapy.hlo.shape import MAX_NESTING, Signature
from xlapy.hlo.text.attributes import LITERAL, read_alias, read_donor, read_list, read_metadata
from xlapy.hlo.text.lexer import NAME, SPACE, Lexer
from xlapy.hlo.text.literals import read_literal
from xlapy.hlo.text.op_keys import OpText
from xlapy.hlo.text.records import ComputationRecord, InstructionRecord, ModuleRecord
from xlapy.hlo.text.shapes import ShapeReader
from xlapy.hlo.text.stack_frames import StackFrames, read_stack_frames
from xlapy.support.source import Source, suggestion

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
        "is_stable",  # of a topk: it is stable here
        "is_unordered",
        "unique_id",
    }
)
"""Attributes that real programs carry and no op here looks at: kept as text."""

_ONLY = {
    "has_dynamic_root": "false",  # of a collective-broadcast: an operand would say who sends
}
"""Attributes of which one value is taken, which says nothing."""


class Reader:
    """Text to records."""

    def __init__(self, source: Source) -> None:
        self.lexer = Lexer(source)
        self.shapes = ShapeReader(self.lexer)
        self.frames = StackFrames()

    def module(self) -> ModuleRecord:
        lexer = self.lexer
        config = ModuleConfig()
        heading = lexer.take(_MODULE)
        if heading is not None:
            while lexer.accept(","):
                self._module_attribute(config)
            self.frames = read_stack_frames(lexer)
        elif lexer.at("HloModule"):
            raise lexer.error("expected the name of the module behind HloModule")
        computations: dict[str, ComputationRecord] = {}
        entry: ComputationRecord | None = None
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
        return ModuleRecord(name, config, computations, entry)

    def _module_attribute(self, config: ModuleConfig) -> None:
        key = self.lexer.key()
        known = _MODULE_ATTRIBUTES.get(key)
        if known is None:
            config.extra[key] = self.lexer.verbatim()
        else:
            name, read = known
            setattr(config, name, read(self.lexer))

    def _computation(self) -> ComputationRecord:
        lexer = self.lexer
        offset = lexer.position
        heading = lexer.take(_HEADING)
        if heading is None:
            lexer.expected("a computation: [ENTRY] name [(parameters) -> shape] {")
        signature = self.shapes.signature() if lexer.at("(") else None
        computation = ComputationRecord(offset, heading[2], heading[1] is not None, signature)
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

    def _instruction(self, computation: ComputationRecord) -> None:
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

    def _expression(self, computation: ComputationRecord, offset: int, name: str) -> InstructionRecord:
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

    def _opening(self, offset: int, name: str) -> InstructionRecord:
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
        record = InstructionRecord(offset, name, spec, shape)
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

    def _operands(self, record: InstructionRecord) -> bool:
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

    def _nested_attributes(self, record: InstructionRecord) -> None:
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

    def _attributes(self, record: InstructionRecord) -> None:
        lexer = self.lexer
        table = record.text
        while lexer.accept(","):
            self._attribute(record, table)
        self._complete(record, table)

    def _attribute(self, record: InstructionRecord, table: OpText) -> None:
        lexer = self.lexer
        start = lexer.position
        key = lexer.key()
        text_field = table.read.get(key)
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
        elif key in _ONLY:
            value = lexer.verbatim()
            if value != _ONLY[key]:
                raise lexer.error(f"{key}={value} is not supported, only {key}={_ONLY[key]}", start)
        else:
            known = [*table.keys, "metadata", "control-predecessors", *_KEPT]
            keys = ", ".join(table.keys) or "none of its own"
            message = f"{record.spec.name} has no attribute {key!r}{suggestion(key, known)} (it has: {keys})"
            raise lexer.error(message, start)

    def _called(self, record: InstructionRecord, position: int | None) -> None:
        if position is None:
            if self.lexer.at("{"):
                record.called = [*read_list(self.lexer, _read_reference)]
                return
            position = 0
        record.called += [("", record.offset)] * (position + 1 - len(record.called))
        record.called[position] = _read_reference(self.lexer)

    def _complete(self, record: InstructionRecord, table: OpText) -> None:
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


# -- attributes of modules ---------------------------------------------------------------------------------------------


def _read_count(lexer: Lexer) -> int:
    start = lexer.position
    count = lexer.integer()
    if count < 1:
        raise lexer.error(f"{count} is not a number of processes", start)
    return count


def _read_flag(lexer: Lexer) -> bool:
    if lexer.accept("true"):
        return True
    lexer.expect("false", " or 'true'")
    return False


def _read_aliases(lexer: Lexer) -> tuple[InputOutputAlias, ...]:
    return tuple(read_list(lexer, _read_input_output_alias))


def _read_input_output_alias(lexer: Lexer) -> InputOutputAlias:
    output_index, parameter, parameter_index, kind = read_alias(lexer)
    return InputOutputAlias(output_index, parameter, parameter_index, kind in ("must-alias", "must_alias"))


def _read_donors(lexer: Lexer) -> tuple[BufferDonor, ...]:
    return tuple(BufferDonor(*donor) for donor in read_list(lexer, read_donor))


def _read_entry_layout(lexer: Lexer) -> Signature:
    lexer.expect("{")
    layout = ShapeReader(lexer).signature()
    lexer.expect("}", " after the entry computation's layout")
    return layout


_MODULE_ATTRIBUTES: dict[str, tuple[str, Callable[[Lexer], Any]]] = {
    "replica_count": ("num_replicas", _read_count),
    "num_partitions": ("num_partitions", _read_count),
    "is_scheduled": ("is_scheduled", _read_flag),
    "input_output_alias": ("aliases", _read_aliases),
    "buffer_donor": ("donors", _read_donors),
    "entry_computation_layout": ("entry_layout", _read_entry_layout),
}
"""For each key that is looked at, the field of a ModuleConfig and what reads its value."""
