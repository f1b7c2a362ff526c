"""JAX programs on xlapy: `jit` in place of `jax.jit`, and programs that `jax.export` wrote.

    import xlapy.jax

    fast = xlapy.jax.jit(lambda x, y: {"sum": x + y})
    fast(numpy_array, 1.0)["sum"]              # a numpy array

JAX traces the function and lowers it to StableHLO, once per signature; xlapy compiles and runs it. Needs the extra
`jax`; nothing else in xlapy imports this package.
"""

try:
    import jax as _jax  # noqa: F401 - asked for first, to say what is missing
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("xlapy.jax needs JAX: pip install 'xlapy[jax]'", name="jax") from error

from xlapy.jax.exported import compile_exported
from xlapy.jax.jitted import Jitted, jit, stablehlo
from xlapy.jax.leaves import ResultKind
from xlapy.jax.lowering import Lowered

__all__ = ["Jitted", "Lowered", "ResultKind", "compile_exported", "jit", "stablehlo"]
