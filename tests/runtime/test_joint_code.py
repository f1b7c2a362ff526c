"""Code that programs share, beside a program: images that become one piece of memory and call each other."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import pytest

from xlapy.codegen.jit import emit_object
from xlapy.codegen.target import host_target
from xlapy_runtime.errors import InternalError
from xlapy_runtime.images import is_image, parts
from xlapy_runtime.joint_code import Joint, Member, link_members
from xlapy_runtime.linking import LinkedCode, Room, as_image
from xlapy_runtime.records import replaced

COUNTING = """@counter = internal global i64 5
@zeros = internal global [600 x i64] zeroinitializer, align 64
define i64 @next() nounwind {
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  %last = getelementptr [600 x i64], ptr @zeros, i64 0, i64 599
  %zero = load i64, ptr %last
  %sum = add i64 %new, %zero
  ret i64 %sum
}
"""
DOUBLING = """declare i64 @next()
declare i64 @elsewhere(i64)
define i64 @twice() nounwind {
  %one = call i64 @next()
  %two = call i64 @next()
  %sum = add i64 %one, %two
  %result = call i64 @elsewhere(i64 %sum)
  ret i64 %result
}
"""
Function = ctypes.CFUNCTYPE(ctypes.c_int64)
Elsewhere = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
negated = Elsewhere(lambda x: -x)
IMPORTS = {"elsewhere": ctypes.cast(negated, ctypes.c_void_p).value or 0}


@pytest.fixture(scope="module")
def members() -> list[Member]:
    found = []
    for name, text in (
        ("doubling", DOUBLING),
        ("counting", COUNTING),
        ("another", COUNTING.replace("@next", "@other")),
    ):
        image = as_image([emit_object(text, host_target())])
        if image is None or not is_image(image):
            pytest.skip("object code that only LLVM links")
        found.append(Member(name, "", parts(image)))
    return found


def call(linked: LinkedCode, symbol: str) -> int:
    return int(Function(linked.address(symbol))())


def room_with(data: bytes) -> Room:
    room = Room(len(data))
    room.content[:] = data
    return room


def linked(members: Sequence[Member]) -> list[LinkedCode]:
    return [code for _, _, code in link_members(room_with(Joint(members).dump("these")), "these", IMPORTS)]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (1, 0, 2), (2, 0, 1)])
def test_images_in_one_piece_of_memory_call_each_other(order: tuple[int, ...], members: list[Member]) -> None:
    """Data lies between the code of some, and stays writable."""
    found = linked([members[place] for place in order])
    doubling, counting, another = (found[order.index(place)] for place in range(3))
    assert call(doubling, "twice") == -(6 + 7)
    assert call(counting, "next") == 8
    assert call(another, "other") == 6
    assert "next" in counting and "next" not in doubling
    assert counting.addresses() == {"next": counting.address("next")}


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_images_are_put_behind_others_that_stay_as_they_are(count: int, members: list[Member]) -> None:
    ordered = [members[1], members[0], members[2]]
    before = Joint(ordered[:count])
    made = [Joint(ordered[count:], before).dump("these") for _ in range(2)]
    assert made[0] == made[1]
    counting, doubling, another = (code for _, _, code in link_members(room_with(made[0]), "these", IMPORTS))
    assert call(doubling, "twice") == -(6 + 7)
    assert call(counting, "next") == 8
    assert call(another, "other") == 6


def test_words_of_an_image_point_into_it(members: list[Member]) -> None:
    """Wherever it lies: behind another, too."""
    data = DOUBLING.replace("@twice", "@by_table").replace("call i64 @next()", "call i64 %function()", 1)
    text = "@table = internal global [1 x ptr] [ptr @one]\ndefine internal i64 @one() nounwind {\n  ret i64 40\n}\n"
    text += data.replace("{\n", "{\n  %function = load volatile ptr, ptr @table\n", 1)
    image = as_image([emit_object(text, host_target())])
    assert image is not None
    *_, by_table = linked([*members, Member("table", "", parts(image))])
    assert call(by_table, "by_table") == -(40 + 6)


def test_each_is_unloaded_by_itself(members: list[Member]) -> None:
    for _ in range(40):
        first, second, third = linked(members)
        del third
        assert call(first, "twice") == -(6 + 7)
        del first
        assert call(second, "next") == 8


def test_what_nobody_has_is_said(members: list[Member]) -> None:
    with pytest.raises(InternalError, match="nobody defines elsewhere"):
        link_members(room_with(Joint(members).dump("these")), "these", {})


def test_members_run_where_they_were_read_to(members: list[Member]) -> None:
    room = room_with(Joint([replaced(member, trim=f"of {member.name}") for member in members]).dump("these"))
    begin, end = room.address, room.address + room.size
    found = link_members(room, "these", IMPORTS)
    assert [(name, trim) for name, trim, _ in found] == [
        ("doubling", "of doubling"),
        ("counting", "of counting"),
        ("another", "of another"),
    ]
    del room
    assert begin <= found[1][2].address("next") < end
    assert call(found[0][2], "twice") == -(6 + 7)


def test_members_are_for_one_identity(members: list[Member]) -> None:
    for other in ("others", None):
        room = room_with(Joint(members).dump("these"))
        assert link_members(room, other, IMPORTS) == [] and room.size


def test_bytes_that_are_no_members(members: list[Member]) -> None:
    good = Joint(members).dump("these")
    damaged = [good[:end] for end in range(0, len(good), 97)]
    damaged += [good + b"x", good.replace(b'"doubling"', b'["doub"]x'), good.replace(b'"these"', b"[1,2,3]", 1)]
    for data in damaged[:-1]:
        with pytest.raises(InternalError, match=r"damaged|cut short"):
            link_members(room_with(data), "these", IMPORTS)
    assert link_members(room_with(damaged[-1]), "these", IMPORTS) == []
