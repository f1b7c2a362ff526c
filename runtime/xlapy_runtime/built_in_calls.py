"""The custom call targets that every program may call without a registration, all of them."""

from xlapy_runtime import lapack, sparse, top_k  # noqa: F401 - they fill the table
from xlapy_runtime.custom_calls import BUILT_IN

__all__ = ["BUILT_IN"]
