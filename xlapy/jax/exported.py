"""Programs that `jax.export` wrote, run without the Python code they came from."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import export
from jax.tree_util import tree_flatten

from xlapy.executable import Executable
from xlapy.jax.callbacks import check_effects
from xlapy.jax.leaves import ResultKind, copying, is_key, reader, signatures, writers
from xlapy.jax.lowering import PLATFORM, check_grid, compile_text
from xlapy.jax.specialization import nesting
from xlapy.options import CompileOptions
from xlapy.stablehlo.bytecode import text_of_bytecode
from xlapy.support.errors import ArgumentError, ParseError
from xlapy_runtime.wording import kind_of


def compile_exported(
    exported: export.Exported | bytes | bytearray,
    *,
    options: CompileOptions | None = None,
    results: ResultKind = "numpy",
) -> Callable[..., Any]:
    """The function in an artifact of `jax.export`: what `serialize` wrote, or the `Exported` itself.

    It is called as it was before its export. One with sizes left open is compiled anew for each set of sizes, which
    raises ShapeError for sizes that its export excluded; others are compiled right here. An artifact for several
    platforms takes the branches of the CPU if it has those, else of the first."""
    loaded = exported if isinstance(exported, export.Exported) else None
    artifact = loaded or _artifact(exported)
    chosen = options or CompileOptions()
    check_effects((*artifact.ordered_effects, *artifact.unordered_effects))
    check_grid(artifact.nr_devices)
    text = loaded.mlir_module() if loaded else text_of_bytecode(artifact.mlir_module_serialized)
    return ExportedFunction(artifact, text, chosen, results)


def _artifact(exported: Any) -> export.Exported:
    """The artifact in what `Exported.serialize` gave."""
    if not isinstance(exported, (bytes, bytearray, memoryview)):
        raise ArgumentError(f"what JAX exported is an Exported, or the bytes of one, not {kind_of(exported)}")
    try:
        return export.deserialize(bytearray(exported))
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError, struct.error) as error:
        raise ParseError(f"these {len(exported):,} bytes are no function that JAX exported: {error}") from error


class ExportedFunction:
    """An exported function, compiled: now, or for each set of sizes when a call brings it."""

    def __init__(self, artifact: export.Exported, text: str, options: CompileOptions, results: ResultKind) -> None:
        self.executable: Executable = compile_text(text, options)
        self._name = artifact.fun_name
        self._tree: Any = artifact.in_tree
        self._avals = artifact.in_avals
        self._kept = artifact.module_kept_var_idx
        self._leading = _platform_index(artifact.platforms)
        self._copied = frozenset(self.executable.donations.values() if results == "jax" else ())  # see leaves.readers
        self._nest = nesting(artifact.out_tree, writers(artifact.out_avals, results))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self._tree:
            raise ArgumentError(f"{self._name} was exported for arguments like {self._tree}, and called with {tree}")
        value = self.executable(*self._leading, *self._read(leaves))
        return value if self._nest is None else self._nest(value)

    def __repr__(self) -> str:
        return f"<exported {self._name}: {', '.join(map(str, self._avals))}>"

    def _read(self, leaves: Sequence[Any]) -> list[Any]:
        """The arrays of the parameters that the exported module kept."""
        signatures(leaves)
        for index, (leaf, aval) in enumerate(zip(leaves, self._avals, strict=True)):
            if not _is_like(leaf, aval):
                raise ArgumentError(
                    f"leaf {index} of the arguments of {self._name} was exported as {aval}, and is "
                    f"{getattr(leaf, 'dtype', type(leaf).__name__)}{list(np.shape(leaf))} now"
                )
        arrays = []
        for number, index in enumerate(self._kept, len(self._leading)):
            read = reader(leaves[index], self._avals[index])
            if number in self._copied:
                read = copying(read)
            arrays.append(leaves[index] if read is None else read(leaves[index]))
        return arrays


def _is_like(leaf: Any, aval: Any) -> bool:
    """Whether JAX would take the leaf for a value of that type; without its x64 mode, wide types count as narrow."""
    dtype = getattr(leaf, "dtype", type(leaf))
    is_same_type = dtype == aval.dtype or (
        not is_key(dtype) and jax.dtypes.canonicalize_dtype(dtype) == aval.dtype  # asked second: it is slow
    )
    return is_same_type and _is_of_shape(np.shape(leaf), aval.shape)


def _is_of_shape(dims: tuple[int, ...], wanted: tuple[Any, ...]) -> bool:
    """Whether the sizes are those that were exported; what is open may have any, as far as this goes."""
    return len(dims) == len(wanted) and all(
        export.is_symbolic_dim(size) or size == have for have, size in zip(dims, wanted, strict=True)
    )


def _platform_index(platforms: Sequence[str]) -> tuple[np.ndarray, ...]:
    """The parameter in front of the others by which a module for several platforms chooses its branches."""
    if len(platforms) == 1:
        return ()
    return (np.array(platforms.index(PLATFORM) if PLATFORM in platforms else 0, np.int32),)
