"""How values are spread over devices: kept with programs, which run as they are written."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlapy.hlo.process_groups import iota_groups
from xlapy.hlo.proto import sharding_from_text, sharding_to_text
from xlapy.hlo.proto.messages import OpShardingProto
from xlapy.support.errors import ArgumentError
from xlapy.support.protobuf import decode, encode, enumerated


class OpSharding:
    """A sharding as a message; its str() is HLO's text."""

    class Type(enum.IntEnum):
        REPLICATED = 0
        MAXIMAL = 1
        TUPLE = 2
        OTHER = 3
        MANUAL = 4
        UNKNOWN = 5
        UNREDUCED = 6

    class ShardGroupType(enum.IntEnum):
        AS = 0
        LIKE = 1

    __slots__ = (
        "iota_reshape_dims",
        "iota_transpose_perm",
        "is_shard_group",
        "last_tile_dims",
        "replicate_on_last_tile_dim",
        "shard_group_id",
        "shard_group_type",
        "tile_assignment_devices",
        "tile_assignment_dimensions",
        "tuple_shardings",
        "type",
    )

    def __init__(self) -> None:
        self.type = OpSharding.Type.REPLICATED
        self.tile_assignment_dimensions: list[int] = []
        self.tile_assignment_devices: list[int] = []
        self.tuple_shardings: list[OpSharding] = []
        self.replicate_on_last_tile_dim = False
        self.last_tile_dims: list[OpSharding.Type] = []
        self.iota_reshape_dims: list[int] = []
        self.iota_transpose_perm: list[int] = []
        self.is_shard_group = False
        self.shard_group_id = 0
        self.shard_group_type = OpSharding.ShardGroupType.AS

    def to_proto(self) -> OpShardingProto:
        return OpShardingProto(
            int(self.type),
            list(self.tile_assignment_dimensions),
            list(self.tile_assignment_devices),
            [sharding.to_proto() for sharding in self.tuple_shardings],
            self.replicate_on_last_tile_dim,
            list(map(int, self.last_tile_dims)),
            list(self.iota_reshape_dims),
            list(self.iota_transpose_perm),
            self.is_shard_group,
            self.shard_group_id,
            int(self.shard_group_type),
        )

    def read_proto(self, proto: OpShardingProto) -> None:
        """Becomes what a message says. Raises ParseError for kinds that there are not."""
        self.type = _type(proto.type)
        self.tile_assignment_dimensions = list(proto.tile_assignment_dimensions)
        self.tile_assignment_devices = list(proto.tile_assignment_devices)
        self.tuple_shardings = [OpSharding.from_proto(part) for part in proto.tuple_shardings]
        self.replicate_on_last_tile_dim = proto.replicate_on_last_tile_dim
        self.last_tile_dims = list(map(_type, proto.last_tile_dims))
        self.iota_reshape_dims = list(proto.iota_reshape_dims)
        self.iota_transpose_perm = list(proto.iota_transpose_perm)
        self.is_shard_group = proto.is_shard_group
        self.shard_group_id = proto.shard_group_id
        self.shard_group_type = enumerated(
            tuple(OpSharding.ShardGroupType), proto.shard_group_type, "kind of groups of shardings"
        )

    @staticmethod
    def from_proto(proto: OpShardingProto) -> OpSharding:
        sharding = OpSharding()
        sharding.read_proto(proto)
        return sharding

    @staticmethod
    def from_text(text: str) -> OpSharding:
        return OpSharding.from_proto(sharding_from_text(text))

    def SerializeToString(self) -> bytes:
        return encode(self.to_proto())

    def ParseFromString(self, serialized: bytes) -> None:
        """Becomes the sharding in the bytes of an OpSharding; raises ParseError where there is none."""
        self.read_proto(decode(OpShardingProto, serialized))

    def clone(self) -> OpSharding:
        return OpSharding.from_proto(self.to_proto())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpSharding) and self.to_proto() == other.to_proto()

    __hash__ = None  # type: ignore[assignment] # its fields change

    def __str__(self) -> str:
        return sharding_to_text(self.to_proto())

    def __repr__(self) -> str:
        return f"OpSharding({self})"


def _type(number: int) -> OpSharding.Type:
    kind: OpSharding.Type = enumerated(tuple(OpSharding.Type), number, "kind of sharding")
    return kind


