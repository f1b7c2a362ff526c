"""The machine that code is made for, as plain data.

A `Target` answers what emitters, cost models and cache keys ask: which instructions there are, how wide a vector
should be, how large the caches are, how many cores this process may use. `host_target()` describes this machine,
`reference_target(name)` a fixed one of each instruction set, so that code for a machine we do not sit at can still be
emitted and read. Importing this module starts nothing, and does not load LLVM.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xlapy.codegen.processor import processor_identity
from xlapy_runtime.calling import layout_identity
from xlapy_runtime.json_text import read_json
from xlapy_runtime.late import late
from xlapy_runtime.matrix_unit import uses_matrix_unit
from xlapy_runtime.records import Record, replaced, values_of
from xlapy_runtime.threads import usable_cores

if TYPE_CHECKING:
    from xlapy.codegen.object_cache import ObjectCache

_KILO = 1024
_DEFAULT_CACHE_SIZES = (32 * _KILO, 512 * _KILO, 8 * _KILO * _KILO)
"""L1 data, L2 and L3 where the machine does not tell: small enough to suit whatever it is."""

MOST_OF_LAST_CACHE = 16 * _KILO * _KILO
"""Bytes for each processor that is known to share it. A virtual machine with two of a hundred is told of all 480 MB,
and finds as little of arrays of 64 MB there as of larger ones."""

_CPUS_SLOWED_BY_WIDE_VECTORS = frozenset(
    {"skylake-avx512", "cascadelake", "cooperlake", "cannonlake", "icelake-client", "icelake-server", "tigerlake"}
)
"""These lower their clock, or give up an execution port, while 64-byte vectors are in flight.

