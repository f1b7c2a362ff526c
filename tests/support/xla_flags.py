"""How JAX compiles where it is only the measure of results: quickly, since nobody waits for what XLA's code does."""

from __future__ import annotations

import importlib.util
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

QUICK = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": "true",
    "xla_cpu_use_fusion_emitters": "false",  # by way of MLIR, which takes most of the time of a compilation
    "xla_cpu_parallel_codegen_split_count": "1",  # modules for LLVM, of which each takes time
}


def use_quick_xla() -> None:
    """Adds the flags of `QUICK` to those in the environment, which JAX and the children of this process read."""
    given = os.environ.get("XLA_FLAGS", "")
    missing = {name: value for name, value in QUICK.items() if name not in given}
    known = _known_to_xla(missing) if missing else set()
    flags = [f"--{name}={value}" for name, value in missing.items() if name in known]
    os.environ["XLA_FLAGS"] = " ".join([*given.split(), *flags])


def usual_fusions() -> dict[str, bool]:
    """Options with which XLA fuses as it does for its users: for a program whose optimized text is what is tested."""
    name = "xla_cpu_use_fusion_emitters"
    return {name: True} if f"--{name}=false" in os.environ.get("XLA_FLAGS", "") else {}


def _known_to_xla(flags: Iterable[str]) -> set[str]:
    """Those flags that the installed version has: for one that it does not know, XLA ends the process. The names are
    looked up in its library, since asking XLA itself would be to start it."""
    known: set[str] = set()
    for library in _libraries():
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            known |= {flag for flag in flags if content.find(flag.encode()) >= 0}
    return known


def _libraries() -> Iterator[Path]:
    spec = importlib.util.find_spec("jaxlib")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from (path for path in Path(folder).glob("*.so") if path.stat().st_size)
