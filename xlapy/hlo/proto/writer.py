"""A module as an HloModuleProto."""

from __future__ import annotations

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.graph import Computation, HloModule, Instruction, ModuleConfig
from xlapy.hlo.proto.attributes import codecs_for
from xlapy.hlo.proto.extras import EXTRAS, frontend_attributes_from_text
from xlapy.hlo.proto.literals import literal_to_proto
from xlapy.hlo.proto.messages import (
    AliasEntryProto,
    BufferDonorProto,
    ComputationProto,
    DonorEntryProto,
    InputOutputAliasProto,
    InstructionProto,
    InstructionSequenceProto,
    ModuleProto,
    OpMetadataProto,
    ScheduleProto,
    SequenceEntry,
)
from xlapy.hlo.proto.shapes import shape_to_proto, signature_to_proto
from xlapy.support.naming import Names
from xlapy.support.protobuf import encode

REGION_ORDER = {"while": (1, 0)}
"""Ops whose called computations XLA lists in another order than ours; each is its own inverse."""

NUMERIC_METADATA = ("source_end_line", "source_column", "source_end_column", "stack_frame_id")
TEXTUAL_METADATA = ("deduplicated_name", "scheduling_name")
MAY_ALIAS, MUST_ALIAS = 1, 2


def module_to_bytes(module: HloModule) -> bytes:
    """The serialized HloModuleProto of a module. The grid (replicas and partitions) has no place in it."""
    return encode(_Writer(module).module())


class _Writer:
    """Numbers computations and instructions from 1 on, over the whole module, and makes the names unique.

    The entry's instructions keep their names; those of called computations give way."""

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._computations = module.computations()
        self._computation_ids = {computation: index for index, computation in enumerate(self._computations, 1)}
        self._ids: dict[Instruction, int] = {}
        taken = Names()
        self._names = {
            instruction: taken.unused(instruction.name)
            for computation in reversed(self._computations)
            for instruction in computation.post_order()
        }
        self._computation_names = Names()
        self._fused = {
            called
            for instruction in module.instructions()
            if instruction.opcode == "fusion"
            for called in instruction.called
        }

    def module(self) -> ModuleProto:
        module, config = self._module, self._module.config
        entry = module.entry
        proto = ModuleProto(module.name)
        proto.computations = [self._computation(computation) for computation in self._computations]
        proto.entry_computation_name = proto.computations[-1].name
        proto.entry_computation_id = self._computation_ids[entry]
        names = [self._names[parameter] for parameter in entry.parameters]
        proto.host_program_shape = signature_to_proto(config.entry_layout or entry.signature, names)
        proto.is_dynamic = not all(i.shape.is_static for i in module.instructions())
        if config.is_scheduled:
            proto.schedule = self._schedule()
        if config.aliases:
            proto.input_output_alias = _aliases(config)
        if config.donors:
            proto.buffer_donor = BufferDonorProto(
                [DonorEntryProto(donor.parameter, list(donor.parameter_index)) for donor in config.donors]
            )
        attributes = config.extra.get("frontend_attributes")
        if attributes is not None:
            proto.frontend_attributes = frontend_attributes_from_text(attributes)
        return proto

    def _computation(self, computation: Computation) -> ComputationProto:
        number = self._computation_ids[computation]
        order = computation.post_order()
        for instruction in order:
            self._ids[instruction] = len(self._ids) + 1
        names = [self._names[parameter] for parameter in computation.parameters]
        return ComputationProto(
            self._computation_names.unused(computation.name),
            [self._instruction(instruction) for instruction in order],
            signature_to_proto(computation.signature, names),
            number,
            self._ids[computation.root],
            computation in self._fused,
            "main",
        )

    def _instruction(self, instruction: Instruction) -> InstructionProto:
        proto = InstructionProto(self._names[instruction], instruction.opcode, shape_to_proto(instruction.shape))
        proto.id = self._ids[instruction]
        proto.operand_ids = [self._ids[operand] for operand in instruction.operands]
        proto.control_predecessor_ids = [self._ids[predecessor] for predecessor in instruction.control_predecessors]
        order = REGION_ORDER.get(instruction.opcode, range(len(instruction.called)))
        proto.called_computation_ids = [self._computation_ids[instruction.called[position]] for position in order]
        for name, codec in codecs_for(instruction.spec).items():
            codec.write(proto, instruction.attributes[name])
        if instruction.opcode == "constant":
            proto.literal = literal_to_proto(instruction.attributes["literal"], instruction.shape)
        if instruction.opcode == "topk":
            proto.is_stable = True  # as it is here; newer releases of XLA ask
        for key, text in instruction.extra.items():
            if key in EXTRAS:
                EXTRAS[key].write(proto, text)
        if not instruction.metadata.is_empty:
            proto.metadata = _metadata(instruction.metadata)
        return proto

    def _schedule(self) -> ScheduleProto:
        """The order in which the instructions are listed."""
        return ScheduleProto(
            [
                SequenceEntry(number, InstructionSequenceProto([self._ids[i] for i in computation.post_order()]))
                for computation, number in self._computation_ids.items()
                if computation not in self._fused
            ]
        )


def _aliases(config: ModuleConfig) -> InputOutputAliasProto:
    return InputOutputAliasProto(
        [
            AliasEntryProto(
                list(alias.output_index),
                alias.parameter,
                list(alias.parameter_index),
                MUST_ALIAS if alias.must_alias else MAY_ALIAS,
            )
            for alias in config.aliases
        ]
    )


def _metadata(metadata: OpMetadata) -> OpMetadataProto:
    proto = OpMetadataProto(metadata.op_type, metadata.op_name, metadata.source_file, metadata.source_line)
    for key, value in metadata.extra:
        if key in NUMERIC_METADATA and value.isdecimal() and len(value) < 10:
            setattr(proto, key, int(value))
        elif key in TEXTUAL_METADATA:
            setattr(proto, key, value.strip('"'))
    return proto
