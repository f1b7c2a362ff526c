"""Modules as protocol buffers and back."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.e2e.corpus import corpus
from tests.hlo.text.samples import EVERYTHING
from xlapy.hlo.element_types import ALL, ElementType
from xlapy.hlo.graph import HloModule
from xlapy.hlo.literal import Literal
from xlapy.hlo.ops import OPS
from xlapy.hlo.proto import (
    module_from_bytes,
    module_to_bytes,
    shape_from_proto,
    shape_to_proto,
    sharding_from_text,
    sharding_to_text,
)
from xlapy.hlo.proto.attributes import codecs_for
from xlapy.hlo.proto.literals import literal_from_proto, literal_to_proto
from xlapy.hlo.proto.messages import (
    AxisRefProto,
    HloProto,
    IotaReplicaGroupListProto,
    LiteralProto,
    MeshAxisProto,
    MeshProto,
    MeshReplicaGroupListProto,
    ModuleProto,
    ShapeProto,
    SubAxisProto,
    TransposedIotaProto,
)
from xlapy.hlo.shape import Shape
from xlapy.hlo.text import parse, structural_equal
from xlapy.hlo.text.lexer import Lexer
from xlapy.hlo.text.shapes import parse_shape
from xlapy.hlo.verifier import verify
from xlapy.support.errors import ParseError, ShapeError, XlaError
from xlapy.support.protobuf import decode, encode
from xlapy.support.source import Source


def normal(module: HloModule) -> HloModule:
    """The module without row-major layouts and without its grid, neither of which messages have."""
    for computation in module.computations():
        for instruction in computation:
            computation.set_shape(instruction, default_layouts(instruction.shape))
            attributes = {key: default_layouts(value) for key, value in instruction.attributes.items()}
            computation.set_attributes(instruction, **attributes)
    module.config.entry_layout = None
    module.config.num_replicas = module.config.num_partitions = 1
    return module


def default_layouts(value: Any) -> Any:
    """A shape, or a tuple of shapes, as messages bring it back; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(default_layouts, value))
    return shape_from_proto(shape_to_proto(value)) if isinstance(value, Shape) else value


def test_every_attribute_of_every_op_has_a_place() -> None:
    for spec in OPS.values():
        assert codecs_for(spec).keys() == spec.attributes.keys()


def test_every_program_comes_back() -> None:
    """The programs of the tests use every op."""
    for module in corpus():
        serialized = module_to_bytes(module)
        again = module_from_bytes(serialized)
        verify(again)
        assert module_to_bytes(again) == serialized
        assert structural_equal(normal(module.clone()), normal(again)), module.name


def test_what_a_module_says_arrives() -> None:
    original = parse(EVERYTHING)
    module = module_from_bytes(module_to_bytes(original))
    verify(module)
    assert module.config.is_scheduled and module.config.aliases == original.config.aliases
    by_name = {instruction.name: instruction for instruction in module.entry}
    assert by_name["c"].metadata.location() == "model.py:41"
    assert by_name["c"].shape.minor_to_major == (0, 1)
    literals = [i.attributes["literal"].array for m in (module, original) for i in m.entry if i.name == "c"]
    assert literals[0].tobytes() == literals[1].tobytes()
    assert by_name["x"].extra["frontend_attributes"] == '{a="{b",c="\\"d\\""}'
    assert by_name["x"].extra["sharding"] == "{devices=[2]<=[2]}"
    assert by_name["w"].extra["backend_config"] == '{"known_trip_count":{"n":"10"}}'
    assert [p.name for p in by_name["cc"].control_predecessors] == ["d", "w"]
    assert by_name["ar"].attributes["replica_groups"].groups == ((0, 2), (1, 3))


@pytest.mark.parametrize("text", ["f32[2,<=3]{0,1}", "(s32[], (token[], pred[0]))", "f32[?,4]", "s4[]", "()"])
def test_shapes_come_back(text: str) -> None:
    shape = parse_shape(Lexer(Source(text)))
    assert shape_from_proto(decode(ShapeProto, encode(shape_to_proto(shape)))) == shape


