"""What each collective does with the arrays of its group, as records for native code.

Attributes of the call sites: `replica_groups` (a tuple of tuples) or `source_target_pairs`, `group_mode` (a strategy of
`process_groups`), `channel_id`, the dimension the operation works along, and for reductions `combine`: a tuple with the
symbol of one kernel per array.

    i32 combine(ptr table, i64 sources, i64 begin, i64 end)

The table has the context of the caller, an array of each source, and the target. The kernel folds elements [begin, end)
of the sources, from the left, into the target; it returns a `Status`.

Everything else is copies: the members of a group cut their operands into parts, and each part of each goes somewhere.
Results never share memory with operands. The start/done forms split the same call: a start site has the operands and
the results, and its done site waits.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from xlapy_runtime.calls import Site
from xlapy_runtime.errors import InternalError
from xlapy_runtime.native_records import GroupRecord, Kind, LeafRecord, SiteRecord
from xlapy_runtime.process_groups import Group, connected, process_groups, process_pairs
from xlapy_runtime.program import ArraySpec
from xlapy_runtime.rendezvous import MeetingPlan

SMALL_BYTES = 256 * 1024
"""Up to this many bytes of results in all, the last to arrive does everybody's work: it takes less time than to wake
another thread."""

BLOCK_BYTES = 256 * 1024
"""Of a chunk: long enough to be worth taking, and it stays in a core's cache until it is copied to everybody."""

SHARE_ALIGNMENT = 64
"""Bytes: blocks start on cache lines, so that two threads never write to the same one."""

NOBODY = -1
"""The source of a member that gets zeros."""


