"""parse(to_text(m)) equals m, and to_text(parse(t)) is a fixed point."""

# ruff: noqa: E501 (programs and tables are kept on their lines)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.hlo.text.samples import EVERYTHING
from tests.support.work import assert_linear
from xlapy.hlo.attributes import (
    ConvolutionDimensionNumbers,
    FftType,
    GatherDimensionNumbers,
    RandomAlgorithm,
    RandomDistribution,
    ReplicaGroups,
    ScatterDimensionNumbers,
    SourceTargetPairs,
    Transpose,
    Window,
    WindowDimension,
)
from xlapy.hlo.graph import BufferDonor, Computation, HloModule
from xlapy.hlo.ops import OPS
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import fingerprint, parse, structural_equal, to_text
from xlapy.hlo.text.attributes import codec_for
from xlapy.hlo.text.lexer import Lexer
from xlapy.hlo.text.op_keys import FIELD_KEYS, op_text
from xlapy.hlo.verifier import verify
from xlapy.support.errors import ParseError
from xlapy.support.source import Source


@pytest.mark.parametrize("long", [False, True])
def test_text_is_a_fixed_point_and_keeps_the_structure(long: bool) -> None:
    module = parse(EVERYTHING)
    verify(module)
    text = to_text(module, long=long)
    again = parse(text)
    assert to_text(again, long=long) == text
    assert structural_equal(module, again)
    assert fingerprint(module) == fingerprint(again)


def test_what_the_text_says_arrives() -> None:
    module = parse(EVERYTHING)
    config = module.config
    by_name = {instruction.name: instruction for instruction in module.entry}
    assert (config.num_replicas, config.is_scheduled, config.extra) == (2, True, {})
    assert config.donors == (BufferDonor(1),)
    assert config.aliases[0].parameter == 0 and not config.aliases[0].must_alias
    assert by_name["c"].metadata.location() == "model.py:41"
    assert by_name["c"].metadata.op_name == 'jit(f)/x "q"'
    assert by_name["c"].shape.layout is not None and by_name["c"].shape.layout.tiling == "T(8,128)(2,1)S(1)"
    assert by_name["x"].extra["frontend_attributes"] == '{a="{b",c="\\"d\\""}'
    assert by_name["cc"].control_predecessors == (by_name["d"], by_name["w"])
    assert by_name["ar"].attributes["replica_groups"].groups == ((0, 2), (1, 3))
    assert by_name["cu"].attributes["target"] == 'my "target"'
    assert by_name["bounded"].shape.dynamic == (True,)
    assert module.entry.root is by_name["g"]


def test_long_text_carries_metadata_and_short_text_does_not() -> None:
    module = parse(EVERYTHING)
    assert 'source_file="model.py"' in to_text(module, long=True)
    assert "metadata" not in to_text(module)
    assert "%x = f32[4]" in to_text(module, long=True)


def test_layouts_and_large_constants_can_be_left_out() -> None:
    module = parse("ENTRY e { ROOT c = s32[12]{0} constant({0,1,2,3,4,5,6,7,8,9,10,11}) }")
    assert "{0}" not in to_text(module, layouts=False)
    assert "constant({...})" in to_text(module, large_constants=False)


def test_without_entry_and_root_the_last_ones_count() -> None:
    module = parse("first { a = f32[] parameter(0) } second { b = f32[] parameter(0) c = negate(b) }")
    assert module.name == "module_second"
    assert (module.entry.name, module.entry.root.name) == ("second", "c")


def test_names_that_text_cannot_hold_are_replaced() -> None:
    computation = Computation("my main!")
    x = computation.add("parameter", shape=Shape.array("float32", (2,)), number=0, name="2 x")
    y = computation.add("parameter", shape=Shape.array("float32", (2,)), number=1, name="2_x")
    computation.set_root(computation.add("add", [x, y], name="ünï"))
    module = HloModule("a b", computation)
    again = parse(to_text(module))
    assert structural_equal(module, again)


