"""Object files become images, images become code; what is not known is left to LLVM."""

from __future__ import annotations

import ctypes
import random
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import host_target, reference_target
from xlapy_runtime import elf
from xlapy_runtime.elf import DamagedObject, NotKnown, read_object
from xlapy_runtime.errors import InternalError
from xlapy_runtime.images import PAGE_BYTES, is_image, read_image, space_of
from xlapy_runtime.linking import LinkedCode, link, load
from xlapy_runtime.prelinking import prelinked

X86 = reference_target("sse2")

ONE = """@counter = global i64 5
@zeros = internal global [600 x i64] zeroinitializer, align 64
@late = external global i64
@own = internal constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@table = internal constant [2 x ptr] [ptr @here, ptr @there]
declare i64 @there(i64)
declare i64 @elsewhere(i64)
define i64 @here(i64 %x) nounwind {
  %y = add i64 %x, 1
  ret i64 %y
}
define i64 @count() nounwind {
  %old = load i64, ptr @counter
  %other = load i64, ptr @late
  %new = add i64 %old, %other
  store i64 %new, ptr @counter
  ret i64 %new
}
define i64 @by_table(i64 %which, i64 %x) nounwind {
  %place = getelementptr [2 x ptr], ptr @table, i64 0, i64 %which
  %function = load ptr, ptr %place
  %y = call i64 %function(i64 %x)
  ret i64 %y
}
define i64 @abroad(i64 %x) nounwind {
  %once = call i64 @elsewhere(i64 %x)
  %twice = call i64 @elsewhere(i64 %once)
  ret i64 %twice
}
define ptr @address_abroad() nounwind {
  ret ptr @elsewhere
}
define i64 @sum_of_zeros() nounwind {
  %last = getelementptr [600 x i64], ptr @zeros, i64 0, i64 599
  %value = load i64, ptr %last
  store i64 7, ptr %last
  ret i64 %value
}
define i32 @of_own(i64 %which) nounwind {
  %place = getelementptr [4 x i32], ptr @own, i64 0, i64 %which
  %value = load i32, ptr %place
  ret i32 %value
}
"""
TWO = """@late = global i64 10
@here = external global i8
define i64 @there(i64 %x) nounwind {
  %y = mul i64 %x, 3
  ret i64 %y
}
define ptr @address_of_here() nounwind {
  ret ptr @here
}
"""
EXPORTS = (
    "here",
    "count",
    "by_table",
    "abroad",
    "address_abroad",
    "sum_of_zeros",
    "of_own",
    "address_of_here",
    "counter",
)
UNARY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def objects() -> list[bytes]:
    return [emit_object(text, X86) for text in (ONE, TWO)]


@UNARY
def elsewhere(value: int) -> int:
    return value + 100


def linked() -> LinkedCode:
    address = ctypes.cast(elsewhere, ctypes.c_void_p).value or 0
    return link(prelinked(objects()), {"elsewhere": address}, EXPORTS)


def function(code: LinkedCode, name: str, *arguments: type) -> ctypes._NamedFuncPointer:
    found: ctypes._NamedFuncPointer = ctypes.CFUNCTYPE(ctypes.c_int64, *arguments)(code.address(name))
    return found


needs_x86 = pytest.mark.skipif(
    not host_target().is_x86 or "linux" not in host_target().triple, reason="runs code for x86-64 in ELF"
)


@needs_x86
def test_objects_use_each_other_through_code_tables_and_data() -> None:
    code = linked()
    assert [function(code, "count")() for _ in range(3)] == [15, 25, 35]
    assert [function(code, "by_table", ctypes.c_int64, ctypes.c_int64)(which, 5) for which in (0, 1)] == [6, 15]
    assert function(code, "address_of_here")() == code.address("here")
    assert [function(code, "of_own", ctypes.c_int64)(which) & 0xFFFF_FFFF for which in range(4)] == [1, 2, 3, 4]


@needs_x86
def test_functions_from_elsewhere_are_called_and_have_an_address() -> None:
    code = linked()
    assert function(code, "abroad", ctypes.c_int64)(1) == 201
    assert function(code, "address_abroad")() == ctypes.cast(elsewhere, ctypes.c_void_p).value


@needs_x86
def test_each_copy_has_data_of_its_own_which_begins_as_zeros() -> None:
    first, second = linked(), linked()
    assert [function(code, "sum_of_zeros")() for code in (first, first, second)] == [0, 7, 0]
    function(first, "count")()
    assert ctypes.c_int64.from_address(second.address("counter")).value == 5


@needs_x86
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no map of the memory")
def test_nothing_is_both_writable_and_executable() -> None:
    code = linked()
    rights = {name: rights_of(code.address(name)) for name in ("here", "counter")}
    assert rights == {"here": "r-xp", "counter": "rw-p"}


