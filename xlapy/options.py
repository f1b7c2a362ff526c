"""Options of a compilation, and the only reader of the compiler's environment variables.

| variable            | meaning                                                                     |
|---------------------|-----------------------------------------------------------------------------|
| XLAPY_CACHE_DIR     | folder of compiled code; empty or `off`: none (default: the user's cache)   |
| XLAPY_DUMP_TO       | folder to write the module to after each pass, and the LLVM IR              |
| XLAPY_DUMP_FILTER   | regular expression: passes whose output is dumped                           |
| XLAPY_VERIFY        | 1: verify after every pass that changed something                           |
| XLAPY_TIME_PASSES   | 1: print the time of each pass to standard error                            |
| XLAPY_PASS_LIMIT    | stop optimizing after this many changes, for bisection                      |
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from xlapy.support.errors import ArgumentError
from xlapy.support.late import late
from xlapy_runtime.records import Record, changed_fields, field


class CompileOptions(Record):
    """How to compile. Immutable; equal options compile alike.

    `num_replicas` and `num_partitions` override the module's grid where one of them is above 1. `num_threads` bounds
    the threads of one call (None: all that the process may use; 1 really is one). `fast_math` allows laws that are not
    exact. `contract` allows sums of elements to take in products before they are rounded, in one instruction where the
    processor has it, and `excess_precision` leaves floats of less than 32 bits as they are computed, as f32, between
    the operations of a kernel (as XLA does, if it is not told otherwise): for that, results may depend on which kernels
    there are. `flush_subnormals` takes results below the least normal number for zeros, as XLA does: processors take a
    hundred times as long for those. If it is None, functions of JAX do so, and other programs do not. `disabled_passes`
    and `disabled_laws` are names. `passes` are passes of your own at their places (`after` and `before` of
    `xlapy.passes.user`), `laws` books of laws of your own. `custom_calls` are targets of this program alone, by name.
    `timeout` bounds every wait of the running program for another process, device or host, in seconds. `seed` is where
    stateful random numbers start. `device_assignment` lists device ids, one per process, replica-major. `verify` checks
    the module after every pass that changed it, as XLAPY_VERIFY=1 does."""

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: Sequence[int] | None = None
    num_threads: int | None = None
    fast_math: bool = False
    disabled_passes: frozenset[str] = frozenset()
    disabled_laws: frozenset[str] = frozenset()
    passes: Sequence[Any] = ()
    laws: Sequence[Any] = ()
    custom_calls: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    seed: int = 0
    verify: bool = False
    contract: bool = False
    excess_precision: bool = False
    flush_subnormals: bool | None = None

    def __post_init__(self) -> None:
        for name, given in changed_fields(self).items():
            if name in _CHECKS:
                _CHECKS[name](name, given)

    @classmethod
    def _hint_for_field(cls, name: str) -> str:
        names = late("xlapy.support.other_names")
        hint: str = names.hint_for(names.OPTIONS, name) or super()._hint_for_field(name)
        return hint

    def __repr__(self) -> str:
        """What is not as usual; of custom calls their names, as functions show no more than an address."""
        usual = CompileOptions()
        changed = [name for name, given in changed_fields(self).items() if given != getattr(usual, name)]
        shown = [
            f"{name}={{{', '.join(f'{target!r}: ...' for target in self.custom_calls)}}}"
            if name == "custom_calls"
            else f"{name}={getattr(self, name)!r}"
            for name in changed
        ]
        return f"CompileOptions({', '.join(shown)})"

    @property
    def cache_key(self) -> str:
        """What of the options changes the code; the rest concerns running it."""
        return (
            f"replicas {self.num_replicas} partitions {self.num_partitions} fast_math {self.fast_math} "
            f"contract {self.contract} excess_precision {self.excess_precision} flush {bool(self.flush_subnormals)} "
            f"passes {sorted(self.disabled_passes)} laws {sorted(self.disabled_laws)}"
        )


_MOST = 1 << 31
"""What no number of processes or threads reaches."""


def _shown(value: Any) -> str:
    """As it was given; Python does not write integers of thousands of digits."""
    spelled: str = late("xlapy_runtime.given").spelled(value)
    return spelled


def _is_integer(value: Any) -> bool:
    """Python's integers, and what numpy has for one."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _check_count(name: str, given: Any) -> None:
    if not _is_integer(given) or not 1 <= int(given) < _MOST:
        raise ArgumentError(f"{name} is a number of processes, 1 or more, not {_shown(given)}")


def _check_flag(name: str, given: Any) -> None:
    if not isinstance(given, bool):
        raise ArgumentError(f"{name} is True or False, not {given!r}")


def _check_flag_or_none(name: str, given: Any) -> None:
    if not isinstance(given, bool | None):
        raise ArgumentError(f"{name} is True, False or None, not {given!r}")


def _check_seed(name: str, given: Any) -> None:
    if not _is_integer(given) or not -(1 << 63) <= int(given) < 1 << 64:
        raise ArgumentError(f"{name} is an integer of 64 bits, not {_shown(given)}")


def _check_threads(name: str, given: Any) -> None:
    if not (given is None or (_is_integer(given) and 1 <= int(given) < _MOST)):
        raise ArgumentError(f"{name} is a number of threads, 1 or more, or None, not {_shown(given)}")


