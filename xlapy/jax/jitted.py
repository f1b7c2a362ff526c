"""`jit`: a JAX function, compiled by xlapy once per signature of its arguments."""

from __future__ import annotations

import functools
import hashlib
import sys
import threading
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never, TypeAlias, overload

import jax
from jax.tree_util import tree_flatten

from xlapy.executable import Executable
from xlapy.jax.internals import trace_context
from xlapy.jax.leaves import ResultKind, TracedLeafError, abstract, signatures
from xlapy.jax.lowering import Lowered, is_lowering, lower
from xlapy.jax.specialization import Specialization, specialize
from xlapy.jax.static_arguments import (
    Names,
    Positions,
    StaticArguments,
    restore,
    static_arguments,
    static_key,
)
from xlapy.options import CompileOptions
from xlapy.support.errors import ArgumentError
from xlapy.support.other_names import JIT, JITTED, OPTIONS, hint_for
from xlapy.support.source import suggestion
from xlapy_runtime.wording import kind_of

_NOT_GIVEN: Any = object()

_Specializations: TypeAlias = dict[Hashable, Specialization]


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of one call, taken apart."""

    leaves: list[Any]
    tree: Any
    static: Mapping[int | str, Any]

    @property
    def key(self) -> Hashable:
        key = (self.tree, signatures(self.leaves))
        return (*key, static_key(self.static)) if self.static else key


class Jitted:
    """A function that xlapy compiles when it is called with a new signature; see `jit`.

    What was compiled stays for as long as the function does; `clear_cache` lets go of it. Any number of threads may
    call it at once. Called within a function that xlapy is lowering, it becomes part of that one. A copy is the
    function itself."""

    def __init__(
        self,
        function: Callable[..., Any],
        jitted: Any,
        static: StaticArguments,
        options: CompileOptions,
        results: ResultKind,
        how: Mapping[str, Any],
    ) -> None:
        functools.update_wrapper(self, function)
        self.options = options
        self._function = function
        self._how = how  # the arguments of `jit`
        self._jitted = jitted
        self._static = static
        self._has_static = bool(static.positions or static.names)
        self._results: ResultKind = results
        self._compiling = threading.RLock()
        self._by_context: dict[Hashable, _Specializations] = {}
        self._last: tuple[Hashable, _Specializations] = (None, {})
        self._executables: dict[bytes, Executable] = {}  # by a digest of their StableHLO: signatures may share one

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._has_static:
            return self._call_slowly(args, kwargs)
        leaves, tree = tree_flatten((args, kwargs))
        try:
            found = self._known().get((tree, signatures(leaves)))
        except TracedLeafError:
            if not is_lowering():
                raise
            return self._jitted(*args, **kwargs)
        if found is None:
            if is_lowering():  # even without traced leaves it may use values of the function that is being lowered
                return self._jitted(*args, **kwargs)
            found = self._specialize(_Arguments(leaves, tree, {}))
        return found.call(leaves)

    def _call_slowly(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if is_lowering():
            return self._jitted(*args, **kwargs)
        arguments = self._arguments(args, kwargs)
        return self._specialized(arguments).call(arguments.leaves)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method of a class, it is given the instance like any function."""
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<xlapy.jax.jit of {getattr(self, '__qualname__', self._jitted)}>"

    def __copy__(self) -> Jitted:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By its name where a decorated function stands, else by the function and how it was jitted."""
        if _stands_under_its_name(self):
            return str(self._function.__qualname__)
        return functools.partial(jit, **self._how), (self._function,)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"a Jitted has no {name!r}{hint_for(JITTED, name)}", name=name, obj=self)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The StableHLO of the function for such arguments, which may be `jax.ShapeDtypeStruct`s."""
        return self._lower(self._arguments(args, kwargs))

    def executable(self, *args: Any, **kwargs: Any) -> Executable:
        """What a call with such arguments runs, for inspection: a program of flat arrays, one per leaf."""
        return self._specialized(self._arguments(args, kwargs)).executable

    def cache_size(self) -> int:
        """The number of signatures that are compiled."""
        return sum(map(len, self._by_context.values()))

    def clear_cache(self) -> None:
        """Forgets what was compiled, and what JAX traced for it."""
        with self._compiling:
            self._by_context = {}
            self._last = (None, {})
            self._executables = {}
            self._jitted.clear_cache()

    def _arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Arguments:
        dynamic, keywords, static = self._static.split(args, kwargs)
        leaves, tree = tree_flatten((dynamic, keywords))
        return _Arguments(leaves, tree, static)

    def _lower(self, arguments: _Arguments) -> Lowered:
        """Raises for leaves that are no arrays, as a call does."""
        signatures(arguments.leaves)
        args, kwargs = arguments.tree.unflatten([abstract(leaf) for leaf in arguments.leaves])
        return lower(self._jitted, *restore(args, kwargs, arguments.static))

    def _known(self) -> _Specializations:
        """What is compiled under JAX's settings of this moment (x64 mode, matrix precision, ...)."""
        context = trace_context()
        last, known = self._last
        if context == last:
            return known
        with self._compiling:
            known = self._by_context.setdefault(context, {})
            self._last = (context, known)
        return known

    def _specialized(self, arguments: _Arguments) -> Specialization:
        return self._known().get(arguments.key) or self._specialize(arguments)

    def _specialize(self, arguments: _Arguments) -> Specialization:
        with self._compiling:
            known, key = self._known(), arguments.key
            if key not in known:
                lowered = self._lower(arguments)
                known[key] = specialize(lowered, self._compiled(lowered), arguments.leaves, self._results)
            return known[key]

    def _compiled(self, lowered: Lowered) -> Executable:
        """The program's executable. A numpy array, a jax array and a numpy scalar are read in different ways, but give
        the same program. Programs that call functions may be alike and call others."""
        if lowered.effects:
            return lowered.compile(self.options)
        digest = hashlib.sha256(lowered.text.encode()).digest()
        found = self._executables.get(digest)
        if found is None:
            found = self._executables[digest] = lowered.compile(self.options)
        return found