def rights_of(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last, rights = re.split("[- ]", line, maxsplit=2)
        if int(first, 16) <= address < int(last, 16):
            return rights[:4]
    return ""


def test_an_image_is_the_same_every_time_and_survives_its_bytes() -> None:
    (dumped,) = prelinked(objects())
    assert is_image(dumped)
    assert prelinked(objects()) == (dumped,) == prelinked([dumped])
    image = read_image(dumped)
    assert image.dump() == dumped
    assert set(EXPORTS) <= set(image.layout.exports)
    assert set(image.layout.imports) == {"elsewhere"}
    layout = image.layout
    assert layout.data_space % PAGE_BYTES == 0 == space_of(layout.data_space, layout.code_bytes) % PAGE_BYTES
    assert len(dumped) < 600 * 8  # zeros are not in it


def test_sections_begin_where_they_may() -> None:
    text = "\n".join(f"@a{size} = constant [{size} x i8] zeroinitializer, align {size}" for size in (32, 64, 128))
    (dumped,) = prelinked([emit_object(text, X86)])
    assert all(place % int(name[1:]) == 0 for name, place in read_image(dumped).layout.exports.items())


@needs_x86
def test_nothing_at_all_may_be_linked() -> None:
    assert is_image(prelinked([emit_object("", X86)])[0])
    link([emit_object("", X86)], {}, [])


@needs_x86
def test_process_functions_are_found() -> None:
    text = """declare ptr @memset(ptr, i32, i64)
define void @clear(ptr %place) nounwind {
  %ignored = call ptr @memset(ptr %place, i32 0, i64 16)
  ret void
}
"""
    code = link(prelinked([emit_object(text, X86)]), {}, ["clear"])
    memory = ctypes.create_string_buffer(b"x" * 32, 32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("clear"))(ctypes.addressof(memory))
    assert memory.raw == bytes(16) + b"x" * 16


@needs_x86
def test_what_nobody_defines_is_named() -> None:
    with pytest.raises(InternalError, match="nobody defines elsewhere"):
        link(prelinked(objects()), {}, EXPORTS)
    with pytest.raises(InternalError, match="does not define absent"):
        link(prelinked(objects()), {"elsewhere": 1}, ["absent"])


def test_what_is_defined_twice_is_named() -> None:
    one, two = objects()
    with pytest.raises(InternalError, match="there is defined twice"):
        prelinked([one, two, two])


@pytest.mark.parametrize(
    "text",
    [
        "@far = thread_local global i32 1\ndefine ptr @f() { ret ptr @far }",
        "@maybe = weak global i32 1",
        "@chosen = ifunc void (), ptr @choose\ndefine ptr @choose() { ret ptr null }",
        "@placed = global ptr getelementptr (i8, ptr @away, i64 8)\n@away = external global i8",
    ],
    ids=["thread-local", "weak", "chosen when loaded", "address with an addend"],
)
def test_objects_of_other_kinds_stay_as_they_are(text: str) -> None:
    made = emit_object(text, X86)
    with pytest.raises(NotKnown):
        prelinked_or_raise(made)
    assert prelinked([made]) == (made,)


def prelinked_or_raise(made: bytes) -> None:
    read_object(made)
    if not is_image(prelinked([made])[0]):
        raise NotKnown


def test_other_machines_and_files_stay_as_they_are() -> None:
    for made in (emit_object(TWO, reference_target("neon")), b"\xcf\xfa\xed\xfe and so on", b"", b"\x7fELF"):
        assert prelinked([made]) == (made,)
    one, _ = objects()
    assert prelinked([one, b"no object"]) == (one, b"no object")


def test_frames_of_exceptions_are_left_out() -> None:
    text = "define i64 @may_throw(i64 %x) uwtable { ret i64 %x }"
    made = emit_object(text, X86)
    assert b".eh_frame" in made
    (dumped,) = prelinked([made])
    assert read_image(dumped).layout.code_bytes <= 64


def test_damaged_objects_are_refused_or_left_alone() -> None:
    """Whatever the bytes, it ends with an image, with the same bytes, or with our own error."""
    good, chance = emit_object(ONE, X86), random.Random(7)
    damaged = [good[: chance.randrange(len(good))] for _ in range(100)]
    for _ in range(1500):
        at = chance.randrange(len(good))
        damaged.append(good[:at] + bytes([chance.randrange(256)]) + good[at + 1 :])
    refused = 0
    for data in damaged:
        try:
            (made,) = prelinked([data])
            assert made == data or is_image(made)
        except InternalError:
            refused += 1
    assert refused > 100


def test_damaged_images_are_refused() -> None:
    (dumped,) = prelinked(objects())
    for data in (dumped[:10], dumped[:40], dumped[:-1], dumped + b"x", dumped.replace(b"[", b"(", 1)):
        with pytest.raises(InternalError):
            read_image(data)


@needs_x86
@pytest.mark.parametrize(
    "change",
    [
        {"data_bytes": -8},
        {"data_bytes": 1 << 20},
        {"data_space": 1},
        {"data_space": "4096"},
        {"code_bytes": None},
        {"exports": {"here": 1 << 40}},
        {"exports": {"here": -1}},
        {"exports": ["here"]},
        {"imports": []},
        {"imports": {"memset": [1 << 40]}},
        {"imports": {"memset": 3}},
        {"addresses": [1 << 40]},
        {"addresses": [1.5]},
        {"addresses": 7},
    ],
    ids=str,
)
def test_images_that_reach_beyond_their_memory_are_refused(change: dict[str, Any]) -> None:
    """Whoever wrote the header: nothing is copied, filled in or exported that lies elsewhere."""
    (dumped,) = prelinked(objects())
    image = read_image(dumped)
    layout = replace(image.layout, **({"imports": {}} | change))
    with pytest.raises(InternalError, match=r"damaged image|cut short"):
        load(read_image(replace(image, layout=layout).dump()), {}, ["here"])


def test_places_outside_of_their_section_are_refused() -> None:
    good = bytearray(emit_object(ONE, X86))
    rows = [
        struct.unpack_from("<IIQQQQIIQQ", good, struct.unpack_from("<Q", good, 0x28)[0] + 64 * number)
        for number in range(struct.unpack_from("<H", good, 0x3C)[0])
    ]
    place = next(row[4] for row in rows if row[1] == 4)
    struct.pack_into("<Q", good, place, 1 << 40)
    with pytest.raises(DamagedObject):
        read_object(bytes(good))
    assert elf.Fill.CALL == 4
