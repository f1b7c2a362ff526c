"""The op functions, taking and returning the old interface's objects: each is xlapy's own under the same name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xlapy import ops
from xlapy.builder import XlaOp
from xlapy.xla_client.protos import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    PaddingConfig,
    PrecisionConfig,
    ReplicaGroup,
    ScatterDimensionNumbers,
)
from xlapy.xla_client.types import (
    CustomCallApiVersion,
    CustomCallSchedule,
    FftType,
    RandomAlgorithm,
    TriangularSolveOptions_Transpose,
)
from xlapy.xla_client.wrapping import unwrapped

__all__ = [
    "ConvolutionDimensionNumbers",
    "CustomCallApiVersion",
    "CustomCallSchedule",
    "DotDimensionNumbers",
    "FftType",
    "GatherDimensionNumbers",
    "PaddingConfig",
    "PrecisionConfig",
    "RandomAlgorithm",
    "ReplicaGroup",
    "ScatterDimensionNumbers",
    "TriangularSolveOptions_Transpose",
    "XlaOp",
]


def _adapted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, taking wrapped builders, shapes, computations and element types."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(unwrapped, args), **{name: unwrapped(value) for name, value in kwargs.items()})

    return call


def __getattr__(name: str) -> Any:
    if name not in ops.__all__:
        raise AttributeError(f"xlapy.xla_client.ops has no {name!r}")
    found = getattr(ops, name)
    value = found if isinstance(found, type) else _adapted(found)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *ops.__all__})
