"""Python functions that programs call while they run.

Two ways lead to one. A custom call of the target `xla_python_cpu_callback` has the number of the function as its first
operand; `describe` gives out the numbers. Or the program sends operands to the host and receives results from it, and
a `HostCallback` stands at the other end of those channels.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from xlapy.support.errors import ArgumentError, ExecutionError
from xlapy.xla_client.shapes import Shape
from xlapy_runtime import custom_calls
from xlapy_runtime.device import Device
from xlapy_runtime.wording import kind_of

TARGET = "xla_python_cpu_callback"
"""The name that custom calls know all such functions by."""


class PythonCallback:
    """A function with a number. Programs find it as long as somebody has this object."""

    def __init__(
        self, function: Callable[..., Any], operand_shapes: Sequence[Shape], result_shapes: Sequence[Shape] | None
    ) -> None:
        _check_callable(function)
        self._function = function
        self._operands = [shape for shape in operand_shapes if not shape.is_token()]
        self._results = None if result_shapes is None else [shape for shape in result_shapes if not shape.is_token()]

    def __call__(self, *operands: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
        if len(operands) != len(self._operands):
            raise ExecutionError(
                f"the callback {self._function!r} is described with {len(self._operands)} operands, got {len(operands)}"
            )
        results = _as_arrays(self._function(*operands))
        if self._results is not None:
            _check_results(self._function, results, self._results)
        return results


_NUMBERS = itertools.count(1)
_CALLBACKS: weakref.WeakValueDictionary[int, PythonCallback] = weakref.WeakValueDictionary()


def describe(
    function: Callable[..., Any], operand_shapes: Sequence[Shape], result_shapes: Sequence[Shape] | None = None
) -> tuple[int, PythonCallback]:
    """The number of a function, and the object to keep for as long as programs call it."""
    callback = PythonCallback(function, operand_shapes, result_shapes)
    number = next(_NUMBERS)
    _CALLBACKS[number] = callback
    return number, callback


def _call_by_number(number: np.ndarray[Any, Any], *operands: np.ndarray[Any, Any], **_: Any) -> Any:
    """The target: calls the function whose number is the first operand."""
    callback = _CALLBACKS.get(int(number))
    if callback is None:
        raise ExecutionError(
            f"there is no callback number {int(number)}: keep the second thing that "
            "get_emit_python_callback_descriptor returned, as with executable.keep_alive(...)"
        )
    return callback(*operands)


custom_calls.register_custom_call_target(TARGET, _call_by_number)


class HostCallback:
    """A function at the host's end of channels: the program sends it operands, and receives its results.

    It is called when all operands of a run have arrived, so the program must not wait for results before. Runs on one
    device come one after the other."""

    def __init__(
        self,
        function: Callable[..., Any],
        operand_shapes: Sequence[Shape],
        result_shapes: Sequence[Shape],
        send_channels: Sequence[int],
        recv_channels: Sequence[int],
    ) -> None:
        _check_callable(function)
        for what, shapes, channels in (
            ("operands", operand_shapes, send_channels),
            ("results", result_shapes, recv_channels),
        ):
            if len(shapes) != len(channels):
                raise ArgumentError(f"a callback of {len(shapes)} {what} is given {len(channels)} channels for them")
        self._function = function
        self._results = list(result_shapes)
        self._send_channels = list(send_channels)
        self._recv_channels = list(recv_channels)

    def connect(self, device: Device) -> None:
        """Stands at the channels of a device from now on."""
        exchange = _Exchange(self)
        for position, channel in enumerate(self._send_channels):
            device.set_send_callback(channel, partial(exchange.operand, position))
        for position, channel in enumerate(self._recv_channels):
            device.set_recv_callback(channel, partial(exchange.result, position))

    def call(self, operands: Sequence[np.ndarray[Any, Any]]) -> tuple[np.ndarray[Any, Any], ...]:
        results = _as_arrays(self._function(*operands))
        _check_results(self._function, results, self._results)
        return results

    @property
    def operand_count(self) -> int:
        return len(self._send_channels)


class _Exchange:
    """The operands of a run on one device that have arrived, and the results that have not been fetched."""

    def __init__(self, callback: HostCallback) -> None:
        self._callback = callback
        self._lock = threading.Lock()
        self._operands: dict[int, Any] = {}
        self._results: dict[int, Any] = {}

    def operand(self, position: int, value: Any) -> None:
        """Takes an operand from the program; the last one calls the function."""
        with self._lock:
            self._operands[position] = value
            if len(self._operands) < self._callback.operand_count:
                return
            operands = [self._operands[index] for index in range(self._callback.operand_count)]
            self._operands.clear()
        results = self._callback.call(operands)
        with self._lock:
            self._results.update(enumerate(results))

    def result(self, position: int) -> Any:
        """Hands a result to the program."""
        with self._lock:
            if position not in self._results and not self._callback.operand_count:
                self._results.update(enumerate(self._callback.call([])))
            if position not in self._results:
                raise ExecutionError(
                    f"the program receives result {position} of a callback before it has sent all "
                    f"{self._callback.operand_count} operands: order them by a token"
                )
            return self._results.pop(position)


def _check_callable(function: Any) -> None:
    if not callable(function):
        raise ArgumentError(f"a callback is a function, not {kind_of(function)}")


def _as_arrays(results: Any) -> tuple[np.ndarray[Any, Any], ...]:
    """What a function returned: nothing, one array, or several."""
    if results is None:
        return ()
    listed = results if isinstance(results, (tuple, list)) else (results,)
    return tuple(np.asarray(result) for result in listed)


def _check_results(function: Any, results: Sequence[np.ndarray[Any, Any]], shapes: Sequence[Shape]) -> None:
    if len(results) != len(shapes):
        raise ExecutionError(f"the callback {function!r} returned {len(results)} arrays, {len(shapes)} are declared")
    for position, (result, shape) in enumerate(zip(results, shapes, strict=True)):
        if result.shape != shape.dimensions() or result.dtype != shape.numpy_dtype():
            raise ExecutionError(
                f"result {position} of the callback {function!r} is {result.dtype}{list(result.shape)}, "
                f"declared as {shape}"
            )
