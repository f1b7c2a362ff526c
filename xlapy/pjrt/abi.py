"""The PJRT C API as ctypes sees it: the table of functions, their arguments, and the numbers of its enumerations.

Each function takes the address of a structure that begins with its own size and a place for extensions, and returns
null or a `PJRT_Error*`. Here are the fields behind these two, of the functions that are implemented; a function that
is not needs only its name, for its place in the table.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Mapping
from typing import Any

MAJOR_VERSION, MINOR_VERSION = 0, 104
"""Of the header that this follows. A caller with a newer one leaves alone what a table of that version lacks."""

CAPSULE_NAME = b"pjrt_c_api"

_KINDS: Mapping[str, Any] = {
    "ptr": ctypes.c_void_p,
    "size": ctypes.c_size_t,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int,
    "bool": ctypes.c_bool,
}

_EXTENSIONS = {
    "PJRT_FFI_UserData_Add": "context ptr, type_id i64, data ptr",
    "PJRT_Shardings_PJRT_Executable_ParameterShardings": (
        "executable ptr, num_parameters size, shardings ptr, sharding_sizes ptr"
    ),
    "PJRT_Shardings_PJRT_Executable_OutputShardings": (
        "executable ptr, num_outputs size, shardings ptr, sharding_sizes ptr"
    ),
    "PJRT_Layouts_MemoryLayout_Destroy": "layout ptr",
    "PJRT_Layouts_MemoryLayout_Serialize": (
        "layout ptr, serialized_bytes ptr, serialized_bytes_size size, serialized_layout ptr, "
        "serialized_layout_deleter ptr"
    ),
    "PJRT_Layouts_PJRT_Client_GetDefaultLayout": "client ptr, type i32, dims ptr, num_dims size, layout ptr",
    "PJRT_Layouts_PJRT_Buffer_MemoryLayout": "buffer ptr, layout ptr",
    "PJRT_Layouts_PJRT_Topology_GetDefaultLayout": (
        "topology_description ptr, type i32, dims ptr, num_dims size, layout ptr"
    ),
    "PJRT_Layouts_PJRT_Executable_GetOutputLayouts": "executable ptr, num_outputs size, layouts ptr",
    "PJRT_Layouts_PJRT_Executable_GetParameterLayouts": "executable ptr, num_parameters size, layouts ptr",
}

_ARGUMENTS = _EXTENSIONS | {
    "PJRT_Error_Destroy": "error ptr",
    "PJRT_Error_Message": "error ptr, message ptr, message_size size",
    "PJRT_Error_GetCode": "error ptr, code i32",
    "PJRT_Error_ForEachPayload": "error ptr, visitor ptr, user_arg ptr",
    "PJRT_Plugin_Initialize": "",
    "PJRT_Plugin_Attributes": "attributes ptr, num_attributes size",
    "PJRT_Event_Destroy": "event ptr",
    "PJRT_Event_IsReady": "event ptr, is_ready bool",
    "PJRT_Event_Error": "event ptr",
    "PJRT_Event_Await": "event ptr",
    "PJRT_Event_OnReady": "event ptr, callback ptr, user_arg ptr",
    "PJRT_Client_Create": (
        "create_options ptr, num_options size, kv_get_callback ptr, kv_get_user_arg ptr, kv_put_callback ptr, "
        "kv_put_user_arg ptr, client ptr, kv_try_get_callback ptr, kv_try_get_user_arg ptr"
    ),
    "PJRT_Client_Destroy": "client ptr",
    "PJRT_Client_PlatformName": "client ptr, platform_name ptr, platform_name_size size",
    "PJRT_Client_ProcessIndex": "client ptr, process_index i32",
    "PJRT_Client_PlatformVersion": "client ptr, platform_version ptr, platform_version_size size",
    "PJRT_Client_TopologyDescription": "client ptr, topology ptr",
    "PJRT_Client_Devices": "client ptr, devices ptr, num_devices size",
    "PJRT_Client_AddressableDevices": "client ptr, addressable_devices ptr, num_addressable_devices size",
    "PJRT_Client_LookupDevice": "client ptr, id i32, device ptr",
    "PJRT_Client_LookupAddressableDevice": "client ptr, local_hardware_id i32, addressable_device ptr",
    "PJRT_Client_AddressableMemories": "client ptr, addressable_memories ptr, num_addressable_memories size",
    "PJRT_Client_Compile": ("client ptr, program ptr, compile_options ptr, compile_options_size size, executable ptr"),
    "PJRT_Client_DefaultDeviceAssignment": (
        "client ptr, num_replicas i32, num_partitions i32, default_assignment_size size, default_assignment ptr"
    ),
    "PJRT_Client_UpdateGlobalProcessInfo": "client ptr, process_infos ptr, num_process_infos size",
    "PJRT_Client_BufferFromHostBuffer": (
        "client ptr, data ptr, type i32, dims ptr, num_dims size, byte_strides ptr, num_byte_strides size, "
        "host_buffer_semantics i32, device ptr, memory ptr, device_layout ptr, done_with_host_buffer ptr, buffer ptr"
    ),
    "PJRT_Client_CreateViewOfDeviceBuffer": (
        "client ptr, device_buffer_ptr ptr, dims ptr, num_dims size, element_type i32, layout ptr, device ptr, "
        "on_delete_callback ptr, on_delete_callback_arg ptr, stream i64, buffer ptr, memory ptr"
    ),
    "PJRT_Client_CreateUninitializedBuffer": (
        "client ptr, shape_dims ptr, shape_num_dims size, shape_element_type i32, shape_layout ptr, device ptr, "
        "memory ptr, buffer ptr"
    ),
    "PJRT_TopologyDescription_PlatformName": "topology ptr, platform_name ptr, platform_name_size size",
    "PJRT_TopologyDescription_PlatformVersion": "topology ptr, platform_version ptr, platform_version_size size",
    "PJRT_TopologyDescription_GetDeviceDescriptions": "topology ptr, descriptions ptr, num_descriptions size",
    "PJRT_TopologyDescription_Attributes": "topology ptr, attributes ptr, num_attributes size",
    "PJRT_TopologyDescription_Fingerprint": "topology ptr, fingerprint i64",
    "PJRT_TopologyDescription_Destroy": "topology ptr",
    "PJRT_DeviceDescription_Id": "device_description ptr, id i32",
    "PJRT_DeviceDescription_ProcessIndex": "device_description ptr, process_index i32",
    "PJRT_DeviceDescription_Attributes": "device_description ptr, num_attributes size, attributes ptr",
    "PJRT_DeviceDescription_Kind": "device_description ptr, device_kind ptr, device_kind_size size",
    "PJRT_DeviceDescription_DebugString": "device_description ptr, debug_string ptr, debug_string_size size",
    "PJRT_DeviceDescription_ToString": "device_description ptr, to_string ptr, to_string_size size",
    "PJRT_Device_GetDescription": "device ptr, device_description ptr",
    "PJRT_Device_IsAddressable": "device ptr, is_addressable bool",
    "PJRT_Device_LocalHardwareId": "device ptr, local_hardware_id i32",
    "PJRT_Device_AddressableMemories": "device ptr, memories ptr, num_memories size",
    "PJRT_Device_DefaultMemory": "device ptr, memory ptr",
    "PJRT_Device_GetAttributes": (
        "device ptr, attributes ptr, num_attributes size, device_attributes ptr, attributes_deleter ptr"
    ),
    "PJRT_Device_MemoryStats": (
        "device ptr, bytes_in_use i64, peak_bytes_in_use i64, peak_bytes_in_use_is_set bool, num_allocs i64, "
        "num_allocs_is_set bool, largest_alloc_size i64, largest_alloc_size_is_set bool, bytes_limit i64, "
        "bytes_limit_is_set bool, bytes_reserved i64, bytes_reserved_is_set bool, peak_bytes_reserved i64, "
        "peak_bytes_reserved_is_set bool, bytes_reservable_limit i64, bytes_reservable_limit_is_set bool, "
        "largest_free_block_bytes i64, largest_free_block_bytes_is_set bool, pool_bytes i64, pool_bytes_is_set bool, "
        "peak_pool_bytes i64, peak_pool_bytes_is_set bool"
    ),
    "PJRT_Memory_Id": "memory ptr, id i32",
    "PJRT_Memory_Kind": "memory ptr, kind ptr, kind_size size",
    "PJRT_Memory_Kind_Id": "memory ptr, kind_id i32",
    "PJRT_Memory_DebugString": "memory ptr, debug_string ptr, debug_string_size size",
    "PJRT_Memory_ToString": "memory ptr, to_string ptr, to_string_size size",
    "PJRT_Memory_AddressableByDevices": "memory ptr, devices ptr, num_devices size",
    "PJRT_ExecuteContext_Create": "context ptr",
    "PJRT_ExecuteContext_Destroy": "context ptr",
    "PJRT_Executable_Destroy": "executable ptr",
    "PJRT_LoadedExecutable_Destroy": "executable ptr",
    "PJRT_LoadedExecutable_GetExecutable": "loaded_executable ptr, executable ptr",
    "PJRT_LoadedExecutable_GetDeviceAssignment": (
        "executable ptr, serialized_bytes ptr, serialized_bytes_size size, serialized_device_assignment ptr, "
        "serialized_device_assignment_deleter ptr"
    ),
    "PJRT_LoadedExecutable_AddressableDevices": (
        "executable ptr, addressable_devices ptr, num_addressable_devices size"
    ),
    "PJRT_LoadedExecutable_AddressableDeviceLogicalIds": (
        "executable ptr, addressable_device_logical_ids ptr, num_addressable_device_logical_ids size"
    ),
    "PJRT_LoadedExecutable_Delete": "executable ptr",
    "PJRT_LoadedExecutable_IsDeleted": "executable ptr, is_deleted bool",
    "PJRT_LoadedExecutable_Fingerprint": (
        "executable ptr, executable_fingerprint ptr, executable_fingerprint_size size"
    ),
    "PJRT_LoadedExecutable_Execute": (
        "executable ptr, options ptr, argument_lists ptr, num_devices size, num_args size, output_lists ptr, "
        "device_complete_events ptr, execute_device ptr"
    ),
    "PJRT_Executable_Name": "executable ptr, executable_name ptr, executable_name_size size",
    "PJRT_Executable_NumReplicas": "executable ptr, num_replicas size",
    "PJRT_Executable_NumPartitions": "executable ptr, num_partitions size",
    "PJRT_Executable_NumOutputs": "executable ptr, num_outputs size",
    "PJRT_Executable_SizeOfGeneratedCodeInBytes": "executable ptr, size_in_bytes i64",
    "PJRT_Executable_Fingerprint": "executable ptr, executable_fingerprint ptr, executable_fingerprint_size size",
    "PJRT_Executable_GetCostAnalysis": "executable ptr, num_properties size, properties ptr",
    "PJRT_Executable_GetCompiledMemoryStats": (
        "executable ptr, generated_code_size_in_bytes i64, argument_size_in_bytes i64, output_size_in_bytes i64, "
        "alias_size_in_bytes i64, temp_size_in_bytes i64, host_generated_code_size_in_bytes i64, "
        "host_argument_size_in_bytes i64, host_output_size_in_bytes i64, host_alias_size_in_bytes i64, "
        "host_temp_size_in_bytes i64, peak_memory_in_bytes i64, total_size_in_bytes i64"
    ),
    "PJRT_Executable_OptimizedProgram": "executable ptr, program ptr",
    "PJRT_Executable_OutputElementTypes": "executable ptr, output_types ptr, num_output_types size",
    "PJRT_Executable_OutputDimensions": "executable ptr, num_outputs size, dims ptr, dim_sizes ptr",
    "PJRT_Executable_OutputMemoryKinds": "executable ptr, num_outputs size, memory_kinds ptr, memory_kind_sizes ptr",
    "PJRT_Executable_ParameterMemoryKinds": (
        "executable ptr, num_parameters size, memory_kinds ptr, memory_kind_sizes ptr"
    ),
    "PJRT_Executable_Serialize": (
        "executable ptr, serialized_bytes ptr, serialized_bytes_size size, serialized_executable ptr, "
        "serialized_executable_deleter ptr"
    ),
    "PJRT_Executable_GetCompileOptions": (
        "executable ptr, serialized_bytes ptr, serialized_bytes_size size, serialized_compile_options ptr, "
        "serialized_compile_options_deleter ptr"
    ),
    "PJRT_Executable_DeserializeAndLoad": (
        "client ptr, serialized_executable ptr, serialized_executable_size size, loaded_executable ptr, "
        "overridden_serialized_compile_options ptr, overridden_serialized_compile_options_size size"
    ),
    "PJRT_Buffer_Destroy": "buffer ptr",
    "PJRT_Buffer_ElementType": "buffer ptr, type i32",
    "PJRT_Buffer_Dimensions": "buffer ptr, dims ptr, num_dims size",
    "PJRT_Buffer_UnpaddedDimensions": "buffer ptr, unpadded_dims ptr, num_dims size",
    "PJRT_Buffer_DynamicDimensionIndices": "buffer ptr, dynamic_dim_indices ptr, num_dynamic_dims size",
    "PJRT_Buffer_ToHostBuffer": "src ptr, host_layout ptr, dst ptr, dst_size size, event ptr",
    "PJRT_Buffer_CopyRawToHost": "buffer ptr, dst ptr, offset i64, transfer_size i64, event ptr",
    "PJRT_Buffer_OnDeviceSizeInBytes": "buffer ptr, on_device_size_in_bytes size",
    "PJRT_Buffer_Delete": "buffer ptr",
    "PJRT_Buffer_IsDeleted": "buffer ptr, is_deleted bool",
    "PJRT_Buffer_CopyToDevice": "buffer ptr, dst_device ptr, dst_buffer ptr",
    "PJRT_Buffer_CopyToMemory": "buffer ptr, dst_memory ptr, dst_buffer ptr",
    "PJRT_Buffer_IsOnCpu": "buffer ptr, is_on_cpu bool",
    "PJRT_Buffer_Device": "buffer ptr, device ptr",
    "PJRT_Buffer_Memory": "buffer ptr, memory ptr",
    "PJRT_Buffer_ReadyEvent": "buffer ptr, event ptr",
    "PJRT_Buffer_UnsafePointer": "buffer ptr, buffer_pointer size",
    "PJRT_Buffer_IncreaseExternalReferenceCount": "buffer ptr",
    "PJRT_Buffer_DecreaseExternalReferenceCount": "buffer ptr",
    "PJRT_Buffer_OpaqueDeviceMemoryDataPointer": "buffer ptr, device_memory_ptr ptr",
}

_NAMES = """\
Error_Destroy Error_Message Error_GetCode
Plugin_Initialize Plugin_Attributes
Event_Destroy Event_IsReady Event_Error Event_Await Event_OnReady
Client_Create Client_Destroy Client_PlatformName Client_ProcessIndex Client_PlatformVersion Client_Devices
Client_AddressableDevices Client_LookupDevice Client_LookupAddressableDevice Client_AddressableMemories
Client_Compile Client_DefaultDeviceAssignment Client_BufferFromHostBuffer
DeviceDescription_Id DeviceDescription_ProcessIndex DeviceDescription_Attributes DeviceDescription_Kind
DeviceDescription_DebugString DeviceDescription_ToString
Device_GetDescription Device_IsAddressable Device_LocalHardwareId Device_AddressableMemories Device_DefaultMemory
Device_MemoryStats
Memory_Id Memory_Kind Memory_DebugString Memory_ToString Memory_AddressableByDevices
Executable_Destroy Executable_Name Executable_NumReplicas Executable_NumPartitions Executable_NumOutputs
Executable_SizeOfGeneratedCodeInBytes Executable_GetCostAnalysis Executable_OutputMemoryKinds
Executable_OptimizedProgram Executable_Serialize
LoadedExecutable_Destroy LoadedExecutable_GetExecutable LoadedExecutable_AddressableDevices
LoadedExecutable_Delete LoadedExecutable_IsDeleted LoadedExecutable_Execute
Executable_DeserializeAndLoad LoadedExecutable_Fingerprint
Buffer_Destroy Buffer_ElementType Buffer_Dimensions Buffer_UnpaddedDimensions Buffer_DynamicDimensionIndices
Buffer_GetMemoryLayout Buffer_OnDeviceSizeInBytes Buffer_Device Buffer_Memory Buffer_Delete Buffer_IsDeleted
Buffer_CopyToDevice Buffer_ToHostBuffer Buffer_IsOnCpu Buffer_ReadyEvent Buffer_UnsafePointer
Buffer_IncreaseExternalReferenceCount Buffer_DecreaseExternalReferenceCount
Buffer_OpaqueDeviceMemoryDataPointer
CopyToDeviceStream_Destroy CopyToDeviceStream_AddChunk CopyToDeviceStream_TotalBytes
CopyToDeviceStream_GranuleSize CopyToDeviceStream_CurrentBytes
TopologyDescription_Create TopologyDescription_Destroy TopologyDescription_PlatformName
TopologyDescription_PlatformVersion TopologyDescription_GetDeviceDescriptions TopologyDescription_Serialize
TopologyDescription_Attributes
Compile Executable_OutputElementTypes Executable_OutputDimensions Buffer_CopyToMemory
Client_CreateViewOfDeviceBuffer Executable_Fingerprint Client_TopologyDescription
Executable_GetCompiledMemoryStats Memory_Kind_Id ExecuteContext_Create ExecuteContext_Destroy
Buffer_CopyRawToHost
AsyncHostToDeviceTransferManager_Destroy AsyncHostToDeviceTransferManager_TransferData
Client_CreateBuffersForAsyncHostToDevice AsyncHostToDeviceTransferManager_RetrieveBuffer
AsyncHostToDeviceTransferManager_Device AsyncHostToDeviceTransferManager_BufferCount
AsyncHostToDeviceTransferManager_BufferSize AsyncHostToDeviceTransferManager_SetBufferError
AsyncHostToDeviceTransferManager_AddMetadata
Client_DmaMap Client_DmaUnmap Client_CreateUninitializedBuffer Client_UpdateGlobalProcessInfo
TopologyDescription_Deserialize Client_CreateAliasBuffer Client_FulfillAliasBuffer
LoadedExecutable_GetDeviceAssignment Client_CreateErrorBuffer AsyncHostToDeviceTransferManager_TransferLiteral
Buffer_CopyRawToHostFuture Device_PoisonExecution Device_CreateAsyncTrackingEvent AsyncTrackingEvent_Destroy
Executable_GetCompileOptions Buffer_DonateWithControlDependency Event_Create Event_Set Device_GetAttributes
Client_Load LoadedExecutable_AddressableDeviceLogicalIds Buffer_Bitcast Error_ForEachPayload
TopologyDescription_Fingerprint Executable_ParameterMemoryKinds
"""

FUNCTIONS = tuple(f"PJRT_{name}" for name in _NAMES.split())
"""All of the table, in its order."""


@functools.cache
def arguments_of(function: str) -> type[ctypes.Structure]:
    """The structure of a function's arguments."""
    return _structure(f"{function}_Args", _ARGUMENTS[function])


