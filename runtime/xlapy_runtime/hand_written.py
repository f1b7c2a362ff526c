"""Machine code that is written by hand, for what Linux on x86-64 does faster when it is not asked from Python.

A few functions of a few bytes each, which are put into memory together when the first of them is called, and stay.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import struct
import sys
from typing import Any

from xlapy_runtime.images import PAGE_BYTES, Image, Layout
from xlapy_runtime.linking import LinkedCode, load, symbol_address


@functools.cache
def is_linux_on_x86() -> bool:
    """Whether this code can run here. Asked once."""
    return sys.platform == "linux" and os.uname().machine == "x86_64" and struct.calcsize("P") == 8


@functools.cache
def ask_processor() -> Any:
    """`void ask_processor(uint32 *words, int64 count)`: in each of so many rows of four words, the first two of which
    say the leaf and its part, what `cpuid` answers. The first leaf is the model; the word behind the rows says which
    registers the system saves, so that they may be used."""
    return _ASKING(_code().address("ask_processor"))


@functools.cache
def mix_words() -> Any:
    """`uint64 mix_words(const uint64 *words, int64 count)`: a number that is another one if one of them changes, and
    most probably if several do. Every fourth word goes into the same of four numbers, which become one at the end: in
    one number each word would wait for the one before."""
    return _MIXING(_code().address("mix_words"))


@functools.cache
def look_at_files() -> Any:
    """`void look_at_files(int64 *what)`: writes the sizes of files, and their times in nanoseconds.

    What it is given: the descriptor of the folder that paths begin in, the address of these, of which each ends with a
    zero byte, how many there are, and the address of the rows, of two words each. That of a file that cannot be seen
    stays as it is."""
    return _LOOKING(_code().address("look_at_files"))


def address_of_copy() -> int:
    """Where a function is that does what `memcpy` does, which it calls, without its one weakness.

    The C library copies some thousand bytes, and up to a share of the last cache, by `rep movsb`. Where the goal begins
    1 to 63 bytes further into a page than the source, processors take what is read for what was just written, and wait:
    3 to 14 times as long (on Zen 3). That is no rare case: of two arrays of whole pages that were asked for one after
    the other the second begins 16 bytes further. Those are copied by vectors here."""
    return _code().address("copy")


@functools.cache
def _code() -> LinkedCode:
    imports = {_COPY_ELSEWHERE: symbol_address("memcpy")}
    return load(Image(_LAYOUT, bytes(_SLOT_BYTES), b"".join(_FUNCTIONS.values())), imports, list(_FUNCTIONS))


_ASKING = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_MIXING = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int64)
_LOOKING = ctypes.CFUNCTYPE(None, ctypes.c_char_p)

_ASK_PROCESSOR = bytes.fromhex(
    "53"  #          push rbx
    "4989f8"  #      mov r8, rdi             the row
    "4989f1"  #      mov r9, rsi             how many are left
    # next:
    "418b00"  #      mov eax, [r8]           the leaf
    "418b4804"  #    mov ecx, [r8 + 4]       its part
    "0fa2"  #        cpuid
    "418900"  #      mov [r8], eax
    "41895804"  #    mov [r8 + 4], ebx
    "41894808"  #    mov [r8 + 8], ecx
    "4189500c"  #    mov [r8 + 12], edx
    "4983c010"  #    add r8, 16
    "49ffc9"  #      dec r9
    "75df"  #        jnz next
    "31c0"  #        xor eax, eax
    "0fba67081b"  #  bt dword ptr [rdi + 8], 27    whether the system answers
    "7305"  #        jnc done
    "31c9"  #        xor ecx, ecx
    "0f01d0"  #      xgetbv
    # done:
    "418900"  #      mov [r8], eax
    "5b"  #          pop rbx
    "c3"  #          ret
)
_MIX_WORDS = bytes.fromhex(
    "48b9157c4a7fb979379e"  #  mov rcx, 0x9e3779b97f4a7c15
    "31c0"  #                  xor eax, eax
    "31d2"  #                  xor edx, edx
    "4531c0"  #                xor r8d, r8d
    "4531c9"  #                xor r9d, r9d
    # four:
    "4883ee04"  #              sub rsi, 4
    "7835"  #                  js rest
    "483307"  #                xor rax, [rdi]
    "480fafc1"  #              imul rax, rcx
    "48c1c01d"  #              rol rax, 29
    "48335708"  #              xor rdx, [rdi + 8]
    "480fafd1"  #              imul rdx, rcx
    "48c1c21d"  #              rol rdx, 29
    "4c334710"  #              xor r8, [rdi + 16]
    "4c0fafc1"  #              imul r8, rcx
    "49c1c01d"  #              rol r8, 29
    "4c334f18"  #              xor r9, [rdi + 24]
    "4c0fafc9"  #              imul r9, rcx
    "49c1c11d"  #              rol r9, 29
    "4883c720"  #              add rdi, 32
    "ebc5"  #                  jmp four
    # rest:
    "480fafc1"  #              imul rax, rcx
    "48c1c01d"  #              rol rax, 29
    "4831d0"  #                xor rax, rdx
    "480fafc1"  #              imul rax, rcx
    "48c1c01d"  #              rol rax, 29
    "4c31c0"  #                xor rax, r8
    "480fafc1"  #              imul rax, rcx
    "48c1c01d"  #              rol rax, 29
    "4c31c8"  #                xor rax, r9
    "4883c604"  #              add rsi, 4
    # one:
    "480fafc1"  #              imul rax, rcx
    "48c1c01d"  #              rol rax, 29
    "48ffce"  #                dec rsi
    "7809"  #                  js done
    "483307"  #                xor rax, [rdi]
    "4883c708"  #              add rdi, 8
    "ebea"  #                  jmp one
    # done:
    "c3"  #                    ret
)
_LOOK_AT_FILES = bytes.fromhex(
    "53"  #                push rbx
    "55"  #                push rbp
    "4154"  #              push r12
    "4155"  #              push r13
    "4881ec90000000"  #    sub rsp, 144           room for what the system knows of a file
    "4c8b2f"  #            mov r13, [rdi]         the folder
    "488b6f08"  #          mov rbp, [rdi + 8]     the paths
    "4c8b6710"  #          mov r12, [rdi + 16]    how many are left
    "488b5f18"  #          mov rbx, [rdi + 24]    the rows
    # next:
    "49ffcc"  #            dec r12
    "7840"  #              js done
    "4489ef"  #            mov edi, r13d
    "4889ee"  #            mov rsi, rbp
    "4889e2"  #            mov rdx, rsp
    "4531d2"  #            xor r10d, r10d
    "b806010000"  #        mov eax, 262           newfstatat
    "0f05"  #              syscall
    "85c0"  #              test eax, eax
    "751a"  #              jnz after              the row stays as it is
    "488b442430"  #        mov rax, [rsp + 48]    st_size
    "488903"  #            mov [rbx], rax
    "4869442458"  #        imul rax, [rsp + 88],  st_mtime
    "00ca9a3b"  #                     1000000000
    "4803442460"  #        add rax, [rsp + 96]    st_mtime_nsec
    "48894308"  #          mov [rbx + 8], rax
    # after:
    "4883c310"  #          add rbx, 16
    # skip:
    "48ffc5"  #            inc rbp
    "807dff00"  #          cmp byte ptr [rbp - 1], 0
    "75f7"  #              jne skip
    "ebbb"  #              jmp next
    # done:
    "4881c490000000"  #    add rsp, 144
    "415d"  #              pop r13
    "415c"  #              pop r12
    "5d"  #                pop rbp
    "5b"  #                pop rbx
    "c3"  #                ret
)
_COPY = bytes.fromhex(
    "89f8"  #            mov eax, edi
    "29f0"  #            sub eax, esi
    "ffc8"  #            dec eax
    "25ff0f0000"  #      and eax, 4095        by how much less one it begins further into a page
    "83f83f"  #          cmp eax, 63
    "730f"  #            jae elsewhere
    "488d8200f8ffff"  #  lea rax, [rdx - 2048]
    "483d00f83f00"  #    cmp rax, 4 MiB - 2048
    "7206"  #            jb here
    # elsewhere:
    "ff25dbefffff"  #    jmp [rip - 4096 - 37]    what the slot says: the page before this code
    # here:
    "4889f8"  #          mov rax, rdi
    "488d4ac0"  #        lea rcx, [rdx - 64]  where the last 64 bytes begin
    "31d2"  #            xor edx, edx
    # next:
    "0f100416"  #        movups xmm0, [rsi + rdx]
    "0f104c1610"  #      movups xmm1, [rsi + rdx + 16]
    "0f10541620"  #      movups xmm2, [rsi + rdx + 32]
    "0f105c1630"  #      movups xmm3, [rsi + rdx + 48]
    "0f110417"  #        movups [rdi + rdx], xmm0
    "0f114c1710"  #      movups [rdi + rdx + 16], xmm1
    "0f11541720"  #      movups [rdi + rdx + 32], xmm2
    "0f115c1730"  #      movups [rdi + rdx + 48], xmm3
    "4883c240"  #        add rdx, 64
    "4839ca"  #          cmp rdx, rcx
    "72d1"  #            jb next
    "0f10040e"  #        movups xmm0, [rsi + rcx]
    "0f104c0e10"  #      movups xmm1, [rsi + rcx + 16]
    "0f10540e20"  #      movups xmm2, [rsi + rcx + 32]
    "0f105c0e30"  #      movups xmm3, [rsi + rcx + 48]
    "0f11040f"  #        movups [rdi + rcx], xmm0
    "0f114c0f10"  #      movups [rdi + rcx + 16], xmm1
    "0f11540f20"  #      movups [rdi + rcx + 32], xmm2
    "0f115c0f30"  #      movups [rdi + rcx + 48], xmm3
    "c3"  #              ret
)
_FUNCTIONS = {"copy": _COPY, "ask_processor": _ASK_PROCESSOR, "mix_words": _MIX_WORDS, "look_at_files": _LOOK_AT_FILES}
"""In the order in which they lie in memory, from the second page on."""

_COPY_ELSEWHERE = "memcpy"
_SLOT_BYTES = 8
_ENDS = list(itertools.accumulate(map(len, _FUNCTIONS.values()), initial=PAGE_BYTES))
_LAYOUT = Layout(
    data_bytes=_SLOT_BYTES,
    data_space=PAGE_BYTES,
    code_bytes=_ENDS[-1] - PAGE_BYTES,
    exports=dict(zip(_FUNCTIONS, _ENDS, strict=False)),
    imports={_COPY_ELSEWHERE: [0]},
    addresses=(),
)
