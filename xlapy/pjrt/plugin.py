"""Registers the platform with JAX."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jaxlib.version

from xlapy.pjrt import platforms_asked_for
from xlapy.support.errors import UnsupportedError
from xlapy.support.late import late

try:
    from jax._src import xla_bridge
    from jaxlib import xla_client
except ImportError as error:
    raise UnsupportedError(f"xlapy.pjrt does not find its way about in JAX {jax.__version__}: {error}") from error

OLDEST_JAXLIB = (0, 10)
"""Older ones speak a version of the PJRT C API that has other structures."""

_LOCK = threading.Lock()


def register(name: str) -> None:
    """Makes the platform known under the name. What a client needs is loaded with the first one."""
    _check_version()
    with _LOCK:
        if name in xla_bridge._backend_factories:
            return
        xla_bridge.register_backend_factory(name, lambda: _make_client(name), priority=_LAST, fail_quietly=False)


_LAST = -100
"""Behind JAX's own client for processors: being installed does not make it the one that is used."""


def _check_version() -> None:
    version = jaxlib.version.__version_info__
    if tuple(version[:2]) < OLDEST_JAXLIB:
        raise UnsupportedError(
            f"the platform xlapy needs jaxlib {'.'.join(map(str, OLDEST_JAXLIB))} or newer, and this is "
            f"{jaxlib.version.__version__}; xlapy.jax.jit works with older ones"
        )


def _make_client(name: str) -> Any:
    """A client of JAX's around the table. Programs that ask for the platform "cpu" get this one, unless JAX's own is in
    use, too."""
    with _without_collections():
        _load_plugin(name)
    made = xla_bridge.make_pjrt_c_api_client(name)
    if "cpu" not in platforms_asked_for():
        xla_bridge._backends["cpu"] = made
    return made


@contextmanager
def _without_collections() -> Iterator[None]:
    """Modules that are loaded stay, so there is no garbage to look for, which takes a fifth of the time among all that
    JAX has made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _load_plugin(name: str) -> None:
    if not xla_client.pjrt_plugin_loaded(name):
        xla_client.load_pjrt_plugin_with_c_api(name, late("xlapy.pjrt.api").capsule())
        late("xlapy.pjrt.lowerings").register()
        _take_registrations()


def _take_registrations() -> None:
    """Has targets of custom calls that programs register with JAX for the platform "cpu" put where they are found, as
    JAX's own client does when there is one."""
    library: Any = xla_client
    library.register_custom_call_handler("cpu", library._xla.register_custom_call_target)
    library.register_custom_type_handler("cpu", library._xla.register_custom_type)