def _structure(name: str, declared: str) -> type[ctypes.Structure]:
    fields = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), *_fields(declared)]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _fields(declared: str) -> Iterator[tuple[str, Any]]:
    for field in filter(None, declared.split(", ")):
        name, kind = field.split()
        yield name, _KINDS[kind]


class Version(ctypes.Structure):
    """PJRT_Api_Version."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("major_version", ctypes.c_int),
        ("minor_version", ctypes.c_int),
    )


class Api(ctypes.Structure):
    """PJRT_Api: the table."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("pjrt_api_version", Version),
        *((name, ctypes.c_void_p) for name in FUNCTIONS),
    )


class _Value(ctypes.Union):
    _fields_ = (
        ("string_value", ctypes.c_void_p),
        ("int64_value", ctypes.c_int64),
        ("int64_array_value", ctypes.c_void_p),
        ("float_value", ctypes.c_float),
        ("bool_value", ctypes.c_bool),
    )


class NamedValue(ctypes.Structure):
    """PJRT_NamedValue."""

    _anonymous_ = ("value",)
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("value", _Value),
        ("value_size", ctypes.c_size_t),
    )


class ValueType:
    """PJRT_NamedValue_Type."""

    STRING = 0
    INT64 = 1
    INT64_LIST = 2
    FLOAT = 3
    BOOL = 4


