"""The other forms of modules, text and graphs, by name. Filled by the packages that make them, which stand above the
graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlapy.support.registry import Registry

TEXT_FORMS: Registry[Callable[..., str]] = Registry("text forms of modules")
GRAPH_FORMS: Registry[Callable[..., Any]] = Registry("graph forms of modules")
