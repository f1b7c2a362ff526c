"""Which instructions a processor has, by the names that LLVM gives them: what saved code needs, and what is here.

Linux on x86-64 answers from `cpuid` within microseconds. Elsewhere, and for instructions that came later than this
table, LLVM is asked, which is a large library to load.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterable, Mapping, Sequence

from xlapy_runtime.hand_written import ask_processor, is_linux_on_x86
from xlapy_runtime.late import late
from xlapy_runtime.matrix_unit import uses_matrix_unit

_FOR_SYSTEMS_AND_INTRINSICS = frozenset(
    [
        "64bit",
        "adx",
        "aes",
        "avx10.1",
        "cldemote",
        "clflushopt",
        "clwb",
        "clzero",
        "cmpccxadd",
        "crc32",
        "enqcmd",
        "fsgsbase",
        "fxsr",
        "hreset",
        "invpcid",
        "kl",
        "lwp",
        "movdir64b",
        "movdiri",
        "mwaitx",
        "pconfig",
        "pku",
        "prefetchi",
        "ptwrite",
        "raoint",
        "rdpid",
        "rdpru",
        "rdrnd",
        "rdseed",
        "rtm",
        "serialize",
        "sgx",
        "sha",
        "sha512",
        "shstk",
        "sm3",
        "sm4",
        "tsxldtrk",
        "uintr",
        "usermsr",
        "vaes",
        "waitpkg",
        "wbnoinvd",
        "widekl",
        "xsave",
        "xsavec",
        "xsaveopt",
        "xsaves",
    ]
)
"""What every machine of 64 bits has, or LLVM uses only for who asks for the very instruction, as no kernel does; or
what stands for others that are named besides."""


def needed_features(features: str) -> list[str]:
    """Of LLVM's list of what a machine has ("+avx,-avx512f,..."), what code that was made for it may use."""
    had = (name[1:] for name in features.split(",") if name.startswith("+"))
    return sorted(name for name in had if name in _OF_MATRIX_UNIT or not _is_for_who_asks(name))


def _is_for_who_asks(name: str) -> bool:
    return name in _FOR_SYSTEMS_AND_INTRINSICS or name.startswith("amx-")


def lacking_features(needed: Iterable[str]) -> list[str]:
    """Those of the features that this machine does not have, as this process may use it."""
    known = _answers() if is_linux_on_x86() else {}
    return sorted(name for name in needed if not _is_here(name, known))


def _is_here(name: str, known: Mapping[str, bool]) -> bool:
    is_lent = name not in _OF_MATRIX_UNIT or uses_matrix_unit()
    return is_lent and (known[name] if name in known else _llvm_has(name))


def _llvm_has(name: str) -> bool:
    return bool(_features_by_llvm().get(name, False))


@functools.cache
def _features_by_llvm() -> Mapping[str, bool]:
    features: Mapping[str, bool] = late("llvmlite.binding").get_host_cpu_features()
    return features


_MODEL, _EXTENSIONS, _MORE_EXTENSIONS = (1, 0), (7, 0), (7, 1)
_MOST_ADDED, _ADDED = (0x8000_0000, 0), (0x8000_0001, 0)
_MOST = (0, 0)
_QUESTIONS = (_MODEL, _EXTENSIONS, _MORE_EXTENSIONS, _ADDED, _MOST, _MOST_ADDED)
"""Leaves of `cpuid`, and their parts; the model comes first, as `ask_processor` wants it."""

_EAX, _EBX, _ECX, _EDX = range(4)
_ROW_WORDS = 4
_WITH_HALVES, _WITH_ALL, _WITH_TILES = 0x06, 0xE6, 0x60000
"""The registers that the system has to save for AVX, AVX-512 and AMX: bits of the word behind the rows."""

_OF_MATRIX_UNIT = frozenset(("amx-bf16", "amx-int8", "amx-tile"))
"""What products use where the system lets them."""

