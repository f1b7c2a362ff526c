"""A module as HLO text, in XLA's own syntax; and its canonical text, which does not depend on names.

The short form is what people read. The long form has `%` before names, signatures on computations, and metadata.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from xlapy.hlo.element_types import PRED
from xlapy.hlo.graph import Computation, HloModule, Instruction, ModuleConfig, no_module
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape
from xlapy.hlo.structure import callees_first
from xlapy.hlo.text.attributes import LITERAL, alias_to_text, donor_to_text, metadata_to_text
from xlapy.hlo.text.op_keys import TextField, op_text
from xlapy.support.naming import Names
from xlapy.support.records import Record
from xlapy.support.registry import Registry
from xlapy.support.text_forms import TEXT_FORMS

ELISION_LIMIT = 10
"""Constants with more elements are elided when large constants are not wanted."""

_INVALID = re.compile(r"[^A-Za-z0-9_.\-]")


@TEXT_FORMS.register("hlo")
def to_text(
    what: HloModule | Computation | Instruction,
    *,
    long: bool = False,
    layouts: bool = True,
    large_constants: bool = True,
) -> str:
    """HLO text. What the short form of a module leaves out is metadata; `parse` reads either form back.

    Text with `large_constants=False` does not parse where `{...}` stands for values."""
    printer = _Printer(_Style(long=long, layouts=layouts, large_constants=large_constants))
    if isinstance(what, HloModule):
        return "".join(line + "\n" for line in printer.module(what))
    if isinstance(what, Computation):
        return "".join(line + "\n" for line in printer.computation(what, ""))
    if not isinstance(what, Instruction):
        raise no_module(what, "written as text")
    return printer.instruction(what)


def canonical_text(module: HloModule) -> str:
    """A text that is the same for two modules exactly if they differ in names and metadata only."""
    printer = _Printer(_Style(long=False, layouts=True, hash_constants=True))
    order = callees_first(module)
    printer.name_by_position(order)
    lines = [", ".join(_config_to_text(module.config))]
    for computation in order:
        lines += printer.computation(computation, "ENTRY " if computation is module.entry else "")
    return "\n".join(lines)


def complete_text(module: HloModule) -> str:
    """A text that two modules share only if they are the same in all: names, metadata, and the constants, of which
    large ones are hashed."""
    printer = _Printer(_Style(long=True, layouts=True, hash_constants=True))
    return "\n".join(printer.module(module))


def structural_equal(a: HloModule, b: HloModule) -> bool:
    """Whether two modules are the same but for names and metadata."""
    return canonical_text(a) == canonical_text(b)


def fingerprint(module: HloModule) -> str:
    """A hash that is equal for structurally equal modules."""
    return hashlib.sha256(canonical_text(module).encode("utf-8", "surrogatepass")).hexdigest()


def _config_to_text(config: ModuleConfig) -> list[str]:
    """The attributes of the module's heading."""
    parts = []
    if config.is_scheduled:
        parts.append("is_scheduled=true")
    if config.aliases:
        kinds = {True: "must-alias", False: "may-alias"}
        aliases = (
            alias_to_text(a.output_index, a.parameter, a.parameter_index, kinds[a.must_alias]) for a in config.aliases
        )
        parts.append("input_output_alias={ " + ", ".join(aliases) + " }")
    if config.donors:
        donors = (donor_to_text(donor.parameter, donor.parameter_index) for donor in config.donors)
        parts.append("buffer_donor={ " + ", ".join(donors) + " }")
    if config.entry_layout is not None:
        parameters = ", ".join(shape.to_text(layouts=True) for shape in config.entry_layout.parameters)
        result = config.entry_layout.result.to_text(layouts=True)
        parts.append(f"entry_computation_layout={{({parameters})->{result}}}")
    if config.num_replicas != 1:
        parts.append(f"replica_count={config.num_replicas}")
    if config.num_partitions != 1:
        parts.append(f"num_partitions={config.num_partitions}")
    return parts + [f"{key}={value}" for key, value in config.extra.items()]


class _Style(Record):
    long: bool
    layouts: bool
    large_constants: bool = True
    hash_constants: bool = False


