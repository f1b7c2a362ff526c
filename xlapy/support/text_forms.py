"""How modules are written as text, by format. Filled by the packages that write them, which stand above the graph."""

from __future__ import annotations

from collections.abc import Callable

from xlapy.support.registry import Registry

TEXT_FORMS: Registry[Callable[..., str]] = Registry("text forms of modules")
