"""Arrays on a device: numpy arrays with the methods of the old buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xlapy.hlo.shape import Shape as HloShape
from xlapy.support.errors import ArgumentError
from xlapy.xla_client.shapes import Shape
from xlapy.xla_client.tracebacks import Traceback

if TYPE_CHECKING:
    from xlapy.xla_client.client import Client
    from xlapy.xla_client.devices import Device


class Buffer:
    """An array that a program takes or returned. `np.asarray(buffer)` is a read-only view of it."""

    __slots__ = ("__weakref__", "_array", "_device", "traceback")

    def __init__(self, array: np.ndarray[Any, Any], device: Device) -> None:
        view = array.view()
        view.flags.writeable = False
        self._array: np.ndarray[Any, Any] | None = view
        self._device = device
        self.traceback = Traceback.get_traceback()
        device.client.remember(self)

    @staticmethod
    def from_pyval(value: Any, device: int = 0, backend: Client | None = None) -> Any:
        """A buffer of an array; a tuple of buffers of a tuple."""
        if backend is None:
            raise ArgumentError("Buffer.from_pyval needs its backend: Buffer.from_pyval(x, backend=make_cpu_client())")
        return backend.buffer_from_pyval(value, backend.devices()[device])

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The elements; raises ArgumentError when the buffer was deleted."""
        if self._array is None:
            raise ArgumentError("this buffer was deleted")
        return self._array

    def to_py(self) -> np.ndarray[Any, Any]:
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.array if dtype is None else self.array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __dlpack__(self, **arguments: Any) -> Any:
        return np.array(self.array).__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def xla_shape(self) -> Shape:
        return Shape(HloShape.of(self.array))

    def device(self) -> Device:
        return self._device

    def platform(self) -> str:
        return self._device.platform

    def clone(self) -> Buffer:
        """A buffer of the same elements, which outlives the deletion of this one."""
        return Buffer(self.array, self._device)

    def copy_to_device(self, device: Device) -> Buffer:
        return Buffer(self.array.copy(), device)

    def block_until_ready(self) -> Buffer:
        """This buffer: programs have ended when they return."""
        _ = self.array
        return self

    def is_ready(self) -> bool:
        return self._array is not None

    def is_deleted(self) -> bool:
        return self._array is None

    def delete(self) -> None:
        """Lets go of the elements."""
        self._array = None

    def unsafe_buffer_pointer(self) -> int:
        """The address of the first element."""
        return int(self.array.ctypes.data)

    def on_device_size_in_bytes(self) -> int:
        return int(self.array.nbytes)

    def __repr__(self) -> str:
        return f"<Buffer {'deleted' if self._array is None else self.xla_shape()} on {self._device}>"


class _Capsule:
    """A capsule of DLPack as what numpy asks for one."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLPACK_CPU, 0


DLPACK_CPU = 1
"""The kind of device that is this machine's memory."""


def buffer_to_dlpack_managed_tensor(buffer: Buffer, stream: Any = None, take_ownership: bool = False) -> Any:
    """A capsule of a copy of the buffer. A buffer whose ownership is taken is deleted, as it was in jaxlib."""
    capsule = buffer.__dlpack__()
    if take_ownership:
        buffer.delete()
    return capsule


def dlpack_managed_tensor_to_buffer(dlpack: Any, cpu_backend: Client | Device, *others: Any) -> Buffer:
    """The array in a capsule, shared with who made it, as a buffer on the device, or on the client's first one. What
    jaxlib took besides are backends and streams of other machines."""
    devices = getattr(cpu_backend, "devices", None)
    array = np.from_dlpack(_Capsule(dlpack))
    return Buffer(array, devices()[0] if callable(devices) else cpu_backend)  # type: ignore[arg-type]