@dataclass(slots=True)
class _Printer:
    style: _Style
    computation_names: dict[Computation, str] = field(default_factory=dict)
    instruction_names: dict[Instruction, str] = field(default_factory=dict)
    taken: Names = field(default_factory=Names)

    # -- names -----------------------------------------------------------------------------------------------------

    def name_by_position(self, computations: Sequence[Computation]) -> None:
        for number, computation in enumerate(computations):
            self.computation_names[computation] = f"c{number}"
            for position, instruction in enumerate(computation.post_order()):
                self.instruction_names[instruction] = f"i{position}"

    def reference(self, instruction: Instruction) -> str:
        name = self.instruction_names.get(instruction)
        if name is None:
            name = self.instruction_names[instruction] = _valid(instruction.name)
        return "%" + name if self.style.long else name

    def computation_reference(self, computation: Computation) -> str:
        name = self.computation_names.get(computation)
        if name is None:
            name = self.computation_names[computation] = self.taken.unused(_valid(computation.name))
        return "%" + name if self.style.long else name

    def shape(self, shape: Shape) -> str:
        return shape.to_text(layouts=self.style.layouts)

    # -- module and computation ------------------------------------------------------------------------------------

    def module(self, module: HloModule) -> Iterator[str]:
        yield ", ".join([f"HloModule {_valid(module.name)}", *_config_to_text(module.config)])
        for computation in callees_first(module):
            yield ""
            yield from self.computation(computation, "ENTRY " if computation is module.entry else "")

    def computation(self, computation: Computation, prefix: str) -> Iterator[str]:
        order = computation.post_order()
        self._name_instructions(order)
        yield f"{prefix}{self.computation_reference(computation)}{self._signature(computation)} {{"
        for instruction in order:
            yield f"  {'ROOT ' if instruction.is_root else ''}{self.instruction(instruction)}"
        yield "}"

    def _name_instructions(self, order: Sequence[Instruction]) -> None:
        taken = Names()
        for instruction in order:
            if instruction not in self.instruction_names:
                self.instruction_names[instruction] = taken.unused(_valid(instruction.name))

    def _signature(self, computation: Computation) -> str:
        if not self.style.long:
            return ""
        parameters = (f"{self.reference(p)[1:]}: {p.shape.to_text()}" for p in computation.parameters)
        return f" ({', '.join(parameters)}) -> {computation.root.shape.to_text()}"

    # -- instruction -----------------------------------------------------------------------------------------------

    def instruction(self, instruction: Instruction) -> str:
        table = op_text(instruction.spec)
        if table.inner is not None:
            inside = self._value(table.inner, instruction.attributes[table.inner.attribute])
        else:
            inside = ", ".join(map(self.reference, instruction.operands))
        parts = [f"{self.reference(instruction)} = {self.shape(instruction.shape)} {instruction.opcode}({inside})"]
        parts += self._attributes(instruction)
        parts += self._regions(instruction)
        parts += [f"{key}={value}" for key, value in instruction.extra.items()]
        if instruction.control_predecessors:
            names = ", ".join(map(self.reference, instruction.control_predecessors))
            parts.append(f"control-predecessors={{{names}}}")
        if self.style.long and not instruction.metadata.is_empty:
            parts.append(f"metadata={metadata_to_text(instruction.metadata)}")
        return ", ".join(parts)

    def _attributes(self, instruction: Instruction) -> Iterator[str]:
        spec = instruction.spec
        table = op_text(spec)
        for text_field in table.fields.values():
            value = instruction.attributes[text_field.attribute]
            if text_field.field:
                value = getattr(value, text_field.field)
            if value != text_field.default:
                yield f"{text_field.key}={self._value(text_field, value)}"

    def _value(self, text_field: TextField, value: Any) -> str:
        if text_field.codec is LITERAL and value.elements is None:
            if self.style.hash_constants and value.array.nbytes > HASHED_BYTES:
                return "#" + hashlib.sha256(value.array.tobytes()).hexdigest()
            if not self.style.large_constants and value.array.size > ELISION_LIMIT:
                return "{...}"
        return text_field.codec.write(value)

    def _regions(self, instruction: Instruction) -> Iterator[str]:
        if not instruction.called:
            return
        write = REGIONS.get(instruction.opcode)
        named = write(instruction) if write is not None else _regions_by_key(instruction)
        for key, computations in named.items():
            names = [self.computation_reference(computation) for computation in computations]
            listed = op_text(instruction.spec).regions[key] is None
            yield f"{key}={{{', '.join(names)}}}" if listed else f"{key}={names[0]}"


HASHED_BYTES = 256
"""Larger constants enter the canonical text as a hash."""

REGIONS: Registry[Callable[[Instruction], Mapping[str, Sequence[Computation]]]] = Registry("region text", OPS)
"""Ops that choose between several spellings of what they call."""


def _regions_by_key(instruction: Instruction) -> dict[str, Sequence[Computation]]:
    regions = op_text(instruction.spec).regions
    return {
        key: instruction.called if position is None else instruction.called[position : position + 1]
        for key, position in regions.items()
    }


@REGIONS.register("conditional")
def _conditional_regions(instruction: Instruction) -> dict[str, Sequence[Computation]]:
    if instruction.operands[0].shape.element_type is PRED:
        return {"true_computation": instruction.called[:1], "false_computation": instruction.called[1:]}
    return {"branch_computations": instruction.called}


@REGIONS.register("custom-call")
def _custom_call_regions(instruction: Instruction) -> dict[str, Sequence[Computation]]:
    return {"called_computations": instruction.called}


_RESERVED = re.compile(
    r"(?:token|pred|opaque|tuple|(?:s|u|f|bf|c)[0-9]+|f[0-9]e[0-9]m[0-9](?:b[0-9]+)?(?:fn|fnu|fnuz)?|nan|inf|true|false)",
    re.ASCII,
)
"""Words that XLA takes for types or values wherever they stand."""


@lru_cache(maxsize=1 << 13)
def _valid(name: str) -> str:
    """The name with every character replaced that HLO text does not allow, and unlike a type."""
    valid = _INVALID.sub("_", name)
    if _RESERVED.fullmatch(valid):
        valid += "_"
    return valid if valid[:1].isalpha() or valid[:1] == "_" else f"_{valid}"


__all__ = ["canonical_text", "fingerprint", "structural_equal", "to_text"]