def test_computations_of_the_same_name_are_told_apart() -> None:
    main = Computation("f")
    helper = Computation("f")
    p = helper.add("parameter", shape=Shape.scalar("float32"), number=0)
    helper.set_root(helper.add("negate", [p]))
    x = main.add("parameter", shape=Shape.scalar("float32"), number=0)
    main.set_root(main.add("call", [x], called=[helper]))
    module = HloModule("m", main)
    assert structural_equal(module, parse(to_text(module)))


def test_fingerprint_sees_structure_and_not_names() -> None:
    def variant(name: str, operation: str, value: str) -> str:
        return f"ENTRY {name} {{ {name}x = f32[] parameter(0) k = f32[] constant({value}) ROOT r = {operation}({name}x, k) }}"

    base = fingerprint(parse(variant("a", "add", "1")))
    assert base == fingerprint(parse(variant("b", "add", "1")))
    assert base != fingerprint(parse(variant("a", "subtract", "1")))
    assert base != fingerprint(parse(variant("a", "add", "2")))


def test_every_attribute_of_the_table_has_a_text_form() -> None:
    for spec in OPS.values():
        table = op_text(spec)
        covered = {field.attribute for field in table.fields.values()} | (
            {table.inner.attribute} if table.inner else set()
        )
        assert covered == set(spec.attributes)
        assert bool(table.regions) == bool(spec.regions)


CODEC_CASES = [
    (Window, Window((WindowDimension(3, 2, 0, 1), WindowDimension(3, 1, -1, 1, 1, 2, True))), "{size=3x3 stride=2x1 pad=0_1x-1_1 rhs_dilate=1x2 rhs_reversal=0x1}"),
    (Window, Window(), "{}"),
    (ConvolutionDimensionNumbers, ConvolutionDimensionNumbers(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3)), "bf01_oi01->bf01"),
    (ConvolutionDimensionNumbers, ConvolutionDimensionNumbers(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2)), "b01f_01io->b01f"),
    (SourceTargetPairs, SourceTargetPairs(((0, 1), (1, 0))), "{{0,1},{1,0}}"),
    (ReplicaGroups, ReplicaGroups(((0, 1), (2, 3))), "{{0,1},{2,3}}"),
    (FftType, FftType.IRFFT, "IRFFT"),
    (RandomAlgorithm, RandomAlgorithm.PHILOX, "rng_philox"),
    (RandomDistribution, RandomDistribution.NORMAL, "rng_normal"),
    (Transpose, Transpose.ADJOINT, "ADJOINT"),
    (float, 1e-5, "1e-05"),
    (int | None, 3, "3"),
    (tuple[int, ...], (1, 2), "{1,2}"),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "value", "text"), CODEC_CASES)
def test_codecs_read_what_they_write(annotation: object, value: object, text: str) -> None:
    codec = codec_for(annotation)
    assert codec.write(value) == text
    assert codec.read(Lexer(Source(text))) == value


def test_iota_groups_are_the_transposed_iota_cut_in_rows() -> None:
    read = codec_for(ReplicaGroups).read
    assert read(Lexer(Source("[2,4]<=[8]"))).groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert read(Lexer(Source("[4,2]<=[2,2,2]T(2,0,1)"))).groups == ((0, 2), (4, 6), (1, 3), (5, 7))


