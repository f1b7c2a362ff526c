"""What this package takes from inside JAX, because no public name leads there. It is all here, and looked for at once.

`ArrayImpl`             the exact type of jax arrays, which tells them fastest
`trace_context`         the settings that tracing depends on, as one value
`weakly_typed`          an array with a weak type that is not a scalar's
`key_implementation`    of an element type of keys, the name
`CALLBACK_EFFECTS`      the effects of functions that are called
`INNER_EFFECTS`         the effects that end with the function, such as on references that it makes
`kept_beside`           what JAX keeps beside a lowered program
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from xlapy.support.errors import UnsupportedError

__all__ = [
    "CALLBACK_EFFECTS",
    "INNER_EFFECTS",
    "ArrayImpl",
    "kept_beside",
    "key_implementation",
    "trace_context",
    "weakly_typed",
]

KNOWN_VERSIONS = "0.4.38 to 0.10"


def _unknown(error: Exception) -> UnsupportedError:
    return UnsupportedError(
        f"xlapy.jax knows JAX {KNOWN_VERSIONS}, and does not find its way about in {jax.__version__}: {error}"
    )


try:
    from jax._src import callback as _callback
    from jax._src import core as _core
    from jax._src import debugging as _debugging
    from jax._src.array import ArrayImpl
    from jax._src.config import trace_context
    from jax._src.lax.lax import _convert_element_type

    CALLBACK_EFFECTS = (
        _callback.IOEffect,
        _callback.OrderedIOEffect,
        _debugging.DebugEffect,
        _debugging.OrderedDebugEffect,
    )
    # the first versions have no references, or another name
    INNER_EFFECTS = tuple(getattr(_core, name) for name in ("InternalMutableArrayEffect",) if hasattr(_core, name))
except (ImportError, AttributeError) as error:
    raise _unknown(error) from error


def weakly_typed(array: Any, dtype: Any) -> Any:
    """The jax array with that element type, as a Python scalar has it: it gives way to others."""
    return _convert_element_type(array, dtype, weak_type=True)


def key_implementation(dtype: Any) -> str:
    """The random number generator whose keys have that element type."""
    try:
        return str(dtype._impl.name)
    except AttributeError as error:
        raise _unknown(error) from error


def kept_beside(lowered: Any) -> Mapping[str, Any]:
    """`host_callbacks`, the functions that a lowered program calls by number; `ordered_effects`, those with a token."""
    try:
        kept = lowered._lowering.compile_args
        return {name: kept[name] for name in ("host_callbacks", "ordered_effects")}
    except (AttributeError, KeyError) as error:
        raise _unknown(error) from error
