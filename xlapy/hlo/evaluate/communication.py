"""What reaches outside the computation: queues, channels, collectives, custom calls.

A start op runs its synchronous op up to the point where that waits, and its value is what is left to do; the done op
does it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from xlapy.hlo.attributes import CustomCallApiVersion, ReplicaGroups, SourceTargetPairs
from xlapy.hlo.evaluate.base import (
    EVALUATORS,
    TOKEN,
    Await,
    Deposit,
    Evaluator,
    Steps,
    Take,
    Value,
    evaluator,
    instruction_evaluator,
    who_am_i,
)
from xlapy.hlo.evaluate.numerics import Array, convert, element_type, narrow, widen
from xlapy.hlo.evaluate.reductions import applying
from xlapy.hlo.evaluate.regions import binary_operation
from xlapy.hlo.graph import Computation, Instruction
from xlapy.hlo.ops import OPS, Trait
from xlapy.hlo.process_groups import group_mode, group_of, process_number
from xlapy.hlo.shape import Shape
from xlapy.hlo.text.backend_config import custom_call_config
from xlapy.support.errors import ExecutionError, XlaError
from xlapy.support.records import Record
from xlapy.support.source import suggestion

# -- queues and channels -------------------------------------------------------------------------------------------


@evaluator("infeed")
def infeed(token: Value, *, infeed_config: str, result: Shape) -> Steps:
    """A tuple without any array in it reads nothing."""
    shape = result.parts[0]
    if not shape.leaves():
        return (_without_arrays(shape), TOKEN)
    process = yield from who_am_i()
    item = yield Take(process.infeed, f"an item of shape {shape} in the infeed")
    return (check_value(item, shape, "infeed"), TOKEN)


def _without_arrays(shape: Shape) -> Value:
    return tuple(map(_without_arrays, shape.parts))


@evaluator("outfeed")
def outfeed(operand: Value, token: Value, *, outfeed_config: str, outfeed_shape: Shape | None) -> Steps:
    process = yield from who_am_i()
    process.outfeed.append(operand)
    return TOKEN


@evaluator("send")
def send(operand: Value, token: Value, *, channel_id: int, is_host_transfer: bool) -> Steps:
    process = yield from who_am_i()
    process.channel(channel_id).append(operand)
    return (operand, np.zeros((), np.uint32), TOKEN)


@evaluator("send-done")
def send_done(started: Value, *, channel_id: int, is_host_transfer: bool) -> Value:
    return TOKEN


@evaluator("recv")
def recv(token: Value, *, channel_id: int, is_host_transfer: bool, result: Shape) -> Steps:
    """The data of the result stand for what is still to come."""
    process = yield from who_am_i()
    waiting = Take(process.channel(channel_id), f"a message on channel {channel_id}")
    return (_Message(waiting, result.parts[0]), np.zeros((), np.uint32), TOKEN)


class _Message(Record):
    waiting: Take
    shape: Shape


@evaluator("recv-done")
def recv_done(started: Value, *, channel_id: int, is_host_transfer: bool) -> Steps:
    message: _Message = started[0]
    data = yield message.waiting
    return (check_value(data, message.shape, message.waiting.what), TOKEN)


def check_value(value: Value, shape: Shape, source: str) -> Value:
    """The value as arrays, if it is of `shape` (bounded dimensions may be smaller); raises ExecutionError if not."""
    if shape.is_token:
        return TOKEN
    if shape.is_tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.parts):
            raise ExecutionError(f"{source}: expected a value of shape {shape}, got {_describe(value)}")
        return tuple(check_value(part, part_shape, source) for part, part_shape in zip(value, shape.parts, strict=True))
    array = np.asarray(value)
    if array.dtype != shape.type.dtype or not fits(array, shape):
        raise ExecutionError(f"{source}: expected a value of shape {shape}, got {_describe(value)}")
    return array


def fits(array: Array, shape: Shape) -> bool:
    """Whether the sizes of an array are those of `shape`, or within its bounds."""
    if array.shape == shape.dims:  # as nearly always
        return True
    return array.ndim == shape.rank and all(
        size == dim or (shape.is_dynamic_dim(position) and (size <= dim or dim < 0))
        for position, (size, dim) in enumerate(zip(array.shape, shape.dims, strict=True))
    )


def _describe(value: Value) -> str:
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_describe, value)) + ")"
    return f"{np.asarray(value).dtype}{list(np.shape(value))}"


# -- processes -----------------------------------------------------------------------------------------------------


@evaluator("replica-id")
def replica_id() -> Steps:
    process = yield from who_am_i()
    return np.asarray(np.uint32(process.place.replica))


@evaluator("partition-id")
def partition_id() -> Steps:
    process = yield from who_am_i()
    return np.asarray(np.uint32(process.place.partition))


class Meeting(Record):
    """Which processes a collective brings together."""

    operation: str
    groups: Sequence[Sequence[int]]
    channel_id: int | None
    use_global_device_ids: bool = False

    def attend(self, arrays: Sequence[Array]) -> Generator[Any, Any, list[Value]]:
        """The arrays of every member of this process's group, in the order of the group; for `yield from`.

        Nobody contributes to a process that is in no group. Whoever brings arrays of other shapes is elsewhere."""
        members, _ = yield from self.members()
        if not members:
            return []
        shapes = tuple((array.dtype, array.shape) for array in arrays)
        waiting: Await = yield Deposit((self.operation, self.channel_id, shapes), members, tuple(arrays))
        contributions: list[Value] = yield waiting
        return contributions

    def members(self) -> Generator[Any, Any, tuple[tuple[int, ...], int]]:
        """The group of this process, empty if it is in none, and its position in it; for `yield from`."""
        process = yield from who_am_i()
        by_partition = bool(OPS[self.operation].options.get("channel_means_partitions"))
        mode = group_mode(self.channel_id, self.use_global_device_ids, by_partition)
        members = group_of(mode, self.groups, process.place) or ()
        own = process_number(process.place.replica, process.place.partition, process.place)
        return members, members.index(own) if members else 0


def _everybody(contributions: list[Value]) -> list[Value]:
    """The contributions, for a collective that has no meaning to a process in no group."""
    if not contributions:
        raise ExecutionError("a process that takes part in a collective is in none of its groups")
    return contributions


def _reduced(contributions: list[Value], computation: Computation) -> Generator[Any, Any, list[Array]]:
    """What a group makes of each of its operands together; for `yield from`."""
    results: list[Array] = []
    for arrays in zip(*_everybody(contributions), strict=True):
        reduced = yield from reduce_over_processes(arrays, computation)
        results.append(reduced)
    return results


def _packed(results: Sequence[Array]) -> Value:
    return tuple(results) if len(results) > 1 else results[0]


@evaluator("all-reduce")
def all_reduce(
    operands: Sequence[Array],
    *,
    computation: Computation,
    replica_groups: ReplicaGroups,
    channel_id: int | None,
    use_global_device_ids: bool,
    constrain_layout: bool,
) -> Steps:
    meeting = Meeting("all-reduce", replica_groups.groups, channel_id, use_global_device_ids)
    contributions = yield from meeting.attend(operands)
    return _packed((yield from _reduced(contributions, computation)))


@evaluator("reduce-scatter")
def reduce_scatter(
    operands: Sequence[Array],
    *,
    computation: Computation,
    dimension: int,
    replica_groups: ReplicaGroups,
    channel_id: int | None,
    use_global_device_ids: bool,
    constrain_layout: bool,
) -> Steps:
    meeting = Meeting("reduce-scatter", replica_groups.groups, channel_id, use_global_device_ids)
    contributions = yield from meeting.attend(operands)
    _, position = yield from meeting.members()
    reduced = yield from _reduced(contributions, computation)
    return _packed([np.split(array, len(contributions), dimension)[position] for array in reduced])


@evaluator("all-gather")
def all_gather(
    operands: Sequence[Array],
    *,
    dimension: int,
    replica_groups: ReplicaGroups,
    channel_id: int | None,
    use_global_device_ids: bool,
    constrain_layout: bool,
) -> Steps:
    meeting = Meeting("all-gather", replica_groups.groups, channel_id, use_global_device_ids)
    contributions = yield from meeting.attend(operands)
    return _packed([np.concatenate(arrays, dimension) for arrays in zip(*_everybody(contributions), strict=True)])


@evaluator("all-to-all")
def all_to_all(
    operands: Sequence[Array],
    *,
    dimension: int | None,
    replica_groups: ReplicaGroups,
    channel_id: int | None,
    constrain_layout: bool,
) -> Steps:
    meeting = Meeting("all-to-all", replica_groups.groups, channel_id)
    contributions = _everybody((yield from meeting.attend(operands)))
    _, position = yield from meeting.members()
    if dimension is None:
        return tuple(arrays[position] for arrays in contributions)
    parts = [np.split(array, len(contributions), dimension)[position] for (array,) in contributions]
    return np.concatenate(parts, dimension)


@evaluator("collective-broadcast")
def collective_broadcast(operands: Sequence[Array], *, replica_groups: ReplicaGroups, channel_id: int | None) -> Steps:
    meeting = Meeting("collective-broadcast", replica_groups.groups, channel_id)
    contributions = yield from meeting.attend(operands)
    return _packed(contributions[0] if contributions else [np.zeros_like(array) for array in operands])


@evaluator("collective-permute")
def collective_permute(
    operands: Sequence[Array], *, source_target_pairs: SourceTargetPairs, channel_id: int | None
) -> Steps:
    """Everybody whom a pair names meets; the processes that no pair names need nobody."""
    meeting = Meeting("collective-permute", (), channel_id)
    _, position = yield from meeting.members()
    contributions = yield from meeting.attend(operands)
    source = next((source for source, target in source_target_pairs.pairs if target == position), None)
    return _packed(contributions[source] if source is not None else [np.zeros_like(array) for array in operands])


def reduce_over_processes(arrays: Sequence[Array], computation: Computation) -> Steps:
    """Folds equal arrays element by element, in order. One sum of narrow floats is rounded once."""
    target = element_type(arrays[0])
    operation = binary_operation(computation)
    if operation is not None and operation.opcode == "add" and target.is_narrow_float:
        with np.errstate(all="ignore"):
            return narrow(sum((widen(array) for array in arrays[1:]), widen(arrays[0])), target)
    combine = applying(computation)
    running = convert(arrays[0], computation.parameters[0].shape.type)
    for array in arrays[1:]:
        (running,) = yield from combine((running, convert(array, computation.parameters[1].shape.type)))
    return running


# -- start and done ------------------------------------------------------------------------------------------------


class _Started(Record):
    """A collective that has deposited, and waits."""

    rest: Generator[Any, Any, Value]
    waiting: Await


def _start(synchronous: Evaluator) -> Callable[[Instruction, list[Any]], Steps]:
    def start(instruction: Instruction, operands: list[Any]) -> Steps:
        steps: Generator[Any, Any, Value] = synchronous(instruction, operands)
        request = next(steps)
        while not isinstance(request, Await):
            request = steps.send((yield request))
        return _Started(steps, request)

    return start


def _done(instruction: Instruction, operands: list[Any]) -> Steps:
    started: _Started = operands[0]
    request: Any = started.waiting
    try:
        while True:
            request = started.rest.send((yield request))
    except StopIteration as finished:
        return finished.value


for _spec in OPS.values():
    if Trait.ASYNC in _spec.traits and _spec.name in EVALUATORS:
        instruction_evaluator(f"{_spec.name}-start")(_start(EVALUATORS[_spec.name]))
        instruction_evaluator(f"{_spec.name}-done")(_done)


# -- custom calls --------------------------------------------------------------------------------------------------


@instruction_evaluator("custom-call")
def custom_call(instruction: Instruction, operands: list[Any]) -> Steps:
    """Calls the Python function that is known by the name of the target: numpy arrays in, numpy arrays out.

    It gets the arrays of all operands, one by one, and of the configuration what its API version says. One that says
    that it `fills_results` gets the operands as they are, and arrays to fill."""
    process = yield from who_am_i()
    target = instruction.attributes["target"]
    function = process.custom_calls.get(target)
    if function is None:
        raise ExecutionError(f"custom-call: there is no target {target!r}{suggestion(target, process.custom_calls)}")
    arrays = [array for operand in operands for array in _arrays(operand)]
    try:
        keywords = _configuration(instruction)
        if getattr(function, "fills_results", False):
            returned = _blank(instruction.shape)
            function(operands, _arrays(returned), **keywords)
        else:
            returned = function(*arrays, **keywords)
    except XlaError:
        raise
    except Exception as error:
        raise ExecutionError(f"custom-call to {target!r} failed: {type(error).__name__}: {error}") from error
    return check_value(returned, instruction.shape, f"custom-call to {target!r}")


def _arrays(value: Value) -> list[Array]:
    """The arrays of a value, however nested; tokens are none."""
    if isinstance(value, tuple):
        return [array for part in value for array in _arrays(part)]
    return [] if value is TOKEN else [value]


def _configuration(instruction: Instruction) -> dict[str, Any]:
    config = custom_call_config(instruction.extra.get("backend_config", ""), instruction.attributes["api_version"])
    if isinstance(config, dict):
        return config
    return {} if instruction.attributes["api_version"] is CustomCallApiVersion.ORIGINAL else {"opaque": config}


def _blank(shape: Shape) -> Value:
    """Arrays of a shape, to be filled."""
    if shape.is_tuple:
        return tuple(map(_blank, shape.parts))
    return np.zeros(shape.dims, shape.type.dtype) if shape.is_array else TOKEN