_BITS: Mapping[tuple[tuple[int, int], int], Mapping[str, int]] = {
    (_MODEL, _ECX): {
        "sse3": 0,
        "pclmul": 1,
        "ssse3": 9,
        "fma": 12,
        "cx16": 13,
        "sse4.1": 19,
        "sse4.2": 20,
        "movbe": 22,
        "popcnt": 23,
        "avx": 28,
        "f16c": 29,
    },
    (_MODEL, _EDX): {"cx8": 8, "cmov": 15, "mmx": 23, "sse": 25, "sse2": 26},
    (_EXTENSIONS, _EBX): {
        "bmi": 3,
        "avx2": 5,
        "bmi2": 8,
        "avx512f": 16,
        "avx512dq": 17,
        "avx512ifma": 21,
        "avx512cd": 28,
        "avx512bw": 30,
        "avx512vl": 31,
    },
    (_EXTENSIONS, _ECX): {
        "avx512vbmi": 1,
        "avx512vbmi2": 6,
        "gfni": 8,
        "vpclmulqdq": 10,
        "avx512vnni": 11,
        "avx512bitalg": 12,
        "avx512vpopcntdq": 14,
    },
    (_EXTENSIONS, _EDX): {"avx512vp2intersect": 8, "amx-bf16": 22, "avx512fp16": 23, "amx-tile": 24, "amx-int8": 25},
    (_MORE_EXTENSIONS, _EAX): {"avxvnni": 4, "avx512bf16": 5, "avxifma": 23},
    (_MORE_EXTENSIONS, _EDX): {"avxvnniint8": 4, "avxneconvert": 5, "avxvnniint16": 10},
    (_ADDED, _ECX): {"sahf": 0, "lzcnt": 5, "sse4a": 6, "prfchw": 8, "xop": 11, "fma4": 16, "tbm": 21},
}
"""Where the features are in the answers: in which row, in which word of it, at which bit."""

_OF_LONG_REGISTERS = frozenset(("f16c", "fma", "fma4", "vpclmulqdq", "xop"))
"""What works on the registers of AVX and does not begin with its name."""


@functools.cache
def _answers() -> Mapping[str, bool]:
    """What the processor says of each feature in the table. It may say anything in rows that it does not know of."""
    rows, saved = _asked()
    known = {_MODEL}
    if rows[_MOST][_EAX] >= _EXTENSIONS[0]:
        known |= {_EXTENSIONS, _MORE_EXTENSIONS} if rows[_EXTENSIONS][_EAX] >= _MORE_EXTENSIONS[1] else {_EXTENSIONS}
    if rows[_MOST_ADDED][_EAX] >= _ADDED[0]:
        known.add(_ADDED)
    return {
        name: row in known and bool(rows[row][word] >> bit & 1) and saved & _registers(name) == _registers(name)
        for (row, word), bits in _BITS.items()
        for name, bit in bits.items()
    }


def _registers(name: str) -> int:
    """Which registers the system has to save before code may use the feature."""
    if name in _OF_MATRIX_UNIT:
        return _WITH_TILES
    if name.startswith("avx512"):
        return _WITH_ALL
    return _WITH_HALVES if name.startswith("avx") or name in _OF_LONG_REGISTERS else 0


def _asked() -> tuple[Mapping[tuple[int, int], Sequence[int]], int]:
    """The answers by their questions, and the registers that the system saves."""
    words = (ctypes.c_uint32 * (_ROW_WORDS * len(_QUESTIONS) + 1))()
    for number, question in enumerate(_QUESTIONS):
        words[number * _ROW_WORDS], words[number * _ROW_WORDS + 1] = question
    ask_processor()(words, len(_QUESTIONS))
    rows = {
        question: words[number * _ROW_WORDS : (number + 1) * _ROW_WORDS] for number, question in enumerate(_QUESTIONS)
    }
    return rows, words[-1]
