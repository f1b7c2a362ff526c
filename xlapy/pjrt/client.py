"""The client, its device, and the kinds of memory that this has: all that JAX asks before it runs anything.

The client says that its platform is "cpu". So JAX lowers programs as for its own CPU client: linear algebra to custom
calls of LAPACK, callbacks to calls of numbered functions, which xlapy serves as it does for `xlapy.jax`; it donates
arguments, and hands arrays to numpy and by DLPack without copies. All of that hangs on the name. What it costs is
that `device.platform` does not tell xlapy from XLA: `device.device_kind` and `client.platform_version` do.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir.dialects import stablehlo

from xlapy.pjrt.abi import NamedValue, ValueType, size_of
from xlapy.pjrt.native import native
from xlapy.pjrt.records import DeviceRecord, MemoryRecord, Text, numbers
from xlapy.pjrt.table import implements
from xlapy.support.errors import ArgumentError, InternalError
from xlapy.support.version import VERSION

PLATFORM_NAME = "cpu"
DEVICE_KIND = "xlapy"
MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""As JAX's CPU client has them; all are the same memory."""


class Memory:
    """A kind of memory of a device."""

    def __init__(self, number: int, kind: str, device: Device) -> None:
        self.number = number
        self.kind = Text(kind)
        self.kind_number = MEMORY_KINDS.index(kind)
        self.description = Text(f"XlapyMemory(id={number}, kind={kind})")
        self.devices = numbers([device.address])
        self.record = MemoryRecord(
            device=device.address, kind=self.kind.address, kind_size=self.kind.size, number=number
        )
        self.address = ctypes.addressof(self.record)


