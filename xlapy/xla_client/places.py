"""Memories, lists of devices, and topologies: on CPUs, other words for the same few things."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xlapy.xla_client.devices import Device

HOST_MEMORY = "unpinned_host"
"""The kind of the only memory there is."""


class Memory:
    """The host's memory, as a device sees it."""

    def __init__(self, device: Device) -> None:
        self._device = device

    @property
    def kind(self) -> str:
        return HOST_MEMORY

    @property
    def platform(self) -> str:
        return self._device.platform

    @property
    def process_index(self) -> int:
        return self._device.process_index

    def addressable_by_devices(self) -> list[Device]:
        return [self._device]

    def __repr__(self) -> str:
        return f"Memory({HOST_MEMORY} of {self._device})"


class DeviceList(Sequence[Any]):
    """Devices in an order; equal lists are equal."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = tuple(devices)

    def __getitem__(self, index: Any) -> Any:
        return self._devices[index]

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[Device]:
        return iter(self._devices)

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def addressable_device_list(self) -> DeviceList:
        return self

    @property
    def default_memory_kind(self) -> str | None:
        return HOST_MEMORY if self._devices else None

    @property
    def memory_kinds(self) -> tuple[str, ...]:
        return (HOST_MEMORY,) if self._devices else ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceList) and self._devices == other._devices

    def __hash__(self) -> int:
        return hash(self._devices)

    def __repr__(self) -> str:
        return f"DeviceList({list(self._devices)})"


class DeviceTopology:
    """The devices that a program may be compiled for."""

    def __init__(self, platform: str, platform_version: str, devices: Sequence[Device]) -> None:
        self.platform = platform
        self.platform_version = platform_version
        self._devices = list(devices)

    def _make_compile_only_devices(self) -> list[Device]:
        return self._devices

    def __repr__(self) -> str:
        return f"DeviceTopology({self.platform}, {len(self._devices)} devices)"