@pytest.mark.parametrize(
    "text",
    [
        "{replicated}",
        "{maximal device=3}",
        "{manual}",
        "{unreduced}",
        "{devices=[2,1]0,1}",
        "{devices=[2,2]<=[4]}",
        "{devices=[2,2]<=[2,2]T(1,0)}",
        "{devices=[1,2,2]<=[4] last_tile_dim_replicate}",
        "{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}",
        "{{replicated}, {{devices=[2]<=[2]}}}",
        "{replicated shard_as 3}",
    ],
)
def test_shardings_come_back(text: str) -> None:
    proto = sharding_from_text(text)
    assert sharding_to_text(decode(type(proto), encode(proto))) == text


@pytest.mark.parametrize("text", ["{", "replicated", "{devices=2}", "{wrong}", "{replicated} more", "{devices=[2]<=2}"])
def test_what_is_no_sharding_says_so(text: str) -> None:
    with pytest.raises(ParseError):
        sharding_from_text(text)


@pytest.mark.parametrize("element_type", ALL, ids=lambda element_type: element_type.name)
def test_literals_of_every_type_come_back(element_type: ElementType) -> None:
    values = (np.array([[0, 1, 2], [1, 1, 0]]) * (-1 if element_type.is_signed else 1)).astype(element_type.dtype)
    for layout in (None, (0, 1)):
        shape = Shape.array(element_type, (2, 3), layout=layout)
        again = literal_from_proto(decode(LiteralProto, encode(literal_to_proto(Literal(values), shape))))
        assert again.array.dtype == values.dtype
        assert again.array.tobytes() == values.tobytes()


def test_long_literals_come_back_quickly() -> None:
    values = np.arange(-500_000, 500_000, dtype=np.int64)
    proto = literal_to_proto(Literal(values), Shape.array(np.int64, values.shape))
    np.testing.assert_array_equal(literal_from_proto(decode(LiteralProto, encode(proto))).array, values)


def test_a_module_may_be_wrapped() -> None:
    module = parse("HloModule m\nENTRY e { ROOT p = f32[2] parameter(0) }")
    wrapped = encode(HloProto(decode(ModuleProto, module_to_bytes(module))))
    assert module_from_bytes(wrapped).name == "m"


def test_groups_may_be_described() -> None:
    module = parse(EVERYTHING)
    proto = decode(ModuleProto, module_to_bytes(module))
    (reduce,) = (i for c in proto.computations for i in c.instructions if i.opcode == "all-reduce")
    reduce.replica_groups = []
    reduce.iota_collective_device_list = IotaReplicaGroupListProto(2, 2, [2, 2], [1, 0])
    again = module_from_bytes(encode(proto))
    (reduced,) = (i for i in again.entry if i.opcode == "all-reduce")
    assert reduced.attributes["replica_groups"].groups == ((0, 2), (1, 3))
    reduce.iota_collective_device_list.num_replica_groups = 1 << 60
    with pytest.raises(ParseError, match="does not cut"):
        module_from_bytes(encode(proto))


def test_groups_may_be_those_along_axes_of_a_mesh() -> None:
    """As newer releases of XLA write them."""
    proto = decode(ModuleProto, module_to_bytes(parse(EVERYTHING)))
    (reduce,) = (i for c in proto.computations for i in c.instructions if i.opcode == "all-reduce")
    reduce.replica_groups = []
    mesh = MeshProto([MeshAxisProto("a", 2), MeshAxisProto("b", 2)])
    part = AxisRefProto(0)
    reduce.mesh_collective_device_list = MeshReplicaGroupListProto(mesh, [part])

    def groups() -> tuple[tuple[int, ...], ...]:
        (reduced,) = (i for i in module_from_bytes(encode(proto)).entry if i.opcode == "all-reduce")
        found: tuple[tuple[int, ...], ...] = reduced.attributes["replica_groups"].groups
        return found

    assert groups() == ((0, 2), (1, 3))
    mesh.iota_device_ids = TransposedIotaProto([2, 2], [1, 0])
    assert groups() == ((0, 1), (2, 3))
    mesh.iota_device_ids, mesh.device_ids = None, [3, 1, 0, 2]
    assert groups() == ((3, 0), (1, 2))
    mesh.axes, part.sub_axis_info = [MeshAxisProto("a", 4)], SubAxisProto(2, 2)
    assert groups() == ((3, 1), (0, 2))
    part.mesh_axis_index = 1
    with pytest.raises(ParseError, match=r"an axis that a mesh of \[4\] does not have"):
        groups()


