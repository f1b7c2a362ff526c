"""LAPACK for programs that call it by the names that JAX gives it on CPUs: `lapack_sgetrf_ffi` and the like.

The functions are scipy's, called through the pointers that it publishes for Cython; scipy is loaded when the first one
is called. `tests/jax/test_linalg.py` holds them against JAX.
"""

from xlapy_runtime.lapack import eigenvalues, factors, singular_values, systems
from xlapy_runtime.lapack.targets import NAMES, require

__all__ = ["NAMES", "eigenvalues", "factors", "require", "singular_values", "systems"]
