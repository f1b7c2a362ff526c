"""What each collective does with the operands of its group.

Attributes of the call sites: `replica_groups` (a tuple of tuples) or `source_target_pairs`, `group_mode` (a strategy of
`process_groups`), `channel_id`, the dimension the operation works along, and for reductions `combine`: the symbol of
one kernel for all leaves together, or a tuple with one symbol per leaf.

A collective is a sequence of phases with barriers between; in each phase every member writes only its own results, and
reads whatever it likes. The start/done forms split the same call: a start site has the operands, and the results if
their memory is known by then; its done site waits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from xlapy_runtime.buffers import pointers
from xlapy_runtime.calls import PREPARE, Action, Buffers, RunningCall, Site
from xlapy_runtime.errors import InternalError
from xlapy_runtime.process_groups import Group, connected, process_groups, process_pairs
from xlapy_runtime.transports import Collective, Deposit, Phase, Work

SHARE_ALIGNMENT = 64
"""Elements: shares of a reduction start on cache lines, so that two members never write to the same one."""

REDUCTION_BLOCK = 32 * 1024
"""Elements that are combined over all members before the next block: few enough to stay in a core's cache."""

CombineFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True, slots=True, eq=False)
class Combine:
    """A reduction kernel and the leaves that it combines together."""

    function: Callable[[int, int, int], None]
    leaves: tuple[int, ...]

    def __call__(
        self, accumulators: Sequence[np.ndarray], incoming: Sequence[np.ndarray], begin: int, end: int, context: int
    ) -> None:
        """accumulators[begin:end] = combine(accumulators[begin:end], incoming[begin:end])

        A computation that runs loops listens to Ctrl-C, and stops when the flag in its context is set."""
        addresses = [*pointers([*accumulators, *incoming]), context]
        table = (ctypes.c_uint64 * len(addresses))(*addresses)
        self.function(ctypes.addressof(table), begin, end)


def combines(site: Site) -> tuple[Combine, ...]:
    """The reduction kernels of a site."""
    symbols = site.attribute("combine")
    leaves = range(len(site.call.operands))
    if isinstance(symbols, str):
        return (Combine(CombineFunction(site.address_of(symbols)), tuple(leaves)),)
    return tuple(
        Combine(CombineFunction(site.address_of(symbol)), (leaf,)) for symbol, leaf in zip(symbols, leaves, strict=True)
    )


def single_phase(phase: Phase) -> Work:
    """Work that needs no barrier inside: whoever does it for all does one member's share after the other."""

    def together(members: Sequence[Deposit]) -> None:
        for position in range(len(members)):
            phase(members, position)

    return Work((phase,), together)


def all_reduce(site: Site) -> Work:
    """Every member reduces its share of the elements, then fetches the shares of the others."""
    kernels = combines(site)

    def reduce_own_share(members: Sequence[Deposit], position: int) -> None:
        for combine in kernels:
            results = [members[position].results[leaf].reshape(-1) for leaf in combine.leaves]
            begin, end = share(results[0].size, position, len(members))
            for block in range(begin, end, REDUCTION_BLOCK):
                _reduce_block(combine, members, position, results, block, min(block + REDUCTION_BLOCK, end))

    def fetch_other_shares(members: Sequence[Deposit], position: int) -> None:
        for leaf, result in enumerate(members[position].results):
            for other, member in enumerate(members):
                if other != position:
                    begin, end = share(result.size, other, len(members))
                    np.copyto(result.reshape(-1)[begin:end], member.results[leaf].reshape(-1)[begin:end])

    def reduce_together(members: Sequence[Deposit]) -> None:
        for combine in kernels:
            results = [members[0].results[leaf].reshape(-1) for leaf in combine.leaves]
            _reduce_block(combine, members, 0, results, 0, results[0].size)
        for member in members[1:]:
            _copy_all(member.results, members[0].results)

    return Work((reduce_own_share, fetch_other_shares), reduce_together)