def _check_devices(name: str, given: Any) -> None:
    devices = () if given is None else given
    if not _is_collection(devices) or not all(_is_integer(device) and int(device) < 1 << 63 for device in devices):
        raise ArgumentError(f"{name} is a list of the numbers of devices, not {_shown(devices)}")


def _check_timeout(name: str, given: Any) -> None:
    late("xlapy_runtime.waiting").checked_timeout(given)


def _check_names(name: str, given: Any) -> None:
    if isinstance(given, str):
        raise ArgumentError(f"{name} is a set of names: {{{given!r}}} instead of {given!r}")
    _check_parts(name, given, lambda value: isinstance(value, str), "names")


def _check_passes(name: str, given: Any) -> None:
    """Passes and laws are not loaded to look at an option."""
    places = "passes at their places, as [after('simplify', YourPass())] with xlapy.passes.user.after"
    _check_parts(name, given, lambda value: hasattr(value, "place"), places)


def _check_laws(name: str, given: Any) -> None:
    _check_parts(name, given, lambda value: hasattr(value, "include"), "books of laws")


def _check_targets(name: str, given: Any) -> None:
    if type(given) is not dict and not isinstance(given, Mapping):
        raise ArgumentError(f"{name} gives targets by their names, which {given!r} does not")
    for target_name, target in given.items():
        late("xlapy_runtime.custom_calls").check_target(target_name, target)


def _check_parts(name: str, given: Any, is_part: Callable[[Any], bool], parts: str) -> None:
    if not _is_collection(given) or isinstance(given, (str, bytes)) or not all(map(is_part, given)):
        raise ArgumentError(f"{name} is a collection of {parts}, not {given!r}")


_CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "num_replicas": _check_count,
    "num_partitions": _check_count,
    "disabled_passes": _check_names,
    "disabled_laws": _check_names,
    "passes": _check_passes,
    "laws": _check_laws,
    "seed": _check_seed,
    "num_threads": _check_threads,
    "fast_math": _check_flag,
    "verify": _check_flag,
    "contract": _check_flag,
    "flush_subnormals": _check_flag_or_none,
    "excess_precision": _check_flag,
    "device_assignment": _check_devices,
    "timeout": _check_timeout,
    "custom_calls": _check_targets,
}
"""What looks at an option that is not the usual one."""


def _is_collection(value: object) -> bool:
    """What options mostly are comes first: abstract classes take 0.2 ms to look for their methods when they are first
    asked."""
    return type(value) in _COLLECTIONS or isinstance(value, Collection)


_COLLECTIONS = (tuple, list, set, frozenset)

USUAL_OPTIONS = CompileOptions()
"""Those of who gives none. They are made as the package is loaded: the first ones of a process take 70 us."""


def own_options(options: CompileOptions) -> CompileOptions:
    """Options of one executable: not those that all share, as somebody may change what they refer to."""
    return CompileOptions() if options is USUAL_OPTIONS else options


class Environment(Record):
    """What the environment variables say, read at each compilation."""

    cache_dir: str | None
    cache_home: str | None
    dump_to: str
    dump_filter: str
    verify: bool
    time_passes: bool
    pass_limit: int | None


def environment() -> Environment:
    """The environment as it is now. Raises ArgumentError for a number or an expression that is none."""
    return _environment_of(*_given())


@functools.lru_cache(maxsize=4)
def _environment_of(*values: str | bytes | None) -> Environment:
    """What the variables say with these values, most of which stay as they are while a process lives."""
    given = {name: os.fsdecode(value) for name, value in zip(_VARIABLES, values, strict=True) if value is not None}
    limit = given.get("XLAPY_PASS_LIMIT", "")
    if limit and not limit.isdecimal():
        raise ArgumentError(f"XLAPY_PASS_LIMIT is {limit!r}; it must be a number of changes, 0 or more")
    return Environment(
        cache_dir=given.get("XLAPY_CACHE_DIR"),
        cache_home=given.get("XDG_CACHE_HOME"),
        dump_to=given.get("XLAPY_DUMP_TO", ""),
        dump_filter=given.get("XLAPY_DUMP_FILTER", ""),
        verify=given.get("XLAPY_VERIFY", "") not in ("", "0"),
        time_passes=given.get("XLAPY_TIME_PASSES", "") not in ("", "0"),
        pass_limit=int(limit) if limit else None,
    )


def cache_settings() -> tuple[str | None, str | None]:
    """What the environment says of where the cache is: its folder, and that of all caches."""
    return os.environ.get("XLAPY_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")


_VARIABLES = (
    "XLAPY_CACHE_DIR",
    "XDG_CACHE_HOME",
    "XLAPY_DUMP_TO",
    "XLAPY_DUMP_FILTER",
    "XLAPY_VERIFY",
    "XLAPY_TIME_PASSES",
    "XLAPY_PASS_LIMIT",
)
_ENCODED = tuple(map(os.fsencode, _VARIABLES))


def _given() -> Iterable[str | bytes | None]:
    """The values of the variables; None for those that are not set. Where `os.environ` keeps bytes, these are looked
    at: it raises and catches an error for each name that is not there, and most are not."""
    table = getattr(os.environ, "_data", None)
    if os.name == "posix" and type(table) is dict:
        return map(table.get, _ENCODED)
    return map(os.environ.get, _VARIABLES)
