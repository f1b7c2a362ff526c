"""What can run a program: xlapy, XLA through JAX, and libraries for the workloads that they can write down.

Made inside the worker process, so that nothing is imported where it is not measured.
"""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Protocol

import numpy as np

LIBRARY_CACHE_KINDS = frozenset({"hosts", "library"})
"""Folders of xlapy's cache that hold what is made once per machine; all others belong to programs."""


class Unsupported(Exception):
    """The engine knowingly cannot do this program."""


@dataclass(frozen=True)
class Program:
    """What an engine gets: the lowered text, the inputs, and the function for engines that have no use for text."""

    case: tuple[str, str, str]  # family, workload, size
    text: str
    inputs: list[np.ndarray]
    equivalent: Callable[[Any], Callable[..., Any]] | None = None


class Engine(Protocol):
    """Compiles one program at a time and runs it."""

    def lower(self, case: tuple[str, str, str], inputs: list[np.ndarray]) -> str: ...

    def open(self, program: Program) -> float:
        """Compiles a program and keeps it for the commands that follow; the seconds that took."""

    def recompile(self) -> float:
        """Compiles the open program once more as if never seen, and throws the outcome away; the seconds that took."""

    def repeat(self, calls: int) -> None:
        """Runs the open program, each call to its end."""

    def results(self) -> list[np.ndarray]:
        """The results of one call, flat."""

    def declared_memory(self) -> int | None:
        """Bytes of results and temporaries that the compiler says the open program has; None where it says nothing."""

    def close(self) -> None: ...


class _EngineBase:
    """An engine whose program is a function of arrays that returns when its results are there."""

    def __init__(self) -> None:
        self._function: Callable[..., Any] = _nothing
        self._inputs: Sequence[Any] = ()
        self._memory: Callable[[], Any] = _nothing

    def lower(self, case: tuple[str, str, str], inputs: list[np.ndarray]) -> str:
        raise Unsupported("only XLA's worker lowers")

    def recompile(self) -> float:
        raise Unsupported("does not compile")

    def repeat(self, calls: int) -> None:
        function, inputs = self._function, self._inputs
        for _ in repeat(None, calls):
            function(*inputs)

    def results(self) -> list[np.ndarray]:
        return _flat(self._function(*self._inputs))

    def declared_memory(self) -> int | None:
        return None

    def close(self) -> None:
        self._function, self._inputs, self._memory = _nothing, (), _nothing
        gc.collect()


class XlapyEngine(_EngineBase):
    """The compiler under test."""

    def __init__(self) -> None:
        super().__init__()
        import xlapy
        import xlapy.compiler
        from xlapy.options import environment

        self._compile = xlapy.compile
        self._unsupported = (xlapy.UnsupportedError, xlapy.ParseError)
        self._cache = Path(environment().cache_dir or "off")
        self._text = ""

    def open(self, program: Program) -> float:
        self._text, self._inputs = program.text, program.inputs
        executable, seconds = self._timed_compile()
        self._function, self._memory = executable.__call__, executable.memory_analysis
        return seconds

    def declared_memory(self) -> int | None:
        declared = self._memory()
        return int(declared["result_bytes"] - declared["donated_bytes"] + declared["temporary_bytes"])

    def recompile(self) -> float:
        self._forget_programs()
        return self._timed_compile()[1]

    def _timed_compile(self) -> tuple[Any, float]:
        gc.collect()
        began = time.perf_counter()
        try:
            executable = self._compile(self._text)
        except self._unsupported as error:
            raise Unsupported(str(error).partition("\n")[0]) from None
        return executable, time.perf_counter() - began

    def _forget_programs(self) -> None:
        """Empties the cache of everything but the code that is made once per machine. The folders stay, as only the
        first program of a machine makes them: that takes up to a millisecond."""
        for entry in self._cache.glob("*/*"):
            if entry.parent.name not in LIBRARY_CACHE_KINDS:
                entry.unlink(missing_ok=True)