class Device:
    """The processor, with its cores."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.kind = Text(DEVICE_KIND)
        self.description = Text(f"XlapyDevice(id={number})")
        self.record = DeviceRecord(number=number)
        self.address = ctypes.addressof(self.record)
        first = number * len(MEMORY_KINDS)
        self.memories = [Memory(first + place, kind, self) for place, kind in enumerate(MEMORY_KINDS)]
        self.memory_table = numbers([memory.address for memory in self.memories])
        self.record.memory = self.memories[0].address


class Client:
    """All devices of this process."""

    def __init__(self, count: int) -> None:
        self.platform_name = Text(PLATFORM_NAME)
        self.platform_version = Text(f"xlapy {VERSION}")
        self.devices = [Device(number) for number in range(count)]
        self.memories = [memory for device in self.devices for memory in device.memories]
        self.device_table = numbers([device.address for device in self.devices])
        self.memory_table = numbers([memory.address for memory in self.memories])
        self._devices = {device.address: device for device in self.devices}
        self._memories = {memory.address: memory for memory in self.memories}
        self.address = ctypes.addressof(self.device_table)  # a handle like any other

    def device(self, handle: int) -> Device:
        return self._devices[handle]

    def memory(self, handle: int) -> Memory:
        return self._memories[handle]

    def device_numbered(self, number: int) -> Device:
        if not 0 <= number < len(self.devices):
            raise ArgumentError(f"there is no device {number}; xlapy's client has {len(self.devices)}")
        return self.devices[number]


@functools.cache
def client() -> Client:
    """The one of this process."""
    return Client(1)


# -- named values ------------------------------------------------------------------------------------------------------


class NamedValues:
    """A table of PJRT_NamedValue."""

    def __init__(self, values: Mapping[str, bool | int | float | str | Sequence[int]]) -> None:
        self._table = (NamedValue * max(1, len(values)))()
        self._kept: list[Any] = []
        self.count = len(values)
        self.address = ctypes.addressof(self._table)
        for place, (name, value) in zip(self._table, values.items(), strict=False):
            self._store(place, name, value)

    def _store(self, place: NamedValue, name: str, value: bool | int | float | str | Sequence[int]) -> None:
        title = Text(name)
        self._kept.append(title)
        place.struct_size = size_of(NamedValue)
        place.name, place.name_size, place.value_size = title.address, title.size, 1
        match value:
            case bool():
                place.type, place.bool_value = ValueType.BOOL, value
            case int():
                place.type, place.int64_value = ValueType.INT64, value
            case float():
                place.type, place.float_value = ValueType.FLOAT, value
            case str():
                text = Text(value)
                self._kept.append(text)
                place.type, place.string_value, place.value_size = ValueType.STRING, text.address, text.size
            case _:
                table = numbers(value)
                self._kept.append(table)
                place.type, place.int64_array_value = ValueType.INT64_LIST, ctypes.addressof(table)
                place.value_size = len(value)


@functools.cache
def _attributes() -> NamedValues:
    """What JAX asks of a plugin: programs are to come in the newest StableHLO that this jaxlib has, as it reads them
    here, too."""
    current = [int(part) for part in stablehlo.get_current_version().split(".")]
    least = [int(part) for part in stablehlo.get_minimum_version().split(".")]
    return NamedValues({"xla_version": 2, "stablehlo_current_version": current, "stablehlo_minimum_version": least})


@functools.cache
def _no_values() -> NamedValues:
    return NamedValues({})


@implements("PJRT_Plugin_Attributes")
def plugin_attributes(arguments: Any) -> None:
    arguments.attributes, arguments.num_attributes = _attributes().address, _attributes().count


# -- the client and its topology ---------------------------------------------------------------------------------------


@implements("PJRT_Client_Create")
def create_client(arguments: Any) -> None:
    arguments.client = client().address


@implements("PJRT_Client_PlatformName", "PJRT_TopologyDescription_PlatformName")
def platform_name(arguments: Any) -> None:
    text = client().platform_name
    arguments.platform_name, arguments.platform_name_size = text.address, text.size


@implements("PJRT_Client_PlatformVersion", "PJRT_TopologyDescription_PlatformVersion")
def platform_version(arguments: Any) -> None:
    text = client().platform_version
    arguments.platform_version, arguments.platform_version_size = text.address, text.size


@implements("PJRT_Client_ProcessIndex", "PJRT_DeviceDescription_ProcessIndex")
def process_index(arguments: Any) -> None:
    arguments.process_index = 0


@implements("PJRT_Client_TopologyDescription")
def client_topology(arguments: Any) -> None:
    arguments.topology = client().address


@implements("PJRT_Client_UpdateGlobalProcessInfo")
def update_processes(arguments: Any) -> None:
    """There is one process."""


@implements("PJRT_Client_Devices")
def client_devices(arguments: Any) -> None:
    arguments.devices, arguments.num_devices = ctypes.addressof(client().device_table), len(client().devices)


@implements("PJRT_Client_AddressableDevices")
def client_addressable_devices(arguments: Any) -> None:
    arguments.addressable_devices = ctypes.addressof(client().device_table)
    arguments.num_addressable_devices = len(client().devices)


@implements("PJRT_Client_AddressableMemories")
def client_memories(arguments: Any) -> None:
    arguments.addressable_memories = ctypes.addressof(client().memory_table)
    arguments.num_addressable_memories = len(client().memories)


@implements("PJRT_Client_LookupDevice")
def lookup_device(arguments: Any) -> None:
    arguments.device = client().device_numbered(arguments.id).address


@implements("PJRT_Client_LookupAddressableDevice")
def lookup_addressable_device(arguments: Any) -> None:
    arguments.addressable_device = client().device_numbered(arguments.local_hardware_id).address


@implements("PJRT_Client_DefaultDeviceAssignment")
def default_assignment(arguments: Any) -> None:
    count = arguments.num_replicas * arguments.num_partitions
    if count > arguments.default_assignment_size:
        raise InternalError(f"no room for an assignment of {count} devices")
    assigned = (ctypes.c_int * count).from_address(arguments.default_assignment)
    assigned[:] = [client().device_numbered(number).number for number in range(count)]


@implements("PJRT_TopologyDescription_GetDeviceDescriptions")
def topology_devices(arguments: Any) -> None:
    arguments.descriptions, arguments.num_descriptions = ctypes.addressof(client().device_table), len(client().devices)


@implements("PJRT_TopologyDescription_Attributes")
def topology_attributes(arguments: Any) -> None:
    arguments.attributes, arguments.num_attributes = _no_values().address, 0


@implements("PJRT_TopologyDescription_Fingerprint")
def topology_fingerprint(arguments: Any) -> None:
    arguments.fingerprint = len(client().devices)


# -- devices; their descriptions are the same handles ------------------------------------------------------------------


@implements("PJRT_Device_GetDescription")
def device_description(arguments: Any) -> None:
    arguments.device_description = arguments.device


@implements("PJRT_Device_IsAddressable")
def is_addressable(arguments: Any) -> None:
    arguments.is_addressable = True


@implements("PJRT_Device_LocalHardwareId")
def local_hardware_id(arguments: Any) -> None:
    arguments.local_hardware_id = client().device(arguments.device).number


@implements("PJRT_Device_AddressableMemories")
def device_memories(arguments: Any) -> None:
    table = client().device(arguments.device).memory_table
    arguments.memories, arguments.num_memories = ctypes.addressof(table), len(MEMORY_KINDS)


@implements("PJRT_Device_DefaultMemory")
def default_memory(arguments: Any) -> None:
    arguments.memory = client().device(arguments.device).record.memory


@implements("PJRT_Device_GetAttributes")
def device_attributes(arguments: Any) -> None:
    arguments.attributes, arguments.num_attributes = _no_values().address, 0
    arguments.device_attributes = None
    arguments.attributes_deleter = native().address("PJRT_Layouts_MemoryLayout_Destroy")  # which does nothing


@implements("PJRT_DeviceDescription_Id")
def device_number(arguments: Any) -> None:
    arguments.id = client().device(arguments.device_description).number


@implements("PJRT_DeviceDescription_Attributes")
def description_attributes(arguments: Any) -> None:
    arguments.attributes, arguments.num_attributes = _no_values().address, 0


@implements("PJRT_DeviceDescription_Kind")
def device_kind(arguments: Any) -> None:
    text = client().device(arguments.device_description).kind
    arguments.device_kind, arguments.device_kind_size = text.address, text.size


@implements("PJRT_DeviceDescription_DebugString")
def device_debug_string(arguments: Any) -> None:
    text = client().device(arguments.device_description).description
    arguments.debug_string, arguments.debug_string_size = text.address, text.size


@implements("PJRT_DeviceDescription_ToString")
def device_string(arguments: Any) -> None:
    text = client().device(arguments.device_description).description
    arguments.to_string, arguments.to_string_size = text.address, text.size


# -- memories ----------------------------------------------------------------------------------------------------------


@implements("PJRT_Memory_Id")
def memory_number(arguments: Any) -> None:
    arguments.id = client().memory(arguments.memory).number


@implements("PJRT_Memory_Kind_Id")
def memory_kind_number(arguments: Any) -> None:
    arguments.kind_id = client().memory(arguments.memory).kind_number


@implements("PJRT_Memory_DebugString")
def memory_debug_string(arguments: Any) -> None:
    text = client().memory(arguments.memory).description
    arguments.debug_string, arguments.debug_string_size = text.address, text.size


@implements("PJRT_Memory_ToString")
def memory_string(arguments: Any) -> None:
    text = client().memory(arguments.memory).description
    arguments.to_string, arguments.to_string_size = text.address, text.size


@implements("PJRT_Memory_AddressableByDevices")
def memory_devices(arguments: Any) -> None:
    table = client().memory(arguments.memory).devices
    arguments.devices, arguments.num_devices = ctypes.addressof(table), 1