def _reduce_block(
    combine: Combine,
    members: Sequence[Deposit],
    position: int,
    results: Sequence[np.ndarray],
    begin: int,
    end: int,
) -> None:
    """Folds one block from the left, in the order of the group: the same bits whoever does it. `position` is that of
    the member for whom it is done."""
    for result, leaf in zip(results, combine.leaves, strict=True):
        np.copyto(result[begin:end], members[0].operands[leaf].reshape(-1)[begin:end])
    for member in members[1:]:
        incoming = [member.operands[leaf] for leaf in combine.leaves]
        combine(results, incoming, begin, end, members[position].context)


def share(size: int, position: int, count: int) -> tuple[int, int]:
    """The range of elements that one of `count` members reduces."""
    length = -(-size // (count * SHARE_ALIGNMENT)) * SHARE_ALIGNMENT
    return min(size, position * length), min(size, (position + 1) * length)


def reduce_scatter(site: Site) -> Work:
    """Every member reduces the part that it keeps."""
    kernels = combines(site)
    dimension = site.attribute("scatter_dimension")

    def reduce_own_part(members: Sequence[Deposit], position: int) -> None:
        for combine in kernels:
            results = [members[position].results[leaf] for leaf in combine.leaves]
            for number, member in enumerate(members):
                parts = [part(member.operands[leaf], dimension, position, len(members)) for leaf in combine.leaves]
                if number == 0:
                    _copy_all(results, parts)
                else:
                    incoming = [np.ascontiguousarray(piece) for piece in parts]
                    combine(results, incoming, 0, results[0].size, members[position].context)

    return single_phase(reduce_own_part)


def all_gather(site: Site) -> Work:
    """Every member concatenates everybody's operands."""
    dimension = site.attribute("all_gather_dimension")

    def gather(members: Sequence[Deposit], position: int) -> None:
        for leaf, result in enumerate(members[position].results):
            for other, member in enumerate(members):
                np.copyto(part(result, dimension, other, len(members)), member.operands[leaf])

    return single_phase(gather)


def all_to_all(site: Site) -> Work:
    """Member k gets part k of everybody's operand; without `split_dimension`, operand k of everybody instead."""
    split, concat = site.attribute("split_dimension"), site.attribute("concat_dimension")

    def exchange_parts(members: Sequence[Deposit], position: int) -> None:
        for leaf, result in enumerate(members[position].results):
            for other, member in enumerate(members):
                piece = part(member.operands[leaf], split, position, len(members))
                np.copyto(part(result, concat, other, len(members)), piece)

    def exchange_operands(members: Sequence[Deposit], position: int) -> None:
        _copy_all(members[position].results, [member.operands[position] for member in members])

    return single_phase(exchange_operands if split is None else exchange_parts)


def collective_broadcast(site: Site) -> Work:
    """Everybody gets the operand of the group's first member."""

    def fetch_first(members: Sequence[Deposit], position: int) -> None:
        _copy_all(members[position].results, members[0].operands)

    return single_phase(fetch_first)


def part(array: np.ndarray, dimension: int, position: int, count: int) -> np.ndarray:
    """One of `count` equal parts of an array along a dimension, as a view."""
    length = array.shape[dimension] // count
    return array[(slice(None),) * dimension + (slice(position * length, (position + 1) * length),)]


def _copy_all(targets: Sequence[np.ndarray], sources: Sequence[np.ndarray]) -> None:
    for target, source in zip(targets, sources, strict=True):
        np.copyto(target, source)


GROUPED: Mapping[str, Callable[[Site], Work]] = {
    "all-reduce": all_reduce,
    "reduce-scatter": reduce_scatter,
    "all-gather": all_gather,
    "all-to-all": all_to_all,
    "collective-broadcast": collective_broadcast,
}


def grouped_collectives(kind: str, site: Site) -> dict[int, Collective]:
    """The collective that each process takes part in. Who is in no group is not in the result."""
    work = GROUPED[kind](site)
    mode, ids = site.attribute("group_mode", "cross_replica"), site.attribute("replica_groups", ())
    groups = process_groups(mode, site.grid, ids)
    return {
        process: collective
        for group in groups
        for collective in [_collective(kind, site, group, work)]
        for process in group
    }


def permutations(site: Site) -> dict[int, Collective]:
    """Collective-permute: members are those that exchange data; targets copy from their source, others get zeros."""
    sources = process_pairs(
        site.attribute("group_mode", "cross_replica"), site.grid, site.attribute("source_target_pairs", ())
    )
    involved = sorted({*sources, *sources.values()})
    collectives: dict[int, Collective] = {}
    for process in involved:
        if process not in collectives:
            group = connected(sources, process)
            collective = _collective("collective-permute", site, group, single_phase(_fetch_from(sources, group)))
            collectives.update(dict.fromkeys(group, collective))
    return collectives


def _fetch_from(sources: Mapping[int, int], group: Group) -> Phase:
    def fetch(members: Sequence[Deposit], position: int) -> None:
        source = sources.get(group[position])
        if source is None:
            _clear(members[position].results)
        else:
            _copy_all(members[position].results, members[group.index(source)].operands)

    return fetch


def _collective(kind: str, site: Site, group: Group, work: Work) -> Collective:
    """Sites with the same positive channel meet each other; the others meet only themselves."""
    channel = site.attribute("channel_id") or 0
    key = (kind, "channel", channel, group) if channel > 0 else (kind, "site", site.index, group)
    return Collective(kind, site.call.label, site.call.where, group, key, work)


def _clear(arrays: Sequence[np.ndarray]) -> None:
    for array in arrays:
        array.fill(0)


def raw(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The arrays as integers of the same width: numpy copies those fast and without the GIL."""
    return tuple(array.view(_RAW[array.itemsize]) for array in arrays)


_RAW = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


@dataclass(frozen=True, slots=True)
class Absent:
    """The part of a process that is in no group: its results are zeros."""

    results: tuple[np.ndarray, ...] | None

    def finish(self, results: tuple[np.ndarray, ...] | None) -> None:
        _clear((self.results or ()) + (results or ()))

    def abandon(self) -> None:
        """Nothing was begun."""


def _prepare_start(kind: str, site: Site, *, asynchronous: bool) -> Action:
    if any(spec.dynamic_dims for spec in (*site.call.operands, *site.call.results)):
        raise InternalError(f"{site.call.label}: operands of collectives must be padded, not dynamic")
    collectives = permutations(site) if kind == "collective-permute" else grouped_collectives(kind, site)

    def start(call: RunningCall, buffers: Buffers) -> None:
        results = raw(buffers.results) if buffers.results or not asynchronous else None
        collective = collectives.get(call.process)
        pending = (
            Absent(results) if collective is None else call.transport.start(collective, raw(buffers.operands), results)
        )
        if asynchronous:
            call.started(site, pending)
        else:
            pending.finish(results)
            call.require_going_on()

    return start


def _prepare_done(site: Site) -> Action:
    def done(call: RunningCall, buffers: Buffers) -> None:
        call.take_started(site).finish(raw(buffers.results) if buffers.results else None)
        call.require_going_on()

    return done


def _register(kind: str) -> None:
    PREPARE.register(kind)(lambda site: _prepare_start(kind, site, asynchronous=False))
    PREPARE.register(f"{kind}-start")(lambda site: _prepare_start(kind, site, asynchronous=True))
    PREPARE.register(f"{kind}-done")(_prepare_done)


KINDS = (*GROUPED, "collective-permute")

for _kind in KINDS:
    _register(_kind)


def is_collective(kind: str) -> bool:
    """Whether call sites of this kind reach other processes through a transport."""
    return kind.removesuffix("-start").removesuffix("-done") in KINDS
