"""What the machine is, and how busy it is with other things."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("xlapy", "llvmlite", "numpy", "jax", "jaxlib", "numba", "torch")

_FORGET_PEAK = "5"
"""Written to clear_refs, this makes the largest size of a process its present one."""

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Load:
    """The machine's counters at one moment, in seconds since boot; zeros where the system does not tell."""

    at: float
    busy: float
    stolen: float
    average: float

    @staticmethod
    def now() -> Load:
        try:
            fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        except (OSError, ValueError):
            fields = [0] * 8
        user, nice, system, _, _, interrupts, softirqs, stolen = fields
        average = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        busy = (user + nice + system + interrupts + softirqs) / _TICKS_PER_SECOND
        return Load(time.perf_counter(), busy, stolen / _TICKS_PER_SECOND, average)


@dataclass(frozen=True)
class Disturbance:
    """What else the machine did over a stretch of time, in cores kept busy, and the time that its host withheld."""

    foreign_cores: float
    stolen_share: float

    @staticmethod
    def between(before: Load, after: Load, own_seconds: float) -> Disturbance:
        elapsed = max(after.at - before.at, 1e-9)
        foreign = (after.busy - before.busy - own_seconds) / elapsed
        return Disturbance(max(0.0, foreign), (after.stolen - before.stolen) / elapsed / (os.cpu_count() or 1))


def cpu_seconds(process: int) -> float | None:
    """Processor time of another process and all its threads; None where the system has no such clock."""
    try:
        return time.clock_gettime((~process << 3) | 2)  # Linux builds a process's CPU clock from its number like this
    except (AttributeError, OSError, OverflowError):
        return None


def has_running_thread(process: int) -> bool | None:
    """Whether a thread of another process runs or waits for a core; None where the system does not tell."""
    try:
        return any(_is_running(thread) for thread in Path(f"/proc/{process}/task").iterdir())
    except OSError:
        return None


def _is_running(thread: Path) -> bool:
    """Of a thread's folder below /proc. Its state follows its name, which may hold anything but ends with the last
    parenthesis."""
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except (OSError, IndexError):
        return False  # it has ended


def peak_growth(function: Callable[[], object]) -> int | None:
    """By how many bytes this process's memory grows at most while the function runs; None where the system has no way
    to tell. Memory that was freed before goes back to the system first, so that using it again counts."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text(_FORGET_PEAK)
        before = _status("VmRSS")
        function()
        return max(0, _status("VmHWM") - before)
    except (OSError, AttributeError, LookupError):
        return None


def _status(entry: str) -> int:
    """A figure in bytes from what Linux tells a process about itself."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return dict(_status_pair(line) for line in lines if line.endswith(" kB"))[entry]


def _status_pair(line: str) -> tuple[str, int]:
    name, figure, _ = line.split()
    return name.rstrip(":"), int(figure) * 1024


def take_own_pages() -> None:
    """Gives a forked process its own copy of all that it may write to, and the pages of files that it reads.

    Until then it shares the pages of its parent, and the system copies each at the first write, of which a processor
    takes 1 to 4 us to tell; Python writes to a page by looking at an object. Pages of libraries are there, but have to
    be entered again into the tables of the process, one by one. A process that has loaded and made all this itself has
    nothing to copy and nothing to enter: compiling what is cached takes 4 page faults there, and 3 after this."""
    try:
        mappings = Path("/proc/self/maps").read_text().splitlines()
        advise = ctypes.CDLL(None).madvise
    except (OSError, AttributeError):
        return
    for mapping in mappings:
        addresses, access, _, _, file, *_ = mapping.split()
        if access.startswith("rw") and access.endswith("p"):
            advice = _POPULATE_WRITE
        elif access.startswith("r-") and file != "0":
            advice = _POPULATE_READ
        else:
            continue
        begin, end = (int(address, 16) for address in addresses.split("-"))
        advise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), advice)


_POPULATE_READ, _POPULATE_WRITE = 22, 23
"""Linux's advice of these names. Systems before 5.14 do not know it, and change nothing."""


def total_cpu_seconds(processes: Iterable[int]) -> float:
    return time.process_time() + sum(cpu_seconds(process) or 0.0 for process in processes)


def pin(core: int | None) -> None:
    """Keeps this process, and what it starts from now on, on one core; None changes nothing."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def describe() -> dict[str, Any]:
    """The machine and the versions of everything that matters; nothing that identifies it."""
    return {
        "processor": _processor_name(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "caches": _cache_sizes(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cache_sizes() -> dict[str, str]:
    sizes = {}
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = ((entry / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            sizes[f"L{level}"] = size
    return sizes


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
