"""The leaves of arguments and results: what JAX sees in them, and the numpy arrays that programs read and write.

A *signature* is what of a leaf JAX's tracing depends on: element type, dimensions, and whether the type is weak (that
of a Python scalar gives way to the other operand's). It also tells apart the kinds of leaves that are read differently,
so that one reader serves all leaves of one signature.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Literal, TypeAlias

import jax
import numpy as np

from xlapy.jax.internals import ArrayImpl, key_implementation, weakly_typed
from xlapy.support.errors import ArgumentError, UnsupportedError
from xlapy_runtime.wording import kind_of

ResultKind: TypeAlias = Literal["numpy", "jax"]
"""The kind of arrays that a call returns."""

Signature: TypeAlias = Hashable
Reader: TypeAlias = Callable[[Any], np.ndarray]
Writer: TypeAlias = Callable[[np.ndarray], Any]


class TracedLeafError(UnsupportedError):
    """A leaf is a value that JAX is tracing."""


PYTHON_SCALARS = frozenset({bool, int, float, complex})


def signatures(leaves: Sequence[Any]) -> tuple[Signature, ...]:
    """The signatures of all leaves, one after the other. It is most of what a call costs, so that the common kinds of
    leaves are told by their exact type, without a function call or a tuple for each."""
    found: list[Signature] = []
    for leaf in leaves:
        kind = type(leaf)
        if kind is np.ndarray:
            found += (leaf.dtype, leaf.shape)
        elif kind is ArrayImpl:
            found += (leaf.dtype, leaf.shape, leaf.weak_type)
        else:
            found.append(signature(leaf))
    return tuple(found)


def signature(leaf: Any) -> Signature:
    """What of a leaf decides how it is traced and read. Raises ArgumentError for what is not an array."""
    kind: type = type(leaf)
    if kind in PYTHON_SCALARS:
        return kind
    if isinstance(leaf, np.ma.MaskedArray):
        raise ArgumentError("elements of an argument are masked; .filled(...) gives them values")
    if isinstance(leaf, (np.ndarray, np.generic)):
        return (leaf.dtype, leaf.shape)
    if isinstance(leaf, jax.core.Tracer):
        raise TracedLeafError(
            "a function of xlapy.jax.jit was called with a value that JAX is tracing: it has no rule for grad, vmap or "
            "jit around it; put the transformation inside, as in xlapy.jax.jit(jax.grad(f)), or hand over the function "
            "itself, f.__wrapped__"
        )
    if isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        return (leaf.dtype, leaf.shape, bool(getattr(leaf, "weak_type", False)))
    if hasattr(leaf, "__jax_array__"):
        return (kind, signature(leaf.__jax_array__()))
    raise ArgumentError(
        f"{kind_of(leaf)} is not an array or a scalar; make the argument static (static_argnums, "
        "static_argnames), or register its type as a pytree"
    )


def abstract(leaf: Any) -> Any:
    """A stand-in for tracing, without values and without the devices that a jax array lives on."""
    if type(leaf) in PYTHON_SCALARS:
        return leaf
    if hasattr(leaf, "__jax_array__"):
        leaf = leaf.__jax_array__()
    _check_type(leaf.dtype)
    struct: Any = jax.ShapeDtypeStruct  # which JAX left untyped
    return struct(leaf.shape, leaf.dtype, weak_type=bool(getattr(leaf, "weak_type", False)))


def _check_type(dtype: Any) -> None:
    """Refuses numpy's element types that JAX has not, and bytes in an order that is not the machine's."""
    if not isinstance(dtype, np.dtype) or dtype == jax.dtypes.float0:
        return  # JAX's own: keys, float0
    if not dtype.isnative:
        raise ArgumentError(
            f"JAX has no {dtype.str!r} arrays; .astype({dtype.name!r}) orders the bytes as it needs them"
        )
    if dtype.kind in "OSUMm" or dtype.names:
        raise ArgumentError(f"JAX has no arrays of {dtype.name}; .astype(...) makes numbers of what is one")


def reader(leaf: Any, aval: Any) -> Reader | None:
    """How leaves like this one become the array that the program's parameter wants; None: it is that array.

    The parameter has JAX's idea of the element type: 32 bits wide at most, unless its x64 mode is on."""
    if is_key(aval.dtype):
        return _read_key
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return _refuse
    dtype = storage_type(aval.dtype)
    if type(leaf) is np.ndarray and leaf.dtype == dtype:
        return None
    if getattr(leaf, "dtype", None) == jax.dtypes.float0:
        return lambda value: np.zeros(value.shape, np.bool_)
    if type(leaf) in PYTHON_SCALARS:
        return lambda value: np.array(value, dtype)
    if hasattr(leaf, "__jax_array__"):
        return lambda value: np.asarray(value.__jax_array__()).astype(dtype, copy=False)
    if isinstance(leaf, jax.Array) and leaf.dtype == dtype:
        return np.asarray
    return lambda value: np.asarray(value).astype(dtype, copy=False)


def readers(
    leaves: Sequence[Any], avals: Sequence[Any], donated: Collection[int], results: ResultKind
) -> tuple[Reader, ...] | None:
    """The readers of all leaves; None if no leaf needs one.

    Of `donated` leaves, by number, programs make results. A jax array must not become one that shares its memory with a
    numpy array that somebody has: where results are jax arrays, such leaves are copied."""
    found = [
        copying(read) if results == "jax" and number in donated else read
        for number, read in enumerate(map(reader, leaves, avals))
    ]
    return None if not any(found) else tuple(read or _as_it_is for read in found)


def copying(read: Reader | None) -> Reader:
    """The reader, giving an array of its own each time."""
    return np.array if read is None else lambda value: np.array(read(value))


def writers(avals: Sequence[Any], kind: ResultKind) -> tuple[Writer, ...] | None:
    """How the program's arrays become result leaves; None if they are those."""
    found = [_writer(aval, kind) for aval in avals]
    return None if not any(found) else tuple(write or _as_it_is for write in found)


def _writer(aval: Any, kind: ResultKind) -> Writer | None:
    if is_key(aval.dtype):
        implementation = key_implementation(aval.dtype)
        return lambda data: jax.random.wrap_key_data(jax.numpy.asarray(data), impl=implementation)
    if aval.dtype == jax.dtypes.float0:
        return lambda array: np.zeros(array.shape, jax.dtypes.float0)
    if kind == "numpy":
        return None
    place = jax.devices("cpu")[0]
    if not aval.weak_type:
        return lambda array: jax.device_put(array, place)
    return lambda array: weakly_typed(jax.device_put(array, place), aval.dtype)


def is_key(dtype: Any) -> bool:
    """Whether it is the element type of `jax.random.key`, which programs see as plain integers."""
    return bool(jax.numpy.issubdtype(dtype, jax.dtypes.prng_key))


def storage_type(dtype: Any) -> np.dtype[Any]:
    """The element type that a program has for one of JAX's: `float0`, which has no values, is a truth value there."""
    return np.dtype(np.bool_) if dtype == jax.dtypes.float0 else np.dtype(dtype)


def _read_key(value: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(value))


def _refuse(value: Any) -> np.ndarray:
    raise ArgumentError(f"{kind_of(value)} has no values to call with; lower(...) and executable(...) take it")


def _as_it_is(value: Any) -> Any:
    return value
