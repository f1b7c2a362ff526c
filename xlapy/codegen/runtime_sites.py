"""Call sites of the runtime: one row per instruction that native code cannot do alone.

A row says, as plain data, what is called, with which buffers, under which attributes. Which leaves of which
instructions the buffers are is decided here too, by op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xlapy.codegen.specs import array_spec, tree_of
from xlapy.hlo.attributes import CustomCallApiVersion, ReplicaGroups
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.leaves import SAME_VALUE, Leaf, array_leaves, leaf_count, leaf_shape, result_leaves
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.process_groups import group_mode
from xlapy.hlo.text.backend_config import custom_call_config, typed_config
from xlapy.support.registry import Registry
from xlapy_runtime.program import RuntimeCall
from xlapy_runtime.records import Record


class Buffers(Record):
    """The array leaves that a call reads and writes, in order."""

    operands: Sequence[Leaf]
    results: Sequence[Leaf]


@dataclass(slots=True)
class RuntimeSites:
    """The sites of one program, numbered as their calls are written. `combine` names the kernel of a reduction."""

    combine: Callable[[Computation, Instruction], str]
    calls: list[RuntimeCall] = field(default_factory=list)
    numbers: dict[Instruction, int] = field(default_factory=dict)

    def site(self, instruction: Instruction) -> int:
        """The number of the instruction's call site."""
        if instruction not in self.numbers:
            attributes = (
                dict(ATTRIBUTES[instruction.opcode](self, instruction)) if instruction.opcode in ATTRIBUTES else {}
            )
            if instruction.spec.has(Trait.DONE):
                attributes["start"] = self.numbers[_start_of(instruction)]
            buffers = _buffers(instruction)
            self.numbers[instruction] = len(self.calls)
            self.calls.append(
                RuntimeCall(
                    kind=instruction.opcode,
                    label=instruction.name,
                    where=instruction.metadata.location(),
                    operands=tuple(array_spec(_shape(leaf)) for leaf in buffers.operands),
                    results=tuple(array_spec(_shape(leaf)) for leaf in buffers.results),
                    attributes=attributes,
                )
            )
        return self.numbers[instruction]

    def buffers(self, instruction: Instruction) -> list[Leaf]:
        """The leaves whose addresses native code passes: those read, then those written."""
        buffers = _buffers(instruction)
        return [*buffers.operands, *buffers.results]


def _shape(leaf: Leaf) -> Any:
    return leaf_shape(leaf[0].shape, leaf[1])


def _start_of(done: Instruction) -> Instruction:
    """The start op whose result `done` waits for."""
    start = done.operands[0]
    while start.opcode in ("get-tuple-element", "tuple") or start.opcode in SAME_VALUE:
        start = start.operands[0]
    return start


def _buffers(instruction: Instruction) -> Buffers:
    """Everything in, everything out, unless the op differs."""
    chosen = BUFFERS.get(instruction.opcode)
    if chosen is not None:
        return chosen(instruction)
    if instruction.spec.has(Trait.DONE):
        return Buffers((), ())  # its start op has passed everything
    operands = [leaf for operand in instruction.operands for leaf in array_leaves(operand)]
    return Buffers(operands, array_leaves(instruction))


BUFFERS: Registry[Callable[[Instruction], Buffers]] = Registry("runtime buffers", OPS)
ATTRIBUTES: Registry[Callable[[RuntimeSites, Instruction], dict[str, Any]]] = Registry("runtime attributes", OPS)


@BUFFERS.register("send")
def _send_buffers(instruction: Instruction) -> Buffers:
    return Buffers(array_leaves(instruction.operands[0]), ())


@BUFFERS.register("recv")
def _recv_buffers(instruction: Instruction) -> Buffers:
    return Buffers((), ())


@BUFFERS.register("recv-done")
def _recv_done_buffers(instruction: Instruction) -> Buffers:
    return Buffers((), array_leaves(instruction))


@ATTRIBUTES.register("infeed")
def _infeed(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return {"result_tree": tree_of(instruction.shape.parts[0])}


@ATTRIBUTES.register("outfeed")
def _outfeed(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return {"operand_tree": tree_of(instruction.operands[0].shape)}


def _channel(instruction: Instruction) -> dict[str, Any]:
    return {name: instruction.attributes[name] for name in ("channel_id", "is_host_transfer")}


@ATTRIBUTES.register("send")
def _send(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return {**_channel(instruction), "operand_tree": tree_of(instruction.operands[0].shape)}


@ATTRIBUTES.register("recv")
def _recv(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return {**_channel(instruction), "result_tree": tree_of(instruction.shape.parts[0])}


def _started_buffers(instruction: Instruction) -> Buffers:
    """A start op whose result is a tuple of operands and results."""
    operands = [leaf for operand in instruction.operands for leaf in array_leaves(operand)]
    numbers = range(leaf_count(instruction.shape))[result_leaves(instruction)]
    return Buffers(operands, [(instruction, leaf) for leaf in numbers])


for _name, _spec in OPS.items():
    if _spec.start_of and "async_shape" in _spec.options:
        BUFFERS.add(_name, _started_buffers)


@ATTRIBUTES.register("all-reduce", "all-reduce-start")
def _all_reduce(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    computation = instruction.called[0]
    kernels = tuple(sites.combine(computation, operand) for operand in instruction.operands)
    return {**_groups(instruction), "combine": kernels}


@ATTRIBUTES.register("reduce-scatter", "reduce-scatter-start")
def _reduce_scatter(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return {**_all_reduce(sites, instruction), "scatter_dimension": instruction.attributes["dimension"]}


@ATTRIBUTES.register("all-gather", "all-gather-start")
def _all_gather(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return {**_groups(instruction), "all_gather_dimension": instruction.attributes["dimension"]}


@ATTRIBUTES.register("all-to-all", "all-to-all-start")
def _all_to_all(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return {**_groups(instruction), "dimension": instruction.attributes["dimension"]}


@ATTRIBUTES.register("collective-broadcast", "collective-broadcast-start")
def _collective_broadcast(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return _groups(instruction)


@ATTRIBUTES.register("collective-permute", "collective-permute-start")
def _collective_permute(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    return {
        **_channel_and_mode(instruction),
        "source_target_pairs": instruction.attributes["source_target_pairs"].pairs,
    }


def _groups(instruction: Instruction) -> dict[str, Any]:
    groups: ReplicaGroups = instruction.attributes["replica_groups"]
    return {**_channel_and_mode(instruction), "replica_groups": groups.groups}


def _channel_and_mode(instruction: Instruction) -> dict[str, Any]:
    channel = instruction.attributes["channel_id"]
    by_partition = bool(instruction.spec.options.get("channel_means_partitions"))
    global_ids = bool(instruction.attributes.get("use_global_device_ids"))
    return {"group_mode": group_mode(channel, global_ids, by_partition), "channel_id": channel or 0}


@ATTRIBUTES.register("custom-call")
def _custom_call(sites: RuntimeSites, instruction: Instruction) -> dict[str, Any]:
    versions = ["", "ORIGINAL", "STATUS_RETURNING", "STATUS_RETURNING_UNIFIED", "TYPED_FFI"]
    version = instruction.attributes["api_version"]
    config = instruction.extra.get("backend_config", "")
    typed = {"typed_config": typed_config(config)} if version is CustomCallApiVersion.TYPED_FFI else {}
    return {
        **typed,
        "target": instruction.attributes["target"],
        "api_version": versions.index(version.name),
        "backend_config": custom_call_config(config, version),
        "result_tree": tree_of(instruction.shape),
    }