Elsewhere 64 bytes are not slower: on a Zen 5 a polynomial of 12 multiply-adds takes half the time per element that it
takes with 32-byte vectors, and loops bound by memory take the same."""

_CPUS_THAT_WAIT_FOR_MEMORY = frozenset({"znver5"})
"""What only reads memory is faster on these if it asks for what it will read, and on late Intel servers: arrays of 64
MB come at 22 GB/s instead of 16. On a Zen 4 that makes a matrix times a vector and folds of rows 1.1 to 1.7 times
slower."""


_CPUS_WITH_SLOW_GATHERS = frozenset({"haswell", "broadwell", "znver1", "znver2", "znver3"})
"""An instruction that loads 8 lanes from anywhere takes longer on these than 8 loads, and LLVM does not use it."""


class Target(Record):
    """One machine. Compared by value: equal targets run each other's code and deserve the same plans."""

    triple: str
    cpu: str
    features: str
    """LLVM's spelling, sorted: "+avx,+avx2,-avx512f,..."."""

    vector_bytes: int
    """The vector that kernels should use; may be below what the instruction set offers."""

    has_fma: bool
    has_f16c: bool
    """Whether f16 and f32 convert into each other in hardware."""

    is_avx512: bool
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    """Data cache sizes: the first two of one core, the last as shared as the machine has it, or what of it is to be
    had."""

    cores: int
    """How many cores this process may keep busy: by affinity and by the container's quota."""

    @property
    def reads_side_by_side(self) -> bool:
        """Whether a core reads far pieces of an array faster together than from end to end, and, if it is not told what
        comes next, several arrays, too. So it is on a Zen 3 (30 GB/s and 23), and, told or not, on an Intel server (27
        and 23 of arrays that its last cache nearly holds, 15 and 13.5 of others)."""
        return self.is_x86 and (self._is_late_intel or not (self.is_avx512 or self.asks_ahead))

    @property
    def asks_ahead(self) -> bool:
        """Whether what only reads should ask for what comes next: elsewhere that disturbs the processor's own fetching.
        What writes as much asks anyway."""
        return self.cpu in _CPUS_THAT_WAIT_FOR_MEMORY or self._is_late_intel

    @property
    def has_far_last_cache(self) -> bool:
        """Whether the last cache is hardly nearer than memory, since all cores of a large processor have their parts of
        it: what is read several times had better stay in the caches of one core."""
        return self._is_late_intel

    @property
    def _is_late_intel(self) -> bool:
        """A server core since Sapphire Rapids: virtual machines may tell another model, but not other instructions."""
        return self.has("avx512fp16")

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` fill one preferred vector; at least one."""
        return max(1, self.vector_bytes * 8 // bits)

    @property
    def has_scalef(self) -> bool:
        """Whether an instruction multiplies floats by powers of two, where kernels use registers of 64 bytes."""
        return self.has_permute

    @property
    def read_constant_bytes(self) -> int:
        """Up to which length vectors that repeat one float had better be read as a whole, by the operation that needs
        them: LLVM makes each by an instruction of its own, where there are instructions for that. It takes as long as
        any other, and is as good as a read for each of three or four registers. With AVX-512 operations repeat what
        they read; without AVX2 LLVM reads whole vectors anyway."""
        return 2 * self.vector_bytes if self.has("avx2") and not self.is_avx512 else 0

    @property
    def has_permute(self) -> bool:
        """Whether kernels use registers of 64 bytes, and each lane of one can be any lane of one or two others."""
        return self.is_avx512 and self.vector_bytes == 64

    @property
    def repeats_functions(self) -> bool:
        """Whether elementary functions, of twice as many elements at a time and with tables in registers, take so
        little that these are better found again than kept while other elements come from memory."""
        return self.has_permute

    @property
    def has_range(self) -> bool:
        """Whether one instruction finds the larger of two floats, or the smaller, and tells zeros apart, where kernels
        use registers of 64 bytes."""
        return self.has_permute and self.has("avx512dq")

    @property
    def has_pair_products(self) -> bool:
        """Whether one instruction adds the products of two pairs of halves to a number, where kernels use registers of
        64 bytes."""
        return self.has_permute and self.has("avx512vnni")

    @property
    def divides_slowly(self) -> bool:
        """Whether to divide a register takes much longer than to multiply and add a few times, where kernels use
        registers of 64 bytes: 10 cycles for floats of 32 bits on an Intel server and 16 for those of 64, in which it
        does 20 or 32 other operations. Registers of 32 bytes take half of that, and three operations at a time."""
        return self.is_avx512 and self.vector_bytes == 64

    @property
    def has_estimates(self) -> bool:
        """Whether one instruction estimates what one divided by a float is, or by its root, to 14 bits, in vectors of
        any length; and floats are divided slowly, so that it takes less time to make the estimates exact."""
        return self.divides_slowly and self.has("avx512vl")

    @property
    def has_short_permute(self) -> bool:
        """Whether kernels use registers of 32 bytes, and each lane of one, of 32 bits, can be any lane of another."""
        return self.has("avx2") and self.vector_bytes == 32

    @property
    def has_gather(self) -> bool:
        """Whether one instruction loads lanes of 32 and 64 bits from anywhere, and that had better be used."""
        return self.is_avx512 or (self.has("avx2") and self.cpu not in _CPUS_WITH_SLOW_GATHERS)

    def has(self, feature: str) -> bool:
        """Whether the instruction set extension (LLVM's name, "avx512bw") is there."""
        return f"+{feature}" in _words_of(self.features)

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith(("x86_64", "i686"))

    @property
    def vector_registers(self) -> int:
        """How many there are."""
        return 32 if self.is_avx512 or not self.is_x86 else 16

    @property
    def function_attributes(self) -> str:
        """LLVM attributes that every function holding vectors must carry; often none.

        Without them LLVM uses 64-byte registers for a 16-lane f32 value even where 32-byte ones are preferred.
        """
        if self.is_avx512 and self.vector_bytes < 64:
            return f'"min-legal-vector-width"="0" "prefer-vector-width"="{self.vector_bytes * 8}"'
        return ""

    @property
    def code_key(self) -> str:
        """What machine code depends on, for cache keys. Cache sizes and cores enter through the IR that they shape."""
        return f"{self.triple}|{self.cpu}|{self.features}|{self.vector_bytes}"

    @property
    def library_key(self) -> str:
        """What the code of libraries depends on. How many cores there are is not for shared code to know."""
        return f"{self.code_key}|{self.l1_bytes}|{self.l2_bytes}|{self.l3_bytes}"

    @property
    def target(self) -> Target:
        """Itself; see `Host.target`."""
        return self


@functools.lru_cache(maxsize=64)
def _words_of(features: str) -> frozenset[str]:
    """The extensions in LLVM's list, each with its sign: some hundred, and a few are asked for again and again."""
    return frozenset(features.split(","))


@functools.cache
def host_target() -> Target:
    """This machine, as this process may use it. Read once: a later change of affinity is not seen."""
    llvm = _llvm()
    found = llvm.get_host_cpu_features().items()
    has_unit = uses_matrix_unit()
    features = {name: bool(enabled) and (has_unit or not name.startswith("amx-")) for name, enabled in found}
    return _describe(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=features,
        cache_sizes=_host_cache_sizes(_CACHE_TABLE),
        cores=usable_cores(),
    )


def _llvm() -> Any:
    """LLVM, which is a large library and takes a while to load: only when there is something to ask."""
    return late("llvmlite.binding")


class Host(Record, eq=False):
    """This machine, as all its processes find it: the keys of its `Target`, and the rest of it, without its cores.
    `code` is what a process has left for all others of the same Python and numpy, if one has yet; None where nothing
    can be left."""

    code_key: str
    library_key: str
    facts: Mapping[str, Any]
    code: bytes | None

    @property
    def target(self) -> Target:
        """This machine, with the cores that this process may use: those are counted now."""
        return Target(**self.facts, cores=usable_cores())


def _host_of(target: Target, code: bytes | None) -> Host:
    facts = values_of(target)
    del facts["cores"]
    return Host(target.code_key, target.library_key, facts, code)


def remembered_host(cache: ObjectCache) -> Host:
    """What `host_target` says, from the cache if another process has asked on this machine. What one has left that
    could not see the sizes of caches, as in some containers, serves those only that cannot, either."""
    key = _host_key()
    if key is None:
        return _host_of(host_target(), None)
    found = cache.get(_HOSTS, key)
    if found is not None:
        text, _, code = found.partition(_END_OF_FACTS)
        code_key, library_key, facts, has_cache_sizes = read_json(text.decode())
        if has_cache_sizes or not sees_cache_sizes():
            return Host(code_key, library_key, facts, code)
    host = _host_of(host_target(), b"")
    _remember(cache, key, host)
    return host


def leave_code(cache: ObjectCache, host: Host, code: bytes) -> None:
    """Leaves code for all processes that ask for this machine."""
    key = _host_key()
    if key is not None:
        _remember(cache, key, replaced(host, code=code))


def _remember(cache: ObjectCache, key: bytes, host: Host) -> None:
    told = (host.code_key, host.library_key, host.facts, sees_cache_sizes())
    content = late("json").dumps(told).encode()
    cache.put(_HOSTS, key, _END_OF_FACTS.join((content, host.code)) if host.code else content)


def _host_key() -> bytes | None:
    """What tells machines apart, and the Pythons on them; None where only LLVM can tell."""
    identity = processor_identity()
    if identity is None:
        return None
    return identity + f" {layout_identity()}".encode()


def sees_cache_sizes() -> bool:
    """Whether the system tells this process of the caches, as it does not in some containers."""
    return os.path.isdir(_CACHE_TABLE)


_END_OF_FACTS = b"\n"
_HOSTS = "hosts"
_CACHE_TABLE = "/sys/devices/system/cpu/cpu0/cache"


def reference_target(name: str) -> Target:
    """A fixed target of one instruction set: "sse2", "avx2", "avx512" or "neon"."""
    triple, cpu, extensions = REFERENCE_MACHINES[name]
    return _describe(triple, cpu, dict.fromkeys(extensions, True), _DEFAULT_CACHE_SIZES, cores=1)


_AVX2 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")
REFERENCE_MACHINES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "sse2": ("x86_64-unknown-linux-gnu", "x86-64", ("sse2",)),
    "avx2": ("x86_64-unknown-linux-gnu", "x86-64-v3", _AVX2),
    "avx512": (
        "x86_64-unknown-linux-gnu",
        "x86-64-v4",
        (*_AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
    ),
    "neon": ("aarch64-unknown-linux-gnu", "generic", ("fp-armv8", "neon")),
}


def _describe(
    triple: str, cpu: str, features: Mapping[str, bool], cache_sizes: tuple[int, int, int], cores: int
) -> Target:
    is_x86 = triple.startswith(("x86_64", "i686"))
    l1_bytes, l2_bytes, l3_bytes = cache_sizes
    return Target(
        triple=triple,
        cpu=cpu,
        features=",".join(f"{'+' if enabled else '-'}{name}" for name, enabled in sorted(features.items())),
        vector_bytes=_preferred_vector_bytes(cpu, features),
        has_fma=features.get("fma", False) if is_x86 else True,
        has_f16c=features.get("f16c", False) if is_x86 else True,
        is_avx512=_has_avx512(features),
        l1_bytes=l1_bytes,
        l2_bytes=l2_bytes,
        l3_bytes=l3_bytes,
        cores=cores,
    )


def _has_avx512(features: Mapping[str, bool]) -> bool:
    """Whether the subsets that kernels take for granted are all there (not so on the first AVX-512 machines)."""
    return all(features.get(f"avx512{subset}", False) for subset in ("f", "bw", "dq", "vl"))


def _preferred_vector_bytes(cpu: str, features: Mapping[str, bool]) -> int:
    if _has_avx512(features):
        return 32 if cpu in _CPUS_SLOWED_BY_WIDE_VECTORS else 64
    return 32 if features.get("avx2", False) else 16


def _host_cache_sizes(directory: str) -> tuple[int, int, int]:
    """Sizes of L1 data, L2 and L3, each from the kernel's table if it has a row for it; of the last one, no more than
    those who are known to share it can count on."""
    rows: dict[str, str] = {}
    entries = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    for entry in entries:
        row = os.path.join(directory, entry)
        if entry.startswith("index") and _read_text(row, "type") != "Instruction":
            rows[_read_text(row, "level")] = row
    found = [_parse_size(_read_text(rows[level], "size")) if level in rows else 0 for level in ("1", "2", "3")]
    first, second, third = (size or default for size, default in zip(found, _DEFAULT_CACHE_SIZES, strict=True))
    sharing = _count_of_numbers(_read_text(rows["3"], "shared_cpu_list")) if "3" in rows else 0
    return first, second, max(second, min(third, MOST_OF_LAST_CACHE * sharing or third))


def _count_of_numbers(text: str) -> int:
    """How many numbers "0-2,7" names."""
    ends = [part.split("-") for part in text.split(",") if part.replace("-", "").isdecimal()]
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def _parse_size(text: str) -> int:
    """Reads "48K" as 49152, and what is no size as 0."""
    scale = {"K": _KILO, "M": _KILO**2, "G": _KILO**3}.get(text[-1:], 1)
    digits = text.rstrip("KMG")
    return int(digits) * scale if digits.isdecimal() else 0


def _read_text(directory: str, name: str) -> str:
    try:
        with open(os.path.join(directory, name)) as file:
            return file.read().strip()
    except OSError:
        return ""
