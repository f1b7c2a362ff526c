"""Running what a script built."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlapy import xla_client


def run(builder: xla_client.XlaBuilder, *arguments: Any, root: Any = None) -> list[np.ndarray[Any, Any]]:
    """The leaves of the result, as arrays."""
    backend = xla_client.get_local_backend()
    return xla_client.execute_with_python_values(backend.compile(builder.build(root)), arguments, backend)


def f32(values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)
