"""What HLO text says, one record for each instruction: names instead of references, nothing inferred."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xlapy.hlo.attributes import OpMetadata
from xlapy.hlo.graph import NO_METADATA, ModuleConfig
from xlapy.hlo.ops import OpSpec
from xlapy.hlo.shape import Shape, Signature
from xlapy.hlo.text.op_keys import OpText, op_text


@dataclass(slots=True)
class InstructionRecord:
    """One instruction as read. Operands are names, or the records of nested expressions; offsets are places in the
    text, for errors."""

    offset: int
    name: str
    spec: OpSpec
    shape: Shape | None
    operands: list[str | InstructionRecord] = field(default_factory=list)
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
class ComputationRecord:
    """One computation as read: with a signature if the text states one."""

    offset: int
    name: str
    is_entry: bool
    signature: Signature | None
    instructions: list[InstructionRecord] = field(default_factory=list)
    root: InstructionRecord | None = None


@dataclass(slots=True)
class ModuleRecord:
    """A module as read, its computations by name."""

    name: str
    config: ModuleConfig
    computations: dict[str, ComputationRecord]
    entry: ComputationRecord
