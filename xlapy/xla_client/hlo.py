"""Modules, computations and instructions with the old interface's methods."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from xlapy.hlo import graph
from xlapy.hlo.drawing import to_dot
from xlapy.hlo.proto import module_from_bytes, module_to_bytes
from xlapy.hlo.proto.extras import frontend_attributes_from_text, frontend_attributes_to_text
from xlapy.hlo.proto.messages import FrontendAttributesProto, StringEntry
from xlapy.hlo.text import to_text
from xlapy.xla_client.shapes import Shape
from xlapy.xla_client.wrapping import Wrapper


class HloPrintOptions:
    """What the text of a module contains.

    xlapy has a short form and a long one, with metadata and `%` before names. Of the flags it looks at
    `print_large_constants`, `print_metadata` and `include_layout_in_shapes`; the others are kept."""

    def __init__(self) -> None:
        self.print_large_constants = False
        self.print_metadata = True
        self.include_layout_in_shapes = True
        self.print_backend_config = True
        self.print_result_shape = True
        self.print_operand_shape = False
        self.print_operand_names = True
        self.print_ids = True
        self.print_extra_attributes = True
        self.print_program_shape = True
        self.print_percent = True
        self.print_control_dependencies = True
        self.compact_operands = False
        self.canonicalize_instruction_names = False
        self.canonicalize_computations = False
        self.indent_amount = 0
        self.is_in_nested_computation = False

    @staticmethod
    def short_parsable() -> HloPrintOptions:
        """The short form, with all constants, so that it can be read back."""
        options = HloPrintOptions()
        options.print_large_constants = True
        options.print_metadata = False
        return options

    canonical = short_parsable
    fingerprint = short_parsable


class HloInstruction(Wrapper):
    """An instruction. Two of these are equal if they stand for the same one."""

    __slots__ = ("_instruction",)

    def __init__(self, instruction: graph.Instruction) -> None:
        self._instruction = instruction

    def unwrapped(self) -> graph.Instruction:
        return self._instruction

    @property
    def name(self) -> str:
        return self._instruction.name

    @property
    def opcode(self) -> str:
        return self._instruction.opcode

    @property
    def shape(self) -> Shape:
        return Shape(self._instruction.shape)

    def operands(self) -> list[HloInstruction]:
        return list(map(HloInstruction, self._instruction.operands))

    def users(self) -> list[HloInstruction]:
        return list(map(HloInstruction, self._instruction.users))

    def get_frontend_attribute(self, key: str) -> str | None:
        return self._frontend_attributes().get(key)

    def set_frontend_attribute(self, key: str, value: str) -> None:
        attributes = {**self._frontend_attributes(), key: value}
        proto = FrontendAttributesProto([StringEntry(*item) for item in attributes.items()])
        self._instruction.extra["frontend_attributes"] = frontend_attributes_to_text(proto)

    def _frontend_attributes(self) -> dict[str, str]:
        text = self._instruction.extra.get("frontend_attributes", "{}")
        return {entry.key: entry.value for entry in frontend_attributes_from_text(text).map}

    def to_string(self, options: HloPrintOptions | None = None) -> str:
        return to_text(self._instruction, **_style(options))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HloInstruction) and other._instruction is self._instruction

    def __hash__(self) -> int:
        return hash(self._instruction)

    __repr__ = to_string


class HloComputation(Wrapper):
    """A computation of a module."""

    __slots__ = ("_computation",)

    def __init__(self, computation: graph.Computation) -> None:
        self._computation = computation

    def unwrapped(self) -> graph.Computation:
        return self._computation

    @property
    def name(self) -> str:
        return self._computation.name

    def instructions(self) -> list[HloInstruction]:
        """The instructions, each behind its operands."""
        return list(map(HloInstruction, self._computation.post_order()))

    def to_string(self, options: HloPrintOptions | None = None) -> str:
        return to_text(self._computation, **_style(options))

    def render_html(self, filename: str) -> None:
        """Writes a page with the text of the computation, and its graph for DOT viewers."""
        dot = to_dot(graph.HloModule(self.name, self._computation))
        title = html.escape(self.name)
        Path(filename).write_text(
            f"<!DOCTYPE html>\n<meta charset='utf-8'>\n<title>{title}</title>\n<h1>{title}</h1>\n"
            f"<pre>{html.escape(self.to_string())}</pre>\n<h2>DOT</h2>\n<pre>{html.escape(dot)}</pre>\n",
            encoding="utf-8",
        )

    __repr__ = to_string


class HloModule(Wrapper):
    """A module, which passes of `_xla` change in place."""

    __slots__ = ("_module",)

    def __init__(self, module: graph.HloModule) -> None:
        self._module = module

    def unwrapped(self) -> graph.HloModule:
        return self._module

    @property
    def module(self) -> graph.HloModule:
        """xlapy's own module: what `xlapy.compile` and `xlapy.evaluate` look for."""
        return self._module

    @property
    def name(self) -> str:
        return self._module.name

    @property
    def spmd_output_sharding(self) -> None:
        """None: programs are not partitioned."""
        return None

    @property
    def spmd_parameters_shardings(self) -> None:
        """None: programs are not partitioned."""
        return None

    def to_string(self, options: HloPrintOptions | None = None) -> str:
        return to_text(self._module, **_style(options))

    def computations(self) -> list[HloComputation]:
        """Callees before callers, the entry last."""
        return list(map(HloComputation, self._module.computations()))

    def make_nonfusion_computations(self) -> list[HloComputation]:
        """The computations that are no bodies of fusions."""
        fused = {
            called
            for instruction in self._module.instructions()
            if instruction.opcode == "fusion"
            for called in instruction.called
        }
        return [HloComputation(one) for one in self._module.computations() if one not in fused]

    def as_serialized_hlo_module_proto(self) -> bytes:
        """The bytes of an HloModuleProto, which XLA reads, too."""
        return module_to_bytes(self._module)

    @staticmethod
    def from_serialized_hlo_module_proto(serialized: bytes) -> HloModule:
        """The module in the bytes of an HloModuleProto. Raises ParseError or ShapeError where there is none."""
        return HloModule(module_from_bytes(serialized))

    def __repr__(self) -> str:
        return self.to_string()


def _style(options: HloPrintOptions | None) -> dict[str, Any]:
    chosen = options or HloPrintOptions()
    return {
        "long": chosen.print_metadata,
        "layouts": chosen.include_layout_in_shapes,
        "large_constants": chosen.print_large_constants,
    }


def hlo_module_to_dot_graph(module: HloModule) -> str:
    """The graph of a module in DOT."""
    return to_dot(module.unwrapped())
