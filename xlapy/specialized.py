"""Programs with `?` dimensions as callables: each set of sizes is compiled when a call first brings it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from xlapy.compiled import CompileStats
from xlapy.executable import Executable
from xlapy.hlo.graph import HloModule
from xlapy.hlo.shape import UNBOUNDED, Shape
from xlapy.hlo.specialize import specialize_to
from xlapy.options import CompileOptions
from xlapy.support.errors import UnsupportedError
from xlapy_runtime.process_lock import ProcessLock
from xlapy_runtime.wording import counted

if TYPE_CHECKING:
    from xlapy.report.limits import Limits
    from xlapy.report.profile import Profile

Sizes = tuple[int, ...]

MOST_SPECIALIZATIONS = 64
"""Kept at a time; the cache on disk still has the code of those that were dropped."""


class DynamicExecutable(Executable):
    """A program with `?` dimensions. It is called like any executable, and compiles itself anew for other sizes.

    There is no code before the first call: `specialize(*arguments)` gives the executable for the sizes of some
    arguments, whose methods show it. Bounded dimensions are run-time sizes, and cause no compilation."""

    __slots__ = ("_compile", "_lock", "_module", "_open", "_specialized")

    def __init__(
        self, module: HloModule, options: CompileOptions, compile_module: Callable[[HloModule], Executable]
    ) -> None:
        self._options = options
        self._module = module
        self._compile = compile_module
        self._open = [
            (path, dim)
            for path, shape in _leaves(module.signature.parameters)
            for dim, size in enumerate(shape.dims)
            if size == UNBOUNDED
        ]
        self._specialized: dict[Sizes, Executable] = {}
        self._lock = ProcessLock()
        self.__call__ = self._run_specialized

    def _source(self) -> HloModule:
        return self._module

    def _run_specialized(self, *arguments: Any) -> Any:
        return self.specialize(*arguments)(*arguments)

    def specialize(self, *arguments: Any) -> Executable:
        """The executable for arguments of these sizes: compiled now, or kept from an earlier call."""
        sizes = self._sizes(arguments)
        found = self._specialized.get(sizes) if sizes is not None else None
        if found is not None:
            return found
        module = specialize_to(self._module, arguments)  # raises for arguments that do not fit
        assert sizes is not None
        with self._lock.own():
            found = self._specialized.get(sizes)
            if found is None:
                found = self._compile(module)
                if len(self._specialized) >= MOST_SPECIALIZATIONS:
                    del self._specialized[next(iter(self._specialized))]
                self._specialized[sizes] = found
        return found

    def _sizes(self, arguments: Sequence[Any]) -> Sizes | None:
        """The sizes of all `?` dimensions, in order; None for arguments that do not have them."""
        try:
            return tuple(np.shape(_at(arguments, path))[dim] for path, dim in self._open)
        except (IndexError, TypeError, ValueError):
            return None

    @property
    def specializations(self) -> tuple[Sizes, ...]:
        """The sizes that it has code for, the oldest first: of all `?` dimensions, in the order of the parameters."""
        return tuple(self._specialized)

    @property
    def name(self) -> str:
        return self._module.name

    def run(self, *arguments: Any, device: Any = None, seed: int | None = None, timeout: float | None = None) -> Any:
        return self.specialize(*arguments).run(*arguments, device=device, seed=seed, timeout=timeout)

    def run_parallel(
        self, arguments: Sequence[Sequence[Any]], *, seed: int | None = None, timeout: float | None = None
    ) -> list[Any]:
        first = arguments[0] if arguments else ()
        return self.specialize(*first).run_parallel(arguments, seed=seed, timeout=timeout)

    def run_distributed(
        self, *arguments: Any, communicator: Any = None, seed: int | None = None, timeout: float | None = None
    ) -> Any:
        executable = self.specialize(*arguments)
        return executable.run_distributed(*arguments, communicator=communicator, seed=seed, timeout=timeout)

    def save(self, path: str | os.PathLike[str]) -> None:
        self._has_no("code to save")

    def hlo_text(self) -> str:
        """The module as it was given, `?` and all: passes have seen its specializations only."""
        return self._module.to_text()

    def llvm_ir(self) -> str:
        self._has_no("LLVM IR")

    def assembly(self) -> str:
        self._has_no("assembly")

    def cost_analysis(self) -> dict[str, float]:
        self._has_no("cost")

    def compile_stats(self) -> CompileStats:
        self._has_no("statistics")

    @property
    def donations(self) -> dict[int, int]:
        self._has_no("donations")

    def memory_analysis(self) -> dict[str, int]:
        self._has_no("memory")

    def explain(self, limits: Limits | None = None) -> str:
        self._has_no("compilation to explain")

    def profile(self, *arguments: Any, calls: int | None = None) -> Profile:
        return self.specialize(*arguments).profile(*arguments, calls=calls)

    def html_report(self, limits: Limits | None = None, profile: Profile | None = None) -> str:
        self._has_no("report")

    def _has_no(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"{self.name} has `?` dimensions, {self._module.signature}, and no {what} before sizes are known: "
            "ask `exe.specialize(*arguments)`"
        )

    def _repr_html_(self) -> str:
        return self._module._repr_html_() or ""

    def __repr__(self) -> str:
        count = len(self._specialized)
        return (
            f"<DynamicExecutable {self.name} {self._module.signature}, specialized to {counted(count, 'set')} of sizes>"
        )


def _leaves(shapes: Sequence[Shape], above: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Shape]]:
    """The arrays among parameters, and the path of indices to each."""
    for index, shape in enumerate(shapes):
        path = (*above, index)
        if shape.is_tuple:
            yield from _leaves(shape.parts, path)
        else:
            yield path, shape


def _at(values: Any, path: Sequence[int]) -> Any:
    for index in path:
        values = values[index]
    return values
