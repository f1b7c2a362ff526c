"""xlapy as a platform of JAX: `JAX_PLATFORMS=xlapy python program.py` runs a JAX program as it is.

JAX finds `initialize` by the entry point group `jax_plugins`, in every process that uses JAX. It does nothing there
unless the platform is asked for, and importing this module loads nothing else. Where xlapy is not installed with its
entry points, `xlapy.pjrt.register()` in front of the first use of JAX does the same.
"""

from __future__ import annotations

from typing import Any

from xlapy.support.late import late

__all__ = ["initialize", "register"]

PLATFORM = "xlapy"


def initialize() -> None:
    """Makes the platform known if JAX's setting `jax_platforms` (or JAX_PLATFORMS) names it."""
    if PLATFORM in platforms_asked_for():
        register()


def platforms_asked_for() -> list[str]:
    """JAX's setting `jax_platforms`; empty if JAX chooses."""
    settings: Any = late("jax").config
    return settings.jax_platforms.split(",") if settings.jax_platforms else []


def register() -> None:
    """Makes the platform known to JAX, which uses it if its setting `jax_platforms` (or JAX_PLATFORMS) names it.

    JAX must not have chosen its platform yet. Doing it twice is no harm."""
    late("xlapy.pjrt.plugin").register(PLATFORM)