MESH_GROUPS = {
    "mesh['a'=2,'b'=3] {'a'}": ((0, 3), (1, 4), (2, 5)),
    "mesh['a'=2,'b'=3] {'b'}": ((0, 1, 2), (3, 4, 5)),
    "mesh['a'=2,'b'=3] {'b','a'}": ((0, 3, 1, 4, 2, 5),),
    "mesh['a'=2,'b'=1] {}": ((0,), (1,)),
    "mesh['a'=4,'b'=1,'c'=2], device_ids=([2,4]T(1,0)) {'a'}": ((0, 1, 2, 3), (4, 5, 6, 7)),
    "mesh['a'=2,'b'=2], device_ids=(3,1,0,2) {'b'}": ((3, 1), (0, 2)),
    "mesh['a'=2,'b'=4] {'b':(2)2}": ((0, 1), (2, 3), (4, 5), (6, 7)),
    "mesh['a'=2,'b'=4] {'b':(1)2}": ((0, 2), (1, 3), (4, 6), (5, 7)),
    "mesh['a'=8] {'a':(4)2,'a':(1)2}": ((0, 4, 1, 5), (2, 6, 3, 7)),
}


@pytest.mark.parametrize("text", MESH_GROUPS)
def test_groups_along_axes_of_a_mesh(text: str) -> None:
    """As newer releases of XLA write them."""
    assert codec_for(ReplicaGroups).read(Lexer(Source(text))).groups == MESH_GROUPS[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mesh['a'=2] {'b'}", "the mesh has no axis 'b'"),
        ("mesh['a'=4] {'a':(3)2}", r"an axis of 4 has no parts between \[1, 3, 4, 6\]"),
        ("mesh['a'=4] {'a':(0)2}", r"an axis of 4 has no parts between \[0, 1, 4\]"),
        ("mesh['a'=4] {'a':(1)2,'a'}", "two parts of an axis overlap"),
        ("mesh['a'=0] {'a'}", r"\[0\] are no sizes of a mesh"),
        ("mesh['a'=1152921504606846976] {'a'}", "are no sizes of a mesh"),
        ("mesh['a'=4], device_ids=(0,1) {'a'}", "2 processes do not fill a mesh of 4"),
        ("mesh['a'=4], device_ids=([2,2]T(1,1)) {'a'}", r"T\(1, 1\) is not a permutation"),
        ("mesh[a] {}", "'a' does not list axes of a mesh"),
        ("mesh['a'=4]", "expected groups such as mesh"),
    ],
)
def test_wrong_meshes_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        codec_for(ReplicaGroups).read(Lexer(Source(text)))


@pytest.mark.parametrize("kind", [GatherDimensionNumbers, ScatterDimensionNumbers])
def test_dimension_numbers_of_later_ops_have_one_key_per_field(kind: type) -> None:
    assert set(FIELD_KEYS[kind]) == set(kind.__dataclass_fields__)


def chain(length: int) -> str:
    lines = ["ENTRY main {", "  p0 = f32[128,128]{1,0} parameter(0)"]
    lines += [
        f'  %p{i} = f32[128,128]{{1,0}} add(%p{i - 1}, %p{i // 2}), metadata={{op_name="jit(f)/add"}}'
        for i in range(1, length)
    ]
    return "\n".join([*lines, "}"])


def constant(size: int) -> str:
    return f"ENTRY e {{ ROOT c = f32[{size}] constant({{{','.join(['1.25e-3'] * size)}}}) }}"


def test_a_large_program_and_a_large_constant_are_read() -> None:
    assert parse(chain(10_000)).instruction_count == 10_000
    assert parse(constant(300_000)).entry.root.shape.size == 300_000


@pytest.mark.parametrize(("text_of", "size"), [(chain, 1_000), (constant, 10_000)])
def test_the_work_of_reading_grows_with_the_text(text_of: Callable[[int], str], size: int) -> None:
    def reading(size: int) -> Callable[[], Any]:
        text = text_of(size)
        return lambda: parse(text)

    assert_linear(reading, size)


@pytest.mark.parametrize("name", ["f32", "f8e4m3b11fnuz", "f8e8m0fnu", "token", "f8e4m3fn_", "bf16_"])
def test_a_name_like_that_of_a_type_is_changed_once(name: str) -> None:
    text = to_text(parse(f"ENTRY e {{ x = f32[] parameter(0)  ROOT {name} = f32[] negate(x) }}"))
    assert to_text(parse(text)) == text