@overload
def jit(
    f: Callable[..., Any],
    *,
    static_argnums: Positions = None,
    static_argnames: Names = None,
    donate_argnums: Positions = None,
    donate_argnames: Names = None,
    options: CompileOptions | None = None,
    results: ResultKind = "numpy",
    **unknown: Never,
) -> Jitted: ...


@overload
def jit(
    *,
    static_argnums: Positions = None,
    static_argnames: Names = None,
    donate_argnums: Positions = None,
    donate_argnames: Names = None,
    options: CompileOptions | None = None,
    results: ResultKind = "numpy",
    **unknown: Never,
) -> Callable[[Callable[..., Any]], Jitted]: ...


def jit(
    f: Callable[..., Any] = _NOT_GIVEN,
    *,
    static_argnums: Positions = None,
    static_argnames: Names = None,
    donate_argnums: Positions = None,
    donate_argnames: Names = None,
    options: CompileOptions | None = None,
    results: ResultKind = "numpy",
    **unknown: Never,
) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """`jax.jit`, compiled by xlapy: the same arguments, the same nesting of results, the same element types.

    Calls take numpy arrays, jax arrays and Python scalars in any nesting, and return numpy arrays, or jax arrays with
    `results="jax"`. A donated numpy array becomes the result that is computed in place of it; a donated jax array is
    copied and deleted, as JAX deletes it. Transformations go inside (`jit(jax.grad(f))`). Callbacks and prints run
    where the program comes to them. Raises UnsupportedError, before anything runs, for other effects and for custom
    calls that nobody provides.

    Without `f` it makes a decorator: `@xlapy.jax.jit(static_argnames="n")`."""
    if unknown:
        raise ArgumentError(_unknown_argument(next(iter(unknown))))
    if results not in ("numpy", "jax"):
        raise ArgumentError(f"results are 'numpy' or 'jax' arrays, not {results!r}")
    if not isinstance(options, CompileOptions | None):
        raise ArgumentError(f"options are CompileOptions, not {options!r}")
    of_jax: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
    }
    how = {**of_jax, "options": options, "results": results}
    if f is _NOT_GIVEN:
        return functools.partial(jit, **how)
    if not callable(f):
        raise ArgumentError(f"xlapy.jax.jit compiles functions, not {kind_of(f)}")
    jitted = jax.jit(f, **of_jax, keep_unused=True)  # kept, so that parameters and leaves correspond
    static = static_arguments(f, static_argnums, static_argnames)
    return Jitted(f, jitted, static, options or CompileOptions(), results, how)


def _stands_under_its_name(function: Any) -> bool:
    """Whether its module has the function under the name that it was defined with."""
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in getattr(function, "__qualname__", "?").split("."):
        found = getattr(found, part, None)
    return found is function


def _unknown_argument(name: str) -> str:
    hint = hint_for(JIT, name) or hint_for(OPTIONS, name)
    if name in CompileOptions.__match_args__:
        hint = f"; it is an option: xlapy.jax.jit(f, options=xlapy.CompileOptions({name}=...))"
    return f"xlapy.jax.jit has no argument {name!r}{hint or suggestion(name, _ARGUMENTS)}"


_ARGUMENTS = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "options", "results")


def stablehlo(f: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The StableHLO that JAX lowers `f` to for such arguments, as xlapy gets it."""
    return jit(f).lower(*args, **kwargs).text
