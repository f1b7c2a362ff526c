"""An HloModuleProto as a module.

Whatever the bytes are, the result is a module that its ops' rules allow, or a ParseError or ShapeError that names the
instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xlapy.hlo.attributes import ComparisonType, OpMetadata
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
from xlapy.hlo.proto.attributes import codecs_for
from xlapy.hlo.proto.extras import EXTRAS, frontend_attributes_to_text
from xlapy.hlo.proto.messages import (
    ComputationProto,
    HloProto,
    InputOutputAliasProto,
    InstructionProto,
    ModuleProto,
    OpMetadataProto,
    ProgramShapeProto,
    StackFrameIndexProto,
)
from xlapy.hlo.proto.shapes import shape_from_proto, signature_from_proto
from xlapy.hlo.proto.writer import MUST_ALIAS, NUMERIC_METADATA, REGION_ORDER, TEXTUAL_METADATA
from xlapy.hlo.shape import Shape, Signature
from xlapy.hlo.text.lexer import quote
from xlapy.hlo.text.stack_frames import StackFrames
from xlapy.support.errors import ParseError, ShapeError, XlaError
from xlapy.support.naming import Names
from xlapy.support.protobuf import decode
from xlapy.support.source import suggestion
from xlapy.support.wording import excerpt


def module_from_bytes(data: bytes) -> HloModule:
    """The module that a serialized HloModuleProto holds, or an HloProto around one.

    Raises ParseError for bytes that hold none, and ShapeError for an instruction that breaks its op's rules."""
    try:
        proto = decode(ModuleProto, data)
    except ParseError as error:
        wrapped = _wrapped(data)
        if wrapped is None:
            raise error from None
        proto = wrapped
    if not proto.computations:
        proto = _wrapped(data) or proto
    return _Reader(proto).module()


def _wrapped(data: bytes) -> ModuleProto | None:
    """The module in an HloProto."""
    try:
        return decode(HloProto, data).hlo_module
    except ParseError:
        return None


class _Reader:
    def __init__(self, proto: ModuleProto) -> None:
        self._proto = proto
        self._frames = _stack_frames(proto.stack_frame_index)
        self._computations: dict[int, Computation] = {}
        self._names = Names()
        entries = proto.schedule.sequences if proto.schedule is not None else []
        self._schedule = {entry.key: entry.value.instruction_ids for entry in entries if entry.value is not None}

    def module(self) -> HloModule:
        proto = self._proto
        for computation in proto.computations:
            if computation.id in self._computations:
                raise ParseError(f"two computations have the id {computation.id}")
            self._computations[computation.id] = self._computation(computation)
        entry = self._computations.get(proto.entry_computation_id)
        if entry is None:
            raise ParseError(
                "these bytes hold no HloModuleProto, or one without an entry computation "
                f"({len(self._computations)} computations, none of them with the id {proto.entry_computation_id})"
            )
        return HloModule(proto.name or entry.name, entry, self._config(entry.signature))

    def _config(self, signature: Signature) -> ModuleConfig:
        proto = self._proto
        config = ModuleConfig(is_scheduled=proto.schedule is not None)
        config.entry_layout = _entry_layout(proto.host_program_shape, signature)
        config.aliases = tuple(_aliases(proto.input_output_alias))
        config.donors = tuple(
            BufferDonor(entry.parameter_number, tuple(entry.parameter_shape_index))
            for entry in (proto.buffer_donor.entries if proto.buffer_donor is not None else ())
        )
        attributes = frontend_attributes_to_text(proto.frontend_attributes)
        if attributes:
            config.extra["frontend_attributes"] = attributes
        return config

    def _computation(self, proto: ComputationProto) -> Computation:
        computation = Computation(self._names.unused(proto.name or f"computation.{proto.id}"))
        instructions: dict[int, Instruction] = {}
        numbers: set[int] = set()
        for item in self._in_order(proto):
            try:
                if item.id in instructions:
                    raise ParseError(f"two instructions have the id {item.id}")
                instruction = self._instruction(computation, item, instructions)
            except XlaError as error:
                raise error.add_context(
                    subject=item.opcode or "an instruction", where=f"instruction {item.name} of {computation.name}"
                ) from None
            instructions[item.id] = instruction
            if instruction.opcode == "parameter":
                numbers.add(instruction.attributes["number"])
        if len(numbers) != len(computation.parameters) or numbers != set(range(len(numbers))):
            listed = sorted(parameter.attributes["number"] for parameter in computation.parameters)
            raise ParseError(f"the parameters of {computation.name} have the numbers {listed}")
        root = instructions.get(proto.root_id)
        if root is None:
            raise ParseError(f"{computation.name} has no root: there is no instruction with the id {proto.root_id}")
        computation.set_root(root)
        return computation

    def _in_order(self, proto: ComputationProto) -> Sequence[InstructionProto]:
        """The instructions as the schedule has them, if there is one for the computation, or as they are listed."""
        sequence = self._schedule.get(proto.id)
        if sequence is None:
            return proto.instructions
        items = {item.id: item for item in proto.instructions}
        if sorted(sequence) != sorted(items):
            raise ParseError(f"the schedule of {proto.name} does not have each of its instructions once")
        return [items[number] for number in sequence]

    def _instruction(
        self, computation: Computation, proto: InstructionProto, instructions: dict[int, Instruction]
    ) -> Instruction:
        spec = OPS.get(proto.opcode)
        if spec is None:
            raise ParseError(f"there is no operation {excerpt(proto.opcode)!r}{suggestion(proto.opcode, OPS)}")
        operands = [_numbered(instructions, number, "operand") for number in proto.operand_ids]
        called = [
            _numbered(self._computations, number, "called computation") for number in proto.called_computation_ids
        ]
        order = REGION_ORDER.get(spec.name, ())
        if len(order) == len(called):
            called = [called[position] for position in order]
        shape, attributes = _typed(spec, proto, operands, called)
        name = proto.name or spec.name
        instruction = computation.add_unchecked(
            spec, shape, operands, attributes, called, name, self._metadata(proto.metadata)
        )
        for number in proto.control_predecessor_ids:
            computation.add_control_edge(_numbered(instructions, number, "control predecessor"), instruction)
        extra = {key: entry.read(proto) for key, entry in EXTRAS.items()}
        instruction.extra = {key: text for key, text in extra.items() if text}
        return instruction

    def _metadata(self, proto: OpMetadataProto | None) -> OpMetadata:
        if proto is None:
            return NO_METADATA
        numbers = [(key, str(getattr(proto, key))) for key in NUMERIC_METADATA if getattr(proto, key)]
        texts = [(key, quote(getattr(proto, key))) for key in TEXTUAL_METADATA if getattr(proto, key)]
        metadata = OpMetadata(proto.op_type, proto.op_name, proto.source_file, proto.source_line, (*numbers, *texts))
        return self._frames.resolve(metadata)