# -- what is wrong -------------------------------------------------------------------------------------------------

ADDITION = parse("""HloModule m
  ENTRY e { p = f32[2] parameter(0)  q = f32[2] parameter(1)  ROOT s = f32[2] add(p, q) }""")


TOTAL = {"opcode": "compare", "comparison_direction": "LT", "comparison_type": "TOTALORDER"}


def broken(**changes: object) -> bytes:
    """The addition with fields of its root changed."""
    proto = decode(ModuleProto, module_to_bytes(ADDITION))
    for name, value in changes.items():
        setattr(proto.computations[0].instructions[2], name, value)
    return encode(proto)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"opcode": "addd"}, "no operation 'addd'; did you mean 'add'"),
        ({"operand_ids": [1, 7]}, "operand has the id 7"),
        ({"operand_ids": [3, 1]}, "operand has the id 3"),
        ({"operand_ids": [1]}, "the number of operands is 1"),
        ({"called_computation_ids": [1]}, "called computation has the id 1"),
        ({"id": 1}, "two instructions have the id 1"),
        ({"shape": None}, "it has no shape"),
        ({"shape": ShapeProto(11, [3])}, r"f32\[3\] is stated, but the result is f32\[2\]"),
        ({"shape": ShapeProto(99, [2])}, "99 is the number of no element type"),
        ({"shape": ShapeProto(11, [-2])}, "negative"),
        ({"shape": ShapeProto(11, [2], is_dynamic_dimension=[True, False])}, "whether they are dynamic"),
        ({"opcode": "constant", "operand_ids": []}, "a constant has no literal"),
        (TOTAL | {"operand_ids": []}, "the number of operands is 0"),
        (TOTAL | {"comparison_direction": ""}, "its comparison_direction '' is none of EQ"),
    ],
)
def test_wrong_instructions_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises((ParseError, ShapeError), match=message) as caught:
        module_from_bytes(broken(**changes))
    assert "instruction s of e" in str(caught.value)


def test_tuples_are_not_compared_in_any_order() -> None:
    pairs = parse("HloModule m  ENTRY e { p = f32[2] parameter(0)  q = (f32[2]) tuple(p)  ROOT s = f32[2] negate(p) }")
    proto = decode(ModuleProto, module_to_bytes(pairs))
    instructions = proto.computations[0].instructions
    for name, value in (TOTAL | {"operand_ids": [instructions[1].id] * 2}).items():
        setattr(instructions[2], name, value)
    with pytest.raises(ShapeError, match="compare"):
        module_from_bytes(encode(proto))


def test_modules_without_what_they_need() -> None:
    with pytest.raises(ParseError, match="no HloModuleProto"):
        module_from_bytes(b"")
    proto = decode(ModuleProto, module_to_bytes(ADDITION))
    proto.computations[0].root_id = 9
    with pytest.raises(ParseError, match="has no root"):
        module_from_bytes(encode(proto))
    proto = decode(ModuleProto, module_to_bytes(ADDITION))
    proto.computations[0].instructions[1].parameter_number = 2
    with pytest.raises(ParseError, match=r"numbers \[0, 2\]"):
        module_from_bytes(encode(proto))


def test_literals_have_as_many_elements_as_their_shape() -> None:
    proto = LiteralProto(ShapeProto(11, [1 << 40]), f32s=np.zeros(3, np.float32))
    with pytest.raises(ParseError, match="has 3 elements"):
        literal_from_proto(proto)


def test_damaged_bytes_are_refused_or_read() -> None:
    """Whatever happens to the bytes, the answer is a module or an XlaError."""
    generator = random.Random(0)
    whole = module_to_bytes(parse(EVERYTHING))
    outcomes = set()
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(generator.choice((1, 1, 3))):
            at = generator.randrange(len(data))
            if generator.random() < 0.7:
                data[at] = generator.randrange(256)
            else:
                del data[at : at + generator.randrange(1, 9)]
        try:
            module_from_bytes(bytes(data))
            outcomes.add("read")
        except XlaError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