class XlaEngine(_EngineBase):
    """XLA:CPU through JAX's compiled functions, on arrays that are on the device already.

    Of the ways to call XLA from Python, this is the one with the least overhead."""

    def __init__(self) -> None:
        super().__init__()
        import jax

        self._jax: Any = jax
        self._case = ("", "", "")
        self._arrays: list[np.ndarray] = []
        self._several = False

    def lower(self, case: tuple[str, str, str], inputs: list[np.ndarray]) -> str:
        return str(self.lowered(case, inputs).as_text())

    def open(self, program: Program) -> float:
        self._case, self._arrays = program.case, program.inputs
        compiled, seconds = self._timed_compile()
        self._function, self._memory = compiled, compiled.memory_analysis
        self._inputs = [self._jax.device_put(array) for array in program.inputs]
        self._several = compiled.out_tree.num_leaves != 1
        return seconds

    def recompile(self) -> float:
        return self._timed_compile()[1]

    def repeat(self, calls: int) -> None:
        function, inputs = self._function, self._inputs
        if self._several:
            for _ in repeat(None, calls):
                for array in function(*inputs):
                    array.block_until_ready()
        else:
            for _ in repeat(None, calls):
                function(*inputs).block_until_ready()

    def declared_memory(self) -> int | None:
        """Without what the matrix library that XLA calls allocates on its own."""
        declared = self._memory()
        return int(declared.output_size_in_bytes + declared.temp_size_in_bytes) if declared else None

    def _timed_compile(self) -> tuple[Any, float]:
        """Each compilation has a lowering of its own, because JAX keeps the outcome with that."""
        lowered = self.lowered(self._case, self._arrays)
        gc.collect()
        began = time.perf_counter()
        compiled = lowered.compile()
        return compiled, time.perf_counter() - began

    def lowered(self, case: tuple[str, str, str], inputs: list[np.ndarray]) -> Any:
        """JAX's lowering of a case, which compiles to what XLA runs."""
        from benchmarks.workloads import find

        function = find(*case[:2]).function

        def flat(*arrays: Any) -> Any:
            leaves = self._jax.tree.leaves(function(*arrays))
            return leaves[0] if len(leaves) == 1 else tuple(leaves)

        flat.__name__ = case[1]
        wide = any(array.dtype in (np.float64, np.complex128, np.int64, np.uint64) for array in inputs)
        self._jax.config.update("jax_enable_x64", wide)
        return self._jax.jit(flat, keep_unused=True).lower(*inputs)


class LibraryEngine(_EngineBase):
    """An array library that is called operation by operation: numpy."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self._module = importlib.import_module(module)

    def open(self, program: Program) -> float:
        if program.equivalent is None:
            raise Unsupported("no equivalent")
        self._inputs = self._arrays(program.inputs)
        began = time.perf_counter()
        self._function = self._prepared(program.equivalent)
        self._function(*self._inputs)
        return time.perf_counter() - began

    def _arrays(self, inputs: list[np.ndarray]) -> Sequence[Any]:
        return inputs

    def _prepared(self, equivalent: Callable[[Any], Callable[..., Any]]) -> Callable[..., Any]:
        return equivalent(self._module)


class NumbaEngine(LibraryEngine):
    """numpy's spelling, compiled by numba for all cores."""

    def __init__(self) -> None:
        super().__init__("numpy")
        self._numba = importlib.import_module("numba")

    def _prepared(self, equivalent: Callable[[Any], Callable[..., Any]]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = self._numba.njit(parallel=True)(equivalent(self._module))
        return compiled

    def open(self, program: Program) -> float:
        try:
            return super().open(program)
        except self._numba.errors.NumbaError as error:  # not all of numpy is compiled
            raise Unsupported(str(error).partition("\n")[0]) from error


class TorchEngine(LibraryEngine):
    """PyTorch's eager operations."""

    def __init__(self) -> None:
        super().__init__("torch")

    def _arrays(self, inputs: list[np.ndarray]) -> Sequence[Any]:
        return [self._module.from_numpy(array) for array in inputs]


_ENGINES: dict[str, Callable[[], Engine]] = {
    "xlapy": XlapyEngine,
    "xla": XlaEngine,
    "numpy": lambda: LibraryEngine("numpy"),
    "numba": NumbaEngine,
    "torch": TorchEngine,
}
ENGINE_NAMES = tuple(_ENGINES)


def make_engine(name: str) -> Engine:
    return _ENGINES[name]()


def _flat(results: Any) -> list[np.ndarray]:
    if isinstance(results, (tuple, list)):
        return [leaf for result in results for leaf in _flat(result)]
    return [np.asarray(results)]


def _nothing(*_: Any) -> None:
    """The program before any is open."""