@dataclass(frozen=True, slots=True)
class Part:
    """One array of a collective: the part of `rows` x `row_bytes` that each source has for each target.

    Steps lead to the part of a position, pitches from row to row, `owners` have parts of their own: the fields are
    those of `native_records.LeafRecord`, and become one."""

    rows: int
    row_bytes: int
    operand: int = 0
    result: int = 0
    operand_step: int = 0
    result_step: int = 0
    source_step: int = 0
    target_step: int = 0
    source_pitch: int = 0
    target_pitch: int = 0
    combine: int = 0
    element_bytes: int = 1
    to_all: bool = False
    owners: int = 0

    def record(self) -> LeafRecord:
        """The part, cut into blocks."""
        segments = -(-self.row_bytes // BLOCK_BYTES)
        if segments > 1:
            unit = math.lcm(SHARE_ALIGNMENT, self.element_bytes)
            segment_bytes = -(-self.row_bytes // segments // unit) * unit
            segments, rows_per_block = -(-self.row_bytes // segment_bytes), 1
        else:
            segment_bytes, rows_per_block = self.row_bytes, max(1, BLOCK_BYTES // max(1, self.row_bytes))
        return LeafRecord(
            **asdict(self),
            rows_per_block=rows_per_block,
            segment_bytes=segment_bytes,
            segments=max(1, segments),
            blocks=-(-self.rows // rows_per_block) * segments,
        )


Parts = Callable[[Site, int], Sequence[Part]]
"""The parts of a collective in a group of so many members."""


def _whole(spec: ArraySpec, number: int) -> Part:
    """All of an array."""
    return Part(1, spec.nbytes, operand=number, result=number, element_bytes=max(1, spec.dtype.itemsize))


def _cut(spec: ArraySpec, number: int, dimension: int, count: int) -> Part:
    """One of `count` equal parts of an array along a dimension, in a larger array."""
    whole = _whole(spec, number)
    row_bytes = math.prod(spec.dims[dimension:]) * spec.dtype.itemsize
    return replace(whole, rows=math.prod(spec.dims[:dimension]), row_bytes=row_bytes // count, source_pitch=row_bytes)


def _combines(site: Site) -> list[int]:
    """The addresses of the reduction kernels of a site, one per array."""
    symbols = site.attribute("combine")
    if len(symbols) != len(site.call.operands):
        raise InternalError(f"{site.call.label}: {len(symbols)} kernels for {len(site.call.operands)} arrays")
    return [site.address_of(symbol) for symbol in symbols]


def all_reduce(site: Site, size: int) -> list[Part]:
    """Everybody gets the sum of all operands."""
    return [
        replace(_whole(spec, number), combine=combine, to_all=True, owners=1)
        for number, (spec, combine) in enumerate(zip(site.call.operands, _combines(site), strict=True))
    ]


def reduce_scatter(site: Site, size: int) -> list[Part]:
    """Everybody gets a part of the sum."""
    parts = []
    for number, (spec, combine) in enumerate(zip(site.call.operands, _combines(site), strict=True)):
        part = _cut(spec, number, site.attribute("scatter_dimension"), size)
        part = replace(part, source_step=part.row_bytes, target_pitch=part.row_bytes)
        parts.append(replace(part, combine=combine, owners=size))
    return parts


def all_gather(site: Site, size: int) -> list[Part]:
    """Everybody gets all operands, concatenated."""
    parts = []
    for number, spec in enumerate(site.call.operands):
        part = _cut(spec, number, site.attribute("all_gather_dimension"), 1)
        parts.append(replace(part, target_step=part.row_bytes, target_pitch=part.row_bytes * size, owners=size))
    return parts


def all_to_all(site: Site, size: int) -> list[Part]:
    """Member k gets part k of everybody's operand; without a dimension, operand k of everybody instead."""
    dimension = site.attribute("dimension")
    if dimension is None:
        first = site.call.operands[:1]
        return [replace(_whole(spec, 0), operand_step=1, result_step=1, owners=size) for spec in first]
    parts = []
    for number, spec in enumerate(site.call.operands):
        part = _cut(spec, number, dimension, size)
        part = replace(part, source_step=part.row_bytes, target_step=part.row_bytes)
        parts.append(replace(part, target_pitch=part.source_pitch, owners=size))
    return parts


def fetch(site: Site, size: int) -> list[Part]:
    """Each member gets the operands of the one that the group names as its source."""
    return [replace(_whole(spec, number), owners=size) for number, spec in enumerate(site.call.operands)]


PARTS: Mapping[str, Parts] = {
    "all-reduce": all_reduce,
    "reduce-scatter": reduce_scatter,
    "all-gather": all_gather,
    "all-to-all": all_to_all,
    "collective-broadcast": fetch,
    "collective-permute": fetch,
}


def _require_fit(site: Site, parts: Sequence[Part], size: int) -> None:
    """Raises unless the parts for a group of so many processes make up all operands and all results: native code copies
    them without a further look."""
    read = [(part, part.operand, part.operand_step, part.source_step) for part in parts]
    written = [(part, part.result, part.result_step, part.target_step) for part in parts]
    for what, specs, places in (("operands", site.call.operands, read), ("results", site.call.results, written)):
        sizes: dict[int, int] = {}
        for part, first, step, byte_step in places:
            pieces = size if byte_step else 1
            sizes |= dict.fromkeys((first + step * n for n in range(size)), pieces * part.rows * part.row_bytes)
        if sizes != {number: spec.nbytes for number, spec in enumerate(specs)}:
            listed = ", ".join(map(str, specs))
            raise InternalError(f"{site.call.label}: its {what} ({listed}) do not fit a group of {size} processes")


def kind_of(name: str) -> Kind:
    """What a kind of call site is to native code."""
    if name in PARTS:
        return Kind.COLLECTIVE
    if name.removesuffix("-start") in PARTS:
        return Kind.START
    return Kind.DONE if name.removesuffix("-done") in PARTS else Kind.OTHER


def is_collective(name: str) -> bool:
    """Whether call sites of this kind meet other processes."""
    return kind_of(name) is not Kind.OTHER


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one process exchanges at a site: with the members of its group, of which `sources` has for each the position
    of the one whose data it gets (None: everybody's). Sites that meet have the same key, in all processes."""

    key: int
    members: Group
    sources: Sequence[int] | None
    parts: Sequence[Part]


def exchanges(sites: Iterable[Site], process: int) -> dict[int, Exchange]:
    """What a process exchanges, by the number of the site; sites whose groups it is not in are missing."""
    planner = _Planner()
    found = {}
    for site in sites:
        if kind_of(site.call.kind) in (Kind.COLLECTIVE, Kind.START):
            for exchange in planner.exchanges(site):
                if process in exchange.members:
                    found[site.index] = exchange
    return found


def meeting_plan(sites: Iterable[Site]) -> MeetingPlan:
    """The records of all call sites of a program."""
    planner = _Planner()
    records = [planner.site(site) for site in sites]
    kinds = [record.kind for record in records]
    return MeetingPlan(
        sites=_table(SiteRecord, records),
        site_count=len(records),
        keys=len(planner.keys),
        starts=kinds.count(Kind.START),
        width=planner.width,
        others=planner.others(),
        kept=planner.kept,
    )


@dataclass(slots=True)
class _Planner:
    """Makes records, and keeps what they point to. `met` has the sites of each key and group by what they exchange."""

    keys: dict[tuple[object, ...], int] = field(default_factory=dict)
    met: dict[tuple[object, ...], dict[object, list[Site]]] = field(default_factory=dict)
    width: int = 0
    kept: list[object] = field(default_factory=list)

    def site(self, site: Site) -> SiteRecord:
        kind = kind_of(site.call.kind)
        if kind is Kind.OTHER:
            return SiteRecord(kind=kind)
        if kind is Kind.DONE:
            return SiteRecord(kind=kind, start=site.attribute("start"))
        self.width = max(self.width, len(site.call.operands) + len(site.call.results))
        groups: list[int | None] = [None] * site.grid.size
        for exchange in self.exchanges(site):
            record = self._group(site, exchange)
            for process in exchange.members:
                groups[process] = ctypes.addressof(record)
        return SiteRecord(
            kind=kind,
            groups=self._keep((ctypes.c_void_p * len(groups))(*groups)),
            operands=len(site.call.operands),
            results=len(site.call.results),
            result_bytes=self._words([spec.nbytes for spec in site.call.results]),
        )

    def exchanges(self, site: Site) -> Iterator[Exchange]:
        """What each group of a site exchanges."""
        if any(spec.dynamic_dims for spec in (*site.call.operands, *site.call.results)):
            raise InternalError(f"{site.call.label}: operands of collectives must be padded, not dynamic")
        name = _base(site)
        taken: set[int] = set()
        for members, sources in _groups(site):
            if not all(0 <= process < site.grid.size and process not in taken for process in members):
                raise InternalError(f"{site.call.label}: the group {members} is not one of processes of its own")
            taken.update(members)
            parts = PARTS[name](site, len(members))
            _require_fit(site, parts, len(members))
            if sources is not None:  # nobody fetches from most; some may get zeros, which come behind the last member
                owners = len(members) + 1 if NOBODY in sources else max(sources) + 1
                parts = [replace(part, owners=owners) for part in parts]
            key = self._key(name, site, members, (tuple(parts), tuple(sources or ())))
            yield Exchange(key, members, sources, parts)

    def _group(self, site: Site, exchange: Exchange) -> GroupRecord:
        members, sources = exchange.members, exchange.sources
        leaves = [part.record() for part in exchange.parts]
        record = GroupRecord(
            key=exchange.key,
            site=site.index,
            size=len(members),
            members=self._words(members),
            sources=None if sources is None else self._words(sources),
            operands=len(site.call.operands),
            leaves=self._keep(_table(LeafRecord, leaves)),
            leaf_count=len(leaves),
            chunks=sum(leaf.owners * leaf.blocks for leaf in leaves),
            is_small=sum(spec.nbytes for spec in site.call.results) * len(members) <= SMALL_BYTES,
        )
        self.kept.append(record)
        return record

    def _key(self, name: str, site: Site, group: Group, work: object) -> int:
        """The same number for the sites of a channel that meet: those that do the same with the same shapes."""
        place = _meeting_place(name, site, group)
        exchanged = (site.call.operands, site.call.results, work)
        self.met.setdefault(place, {}).setdefault(exchanged, []).append(site)
        return self.keys.setdefault((*place, exchanged), len(self.keys))

    def others(self) -> dict[int, list[str]]:
        """For each site the labels of those that share its channel and groups, but do something else."""
        found: dict[int, list[str]] = {}
        for sites in self.met.values():
            for exchanged, own in sites.items():
                others = [site.call.label for other, row in sites.items() if other != exchanged for site in row]
                for site in own if others else ():
                    found[site.index] = list(dict.fromkeys([*found.get(site.index, ()), *others]))
        return found

    def _words(self, numbers: Sequence[int]) -> int:
        return self._keep((ctypes.c_int64 * max(1, len(numbers)))(*numbers))

    def _keep(self, record: Any) -> int:
        """The address of something that lives as long as the plan."""
        self.kept.append(record)
        return ctypes.addressof(record)


def _table(kind: type[Any], records: Sequence[Any]) -> Any:
    return (kind * max(1, len(records)))(*records)


def _base(site: Site) -> str:
    return site.call.kind.removesuffix("-start")


def _groups(site: Site) -> Sequence[tuple[Group, Sequence[int] | None]]:
    """The groups that meet at a site; where a member gets only one's data, with the position of that one."""
    mode = site.attribute("group_mode", "cross_replica")
    if _base(site) == "collective-permute":
        return _permutations(process_pairs(mode, site.grid, site.attribute("source_target_pairs", ())))
    groups = process_groups(mode, site.grid, site.attribute("replica_groups", ()))
    if _base(site) == "collective-broadcast":
        return [(group, [0] * len(group)) for group in groups]
    return [(group, None) for group in groups]


def _permutations(sources: Mapping[int, int]) -> list[tuple[Group, Sequence[int]]]:
    """Members are those that exchange data; targets copy from their source, others get zeros."""
    found: list[tuple[Group, Sequence[int]]] = []
    pending = {*sources, *sources.values()}
    while pending:
        group = connected(sources, min(pending))
        pending -= set(group)
        positions = [group.index(sources[process]) if process in sources else NOBODY for process in group]
        found.append((group, positions))
    return found


def _meeting_place(name: str, site: Site, group: Group) -> tuple[object, ...]:
    """Sites with the same positive channel meet each other; the others meet only themselves."""
    channel = site.attribute("channel_id") or 0
    return (name, "channel", channel, group) if channel > 0 else (name, "site", site.index, group)