class HloSharding:
    """A sharding as a value: it is compared by its text, and does not change."""

    __slots__ = ("_proto", "_text")

    def __init__(self, proto: OpShardingProto) -> None:
        self._text = sharding_to_text(proto)
        self._proto = proto

    @staticmethod
    def from_proto(sharding: OpSharding) -> HloSharding:
        return HloSharding(sharding.to_proto())

    @staticmethod
    def from_string(text: str) -> HloSharding:
        return HloSharding(sharding_from_text(text))

    @staticmethod
    def replicate() -> HloSharding:
        return HloSharding.from_string("{replicated}")

    @staticmethod
    def manual() -> HloSharding:
        return HloSharding.from_string("{manual}")

    @staticmethod
    def unknown() -> HloSharding:
        return HloSharding.from_string("{unknown}")

    @staticmethod
    def unreduced() -> HloSharding:
        return HloSharding.from_string("{unreduced}")

    @staticmethod
    def iota_tile(
        dims: Sequence[int],
        reshape_dims: Sequence[int] = (),
        transpose_perm: Sequence[int] = (),
        subgroup_types: Sequence[OpSharding.Type] = (),
    ) -> HloSharding:
        """Tiles over the devices 0, 1 ... as an array of `reshape_dims`, transposed, in the shape `dims`."""
        proto = OpShardingProto(int(OpSharding.Type.OTHER), list(dims))
        proto.iota_reshape_dims = list(reshape_dims or [int(np.prod(dims))])
        proto.iota_transpose_perm = list(transpose_perm or range(len(proto.iota_reshape_dims)))
        proto.last_tile_dims = list(map(int, subgroup_types))
        return HloSharding(proto)

    @staticmethod
    def tuple_sharding(shape: Any, shardings: Sequence[HloSharding]) -> HloSharding:
        """One sharding per leaf of a tuple shape."""
        if shape.leaf_count() != len(shardings):
            raise ArgumentError(f"{shape} has {shape.leaf_count()} leaves, {len(shardings)} shardings are given")
        parts = [sharding._proto for sharding in shardings]
        return HloSharding(OpShardingProto(int(OpSharding.Type.TUPLE), tuple_shardings=parts))

    def to_proto(self) -> OpSharding:
        return OpSharding.from_proto(self._proto)

    def is_replicated(self) -> bool:
        return self._text == "{replicated}"

    def is_manual(self) -> bool:
        return self._text == "{manual}"

    def is_unknown(self) -> bool:
        return self._text == "{unknown}"

    def is_unreduced(self) -> bool:
        return self._text == "{unreduced}"

    def is_maximal(self) -> bool:
        return self._proto.type == OpSharding.Type.MAXIMAL

    def is_tiled(self) -> bool:
        return self._proto.type == OpSharding.Type.OTHER

    def tuple_elements(self) -> list[HloSharding]:
        return list(map(HloSharding, self._proto.tuple_shardings))

    def tile_assignment_dimensions(self) -> list[int]:
        return list(self._proto.tile_assignment_dimensions)

    def tile_assignment_devices(self) -> list[int]:
        """The devices of the tiles, in row-major order."""
        proto = self._proto
        if not proto.iota_reshape_dims:
            return list(proto.tile_assignment_devices)
        count = int(np.prod(proto.iota_reshape_dims))
        return list(iota_groups((1, count), proto.iota_reshape_dims, proto.iota_transpose_perm)[0])

    def num_devices(self) -> int:
        return len(self.tile_assignment_devices())

    def num_dimensions(self) -> int:
        return len(self._proto.tile_assignment_dimensions)

    def replicate_on_last_tile_dim(self) -> bool:
        return self._proto.replicate_on_last_tile_dim

    def subgroup_types(self) -> list[OpSharding.Type]:
        return list(map(OpSharding.Type, self._proto.last_tile_dims))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HloSharding) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text


class Sharding:
    """Base class of the shardings that name devices."""


class SingleDeviceSharding(Sharding):
    """The whole value on one device."""

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self.device = device
        self.memory_kind = memory_kind

    def __repr__(self) -> str:
        return f"SingleDeviceSharding({self.device})"


class GSPMDSharding(Sharding):
    """An HloSharding over a list of devices."""

    def __init__(
        self, devices: Sequence[Any], op_sharding: OpSharding | HloSharding, *, memory_kind: str | None = None
    ) -> None:
        self.devices = tuple(devices)
        self.memory_kind = memory_kind
        if isinstance(op_sharding, OpSharding):
            op_sharding = HloSharding.from_proto(op_sharding)
        self.hlo_sharding = op_sharding

    def __repr__(self) -> str:
        return f"GSPMDSharding({self.hlo_sharding})"


class NamedSharding(Sharding):
    """Dimensions by the names of a mesh's axes."""

    def __init__(self, mesh: Any, spec: Any, *, memory_kind: str | None = None) -> None:
        self.mesh = mesh
        self.spec = spec
        self.memory_kind = memory_kind

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh}, {self.spec})"


class PmapSharding(Sharding):
    """One part per device along a dimension."""

    def __init__(self, devices: Any, sharding_spec: Any) -> None:
        self.devices = devices
        self.sharding_spec = sharding_spec

    def __repr__(self) -> str:
        return f"PmapSharding({self.sharding_spec})"