def _numbered(items: dict[int, Any], number: int, what: str) -> Any:
    if number not in items:
        raise ParseError(f"its {what} has the id {number}, and nothing before it has")
    return items[number]


def _typed(
    spec: OpSpec, proto: InstructionProto, operands: list[Instruction], called: list[Computation]
) -> tuple[Shape, dict[str, Any]]:
    """The shape, checked against the rule of the op, and the attributes."""
    attributes = {name: codec.read(proto) for name, codec in codecs_for(spec).items()}
    if proto.shape is None:
        raise ParseError("it has no shape")
    shape = shape_from_proto(proto.shape)
    compared = operands[0].shape.element_type if operands else None
    if attributes.get("type") is ComparisonType.TOTALORDER and compared is not None and not compared.is_float:
        attributes["type"] = None  # the only order that integers have
    signatures = [computation.signature for computation in called]
    inferred = spec.infer([operand.shape for operand in operands], attributes, signatures, shape)
    if not shape.matches(inferred):
        raise ShapeError(f"{spec.name}.result-shape", f"{shape} is stated, but the result is {inferred}")
    return shape, attributes


def _entry_layout(proto: ProgramShapeProto | None, signature: Signature) -> Signature | None:
    """The layouts of the entry's parameters and result, if they are not the ones that these have anyway."""
    if proto is None:
        return None
    stated = signature_from_proto(proto)
    if not stated.matches(signature):
        raise ParseError(f"the module's entry is stated as {stated}, and is {signature}")
    return stated if stated != signature else None


def _aliases(proto: InputOutputAliasProto | None) -> Iterable[InputOutputAlias]:
    for entry in proto.entries if proto is not None else ():
        yield InputOutputAlias(
            tuple(entry.output_shape_index),
            entry.parameter_number,
            tuple(entry.parameter_shape_index),
            entry.kind == MUST_ALIAS,
        )


def _stack_frames(proto: StackFrameIndexProto | None) -> StackFrames:
    frames = StackFrames()
    if proto is not None:
        frames.files = dict(enumerate(proto.file_names, 1))
        frames.locations = {
            number: {"file_name_id": location.file_name_id, "line": location.line}
            for number, location in enumerate(proto.file_locations, 1)
        }
        frames.frames = {
            number: {"file_location_id": frame.file_location_id} for number, frame in enumerate(proto.stack_frames, 1)
        }
    return frames