class Program(ctypes.Structure):
    """PJRT_Program."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("code", ctypes.c_void_p),
        ("code_size", ctypes.c_size_t),
        ("format", ctypes.c_void_p),
        ("format_size", ctypes.c_size_t),
    )


class ExecuteOptions(ctypes.Structure):
    """PJRT_ExecuteOptions, as far as it matters here."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("send_callbacks", ctypes.c_void_p),
        ("recv_callbacks", ctypes.c_void_p),
        ("num_send_ops", ctypes.c_size_t),
        ("num_recv_ops", ctypes.c_size_t),
        ("launch_id", ctypes.c_int),
        ("non_donatable_input_indices", ctypes.c_void_p),
        ("num_non_donatable_input_indices", ctypes.c_size_t),
        ("context", ctypes.c_void_p),
    )


class TiledLayout(ctypes.Structure):
    """PJRT_Buffer_MemoryLayout whose type is tiled, or strided: both begin with a list of numbers."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("inner_size", ctypes.c_size_t),
        ("inner_extension", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("num_numbers", ctypes.c_size_t),
        ("tile_dims", ctypes.c_void_p),
        ("tile_dim_sizes", ctypes.c_void_p),
        ("num_tiles", ctypes.c_size_t),
        ("type", ctypes.c_int),
    )


class LayoutType:
    """PJRT_Buffer_MemoryLayout_Type: the numbers say which dimension comes first, or how far apart elements are."""

    TILED = 0
    STRIDES = 1


class LogicalIds(ctypes.Structure):
    """PJRT_LogicalDeviceIds."""

    _fields_ = (("replica", ctypes.c_int), ("partition", ctypes.c_int))


class ExtensionBase(ctypes.Structure):
    """PJRT_Extension_Base."""

    _fields_ = (("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p))


class ExtensionType:
    LAYOUTS = 4
    FFI = 5
    SHARDINGS = 19


class ErrorCode:
    """PJRT_Error_Code."""

    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    DEADLINE_EXCEEDED = 4
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    CANCELLED = 1


class Semantics:
    """PJRT_HostBufferSemantics: how long a host buffer stays as it is."""

    IMMUTABLE_ZERO_COPY = 2
    """As long as the buffer lives. So do those with higher numbers."""


_ELEMENT_TYPES = """\
pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 bf16 c64 c128
f8e5m2 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz s4 u4 token s2 u2
f8e4m3 f8e3m4 f8e8m0fnu f4e2m1fn
"""

ELEMENT_TYPES = dict(enumerate(_ELEMENT_TYPES.split(), 1))
"""PJRT_Buffer_Type: HLO's names of the element types."""

TOKEN_TYPE = 23


def size_of(structure: type[ctypes.Structure]) -> int:
    """The size of a structure as the header counts it: to the end of the last field, without padding."""
    last = structure._fields_[-1][0]
    field = getattr(structure, last)
    return int(field.offset + field.size)
